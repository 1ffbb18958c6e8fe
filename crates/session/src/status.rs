//! Status counters: per session and for the server.

use base::metrics::Counter;
use syntax::ast::{InsertSource, ShowKind, Statement, TableReference};

macro_rules! counters {
    ($($variant:ident = $name:literal;)*) => {
        /// A counter of SHOW STATUS that exists per session and for the server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are those of SHOW STATUS")]
        pub enum StatusCounter {
            $($variant,)*
        }

        /// Names in the order of [`StatusCounter`].
        const NAMES: &[&str] = &[$($name,)*];

        static SERVER: [Counter; NAMES.len()] =
            [$(Counter::new($name, "see SHOW STATUS"),)*];
    };
}

// Those that every statement counts come first: they share a cache line.
counters! {
    BytesReceived = "Bytes_received";
    BytesSent = "Bytes_sent";
    ComSelect = "Com_select";
    ComStmtExecute = "Com_stmt_execute";
    Queries = "Queries";
    Questions = "Questions";
    RowsSent = "Rows_sent";
    HandlerCommit = "Handler_commit";
    ComAlterDb = "Com_alter_db";
    ComAlterTable = "Com_alter_table";
    ComAlterUser = "Com_alter_user";
    ComAnalyze = "Com_analyze";
    ComBegin = "Com_begin";
    ComChangeDb = "Com_change_db";
    ComCheck = "Com_check";
    ComCommit = "Com_commit";
    ComCreateDb = "Com_create_db";
    ComCreateIndex = "Com_create_index";
    ComCreateTable = "Com_create_table";
    ComCreateUser = "Com_create_user";
    ComCreateView = "Com_create_view";
    ComDelete = "Com_delete";
    ComDo = "Com_do";
    ComDropDb = "Com_drop_db";
    ComDropIndex = "Com_drop_index";
    ComDropTable = "Com_drop_table";
    ComDropUser = "Com_drop_user";
    ComDropView = "Com_drop_view";
    ComExecuteSql = "Com_execute_sql";
    ComFlush = "Com_flush";
    ComGrant = "Com_grant";
    ComInsert = "Com_insert";
    ComKill = "Com_kill";
    ComLoad = "Com_load";
    ComLockTables = "Com_lock_tables";
    ComOptimize = "Com_optimize";
    ComPrepareSql = "Com_prepare_sql";
    ComReleaseSavepoint = "Com_release_savepoint";
    ComRenameTable = "Com_rename_table";
    ComRenameUser = "Com_rename_user";
    ComReplace = "Com_replace";
    ComRevoke = "Com_revoke";
    ComRollback = "Com_rollback";
    ComRollbackToSavepoint = "Com_rollback_to_savepoint";
    ComSavepoint = "Com_savepoint";
    ComSetOption = "Com_set_option";
    ComShow = "Com_show_fields";
    ComStmtClose = "Com_stmt_close";
    ComStmtFetch = "Com_stmt_fetch";
    ComStmtPrepare = "Com_stmt_prepare";
    ComStmtReset = "Com_stmt_reset";
    ComStmtSendLongData = "Com_stmt_send_long_data";
    ComTruncate = "Com_truncate";
    ComUnlockTables = "Com_unlock_tables";
    ComUpdate = "Com_update";
    ComChecksum = "Com_checksum";
    ComCreateRole = "Com_create_role";
    ComDeallocSql = "Com_dealloc_sql";
    ComDeleteMulti = "Com_delete_multi";
    ComDropRole = "Com_drop_role";
    ComExecuteImmediate = "Com_execute_immediate";
    ComInsertSelect = "Com_insert_select";
    ComRepair = "Com_repair";
    ComReplaceSelect = "Com_replace_select";
    ComShowCharsets = "Com_show_charsets";
    ComShowCollations = "Com_show_collations";
    ComShowCreateDb = "Com_show_create_db";
    ComShowCreateTable = "Com_show_create_table";
    ComShowCreateUser = "Com_show_create_user";
    ComShowDatabases = "Com_show_databases";
    ComShowEngineStatus = "Com_show_engine_status";
    ComShowErrors = "Com_show_errors";
    ComShowEvents = "Com_show_events";
    ComShowGrants = "Com_show_grants";
    ComShowKeys = "Com_show_keys";
    ComShowOpenTables = "Com_show_open_tables";
    ComShowPlugins = "Com_show_plugins";
    ComShowPrivileges = "Com_show_privileges";
    ComShowProcesslist = "Com_show_processlist";
    ComShowStatus = "Com_show_status";
    ComShowStorageEngines = "Com_show_storage_engines";
    ComShowTableStatus = "Com_show_table_status";
    ComShowTables = "Com_show_tables";
    ComShowTriggers = "Com_show_triggers";
    ComShowVariables = "Com_show_variables";
    ComShowWarnings = "Com_show_warnings";
    ComShutdown = "Com_shutdown";
    ComUpdateMulti = "Com_update_multi";
    ComXaCommit = "Com_xa_commit";
    ComXaEnd = "Com_xa_end";
    ComXaPrepare = "Com_xa_prepare";
    ComXaRecover = "Com_xa_recover";
    ComXaRollback = "Com_xa_rollback";
    ComXaStart = "Com_xa_start";
    CreatedTmpDiskTables = "Created_tmp_disk_tables";
    CreatedTmpFiles = "Created_tmp_files";
    CreatedTmpTables = "Created_tmp_tables";
    GannetPlanCacheEvictions = "Gannet_plan_cache_evictions";
    GannetPlanCacheHits = "Gannet_plan_cache_hits";
    GannetPlanCacheMisses = "Gannet_plan_cache_misses";
    HandlerDelete = "Handler_delete";
    HandlerReadFirst = "Handler_read_first";
    HandlerReadKey = "Handler_read_key";
    HandlerReadNext = "Handler_read_next";
    HandlerReadPrev = "Handler_read_prev";
    HandlerReadRndNext = "Handler_read_rnd_next";
    HandlerRollback = "Handler_rollback";
    HandlerSavepoint = "Handler_savepoint";
    HandlerSavepointRollback = "Handler_savepoint_rollback";
    HandlerUpdate = "Handler_update";
    HandlerWrite = "Handler_write";
    RowsRead = "Rows_read";
    SlowQueries = "Slow_queries";
    SortMergePasses = "Sort_merge_passes";
    SortRange = "Sort_range";
    SortRows = "Sort_rows";
    SortScan = "Sort_scan";
}

