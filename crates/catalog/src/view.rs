//! Views: a name for a query, kept as canonical text.
//!
//! A view lies in the cache like a table, under the same metadata lock: its entry's definition
//! describes its columns as they were when it was made, [`TableEntry::view`] has the query. It has
//! no trees. Its dictionary record stands under a key of its own kind.

use crate::catalog::is_valid_name;
use crate::encoding::{DecodeError, Reader, Writer, decode_table, encode_table};
use crate::{Catalog, CatalogError, MetadataLockSet, Result, TableEntry, describe};
use engine_api::TableDefinition;
use std::fmt::Write;
use std::sync::Arc;

const VIEW_FORMAT: u8 = 1;

/// How a view is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewAlgorithm {
    /// As the server thinks best.
    Undefined,
    /// Becomes part of the query around it.
    Merge,
    /// Is run first.
    TemporaryTable,
}

/// WITH CHECK OPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    /// Not given.
    None,
    /// Rows must pass this view's condition.
    Local,
    /// Rows must pass the conditions of the views below, too.
    Cascaded,
}

/// What a view is, beside its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewDefinition {
    /// The query; every table with its database, every column with its table.
    pub query: String,
    /// ALGORITHM.
    pub algorithm: ViewAlgorithm,
    /// User and host of DEFINER.
    pub definer: (String, String),
    /// SQL SECURITY INVOKER.
    pub invoker: bool,
    /// WITH CHECK OPTION.
    pub check_option: CheckOption,
    /// Rows can be changed through it.
    pub is_updatable: bool,
    /// character_set_client when it was made.
    pub charset_client: String,
    /// collation_connection when it was made.
    pub collation_connection: String,
}

impl ViewAlgorithm {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Undefined => "UNDEFINED",
            Self::Merge => "MERGE",
            Self::TemporaryTable => "TEMPTABLE",
        }
    }

    /// By its word in capitals.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Undefined, Self::Merge, Self::TemporaryTable];
        all.into_iter().find(|algorithm| algorithm.word().eq_ignore_ascii_case(word))
    }
}

impl CheckOption {
    /// As VIEWS shows it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Local => "LOCAL",
            Self::Cascaded => "CASCADED",
        }
    }
}

impl ViewDefinition {
    /// The statement that makes the view; `query` is its query as it is to be shown.
    pub fn create_text(&self, name: &str, query: &str) -> String {
        let mut text = format!(
            "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {} VIEW {name} AS {query}",
            self.algorithm.word(),
            describe::quote_name(&self.definer.0),
            describe::quote_name(&self.definer.1),
            if self.invoker { "INVOKER" } else { "DEFINER" },
        );
        if self.check_option != CheckOption::None {
            let _ = write!(text, " WITH {} CHECK OPTION", self.check_option.word());
        }
        text
    }
}

pub(crate) fn view_key(schema: &str, name: &str) -> Vec<u8> {
    [b"v", schema.as_bytes(), b"\0", name.as_bytes()].concat()
}

fn encode_view(table: &TableDefinition, view: &ViewDefinition) -> Vec<u8> {
    let mut out = Writer::new(VIEW_FORMAT);
    out.bytes(&encode_table(table));
    out.string(&view.query);
    out.u8(match view.algorithm {
        ViewAlgorithm::Undefined => 0,
        ViewAlgorithm::Merge => 1,
        ViewAlgorithm::TemporaryTable => 2,
    });
    out.string(&view.definer.0);
    out.string(&view.definer.1);
    out.u8(u8::from(view.invoker) | u8::from(view.is_updatable) << 1);
    out.u8(match view.check_option {
        CheckOption::None => 0,
        CheckOption::Local => 1,
        CheckOption::Cascaded => 2,
    });
    out.string(&view.charset_client);
    out.string(&view.collation_connection);
    out.finish()
}

pub(crate) fn decode_view(
    bytes: &[u8],
) -> std::result::Result<(TableDefinition, ViewDefinition), DecodeError> {
    let mut input = Reader::new(bytes, VIEW_FORMAT)?;
    let table = decode_table(input.bytes()?)?;
    let query = input.string()?;
    let algorithm = match input.u8()? {
        0 => ViewAlgorithm::Undefined,
        1 => ViewAlgorithm::Merge,
        2 => ViewAlgorithm::TemporaryTable,
        _ => return Err(DecodeError::Value("an algorithm")),
    };
    let definer = (input.string()?, input.string()?);
    let bits = input.u8()?;
    let check_option = match input.u8()? {
        0 => CheckOption::None,
        1 => CheckOption::Local,
        2 => CheckOption::Cascaded,
        _ => return Err(DecodeError::Value("a check option")),
    };
    let view = ViewDefinition {
        query,
        algorithm,
        definer,
        invoker: bits & 1 != 0,
        check_option,
        is_updatable: bits & 2 != 0,
        charset_client: input.string()?,
        collation_connection: input.string()?,
    };
    input.finish()?;
    Ok((table, view))
}

