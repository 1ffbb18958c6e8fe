//! The rules that explain by a form of a statement that says the same are given the difference that
//! each is for, and then another one planted beside it, which must not be swallowed.

use super::compare::Told;
use super::planted_tests::{
    INT, NOT_NULL, PREPARED, aggregate, leaf, number, refused, row, rule_of, rule_of_sent,
    warned_of,
};
use super::tree::{Node, Role};

const BIGINT: u8 = 8;
const VARCHAR: u8 = 253;
const ZEROFILL: u16 = 64;

/// `SELECT item FROM source`.
fn query_of(item: Node, source: Node) -> Node {
    Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![Node::list(vec![item]), source])
}

fn table(text: &str) -> Node {
    Node::leaf(Role::Source, text)
}

/// `(SELECT id, value AS c0 FROM t2 AS a2) AS a3`.
fn derived(value: Node) -> Node {
    let item = Node::new(Role::Fixed, &["", " AS c0"], vec![value]);
    let texts = ["(SELECT id, ", " FROM ", ") AS a3"];
    Node::new(Role::Fixed, &texts, vec![Node::list(vec![item]), table("t2 AS a2")])
}

fn ints(cells: [&'static str; 2]) -> [Told; 2] {
    cells.map(|cell| row(INT, 0, &[cell]))
}

#[test]
fn merged_tables_hide_no_other_value() {
    let query = query_of(leaf("a3.c0"), derived(leaf("1")));
    let with = |limited: [Told; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("LIMIT 1000) AS a3") => limited.clone(),
            _ if text.contains("kept") => ints(["8", "9"]),
            _ => ints(["0", "1"]),
        })
    };
    assert_eq!(with(ints(["0", "0"])), Some("literals of derived tables, merged"));
    assert_eq!(with(ints(["0", "1"])), None);
    // Gannet says something else where it merges nothing.
    assert_eq!(with(ints(["1", "1"])), None);
    assert_eq!(with([row(INT, 0, &["0"]), refused(1267)]), None);
}

#[test]
fn documents_in_another_order_hide_no_other_value() {
    let children = vec![leaf("@j"), leaf("'{}'")];
    let call = Node::new(Role::Expression, &["JSON_OVERLAPS(", ", ", ")"], children);
    let query = query_of(call, table("t3 AS a1"));
    let with = |swapped: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("JSON_OVERLAPS('{}', @j)") => ints(swapped),
            _ if text.contains("kept") => ints(["8", "9"]),
            _ => ints(["1", "0"]),
        })
    };
    assert_eq!(with(["1", "1"]), Some("JSON_OVERLAPS of objects"));
    assert_eq!(with(["1", "0"]), None);
    assert_eq!(with(["0", "0"]), None);
}

#[test]
fn texts_of_keys_hide_no_other_group() {
    let quotient =
        Node::new(Role::Expression, &["(", " / ", ")"], vec![leaf("a1.dec2"), leaf("7")]);
    let by = Node::clause(" GROUP BY ", Some(quotient), "");
    let children = vec![Node::list(vec![aggregate("SUM", "a1.id")]), table("t1 AS a1"), by];
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
    let with = |texted: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("GROUP BY CONCAT((a1.dec2 / 7))") => ints(texted),
            _ if text.contains("kept") || text.contains("BIG_RESULT") => ints(["8", "9"]),
            _ => ints(["0", "1"]),
        })
    };
    let name = "groups told apart by digits that are not shown";
    assert_eq!(with(["0", "0"]), Some(name));
    assert_eq!(with(["0", "1"]), None);
    assert_eq!(with(["1", "1"]), None);
}

