//! Files: errors carry the path, writes are atomic and only happen when the
//! content changes.

#![expect(clippy::disallowed_methods, reason = "this is the gate to files")]

use std::{
    fs::{File, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    time::{Duration, SystemTime},
};

use camino::{Utf8Path, Utf8PathBuf};
use object::read::ReadCache;

use crate::error::{Code, Error};

/// How the names of files begin that are renamed into place when they are
/// whole.
pub const SCRATCH_FILE: &str = ".ucx-configure-";

/// How the names of scratch directories begin.
pub const SCRATCH_DIR: &str = "ucx-configure-";

const FREE_SPACE: &str = "Free space on that file system and run again.";
const OTHER_BUILD_DIR: &str = "Name a build directory that you may write to with `-B DIR`.";

/// An error with the right hint where what cannot be written is in no build
/// directory.
#[must_use]
pub fn in_other_place(mut error: Error, hint: &str) -> Error {
    for old in error.hints.iter_mut().filter(|old| *old == OTHER_BUILD_DIR) {
        hint.clone_into(old);
    }
    error
}

/// What is said of a FIFO, a socket or a device in the place of a file.
const NOT_REGULAR: &str = "It is no regular file.";

/// How often a directory is emptied into which somebody still writes.
const REMOVALS: usize = 5;

/// Turns a failed read into an error for the user.
fn read_error(path: &Utf8Path, error: &io::Error) -> Error {
    Error::new(Code::Read, format!("`{path}` cannot be read")).said(error.to_string())
}

/// Turns a failed write into an error for the user, with what it means.
fn write_error(path: &Utf8Path, error: &io::Error) -> Error {
    let base = Error::new(Code::Write, format!("`{path}` cannot be written"))
        .said(error.to_string())
        .means("The file that was there before, if any, is unchanged.");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            base.hint(FREE_SPACE)
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            base.hint(OTHER_BUILD_DIR)
        }
        _ => base,
    }
}

/// Reads a file as text.
///
/// # Errors
///
/// It cannot be read, or is not UTF-8.
pub fn read_to_string(path: &Utf8Path) -> Result<String, Error> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| {
        read_error(path, &io::Error::new(io::ErrorKind::InvalidData, "It is no UTF-8."))
    })
}

/// Reads a file.
///
/// # Errors
///
/// It cannot be read.
pub fn read(path: &Utf8Path) -> Result<Vec<u8>, Error> {
    content(path).map_err(|error| read_error(path, &error))
}

/// The content of a regular file. The opening of a FIFO would wait for
/// somebody who writes, and nobody may ever come.
fn content(path: &Utf8Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // The reading of a directory fails, with the system's own words.
    regular(path)?.read_to_end(&mut content)?;
    Ok(content)
}

fn regular(path: &Utf8Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(without_waiting()).open(path)?;
    let data = file.metadata()?;
    if !data.is_file() && !data.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_REGULAR));
    }
    Ok(file)
}

/// The beginning of a regular file; less where it is shorter.
///
/// # Errors
///
/// It cannot be read.
pub fn head(path: &Utf8Path, most: u64) -> Result<Vec<u8>, Error> {
    let read = || -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        regular(path)?.take(most).read_to_end(&mut content)?;
        Ok(content)
    };
    read().map_err(|error| read_error(path, &error))
}

/// A file of which only the parts that are asked for are read: a driver's
/// libraries have many megabytes.
///
/// # Errors
///
/// It cannot be opened.
pub fn in_parts(path: &Utf8Path) -> Result<ReadCache<File>, Error> {
    regular(path).map(ReadCache::new).map_err(|error| read_error(path, &error))
}

/// How large a file is; none where there is none.
pub fn size(path: &Utf8Path) -> Option<u64> {
    path.metadata().ok().map(|data| data.len())
}

/// The flag with which no opening waits.
fn without_waiting() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

/// Makes a directory and its parents.
///
/// # Errors
///
/// It cannot be made.
pub fn create_dir_all(path: &Utf8Path) -> Result<(), Error> {
    std::fs::create_dir_all(path.as_std_path()).map_err(|error| {
        let base = Error::new(Code::Write, format!("the directory `{path}` cannot be made"))
            .said(error.to_string());
        match error.kind() {
            io::ErrorKind::StorageFull => base.hint(FREE_SPACE),
            _ => base.hint(OTHER_BUILD_DIR),
        }
    })
}

/// Writes a file in one step, unless it already holds exactly this: the new
/// content is written beside it and renamed over it. Returns whether it
/// changed. The parent directory has to exist.
///
/// # Errors
///
/// It cannot be written; the old file, if any, is then unchanged.
pub fn write_if_changed(path: &Utf8Path, content: &[u8], mode: u32) -> Result<bool, Error> {
    if self::content(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    replace(path, content, mode)?;
    Ok(true)
}

/// Puts a file in place in one step. The disk is not waited for: everything
/// that is written can be made again, and is looked at before it is believed.
///
/// # Errors
///
/// It cannot be written; the old file, if any, is then unchanged.
pub fn replace(path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let file = beside(path, content, mode)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| write_error(path, &error))
}

