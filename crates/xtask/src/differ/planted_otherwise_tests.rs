//! The last proof is given a difference that MariaDB's own answer to another way of asking explains,
//! and then others planted beside it, which must not be swallowed.

use super::compare::Told;
use super::planted_tests::{INT, NOT_NULL, leaf, refused, row, rule_of, warned_of};
use super::tree::{Node, Role};
use sqltest::client::Answer;

const VARCHAR: u8 = 253;

/// `SELECT F(a1.x) FROM t1 AS a1 WHERE condition`, of a function that no rule knows.
fn query(condition: Node) -> Node {
    let item = Node::new(Role::Expression, &["F(", ")"], vec![leaf("a1.x")]);
    let from = Node::leaf(Role::Source, "t1 AS a1");
    let clause = Node::clause(" WHERE ", Some(condition), "");
    let children = vec![Node::list(vec![item]), from, clause];
    Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children)
}

/// The rule where the statement itself and where a way of asking it are answered so.
fn with(
    root: &Node,
    way: &'static str,
    itself: [Told; 2],
    otherwise: [Told; 2],
) -> Option<&'static str> {
    let sql = root.sql();
    let elsewhere = itself.clone();
    rule_of(root, &move |text: &str| match text {
        _ if text == sql => itself.clone(),
        _ if text.contains(way) => otherwise.clone(),
        _ => elsewhere.clone(),
    })
}

fn int(cell: &'static str) -> Told {
    row(INT, NOT_NULL, &[cell])
}

/// An answer without rows.
fn no_row(flags: u16) -> Told {
    let mut told = row(INT, flags, &["1"]);
    if let Answer::Rows { rows, .. } = &mut told.answer {
        rows.clear();
    }
    told
}

/// What a way without the optimizer's switches has in its text, and no other way.
const UNOPTIMIZED: &str = "SET STATEMENT";

#[test]
fn values_are_those_of_another_way() {
    let root = query(leaf("a1.y"));
    let both = |here, there, other_here, other_there| {
        with(&root, UNOPTIMIZED, [int(here), int(there)], [int(other_here), int(other_there)])
    };
    let name = Some("another way of asking, value");
    assert_eq!(both("1", "2", "1", "1"), name);
    // MariaDB gives its own answer in every way.
    assert_eq!(both("1", "2", "1", "2"), None);
    // Gannet gives another one there: it is its plan that decides.
    assert_eq!(both("1", "2", "2", "2"), None);
    assert_eq!(both("1", "2", "3", "3"), None);
}

#[test]
fn a_lost_row_is_not_explained_by_a_way_in_which_gannet_finds_it() {
    let root = query(leaf("a1.y"));
    let none = || no_row(NOT_NULL);
    let itself = [none(), int("2")];
    assert_eq!(with(&root, UNOPTIMIZED, itself.clone(), [int("2"), int("2")]), None);
    assert_eq!(with(&root, UNOPTIMIZED, itself, [none(), int("2")]), None);
}

#[test]
fn an_error_is_that_of_another_way() {
    let root = query(leaf("a1.y"));
    let ours = |way: [Told; 2]| with(&root, UNOPTIMIZED, [refused(1105), int("2")], way);
    let name = Some("another way of asking, value");
    assert_eq!(ours([refused(1105), refused(1105)]), name);
    assert_eq!(ours([refused(1105), refused(1106)]), None);
    assert_eq!(ours([refused(1105), int("2")]), None);
    assert_eq!(ours([int("2"), int("2")]), None);
}

#[test]
fn types_are_not_those_of_what_a_table_keeps() {
    let root = query(leaf("a1.y"));
    let text = || row(VARCHAR, NOT_NULL, &["1"]);
    let itself = [text(), int("1")];
    assert_eq!(with(&root, "AS kept", itself.clone(), [text(), text()]), None);
    let name = Some("another way of asking, type");
    assert_eq!(with(&root, UNOPTIMIZED, itself.clone(), [text(), text()]), name);
    assert_eq!(with(&root, UNOPTIMIZED, itself.clone(), [int("1"), int("1")]), None);
    // Another value there is no answer to the same question.
    let other = || row(VARCHAR, NOT_NULL, &["2"]);
    assert_eq!(with(&root, UNOPTIMIZED, itself, [other(), other()]), None);
}

#[test]
fn warnings_are_those_of_another_way() {
    let root = query(leaf("a1.y"));
    let itself = [int("1"), warned_of(int("1"), "1999")];
    let name = Some("another way of asking, warning");
    assert_eq!(with(&root, UNOPTIMIZED, itself.clone(), [int("1"), int("1")]), name);
    let warned = || warned_of(int("1"), "1999");
    assert_eq!(with(&root, UNOPTIMIZED, itself.clone(), [int("1"), warned()]), None);
    assert_eq!(with(&root, UNOPTIMIZED, itself.clone(), [warned(), warned()]), None);
    assert_eq!(with(&root, UNOPTIMIZED, itself, [int("2"), int("2")]), None);
}

