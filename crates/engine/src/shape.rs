//! What the engine itself must know of a table, kept in its own part of the dictionary tree, so
//! that trees can be found, checked and dropped without the catalog.
//!
//! ```text
//! key   = 0 | 't' | table id u64 BE
//! value = version u8 (2) | hidden row id u8 | schema str | name str | codec str
//!         | column count u16 | columns | index count u16 | indexes
//! column = kind u8 | bits u8 (1 unsigned, 2 zerofill, 4 nullable) | length u32 | precision u8
//!         | scale u8 | collation u16
//! index = id u32 | name str | bits u8 (1 unique, 2 primary, 4 repeats the clustered key)
//!         | tree u32 | root u64 | class u8
//!         | collation version u16 | part count u16 | parts
//! part  = column u16 | prefix u32 (0 none, else prefix + 1) | descending u8
//! str   = length u16 | UTF-8
//! ```
//! All integers little-endian except in the key. Version 1 is read as well: its secondary indexes
//! repeat the clustered key without saying so.

use base::{IndexId, PageId, TableId, TreeId};
use engine_api::{
    ColumnDefault, ColumnDefinition, IndexDefinition, IndexPart, TableDefinition, TableOptions,
};
use types::{CollationId, ColumnType, Members, TypeKind};

const VERSION: u8 = 2;
const OLD_VERSION: u8 = 1;

/// Codes of types in the shape: the position in this list, for ever.
const KINDS: [TypeKind; 29] = [
    TypeKind::Null,
    TypeKind::TinyInt,
    TypeKind::SmallInt,
    TypeKind::MediumInt,
    TypeKind::Int,
    TypeKind::BigInt,
    TypeKind::Decimal,
    TypeKind::Float,
    TypeKind::Double,
    TypeKind::Char,
    TypeKind::VarChar,
    TypeKind::Binary,
    TypeKind::VarBinary,
    TypeKind::TinyText,
    TypeKind::Text,
    TypeKind::MediumText,
    TypeKind::LongText,
    TypeKind::TinyBlob,
    TypeKind::Blob,
    TypeKind::MediumBlob,
    TypeKind::LongBlob,
    TypeKind::Date,
    TypeKind::Time,
    TypeKind::DateTime,
    TypeKind::Timestamp,
    TypeKind::Year,
    TypeKind::Enum,
    TypeKind::Set,
    TypeKind::Bit,
];

/// First byte of the engine's keys in the dictionary tree.
pub(crate) const ENGINE_PREFIX: u8 = 0;
/// First byte of the catalog's keys in the dictionary tree.
pub(crate) const CATALOG_PREFIX: u8 = 1;

/// Key of a table's shape.
pub(crate) fn shape_key(table: TableId) -> Vec<u8> {
    let mut key = SHAPES.to_vec();
    key.extend_from_slice(&table.get().to_be_bytes());
    key
}

/// Prefix of the keys of all shapes.
pub(crate) const SHAPES: [u8; 2] = [ENGINE_PREFIX, b't'];

fn push_text(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Encodes the shape of a table.
pub(crate) fn encode(table: &TableDefinition) -> Vec<u8> {
    let mut out = vec![VERSION, u8::from(table.hidden_row_id)];
    push_text(&mut out, &table.schema);
    push_text(&mut out, &table.name);
    push_text(&mut out, &table.options.codec);
    out.extend_from_slice(&(table.columns.len() as u16).to_le_bytes());
    for column in &table.columns {
        let it = &column.column_type;
        let code = KINDS.iter().position(|kind| *kind == it.kind).unwrap_or(0);
        let bits =
            u8::from(it.unsigned) | u8::from(it.zerofill) << 1 | u8::from(column.nullable) << 2;
        out.extend_from_slice(&[code as u8, bits]);
        out.extend_from_slice(&it.length.to_le_bytes());
        out.extend_from_slice(&[it.precision, it.scale]);
        out.extend_from_slice(&it.collation.0.to_le_bytes());
        if let Some(members) = it.members {
            out.extend_from_slice(&(members.names().len() as u16).to_le_bytes());
            for name in members.names() {
                out.extend_from_slice(&(name.len() as u16).to_le_bytes());
                out.extend_from_slice(name);
            }
        }
    }
    out.extend_from_slice(&(table.indexes.len() as u16).to_le_bytes());
    for index in &table.indexes {
        encode_index(&mut out, index);
    }
    out
}

fn encode_index(out: &mut Vec<u8>, index: &IndexDefinition) {
    out.extend_from_slice(&index.id.get().to_le_bytes());
    push_text(out, &index.name);
    out.push(
        u8::from(index.unique) | u8::from(index.primary) << 1 | u8::from(index.repeats_key) << 2,
    );
    out.extend_from_slice(&index.tree.get().to_le_bytes());
    out.extend_from_slice(&index.root.get().to_le_bytes());
    out.push(index.page_class);
    out.extend_from_slice(&index.collation_version.to_le_bytes());
    out.extend_from_slice(&(index.parts.len() as u16).to_le_bytes());
    for part in &index.parts {
        out.extend_from_slice(&(part.column as u16).to_le_bytes());
        out.extend_from_slice(&part.prefix.map_or(0, |prefix| prefix + 1).to_le_bytes());
        out.push(u8::from(part.descending));
    }
}

struct Decoder<'a>(&'a [u8]);

