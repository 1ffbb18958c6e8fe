//! Differences planted beside those that another way to execute a statement, or another form of it,
//! explains; see `planted_tests.rs`.

use super::compare;
use super::compare::Told;
use super::planted_tests::{
    DECIMAL, INT, NOT_NULL, PREPARED, aggregate, leaf, number, refused, row, rule_of,
    rule_of_change, rule_of_sent,
};
use super::tree::{Node, Role};
use sqltest::client::Answer;

/// `SELECT item FROM t3 AS a1 clause`.
fn query_of(head: &str, item: Node, clause: Node) -> Node {
    let from = Node::leaf(Role::Source, "t3 AS a1");
    let texts = [head, " FROM ", "", ""];
    Node::new(Role::Fixed, &texts, vec![Node::list(vec![item]), from, clause])
}

#[test]
fn an_index_hides_no_other_value() {
    let condition =
        Node::new(Role::Expression, &["(", " < ", ")"], vec![leaf("a1.y"), leaf("1e6")]);
    let clause = Node::clause(" WHERE ", Some(condition), "");
    let query = query_of("SELECT ", leaf("a1.e"), clause);
    let with = |own: &'static str, without: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("USE INDEX ()") => without.map(|cell| row(INT, 0, &[cell])),
            // Nothing else shows anything.
            _ if text.contains(" < ") => [own, "5"].map(|cell| row(INT, 0, &[cell])),
            _ => ["8", "9"].map(|cell| row(INT, 0, &[cell])),
        })
    };
    assert_eq!(with("4", ["4", "4"]), Some("conditions on an indexed column, values"));
    assert_eq!(with("4", ["4", "5"]), None);
    // Gannet itself answers otherwise with an index.
    assert_eq!(with("4", ["5", "5"]), None);
}

#[test]
fn groups_in_a_temporary_table_hide_no_other_value() {
    let group = Node::clause(" GROUP BY ", Some(leaf("a1.e")), "");
    let query = query_of("SELECT ", aggregate("SUM", "a1.y"), group);
    let with = |own: &'static str, sorted: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text.contains("SQL_BIG_RESULT") {
            true => sorted.map(|cell| number(&[cell])),
            false => [own, "1.3334"].map(|cell| number(&[cell])),
        })
    };
    assert_eq!(with("1.3333", ["1.3333", "1.3333"]), Some("groups in a temporary table"));
    assert_eq!(with("1.3333", ["1.3333", "1.3334"]), None);
    assert_eq!(with("1.3332", ["1.3333", "1.3333"]), None);
}

#[test]
fn an_order_hides_no_other_description() {
    let texts = [super::statements::TOTAL_ORDER, ", a1.id"];
    let order = Node::new(Role::Clause, &texts, vec![leaf("a1.id")]);
    let query = query_of("SELECT ", leaf("a1.word"), order);
    let with = |own: u16, plain: [u16; 2]| {
        rule_of(&query, &move |text: &str| {
            let flags = if text.contains("ORDER BY") { [own, 0] } else { plain };
            flags.map(|flags| row(INT, flags, &["1"]))
        })
    };
    let name = "columns of an order's temporary table";
    assert_eq!(with(NOT_NULL, [NOT_NULL, NOT_NULL]), Some(name));
    assert_eq!(with(NOT_NULL, [NOT_NULL, 0]), None);
    assert_eq!(with(NOT_NULL, [0, 0]), None);
}

#[test]
fn equal_rows_of_distinct_hide_no_other_row() {
    let none = Node::clause(" WHERE ", None, "");
    let mut query = query_of("SELECT DISTINCT ", leaf("a1.y"), none);
    query.texts.push(String::new());
    let rows = |cells: &[&str]| {
        let mut told = number(&[]);
        let Answer::Rows { columns, rows, .. } = &mut told.answer else { unreachable!() };
        columns.push(compare::tests::column_of(DECIMAL));
        *rows = cells.iter().map(|text| vec![Some(text.as_bytes().to_vec())]).collect();
        told
    };
    let with = |own: &'static [&'static str], plain: [&'static [&'static str]; 2]| {
        rule_of(&query, &move |text: &str| match text.contains("DISTINCT") {
            true => [rows(own), rows(&["99.9"])],
            false => plain.map(rows),
        })
    };
    let name = "values cut in a temporary table, equal rows of DISTINCT";
    let all: &[&str] = &["100.5", "200.5", "100.5"];
    assert_eq!(with(&["100.5", "200.5"], [all, all]), Some(name));
    assert_eq!(with(&["100.5", "200.5", "300.5"], [all, all]), None);
    assert_eq!(with(&["100.5", "200.5"], [all, &["100.5", "200.5", "1"]]), None);
}

