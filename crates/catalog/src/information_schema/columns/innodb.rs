//! Columns of the tables about the engine.

use super::{optional, required};
use crate::information_schema::VirtualColumn;
use crate::information_schema::VirtualType::*;

pub(in crate::information_schema) const INNODB_LOCKS: &[VirtualColumn] = &[
    required("lock_id", Varchar(81)),
    required("lock_trx_id", BigIntUnsigned(21)),
    required("lock_mode", Varchar(8)),
    required("lock_type", Varchar(6)),
    required("lock_table", Varchar(1024)),
    optional("lock_index", Varchar(1024)),
    optional("lock_space", IntUnsigned(11)),
    optional("lock_page", IntUnsigned(11)),
    optional("lock_rec", IntUnsigned(11)),
    optional("lock_data", Varchar(8192)),
];

pub(in crate::information_schema) const INNODB_LOCK_WAITS: &[VirtualColumn] = &[
    required("requesting_trx_id", BigIntUnsigned(21)),
    required("requested_lock_id", Varchar(81)),
    required("blocking_trx_id", BigIntUnsigned(21)),
    required("blocking_lock_id", Varchar(81)),
];

pub(in crate::information_schema) const INNODB_TRX: &[VirtualColumn] = &[
    required("trx_id", BigIntUnsigned(21)),
    required("trx_state", Varchar(13)),
    required("trx_started", DateTime(0)),
    optional("trx_requested_lock_id", Varchar(81)),
    optional("trx_wait_started", DateTime(0)),
    required("trx_weight", BigIntUnsigned(21)),
    required("trx_mysql_thread_id", BigIntUnsigned(21)),
    optional("trx_query", Varchar(1024)),
    optional("trx_operation_state", Varchar(64)),
    required("trx_tables_in_use", BigIntUnsigned(21)),
    required("trx_tables_locked", BigIntUnsigned(21)),
    required("trx_lock_structs", BigIntUnsigned(21)),
    required("trx_lock_memory_bytes", BigIntUnsigned(21)),
    required("trx_rows_locked", BigIntUnsigned(21)),
    required("trx_rows_modified", BigIntUnsigned(21)),
    required("trx_concurrency_tickets", BigIntUnsigned(21)),
    required("trx_isolation_level", Varchar(16)),
    required("trx_unique_checks", Int(1)),
    required("trx_foreign_key_checks", Int(1)),
    optional("trx_last_foreign_key_error", Varchar(256)),
    required("trx_is_read_only", Int(1)),
    required("trx_autocommit_non_locking", Int(1)),
];

pub(in crate::information_schema) const INNODB_CMP: &[VirtualColumn] = &[
    required("page_size", Int(5)),
    required("compress_ops", Int(11)),
    required("compress_ops_ok", Int(11)),
    required("compress_time", Int(11)),
    required("uncompress_ops", Int(11)),
    required("uncompress_time", Int(11)),
];

pub(in crate::information_schema) const INNODB_CMP_RESET: &[VirtualColumn] = INNODB_CMP;

pub(in crate::information_schema) const INNODB_CMPMEM: &[VirtualColumn] = &[
    required("page_size", Int(5)),
    required("buffer_pool_instance", Int(11)),
    required("pages_used", Int(11)),
    required("pages_free", Int(11)),
    required("relocation_ops", BigInt(21)),
    required("relocation_time", Int(11)),
];

pub(in crate::information_schema) const INNODB_CMPMEM_RESET: &[VirtualColumn] = INNODB_CMPMEM;

pub(in crate::information_schema) const INNODB_CMP_PER_INDEX: &[VirtualColumn] = &[
    required("database_name", Varchar(64)),
    required("table_name", Varchar(64)),
    required("index_name", Varchar(64)),
    required("compress_ops", Int(11)),
    required("compress_ops_ok", Int(11)),
    required("compress_time", Int(11)),
    required("uncompress_ops", Int(11)),
    required("uncompress_time", Int(11)),
];

pub(in crate::information_schema) const INNODB_CMP_PER_INDEX_RESET: &[VirtualColumn] =
    INNODB_CMP_PER_INDEX;

pub(in crate::information_schema) const INNODB_SYS_TABLESPACES: &[VirtualColumn] = &[
    required("SPACE", IntUnsigned(11)),
    required("NAME", Varchar(655)),
    required("FLAG", IntUnsigned(11)),
    optional("ROW_FORMAT", Varchar(22)),
    required("PAGE_SIZE", IntUnsigned(11)),
    required("FILENAME", Varchar(512)),
    required("FS_BLOCK_SIZE", IntUnsigned(11)),
    required("FILE_SIZE", BigIntUnsigned(21)),
    required("ALLOCATED_SIZE", BigIntUnsigned(21)),
];

pub(in crate::information_schema) const GANNET_INDEX_STORAGE: &[VirtualColumn] = &[
    required("TABLE_SCHEMA", Varchar(64)),
    required("TABLE_NAME", Varchar(64)),
    required("INDEX_NAME", Varchar(64)),
    required("COMPRESSION", Varchar(32)),
    required("PAGE_SIZE", IntUnsigned(11)),
    required("PAGES", BigIntUnsigned(21)),
    required("RAW_BYTES", BigIntUnsigned(21)),
    required("STORED_BYTES", BigIntUnsigned(21)),
    required("STORED_PERCENT", IntUnsigned(11)),
    required("COLLECTION_DEBT", BigIntUnsigned(21)),
];

pub(in crate::information_schema) const INNODB_SYS_FOREIGN: &[VirtualColumn] = &[
    required("ID", Varchar(193)),
    required("FOR_NAME", Varchar(193)),
    required("REF_NAME", Varchar(193)),
    required("N_COLS", IntUnsigned(11)),
    required("TYPE", IntUnsigned(11)),
];

pub(in crate::information_schema) const INNODB_SYS_FOREIGN_COLS: &[VirtualColumn] = &[
    required("ID", Varchar(193)),
    required("FOR_COL_NAME", Varchar(64)),
    required("REF_COL_NAME", Varchar(64)),
    required("POS", IntUnsigned(11)),
];
