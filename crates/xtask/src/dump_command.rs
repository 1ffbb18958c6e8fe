//! `cargo xtask dump`: a database goes by mariadb-dump and the mariadb client from MariaDB to
//! Gannet and back, and is compared after each step: the statements that create its tables and
//! views, and all rows in order. So is a table that the mariadb client sends with
//! `--local-infile`, plain, compressed and through TLS.

use crate::process::Server;
use crate::{Outcome, servers};
use sqltest::client::{Connection, Options};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// Options that people dump with; all must give what restores.
const DUMPS: [&[&str]; 2] = [
    &["--single-transaction", "--routines", "--triggers", "--events"],
    &["--opt", "--complete-insert", "--hex-blob"],
];

/// Runs it.
pub fn run(root: &Path, arguments: &[String]) -> Outcome {
    let release = match arguments {
        [] => false,
        [one] if one == "--release" => true,
        _ => return Err("usage: cargo xtask dump [--release]".into()),
    };
    let folder = servers::fresh_folder("dump")?;
    let binary = servers::build_gannet(release)?;
    let start = Instant::now();
    let port = sqltest::port::free_port()?;
    let mut mariadb = servers::start_mariadb(&folder, port, &[])?;
    let mut gannet = servers::start_gannet(&binary, &folder.join("gannet"), 0, &[])?;
    let done = there_and_back(root, &folder, &mariadb, &gannet)
        .and_then(|()| local_file(&folder, &mariadb, &gannet));
    mariadb.stop();
    let stopped = gannet.stop();
    done?;
    if !stopped {
        return Err("the server did not stop cleanly".into());
    }
    println!("dump: there and back in {} s", start.elapsed().as_secs());
    Ok(())
}

fn there_and_back(root: &Path, folder: &Path, mariadb: &Server, gannet: &Server) -> Outcome {
    client(mariadb, None, &["-e", "CREATE DATABASE source"], None)?;
    let source = root.join("tests/dump/source.sql");
    client(mariadb, Some("source"), &[], Some(&source))?;
    let wanted = contents(mariadb, "source")?;
    println!("dump: {} tables and views, {} rows", wanted.len(), rows_of(&wanted));
    for (number, options) in DUMPS.iter().enumerate() {
        let there = folder.join(format!("there_{number}.sql"));
        let (copy, back) = (format!("copy_{number}"), format!("back_{number}"));
        dump(mariadb, "source", options, &there)?;
        restore(gannet, &copy, &there)?;
        same(&wanted, &contents(gannet, &copy)?, "restored in Gannet")?;
        let again = folder.join(format!("back_{number}.sql"));
        dump(gannet, &copy, options, &again)?;
        restore(mariadb, &back, &again)?;
        same(&wanted, &contents(mariadb, &back)?, "restored in MariaDB")?;
    }
    let refused = mariadb_dump(gannet, &["--master-data", "copy_0"], Stdio::null())?;
    let text = String::from_utf8_lossy(&refused.stderr);
    if refused.status.success() || text.trim().is_empty() {
        return Err(format!("--master-data was not refused clearly: {text}"));
    }
    println!("dump: --master-data: {}", text.trim());
    Ok(())
}

/// Rows of the file that the client sends.
const LOCAL_ROWS: usize = 50_000;

/// The client reads a file and sends it, as LOAD DATA LOCAL asks.
fn local_file(folder: &Path, mariadb: &Server, gannet: &Server) -> Outcome {
    let path = folder.join("local.csv");
    let mut text = String::from("id,name,amount\n");
    for row in 0..LOCAL_ROWS {
        let name = format!("\"name, {row} \"\"quoted\"\" \u{e4}\u{20ac}\"");
        let amount = if row % 7 == 0 { "\\N".to_string() } else { format!("{}.25", row % 1000) };
        text += &format!("{row},{name},{amount}\n");
    }
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    let load = format!(
        "LOAD DATA LOCAL INFILE '{}' INTO TABLE t CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' \
         OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES (id, name, amount) SET half = amount / 2",
        path.display()
    );
    let table = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(60), amount DECIMAL(10,2), \
                 half DECIMAL(10,3), KEY (name))";
    let ways: [&[&str]; 3] = [&[], &["--compress"], &["--ssl"]];
    let mut wanted = None;
    for (number, server) in [mariadb, gannet, gannet, gannet].into_iter().enumerate() {
        let database = format!("local_{number}");
        client(server, None, &["-e", &format!("CREATE DATABASE {database}")], None)?;
        client(server, Some(&database), &["-e", table], None)?;
        let mut options = vec!["--local-infile", "-e", &load];
        options.extend_from_slice(ways[number.saturating_sub(1)]);
        client(server, Some(&database), &options, None)?;
        let found = contents(server, &database)?;
        match &wanted {
            None => wanted = Some(found),
            Some(wanted) => same(wanted, &found, "loaded from the client's file")?,
        }
    }
    let missing = "LOAD DATA LOCAL INFILE '/nothing/here' INTO TABLE t";
    match client(gannet, Some("local_1"), &["--local-infile", "-e", missing], None) {
        Err(text) if text.contains("nothing/here") => Ok(()),
        other => Err(format!("a file that is not there: {other:?}")),
    }
}

