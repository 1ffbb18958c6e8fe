//! Each rule of `explained.txt` that swallows a whole kind of difference is given the difference
//! that it is for, and then another one planted beside it, which must not be swallowed.

use super::compare::{self, Reply, Told};
use super::explained;
use super::proofs::{Judge, Servers};
use super::statements::{Kind, Statement};
use super::tree::{Node, Role};
use sqltest::client::{Answer, ServerError};

pub(super) const INT: u8 = 3;
pub(super) const DECIMAL: u8 = 246;
pub(super) const NOT_NULL: u16 = 1;

/// How a function of answers is given the text of a prepared statement.
pub(super) const PREPARED: &str = "/* prepared */ ";

/// Two servers that answer each text as a function says.
struct Fake<'a>(&'a dyn Fn(&str) -> [Told; 2]);

impl Servers for Fake<'_> {
    fn ask(
        &mut self,
        statement: &Statement,
        _: &'static str,
    ) -> Result<(Reply, Vec<Told>), String> {
        let head = if statement.prepared { PREPARED } else { "" };
        let [ours, theirs] = (self.0)(&format!("{head}{}", statement.root.sql()));
        Ok((Ok(vec![ours]), vec![theirs]))
    }
}

/// The rule that explains the difference of a query, as two servers answer.
pub(super) fn rule_of(root: &Node, answers: &dyn Fn(&str) -> [Told; 2]) -> Option<&'static str> {
    rule_of_sent(root, false, answers)
}

/// The same of a change.
pub(super) fn rule_of_change(
    root: &Node,
    answers: &dyn Fn(&str) -> [Told; 2],
) -> Option<&'static str> {
    let change = Statement { kind: Kind::Change, root: root.clone(), prepared: false };
    rule_of_statement(&change, answers)
}

/// The same of a query that is sent as it is, or prepared.
pub(super) fn rule_of_sent(
    root: &Node,
    prepared: bool,
    answers: &dyn Fn(&str) -> [Told; 2],
) -> Option<&'static str> {
    let query = Statement { kind: Kind::Query, root: root.clone(), prepared };
    rule_of_statement(&query, answers)
}

fn rule_of_statement(
    query: &Statement,
    answers: &dyn Fn(&str) -> [Told; 2],
) -> Option<&'static str> {
    let rules = explained::load().unwrap();
    let mut servers = Fake(answers);
    let mut judge = Judge { servers: &mut servers, rules: &rules, lengths: false };
    let mode = super::pair::MODES[0];
    let (found, ours, theirs) = judge.ask(query, mode).unwrap();
    let difference = found.expect("the servers differ");
    let explained = judge.explain(query, mode, &difference, (&ours, &theirs)).unwrap();
    explained.map(|rule| rule.name)
}

/// One row.
pub(super) fn row(type_code: u8, flags: u16, cells: &[&str]) -> Told {
    let column = sqltest::client::Column { flags, ..compare::tests::column_of(type_code) };
    let cells = cells.iter().map(|text| Some(text.as_bytes().to_vec()));
    let cells: Vec<_> = cells.collect();
    let columns = vec![column; cells.len()];
    let answer =
        Answer::Rows { columns, rows: vec![cells], status: 0, warnings: 0, changes: Vec::new() };
    Told { answer, warnings: Vec::new() }
}

pub(super) fn number(cells: &[&str]) -> Told {
    row(DECIMAL, 0, cells)
}

fn warned(told: Told, texts: &[&str]) -> Told {
    let warnings = texts.iter().map(|text| ["Warning", "4038", text].map(String::from)).collect();
    Told { warnings, ..told }
}

/// An answer with a warning of this number.
pub(super) fn warned_of(told: Told, code: &str) -> Told {
    Told { warnings: vec![["Warning", code, "planted"].map(String::from)], ..told }
}

pub(super) fn refused(code: u16) -> Told {
    let error = ServerError { code, state: "21000".into(), message: "more than 1 row".into() };
    Told { answer: Answer::Error(error), warnings: Vec::new() }
}

pub(super) fn leaf(text: &str) -> Node {
    Node::leaf(Role::Expression, text)
}

