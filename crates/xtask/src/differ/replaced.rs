//! Other forms of a statement and of answers, in which what the two servers are known to tell
//! otherwise does not come. What still differs there is another difference.
//!
//! 1. `wide` and a literal of 35 digits have room for no more; `dec10` of the same table has, and a
//!    shorter literal.
//! 2. A comparison with ANY or ALL of a subquery may be NULL here and is said to be NOT NULL there;
//!    a comparison of constants cannot be NULL.
//! 3. A column of an outer query has no value beside an aggregate of that query, unless it is
//!    grouped by; NULL stands for it.
//! 4. A variable is the number that was assigned to it.
//! 5. Zeros before a number are those of ZEROFILL.
//! 6. Summands of DISTINCT sums are kept with as many digits as their type is said to have;
//!    DECIMAL has enough. The numbers of BIT columns are numbers. Two literals beside each other
//!    are one. Texts of one character set are compared as such, texts of members are no members,
//!    and what a function computes is no position of a column. What is compared with a subquery
//!    is compared whatever its condition is, and a value is stored whatever other values are.
//! 7. BIT_AND of no rows has all bits, and one more is beyond 64 of them, but not beyond DECIMAL.
//! 8. A derived table with a limit has columns of its own, which an outer join makes NULL; without
//!    one its literals stand for themselves.

use super::compare::{Problem, Told};
use super::parts;
use super::statements::{Kind, Statement};
use super::tree::{Node, Role};
use sqltest::client::{Answer, Field};
use std::cell::Cell;

/// The statement with a DECIMAL column with room for more digits in place of the one without, and
/// shorter literals and casts in place of long ones; none where it reads none of them.
pub fn narrow(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        match node.texts[0].as_str() {
            "99999999999999999999999999999999999" => return Some(leaf("99999999999")),
            "12345678901234567890.123456789" => return Some(leaf("1234567890.125")),
            "18446744073709551616" => return Some(leaf("1844674407370")),
            "1.2345678901234567890" => return Some(leaf("1.2345679")),
            "0.00000000000000000000000000001" => return Some(leaf("0.0001")),
            _ => {}
        }
        if node.texts.last().is_some_and(|text| text == " AS DECIMAL(40,20))") {
            let texts = [node.texts[0].as_str(), " AS DECIMAL(20,6))"];
            return Some(Node::new(Role::Expression, &texts, node.children.clone()));
        }
        let alias = node.texts[0].strip_suffix(".wide")?;
        is_leaf(node).then(|| leaf(format!("{alias}.dec10")))
    })
}

/// The statement with a comparison of constants in place of those with ANY and ALL of a subquery;
/// none where there is none.
pub fn decided(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_quantified =
            |text: &String| text.ends_with(" ANY (SELECT ") || text.ends_with(" ALL (SELECT ");
        node.texts.get(1).is_some_and(is_quantified).then(|| leaf("(1 = 1)"))
    })
}

/// The statement with NULL in place of columns of outer tables in the condition of a subquery that
/// selects an aggregate of outer columns; none where there is none.
pub fn grouped(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        outer_aggregate(node)?;
        let [_, from, condition, ..] = &node.children[..] else { return None };
        let own = parts::aliases(&format!("{}.", from.sql().rsplit(' ').next()?));
        let is_outer = |text: &str| parts::aliases(text).iter().any(|alias| !own.contains(alias));
        let valueless =
            |node: &Node| (is_leaf(node) && is_outer(&node.texts[0])).then(|| leaf("NULL"));
        let other = with(condition, &valueless)?;
        Some(node.with(&[2], other))
    })
}

/// Variables of `tests/differ/session.sql` that hold numbers.
const NUMBERS: [(&str, &str); 4] =
    [("@u", "18446744073709551615"), ("@f", "1.5e0"), ("@i", "42"), ("@d", "1.25")];

/// The statement with the numbers themselves in place of variables that hold numbers; none where
/// there is no such variable. NULLIF has all digits that a variable of DECIMAL has room for.
pub fn written(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_of = |name: &str| node.children.first().is_some_and(|it| it.texts[0] == name);
        if node.texts[0] == "NULLIF(" && is_of("@d") {
            return Some(node.with(&[0], leaf("CAST(1.25 AS DECIMAL(65,38))")));
        }
        let (_, number) = NUMBERS.iter().find(|(name, _)| node.texts[0] == *name)?;
        is_leaf(node).then(|| leaf(*number))
    })
}

