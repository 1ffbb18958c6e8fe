//! Random expressions: templates of the wanted family, columns that are in reach, subqueries.

use super::grammar::{Grammar, Template};
use super::tree::{Node, Role};
use crate::random::Random;

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
    /// How often, in a hundred, another family than the wanted one is taken.
    pub(super) wild: u64,
}

impl<'g> Generator<'g> {
    /// One of a seed; `wild` of a hundred holes are filled with any family.
    pub fn new(grammar: &'g Grammar, seed: u64, wild: u64) -> Self {
        let random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        Self { grammar, random, reach: Vec::new(), aliases: 0, subqueries: false, wild }
    }

    /// True so often in a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    /// One of some, of which there is at least one.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.below(choices.len() as u64) as usize]
    }

    /// An expression of a family or of one of a group, at most so deep.
    pub fn expression(&mut self, name: &str, depth: u32) -> Node {
        let members = self.grammar.members(name);
        let mut family = self.pick(&members);
        if self.grammar.is_words(family) {
            let template = self.template(family, true);
            return Node::new(Role::Words, &template.texts, Vec::new());
        }
        // What a function says of a broken document depends on how far it has to look.
        if family != "json" && self.chance(self.wild) && family != "aggregate" {
            let all = self.grammar.members("any");
            family = self.pick(&all);
        }
        let columns_often = if depth == 0 { 60 } else { 12 };
        if self.chance(columns_often) {
            if let Some(column) = self.column(family) {
                return column;
            }
        }
        if depth >= 2 && self.subqueries && family != "aggregate" && self.chance(4) {
            return self.subquery(family, depth - 1);
        }
        let template = self.template(family, depth == 0);
        let role = if family == "aggregate" { Role::Aggregate } else { Role::Expression };
        let below = depth.saturating_sub(1);
        let holes = template.holes.iter();
        let children = holes.map(|hole| self.expression(hole, below)).collect();
        Node::new(role, &template.texts, children)
    }

    /// A template of a family by weight.
    fn template(&mut self, family: &str, leaf: bool) -> Template {
        let grammar = self.grammar;
        let fits = |template: &&Template| !leaf || grammar.is_leaf(template);
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
    fn column(&mut self, family: &str) -> Option<Node> {
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
        Some(Node::leaf(Role::Expression, format!("{alias}.{name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_one_expression() {
        let grammar = Grammar::load().unwrap();
        let text = |seed| Generator::new(&grammar, seed, 5).expression("any", 3).sql();
        assert_eq!(text(7), text(7));
        let texts: std::collections::HashSet<String> = (0..200).map(text).collect();
        assert!(texts.len() > 150, "{} of 200", texts.len());
    }

    #[test]
    fn holes_are_filled_and_depth_ends() {
        let grammar = Grammar::load().unwrap();
        for seed in 0..2_000 {
            let node = Generator::new(&grammar, seed, 5).expression("any", 3);
            let text = node.sql();
            for family in grammar.members("any") {
                assert!(!text.contains(&format!("{{{family}}}")), "{text}");
            }
            assert!(node.size() < 500, "{text}");
        }
    }

    #[test]
    fn columns_in_reach_are_used() {
        let grammar = Grammar::load().unwrap();
        let mut generator = Generator::new(&grammar, 1, 0);
        let columns = vec![("int", "n".to_string())];
        generator.reach.push(Source { alias: "a".into(), columns });
        let found = (0..50).any(|_| generator.expression("int", 1).sql().contains("a.n"));
        assert!(found);
    }
}
