//! JSON functions that look at documents.

use super::json_make::{
    Resolved, as_json, document, document_of, json_text_of, loose, parsed, path, plain_path,
    refuse, told, warn_one_or_all,
};
use super::typing::{int, json_text, plain, resolve_text_like, system_text, text_like};
use super::{Frame, Function, MANY, Nature, any_nullable};
use crate::builder::{Builder, convert_to_json_text};
use crate::expression::Expr;
use crate::json::{self, Kind, Node, Parsed, Path};
use crate::result_type::ResultType;
use std::borrow::Cow;
use types::{CollationId, Level, SqlError, ValueRef, Warning, collation};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("json_valid", 1, 1, resolve_maybe, json_valid),
    Function::new("json_exists", 2, 2, resolve_maybe, json_exists),
    Function::new("json_type", 1, 1, resolve_type, json_type),
    Function::new("json_depth", 1, 1, resolve_depth, json_depth),
    Function::new("json_length", 1, 2, resolve_count, json_length),
    Function::new("json_extract", 2, MANY, resolve_extract, json_extract),
    Function::new("json_value", 2, 2, resolve_text, json_value),
    Function::new("json_query", 2, 2, resolve_document, json_query),
    Function::new("json_unquote", 1, 1, resolve_unquote, json_unquote),
    Function::new("json_keys", 1, 2, resolve_text_like, json_keys),
    Function::new("json_contains", 2, 3, resolve_maybe, json_contains),
    Function::new("json_contains_path", 3, MANY, resolve_maybe, json_contains_path),
    Function::new("json_overlaps", 2, 2, resolve_maybe, json_overlaps),
    Function::new("json_equals", 2, 2, resolve_maybe, json_equals),
    Function::new("json_search", 3, MANY, resolve_document, json_search),
    Function::new("json_compact", 1, 1, resolve_document, json_compact).being(Nature::PrintedJson),
    Function::new("json_loose", 1, 1, resolve_document, json_loose).being(Nature::PrintedJson),
    Function::new("json_detailed", 1, 2, resolve_detailed, json_detailed)
        .being(Nature::PrintedJson),
    Function::new("json_pretty", 1, 2, resolve_detailed, json_detailed).being(Nature::PrintedJson),
    Function::new("json_normalize", 1, 1, resolve_normalize, json_normalize),
];

/// A truth that is unknown where the document is broken.
fn resolve_maybe(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType::boolean(true))
}

fn resolve_depth(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(int(10, any_nullable(arguments)))
}

fn resolve_count(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(int(10, true))
}

fn resolve_type(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(ResultType { ascii: false, ..system_text(12) })
}

fn resolve_text(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let characters = arguments[0].result.characters();
    Ok(text_like(builder, &arguments[0], characters))
}

fn resolve_unquote(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    convert_to_json_text(builder, &mut arguments[0]);
    Ok(ResultType { ascii: true, ..json_text(arguments[0].result.characters()) })
}

fn resolve_normalize(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    convert_to_json_text(builder, &mut arguments[0]);
    Ok(as_json(json_text(arguments[0].result.characters().saturating_mul(2))))
}

/// A document: as it is, printed without blanks, or with some.
fn resolve_document(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let times = if function.name() == "json_loose" { 2 } else { 1 };
    let characters = arguments[0].result.characters().saturating_mul(times);
    let result = as_json(text_like(builder, &arguments[0], characters));
    Ok(match function.name() {
        "json_query" | "json_search" => result,
        _ => plain(result),
    })
}

fn resolve_detailed(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    Ok(plain(as_json(text_like(builder, &arguments[0], super::typing::UNKNOWN_CHARACTERS))))
}

fn resolve_extract(
    builder: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let paths = arguments.len() as u64 - 1;
    let between = if paths > 1 { paths } else { 0 };
    let characters = arguments[0].result.characters().saturating_mul(paths);
    let characters = characters.saturating_add(between).saturating_mul(2);
    let result = as_json(text_like(builder, &arguments[0], characters));
    Ok(ResultType { is_json_part: true, ..result })
}

