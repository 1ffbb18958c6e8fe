//! The programs of servers, and what is known of them.

use super::kind::{Kind, Version};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that serves.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The folder of an unpacked archive that it belongs to; absent if it is installed.
    pub base: Option<PathBuf>,
    /// What it is.
    pub kind: Kind,
    /// Its version.
    pub version: Version,
    /// What it says to `--version`.
    pub text: String,
}

/// Folders with servers that are often not on the path.
const SYSTEM_FOLDERS: [&str; 5] =
    ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/libexec", "/usr/local/bin"];
/// Where an unpacked archive has its programs.
const ARCHIVE_FOLDERS: [&str; 5] = ["bin", "sbin", "libexec", "scripts", ""];

impl Program {
    /// The program of a kind: the given file, or a program in the given folder of an unpacked
    /// archive, or the one that is installed.
    pub fn find(kind: Kind, given: Option<&Path>) -> Result<Self, String> {
        let path = match given {
            Some(given) => in_given(kind, given)?,
            None => installed(kind)?,
        };
        let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
        let text = answer(Command::new(&path).arg("--version"))?;
        let is_server = ["gannet", "mysqld", "mysql", "mariadbd", "percona"]
            .iter()
            .any(|word| text.to_ascii_lowercase().contains(word));
        if !is_server || Kind::recognise(&text) != kind {
            return Err(format!("{} is not {kind}; it says: {text}", path.display()));
        }
        let version = Version::find(&text)
            .ok_or_else(|| format!("{} says no version: {text}", path.display()))?;
        Ok(Self { base: base(&path), path, kind, version, text })
    }

    /// A helper that comes with it, such as `mariadb-install-db`.
    pub fn helper(&self, names: &[&str]) -> Result<PathBuf, String> {
        let beside = self.path.parent().map(Path::to_path_buf);
        let archive =
            self.base.iter().flat_map(|base| ARCHIVE_FOLDERS.map(|folder| base.join(folder)));
        let folders: Vec<PathBuf> = beside.into_iter().chain(archive).chain(on_path()).collect();
        let found = names
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
            .find(|path| path.is_file());
        found.ok_or_else(|| format!("{} is not beside {}", names.join(" or "), self.path.display()))
    }

    /// What tells this build from another.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from([
            ("program".to_string(), self.path.display().to_string()),
            ("program's version".to_string(), self.text.clone()),
        ]);
        let sum = answer(Command::new("sha256sum").arg(&self.path));
        if let Some(sum) = sum.ok().and_then(|text| Some(text.get(..16)?.to_string())) {
            facts.insert("program's SHA-256 begins with".into(), sum);
        }
        if let Some(commit) = self.commit() {
            facts.insert("commit of the sources around the program".into(), commit);
        }
        facts
    }

    /// The commit that is checked out in the sources that the program lies in, if it does.
    fn commit(&self) -> Option<String> {
        if self.kind != Kind::Gannet {
            return None;
        }
        let folder = self.path.parent()?;
        let git = |words: &[&str]| answer(Command::new("git").arg("-C").arg(folder).args(words));
        let commit = git(&["rev-parse", "--short=12", "HEAD"]).ok()?;
        let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"]).ok()?.is_empty();
        Some(format!("{commit}{}", if is_changed { ", changed since" } else { "" }))
    }
}

/// What a command prints; an error if it fails.
pub(super) fn answer(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
    match output.status.success() {
        true => Ok(text),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            Err(format!("{name}: {}: {last}", output.status))
        }
    }
}

fn names(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Gannet => &["gannet"],
        Kind::Mariadb => &["mariadbd", "mysqld"],
        Kind::Mysql => &["mysqld"],
    }
}

fn in_given(kind: Kind, given: &Path) -> Result<PathBuf, String> {
    if given.is_dir() {
        let folders = ARCHIVE_FOLDERS.map(|folder| given.join(folder));
        let mut paths =
            folders.iter().flat_map(|folder| names(kind).iter().map(|name| folder.join(name)));
        let found = paths.find(|path| path.is_file());
        return found.ok_or_else(|| {
            format!("{}: no {} in it or its bin", given.display(), names(kind).join(" or "))
        });
    }
    if given.is_file() {
        return Ok(given.to_path_buf());
    }
    let is_name = given.components().count() == 1;
    let on_path = on_path().into_iter().map(|folder| folder.join(given));
    let found = is_name.then(|| on_path.into_iter().find(|path| path.is_file())).flatten();
    found.ok_or_else(|| format!("{}: no such program", given.display()))
}

fn installed(kind: Kind) -> Result<PathBuf, String> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.to_path_buf()));
    let own = beside.filter(|_| kind == Kind::Gannet);
    let folders: Vec<PathBuf> =
        own.into_iter().chain(on_path()).chain(SYSTEM_FOLDERS.iter().map(PathBuf::from)).collect();
    let mut paths =
        names(kind).iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    paths.find(|path| path.is_file()).ok_or_else(|| {
        let how = match kind {
            Kind::Gannet => "build it (cargo build --release --package gannet-server)",
            Kind::Mariadb => "install it (Debian: mariadb-server)",
            Kind::Mysql => "unpack it",
        };
        format!("{kind} is not beside gannet-lab and not on the path: {how}, or name its `program`")
    })
}

fn on_path() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// The folder above `bin` of an archive, recognised by its `share`; not `/usr`.
fn base(program: &Path) -> Option<PathBuf> {
    let base = program.parent()?.parent()?;
    let is_installed = base.starts_with("/usr") || base.parent().is_none();
    (!is_installed && base.join("share").is_dir()).then(|| base.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named_with_a_way_out() {
        let error = Program::find(Kind::Mysql, Some(Path::new("/nowhere/mysqld")));
        assert!(error.expect_err("nothing there").contains("/nowhere/mysqld"));
        let empty = std::env::temp_dir();
        let error = in_given(Kind::Mysql, &empty).expect_err("no server there");
        assert!(error.contains("no mysqld"), "{error}");
    }

    #[test]
    fn a_program_of_another_kind_is_refused() {
        // It answers to `--version`, and is no Gannet.
        let error = Program::find(Kind::Gannet, Some(Path::new("sh"))).err();
        let other = Program::find(Kind::Gannet, Some(Path::new("tar"))).expect_err("no server");
        assert!(error.is_some() && other.contains("not Gannet"), "{other}");
    }
}
