//! The catalog: cache, look-ups and definition changes.

use crate::encoding::{DecodeError, decode_table, encode_table};
use crate::information_schema;
use crate::schema::{decode_schema, encode_schema, schema_key};
use crate::{CatalogError, LockKind, MetadataLock, MetadataLockSet, Result, TableEntry, TableRef};
use crate::{Schema, SchemaOptions};
use engine_api::{
    Engine, FlushPolicy, Isolation, TableDefinition, Transaction, TransactionOptions,
};
use runtime::sync::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NAME_CHARACTERS_MAX: usize = 64;

/// See the crate's documentation.
pub struct Catalog {
    engine: Arc<dyn Engine>,
    pub(crate) schemas: RwLock<BTreeMap<String, Arc<Schema>>>,
    locks: Mutex<HashMap<(String, String), Arc<MetadataLock>>>,
    version: AtomicU64,
    pub(crate) families: RwLock<crate::foreign::Families>,
    pub(crate) users: RwLock<crate::accounts::Accounts>,
    pub(crate) enabled: Mutex<crate::roles::EnabledRoles>,
    pub(crate) kept_statistics: RwLock<crate::kept_statistics::KeptByName>,
    pub(crate) monitor: crate::Monitor,
}

impl Catalog {
    /// Reads the dictionary. An empty one is given the databases `mysql` and `test` and the
    /// account root@localhost without a password.
    pub fn open(engine: Arc<dyn Engine>) -> Result<Arc<Self>> {
        let catalog = Self {
            engine,
            schemas: RwLock::new(BTreeMap::new()),
            locks: Mutex::new(HashMap::new()),
            version: AtomicU64::new(1),
            families: RwLock::default(),
            users: RwLock::default(),
            enabled: Mutex::default(),
            kept_statistics: RwLock::default(),
            monitor: Default::default(),
        };
        let mut trx = catalog.begin();
        let schemas = catalog.engine.dictionary_scan(&mut *trx, b"s")?;
        let tables = catalog.engine.dictionary_scan(&mut *trx, b"t")?;
        let views = catalog.engine.dictionary_scan(&mut *trx, b"v")?;
        let accounts = catalog.engine.dictionary_scan(&mut *trx, b"u")?;
        let left_behind = catalog.engine.dictionary_scan(&mut *trx, crate::temporary::PREFIX)?;
        trx.rollback()?;
        let empty = schemas.is_empty();
        catalog.load_schemas(schemas)?;
        catalog.load_tables(tables)?;
        catalog.load_views(views)?;
        catalog.load_accounts(accounts)?;
        catalog.drop_left_behind(left_behind)?;
        if empty {
            catalog.initialise()?;
        }
        catalog.open_statistics()?;
        Ok(Arc::new(catalog))
    }

    /// One transaction: after a crash there is all of it or nothing.
    fn initialise(&self) -> Result<()> {
        let options = SchemaOptions::default();
        let mut trx = self.begin();
        for name in ["mysql", "test"] {
            let record = encode_schema(&options);
            self.engine.dictionary_put(&mut *trx, &schema_key(name), &record)?;
        }
        self.put_root(&mut *trx)?;
        trx.commit()?;
        let mut schemas = self.schemas.write();
        for name in ["mysql", "test"] {
            let name = name.to_owned();
            let schema =
                Schema { name: name.clone(), options: options.clone(), tables: BTreeMap::new() };
            schemas.insert(name, Arc::new(schema));
        }
        Ok(())
    }

    fn load_schemas(&self, pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
        let mut schemas = self.schemas.write();
        for (key, value) in pairs {
            let name = String::from_utf8_lossy(&key[1..]).into_owned();
            let options = decode_schema(&value).map_err(|error| CatalogError::Dictionary {
                object: format!("database '{name}'"),
                error,
            })?;
            let schema = Schema { name: name.clone(), options, tables: BTreeMap::new() };
            schemas.insert(name, Arc::new(schema));
        }
        Ok(())
    }

    fn load_tables(&self, pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
        let mut schemas = self.schemas.write();
        for (key, value) in pairs {
            let unreadable = |error| CatalogError::Dictionary {
                object: format!("table {}", String::from_utf8_lossy(&key[1..]).replace('\0', ".")),
                error,
            };
            let definition = decode_table(&value).map_err(unreadable)?;
            let schema = schemas.get_mut(&definition.schema);
            let schema = schema.ok_or_else(|| unreadable(DecodeError::Value("the database")))?;
            let name = definition.name.clone();
            self.families.write().add(&definition);
            let lock = self.lock(&definition.schema, &name);
            let entry = TableEntry::new(definition, self.engine.clone(), lock);
            Arc::make_mut(schema).tables.insert(name, entry);
        }
        Ok(())
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Grows with every change of a definition, a schema or a privilege.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// All databases of the engine in order of name (`information_schema` is not among them).
    pub fn schemas(&self) -> Vec<Arc<Schema>> {
        let schemas = self.schemas.read();
        schemas.values().cloned().collect()
    }

    /// A database by name.
    pub fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        let schemas = self.schemas.read();
        schemas.get(name).cloned()
    }

