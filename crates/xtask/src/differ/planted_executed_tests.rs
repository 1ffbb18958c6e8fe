//! The rules that execute a statement in another way are given the difference that each is for, and
//! then another one planted beside it, which must not be swallowed.

use super::compare::Told;
use super::planted_tests::{
    INT, PREPARED, leaf, number, refused, row, rule_of, rule_of_sent, warned_of,
};
use super::tree::{Node, Role};

const VARCHAR: u8 = 253;

/// `SELECT 1 FROM from WHERE condition`.
fn query_where(from: &str, condition: Node) -> Node {
    let from = Node::leaf(Role::Source, from);
    let clause = Node::clause(" WHERE ", Some(condition), "");
    let children = vec![Node::list(vec![leaf("1")]), from, clause];
    Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children)
}

/// `SELECT item FROM t1 AS a1`.
fn query_of(item: Node) -> Node {
    let from = Node::leaf(Role::Source, "t1 AS a1");
    Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![Node::list(vec![item]), from])
}

/// A comparison of `a1.x` with what a subquery selects.
fn of_subquery(operator: &str) -> Node {
    let source = Node::leaf(Role::Source, "t2 AS a2");
    let texts = ["(", operator, " FROM ", "))"];
    Node::new(Role::Expression, &texts, vec![leaf("a1.x"), leaf("a2.id"), source])
}

#[test]
fn subqueries_that_are_not_materialized_hide_no_other_value() {
    let query = query_of(of_subquery(" NOT IN (SELECT "));
    let with = |other: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let answers = if text.contains("materialization=off") { other } else { ["0", "1"] };
            answers.map(|cell| row(INT, 0, &[cell]))
        })
    };
    assert_eq!(with(["0", "0"]), Some("NOT IN with a materialized subquery, value"));
    assert_eq!(with(["0", "1"]), None);
    // Another answer of Gannet's than before shows nothing.
    assert_eq!(with(["1", "1"]), None);
}

#[test]
fn conditions_that_keep_an_outer_join_hide_no_other_row() {
    let query = query_where("(t1 AS a1 LEFT JOIN t2 AS a2 ON a1.id = a2.id)", leaf("a2.x"));
    let with = |other: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let answers = if text.contains("IFNULL(a2.x") { other } else { ["0", "1"] };
            answers.map(|cell| row(INT, 0, &[cell]))
        })
    };
    assert_eq!(with(["0", "0"]), Some("conditions that keep an outer join, value"));
    assert_eq!(with(["0", "1"]), None);
    assert_eq!(with(["1", "1"]), None);
}

#[test]
fn comparisons_that_may_be_null_hide_no_other_value() {
    let texts = ["(", " IS UNKNOWN)"];
    let test = Node::new(Role::Expression, &texts, vec![of_subquery(" > ANY (SELECT ")]);
    let query = query_of(test);
    let with = |other: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let answers = if text.contains("NULLIF(") { other } else { ["1", "0"] };
            answers.map(|cell| row(INT, 0, &[cell]))
        })
    };
    assert_eq!(with(["1", "1"]), Some("tests of comparisons with ANY and ALL, value"));
    assert_eq!(with(["1", "0"]), None);
    assert_eq!(with(["0", "0"]), None);
}

#[test]
fn lists_compared_one_by_one_hide_no_other_error() {
    let children = vec![leaf("'a'"), leaf("_latin1'b'"), leaf("a1.uni")];
    let list = Node::new(Role::Expression, &["(", " IN (", ", ", "))"], children);
    let query = query_of(list);
    let with = |one_by_one: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            if text.contains(" OR ") {
                let is_plain = text.contains("('a' = _latin1'b' OR 'a' = a1.uni)");
                assert!(is_plain || text.contains("CONVERT(_latin1'b' USING utf8mb4)"), "{text}");
                return one_by_one.map(|cell| row(INT, 0, &[cell]));
            }
            [row(INT, 0, &["1"]), refused(1270)]
        })
    };
    assert_eq!(with(["1", "1"]), Some("lists of texts that are converted"));
    assert_eq!(with(["1", "0"]), None);
    assert_eq!(with(["0", "0"]), None);
}

