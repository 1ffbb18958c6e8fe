//! The parts of a statement, each as a query of its own. A server may look at a part at another
//! moment than the other, more often or not at all, and so warn or fail where the other does not;
//! but what it says must be what both say of the part when it is selected alone.
//!
//! 1. A part is an expression of the statement, whose subqueries are replaced by the values that
//!    they select, so that it is evaluated for all rows of all tables that it names.
//! 2. Parts of parts are parts and come before them: AND, IF and the like do not keep one from
//!    being evaluated.
//! 3. Every part is also one where it is a condition or a number, and a date also where it is
//!    compared: there it is read otherwise.
//!    A subquery that reads nothing around it is a part as it stands, too.
//! 4. What is compared with several others is compared with each of them, and columns that
//!    NATURAL JOIN compares are compared.

use super::statements::{Kind, Statement, TARGET};
use super::tree::{Node, Role};

/// More parts than a shrunk statement has.
const PARTS_MAX: usize = 240;

/// A part of a statement.
#[derive(Clone, Debug)]
pub struct Part {
    /// The query that selects it.
    pub query: Statement,
    /// It is what the statement says, not read as something else: both servers must agree on it.
    pub is_own: bool,
}

/// The parts of a statement, small ones first; none if there are too many.
pub fn parts(statement: &Statement) -> Vec<Part> {
    let mut found: Vec<(Node, bool)> = Vec::new();
    let mut add_as = |part: Node, is_own: bool| {
        if !found.iter().any(|(known, _)| *known == part) {
            found.push((part, is_own));
        }
    };
    for path in statement.root.paths() {
        let Some(node) = statement.root.at(&path) else { continue };
        match node.role {
            Role::Expression if node.children.is_empty() => {
                let root = &statement.root;
                add_as(selected(root, &["SELECT (", " IS TRUE)"], "", node.clone()), true);
                add_as(selected(root, &["SELECT 1", ""], " WHERE ", node.clone()), true);
                add_as(selected(root, &AS_NUMBER, "", node.clone()), false);
                add_as(selected(root, &AS_DOUBLE, "", node.clone()), false);
            }
            Role::Source => {
                for pair in joined_pairs(node) {
                    add_as(selected(&statement.root, &["SELECT ", ""], "", pair), true);
                }
            }
            Role::Aggregate => {
                add_as(selected(&statement.root, &["SELECT ", ""], "", flattened(node)), true);
            }
            Role::Expression if !has_aggregate(node) => {
                if is_closed_subquery(node) {
                    let texts = ["SELECT ", ""];
                    add_as(Node::new(Role::Fixed, &texts, vec![node.clone()]), true);
                }
                let (root, value) = (&statement.root, flattened(node));
                if value.sql().contains("DATE") || value.sql().contains("TIME") {
                    let compared = ["SELECT (", " = CURRENT_DATE)"];
                    add_as(selected(root, &compared, "", value.clone()), true);
                }
                add_as(selected(root, &["SELECT (", " IS TRUE)"], "", value.clone()), true);
                add_as(selected(root, &AS_NUMBER, "", value.clone()), false);
                add_as(selected(root, &AS_DOUBLE, "", value.clone()), false);
                for pair in compared_pairs(&value) {
                    add_as(selected(root, &["SELECT ", ""], "", pair), false);
                }
                add_as(selected(root, &["SELECT ", ""], "", value), true);
            }
            _ => {}
        }
    }
    if found.len() > PARTS_MAX {
        return Vec::new();
    }
    found.sort_by_key(|(part, _)| part.sql().len());
    let query = |root| Statement { kind: Kind::Query, root, prepared: statement.prepared };
    found.into_iter().map(|(root, is_own)| Part { query: query(root), is_own }).collect()
}

/// The query that tells of each row whether the condition of a plain query is true.
pub fn condition_selected(statement: &Statement) -> Option<Statement> {
    let [_, from, condition, rest @ ..] = &statement.root.children[..] else { return None };
    let is_plain = statement.root.texts[0] == "SELECT "
        && from.role == Role::Source
        && rest.iter().all(|it| it.sql().is_empty());
    if !is_plain || condition.role != Role::Clause || condition.texts[0] != " WHERE " {
        return None;
    }
    let children = vec![condition.children[0].clone(), from.clone()];
    let root = Node::new(Role::Fixed, &["SELECT (", " IS TRUE) FROM ", ""], children);
    Some(Statement { kind: Kind::Query, root, prepared: statement.prepared })
}

