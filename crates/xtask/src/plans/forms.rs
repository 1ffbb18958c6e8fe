//! Forced forms of a query: its tables in other orders, its indexes forced and forbidden.

use std::collections::BTreeMap;

/// Most orders of one query's tables that are tried.
const ORDERS_MAX: usize = 40;

/// The parts of `SELECT items FROM tables rest` around which forms are made.
struct Parts<'q> {
    items: &'q str,
    tables: &'q str,
    rest: &'q str,
}

/// The position of a word outside of parentheses.
fn find_outside(text: &str, word: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(word) => return Some(at),
            _ => {}
        }
    }
    None
}

fn parts(query: &str) -> Option<Parts<'_>> {
    let from = find_outside(query, " FROM ")?;
    let items = query[..from].strip_prefix("SELECT ")?;
    let behind = &query[from + " FROM ".len()..];
    let ends = [" WHERE ", " GROUP BY ", " ORDER BY ", " LIMIT "];
    let end = ends.iter().filter_map(|word| find_outside(behind, word)).min();
    let (tables, rest) = behind.split_at(end.unwrap_or(behind.len()));
    Some(Parts { items, tables, rest })
}

/// All forms of a query.
pub fn of(query: &str, indexes: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let Some(parts) = parts(query) else { return Vec::new() };
    let mut forms = Vec::new();
    let hinted = hints(parts.tables, indexes);
    for tables in &hinted {
        forms.push(format!("SELECT {} FROM {tables}{}", parts.items, parts.rest));
    }
    if parts.tables.contains(" JOIN ") || parts.tables.contains('(') {
        return forms;
    }
    let listed: Vec<&str> = parts.tables.split(", ").collect();
    if listed.len() < 2 {
        return forms;
    }
    let orders = permutations(listed.len());
    let step = orders.len().div_ceil(ORDERS_MAX);
    for order in orders.iter().step_by(step) {
        let tables: Vec<&str> = order.iter().map(|at| listed[*at]).collect();
        let tables = tables.join(", ");
        let form = |tables: &str| {
            format!("SELECT STRAIGHT_JOIN {} FROM {tables}{}", parts.items, parts.rest)
        };
        forms.push(form(&tables));
        if listed.len() == 2 {
            forms.extend(hints(&tables, indexes).iter().map(|tables| form(tables)));
        }
    }
    forms
}

/// The list of tables with one index of one of them forced or forbidden.
fn hints(tables: &str, indexes: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut hinted = Vec::new();
    if tables.contains('(') {
        return hinted;
    }
    let words: Vec<&str> = tables.split(' ').collect();
    for (at, word) in words.iter().enumerate() {
        let Some(names) = indexes.get(*word) else { continue };
        let Some(alias) = words.get(at + 1) else { continue };
        for name in names {
            for hint in ["FORCE", "IGNORE"] {
                let mut changed: Vec<String> = words.iter().map(|w| (*w).to_string()).collect();
                let comma = if alias.ends_with(',') { "," } else { "" };
                let alias = alias.trim_end_matches(',');
                changed[at + 1] = format!("{alias} {hint} INDEX (`{name}`){comma}");
                hinted.push(changed.join(" "));
            }
        }
    }
    hinted
}

/// All orders of so many things.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for place in 0..=shorter.len() {
            let mut order = shorter.clone();
            order.insert(place, count - 1);
            all.push(order);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_orders_and_hints() {
        let indexes = BTreeMap::from([("t".to_string(), vec!["PRIMARY".to_string()])]);
        let forms = of("SELECT COUNT(*) FROM t a, u b WHERE a.x = b.x LIMIT 3", &indexes);
        assert!(forms.contains(
            &"SELECT COUNT(*) FROM t a FORCE INDEX (`PRIMARY`), u b WHERE a.x = b.x LIMIT 3".into()
        ));
        assert!(forms.contains(
            &"SELECT STRAIGHT_JOIN COUNT(*) FROM u b, t a WHERE a.x = b.x LIMIT 3".into()
        ));
        assert_eq!(forms.len(), 2 + 2 + 4);
        assert_eq!(permutations(4).len(), 24);
        assert!(of("SELECT 1", &indexes).is_empty());
    }
}
