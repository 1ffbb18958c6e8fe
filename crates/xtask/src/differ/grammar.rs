//! What random expressions are made of: `tests/differ/grammar.txt`, whose head tells its form.

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
    /// The one of `tests/differ`.
    pub fn load() -> Result<Self, String> {
        Self::parse(include_str!("../../../../tests/differ/grammar.txt"))
    }

    /// From a text; each name that is used must be there.
    pub fn parse(text: &'static str) -> Result<Self, String> {
        let mut grammar = Self::default();
        for (position, line) in text.lines().enumerate() {
            if !line.is_empty() && !line.starts_with('#') {
                let bad = || format!("grammar.txt:{}: '{line}'", position + 1);
                grammar.add(line).ok_or_else(bad)?;
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
        self.templates(family).iter().all(|template| template.holes.is_empty())
    }

    /// Whether a template has no expressions in it.
    pub fn is_leaf(&self, template: &Template) -> bool {
        template.holes.iter().all(|hole| !self.groups.contains_key(hole) && self.is_words(hole))
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

    #[test]
    fn the_file_is_whole() {
        let grammar = Grammar::load().unwrap();
        assert!(grammar.is_words("unit"));
        assert!(!grammar.is_words("int"));
        assert_eq!(grammar.members("exact"), ["int", "decimal"]);
        assert!(grammar.columns("t2").any(|columns| columns.names.contains(&"latc")));
        for family in grammar.members("any") {
            let templates = grammar.templates(family);
            assert!(templates.iter().any(|template| grammar.is_leaf(template)), "{family}");
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
        assert!(Grammar::parse("int: ABS({number})").is_err());
        assert!(Grammar::parse("int ABS").is_err());
    }
}