/// A part as a number, which text is read as.
const AS_NUMBER: [&str; 2] = ["SELECT CAST(CONCAT(", ") AS DECIMAL(65,30))"];

/// The same as a DOUBLE.
const AS_DOUBLE: [&str; 2] = ["SELECT CAST(CONCAT(", ") AS DOUBLE)"];

/// The comparisons that BETWEEN, IN, CASE and rows are made of, each alone.
fn compared_pairs(node: &Node) -> impl Iterator<Item = Node> {
    let words = [" BETWEEN ", " IN (", "CASE ", ") = ("];
    let compares = node.texts.iter().any(|text| words.iter().any(|word| text.contains(word)));
    let sides = if compares { node.children.as_slice() } else { &[] };
    let pairs = sides.iter().enumerate().flat_map(|(position, left)| {
        sides[position + 1..].iter().map(move |right| vec![left.clone(), right.clone()])
    });
    pairs.map(|pair| Node::new(Role::Expression, &["(", " = ", ")"], pair))
}

/// The comparisons of columns of derived tables that NATURAL JOIN makes.
fn joined_pairs(node: &Node) -> Vec<Node> {
    let [left, right] = &node.children[..] else { return Vec::new() };
    if node.texts[1] != " NATURAL JOIN " {
        return Vec::new();
    }
    let (left, right) = (left.sql(), right.sql());
    let alias = |source: &str| source.rsplit(' ').next().unwrap_or_default().to_string();
    let (here, there) = (alias(&left), alias(&right));
    let names = ["c0", "c1"].into_iter().filter(|name| {
        let end = format!(" AS {name}");
        left.contains(&end) && right.contains(&end)
    });
    let column = |alias: &str, name| Node::leaf(Role::Expression, format!("{alias}.{name}"));
    let pair = |name| vec![column(&here, name), column(&there, name)];
    // Also for the rows that the derived tables leave out.
    let [one, other] = [&node.children[0], &node.children[1]];
    let values = |name| Some(vec![column_value(one, name)?, column_value(other, name)?]);
    let pairs = names.flat_map(|name| [Some(pair(name)), values(name)].into_iter().flatten());
    pairs.map(|pair| Node::new(Role::Expression, &["(", " = ", ")"], pair)).collect()
}

/// What a derived table selects as a column.
fn column_value(table: &Node, name: &str) -> Option<Node> {
    let end = format!(" AS {name}");
    let nodes = table.paths().into_iter().filter_map(|path| table.at(&path));
    let mut items = nodes.filter(|node| node.texts.last() == Some(&end));
    items.find_map(|node| node.children.first().cloned())
}

/// A query of a value, or with it as its condition, over the tables that it names.
pub fn selected(root: &Node, texts: &[&str; 2], condition: &str, value: Node) -> Node {
    let names = aliases(&value.sql());
    let tables: Vec<String> = names.iter().filter_map(|alias| table(root, alias)).collect();
    let from = match tables.is_empty() {
        true => String::new(),
        false => format!(" FROM {}", tables.join(", ")),
    };
    let texts = match condition.is_empty() {
        true => [texts[0].to_string(), format!("{}{from}", texts[1])],
        false => [format!("{}{from}{condition}", texts[0]), texts[1].to_string()],
    };
    Node::new(Role::Fixed, &texts, vec![value])
}

/// Whether a node selects a value from tables of its own alone.
fn is_closed_subquery(node: &Node) -> bool {
    let is_subquery = node.texts[0] == "(SELECT "
        && node.children.get(1).is_some_and(|child| child.role == Role::Source);
    is_subquery && aliases(&node.sql()).iter().all(|alias| table_path(node, alias).is_some())
}

fn has_aggregate(node: &Node) -> bool {
    node.role == Role::Aggregate || node.children.iter().any(has_aggregate)
}