/// Failed logins and broken connections.
pub(crate) static ABORTED_CONNECTS: Counter =
    Counter::new("aborted_connects", "logins that failed");
/// Connections that ended without COM_QUIT.
pub(crate) static ABORTED_CLIENTS: Counter =
    Counter::new("aborted_clients", "connections that ended without a farewell");

/// Connections refused because there were too many.
pub(crate) static REFUSED_CONNECTIONS: Counter =
    Counter::new("refused_connections", "connections above max_connections");

/// Counters in front that nearly every statement of some kind changes.
const COMMON: usize = 8;

/// A session's counters. Every addition is also made to the server's.
#[derive(Clone)]
pub struct SessionStatus {
    values: Box<[u64; NAMES.len()]>,
}

impl Default for SessionStatus {
    fn default() -> Self {
        Self { values: Box::new([0; NAMES.len()]) }
    }
}

impl SessionStatus {
    /// Counts.
    pub fn add(&mut self, counter: StatusCounter, amount: u64) {
        self.values[counter as usize] += amount;
        SERVER[counter as usize].add(amount);
    }

    /// Counts what a statement did.
    pub(crate) fn add_work(&mut self, counts: &exec::WorkCounts) {
        use StatusCounter as C;
        let pairs = [
            (C::CreatedTmpDiskTables, counts.temporary_disk_tables),
            (C::CreatedTmpFiles, counts.temporary_files),
            (C::CreatedTmpTables, counts.temporary_tables),
            (C::SortMergePasses, counts.sort_merge_passes),
            (C::SortRange, counts.sort_range),
            (C::SortRows, counts.sort_rows),
            (C::SortScan, counts.sort_scan),
        ];
        for (counter, amount) in pairs.into_iter().filter(|(_, amount)| *amount > 0) {
            self.add(counter, amount);
        }
    }

    /// Asks for the memory of those that nearly every statement changes, see [`runtime::prefetch`].
    pub(crate) fn prefetch(&self) {
        runtime::prefetch(&self.values[..COMMON]);
    }

    /// Names and values of this session.
    pub fn session(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.iter().copied().zip(self.values.iter().copied())
    }

    /// FLUSH STATUS.
    pub fn reset(&mut self) {
        self.values.fill(0);
    }
}

/// Names and values of the server.
pub fn server() -> impl Iterator<Item = (&'static str, u64)> {
    NAMES.iter().copied().zip(SERVER.iter().map(Counter::value))
}

