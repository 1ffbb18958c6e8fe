//! The pages "the way of a ..." name the functions that are passed; each must exist.

use super::source::SourceFile;
use std::collections::BTreeSet;
use std::path::Path;

/// Finds every `room::...::function` in backticks on the pages and looks for the function.
pub fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let rooms: BTreeSet<String> = files.iter().map(|f| f.room.replace('-', "_")).collect();
    for page in ["docs/the-way-of-a-select.md", "docs/the-way-of-a-commit.md"] {
        let text = std::fs::read_to_string(root.join(page)).map_err(|e| format!("{page}: {e}"))?;
        let named = named_functions(&text, &rooms);
        if named.len() < 8 {
            findings.push(format!("{page}: names only {} functions", named.len()));
        }
        for (room, function) in named {
            let exists = files
                .iter()
                .filter(|f| f.room.replace('-', "_") == room)
                .any(|file| file.functions.iter().any(|f| f.name == function && !f.in_test));
            if !exists {
                findings.push(format!("{page}: there is no function `{function}` in `{room}`"));
            }
        }
    }
    Ok(findings)
}

/// Every `room::...::function` in the text, in running text and in call trees alike.
fn named_functions(text: &str, rooms: &BTreeSet<String>) -> Vec<(String, String)> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut named = Vec::new();
    for path in text.split(|c: char| !is_path(c)).filter(|path| path.contains("::")) {
        let path = path.trim_matches(':');
        let room = path.split("::").next().unwrap_or("").to_string();
        let function = path.rsplit("::").next().unwrap_or("").to_string();
        let is_function = function.chars().next().is_some_and(char::is_lowercase);
        if rooms.contains(&room) && is_function {
            named.push((room, function));
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_in_backticks() {
        let rooms = BTreeSet::from(["wal".to_string()]);
        let text = "calls `wal::log::Wal::append(..)` of `wal::Wal`, see x::y\n  wal::flush   once";
        let named = named_functions(text, &rooms);
        let named: Vec<_> = named.iter().map(|(_, function)| function.as_str()).collect();
        assert_eq!(named, ["append", "flush"]);
    }
}
