//! The rules that execute a statement in another way are given the difference that each is for, and
//! then another one planted beside it, which must not be swallowed.

use super::planted_tests::{INT, leaf, number, refused, row, rule_of};
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
                assert!(text.contains("('a' = _latin1'b' OR 'a' = a1.uni)"), "{text}");
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
fn fixed_digits_hide_no_other_value() {
    let equal = Node::new(Role::Expression, &["(", " = ", ")"], vec![leaf("a1.f2"), leaf("1.5")]);
    let query = query_of(equal);
    let with = |other: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let answers = if text.contains("(a1.f2 + 0e0)") { other } else { ["0", "1"] };
            answers.map(|cell| row(INT, 0, &[cell]))
        })
    };
    assert_eq!(with(["0", "0"]), Some("comparisons of fixed digits, f2, value"));
    assert_eq!(with(["0", "1"]), None);
    assert_eq!(with(["1", "1"]), None);
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
            let answers = if text.contains(long) { ["1.00", "1.000"] } else { shorter };
            answers.map(|cell| number(&[cell]))
        })
    };
    assert_eq!(with(["5", "5"]), Some("products of DECIMAL with too many digits, of a literal"));
    assert_eq!(with(["5", "6"]), None);
}
