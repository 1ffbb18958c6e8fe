//! Lines for the operator, on standard error.

use types::{CollationId, ColumnType, TimeZone, Timestamp, TypeKind, ValueRef};

fn line(level: &str, sentence: &str) {
    let column = ColumnType {
        kind: TypeKind::Timestamp,
        unsigned: false,
        zerofill: false,
        length: 19,
        precision: 0,
        scale: 0,
        collation: CollationId::BINARY,
    };
    let now = ValueRef::Timestamp(Timestamp(runtime::wall_clock_micros()));
    let mut time = Vec::new();
    wire::text::push_text(&mut time, now, &column, TimeZone::System);
    eprintln!("{} {level} gannet: {sentence}", String::from_utf8_lossy(&time));
}

/// Something worth knowing.
pub fn note(sentence: &str) {
    line("[Note]", sentence);
}

/// Something that may be wrong.
pub fn warning(sentence: &str) {
    line("[Warning]", sentence);
}

/// Something that is wrong.
pub fn error(sentence: &str) {
    line("[ERROR]", sentence);
}