/// A file beside another, to be renamed over it.
fn beside(path: &Utf8Path, content: &[u8], mode: u32) -> io::Result<tempfile::NamedTempFile> {
    let dir = path.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(SCRATCH_FILE)
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(dir)?;
    file.write_all(content)?;
    Ok(file)
}

/// Writes a file that nobody else looks at yet, such as one in a tree that is
/// renamed into place when it is whole: in one go, without the care that
/// [`write_if_changed`] takes.
///
/// # Errors
///
/// It cannot be written.
pub fn write_new(path: &Utf8Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        fs_err::write(path.as_std_path(), content)?;
        fs_err::set_permissions(path.as_std_path(), std::fs::Permissions::from_mode(mode))
    };
    write().map_err(|error| write_error(path, &error))
}

/// Renames a file or a directory in one step.
///
/// # Errors
///
/// It cannot be renamed; both are then as they were.
pub fn rename(from: &Utf8Path, to: &Utf8Path) -> Result<(), Error> {
    fs_err::rename(from.as_std_path(), to.as_std_path()).map_err(|error| write_error(to, &error))
}

/// Keeps a file under another name as well, so that the first name can be
/// given to something else: as a second link to it where that can be, else as
/// a copy. What had the other name before goes.
///
/// # Errors
///
/// It cannot be kept.
pub fn keep(path: &Utf8Path, under: &Utf8Path) -> Result<(), Error> {
    remove_file_if_there(under)?;
    if fs_err::hard_link(path.as_std_path(), under.as_std_path()).is_ok() {
        return Ok(());
    }
    replace(under, &read(path)?, 0o755)
}

/// Removes a file, if it is there. Returns whether it was.
///
/// # Errors
///
/// It is there and cannot be removed.
pub fn remove_file_if_there(path: &Utf8Path) -> Result<bool, Error> {
    match fs_err::remove_file(path.as_std_path()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(write_error(path, &error)),
    }
}

/// Removes a directory with all that it holds, if it is there. Somebody may
/// still write into it, such as a compiler whose driver was killed: then it is
/// tried again, a few times.
///
/// # Errors
///
/// It is there and cannot be removed.
pub fn remove_dir_all_if_there(path: &Utf8Path) -> Result<(), Error> {
    let mut removals = 0;
    loop {
        removals += 1;
        match std::fs::remove_dir_all(path.as_std_path()) {
            Ok(()) => return Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => return Ok(()),
                io::ErrorKind::DirectoryNotEmpty if removals < REMOVALS => {}
                _ => return Err(write_error(path, &error)),
            },
        }
    }
}

/// Removes a directory if nothing is in it; one that is in use stays.
pub fn remove_dir_if_empty(path: &Utf8Path) {
    let _ = std::fs::remove_dir(path.as_std_path());
}

/// Makes `link` a symbolic link to `target`, replacing a file or link in one
/// step. Returns whether it changed.
///
/// # Errors
///
/// It cannot be made.
pub fn symlink(target: &str, link: &Utf8Path) -> Result<bool, Error> {
    symlink_os(std::ffi::OsStr::new(target), link)
}

/// The same, to a target whose name may be any bytes.
///
/// # Errors
///
/// It cannot be made.
pub fn symlink_os(target: &std::ffi::OsStr, link: &Utf8Path) -> Result<bool, Error> {
    if fs_err::read_link(link.as_std_path()).is_ok_and(|old| old.as_os_str() == target) {
        return Ok(false);
    }
    let beside = link.with_file_name(format!(
        "{SCRATCH_FILE}link-{}-{}",
        std::process::id(),
        link.file_name().unwrap_or("link")
    ));
    let make = || -> io::Result<()> {
        let _ = std::fs::remove_file(beside.as_std_path());
        std::os::unix::fs::symlink(target, beside.as_std_path())?;
        std::fs::rename(beside.as_std_path(), link.as_std_path())
    };
    make().map_err(|error| write_error(link, &error))?;
    Ok(true)
}

/// The names in a directory, sorted; none where it cannot be read.
pub fn names(dir: &Utf8Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir.as_std_path()) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Where a link leads, as it is written; none where there is no link.
pub fn link_target(path: &Utf8Path) -> Option<String> {
    path.read_link_utf8().ok().map(Utf8PathBuf::into_string)
}

/// The canonical form of a path, every link followed.
///
/// # Errors
///
/// It does not exist, or leads through a circle of links.
pub fn canonical(path: &Utf8Path) -> Result<Utf8PathBuf, Error> {
    path.canonicalize_utf8().map_err(|error| read_error(path, &error))
}

