//! What is left of a statement without its literals and names: statements of one shape were made
//! from one template.
//!
//! 1. Numbers and texts become `?`, user variables `@`, names `n`; keywords and functions stay. In
//!    the tests keywords are written in capitals and names are not; a word before `(` is a
//!    function.
//! 2. Lists of the same things (`?, ?, ?` or `n, n`, rows of VALUES) count as one of them, so that
//!    neither the number of values nor of columns makes a new shape.

/// The shape of a statement as it was written.
pub fn of(statement: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = statement.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = word_of(rest, first);
        rest = &rest[length..];
        let is_call = rest.starts_with('(');
        words.push(match word {
            Word::Value => "?".into(),
            Word::Variable => "@".into(),
            Word::Name(name) if is_call && name != "IN" => name.to_ascii_uppercase(),
            Word::Name(name) if is_keyword(name) => name.into(),
            Word::Name(_) | Word::Quoted => "n".into(),
            Word::Sign => first.to_string(),
        });
        rest = rest.trim_start();
    }
    without_repetition(words).join(" ")
}

enum Word<'t> {
    Value,
    Variable,
    Name(&'t str),
    Quoted,
    Sign,
}

fn is_keyword(name: &str) -> bool {
    name.len() > 1 && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// The first word of a text, and its length in bytes.
fn word_of(text: &str, first: char) -> (Word<'_>, usize) {
    let length_while =
        |fits: &dyn Fn(char) -> bool| text.find(|character| !fits(character)).unwrap_or(text.len());
    let is_name = |character: char| character.is_alphanumeric() || "_$".contains(character);
    match first {
        '\'' | '"' => (Word::Value, quoted(text, first)),
        '`' => (Word::Quoted, quoted(text, first)),
        '@' => (Word::Variable, length_while(&|it| is_name(it) || it == '@' || it == '.')),
        _ if first.is_ascii_digit() => (Word::Value, length_while(&|it| is_name(it) || it == '.')),
        _ if is_name(first) => {
            let length = length_while(&is_name);
            // x'41', _latin1'a'
            match text[length..].starts_with('\'') && (length == 1 || first == '_') {
                true => (Word::Value, length + quoted(&text[length..], '\'')),
                false => (Word::Name(&text[..length]), length),
            }
        }
        _ => (Word::Sign, first.len_utf8()),
    }
}

/// Bytes of a quoted text.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote != '`' {
            characters.next();
        } else if character == quote {
            match characters.peek() {
                Some((_, next)) if *next == quote => {
                    characters.next();
                }
                _ => return at + 1,
            }
        }
    }
    text.len()
}

/// Leaves one of the same things in a row with commas between them.
fn without_repetition(words: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        kept.push(word);
        // `x , x` with x of up to three words: `?`, `- ?`, `( ? )`.
        for length in 1..=3 {
            let Some(comma) = kept.len().checked_sub(length + 1) else { continue };
            let Some(start) = comma.checked_sub(length) else { continue };
            if kept[comma] == "," && kept[start..comma] == kept[comma + 1..] {
                kept.truncate(comma);
                break;
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn literals_and_names_do_not_make_a_shape() {
        let one = of("SELECT a, b FROM t1 WHERE x = 'it''s' AND y IN (1, 2, 3)");
        assert_eq!(one, "SELECT n FROM n WHERE n = ? AND n IN ( ? )");
        assert_eq!(one, of("SELECT c FROM `t 2` WHERE z = 17 AND w IN (x'41')"));
        assert_ne!(one, of("SELECT c FROM t WHERE z < 17 AND w IN (1)"));
    }

    #[test]
    fn rows_of_values_are_one() {
        let one = of("INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'c')");
        assert_eq!(of("INSERT INTO u VALUES (1, 2)"), "INSERT INTO n VALUES ( ? )");
        assert!(one.starts_with("INSERT INTO n VALUES ( ? )"), "{one}");
    }

    #[test]
    fn functions_and_signs_stay() {
        assert_eq!(of("SELECT abs(-1.5e3) + @x"), "SELECT ABS ( - ? ) + @");
        assert_ne!(of("SELECT ABS(1)"), of("SELECT SIGN(1)"));
        assert_eq!(of("SELECT 'never closed"), "SELECT ?");
    }
}