fn flag<'a>(value: bool) -> Result<ValueRef<'a>, SqlError> {
    Ok(ValueRef::Int(value.into()))
}

fn json_valid(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    match json_text_of(&frame, 0)? {
        None => Ok(ValueRef::Null),
        Some(text) => match json::parse(text) {
            Ok(_) => flag(true),
            Err(fault) => {
                let note = Warning { level: Level::Note, ..told(&frame, 0, fault, false) };
                frame.context.push_warning(note);
                flag(false)
            }
        },
    }
}

/// Whether there is anything at a path; what stands behind it is not looked at.
fn json_exists(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(parsed) = parsed(&frame, 0)? else { return Ok(ValueRef::Null) };
    // A path that cannot be read is nowhere, and no warning is given.
    let Some(Ok(path)) = frame.text(1)?.map(Path::parse) else { return Ok(ValueRef::Null) };
    let path = path.without_deep();
    let found = parsed.node.as_ref().is_some_and(|node| path.first(node).is_some());
    if found || path.steps.is_empty() {
        return flag(true);
    }
    match parsed.fault.or(parsed.tail) {
        None => flag(false),
        Some(fault) => Ok(refuse(&frame, 0, fault)?.unwrap_or(ValueRef::Null)),
    }
}

fn json_type(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(node) = document(&frame, 0)? else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Bytes(match node.kind {
        Kind::Null => b"NULL",
        Kind::Boolean(_) => b"BOOLEAN",
        Kind::Number if node.raw.contains(&b'.') => b"DOUBLE",
        Kind::Number => b"INTEGER",
        Kind::String => b"STRING",
        Kind::Array(_) => b"ARRAY",
        Kind::Object(_) => b"OBJECT",
    }))
}

fn json_depth(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let node = document(&frame, 0)?;
    Ok(node.map_or(ValueRef::Null, |node| ValueRef::Int(node.depth() as i64)))
}

fn json_length(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = json_text_of(&frame, 0)? else { return Ok(ValueRef::Null) };
    let path = if frame.count() > 1 { plain_path(&frame, 1)? } else { Some(Path::default()) };
    let Some(path) = path else { return Ok(ValueRef::Null) };
    // What stands behind a scalar is not read.
    let begun = Parsed::of(text).node;
    let named = begun.as_ref().filter(|_| !path.counts_back()).and_then(|node| path.first(node));
    if named.is_some_and(|node| node.is_scalar() && node.whole) {
        return Ok(ValueRef::Int(1));
    }
    let node = document_of(&frame, 0, text)?.and_then(|node| path.first(&node).cloned());
    let Some(node) = node else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(match node.kind {
        Kind::Array(list) => list.len() as i64,
        Kind::Object(list) => list.len() as i64,
        _ => 1,
    }))
}

/// All arguments from one on as paths; none if one of them is none.
fn paths(frame: &Frame<'_>, from: usize) -> Result<Option<Vec<Path>>, SqlError> {
    (from..frame.count()).map(|argument| path(frame, argument)).collect()
}

fn json_extract(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = json_text_of(&frame, 0)? else { return Ok(ValueRef::Null) };
    let mut found: Vec<&Node<'_>> = Vec::new();
    let Some(paths) = paths(&frame, 1)? else { return Ok(ValueRef::Null) };
    let is_list = paths.len() > 1 || paths.iter().any(Path::is_wild);
    let Some(node) = document_of(&frame, 0, text)? else { return Ok(ValueRef::Null) };
    for path in &paths {
        found.extend(path.select(&node));
    }
    // In the order of the text; what two paths name is there twice.
    if paths.len() > 1 {
        found.sort_by_key(|it| (it.raw.as_ptr() as usize, usize::MAX - it.raw.len()));
    }
    match (&found[..], is_list) {
        ([], _) => Ok(ValueRef::Null),
        ([only], false) => loose(&frame, only),
        _ => {
            let list = found.into_iter().cloned().collect();
            loose(&frame, &Node { raw: b"", kind: Kind::Array(list), whole: true })
        }
    }
}

