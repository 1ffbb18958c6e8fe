//! The same statement, to be executed in another way: no answer may depend on it.
//!
//! 1. Without indexes conditions are evaluated for rows, not looked up as ranges of keys.
//! 2. With SQL_BIG_RESULT groups are sorted, not gathered in a temporary table, whose columns have
//!    fewer digits and other flags than the values that they keep.
//! 3. Without DISTINCT and an order there is no temporary table by whose columns those of the
//!    answer could be described.
//! 4. A difference is explained where both answer the other way alike, and Gannet as before: all of
//!    the answer by 1, 2 and 5, the descriptions of its columns by 3.
//! 5. Without materialization IN looks at the rows of a subquery, not at a table of them. With
//!    IFNULL around a condition an outer join stays one. NULLIF may be NULL, also of what cannot.
//!    IN is as good as a comparison with each member, and CONCAT of a number as the number where a
//!    text is stored. A statement with parameters is one with the values in their place.

use super::compare::{self, Reply, Row, Told};
use super::composed;
use super::replaced;
use super::statements::{Statement, TOTAL_ORDER};
use super::tree::{Node, Role};
use sqltest::client::{Answer, Field};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The statement with no index of the tables that it reads; none where it reads none.
pub fn unindexed(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let is_table = node.role == Role::Source && node.children.is_empty();
        is_table.then(|| Node::leaf(Role::Source, format!("{} USE INDEX ()", node.texts[0])))
    })
}

/// The query with subqueries of IN that are not materialized, and are looked up in no index; none
/// where there are none.
pub fn unmaterialized(statement: &Statement) -> Option<Statement> {
    let is_query = statement.root.texts[0].starts_with("SELECT ");
    (is_query && statement.root.sql().contains(" IN (SELECT ")).then(|| {
        let switch = "SET STATEMENT optimizer_switch='materialization=off' FOR ";
        let mut other = unindexed(statement).unwrap_or_else(|| statement.clone());
        other.root.texts[0].insert_str(0, switch);
        other
    })
}

/// The query with IFNULL around its condition; none where it has none.
pub fn guarded(statement: &Statement) -> Option<Statement> {
    let children = &statement.root.children;
    let is_condition = |it: &Node| it.role == Role::Clause && it.texts[0] == " WHERE ";
    let at = children.iter().position(is_condition)?;
    let inner = children[at].children[0].clone();
    let inner = Node::new(Role::Expression, &["IFNULL(", ", FALSE)"], vec![inner]);
    let root = statement.root.with(&[at, 0], inner);
    Some(Statement { root, ..statement.clone() })
}

/// The statement with NULLIF around comparisons with ANY and ALL; none where there is none.
pub fn nullable(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let is_quantified =
            |text: &String| text.ends_with(" ANY (SELECT ") || text.ends_with(" ALL (SELECT ");
        let texts = ["NULLIF(", ", 2)"];
        let is_it = node.texts.get(1).is_some_and(is_quantified);
        is_it.then(|| Node::new(Role::Expression, &texts, vec![node.clone()]))
    })
}

/// The statement with a comparison with each member in place of IN; none where there is none.
pub fn one_by_one(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        if node.texts.get(2).is_some_and(|text| text == ") IN ((") {
            return rows_one_by_one(node);
        }
        let is_list = node.texts.get(1).is_some_and(|text| text == " IN (");
        let [operand, members @ ..] = &node.children[..] else { return None };
        let equal = |member: &Node| {
            let pair = vec![operand.clone(), member.clone()];
            Node::new(Role::Expression, &["", " = ", ""], pair)
        };
        let mut texts = vec![" OR "; members.len() + 1];
        (texts[0], texts[members.len()]) = ("(", ")");
        is_list.then(|| Node::new(Role::Expression, &texts, members.iter().map(equal).collect()))
    })
}

/// A comparison of a row of two with each row of a list.
fn rows_one_by_one(node: &Node) -> Option<Node> {
    let [a, b, members @ ..] = &node.children[..] else { return None };
    let (rows, []) = members.as_chunks::<2>() else { return None };
    let equal = |row: &[Node; 2]| {
        let children = vec![a.clone(), b.clone(), row[0].clone(), row[1].clone()];
        Node::new(Role::Expression, &["((", ", ", ") = (", ", ", "))"], children)
    };
    let mut texts = vec![" OR "; rows.len() + 1];
    (texts[0], texts[rows.len()]) = ("(", ")");
    Some(Node::new(Role::Expression, &texts, rows.iter().map(equal).collect()))
}

