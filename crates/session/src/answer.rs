//! Answers on their way to the client: rows straight into the output buffer.

use catalog::engine_error;
use engine_api::{ReadGate, RowRef};
use exec::{RowSink, StoredRows};
use plan::physical::{Plan, ResultColumn};
use std::io;
use std::sync::Arc;
use types::{Charset, CollationId, SqlError, TimeZone, ValueRef, codes};
use wire::OutputBuffer;
use wire::response::{self, ColumnDescription};
pub use wire::row::Protocol;
use wire::row::{ColumnFormat, RowFormat, StoredEncoder, StoredRow};

/// Bytes of rows collected before they are sent.
const SEND_BYTES: usize = 64 * 1024;

/// Where full buffers go: the connection's socket, or a test's memory.
pub trait Outlet {
    /// Sends all bytes; may park while the client is slow.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Whether [`Outlet::receive`] can be called.
    fn can_receive(&self) -> bool {
        false
    }

    /// Replaces `bytes` by the payload of the client's next packet, whose number is expected to be
    /// `sequence`, and advances that. May park until it comes.
    fn receive(&mut self, _sequence: &mut u8, _bytes: &mut Vec<u8>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// How results look to this client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultFormat {
    pub(crate) protocol: Protocol,
    pub(crate) capabilities: u64,
    pub(crate) time_zone: TimeZone,
    /// Status flags of the EOF behind the column definitions.
    pub(crate) status: u16,
    /// The client knows the definitions already (prepared statements with CACHE_METADATA).
    pub(crate) skip_definitions: bool,
}

impl ResultFormat {
    fn of_rows(&self) -> RowFormat {
        RowFormat { protocol: self.protocol, time_zone: self.time_zone }
    }
}

/// How the columns of a result look to clients with one `character_set_results`. Made with the
/// plan, for all its executions.
#[derive(Debug)]
pub(crate) struct ResultShape {
    columns: Vec<ColumnFormat>,
    /// For rows that need not be taken apart.
    stored: Option<StoredEncoder>,
    /// Packets of the column definitions.
    definitions: Vec<u8>,
}

/// The sink of one result.
pub(crate) struct AnswerSink<'a> {
    out: &'a mut OutputBuffer,
    outlet: &'a mut dyn Outlet,
    format: ResultFormat,
    shape: &'a ResultShape,
    /// What rows pass that leave before the statement has ended: a client never sees a commit
    /// that a crash may still take back.
    gate: Option<Arc<dyn ReadGate>>,
    scratch: Vec<u8>,
    /// Rows written.
    pub(crate) rows: u64,
    /// The column definitions are out: an error now ends the rows.
    pub(crate) begun: bool,
    /// Bytes sent before the end of the answer.
    pub(crate) bytes_sent: u64,
}

impl ResultShape {
    /// The shape of `columns`; text is sent in the character set of `results`.
    pub(crate) fn new(columns: &[ResultColumn], results: Option<CollationId>) -> Self {
        let mut definitions = OutputBuffer::new();
        let format = |column: &ResultColumn| {
            let description = describe(column, results);
            response::column(&mut definitions, &description, None);
            column_format(column, &description, results)
        };
        Self {
            columns: columns.iter().map(format).collect(),
            stored: None,
            definitions: definitions.bytes().to_vec(),
        }
    }

    /// The shape of a plan's result.
    pub(crate) fn of_plan(
        plan: &Plan,
        columns: &[ResultColumn],
        results: Option<CollationId>,
    ) -> Self {
        let mut shape = Self::new(columns, results);
        shape.stored = exec::stored_columns(plan).map(|(table, columns)| {
            StoredEncoder::new(&table.layouts().row, &columns, &shape.columns)
        });
        shape
    }
}

/// The client's view of a result column.
pub(crate) fn describe(column: &ResultColumn, results: Option<CollationId>) -> ColumnDescription {
    let own = column.result.column_type.collation;
    let mut metadata = column.result.metadata(results.unwrap_or(own));
    if results.is_none() && column.result.is_column && column.result.column_type.kind.is_large() {
        // Text that is sent as it is stored has the length in bytes that its type allows.
        metadata.length = column.result.column_type.length;
    }
    let name = |text: &str| match results.map(CollationId::charset) {
        Some(charset @ (Charset::Latin1 | Charset::Ascii)) if !text.is_ascii() => {
            let mut converted = Vec::new();
            Charset::Utf8mb4.convert(text.as_bytes(), charset, &mut converted);
            converted
        }
        _ => text.as_bytes().to_vec(),
    };
    ColumnDescription {
        schema: name(&column.schema),
        table: name(&column.table),
        org_table: name(&column.org_table),
        name: name(&column.name),
        org_name: name(&column.org_name),
        collation: metadata.collation.0,
        length: metadata.length,
        type_code: metadata.type_code,
        flags: metadata.flags | column.flags,
        decimals: metadata.decimals,
    }
}

