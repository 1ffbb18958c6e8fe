//! Random statements: queries of no, one or two tables, unions, and changes.

use super::expressions::{Generator, Source};
use super::tree::{Node, Role};

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Answers rows.
    Query,
    /// Changes a table, in a transaction that is rolled back.
    Change,
}

/// A statement with what is to be known to compare its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it is.
    pub kind: Kind,
    /// Its text as a tree.
    pub root: Node,
    /// Sent as a prepared statement.
    pub prepared: bool,
}

/// The table that statements change.
pub const TARGET: &str = "t4";

/// How `ORDER BY` begins where it orders all rows: then their order is compared.
pub const TOTAL_ORDER: &str = " ORDER BY /* total */ ";

impl Statement {
    /// Whether the order of rows is the statement's.
    pub fn is_ordered(&self) -> bool {
        self.root.children.iter().any(|child| child.texts[0] == TOTAL_ORDER)
    }
}

impl Generator<'_> {
    /// Any statement.
    pub fn statement(&mut self) -> Statement {
        let prepared = self.chance(8);
        let (kind, root) = match self.random.below(100) {
            0..=29 => (Kind::Query, self.values_only()),
            30..=59 => (Kind::Query, self.rows(1)),
            60..=76 => (Kind::Query, self.rows(2)),
            77..=85 => (Kind::Query, self.groups()),
            86..=91 => (Kind::Query, self.union()),
            _ => (Kind::Change, self.change()),
        };
        Statement { kind, root, prepared }
    }

    fn depth(&mut self) -> u32 {
        self.pick(&[1, 2, 2, 2, 3, 3, 4])
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("a{}", self.aliases)
    }

    /// `SELECT expression, ...` without a table.
    fn values_only(&mut self) -> Node {
        let items = self.items("any", 3);
        Node::new(Role::Fixed, &["SELECT ", ""], vec![items])
    }

    /// One to `most` expressions of a group.
    fn items(&mut self, group: &str, most: u64) -> Node {
        let count = 1 + self.random.below(most);
        let members = (0..count).map(|_| {
            let depth = self.depth();
            self.expression(group, depth)
        });
        Node::list(members.collect())
    }

    /// Some tables joined; they are in reach afterwards.
    fn sources(&mut self, count: usize) -> Node {
        let first = self.source();
        if count == 1 {
            return first;
        }
        let kind = self.random.below(100);
        let second = self.source();
        let with = |joint: &str, condition: Option<Node>| match condition {
            Some(condition) => {
                let texts = ["(", joint, " ON ", ")"];
                Node::new(Role::Source, &texts, vec![first.clone(), second.clone(), condition])
            }
            None => Node::new(Role::Source, &["", joint, ""], vec![first.clone(), second.clone()]),
        };
        match kind {
            0..=29 => with(" JOIN ", Some(self.joined())),
            30..=54 => with(" LEFT JOIN ", Some(self.joined())),
            55..=74 => with(" RIGHT JOIN ", Some(self.joined())),
            75..=84 => with(", ", None),
            85..=89 => with(" CROSS JOIN ", None),
            90..=94 => with(" NATURAL JOIN ", None),
            _ => Node::new(Role::Source, &["(", " JOIN ", " USING (id))"], vec![first, second]),
        }
    }

    /// A condition of a join.
    fn joined(&mut self) -> Node {
        let here = self.reach.len();
        let (a, b) = (self.reach[here - 2].alias.clone(), self.reach[here - 1].alias.clone());
        if self.chance(40) {
            let same = Node::leaf(Role::Expression, format!("{a}.id = {b}.id"));
            return same.of(self.kept("truth"));
        }
        let before = std::mem::replace(&mut self.subqueries, false);
        let family = self.pick(&["int", "decimal", "text", "date"]);
        let outer: Vec<Source> = self.reach.drain(..here - 2).collect();
        let pair: Vec<Source> = self.reach.drain(..).collect();
        self.begin();
        let shares = self.shares(3);
        let side = |generator: &mut Self, position: usize| {
            generator.reach = vec![pair[position].clone()];
            generator.part_of(shares[position], family, 1)
        };
        let (left, right) = (side(self, 0), side(self, 1));
        self.reach = outer.into_iter().chain(pair).collect();
        let compare = self.pick(&[" = ", " = ", " = ", " < ", " <=> "]);
        let truth = self.kept("truth");
        let equal = Node::new(Role::Expression, &["(", compare, ")"], vec![left, right]).of(truth);
        // AND is an operator, too.
        let condition = if self.chance(30) && shares[2] != Some(0) {
            let more = self.part_of(shares[2].map(|share| share - 1), "truth", 1);
            Node::new(Role::Expression, &["(", " AND ", ")"], vec![equal, more]).of(truth)
        } else {
            equal
        };
        self.subqueries = before;
        condition
    }

    /// A table or a derived table; it is in reach afterwards.
    fn source(&mut self) -> Node {
        if self.subqueries && self.chance(10) {
            return self.derived();
        }
        let table = self.pick(&["t1", "t2", "t3"]);
        self.put_in_reach(table)
    }

    fn put_in_reach(&mut self, table: &'static str) -> Node {
        let alias = self.alias();
        let columns = self.grammar.columns(table).flat_map(|columns| {
            columns.names.iter().map(|name| (columns.family, name.to_string()))
        });
        self.reach.push(Source { alias: alias.clone(), columns: columns.collect() });
        Node::leaf(Role::Source, format!("{table} AS {alias}"))
    }

    /// `(SELECT id, ... FROM ...) AS alias`.
    fn derived(&mut self) -> Node {
        let outer = std::mem::take(&mut self.reach);
        let before = std::mem::replace(&mut self.subqueries, false);
        let table = self.pick(&["t1", "t2", "t3"]);
        let from = self.put_in_reach(table);
        let families: Vec<&'static str> = (0..2).map(|_| self.family("any")).collect();
        let members = families.iter().enumerate().map(|(position, family)| {
            let value = self.expression(family, 2);
            Node::new(Role::Fixed, &["".to_string(), format!(" AS c{position}")], vec![value])
        });
        let items = members.collect::<Vec<_>>();
        let condition = self.chance(40).then(|| self.expression("truth", 1));
        let condition = Node::clause(" WHERE ", condition, "");
        self.reach = outer;
        self.subqueries = before;
        let alias = self.alias();
        let mut columns = vec![("int", "id".to_string())];
        columns.extend(families.iter().enumerate().map(|(n, family)| (*family, format!("c{n}"))));
        self.reach.push(Source { alias: alias.clone(), columns });
        let end = format!(") AS {alias}");
        let texts = ["(SELECT id, ", " FROM ", "", end.as_str()];
        Node::new(Role::Fixed, &texts, vec![Node::list(items), from, condition])
    }

    /// A query of rows of one or two tables.
    fn rows(&mut self, tables: usize) -> Node {
        self.subqueries = true;
        let from = self.sources(tables);
        let distinct = self.chance(8);
        let items = self.items(if distinct { "key" } else { "any" }, 3);
        let condition = self.chance(60).then(|| {
            let depth = self.depth();
            self.expression("truth", depth)
        });
        let mut children = vec![items, from, Node::clause(" WHERE ", condition, "")];
        let mut texts = vec![if distinct { "SELECT DISTINCT " } else { "SELECT " }, " FROM ", ""];
        if !distinct && self.chance(40) {
            texts.push("");
            children.push(self.total_order());
        }
        texts.push("");
        Node::new(Role::Fixed, &texts, children)
    }

    /// An order in which no two rows are equal, perhaps with a limit.
    fn total_order(&mut self) -> Node {
        let mut value = self.expression("any", 2);
        // What is the same for all rows is not computed to sort them.
        let text = value.sql();
        if !self.reach.iter().any(|source| text.contains(&format!("{}.", source.alias))) {
            value = Node::leaf(Role::Expression, format!("{}.id", self.reach[0].alias));
            value = value.of(self.kept("int"));
        }
        let keys: Vec<String> =
            self.reach.iter().map(|source| format!("{}.id", source.alias)).collect();
        let direction = self.pick(&["", " DESC"]);
        let end = format!("{direction}, {}", keys.join(", "));
        let limits = ["", "", "", " LIMIT 3", " LIMIT 2, 4", " LIMIT 5 OFFSET 1", " LIMIT 0"];
        let limit = match self.pick(&limits) {
            "" => Node::leaf(Role::Fixed, ""),
            limit => Node::clause(limit, Some(Node::leaf(Role::Fixed, "")), ""),
        };
        Node::new(Role::Clause, &[TOTAL_ORDER, &end, ""], vec![value, limit])
    }

    /// A query of groups. The key is not shown where equal keys may look different.
    fn groups(&mut self) -> Node {
        self.subqueries = true;
        let tables = self.pick(&[1, 1, 1, 2]);
        let from = self.sources(tables);
        let by = if self.chance(20) {
            None
        } else if self.chance(30) {
            Some(self.expression("text", 2))
        } else {
            Some(self.expression("key", 2))
        };
        let count = 1 + self.random.below(3);
        let items = (0..count).map(|_| self.expression("aggregate", 3)).collect();
        let condition = self.chance(40).then(|| self.expression("truth", 2));
        let having = self.chance(25).then(|| {
            self.begin();
            let shares = self.shares(1);
            let compared = if self.grammar.is_wild() { "aggregate" } else { "counted" };
            let value = self.part_of(shares[0], compared, 2);
            let limit = self.part_of(Some(0), "int", 0);
            let node = Node::new(Role::Expression, &["(", " > ", ")"], vec![value, limit]);
            node.of(self.kept("truth"))
        });
        let children = vec![
            Node::list(items),
            from,
            Node::clause(" WHERE ", condition, ""),
            Node::clause(" GROUP BY ", by, ""),
            Node::clause(" HAVING ", having, ""),
        ];
        Node::new(Role::Fixed, &["SELECT ", " FROM ", "", "", "", ""], children)
    }

    /// Two queries of the same families.
    fn union(&mut self) -> Node {
        let all = self.chance(60);
        let group = if all { "any" } else { "key" };
        // Before there are tables: either part may have none.
        let count = 1 + self.random.below(2);
        let families: Vec<&str> = (0..count).map(|_| self.family(group)).collect();
        let parts = (0..2).map(|_| {
            self.reach.clear();
            let from = self.chance(60).then(|| self.source());
            let items = families.iter().map(|family| self.expression(family, 2)).collect();
            let from = Node::clause(" FROM ", from, "");
            Node::new(Role::Query, &["SELECT ", "", ""], vec![Node::list(items), from])
        });
        let parts = parts.collect();
        let joint = if all { " UNION ALL " } else { " UNION " };
        Node::new(Role::Query, &["", joint, ""], parts)
    }

    /// A query of one value, or a condition with a query.
    pub(super) fn subquery(&mut self, family: &'static str, depth: u32) -> Node {
        let before = std::mem::replace(&mut self.subqueries, false);
        let here = self.reach.len();
        let shares = self.shares(3);
        let compared = (family == "truth").then(|| {
            let of = self.pick(&["int", "decimal", "text", "date"]);
            (of, self.part_of(shares[0], of, depth))
        });
        let table = self.pick(&["t1", "t2", "t3"]);
        let from = self.put_in_reach(table);
        let condition = self.chance(60).then(|| self.part_of(shares[1], "truth", depth.min(2)));
        let condition = Node::clause(" WHERE ", condition, "");
        let key = format!("{}.id", self.reach[here].alias);
        let node = match compared {
            Some((of, value)) => {
                let kind = self.random.below(4);
                let inner = self.part_of(shares[2], of, 1);
                condition_of(kind, [value, inner, from, condition])
            }
            None if self.chance(60) || !self.has_extremes(family) => {
                let value = self.part_of(shares[2], family, depth);
                let end = format!(" ORDER BY {key} LIMIT 1)");
                let texts = ["(SELECT ", " FROM ", "", end.as_str()];
                Node::new(Role::Expression, &texts, vec![value, from, condition])
            }
            None => {
                let (of, functions) = self.aggregated(family);
                let value = self.part_of(shares[2], of, depth);
                let head = format!("(SELECT {}(", self.pick(functions));
                let texts = [head.as_str(), ") FROM ", "", ")"];
                Node::new(Role::Expression, &texts, vec![value, from, condition])
            }
        };
        self.reach.truncate(here);
        self.subqueries = before;
        node.of(self.kept(family))
    }

    /// What a subquery that makes one value of a family aggregates, and by which functions.
    fn aggregated(&mut self, family: &'static str) -> (&'static str, &'static [&'static str]) {
        if self.grammar.is_wild() {
            ("key", &["MAX", "MIN", "COUNT"])
        } else if family == "int" && self.chance(40) {
            ("key", &["COUNT"])
        } else {
            (family, &["MAX", "MIN"])
        }
    }

    /// Whether the smallest value of a family is one: equal ones look the same.
    fn has_extremes(&self, family: &str) -> bool {
        self.grammar.is_wild() || self.grammar.members("key").contains(&family)
    }

    /// INSERT, UPDATE or DELETE of the table that is changed.
    fn change(&mut self) -> Node {
        let ignore = self.pick(&["", "", "IGNORE "]);
        match self.random.below(10) {
            0..=4 => self.update(ignore),
            5 | 6 => {
                self.put_in_reach(TARGET);
                let alias = self.reach[0].alias.clone();
                let condition = self.expression("truth", 2);
                let head = format!("DELETE {ignore}{alias} FROM {TARGET} AS {alias} WHERE ");
                Node::new(Role::Fixed, &[head, String::new()], vec![condition])
            }
            _ => self.insert(ignore),
        }
    }

    /// The columns of the changed table with their families, each once.
    fn target_columns(&self) -> Vec<(&'static str, &'static str)> {
        let columns = self.grammar.columns(TARGET);
        let mut all: Vec<(&'static str, &'static str)> = Vec::new();
        for (family, name) in
            columns.flat_map(|group| group.names.iter().map(|name| (group.family, *name)))
        {
            if !all.iter().any(|(_, known)| *known == name) {
                all.push((family, name));
            }
        }
        all
    }

    fn update(&mut self, ignore: &str) -> Node {
        self.put_in_reach(TARGET);
        let alias = self.reach[0].alias.clone();
        let columns = self.target_columns();
        let first = self.random.below(columns.len() as u64) as usize;
        let second = (first + 1 + self.random.below(3) as usize) % columns.len();
        let assignments = [first, second].map(|position| {
            let (family, name) = columns[position];
            let value = self.stored(family);
            Node::new(Role::Fixed, &[format!("{alias}.{name} = "), String::new()], vec![value])
        });
        let condition = self.chance(50).then(|| self.expression("truth", 1));
        let head = format!("UPDATE {ignore}{TARGET} AS {alias} SET ");
        let children =
            vec![Node::list(assignments.to_vec()), Node::clause(" WHERE ", condition, "")];
        Node::new(Role::Fixed, &[head.as_str(), "", ""], children)
    }

    /// A value to be stored: what people store in a column of a family; where types may be combined
    /// in any way, half of the time any value.
    fn stored(&mut self, family: &str) -> Node {
        let is_other = self.grammar.is_wild() && self.chance(50);
        let name = if is_other { "any".into() } else { format!("stored{family}") };
        self.expression(&name, 2)
    }

    fn insert(&mut self, ignore: &str) -> Node {
        let columns = self.target_columns();
        let first = self.random.below(columns.len() as u64) as usize;
        let second = (first + 1 + self.random.below(3) as usize) % columns.len();
        let chosen = [columns[first], columns[second]];
        let names = format!("{}, {}", chosen[0].1, chosen[1].1);
        let from_query = self.chance(50);
        let head = format!("INSERT {ignore}INTO {TARGET} ({names}) ");
        if !from_query {
            let values = chosen.iter().map(|(family, _)| self.stored(family)).collect();
            let texts = [format!("{head}VALUES ("), ", ".into(), ")".into()];
            return Node::new(Role::Fixed, &texts, values);
        }
        let table = self.pick(&["t1", "t2", "t3"]);
        let from = self.put_in_reach(table);
        let key = format!(" ORDER BY {}.id", self.reach[0].alias);
        let mut children: Vec<Node> =
            chosen.iter().map(|(family, _)| self.stored(family)).collect();
        let condition = self.chance(50).then(|| self.expression("truth", 1));
        children.extend([from, Node::clause(" WHERE ", condition, "")]);
        let texts = [format!("{head}SELECT "), ", ".into(), " FROM ".into(), "".into(), key];
        Node::new(Role::Fixed, &texts, children)
    }
}

