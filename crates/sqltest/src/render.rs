//! Answers as text, one form for every server, so that two servers' answers compare as files.

use crate::client::{Answer, Column, Field, Prepared, ServerError};
use std::fmt::Write;

/// Name of a type code.
pub fn type_name(type_code: u8) -> &'static str {
    match type_code {
        0 | 246 => "decimal",
        1 => "tinyint",
        2 => "smallint",
        3 => "int",
        4 => "float",
        5 => "double",
        6 => "null",
        7 => "timestamp",
        8 => "bigint",
        9 => "mediumint",
        10 => "date",
        11 => "time",
        12 => "datetime",
        13 => "year",
        15 | 253 => "varchar",
        16 => "bit",
        247 => "enum",
        248 => "set",
        249..=252 => "blob",
        254 => "char",
        _ => "unknown",
    }
}

/// Name of a type code with what a driver must know of it: sign and decimals.
fn column_type(column: &Column) -> String {
    let name = type_name(column.type_code);
    let mut text = name.to_string();
    let is_text = matches!(column.type_code, 15 | 249..=254);
    if is_text && column.collation == 63 {
        text += " binary";
    }
    if !is_text && column.flags & 32 != 0 {
        text += " unsigned";
    }
    if !is_text && column.decimals != 0 {
        let _ = write!(text, " {}", column.decimals);
    }
    text
}

/// A field on one line: NULL bare, text with control bytes escaped.
pub fn field(value: &Field) -> String {
    let Some(bytes) = value else { return "NULL".into() };
    let mut text = String::new();
    match std::str::from_utf8(bytes) {
        Ok(valid) => {
            for c in valid.chars() {
                match c {
                    '\\' => text += "\\\\",
                    '\n' => text += "\\n",
                    '\t' => text += "\\t",
                    '\r' => text += "\\r",
                    '\0' => text += "\\0",
                    c => text.push(c),
                }
            }
        }
        Err(_) => {
            text += "0x";
            for byte in bytes {
                let _ = write!(text, "{byte:02X}");
            }
        }
    }
    if text.is_empty() { "''".into() } else { text }
}

/// Names of bits, the others as a number.
fn names_of(bits: u16, names: &[(u16, &str)]) -> String {
    let mut rest = bits;
    let mut words = Vec::new();
    for (bit, name) in names {
        if bits & bit != 0 {
            words.push(name.to_string());
            rest &= !bit;
        }
    }
    if rest != 0 {
        words.push(rest.to_string());
    }
    if words.is_empty() { "-".into() } else { words.join("|") }
}

/// Status flags of OK and EOF packets, without those that tell how the optimizer did it.
fn status_names(status: u16) -> String {
    const HOW: u16 = 16 | 32 | 2048;
    let names = [
        (2, "autocommit"),
        (1, "in-transaction"),
        (8192, "read-only-transaction"),
        (8, "more-results"),
        (64, "cursor"),
        (128, "last-row"),
        (256, "database-dropped"),
        (512, "no-backslash-escapes"),
        (1024, "metadata-changed"),
        (16384, "session-changed"),
        (32768, "ansi-quotes"),
    ];
    names_of(status & !HOW, &names)
}

/// A column with everything that its description says, without the bits by which MariaDB notes
/// for itself that a column is part of a key or grouped by.
fn described(column: &Column) -> String {
    const INTERNAL: u16 = 16384 | 32768;
    let names = [
        (1, "not-null"),
        (2, "primary-key"),
        (4, "unique-key"),
        (8, "key"),
        (16, "blob"),
        (32, "unsigned"),
        (64, "zerofill"),
        (128, "binary"),
        (256, "enum"),
        (512, "auto-increment"),
        (1024, "timestamp"),
        (2048, "set"),
        (4096, "no-default"),
        (8192, "on-update-now"),
    ];
    format!(
        "column {}: {}({}) decimals {} collation {} flags {} from {}.{}({}).{}",
        column.name,
        type_name(column.type_code),
        column.length,
        column.decimals,
        column.collation,
        names_of(column.flags & !INTERNAL, &names),
        column.schema,
        column.table,
        column.org_table,
        column.org_name,
    )
}