#[test]
fn sums_of_distinct_values_hide_no_other_sum() {
    let sum = Node::new(Role::Aggregate, &["SUM(DISTINCT ", ")"], vec![leaf("0x7F")]);
    let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![Node::list(vec![sum])]);
    let with = |own: &'static str, cast: [&'static str; 2]| {
        rule_of(&root, &move |text: &str| match text.contains("AS DECIMAL(50,20)") {
            true => cast.map(|cell| number(&[cell])),
            false => [own, "9"].map(|cell| number(&[cell])),
        })
    };
    let right = ["127.00000000000000000000", "127.00000000000000000000"];
    assert_eq!(with("127", right), Some("sums of distinct values"));
    assert_eq!(with("128", right), None);
    assert_eq!(with("127", ["127.0", "9.0"]), None);
}

#[test]
fn distinct_bits_hide_no_other_list() {
    let texts = ["GROUP_CONCAT(DISTINCT ", ")"];
    let list = Node::new(Role::Aggregate, &texts, vec![leaf("a1.bits")]);
    let query = query_of("SELECT ", list, Node::clause(" WHERE ", None, ""));
    let with = |as_text: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let cells = match text {
                _ if text.contains("(a1.bits + 0)") => ["1", "1"],
                _ if text.contains("CONCAT(a1.bits)") => as_text,
                _ => ["\u{1}", "1"],
            };
            cells.map(|cell| row(INT, 0, &[cell]))
        })
    };
    assert_eq!(with(["\u{1}", "\u{1}"]), Some("distinct BIT in lists"));
    assert_eq!(with(["\u{1}", "1"]), None);
    assert_eq!(with(["\u{2}", "\u{2}"]), None);
}

#[test]
fn two_literals_hide_no_other_text() {
    let repeat = Node::new(Role::Expression, &["REPEAT(", ", 3)"], vec![leaf("'x' 'y'")]);
    let query = query_of("SELECT ", repeat, Node::clause(" WHERE ", None, ""));
    let with = |own: &'static str, joined: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("REPEAT('xy', 3)") => joined.map(|cell| row(INT, 0, &[cell])),
            _ if text.contains("REPEAT") && !text.contains("CAST") && !text.contains("kept") => {
                [own, "xyxyxyxyxyxy"].map(|cell| row(INT, 0, &[cell]))
            }
            _ => ["8", "9"].map(|cell| row(INT, 0, &[cell])),
        })
    };
    assert_eq!(with("xyxyxy", ["xyxyxy", "xyxyxy"]), Some("two literals beside each other"));
    assert_eq!(with("xyxyxy", ["xyxyxy", "xyxy"]), None);
    assert_eq!(with("xyxyx", ["xyxyxy", "xyxyxy"]), None);
}

#[test]
fn columns_beside_aggregates_hide_no_other_value() {
    let source = Node::leaf(Role::Source, "t2 AS a2");
    let condition = Node::clause(" WHERE ", None, "");
    let texts = ["(SELECT COUNT(", ") FROM ", "", ")"];
    let children = vec![leaf("a1.id"), source, condition];
    let subquery = Node::new(Role::Expression, &texts, children);
    let from = Node::leaf(Role::Source, "t1 AS a1");
    let items = Node::list(vec![subquery, leaf("a1.day")]);
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![items, from]);
    let with = |valueless: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text.contains(", NULL FROM t1") {
            true => valueless.map(|cell| row(INT, 0, &[cell])),
            false => ["4", "5"].map(|cell| row(INT, 0, &[cell])),
        })
    };
    assert_eq!(with(["4", "4"]), Some("columns beside aggregates of a subquery"));
    assert_eq!(with(["4", "5"]), None);
}

