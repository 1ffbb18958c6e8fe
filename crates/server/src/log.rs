//! Lines for the operator, on standard error.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use types::{CollationId, ColumnType, TimeZone, Timestamp, TypeKind, ValueRef};

/// Only errors are written.
static ONLY_ERRORS: AtomicBool = AtomicBool::new(false);

/// From now on only errors are written; for simulations, which start a server many times.
pub fn only_errors() {
    ONLY_ERRORS.store(true, Ordering::Relaxed);
}

fn line(level: &str, sentence: &str) {
    let column = ColumnType {
        kind: TypeKind::Timestamp,
        unsigned: false,
        zerofill: false,
        length: 19,
        precision: 0,
        scale: 0,
        collation: CollationId::BINARY,
        members: None,
    };
    let now = ValueRef::Timestamp(Timestamp(runtime::wall_clock_micros()));
    let mut time = Vec::new();
    wire::text::push_text(&mut time, now, &column, TimeZone::System);
    complain(&format!("{} {level} gannet: {sentence}", String::from_utf8_lossy(&time)));
}

/// A line on standard output. That nobody reads it any more is no reason to stop.
pub fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    let _written = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A line on standard error, likewise.
pub fn complain(line: &str) {
    let _written = writeln!(std::io::stderr(), "{line}");
}

/// Something worth knowing.
pub fn note(sentence: &str) {
    if !ONLY_ERRORS.load(Ordering::Relaxed) {
        line("[Note]", sentence);
    }
}

/// Something that may be wrong.
pub fn warning(sentence: &str) {
    if !ONLY_ERRORS.load(Ordering::Relaxed) {
        line("[Warning]", sentence);
    }
}

/// Something that is wrong.
pub fn error(sentence: &str) {
    line("[ERROR]", sentence);
}
