//! Counters for SHOW STATUS under the names that tools of the MySQL world read.

use crate::core::Core;
use pagestore::{PaceFigures, StoreCounters};

fn metric(name: &str) -> u64 {
    base::metrics::value(name).unwrap_or(0).max(0) as u64
}

/// Names and values.
pub(crate) fn named(core: &Core) -> Vec<(&'static str, u64)> {
    let store = core.store.counters();
    let pace = core.store.pace();
    let page_bytes = 1u64 << core.options.page_class;
    let mut all = vec![
        ("Innodb_buffer_pool_pages_flushed", store.flushed_pages),
        ("Innodb_buffer_pool_reads", store.misses),
        ("Innodb_buffer_pool_wait_free", store.frame_waits),
        ("Innodb_checkpoints", metric("checkpoints")),
        ("Innodb_data_fsyncs", store.syncs + metric("wal_syncs")),
        ("Innodb_data_read", store.read_bytes),
        ("Innodb_data_reads", store.reads),
        ("Innodb_data_writes", store.groups + metric("wal_flushes")),
        ("Innodb_data_written", store.written_bytes + metric("wal_file_bytes")),
        ("Innodb_dblwr_pages_written", 0),
        ("Innodb_dblwr_writes", 0),
        ("Innodb_deadlocks", metric("deadlocks")),
        ("Innodb_history_list_length", core.txn.purge_length() as u64),
        ("Innodb_log_waits", metric("wal_room_waits")),
        ("Innodb_lsn_current", core.wal.end().get()),
        ("Innodb_lsn_flushed", core.wal.durable().get()),
        ("Innodb_os_log_fsyncs", metric("wal_syncs")),
        ("Innodb_os_log_written", metric("wal_file_bytes")),
        ("Innodb_num_page_compressed_trim_op", 0),
        ("Innodb_num_pages_page_compressed", store.compressed_pages),
        ("Innodb_num_pages_page_compression_error", 0),
        ("Innodb_num_pages_page_decompressed", store.decompressed_pages),
        ("Innodb_page_compression_saved", store.raw_bytes.saturating_sub(store.stored_bytes)),
        ("Innodb_page_size", page_bytes),
        ("Innodb_pages_read", store.misses),
        ("Innodb_pages_written", store.flushed_pages),
        ("Innodb_purged_entries", metric("purged_entries")),
        ("Innodb_row_lock_current_waits", core.txn.locks().waiting()),
        ("Innodb_row_lock_time", metric("row_lock_time_micros") / 1000),
        (
            "Innodb_row_lock_time_avg",
            (metric("row_lock_time_micros") / 1000)
                .checked_div(metric("row_lock_waits"))
                .unwrap_or(0),
        ),
        ("Innodb_row_lock_waits", metric("row_lock_waits")),
        ("Innodb_rows_deleted", metric("rows_deleted")),
        ("Innodb_rows_inserted", metric("rows_inserted")),
        ("Innodb_rows_read", metric("rows_read")),
        ("Innodb_rows_updated", metric("rows_updated")),
        ("Innodb_segment_collections", store.collections),
        ("Innodb_segment_reuses", store.segment_reuses),
        ("Innodb_segments_released", store.segments_released),
        ("Innodb_truncated_status_writes", 0),
        ("Innodb_undo_bytes", core.txn.undo().used_bytes()),
        ("Innodb_undo_spilled_bytes", core.txn.undo().spilled_bytes()),
    ];
    all.extend(pool(core, page_bytes));
    all.extend(log());
    all.extend(flushing(&store, &pace));
    all.extend(stored(core, &store));
    all.extend(dictionaries(core, &store));
    all.sort_unstable();
    all
}