impl Catalog {
    pub(crate) fn load_views(&self, pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
        for (key, value) in pairs {
            let unreadable = |error| CatalogError::Dictionary {
                object: format!("view {}", String::from_utf8_lossy(&key[1..]).replace('\0', ".")),
                error,
            };
            let (table, view) = decode_view(&value).map_err(unreadable)?;
            let (schema, name) = (table.schema.clone(), table.name.clone());
            let entry = self.view_entry(table, view);
            self.put_entry(&schema, &name, Some(entry));
        }
        Ok(())
    }

    fn view_entry(&self, table: TableDefinition, view: ViewDefinition) -> Arc<TableEntry> {
        let lock = self.lock(&table.schema, &table.name);
        TableEntry::new_view(table, view, self.engine().clone(), lock)
    }

    /// A view with its columns as they are now, for SHOW.
    pub fn described_view(&self, table: TableDefinition, view: ViewDefinition) -> Arc<TableEntry> {
        self.view_entry(table, view)
    }

    /// Makes a view, or replaces the one of its name. Fails with 1050 if there is one and
    /// `replace` is not given, with 1347 if it is a table.
    pub fn create_view(
        &self,
        locks: &mut MetadataLockSet,
        mut table: TableDefinition,
        view: ViewDefinition,
        replace: bool,
    ) -> Result<()> {
        let (schema, name) = (table.schema.clone(), table.name.clone());
        if !is_valid_name(&name) {
            return Err(CatalogError::WrongTableName(name));
        }
        self.lock_for_change(locks, &schema, &name)?;
        let known = self.schema(&schema).and_then(|found| found.table(&name).cloned());
        match &known {
            Some(_) if !replace => return Err(CatalogError::TableExists(name)),
            Some(entry) if entry.view().is_none() => {
                return Err(CatalogError::NotView(schema, name));
            }
            _ => {}
        }
        table.version = known.map_or(1, |entry| entry.definition().version + 1);
        let record = encode_view(&table, &view);
        let mut trx = self.begin();
        self.engine().dictionary_put(&mut *trx, &view_key(&schema, &name), &record)?;
        trx.commit()?;
        let entry = self.view_entry(table, view);
        self.put_entry(&schema, &name, Some(entry));
        Ok(())
    }

    /// DROP VIEW. Fails with 4092.
    pub fn drop_view(&self, locks: &mut MetadataLockSet, schema: &str, name: &str) -> Result<()> {
        self.lock_for_change(locks, schema, name)?;
        let found = self.schema(schema).and_then(|found| found.table(name).cloned());
        if found.is_none_or(|entry| entry.view().is_none()) {
            return Err(CatalogError::UnknownView(schema.to_owned(), name.to_owned()));
        }
        let mut trx = self.begin();
        self.engine().dictionary_delete(&mut *trx, &view_key(schema, name))?;
        trx.commit()?;
        self.put_entry(schema, name, None);
        Ok(())
    }

    /// RENAME TABLE of a view whose names are locked.
    pub(crate) fn rename_view(
        &self,
        entry: &TableEntry,
        from: (&str, &str),
        to: (&str, &str),
    ) -> Result<()> {
        let Some(view) = entry.view().cloned() else { return Ok(()) };
        let mut table = (**entry.definition()).clone();
        table.schema = to.0.to_owned();
        table.name = to.1.to_owned();
        table.version += 1;
        let mut trx = self.begin();
        self.engine().dictionary_delete(&mut *trx, &view_key(from.0, from.1))?;
        let record = encode_view(&table, &view);
        self.engine().dictionary_put(&mut *trx, &view_key(to.0, to.1), &record)?;
        trx.commit()?;
        self.put_entry(from.0, from.1, None);
        let entry = self.view_entry(table, view);
        self.put_entry(to.0, to.1, Some(entry));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ViewDefinition {
        ViewDefinition {
            query: "select 1 AS `1`".to_owned(),
            algorithm: ViewAlgorithm::Merge,
            definer: ("root".to_owned(), "%".to_owned()),
            invoker: true,
            check_option: CheckOption::Local,
            is_updatable: true,
            charset_client: "utf8mb4".to_owned(),
            collation_connection: "utf8mb4_bin".to_owned(),
        }
    }

    #[test]
    fn a_view_is_read_as_written() {
        let table = crate::encoding::tests::sample_table("s", "v");
        let bytes = encode_view(&table, &sample());
        assert_eq!(decode_view(&bytes), Ok((table, sample())));
        for length in 0..bytes.len() {
            assert!(decode_view(&bytes[..length]).is_err(), "{length} bytes were enough");
        }
    }

    #[test]
    fn the_statement_has_all_its_words() {
        assert_eq!(
            sample().create_text("`v`", "select 1"),
            "CREATE ALGORITHM=MERGE DEFINER=`root`@`%` SQL SECURITY INVOKER VIEW `v` AS select 1 \
             WITH LOCAL CHECK OPTION"
        );
    }
}