/// One answer as its packets tell it: status flags, number of warnings, all of the columns, what
/// changed in the session.
pub fn packets(answer: &Answer, sorted: bool) -> String {
    let mut out = String::new();
    match answer {
        Answer::Done(done) => {
            let _ = write!(
                out,
                "OK {} affected, insert id {}, {}, {} warnings",
                done.affected_rows,
                done.last_insert_id,
                status_names(done.status),
                done.warnings
            );
            if !done.info.is_empty() {
                let _ = write!(out, ", {}", done.info);
            }
            out.push('\n');
            put_changes(&mut out, &done.changes);
        }
        Answer::Rows { columns, rows, status, warnings, changes } => {
            for column in columns {
                let _ = writeln!(out, "{}", described(column));
            }
            put_rows(&mut out, rows, sorted);
            let _ = writeln!(out, "END {}, {warnings} warnings", status_names(*status));
            put_changes(&mut out, changes);
        }
        Answer::Error(error) => put_error(&mut out, error),
    }
    out
}

/// MariaDB tells them in no certain order.
fn put_changes(out: &mut String, changes: &[String]) {
    let mut changes = changes.to_vec();
    changes.sort();
    for change in &changes {
        let _ = writeln!(out, "changed: {change}");
    }
}

/// What the server says of a prepared statement.
pub fn prepared(statement: &Prepared) -> String {
    let mut out = format!("PREPARED {} parameters\n", statement.parameter_count);
    for column in &statement.columns {
        let _ = writeln!(out, "{}", described(column));
    }
    out
}

fn put_rows(out: &mut String, rows: &[Vec<Field>], sorted: bool) {
    let line = |row: &Vec<Field>| row.iter().map(field).collect::<Vec<_>>().join("\t");
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if sorted {
        lines.sort();
    }
    for line in lines {
        *out += &line;
        out.push('\n');
    }
}

fn put_error(out: &mut String, error: &ServerError) {
    let _ = writeln!(out, "ERROR {} ({}): {}", error.code, error.state, error.message);
}

/// The warnings after an answer; of an error its own one is left out.
pub fn warnings(answer: &Answer, warnings: &[[String; 3]]) -> String {
    let mut out = String::new();
    for [level, code, text] in warnings {
        if matches!(answer, Answer::Error(_)) && level == "Error" {
            continue;
        }
        let _ = writeln!(out, "{level} {code}: {text}");
    }
    out
}

/// The answer with the values of some columns replaced by `*`; none if it has none of them.
pub fn hidden(answer: &Answer, names: &[String]) -> Option<Answer> {
    let mut answer = answer.clone();
    let Answer::Rows { columns, rows, .. } = &mut answer else { return None };
    let hides = |column: &crate::client::Column| names.contains(&column.name);
    let hidden: Vec<bool> = columns.iter().map(hides).collect();
    if !hidden.contains(&true) {
        return None;
    }
    for row in rows {
        for (field, _) in row.iter_mut().zip(&hidden).filter(|(_, hidden)| **hidden) {
            if field.is_some() {
                *field = Some(b"*".to_vec());
            }
        }
    }
    Some(answer)
}

/// One answer. `sorted` puts the rows in byte order, for statements that do
/// not order them.
pub fn answer(answer: &Answer, sorted: bool) -> String {
    let mut out = String::new();
    match answer {
        Answer::Done(done) => {
            let _ = write!(out, "OK {} affected", done.affected_rows);
            if done.last_insert_id != 0 {
                let _ = write!(out, ", insert id {}", done.last_insert_id);
            }
            if !done.info.is_empty() {
                let _ = write!(out, ", {}", done.info);
            }
            out.push('\n');
        }
        Answer::Rows { columns, rows, .. } => {
            let heads: Vec<String> =
                columns.iter().map(|c| format!("{} {}", c.name, column_type(c))).collect();
            let _ = writeln!(out, "| {}", heads.join(" | "));
            put_rows(&mut out, rows, sorted);
        }
        Answer::Error(error) => put_error(&mut out, error),
    }
    out
}
