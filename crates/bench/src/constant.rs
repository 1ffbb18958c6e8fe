//! The limit: a server of the same runtime and wire code without SQL. Every execution of a
//! prepared SELECT and every text SELECT is answered with one row of one CHAR(120) column, as
//! sysbench's point select is; every other statement with OK.

use crate::Outcome;
use crate::options::Options;
use runtime::net::{Connection, Listener, Next, Stream, serve};
use runtime::{Config, Runtime};
use std::net::{Ipv4Addr, SocketAddr};
use wire::capability::{self, status};
use wire::handshake::{self, Greeting, LoginRequest};
use wire::response::{self, ColumnDescription};
use wire::{Command, InputBuffer, OutputBuffer, put_bytes};

/// Length of the constant, that of sysbench's `c`.
const VALUE: [u8; 119] = [b'7'; 119];
const PACKET_BYTES_MAX: usize = 1 << 24;

/// Serves until it is killed.
pub fn run(options: &Options) -> Outcome {
    let port = options.number("--port", 0)? as u16;
    let workers = options.number("--workers", 0)? as usize;
    let config = Config { workers, ..Config::default() };
    let runtime = Runtime::start(config).map_err(|e| e.to_string())?;
    runtime.run(move || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = Listener::tcp(address).map_err(|e| e.to_string())?;
        let served = serve(listener, |_, _| Box::new(Constant::default()));
        println!("ready for connections on {}", served.address());
        runtime::park(runtime::WaitClass::Idle, None);
        Ok(())
    })
}

/// One connection.
#[derive(Default)]
struct Constant {
    input: InputBuffer,
    out: OutputBuffer,
    capabilities: u64,
    is_greeted: bool,
    is_logged_in: bool,
    sequence: u8,
    /// For each prepared statement whether it is a SELECT.
    selects: Vec<bool>,
}

fn is_select(sql: &[u8]) -> bool {
    sql.get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"select"))
}

fn column() -> ColumnDescription {
    ColumnDescription {
        schema: b"sbtest".to_vec(),
        table: b"sbtest1".to_vec(),
        org_table: b"sbtest1".to_vec(),
        name: b"c".to_vec(),
        org_name: b"c".to_vec(),
        collation: 45,
        length: 480,
        type_code: wire::binary::type_code::STRING,
        flags: 1,
        decimals: 0,
    }
}

impl Constant {
    /// Answers what has arrived; whether the connection stays.
    fn answer(&mut self) -> bool {
        loop {
            let mut sequence = self.sequence;
            let payload = match self.input.next_packet(&mut sequence, PACKET_BYTES_MAX) {
                Ok(Some(payload)) => payload,
                Ok(None) => return true,
                Err(_) => return false,
            };
            self.out.set_sequence(sequence);
            if !self.is_logged_in {
                let Ok(request) = LoginRequest::parse(payload) else { return false };
                self.capabilities = capability::negotiate(request.capabilities);
                self.is_logged_in = true;
                self.sequence = 0;
                put_ok(&mut self.out, self.capabilities);
                continue;
            }
            let (out, capabilities) = (&mut self.out, self.capabilities);
            match Command::parse(payload, capabilities) {
                Err(_) | Ok(Command::Quit) => return false,
                Ok(Command::Query(sql)) if is_select(sql) => put_row(out, false, capabilities),
                Ok(Command::Prepare(sql)) => {
                    self.selects.push(is_select(sql));
                    let number = self.selects.len() as u32;
                    put_prepared(out, number, sql, capabilities);
                }
                Ok(Command::Execute(execute)) => {
                    let place = execute.statement.wrapping_sub(1) as usize;
                    match self.selects.get(place) {
                        Some(true) => put_row(out, true, capabilities),
                        _ => put_ok(out, capabilities),
                    }
                }
                Ok(_) => put_ok(out, capabilities),
            }
        }
    }
}

fn put_ok(out: &mut OutputBuffer, capabilities: u64) {
    let ok = response::Ok { affected_rows: 1, status: status::AUTOCOMMIT, ..Default::default() };
    response::ok(out, &ok, capabilities);
}

fn put_prepared(out: &mut OutputBuffer, number: u32, sql: &[u8], capabilities: u64) {
    let marks = sql.iter().filter(|byte| **byte == b'?').count();
    let columns = if is_select(sql) { vec![column()] } else { Vec::new() };
    let parameters = vec![column(); marks];
    response::prepared(out, number, &parameters, &columns, 0, status::AUTOCOMMIT, capabilities);
}

fn put_row(out: &mut OutputBuffer, is_binary: bool, capabilities: u64) {
    response::result_header(out, 1, true, capabilities);
    response::column(out, &column(), None);
    if capabilities & capability::DEPRECATE_EOF == 0 {
        response::eof(out, 0, status::AUTOCOMMIT);
    }
    let payload = out.begin();
    if is_binary {
        payload.extend_from_slice(&[0, 0]);
    }
    put_bytes(payload, &VALUE);
    out.end();
    response::end_of_rows(out, 0, status::AUTOCOMMIT, capabilities);
}

impl Connection for Constant {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if !self.is_greeted {
            let greeting = Greeting {
                capabilities: wire::capability::SERVER,
                version: "5.5.5-10.11.0-constant",
                connection_id: 1,
                scramble: &[b'a'; handshake::SCRAMBLE_BYTES],
                collation: 45,
                status: status::AUTOCOMMIT,
            };
            handshake::greeting(self.out.begin(), &greeting);
            self.out.end();
            self.is_greeted = true;
            self.sequence = 1;
        } else {
            if !self.input.receive_whole(|buffer| stream.swap_received(buffer)) {
                match stream.read(self.input.room()) {
                    Ok(0) | Err(_) => return Next::Close,
                    Ok(count) => self.input.received(count),
                }
            }
            if !self.answer() {
                return Next::Close;
            }
        }
        if !self.out.is_empty() {
            if stream.send_when_done(self.out.bytes()).is_err() {
                return Next::Close;
            }
            self.out.clear();
        }
        Next::WaitReadable { timeout: None }
    }
}