fn json_value(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    // The document comes first, and so do its warnings.
    let node = parsed(&frame, 0)?.and_then(|parsed| parsed.node);
    let Some(path) = plain_path(&frame, 1)? else { return Ok(ValueRef::Null) };
    let found =
        node.as_ref().and_then(|node| path.select(node).into_iter().find(|it| it.is_scalar()));
    Ok(match found {
        None => ValueRef::Null,
        Some(it) => match it.kind {
            Kind::Null => ValueRef::Null,
            Kind::Boolean(true) => ValueRef::Bytes(b"1"),
            Kind::Boolean(false) => ValueRef::Bytes(b"0"),
            _ => match it.string_body() {
                Some(body) => frame.keep(&json::unescape(body)),
                None => ValueRef::Bytes(it.raw),
            },
        },
    })
}

fn json_query(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let node = parsed(&frame, 0)?.and_then(|parsed| parsed.node);
    let Some(path) = path(&frame, 1)? else { return Ok(ValueRef::Null) };
    let path = path.without_deep();
    let wanted = |it: &&Node<'_>| it.whole && (!it.is_scalar() || matches!(it.kind, Kind::Null));
    let found = node.as_ref().and_then(|node| path.select(node).into_iter().find(wanted));
    // What comes behind a null is not looked at.
    let found = found.filter(|it| !it.is_scalar());
    Ok(found.map_or(ValueRef::Null, |it| ValueRef::Bytes(it.raw)))
}

fn json_unquote(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = json_text_of(&frame, 0)? else { return Ok(ValueRef::Null) };
    let parsed = Parsed::of(text);
    let Some(node) = parsed.node else {
        let is_string = text.trim_ascii_start().first() == Some(&b'"');
        if let Some(fault) = parsed.fault.filter(|_| is_string) {
            refuse::<()>(&frame, 0, fault)?;
        }
        return Ok(ValueRef::Bytes(text));
    };
    Ok(match node.string_body().map(json::unescape) {
        None => ValueRef::Bytes(text),
        Some(Cow::Borrowed(body)) => ValueRef::Bytes(body),
        Some(Cow::Owned(body)) => frame.keep(&body),
    })
}

/// The object whose keys are asked for, read up to its end.
fn object_of_keys<'a>(frame: &Frame<'a>) -> Result<Option<Node<'a>>, SqlError> {
    let Some(parsed) = parsed(frame, 0)? else { return Ok(None) };
    let mut found = parsed.node;
    if frame.count() > 1 {
        let Some(path) = plain_path(frame, 1)? else { return Ok(None) };
        found = found.and_then(|node| path.first(&node).cloned());
    }
    let object = |node: &Node<'_>| matches!(node.kind, Kind::Object(_));
    Ok(match (found, parsed.fault) {
        (Some(node), Some(fault)) if object(&node) && !node.whole => refuse(frame, 0, fault)?,
        (None, Some(fault)) => refuse(frame, 0, fault)?,
        (found, _) => found.filter(object),
    })
}

fn json_keys(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(Node { kind: Kind::Object(list), .. }) = object_of_keys(&frame)? else {
        return Ok(ValueRef::Null);
    };
    let mut out = vec![b'['];
    for (number, (key, _)) in list.iter().enumerate() {
        if list[..number].iter().any(|(other, _)| json::same_key(other, key)) {
            continue;
        }
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        out.push(b'"');
        out.extend_from_slice(key);
        out.push(b'"');
    }
    out.push(b']');
    Ok(frame.keep(&out))
}

