//! REGEXP and its functions.
//!
//! 1. Patterns see characters: texts are brought to UTF-8 first, bytes without a character set
//!    as the characters of the same numbers.
//! 2. The collation decides whether case matters, unless the pattern says so itself.
//! 3. A pattern is compiled once for a session as long as it is among the last ones used.

use super::typing::{compared, compared_text, int};
use super::{Frame, Function, any_nullable};
use crate::builder::Builder;
use crate::expression::{Expr, ExprKind};
use crate::result_type::{Coercibility, ResultType};
use fancy_regex::{Captures, Regex, RegexBuilder};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use types::{Charset, CollationId, SqlError, ValueRef, Warning, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("regexp", 2, 2, resolve_regexp, regexp),
    Function::new("regexp_instr", 2, 2, resolve_instr, regexp_instr),
    Function::new("regexp_substr", 2, 2, resolve_substr, regexp_substr),
    Function::new("regexp_replace", 3, 3, resolve_replace, regexp_replace),
];

type Resolved = Result<ResultType, SqlError>;

/// Steps back that a match may take.
const BACKTRACK_MAX: usize = 1_000_000;
/// Bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 8 << 20;

/// Gives the pattern the collation that decides how it matches.
fn put_collation(pattern: &mut Expr, collation: CollationId) {
    if pattern.result.collation() == collation && pattern.result.is_string() {
        return;
    }
    let plain = crate::expression::LiteralForm::Plain;
    let null = crate::expression::Literal::new(types::Value::Null, plain);
    let empty = Expr { kind: ExprKind::Literal(null), result: ResultType::null() };
    let inner = std::mem::replace(pattern, empty);
    let (characters, nullable) = (inner.result.characters(), inner.result.nullable);
    let coercibility = Coercibility::Implicit;
    let result = ResultType::string(characters, collation, coercibility, false, nullable);
    *pattern = Expr { kind: ExprKind::ConvertText(Box::new(inner)), result };
}

fn resolve(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Result<(), SqlError> {
    let collation = compared(builder, function, &mut arguments[..2])?;
    put_collation(&mut arguments[1], collation);
    Ok(())
}

fn resolve_regexp(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    resolve(builder, function, arguments)?;
    Ok(ResultType::boolean(any_nullable(arguments)))
}

fn resolve_instr(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    resolve(builder, function, arguments)?;
    Ok(int(11, any_nullable(arguments)))
}

fn resolve_substr(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = arguments[0].result.characters();
    let result = compared_text(builder, function.name(), &mut arguments[..2], characters)?;
    put_collation(&mut arguments[1], result.collation());
    Ok(result)
}

fn resolve_replace(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = u64::from(u32::MAX);
    let result = compared_text(builder, function.name(), arguments, characters)?;
    put_collation(&mut arguments[1], result.collation());
    Ok(result)
}

/// Text as characters. See the head of the file.
fn characters<'t>(text: &'t [u8], charset: Charset) -> Cow<'t, str> {
    match std::str::from_utf8(text) {
        Ok(valid) if charset != Charset::Binary || text.is_ascii() => Cow::Borrowed(valid),
        _ if matches!(charset, Charset::Binary) => text.iter().copied().map(char::from).collect(),
        _ => {
            let mut converted = Vec::with_capacity(text.len());
            charset.convert(text, Charset::Utf8mb4, &mut converted);
            Cow::Owned(String::from_utf8_lossy(&converted).into_owned())
        }
    }
}

/// Characters back as text.
fn push_text(characters: &str, charset: Charset, out: &mut Vec<u8>) {
    match charset {
        Charset::Binary => out.extend(characters.chars().map(|it| u32::from(it) as u8)),
        Charset::Utf8mb4 | Charset::Utf8mb3 => out.extend_from_slice(characters.as_bytes()),
        other => {
            Charset::Utf8mb4.convert(characters.as_bytes(), other, out);
        }
    }
}