/// An expression with the values of subqueries in their place.
pub fn flattened(node: &Node) -> Node {
    let child = |position: usize| flattened(&node.children[position]);
    match node.children.iter().position(|child| child.role == Role::Source) {
        Some(0) => Node::leaf(Role::Expression, "TRUE"),
        Some(1) if node.role == Role::Expression => child(0),
        Some(2) if node.role == Role::Expression => {
            let operator = if node.texts[1].contains("ANY") { " > " } else { " = " };
            Node::new(Role::Expression, &["(", operator, ")"], vec![child(0), child(1)])
        }
        _ => {
            let children = node.children.iter().map(flattened).collect();
            Node { texts: node.texts.clone(), children, ..*node }
        }
    }
}

/// The aliases of tables that a text names, each once: `a` and a number, and a point behind.
pub fn aliases(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
    let mut found: Vec<String> = Vec::new();
    for word in words {
        let Some((alias, _)) = word.split_once('.') else { continue };
        let number = alias.strip_prefix('a').unwrap_or_default();
        let is_alias = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_alias && !found.iter().any(|known| known == alias) {
            found.push(alias.into());
        }
    }
    found
}

/// The table or derived table that has an alias.
fn table(root: &Node, alias: &str) -> Option<String> {
    let named = table_path(root, alias).and_then(|path| root.at(&path)).map(Node::sql);
    named.or_else(|| Some(format!("{TARGET} AS {alias}")))
}

