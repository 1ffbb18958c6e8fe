//! Makes a statement smaller while it still shows the same difference.

use super::statements::Statement;
use super::tree::{Node, Role};

/// Values that a part of an expression is replaced by, the plainest first.
const PLAIN: [&str; 10] =
    ["NULL", "1", "0", "'a'", "''", "1.5", "1e0", "-1", "DATE'2024-02-29'", "TIME'10:11:12'"];

/// Values that a part of an expression of a family is replaced by: others would make it an
/// expression of another type.
fn plain_of(family: &str) -> &'static [&'static str] {
    match family {
        "" => &PLAIN,
        "int" => &["1", "0", "-1"],
        "decimal" => &["1.5", "0.5"],
        "double" => &["1e0"],
        "text" => &["'a'", "''"],
        "binary" => &["x'41'"],
        "date" => &["DATE'2024-02-29'"],
        "datetime" => &["TIMESTAMP'2024-02-29 00:00:00'"],
        "time" => &["TIME'10:11:12'"],
        "truth" => &["TRUE"],
        "json" => &["'{}'"],
        _ => &[],
    }
}

/// Trials of one statement; a statement of some dozen nodes needs a few hundred.
const TRIALS_MAX: usize = 600;

/// The smallest statement that was found for which `shows` holds, as it does for the given one.
pub fn shrink(statement: &Statement, shows: &mut dyn FnMut(&Statement) -> bool) -> Statement {
    let mut best = statement.clone();
    let mut trials = 0;
    if best.prepared {
        let text = Statement { prepared: false, ..best.clone() };
        if shows(&text) {
            best = text;
        }
    }
    while let Some(smaller) = step(&best, shows, &mut trials) {
        best = smaller;
    }
    best
}

/// One replacement that keeps the difference.
fn step(
    statement: &Statement,
    shows: &mut dyn FnMut(&Statement) -> bool,
    trials: &mut usize,
) -> Option<Statement> {
    for path in statement.root.paths() {
        let node = statement.root.at(&path)?;
        for other in smaller(node) {
            if *trials >= TRIALS_MAX {
                return None;
            }
            *trials += 1;
            let root = statement.root.with(&path, other);
            let trial = Statement { root, ..statement.clone() };
            if shows(&trial) {
                return Some(trial);
            }
        }
    }
    None
}

/// What can stand in place of a node; each is smaller or plainer, so that shrinking ends.
fn smaller(node: &Node) -> Vec<Node> {
    let mut others = Vec::new();
    let fits = |it: &&Node| node.family.is_empty() || it.family == node.family;
    let children_of =
        |role: Role| node.children.iter().filter(move |it| it.role == role).filter(fits).cloned();
    match node.role {
        Role::Clause => others.push(Node::leaf(Role::Fixed, "")),
        Role::List if node.children.len() > 1 => {
            for left_out in 0..node.children.len() {
                let mut members = node.children.clone();
                members.remove(left_out);
                others.push(Node::list(members));
            }
        }
        Role::Query => {
            others.extend(children_of(Role::Query));
            others.extend(narrower(node));
        }
        Role::Source => others.extend(children_of(Role::Source)),
        Role::Aggregate => others.extend(children_of(Role::Aggregate)),
        Role::Expression => {
            others.extend(children_of(Role::Expression));
            // A literal is replaced only by plainer ones, a column or more by all.
            let text = node.sql();
            let plainer = plain_of(node.family).iter().take_while(|plain| **plain != text);
            let leaf = |plain: &&str| Node::leaf(Role::Expression, *plain).of(node.family);
            others.extend(plainer.map(leaf));
        }
        Role::Fixed => others.extend(without_table(node)),
        Role::List | Role::Words => {}
    }
    others
}

/// A query without its table and what follows.
fn without_table(node: &Node) -> Option<Node> {
    let [items, from, ..] = &node.children[..] else { return None };
    let fits = items.role == Role::List && from.role == Role::Source;
    let head = node.texts[0].as_str();
    fits.then(|| Node::new(Role::Fixed, &[head, ""], vec![items.clone()]))
}

/// A UNION with one column less in each of its parts.
fn narrower(node: &Node) -> Vec<Node> {
    let width = |part: &Node| part.children.first().map_or(0, |list| list.children.len());
    let widths: Vec<usize> = node.children.iter().map(width).collect();
    let Some(&first) = widths.first() else { return Vec::new() };
    let is_union = node.children.iter().all(|part| part.role == Role::Query);
    if !is_union || first < 2 || widths.iter().any(|other| *other != first) {
        return Vec::new();
    }
    let without = |left_out: usize| {
        let mut smaller = node.clone();
        for part in &mut smaller.children {
            let mut members = part.children[0].children.clone();
            members.remove(left_out);
            part.children[0] = Node::list(members);
        }
        smaller
    };
    (0..first).map(without).collect()
}

#[cfg(test)]
mod tests {
    use super::super::expressions::Generator;
    use super::super::grammar::Grammar;
    use super::super::statements::Kind;
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let grammar = Grammar::load(false).unwrap();
        let mut shrunk = 0;
        for seed in 0..2_400 {
            let statement = Generator::new(&grammar, seed, None).statement();
            if !statement.root.sql().contains("LOWER(") || statement.kind == Kind::Change {
                continue;
            }
            let small = shrink(&statement, &mut |it| it.root.sql().contains("LOWER("));
            let text = small.root.sql();
            assert!(text.contains("LOWER(") && text.len() < 120, "{text}");
            shrunk += 1;
        }
        assert!(shrunk > 10, "{shrunk}");
    }

    #[test]
    fn what_is_smaller_is_of_the_same_family() {
        let leaf = |text: &str, family| Node::leaf(Role::Expression, text).of(family);
        let choice = Node::new(
            Role::Expression,
            &["IF(", ", ", ", ", ")"],
            vec![leaf("a1.t", "truth"), leaf("a1.d", "date"), leaf("a1.n", "int")],
        );
        let texts = |family| -> Vec<String> {
            smaller(&choice.clone().of(family)).iter().map(Node::sql).collect()
        };
        assert_eq!(texts("date"), ["a1.d", "DATE'2024-02-29'"]);
        assert_eq!(texts("").len(), 3 + PLAIN.len());
    }

    #[test]
    fn a_clause_a_member_and_a_part_of_a_union_go() {
        let leaf = |text: &str| Node::leaf(Role::Expression, text);
        let part = || {
            let items = Node::list(vec![leaf("x"), leaf("y")]);
            Node::new(Role::Query, &["SELECT ", ""], vec![items])
        };
        let union = Node::new(Role::Query, &["", " UNION ", ""], vec![part(), part()]);
        let statement = Statement { kind: Kind::Query, root: union, prepared: true };
        let small = shrink(&statement, &mut |it| it.root.sql().contains("UNION"));
        assert_eq!(small.root.sql(), "SELECT NULL UNION SELECT NULL");
        assert!(!small.prepared);
        let small = shrink(&statement, &mut |it| it.root.sql().contains('y'));
        assert_eq!(small.root.sql(), "SELECT y");
    }
}