/// `SELECT items FROM t1 AS a1 GROUP BY a1.tiny`.
fn grouped_query(items: Vec<Node>) -> Node {
    let from = Node::leaf(Role::Source, "t1 AS a1");
    let condition = Node::clause(" WHERE ", None, "");
    let by = Node::clause(" GROUP BY ", Some(leaf("a1.tiny")), "");
    let texts = ["SELECT ", " FROM ", "", "", ""];
    Node::new(Role::Fixed, &texts, vec![Node::list(items), from, condition, by])
}

pub(super) fn aggregate(name: &str, column: &str) -> Node {
    Node::new(Role::Aggregate, &[format!("{name}("), ")".into()], vec![leaf(column)])
}

/// `SELECT item FROM t1 AS a1`.
fn plain_query(item: Node) -> Node {
    let from = Node::leaf(Role::Source, "t1 AS a1");
    Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![Node::list(vec![item]), from])
}

#[test]
fn zeros_of_zerofill_hide_no_other_value() {
    let query = grouped_query(vec![aggregate("MAX", "a1.decz"), aggregate("MAX", "a1.decz")]);
    let with = |own: &'static [&'static str]| {
        rule_of(&query, &move |text: &str| match text.contains("GROUP BY") {
            true => [number(own), number(&["0000.500", "0012.000"])],
            // That it is not kept anywhere explains nothing.
            false => [number(&["8", "8"]), number(&["9", "9"])],
        })
    };
    assert_eq!(with(&["0.500", "12.000"]), Some("ZEROFILL of MIN and MAX in groups"));
    assert_eq!(with(&["0.600", "12.000"]), None);
    assert_eq!(with(&["0.500", "12.001"]), None);
    assert_eq!(with(&["0.500", "120.000"]), None);
    // One zero before the point is a digit.
    assert_eq!(with(&[".500", "12.000"]), None);
}

#[test]
fn averages_of_many_digits_hide_no_other_average() {
    let query = grouped_query(vec![aggregate("AVG", "a1.wide")]);
    let with = |of_fewer: [&'static str; 2], text_of_warning: &'static [&'static str]| {
        rule_of(&query, &move |text: &str| {
            let [here, there] = match text {
                _ if !text.contains("GROUP BY") => ["7", "7"],
                _ if text.contains("ROUND(a1.wide, 20)") => of_fewer,
                _ => ["123", "99"],
            };
            [number(&[here]), warned(number(&[there]), text_of_warning)]
        })
    };
    let name = "averages of DECIMAL with too many digits";
    assert_eq!(with(["123.0", "123.0"], &[]), Some(name));
    assert_eq!(with(["123.0", "99"], &[]), None);
    assert_eq!(with(["123.0", "123.0"], &["planted"]), None);
    // Gannet's average is another one.
    assert_eq!(with(["5", "5"], &[]), None);
}

#[test]
fn any_hides_no_other_nullability() {
    let source = Node::leaf(Role::Source, "t2 AS a2");
    let texts = ["(", " > ANY (SELECT ", " FROM ", "))"];
    let any = Node::new(Role::Expression, &texts, vec![leaf("1"), leaf("a2.id"), source]);
    let children = vec![any.clone(), leaf("1"), leaf("2")];
    let choice = Node::new(Role::Expression, &["NVL2(", ", ", ", ", ")"], children);
    let with = |item: &Node, without_any: [u16; 2]| {
        let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![Node::list(vec![item.clone()])]);
        rule_of(&root, &move |text: &str| {
            let flags = if text.contains("ANY") { [0, NOT_NULL] } else { without_any };
            flags.map(|flags| row(INT, flags, &["1"]))
        })
    };
    let name = "ANY and ALL described as NOT NULL";
    assert_eq!(with(&choice, [NOT_NULL, NOT_NULL]), Some(name));
    assert_eq!(with(&choice, [0, NOT_NULL]), None);
    assert_eq!(with(&any, [0, 0]), Some(name));
    assert_eq!(with(&any, [0, NOT_NULL]), None);
}