    /// What a table name means now, without a lock: for SHOW and information_schema. Fails
    /// with 1146 (1109 in information_schema).
    pub fn find(&self, schema: &str, table: &str) -> Result<TableRef> {
        if schema.eq_ignore_ascii_case(information_schema::SCHEMA_NAME) {
            let unknown = || CatalogError::UnknownVirtualTable(table.to_owned());
            return information_schema::find(table).map(TableRef::Virtual).ok_or_else(unknown);
        }
        let found = self.schema(schema).and_then(|found| found.table(table).cloned());
        let missing = || CatalogError::NoSuchTable(schema.to_owned(), table.to_owned());
        let Some(entry) = found else {
            let shown = information_schema::find_accounts(schema, table);
            return shown.map(TableRef::Virtual).ok_or_else(missing);
        };
        Ok(if entry.view().is_some() { TableRef::View(entry) } else { TableRef::Base(entry) })
    }

    /// What a table name means, with a shared metadata lock in `locks`: it stays so until the
    /// set is released. May park.
    pub fn open_table(
        &self,
        locks: &mut MetadataLockSet,
        schema: &str,
        table: &str,
    ) -> Result<TableRef> {
        if let virtual_table @ TableRef::Virtual(_) = self.find(schema, table)? {
            return Ok(virtual_table);
        }
        locks.acquire(&self.lock(schema, table), LockKind::Shared)?;
        self.find(schema, table)
    }

    /// The metadata lock of a table name, or of a schema (empty `table`).
    pub fn lock(&self, schema: &str, table: &str) -> Arc<MetadataLock> {
        let mut locks = self.locks.lock();
        let key = (schema.to_owned(), table.to_owned());
        let lock = locks.entry(key);
        lock.or_insert_with(|| Arc::new(MetadataLock::new(schema, table))).clone()
    }

    /// The locks of all names that were ever asked for.
    pub(crate) fn metadata_locks(&self) -> Vec<Arc<MetadataLock>> {
        self.locks.lock().values().cloned().collect()
    }

    pub(crate) fn begin(&self) -> Box<dyn Transaction> {
        self.engine.begin(TransactionOptions {
            isolation: Isolation::ReadCommitted,
            snapshot_isolation: false,
            read_only: false,
            lock_wait_timeout: Duration::from_secs(50),
            flush_policy: FlushPolicy::Synchronous,
            connection: 0,
            ends_with_statement: false,
        })
    }

    /// Locks the names of tables that a statement defines anew or drops: their schemas shared,
    /// the names exclusive, all of them in one order. Names that cannot be changed are left out;
    /// the change itself refuses them.
    pub fn lock_names(&self, locks: &mut MetadataLockSet, names: &[(&str, &str)]) -> Result<()> {
        let mut wanted = Vec::with_capacity(2 * names.len());
        for &(schema, table) in names.iter().filter(|(schema, _)| !is_virtual_schema(schema)) {
            wanted.push((self.lock(schema, ""), LockKind::Shared));
            wanted.push((self.lock(schema, table), LockKind::Exclusive));
        }
        locks.acquire_all(wanted)
    }

    /// Locks a table name for a definition change: the schema shared, the name exclusive.
    pub fn lock_for_change(
        &self,
        locks: &mut MetadataLockSet,
        schema: &str,
        table: &str,
    ) -> Result<()> {
        if is_virtual_schema(schema) {
            return Err(CatalogError::SystemDatabase(schema.to_owned()));
        }
        self.lock_names(locks, &[(schema, table)])?;
        match self.schema(schema) {
            Some(_) => Ok(()),
            None => Err(CatalogError::UnknownDatabase(schema.to_owned())),
        }
    }

    /// CREATE TABLE: makes the trees and the dictionary record, durable on return. The
    /// definition's ids, trees and `version` are filled in. Fails with 1050.
    pub fn create_table(
        &self,
        locks: &mut MetadataLockSet,
        definition: TableDefinition,
    ) -> Result<Arc<TableEntry>> {
        self.create_filled::<CatalogError>(locks, definition, &mut |_, _| Ok(()))
    }