/// The statement with the documents of JSON_OVERLAPS in the other order; none where there are none.
pub fn swapped(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let [first, second] = &node.children[..] else { return None };
        let children = vec![second.clone(), first.clone()];
        (node.texts[0] == "JSON_OVERLAPS(").then(|| Node { children, ..node.clone() })
    })
}

/// The statement with a minus before what is taken from zero; none where nothing is.
pub fn negated(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let [zero, value] = &node.children[..] else { return None };
        let is_taken = node.texts[1] == " - " && zero.children.is_empty() && zero.texts[0] == "0";
        is_taken.then(|| Node::new(Role::Expression, &["(- ", ")"], vec![value.clone()]))
    })
}

/// The change with CONCAT around what it stores in columns of text; none where it stores nothing
/// there.
pub fn stored_as_text(statement: &Statement) -> Option<Statement> {
    let root = &statement.root;
    let is_text = |name: &str| matches!(name, "name" | "lat" | "word");
    let mut places: Vec<Vec<usize>> = Vec::new();
    if let Some((_, names)) = root.texts[0].split_once(" (") {
        let names = names.split_once(')').map_or("", |(names, _)| names).split(", ");
        places.extend(names.enumerate().filter(|(_, name)| is_text(name)).map(|(at, _)| vec![at]));
    } else if let Some(assignments) = root.children.first() {
        let name = |node: &Node| {
            let (_, name) = node.texts[0].strip_suffix(" = ")?.split_once('.')?;
            is_text(name).then_some(())
        };
        let found = assignments.children.iter().enumerate();
        places.extend(found.filter_map(|(at, node)| name(node).map(|()| vec![0, at, 0])));
    }
    let with_text = |root: Node, place: &Vec<usize>| match root.at(place) {
        Some(value) if value.role == Role::Expression => {
            let text = Node::new(Role::Expression, &["CONCAT(", ")"], vec![value.clone()]);
            root.with(place, text)
        }
        _ => root,
    };
    let other = places.iter().fold(root.clone(), with_text);
    (other != *root).then(|| Statement { root: other, ..statement.clone() })
}

/// The same with sums in place of remainders and quotients, whose zeros may be below zero; none
/// where there are none.
pub fn without_zeros_below_zero(statement: &Statement) -> Option<Statement> {
    let summed = replaced::replaced(statement, &|node| {
        let operator = node.texts.get(1).map_or("", String::as_str);
        let is_it = matches!(operator, " % " | " MOD " | " / ") || node.texts[0] == "MOD(";
        is_it.then(|| Node::new(Role::Expression, &["(", " + 0)"], vec![node.clone()]))
    })?;
    stored_as_text(&summed)
}

/// The statement with values in place of its parameters; none where it has none.
pub fn unprepared(statement: &Statement) -> Option<Statement> {
    statement.prepared.then(|| Statement { prepared: false, ..statement.clone() })
}

/// A reply whose columns are called as those of another form of the statement: they are called by
/// the text of their expressions.
pub fn with_names_of(answered: &Reply, other: &[Told]) -> Reply {
    let mut answered = answered.clone()?;
    for (one, other) in answered.iter_mut().zip(other) {
        if let (Answer::Rows { columns, .. }, Answer::Rows { columns: others, .. }) =
            (&mut one.answer, &other.answer)
        {
            for (column, other) in columns.iter_mut().zip(others) {
                column.name.clone_from(&other.name);
            }
        }
    }
    Ok(answered)
}

/// Answers without the signs of zeros, also of those that are texts.
pub fn without_signs_of_zero(told: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for one in &mut told {
        let Answer::Rows { rows, .. } = &mut one.answer else { continue };
        for cell in rows.iter_mut().flatten().flatten() {
            let digits = cell.strip_prefix(b"-").unwrap_or_default();
            if digits.contains(&b'0') && digits.iter().all(|it| matches!(it, b'0' | b'.')) {
                cell.remove(0);
            }
        }
    }
    told
}

/// Whether two errors differ only in which side of a comparison they name first, and so in the
/// operator.
pub fn are_mirrored([here, there]: &[compare::Problem; 2]) -> bool {
    let parts = |(code, text): &compare::Problem| {
        let inner = text.strip_prefix("Illegal mix of collations (")?;
        let (sides, _) = inner.split_once(") for operation '")?;
        let (first, second) = sides.split_once(") and (")?;
        let mut sides = [first.to_string(), second.to_string()];
        sides.sort();
        Some((code.clone(), sides))
    };
    parts(here).is_some() && parts(here) == parts(there)
}

