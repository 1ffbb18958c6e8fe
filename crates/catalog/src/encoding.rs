//! The dictionary's bytes: table, schema and user records.
//!
//! Every record begins with a format version (one byte). Integers are little-endian; a string
//! is its length in bytes (u32) and UTF-8 bytes, a list its length (u32) and its elements. The
//! layouts are written down field by field in `docs/file-format.md`. A record is read to its
//! last byte: what is left over is an error, so a newer format is never half understood.

use base::{IndexId, PageId, TableId, TreeId};
use engine_api::{
    ColumnDefault, ColumnDefinition, ForeignKeyDefinition, IndexDefinition, IndexPart,
    ReferentialAction, TableDefinition, TableOptions,
};
use thiserror::Error;
use types::{CollationId, ColumnType, Members, TypeKind};

/// Written, and read beside [`OLD_TABLE_FORMAT`].
const TABLE_FORMAT: u8 = 4;
/// Its indexes all repeat the clustered key, which it does not say.
const OLD_TABLE_FORMAT: u8 = 3;

/// A dictionary record cannot be read.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The record ends early.
    #[error("it ends within a field")]
    Truncated,
    /// Bytes after the last field.
    #[error("{0} bytes are left over")]
    LeftOver(usize),
    /// Written by a newer version.
    #[error("its format {0} is not known")]
    Format(u8),
    /// A value outside its range.
    #[error("{0} has an impossible value")]
    Value(&'static str),
}

type Decoded<T> = std::result::Result<T, DecodeError>;

/// Appends fields to a record.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(format: u8) -> Self {
        Self { bytes: vec![format] }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.length(value.len());
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn string(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn length(&mut self, value: usize) {
        self.u32(u32::try_from(value).expect("nothing in a definition has 2^32 elements"));
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Takes fields off a record.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads and checks the format byte.
    pub(crate) fn new(bytes: &'a [u8], format: u8) -> Decoded<Self> {
        let mut reader = Self { bytes };
        match reader.u8()? {
            found if found == format => Ok(reader),
            found => Err(DecodeError::Format(found)),
        }
    }

    fn take(&mut self, count: usize) -> Decoded<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| DecodeError::Truncated)
    }

    pub(crate) fn u8(&mut self) -> Decoded<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Decoded<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn string(&mut self) -> Decoded<String> {
        let bytes = self.bytes()?.to_vec();
        String::from_utf8(bytes).map_err(|_| DecodeError::Value("a name"))
    }

    /// A list's length; each element has at least one byte, so it is bounded by what is left.
    pub(crate) fn length(&mut self) -> Decoded<usize> {
        let length = self.u32()? as usize;
        if length > self.bytes.len() {
            return Err(DecodeError::Truncated);
        }
        Ok(length)
    }

    pub(crate) fn finish(self) -> Decoded<()> {
        match self.bytes.len() {
            0 => Ok(()),
            rest => Err(DecodeError::LeftOver(rest)),
        }
    }
}

/// Numbers of the type families; never reused.
const KINDS: &[(TypeKind, u8)] = &[
    (TypeKind::Null, 0),
    (TypeKind::TinyInt, 1),
    (TypeKind::SmallInt, 2),
    (TypeKind::MediumInt, 3),
    (TypeKind::Int, 4),
    (TypeKind::BigInt, 5),
    (TypeKind::Decimal, 6),
    (TypeKind::Float, 7),
    (TypeKind::Double, 8),
    (TypeKind::Char, 9),
    (TypeKind::VarChar, 10),
    (TypeKind::Binary, 11),
    (TypeKind::VarBinary, 12),
    (TypeKind::TinyText, 13),
    (TypeKind::Text, 14),
    (TypeKind::MediumText, 15),
    (TypeKind::LongText, 16),
    (TypeKind::TinyBlob, 17),
    (TypeKind::Blob, 18),
    (TypeKind::MediumBlob, 19),
    (TypeKind::LongBlob, 20),
    (TypeKind::Date, 21),
    (TypeKind::Time, 22),
    (TypeKind::DateTime, 23),
    (TypeKind::Timestamp, 24),
    (TypeKind::Year, 25),
    (TypeKind::Enum, 26),
    (TypeKind::Set, 27),
    (TypeKind::Bit, 28),
];

fn write_type(out: &mut Writer, column_type: &ColumnType) {
    let number = KINDS.iter().find(|(kind, _)| *kind == column_type.kind).map(|(_, n)| *n);
    out.u8(number.expect("every family has a number, see the test"));
    out.u8(u8::from(column_type.unsigned) | u8::from(column_type.zerofill) << 1);
    out.u32(column_type.length);
    out.u8(column_type.precision);
    out.u8(column_type.scale);
    out.u16(column_type.collation.0);
    if let Some(members) = column_type.members {
        out.length(members.names().len());
        members.names().iter().for_each(|name| out.bytes(name));
    }
}