#[test]
fn columns_without_a_value_hide_no_other_error() {
    let subquery = |aggregate: &str, condition: &str| {
        let source = Node::leaf(Role::Source, "t2 AS a2");
        let condition = Node::clause(" WHERE ", Some(leaf(condition)), "");
        let texts = [aggregate, ") FROM ", "", ")"];
        let children = vec![leaf("a1.id"), source, condition];
        plain_query(Node::new(Role::Expression, &texts, children))
    };
    let with = |root: &Node, without_value: [Told; 2]| {
        rule_of(root, &move |text: &str| match text.contains("WHERE NULL") {
            true => without_value.clone(),
            false => [refused(1242), row(INT, 0, &["1"])],
        })
    };
    let both = || [row(INT, 0, &["2"]), row(INT, 0, &["2"])];
    let one = || [refused(1242), row(INT, 0, &["2"])];
    let name = "ungrouped columns beside MAX and MIN, error here";
    assert_eq!(with(&subquery("(SELECT MAX(", "a1.tiny"), both()), Some(name));
    assert_eq!(with(&subquery("(SELECT MIN(", "a1.tiny"), both()), Some(name));
    assert_eq!(with(&subquery("(SELECT MAX(", "a1.tiny"), one()), None);
    let mut quotient = subquery("(SELECT MAX(", "a1.tiny");
    let value = Node::new(Role::Expression, &["(1 / ", ")"], vec![leaf("a1.id")]);
    quotient = quotient.with(&[0, 0, 0], value);
    assert_eq!(with(&quotient, both()), Some(name));
    assert_eq!(with(&quotient, one()), None);
    // There is no such column.
    assert_eq!(with(&subquery("(SELECT MAX(", "a2.small"), both()), None);
    let name = "ungrouped columns beside aggregates, error here";
    assert_eq!(with(&subquery("(SELECT COUNT(", "a1.tiny"), both()), Some(name));
    assert_eq!(with(&subquery("(SELECT COUNT(", "a2.small"), both()), None);
}

#[test]
fn broken_documents_hide_no_other_warning() {
    let with = |function: &str, valid: &'static str, texts: &'static [&'static str]| {
        let head = format!("{function}(");
        let children = vec![leaf("'[1'"), leaf("'1'")];
        let call = Node::new(Role::Expression, &[head.as_str(), ", ", ")"], children);
        let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![Node::list(vec![call])]);
        let asked = root.sql();
        rule_of(&root, &move |text: &str| match text {
            _ if text == asked => [warned(row(INT, 0, &["0"]), texts), row(INT, 0, &["0"])],
            _ => [row(INT, 0, &[valid]), row(INT, 0, &[valid])],
        })
    };
    const CONTAINS: &str =
        "Syntax error in JSON text in argument 1 to function 'json_contains' at 1";
    let name = "broken documents that are not read to their end, JSON_CONTAINS";
    assert_eq!(with("JSON_CONTAINS", "0", &[CONTAINS]), Some(name));
    assert_eq!(with("JSON_CONTAINS", "1", &[CONTAINS]), None);
    const VALUE: &str = "Syntax error in JSON text in argument 1 to function 'json_value' at 1";
    assert_eq!(with("JSON_CONTAINS", "0", &[CONTAINS, VALUE]), None);
    assert_eq!(with("JSON_CONTAINS", "0", &[VALUE]), None);
    const OVERLAPS: &str =
        "Syntax error in JSON text in argument 1 to function 'json_overlaps' at 1";
    let name = "broken documents that are not read to their end";
    assert_eq!(with("JSON_OVERLAPS", "0", &[OVERLAPS]), Some(name));
    assert_eq!(with("JSON_OVERLAPS", "1", &[OVERLAPS]), None);
}

