//! Options of tables that concern how their pages are stored.
//!
//! 1. `PAGE_COMPRESSED`, `ROW_FORMAT=COMPRESSED` and `KEY_BLOCK_SIZE` ask for the same here: pages
//!    that the store compresses with the table's algorithm, or the server's.
//! 2. What contradicts itself is refused in MariaDB's words, by CREATE and ALTER alike.

use super::DdlContext;
use crate::ExecError;
use engine_api::{COMPRESSED, COMPRESSED_BLOCKS_KIB, TableDefinition};
use syntax::ast::{OptionValue, TableOption};
use types::{Level, SqlError, Warning, codes};

/// An option whose name is shown as written, its value in quotes.
pub(super) const QUOTED: [&str; 4] =
    ["PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "PAGE_COMPRESSION_ALGORITHM", "ATOMIC_WRITES"];

/// MariaDB's number for options that cannot be.
const WRONG_CREATE_OPTIONS: u16 = 140;

const WRONG_OPTIONS_TEXT: &str = "140 \"Wrong create options\"";

/// What a table is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Alter,
}

/// Reads the options of a table that has them all: sets how its pages are compressed.
pub(super) fn apply(
    context: &DdlContext<'_>,
    written: &[TableOption],
    table: &mut TableDefinition,
    operation: Operation,
) -> Result<(), ExecError> {
    for option in written.iter().filter(|option| QUOTED.contains(&option.name.as_str())) {
        check_value(context, option)?;
    }
    if operation == Operation::Create
        && context.eval.settings.compress_tables
        && value(table, "PAGE_COMPRESSED").is_none()
    {
        table.options.other.push(("PAGE_COMPRESSED".to_owned(), "ON".to_owned()));
    }
    check_together(context, table, operation)?;
    table.options.codec = codec(table);
    Ok(())
}

/// Whether `innodb_read_only_compressed` forbids to write a table.
fn is_read_only(context: &DdlContext<'_>, table: &TableDefinition) -> bool {
    table.options.compressed_block_class().is_some()
        && context.catalog.engine().are_compressed_rows_read_only()
}

/// 4047 where a table with compressed rows is not to be made or altered.
pub(super) fn check_writable(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    operation: Operation,
) -> Result<(), ExecError> {
    if !is_read_only(context, table) {
        return Ok(());
    }
    let error = SqlError::new(&codes::UNSUPPORTED_COMPRESSED_TABLE, &[]);
    if operation == Operation::Alter {
        context.eval.push_warning(Warning { level: Level::Warning, ..Warning::from(&error) });
    }
    warn_error(context, &error);
    warn_errno(context);
    Err(error.into())
}

/// 1036 where its rows are not to be changed.
pub(super) fn check_rows_writable(
    context: &DdlContext<'_>,
    table: &TableDefinition,
) -> Result<(), ExecError> {
    if !is_read_only(context, table) {
        return Ok(());
    }
    let reason = Warning::from(&SqlError::new(&codes::UNSUPPORTED_COMPRESSED_TABLE, &[]));
    context.eval.push_warning(Warning { level: Level::Warning, ..reason });
    Err(SqlError::new(&codes::OPEN_AS_READONLY, &[&table.name]).into())
}

fn value<'a>(table: &'a TableDefinition, name: &str) -> Option<&'a str> {
    let mut options = table.options.other.iter();
    let found = options.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" => Some(true),
        "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

/// 1912 for a value that an option cannot have.
fn check_value(context: &DdlContext<'_>, option: &TableOption) -> Result<(), ExecError> {
    if option.value == OptionValue::Default {
        return Ok(());
    }
    let value = super::table::word(&option.value);
    let is_right = match option.name.as_str() {
        "PAGE_COMPRESSED" => flag(&value).is_some(),
        "PAGE_COMPRESSION_LEVEL" => value.parse().is_ok_and(|level| (1..=9).contains(&level)),
        "PAGE_COMPRESSION_ALGORITHM" => ALGORITHMS.contains(&value.to_ascii_lowercase().as_str()),
        _ => ["default", "on", "off"].contains(&value.to_ascii_lowercase().as_str()),
    };
    if !is_right {
        return Err(SqlError::new(&codes::BAD_OPTION_VALUE, &[&value, &option.name]).into());
    }
    if option.name == "ATOMIC_WRITES" && value.eq_ignore_ascii_case("off") {
        let message = "ATOMIC_WRITES=OFF has no effect: pages are never overwritten in place, so \
                       that every write is atomic and none is done twice";
        warn(context, Level::Note, codes::WARN_OPTION_IGNORED.number, message.to_owned());
    }
    Ok(())
}

/// Names of algorithms, as in `innodb_compression_algorithm`.
const ALGORITHMS: [&str; 8] = ["none", "zlib", "lz4", "lzo", "lzma", "bzip2", "snappy", "zstd"];

