//! Who wrote what: elements of lists and values of registers are unique, so a read names its
//! writer.

use crate::transaction::{History, Operation};
use std::collections::HashMap;

/// Who wrote something.
pub(crate) struct Written {
    pub(crate) writer: u32,
    /// It is the last that its writer did to the object.
    pub(crate) is_final: bool,
}

/// By object and what was written.
pub(crate) type Writers = HashMap<(u64, u64), Written>;

/// All writes that `written` finds among the operations.
pub(crate) fn writers(
    history: &History,
    written: impl Fn(&Operation) -> Option<(u64, u64)>,
) -> Writers {
    let mut writers = Writers::new();
    for (writer, transaction) in history.numbered() {
        let mut last = HashMap::new();
        for (key, unique) in transaction.operations.iter().filter_map(&written) {
            writers.insert((key, unique), Written { writer, is_final: false });
            last.insert(key, unique);
        }
        for place in last {
            if let Some(found) = writers.get_mut(&place) {
                found.is_final = true;
            }
        }
    }
    writers
}