/// Names and values of what the server does not have.
pub fn of_absent_parts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("../data/status_of_absent_parts.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// The counter of a statement.
pub fn statement_counter(statement: &Statement) -> Option<StatusCounter> {
    use StatusCounter::*;
    match statement {
        Statement::Insert(insert) if matches!(insert.source, InsertSource::Query(_)) => {
            Some(if insert.replace { ComReplaceSelect } else { ComInsertSelect })
        }
        Statement::Update(update)
            if !matches!(update.tables.as_slice(), [TableReference::Table { .. }]) =>
        {
            Some(ComUpdateMulti)
        }
        Statement::Delete(delete) if !delete.targets.is_empty() => Some(ComDeleteMulti),
        Statement::Show(show) => show_counter(&show.kind),
        _ => named_counter(statement.feature()),
    }
}

fn show_counter(kind: &ShowKind) -> Option<StatusCounter> {
    use StatusCounter::*;
    Some(match kind {
        ShowKind::Databases => ComShowDatabases,
        ShowKind::Tables { .. } => ComShowTables,
        ShowKind::TableStatus { .. } => ComShowTableStatus,
        ShowKind::OpenTables { .. } => ComShowOpenTables,
        ShowKind::Columns { .. } => ComShow,
        ShowKind::Indexes { .. } => ComShowKeys,
        ShowKind::Variables(_) => ComShowVariables,
        ShowKind::Status(_) => ComShowStatus,
        ShowKind::CreateTable(_) | ShowKind::CreateView(_) => ComShowCreateTable,
        ShowKind::CreateDatabase { .. } => ComShowCreateDb,
        ShowKind::CreateUser(_) => ComShowCreateUser,
        ShowKind::Grants(_) => ComShowGrants,
        ShowKind::Warnings { .. } => ComShowWarnings,
        ShowKind::Errors { .. } => ComShowErrors,
        ShowKind::ProcessList { .. } => ComShowProcesslist,
        ShowKind::Engines => ComShowStorageEngines,
        ShowKind::Engine(..) => ComShowEngineStatus,
        ShowKind::CharacterSets => ComShowCharsets,
        ShowKind::Collations => ComShowCollations,
        ShowKind::Plugins => ComShowPlugins,
        ShowKind::Privileges => ComShowPrivileges,
        ShowKind::Triggers { .. } => ComShowTriggers,
        ShowKind::Events { .. } => ComShowEvents,
        // SELECT @@warning_count and the like in MariaDB; the others are not counted.
        _ => return None,
    })
}

/// The counter of a statement, by the words of [`syntax::ast::Statement::feature`].
fn named_counter(feature: &str) -> Option<StatusCounter> {
    use StatusCounter::*;
    Some(match feature {
        "SELECT" => ComSelect,
        "INSERT" => ComInsert,
        "REPLACE" => ComReplace,
        "UPDATE" => ComUpdate,
        "DELETE" => ComDelete,
        "LOAD DATA" => ComLoad,
        "DO" => ComDo,
        "CREATE TABLE" => ComCreateTable,
        "ALTER TABLE" => ComAlterTable,
        "DROP TABLE" => ComDropTable,
        "RENAME TABLE" => ComRenameTable,
        "TRUNCATE TABLE" => ComTruncate,
        "CREATE INDEX" => ComCreateIndex,
        "DROP INDEX" => ComDropIndex,
        "CREATE DATABASE" => ComCreateDb,
        "ALTER DATABASE" => ComAlterDb,
        "DROP DATABASE" => ComDropDb,
        "CREATE VIEW" => ComCreateView,
        "DROP VIEW" => ComDropView,
        "USE" => ComChangeDb,
        "SET" | "SET TRANSACTION" => ComSetOption,
        "EXPLAIN" => ComShow,
        "BEGIN" => ComBegin,
        "COMMIT" => ComCommit,
        "ROLLBACK" => ComRollback,
        "SAVEPOINT" => ComSavepoint,
        "ROLLBACK TO SAVEPOINT" => ComRollbackToSavepoint,
        "RELEASE SAVEPOINT" => ComReleaseSavepoint,
        "LOCK TABLES" => ComLockTables,
        "UNLOCK TABLES" => ComUnlockTables,
        "KILL" => ComKill,
        "FLUSH" => ComFlush,
        "ANALYZE TABLE" => ComAnalyze,
        "OPTIMIZE TABLE" => ComOptimize,
        "CHECK TABLE" => ComCheck,
        "CHECKSUM TABLE" => ComChecksum,
        "REPAIR TABLE" => ComRepair,
        "SHUTDOWN" => ComShutdown,
        "XA START" => ComXaStart,
        "XA END" => ComXaEnd,
        "XA PREPARE" => ComXaPrepare,
        "XA COMMIT" => ComXaCommit,
        "XA ROLLBACK" => ComXaRollback,
        "XA RECOVER" => ComXaRecover,
        "CREATE ROLE" => ComCreateRole,
        "DROP ROLE" => ComDropRole,
        "EXECUTE IMMEDIATE" => ComExecuteImmediate,
        "DEALLOCATE PREPARE" => ComDeallocSql,
        "PREPARE" => ComPrepareSql,
        "EXECUTE" => ComExecuteSql,
        "CREATE USER" => ComCreateUser,
        "ALTER USER" => ComAlterUser,
        "DROP USER" => ComDropUser,
        "RENAME USER" => ComRenameUser,
        "GRANT" => ComGrant,
        "REVOKE" => ComRevoke,
        _ => return None,
    })
}
