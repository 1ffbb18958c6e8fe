//! What random expressions are made of: `tests/differ/grammar.txt`, whose head tells its form.
//!
//! 1. The grammar is typed: each hole names the families that the function or operator around it is
//!    made for, and what stands there is of one of them. Conversions are written, but for those
//!    that have families of their own: texts that are numbers, dates and times beside such values.
//! 2. Lines with `wild` are all others: bare NULLs, values of other types, choices among several.
//!    They are read only if they are asked for.
//! 3. Functions, columns and words are the same with and without them.

use std::collections::HashMap;

/// One way to make an expression of a family: texts, and between them the families of the holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// One more than holes.
    pub texts: Vec<&'static str>,
    /// Names of families or groups.
    pub holes: Vec<&'static str>,
    /// How often it is chosen beside the others.
    pub weight: u64,
}

/// The families with their templates, the groups, and the columns of the tables.
#[derive(Default)]
pub struct Grammar {
    families: HashMap<&'static str, Vec<Template>>,
    groups: HashMap<&'static str, Vec<&'static str>>,
    columns: Vec<Columns>,
    /// Families of literals that are values although they have no holes.
    values: Vec<&'static str>,
    /// With the lines for any combination of types.
    is_wild: bool,
}

/// The columns of one table that belong to one family.
pub struct Columns {
    /// Table.
    pub table: &'static str,
    /// Family.
    pub family: &'static str,
    /// Their names.
    pub names: Vec<&'static str>,
}

impl Grammar {
    /// The one of `tests/differ`: typed, or with the lines for any combination of types.
    pub fn load(is_wild: bool) -> Result<Self, String> {
        Self::parse(include_str!("../../../../tests/differ/grammar.txt"), is_wild)
    }

    /// From a text; each name that is used must be there.
    pub fn parse(text: &'static str, is_wild: bool) -> Result<Self, String> {
        let mut grammar = Self { is_wild, ..Self::default() };
        for (position, line) in text.lines().enumerate() {
            let (of_wild, rest) = match line.strip_prefix("wild ") {
                Some(rest) => (true, rest),
                None => (false, line),
            };
            if !line.is_empty() && !line.starts_with('#') && (is_wild || !of_wild) {
                let bad = || format!("grammar.txt:{}: '{line}'", position + 1);
                grammar.add(rest).ok_or_else(bad)?;
            }
        }
        let templates = || grammar.families.values().flatten();
        let holes = templates().flat_map(|template| template.holes.iter());
        for name in holes.chain(grammar.groups.values().flatten()) {
            if grammar.members(name).is_empty() {
                return Err(format!("grammar.txt: nothing is called '{name}'"));
            }
        }
        Ok(grammar)
    }

    fn add(&mut self, line: &'static str) -> Option<()> {
        if let Some(rest) = line.strip_prefix("columns ") {
            let (head, names) = rest.split_once(": ")?;
            let (table, family) = head.split_once(' ')?;
            self.columns.push(Columns { table, family, names: names.split(' ').collect() });
        } else if let Some(rest) = line.strip_prefix("values ") {
            self.values.extend(rest.split(' '));
        } else if let Some(rest) = line.strip_prefix("group ") {
            let (name, members) = rest.split_once(" = ")?;
            self.groups.insert(name, members.split(' ').collect());
        } else {
            let (head, template) = line.split_once(": ")?;
            let (family, weight) = match head.split_once(" x") {
                Some((family, weight)) => (family, weight.parse().ok()?),
                None => (head, 1),
            };
            let (texts, holes) = split(template);
            let template = Template { texts, holes, weight };
            self.families.entry(family).or_default().push(template);
        }
        Some(())
    }