fn json_contains(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(parsed) = parsed(&frame, 0)? else { return Ok(ValueRef::Null) };
    let Some(wanted) = self::parsed(&frame, 1)? else { return Ok(ValueRef::Null) };
    let mut part = parsed.node;
    if frame.count() > 2 {
        let Some(path) = plain_path(&frame, 2)? else { return Ok(ValueRef::Null) };
        part = part.and_then(|node| path.first(&node).cloned());
    }
    if let (Some(part), Some(wanted)) = (&part, &wanted.node)
        && !matches!(part.kind, Kind::Array(_))
        && std::mem::discriminant(&part.kind) != std::mem::discriminant(&wanted.kind)
    {
        // Nothing else is looked at then.
        return flag(false);
    }
    if let Some(fault) = parsed.fault.filter(|_| part.as_ref().is_none_or(|part| !part.whole)) {
        return Ok(refuse(&frame, 0, fault)?.unwrap_or(ValueRef::Null));
    }
    match (part, wanted.node, wanted.fault) {
        (None, ..) => flag(false),
        (Some(part), Some(wanted), None) => flag(part.contains(&wanted)),
        (_, _, Some(fault)) => Ok(refuse(&frame, 1, fault)?.unwrap_or(ValueRef::Null)),
        (_, None, None) => Ok(ValueRef::Null),
    }
}

/// Whether argument 2 says "one" (true) or "all"; none with a warning for something else.
fn is_one(frame: &Frame<'_>) -> Result<Option<bool>, SqlError> {
    let word = frame.text(1)?.map(<[u8]>::to_ascii_lowercase);
    Ok(match word.as_deref() {
        Some(b"one") => Some(true),
        Some(b"all") => Some(false),
        None => None,
        Some(_) => {
            warn_one_or_all(frame)?;
            None
        }
    })
}

fn json_contains_path(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = json_text_of(&frame, 0)? else { return Ok(ValueRef::Null) };
    let Some(one) = is_one(&frame)? else { return Ok(ValueRef::Null) };
    let Some(paths) = paths(&frame, 2)? else { return Ok(ValueRef::Null) };
    let Some(node) = document_of(&frame, 0, text)? else { return Ok(ValueRef::Null) };
    let found = paths.iter().filter(|path| path.first(&node).is_some()).count();
    flag(if one { found > 0 } else { found == frame.count() - 2 })
}

/// What two values share is enough, whatever stands behind it.
fn json_overlaps(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let (Some(a), Some(b)) = (parsed(&frame, 0)?, parsed(&frame, 1)?) else {
        return Ok(ValueRef::Null);
    };
    let object = |it: &Parsed<'_>| matches!(&it.node, Some(Node { kind: Kind::Object(_), .. }));
    let whole = a.fault.is_none() && b.fault.is_none();
    if let (Some(left), Some(right)) = (&a.node, &b.node)
        && (object(&a) && right.is_scalar() || object(&b) && left.is_scalar())
    {
        return flag(false);
    }
    if let (Some(left), Some(right)) = (&a.node, &b.node)
        && (whole || !object(&a) || !object(&b))
        && left.overlaps(right)
    {
        return flag(true);
    }
    match (a.fault, b.fault) {
        (Some(fault), _) => refuse(&frame, 0, fault)?,
        (None, Some(fault)) => refuse(&frame, 1, fault)?,
        _ => None::<()>,
    };
    flag(false)
}

fn json_equals(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(a) = json_text_of(&frame, 0)? else { return Ok(ValueRef::Null) };
    let Some(b) = json_text_of(&frame, 1)? else { return Ok(ValueRef::Null) };
    let Some(a) = document_of(&frame, 0, a)? else { return Ok(ValueRef::Null) };
    let Some(b) = document_of(&frame, 1, b)? else { return Ok(ValueRef::Null) };
    flag(a.equals(&b))
}