    /// CREATE TABLE of a table that has rows when others first see it: `fill` puts them in, within
    /// the transaction that makes the table. When it fails there is no table.
    pub fn create_filled<E: From<CatalogError>>(
        &self,
        locks: &mut MetadataLockSet,
        mut definition: TableDefinition,
        fill: &mut dyn FnMut(&mut dyn Transaction, &Arc<TableEntry>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Arc<TableEntry>, E> {
        let (schema, name) = (definition.schema.clone(), definition.name.clone());
        if !is_valid_name(&name) {
            return Err(CatalogError::WrongTableName(name).into());
        }
        self.lock_for_change(locks, &schema, &name)?;
        if self.find(&schema, &name).is_ok() {
            return Err(CatalogError::TableExists(name).into());
        }
        definition.version = 1;
        let mut trx = self.begin();
        let engine = &self.engine;
        engine.create_table(&mut *trx, &mut definition).map_err(CatalogError::from)?;
        let record = encode_table(&definition);
        let key = table_key(&schema, &name);
        engine.dictionary_put(&mut *trx, &key, &record).map_err(CatalogError::from)?;
        let entry = self.entry(definition);
        fill(&mut *trx, &entry)?;
        trx.commit().map_err(CatalogError::from)?;
        self.publish(&schema, &name, Some(entry.clone()));
        Ok(entry)
    }

    /// DROP TABLE. Fails with 1051.
    pub fn drop_table(&self, locks: &mut MetadataLockSet, schema: &str, name: &str) -> Result<()> {
        self.lock_for_change(locks, schema, name)?;
        let entry = match self.find(schema, name) {
            Ok(TableRef::Base(entry)) => entry,
            Ok(TableRef::View(_)) => {
                return Err(CatalogError::IsView(schema.to_owned(), name.to_owned()));
            }
            _ => return Err(CatalogError::UnknownTable(schema.to_owned(), name.to_owned())),
        };
        let mut trx = self.begin();
        self.engine.drop_table(&mut *trx, entry.definition())?;
        self.engine.dictionary_delete(&mut *trx, &table_key(schema, name))?;
        trx.commit()?;
        self.move_statistics((schema, name), None);
        self.publish(schema, name, None);
        Ok(())
    }

    /// RENAME TABLE, also into another database. Fails with 1146, 1049 or 1050.
    pub fn rename_table(
        &self,
        locks: &mut MetadataLockSet,
        from: (&str, &str),
        to: (&str, &str),
    ) -> Result<()> {
        if !is_valid_name(to.1) {
            return Err(CatalogError::WrongTableName(to.1.to_owned()));
        }
        self.lock_names(locks, &[from, to])?;
        self.lock_for_change(locks, from.0, from.1)?;
        self.lock_for_change(locks, to.0, to.1)?;
        let found = self.find(from.0, from.1)?;
        if self.find(to.0, to.1).is_ok() {
            return Err(CatalogError::TableExists(to.1.to_owned()));
        }
        if let TableRef::View(view) = &found {
            return self.rename_view(view, from, to);
        }
        let entry = found.base()?;
        let mut definition = (**entry.definition()).clone();
        definition.schema = to.0.to_owned();
        definition.name = to.1.to_owned();
        definition.version += 1;
        let children = self.renamed_parent(&mut definition, from, to);
        let mut trx = self.begin();
        self.engine.dictionary_delete(&mut *trx, &table_key(from.0, from.1))?;
        let record = encode_table(&definition);
        self.engine.dictionary_put(&mut *trx, &table_key(to.0, to.1), &record)?;
        for child in &children {
            let key = table_key(&child.schema, &child.name);
            self.engine.dictionary_put(&mut *trx, &key, &encode_table(child))?;
        }
        trx.commit()?;
        self.move_statistics(from, Some(to));
        self.publish(from.0, from.1, None);
        self.publish(to.0, to.1, Some(self.entry(definition)));
        for child in children {
            let (schema, name) = (child.schema.clone(), child.name.clone());
            self.publish(&schema, &name, Some(self.entry(child)));
        }
        Ok(())
    }

    /// Children whose parent gets another name, with that name; keys of the table to itself, and
    /// the names that were made of its own, change in `definition`.
    fn renamed_parent(
        &self,
        definition: &mut TableDefinition,
        from: (&str, &str),
        to: (&str, &str),
    ) -> Vec<TableDefinition> {
        let rename = |table: &mut TableDefinition| {
            for key in &mut table.foreign_keys {
                if key.parent_schema == from.0 && key.parent_table == from.1 {
                    key.parent_schema = to.0.to_owned();
                    key.parent_table = to.1.to_owned();
                }
            }
        };
        rename(definition);
        for key in &mut definition.foreign_keys {
            if let Some(number) = key.name.strip_prefix(&format!("{}_ibfk_", from.1)) {
                key.name = format!("{}_ibfk_{number}", to.1);
            }
        }
        let mut children = Vec::new();
        for (schema, name) in self.children(from.0, from.1) {
            if (schema.as_str(), name.as_str()) == from {
                continue;
            }
            if let Some(entry) = self.find_base(&schema, &name) {
                let mut child = (**entry.definition()).clone();
                rename(&mut child);
                child.version += 1;
                children.push(child);
            }
        }
        children
    }

    /// Stores changed definitions of tables whose exclusive locks are held, in one transaction:
    /// children that follow a change of their parent's columns.
    pub fn store_definitions(&self, definitions: Vec<TableDefinition>) -> Result<()> {
        if definitions.is_empty() {
            return Ok(());
        }
        let mut trx = self.begin();
        for table in &definitions {
            let key = table_key(&table.schema, &table.name);
            self.engine.dictionary_put(&mut *trx, &key, &encode_table(table))?;
        }
        trx.commit()?;
        for table in definitions {
            let (schema, name) = (table.schema.clone(), table.name.clone());
            self.publish(&schema, &name, Some(self.entry(table)));
        }
        Ok(())
    }

    /// Any change of one table: takes the exclusive lock, calls `edit` with an engine
    /// transaction and a copy of the definition, stores the edited copy under a new version,
    /// commits and publishes it. When `edit` fails nothing has changed. `edit` may build and
    /// drop indexes, or create a new table (id 0), copy rows into it and drop the old one.
    /// Fails with 1146.
    pub fn change_table<E: From<CatalogError>>(
        &self,
        locks: &mut MetadataLockSet,
        schema: &str,
        name: &str,
        edit: &mut dyn FnMut(
            &mut dyn Transaction,
            &mut TableDefinition,
        ) -> std::result::Result<(), E>,
    ) -> std::result::Result<Arc<TableEntry>, E> {
        self.lock_for_change(locks, schema, name)?;
        let entry = self.find(schema, name)?.base()?;
        let mut definition = (**entry.definition()).clone();
        let mut trx = self.begin();
        edit(&mut *trx, &mut definition)?;
        definition.version = entry.definition().version + 1;
        let record = encode_table(&definition);
        let key = table_key(schema, name);
        let stored = self.engine.dictionary_put(&mut *trx, &key, &record);
        stored.map_err(CatalogError::from)?;
        trx.commit().map_err(CatalogError::from)?;
        let entry = self.entry(definition);
        self.publish(schema, name, Some(entry.clone()));
        Ok(entry)
    }

    /// Stores the record of a table.
    pub(crate) fn put_table(
        &self,
        trx: &mut dyn Transaction,
        definition: &TableDefinition,
    ) -> Result<()> {
        let key = table_key(&definition.schema, &definition.name);
        Ok(self.engine.dictionary_put(trx, &key, &encode_table(definition))?)
    }

    pub(crate) fn entry(&self, definition: TableDefinition) -> Arc<TableEntry> {
        let lock = self.lock(&definition.schema, &definition.name);
        TableEntry::new(definition, self.engine.clone(), lock)
    }

    fn publish(&self, schema: &str, name: &str, entry: Option<Arc<TableEntry>>) {
        let new = entry.as_ref().map(|entry| entry.definition().clone());
        let old = self.put_entry(schema, name, entry);
        let old = old.as_ref().map(|entry| &**entry.definition());
        self.note_family(old, new.as_deref(), (schema, name));
    }

    /// Puts an entry into the cache or takes it out; returns the one that was there.
    pub(crate) fn put_entry(
        &self,
        schema: &str,
        name: &str,
        entry: Option<Arc<TableEntry>>,
    ) -> Option<Arc<TableEntry>> {
        let mut replaced = None;
        self.edit_schema(schema, |schema| {
            let old = match entry {
                Some(entry) => schema.tables.insert(name.to_owned(), entry),
                None => schema.tables.remove(name),
            };
            if let Some(old) = &old {
                old.set_replaced();
            }
            replaced = old;
        });
        replaced
    }

    pub(crate) fn edit_schema(&self, name: &str, edit: impl FnOnce(&mut Schema)) {
        let mut schemas = self.schemas.write();
        if let Some(schema) = schemas.get_mut(name) {
            edit(Arc::make_mut(schema));
        }
        drop(schemas);
        self.changed();
    }
}

/// `information_schema` in any case.
pub(crate) fn is_virtual_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case("information_schema")
}

pub(crate) fn is_valid_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= NAME_CHARACTERS_MAX
        && !name.ends_with(' ')
        && !name.contains('\0')
}

pub(crate) fn table_key(schema: &str, name: &str) -> Vec<u8> {
    [b"t", schema.as_bytes(), b"\0", name.as_bytes()].concat()
}