/// The statement with NULL in place of numbers that are cast to TIME and have more hours than 32
/// bits hold; none where none is cast.
pub fn of_fewer_hours(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let [number] = &node.children[..] else { return None };
        let is_cast = node.texts[0] == "CAST(" && node.texts[1].starts_with(" AS TIME");
        let texts = ["IF(ABS(", " + 0) < 42949672960000, ", ", NULL)"];
        let pair = vec![number.clone(), number.clone()];
        is_cast.then(|| node.with(&[0], Node::new(Role::Expression, &texts, pair)))
    })
}

/// The statement with sums in place of its ZEROFILL columns; none where it reads none.
pub fn unfilled(statement: &Statement) -> Option<Statement> {
    let names = [".mediumu", ".plainu", ".decz"];
    replaced(statement, &|node| {
        let is_filled = is_leaf(node) && names.iter().any(|name| node.texts[0].ends_with(name));
        is_filled.then(|| leaf(format!("({} + 0)", node.texts[0])))
    })
}

/// The statement with each BIT_AND and PERIOD_ADD as a DECIMAL: what is more than all bits does not
/// overflow, and a table has room for a period; none where there is none.
pub fn widened(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let texts = ["CAST(", " AS DECIMAL(30,0))"];
        let is_it = ["BIT_AND(", "PERIOD_ADD("].iter().any(|it| node.texts[0].starts_with(it));
        is_it.then(|| Node::new(Role::Expression, &texts, vec![node.clone()]))
    })
}

/// The statement with a limit in each of its derived tables; none where there is none.
pub fn limited(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let end = node.texts.last()?.strip_prefix(") AS ")?;
        let mut limited = node.clone();
        let is_derived = node.texts[0] == "(SELECT id, ";
        *limited.texts.last_mut()? = format!(" LIMIT {ROWS_MAX}) AS {end}");
        is_derived.then_some(limited)
    })
}

/// The statement with summands of DISTINCT sums as DECIMAL; none where there is none.
pub fn exact(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_sum = matches!(node.texts[0].as_str(), "SUM(DISTINCT " | "AVG(DISTINCT ");
        let texts = ["CAST(", " AS DECIMAL(50,20))"];
        let [summand] = &node.children[..] else { return None };
        is_sum.then(|| node.with(&[0], Node::new(Role::Expression, &texts, vec![summand.clone()])))
    })
}

/// The statement with sums in place of the ZEROFILL columns and the DOUBLEs of which MIN and MAX
/// are taken; none where there are none.
pub fn extremes(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_extreme = matches!(node.texts[0].as_str(), "MIN(" | "MAX(");
        let [value] = &node.children[..] else { return None };
        let is_filled = [".mediumu", ".plainu", ".decz"]
            .iter()
            .any(|name| is_leaf(value) && value.texts[0].ends_with(name));
        let addend = match value.family {
            // It has all digits that a DOUBLE has.
            "double" => " + 0e0)",
            _ if is_filled => " + 0)",
            _ => return None,
        };
        let sum = || Node::new(Role::Expression, &["(", addend], vec![value.clone()]);
        is_extreme.then(|| node.with(&[0], sum()))
    })
}

/// The statement with lists of the texts of DISTINCT values in place of lists of these; none where
/// there is none.
pub fn listed(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_list = node.texts[0] == "HEX(GROUP_CONCAT(DISTINCT ";
        let [value] = &node.children[..] else { return None };
        let text = || Node::new(Role::Expression, &["CONCAT(", ")"], vec![value.clone()]);
        is_list.then(|| node.with(&[0], text()))
    })
}

/// The query of the values of which one list of DISTINCT ones is selected; none where another thing
/// is selected, or not all groups.
pub fn unlisted(statement: &Statement) -> Option<Statement> {
    let [items, from, condition, rest @ ..] = &statement.root.children[..] else { return None };
    let [list] = &items.children[..] else { return None };
    let is_plain = statement.root.texts[0] == "SELECT " && items.role == Role::List;
    let is_group = |it: &Node| it.texts[0] == " GROUP BY " || it.sql().is_empty();
    if !is_plain || list.texts[0] != "HEX(GROUP_CONCAT(DISTINCT " || !rest.iter().all(is_group) {
        return None;
    }
    let children = vec![Node::list(list.children.clone()), from.clone(), condition.clone()];
    let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
    Some(Statement { root, ..statement.clone() })
}