fn read_type(input: &mut Reader<'_>) -> Decoded<ColumnType> {
    let number = input.u8()?;
    let kind = KINDS.iter().find(|(_, n)| *n == number).map(|(kind, _)| *kind);
    let flags = input.u8()?;
    let mut column_type = ColumnType {
        kind: kind.ok_or(DecodeError::Value("a column type"))?,
        unsigned: flags & 1 != 0,
        zerofill: flags & 2 != 0,
        length: input.u32()?,
        precision: input.u8()?,
        scale: input.u8()?,
        collation: CollationId(input.u16()?),
        members: None,
    };
    if matches!(column_type.kind, TypeKind::Enum | TypeKind::Set) {
        let mut names = Vec::new();
        for _ in 0..input.length()? {
            names.push(input.bytes()?.to_vec());
        }
        column_type.members = Some(Members::of(names));
    }
    Ok(column_type)
}

fn write_column(out: &mut Writer, column: &ColumnDefinition) {
    out.u32(column.id);
    out.string(&column.name);
    write_type(out, &column.column_type);
    out.u8(u8::from(column.nullable)
        | u8::from(column.on_update_now) << 1
        | u8::from(column.auto_increment) << 2);
    match &column.default {
        ColumnDefault::None => out.u8(0),
        ColumnDefault::Null => out.u8(1),
        ColumnDefault::Constant(text) => {
            out.u8(2);
            out.bytes(text);
        }
        ColumnDefault::CurrentTimestamp => out.u8(3),
        ColumnDefault::Expression(expression) => {
            out.u8(4);
            out.string(expression);
        }
        ColumnDefault::Generated { expression, stored } => {
            out.u8(5);
            out.u8(u8::from(*stored));
            out.string(expression);
        }
    }
    out.string(&column.comment);
    out.string(&column.check);
}

fn read_column(input: &mut Reader<'_>) -> Decoded<ColumnDefinition> {
    let id = input.u32()?;
    let name = input.string()?;
    let column_type = read_type(input)?;
    let flags = input.u8()?;
    let default = match input.u8()? {
        0 => ColumnDefault::None,
        1 => ColumnDefault::Null,
        2 => ColumnDefault::Constant(input.bytes()?.to_vec()),
        3 => ColumnDefault::CurrentTimestamp,
        4 => ColumnDefault::Expression(input.string()?),
        5 => {
            let stored = input.u8()? != 0;
            ColumnDefault::Generated { expression: input.string()?, stored }
        }
        _ => return Err(DecodeError::Value("a default")),
    };
    Ok(ColumnDefinition {
        id,
        name,
        column_type,
        nullable: flags & 1 != 0,
        default,
        on_update_now: flags & 2 != 0,
        auto_increment: flags & 4 != 0,
        comment: input.string()?,
        check: input.string()?,
    })
}

fn write_index(out: &mut Writer, index: &IndexDefinition) {
    out.u32(index.id.0);
    out.string(&index.name);
    out.u8(u8::from(index.unique)
        | u8::from(index.primary) << 1
        | u8::from(index.generated) << 2
        | u8::from(index.repeats_key) << 3);
    out.length(index.parts.len());
    for part in &index.parts {
        out.length(part.column);
        out.u8(u8::from(part.prefix.is_some()) | u8::from(part.descending) << 1);
        out.u32(part.prefix.unwrap_or(0));
    }
    out.string(&index.comment);
    out.u32(index.tree.0);
    out.u64(index.root.0);
    out.u8(index.page_class);
    out.u16(index.collation_version);
}

fn read_index(input: &mut Reader<'_>, format: u8, column_count: usize) -> Decoded<IndexDefinition> {
    let id = IndexId(input.u32()?);
    let name = input.string()?;
    let flags = input.u8()?;
    let mut parts = Vec::new();
    for _ in 0..input.length()? {
        let column = input.u32()? as usize;
        let part_flags = input.u8()?;
        let prefix = input.u32()?;
        if column >= column_count {
            return Err(DecodeError::Value("an index part"));
        }
        parts.push(IndexPart {
            column,
            prefix: (part_flags & 1 != 0).then_some(prefix),
            descending: part_flags & 2 != 0,
        });
    }
    Ok(IndexDefinition {
        id,
        name,
        unique: flags & 1 != 0,
        primary: flags & 2 != 0,
        generated: flags & 4 != 0,
        parts,
        comment: input.string()?,
        tree: TreeId(input.u32()?),
        root: PageId(input.u64()?),
        page_class: input.u8()?,
        collation_version: input.u16()?,
        repeats_key: format == OLD_TABLE_FORMAT || flags & 8 != 0,
    })
}

