//! Answers as text, one form for every server, so that two servers' answers compare as files.

use crate::client::{Answer, Column, Field};
use std::fmt::Write;

/// Name of a type code with what a driver must know of it: sign and decimals.
fn column_type(column: &Column) -> String {
    let name = match column.type_code {
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
    };
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

/// One answer with its warnings. `sorted` puts the rows in byte order, for statements that do
/// not order them.
pub fn answer(answer: &Answer, warnings: &[[String; 3]], sorted: bool) -> String {
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
            let mut lines: Vec<String> = rows
                .iter()
                .map(|row| row.iter().map(field).collect::<Vec<_>>().join("\t"))
                .collect();
            if sorted {
                lines.sort();
            }
            for line in lines {
                out += &line;
                out.push('\n');
            }
        }
        Answer::Error(error) => {
            let _ = writeln!(out, "ERROR {} ({}): {}", error.code, error.state, error.message);
        }
    }
    for [level, code, text] in warnings {
        if matches!(answer, Answer::Error(_)) && level == "Error" {
            continue;
        }
        let _ = writeln!(out, "{level} {code}: {text}");
    }
    out
}