/// The rule of a query of rows, where one form of it, which has a text, is answered otherwise.
fn rule_by_form(
    query: &Node,
    form: &'static str,
    plain: [&'static str; 2],
    other: [&'static str; 2],
) -> Option<&'static str> {
    rule_of(query, &move |text: &str| match text {
        _ if text.contains(form) => other.map(|cell| row(INT, 0, &[cell])),
        _ if text.contains("kept") || text.contains("CAST") || text.contains("USE INDEX") => {
            ["8", "9"].map(|cell| row(INT, 0, &[cell]))
        }
        _ => plain.map(|cell| row(INT, 0, &[cell])),
    })
}

#[test]
fn lists_of_rows_hide_no_other_value() {
    let texts = ["((1, ", ") IN ((1, ", "), (2, 'a')))"];
    let list = Node::new(Role::Expression, &texts, vec![leaf("'A'"), leaf("a1.lat")]);
    let query = query_of("SELECT ", list, Node::clause(" WHERE ", None, ""));
    let with = |other| rule_by_form(&query, "USING utf8mb4", ["1", "0"], other);
    assert_eq!(with(["1", "1"]), Some("lists of rows with texts of two character sets, values"));
    assert_eq!(with(["1", "0"]), None);
    assert_eq!(with(["0", "0"]), None);
}

#[test]
fn members_in_subqueries_hide_no_other_value() {
    let source = Node::leaf(Role::Source, "t3 AS a2");
    let texts = ["(", " NOT IN (SELECT ", " FROM ", "))"];
    let list = Node::new(Role::Expression, &texts, vec![leaf("'q'"), leaf("a2.e"), source]);
    let query = query_of("SELECT ", list, Node::clause(" WHERE ", None, ""));
    let with = |other| rule_by_form(&query, "CONCAT(a2.e)", ["0", "1"], other);
    assert_eq!(with(["0", "0"]), Some("members in a subquery, values"));
    assert_eq!(with(["0", "1"]), None);
}

#[test]
fn folded_groups_hide_no_other_error() {
    let not = Node::new(Role::Expression, &["(NOT ", ")"], vec![leaf("TRUE")]);
    let group = Node::clause(" GROUP BY ", Some(not), "");
    let query = query_of("SELECT ", aggregate("MAX", "a1.y"), group);
    let with = |unfolded: [Told; 2]| {
        rule_of(&query, &move |text: &str| match text.contains("IFNULL((NOT TRUE), NULL)") {
            true => unfolded.clone(),
            false => [row(INT, 0, &["1"]), refused(1054)],
        })
    };
    let one = || row(INT, 0, &["1"]);
    assert_eq!(with([one(), one()]), Some("groups of a constant that is folded"));
    assert_eq!(with([one(), refused(1054)]), None);
    assert_eq!(with([one(), row(INT, 0, &["2"])]), None);
}

#[test]
fn inner_joins_hide_no_other_nullability() {
    let children = ["t1 AS a1", "t2 AS a2"].map(|text| Node::leaf(Role::Source, text));
    let [left, right] = children;
    let texts = ["(", " LEFT JOIN ", " ON ", ")"];
    let from = Node::new(Role::Source, &texts, vec![left, right, leaf("NULL")]);
    let clause = Node::clause(" WHERE ", Some(leaf("a2.d")), "");
    let children = vec![Node::list(vec![leaf("a2.id")]), from, clause];
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
    let with = |outer: [u16; 2], inner: [u16; 2]| {
        rule_of(&query, &move |text: &str| {
            let flags = if text.contains("LEFT JOIN") { outer } else { inner };
            flags.map(|flags| row(INT, flags, &["1"]))
        })
    };
    let name = "outer joins that conditions make inner ones";
    assert_eq!(with([0, NOT_NULL], [NOT_NULL, NOT_NULL]), Some(name));
    assert_eq!(with([0, NOT_NULL], [0, NOT_NULL]), None);
    // What is said to be NOT NULL here must be so there.
    assert_eq!(with([NOT_NULL, 0], [NOT_NULL, NOT_NULL]), None);
}

#[test]
fn literals_of_derived_tables_hide_no_other_type() {
    let item = Node::new(Role::Fixed, &["", " AS c0"], vec![leaf("1")]);
    let source = Node::leaf(Role::Source, "t2 AS a2");
    let texts = ["(SELECT id, ", " FROM ", ") AS a3"];
    let derived = Node::new(Role::Fixed, &texts, vec![Node::list(vec![item]), source]);
    let children = vec![Node::list(vec![aggregate("MAX", "a3.c0")]), derived];
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], children);
    let with = |limited: [u8; 2]| {
        rule_of(&query, &move |text: &str| {
            let types = if text.contains("LIMIT") { limited } else { [INT, DECIMAL] };
            types.map(|type_code| row(type_code, 0, &["1"]))
        })
    };
    assert_eq!(with([INT, INT]), Some("literals of derived tables, types"));
    assert_eq!(with([INT, DECIMAL]), None);
}