/// PCRE's forms in those of the library: words' ends as POSIX has them, and brackets, in which
/// `[`, `&&`, `~~` and `--` mean nothing else than their characters. `end` stands for `$`.
fn translated(pattern: &str, of_bytes: bool, end: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("[[:<:]]") {
            out.push_str(r"\b(?=\w)");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("[[:>:]]") {
            out.push_str(r"\b(?<=\w)");
            rest = after;
        } else if character == '[' {
            rest = push_class(rest, of_bytes, &mut out);
        } else if character == '$' {
            out.push_str(end);
            rest = &rest[1..];
        } else {
            let escaped = if character == '\\' { rest[1..].chars().next() } else { None };
            let length = character.len_utf8() + escaped.map_or(0, char::len_utf8);
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    out
}

/// A POSIX class of all characters, as the server means it; the library's have ASCII only.
fn of_unicode(class: &str) -> &str {
    match class {
        "[:alpha:]" => r"\p{L}",
        "[:^alpha:]" => r"\P{L}",
        "[:lower:]" => r"\p{Ll}",
        "[:upper:]" => r"\p{Lu}",
        "[:alnum:]" => r"\p{L}\p{N}",
        "[:digit:]" => r"\p{Nd}",
        "[:^digit:]" => r"\P{Nd}",
        "[:space:]" => r"\s",
        "[:^space:]" => r"\S",
        "[:word:]" => r"\p{L}\p{N}_",
        other => other,
    }
}

/// Appends the class in brackets at the beginning of a pattern; returns what follows it.
fn push_class<'p>(pattern: &'p str, of_bytes: bool, out: &mut String) -> &'p str {
    let mut rest = &pattern[1..];
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    if let Some(after) = rest.strip_prefix(']') {
        out.push_str(r"\]");
        rest = after;
    }
    while let Some(character) = rest.chars().next() {
        let length = character.len_utf8();
        match character {
            ']' => {
                out.push(']');
                return &rest[1..];
            }
            '[' if rest.starts_with("[:") && rest.contains(":]") => {
                let end = rest.find(":]").map_or(1, |at| at + 2);
                let class = &rest[..end];
                out.push_str(if of_bytes { class } else { of_unicode(class) });
                rest = &rest[end..];
                continue;
            }
            '\\' => {
                let next = rest[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..1 + next]);
                rest = &rest[1 + next..];
                continue;
            }
            '[' | '&' | '~' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
        rest = &rest[length..];
    }
    rest
}

/// How a pattern is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    ignores_case: bool,
    /// Classes have ASCII characters only.
    of_bytes: bool,
}

/// A compiled pattern.
#[derive(Debug)]
struct Compiled {
    /// The pattern as characters.
    pattern: String,
    form: Form,
    regex: Regex,
    /// The one whose `$` is also before a line break at the end: only for texts that have one,
    /// since it takes steps back.
    before_break: OnceLock<Regex>,
}

impl Compiled {
    fn new(pattern: &str, form: Form) -> Result<Self, String> {
        let regex = compile(&translated(pattern, form.of_bytes, "$"), form)?;
        let (pattern, before_break) = (pattern.to_string(), OnceLock::new());
        Ok(Self { pattern, form, regex, before_break })
    }

    /// What matches a text.
    fn for_text(&self, text: &str) -> &Regex {
        if !text.ends_with('\n') || !self.pattern.contains('$') || has_lines(&self.pattern) {
            return &self.regex;
        }
        self.before_break.get_or_init(|| {
            let translated = translated(&self.pattern, self.form.of_bytes, r"(?=\n?\z)");
            compile(&translated, self.form).unwrap_or_else(|_| self.regex.clone())
        })
    }
}

/// Whether a pattern asks for `$` at the end of each line.
fn has_lines(pattern: &str) -> bool {
    let mut groups = pattern.split("(?").skip(1);
    groups.any(|group| {
        let mut flags = group.chars().take_while(|it| it.is_ascii_alphabetic());
        flags.any(|flag| flag == 'm')
    })
}

fn compile(translated: &str, form: Form) -> Result<Regex, String> {
    let built = RegexBuilder::new(translated)
        .case_insensitive(form.ignores_case)
        .backtrack_limit(BACKTRACK_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .build();
    built.map_err(|error| error.to_string())
}

/// The text and the compiled pattern; none for NULL. Nothing is looked at behind a NULL.
fn operands<'a>(
    frame: &Frame<'a>,
    first: First,
) -> Result<Option<(Cow<'a, str>, Charset, Arc<Compiled>)>, SqlError> {
    let charset = frame.result(1).collation().charset();
    let (text, regex) = match first {
        First::Text => (frame.text(0)?, None),
        First::Pattern => {
            let Some(regex) = compiled(frame)? else { return Ok(None) };
            (frame.text(0)?, Some(regex))
        }
    };
    let Some(text) = text else { return Ok(None) };
    let regex = match regex {
        None => compiled(frame)?,
        known => known,
    };
    Ok(regex.map(|regex| (characters(text, charset), charset, regex)))
}