/// A condition with a query, one of four kinds.
fn condition_of(kind: u64, [value, inner, from, condition]: [Node; 4]) -> Node {
    let (head, children) = match kind {
        0 => (vec!["EXISTS (SELECT ", " FROM "], vec![inner, from, condition]),
        1 => (vec!["(", " NOT IN (SELECT ", " FROM "], vec![value, inner, from, condition]),
        2 => (vec!["(", " > ANY (SELECT ", " FROM "], vec![value, inner, from, condition]),
        _ => (vec!["(", " IN (SELECT ", " FROM "], vec![value, inner, from, condition]),
    };
    let end = if kind == 0 { ")" } else { "))" };
    let texts: Vec<&str> = head.into_iter().chain(["", end]).collect();
    Node::new(Role::Expression, &texts, children)
}

#[cfg(test)]
mod tests {
    use super::super::grammar::Grammar;
    use super::*;

    #[test]
    fn every_kind_of_statement_is_made() {
        let grammar = Grammar::load(false).unwrap();
        let statements: Vec<Statement> =
            (0..1_500).map(|seed| Generator::new(&grammar, seed, None).statement()).collect();
        let wanted = [
            "LEFT JOIN",
            "RIGHT JOIN",
            "NATURAL JOIN",
            "CROSS JOIN",
            "USING (id)",
            "GROUP BY",
            "HAVING",
            "UNION ALL",
            "DISTINCT",
            "LIMIT",
            "EXISTS",
            " IN (SELECT",
            " AS c0, ",
            "UPDATE",
            "DELETE",
            "INSERT",
            "INSERT IGNORE",
            "COLLATE",
            "INTERVAL",
            "CASE",
        ];
        for text in wanted {
            assert!(statements.iter().any(|it| it.root.sql().contains(text)), "{text}");
        }
        assert!(statements.iter().any(|it| it.kind == Kind::Change));
        assert!(statements.iter().any(|it| it.prepared));
        assert!(statements.iter().any(Statement::is_ordered));
    }

