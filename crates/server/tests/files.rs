//! Files: LOAD DATA with those that the mariadb client sends and those of the server; INTO OUTFILE
//! and INTO DUMPFILE.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

struct Server {
    child: Child,
    port: u16,
    directory: PathBuf,
}

impl Server {
    /// A server that may use the files of one directory.
    fn start(files: &Path, name: &str) -> Self {
        let directory = common::fresh_directory(name);
        let option = format!("--secure-file-priv={}", files.display());
        let (child, port) = common::start_quietly(&directory, &[&option]);
        Self { child, port, directory }
    }

    /// What the client prints, its errors included.
    fn client(&self, options: &[&str], statements: &str) -> String {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-h127.0.0.1", "-BN", "-Dtest"])
            .arg(format!("-P{}", self.port))
            .args(options)
            .args(["-e", statements])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        common::end(&mut self.child);
        let _removed = std::fs::remove_dir_all(&self.directory);
    }
}

const COUNT: &str = "SELECT COUNT(*), SUM(id), MAX(name) FROM t";

fn fill(server: &Server, options: &[&str], load: &str) -> String {
    let mut all = vec!["-uroot"];
    all.extend_from_slice(options);
    server.client(&all, &format!("DELETE FROM t; {load}; {COUNT}"))
}

#[test]
fn files_are_loaded_from_the_client_and_from_one_directory_of_the_server() {
    if !Command::new("mariadb").arg("--version").output().is_ok_and(|o| o.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "mariadb is needed here");
        println!("skipped: there is no mariadb client");
        return;
    }
    let name = format!("gannet-loaded-{}", std::process::id());
    let files = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&files).unwrap();
    // More than a packet, a piece of the file and a buffer of answers.
    let rows = 60_000u64;
    let text: String = (1..=rows).map(|row| format!("{row}\tname {row:05}\n")).collect();
    let file = files.join("rows.txt");
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&files, "files");
    let made = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20)); CREATE USER poor; \
                GRANT SELECT, INSERT ON test.* TO poor";
    assert_eq!(server.client(&["-uroot"], made), "");
    let wanted = format!("{rows}\t{}\tname {rows:05}\n", rows * (rows + 1) / 2);
    let file = file.display();
    let load = format!("LOAD DATA LOCAL INFILE '{file}' INTO TABLE t");
    for way in [&["--skip-ssl"][..], &["--skip-ssl", "--compress"], &["--ssl"]] {
        let options = [&["--local-infile"], way].concat();
        assert_eq!(fill(&server, &options, &load), wanted, "{way:?}");
    }
    let missing = "LOAD DATA LOCAL INFILE '/nothing/here' INTO TABLE t";
    let said = fill(&server, &["--local-infile"], missing);
    assert!(said.contains("/nothing/here") && !said.contains("name"), "{said}");
    let said = fill(&server, &["--local-infile=0"], &load);
    assert!(said.contains("ERROR 4166"), "{said}");

    let of_server = |path: &str| format!("LOAD DATA INFILE '{path}' INTO TABLE t");
    assert_eq!(fill(&server, &[], &of_server(&file.to_string())), wanted);
    let directory = files.display();
    for outside in [format!("{directory}/../x"), "/etc/hostname".into(), "rows.txt".into()] {
        let said = fill(&server, &[], &of_server(&outside));
        assert!(said.contains("ERROR 1290"), "{outside}: {said}");
    }
    let said = fill(&server, &[], &of_server(&format!("{directory}/none")));
    assert!(said.contains("ERROR 29 ") && said.contains("No such file"), "{said}");
    let said = server.client(&["-upoor"], &of_server(&file.to_string()));
    assert!(said.contains("ERROR 1045"), "{said}");
    std::fs::remove_dir_all(files).unwrap();
}

/// What MariaDB 10.11 writes: options of INTO OUTFILE, and the bytes of the file.
const WRITTEN: &[(&str, &[u8])] = &[
    (
        "",
        b"1\tplain\t2024-02-29\t-1.50\t\\0\\\n\\\\\\\t\t00007\n\
          2\t\\N\t\\N\t\\N\t\\N\t\\N\n\
          3\ttab\\\tline\\\nquote\"back\\\\comma,\t0000-00-00\t0.00\t\t00042\n",
    ),
    (
        "FIELDS TERMINATED BY ',' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'",
        b"\"1\",\"plain\",\"2024-02-29\",\"-1.50\",\"\\0\n\\\\\t\",\"00007\"\r\n\
          \"2\",\\N,\\N,\\N,\\N,\\N\r\n\
          \"3\",\"tab\tline\nquote\\\"back\\\\comma,\",\"0000-00-00\",\"0.00\",\"\",\"00042\"\r\n",
    ),
    (
        "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY ''",
        b"1,\"plain\",\"2024-02-29\",-1.50,\"\0\n\\\t\",00007\n\
          2,NULL,NULL,NULL,NULL,NULL\n\
          3,\"tab\tline\nquote\"back\\comma,\",\"0000-00-00\",0.00,\"\",00042\n",
    ),
    (
        "FIELDS TERMINATED BY ';;' ESCAPED BY '|' LINES STARTING BY '>>' TERMINATED BY '<'",
        b">>1;;plain;;2024-02-29;;-1.50;;|0\n\\\t;;00007<>>2;;|N;;|N;;|N;;|N;;|N<\
          >>3;;tab\tline\nquote\"back\\comma,;;0000-00-00;;0.00;;;;00042<",
    ),
    (
        "FIELDS TERMINATED BY 'n' OPTIONALLY ENCLOSED BY 't' LINES TERMINATED BY ''",
        b"1ntplai\\ntnt2024-02-29tn-1.50nt\\0\n\\\\\ttn00007n2n\\Nn\\Nn\\Nn\\Nn\\Nn\
          3ntttab\tli\\ne\nquotte\"back\\\\comma,tnt0000-00-00tn0.00nttn00042n",
    ),
    (
        "FIELDS TERMINATED BY 'n' ENCLOSED BY '0'",
        b"010n0plain0n020024-002-290n0-1.5000n0\\0\\\n\\\\\t0n00000000070\n\
          020n\\Nn\\Nn\\Nn\\Nn\\N\n\
          030n0tab\tline\\\nquote\"back\\\\comma,0n000000000-0000-00000n000.00000n00n0000000420\n",
    ),
];

