//! SELECT ... INTO OUTFILE and INTO DUMPFILE: rows as lines of a file of the server's, or as they
//! are.
//!
//! 1. Only new files are written, only within the directory that `secure_file_priv` names, only
//!    for who may use files. What a failed statement has written stays.
//! 2. LOAD DATA with the same options reads the same values, but where error 1475 warns of it.

use crate::Session;
use crate::execute::Extras;
use crate::statement::{Answer, Failure};
use engine_api::ReadGate;
use exec::{Outcome, RowSink};
use plan::physical::ResultColumn;
use runtime::file::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use syntax::ast::{FileFormat, Statement};
use types::error::ErrorCode;
use types::{Charset, ColumnType, SqlError, SqlMode, TimeZone, TypeKind, ValueRef, codes};
use wire::text::push_text;

/// 1: the number and text of the file layer.
static CANNOT_CREATE: ErrorCode = ErrorCode {
    number: 1,
    sqlstate: "HY000",
    name: "CANTCREATEFILE",
    template: "Can't create/write to file '{}' (Errcode: {} \"{}\")",
};

/// 1475.
static AMBIGUOUS_FIELD_TERM: ErrorCode = ErrorCode {
    number: 1475,
    sqlstate: "HY000",
    name: "AMBIGUOUS_FIELD_TERM",
    template: "First character of the FIELDS TERMINATED string is ambiguous; please use \
               non-optional and non-empty FIELDS ENCLOSED BY",
};

/// Bytes collected before they are written.
const WRITE_BYTES: usize = 256 * 1024;

/// Letters that mean something behind the escape character.
const ESCAPED_LETTERS: &[u8] = b"ntrb0ZN";
/// What numbers are written with.
const NUMBER_LETTERS: &[u8] = b".0123456789e+-";

/// A file that is written from its beginning to its end.
struct Output {
    file: File,
    path: String,
    offset: u64,
    bytes: Vec<u8>,
}

impl Output {
    fn flush(&mut self) -> Result<(), SqlError> {
        let written = self.file.write_at(&self.bytes, self.offset);
        written.map_err(|error| cannot_create(&self.path, &error))?;
        self.offset += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<(), SqlError> {
        if self.bytes.len() < WRITE_BYTES { Ok(()) } else { self.flush() }
    }
}

/// Error 1.
fn cannot_create(path: &str, error: &io::Error) -> SqlError {
    let number = error.raw_os_error().unwrap_or(5);
    let text = io::Error::from_raw_os_error(number).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    SqlError::new(&CANNOT_CREATE, &[&path, &number, &text])
}

/// How lines are written.
struct Lines {
    /// Text becomes text of this character set; without one it stays as it is.
    charset: Option<Charset>,
    field_end: Vec<u8>,
    enclosed: Option<u8>,
    /// Only text is enclosed.
    optionally: bool,
    escape: Option<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
    /// What ends a field ends it only where it is enclosed: it is not escaped elsewhere.
    is_ambiguous: bool,
}

impl Lines {
    /// Fails with 1083, 1115 and 1235.
    fn new(format: &FileFormat, mode: SqlMode) -> Result<Self, SqlError> {
        let single = |text: &Option<Vec<u8>>| match text.as_deref() {
            None | Some([]) => Ok(None),
            Some([byte]) => Ok(Some(*byte)),
            Some(_) => Err(SqlError::new(&codes::WRONG_FIELD_TERMINATORS, &[])),
        };
        let charset = match format.charset.as_deref() {
            None => None,
            Some(name) => {
                let unknown = || SqlError::new(&codes::UNKNOWN_CHARACTER_SET, &[&name]);
                Some(Charset::by_name(name).ok_or_else(unknown)?)
            }
        };
        let escape = match &format.fields_escaped {
            Some(_) => single(&format.fields_escaped)?,
            None => (!mode.contains(SqlMode::NO_BACKSLASH_ESCAPES)).then_some(b'\\'),
        };
        let text =
            |text: &Option<Vec<u8>>, default: &[u8]| text.clone().unwrap_or(default.to_vec());
        let enclosed = single(&format.fields_enclosed)?;
        let field_end = text(&format.fields_terminated, b"\t");
        if field_end.is_empty() && enclosed.is_none() {
            let what = "INTO OUTFILE with fields of fixed length";
            return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&what]));
        }
        let mut line_end = text(&format.lines_terminated, b"\n");
        if line_end.is_empty() {
            line_end.clone_from(&field_end);
        }
        Ok(Self {
            charset: charset.filter(|charset| *charset != Charset::Binary),
            optionally: enclosed.is_none() || (format.optionally_enclosed && !field_end.is_empty()),
            field_end,
            enclosed,
            escape,
            line_start: text(&format.lines_starting, b""),
            line_end,
            is_ambiguous: false,
        })
    }

    /// What begins the end of a field: of an enclosed one the character that encloses it.
    fn separator(&self) -> Option<u8> {
        self.enclosed.or(self.field_end.first().copied())
    }

    fn is_separator_of(&self, letters: &[u8]) -> bool {
        self.separator().is_some_and(|byte| letters.contains(&byte))
    }

    /// Whether LOAD DATA could misunderstand fields of these columns.
    fn look_at(&mut self, columns: &[ResultColumn]) {
        let is_text = |column: &ResultColumn| is_text(&column.result.column_type);
        let (has_text, all_text) = (columns.iter().any(is_text), columns.iter().all(is_text));
        let numeric_end = self.field_end.first().is_some_and(|end| NUMBER_LETTERS.contains(end));
        let unclear_letter = self.is_separator_of(ESCAPED_LETTERS)
            && self.enclosed.is_none()
            && (has_text || self.is_separator_of(NUMBER_LETTERS));
        self.is_ambiguous = unclear_letter || (self.optionally && !all_text && numeric_end);
    }

    fn put_field(&self, out: &mut Vec<u8>, text: Option<&[u8]>, is_text: bool) {
        let Some(text) = text else {
            match self.escape {
                Some(escape) => out.extend([escape, b'N']),
                None => out.extend(b"NULL"),
            }
            return;
        };
        let enclosed = self.enclosed.filter(|_| is_text || !self.optionally);
        out.extend(enclosed);
        match self.escape {
            Some(escape) if is_text || self.is_separator_of(NUMBER_LETTERS) => {
                self.put_escaped(out, text, escape, enclosed.is_some());
            }
            _ => out.extend_from_slice(text),
        }
        out.extend(enclosed);
    }

    fn put_escaped(&self, out: &mut Vec<u8>, text: &[u8], escape: u8, is_enclosed: bool) {
        let field_end = self.field_end.first().copied();
        let separator = self.separator();
        let ends = if is_enclosed { separator } else { field_end };
        let doubles = self.is_separator_of(ESCAPED_LETTERS);
        for &byte in text {
            let is_special = byte == 0
                || byte == escape
                || Some(byte) == ends
                || self.line_end.first() == Some(&byte);
            let stays = !is_enclosed && self.is_ambiguous && Some(byte) == field_end;
            if is_special && !stays {
                out.push(if doubles && Some(byte) == separator { byte } else { escape });
            }
            out.push(if byte == 0 && is_special { b'0' } else { byte });
        }
    }
}

