//! JSON functions that change documents.

use super::json_make::{
    Resolved, as_json, changed, characters, document_of, json_text_of, leading, leading_of, loose,
    parsed, plain_path, refuse, resolve_make, value_node, warn,
};
use super::typing::text_like;
use super::{Frame, Function, MANY};
use crate::builder::{Builder, Strength, convert_if_safe};
use crate::expression::Expr;
use crate::json::{Fault, Kind, Node, Path, Side, Step, patched, place, same_key};
use crate::result_type::Coercibility;
use types::{SqlError, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("json_set", 3, MANY, resolve_pairs, json_set),
    Function::new("json_insert", 3, MANY, resolve_pairs, json_insert),
    Function::new("json_replace", 3, MANY, resolve_pairs, json_replace),
    Function::new("json_remove", 2, MANY, resolve_changed, json_remove),
    Function::new("json_array_append", 3, MANY, resolve_pairs, json_array_append),
    Function::new("json_array_insert", 3, MANY, resolve_pairs, json_array_insert),
    Function::new("json_merge", 2, MANY, resolve_make, json_merge),
    Function::new("json_merge_preserve", 2, MANY, resolve_make, json_merge),
    Function::new("json_merge_patch", 2, MANY, resolve_make, json_merge_patch),
];

/// A changed document: in the collation of the one that it was, as far as others fit in.
fn resolve_changed(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    let characters = match function.name() {
        "json_remove" => arguments[0].result.characters(),
        _ => characters(arguments),
    };
    let mut result = text_like(builder, &arguments[0], characters);
    // What is made of a number is in a number's character set.
    let own = Strength::of(&arguments[0].result);
    if own.coercibility == Coercibility::Numeric {
        (result.column_type.collation, result.coercibility) = (own.collation, own.coercibility);
    }
    // Bytes are characters of the same numbers.
    let is_text =
        |it: &&mut Expr| it.result.is_string() && !it.result.collation().info().is_binary();
    for argument in arguments.iter_mut().skip(1).filter(is_text) {
        convert_if_safe(builder, argument, result.collation());
    }
    Ok(as_json(result))
}

/// A document followed by paths and values.
fn resolve_pairs(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    if arguments.len().is_multiple_of(2) {
        let name = function.name();
        return Err(SqlError::new(&codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name]));
    }
    resolve_changed(builder, function, arguments)
}

/// The part that steps without wildcards name.
fn find<'n, 'a>(node: &'n mut Node<'a>, steps: &[Step]) -> Option<&'n mut Node<'a>> {
    let Some((step, rest)) = steps.split_first() else { return Some(node) };
    if let Step::Index(0) = step
        && !matches!(node.kind, Kind::Array(_))
    {
        return find(node, rest);
    }
    match (step, &mut node.kind) {
        (Step::Key(Some(key)), Kind::Object(list)) => {
            let (_, member) = list.iter_mut().find(|(own, _)| same_key(own, key))?;
            find(member, rest)
        }
        (Step::Index(index), Kind::Array(list)) => {
            let at = place(*index, list.len())?;
            find(list.get_mut(at)?, rest)
        }
        _ => None,
    }
}

/// What SET, INSERT and REPLACE do where something is, and where nothing is.
#[derive(Clone, Copy)]
struct Ways {
    replaces: bool,
    inserts: bool,
}

/// Puts a value at a path; it is computed only if there is a place for it.
fn put<'a>(
    root: &mut Node<'a>,
    path: &Path,
    value: impl FnOnce() -> Result<Node<'a>, SqlError>,
    key: &'a [u8],
    ways: Ways,
) -> Result<(), SqlError> {
    let Some((last, parents)) = path.steps.split_last() else {
        if ways.replaces {
            *root = value()?;
        }
        return Ok(());
    };
    let Some(parent) = find(root, parents) else { return Ok(()) };
    match (last, &mut parent.kind) {
        (Step::Key(Some(wanted)), Kind::Object(list)) => {
            match list.iter_mut().find(|(own, _)| same_key(own, wanted)) {
                Some((_, present)) if ways.replaces => *present = value()?,
                Some(_) => {}
                None if ways.inserts => list.push((key, value()?)),
                None => {}
            }
        }
        (Step::Index(index), Kind::Array(list)) => {
            let present = place(*index, list.len()).and_then(|at| list.get_mut(at));
            match present {
                Some(present) if ways.replaces => *present = value()?,
                Some(_) => {}
                None if ways.inserts => list.push(value()?),
                None => {}
            }
        }
        // What is no array is an array of itself, but for counting from its end.
        (Step::Index(0), _) if ways.replaces => *parent = value()?,
        (Step::Index(..0), _) if ways.replaces && ways.inserts => *parent = value()?,
        (Step::Index(index), _) if ways.inserts && *index != 0 => {
            let list = vec![parent.clone(), value()?];
            parent.kind = Kind::Array(list);
        }
        _ => {}
    }
    Ok(())
}

