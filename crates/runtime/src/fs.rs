//! Names of files and directories. Changes survive a crash after [`sync_dir`] on the directory.

use crate::overlay;
use crate::sim::{Operation, on_names};
use crate::worker::{self, Twin};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn either<T: Send + 'static>(
    path: &Path,
    operation: Operation,
    real: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    sim: impl FnOnce(&mut crate::sim::Namespace, &str) -> io::Result<T>,
) -> io::Result<T> {
    match &worker::current().twin {
        Twin::Real(_) => {
            let path = path.to_path_buf();
            crate::blocking(move || real(&path))
        }
        Twin::Sim(_) => {
            let path = path.to_string_lossy();
            on_names(operation, &path, |names| sim(names, &path))
        }
    }
}

/// Creates a directory and those above it that are missing.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    if let Some(layer) = overlay::over(path.as_ref()) {
        layer.create_directories(path.as_ref());
        return Ok(());
    }
    let real = |path: &Path| std::fs::create_dir_all(path);
    either(path.as_ref(), Operation::Metadata, real, |names, path| names.create_directories(path))
}

/// The names in a directory, sorted; not their paths.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<String>> {
    let real = |path: &Path| {
        let entries = std::fs::read_dir(path)?;
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names = entries.map(|entry| entry.map(name)).collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    };
    let listed = either(path.as_ref(), Operation::Metadata, real, |names, path| names.names(path));
    match overlay::over(path.as_ref()) {
        Some(layer) => layer.names(path.as_ref(), listed),
        None => listed,
    }
}

/// Removes a file's name; open handles stay usable.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    if let Some(layer) = overlay::over(path.as_ref()) {
        return layer.remove_file(path.as_ref());
    }
    let real = |path: &Path| std::fs::remove_file(path);
    either(path.as_ref(), Operation::Metadata, real, |names, path| names.remove_file(path))
}

/// Gives a file another name in the same directory, replacing what had it, in one step.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    if let Some(layer) = overlay::over(from.as_ref()) {
        return layer.rename(from.as_ref(), to.as_ref());
    }
    let (target, sim_target) = (to.as_ref().to_path_buf(), to.as_ref().to_string_lossy());
    let real = move |path: &Path| std::fs::rename(path, target);
    either(from.as_ref(), Operation::Metadata, real, |names, path| names.rename(path, &sim_target))
}

/// Makes the names of a directory durable.
pub fn sync_dir(path: impl AsRef<Path>) -> io::Result<()> {
    if overlay::over(path.as_ref()).is_some() {
        return Ok(());
    }
    let real = |path: &Path| std::fs::File::open(path)?.sync_all();
    either(path.as_ref(), Operation::Sync, real, |names, path| names.sync_directory(path))
}

/// Bytes of the file system of this directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemSize {
    /// All.
    pub total_bytes: u64,
    /// What files may still take, for who may not use what is set aside for the administrator.
    pub available_bytes: u64,
}

/// Asks the file system of a directory how large it is.
pub fn file_system_size(path: impl AsRef<Path>) -> io::Result<FileSystemSize> {
    let real = |path: &Path| {
        let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
        let mut told = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: a path that ends with a zero byte, and room for the answer.
        let status = unsafe { libc::statvfs(name.as_ptr(), told.as_mut_ptr()) };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: every bit pattern is a value, and the call has filled it.
        let told = unsafe { told.assume_init() };
        Ok(FileSystemSize {
            total_bytes: told.f_blocks.saturating_mul(told.f_frsize),
            available_bytes: told.f_bavail.saturating_mul(told.f_frsize),
        })
    };
    match &worker::current().twin {
        Twin::Real(_) => {
            let path = path.as_ref().to_path_buf();
            crate::blocking(move || real(&path))
        }
        Twin::Sim(sim) => Ok(sim.disk.size()),
    }
}

/// Whether a file or directory has this name.
pub fn exists(path: impl AsRef<Path>) -> io::Result<bool> {
    let known = overlay::over(path.as_ref()).and_then(|layer| layer.knows(path.as_ref()));
    if let Some(known) = known {
        return Ok(known);
    }
    let real = |path: &Path| path.try_exists();
    either(path.as_ref(), Operation::Metadata, real, |names, path| Ok(names.find(path).is_some()))
}

/// Reads a small file whole, for example a configuration.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    let is_covered = overlay::over(path).is_some();
    if let Twin::Real(_) = &worker::current().twin
        && !is_covered
    {
        let path = path.to_path_buf();
        return crate::blocking(move || std::fs::read(path));
    }
    let file = crate::file::OpenOptions::new().open(path)?;
    let mut content = vec![0; file.len()? as usize];
    file.read_at(&mut content, 0)?;
    Ok(content)
}
