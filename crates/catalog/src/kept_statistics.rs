//! Engine-independent statistics: what ANALYZE TABLE ... PERSISTENT FOR has collected, kept in the
//! dictionary under the table's name and shown by `mysql.table_stats` and its kin.
//!
//! A record of a table that is not there (a crash came between two changes of the dictionary) is
//! not shown, and goes when the name is used again.

use crate::encoding::{DecodeError, Reader, Writer};
use crate::{Catalog, CatalogError, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

const FORMAT: u8 = 1;
const PREFIX: &[u8] = b"h";

pub(crate) type KeptByName = BTreeMap<(String, String), Arc<KeptStatistics>>;

/// What was collected about a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptStatistics {
    /// Rows.
    pub cardinality: u64,
    /// By name.
    pub columns: BTreeMap<String, KeptColumn>,
    /// By name: for each number of leading parts how many rows have the same values; none where
    /// a part is a prefix of its column.
    pub indexes: BTreeMap<String, Vec<Option<f64>>>,
}

/// What was collected about a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptColumn {
    /// Least and greatest value as text; none without a value.
    pub extremes: Option<(Vec<u8>, Vec<u8>)>,
    /// Share of rows with NULL and average length of the others in bytes; none without rows.
    pub shape: Option<(f64, f64)>,
    /// Rows for each value.
    pub frequency: Option<f64>,
    /// Bytes of the histogram that were asked for; none for a column that needs none.
    pub histogram_size: Option<u8>,
    /// Type of the histogram and its bytes.
    pub histogram: Option<(String, Vec<u8>)>,
}

fn key(schema: &str, table: &str) -> Vec<u8> {
    [PREFIX, schema.as_bytes(), b"\0", table.as_bytes()].concat()
}

fn put_float(value: Option<f64>, out: &mut Writer) {
    out.u8(u8::from(value.is_some()));
    out.u64(value.unwrap_or(0.0).to_bits());
}

fn float(reader: &mut Reader<'_>) -> std::result::Result<Option<f64>, DecodeError> {
    let known = reader.u8()? != 0;
    let value = f64::from_bits(reader.u64()?);
    Ok(known.then_some(value))
}

impl KeptStatistics {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new(FORMAT);
        out.u64(self.cardinality);
        out.length(self.columns.len());
        for (name, column) in &self.columns {
            out.string(name);
            let none = (Vec::new(), Vec::new());
            let (least, greatest) = column.extremes.as_ref().unwrap_or(&none);
            out.u8(u8::from(column.extremes.is_some()));
            out.bytes(least);
            out.bytes(greatest);
            put_float(column.shape.map(|shape| shape.0), &mut out);
            put_float(column.shape.map(|shape| shape.1), &mut out);
            put_float(column.frequency, &mut out);
            out.u8(u8::from(column.histogram_size.is_some()));
            out.u8(column.histogram_size.unwrap_or(0));
            let none = (String::new(), Vec::new());
            let (kind, bytes) = column.histogram.as_ref().unwrap_or(&none);
            out.u8(u8::from(column.histogram.is_some()));
            out.string(kind);
            out.bytes(bytes);
        }
        out.length(self.indexes.len());
        for (name, parts) in &self.indexes {
            out.string(name);
            out.length(parts.len());
            parts.iter().for_each(|frequency| put_float(*frequency, &mut out));
        }
        out.finish()
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, FORMAT)?;
        let mut kept = Self { cardinality: reader.u64()?, ..Self::default() };
        for _ in 0..reader.length()? {
            let name = reader.string()?;
            let known = reader.u8()? != 0;
            let extremes = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
            let (nulls, length) = (float(&mut reader)?, float(&mut reader)?);
            let frequency = float(&mut reader)?;
            let (sized, size) = (reader.u8()? != 0, reader.u8()?);
            let described = reader.u8()? != 0;
            let histogram = (reader.string()?, reader.bytes()?.to_vec());
            let column = KeptColumn {
                extremes: known.then_some(extremes),
                shape: nulls.zip(length),
                frequency,
                histogram_size: sized.then_some(size),
                histogram: described.then_some(histogram),
            };
            kept.columns.insert(name, column);
        }
        for _ in 0..reader.length()? {
            let name = reader.string()?;
            let count = reader.length()?;
            let parts = (0..count).map(|_| float(&mut reader));
            kept.indexes.insert(name, parts.collect::<std::result::Result<_, _>>()?);
        }
        reader.finish()?;
        Ok(kept)
    }
}