#[test]
fn values_stored_as_text_hide_no_other_value() {
    let head = "INSERT INTO t4 (dec2, name) VALUES (";
    let values = vec![leaf("1"), leaf("(1.00 - 1.00)")];
    let insert = Node::new(Role::Fixed, &[head, ", ", ")"], values);
    let with = |root: &Node, other: [&'static str; 2]| {
        rule_of(root, &move |text: &str| {
            let answers = if text.contains("CONCAT(") { other } else { ["0.00", "0"] };
            answers.map(|cell| row(VARCHAR, 0, &[cell]))
        })
    };
    let name = "decimals stored as text, value varchar, INSERT";
    assert_eq!(with(&insert, ["0.00", "0.00"]), Some(name));
    assert_eq!(with(&insert, ["0.00", "0"]), None);
    assert_eq!(with(&insert, ["0", "0"]), None);
    // What is stored in other columns is not made text.
    let other = Node::new(
        Role::Fixed,
        &["INSERT INTO t4 (dec2, d) VALUES (", ", ", ")"],
        vec![leaf("1"), leaf("2")],
    );
    assert_eq!(with(&other, ["0.00", "0.00"]), None);
}

#[test]
fn zeros_below_zero_hide_no_other_text() {
    let remainder = vec![leaf("-1.00"), leaf("0.5")];
    let remainder = Node::new(Role::Expression, &["(", " % ", ")"], remainder);
    let head = "INSERT INTO t4 (dec2, word) VALUES (";
    let insert = Node::new(Role::Fixed, &[head, ", ", ")"], vec![leaf("1"), remainder]);
    let with = |other: [&'static str; 2]| {
        rule_of(&insert, &move |text: &str| {
            let is_form = text.contains("CONCAT(((-1.00 % 0.5) + 0))");
            let answers = if is_form { other } else { ["0.0", "-0."] };
            answers.map(|cell| row(VARCHAR, 0, &[cell]))
        })
    };
    let name = "zeros below zero cut in columns of text, INSERT *%*";
    assert_eq!(with(["0.0", "0.0"]), Some(name));
    assert_eq!(with(["0.0", "0.1"]), None);
    assert_eq!(with(["0.1", "0.1"]), None);
}

#[test]
fn sides_of_a_comparison_hide_no_other_error() {
    let query = query_of(of_subquery(" > ANY (SELECT "));
    let with = |here: &'static str, there: &'static str| {
        rule_of(&query, &move |_: &str| {
            [here, there].map(|text| {
                let mut told = refused(1267);
                if let sqltest::client::Answer::Error(error) = &mut told.answer {
                    error.message = format!("Illegal mix of collations {text}");
                }
                told
            })
        })
    };
    let (a, b) = ("(a,IMPLICIT) and (b,NONE) for operation '<'", "(b,NONE) and (a,IMPLICIT)");
    assert!(with(a, "(b,NONE) and (a,IMPLICIT) for operation '>'").is_some());
    assert_eq!(with(a, "(b,NONE) and (c,IMPLICIT) for operation '>'"), None);
    assert_eq!(with(a, b), None);
}

#[test]
fn signs_of_times_of_zero_hide_no_other_time() {
    const TIME: u8 = 11;
    let query = query_of(leaf("a1.clock"));
    let differ = |here: &'static str, there: &'static str| {
        let answers = [here, there].map(|cell| row(TIME, 0, &[cell]));
        let statement = super::statements::Statement {
            kind: super::statements::Kind::Query,
            root: query.clone(),
            prepared: false,
        };
        let [ours, theirs] = answers;
        let how = super::compare::Rules { strict: true, lengths: false };
        super::compare::difference(&statement, how, &Ok(vec![ours]), &[theirs]).is_some()
    };
    assert!(!differ("00:00:00.00", "-00:00:00.00"));
    assert!(differ("00:00:01", "-00:00:01"));
    assert!(differ("00:00:00", "-00:00:01"));
}

#[test]
fn signs_of_stored_zeros_hide_no_other_value() {
    let head = "UPDATE t4 AS a1 SET a1.name = (a1.dec2 % 1.5)";
    let update = Node::new(Role::Fixed, &[head], vec![]);
    let with = |cells: [&'static str; 2]| {
        rule_of(&update, &move |_: &str| cells.map(|cell| row(VARCHAR, 0, &[cell])))
    };
    assert!(with(["0.00", "-0.00"]).is_some());
    assert_eq!(with(["0.00", "-0.01"]), None);
    assert_eq!(with(["0.00", "-0.000"]), None);
    assert_eq!(with(["", "-"]), None);
}