/// Which operand a function looks at first.
#[derive(Clone, Copy)]
enum First {
    Text,
    Pattern,
}

/// The compiled pattern; none for NULL.
fn compiled(frame: &Frame<'_>) -> Result<Option<Arc<Compiled>>, SqlError> {
    let Some(pattern) = frame.text(1)? else { return Ok(None) };
    let collation = frame.result(1).collation().info();
    let charset = collation.charset;
    let ignores_case = !collation.compares_code_points();
    let form = Form { ignores_case, of_bytes: charset == Charset::Binary };
    let mut known = frame.context.patterns.borrow_mut();
    let is_it = |it: &Pattern| it.compiled.form == form && it.text == pattern;
    let found = known.iter().position(is_it);
    let compiled = match found {
        Some(at) => known[at].compiled.clone(),
        None => {
            let compiled = Compiled::new(&characters(pattern, charset), form);
            let compiled = Arc::new(compiled.map_err(|error| regex_error(&error))?);
            if known.len() >= PATTERNS_MAX {
                known.remove(0);
            }
            let text = pattern.to_vec();
            known.push(Pattern { text, compiled: compiled.clone() });
            compiled
        }
    };
    Ok(Some(compiled))
}

/// Patterns that a session keeps compiled.
const PATTERNS_MAX: usize = 16;

/// A pattern that was used.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: Vec<u8>,
    compiled: Arc<Compiled>,
}

fn regex_error(error: &str) -> SqlError {
    SqlError::new(&codes::REGEXP_ERROR, &[&error])
}

/// A match that takes too many steps is a warning and no match.
fn too_long<T>(frame: &Frame<'_>, error: &fancy_regex::Error) -> Option<T> {
    frame.context.push_warning(Warning::new(&codes::REGEXP_ERROR, &[&error.to_string()]));
    None
}

fn regexp(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((text, _, regex)) = operands(&frame, First::Pattern)? else {
        return Ok(ValueRef::Null);
    };
    let found = regex
        .for_text(&text)
        .is_match(&*text)
        .or_else(|error| too_long(&frame, &error).ok_or(error));
    Ok(ValueRef::Int(found.unwrap_or(false).into()))
}

fn regexp_instr(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((text, _, regex)) = operands(&frame, First::Pattern)? else {
        return Ok(ValueRef::Null);
    };
    let found = regex.for_text(&text).find(&*text).unwrap_or_else(|error| too_long(&frame, &error));
    let place = found.map_or(0, |found| 1 + text[..found.start()].chars().count());
    Ok(ValueRef::Int(place as i64))
}

fn regexp_substr(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((text, charset, regex)) = operands(&frame, First::Text)? else {
        return Ok(ValueRef::Null);
    };
    let found = regex.for_text(&text).find(&*text).unwrap_or_else(|error| too_long(&frame, &error));
    let mut out = Vec::new();
    push_text(found.map_or("", |found| found.as_str()), charset, &mut out);
    Ok(frame.keep(&out))
}

/// Appends the replacement: `\1` is what the first group matched.
fn push_replacement(replacement: &str, found: &Captures<'_, str>, out: &mut String) {
    let mut rest = replacement.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match rest.next() {
            Some(digit @ '0'..='9') => {
                let group = digit as usize - '0' as usize;
                out.push_str(found.get(group).map_or("", |group| group.as_str()));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
}

fn regexp_replace(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((text, charset, regex)) = operands(&frame, First::Text)? else {
        return Ok(ValueRef::Null);
    };
    let Some(replacement) = frame.text(2)? else { return Ok(ValueRef::Null) };
    let replacement = characters(replacement, charset);
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for found in regex.for_text(&text).captures_iter(&*text) {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                too_long::<()>(&frame, &error);
                break;
            }
        };
        // The server stops at the first match of nothing.
        let Some(whole) = found.get(0).filter(|whole| !whole.range().is_empty()) else { break };
        out.push_str(&text[end..whole.start()]);
        push_replacement(&replacement, &found, &mut out);
        end = whole.end();
    }
    out.push_str(&text[end..]);
    let mut bytes = Vec::with_capacity(out.len());
    push_text(&out, charset, &mut bytes);
    frame.keep_limited(&bytes)
}