/// Numbers of the referential actions; never reused.
const ACTIONS: [ReferentialAction; 4] = [
    ReferentialAction::Restrict,
    ReferentialAction::Cascade,
    ReferentialAction::SetNull,
    ReferentialAction::NoAction,
];

fn write_action(out: &mut Writer, action: ReferentialAction) {
    let number = ACTIONS.iter().position(|known| *known == action);
    out.u8(number.expect("every action has its number") as u8);
}

fn read_action(input: &mut Reader<'_>) -> Decoded<ReferentialAction> {
    let number = usize::from(input.u8()?);
    ACTIONS.get(number).copied().ok_or(DecodeError::Value("a referential action"))
}

fn write_foreign_key(out: &mut Writer, key: &ForeignKeyDefinition) {
    out.string(&key.name);
    out.length(key.columns.len());
    key.columns.iter().for_each(|id| out.u32(*id));
    out.string(&key.parent_schema);
    out.string(&key.parent_table);
    out.length(key.parent_columns.len());
    key.parent_columns.iter().for_each(|name| out.string(name));
    write_action(out, key.on_delete);
    write_action(out, key.on_update);
}

fn read_foreign_key(
    input: &mut Reader<'_>,
    columns: &[ColumnDefinition],
) -> Decoded<ForeignKeyDefinition> {
    let name = input.string()?;
    let mut ids = Vec::new();
    for _ in 0..input.length()? {
        let id = input.u32()?;
        if !columns.iter().any(|column| column.id == id) {
            return Err(DecodeError::Value("a column of a foreign key"));
        }
        ids.push(id);
    }
    let (parent_schema, parent_table) = (input.string()?, input.string()?);
    let mut parent_columns = Vec::new();
    for _ in 0..input.length()? {
        parent_columns.push(input.string()?);
    }
    if ids.is_empty() || ids.len() != parent_columns.len() {
        return Err(DecodeError::Value("the columns of a foreign key"));
    }
    Ok(ForeignKeyDefinition {
        name,
        columns: ids,
        parent_schema,
        parent_table,
        parent_columns,
        on_delete: read_action(input)?,
        on_update: read_action(input)?,
    })
}

/// The dictionary record of a table.
pub(crate) fn encode_table(table: &TableDefinition) -> Vec<u8> {
    let mut out = Writer::new(TABLE_FORMAT);
    out.u64(table.id.0);
    out.u64(table.version);
    out.string(&table.schema);
    out.string(&table.name);
    out.u8(u8::from(table.hidden_row_id));
    out.u16(table.collation.0);
    out.u64(table.created_micros as u64);
    out.string(&table.options.comment);
    out.string(&table.options.codec);
    out.length(table.options.other.len());
    for (name, value) in &table.options.other {
        out.string(name);
        out.string(value);
    }
    out.length(table.options.checks.len());
    for (name, condition) in &table.options.checks {
        out.string(name);
        out.string(condition);
    }
    out.length(table.columns.len());
    table.columns.iter().for_each(|column| write_column(&mut out, column));
    out.length(table.indexes.len());
    table.indexes.iter().for_each(|index| write_index(&mut out, index));
    out.length(table.foreign_keys.len());
    table.foreign_keys.iter().for_each(|key| write_foreign_key(&mut out, key));
    out.finish()
}