#[test]
fn parts_selected_by_a_subquery_hide_no_other_change() {
    let texts = ["UPDATE t4 AS a1 SET a1.plain = ", " WHERE ", ""];
    let value = Node::new(Role::Expression, &["F(", ")"], vec![leaf("a1.clock")]);
    let update = Node::new(Role::Fixed, &texts, vec![value, leaf("a1.id")]);
    let with = |selected: [&'static str; 2]| {
        rule_of(&update, &move |text: &str| match text.contains("(SELECT F(a1.clock) FROM (") {
            true => ints(selected),
            false => ints(["0", "1"]),
        })
    };
    assert_eq!(with(["0", "0"]), Some("values that depend on what reads them, in changes"));
    assert_eq!(with(["0", "1"]), None);
    assert_eq!(with(["1", "1"]), None);
}

#[test]
fn parameters_of_derived_tables_hide_no_other_nullability() {
    let sum = Node::new(Role::Expression, &["(", " + ", ")"], vec![leaf("a3.c0"), leaf("2")]);
    let query = query_of(sum, derived(leaf("1")));
    let with = |written: [u16; 2]| {
        rule_of_sent(&query, true, &move |text: &str| {
            // With a limit they differ, too: it is nothing else than the parameter.
            let is_sent = text.starts_with(PREPARED) || text.contains("LIMIT");
            let flags = if is_sent { [NOT_NULL, 0] } else { written };
            flags.map(|flags| row(INT, flags, &["1"]))
        })
    };
    let name = "parameters that a derived table selects";
    assert_eq!(with([NOT_NULL, NOT_NULL]), Some(name));
    assert_eq!(with([NOT_NULL, 0]), None);
    assert_eq!(with([0, 0]), None);
}

#[test]
fn numbers_of_bits_hide_no_other_stored_text() {
    let texts = ["UPDATE t4 AS a1 SET a1.name = ", "", ""];
    let value = Node::new(Role::Expression, &["CAST(", " AS CHAR)"], vec![leaf("a1.bits")]);
    let update = Node::new(Role::Fixed, &texts, vec![value, leaf("")]);
    let texts = |cells: [&'static str; 2]| cells.map(|cell| row(VARCHAR, 0, &[cell]));
    let with = |as_text: [&'static str; 2]| {
        rule_of(&update, &move |text: &str| match text {
            _ if text.contains("(a1.bits + 0)") => texts(["15", "15"]),
            _ if text.contains("CONCAT(a1.bits)") => texts(as_text),
            _ if text.contains("(SELECT ") => texts(["8", "9"]),
            _ => texts(["a", "15"]),
        })
    };
    assert_eq!(with(["a", "a"]), Some("BIT that is computed, stored as text"));
    assert_eq!(with(["a", "b"]), None);
    // What Gannet stores is neither the number nor the text.
    assert_eq!(with(["b", "b"]), None);
}

#[test]
fn names_of_columns_of_another_form_hide_no_other_description() {
    use super::executed::with_names_of;
    use sqltest::client::Answer;
    let named = |name: &str, flags: u16| {
        let mut told = row(INT, flags, &["1"]);
        if let Answer::Rows { columns, .. } = &mut told.answer {
            columns[0].name = name.into();
        }
        told
    };
    let same = with_names_of(&Ok(vec![named("a", 0)]), &[named("b", 0)]);
    assert_eq!(same, Ok(vec![named("b", 0)]));
    let other = with_names_of(&Ok(vec![named("a", NOT_NULL)]), &[named("b", 0)]);
    assert_ne!(other, Ok(vec![named("b", 0)]));
}

/// A column of latin1 as Unicode.
const CONVERTED: &str = "CONVERT(a1.lat USING utf8mb4)";

#[test]
fn rows_compared_one_by_one_hide_no_other_value() {
    let texts = ["((", ", ", ") IN ((", ", ", "), (", ", ", ")))"];
    let children = ["1", "a1.lat", "1", "'a'", "2", "'b'"].map(leaf).to_vec();
    let list = Node::new(Role::Expression, &texts, children);
    let query = query_of(list, table("t2 AS a1"));
    let with = |one_by_one: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            if text.contains(" OR ") {
                let wanted = "(((1, a1.lat) = (1, 'a')) OR ((1, a1.lat) = (2, 'b')))";
                assert!(text.replace(CONVERTED, "a1.lat").contains(wanted), "{text}");
                return ints(one_by_one);
            }
            let is_other = text.contains("kept") || text.contains("utf8mb4");
            ints(if is_other { ["8", "9"] } else { ["1", "0"] })
        })
    };
    let name = "lists of rows with texts of two character sets, compared one by one";
    assert_eq!(with(["1", "1"]), Some(name));
    assert_eq!(with(["1", "0"]), None);
    assert_eq!(with(["0", "0"]), None);
}