/// Where a query names the table or derived table that has an alias.
pub fn table_path(root: &Node, alias: &str) -> Option<Vec<usize>> {
    let end = format!(" AS {alias}");
    root.paths().into_iter().find(|path| {
        root.at(path).is_some_and(|node| {
            let is_named = node.texts.last().is_some_and(|text| text.ends_with(&end));
            is_named && matches!(node.role, Role::Source | Role::Fixed)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::expressions::Generator;
    use super::super::grammar::Grammar;
    use super::*;

    fn leaf(text: &str) -> Node {
        Node::leaf(Role::Expression, text)
    }

    fn texts(root: Node) -> Vec<String> {
        let statement = Statement { kind: Kind::Query, root, prepared: false };
        parts(&statement).iter().map(|part| part.query.root.sql()).collect()
    }

    #[test]
    fn columns_of_a_natural_join_are_compared() {
        let derived = |value: &str, alias: &str| {
            let item = Node::new(Role::Fixed, &["", " AS c0"], vec![leaf(value)]);
            let source = Node::leaf(Role::Source, "t1 AS a1");
            let end = format!(") AS {alias}");
            let texts = ["(SELECT id, ", " FROM ", end.as_str()];
            Node::new(Role::Fixed, &texts, vec![Node::list(vec![item]), source])
        };
        let sides = vec![derived("'a'", "a2"), derived("1", "a3")];
        let join = Node::new(Role::Source, &["", " NATURAL JOIN ", ""], sides);
        let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![leaf("2"), join]);
        let texts = texts(root);
        assert!(texts.iter().any(|text| text.starts_with("SELECT (a2.c0 = a3.c0) FROM ")));
        let table = Node::leaf(Role::Source, "t1 AS a2");
        let sides = vec![table, derived("1", "a3")];
        let join = Node::new(Role::Source, &["", " NATURAL JOIN ", ""], sides);
        assert!(joined_pairs(&join).is_empty());
    }

    #[test]
    fn a_condition_and_its_parts_are_asked_over_their_tables() {
        let equal = Node::new(Role::Expression, &["(", " = ", ")"], vec![leaf("a1.x"), leaf("1")]);
        let both = Node::new(Role::Expression, &["(", " AND ", ")"], vec![equal, leaf("a2.y")]);
        let source = |text| Node::leaf(Role::Source, text);
        let children = vec![source("t1 AS a1"), source("t2 AS a2"), both];
        let from = Node::new(Role::Source, &["(", " JOIN ", " ON ", ")"], children);
        let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![leaf("1"), from]);
        let texts = texts(root);
        let as_numbers = texts.iter().filter(|text| text.contains("AS DECIMAL")).count();
        assert_eq!(as_numbers, 5);
        let is_plain = |text: &&String| !text.contains("AS DECIMAL") && !text.contains("AS DOUBLE");
        let plain: Vec<_> = texts.iter().filter(is_plain).collect();
        let expected = [
            "SELECT 1 WHERE 1",
            "SELECT (1 IS TRUE)",
            "SELECT (a1.x = 1) FROM t1 AS a1",
            "SELECT 1 FROM t1 AS a1 WHERE a1.x",
            "SELECT 1 FROM t2 AS a2 WHERE a2.y",
            "SELECT (a1.x IS TRUE) FROM t1 AS a1",
            "SELECT (a2.y IS TRUE) FROM t2 AS a2",
            "SELECT ((a1.x = 1) IS TRUE) FROM t1 AS a1",
            "SELECT ((a1.x = 1) AND a2.y) FROM t1 AS a1, t2 AS a2",
            "SELECT (((a1.x = 1) AND a2.y) IS TRUE) FROM t1 AS a1, t2 AS a2",
        ];
        assert_eq!(plain, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_is_compared_with_several_is_compared_with_each() {
        let children = vec![leaf("a1.x"), leaf("'a'"), leaf("2")];
        let between = Node::new(Role::Expression, &["(", " BETWEEN ", " AND ", ")"], children);
        let source = Node::leaf(Role::Source, "t1 AS a1");
        let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![between, source]);
        let found = texts(root);
        for pair in ["(a1.x = 'a') FROM t1 AS a1", "(a1.x = 2) FROM t1 AS a1", "('a' = 2)"] {
            assert!(found.contains(&format!("SELECT {pair}")), "{pair} of {found:?}");
        }
    }

    #[test]
    fn the_condition_of_a_plain_query_is_selected() {
        let source = Node::leaf(Role::Source, "t1 AS a1");
        let clause = Node::clause(" WHERE ", Some(leaf("a1.x")), "");
        let children = vec![Node::list(vec![leaf("NULL")]), source, clause];
        let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
        let query = Statement { kind: Kind::Query, root, prepared: false };
        let text = condition_selected(&query).map(|it| it.root.sql());
        assert_eq!(text.as_deref(), Some("SELECT (a1.x IS TRUE) FROM t1 AS a1"));
        let mut distinct = query.clone();
        distinct.root.texts[0] = "SELECT DISTINCT ".into();
        assert!(condition_selected(&distinct).is_none());
    }

    #[test]
    fn a_subquery_is_its_values() {
        let source = Node::leaf(Role::Source, "t2 AS a2");
        let texts_of_in = ["(", " IN (SELECT ", " FROM ", "))"];
        let inside =
            Node::new(Role::Expression, &texts_of_in, vec![leaf("a1.x"), leaf("a2.y"), source]);
        let head = "DELETE a1 FROM t4 AS a1 WHERE ";
        let root = Node::new(Role::Fixed, &[head, ""], vec![inside]);
        let wanted = "SELECT (a1.x = a2.y) FROM t4 AS a1, t2 AS a2";
        assert!(texts(root).iter().any(|text| text == wanted));
    }

    #[test]
    fn parts_name_only_tables_that_they_read() {
        let grammar = Grammar::load(true).unwrap();
        let mut seen = 0;
        for seed in 0..600 {
            let statement = Generator::new(&grammar, seed, None).statement();
            for part in parts(&statement) {
                let text = part.query.root.sql();
                for alias in aliases(&text) {
                    assert!(text.contains(&format!(" AS {alias}")), "{text}");
                }
                seen += 1;
            }
        }
        assert!(seen > 1_000, "{seen}");
    }

    #[test]
    fn a_subquery_that_reads_nothing_around_it_is_a_part() {
        let subquery = |value: &str| {
            let children = vec![leaf(value), Node::leaf(Role::Source, "t2 AS a2")];
            Node::new(Role::Expression, &["(SELECT ", " FROM ", ")"], children)
        };
        let query = |value: &str| {
            let call = Node::new(Role::Expression, &["INTERVAL(", ", 2)"], vec![subquery(value)]);
            let from = Node::leaf(Role::Source, "t1 AS a1");
            let items = Node::list(vec![call]);
            Node::new(Role::Fixed, &["SELECT ", " FROM ", " WHERE FALSE"], vec![items, from])
        };
        let alone = "SELECT (SELECT a2.id FROM t2 AS a2)";
        assert!(texts(query("a2.id")).iter().any(|text| text == alone));
        assert!(!texts(query("a1.id")).iter().any(|text| text.starts_with("SELECT (SELECT a1")));
    }
}
