use super::*;
use engine_api::{
    FlushPolicy, IndexDefinition, KeyRange, LockMode, LockWait, RowBuffer, ScanDirection,
    ScanOptions, TableOptions,
};
use types::CollationId;

fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: Isolation::RepeatableRead,
        snapshot_isolation: true,
        read_only: false,
        lock_wait_timeout: Duration::from_millis(5),
        flush_policy: FlushPolicy::Synchronous,
        connection: 0,
        ends_with_statement: false,
    }
}

fn definition() -> TableDefinition {
    TableDefinition {
        id: TableId::ZERO,
        version: 1,
        schema: "test".into(),
        name: "t".into(),
        columns: Vec::new(),
        indexes: vec![IndexDefinition {
            id: IndexId::ZERO,
            name: "PRIMARY".into(),
            unique: true,
            primary: true,
            generated: false,
            parts: Vec::new(),
            comment: String::new(),
            tree: TreeId::ZERO,
            root: PageId::ZERO,
            page_class: 0,
            collation_version: 0,
            repeats_key: false,
        }],
        hidden_row_id: false,
        collation: CollationId::BINARY,
        foreign_keys: Vec::new(),
        options: TableOptions::default(),
        created_micros: 0,
    }
}

fn row(key: u8, payload: &[u8]) -> RowBuffer {
    RowBuffer { key: vec![key], payload: payload.to_vec() }
}

fn table(engine: &MemoryEngine) -> Arc<dyn Table> {
    let mut table = definition();
    let mut trx = engine.begin(options());
    engine.create_table(&mut *trx, &mut table).unwrap();
    trx.commit().unwrap();
    engine.open_table(Arc::new(table)).unwrap()
}

fn read(table: &dyn Table, trx: &mut dyn Transaction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let scan = ScanOptions {
        index: 0,
        range: KeyRange::all(),
        direction: ScanDirection::Forward,
        lock: LockMode::None,
        lock_wait: LockWait::Wait,
        covering: false,
    };
    let mut cursor = table.scan(trx, scan).unwrap();
    let (mut rows, mut row) = (Vec::new(), RowBuffer::default());
    while cursor.next(trx, &mut row).unwrap() {
        rows.push((row.key.clone(), row.payload.clone()));
    }
    rows
}

#[test]
fn snapshots_and_rollback() {
    let engine = MemoryEngine::new();
    let table = table(&engine);
    let mut one = engine.begin(options());
    assert_eq!(table.insert(&mut *one, &mut row(1, b"a")).unwrap(), Ok(()));
    assert!(table.insert(&mut *one, &mut row(1, b"b")).unwrap().is_err());
    let mut two = engine.begin(options());
    assert!(read(&*table, &mut *two).is_empty());
    one.commit().unwrap();
    assert!(read(&*table, &mut *two).is_empty(), "the snapshot is older than the commit");
    let blocked = table.insert(&mut *two, &mut row(1, b"c"));
    assert_eq!(blocked, Err(EngineError::WriteConflict));
    two.rollback().unwrap();

    let mut three = engine.begin(options());
    let point = three.begin_statement();
    table.update(&mut *three, &row(1, b"a"), &row(2, b"a")).unwrap().unwrap();
    assert_eq!(read(&*table, &mut *three), vec![(vec![2], b"a".to_vec())]);
    three.rollback_to(point).unwrap();
    assert_eq!(read(&*table, &mut *three), vec![(vec![1], b"a".to_vec())]);
    let mut four = engine.begin(options());
    let mut found = RowBuffer::default();
    assert!(table.get(&mut *three, &[1], LockMode::Exclusive, LockWait::Wait, &mut found).unwrap());
    let blocked = table.get(&mut *four, &[1], LockMode::Shared, LockWait::Wait, &mut found);
    assert_eq!(blocked, Err(EngineError::LockWaitTimeout));
}

#[test]
fn auto_increment_keeps_offset_and_step() {
    let engine = MemoryEngine::new();
    let table = table(&engine);
    assert_eq!(table.reserve_auto_increment(3, 1, 1).unwrap(), 1);
    assert_eq!(table.reserve_auto_increment(1, 10, 5).unwrap(), 5);
    assert_eq!(table.reserve_auto_increment(2, 10, 5).unwrap(), 15);
    table.observe_auto_increment(100).unwrap();
    assert_eq!(table.next_auto_increment(), 101);
}
