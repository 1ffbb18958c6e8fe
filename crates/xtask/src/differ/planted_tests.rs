//! Each rule of `explained.txt` that swallows a whole kind of difference is given the difference
//! that it is for, and then another one planted beside it, which must not be swallowed.

use super::compare::{self, Reply, Told};
use super::explained;
use super::proofs::{Judge, Servers};
use super::statements::{Kind, Statement};
use super::tree::{Node, Role};
use sqltest::client::{Answer, ServerError};

const INT: u8 = 3;
const DECIMAL: u8 = 246;
const NOT_NULL: u16 = 1;

/// Two servers that answer each text as a function says.
struct Fake<'a>(&'a dyn Fn(&str) -> [Told; 2]);

impl Servers for Fake<'_> {
    fn ask(
        &mut self,
        statement: &Statement,
        _: &'static str,
    ) -> Result<(Reply, Vec<Told>), String> {
        let [ours, theirs] = (self.0)(&statement.root.sql());
        Ok((Ok(vec![ours]), vec![theirs]))
    }
}

/// The rule that explains the difference of a query, as two servers answer.
fn rule_of(root: &Node, answers: &dyn Fn(&str) -> [Told; 2]) -> Option<&'static str> {
    let rules = explained::load().unwrap();
    let query = Statement { kind: Kind::Query, root: root.clone(), prepared: false };
    let mut servers = Fake(answers);
    let mut judge = Judge { servers: &mut servers, rules: &rules, lengths: false };
    let mode = super::pair::MODES[0];
    let (found, ours, theirs) = judge.ask(&query, mode).unwrap();
    let difference = found.expect("the servers differ");
    let explained = judge.explain(&query, mode, &difference, (&ours, &theirs)).unwrap();
    explained.map(|rule| rule.name)
}

/// One row.
fn row(type_code: u8, flags: u16, cells: &[&str]) -> Told {
    let column = sqltest::client::Column { flags, ..compare::tests::column_of(type_code) };
    let cells = cells.iter().map(|text| Some(text.as_bytes().to_vec()));
    let cells: Vec<_> = cells.collect();
    let columns = vec![column; cells.len()];
    let answer =
        Answer::Rows { columns, rows: vec![cells], status: 0, warnings: 0, changes: Vec::new() };
    Told { answer, warnings: Vec::new() }
}

fn number(cells: &[&str]) -> Told {
    row(DECIMAL, 0, cells)
}

fn warned(told: Told, texts: &[&str]) -> Told {
    let warnings = texts.iter().map(|text| ["Warning", "4038", text].map(String::from)).collect();
    Told { warnings, ..told }
}

fn refused(code: u16) -> Told {
    let error = ServerError { code, state: "21000".into(), message: "more than 1 row".into() };
    Told { answer: Answer::Error(error), warnings: Vec::new() }
}

fn leaf(text: &str) -> Node {
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

fn aggregate(name: &str, column: &str) -> Node {
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
                _ if text.contains(".wide") => ["123", "99"],
                _ => of_fewer,
            };
            [number(&[here]), warned(number(&[there]), text_of_warning)]
        })
    };
    assert_eq!(with(["5", "5"], &[]), Some("averages of DECIMAL with too many digits"));
    assert_eq!(with(["5", "6"], &[]), None);
    assert_eq!(with(["5", "5"], &["planted"]), None);
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
    let with = |numbers: [&'static str; 2]| {
        rule_of(&query, &move |text: &str| {
            let cells = if text.contains("(a1.bits + 0)") { numbers } else { ["\u{1}", "1"] };
            cells.map(|cell| row(INT, 0, &[cell]))
        })
    };
    assert_eq!(with(["1", "1"]), Some("distinct BIT in lists"));
    assert_eq!(with(["1", "2"]), None);
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