fn check_together(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    operation: Operation,
) -> Result<(), ExecError> {
    let compressed = value(table, "PAGE_COMPRESSED").is_some_and(|text| flag(text) == Some(true));
    let row_format = value(table, "ROW_FORMAT").unwrap_or_default();
    let block = value(table, "KEY_BLOCK_SIZE");
    let refuse = |code, option, reason: String| {
        Err(refused(context, table, operation, (code, option), reason))
    };
    let odd =
        |reason: &str| refuse(WRONG_CREATE_OPTIONS, "PAGE_COMPRESSED", format!("InnoDB: {reason}"));
    for depends in ["PAGE_COMPRESSION_LEVEL", "PAGE_COMPRESSION_ALGORITHM"] {
        if !compressed && value(table, depends).is_some() {
            let reason = format!("InnoDB: {depends} requires PAGE_COMPRESSED");
            return refuse(WRONG_CREATE_OPTIONS, depends, reason);
        }
    }
    let is_block = |kib: &str| kib.parse().is_ok_and(|kib| COMPRESSED_BLOCKS_KIB.contains(&kib));
    let ignores = !context.eval.settings.strict_table_options;
    match (compressed, row_format, block) {
        (true, "COMPRESSED", _) => odd("PAGE_COMPRESSED table can't have ROW_TYPE=COMPRESSED"),
        (true, "REDUNDANT", _) => odd("PAGE_COMPRESSED table can't have ROW_TYPE=REDUNDANT"),
        (true, _, Some(_)) => odd("PAGE_COMPRESSED table can't have key_block_size"),
        (_, _, Some(size)) if !is_block(size) => {
            if ignores {
                warn_ignored(context, format!("InnoDB: ignoring KEY_BLOCK_SIZE={size}."));
                return Ok(());
            }
            let reason = format!(
                "InnoDB: invalid KEY_BLOCK_SIZE = {size}. Valid values are [1, 2, 4, 8, 16]"
            );
            refuse(codes::ILLEGAL_HA_CREATE_OPTION.number, "KEY_BLOCK_SIZE", reason)
        }
        (_, "DYNAMIC" | "COMPACT" | "REDUNDANT", Some(size)) => {
            if ignores {
                let message =
                    format!("InnoDB: ignoring KEY_BLOCK_SIZE={size} unless ROW_FORMAT=COMPRESSED.");
                warn_ignored(context, message);
                return Ok(());
            }
            let reason =
                format!("InnoDB: cannot specify ROW_FORMAT = {row_format} with KEY_BLOCK_SIZE.");
            refuse(codes::ILLEGAL_HA_CREATE_OPTION.number, "KEY_BLOCK_SIZE", reason)
        }
        _ => Ok(()),
    }
}

/// With `innodb_strict_mode=OFF` what cannot be is left out.
fn warn_ignored(context: &DdlContext<'_>, message: String) {
    warn(context, Level::Warning, codes::ILLEGAL_HA_CREATE_OPTION.number, message);
}

fn warn(context: &DdlContext<'_>, level: Level, code: u16, message: String) {
    context.eval.push_warning(Warning { level, code, message });
}

/// The error for options that cannot be, its reason as a warning before it.
fn refused(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    operation: Operation,
    (code, option): (u16, &str),
    reason: String,
) -> ExecError {
    warn(context, Level::Warning, code, reason);
    if operation == Operation::Alter {
        return SqlError::new(&codes::ILLEGAL_HA_CREATE_OPTION, &[&"InnoDB", &option]).into();
    }
    let arguments: [&dyn std::fmt::Display; 3] = [&table.schema, &table.name, &WRONG_OPTIONS_TEXT];
    let error = SqlError::new(&codes::CANT_CREATE_TABLE, &arguments);
    warn_error(context, &error);
    warn_errno(context);
    error.into()
}

/// What MariaDB says behind the error.
fn warn_errno(context: &DdlContext<'_>) {
    let message = format!("Got error {WRONG_OPTIONS_TEXT} from storage engine InnoDB");
    warn(context, Level::Warning, codes::GET_ERRNO.number, message);
}

fn warn_error(context: &DdlContext<'_>, error: &SqlError) {
    context.eval.push_warning(Warning::from(error));
}

/// [`engine_api::TableOptions::codec`] of the options.
fn codec(table: &TableDefinition) -> String {
    let by_row = table.options.compressed_block_class().is_some();
    let algorithm = value(table, "PAGE_COMPRESSION_ALGORITHM").map(str::to_ascii_lowercase);
    let name = match value(table, "PAGE_COMPRESSED").and_then(flag) {
        Some(true) => algorithm.unwrap_or_else(|| COMPRESSED.to_owned()),
        _ if by_row => COMPRESSED.to_owned(),
        Some(false) => "none".to_owned(),
        None => return String::new(),
    };
    match value(table, "PAGE_COMPRESSION_LEVEL") {
        Some(level) => format!("{name}:{level}"),
        None => name,
    }
}