/// The query with its groups sorted; none where it has none.
pub fn sorted(statement: &Statement) -> Option<Statement> {
    let root = &statement.root;
    let is_group = |it: &Node| it.role == Role::Clause && it.texts[0] == " GROUP BY ";
    let is_grouped = root.texts[0] == "SELECT " && root.children.iter().any(is_group);
    is_grouped.then(|| {
        let mut sorted = statement.clone();
        sorted.root.texts[0] = "SELECT SQL_BIG_RESULT ".into();
        sorted
    })
}

/// The query with its groups told apart by their keys' texts; none where it has none.
pub fn texted(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let is_group = node.role == Role::Clause && node.texts[0] == " GROUP BY ";
        let key = node.children.first().filter(|key| is_group && key.role == Role::Expression)?;
        let texts = ["CONCAT(", ")"];
        Some(node.with(&[0], Node::new(Role::Expression, &texts, vec![key.clone()])))
    })
}

/// The query without conditions on its rows; none where it has none.
pub fn unconditional(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let is_condition = node.role == Role::Clause && node.texts[0] == " WHERE ";
        if is_condition && !node.children.is_empty() {
            return Some(Node::leaf(Role::Fixed, ""));
        }
        let is_join = node.role == Role::Source && node.texts.get(2).is_some_and(|it| it == " ON ");
        is_join.then(|| node.with(&[2], Node::leaf(Role::Expression, "TRUE")))
    })
}

/// The query with a constant in place of what it selects, where it groups; none where it does not.
pub fn itemless(statement: &Statement) -> Option<Statement> {
    let children = &statement.root.children;
    let is_group = |it: &Node| it.role == Role::Clause && it.texts[0] == " GROUP BY ";
    let items = children.iter().position(|it| it.role == Role::List);
    let at = items.filter(|_| children.iter().any(is_group))?;
    let one = Node::list(vec![Node::leaf(Role::Expression, "1")]);
    Some(Statement { root: statement.root.with(&[at], one), ..statement.clone() })
}

/// The query with one group of all rows; none where it does not group.
pub fn unkeyed(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let is_group = node.role == Role::Clause && node.texts[0] == " GROUP BY ";
        is_group.then(|| node.with(&[0], Node::leaf(Role::Expression, "NULL")))
    })
}

/// The query without HAVING; none where it has none.
pub fn ungrouped(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let is_having = node.role == Role::Clause && node.texts[0] == " HAVING ";
        is_having.then(|| Node::leaf(Role::Fixed, ""))
    })
}

/// The query without DISTINCT and its order; none where it has neither.
pub fn unordered(statement: &Statement) -> Option<Statement> {
    let root = &statement.root;
    let is_order = |it: &Node| it.role == Role::Clause && it.texts[0] == TOTAL_ORDER;
    let is_distinct = root.texts[0] == "SELECT DISTINCT ";
    if !is_distinct && !root.children.iter().any(is_order) {
        return None;
    }
    let mut plain = statement.clone();
    if is_distinct {
        plain.root.texts[0] = "SELECT ".into();
    }
    for child in plain.root.children.iter_mut().filter(|it| is_order(it)) {
        *child = Node::leaf(Role::Fixed, "");
    }
    Some(plain)
}

/// The query with inner joins in place of outer ones; none where it has none.
pub fn inner(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &|node| {
        let joint = node.texts.get(1)?;
        let is_outer = matches!(joint.as_str(), " LEFT JOIN " | " RIGHT JOIN ");
        (node.role == Role::Source && is_outer).then(|| {
            let mut inner = node.clone();
            inner.texts[1] = " JOIN ".into();
            inner
        })
    })
}

/// Whether Gannet says that columns may be NULL, of which MariaDB says that they are not, and not
/// the other way round.
pub fn is_nullable_here(ours: &Reply, theirs: &[Told]) -> bool {
    let Some(Told { answer: Answer::Rows { columns: here, .. }, .. }) =
        ours.as_ref().ok().and_then(|ours| ours.first())
    else {
        return false;
    };
    let Some(Told { answer: Answer::Rows { columns: there, .. }, .. }) = theirs.first() else {
        return false;
    };
    let is_said = |flags: u16| flags & compare::NOT_NULL != 0;
    here.iter().zip(there).all(|(here, there)| !is_said(here.flags) || is_said(there.flags))
}