#[test]
fn in_of_a_subquery_hides_no_other_value() {
    let texts = ["(", " IN (SELECT ", " FROM ", "))"];
    let children = vec![leaf("a1.plain"), leaf("a2.medium"), table("t1 AS a2")];
    let query = query_of(Node::new(Role::Expression, &texts, children), table("t3 AS a1"));
    let with = |other: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("materialization=off") => {
                let has_no_index = text.contains("t1 AS a2 USE INDEX ()");
                assert!(has_no_index || text.contains("derived_merge=off"), "{text}");
                ints(other)
            }
            _ if text.contains("kept") => ints(["8", "9"]),
            _ => ints(["0", "1"]),
        })
    };
    assert_eq!(with(["0", "0"]), Some("IN with a materialized subquery"));
    assert_eq!(with(["0", "1"]), None);
    assert_eq!(with(["1", "1"]), None);
}

#[test]
fn columns_without_a_value_hide_no_other_value() {
    let condition = Node::clause(" WHERE ", Some(leaf("a1.f")), "");
    let children = vec![leaf("a1.big"), table("t3 AS a2"), condition];
    let texts = ["(SELECT MAX(", ") FROM ", "", ")"];
    let query = query_of(Node::new(Role::Expression, &texts, children), table("t1 AS a1"));
    let with = |grouped: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("WHERE NULL") => ints(grouped),
            _ if text.contains("kept") => ints(["8", "9"]),
            _ => ints(["0", "1"]),
        })
    };
    assert_eq!(with(["5", "5"]), Some("ungrouped columns beside aggregates, values"));
    assert_eq!(with(["0", "1"]), None);
}

#[test]
fn zeros_of_one_part_of_a_union_hide_no_other_value() {
    let part = |item: &str, source: Option<&str>| {
        let from = Node::clause(" FROM ", source.map(table), "");
        let children = vec![Node::list(vec![leaf(item)]), from];
        Node::new(Role::Query, &["SELECT ", "", ""], children)
    };
    let parts = vec![part("TO_SECONDS(@t)", None), part("a1.plainu", Some("t1 AS a1"))];
    let query = Node::new(Role::Query, &["", " UNION ALL ", ""], parts);
    let with = |own: &'static str, filled: u16| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("UNION") => [number(&[own]), number(&["99"])],
            _ if text.contains("plainu") => ["0012", "0012"].map(|it| row(INT, filled, &[it])),
            _ => [number(&["7"]), number(&["7"])],
        })
    };
    assert_eq!(with("12", ZEROFILL), Some("values cut in a temporary table, of UNION"));
    assert_eq!(with("12", 0), None);
    assert_eq!(with("120", ZEROFILL), None);
    assert_eq!(with("0012", ZEROFILL), None);
}

#[test]
fn numbers_of_bits_hide_no_other_warning() {
    let item = Node::new(Role::Expression, &["COALESCE(", ")"], vec![leaf("a1.bits")]);
    let query = query_of(item, table("t3 AS a1"));
    let with = |numbered: [Told; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("(a1.bits + 0)") => numbered.clone(),
            _ if text.contains("kept") => ints(["8", "9"]),
            _ => [warned_of(number(&["1"]), "1292"), number(&["1"])],
        })
    };
    let one = || number(&["1"]);
    let name = "BIT that is computed, warnings";
    assert_eq!(with([one(), one()]), Some(name));
    assert_eq!(with([warned_of(one(), "1292"), one()]), None);
}