impl Decoder<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn counted(&mut self) -> Option<&[u8]> {
        let length = usize::from(self.u16()?);
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    fn text(&mut self) -> Option<String> {
        self.counted().map(|text| String::from_utf8_lossy(text).into_owned())
    }

    fn column(&mut self, id: u32) -> Option<ColumnDefinition> {
        let [code, bits] = self.bytes()?;
        let length = self.u32()?;
        let [precision, scale] = self.bytes()?;
        let mut column_type = ColumnType {
            kind: *KINDS.get(usize::from(code))?,
            unsigned: bits & 1 != 0,
            zerofill: bits & 2 != 0,
            length,
            precision,
            scale,
            collation: CollationId(self.u16()?),
            members: None,
        };
        if matches!(column_type.kind, TypeKind::Enum | TypeKind::Set) {
            let names = (0..self.u16()?).map(|_| self.counted().map(Vec::from));
            column_type.members = Some(Members::of(names.collect::<Option<_>>()?));
        }
        Some(ColumnDefinition {
            id,
            name: format!("#{id}"),
            column_type,
            nullable: bits & 4 != 0,
            default: ColumnDefault::None,
            on_update_now: false,
            auto_increment: false,
            comment: String::new(),
            check: String::new(),
        })
    }

    fn index(&mut self, version: u8, columns: usize) -> Option<IndexDefinition> {
        let id = IndexId::new(self.u32()?);
        let name = self.text()?;
        let bits = self.u8()?;
        let tree = TreeId::new(self.u32()?);
        let root = PageId::checked(self.bytes().map(u64::from_le_bytes)?)?;
        let page_class = self.u8()?;
        let collation_version = self.u16()?;
        let mut parts = Vec::new();
        for _ in 0..self.u16()? {
            let column = usize::from(self.u16()?);
            let prefix = self.u32()?.checked_sub(1);
            let descending = self.u8()? != 0;
            if column >= columns {
                return None;
            }
            parts.push(IndexPart { column, prefix, descending });
        }
        Some(IndexDefinition {
            id,
            name,
            unique: bits & 1 != 0,
            primary: bits & 2 != 0,
            generated: false,
            parts,
            comment: String::new(),
            tree,
            root,
            page_class,
            collation_version,
            repeats_key: version == OLD_VERSION || bits & 4 != 0,
        })
    }
}

/// Decodes a shape into a definition with everything the engine needs; names of columns and
/// defaults are not in it. `None` when malformed.
pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<TableDefinition> {
    let id = TableId::new(u64::from_be_bytes(key.strip_prefix(&SHAPES)?.try_into().ok()?));
    let mut decoder = Decoder(value);
    let version = decoder.u8().filter(|version| matches!(*version, OLD_VERSION | VERSION))?;
    let hidden_row_id = decoder.u8()? != 0;
    let (schema, name, codec) = (decoder.text()?, decoder.text()?, decoder.text()?);
    let columns: Option<Vec<_>> =
        (1..=u32::from(decoder.u16()?)).map(|number| decoder.column(number)).collect();
    let columns = columns?;
    let indexes: Option<Vec<_>> =
        (0..decoder.u16()?).map(|_| decoder.index(version, columns.len())).collect();
    Some(TableDefinition {
        id,
        version: 0,
        schema,
        name,
        columns,
        indexes: indexes.filter(|indexes| !indexes.is_empty())?,
        hidden_row_id,
        collation: CollationId::BINARY,
        foreign_keys: Vec::new(),
        options: TableOptions { codec, ..TableOptions::default() },
        created_micros: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{definition, index};

    #[test]
    fn a_shape_is_read_as_written_and_as_earlier_versions_wrote_it() {
        let mut table = definition();
        table.indexes.push(IndexDefinition { repeats_key: true, ..index("old", false, &[1, 0]) });
        table.indexes.iter_mut().for_each(|index| index.root = PageId::new(7));
        let repeats = |table: &TableDefinition| -> Vec<bool> {
            table.indexes.iter().map(|index| index.repeats_key).collect()
        };
        let (key, mut bytes) = (shape_key(table.id), encode(&table));
        let read = decode(&key, &bytes).expect("well formed");
        assert_eq!(read.indexes, table.indexes);
        assert_eq!(repeats(&read), [false, false, false, true]);
        bytes[0] = OLD_VERSION;
        let read = decode(&key, &bytes).expect("well formed");
        assert_eq!(repeats(&read), [true; 4]);
        bytes[0] = VERSION + 1;
        assert!(decode(&key, &bytes).is_none());
    }
}