/// Whether Gannet's rows are, each once, those that both servers answer to some queries, whatever
/// zeros stand at the end of a number.
pub fn are_distinct_rows(answered: &Reply, queries: &[(Statement, Reply, Vec<Told>)]) -> bool {
    let is_same = |(query, ours, theirs): &(Statement, Reply, Vec<Told>)| {
        composed::have_same_rows(query, ours, theirs)
    };
    let plain = |row: &Row| -> Row { row.iter().map(without_zeros).collect() };
    let all = queries.iter().filter_map(|(_, ours, _)| compare::rows_of(ours));
    let all: BTreeSet<Row> = all.flatten().map(plain).collect();
    let rows = compare::rows_of(answered).unwrap_or_default();
    let distinct: BTreeSet<Row> = rows.iter().map(plain).collect();
    !queries.is_empty()
        && queries.iter().all(is_same)
        && distinct.len() == rows.len()
        && distinct == all
}

/// A cell without the zeros at the end of a number's fraction.
pub fn without_zeros(cell: &Field) -> Field {
    let text = std::str::from_utf8(cell.as_deref()?).ok();
    let shortened = text.and_then(|text| {
        let (whole, fraction) = text.split_once('.')?;
        let digits = whole.strip_prefix('-').unwrap_or(whole);
        let is_number = !digits.is_empty()
            && digits.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        is_number.then(|| format!("{whole}{point}{fraction}").into_bytes())
    });
    shortened.or_else(|| cell.clone())
}

/// What the last of many digits of a number counts.
fn last_digit(cell: &Field) -> f64 {
    const MANY: usize = 12;
    let text = cell.as_deref().and_then(numeral).map(|(number, _)| number);
    let digits = text.and_then(|text| text.split_once('.')).map_or(0, |(_, digits)| digits.len());
    if digits < MANY { 0.0 } else { 10f64.powi(-(digits as i32)) }
}

/// A number, and what stands behind it in the same cell, such as what CONCAT puts there.
pub fn numeral(cell: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(cell).ok()?;
    if text.parse::<f64>().is_ok() {
        return Some((text, ""));
    }
    let is_other = |it: char| !it.is_ascii_digit() && it != '.' && it != '-';
    let (number, rest) = text.split_at(text.find(is_other)?);
    number.parse::<f64>().is_ok().then_some((number, rest))
}

/// Whether two answers have the same rows but for the last digits of numbers.
pub fn are_near(ours: &Reply, others: &Reply) -> bool {
    /// Of what is shown with few digits.
    const SHARE: f64 = 1e-9;
    let (Ok(ours), Ok(others)) = (ours, others) else { return false };
    let mut answers = ours.iter().chain(others).map(|told| &told.answer);
    let is_answered = answers.all(|answer| !matches!(answer, Answer::Error(_)));
    let rest = |cell: &Field| Some(numeral(cell.as_deref()?)?.1.to_string());
    let number = |cell: &Field| numeral(cell.as_deref()?)?.0.parse::<f64>().ok();
    let is_near = |(a, b): (&Field, &Field)| {
        let last = last_digit(a).max(last_digit(b));
        let near = number(a).zip(number(b)).map(|(a, b)| (a - b).abs() <= last + SHARE * a.abs());
        a == b || near == Some(true) && rest(a) == rest(b)
    };
    // Texts of numbers are ordered otherwise than numbers.
    let by_cells = |a: &Row, b: &Row| {
        let pairs = a.iter().zip(b).map(|(a, b)| match (number(a), number(b)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => a.cmp(b),
        });
        pairs.fold(Ordering::Equal, Ordering::then)
    };
    let in_order = |told: &[Told]| {
        let mut rows = compare::sorted_rows(told);
        rows.sort_by(by_cells);
        rows
    };
    let (ours, others) = (in_order(ours), in_order(others));
    let is_alike = |(a, b): (&Row, &Row)| a.len() == b.len() && a.iter().zip(b).all(is_near);
    is_answered && ours.len() == others.len() && ours.iter().zip(&others).all(is_alike)
}

#[cfg(test)]
mod tests {
    use super::super::statements::Kind;
    use super::*;

    fn leaf(text: &str) -> Node {
        Node::leaf(Role::Expression, text)
    }

    fn query(root: Node) -> Statement {
        Statement { kind: Kind::Query, root, prepared: false }
    }

