//! JSON_MERGE_PATCH (RFC 7396), which reads its documents only as far as it needs them.
//!
//! 1. Of two broken documents the one is at fault whose fault is met first: members of the first
//!    are looked for in the second, and then the other way round.
//! 2. What stands behind the last member is looked at only when a member is looked for: a number
//!    such as `007` ends behind its first digit, and what follows is no fault by itself.
//! 3. Duplicates of a key stay, each with what the first of that key brings.

use super::{Kind, Node, same_key};

/// Which of the two documents is at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The one that is changed.
    Target,
    /// The one that says how.
    Patch,
}

type Members<'a> = [(&'a [u8], Node<'a>)];

/// `target` changed as `patch` says.
pub(crate) fn patched<'a>(target: &Node<'a>, patch: &Node<'a>) -> Result<Node<'a>, Side> {
    begin(target, Side::Target)?;
    begin(patch, Side::Patch)?;
    let (Kind::Object(own), Kind::Object(changes)) = (&target.kind, &patch.kind) else {
        end(target, Side::Target)?;
        return copied(patch, true);
    };
    let mut members = Vec::new();
    for (key, value) in own {
        match member((patch, changes), key, Side::Patch)? {
            Some(change) => {
                begin(value, Side::Target)?;
                begin(change, Side::Patch)?;
                match change.kind {
                    Kind::Null => end(value, Side::Target)?,
                    _ => members.push((*key, patched(value, change)?)),
                }
            }
            None => {
                end(value, Side::Target)?;
                members.push((*key, value.clone()));
            }
        }
    }
    last_key(target, own, Side::Target)?;
    for (key, change) in changes {
        if member((target, own), key, Side::Target)?.is_some() {
            end(change, Side::Patch)?;
            end(target, Side::Target)?;
            continue;
        }
        begin(change, Side::Patch)?;
        if !matches!(change.kind, Kind::Null) {
            members.push((*key, copied(change, false)?));
        }
    }
    last_key(patch, changes, Side::Patch)?;
    Ok(Node { raw: patch.raw, kind: Kind::Object(members), whole: true })
}

/// A value of the patch for which there is none in the target: without the members that are null.
fn copied<'a>(node: &Node<'a>, is_whole_patch: bool) -> Result<Node<'a>, Side> {
    let Kind::Object(list) = &node.kind else {
        end(node, Side::Patch)?;
        return Ok(node.clone());
    };
    if !is_whole_patch {
        end(node, Side::Patch)?;
    }
    let mut members = Vec::new();
    for (key, value) in list {
        begin(value, Side::Patch)?;
        if !matches!(value.kind, Kind::Null) {
            members.push((*key, copied(value, false)?));
        }
    }
    last_key(node, list, Side::Patch)?;
    Ok(Node { raw: node.raw, kind: Kind::Object(members), whole: true })
}

/// Reads a scalar, or the first character of another value.
fn begin(node: &Node<'_>, side: Side) -> Result<(), Side> {
    if node.is_scalar() { end(node, side) } else { Ok(()) }
}

/// Reads a value to its end.
fn end(node: &Node<'_>, side: Side) -> Result<(), Side> {
    if node.whole { Ok(()) } else { Err(side) }
}

/// Looks for the first member with a key, and reads those before it.
fn member<'n, 'a>(
    (object, list): (&'n Node<'a>, &'n Members<'a>),
    key: &[u8],
    side: Side,
) -> Result<Option<&'n Node<'a>>, Side> {
    for (own, value) in list {
        if same_key(own, key) {
            return Ok(Some(value));
        }
        end(value, side)?;
    }
    end(object, side).map(|()| None)
}

/// A fault if a key was begun behind the last member of an object that is broken there.
fn last_key(object: &Node<'_>, list: &Members<'_>, side: Side) -> Result<(), Side> {
    if object.whole {
        return Ok(());
    }
    let begin = object.raw.as_ptr() as usize;
    let read = list.last().map_or(0, |(_, value)| value.raw.as_ptr_range().end as usize - begin);
    let rest = object.raw.get(read..).unwrap_or_default().trim_ascii_start();
    let is_begun = matches!(rest, [b',' | b'{', more @ ..]
        if more.trim_ascii_start().starts_with(b"\""));
    if is_begun { Err(side) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::{Parsed, push_loose};
    use super::*;

    fn of(target: &str, patch: &str) -> Result<String, Side> {
        let node = |text: &'static str| Parsed::of(text.as_bytes()).node.unwrap();
        let leaked = |text: &str| -> &'static str { String::from(text).leak() };
        let node = patched(&node(leaked(target)), &node(leaked(patch)))?;
        let mut out = Vec::new();
        push_loose(&node, &mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn faults_are_met_in_the_order_of_reading() {
        let is = |target, patch, text: &str| assert_eq!(of(target, patch).as_deref(), Ok(text));
        is(r#"{"l": 007}"#, "{}", r#"{"l": 0}"#);
        is("3", r#"{"l": 007, "a": 1}"#, r#"{"l": 0}"#);
        is(r#"{"b": 1, x"#, "{}", r#"{"b": 1}"#);
        let fails = |target, patch, side| assert_eq!(of(target, patch), Err(side));
        fails(r#"{"a": 1, "l": 007}"#, r#"{"l": 007}"#, Side::Patch);
        fails(r#"{"l": 007}"#, r#"{"l": 2}"#, Side::Target);
        fails(r#"{"b": 1, "x"#, "{}", Side::Target);
        fails("{", r#"{"a": 1}"#, Side::Target);
        fails("[1", "[2", Side::Target);
    }
}