fn column_format(
    column: &ResultColumn,
    description: &ColumnDescription,
    results: Option<CollationId>,
) -> ColumnFormat {
    let column_type = column.result.column_type;
    let from = column_type.collation.charset();
    let to = results.map(CollationId::charset);
    let convert = match to {
        Some(to) if to != from && from != Charset::Binary && to != Charset::Binary => {
            (!(from == Charset::Utf8mb3 && to == Charset::Utf8mb4)).then_some((from, to))
        }
        _ => None,
    };
    ColumnFormat { type_code: description.type_code, column_type, convert }
}

impl<'a> AnswerSink<'a> {
    pub(crate) fn new(
        out: &'a mut OutputBuffer,
        outlet: &'a mut dyn Outlet,
        format: ResultFormat,
        shape: &'a ResultShape,
    ) -> Self {
        Self {
            out,
            outlet,
            format,
            shape,
            gate: None,
            scratch: Vec::new(),
            rows: 0,
            begun: false,
            bytes_sent: 0,
        }
    }

    /// The row's packet is complete.
    #[inline]
    fn end_row(&mut self) -> Result<(), SqlError> {
        self.out.end();
        self.rows += 1;
        self.send_if_full()
    }

    #[inline]
    fn send_if_full(&mut self) -> Result<(), SqlError> {
        if self.out.len() < SEND_BYTES { Ok(()) } else { self.send() }
    }

    #[cold]
    fn send(&mut self) -> Result<(), SqlError> {
        if let Some(gate) = &self.gate {
            gate.wait_durable().map_err(|error| engine_error(&error, ""))?;
        }
        self.bytes_sent += self.out.len() as u64;
        let sent = self.outlet.send(self.out.bytes());
        self.out.clear();
        sent.map_err(|_| SqlError::new(&codes::NET_ERROR_ON_WRITE, &[]))
    }
}

impl RowSink for AnswerSink<'_> {
    fn begin(&mut self, gate: Option<Arc<dyn ReadGate>>) -> Result<(), SqlError> {
        self.gate = gate;
        let ResultFormat { status, capabilities, .. } = self.format;
        let ResultShape { columns, definitions, .. } = self.shape;
        if self.format.skip_definitions {
            response::result_columns_known(self.out, columns.len(), status, capabilities);
        } else {
            response::result_columns(self.out, columns.len(), definitions, status, capabilities);
        }
        self.begun = true;
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let out = self.out.begin();
        self.format.of_rows().put_row(out, values, &self.shape.columns, &mut self.scratch);
        self.end_row()
    }

    fn takes_stored(&self) -> bool {
        self.shape.stored.is_some()
    }

    fn stored(&mut self, rows: StoredRows<'_>) -> Result<(), SqlError> {
        let ResultShape { columns, stored: Some(encoder), .. } = self.shape else {
            return Err(SqlError::with_message(
                &codes::UNKNOWN_ERROR,
                "stored rows for a result that does not take them",
            ));
        };
        let format = self.format.of_rows();
        match rows {
            StoredRows::Row(row) => {
                let row = StoredRow { key: row.key, payload: row.payload };
                let row = std::iter::once(row);
                encoder.put_rows(self.out, row, columns, format, SEND_BYTES, &mut self.scratch);
                self.rows += 1;
                self.send_if_full()
            }
            StoredRows::Rows(rows, mut selected) => {
                while !selected.is_empty() {
                    let row = |&number: &u32| {
                        let row = rows.row(number as usize).unwrap_or(RowRef::EMPTY);
                        StoredRow { key: row.key, payload: row.payload }
                    };
                    let given = selected.iter().map(row);
                    let put = encoder.put_rows(
                        self.out,
                        given,
                        columns,
                        format,
                        SEND_BYTES,
                        &mut self.scratch,
                    );
                    self.rows += put as u64;
                    selected = &selected[put..];
                    self.send_if_full()?;
                }
                Ok(())
            }
            StoredRows::Keys(index, rows, selected) => {
                for row in selected.iter().filter_map(|&number| rows.row(number as usize)) {
                    let out = self.out.begin();
                    encoder.put_key(out, (index, row.key), columns, format, &mut self.scratch);
                    self.end_row()?;
                }
                Ok(())
            }
        }
    }
}

/// Takes the rows of ANALYZE.
pub(crate) struct Nowhere;

impl RowSink for Nowhere {
    fn begin(&mut self, _: Option<Arc<dyn ReadGate>>) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}
