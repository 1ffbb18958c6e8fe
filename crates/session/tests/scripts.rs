//! Runs the scripts in `tests/scripts`: steps of several clients against a whole session layer
//! over the model engine, sockets and clock simulated. Each step is followed by what the client
//! saw. `GANNET_BLESS=1` writes what is seen now into the files.
//!
//! A step is `name: what`:
//! * `a: SELECT 1` runs text; connection `a` is opened as root at its first step.
//! * `a: \connect user password [database]`, `a: \connect-no-password user` open it otherwise.
//! * `a: \prepare text`, `a: \execute hex` (null bitmap, types and values), `a: \close`.
//! * `a: \raw hex` sends a payload as a packet and prints the answer; `a: \bytes hex` sends
//!   bytes as they are; `a: \fields hex` and `a: \text hex` read answers of other shapes.
//! * `a: \packets count hex` sends a payload in which the word `S` is the number of the statement
//!   prepared last, and prints that many packets of the answer byte by byte.
//! * `a: \start SQL` sends without waiting, `a: \finish` reads the answer.
//! * `a: \vanish` closes the socket without a word, `a: \leave` after COM_QUIT; neither reads.
//! * `a: \sleep ms`, `a: \quit`, `a: \capabilities hex` (for the next `\connect`).

mod client;
mod large_inserts;
mod spilling;
mod temporary;

use catalog::Catalog;
use client::{CAPABILITIES, Client};
use engine::memory::MemoryEngine;
use runtime::net::{Address, Listener};
use runtime::sim::{SimConfig, Simulation};
use session::variables::GlobalVariables;
use session::{ClientConnection, ServerState};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

struct World {
    address: Address,
    clients: BTreeMap<String, Client>,
    capabilities: u64,
}

fn start_server() -> (Address, Arc<ServerState>) {
    start_server_on(Arc::new(MemoryEngine::new()))
}

fn start_server_on(engine: Arc<dyn engine_api::Engine>) -> (Address, Arc<ServerState>) {
    let catalog = Catalog::open(engine).unwrap();
    let state = ServerState::new(catalog, GlobalVariables::default(), 1 << 30);
    state.watch_clients();
    let listener = Listener::tcp("127.0.0.1:3306".parse().unwrap()).unwrap();
    let address = listener.address().clone();
    let server = state.clone();
    runtime::net::serve(listener, move |peer, handle| {
        Box::new(ClientConnection::new(server.clone(), peer, handle, session::Door::Main))
    });
    (address, state)
}

fn hex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix('"') {
            Some(literal) => bytes.extend(literal.trim_end_matches('"').replace('~', " ").bytes()),
            None => {
                for at in (0..word.len()).step_by(2) {
                    bytes.push(u8::from_str_radix(&word[at..at + 2], 16).unwrap());
                }
            }
        }
    }
    bytes
}

impl World {
    fn connect(&mut self, name: &str, user: &str, password: &str, database: &str) -> String {
        let (mut client, greeting) = Client::connect(&self.address);
        client.capabilities = self.capabilities;
        let answer = match greeting {
            Ok(scramble) => client.login(&scramble, user, password, database),
            Err(text) => text,
        };
        self.clients.insert(name.to_owned(), client);
        answer
    }

    fn step(&mut self, name: &str, what: &str) -> String {
        let (command, rest) = what.split_once(' ').unwrap_or((what, ""));
        if command == "\\capabilities" {
            let asked = u64::from_str_radix(rest, 16).unwrap();
            // Bit 0 says "not MariaDB": without it the upper half counts.
            let mysql = if asked >> 32 != 0 { 1 } else { 0 };
            self.capabilities = CAPABILITIES & !mysql | asked;
            return String::new();
        }
        if command == "\\connect" {
            let mut words = rest.split(' ');
            let mut next = || words.next().unwrap_or("");
            let (user, password, database) = (next(), next(), next());
            return self.connect(name, user, password, database);
        }
        if command == "\\sleep" {
            runtime::sleep(Duration::from_millis(rest.parse().unwrap()));
            return String::new();
        }
        if matches!(command, "\\vanish" | "\\leave") {
            let mut client = self.clients.remove(name).unwrap();
            if command == "\\leave" {
                client.send_command(&[1]);
            }
            return String::new();
        }
        if command == "\\greet" {
            let (client, greeting) = Client::connect(&self.address);
            self.clients.insert(name.to_owned(), client);
            return greeting.map_or_else(|text| text, |_| "greeted\n".to_owned());
        }
        if !self.clients.contains_key(name) {
            let answer = self.connect(name, "root", "", "");
            assert!(answer.starts_with("ok"), "{answer}");
        }
        let client = self.clients.get_mut(name).unwrap();
        match command {
            "\\prepare" => {
                client.send_command(&[&[0x16], rest.as_bytes()].concat());
                client.read_prepared()
            }
            "\\execute" => {
                let id = client.statement.to_le_bytes();
                let payload = [&[0x17][..], &id, &[0, 1, 0, 0, 0], &hex(rest)].concat();
                client.send_command(&payload);
                client.read_executed()
            }
            "\\close" => {
                client.send_command(&[&[0x19][..], &client.statement.to_le_bytes()].concat());
                String::new()
            }
            "\\long" => {
                let id = client.statement.to_le_bytes();
                client.send_command(&[&[0x18][..], &id, &hex(rest)].concat());
                String::new()
            }
            "\\raw" => client.command(&hex(rest)),
            "\\silent" => {
                client.send_command(&hex(rest));
                String::new()
            }
            "\\bytes" => {
                client.send(&hex(rest));
                String::new()
            }
            "\\fields" => {
                client.send_command(&hex(rest));
                client.read_fields()
            }
            "\\text" => {
                client.send_command(&hex(rest));
                client.read_text() + "\n"
            }
            "\\packets" => {
                let (count, payload) = rest.split_once(' ').unwrap();
                let id = client.statement.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
                client.send_command(&hex(&payload.replace(" S ", &format!(" {id} "))));
                client.read_packets(count.parse().unwrap())
            }
            "\\start" => {
                client.send_command(&[&[0x03], rest.as_bytes()].concat());
                String::new()
            }
            "\\finish" => client.read_answer(),
            "\\quit" => {
                client.send_command(&[1]);
                client.read_answer()
            }
            _ => client.command(&[&[0x03], what.as_bytes()].concat()),
        }
    }
}

