//! Calls and words that have no place in the tree.

use super::source::SourceFile;
use std::path::Path;
use std::process::Command;

/// Rooms in which `unsafe` may stand.
const UNSAFE_ROOMS: [&str; 6] = ["runtime", "pagestore", "btree", "txn", "codec", "server"];
/// Tools that run outside the server's runtime.
const TOOL_ROOMS: [&str; 7] = ["xtask", "sqltest", "sim", "bench", "history", "lab", "lossy"];
/// Calls that crash on input or were left behind.
const FORBIDDEN: [&str; 5] = [".unwrap()", "todo!(", "dbg!(", "unimplemented!(", "unreachable!()"];
/// What only the runtime may name.
const RUNTIME_ONLY: [&str; 8] = [
    "std::thread::spawn",
    "std::thread::sleep",
    "std::thread::Builder",
    "std::net::Tcp",
    "std::os::unix::net",
    "std::fs::",
    "std::time::Instant",
    "SystemTime",
];

/// Checks one file.
pub fn check(file: &SourceFile) -> Vec<String> {
    let mut findings = Vec::new();
    let is_tool = TOOL_ROOMS.contains(&file.room.as_str());
    for (index, code) in file.code.iter().enumerate() {
        if file.test[index] {
            continue;
        }
        let mut find = |what: String| {
            findings.push(format!("{}:{}: {what}", file.path, index + 1));
        };
        for call in FORBIDDEN.iter().filter(|call| code.contains(**call)) {
            find(format!("`{call}` outside tests; return an error or say why it cannot fail"));
        }
        if file.room != "runtime" && !is_tool {
            for path in RUNTIME_ONLY.iter().filter(|path| code.contains(**path)) {
                find(format!("`{path}` outside the runtime room"));
            }
        }
        if has_unsafe(code) {
            if !UNSAFE_ROOMS.contains(&file.room.as_str()) {
                find("`unsafe` outside its rooms".to_string());
            } else if !has_safety_comment(file, index) {
                find("`unsafe` without a SAFETY comment above".to_string());
            }
        }
    }
    findings
}

fn has_unsafe(code: &str) -> bool {
    code.match_indices("unsafe").any(|(start, word)| {
        let rest = code[start + word.len()..].trim_start();
        let before = code[..start].chars().last();
        let stands_alone = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '(');
        stands_alone && (rest.starts_with('{') || rest.starts_with("impl"))
    })
}

/// A SAFETY comment on the line itself or in the comment lines and attributes above it, or
/// above the statement that the line continues.
fn has_safety_comment(file: &SourceFile, index: usize) -> bool {
    (index.saturating_sub(8)..=index).any(|k| file.lines[k].contains("SAFETY:"))
}

/// Words of the workplace in tracked files.
pub fn check_words(root: &Path) -> Result<Vec<String>, String> {
    let pattern =
        "(^|[^a-z])/(work|farm|root)/|https?://(index|static|files|deb|repo1?|registry|proxy)\\.";
    let output = Command::new("git")
        .current_dir(root)
        .args(["grep", "-nIE", pattern, "--", ".", ":!Cargo.lock", ":!crates/xtask/src/tidy"])
        .output()
        .map_err(|e| format!("git grep: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().map(|line| format!("{line}: a path or address of one machine")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&SourceFile::scan("crates/wal/src/lib.rs".into(), text)).len()
    }

    #[test]
    fn finds_forbidden_calls_only_outside_tests() {
        assert_eq!(findings("fn a() { b().unwrap() }\n"), 1);
        assert_eq!(findings("#[cfg(test)]\nmod t {\n    fn a() { b().unwrap() }\n}\n"), 0);
        assert_eq!(findings("// b().unwrap()\n"), 0);
        assert_eq!(findings("fn a() { unsafe { b() } }\n"), 1);
        assert_eq!(findings("use std::fs::File;\n"), 1);
    }
}
