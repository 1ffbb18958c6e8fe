//! LOAD DATA with files: those that the mariadb client sends, and those of the server.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

struct Server {
    child: Child,
    port: u16,
    directory: PathBuf,
}

impl Server {
    /// A server that may read the files of one directory.
    fn start(files: &Path) -> Self {
        let directory = common::fresh_directory("files");
        let option = format!("--secure-file-priv={}", files.display());
        let (child, port) = common::start(&directory, &[&option], Stdio::null());
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
    let server = Server::start(&files);
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