    #[test]
    fn a_size_bounds_expressions_and_nothing_else() {
        let grammar = &Grammar::load(false).unwrap();
        let with = |size| {
            let seeds = 0..6_000;
            seeds.map(move |seed| Generator::new(grammar, seed, size).statement().root)
        };
        for size in [1, 3] {
            let sizes: Vec<usize> = with(Some(size)).map(|root| root.operators()).collect();
            assert_eq!(sizes.iter().max(), Some(&(size as usize)));
        }
        assert!(with(None).any(|root| root.operators() > 12));
        let everyday: Vec<String> = with(Some(3)).map(|root| root.sql()).collect();
        for text in [" JOIN ", "UNION", "GROUP BY", "HAVING", "EXISTS (", " IN (SELECT", "UPDATE"] {
            assert!(everyday.iter().any(|sql| sql.contains(text)), "{text}");
        }
    }

    #[test]
    fn what_is_left_without_its_order_is_not_ordered() {
        let order = Node::new(Role::Clause, &[TOTAL_ORDER, ""], vec![]);
        let ordered = Node::new(Role::Fixed, &["", ""], vec![order]);
        let plain = ordered.with(&[0], Node::leaf(Role::Fixed, ""));
        let of = |root| Statement { kind: Kind::Query, root, prepared: false };
        assert!(of(ordered).is_ordered());
        assert!(!of(plain).is_ordered());
    }
}
