//! Which indexes USE, FORCE and IGNORE INDEX allow.

use catalog::TableEntry;
use syntax::ast::{IndexHint, IndexHintKind, IndexHintPurpose};

/// What may be done with each index.
pub(super) struct Allowed {
    /// Reading ranges.
    pub ranges: Vec<bool>,
    /// Reading all of it.
    pub scans: Vec<bool>,
    /// FORCE: a full scan only where no range can be read.
    pub forced: bool,
}

/// What hints allow of a table's indexes.
pub(super) fn allowed_indexes(entry: &TableEntry, hints: &[IndexHint]) -> Allowed {
    let definition = entry.definition();
    let count = definition.indexes.len();
    let mut allowed =
        Allowed { ranges: vec![true; count], scans: vec![true; count], forced: false };
    let position = |name: &String| {
        definition.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name))
    };
    let mut named = vec![false; count];
    let mut only_named = false;
    for hint in hints {
        if !matches!(hint.purpose, IndexHintPurpose::All | IndexHintPurpose::Join) {
            continue;
        }
        let indexes = hint.indexes.iter().filter_map(position);
        match hint.kind {
            IndexHintKind::Ignore => indexes.for_each(|index| {
                allowed.ranges[index] = false;
                allowed.scans[index] = false;
            }),
            kind => {
                only_named = true;
                allowed.forced |= kind == IndexHintKind::Force;
                indexes.for_each(|index| named[index] = true);
            }
        }
    }
    if only_named {
        for (index, named) in named.into_iter().enumerate() {
            allowed.ranges[index] &= named;
            allowed.scans[index] &= named;
        }
    }
    allowed
}