#[test]
fn files_are_written_to_one_directory_of_the_server() {
    if !Command::new("mariadb").arg("--version").output().is_ok_and(|o| o.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "mariadb is needed here");
        println!("skipped: there is no mariadb client");
        return;
    }
    let files = common::fresh_directory("written");
    std::fs::create_dir_all(&files).unwrap();
    let server = Server::start(&files, "writing");
    let root = |statements: &str| server.client(&["-uroot"], statements);
    let made = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(40), d DATE, n DECIMAL(6,2), b BLOB, \
                z INT(5) ZEROFILL); CREATE USER poor; GRANT SELECT ON test.* TO poor; \
                SET sql_mode = ''; \
                INSERT INTO t VALUES (1,'plain','2024-02-29',-1.5,x'000a5c09',7), \
                (2,NULL,NULL,NULL,NULL,NULL), \
                (3,'tab\\tline\\nquote\"back\\\\comma,','0000-00-00',0,'',42)";
    assert_eq!(root(made), "");
    let path = |name: &str| format!("{}/{name}", files.display());
    for (number, (options, bytes)) in WRITTEN.iter().enumerate() {
        let file = path(&number.to_string());
        let said = root(&format!("SELECT * INTO OUTFILE '{file}' {options} FROM t"));
        assert_eq!(said, "", "{options}");
        let written = std::fs::read(&file).unwrap();
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(bytes), "{options}");
        if options.contains("ESCAPED BY ''") || options.contains("LINES TERMINATED BY ''") {
            continue;
        }
        // What was written is what is read.
        let load = format!(
            "SET sql_mode = ''; CREATE TABLE back LIKE t; \
             LOAD DATA INFILE '{file}' INTO TABLE back {options}; \
             SELECT COUNT(*) FROM t JOIN back ON (t.id, t.z) <=> (back.id, back.z) \
             AND t.s <=> back.s AND t.d <=> back.d AND t.n <=> back.n AND t.b <=> back.b; \
             DROP TABLE back"
        );
        assert_eq!(root(&load), "3\n", "{options}");
    }
    let dump = |query: &str| {
        let file = path("dumped");
        let _ = std::fs::remove_file(&file);
        let said = root(&query.replace("FILE", &format!("DUMPFILE '{file}'")));
        assert_eq!(said, "", "{query}");
        std::fs::read(&file).unwrap()
    };
    assert_eq!(dump("SELECT b INTO FILE FROM t WHERE id = 1"), b"\0\n\\\t");
    assert_eq!(dump("SELECT id, s, z INTO FILE FROM t WHERE id = 2"), b"2\0\0");
    assert_eq!(dump("SELECT id INTO FILE FROM t WHERE id = 9"), b"");
    let refused = [
        (format!("SELECT 1 INTO OUTFILE '{}'", path("0")), "ERROR 1086"),
        (format!("SELECT 1 INTO DUMPFILE '{}'", path("0")), "ERROR 1086"),
        (format!("SELECT 1 INTO OUTFILE '{}'", path("none/0")), "ERROR 1290"),
        (format!("SELECT 1 INTO OUTFILE '{}'", path("../0")), "ERROR 1290"),
        ("SELECT 1 INTO OUTFILE 'relative'".to_owned(), "ERROR 1290"),
        (format!("SELECT id INTO DUMPFILE '{}' FROM t", path("three")), "ERROR 1172"),
        (format!("SELECT 1 INTO OUTFILE '{}' FIELDS ENCLOSED BY '::'", path("x")), "ERROR 1083"),
    ];
    for (statement, error) in &refused {
        let said = root(statement);
        assert!(said.contains(error), "{statement}: {said}");
    }
    let said = server.client(&["-upoor"], &format!("SELECT 1 INTO OUTFILE '{}'", path("poor")));
    assert!(said.contains("ERROR 1045"), "{said}");
    assert_eq!(
        root(&format!("EXPLAIN SELECT 1 INTO OUTFILE '{}'", path("plan"))).lines().count(),
        1
    );
    assert!(!files.join("plan").exists() && !files.join("poor").exists());
    // More than is written at once.
    let many = format!(
        "SELECT a.id, REPEAT('x', 200000) INTO OUTFILE '{}' FROM t a, t b; \
         SELECT 1 UNION SELECT 2 INTO OUTFILE '{}'",
        path("many"),
        path("union")
    );
    assert_eq!(root(&many), "");
    assert_eq!(std::fs::metadata(path("many")).unwrap().len(), 9 * 200_003);
    assert_eq!(std::fs::read(path("union")).unwrap(), b"1\n2\n");
    std::fs::remove_dir_all(files).unwrap();
}
