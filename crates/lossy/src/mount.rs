//! The kernel's requests, answered from a [`Disk`]. One at a time: the disk is one moment after
//! another (see `disk`, invariant 2).

use crate::disk::{Attributes, Disk, ROOT};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    Session, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the kernel may believe what it was told. Nothing changes behind its back.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);
const BLOCK_BYTES: u64 = 512;
/// Told of a disk that is never full.
const BLOCKS: u64 = 1 << 28;

/// A disk shared with those who cut its power.
pub type SharedDisk = Arc<Mutex<Disk>>;

/// Locks a disk.
pub fn lock(disk: &SharedDisk) -> MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a process that was killed may hold its files.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(30);

/// A disk where the kernel shows it; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    session: BackgroundSession,
    place: PathBuf,
}

/// Shows a disk at a directory. Needs the right to mount.
pub fn mount(disk: &SharedDisk, place: &Path) -> io::Result<Mounted> {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("lossy".to_owned())];
    let session = Session::new(Lossy { disk: disk.clone() }, place, &config)?.spawn()?;
    Ok(Mounted { session, place: place.to_path_buf() })
}

impl Mounted {
    /// Takes it away, once nobody uses it: the rings of a killed process end a little later.
    pub fn unmount(self) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            let output = Command::new("umount").arg(&self.place).output()?;
            if output.status.success() {
                return self.session.join();
            }
            if begin.elapsed() > UNMOUNT_LIMIT {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(io::Error::other(said));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

struct Lossy {
    disk: SharedDisk,
}

fn attributes(of: Attributes) -> FileAttr {
    let kind = if of.is_directory { FileType::Directory } else { FileType::RegularFile };
    FileAttr {
        ino: INodeNo(of.number),
        size: of.length,
        blocks: of.length.div_ceil(BLOCK_BYTES),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: if of.is_directory { 0o755 } else { 0o640 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Answers with the error, or with what the closure does.
macro_rules! answer {
    ($reply:ident, $done:expr, $then:expr) => {
        match $done {
            Ok(value) => $then($reply, value),
            Err(number) => $reply.error(Errno::from_i32(number)),
        }
    };
}

impl Lossy {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }
}

fn entry(reply: ReplyEntry, found: Result<Attributes, i32>) {
    answer!(reply, found, |reply: ReplyEntry, found| {
        reply.entry(&TIME_TO_LIVE, &attributes(found), Generation(0));
    });
}

fn answer_attributes(reply: ReplyAttr, found: Result<Attributes, i32>) {
    answer!(reply, found, |reply: ReplyAttr, found| {
        reply.attr(&TIME_TO_LIVE, &attributes(found));
    });
}

fn is_direct(flags: i32) -> bool {
    flags & libc::O_DIRECT != 0
}

/// Files that go past the cache do so to us; others keep the kernel's, so that they can be mapped.
fn handling(flags: i32) -> FopenFlags {
    match is_direct(flags) {
        true => FopenFlags::FOPEN_DIRECT_IO,
        false => FopenFlags::empty(),
    }
}

fn empty(reply: ReplyEmpty, done: Result<(), i32>) {
    answer!(reply, done, |reply: ReplyEmpty, ()| reply.ok());
}

impl Filesystem for Lossy {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.disk().find(parent.0, name));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer_attributes(reply, self.disk().attributes(ino.0));
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut disk = self.disk();
        let truncated = size.map_or(Ok(()), |size| disk.truncate(ino.0, size));
        let found = truncated.and_then(|()| disk.attributes(ino.0));
        answer_attributes(reply, found);
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, self.disk().create(parent.0, name, true));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.disk().remove(parent.0, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.disk().remove(parent.0, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.disk().rename(parent.0, name, newparent.0, newname));
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = self.disk().open(ino.0, is_direct(flags.0));
        answer!(reply, opened, |reply: ReplyOpen, ()| {
            reply.opened(FileHandle(0), handling(flags.0));
        });
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let mut disk = self.disk();
        let made = disk.create(parent.0, name, false);
        let made = made.and_then(|it| disk.open(it.number, is_direct(flags)).map(|()| it));
        answer!(reply, made, |reply: ReplyCreate, made| {
            let attributes = attributes(made);
            reply.created(
                &TIME_TO_LIVE,
                &attributes,
                Generation(0),
                FileHandle(0),
                handling(flags),
            );
        });
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.disk().read(ino.0, offset, size as usize);
        answer!(reply, read, |reply: ReplyData, bytes: Vec<u8>| reply.data(&bytes));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // The kernel passes the flags of the open file and those of the call (RWF_DSYNC).
        let is_durable = flags.0 & (libc::O_DSYNC | libc::O_SYNC) != 0;
        let written = self.disk().write(ino.0, offset, data, is_durable);
        answer!(reply, written, |reply: ReplyWrite, ()| reply.written(data.len() as u32));
    }

    fn flush(
        &self,
        _: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.disk().close(ino.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        empty(reply, self.disk().sync(ino.0));
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        empty(reply, self.disk().sync_directory(ino.0));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = match self.disk().names(ino.0) {
            Ok(names) => names,
            Err(number) => return reply.error(Errno::from_i32(number)),
        };
        let dots = [(ino.0, true, ".".into()), (ROOT, true, "..".into())];
        let all = dots.into_iter().chain(names);
        for (place, (number, is_directory, name)) in all.enumerate().skip(offset as usize) {
            let kind = if is_directory { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(number), place as u64 + 1, kind, &name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCKS, 4096, 255, 4096);
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.disk().allocate(ino.0, offset, length, mode));
    }
}