/// What there is of a table or view: its statement, and its rows.
struct Content {
    name: String,
    statement: String,
    rows: Vec<Vec<u8>>,
}

fn rows_of(contents: &[Content]) -> usize {
    contents.iter().map(|content| content.rows.len()).sum()
}

/// All of a database, in order of names.
fn contents(server: &Server, database: &str) -> Result<Vec<Content>, String> {
    let fails = |error: std::io::Error| format!("{database}: {error}");
    let mut connection = Connection::open(&Options::local(server.port)).map_err(fails)?;
    let mut execute =
        |sql: &str| connection.execute(sql).map_err(|error| format!("{database}: {sql}: {error}"));
    execute(&format!("USE {database}"))?;
    execute("SET NAMES utf8mb4")?;
    execute("SET time_zone = '+00:00'")?;
    let mut all = Vec::new();
    for table in execute("SHOW TABLES")? {
        let name = table.first().and_then(|field| field.clone()).unwrap_or_default();
        let name = String::from_utf8_lossy(&name).into_owned();
        let quoted = format!("`{}`", name.replace('`', "``"));
        let shown = execute(&format!("SHOW CREATE TABLE {quoted}"))?;
        let statement = shown.first().and_then(|row| row.get(1).cloned().flatten());
        let statement = String::from_utf8_lossy(&statement.unwrap_or_default()).into_owned();
        let mut rows: Vec<Vec<u8>> = Vec::new();
        for row in execute(&format!("SELECT * FROM {quoted}"))? {
            let mut bytes = Vec::new();
            for field in row {
                match field {
                    None => bytes.push(0),
                    Some(value) => {
                        bytes.push(1);
                        bytes.extend_from_slice(&(value.len() as u32).to_be_bytes());
                        bytes.extend_from_slice(&value);
                    }
                }
            }
            rows.push(bytes);
        }
        rows.sort();
        all.push(Content { name, statement, rows });
    }
    Ok(all)
}

fn same(wanted: &[Content], found: &[Content], when: &str) -> Outcome {
    let names = |all: &[Content]| all.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    if names(wanted) != names(found) {
        return Err(format!("{when}: {:?}, not {:?}", names(found), names(wanted)));
    }
    for (wanted, found) in wanted.iter().zip(found) {
        if wanted.statement != found.statement {
            let (wanted, found) = (&wanted.statement, &found.statement);
            return Err(format!("{when}: expected\n{wanted}\ngot\n{found}"));
        }
        if wanted.rows != found.rows {
            let number = wanted.rows.iter().zip(&found.rows).take_while(|(a, b)| a == b).count();
            return Err(format!(
                "{when}: rows of {} differ: {} and {}, from number {number} on:\n{:?}\n{:?}",
                wanted.name,
                wanted.rows.len(),
                found.rows.len(),
                wanted.rows.get(number).map(|row| String::from_utf8_lossy(row)),
                found.rows.get(number).map(|row| String::from_utf8_lossy(row)),
            ));
        }
    }
    println!("dump: {when}: {} rows are the same", rows_of(found));
    Ok(())
}

/// A client program for a server.
fn program(name: &str, server: &Server) -> Command {
    let mut command = Command::new(name);
    command.args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--skip-ssl"]);
    command.arg(format!("--port={}", server.port));
    command
}

fn client(
    server: &Server,
    database: Option<&str>,
    options: &[&str],
    input: Option<&Path>,
) -> Outcome {
    let stdin = match input {
        None => Stdio::null(),
        Some(path) => File::open(path).map_err(|e| format!("{}: {e}", path.display()))?.into(),
    };
    let mut command = program("mariadb", server);
    command.arg("--default-character-set=utf8mb4").args(options).args(database);
    let output = command.stdin(stdin).output().map_err(|e| format!("mariadb: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("mariadb: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn mariadb_dump(server: &Server, options: &[&str], output: Stdio) -> Result<Output, String> {
    let mut command = program("mariadb-dump", server);
    command.args(options).stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
    let child = command.spawn().map_err(|e| format!("mariadb-dump: {e}"))?;
    child.wait_with_output().map_err(|e| format!("mariadb-dump: {e}"))
}

fn dump(server: &Server, database: &str, options: &[&str], path: &Path) -> Outcome {
    let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut all = options.to_vec();
    all.push(database);
    let output = mariadb_dump(server, &all, file.into())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("mariadb-dump: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn restore(server: &Server, database: &str, path: &Path) -> Outcome {
    client(server, None, &["-e", &format!("CREATE DATABASE {database}")], None)?;
    client(server, Some(database), &[], Some(path))
}
