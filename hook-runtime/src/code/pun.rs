//! Displacements that are traps: where an island has to lie so that a thread
//! which was stopped inside the replaced bytes wakes up in a trap.
//!
//! The four displacement bytes of `jmp rel32` follow from the island's address,
//! which is ours to choose. Where a former instruction began inside the jump,
//! the byte there is made one that traps, whatever follows it; the signal's
//! handler then sends the thread on to the same instruction in the trampoline.
//! Known as instruction punning. Finding free memory is left to the caller.

use std::ops::Range;

use super::jump;

/// A byte that stops a thread that executes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `int3`: the thread is told one byte further on.
    Trap,
    /// No instruction in 64-bit mode: the thread is told at the byte itself.
    IllegalInstruction,
}

/// `int3`.
pub const INT3: u8 = 0xcc;

/// One-byte opcodes that exist in 32-bit mode alone, in ascending order. Those
/// that became prefixes of something (62, c4, c5, d5) or take operands are left out.
const INVALID: [u8; 15] =
    [0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0xce, 0xd6];

/// `int3` and all of `INVALID`, in ascending order.
const ALL: [u8; 16] = [
    0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, INT3, 0xce, 0xd6,
];

/// Which traps may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traps {
    /// `int3` alone: SIGTRAP is the signal that programs use least.
    Int3,
    /// Every trap: many more places for an island, at the price of a SIGILL handler.
    All,
}

impl Traps {
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Int3 => &[INT3],
            Self::All => &ALL,
        }
    }
}

/// The signal that a byte causes when a thread executes it, if it is a trap.
#[must_use]
pub fn signal_of(byte: u8) -> Option<Signal> {
    match byte {
        INT3 => Some(Signal::Trap),
        byte if INVALID.contains(&byte) => Some(Signal::IllegalInstruction),
        _ => None,
    }
}

/// What an island's address has to satisfy.
#[derive(Debug, Clone)]
pub struct Search {
    /// The end of the jump, from which its displacement counts.
    next: u64,
    /// For each displacement byte, from the lowest, whether it must be a trap.
    trapped: [bool; 4],
    traps: Traps,
}

impl Search {
    /// An island for the jump at `from`, with a trap at each of `boundaries`,
    /// which are offsets from `from`. `None` if one of them is not a
    /// displacement byte.
    #[must_use]
    pub fn new(from: u64, boundaries: &[usize], traps: Traps) -> Option<Self> {
        let mut trapped = [false; 4];
        for &boundary in boundaries {
            *trapped.get_mut(boundary.checked_sub(1)?)? = true;
        }
        Some(Self { next: from.checked_add(jump::NEAR as u64)?, trapped, traps })
    }

    /// True if some byte has to be a trap.
    #[must_use]
    pub fn is_constrained(&self) -> bool {
        self.trapped.contains(&true)
    }

    /// Whether another search is for the same traps, and so near that it has hardly any
    /// other places to choose from.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        const NEAR: u64 = 64 << 10;
        self.trapped == other.trapped
            && self.traps == other.traps
            && self.next.abs_diff(other.next) < NEAR
    }

    /// All addresses that the jump reaches.
    #[must_use]
    pub fn reach(&self) -> Range<u64> {
        self.next.saturating_sub(1 << 31)..self.next.saturating_add(1 << 31)
    }

    /// The lowest address in `within` where an island can begin.
    #[must_use]
    pub fn first(&self, within: Range<u64>) -> Option<u64> {
        let reach = self.reach();
        let start = within.start.max(reach.start);
        let end = within.end.min(reach.end);
        // A displacement is looked for as an unsigned number, so the part
        // below the jump and the part above it are two runs of it.
        [(start, end.min(self.next)), (start.max(self.next), end)]
            .into_iter()
            .filter(|(start, end)| start < end)
            .find_map(|(start, end)| {
                // The cast keeps the low 32 bits, which are the displacement.
                let lowest = start.wrapping_sub(self.next) as u32;
                let found = self.next_displacement(lowest)?;
                let address = start + u64::from(found - lowest);
                (address < end).then_some(address)
            })
    }

    /// The lowest displacement from `lowest` up with traps where they are wanted.
    fn next_displacement(&self, lowest: u32) -> Option<u32> {
        self.fill(3, lowest.to_le_bytes(), true)
    }

    /// Chooses the byte at `position` and those below it. While `tight`, the
    /// bytes above equal the bound's, so this one must not be below the bound's.
    fn fill(&self, position: usize, bound: [u8; 4], tight: bool) -> Option<u32> {
        let least = if tight { bound[position] } else { 0 };
        let mut choice = self.allowed(position, least)?;
        loop {
            let rest = match position.checked_sub(1) {
                Some(below) => self.fill(below, bound, tight && choice == least),
                None => Some(0),
            };
            if let Some(rest) = rest {
                return Some(u32::from(choice) << (8 * position) | rest);
            }
            choice = self.allowed(position, choice.checked_add(1)?)?;
        }
    }

    /// The lowest byte that may stand at a position, from `least` up.
    fn allowed(&self, position: usize, least: u8) -> Option<u8> {
        if !self.trapped[position] {
            return Some(least);
        }
        self.traps.bytes().iter().copied().find(|&byte| byte >= least)
    }
}

#[cfg(test)]
mod tests;