/// What the memory for pages is used for: in bytes, and in pages of the usual size.
fn pool(core: &Core, page_bytes: u64) -> [(&'static str, u64); 5] {
    let pool = core.store.pool();
    [
        ("Innodb_buffer_pool_bytes_data", pool.data_bytes()),
        ("Innodb_buffer_pool_pages_data", pool.data_bytes() / page_bytes),
        ("Innodb_buffer_pool_pages_free", pool.free_bytes / page_bytes),
        ("Innodb_buffer_pool_pages_misc", pool.lent_bytes / page_bytes),
        ("Innodb_buffer_pool_pages_total", pool.bytes / page_bytes),
    ]
}

/// What the log has written, and how long commits waited for it.
fn log() -> [(&'static str, u64); 12] {
    [
        ("Gannet_log_commit_wait_nanos", metric("wal_commit_wait_nanos")),
        ("Gannet_log_commits", metric("wal_commits")),
        ("Gannet_log_files_created", metric("wal_files_created")),
        ("Gannet_log_files_recycled", metric("wal_files_recycled")),
        ("Gannet_log_files_removed", metric("wal_files_removed")),
        ("Gannet_log_group_max", metric("wal_group_max")),
        ("Gannet_log_group_waiters", metric("wal_group_waiters")),
        ("Gannet_log_groups", metric("wal_groups")),
        ("Gannet_log_synced_write_nanos", metric("wal_synced_write_nanos")),
        ("Gannet_log_synced_writes", metric("wal_synced_writes")),
        ("Gannet_log_written_bytes", metric("wal_file_bytes")),
        ("Gannet_log_zeroed_bytes", metric("wal_zeroed_bytes")),
    ]
}

/// What the pace of writes sees and does.
fn flushing(store: &StoreCounters, pace: &PaceFigures) -> [(&'static str, u64); 21] {
    [
        ("Gannet_compression_anew_bytes", store.anew_bytes),
        ("Gannet_compression_anew_former_bytes", store.anew_former_bytes),
        ("Gannet_compression_anew_nanos", store.anew_nanos),
        ("Gannet_compression_anew_pages", store.anew_pages),
        ("Gannet_compression_by_helpers", store.compression_by_helpers),
        ("Gannet_compression_fallback_permille", pace.fallback_share_permille),
        ("Gannet_compression_fallbacks", store.compression_fallbacks),
        ("Gannet_compression_lz4_pages", store.compression_lz4_pages),
        ("Gannet_compression_nanos", store.compress_nanos),
        ("Gannet_compression_skips", store.compression_skips),
        ("Gannet_delay_nanos", store.delay_nanos),
        ("Gannet_delays", store.delays),
        ("Gannet_flush_groups", store.groups),
        ("Gannet_flush_raw_bytes", store.raw_bytes),
        ("Gannet_flush_stored_bytes", store.stored_bytes),
        ("Gannet_flush_window_bytes", pace.window_bytes),
        ("Gannet_flush_write_nanos", store.write_nanos),
        ("Innodb_buffer_pool_bytes_dirty", pace.dirty_bytes),
        ("Innodb_buffer_pool_pages_dirty", pace.dirty_pages),
        ("Innodb_checkpoint_age", pace.checkpoint_age_bytes),
        ("Innodb_checkpoint_max_age", pace.log_cap_bytes),
    ]
}

/// Compression dictionaries and what they do.
fn dictionaries(core: &Core, store: &StoreCounters) -> [(&'static str, u64); 9] {
    let usage = core.store.dictionaries();
    [
        ("Gannet_dictionaries", usage.count),
        ("Gannet_dictionaries_made", store.dictionaries_made),
        ("Gannet_dictionaries_refused", store.dictionaries_refused),
        ("Gannet_dictionary_file_bytes", usage.file_bytes),
        ("Gannet_dictionary_nanos", store.dictionary_nanos),
        ("Gannet_dictionary_memory_bytes", usage.ready_bytes),
        ("Gannet_dictionary_pages", store.dictionary_pages),
        ("Gannet_dictionary_saved_bytes", dictionary_saved_bytes(store)),
        ("Gannet_dictionary_stored_bytes", store.dictionary_bytes),
    ]
}

/// What pages written with dictionaries would have taken more without, as far as those tell that
/// were compressed both ways: one of 64.
fn dictionary_saved_bytes(store: &StoreCounters) -> u64 {
    let (with, without) = (store.dictionary_compared_bytes, store.dictionary_plain_bytes);
    let share = without.saturating_sub(with) as f64 / with.max(1) as f64;
    (store.dictionary_bytes as f64 * share) as u64
}

/// What the page store has written and holds.
fn stored(core: &Core, store: &StoreCounters) -> [(&'static str, u64); 18] {
    let (live_bytes, allocated_bytes) = core.store.space_in_use();
    let (open_bytes, free_bytes) = core.store.space_open_and_free();
    [
        ("Gannet_dropped_trees_pending", core.drops.length() as u64),
        ("Gannet_dropped_trees_set_aside", core.drops.set_aside() as u64),
        ("Gannet_store_allocated_bytes", allocated_bytes),
        ("Gannet_store_collection_debt_bytes", core.store.collection_debt_bytes()),
        ("Gannet_store_deferred_bytes", core.store.deferred_bytes()),
        ("Gannet_store_delta_bytes", store.delta_bytes),
        ("Gannet_store_delta_pages", store.delta_pages),
        ("Gannet_store_delta_hits", store.delta_hits),
        ("Gannet_store_delta_reads", store.delta_reads),
        ("Gannet_store_free_bytes", free_bytes),
        ("Gannet_store_full_bytes", store.stored_bytes),
        ("Gannet_store_full_pages", store.flushed_pages.saturating_sub(store.delta_pages)),
        ("Gannet_store_is_at_its_end", u64::from(core.store.is_at_its_end())),
        ("Gannet_store_is_short_of_space", u64::from(core.store.is_short_of_space())),
        ("Gannet_store_live_bytes", live_bytes),
        ("Gannet_store_moved_bytes", store.moved_bytes),
        ("Gannet_store_open_bytes", open_bytes),
        ("Gannet_store_written_bytes", store.written_bytes),
    ]
}
