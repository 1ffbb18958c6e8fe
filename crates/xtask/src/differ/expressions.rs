//! Random expressions: templates of the wanted family, columns that are in reach, subqueries.
//!
//! 1. The size of an expression is the number of its operators and functions: of templates with
//!    values in them, and of subqueries. A generator keeps to a size or to none.
//! 2. An item, a key, a condition of a query or join, and each value that is stored is one
//!    expression; the value and the condition of a subquery belong to the expression that it is in,
//!    the items of a derived table are expressions of their own.
//! 3. A size bounds nothing else: every template, column, literal and kind of statement comes at
//!    size 1, too, but for those that hold two operators by themselves.

use super::grammar::{Grammar, Template};
use super::tree::{Node, Role};
use crate::random::Random;

/// How often, in a hundred, any family is taken in place of the wanted one where types may be
/// combined in any way.
const WILD_PERCENT: u64 = 2;

/// A table in reach: its columns under the name that it has in the query.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name in the query.
    pub alias: String,
    /// Family and name of each column.
    pub columns: Vec<(&'static str, String)>,
}

/// Makes expressions and queries of one seed.
pub struct Generator<'g> {
    pub(super) grammar: &'g Grammar,
    pub(super) random: Random,
    /// Tables in reach, the outer query's first.
    pub(super) reach: Vec<Source>,
    pub(super) aliases: usize,
    /// Whether a subquery may stand here.
    pub(super) subqueries: bool,
    /// The size of the largest expression; any if none.
    size: Option<u32>,
    /// How many operators and functions the part that is next may have.
    left: Option<u32>,
}

impl<'g> Generator<'g> {
    /// One of a seed.
    pub fn new(grammar: &'g Grammar, seed: u64, size: Option<u32>) -> Self {
        let random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (reach, left) = (Vec::new(), size);
        Self { grammar, random, reach, aliases: 0, subqueries: false, size, left }
    }