#[test]
fn the_longest_literal_hides_no_other_product() {
    let long = "99999999999999999999999999999999999";
    let difference = Node::new(Role::Expression, &["(", " - ", ")"], vec![leaf(long), leaf("@d")]);
    let product = Node::new(Role::Expression, &["(", " * ", ")"], vec![leaf("7"), difference]);
    let query = query_of(product);
    let with = |shorter: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let answers = match text.contains(long) {
                true if text.contains("AS DOUBLE) * ") => ["1", "1"],
                true => ["1.00", "1.000"],
                false => shorter,
            };
            answers.map(|cell| number(&[cell]))
        })
    };
    let name = "products of DECIMAL with too many digits, multiplied";
    assert_eq!(with(["5", "5"]), Some(name));
    assert_eq!(with(["5", "6"]), None);
}

/// Error 1267 about some collations.
fn mixed(collations: &str) -> Told {
    let mut told = refused(1267);
    if let sqltest::client::Answer::Error(error) = &mut told.answer {
        error.message = format!("Illegal mix of collations {collations}");
    }
    told
}

#[test]
fn collations_of_parameters_hide_no_other_error() {
    let query = query_of(leaf("('a' = @l)"));
    let (own, other) = ("(a,COERCIBLE) and (b,IMPLICIT)", "(c,COERCIBLE) and (b,IMPLICIT)");
    let with = |prepared: bool, here: &'static str, written: [Told; 2]| {
        rule_of_sent(&query, prepared, &move |text: &str| match text.starts_with(PREPARED) {
            true => [mixed(here), mixed(other)],
            false => written.clone(),
        })
    };
    let both = |text: &str| [mixed(text), mixed(text)];
    let name = "which parameter's collation is told";
    assert_eq!(with(true, own, both(own)), Some(name));
    // With the values in place of the parameters Gannet says something else, or both do.
    assert_eq!(with(true, own, [mixed(own), mixed(other)]), None);
    assert_eq!(with(true, own, both("(d,COERCIBLE) and (b,IMPLICIT)")), None);
    assert_eq!(with(true, own, [row(INT, 0, &["1"]), row(INT, 0, &["1"])]), None);
    // What is not prepared has no parameters.
    let plain = rule_of(&query, &|_: &str| [mixed(own), mixed(other)]);
    assert_eq!(plain, None);
}

#[test]
fn cases_hide_no_other_value() {
    let texts = ["(CASE WHEN ", " THEN ", " ELSE 2 END)"];
    let inner = Node::new(Role::Expression, &["IFNULL(", ", 1)"], vec![leaf("a1.x")]);
    let case = Node::new(Role::Expression, &texts, vec![leaf("TRUE"), inner]);
    let query = query_of(case);
    let with = |kept: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let answers = if text.contains("AS kept") { kept } else { ["1", "2"] };
            answers.map(|cell| row(INT, 0, &[cell]))
        })
    };
    assert_eq!(with(["1", "1"]), Some("values that depend on what reads them"));
    assert_eq!(with(["1", "2"]), None);
    assert_eq!(with(["2", "2"]), None);
}

#[test]
fn collations_of_derived_literals_hide_no_other_error() {
    let item = Node::new(Role::Fixed, &["", " AS c0"], vec![leaf("'a'")]);
    let source = Node::leaf(Role::Source, "t2 AS a2");
    let texts = ["(SELECT id, ", " FROM ", ") AS a3"];
    let derived = Node::new(Role::Fixed, &texts, vec![Node::list(vec![item]), source]);
    let items = Node::list(vec![leaf("(a3.c0 = @l)")]);
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![items, derived]);
    let with = |limited: [Told; 2]| {
        rule_of(&query, &move |text: &str| match text.contains("LIMIT") {
            true => limited.clone(),
            false => [mixed("x"), row(INT, 0, &["1"])],
        })
    };
    assert_eq!(with([mixed("x"), mixed("x")]), Some("literals of derived tables, collations"));
    assert_eq!(with([mixed("x"), row(INT, 0, &["1"])]), None);
    assert_eq!(with([mixed("x"), refused(1242)]), None);
}

#[test]
fn broken_parts_of_conditions_hide_no_other_error() {
    let char = Node::new(Role::Expression, &["CHAR(", " USING utf8mb4)"], vec![leaf("255")]);
    let both = vec![leaf("a1.tiny"), char];
    let condition = Node::new(Role::Expression, &["(", " OR ", ")"], both);
    let texts = ["UPDATE t4 AS a1 SET a1.tiny = 1 WHERE ", ""];
    let update = Node::new(Role::Fixed, &texts, vec![condition]);
    let broken = || warned_of(row(INT, 0, &["0"]), "1300");
    let with = |parts: [Told; 2]| {
        rule_of(&update, &move |text: &str| match text {
            _ if text.starts_with("UPDATE") => [refused(1300), row(INT, 0, &["1"])],
            _ if text.contains("CHAR(") => parts.clone(),
            _ => [row(INT, 0, &["1"]), row(INT, 0, &["1"])],
        })
    };
    assert_eq!(with([broken(), broken()]), Some("a part of a condition that is broken"));
    assert_eq!(with([broken(), row(INT, 0, &["0"])]), None);
    assert_eq!(with([row(INT, 0, &["0"]), row(INT, 0, &["0"])]), None);
}