/// The statement with summands of fewer digits after the point in sums and averages; none where
/// there are none.
pub fn summed(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_sum = matches!(node.texts[0].as_str(), "SUM(" | "AVG(");
        let [summand] = &node.children[..] else { return None };
        let rounded = || Node::new(Role::Expression, &["ROUND(", ", 20)"], vec![summand.clone()]);
        is_sum.then(|| node.with(&[0], rounded()))
    })
}

/// The statement with the numbers that BIT columns hold in place of those columns; none where it
/// reads none.
pub fn numbered(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| is_bit(node).then(|| leaf(format!("({} + 0)", node.texts[0]))))
}

fn is_bit(node: &Node) -> bool {
    let text = node.texts[0].as_str();
    is_leaf(node) && (text.ends_with(".bits") || text.ends_with(".bit1"))
}

/// More BIT columns than a shrunk statement reads.
const BITS_MAX: u32 = 3;

/// The statement with the number or the text of each BIT column in its place, which may be as wide
/// as that of another one, in every combination; none where it reads none, or too many.
pub fn bits_chosen(statement: &Statement) -> Vec<Statement> {
    let root = &statement.root;
    let nodes = root.paths().into_iter().filter_map(|path| root.at(&path));
    let count = nodes.filter(|node| is_bit(node)).count() as u32;
    if !(1..=BITS_MAX).contains(&count) {
        return Vec::new();
    }
    let chosen = |forms: u32| {
        let seen = Cell::new(0);
        replaced(statement, &|node| {
            is_bit(node).then(|| {
                let number = seen.replace(seen.get() + 1);
                let column = &node.texts[0];
                match forms / 3u32.pow(number) % 3 {
                    0 => leaf(format!("({column} + 0)")),
                    1 => leaf(format!("CONCAT({column})")),
                    // As wide as another BIT that it is an alternative to.
                    _ => leaf(format!("UNHEX(LPAD(HEX({column} + 0), 4, '0'))")),
                }
            })
        })
    };
    (0..3u32.pow(count)).filter_map(chosen).collect()
}

/// The statement with one literal in place of two that stand beside each other; none where there
/// are none.
pub fn joined(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| (is_leaf(node) && node.texts[0] == "'x' 'y'").then(|| leaf("'xy'")))
}

/// The statement with an empty text before JSON_TYPE and JSON_QUERY with which CONCAT begins; none
/// where it does not.
pub fn begun(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let first = node.children.first()?;
        let is_lost = matches!(first.texts[0].as_str(), "JSON_TYPE(" | "JSON_QUERY(");
        let mut begun = node.clone();
        begun.texts[0] = "CONCAT('', ".into();
        (node.texts[0] == "CONCAT(" && is_lost).then_some(begun)
    })
}

/// The statement with the texts of members in place of columns of ENUM and SET; none where it reads
/// none.
pub fn member_texts(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_member = node.texts[0].ends_with(".e") || node.texts[0].ends_with(".s");
        (is_leaf(node) && is_member).then(|| leaf(format!("CONCAT({})", node.texts[0])))
    })
}

/// The statement with all texts of latin1 as Unicode; none where there are none.
pub fn unicode(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let text = node.texts[0].as_str();
        let is_column = text.ends_with(".lat") || text.ends_with(".latc");
        let is_latin = is_column || text == "@l" || text.starts_with("_latin1");
        (is_leaf(node) && is_latin).then(|| leaf(format!("CONVERT({text} USING utf8mb4)")))
    })
}

/// The statement without conditions in its subqueries; none where there are none.
pub fn satisfied(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_subquery = node.role == Role::Expression
            && node.children.iter().any(|child| child.role == Role::Source);
        let is_condition = |it: &Node| it.role == Role::Clause && it.texts[0] == " WHERE ";
        let at = node.children.iter().position(is_condition).filter(|_| is_subquery)?;
        Some(node.with(&[at], Node::leaf(Role::Fixed, "")))
    })
}

