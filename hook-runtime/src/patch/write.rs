//! Writing into code that others execute.
//!
//! The pages are made writable once for a whole pass and get the protection
//! back that they had; where a page may not be writable and executable even for
//! a moment, a patched copy is mapped over it instead.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::sys::exec_memory::{Change, PAGE, Policy, protect, swap_page};
use crate::sys::maps::{self, MapsEntry, Protection};

/// Pages of code that are being changed.
pub(super) struct Writer<'p> {
    policy: &'p Policy,
    /// Runs of pages with the protection that they had.
    runs: Vec<(Range<u64>, Protection)>,
}

impl<'p> Writer<'p> {
    /// Opens the pages that hold `ranges`. On an error none is left open.
    pub(super) fn open(
        policy: &'p Policy,
        map: &[MapsEntry],
        ranges: impl Iterator<Item = Range<u64>>,
    ) -> io::Result<Self> {
        let runs = runs(map, ranges);
        let mut writer = Self { policy, runs: Vec::new() };
        if policy.change == Change::InPlace {
            for (run, protection) in &runs {
                let open = Protection { write: true, ..*protection };
                // SAFETY: it only adds a permission.
                let opened = unsafe { protect(run.start, run.end - run.start, open) };
                if let Err(error) = opened {
                    // The first error is the one to tell.
                    let _ = writer.close();
                    return Err(error);
                }
                writer.runs.push((run.clone(), *protection));
            }
        } else {
            writer.runs = runs;
        }
        Ok(writer)
    }

    /// Writes each piece: by one store if it lies in one aligned word, else byte by byte.
    pub(super) fn write(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        if self.policy.change == Change::InPlace {
            for (address, bytes) in pieces {
                store(*address, bytes);
            }
            return Ok(());
        }
        let mut pages: BTreeMap<u64, Vec<(u64, &[u8])>> = BTreeMap::new();
        for (address, bytes) in pieces {
            for page in pages_of(&(*address..*address + bytes.len() as u64)) {
                pages.entry(page).or_default().push((*address, bytes));
            }
        }
        for (page, pieces) in pages {
            let mut content = read(page, PAGE as usize);
            for (address, bytes) in pieces {
                for (at, byte) in (address..).zip(bytes) {
                    if (page..page + PAGE).contains(&at) {
                        content[(at - page) as usize] = *byte;
                    }
                }
            }
            let protection = self
                .runs
                .iter()
                .find(|(run, _)| run.contains(&page))
                .map(|(_, protection)| *protection);
            let protection = protection.unwrap_or_default();
            // SAFETY: a page that `open` was given; the steps of the plan make
            // every state of it one that threads can be in.
            unsafe { swap_page(page, &content, protection, &self.policy.source) }?;
        }
        Ok(())
    }

    /// Gives every page the protection back that it had.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if self.policy.change != Change::InPlace {
            return Ok(());
        }
        let mut result = Ok(());
        for (run, protection) in self.runs.drain(..) {
            // SAFETY: what the pages had before `open` added to it.
            result = result.and(unsafe { protect(run.start, run.end - run.start, protection) });
        }
        result
    }
}

/// Runs of pages that hold `ranges`, with their protections. Opening and closing a run costs
/// the same however long it is, and pages alone cut their mapping into pieces; so pages of
/// one mapping that are not far apart make one run.
fn runs(
    map: &[MapsEntry],
    ranges: impl Iterator<Item = Range<u64>>,
) -> Vec<(Range<u64>, Protection)> {
    const FAR: u64 = 4 << 20;
    let pages: BTreeMap<u64, &MapsEntry> = ranges
        .flat_map(|range| pages_of(&range))
        .filter_map(|page| Some((page, maps::find(map, page)?)))
        .collect();
    let mut runs: Vec<(Range<u64>, Protection)> = Vec::new();
    for (page, entry) in pages {
        match runs.last_mut() {
            Some((run, _)) if entry.contains(run.start) && page - run.end < FAR => {
                run.end = page + PAGE;
            }
            Some((run, same)) if run.end == page && *same == entry.protection => {
                run.end += PAGE;
            }
            _ => runs.push((page..page + PAGE, entry.protection)),
        }
    }
    runs
}

fn pages_of(range: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    let first = range.start & !(PAGE - 1);
    (first..range.end).step_by(PAGE as usize)
}

/// Reads code. Somebody else's patcher could write meanwhile, so each byte is read once.
pub(super) fn read(address: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    let mut at = address;
    while at < address + length as u64 {
        if at.is_multiple_of(8) && address + length as u64 - at >= 8 {
            // SAFETY: the callers give addresses that the memory map has as readable; aligned.
            let word = unsafe { std::ptr::read_volatile(at as *const u64) };
            bytes.extend_from_slice(&word.to_le_bytes());
            at += 8;
        } else {
            // SAFETY: the callers give addresses that the memory map has as readable.
            bytes.push(unsafe { std::ptr::read_volatile(at as *const u8) });
            at += 1;
        }
    }
    bytes
}

fn store(address: u64, bytes: &[u8]) {
    let word = address & !7;
    let offset = (address - word) as usize;
    if bytes.len() > 1 && offset + bytes.len() <= 8 {
        // SAFETY: an aligned word in a page that `open` has made writable, and
        // that nobody but the holder of the lock writes.
        let word = unsafe { AtomicU64::from_ptr(word as *mut u64) };
        let mut value = word.load(Ordering::Relaxed).to_le_bytes();
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(value), Ordering::Release);
        return;
    }
    if bytes.len() > 1 && fits_wide_store(address, bytes.len()) {
        // SAFETY: the processor has the instruction, and the sixteen bytes lie
        // in a page that `open` has made writable.
        unsafe { store_wide(address, bytes) };
        return;
    }
    for (at, byte) in (address..).zip(bytes) {
        // SAFETY: a byte in a page that `open` has made writable.
        let to = unsafe { AtomicU8::from_ptr(at as *mut u8) };
        to.store(*byte, Ordering::Release);
    }
}

/// True if [`store`] writes these bytes by one store of sixteen.
pub(super) fn fits_wide_store(address: u64, length: usize) -> bool {
    address % 16 + length as u64 <= 16 && std::arch::is_x86_feature_detected!("cmpxchg16b")
}

/// # Safety
///
/// The aligned sixteen bytes around `address` are writable, and written by
/// nobody else; the processor has `cmpxchg16b`.
unsafe fn store_wide(address: u64, bytes: &[u8]) {
    let unit = (address & !15) as *mut u128;
    let offset = (address & 15) as usize;
    // SAFETY: the caller's promise; a plain read, since only we write.
    let old = unsafe { unit.read() };
    let mut new = old.to_le_bytes();
    new[offset..offset + bytes.len()].copy_from_slice(bytes);
    let new = u128::from_le_bytes(new);
    // The instruction wants its low half in `rbx`, which the compiler keeps for
    // itself. (The intrinsic needs libatomic in unoptimised builds.)
    // SAFETY: the caller's promise. Nobody else writes, so it succeeds.
    unsafe {
        std::arch::asm!(
            "xchg {low}, rbx",
            "lock cmpxchg16b [{unit}]",
            "mov rbx, {low}",
            unit = in(reg) unit,
            low = inout(reg) new as u64 => _,
            in("rcx") (new >> 64) as u64,
            inout("rax") old as u64 => _,
            inout("rdx") (old >> 64) as u64 => _,
            options(nostack),
        );
    }
}