/// Appends the paths of all strings that are like a pattern.
fn search(
    node: &Node<'_>,
    place: &mut Vec<u8>,
    is_like: &dyn Fn(&[u8]) -> bool,
    wanted: &dyn Fn(&Node<'_>) -> bool,
    found: &mut Vec<Vec<u8>>,
) {
    let length = place.len();
    match &node.kind {
        Kind::String => {
            let body = node.string_body().unwrap_or_default();
            if wanted(node) && is_like(&json::unescape(body)) {
                found.push(place.clone());
            }
        }
        Kind::Array(list) => {
            for (number, member) in list.iter().enumerate() {
                place.extend_from_slice(format!("[{number}]").as_bytes());
                search(member, place, is_like, wanted, found);
                place.truncate(length);
            }
        }
        Kind::Object(list) => {
            for (key, member) in list {
                place.push(b'.');
                place.extend_from_slice(key);
                search(member, place, is_like, wanted, found);
                place.truncate(length);
            }
        }
        Kind::Null | Kind::Boolean(_) | Kind::Number => {
            if wanted(node) && is_like(node.raw) {
                found.push(place.clone());
            }
        }
    }
}

fn json_search(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(parsed) = parsed(&frame, 0)? else { return Ok(ValueRef::Null) };
    let Some(one) = is_one(&frame)? else { return Ok(ValueRef::Null) };
    let Some(pattern) = frame.text(2)? else { return Ok(ValueRef::Null) };
    let mut escape = Some(u32::from('\\'));
    if frame.count() > 3
        && let Some(text) = frame.text(3)?
    {
        let own = std::str::from_utf8(text).ok().and_then(|text| text.chars().next());
        escape = own.map(u32::from).or(escape);
    }
    let Some(paths) = paths(&frame, 4)? else { return Ok(ValueRef::Null) };
    // A value counts if it lies within the text that one of the paths names.
    let node = parsed.node.as_ref();
    let selected = |path: &Path| node.map(|node| path.select(node)).unwrap_or_default();
    let roots: Vec<&Node<'_>> = paths.iter().flat_map(selected).collect();
    let within = |it: &Node<'_>| {
        let inside = |root: &&Node<'_>| root.raw.as_ptr_range().contains(&it.raw.as_ptr());
        paths.is_empty() || roots.iter().any(inside)
    };
    let rules = frame.result(0).collation().info();
    let is_like = |text: &[u8]| collation::like(rules, text, pattern, escape);
    let mut found = Vec::new();
    if let Some(node) = node {
        search(node, &mut b"$".to_vec(), &is_like, &within, &mut found);
    }
    if one {
        found.truncate(1);
    }
    if let Some(fault) = parsed.fault.or(parsed.tail).filter(|_| !one || found.is_empty()) {
        return Ok(refuse(&frame, 0, fault)?.unwrap_or(ValueRef::Null));
    }
    let quoted = |place: &Vec<u8>| [b"\"", place.as_slice(), b"\""].concat();
    Ok(match &found[..] {
        [] => ValueRef::Null,
        [only] => frame.keep(&quoted(only)),
        _ => {
            let list: Vec<_> = found.iter().map(quoted).collect();
            frame.keep(&[b"[", list.join(&b", "[..]).as_slice(), b"]"].concat())
        }
    })
}

fn printed<'a>(
    frame: &Frame<'a>,
    print: impl Fn(&Node<'_>, &mut Vec<u8>),
) -> Result<ValueRef<'a>, SqlError> {
    let Some(node) = document(frame, 0)? else { return Ok(ValueRef::Null) };
    let mut out = Vec::new();
    print(&node, &mut out);
    frame.keep_limited(&out)
}

fn json_compact(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    printed(&frame, json::push_compact)
}

fn json_loose(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    printed(&frame, json::push_loose)
}

fn json_normalize(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let is_binary = frame.result(0).collation() == CollationId::BINARY;
    printed(&frame, |node, out| json::normalized(node, is_binary, out))
}

/// Most blanks for a level.
const TAB_MAX: i64 = 16;

fn json_detailed(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let mut tab = 4;
    if frame.count() > 1 {
        let Some(asked) = frame.integer(1)? else { return Ok(ValueRef::Null) };
        tab = asked.clamp(0, TAB_MAX);
    }
    printed(&frame, |node, out| json::push_detailed(node, 0, tab as usize, out))
}
