//! Scheduling of the `gannet` binary from outside: limits of connections, the extra port, queues,
//! states of the process list. Nothing here depends on how fast anything happens.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

/// How long a test waits for what must happen at some time; only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

struct Server {
    child: Child,
    port: u16,
    extra_port: u16,
    directory: PathBuf,
}

impl Server {
    fn start(name: &str, options: &[&str]) -> Self {
        let directory = common::fresh_directory(&format!("scheduling-{name}"));
        let extra_port = sqltest::port::free_port().unwrap();
        let extra = format!("--extra-port={extra_port}");
        let options = [&[extra.as_str()], options].concat();
        let (child, port) = common::start_quietly(&directory, &options);
        Self { child, port, extra_port, directory }
    }

    fn connect(&self) -> Result<Client, String> {
        Client::login(self.port, "root")
    }

    fn administrator(&self) -> Result<Client, String> {
        Client::login(self.extra_port, "root")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        common::end(&mut self.child);
        let _removed = std::fs::remove_dir_all(&self.directory);
    }
}

/// A client that speaks as little of the protocol as is needed.
struct Client {
    stream: TcpStream,
}

/// "number message" of an ERR packet.
fn error_text(packet: &[u8]) -> String {
    let number = u16::from_le_bytes([packet[1], packet[2]]);
    let text = if packet.get(3) == Some(&b'#') { &packet[9..] } else { &packet[3..] };
    format!("{number} {}", String::from_utf8_lossy(text))
}

impl Client {
    fn login(port: u16, user: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self { stream };
        let greeting = client.packet()?;
        if greeting[0] == 0xff {
            return Err(error_text(&greeting));
        }
        let capabilities: u32 = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
        let mut login = capabilities.to_le_bytes().to_vec();
        login.extend((1u32 << 24).to_le_bytes());
        login.push(45);
        login.extend([0; 23]);
        login.extend(user.as_bytes());
        login.extend(b"\0\0test\0mysql_native_password\0");
        client.send(1, &login);
        let answer = client.packet()?;
        if answer[0] == 0xff { Err(error_text(&answer)) } else { Ok(client) }
    }

    fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = sequence;
        self.stream.write_all(&[&packet, payload].concat()).unwrap();
    }

    fn packet(&mut self) -> Result<Vec<u8>, String> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).map_err(|error| error.to_string())?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).map_err(|error| error.to_string())?;
        Ok(payload)
    }

    /// Sends a statement without waiting for its answer.
    fn begin(&mut self, statement: &str) {
        self.send(0, &[b"\x03", statement.as_bytes()].concat());
    }

    /// The rows of the answer, columns by tabs; empty for OK.
    fn answer(&mut self) -> Result<Vec<String>, String> {
        let first = self.packet()?;
        match first[0] {
            0xff => return Err(error_text(&first)),
            0 => return Ok(Vec::new()),
            columns => (0..=columns).for_each(|_| drop(self.packet())),
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.packet()?;
            if packet[0] == 0xff {
                return Err(error_text(&packet));
            }
            if packet[0] == 0xfe && packet.len() < 9 {
                return Ok(rows);
            }
            let (mut at, mut values) = (0, Vec::new());
            while at < packet.len() {
                let (length, start) = match packet[at] {
                    0xfb => (0, at + 1),
                    0xfc => {
                        (usize::from(u16::from_le_bytes([packet[at + 1], packet[at + 2]])), at + 3)
                    }
                    length => (usize::from(length), at + 1),
                };
                values.push(String::from_utf8_lossy(&packet[start..start + length]).into_owned());
                at = start + length;
            }
            rows.push(values.join("\t"));
        }
    }

    fn query(&mut self, statement: &str) -> Result<Vec<String>, String> {
        self.begin(statement);
        self.answer()
    }

    fn one(&mut self, statement: &str) -> String {
        self.query(statement).unwrap_or_else(|error| panic!("{statement}: {error}")).join("\n")
    }

    fn status(&mut self, name: &str) -> u64 {
        let row = self.one(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        row.rsplit('\t').next().unwrap().parse().unwrap_or_else(|_| panic!("{name}: {row}"))
    }

    /// Asks until the answer is as wanted.
    fn wait_for(&mut self, wanted: &str, statement: &str) {
        let begun = Instant::now();
        loop {
            let answer = self.one(statement);
            if answer == wanted {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{statement}: still {answer}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn too_many_connections_and_the_extra_port() {
    let server = Server::start("limits", &["--max-connections=10"]);
    let mut clients: Vec<_> = (0..10).map(|_| server.connect().unwrap()).collect();
    // One more for administrators, as root is.
    clients.push(server.connect().unwrap());
    assert_eq!(server.connect().err().unwrap(), "1040 Too many connections");
    let mut first = server.administrator().unwrap();
    let mut second = server.administrator().unwrap();
    let third = server.administrator().err().unwrap();
    assert_eq!(third, "1040 Too many connections", "extra_max_connections + 1");
    assert_eq!(first.one("SELECT 1"), "1");
    second.wait_for("Threads_connected\t13", "SHOW STATUS LIKE 'Threads_connected'");
    let most = second.status("Max_used_connections");
    assert!((13..15).contains(&most), "those refused may have been leaving still: {most}");
    assert_eq!(second.status("Connection_errors_max_connections"), 2);
    assert_eq!(second.status("Connections"), 15);
    let since = second.one("SHOW STATUS LIKE 'Max_used_connections_time'");
    assert!(since.starts_with("Max_used_connections_time\t20") && since.len() == 45, "{since}");
    second.one("SET GLOBAL extra_max_connections = 2");
    let _third = server.administrator().unwrap();
    second.one("SET GLOBAL max_connections = 12");
    clients.push(server.connect().unwrap());
    // An ordinary user does not get the administrators' place.
    second.one("CREATE USER plain@localhost");
    second.one("GRANT SELECT ON *.* TO plain@localhost");
    assert_eq!(Client::login(server.port, "plain").err().unwrap(), "1040 Too many connections");
    second.one("SET GLOBAL max_connections = 100");
    assert!(Client::login(server.port, "plain").is_ok());
}

#[test]
fn an_account_may_have_so_many_connections() {
    let server = Server::start("account", &[]);
    let mut root = server.connect().unwrap();
    root.one("CREATE USER plain@localhost");
    root.one("GRANT SELECT ON *.* TO plain@localhost");
    root.one("SET GLOBAL max_user_connections = 2");
    let first = Client::login(server.port, "plain").unwrap();
    let _second = Client::login(server.port, "plain").unwrap();
    let refused = "1203 User plain already has more than 'max_user_connections' active connections";
    assert_eq!(Client::login(server.port, "plain").err().unwrap(), refused);
    // Administrators are not limited.
    let _roots: Vec<_> = (0..3).map(|_| server.connect().unwrap()).collect();
    drop(first);
    root.wait_for("1", "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'plain'");
    let third = Client::login(server.port, "plain");
    assert!(third.is_ok(), "the slot of one that is gone is free: {:?}", third.err());
    root.one("SET GLOBAL max_user_connections = -1");
    assert_eq!(Client::login(server.port, "plain").err().unwrap(), refused);
    root.one("SET GLOBAL max_user_connections = 0");
    assert!(Client::login(server.port, "plain").is_ok());
}

/// All slots are held by statements that never end; new ones wait in the queue, which is shown,
/// and go on when there is room. The administrator is answered all the time.
#[test]
fn a_full_server_queues_in_order_and_answers_the_administrator() {
    let options = ["--thread-pool-size=1", "--thread-pool-stall-limit=4000000000"];
    let server = Server::start("queue", &options);
    let mut administrator = server.administrator().unwrap();
    assert_eq!(administrator.one("SELECT @@thread_pool_size"), "1");
    let mut in_transaction = server.connect().unwrap();
    in_transaction.one("BEGIN");
    let mut endless: Vec<_> = (0..2).map(|_| server.connect().unwrap()).collect();
    let mut queued = server.connect().unwrap();
    administrator.one("SET GLOBAL thread_pool_max_threads = 2");
    for client in &mut endless {
        client.begin("SELECT BENCHMARK(1000000000000, 1)");
    }
    administrator.wait_for(
        "2\t2\t0",
        "SELECT THREADS, ACTIVE_THREADS, STANDBY_THREADS
         FROM information_schema.THREAD_POOL_GROUPS WHERE GROUP_ID = 0",
    );
    queued.begin("SELECT 'queued'");
    administrator.wait_for("1", "SELECT COUNT(*) FROM information_schema.THREAD_POOL_QUEUES");
    let state = "SELECT COUNT(*) FROM information_schema.PROCESSLIST
                 WHERE STATE = 'Waiting in queue'";
    assert_eq!(administrator.one(state), "1");
    let queue = "SELECT GROUP_ID, POSITION, PRIORITY FROM information_schema.THREAD_POOL_QUEUES";
    assert_eq!(administrator.one(queue), "0\t0\t1");
    // A statement of an open transaction passes.
    assert_eq!(in_transaction.one("SELECT 'in transaction'"), "in transaction");
    assert_eq!(administrator.one(queue), "0\t0\t1");
    let throttles = "SELECT THROTTLES > 0 FROM information_schema.THREAD_POOL_STATS LIMIT 1";
    assert_eq!(administrator.one(throttles), "1");
    administrator.one("SET GLOBAL thread_pool_max_threads = 3");
    assert_eq!(queued.answer().unwrap(), ["queued"]);
    let running = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT BENCH%'";
    for id in administrator.query(running).unwrap() {
        administrator.one(&format!("KILL QUERY {id}"));
    }
    for mut client in endless {
        assert_eq!(client.answer().err().unwrap(), "1317 Query execution was interrupted");
    }
}

/// A gate that stays closed lets one statement more in after the stall limit.
#[test]
fn a_stalled_queue_moves_all_the_same() {
    let server = Server::start("stall", &["--thread-pool-size=1"]);
    let mut administrator = server.administrator().unwrap();
    administrator.one("SET GLOBAL thread_pool_max_threads = 1, GLOBAL thread_pool_stall_limit = 1");
    let mut endless = server.connect().unwrap();
    let mut other = server.connect().unwrap();
    endless.begin("SELECT BENCHMARK(1000000000000, 1)");
    administrator.wait_for(
        "1",
        "SELECT ACTIVE_THREADS FROM information_schema.THREAD_POOL_GROUPS WHERE GROUP_ID = 0",
    );
    assert_eq!(other.one("SELECT 'other'"), "other");
    let stalls = "SELECT THREAD_CREATIONS_DUE_TO_STALL > 0
                  FROM information_schema.THREAD_POOL_STATS WHERE GROUP_ID = 0";
    assert_eq!(administrator.one(stalls), "1");
}

/// With one slot for each worker, statements that wait for a row lock give theirs back, so the
/// transaction that has the lock can commit.
#[test]
fn waits_for_locks_do_not_fill_the_server() {
    let server = Server::start("locks", &["--set", "thread_pool_max_threads=1"]);
    let mut holder = server.connect().unwrap();
    holder.one("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    holder.one("INSERT INTO t VALUES (1, 0)");
    holder.one("BEGIN");
    holder.one("UPDATE t SET n = 1 WHERE id = 1");
    let mut waiters: Vec<_> = (0..20).map(|_| server.connect().unwrap()).collect();
    for waiter in &mut waiters {
        waiter.one("SET innodb_lock_wait_timeout = 100000");
        waiter.begin("UPDATE t SET n = n + 1 WHERE id = 1");
    }
    let mut other = server.connect().unwrap();
    other.wait_for(
        "20",
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST
         WHERE STATE = 'Waiting for row lock' AND COMMAND = 'Query'",
    );
    let waits = "SELECT COUNT >= 20 FROM information_schema.THREAD_POOL_WAITS
                 WHERE REASON = 'ROW_LOCK'";
    assert_eq!(other.one(waits), "1");
    holder.one("COMMIT");
    waiters.iter_mut().for_each(|waiter| assert!(waiter.answer().is_ok()));
    assert_eq!(other.one("SELECT n FROM t"), "21");
}

#[test]
fn states_say_what_a_statement_waits_for() {
    let server = Server::start("states", &[]);
    let mut watcher = server.connect().unwrap();
    let mut client = server.connect().unwrap();
    let state = |text: &str| {
        format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE INFO LIKE '{text}%'")
    };
    client.begin("SELECT SLEEP(100000)");
    watcher.wait_for("User sleep", &state("SELECT SLEEP"));
    let id = watcher
        .one("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'");
    watcher.one(&format!("KILL QUERY {id}"));
    // SLEEP says that it was interrupted.
    assert_eq!(client.answer().err().unwrap(), "1317 Query execution was interrupted");
    watcher.one("CREATE TABLE t (id INT PRIMARY KEY)");
    client.one("BEGIN");
    client.one("SELECT * FROM t");
    let mut definer = server.connect().unwrap();
    definer.begin("ALTER TABLE t ADD COLUMN n INT");
    watcher.wait_for("Waiting for table metadata lock", &state("ALTER TABLE"));
    client.one("COMMIT");
    assert!(definer.answer().is_ok());
    watcher.wait_for("", &state("ALTER TABLE"));
}

/// Eight clients loop heavy statements; sixteen others are answered all the same, and the long
/// ones end too.
#[test]
fn heavy_statements_starve_nobody() {
    let server = Server::start("heavy", &[]);
    let mut root = server.connect().unwrap();
    root.one("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    let values: Vec<_> = (0..1000).map(|id| format!("({id},{id})")).collect();
    root.one(&format!("INSERT INTO t VALUES {}", values.join(",")));
    let mut heavy: Vec<_> = (0..8).map(|_| server.connect().unwrap()).collect();
    for client in &mut heavy {
        client.begin("SELECT SUM(a.n + b.n) FROM t a JOIN t b");
    }
    let mut light: Vec<_> = (0..16).map(|_| server.connect().unwrap()).collect();
    for round in 0..20 {
        for client in &mut light {
            client.begin(&format!("SELECT n FROM t WHERE id = {round}"));
        }
        for client in &mut light {
            assert_eq!(client.answer().unwrap(), [round.to_string()]);
        }
    }
    for client in &mut heavy {
        assert_eq!(client.answer().unwrap(), ["999000000"]);
    }
}

/// Far more clients than may come, all at once: statements go on, everybody who comes is greeted
/// or told that there are too many, and when they have gone there is room again.
#[test]
fn a_storm_of_connections_stops_no_statement() {
    let server = Server::start("storm", &["--max-connections=50"]);
    let mut client = server.connect().unwrap();
    let mut storm = Vec::new();
    for number in 0..400 {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        storm.push(Client { stream });
        if number % 20 == 0 {
            assert_eq!(client.one("SELECT 'still'"), "still");
        }
    }
    let (mut greeted, mut refused) = (0, 0);
    for comer in &mut storm {
        let packet = comer.packet().expect("a greeting or an error");
        match packet[0] {
            0xff => {
                assert_eq!(error_text(&packet), "1040 Too many connections");
                refused += 1;
            }
            _ => greeted += 1,
        }
    }
    assert_eq!((greeted, refused), (50, 350), "one has come before, one more for administrators");
    assert_eq!(client.status("Connection_errors_max_connections"), 350);
    drop(storm);
    client.wait_for("Threads_connected\t1", "SHOW STATUS LIKE 'Threads_connected'");
    assert_eq!(server.connect().unwrap().one("SELECT 'room'"), "room");
}

/// Both transactions of a deadlock, their statements, what each waited for and who held it, and
/// who was rolled back stand in SHOW ENGINE INNODB STATUS.
#[test]
fn a_deadlock_is_told_in_words() {
    let server = Server::start("deadlock", &[]);
    let mut watcher = server.connect().unwrap();
    watcher.one("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    watcher.one("INSERT INTO t VALUES (-1, 0), (2, 0), (3, 0)");
    assert!(!watcher.one("SHOW ENGINE INNODB STATUS").contains("DEADLOCK"));
    let mut heavy = server.connect().unwrap();
    let mut light = server.connect().unwrap();
    heavy.one("BEGIN");
    heavy.one("UPDATE t SET n = 1 WHERE id IN (-1, 3)");
    light.one("BEGIN");
    light.one("UPDATE t SET n = 2 WHERE id = 2");
    heavy.begin("UPDATE t SET n = 10 WHERE id = 2");
    watcher.wait_for(
        "1",
        "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'",
    );
    light.begin("DELETE FROM t WHERE id = -1");
    let error = light.answer().err().unwrap();
    assert!(error.starts_with("1213 Deadlock found"), "{error}");
    assert!(heavy.answer().is_ok(), "the one with fewer changes gave up");
    heavy.one("COMMIT");
    let status = watcher.one("SHOW ENGINE INNODB STATUS");
    let (_, told) = status.split_once("LATEST DETECTED DEADLOCK").expect("the section");
    let expected = [
        "*** (1) TRANSACTION:",
        "UPDATE t SET n = 10 WHERE id = 2",
        "*** WAITING FOR THIS LOCK TO BE GRANTED:",
        "index PRIMARY of table `test`.`t`",
        "lock_mode X locks rec but not gap waiting",
        "Record lock: 2",
        "*** CONFLICTING WITH:",
        "lock_mode X locks rec but not gap\n",
        "Record lock: 2",
        "*** (2) TRANSACTION:",
        "DELETE FROM t WHERE id = -1",
        "Record lock: -1",
        "*** CONFLICTING WITH:",
        "Record lock: -1",
        "*** WE ROLL BACK TRANSACTION (2)",
    ];
    let mut rest = told;
    for line in expected {
        let found = rest.split_once(line);
        rest = found.unwrap_or_else(|| panic!("no {line:?} in what is left of {told}")).1;
    }
    watcher.one("DROP TABLE t");
    let status = watcher.one("SHOW ENGINE INNODB STATUS");
    assert!(status.contains("(dropped)"), "{status}");
}
