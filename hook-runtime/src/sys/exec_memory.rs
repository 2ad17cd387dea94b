//! Memory that holds code: how this system lets it be made, and making it.
//!
//! Code is staged elsewhere, put in place while the memory is writable, and
//! executable only afterwards; where the system forbids that change, it comes
//! from a file in memory that is mapped executable from the start. What live
//! text allows is found out on a scratch page of this program's own text.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{
    MapFlags, MprotectFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mprotect, mremap_fixed,
    munmap,
};

use super::maps::Protection;

/// The size of a page on every processor that has code patching here.
pub const PAGE: u64 = 4096;

/// How executable memory can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Anonymous memory, written first and made executable then.
    Anonymous,
    /// A file in memory, mapped executable.
    MemoryFile,
}

/// How live text can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Its page may be writable and executable for a moment.
    InPlace,
    /// It may not: a patched copy of the page is mapped over it. The text says who forbids it.
    Swap(String),
}

/// What the system allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Where new code comes from.
    pub source: Source,
    /// How old code is changed.
    pub change: Change,
}

/// Finds out what is allowed, on scratch pages. The error names what was tried and who refused.
pub fn probe() -> Result<Policy, String> {
    let source = match probe_anonymous() {
        Ok(()) => Source::Anonymous,
        Err((step, error)) => match probe_memory_file() {
            Ok(()) => Source::MemoryFile,
            Err((step_of_file, error_of_file)) => {
                return Err(format!(
                    "{} refuses executable memory: {step}: {error}; {step_of_file}: {error_of_file}",
                    who_refuses()
                ));
            }
        },
    };
    let change = match probe_live_text() {
        Ok(()) => Change::InPlace,
        Err((step, error)) => {
            Change::Swap(format!("{} refuses to change live text: {step}: {error}", who_refuses()))
        }
    };
    Ok(Policy { source, change })
}

/// The step that failed, and why.
type Failure = (&'static str, io::Error);

fn probe_anonymous() -> Result<(), Failure> {
    let mut scratch = reserve(None, PAGE).map_err(|error| ("mmap of a writable page", error))?;
    scratch.write(scratch.start, &[0xc3]);
    scratch.fill();
    scratch.protect(READ_EXECUTE).map_err(|error| ("mprotect from writable to executable", error))
}

fn probe_memory_file() -> Result<(), Failure> {
    let file = memory_file(&[0xc3; PAGE as usize]).map_err(|error| ("memfd_create", error))?;
    let scratch = reserve(None, PAGE).map_err(|error| ("mmap of a page", error))?;
    scratch.map(&file).map_err(|error| ("mmap of an executable file page", error))
}

/// The first page of this program's file, mapped as text is and changed as a
/// patch would: SELinux asks for `execmod` when such a page becomes executable again.
fn probe_live_text() -> Result<(), Failure> {
    let file =
        std::fs::File::open("/proc/self/exe").map_err(|error| ("open of /proc/self/exe", error))?;
    let scratch = reserve(None, PAGE).map_err(|error| ("mmap of a page", error))?;
    let start = scratch.start;
    scratch.map(&file).map_err(|error| ("mmap of text", error))?;
    scratch
        .protect(Protection { write: true, ..READ_EXECUTE })
        .map_err(|error| ("mprotect of text to writable and executable", error))?;
    // SAFETY: the page is mapped, writable, and this function's alone.
    let byte = unsafe { AtomicU8::from_ptr(start as *mut u8) };
    byte.store(byte.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    scratch
        .protect(READ_EXECUTE)
        .map_err(|error| ("mprotect of changed text back to executable", error))
}

const READ_EXECUTE: Protection = Protection { read: true, write: false, execute: true };

/// Who the refusal comes from, as far as it can be seen.
fn who_refuses() -> &'static str {
    const PR_GET_MDWE: i32 = 66;
    // SAFETY: it only reads a flag of this process; kernels that lack it say -1.
    let mdwe = unsafe { libc::prctl(PR_GET_MDWE, 0_usize, 0_usize, 0_usize, 0_usize) };
    if mdwe > 0 {
        return "the memory-deny-write-execute flag of this process (PR_SET_MDWE)";
    }
    let file = |path| std::fs::read_to_string(path).unwrap_or_default();
    if file("/proc/thread-self/status")
        .lines()
        .any(|line| line.starts_with("Seccomp:") && line.trim_end().ends_with('2'))
    {
        return "a seccomp filter (systemd's MemoryDenyWriteExecute is one)";
    }
    if file("/sys/fs/selinux/enforce").trim() == "1" {
        return "SELinux (execmem or execmod)";
    }
    "the system"
}

/// Memory for code that is not there yet. Dropped before it is sealed, it is given back.
#[derive(Debug)]
pub struct Reserved {
    /// Its first address.
    pub start: u64,
    /// What will be there.
    staged: Vec<u8>,
    /// Which of its pages hold anything.
    used: Vec<bool>,
    keep: bool,
}

/// Reserves whole pages: at an address where nothing is mapped, or anywhere.
pub fn reserve(at: Option<u64>, length: u64) -> io::Result<Reserved> {
    let hint = at.unwrap_or(0) as *mut c_void;
    let fixed = if at.is_some() { MapFlags::FIXED_NOREPLACE } else { MapFlags::empty() };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: FIXED_NOREPLACE, or no fixed address: nothing that is mapped is touched.
    let got =
        unsafe { mmap_anonymous(hint, length as usize, protection, MapFlags::PRIVATE | fixed) }?;
    // What is not written traps, should anything ever go there.
    let reserved = Reserved {
        start: got as u64,
        staged: vec![0xcc; length as usize],
        used: vec![false; (length / PAGE) as usize],
        keep: false,
    };
    match at {
        // Kernels before 4.17 take the flag for a hint.
        Some(at) if at != reserved.start => Err(io::ErrorKind::AddrInUse.into()),
        _ => Ok(reserved),
    }
}

impl Reserved {
    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<u64> {
        self.start..self.start + self.staged.len() as u64
    }

    /// Stages code for an address in it; what lies outside is cut off.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        let offset = address.wrapping_sub(self.start) as usize;
        for (to, from) in self.staged.iter_mut().skip(offset).zip(bytes) {
            *to = *from;
        }
        let end = offset.saturating_add(bytes.len());
        let pages = offset / PAGE as usize..end.div_ceil(PAGE as usize);
        self.used.iter_mut().take(pages.end).skip(pages.start).for_each(|used| *used = true);
    }

    /// Puts the staged bytes in place, while the memory is writable and not executable.
    fn fill(&mut self) {
        let pages = self.staged.chunks(PAGE as usize).zip(&self.used).enumerate();
        for (index, (page, _)) in pages.filter(|(_, (_, used))| **used) {
            let to = (self.start + index as u64 * PAGE) as *mut u8;
            // SAFETY: a page of a mapping as long as what is staged, which is writable
            // until it is sealed, and nobody else knows of it.
            unsafe { std::ptr::copy_nonoverlapping(page.as_ptr(), to, page.len()) };
        }
    }

    fn protect(&self, protection: Protection) -> io::Result<()> {
        // SAFETY: it is ours, and nobody uses it yet.
        unsafe { protect(self.start, self.staged.len() as u64, protection) }
    }

    /// Maps a file over it, executable.
    fn map(&self, file: impl AsFd) -> io::Result<()> {
        // SAFETY: it is ours, and nobody uses it yet.
        unsafe { map_over(file, self.start, self.staged.len() as u64, READ_EXECUTE) }
    }

    /// Makes the pages that hold something executable, for ever, and gives the others back.
    pub fn seal(mut self, source: &Source) -> io::Result<()> {
        match source {
            Source::Anonymous => {
                self.fill();
                self.protect(READ_EXECUTE)?;
            }
            Source::MemoryFile => self.map(memory_file(&self.staged)?)?,
        }
        self.keep = true;
        let mut start = self.start;
        for pages in self.used.chunk_by(|one, next| one == next) {
            let length = pages.len() * PAGE as usize;
            if !pages[0] {
                // SAFETY: pages of ours in which nothing was put, so that nobody goes there.
                // There is nothing to be done if the kernel refuses.
                let _ = unsafe { munmap(start as *mut c_void, length) };
            }
            start += length as u64;
        }
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.keep {
            // SAFETY: it is our mapping, and no code was ever run in it. There
            // is nothing to be done if the kernel refuses.
            let _ = unsafe { munmap(self.start as *mut c_void, self.staged.len()) };
        }
    }
}