#[test]
fn subqueries_of_no_rows_hide_no_other_error() {
    let source = Node::leaf(Role::Source, "t2 AS a2");
    let condition = Node::clause(" WHERE ", Some(leaf("NULL")), "");
    let texts = ["(", " IN (SELECT ", " FROM ", "", "))"];
    let children = vec![leaf("a1.e"), leaf("a2.uni"), source, condition];
    let list = Node::new(Role::Expression, &texts, children);
    let query = query_of("SELECT ", list, Node::clause(" WHERE ", None, ""));
    let with = |satisfied: [u16; 2]| {
        rule_of(&query, &move |text: &str| match text.contains("WHERE NULL") {
            true => [refused(1267), row(INT, 0, &["0"])],
            false => satisfied.map(refused),
        })
    };
    assert_eq!(with([1267, 1267]), Some("collations in a subquery of no rows"));
    assert_eq!(with([1267, 1242]), None);
    assert_eq!(with([1242, 1242]), None);
}

#[test]
fn errors_of_values_hide_no_other_error() {
    let texts = ["INSERT INTO t4 (tiny, day) VALUES (", ", ", ")"];
    let insert = Node::new(Role::Fixed, &texts, vec![leaf("1000"), leaf("'x'")]);
    let with = |first: [u16; 2], second: [u16; 2]| {
        rule_of(&insert, &move |text: &str| match text {
            _ if text.contains("(1000, NULL)") => first.map(refused),
            _ if text.contains("(NULL, 'x')") => second.map(refused),
            _ => [refused(1292), refused(1264)],
        })
    };
    assert_eq!(with([1264, 1264], [1292, 1292]), Some("the first error of several values"));
    assert_eq!(with([1264, 1264], [1366, 1366]), None);
    assert_eq!(with([1264, 1264], [1292, 1264]), None);
}

#[test]
fn halves_of_characters_hide_no_other_text() {
    let call = Node::new(Role::Expression, &["JSON_QUOTE(", ")"], vec![leaf("'x'")]);
    let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![Node::list(vec![call])]);
    let with = |own: &'static str| {
        rule_of(&root, &move |text: &str| match text.contains("CAST") || text.contains("kept") {
            true => ["8", "9"].map(|cell| row(INT, 0, &[cell])),
            false => [own, r"[\uD83DDE00]"].map(|cell| row(INT, 0, &[cell])),
        })
    };
    assert_eq!(with(r"[\uD83D\uDE00]"), Some("characters of two halves in JSON"));
    assert_eq!(with(r"[\uD83D\uDE01]"), None);
    assert_eq!(with(r"[\uD83D\uDE00, 1]"), None);
}

#[test]
fn json_at_the_beginning_of_concat_hides_no_other_text() {
    let kind = Node::new(Role::Expression, &["JSON_TYPE(", ")"], vec![leaf("a1.js")]);
    let item = Node::new(Role::Expression, &["CONCAT(", ", ", ")"], vec![kind, leaf("'a'")]);
    let query = query_of("SELECT ", item, Node::clause(" WHERE ", None, ""));
    let with = |begun: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let cells = match text {
                _ if text.contains("CONCAT('', JSON_TYPE(a1.js), 'a')") => begun,
                _ if text.contains("kept") => ["8", "9"],
                _ => ["OBJECTa", "a"],
            };
            cells.map(|cell| row(INT, 0, &[cell]))
        })
    };
    let name = "JSON_TYPE at the beginning of CONCAT";
    assert_eq!(with(["OBJECTa", "OBJECTa"]), Some(name));
    assert_eq!(with(["OBJECTa", "a"]), None);
    assert_eq!(with(["ARRAYa", "ARRAYa"]), None);
}