/// Reads the record of a table.
pub(crate) fn decode_table(bytes: &[u8]) -> Decoded<TableDefinition> {
    let format = match bytes.first() {
        Some(&OLD_TABLE_FORMAT) => OLD_TABLE_FORMAT,
        _ => TABLE_FORMAT,
    };
    let mut input = Reader::new(bytes, format)?;
    let id = TableId(input.u64()?);
    let version = input.u64()?;
    let schema = input.string()?;
    let name = input.string()?;
    let hidden_row_id = input.u8()? & 1 != 0;
    let collation = CollationId(input.u16()?);
    let created_micros = input.u64()? as i64;
    let mut options =
        TableOptions { comment: input.string()?, codec: input.string()?, ..Default::default() };
    for _ in 0..input.length()? {
        options.other.push((input.string()?, input.string()?));
    }
    for _ in 0..input.length()? {
        options.checks.push((input.string()?, input.string()?));
    }
    let mut columns = Vec::new();
    for _ in 0..input.length()? {
        columns.push(read_column(&mut input)?);
    }
    let mut indexes = Vec::new();
    for _ in 0..input.length()? {
        indexes.push(read_index(&mut input, format, columns.len())?);
    }
    let mut foreign_keys = Vec::new();
    for _ in 0..input.length()? {
        foreign_keys.push(read_foreign_key(&mut input, &columns)?);
    }
    input.finish()?;
    if indexes.is_empty() || columns.is_empty() {
        return Err(DecodeError::Value("the list of columns or indexes"));
    }
    Ok(TableDefinition {
        id,
        version,
        schema,
        name,
        columns,
        indexes,
        hidden_row_id,
        collation,
        foreign_keys,
        options,
        created_micros,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample_table(schema: &str, name: &str) -> TableDefinition {
        let int = ColumnType {
            kind: TypeKind::Int,
            unsigned: true,
            zerofill: false,
            length: 10,
            precision: 0,
            scale: 0,
            collation: CollationId::BINARY,
            members: None,
        };
        let text = ColumnType {
            kind: TypeKind::VarChar,
            unsigned: false,
            length: 30,
            collation: CollationId::UTF8MB4_GENERAL_CI,
            ..int
        };
        let column = |id, name: &str, column_type, default| ColumnDefinition {
            id,
            name: name.to_owned(),
            column_type,
            nullable: id > 1,
            default,
            on_update_now: false,
            auto_increment: id == 1,
            comment: "ä".to_owned(),
            check: "`id` > 0".to_owned(),
        };
        let index = |id, name: &str, column, primary| IndexDefinition {
            id: IndexId(id),
            name: name.to_owned(),
            unique: primary,
            primary,
            generated: !primary,
            parts: vec![IndexPart { column, prefix: (!primary).then_some(7), descending: false }],
            comment: String::new(),
            tree: TreeId(id + 10),
            root: PageId(1 << 40),
            page_class: 13,
            collation_version: 1,
            repeats_key: !primary,
        };
        TableDefinition {
            id: TableId(7),
            version: 3,
            schema: schema.to_owned(),
            name: name.to_owned(),
            columns: vec![
                column(1, "id", int, ColumnDefault::None),
                column(2, "name", text, ColumnDefault::Constant(b"x".to_vec())),
            ],
            indexes: vec![index(1, "PRIMARY", 0, true), index(2, "name", 1, false)],
            hidden_row_id: false,
            collation: CollationId::UTF8MB4_GENERAL_CI,
            foreign_keys: vec![ForeignKeyDefinition {
                name: "up".to_owned(),
                columns: vec![2],
                parent_schema: "other".to_owned(),
                parent_table: "p".to_owned(),
                parent_columns: vec!["x".to_owned()],
                on_delete: ReferentialAction::SetNull,
                on_update: ReferentialAction::NoAction,
            }],
            options: TableOptions {
                comment: "c".to_owned(),
                codec: "zstd".to_owned(),
                other: vec![("k".to_owned(), "v".to_owned())],
                checks: vec![("c".to_owned(), "`id` < 9".to_owned())],
            },
            created_micros: -5,
        }
    }

    #[test]
    fn a_table_is_read_as_written() {
        let table = sample_table("s", "t");
        assert_eq!(decode_table(&encode_table(&table)), Ok(table));
    }

    #[test]
    fn indexes_of_earlier_versions_repeat_the_clustered_key() {
        let mut table = sample_table("s", "t");
        table.indexes.iter_mut().for_each(|index| index.repeats_key = false);
        let mut bytes = encode_table(&table);
        assert_eq!(bytes[0], TABLE_FORMAT);
        bytes[0] = OLD_TABLE_FORMAT;
        table.indexes.iter_mut().for_each(|index| index.repeats_key = true);
        assert_eq!(decode_table(&bytes), Ok(table));
    }

    #[test]
    fn every_truncation_and_any_extra_byte_is_an_error() {
        let bytes = encode_table(&sample_table("s", "t"));
        for length in 0..bytes.len() {
            assert!(decode_table(&bytes[..length]).is_err(), "{length} bytes were enough");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(decode_table(&longer), Err(DecodeError::LeftOver(1)));
    }

    #[test]
    fn a_flipped_byte_never_panics() {
        let bytes = encode_table(&sample_table("s", "t"));
        for position in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[position] ^= flip;
                let _outcome = decode_table(&damaged);
            }
        }
        assert_eq!(decode_table(&[9]), Err(DecodeError::Format(9)));
    }

    #[test]
    fn kind_numbers_are_unique() {
        for (position, (kind, number)) in KINDS.iter().enumerate() {
            assert!(KINDS[..position].iter().all(|(k, n)| k != kind && n != number));
        }
    }
}