impl Catalog {
    pub(crate) fn load_statistics(&self) -> Result<()> {
        let mut trx = self.begin();
        let pairs = self.engine().dictionary_scan(&mut *trx, PREFIX)?;
        trx.rollback()?;
        let mut known = self.kept_statistics.write();
        for (key, value) in pairs {
            let name = String::from_utf8_lossy(&key[PREFIX.len()..]).into_owned();
            let Some((schema, table)) = name.split_once('\0') else { continue };
            let kept = KeptStatistics::decode(&value).map_err(|error| {
                CatalogError::Dictionary { object: format!("statistics of {table}"), error }
            })?;
            known.insert((schema.to_owned(), table.to_owned()), Arc::new(kept));
        }
        Ok(())
    }

    /// What ANALYZE TABLE ... PERSISTENT has collected about a table.
    pub fn kept_statistics(&self, schema: &str, table: &str) -> Option<Arc<KeptStatistics>> {
        let known = self.kept_statistics.read();
        known.get(&(schema.to_owned(), table.to_owned())).cloned()
    }

    /// All that has been collected, by database and table.
    pub(crate) fn all_kept_statistics(&self) -> KeptByName {
        self.kept_statistics.read().clone()
    }

    /// Keeps what was collected about a table.
    pub fn keep_statistics(&self, schema: &str, table: &str, kept: KeptStatistics) -> Result<()> {
        let mut trx = self.begin();
        self.engine().dictionary_put(&mut *trx, &key(schema, table), &kept.encode())?;
        trx.commit()?;
        let name = (schema.to_owned(), table.to_owned());
        self.kept_statistics.write().insert(name, Arc::new(kept));
        Ok(())
    }

    /// A table is gone, or has another name.
    pub(crate) fn move_statistics(
        &self,
        from: (&str, &str),
        to: Option<(&str, &str)>,
    ) -> Result<()> {
        let name = (from.0.to_owned(), from.1.to_owned());
        let Some(kept) = self.kept_statistics(from.0, from.1) else { return Ok(()) };
        let mut trx = self.begin();
        self.engine().dictionary_delete(&mut *trx, &key(from.0, from.1))?;
        if let Some(to) = to {
            self.engine().dictionary_put(&mut *trx, &key(to.0, to.1), &kept.encode())?;
        }
        trx.commit()?;
        let mut known = self.kept_statistics.write();
        known.remove(&name);
        if let Some(to) = to {
            known.insert((to.0.to_owned(), to.1.to_owned()), kept);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> KeptStatistics {
        let column = KeptColumn {
            extremes: Some((b"1".to_vec(), b"99".to_vec())),
            shape: Some((0.25, 4.0)),
            frequency: Some(1.5),
            histogram_size: Some(4),
            histogram: Some(("SINGLE_PREC_HB".to_owned(), vec![0, 127, 200, 255])),
        };
        KeptStatistics {
            cardinality: 7,
            columns: BTreeMap::from([
                ("a".to_owned(), column),
                ("b".to_owned(), KeptColumn::default()),
            ]),
            indexes: BTreeMap::from([("k".to_owned(), vec![Some(2.0), None])]),
        }
    }

    #[test]
    fn records_come_back_and_cut_ones_are_refused() {
        let bytes = sample().encode();
        assert_eq!(KeptStatistics::decode(&bytes), Ok(sample()));
        for end in 0..bytes.len() {
            assert!(KeptStatistics::decode(&bytes[..end]).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(KeptStatistics::decode(&longer), Err(DecodeError::LeftOver(1)));
    }
}
