//! A statement as a tree whose nodes know what they may be replaced by, so that one shrinker
//! serves expressions, clauses and whole queries.

/// What a node is for who wants to make a statement smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value: another value, or one of its parts, can stand there.
    Expression,
    /// A value of a group: another such value that is part of it can stand there.
    Aggregate,
    /// Words such as a unit: stays.
    Words,
    /// A clause that can be left out.
    Clause,
    /// Members separated by commas; all but one can be left out.
    List,
    /// A query; a part of a UNION can stand for it.
    Query,
    /// A table or a join of tables.
    Source,
    /// Anything else.
    Fixed,
}

/// See the head of the file. Its text is `texts[0] children[0] texts[1] ... texts[n]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it may be replaced by.
    pub role: Role,
    /// One more than children.
    pub texts: Vec<String>,
    /// In the order of the text.
    pub children: Vec<Node>,
    /// What it is of, if nothing else may stand there (see `grammar.rs`); empty if anything may.
    pub family: &'static str,
}

impl Node {
    /// Without children.
    pub fn leaf(role: Role, text: impl Into<String>) -> Self {
        Self { role, texts: vec![text.into()], children: Vec::new(), family: "" }
    }

    /// Of texts and children that alternate.
    pub fn new<T: ToString>(role: Role, texts: &[T], children: Vec<Node>) -> Self {
        let texts = texts.iter().map(T::to_string).collect();
        Self { role, texts, children, family: "" }
    }

    /// The same as an expression of a family.
    pub fn of(self, family: &'static str) -> Self {
        Self { family, ..self }
    }

    /// Members separated by commas.
    pub fn list(members: Vec<Node>) -> Self {
        let mut texts = vec![", ".to_string(); members.len() + 1];
        texts[0].clear();
        texts[members.len()].clear();
        Self { role: Role::List, texts, children: members, family: "" }
    }

    /// A clause, or its absence.
    pub fn clause(before: &str, inner: Option<Node>, after: &str) -> Self {
        match inner {
            Some(inner) => Self::new(Role::Clause, &[before, after], vec![inner]),
            None => Self::leaf(Role::Fixed, ""),
        }
    }

    /// The text.
    pub fn sql(&self) -> String {
        let mut out = String::new();
        self.put(&mut out);
        out
    }

    fn put(&self, out: &mut String) {
        for (position, text) in self.texts.iter().enumerate() {
            out.push_str(text);
            if let Some(child) = self.children.get(position) {
                child.put(out);
            }
        }
    }

    /// The text with `?` for plain numbers and texts, and their values as
    /// `sqltest::parameter::Parameter` reads them.
    pub fn with_parameters(&self) -> (String, Vec<String>) {
        let (mut sql, mut values) = (String::new(), Vec::new());
        self.put_parameters(&mut sql, &mut values);
        (sql, values)
    }

    fn put_parameters(&self, out: &mut String, values: &mut Vec<String>) {
        if let Some(value) = self.parameter() {
            out.push('?');
            values.push(value);
            return;
        }
        for (position, text) in self.texts.iter().enumerate() {
            out.push_str(text);
            if let Some(child) = self.children.get(position) {
                child.put_parameters(out, values);
            }
        }
    }

    /// A literal of an expression as a parameter: a BIGINT, or a text without escapes.
    fn parameter(&self) -> Option<String> {
        if self.role != Role::Expression || !self.children.is_empty() {
            return None;
        }
        let text = self.texts[0].as_str();
        if text.parse::<i64>().is_ok() {
            return Some(format!("bigint:{text}"));
        }
        let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
        let plain = !inner.contains(['\'', '\\']) && !inner.contains("  ");
        plain.then(|| format!("varstring:{inner}"))
    }

