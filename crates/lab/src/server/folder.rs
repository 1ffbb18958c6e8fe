//! Where a started server keeps what it has.

use super::Description;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Says that a folder of data was made by the lab and may be removed.
const MARK: &str = "made-by-gannet-lab";
/// The kernel allows a socket's path 107 bytes; results may lie deeper.
static NEXT_SOCKET: AtomicU32 = AtomicU32::new(1);
/// Ports that the kernel gives to nobody by itself, on systems that people left as they are: a
/// client that connects from the port of a server that is being restarted would keep it from
/// coming back.
const PORTS: std::ops::Range<u16> = 21_000..31_000;

/// Places of a server.
#[derive(Debug)]
pub(super) struct Folder {
    /// Log, command line.
    pub(super) results: PathBuf,
    /// The data directory.
    pub(super) data: PathBuf,
    /// There are data in it already.
    pub(super) is_filled: bool,
    /// They are removed with this.
    is_ours: bool,
    /// A folder that only this user may enter, for the socket.
    pub(super) private: PathBuf,
}

impl Folder {
    /// Makes the folders of a server. Data of an earlier run of the same name go if the lab has
    /// made them.
    pub(super) fn make(
        description: &Description,
        name: &str,
        results: &Path,
    ) -> Result<Self, String> {
        let of = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| format!("{path}: {error}")
        };
        let results = results.join("servers").join(plain(name));
        fs::create_dir_all(&results).map_err(of(&results))?;
        let results = results.canonicalize().map_err(of(&results))?;
        let is_ours = description.data.is_none();
        let data = description.data.clone().unwrap_or_else(|| results.join("data"));
        let mark = results.join(MARK);
        if is_ours && data.exists() {
            if !mark.exists() {
                return Err(format!(
                    "{} is there and not the lab's; remove it, or name it as `data` to use it",
                    data.display()
                ));
            }
            fs::remove_dir_all(&data).map_err(of(&data))?;
        }
        fs::create_dir_all(&data).map_err(of(&data))?;
        if is_ours {
            fs::write(&mark, "The folder `data` beside this may be removed.\n")
                .map_err(of(&mark))?;
        }
        let data = data.canonicalize().map_err(of(&data))?;
        let is_filled = fs::read_dir(&data).map_err(of(&data))?.next().is_some();
        let number = NEXT_SOCKET.fetch_add(1, Ordering::Relaxed);
        let private =
            std::env::temp_dir().join(format!("gannet-lab-{}-{number}", std::process::id()));
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&private).map_err(of(&private))?;
        Ok(Self { results, data, is_filled, is_ours, private })
    }

    /// The socket of the system's own.
    pub(super) fn socket(&self) -> PathBuf {
        self.private.join("socket")
    }

    /// What the server says.
    pub(super) fn log(&self) -> PathBuf {
        self.results.join("server.log")
    }

    /// Removes what need not stay.
    pub(super) fn clean(&self) {
        // What cannot be removed is found by who looks for space; there is nobody to tell here.
        let _left = fs::remove_dir_all(&self.private);
        if self.is_ours {
            let _left = fs::remove_dir_all(&self.data);
            let _left = fs::remove_file(self.results.join(MARK));
        }
    }
}

/// A name as a folder's.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    if name.trim_matches('.').is_empty() { "server".into() } else { name }
}

/// A port of the loopback that nobody listens at.
pub(super) fn free_port() -> Result<u16, String> {
    let count = u32::from(PORTS.end - PORTS.start);
    let held = NEXT_SOCKET.load(Ordering::Relaxed);
    let first = std::process::id().wrapping_mul(31).wrapping_add(held.wrapping_mul(7)) % count;
    let mut ports = (0..count).map(|step| PORTS.start + ((first + step) % count) as u16);
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| format!("no port from {} to {} is free", PORTS.start, PORTS.end))
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lab-folder-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn data_of_an_earlier_run_go_and_those_of_others_stay() {
        let results = scratch("earlier");
        let description = Description::new(Kind::Gannet);
        let first = Folder::make(&description, "a/b", &results).expect("made");
        fs::write(first.data.join("x"), "x").expect("written");
        let second = Folder::make(&description, "a/b", &results).expect("made again");
        assert!(!second.is_filled && second.results.ends_with("servers/a-b"));
        second.clean();
        first.clean();
        assert!(!second.data.exists() && second.results.exists());
        fs::create_dir(&second.data).expect("another's");
        let error = Folder::make(&description, "a/b", &results).expect_err("not ours");
        assert!(error.contains("not the lab's"), "{error}");
        fs::remove_dir_all(&results).expect("removed");
    }

    #[test]
    fn data_that_are_named_are_used_and_kept() {
        let results = scratch("named");
        let data = results.join("mine");
        fs::create_dir(&data).expect("made");
        fs::write(data.join("x"), "x").expect("written");
        let description = Description { data: Some(data.clone()), ..Description::new(Kind::Mysql) };
        let folder = Folder::make(&description, "..", &results).expect("made");
        assert!(folder.is_filled && folder.results.ends_with("servers/server"));
        folder.clean();
        assert!(data.join("x").exists() && !folder.private.exists());
        fs::remove_dir_all(&results).expect("removed");
    }

    #[test]
    fn two_servers_get_two_ports() {
        let first = free_port().expect("a port");
        let _held = TcpListener::bind(("127.0.0.1", first)).expect("free");
        assert_ne!(free_port().expect("another"), first);
    }
}