/// An INSERT with each of its values alone, and another one, such as NULL, for the others.
pub fn values_alone(statement: &Statement, other: &str) -> Vec<Statement> {
    let root = &statement.root;
    if !root.texts[0].starts_with("INSERT ") {
        return Vec::new();
    }
    let is_value = |at: &usize| root.children[*at].role == Role::Expression;
    let values: Vec<usize> = (0..root.children.len()).filter(is_value).collect();
    let alone = |kept: &usize| {
        let others = values.iter().filter(|at| *at != kept);
        let root = others.fold(root.clone(), |root, at| root.with(&[*at], leaf(other)));
        Statement { root, ..statement.clone() }
    };
    values.iter().map(alone).collect()
}

/// Ids of rows that tables have.
const IDS: std::ops::RangeInclusive<u32> = 1..=9;

/// A change with a condition for each row of its table alone; none where it has no condition that
/// may be changed, and no table.
pub fn rows_alone(statement: &Statement) -> Vec<Statement> {
    let root = &statement.root;
    let is_table = |node: &Node| node.role == Role::Source && node.children.is_empty();
    let table = root.children.iter().find(|node| is_table(node)).map(Node::sql);
    let is_condition = |node: &Node| node.role == Role::Clause && node.texts[0] == " WHERE ";
    let place = root.children.iter().position(is_condition);
    let empty = || root.children.iter().position(|it| it.sql().is_empty());
    let (Some(table), Some(place)) = (table, place.or_else(empty)) else { return Vec::new() };
    let Some((_, alias)) = table.rsplit_once(" AS ") else { return Vec::new() };
    let alone = |id: u32| {
        let own = root.children[place].children.first().cloned();
        let row = leaf(format!("{alias}.id = {id}"));
        let both = match own {
            Some(own) => Node::new(Role::Expression, &["(", " AND ", ")"], vec![row, own]),
            None => row,
        };
        let root = root.with(&[place], Node::clause(" WHERE ", Some(both), ""));
        Statement { root, ..statement.clone() }
    };
    IDS.map(alone).collect()
}

/// The statement with a function around what it groups by; none where it does not.
pub fn unfolded(statement: &Statement) -> Option<Statement> {
    replaced(statement, &|node| {
        let is_group = node.role == Role::Clause && node.texts[0] == " GROUP BY ";
        let texts = ["IFNULL(", ", NULL)"];
        is_group.then(|| {
            let key = Node::new(Role::Expression, &texts, vec![node.children[0].clone()]);
            node.with(&[0], key)
        })
    })
}

/// The query with NULL in place of all columns that it selects and orders by, where a subquery
/// aggregates columns of it: the query is one group then. None where there is no such subquery.
pub fn valueless(statement: &Statement) -> Option<Statement> {
    let root = &statement.root;
    let mut subqueries = root.paths().into_iter().filter_map(|path| root.at(&path));
    subqueries.find_map(outer_aggregate)?;
    replaced(statement, &|node| {
        // Which rows there are stays.
        let head = node.texts[0].as_str();
        let is_of_rows = node.role == Role::Source || matches!(head, "(SELECT id, " | " WHERE ");
        if is_of_rows || outer_aggregate(node).is_some() {
            return Some(node.clone());
        }
        (is_leaf(node) && !parts::aliases(head).is_empty()).then(|| leaf("NULL"))
    })
}

/// The tables that a subquery's aggregate reads, if these are all around it.
fn outer_aggregate(node: &Node) -> Option<Vec<String>> {
    let [value, from, ..] = &node.children[..] else { return None };
    let head = node.texts[0].as_str();
    if !matches!(head, "(SELECT MAX(" | "(SELECT MIN(" | "(SELECT COUNT(") {
        return None;
    }
    let own = parts::aliases(&format!("{}.", from.sql().rsplit(' ').next()?));
    let read = parts::aliases(&value.sql());
    (!read.is_empty() && !read.iter().any(|alias| own.contains(alias))).then_some(read)
}

/// More rows than any derived table has.
const ROWS_MAX: u32 = 1_000;

/// Flag of a column of ZEROFILL.
const ZEROFILL: u16 = 64;

