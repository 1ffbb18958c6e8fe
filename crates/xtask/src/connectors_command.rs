//! `cargo xtask connectors`: the small applications of `tests/connectors`, each through a real
//! connector, first with a MariaDB, then with Gannet; what they print must be the same.
//!
//! What a connector needs is installed when it is missing (Debian packages, Maven, Go modules,
//! npm, pip), below `target/connectors`; nothing is skipped.
//! `tests/connectors/differences.txt` has the lines that may differ, with their reason.

use crate::arguments::Arguments;
use crate::packages::{self, Package};
use crate::{Outcome, process, servers};
use sqltest::client::{Connection, Options};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A connector.
struct Connector {
    /// Its name on the command line and in `differences.txt`.
    name: &'static str,
    kind: Kind,
}

/// How its application is built and run.
enum Kind {
    /// A driver's jar, and the prefix of its URLs.
    Java(&'static str, &'static str),
    Go,
    Node,
    /// A module of Python.
    Python(&'static str),
    Php,
}

const fn connector(name: &'static str, kind: Kind) -> Connector {
    Connector { name, kind }
}

const CONNECTORS: [Connector; 9] = [
    connector("connector-j-5.1", Kind::Java("mysql-connector-java-5.1.49.jar", "jdbc:mysql")),
    connector("connector-j-8", Kind::Java("mysql-connector-j-8.4.0.jar", "jdbc:mysql")),
    connector("mariadb-j-2.7", Kind::Java("mariadb-java-client-2.7.12.jar", "jdbc:mariadb")),
    connector("mariadb-j-3", Kind::Java("mariadb-java-client-3.4.1.jar", "jdbc:mariadb")),
    connector("go", Kind::Go),
    connector("mysql2", Kind::Node),
    connector("pymysql", Kind::Python("pymysql")),
    connector("mysqlclient", Kind::Python("MySQLdb")),
    connector("php", Kind::Php),
];

const JAVA: [Package; 2] = [("default-jdk-headless", "javac"), ("maven", "mvn")];
const GO: [Package; 1] = [("golang-go", "go")];
const NODE: [Package; 2] = [("nodejs", "node"), ("npm", "npm")];
const PYTHON: [Package; 4] = [
    ("python3-venv", "python3"),
    ("gcc", "gcc"),
    ("pkg-config", "pkg-config"),
    ("libmariadb-dev", "mariadb_config"),
];
const PHP: [Package; 2] = [("php-cli", "php"), ("php-mysql", "php")];
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy";

/// Runs all connectors, or those named.
pub fn run(words: &[String]) -> Outcome {
    let arguments = Arguments::new(words, &[], &[])?;
    let names = arguments.names();
    let known = |name: &&str| CONNECTORS.iter().any(|connector| connector.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = CONNECTORS.iter().map(|connector| connector.name).collect();
        return Err(format!("no connector '{unknown}'; there are {}", all.join(" ")));
    }
    let wanted = |connector: &&Connector| names.is_empty() || names.contains(&connector.name);
    let chosen: Vec<&Connector> = CONNECTORS.iter().filter(wanted).collect();
    packages::install(&packages::SERVERS)?;
    let folder = servers::fresh_folder("connectors")?;
    let mariadb = servers::start_mariadb(&folder, sqltest::port::free_port()?, &[])?;
    let binary = servers::build_gannet(false)?;
    let gannet = servers::start_gannet(&binary, &folder.join("gannet"), 0, &[])?;
    let mut failed = Vec::new();
    for connector in chosen {
        let outcome = compare(connector, &folder, [mariadb.port, gannet.port]);
        match outcome {
            Ok(lines) => println!("{}: {lines} lines, the same", connector.name),
            Err(message) => {
                println!("{}: {message}", connector.name);
                failed.push(connector.name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("connectors: {} failed", failed.join(" "))) }
}

/// The number of lines that both servers led to, or what is different.
fn compare(connector: &Connector, folder: &Path, ports: [u16; 2]) -> Result<usize, String> {
    let command = prepare(&connector.kind)?;
    let mut said = Vec::new();
    for (server, port) in ["mariadb", "gannet"].into_iter().zip(ports) {
        let text = run_application(&command, port)?;
        let file = folder.join(format!("{}-{server}.txt", connector.name));
        std::fs::write(&file, &text).map_err(|e| format!("{}: {e}", file.display()))?;
        said.push(text);
    }
    if let Some(line) = said[0].lines().find(|line| line.starts_with("failed")) {
        return Err(format!("the application fails with MariaDB: {line}"));
    }
    let allowed = allowed_differences(connector.name)?;
    let mut differences = difference(connector.name, folder)?;
    differences.retain(|line| !allowed.contains(line));
    let shown = differences.len().min(40);
    match differences.len() {
        0 => Ok(said[0].lines().count()),
        count => Err(format!("{count} lines differ\n{}", differences[..shown].join("\n"))),
    }
}

/// Lines that only MariaDB led to behind `- `, those that only Gannet led to behind `+ `.
fn difference(connector: &str, folder: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("diff")
        .args(["--unchanged-line-format=", "--old-line-format=- %L", "--new-line-format=+ %L"])
        .arg(folder.join(format!("{connector}-mariadb.txt")))
        .arg(folder.join(format!("{connector}-gannet.txt")))
        .output()
        .map_err(|e| format!("diff: {e}"))?;
    match output.status.code() {
        Some(0 | 1) => {
            Ok(String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect())
        }
        _ => Err(format!("diff: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The lines below the heads that name the connector.
fn allowed_differences(connector: &str) -> Result<Vec<String>, String> {
    let file = crate::root().join("tests/connectors/differences.txt");
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let (mut lines, mut applies) = (Vec::new(), false);
    for line in text.lines() {
        if let Some(heads) = line.strip_prefix("== ") {
            applies = heads.split_whitespace().any(|head| head == connector);
        } else if applies && (line.starts_with("- ") || line.starts_with("+ ")) {
            lines.push(line.to_string());
        }
    }
    Ok(lines)
}

/// Gives the application a database of its own and returns what it prints.
fn run_application(command: &[String], port: u16) -> Result<String, String> {
    let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
    for sql in
        ["DROP DATABASE IF EXISTS connectors", "CREATE DATABASE connectors CHARACTER SET utf8mb4"]
    {
        connection.execute(sql).map_err(|e| e.to_string())?;
    }
    let output = Command::new("timeout")
        .arg("120")
        .args(command)
        .arg(port.to_string())
        .output()
        .map_err(|e| format!("{}: {e}", command[0]))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    Err(format!("the application ended with {}: {errors}\nits last line: {last}", output.status))
}

/// Installs and builds what is missing; the command to which a port is appended.
fn prepare(kind: &Kind) -> Result<Vec<String>, String> {
    let sources = crate::root().join("tests/connectors");
    let built = crate::root().join("target/connectors");
    std::fs::create_dir_all(&built).map_err(|e| format!("{}: {e}", built.display()))?;
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    match kind {
        Kind::Java(jar, prefix) => {
            packages::install(&JAVA)?;
            java(&sources.join("java"), &built, jar)?;
            let path = format!("{0}/classes:{0}/jars/{jar}", built.display());
            Ok(words(&["java", "-cp", &path, "Application", prefix]))
        }
        Kind::Go => {
            packages::install(&GO)?;
            let program = built.join("go-application");
            let source = sources.join("go");
            let arguments = ["-C", &text(&source), "build", "-o", &text(&program), "."];
            process::run("go", &arguments)?;
            Ok(words(&[&text(&program)]))
        }
        Kind::Node => {
            packages::install(&NODE)?;
            for file in ["package.json", "package-lock.json", "application.js"] {
                let (from, to) = (sources.join("node").join(file), built.join(file));
                std::fs::copy(&from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
            }
            let arguments = ["ci", "--silent", "--no-audit", "--prefix", &text(&built)];
            process::run("npm", &arguments)?;
            Ok(words(&["node", &text(&built.join("application.js"))]))
        }
        Kind::Python(module) => {
            packages::install(&PYTHON)?;
            let environment = built.join("python");
            if !environment.join("bin/pip").exists() {
                process::run("python3", &["-m", "venv", &text(&environment)])?;
            }
            let requirements = text(&sources.join("python/requirements.txt"));
            let pip = text(&environment.join("bin/pip"));
            process::run(&pip, &["install", "--quiet", "--requirement", &requirements])?;
            let python = text(&environment.join("bin/python"));
            Ok(words(&[&python, &text(&sources.join("python/application.py")), module]))
        }
        Kind::Php => {
            packages::install(&PHP)?;
            Ok(words(&["php", &text(&sources.join("php/application.php"))]))
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn java(source: &Path, built: &Path, jar: &str) -> Outcome {
    let jars: PathBuf = built.join("jars");
    if !jars.join(jar).exists() {
        let pom = text(&source.join("pom.xml"));
        let output = format!("-DoutputDirectory={}", jars.display());
        process::run("mvn", &["-q", "-B", "-f", &pom, MAVEN_COPY, &output])?;
    }
    let classes = text(&built.join("classes"));
    process::run("javac", &["-d", &classes, &text(&source.join("Application.java"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_belong_to_the_connectors_that_are_named() {
        assert!(allowed_differences("nobody").is_ok_and(|lines| lines.is_empty()));
        assert!(allowed_differences("mysqlclient").is_ok_and(|lines| !lines.is_empty()));
    }
}
