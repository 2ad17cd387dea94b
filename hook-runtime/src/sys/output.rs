//! Unbuffered output: one `write` per line, so that lines of several threads
//! and processes never mix, and nothing is lost when the process ends.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Writes `bytes` to standard error, and gives up in silence when that fails:
/// there is no better place to complain.
pub fn to_standard_error(bytes: &[u8]) {
    let _ = rustix::io::write(rustix::stdio::stderr(), bytes);
}

/// Opens `path` for appending, creating it if need be.
pub fn open_for_appending(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)).map_err(Into::into)
}

/// Appends `line` with one `write`.
pub fn append(file: &impl AsFd, line: &[u8]) {
    let _ = rustix::io::write(file, line);
}

/// The number that the kernel gave the calling thread.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// The number of this process.
pub fn process_id() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
