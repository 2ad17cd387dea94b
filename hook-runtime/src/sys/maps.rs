//! The memory map of a process: `/proc/self/maps` as data.
//!
//! The parser is pure, line by line, and never fails on what a kernel may add
//! later behind the fields it knows. What to do with the regions is left to
//! the callers.

use std::io;
use std::ops::Range;
use std::str::FromStr;

/// What a region of memory may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Protection {
    /// The region can be read.
    pub read: bool,
    /// The region can be written.
    pub write: bool,
    /// The region can be executed.
    pub execute: bool,
}

impl Protection {
    /// True for memory that can be changed and run at the same time.
    #[must_use]
    pub fn is_writable_and_executable(self) -> bool {
        self.write && self.execute
    }
}

/// One line of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapsEntry {
    /// The addresses that belong to the region. Invariant: `start < end`.
    pub range: Range<u64>,
    /// What it may be used for.
    pub protection: Protection,
    /// True for `MAP_SHARED`: a write would reach the file.
    pub shared: bool,
    /// The offset of the region's first byte in its file.
    pub offset: u64,
    /// The inode of its file, 0 for anonymous memory.
    pub inode: u64,
    /// The path or the kernel's name in brackets; empty for anonymous memory.
    pub path: String,
}

impl MapsEntry {
    /// True if the address lies in the region.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.range.contains(&address)
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX)
    }
}

/// Why a line is not one of a memory map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read `{line}` as a line of a memory map: {what}")]
pub struct ParseError {
    /// The line.
    pub line: String,
    /// What was missing or wrong in it.
    pub what: &'static str,
}

impl FromStr for MapsEntry {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        let fail = |what| ParseError { line: line.to_owned(), what };
        let (range, rest) = next_field(line).ok_or_else(|| fail("no address range"))?;
        let (start, end) =
            range.split_once('-').ok_or_else(|| fail("no `-` in the address range"))?;
        let start =
            u64::from_str_radix(start, 16).map_err(|_| fail("the start is not hexadecimal"))?;
        let end = u64::from_str_radix(end, 16).map_err(|_| fail("the end is not hexadecimal"))?;
        if start >= end {
            return Err(fail("the end is not above the start"));
        }
        let (flags, rest) = next_field(rest).ok_or_else(|| fail("no permissions"))?;
        let &[read, write, execute, sharing, ..] = flags.as_bytes() else {
            return Err(fail("fewer than four permissions"));
        };
        let (offset, rest) = next_field(rest).ok_or_else(|| fail("no offset"))?;
        let offset =
            u64::from_str_radix(offset, 16).map_err(|_| fail("the offset is not hexadecimal"))?;
        let (_device, rest) = next_field(rest).ok_or_else(|| fail("no device"))?;
        let (inode, rest) = next_field(rest).ok_or_else(|| fail("no inode"))?;
        let inode = inode.parse().map_err(|_| fail("the inode is not a number"))?;
        Ok(Self {
            range: start..end,
            protection: Protection {
                read: read == b'r',
                write: write == b'w',
                execute: execute == b'x',
            },
            shared: sharing == b's',
            offset,
            inode,
            // A path may hold blanks, so it is everything that is left.
            path: rest.trim_start().to_owned(),
        })
    }
}

/// The text up to the next blank, and what follows it.
fn next_field(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(' ');
    let (field, rest) = text.split_once(' ').unwrap_or((text, ""));
    (!field.is_empty()).then_some((field, rest))
}

/// Reads a whole map. Lines that are not understood are left out: a caller that
/// finds no region for an address refuses, which is the safe direction.
#[must_use]
pub fn parse(text: &str) -> Vec<MapsEntry> {
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The map of this process, sorted by address as the kernel gives it.
pub fn read_self() -> io::Result<Vec<MapsEntry>> {
    use std::io::Read as _;
    // The kernel tells no size, so that room for the most of it is asked for at once.
    let mut bytes = Vec::with_capacity(64 << 10);
    std::fs::File::open("/proc/self/maps")?.read_to_end(&mut bytes)?;
    // Paths need not be UTF-8; what they say is only shown.
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

/// Whether CUDA may have put memory into a region: its driver maps its own files, and
/// reserves addresses of device memory by regions that the processor cannot touch. So do
/// others (threads' guard pages), and this cannot tell them apart.
#[must_use]
pub fn may_be_reserved_by_cuda(region: &MapsEntry) -> bool {
    region.protection == Protection::default() || region.path.starts_with("/dev/nvidia")
}

/// The region that holds an address, in a sorted map.
#[must_use]
pub fn find(map: &[MapsEntry], address: u64) -> Option<&MapsEntry> {
    let next = map.partition_point(|entry| entry.range.start <= address);
    map[..next].last().filter(|entry| entry.contains(address))
}

#[cfg(test)]
mod tests;