    /// The families that a name stands for; none if nothing has the name.
    pub fn members(&self, name: &str) -> Vec<&'static str> {
        match self.groups.get(name) {
            Some(members) => members.clone(),
            None => self.families.get_key_value(name).map(|(name, _)| *name).into_iter().collect(),
        }
    }

    /// Whether a family is a choice of words, not of expressions.
    pub fn is_words(&self, family: &str) -> bool {
        !self.values.contains(&family)
            && self.templates(family).iter().all(|template| template.holes.is_empty())
    }

    /// Whether types may be combined in any way.
    pub fn is_wild(&self) -> bool {
        self.is_wild
    }

    /// Whether a template has no expressions in it.
    pub fn is_leaf(&self, template: &Template) -> bool {
        template.holes.iter().all(|hole| !self.groups.contains_key(hole) && self.is_words(hole))
    }

    /// Whether a family has literals or words.
    pub fn has_leaf(&self, family: &str) -> bool {
        self.templates(family).iter().any(|template| self.is_leaf(template))
    }

    /// The ways to make an expression of a family.
    pub fn templates(&self, family: &str) -> &[Template] {
        self.families.get(family).map_or(&[], Vec::as_slice)
    }

    /// The columns of a table, by families.
    pub fn columns<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a Columns> {
        self.columns.iter().filter(move |columns| columns.table == table)
    }
}

/// Splits a template at its holes: names of small letters in braces.
fn split(template: &'static str) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut texts, mut holes) = (Vec::new(), Vec::new());
    let mut begin = 0;
    for (open, _) in template.match_indices('{') {
        let Some(length) = template[open..].find('}') else { continue };
        let name = &template[open + 1..open + length];
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()) {
            texts.push(&template[begin..open]);
            holes.push(name);
            begin = open + length + 1;
        }
    }
    texts.push(&template[begin..]);
    (texts, holes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_file_is_whole() {
        let grammar = Grammar::load(false).unwrap();
        assert!(grammar.is_words("unit"));
        assert!(!grammar.is_words("numeral"));
        assert!(!grammar.is_words("int"));
        assert_eq!(grammar.members("exact"), ["int", "decimal"]);
        assert!(grammar.columns("t2").any(|columns| columns.names.contains(&"latc")));
        for family in grammar.members("any").into_iter().chain(grammar.members("aggregate")) {
            let is_of_columns = matches!(family, "year" | "bit");
            assert_eq!(grammar.has_leaf(family), !is_of_columns, "{family}");
        }
    }

    #[test]
    fn braces_that_are_no_holes_stay() {
        let (texts, holes) = split("F('{}', '[0-9]{2,}', {int}, '{\"a\": {text}}')");
        assert_eq!(holes, ["int", "text"]);
        assert_eq!(texts, ["F('{}', '[0-9]{2,}', ", ", '{\"a\": ", "}')"]);
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        assert!(Grammar::parse("int: ABS({number})", false).is_err());
        assert!(Grammar::parse("int ABS", false).is_err());
        assert!(Grammar::parse("wild int ABS", true).is_err());
    }

    /// Names of functions and operators: words of capitals.
    fn words(grammar: &Grammar) -> BTreeSet<&'static str> {
        let templates = grammar.families.values().flatten();
        let texts = templates.flat_map(|template| template.texts.iter());
        let words =
            texts.flat_map(|text| text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_'));
        words
            .filter(|word| word.len() > 1 && word.bytes().all(|it| !it.is_ascii_lowercase()))
            .collect()
    }

    #[test]
    fn only_combinations_are_wild() {
        let (typed, wild) = (Grammar::load(false).unwrap(), Grammar::load(true).unwrap());
        assert_eq!(words(&typed), words(&wild));
        assert!(words(&typed).contains("JSON_OVERLAPS"));
        let names = |grammar: &Grammar| -> BTreeSet<String> {
            let columns = grammar.columns.iter();
            let names =
                columns.flat_map(|it| it.names.iter().map(|name| format!("{}.{name}", it.table)));
            names.collect()
        };
        assert_eq!(names(&typed), names(&wild));
        let count = |grammar: &Grammar| grammar.families.values().map(Vec::len).sum::<usize>();
        assert!(count(&typed) < count(&wild));
    }

    #[test]
    fn a_bare_null_is_written_only_where_people_write_it() {
        let grammar = Grammar::load(false).unwrap();
        let bare = |family: &str| grammar.templates(family).iter().any(|it| it.texts == ["NULL"]);
        for family in grammar.families.keys().filter(|family| **family != "nothing") {
            assert!(!bare(family), "{family}");
        }
        assert!(bare("nothing"));
    }
}
