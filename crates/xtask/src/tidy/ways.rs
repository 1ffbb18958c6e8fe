//! The pages "the way of a ..." name the functions that are passed; each must exist.

use super::source::SourceFile;
use std::path::Path;

/// Finds every `room::...::function` in backticks on the pages and looks for the function.
pub fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for page in ["docs/the-way-of-a-select.md", "docs/the-way-of-a-commit.md"] {
        let text = std::fs::read_to_string(root.join(page)).map_err(|e| format!("{page}: {e}"))?;
        let named = named_functions(&text);
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

fn named_functions(text: &str) -> Vec<(String, String)> {
    let mut named = Vec::new();
    for (position, part) in text.split('`').enumerate() {
        let path = part.split('(').next().unwrap_or("");
        let is_path = position % 2 == 1
            && path.contains("::")
            && path.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
        if is_path {
            let room = path.split("::").next().unwrap_or("").to_string();
            let function = path.rsplit("::").next().unwrap_or("").to_string();
            if function.chars().next().is_some_and(char::is_lowercase) {
                named.push((room, function));
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_in_backticks() {
        let named = named_functions("calls `wal::log::Wal::append(..)` of `wal::Wal`, see x::y");
        assert_eq!(named, [("wal".to_string(), "append".to_string())]);
    }
}
