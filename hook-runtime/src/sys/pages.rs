//! Storing a pointer into a page that is read-only after relocation.
//!
//! The protection that the page has at that moment is looked up, not assumed,
//! and given back afterwards.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::MprotectFlags;

/// Why a slot could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The slot does not lie on a pointer's boundary, so that a store would not be atomic.
    #[error("the slot is not aligned")]
    Unaligned,
    /// No mapping holds the slot.
    #[error("the slot is not mapped")]
    Unmapped,
    /// The kernel refused to make the page writable.
    #[error("the page cannot be made writable: {0}")]
    Refused(Errno),
    /// The slot was written, but the page's protection could not be given back.
    #[error("the page's protection could not be restored: {0}")]
    NotRestored(Errno),
}

/// The protections of this process's memory, read once when they are first asked for. They
/// must not be kept longer than the caller can vouch for the mappings.
#[derive(Debug, Default)]
pub struct Protections {
    known: Option<Vec<Mapping>>,
}

impl Protections {
    fn of(&mut self, address: usize) -> Result<MprotectFlags, StoreError> {
        let known = match &self.known {
            Some(known) => known,
            None => self.known.insert(mappings()?),
        };
        let next = known.partition_point(|mapping| mapping.range.start <= address);
        let holding = known[..next].last().filter(|mapping| mapping.range.contains(&address));
        holding.map(|mapping| mapping.protection).ok_or(StoreError::Unmapped)
    }
}

/// Writes slots, one after the other. A page that is not writable becomes so while
/// consecutive slots lie in it, and gets its protection back with the first slot
/// elsewhere, with [`SlotWriter::finish`] or when the writer is dropped.
#[derive(Debug)]
pub struct SlotWriter<'known> {
    protections: &'known mut Protections,
    /// The page that was made writable, and what it was before.
    open: Option<(usize, MprotectFlags)>,
}

/// A range of addresses with one protection.
#[derive(Debug, Clone)]
struct Mapping {
    range: Range<usize>,
    protection: MprotectFlags,
}

impl<'known> SlotWriter<'known> {
    /// A writer that believes these protections.
    pub fn new(protections: &'known mut Protections) -> Self {
        Self { protections, open: None }
    }

    /// Stores `value` into the pointer-sized slot at `address`.
    ///
    /// # Safety
    ///
    /// `address` is a slot that holds a pointer, in a mapping that stays in place
    /// as long as this writer, and nobody else changes its protection meanwhile.
    pub unsafe fn store(&mut self, address: usize, value: usize) -> Result<(), StoreError> {
        if !address.is_multiple_of(align_of::<usize>()) {
            return Err(StoreError::Unaligned);
        }
        let page = address & !(rustix::param::page_size() - 1);
        if self.open.is_none_or(|(open, _)| open != page) {
            self.close()?;
            let protection = self.protections.of(address)?;
            if !protection.contains(MprotectFlags::WRITE) {
                protect(page, protection | MprotectFlags::WRITE).map_err(StoreError::Refused)?;
                self.open = Some((page, protection));
            }
        }
        // SAFETY: the caller vouches for the slot; it is aligned, mapped, writable.
        unsafe { store_pointer(address, value) };
        Ok(())
    }

    /// Gives the last page its protection back.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        match self.open.take() {
            Some((page, before)) => protect(page, before).map_err(StoreError::NotRestored),
            None => Ok(()),
        }
    }
}

impl Drop for SlotWriter<'_> {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// Sets the protection of one page. It either gains the permission to be written
/// for a moment, or gets back what it had: nobody who uses it can notice.
fn protect(page: usize, protection: MprotectFlags) -> Result<(), Errno> {
    let length = rustix::param::page_size();
    // SAFETY: the page belongs to a mapping that was just found in place, and it
    // never loses a permission that it had before the writer came.
    unsafe { rustix::mm::mprotect(page as *mut c_void, length, protection) }
}

/// # Safety
///
/// `address` is aligned for a pointer and writable.
unsafe fn store_pointer(address: usize, value: usize) {
    // SAFETY: by the caller's word; other threads only ever read the slot as a
    // whole pointer, which is what an atomic store gives them.
    let slot = unsafe { AtomicUsize::from_ptr(address as *mut usize) };
    slot.store(value, Ordering::Release);
}