/// Answers without zeros before numbers, and without the flag that asks for them.
pub fn without_padding(told: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for one in &mut told {
        if let Answer::Rows { columns, rows, .. } = &mut one.answer {
            columns.iter_mut().for_each(|column| column.flags &= !ZEROFILL);
            rows.iter_mut().flatten().for_each(remove_padding);
        }
    }
    told
}

/// Answers without zeros before the numbers of columns that ask for them.
pub fn without_filled(told: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for one in &mut told {
        let Answer::Rows { columns, rows, .. } = &mut one.answer else { continue };
        for row in rows {
            let cells = row.iter_mut().zip(columns.iter());
            cells.filter(|(_, it)| it.flags & ZEROFILL != 0).for_each(|(it, _)| remove_padding(it));
        }
    }
    told
}

/// Answers in which the escape of a character of two halves has one backslash, as MariaDB writes
/// it.
pub fn with_broken_halves(told: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for one in &mut told {
        if let Answer::Rows { rows, .. } = &mut one.answer {
            for cell in rows.iter_mut().flatten().flatten() {
                let text = String::from_utf8_lossy(cell).replace("\\uD83D\\uDE00", "\\uD83DDE00");
                if text != String::from_utf8_lossy(cell) {
                    *cell = text.into_bytes();
                }
            }
        }
    }
    told
}

/// Answers without positions in their warnings about documents.
pub fn without_positions(told: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for warning in told.iter_mut().flat_map(|one| &mut one.warnings) {
        if warning[1] == "4038"
            && let Some((text, _)) = warning[2].rsplit_once(" at position ")
        {
            warning[2] = text.to_string();
        }
    }
    told
}

fn remove_padding(cell: &mut Field) {
    let Some(text) = cell else { return };
    let is_number = !text.is_empty() && text.iter().all(|it| it.is_ascii_digit() || *it == b'.');
    let zeros = text.iter().take_while(|digit| **digit == b'0').count();
    // One digit stays before the point.
    let before = text.iter().take_while(|it| it.is_ascii_digit()).count();
    if is_number && before > 0 {
        text.drain(..zeros.min(before - 1));
    }
}

/// The queries that judge the documents of JSON_CONTAINS and JSON_OVERLAPS in a statement.
pub fn documents_judged(statement: &Statement) -> Vec<Statement> {
    let root = &statement.root;
    let nodes = root.paths().into_iter().filter_map(|path| root.at(&path));
    let readers = nodes.filter(|node| {
        let name = node.texts[0].as_str();
        name == "JSON_CONTAINS(" || name == "JSON_OVERLAPS("
    });
    let judged = |document: &Node| {
        let judge = ["SELECT JSON_VALID(", ")"];
        let root = parts::selected(root, &judge, "", parts::flattened(document));
        Statement { kind: Kind::Query, root, prepared: statement.prepared }
    };
    readers.flat_map(|node| node.children.iter().map(judged)).collect()
}

/// Whether a problem is the warning of JSON_CONTAINS or JSON_OVERLAPS about a broken document.
pub fn is_of_broken_document((code, text): &Problem) -> bool {
    let names = ["'json_contains'", "'json_overlaps'"];
    code == "4038" && names.iter().any(|name| text.contains(name))
}

/// The statement with other nodes in place of those that have one; none where no node has.
pub fn replaced(statement: &Statement, other: &dyn Fn(&Node) -> Option<Node>) -> Option<Statement> {
    let root = with(&statement.root, other)?;
    Some(Statement { root, ..statement.clone() })
}

/// A tree with other nodes in place of those that have one; none where no node has.
pub(super) fn with(node: &Node, other: &dyn Fn(&Node) -> Option<Node>) -> Option<Node> {
    if let Some(other) = other(node) {
        return Some(other);
    }
    let replaced: Vec<Option<Node>> =
        node.children.iter().map(|child| with(child, other)).collect();
    if replaced.iter().all(Option::is_none) {
        return None;
    }
    let children = replaced.into_iter().zip(&node.children);
    let children = children.map(|(other, child)| other.unwrap_or_else(|| child.clone())).collect();
    Some(Node { texts: node.texts.clone(), children, ..*node })
}

fn is_leaf(node: &Node) -> bool {
    node.role == Role::Expression && node.children.is_empty()
}

fn leaf(text: impl Into<String>) -> Node {
    Node::leaf(Role::Expression, text)
}