#[test]
fn nullability_beside_what_is_never_true_is_that_without_it() {
    let condition =
        Node::new(Role::Expression, &["(", " AND ", ")"], vec![leaf("a1.y"), leaf("@n")]);
    let root = query(condition);
    let name = Some("conditions that are never true, nullability");
    let itself = [no_row(NOT_NULL), no_row(0)];
    let without = "WHERE a1.y";
    assert_eq!(with(&root, without, itself.clone(), [int("1"), int("1")]), name);
    assert_eq!(with(&root, without, itself.clone(), [int("1"), row(INT, 0, &["1"])]), None);
    assert_eq!(with(&root, without, itself, [row(INT, 0, &["1"]), row(INT, 0, &["1"])]), None);
    // With a row it is no such condition.
    let itself = [int("1"), row(INT, 0, &["1"])];
    assert_eq!(with(&root, without, itself, [int("1"), int("1")]), None);
}

/// The rule of a query of one value that is answered 0 and 1, and so where its text has `way`.
fn of_value(value: Node, way: &'static str, otherwise: [&'static str; 2]) -> Option<&'static str> {
    let from = Node::leaf(Role::Source, "t1 AS a1");
    let children = vec![Node::list(vec![value]), from];
    let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], children);
    with(&root, way, [int("0"), int("1")], otherwise.map(int))
}

#[test]
fn too_many_hours_hide_no_other_time() {
    let cast = || Node::new(Role::Expression, &["CAST(", " AS TIME)"], vec![leaf("a1.x")]);
    let of = |otherwise| of_value(cast(), "< 42949672960000", otherwise);
    assert_eq!(of(["5", "5"]), Some("TIME of numbers of too many hours"));
    // Of numbers of fewer hours the two differ, too.
    assert_eq!(of(["5", "6"]), None);
}

#[test]
fn zeros_in_documents_hide_no_other_document() {
    let document =
        |column| Node::new(Role::Expression, &["JSON_ARRAY(1, ", ")"], vec![leaf(column)]);
    let of = |column, otherwise| of_value(document(column), "(a1.decz + 0)", otherwise);
    assert_eq!(of("a1.decz", ["5", "5"]), Some("ZEROFILL in documents"));
    assert_eq!(of("a1.decz", ["5", "6"]), None);
    assert_eq!(of("a1.dec2", ["5", "5"]), None);
}

#[test]
fn a_variable_in_documents_hides_no_other_number() {
    let texts = ["JSON_ARRAY(NULLIF(", ", 1))"];
    let document = || Node::new(Role::Expression, &texts, vec![leaf("@f")]);
    let of = |otherwise| of_value(document(), "1.5e0", otherwise);
    assert_eq!(of(["0", "0"]), Some("NULLIF of a variable in JSON"));
    assert_eq!(of(["0", "1"]), None);
    assert_eq!(of(["1", "1"]), None);
}

#[test]
fn digits_of_a_variable_in_documents_hide_no_other_number() {
    let document = || {
        let nullif = vec![leaf("@d"), leaf("1")];
        let nullif = Node::new(Role::Expression, &["NULLIF(", ", ", ")"], nullif);
        Node::new(Role::Expression, &["JSON_ARRAY(", ")"], vec![nullif])
    };
    let number = "NULLIF(CAST(1.25 AS DECIMAL(65,38)), 1)";
    let of = |otherwise| of_value(document(), number, otherwise);
    assert_eq!(of(["0", "0"]), Some("NULLIF of a variable in JSON"));
    assert_eq!(of(["0", "1"]), None);
    assert_eq!(of(["1", "1"]), None);
}

#[test]
fn empty_sets_of_bits_hide_no_other_overflow() {
    let bits = Node::new(Role::Aggregate, &["BIT_AND(", ")"], vec![leaf("1")]);
    let sum = Node::new(Role::Expression, &["(", " + ", ")"], vec![bits, leaf("1")]);
    let group = Node::clause(" GROUP BY ", Some(leaf("a1.day")), "");
    let children = vec![Node::list(vec![sum]), Node::leaf(Role::Source, "t1 AS a1"), group];
    let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
    let of = |otherwise: [&'static str; 2]| {
        let itself = [int("2"), refused(1690)];
        with(&root, "CAST(BIT_AND(1) AS DECIMAL(30,0))", itself, otherwise.map(int))
    };
    assert_eq!(of(["2", "2"]), Some("sums of BIT_AND of no values"));
    assert_eq!(of(["2", "3"]), None);
    assert_eq!(of(["3", "3"]), None);
}

#[test]
fn periods_in_a_table_hide_no_other_sum() {
    let period = vec![leaf("a1.x"), leaf("1")];
    let period = Node::new(Role::Expression, &["PERIOD_ADD(", ", ", ")"], period);
    let sum = Node::new(Role::Aggregate, &["SUM(", ")"], vec![period]);
    let group = Node::clause(" GROUP BY ", Some(leaf("a1.day")), "");
    let children = vec![Node::list(vec![sum]), Node::leaf(Role::Source, "t1 AS a1"), group];
    let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
    let of = |otherwise: [&'static str; 2]| {
        let way = "CAST(PERIOD_ADD(a1.x, 1) AS DECIMAL(30,0))";
        with(&root, way, [int("7"), int("5")], otherwise.map(int))
    };
    assert_eq!(of(["7", "7"]), Some("periods in a temporary table"));
    assert_eq!(of(["7", "5"]), None);
    assert_eq!(of(["5", "5"]), None);
}