    #[test]
    fn tables_are_read_without_indexes() {
        let children = ["t1 AS a1", "t2 AS a2"].map(|text| Node::leaf(Role::Source, text));
        let from = Node::new(Role::Source, &["", ", ", ""], children.to_vec());
        let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![leaf("1"), from]);
        let text = unindexed(&query(root)).map(|it| it.root.sql());
        let wanted = "SELECT 1 FROM t1 AS a1 USE INDEX (), t2 AS a2 USE INDEX ()";
        assert_eq!(text.as_deref(), Some(wanted));
        assert!(unindexed(&query(leaf("SELECT 1"))).is_none());
    }

    #[test]
    fn groups_are_sorted_and_orders_left_out() {
        let with = |head: &str, clause: Node| {
            let source = Node::leaf(Role::Source, "t1 AS a1");
            let texts = [head, " FROM ", "", ""];
            query(Node::new(Role::Fixed, &texts, vec![leaf("a1.x"), source, clause]))
        };
        let group = Node::clause(" GROUP BY ", Some(leaf("a1.y")), "");
        let order = Node::new(Role::Clause, &[TOTAL_ORDER, ", a1.id"], vec![leaf("a1.y")]);
        let none = Node::clause(" GROUP BY ", None, "");
        let text = |it: Option<Statement>| it.map(|it| it.root.sql());
        let grouped = "SELECT SQL_BIG_RESULT a1.x FROM t1 AS a1 GROUP BY a1.y";
        assert_eq!(text(sorted(&with("SELECT ", group))).as_deref(), Some(grouped));
        assert_eq!(text(sorted(&with("SELECT ", none.clone()))), None);
        let plain = "SELECT a1.x FROM t1 AS a1";
        assert_eq!(text(unordered(&with("SELECT ", order))).as_deref(), Some(plain));
        assert_eq!(
            text(unordered(&with("SELECT DISTINCT ", none.clone()))).as_deref(),
            Some(plain)
        );
        assert_eq!(text(unordered(&with("SELECT ", none))), None);
    }

    #[test]
    fn zeros_at_the_end_of_a_fraction_go() {
        let plain = |text: &str| {
            let cell = without_zeros(&Some(text.as_bytes().to_vec()));
            String::from_utf8(cell.unwrap()).unwrap()
        };
        assert_eq!(plain("122.0"), "122");
        assert_eq!(plain("-1.250"), "-1.25");
        assert_eq!(plain("100"), "100");
        assert_eq!(plain("a.0"), "a.0");
        assert_eq!(plain("1.2.0"), "1.2.0");
        assert_eq!(without_zeros(&None), None);
    }

    fn told(rows: &[&str]) -> Told {
        let rows = rows.iter().map(|text| vec![Some(text.as_bytes().to_vec())]).collect();
        let columns = vec![compare::tests::column_of(246)];
        let (status, warnings, changes) = (0, 0, Vec::new());
        let answer = Answer::Rows { columns, rows, status, warnings, changes };
        Told { answer, warnings: Vec::new() }
    }

    #[test]
    fn a_planted_row_is_not_among_the_distinct_ones() {
        let query = query(leaf("SELECT 1"));
        let are = |own: &[&str], here: &[&str], there: &[&str]| {
            let queries = [(query.clone(), Ok(vec![told(here)]), vec![told(there)])];
            are_distinct_rows(&Ok(vec![told(own)]), &queries)
        };
        let all = ["1.0", "2.5", "1.0"];
        assert!(are(&["2.50", "1"], &all, &all));
        assert!(!are(&["2.50"], &all, &all));
        assert!(!are(&["2.50", "1", "3"], &all, &all));
        assert!(!are(&["2.50", "1", "1.0"], &all, &all));
        assert!(!are(&["2.50", "1"], &all, &["1.0", "2.5"]));
    }

    #[test]
    fn only_the_last_digits_are_near() {
        let near = |a: &[&str], b: &[&str]| are_near(&Ok(vec![told(a)]), &Ok(vec![told(b)]));
        assert!(near(&["20240229123456.789012", "3"], &["20240229123456.7890120000", "3.0"]));
        assert!(!near(&["20240229123456.789012"], &["20240229023456.789012"]));
        assert!(near(&["0.000000000000000000000000000009"], &["0.00000000000000000000"]));
        assert!(!near(&["0.000009"], &["0.000000"]));
        assert!(!near(&["1"], &["1", "2"]));
        assert!(!near(&["a"], &["b"]));
    }
}