#[test]
fn averages_of_many_digits_hide_no_other_warning() {
    let average = Node::new(Role::Aggregate, &["AVG(", ")"], vec![leaf("a1.wide")]);
    let by = Node::clause(" GROUP BY ", Some(leaf("a1.tiny")), "");
    let source = Node::leaf(Role::Source, "t1 AS a1");
    let texts = ["SELECT ", " FROM ", "", ""];
    let query = Node::new(Role::Fixed, &texts, vec![Node::list(vec![average]), source, by]);
    let with = |code: &'static str, rounded: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("SQL_BIG_RESULT") => [number(&["8"]), number(&["9"])],
            _ if text.contains("ROUND(a1.wide, 20)") => rounded.map(|cell| number(&[cell])),
            _ if text.contains("GROUP BY") => [number(&["1"]), warned_of(number(&["1"]), code)],
            _ => [number(&["7"]), number(&["7"])],
        })
    };
    let name = "averages of DECIMAL with too many digits, warnings";
    assert_eq!(with("1916", ["1.00", "1.00"]), Some(name));
    assert_eq!(with("1916", ["1.00", "6"]), None);
    assert_eq!(with("1292", ["1.00", "1.00"]), None);
    // Gannet's average is another one.
    assert_eq!(with("1916", ["5", "5"]), None);
}

#[test]
fn zeros_of_computed_years_hide_no_other_flag() {
    let (year, smallint) = (13, 2);
    let (zerofill, set) = (64, 2048);
    let differ = |type_code: u8, flags: u16, schema: &str| {
        let statement = super::statements::Statement {
            kind: super::statements::Kind::Query,
            root: query_of(leaf("a1.y")),
            prepared: false,
        };
        let [ours, mut theirs] = [0, flags].map(|flags| row(type_code, flags, &["2024"]));
        if let sqltest::client::Answer::Rows { columns, .. } = &mut theirs.answer {
            columns[0].schema = schema.into();
        }
        let how = super::compare::Rules { strict: true, lengths: false };
        super::compare::difference(&statement, how, &Ok(vec![ours]), &[theirs]).is_some()
    };
    assert!(!differ(year, zerofill, ""));
    assert!(differ(year, set, ""));
    assert!(differ(smallint, zerofill, ""));
    assert!(differ(year, zerofill, "differ"));
}

#[test]
fn products_of_many_digits_hide_no_other_count() {
    let product = Node::new(Role::Expression, &["(", " * ", ")"], vec![leaf("a1.wide"), leaf("2")]);
    let count = Node::new(Role::Aggregate, &["COUNT(DISTINCT ", ")"], vec![product]);
    let cast = Node::new(Role::Expression, &["CAST(", " AS DECIMAL(40,20))"], vec![leaf("a1.d")]);
    let by_cast =
        Node::new(Role::Expression, &["(", " * ", ")"], vec![cast.clone(), leaf("a1.dec10")]);
    let of_cast = Node::new(Role::Expression, &["(", " * ", ")"], vec![leaf("a1.dec10"), cast]);
    let with = |item: &Node, narrow: [&'static str; 2], doubled: [&'static str; 2]| {
        rule_of(&query_of(item.clone()), &move |text: &str| {
            let is_narrow = !text.contains(".wide") && !text.contains("(40,20)");
            let answers = match is_narrow {
                _ if text.contains("AS DOUBLE) * ") => doubled,
                true => narrow,
                false if text.contains("kept") => ["8", "9"],
                false => ["8", "5"],
            };
            answers.map(|cell| number(&[cell]))
        })
    };
    for item in [&count, &by_cast, &of_cast] {
        let name = with(item, ["7", "7"], ["8", "8"]);
        assert!(name.is_some_and(|name| name.starts_with("products of DECIMAL")));
        assert_eq!(with(item, ["7", "6"], ["8", "8"]), None);
        // Gannet's own product is another one.
        assert_eq!(with(item, ["7", "7"], ["9", "9"]), None);
        assert_eq!(with(item, ["7", "7"], ["8", "9"]), None);
    }
}