/// What a file is, as far as can be seen without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Device, number, size and times: another text, another file.
    pub text: String,
    /// When it, or its name, changed last.
    pub changed: SystemTime,
    /// Whether its file system counts in seconds.
    pub is_coarse: bool,
}

/// The stamp of a file or directory, links followed; none where nothing is.
pub fn stamp(path: &Utf8Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let data = path.metadata().ok()?;
    let at = |seconds: i64, nanos: i64| {
        let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(since)
    };
    let text = format!(
        "{:x}:{:x}:{:x}:{:x}.{:x}:{:x}.{:x}",
        data.dev(),
        data.ino(),
        data.size(),
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec()
    );
    let modified = at(data.mtime(), data.mtime_nsec())?;
    let changed = modified.max(at(data.ctime(), data.ctime_nsec())?);
    Some(Stamp { text, changed, is_coarse: data.ctime_nsec() == 0 })
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A directory, links followed.
    Directory,
    /// A regular file, links followed.
    File,
    /// A FIFO, a socket or a device, links followed.
    Special,
    /// Nothing of that name.
    Missing,
    /// A link whose end does not exist.
    Dangling(String),
    /// It cannot be looked at: a circle of links, no permission.
    Unreachable(String),
}

/// What a path leads to, whatever its bytes.
pub fn kind(path: &std::path::Path) -> Kind {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Kind::Directory,
        Ok(metadata) if metadata.is_file() => Kind::File,
        Ok(_) => Kind::Special,
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.read_link() {
            Ok(target) => Kind::Dangling(target.display().to_string()),
            Err(_) => Kind::Missing,
        },
        // A file stands where a directory should.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Kind::Missing,
        Err(error) => Kind::Unreachable(error.to_string()),
    }
}

/// The error for a FIFO, a socket or a device where a file of ours goes.
pub fn special(path: &Utf8Path) -> Error {
    Error::new(Code::NotOurs, format!("`{path}` is there already, and is no regular file"))
        .means("A FIFO, a socket or a device in its place is not written over.")
        .hint("Name another build directory with `-B DIR`, or move it away.")
}

/// A scratch directory that goes when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: tempfile::TempDir,
    path: Utf8PathBuf,
}

impl Scratch {
    /// Makes one under `parent`, or in the system's place for scratch files.
    ///
    /// # Errors
    ///
    /// It cannot be made, or its name is not UTF-8.
    pub fn new(parent: Option<&Utf8Path>) -> Result<Self, Error> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(SCRATCH_DIR);
        let made = match parent {
            Some(parent) => builder.tempdir_in(parent.as_std_path()),
            None => builder.tempdir(),
        };
        let dir = made.map_err(|error| match parent {
            Some(parent) => write_error(parent, &error),
            None => no_scratch(&std::env::temp_dir(), &error),
        })?;
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).map_err(|path| {
            Error::new(Code::UnusablePath, format!("`{}` is not UTF-8", path.display()))
                .hint("Set TMPDIR to a directory with a plain name.")
        })?;
        Ok(Self { dir, path })
    }

    /// Its path.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Keeps it on the disk.
    pub fn keep(self) -> Utf8PathBuf {
        let _ = self.dir.keep();
        self.path
    }
}

/// The system's place for scratch files is of no use.
fn no_scratch(place: &std::path::Path, error: &io::Error) -> Error {
    let what = format!("no scratch directory can be made in `{}`", place.display());
    let base = Error::new(Code::Write, what).said(error.to_string());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => base.hint(FREE_SPACE),
        _ => base.hint("Set `TMPDIR` to a directory that you may write to."),
    }
}

/// A lock on a file, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, or returns none when another process holds it.
    ///
    /// # Errors
    ///
    /// The file cannot be made, or something else is in its place.
    pub fn try_take(path: &Utf8Path) -> Result<Option<Self>, Error> {
        // Looked at before: the opening of a device may do something.
        if kind(path.as_std_path()) == Kind::Special {
            return Err(special(path));
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .custom_flags(without_waiting())
            .open(path.as_std_path())
            .map_err(|error| write_error(path, &error))?;
        Self::take(file, path)
    }

    /// The same for a directory that exists, which leaves no file behind.
    ///
    /// # Errors
    ///
    /// The directory cannot be opened.
    pub fn try_take_dir(dir: &Utf8Path) -> Result<Option<Self>, Error> {
        let file = File::open(dir.as_std_path()).map_err(|error| read_error(dir, &error))?;
        Self::take(file, dir)
    }

    fn take(file: File, path: &Utf8Path) -> Result<Option<Self>, Error> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(write_error(path, &error)),
        }
    }
}

#[cfg(test)]
mod tests;
