//! The parts of a statement, each as a query of its own. A server may look at a part at another
//! moment than the other, more often or not at all, and so warn or fail where the other does not;
//! but what it says must be what both say of the part when it is selected alone.
//!
//! 1. A part is an expression of the statement, whose subqueries are replaced by the values that
//!    they select, so that it is evaluated for all rows of all tables that it names.
//! 2. Parts of parts are parts and come before them: AND, IF and the like do not keep one from
//!    being evaluated.
//! 3. Every part is also one where it is a condition, and a date also where it is
//!    compared: there it is read otherwise.

use super::statements::{Kind, Statement, TARGET};
use super::tree::{Node, Role};

/// More parts than a shrunk statement has.
const PARTS_MAX: usize = 120;

/// The parts of a statement, small ones first; none if there are too many.
pub fn parts(statement: &Statement) -> Vec<Statement> {
    let mut found: Vec<Node> = Vec::new();
    let mut add = |part: Node| {
        if !found.contains(&part) {
            found.push(part);
        }
    };
    for path in statement.root.paths() {
        let Some(node) = statement.root.at(&path) else { continue };
        match node.role {
            Role::Expression if node.children.is_empty() => {
                add(selected(&statement.root, &["SELECT (", " IS TRUE)"], "", node.clone()));
                add(selected(&statement.root, &["SELECT 1", ""], " WHERE ", node.clone()));
            }
            Role::Aggregate => {
                add(selected(&statement.root, &["SELECT ", ""], "", flattened(node)));
            }
            Role::Expression if !has_aggregate(node) => {
                let value = flattened(node);
                if value.sql().contains("DATE") || value.sql().contains("TIME") {
                    let compared = ["SELECT (", " = CURRENT_DATE)"];
                    add(selected(&statement.root, &compared, "", value.clone()));
                }
                add(selected(&statement.root, &["SELECT (", " IS TRUE)"], "", value.clone()));
                add(selected(&statement.root, &["SELECT ", ""], "", value));
            }
            _ => {}
        }
    }
    if found.len() > PARTS_MAX {
        return Vec::new();
    }
    found.sort_by_key(|part| part.sql().len());
    let query = |root| Statement { kind: Kind::Query, root, prepared: statement.prepared };
    found.into_iter().map(query).collect()
}

/// A query of a value, or with it as its condition, over the tables that it names.
fn selected(root: &Node, texts: &[&str; 2], condition: &str, value: Node) -> Node {
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

fn has_aggregate(node: &Node) -> bool {
    node.role == Role::Aggregate || node.children.iter().any(has_aggregate)
}

/// An expression with the values of subqueries in their place.
fn flattened(node: &Node) -> Node {
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
            Node { role: node.role, texts: node.texts.clone(), children }
        }
    }
}

/// The aliases of tables that a text names, each once: `a` and a number, and a point behind.
fn aliases(text: &str) -> Vec<String> {
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
    let end = format!(" AS {alias}");
    for path in root.paths() {
        let node = root.at(&path)?;
        let is_table = node.texts.last().is_some_and(|text| text.ends_with(&end));
        if is_table && matches!(node.role, Role::Source | Role::Fixed) {
            return Some(node.sql());
        }
    }
    Some(format!("{TARGET} AS {alias}"))
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
        parts(&statement).iter().map(|part| part.root.sql()).collect()
    }

    #[test]
    fn a_condition_and_its_parts_are_asked_over_their_tables() {
        let equal = Node::new(Role::Expression, &["(", " = ", ")"], vec![leaf("a1.x"), leaf("1")]);
        let both = Node::new(Role::Expression, &["(", " AND ", ")"], vec![equal, leaf("a2.y")]);
        let source = |text| Node::leaf(Role::Source, text);
        let children = vec![source("t1 AS a1"), source("t2 AS a2"), both];
        let from = Node::new(Role::Source, &["(", " JOIN ", " ON ", ")"], children);
        let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![leaf("1"), from]);
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
        assert_eq!(texts(root), expected);
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
        let grammar = Grammar::load().unwrap();
        let mut seen = 0;
        for seed in 0..600 {
            let statement = Generator::new(&grammar, seed, 3).statement();
            for part in parts(&statement) {
                let text = part.root.sql();
                for alias in aliases(&text) {
                    assert!(text.contains(&format!(" AS {alias}")), "{text}");
                }
                seen += 1;
            }
        }
        assert!(seen > 1_000, "{seen}");
    }
}
