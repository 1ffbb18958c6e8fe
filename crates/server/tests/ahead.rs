//! Many clients of one worker execute prepared statements by key at the same time, so rows are
//! asked for ahead of the statements that read them; meanwhile the leaves of these rows are split,
//! merged and used again. Every answer must be that of the row that was asked for.

mod common;

use sqltest::client::{Answer, Connection, Options, Prepared};
use sqltest::parameter::Parameter;
use std::path::PathBuf;
use std::process::Child;

/// Every so many-th number is a row that stays; before each others come and go.
const STEP: u32 = 100;
const STAYING: u32 = 16;
const READERS: u32 = 24;
const WRITERS: u32 = 8;
/// Lookups of one reader.
const LOOKUPS: u32 = 6_000;
/// Rows that one writer has put in at the same time, some four leaves.
const COMING: u32 = 90;

fn connect(port: u16) -> Connection {
    let options = Options { database: "test".into(), ..Options::local(port) };
    Connection::open(&options).expect("the server accepts")
}

fn integer(number: u32) -> Parameter {
    Parameter::parse(&format!("int:{number}")).expect("an integer")
}

/// What a row that stays has in its second column.
fn mark(id: u32) -> String {
    format!("row {id}")
}

fn read(port: u16, reader: u32) {
    let mut connection = connect(port);
    let sql = "SELECT id, mark FROM t WHERE id = ?";
    let select = connection.prepare(sql).expect("an answer").expect("prepared");
    let mut random = base::Random::new(reader.into());
    for _ in 0..LOOKUPS {
        let id = random.below(STAYING.into()) as u32 * STEP;
        let answer = connection.execute_typed(&select, 0, &[integer(id)]).expect("an answer");
        let Answer::Rows { rows, .. } = answer else { panic!("{answer:?}") };
        let row = vec![Some(id.to_string().into_bytes()), Some(mark(id).into_bytes())];
        assert_eq!(rows, [row], "row {id}");
    }
}

/// Puts rows in before one that stays, so that splits move that one, changes some, and takes them
/// out again.
fn write(port: u16, writer: u32, is_over: &dyn Fn() -> bool) {
    let mut connection = connect(port);
    let mut prepare = |sql: &str| connection.prepare(sql).expect("an answer").expect("prepared");
    let insert = prepare("INSERT INTO t VALUES (?, 'comes', REPEAT('x', 180))");
    let update = prepare("UPDATE t SET mark = ? WHERE id = ?");
    let delete = prepare("DELETE FROM t WHERE id = ?");
    let mut random = base::Random::new(1_000 + u64::from(writer));
    let mut affected = |statement: &Prepared, parameters: &[Parameter]| {
        let answer = connection.execute_typed(statement, 0, parameters).expect("an answer");
        let Answer::Done(done) = answer else { panic!("{answer:?}") };
        done.affected_rows
    };
    while !is_over() {
        let place = random.below(u64::from(STAYING / WRITERS)) as u32 * WRITERS + writer;
        let ids = || (place * STEP + 1..).take(COMING as usize).map(|id| id + STEP - COMING - 1);
        for id in ids() {
            assert_eq!(affected(&insert, &[integer(id)]), 1, "row {id} is new");
        }
        for id in ids().step_by(9) {
            let mark = mark(id);
            let parameters = [Parameter::text(Some(mark.as_bytes())), integer(id)];
            assert_eq!(affected(&update, &parameters), 1, "row {id} is there");
        }
        for id in ids() {
            assert_eq!(affected(&delete, &[integer(id)]), 1, "row {id} is there");
            assert_eq!(affected(&delete, &[integer(id)]), 0, "row {id} is gone");
        }
    }
}

/// A server that ends with the test, whichever way that ends.
struct Server {
    child: Child,
    directory: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        common::end(&mut self.child);
        let _removed = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn statements_prepared_for_meet_their_own_rows() {
    let directory = common::fresh_directory("ahead");
    let options = ["--thread-pool-size=1", "--innodb-flush-log-at-trx-commit=2"];
    let (child, port) = common::start_quietly(&directory, &options);
    let mut server = Server { child, directory };
    let mut connection = connect(port);
    let table = "CREATE TABLE t (id INT PRIMARY KEY, mark VARCHAR(20), pad VARCHAR(200))";
    connection.execute(table).expect("created");
    for id in (0..STAYING).map(|number| number * STEP) {
        let row = format!("INSERT INTO t VALUES ({id}, '{}', REPEAT('y', 180))", mark(id));
        connection.execute(&row).expect("inserted");
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let over = move || is_over.load(std::sync::atomic::Ordering::Relaxed);
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(port, writer, &over))).collect();
        let readers: Vec<_> =
            (0..READERS).map(|reader| scope.spawn(move || read(port, reader))).collect();
        let read: Vec<_> = readers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        let written = writers.into_iter().map(std::thread::ScopedJoinHandle::join);
        let failed = read.into_iter().chain(written).filter(Result::is_err).count();
        assert_eq!(failed, 0, "clients that met a wrong row");
    });
    let rows = connection.execute("CHECK TABLE t").expect("an answer");
    assert!(rows.iter().all(|row| row[3].as_deref() == Some(b"OK")), "{rows:?}");
    common::stop(&mut server.child);
}
