//! What is said of a piece of memory.

use super::index::Range;

/// What kind of memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Host memory that CUDA knows nothing of.
    Host = 0,
    /// Page-locked host memory, or host memory that was mapped through the driver.
    Pinned = 1,
    /// Memory of a device.
    Device = 2,
    /// Managed memory.
    Managed = 3,
}

impl Kind {
    /// Each of them; a kind's number is its place.
    pub const ALL: [Self; 4] = [Self::Host, Self::Pinned, Self::Device, Self::Managed];

    /// Whether the processor can read and write it.
    pub fn is_host_accessible(self) -> bool {
        self != Self::Device
    }
}

/// What else is known, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u16);

impl Flags {
    /// `cuIpcGetMemHandle` takes it.
    pub const LEGACY_IPC: Self = Self(1);
    /// Mapped through the driver's virtual memory interface.
    pub const MAPPED: Self = Self(2);
    /// From a memory pool, or allocated in the order of a stream.
    pub const POOL: Self = Self(4);
    /// Can be handed on as a file descriptor.
    pub const POSIX_FD: Self = Self(8);
    /// Can be handed on over the fabric.
    pub const FABRIC: Self = Self(16);
    /// The range that was asked about spans several allocations.
    pub const SEVERAL: Self = Self(32);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set, and `other` if `when` says so.
    #[must_use]
    pub const fn with_if(self, other: Self, when: bool) -> Self {
        if when { self.with(other) } else { self }
    }

    /// This set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What both sets have.
    #[must_use]
    pub const fn shared(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` is in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A piece of memory that is one thing: an allocation, or a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// What kind it is.
    pub kind: Kind,
    /// The device, if there is one and it is known.
    pub device: Option<u16>,
    /// The first address of the allocation.
    pub base: usize,
    /// Its length.
    pub length: usize,
    /// What else is known. Without [`Self::detailed`] nothing is, and absence says nothing.
    pub flags: Flags,
    /// Whether device and flags have been asked of the driver.
    pub detailed: bool,
}

impl Memory {
    /// What an event says: the kind, and no more.
    pub fn seen(kind: Kind, base: usize, length: usize) -> Self {
        Self { kind, device: None, base, length, flags: Flags::default(), detailed: false }
    }

    /// The address behind it.
    pub fn end(&self) -> usize {
        self.base.saturating_add(self.length)
    }

    pub(super) fn pack(&self) -> Range {
        let device = self.device.map_or(0, |device| u64::from(device) + 1);
        let about = VALID
            | (self.kind as u64)
            | u64::from(self.detailed) << 8
            | u64::from(self.flags.0) << 16
            | device << 32;
        Range { start: self.base as u64, end: self.end() as u64, about }
    }

    #[inline]
    pub(super) fn unpack(range: Range) -> Option<Self> {
        if range.about & VALID == 0 {
            return None;
        }
        Some(Self {
            kind: Kind::ALL[(range.about & 3) as usize],
            device: ((range.about >> 32) as u32).checked_sub(1).map(|device| device as u16),
            base: range.start as usize,
            length: (range.end - range.start) as usize,
            flags: Flags((range.about >> 16) as u16),
            detailed: range.about >> 8 & 1 != 0,
        })
    }
}

/// Clear in a range of which only its place is known.
const VALID: u64 = 1 << 7;

/// A range of which nothing but its place is known.
pub(super) fn unknown(base: usize, length: usize) -> Range {
    Range { start: base as u64, end: base.saturating_add(length) as u64, about: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_survives_packing() {
        for kind in Kind::ALL {
            for device in [None, Some(0), Some(7), Some(u16::MAX)] {
                let flags = Flags::LEGACY_IPC.with(Flags::FABRIC);
                let (base, length) = (0x7f00_0000_0000, 4096);
                let memory = Memory { kind, device, base, length, flags, detailed: true };
                assert_eq!(Memory::unpack(memory.pack()), Some(memory));
                let seen = Memory::seen(kind, base, length);
                assert_eq!(Memory::unpack(seen.pack()), Some(seen));
            }
        }
        assert_eq!(Memory::unpack(unknown(1, 2)), None);
    }

    #[test]
    fn sets_of_flags() {
        let both = Flags::POOL.with(Flags::POSIX_FD);
        assert!(both.has(Flags::POOL) && both.has(Flags::POSIX_FD) && !both.has(Flags::FABRIC));
        assert_eq!(both.without(Flags::POOL), Flags::POSIX_FD);
        assert_eq!(both.with_if(Flags::MAPPED, false), both);
    }
}