/// All mappings, in ascending order.
fn mappings() -> Result<Vec<Mapping>, StoreError> {
    let maps =
        rustix::fs::open(c"/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(StoreError::Refused)?;
    let mut scanner = MapsScanner::new();
    let mut found = Vec::with_capacity(512);
    let mut buffer = [0_u8; 4096];
    loop {
        match rustix::io::read(&maps, &mut buffer) {
            Ok(0) => return Ok(found),
            Ok(length) => scanner.feed(&buffer[..length], &mut found),
            Err(Errno::INTR) => {}
            Err(error) => return Err(StoreError::Refused(error)),
        }
    }
}

/// Reads the text of `/proc/self/maps`, however it is cut into pieces.
struct MapsScanner {
    range: [usize; 2],
    field: Field,
    flags: MprotectFlags,
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Start,
    End,
    Flags,
    Rest,
}

impl MapsScanner {
    fn new() -> Self {
        Self { range: [0; 2], field: Field::Start, flags: MprotectFlags::empty() }
    }

    fn feed(&mut self, mut text: &[u8], found: &mut Vec<Mapping>) {
        while let Some((&byte, rest)) = text.split_first() {
            text = rest;
            match (self.field, byte) {
                (Field::Rest, _) => {
                    let end = std::iter::once(&byte).chain(rest).position(|&byte| byte == b'\n');
                    let Some(end) = end else { return };
                    text = &rest[end..];
                    *self = Self::new();
                }
                (Field::Start, b'-') => self.field = Field::End,
                (Field::End, b' ') => self.field = Field::Flags,
                (Field::Flags, b' ') => {
                    self.field = Field::Rest;
                    let range = self.range[0]..self.range[1];
                    found.push(Mapping { range, protection: self.flags });
                }
                (Field::Start, _) => self.digit(0, byte),
                (Field::End, _) => self.digit(1, byte),
                (Field::Flags, b'r') => self.flags |= MprotectFlags::READ,
                (Field::Flags, b'w') => self.flags |= MprotectFlags::WRITE,
                (Field::Flags, b'x') => self.flags |= MprotectFlags::EXEC,
                (Field::Flags, _) => {}
            }
        }
    }

    fn digit(&mut self, which: usize, byte: u8) {
        let digit = (byte as char).to_digit(16).unwrap_or(0) as usize;
        self.range[which] = (self.range[which] << 4) | digit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c8a00000-55d0c8a02000 r--p 00000000 08:01 131 /usr/bin/true
55d0c8a02000-55d0c8a06000 r-xp 00002000 08:01 131 /usr/bin/true
55d0c8a09000-55d0c8a0a000 rw-p 00008000 08:01 131 /usr/bin/true
7ffd1c1f0000-7ffd1c211000 ---p 00000000 00:00 0 [stack]
";

    fn scan(address: usize, piece: usize) -> Option<MprotectFlags> {
        let (mut scanner, mut found) = (MapsScanner::new(), Vec::new());
        MAPS.as_bytes().chunks(piece).for_each(|text| scanner.feed(text, &mut found));
        assert_eq!(found.len(), 4);
        Protections { known: Some(found) }.of(address).ok()
    }

    #[test]
    fn protection_is_found_however_the_text_is_cut() {
        for piece in [1, 7, 64, 4096] {
            assert_eq!(scan(0x55d0_c8a0_0010, piece), Some(MprotectFlags::READ));
            let code = Some(MprotectFlags::READ | MprotectFlags::EXEC);
            assert_eq!(scan(0x55d0_c8a0_5fff, piece), code);
            let data = Some(MprotectFlags::READ | MprotectFlags::WRITE);
            assert_eq!(scan(0x55d0_c8a0_9000, piece), data);
            assert_eq!(scan(0x7ffd_1c1f_0000, piece), Some(MprotectFlags::empty()));
            assert_eq!(scan(0x55d0_c8a0_6000, piece), None);
        }
    }

    fn protection_now(address: usize) -> MprotectFlags {
        Protections::default().of(address).unwrap()
    }

    #[test]
    fn read_only_pages_are_written_and_read_only_again() {
        let size = rustix::param::page_size();
        // SAFETY: a fresh private mapping at an address that the kernel chooses.
        let pages = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                2 * size,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::PRIVATE,
            )
        }
        .unwrap() as usize;
        let mut protections = Protections::default();
        let mut writer = SlotWriter::new(&mut protections);
        let slots = [pages + 64, pages + 72, pages + size];
        for slot in slots {
            // SAFETY: the slots lie in the mapping made above, which only this test uses.
            unsafe { writer.store(slot, slot + 1) }.unwrap();
        }
        assert_eq!(protection_now(pages), MprotectFlags::READ);
        assert_eq!(protection_now(pages + size), MprotectFlags::READ | MprotectFlags::WRITE);
        // SAFETY: a slot that is not aligned is refused before it is touched.
        assert_eq!(unsafe { writer.store(pages + 1, 1) }, Err(StoreError::Unaligned));
        writer.finish().unwrap();
        assert_eq!(protection_now(pages + size), MprotectFlags::READ);
        for slot in slots {
            // SAFETY: the page is readable and holds an aligned `usize` there.
            assert_eq!(unsafe { *(slot as *const usize) }, slot + 1);
        }
    }
}