fn is_text(column: &ColumnType) -> bool {
    let kind = column.kind;
    kind.is_string() || kind.is_temporal() && kind != TypeKind::Year || kind == TypeKind::Null
}

/// Writes rows. Without [`Lines`] nothing but their values is written.
struct FileSink<'a> {
    output: Output,
    lines: Option<Lines>,
    columns: &'a [ResultColumn],
    zone: TimeZone,
    rows: u64,
    scratch: Vec<u8>,
}

impl RowSink for FileSink<'_> {
    fn begin(&mut self, _: Option<Arc<dyn ReadGate>>) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let out = &mut self.output.bytes;
        // As in MariaDB: the third row is one too many.
        if self.lines.is_none() && self.rows > 1 {
            return Err(SqlError::new(&codes::TOO_MANY_ROWS, &[]));
        }
        self.rows += 1;
        if let Some(lines) = &self.lines {
            out.extend_from_slice(&lines.line_start);
        }
        for (number, (value, column)) in values.iter().zip(self.columns).enumerate() {
            let column_type = &column.result.column_type;
            self.scratch.clear();
            push_text(&mut self.scratch, *value, column_type, self.zone);
            let text = (!matches!(value, ValueRef::Null)).then_some(&self.scratch[..]);
            let Some(lines) = &self.lines else {
                out.extend_from_slice(text.unwrap_or(b"\0"));
                continue;
            };
            if number > 0 {
                out.extend_from_slice(&lines.field_end);
            }
            let (from, is_text) = (column_type.collation.charset(), is_text(column_type));
            match (lines.charset, text) {
                (Some(to), Some(text)) if is_text && from != to && from != Charset::Binary => {
                    let mut converted = Vec::new();
                    from.convert(text, to, &mut converted);
                    lines.put_field(out, Some(&converted), is_text);
                }
                _ => lines.put_field(out, text, is_text),
            }
        }
        if let Some(lines) = &self.lines {
            out.extend_from_slice(&lines.line_end);
        }
        self.output.flush_if_full()
    }
}

impl Session {
    /// Runs a query whose rows go to a file; without a format their values alone. Fails with 1,
    /// 1045, 1083, 1086, 1172, 1235, 1290.
    pub(crate) fn select_into_file(
        &mut self,
        statement: &Statement,
        path: &[u8],
        format: Option<&FileFormat>,
    ) -> Result<Answer, Failure> {
        self.require_file()?;
        let plan = self.plan(statement)?;
        let mode = self.settings.sql_mode;
        let mut lines = format.map(|format| Lines::new(format, mode)).transpose()?;
        let columns = plan.prepared.columns();
        if let Some(lines) = &mut lines {
            lines.look_at(columns);
            if lines.is_ambiguous {
                self.eval.warn(&AMBIGUOUS_FIELD_TERM, &[])?;
            }
        }
        let output = self.new_file(&String::from_utf8_lossy(path))?;
        let zone = self.settings.time_zone;
        let mut sink = FileSink { output, lines, columns, zone, rows: 0, scratch: Vec::new() };
        let prepared = &plan.prepared;
        let outcome = self.with_exec(prepared, Extras::default(), |exec, _| {
            exec::execute(exec, prepared.plan(), &mut sink)
        });
        sink.output.flush()?;
        let outcome = outcome?;
        Ok(Answer::Done(Outcome { has_rows: false, affected_rows: sink.rows, ..outcome }))
    }

    /// A file of the server's that is not there yet.
    fn new_file(&self, path: &str) -> Result<Output, SqlError> {
        let path = self.secure_path(path)?;
        let shown = path.to_string_lossy().into_owned();
        let folder = path.parent().unwrap_or(Path::new("/"));
        if !runtime::fs::exists(folder).is_ok_and(|there| there) {
            let option = "--secure-file-priv";
            return Err(SqlError::new(&codes::OPTION_PREVENTS_STATEMENT, &[&option]));
        }
        match OpenOptions::new().create_new(true).open(&path) {
            Ok(file) => Ok(Output { file, path: shown, offset: 0, bytes: Vec::new() }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(SqlError::new(&codes::FILE_EXISTS_ERROR, &[&shown]))
            }
            Err(error) => Err(cannot_create(&shown, &error)),
        }
    }
}