/// Changes what pages may be used for.
///
/// # Safety
///
/// No access that others rely on is taken away.
pub unsafe fn protect(start: u64, length: u64, protection: Protection) -> io::Result<()> {
    let mut flags = MprotectFlags::empty();
    flags.set(MprotectFlags::READ, protection.read);
    flags.set(MprotectFlags::WRITE, protection.write);
    flags.set(MprotectFlags::EXEC, protection.execute);
    // SAFETY: the caller's promise.
    Ok(unsafe { mprotect(start as *mut c_void, length as usize, flags) }?)
}

/// Maps a page with the given content over another, in one step.
///
/// # Safety
///
/// The address is that of a page, and whoever uses it can go on with the new content.
pub unsafe fn swap_page(
    address: u64,
    content: &[u8],
    protection: Protection,
    source: &Source,
) -> io::Result<()> {
    if *source == Source::MemoryFile {
        // SAFETY: the caller's promise.
        return unsafe { map_over(memory_file(content)?, address, PAGE, protection) };
    }
    let mut copy = reserve(None, PAGE)?;
    copy.write(copy.start, content);
    copy.fill();
    copy.protect(protection)?;
    // SAFETY: the copy is ours and moves as a whole; for what it replaces, the
    // caller's promise. Threads that run there wait for the kernel meanwhile.
    unsafe {
        mremap_fixed(
            copy.start as *mut c_void,
            PAGE as usize,
            PAGE as usize,
            MremapFlags::MAYMOVE,
            address as *mut c_void,
        )
    }?;
    copy.keep = true;
    Ok(())
}

fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    use std::io::Write as _;
    let mut file = std::fs::File::from(memfd_create("hook-runtime", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    Ok(file.into())
}

/// # Safety
///
/// As for [`swap_page`], of all pages in the range.
unsafe fn map_over(
    file: impl AsFd,
    at: u64,
    length: u64,
    protection: Protection,
) -> io::Result<()> {
    let mut flags = ProtFlags::empty();
    flags.set(ProtFlags::READ, protection.read);
    flags.set(ProtFlags::WRITE, protection.write);
    flags.set(ProtFlags::EXEC, protection.execute);
    let at = at as *mut c_void;
    // SAFETY: the caller's promise.
    unsafe { mmap(at, length as usize, flags, MapFlags::PRIVATE | MapFlags::FIXED, file, 0) }?;
    Ok(())
}

#[cfg(test)]
mod tests;
