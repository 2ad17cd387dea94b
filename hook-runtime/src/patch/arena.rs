//! Islands and trampolines: small pieces of code in blocks near their targets.
//!
//! A block is reserved in a gap of the memory map, filled by one transaction,
//! sealed by it, and then lives for ever: a thread may be in a trampoline, or
//! hold a pointer to one, at any later time.

use std::ops::Range;

use crate::code::jump;
use crate::code::pun::Search;
use crate::sys::exec_memory::{PAGE, Reserved, Source, reserve};
use crate::sys::maps::MapsEntry;

use super::plan::Space;

/// The size of a block. Pages of it that stay empty cost no memory.
const BLOCK: u64 = 4 * PAGE;

/// Addresses left free above the heap and below the stack, which grow there.
const GROWTH: u64 = 1 << 30;

/// The addresses that a program may map: not the first page, not the kernel's half.
const USABLE: Range<u64> = 0x1_0000..0x7fff_ffff_0000;

/// How often a gap that turns out to be taken is tried elsewhere.
const TRIES: usize = 64;

/// The gaps of a memory map where a block may go, in ascending order.
#[must_use]
pub(super) fn gaps(map: &[MapsEntry]) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut start = USABLE.start;
    for entry in map {
        let end = if entry.path == "[stack]" {
            entry.range.start.saturating_sub(GROWTH)
        } else {
            entry.range.start
        };
        if start + BLOCK <= end.min(USABLE.end) {
            gaps.push(start..end.min(USABLE.end));
        }
        start = start.max(entry.range.end);
        if entry.path == "[heap]" {
            start += GROWTH;
        }
    }
    if start + BLOCK <= USABLE.end {
        gaps.push(start..USABLE.end);
    }
    gaps
}

/// A block that is being filled.
#[derive(Debug)]
struct Block {
    reserved: Reserved,
    /// What is free of it, in ascending order.
    free: Vec<Range<u64>>,
}

impl Block {
    fn take(&mut self, wanted: Range<u64>) {
        self.free = self
            .free
            .iter()
            .flat_map(|free| {
                [free.start..wanted.start.min(free.end), wanted.end.max(free.start)..free.end]
            })
            .filter(|free| free.start < free.end)
            .collect();
    }
}

/// The blocks of one transaction.
#[derive(Debug)]
pub(super) struct Arena {
    gaps: Vec<Range<u64>>,
    blocks: Vec<Block>,
    /// Searches for islands that found no place.
    hopeless: Vec<Search>,
}

impl Arena {
    pub(super) fn new(map: &[MapsEntry]) -> Self {
        Self { gaps: gaps(map), blocks: Vec::new(), hopeless: Vec::new() }
    }

    /// Stages code at an address that was handed out.
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        for block in &mut self.blocks {
            if block.reserved.range().contains(&address) {
                block.reserved.write(address, bytes);
            }
        }
    }

    /// Makes everything executable, for ever.
    pub(super) fn seal(self, source: &Source) -> std::io::Result<()> {
        self.blocks.into_iter().try_for_each(|block| block.reserved.seal(source))
    }

    /// Reserves a block around an address that lies in a gap. False if it is taken.
    fn open(&mut self, around: u64) -> bool {
        let Some(index) = self.gaps.iter().position(|gap| gap.contains(&around)) else {
            return false;
        };
        let gap = self.gaps[index].clone();
        let start = (around & !(PAGE - 1))
            .min((gap.end - BLOCK.min(gap.end - gap.start)) & !(PAGE - 1))
            .max(gap.start);
        let length = BLOCK.min(gap.end - start);
        // Whatever comes of it, this place is no gap any more.
        self.gaps.splice(
            index..=index,
            [gap.start..start, start + length..gap.end]
                .into_iter()
                .filter(|gap| gap.end - gap.start >= PAGE),
        );
        match reserve(Some(start), length) {
            Ok(reserved) => {
                let free = vec![reserved.range()];
                self.blocks.push(Block { reserved, free });
                true
            }
            Err(_) => false,
        }
    }

    /// Takes `length` bytes from the first block in which `choose` finds a place.
    fn take(&mut self, length: u64, choose: &dyn Fn(Range<u64>) -> Option<u64>) -> Option<u64> {
        self.blocks.iter_mut().find_map(|block| {
            let at = block
                .free
                .iter()
                .filter(|free| free.end - free.start >= length)
                .find_map(|free| choose(free.start..free.end - length + 1))?;
            block.take(at..at + length);
            Some(at)
        })
    }

    /// The same, and opens a block if there is none: in the gaps within
    /// `window`, the nearest to its middle first.
    fn take_or_open(
        &mut self,
        window: Range<u64>,
        length: u64,
        choose: &dyn Fn(Range<u64>) -> Option<u64>,
    ) -> Option<u64> {
        for _ in 0..TRIES {
            if let Some(at) = self.take(length, choose) {
                return Some(at);
            }
            let middle = window.start + (window.end - window.start) / 2;
            let mut parts: Vec<Range<u64>> = self
                .gaps
                .iter()
                .map(|gap| gap.start.max(window.start)..gap.end.min(window.end))
                .filter(|part| part.start + length < part.end)
                .collect();
            parts.sort_by_key(|part| distance(part, middle));
            let place = parts.into_iter().find_map(|part| choose(part.start..part.end - length))?;
            self.open(place);
        }
        None
    }
}

/// How far a range is from an address.
fn distance(range: &Range<u64>, from: u64) -> u64 {
    if range.contains(&from) { 0 } else { range.start.abs_diff(from).min(range.end.abs_diff(from)) }
}

/// The middle half of a range.
fn inner(range: &Range<u64>) -> Range<u64> {
    let quarter = (range.end - range.start) / 4;
    range.start + quarter..range.end - quarter
}

impl Space for Arena {
    fn island(&mut self, search: &Search) -> Option<u64> {
        let length = jump::INDIRECT as u64;
        let reach = search.reach();
        let choose = |within: Range<u64>| search.first(within);
        if search.is_constrained() {
            // What the neighbours have looked for in vain is not looked for again.
            if self.hopeless.iter().any(|earlier| earlier.is_like(search)) {
                return None;
            }
            let found = self.take_or_open(reach, length, &choose);
            if found.is_none() {
                self.hopeless.push(search.clone());
            }
            return found;
        }
        // An island that may be anywhere is better not at the end of the
        // reach: the trampoline can then be in the same block.
        let middle = inner(&reach);
        let choose_inner = |within: Range<u64>| {
            search.first(within.start.max(middle.start)..within.end.min(middle.end))
        };
        self.take_or_open(middle.clone(), length, &choose_inner)
            .or_else(|| self.take_or_open(reach, length, &choose))
    }

    fn trampoline(&mut self, window: Range<u64>, length: usize) -> Option<u64> {
        let length = (length as u64).next_multiple_of(16);
        let in_window = |window: Range<u64>| {
            // The last place, so that the first pages stay free for islands.
            move |within: Range<u64>| {
                let start = within.start.max(window.start);
                let end = within.end.min(window.end);
                let last = end.checked_sub(1)? & !15;
                (last >= start).then_some(last)
            }
        };
        let middle = inner(&window);
        self.take(length, &in_window(window.clone()))
            .or_else(|| self.take_or_open(middle.clone(), length, &in_window(middle)))
            .or_else(|| self.take_or_open(window.clone(), length, &in_window(window)))
    }
}

#[cfg(test)]
mod tests;