#[test]
fn errors_of_rows_hide_no_other_error() {
    let texts = ["UPDATE t4 AS a1 SET a1.plain = ", "", ""];
    let children = vec![leaf("F(a1.tiny)"), table("t4 AS a1"), Node::leaf(Role::Fixed, "")];
    let update = Node::new(Role::Fixed, &texts, children);
    let with = |first: [u16; 2], second: [u16; 2]| {
        rule_of(&update, &move |text: &str| match text {
            _ if text.contains("WHERE a1.id = 1") => first.map(refused),
            _ if text.contains("WHERE a1.id = 2") => second.map(refused),
            _ if text.contains("WHERE a1.id = ") => ints(["1", "1"]),
            _ if text.contains("(SELECT ") => ints(["8", "9"]),
            _ => [refused(1690), refused(1048)],
        })
    };
    let name = "the first error of several rows";
    assert_eq!(with([1048, 1048], [1690, 1690]), Some(name));
    assert_eq!(with([1048, 1048], [1264, 1264]), None);
    assert_eq!(with([1048, 1048], [1690, 1048]), None);
}

#[test]
fn errors_without_conditions_hide_no_other_error() {
    let condition = Node::clause(" WHERE ", Some(leaf("a1.e")), "");
    let having = Node::clause(" HAVING ", Some(leaf("a1.id")), "");
    let children = vec![Node::list(vec![leaf("1")]), table("t3 AS a1"), condition, having];
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", "", ""], children);
    let with = |unconditional: [u16; 2], ungrouped: [u16; 2]| {
        rule_of(&query, &move |text: &str| match (text.contains("WHERE a1.e"), text) {
            (false, _) if text.contains("HAVING a1.id") => unconditional.map(refused),
            (true, _) if text == "SELECT 1 FROM t3 AS a1 WHERE a1.e" => ungrouped.map(refused),
            (true, _) if text.contains("HAVING a1.id") => [refused(1267), refused(1054)],
            _ => ints(["8", "9"]),
        })
    };
    let name = "the first of several errors, other numbers";
    assert_eq!(with([1054, 1054], [1267, 1267]), Some(name));
    assert_eq!(with([1054, 1054], [1271, 1271]), None);
    assert_eq!(with([1054, 1267], [1267, 1267]), None);
}

#[test]
fn numbers_of_bits_hide_no_other_selected_text() {
    let item = Node::new(Role::Expression, &["CAST(", " AS BINARY)"], vec![leaf("a1.bit1")]);
    let query = query_of(item, table("t3 AS a1"));
    let texts = |cells: [&'static str; 2]| cells.map(|cell| row(VARCHAR, 0, &[cell]));
    let with = |as_text: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("(a1.bit1 + 0)") => texts(["1", "1"]),
            _ if text.contains("CONCAT(a1.bit1)") => texts(as_text),
            _ if text.contains("kept") => texts(["8", "9"]),
            _ => texts(["a", "1"]),
        })
    };
    assert_eq!(with(["a", "a"]), Some("BIT that is computed, selected"));
    assert_eq!(with(["a", "1"]), None);
    assert_eq!(with(["b", "b"]), None);
}

#[test]
fn products_of_many_digits_hide_no_other_warning() {
    let product = Node::new(Role::Expression, &["(", " * ", ")"], vec![leaf("a1.wide"), leaf("2")]);
    let item = Node::new(Role::Expression, &["SEC_TO_TIME(", ")"], vec![product]);
    let query = query_of(item, table("t1 AS a1"));
    let warned = |text: &str| {
        let warnings = vec![["Warning", "1292", text].map(String::from)];
        Told { warnings, ..number(&["1"]) }
    };
    let with = |narrow: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("AS DOUBLE) * ") => [number(&["1"]), number(&["1"])],
            _ if text.contains("a1.dec10") => narrow.map(warned),
            _ if text.contains("a1.wide *") && !text.contains("kept") => ["1.0", "1"].map(warned),
            _ => ints(["8", "9"]),
        })
    };
    assert!(with(["5", "5"]).is_some_and(|name| name.starts_with("products of DECIMAL")));
    assert_eq!(with(["5", "6"]), None);
}