/// Runs a script; its text with every step followed by what was seen.
fn run(script: &str) -> String {
    let (address, _state) = start_server();
    let mut world = World { address, clients: BTreeMap::new(), capabilities: CAPABILITIES };
    let mut seen = String::new();
    for line in script.lines() {
        let step = line.split_once(": ").filter(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        });
        match step {
            Some((name, what)) => {
                seen += line;
                seen.push('\n');
                for output in world.step(name, what).lines() {
                    seen += &format!("    {output}\n");
                }
            }
            None if line.is_empty() || line.starts_with('#') => {
                seen += line;
                seen.push('\n');
            }
            None => assert!(line.starts_with("    "), "not a step: {line}"),
        }
    }
    seen
}

fn check(name: &str) {
    let path = format!("{}/tests/scripts/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let script = std::fs::read_to_string(&path).unwrap();
    let text = script.clone();
    let seen = Simulation::new(SimConfig::new(7)).run(move || run(&text));
    let seen = seen.unwrap_or_else(|end| panic!("{name}: {end:?}"));
    if std::env::var_os("GANNET_BLESS").is_some() {
        std::fs::write(&path, seen).unwrap();
        return;
    }
    for (number, (expected, found)) in script.lines().zip(seen.lines()).enumerate() {
        assert_eq!(found, expected, "{name}, line {}", number + 1);
    }
    assert_eq!(seen.lines().count(), script.lines().count(), "{name}: number of lines");
}

#[test]
fn cursors() {
    check("cursors");
}

#[test]
fn bulk() {
    check("bulk");
}

#[test]
fn tracking() {
    check("tracking");
}

#[test]
fn login() {
    check("login");
}

#[test]
fn commands() {
    check("commands");
}

#[test]
fn malformed() {
    check("malformed");
}

#[test]
fn variables() {
    check("variables");
}

#[test]
fn transactions() {
    check("transactions");
}

#[test]
fn accounts() {
    check("accounts");
}

#[test]
fn show() {
    check("show");
}

#[test]
fn limits() {
    check("limits");
}

#[test]
fn kill() {
    check("kill");
}

#[test]
fn metadata_locks() {
    check("metadata_locks");
}

#[test]
fn client_gone() {
    check("client_gone");
}

#[test]
fn plan_cache() {
    check("plan_cache");
}

#[test]
fn prepared() {
    check("prepared");
}

/// Its numbers are the process's, so only its form is known.
#[test]
fn statistics_are_one_line() {
    let seen = Simulation::new(SimConfig::new(7)).run(|| run("a: \\text 09"));
    let seen = seen.unwrap();
    assert!(seen.lines().nth(1).unwrap().starts_with("    Uptime: "), "{seen}");
}

/// Updates of one row by many clients: each gives its lock up before it waits for the log, so the
/// next one commits into the same group, and a sync is shared by many of them.
#[test]
fn commits_of_one_hot_row_share_syncs() {
    const CLIENTS: u64 = 12;
    const EACH: u64 = 10;
    let mut simulation = Simulation::new(SimConfig::new(3));
    let disk = simulation.disk();
    let ended = simulation.run(move || {
        let mut options = engine::EngineOptions::new("/database", 4 << 20);
        (options.huge_pages, options.first_log_file_bytes) = (false, 1 << 20);
        let (address, _state) = start_server_on(engine::Engine::open(options).unwrap().0);
        let client = |database: &str| {
            let (mut client, greeting) = Client::connect(&address);
            let answer = client.login(&greeting.unwrap(), "root", "", database);
            assert!(answer.starts_with("ok"), "{answer}");
            client
        };
        let query =
            |client: &mut Client, text: &str| client.command(&[&[3], text.as_bytes()].concat());
        let mut first = client("");
        query(&mut first, "CREATE DATABASE d");
        query(&mut first, "CREATE TABLE d.t (id INT PRIMARY KEY, n INT NOT NULL)");
        query(&mut first, "INSERT INTO d.t VALUES (1, 0)");
        let before = disk.statistics().syncs;
        let clients: Vec<_> = (0..CLIENTS).map(|_| client("d")).collect();
        let fibers: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                runtime::spawn("client", move || {
                    for _ in 0..EACH {
                        let answer = query(&mut client, "UPDATE t SET n = n + 1 WHERE id = 1");
                        assert!(answer.starts_with("ok"), "{answer}");
                    }
                })
            })
            .collect();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
        let syncs = disk.statistics().syncs - before;
        let sum = query(&mut first, "SELECT n FROM d.t");
        assert!(sum.contains(&(CLIENTS * EACH).to_string()), "{sum}");
        assert!(syncs < CLIENTS * EACH / 2, "{syncs} syncs for {} commits", CLIENTS * EACH);
    });
    ended.unwrap();
}