/// The document and the first path, which is looked at before the document.
fn with_path<'a>(frame: &Frame<'a>) -> Result<Option<(Node<'a>, Path)>, SqlError> {
    let Some(text) = json_text_of(frame, 0)? else { return Ok(None) };
    let Some(path) = plain_path(frame, 1)? else { return Ok(None) };
    Ok(document_of(frame, 0, text)?.map(|node| (node, path)))
}

/// The path of an argument; the first one is known.
fn next_path(
    frame: &Frame<'_>,
    first: &mut Option<Path>,
    argument: usize,
) -> Result<Option<Path>, SqlError> {
    match first.take() {
        Some(path) => Ok(Some(path)),
        None => plain_path(frame, argument),
    }
}

fn change(frame: Frame<'_>, ways: Ways) -> Result<ValueRef<'_>, SqlError> {
    let Some((mut node, first)) = with_path(&frame)? else { return Ok(ValueRef::Null) };
    let (mut first, mut is_whole) = (Some(first), true);
    for argument in (1..frame.count()).step_by(2) {
        let Some(path) = next_path(&frame, &mut first, argument)? else {
            return Ok(ValueRef::Null);
        };
        let key = match path.steps.last() {
            Some(Step::Key(Some(key))) => frame.context.keep(key),
            _ => &[],
        };
        let value = || {
            let value = value_node(&frame, argument + 1)?;
            is_whole &= value.whole;
            Ok(value)
        };
        put(&mut node, &path, value, key, ways)?;
    }
    changed(&frame, &node, is_whole)
}

fn json_set(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    change(frame, Ways { replaces: true, inserts: true })
}

fn json_insert(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    change(frame, Ways { replaces: false, inserts: true })
}

fn json_replace(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    change(frame, Ways { replaces: true, inserts: false })
}

fn json_remove(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((mut node, first)) = with_path(&frame)? else { return Ok(ValueRef::Null) };
    let mut first = Some(first);
    for argument in 1..frame.count() {
        let Some(path) = next_path(&frame, &mut first, argument)? else {
            return Ok(ValueRef::Null);
        };
        let Some((last, parents)) = path.steps.split_last() else {
            warn(&frame, &codes::JSON_PATH_EMPTY, argument)?;
            return Ok(ValueRef::Null);
        };
        let Some(parent) = find(&mut node, parents) else { continue };
        match (last, &mut parent.kind) {
            (Step::Key(Some(key)), Kind::Object(list)) => {
                list.retain(|(own, _)| !same_key(own, key));
            }
            (Step::Index(index), Kind::Array(list)) => {
                if let Some(at) = place(*index, list.len()).filter(|at| *at < list.len()) {
                    list.remove(at);
                }
            }
            _ => {}
        }
    }
    loose(&frame, &node)
}

fn json_array_append(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((mut node, first)) = with_path(&frame)? else { return Ok(ValueRef::Null) };
    let (mut first, mut is_whole) = (Some(first), true);
    for argument in (1..frame.count()).step_by(2) {
        let Some(path) = next_path(&frame, &mut first, argument)? else {
            return Ok(ValueRef::Null);
        };
        let Some(target) = find(&mut node, &path.steps) else { return Ok(ValueRef::Null) };
        let value = value_node(&frame, argument + 1)?;
        is_whole &= value.whole;
        match &mut target.kind {
            Kind::Array(list) => list.push(value),
            _ => target.kind = Kind::Array(vec![target.clone(), value]),
        }
    }
    changed(&frame, &node, is_whole)
}

fn json_array_insert(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some((mut node, first)) = with_path(&frame)? else { return Ok(ValueRef::Null) };
    let (mut first, mut is_whole) = (Some(first), true);
    for argument in (1..frame.count()).step_by(2) {
        let Some(path) = next_path(&frame, &mut first, argument)? else {
            return Ok(ValueRef::Null);
        };
        let Some((Step::Index(index), parents)) = path.steps.split_last() else {
            return Ok(ValueRef::Null);
        };
        let value = value_node(&frame, argument + 1)?;
        is_whole &= value.whole;
        if let Some(Node { kind: Kind::Array(list), .. }) = find(&mut node, parents) {
            // From its end, the place behind an element is meant.
            let index = if *index < 0 { list.len() as i64 + index + 1 } else { *index };
            let at = usize::try_from(index).unwrap_or(0).min(list.len());
            list.insert(at, value);
        }
    }
    changed(&frame, &node, is_whole)
}

/// One value of two: members of both objects, elements of both arrays.
fn merged<'a>(a: Node<'a>, b: Node<'a>) -> Node<'a> {
    let kind = match (a.kind, b.kind) {
        (Kind::Object(mut own), Kind::Object(more)) => {
            for (key, value) in more {
                match own.iter_mut().find(|(present, _)| same_key(present, key)) {
                    Some((_, present)) => *present = merged(present.clone(), value),
                    None => own.push((key, value)),
                }
            }
            Kind::Object(own)
        }
        (a_kind, b_kind) => {
            let list = |raw, kind| match kind {
                Kind::Array(list) => list,
                kind => vec![Node { raw, kind, whole: true }],
            };
            let mut joined = list(a.raw, a_kind);
            joined.extend(list(b.raw, b_kind));
            Kind::Array(joined)
        }
    };
    Node { raw: a.raw, kind, whole: true }
}

fn json_merge(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    // Of the first two neither is read where one is NULL.
    let (Some(first), Some(second)) = (parsed(&frame, 0)?, parsed(&frame, 1)?) else {
        return Ok(ValueRef::Null);
    };
    let Some(mut node) = leading_of(&frame, 0, first)? else { return Ok(ValueRef::Null) };
    let Some(more) = leading_of(&frame, 1, second)? else { return Ok(ValueRef::Null) };
    node = merged(node, more);
    for argument in 2..frame.count() {
        let Some(more) = leading(&frame, argument)? else { return Ok(ValueRef::Null) };
        node = merged(node, more);
    }
    loose(&frame, &node)
}

fn json_merge_patch(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let refused = |argument, fault: Option<Fault>| -> Result<ValueRef<'_>, SqlError> {
        let fault = fault.unwrap_or(Fault::End);
        Ok(refuse(&frame, argument, fault)?.unwrap_or(ValueRef::Null))
    };
    let mut node: Option<Node<'_>> = None;
    let mut unknown = false;
    // Of what is changed: it is told as the first argument's, whichever it is.
    let mut fault = None;
    for argument in 0..frame.count() {
        let Some(parsed) = parsed(&frame, argument)? else {
            unknown = true;
            continue;
        };
        if argument == 0 {
            (node, fault) = (parsed.node, parsed.fault);
            continue;
        }
        let Some(patch) = parsed.node.filter(|it| it.whole || !it.is_scalar()) else {
            let (place, found) = match (&node, unknown) {
                (None, false) => (0, fault),
                _ => (argument, parsed.fault),
            };
            return refused(place, found);
        };
        if unknown {
            // What an object is merged into is unknown where NULL came before.
            unknown = matches!(patch.kind, Kind::Object(_));
            (node, fault) = (Some(patch), parsed.fault);
            continue;
        }
        let Some(target) = node.take() else { return refused(0, fault) };
        match patched(&target, &patch) {
            Ok(merged) => (node, fault) = (Some(merged), None),
            Err(Side::Target) => return refused(0, fault),
            Err(Side::Patch) => return refused(argument, parsed.fault),
        }
    }
    match (node, fault) {
        _ if unknown => Ok(ValueRef::Null),
        (Some(node), None) => loose(&frame, &node),
        (_, fault) => refused(0, fault),
    }
}