#[test]
fn literals_behind_an_outer_join_hide_no_other_nullability() {
    let end = ") AS a3";
    let source = Node::leaf(Role::Source, "t2 AS a2");
    let items = Node::list(vec![Node::new(Role::Fixed, &["", " AS c0"], vec![leaf("1")])]);
    let derived = Node::new(Role::Fixed, &["(SELECT id, ", " FROM ", end], vec![items, source]);
    let left = Node::leaf(Role::Source, "t1 AS a1");
    let join = Node::new(
        Role::Source,
        &["(", " LEFT JOIN ", " ON ", ")"],
        vec![left, derived, leaf("NULL")],
    );
    let items = Node::list(vec![leaf("a3.c0")]);
    let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![items, join]);
    let with = |limited: [u16; 2]| {
        rule_of(&root, &move |text: &str| {
            let flags = if text.contains("LIMIT") { limited } else { [0, NOT_NULL] };
            flags.map(|flags| row(INT, flags, &["1"]))
        })
    };
    assert_eq!(with([0, 0]), Some("literals of derived tables behind an outer join"));
    assert_eq!(with([0, NOT_NULL]), None);
}

#[test]
fn an_unsigned_variable_hides_no_other_value() {
    let children = vec![leaf("-1"), leaf("NULL"), leaf("@u")];
    let list = Node::new(Role::Expression, &["(", " IN (", ", ", "))"], children);
    let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![Node::list(vec![list])]);
    let with = |own: &'static str, number: [&'static str; 2]| {
        rule_of(&root, &move |text: &str| {
            let answers = if text.contains("@u") { [own, "1"] } else { number };
            answers.map(|cell| row(INT, 0, &[cell]))
        })
    };
    let name = "an unsigned variable in a list with negative numbers";
    assert_eq!(with("0", ["0", "0"]), Some(name));
    assert_eq!(with("2", ["0", "0"]), None);
    assert_eq!(with("0", ["0", "1"]), None);
}

#[test]
fn comparisons_of_a_natural_join_hide_no_other_warning() {
    let derived = |value: &str, source: &str, alias: &str| {
        let item = Node::new(Role::Fixed, &["", " AS c0"], vec![leaf(value)]);
        let end = format!(") AS {alias}");
        let texts = ["(SELECT id, ", " FROM ", end.as_str()];
        let children = vec![Node::list(vec![item]), Node::leaf(Role::Source, source)];
        Node::new(Role::Fixed, &texts, children)
    };
    let sides = vec![derived("a1.name", "t1 AS a1", "a3"), derived("a2.day", "t2 AS a2", "a4")];
    let with = |join: &str, compared: [Told; 2]| {
        let join = Node::new(Role::Source, &["", join, ""], sides.clone());
        let items = Node::list(vec![leaf("2")]);
        let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![items, join]);
        let asked = root.sql();
        let one = || row(INT, 0, &["1"]);
        rule_of(&root, &move |text: &str| match text {
            _ if text == asked => [warned(one(), &["not a date"]), one()],
            _ if text.starts_with("SELECT (a3.c0 = a4.c0) FROM ") => compared.clone(),
            _ => [one(), one()],
        })
    };
    let warned_of = |text: &str| warned(row(INT, 0, &["1"]), &[text]);
    let both = |text: &str| [warned_of(text), warned_of(text)];
    let name = "parts that one of the servers does not look at, warnings here";
    assert_eq!(with(" NATURAL JOIN ", both("not a date")), Some(name));
    assert_eq!(with(" NATURAL JOIN ", both("planted")), None);
    // Only Gannet warns of the comparison.
    let only_here = || [warned_of("not a date"), row(INT, 0, &["1"])];
    assert_eq!(with(" NATURAL JOIN ", only_here()), None);
    // Nothing is compared.
    assert_eq!(with(" CROSS JOIN ", both("not a date")), None);
}

#[test]
fn constants_of_broken_characters_hide_no_other_error() {
    let texts = ["UPDATE t4 AS a1 SET a1.e = ", ""];
    let broken = Node::new(Role::Expression, &["CHAR(", " USING utf8mb4)"], vec![leaf("-3")]);
    let children = vec![broken, leaf("a1.lat")];
    let joined = Node::new(Role::Expression, &["CONCAT(", ", ", ")"], children);
    let update = Node::new(Role::Fixed, &texts, vec![joined]);
    let one = || row(INT, 0, &["1"]);
    let with = |own: u16, code: &'static str| {
        rule_of(&update, &move |text: &str| match text {
            _ if text.starts_with("UPDATE ") => [refused(own), warned_of(one(), "1300")],
            _ if text.starts_with("SELECT CHAR(") => {
                [warned_of(one(), code), warned_of(one(), code)]
            }
            _ => [one(), one()],
        })
    };
    let name = "constants of broken characters beside another character set, UPDATE";
    assert_eq!(with(1300, "1300"), Some(name));
    assert_eq!(with(1300, "1366"), None);
    assert_eq!(with(1366, "1300"), None);
}