#[test]
fn names_of_parameters_hide_no_other_first_error() {
    let condition = Node::clause(" WHERE ", Some(leaf("a1.e")), "");
    let having = Node::clause(" HAVING ", Some(leaf("a1.id")), "");
    let from = Node::leaf(Role::Source, "t3 AS a1");
    let children = vec![Node::list(vec![leaf("1")]), from, condition, having];
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", "", ""], children);
    let mix = |code: u16, parameter: &str| {
        let mut told = refused(code);
        if let Answer::Error(error) = &mut told.answer {
            error.message = format!("Illegal mix of collations ({parameter}), (b), (c)");
        }
        told
    };
    let with = |unprepared: u16| {
        rule_of_sent(&query, true, &move |text: &str| {
            let [condition, having] = ["WHERE a1.e", "HAVING a1.id"].map(|it| text.contains(it));
            match (condition, having) {
                (true, true) => [mix(1270, "binary"), refused(1054)],
                (false, true) => [refused(1054), refused(1054)],
                (true, false) if text.starts_with(PREPARED) => {
                    [mix(1270, "binary"), mix(1270, "utf8mb4")]
                }
                (true, false) => [mix(1270, "utf8mb4"), mix(unprepared, "utf8mb4")],
                _ => ["8", "9"].map(|cell| row(INT, 0, &[cell])),
            }
        })
    };
    assert_eq!(with(1270), Some("the first of several errors, other numbers"));
    assert_eq!(with(1271), None);
}

#[test]
fn zeros_in_documents_hide_no_other_row() {
    let condition = Node::new(
        Role::Expression,
        &["JSON_CONTAINS(JSON_ARRAY('{}', ", "), '[]')"],
        vec![leaf("a1.plainu")],
    );
    let query = query_of("SELECT ", leaf("1"), Node::clause(" WHERE ", Some(condition), ""));
    let no_row = || {
        let mut told = row(INT, NOT_NULL, &["1"]);
        if let Answer::Rows { rows, .. } = &mut told.answer {
            rows.clear();
        }
        told
    };
    let with = |summed: [bool; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("(a1.plainu + 0)") => summed.map(|has_row| match has_row {
                true => row(INT, NOT_NULL, &["1"]),
                false => no_row(),
            }),
            _ if text.contains("a1.plainu") => [no_row(), row(INT, NOT_NULL, &["1"])],
            _ => ["8", "9"].map(|cell| row(INT, 0, &[cell])),
        })
    };
    assert_eq!(with([true, true]), Some("ZEROFILL in documents"));
    assert_eq!(with([false, true]), None);
}

#[test]
fn the_first_error_of_an_insert_hides_no_other_error() {
    let items = Node::list(vec![leaf("a1.name"), leaf("a1.word")]);
    let from = Node::leaf(Role::Source, "t1 AS a1");
    let texts = ["INSERT INTO t4 (tiny, plain) SELECT ", " FROM ", ""];
    let query = Node::new(Role::Fixed, &texts, vec![items, from]);
    let refused_with = |message: &str| {
        let mut told = refused(1292);
        if let Answer::Error(error) = &mut told.answer {
            error.message = message.into();
        }
        told
    };
    let warned_with = |message: &str| {
        let mut told = row(INT, 0, &["1"]);
        told.warnings.push(["Warning", "1292", message].map(String::from));
        told
    };
    let with = |of_name: [&'static str; 2]| {
        rule_of_change(&query, &move |text: &str| match text {
            _ if text.starts_with("INSERT") => ["name", "word"].map(refused_with),
            _ if text.contains("a1.word") => ["word", "word"].map(warned_with),
            _ if text.contains("a1.name") => of_name.map(warned_with),
            _ => ["8", "9"].map(|cell| row(INT, 0, &[cell])),
        })
    };
    let name = "the first error of INSERT ... SELECT, of one number and parts";
    assert_eq!(with(["name", "name"]), Some(name));
    // Only Gannet complains of that text, or neither does.
    assert_eq!(with(["name", "other"]), None);
    assert_eq!(with(["other", "other"]), None);
}