#[test]
fn numbers_in_place_of_parameters_hide_no_other_error() {
    let field =
        Node::new(Role::Expression, &["FIELD(", ", ", ")"], vec![leaf("a1.lat"), leaf("'a'")]);
    let query = query_of(field, table("t2 AS a1"));
    let refused_with = |text: &str| {
        let mut told = refused(1270);
        if let sqltest::client::Answer::Error(error) = &mut told.answer {
            error.message = text.into();
        }
        told
    };
    let with = |unprepared: [&'static str; 2]| {
        rule_of_sent(&query, true, &move |text: &str| match text.starts_with(PREPARED) {
            true => [refused_with("planted"), refused_with("known")],
            false => unprepared.map(refused_with),
        })
    };
    assert_eq!(with(["known", "known"]), Some("which parameter's collation is told"));
    assert_eq!(with(["other", "known"]), None);
}

#[test]
fn positions_in_documents_hide_no_other_warning() {
    let set =
        Node::new(Role::Expression, &["JSON_SET('{}', '$.a', ", ")"], vec![leaf("a1.mediumu")]);
    let query = query_of(set, table("t1 AS a1"));
    let with = |own: &'static str| {
        let warned = |text: &str| {
            let warnings = vec![["Warning", "4038", text].map(String::from)];
            Told { warnings, ..number(&["1"]) }
        };
        rule_of(
            &query,
            &move |text: &str| match text.contains("kept") || !text.contains("JSON_SET") {
                true => ints(["8", "9"]),
                false => [warned(own), warned("Syntax error in argument 1 at position 7")],
            },
        )
    };
    let name = "positions in changed documents";
    assert_eq!(with("Syntax error in argument 1 at position 8"), Some(name));
    assert_eq!(with("Syntax error in argument 2 at position 8"), None);
}

/// `SELECT item FROM t1 AS a1 GROUP BY a1.tiny`.
fn grouped_query(item: Node) -> Node {
    let by = Node::clause(" GROUP BY ", Some(leaf("a1.tiny")), "");
    let children = vec![Node::list(vec![item]), table("t1 AS a1"), by];
    Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children)
}

#[test]
fn sums_of_many_digits_hide_no_other_sum() {
    let query = grouped_query(aggregate("SUM", "a1.wide"));
    let with = |rounded: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("SQL_BIG_RESULT") => [number(&["8"]), number(&["9"])],
            _ if text.contains("SUM(ROUND(a1.wide, 20))") => rounded.map(|cell| number(&[cell])),
            _ if text.contains("SUM(a1.wide)") => [number(&["12.5"]), number(&["9.5"])],
            _ => ints(["8", "9"]),
        })
    };
    assert_eq!(with(["12.50", "12.50"]), Some("sums of DECIMAL with too many digits"));
    assert_eq!(with(["12.50", "9.50"]), None);
    // Gannet's sum is another one.
    assert_eq!(with(["12.75", "12.75"]), None);
}

#[test]
fn texts_of_lists_hide_no_other_member() {
    let texts = ["HEX(GROUP_CONCAT(DISTINCT ", " ORDER BY 1 SEPARATOR '|'))"];
    let query = query_of(Node::new(Role::Aggregate, &texts, vec![leaf("a1.d")]), table("t1 AS a1"));
    // 2|10, cut to 2|9; as texts 10|2.
    let with = |listed: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("DISTINCT CONCAT(a1.d)") => listed.map(|it| row(VARCHAR, 0, &[it])),
            _ if text.contains("DISTINCT a1.d") => {
                ["327C3130", "327C39"].map(|it| row(VARCHAR, 0, &[it]))
            }
            _ => ints(["8", "9"]),
        })
    };
    assert_eq!(with(["31307C32", "31307C32"]), Some("lists of numbers with too many digits"));
    assert_eq!(with(["31307C32", "397C32"]), None);
    assert_eq!(with(["31317C32", "31317C32"]), None);
    assert_eq!(with(["31307C327C33", "31307C327C33"]), None);
}