    /// Number of nodes.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        1 + self.children.iter().map(Node::size).sum::<usize>()
    }

    /// Operators and functions of the largest expression; see the head of `expressions.rs`.
    pub fn operators(&self) -> usize {
        let (own, inside) = self.counted();
        own.max(inside)
    }

    /// Of the expression that the node is a part of: its operators; and those of the largest
    /// expression in a table of its own inside it.
    fn counted(&self) -> (usize, usize) {
        let counts = self.children.iter().map(Node::counted);
        let is_value = matches!(self.role, Role::Expression | Role::Aggregate);
        let is_operator = is_value && self.children.iter().any(|it| it.role != Role::Words);
        let parts: Vec<_> = self.children.iter().zip(counts).collect();
        let is_whole = !is_value && self.role != Role::Clause;
        let is_part = |node: &Node| !is_whole && node.role != Role::Source;
        let own: usize =
            parts.iter().filter(|(node, _)| is_part(node)).map(|(_, (own, _))| own).sum();
        let outside = parts.iter().filter(|(node, _)| !is_part(node)).map(|(_, (own, _))| own);
        let inside = parts.iter().map(|(_, (_, inside))| inside).chain(outside).max();
        (own + usize::from(is_operator), inside.copied().unwrap_or(0))
    }

    /// The node at a path of child positions.
    pub fn at(&self, path: &[usize]) -> Option<&Node> {
        path.iter().try_fold(self, |node, position| node.children.get(*position))
    }

    /// The same tree with another node at a path.
    pub fn with(&self, path: &[usize], node: Node) -> Self {
        let mut whole = self.clone();
        let mut place = &mut whole;
        for position in path {
            place = &mut place.children[*position];
        }
        *place = node;
        whole
    }

    /// The paths of all nodes, each before those of its children.
    pub fn paths(&self) -> Vec<Vec<usize>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, path: &mut Vec<usize>, paths: &mut Vec<Vec<usize>>) {
        paths.push(path.clone());
        for (position, child) in self.children.iter().enumerate() {
            path.push(position);
            child.collect(path, paths);
            path.pop();
        }
    }

    /// The shape: text with leaves of expressions as `?`, so that one fault met with other values
    /// is counted once.
    pub fn shape(&self) -> String {
        if self.role == Role::Expression && self.children.is_empty() {
            return "?".into();
        }
        let mut out = String::new();
        for (position, text) in self.texts.iter().enumerate() {
            out.push_str(text);
            if let Some(child) = self.children.get(position) {
                out.push_str(&child.shape());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum() -> Node {
        let leaf = |text| Node::leaf(Role::Expression, text);
        Node::new(Role::Expression, &["(", " + ", ")"], vec![leaf("1"), leaf("x")])
    }

    #[test]
    fn texts_and_children_alternate() {
        assert_eq!(sum().sql(), "(1 + x)");
        assert_eq!(sum().shape(), "(? + ?)");
        assert_eq!(Node::list(vec![sum(), sum()]).sql(), "(1 + x), (1 + x)");
        assert_eq!(Node::clause(" WHERE ", Some(sum()), "").sql(), " WHERE (1 + x)");
        assert_eq!(Node::clause(" WHERE ", None, "").sql(), "");
    }

    #[test]
    fn literals_become_parameters() {
        let text = Node::leaf(Role::Expression, "'a b'");
        let tree = Node::list(vec![sum(), text, Node::leaf(Role::Words, "5")]);
        let values = vec!["bigint:1".to_string(), "varstring:a b".to_string()];
        assert_eq!(tree.with_parameters(), ("(? + x), ?, 5".to_string(), values));
    }

    #[test]
    fn nodes_are_found_and_replaced_by_path() {
        let tree = Node::list(vec![sum(), sum()]);
        assert_eq!(tree.size(), 7);
        assert_eq!(tree.paths().len(), 7);
        assert_eq!(tree.at(&[1, 0]).unwrap().sql(), "1");
        let other = tree.with(&[1, 0], Node::leaf(Role::Expression, "NULL"));
        assert_eq!(other.sql(), "(1 + x), (NULL + x)");
    }
}