    /// True so often in a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    /// One of some, of which there is at least one.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.below(choices.len() as u64) as usize]
    }

    /// An expression of a family or of one of a group, at most so deep, of any allowed size.
    pub fn expression(&mut self, name: &str, depth: u32) -> Node {
        self.begin();
        self.part(name, depth)
    }

    /// Begins an expression: chooses its size.
    pub(super) fn begin(&mut self) {
        self.left = self.size.map(|size| 1 + self.random.below(u64::from(size)) as u32);
    }

    /// What is left of the size, one taken from it, split among so many parts.
    pub(super) fn shares(&mut self, parts: usize) -> Vec<Option<u32>> {
        let Some(left) = self.left else { return vec![None; parts] };
        let mut shares = vec![0; parts];
        for _ in 1..left {
            if parts > 0 {
                shares[self.random.below(parts as u64) as usize] += 1;
            }
        }
        shares.into_iter().map(Some).collect()
    }

    /// A part of an expression that has a share of its size.
    pub(super) fn part_of(&mut self, share: Option<u32>, name: &str, depth: u32) -> Node {
        self.left = share;
        self.part(name, depth)
    }

    fn part(&mut self, name: &str, depth: u32) -> Node {
        let depth = if self.left == Some(0) { 0 } else { depth };
        let mut family = self.family(name);
        if self.grammar.is_words(family) {
            let template = self.template(family, true);
            return Node::new(Role::Words, &template.texts, Vec::new());
        }
        // What a function says of a broken document depends on how far it has to look.
        let is_aggregate = self.grammar.members("aggregate").contains(&family);
        let may_be_other = self.grammar.is_wild() && family != "json" && !is_aggregate;
        if may_be_other && self.chance(WILD_PERCENT) {
            family = self.family("any");
        }
        let columns_often = match depth {
            0 if !self.grammar.has_leaf(family) => 100,
            0 => 60,
            _ => 12,
        };
        if self.chance(columns_often)
            && let Some(column) = self.column(family)
        {
            return column;
        }
        if depth >= 2 && self.subqueries && self.is_asked_of_rows(family) && self.chance(4) {
            return self.subquery(family, depth - 1);
        }
        let template = self.template(family, depth == 0);
        let role = if is_aggregate { Role::Aggregate } else { Role::Expression };
        let below = depth.saturating_sub(1);
        let values = template.holes.iter().filter(|hole| !self.is_word(hole)).count();
        let mut shares = self.shares(values).into_iter();
        let mut children = Vec::new();
        for hole in &template.holes {
            let share = if self.is_word(hole) { None } else { shares.next().flatten() };
            children.push(self.part_of(share, hole, below));
        }
        Node::new(role, &template.texts, children).of(self.kept(family))
    }

    /// One of the families that a name stands for, of those that have a value here.
    pub(super) fn family(&mut self, name: &str) -> &'static str {
        let families = self.possible(name);
        self.pick(&families)
    }

    /// The families of a name that have literals, or columns that are in reach.
    fn possible(&self, name: &str) -> Vec<&'static str> {
        let has_column = |family: &str| {
            let mut columns = self.reach.iter().flat_map(|source| source.columns.iter());
            columns.any(|(of, _)| *of == family)
        };
        let mut families = self.grammar.members(name);
        families.retain(|family| self.grammar.has_leaf(family) || has_column(family));
        families
    }

    /// The family that what replaces a part must be of.
    pub(super) fn kept(&self, family: &'static str) -> &'static str {
        if self.grammar.is_wild() { "" } else { family }
    }

    /// Whether a subquery may have values of a family: those of aggregates and literals do not.
    fn is_asked_of_rows(&self, family: &str) -> bool {
        self.grammar.members("any").contains(&family)
    }

    fn is_word(&self, hole: &str) -> bool {
        self.grammar.members(hole).iter().all(|family| self.grammar.is_words(family))
    }

    /// A template of a family by weight.
    fn template(&mut self, family: &str, leaf: bool) -> Template {
        let grammar = self.grammar;
        let fits = |template: &&Template| match leaf {
            true => grammar.is_leaf(template),
            false => template.holes.iter().all(|hole| !self.possible(hole).is_empty()),
        };
        let choices: Vec<&Template> = grammar.templates(family).iter().filter(fits).collect();
        let whole: u64 = choices.iter().map(|template| template.weight).sum();
        let mut left = self.random.below(whole.max(1));
        for template in &choices {
            if left < template.weight {
                return (*template).clone();
            }
            left -= template.weight;
        }
        Template { texts: vec!["NULL"], holes: Vec::new(), weight: 1 }
    }

    /// A column of a family that is in reach.
    fn column(&mut self, family: &'static str) -> Option<Node> {
        let sources = self.reach.iter();
        let all: Vec<(&str, &str)> = sources
            .flat_map(|source| source.columns.iter().map(move |column| (source, column)))
            .filter(|(_, (of, _))| *of == family)
            .map(|(source, (_, name))| (source.alias.as_str(), name.as_str()))
            .collect();
        if all.is_empty() {
            return None;
        }
        let chosen = self.random.below(all.len() as u64) as usize;
        let (alias, name) = all[chosen];
        let column = Node::leaf(Role::Expression, format!("{alias}.{name}"));
        Some(column.of(self.kept(family)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_one_expression() {
        let grammar = Grammar::load(false).unwrap();
        let text = |seed| Generator::new(&grammar, seed, None).expression("any", 3).sql();
        assert_eq!(text(7), text(7));
        let texts: std::collections::HashSet<String> = (0..200).map(text).collect();
        assert!(texts.len() > 150, "{} of 200", texts.len());
    }

    #[test]
    fn holes_are_filled_and_depth_ends() {
        let grammar = Grammar::load(false).unwrap();
        for seed in 0..2_000 {
            let node = Generator::new(&grammar, seed, None).expression("any", 3);
            let text = node.sql();
            for family in grammar.members("any") {
                assert!(!text.contains(&format!("{{{family}}}")), "{text}");
            }
            assert!(node.size() < 500, "{text}");
        }
    }

    #[test]
    fn columns_in_reach_are_used() {
        let grammar = Grammar::load(false).unwrap();
        let mut generator = Generator::new(&grammar, 1, None);
        let columns = vec![("int", "n".to_string())];
        generator.reach.push(Source { alias: "a".into(), columns });
        let found = (0..50).any(|_| generator.expression("int", 1).sql().contains("a.n"));
        assert!(found);
    }
}