#[test]
fn values_that_are_listed_hide_no_other_member() {
    let texts = ["HEX(GROUP_CONCAT(DISTINCT ", " ORDER BY 1 SEPARATOR '|'))"];
    let list = Node::new(Role::Aggregate, &texts, vec![leaf("a1.d")]);
    // 2|10, cut to 2|9, as texts, too.
    let with = |own: &'static str, values: [&'static str; 2]| {
        rule_of(&grouped_query(vec![list.clone()]), &move |text: &str| match text {
            _ if text.contains("DISTINCT a1.d") => [number(&[own]), number(&["327C39"])],
            _ if text == "SELECT a1.d FROM t1 AS a1" => values.map(rows_of_one),
            _ => [number(&["8"]), number(&["9"])],
        })
    };
    let name = Some("lists of numbers with too many digits");
    assert_eq!(with("327C3130", ["2 10 10", "10 2 10"]), name);
    assert_eq!(with("327C3130", ["2 10", "2 9"]), None);
    assert_eq!(with("327C3130", ["2 11", "2 11"]), None);
    assert_eq!(with("327C3130", ["2 10 3", "2 10 3"]), None);
    assert_eq!(with("32", ["2 10", "2 10"]), None);
}

/// Rows of one cell each.
fn rows_of_one(cells: &str) -> Told {
    let mut told = number(&["0"]);
    if let Answer::Rows { rows, .. } = &mut told.answer {
        *rows = cells.split(' ').map(|cell| vec![Some(cell.as_bytes().to_vec())]).collect();
    }
    told
}

#[test]
fn an_order_of_bits_hides_no_other_order() {
    let cast = Node::new(Role::Expression, &["CAST(", " AS BINARY)"], vec![leaf("a1.bit1")]);
    let order = Node::clause(super::statements::TOTAL_ORDER, Some(cast), ", a1.id");
    let from = Node::leaf(Role::Source, "t3 AS a1");
    let children = vec![Node::list(vec![leaf("a1.id")]), from, order];
    let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
    let with = |as_text: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text.contains("CONCAT(a1.bit1)") => as_text.map(rows_of_one),
            _ if text.contains("CAST(a1.bit1 AS BINARY)") && !text.contains("kept") => {
                ["1 2", "2 1"].map(rows_of_one)
            }
            _ => [number(&["8"]), number(&["9"])],
        })
    };
    assert_eq!(with(["1 2", "1 2"]), Some("BIT that is computed, selected"));
    assert_eq!(with(["2 1", "2 1"]), None);
    assert_eq!(with(["1 2", "2 1"]), None);
}

#[test]
fn errors_of_groups_hide_no_other_error() {
    let query = grouped_query(vec![aggregate("SUM", "a1.e")]);
    let with = |alone: [u16; 2], group: [u16; 2]| {
        rule_of(&query, &move |text: &str| match text {
            _ if text == "SELECT 1 FROM t1 AS a1 GROUP BY a1.tiny" => group.map(refused),
            _ if text == "SELECT SUM(a1.e) FROM t1 AS a1" => alone.map(refused),
            _ if text.contains("SUM(a1.e)") => [refused(1267), refused(1054)],
            _ => [number(&["8"]), number(&["9"])],
        })
    };
    let name = "the first of several errors, other numbers";
    assert_eq!(with([1267, 1267], [1054, 1054]), Some(name));
    assert_eq!(with([1267, 1267], [1056, 1056]), None);
    assert_eq!(with([1267, 1054], [1054, 1054]), None);
}