#[test]
fn sums_as_extremes_hide_no_other_value() {
    let of = |value: Node, written: &'static str, summed: [&'static str; 2]| {
        let extreme = Node::new(Role::Aggregate, &["MAX(", ")"], vec![value]);
        let item = Node::new(Role::Expression, &["CONCAT(", ", 'x')"], vec![extreme]);
        rule_of(&grouped_query(item), &move |text: &str| match text {
            _ if text.contains("SQL_BIG_RESULT") => ints(["8", "9"]),
            _ if text.contains(written) => summed.map(|it| row(VARCHAR, 0, &[it])),
            _ if text.starts_with("SELECT CONCAT(MAX(") && !text.contains("kept") => {
                ["7x", "007x"].map(|it| row(VARCHAR, 0, &[it]))
            }
            _ => ints(["8", "9"]),
        })
    };
    let filled = |summed| of(leaf("a1.mediumu"), "MAX((a1.mediumu + 0))", summed);
    assert_eq!(filled(["7x", "7x"]), Some("ZEROFILL of MIN and MAX in groups, in expressions"));
    assert_eq!(filled(["7x", "8x"]), None);
    assert_eq!(filled(["8x", "8x"]), None);
    let double = |summed| of(leaf("a1.d").of("double"), "MAX((a1.d + 0e0))", summed);
    assert!(double(["7x", "7x"]).is_some());
    assert_eq!(double(["8x", "8x"]), None);
}

#[test]
fn extremes_of_floats_as_text_hide_no_other_text() {
    let choice = Node::new(Role::Expression, &["NULLIF(", ", 1)"], vec![leaf("a1.f")]);
    let extreme = Node::new(Role::Aggregate, &["MIN(", ")"], vec![choice.of("double")]);
    let item = Node::new(Role::Expression, &["CONCAT(", ", 'x')"], vec![extreme]);
    let of = |summed: [&'static str; 2]| {
        rule_of(&query_of(item.clone(), table("t1 AS a1")), &move |text: &str| match text {
            _ if text.contains("MIN((NULLIF(a1.f, 1) + 0e0))") => {
                summed.map(|it| row(VARCHAR, 0, &[it]))
            }
            _ => ["0.10000000149011612x", "0.1x"].map(|it| row(VARCHAR, 0, &[it])),
        })
    };
    let name = Some("FLOATs that are computed, MIN and MAX of them as text");
    assert_eq!(of(["0.10000000149011612x", "0.10000000149011612x"]), name);
    assert_eq!(of(["0.10000000149011612x", "0.1x"]), None);
    assert_eq!(of(["0.1x", "0.1x"]), None);
}

#[test]
fn digits_of_parameters_hide_no_other_digits() {
    let size = Node::new(Role::Expression, &["ABS(", ")"], vec![leaf("1")]);
    let query = query_of(size, table("t1 AS a1"));
    let with = |unprepared: [u8; 2]| {
        rule_of_sent(&query, true, &move |text: &str| {
            let decimals = if text.starts_with(PREPARED) { [0, 1] } else { unprepared };
            decimals.map(|decimals| {
                let mut told = row(BIGINT, 0, &["1"]);
                if let sqltest::client::Answer::Rows { columns, .. } = &mut told.answer {
                    columns[0].decimals = decimals;
                }
                told
            })
        })
    };
    assert_eq!(with([0, 0]), Some("digits of functions of parameters"));
    assert_eq!(with([0, 1]), None);
    assert_eq!(with([1, 1]), None);
}
