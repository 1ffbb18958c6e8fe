//! A Rust source file with its comments and strings masked, its test code marked and its
//! functions measured. A light scanner, not a parser: enough for the checks.

use std::path::Path;

/// One function found in a file.
pub struct Function {
    /// Name.
    pub name: String,
    /// Line of `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub length: usize,
    /// Inside test code.
    pub in_test: bool,
}

/// A file.
pub struct SourceFile {
    /// Path below the root, with `/`.
    pub path: String,
    /// Room: the folder below `crates/`.
    pub room: String,
    /// Text as written, by lines.
    pub lines: Vec<String>,
    /// Text with comments, strings and characters blanked, by lines.
    pub code: Vec<String>,
    /// Whether each line belongs to test code.
    pub test: Vec<bool>,
    /// All functions.
    pub functions: Vec<Function>,
}

impl SourceFile {
    /// Reads and scans a file.
    pub fn load(root: &Path, path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        Ok(Self::scan(relative, &text))
    }

    /// Scans a text.
    pub fn scan(path: String, text: &str) -> Self {
        let masked = mask(text);
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let code: Vec<String> = masked.lines().map(str::to_string).collect();
        let inside = |part: &str| path.contains(&format!("/{part}/"));
        let whole_is_test = ["tests", "benches", "examples", "fuzz"].iter().any(|p| inside(p))
            || path.ends_with("/tests.rs")
            || path.ends_with("_tests.rs");
        let mut test = vec![whole_is_test; lines.len()];
        mark_tests(&code, &mut test);
        let functions = find_functions(&code, &test);
        let room = path.split('/').nth(1).unwrap_or("").to_string();
        Self { path, room, lines, code, test, functions }
    }

    /// Number of lines outside test code.
    pub fn length_without_tests(&self) -> usize {
        self.test.iter().filter(|t| !**t).count()
    }
}

/// Blanks comments, string and character literals, keeping line breaks.
fn mask(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while i < bytes.len() {
        let end = literal_end(&bytes, i);
        if end > i {
            for &c in &bytes[i..end] {
                out.push(if c == '\n' { '\n' } else { ' ' });
            }
            i = end;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    out
}

/// End of the comment or literal that starts at `i`, or `i` if none does.
fn literal_end(c: &[char], i: usize) -> usize {
    let at = |k: usize| c.get(k).copied().unwrap_or('\0');
    let previous_is_word = i > 0 && (at(i - 1).is_alphanumeric() || at(i - 1) == '_');
    match at(i) {
        '/' if at(i + 1) == '/' => (i..c.len()).find(|&k| c[k] == '\n').unwrap_or(c.len()),
        '/' if at(i + 1) == '*' => block_comment_end(c, i),
        '"' => string_end(c, i),
        'r' | 'b' | 'c' if !previous_is_word => prefixed_end(c, i),
        '\'' if at(i + 1) == '\\' => {
            (i + 3..c.len()).find(|&k| c[k] == '\'').map_or(c.len(), |k| k + 1)
        }
        '\'' if at(i + 2) == '\'' => i + 3,
        _ => i,
    }
}

fn block_comment_end(c: &[char], i: usize) -> usize {
    let mut depth = 0;
    let mut k = i;
    while k + 1 < c.len() {
        match (c[k], c[k + 1]) {
            ('/', '*') => {
                depth += 1;
                k += 2;
            }
            ('*', '/') => {
                depth -= 1;
                k += 2;
                if depth == 0 {
                    return k;
                }
            }
            _ => k += 1,
        }
    }
    c.len()
}

fn string_end(c: &[char], i: usize) -> usize {
    let mut k = i + 1;
    while k < c.len() {
        match c[k] {
            '\\' => k += 2,
            '"' => return k + 1,
            _ => k += 1,
        }
    }
    c.len()
}

/// Raw, byte and C strings: an optional second letter, hashes, a quote.
fn prefixed_end(c: &[char], i: usize) -> usize {
    let at = |k: usize| c.get(k).copied().unwrap_or('\0');
    let mut k = i + 1;
    let mut raw = at(i) == 'r';
    if at(k) == 'r' && !raw {
        raw = true;
        k += 1;
    }
    if at(i) == 'b' && at(k) == '\'' {
        return (k + 2..c.len()).find(|&m| c[m] == '\'').map_or(c.len(), |m| m + 1);
    }
    let hashes = (k..c.len()).take_while(|&m| c[m] == '#').count();
    if at(k + hashes) != '"' || (hashes > 0 && !raw) {
        return i;
    }
    if !raw {
        return string_end(c, k);
    }
    let mut m = k + hashes + 1;
    while m < c.len() {
        if c[m] == '"' && (1..=hashes).all(|h| at(m + h) == '#') {
            return m + 1 + hashes;
        }
        m += 1;
    }
    c.len()
}

/// Line of the brace that closes the first one at or after `line`, or the line of a `;` that
/// comes before any brace.
fn block_end(code: &[String], line: usize, column: usize) -> Option<usize> {
    let mut depth = 0i32;
    let mut parentheses = 0i32;
    for (number, text) in code.iter().enumerate().skip(line) {
        let skip = if number == line { column } else { 0 };
        for c in text.chars().skip(skip) {
            match c {
                '(' | '[' => parentheses += 1,
                ')' | ']' => parentheses -= 1,
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(number);
                    }
                }
                ';' if depth == 0 && parentheses == 0 => return Some(number),
                _ => {}
            }
        }
    }
    None
}

fn mark_tests(code: &[String], test: &mut [bool]) {
    for line in 0..code.len() {
        let text = code[line].trim_start();
        let is_test_attribute = text.starts_with("#[cfg(test)]")
            || text.starts_with("#[test]")
            || text.starts_with("#[cfg(all(test")
            || text.starts_with("#[cfg(any(test");
        if !is_test_attribute {
            continue;
        }
        let start = (line..code.len()).find(|&k| {
            let text = code[k].trim_start();
            !text.is_empty() && !text.starts_with("#[")
        });
        let end = start.and_then(|start| block_end(code, start, 0)).unwrap_or(line);
        test[line..=end].fill(true);
    }
}

fn find_functions(code: &[String], test: &[bool]) -> Vec<Function> {
    let mut functions = Vec::new();
    for (line, text) in code.iter().enumerate() {
        let Some(column) = function_column(text) else { continue };
        let name: String =
            text[column + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let characters = text[..column].chars().count();
        if let Some(end) = block_end(code, line, characters).filter(|_| !name.is_empty()) {
            let length = end - line + 1;
            functions.push(Function { name, line: line + 1, length, in_test: test[line] });
        }
    }
    functions
}

fn function_column(text: &str) -> Option<usize> {
    let column = text.find("fn ")?;
    let before = text[..column].chars().last();
    (before.is_none() || before == Some(' ')).then_some(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_marks() {
        let text = "fn a() {\n    let s = \"}\"; // }\n    let c = '}'; let r = r#\"}\"#;\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c();\n";
        let file = SourceFile::scan("crates/x/src/lib.rs".into(), text);
        let names: Vec<_> =
            file.functions.iter().map(|f| (f.name.as_str(), f.length, f.in_test)).collect();
        assert_eq!(names, [("a", 4, false), ("b", 1, true), ("c", 1, false)]);
        assert_eq!(file.length_without_tests(), 5);
        assert_eq!(file.room, "x");
    }
}
