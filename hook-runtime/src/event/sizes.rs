//! The size of every allocation that was seen, so that a release needs neither a
//! context nor the driver to know its own.

mod table;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::MemoryClass;
use table::{Held, Lock};

/// What is remembered of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// How many bytes.
    pub size: usize,
    /// What kind of memory.
    pub class: MemoryClass,
    /// What it ends with, if that is not a call of its own.
    pub owner: Owner,
}

/// What takes memory away with it when it is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Nothing: it has to be freed by its address.
    Itself,
    /// The context with this handle.
    Context(usize),
    /// The module or library with this handle.
    Module(usize),
}

const SHARDS: usize = 32;

/// Allocations by their first address, and mappings by address range.
#[derive(Debug)]
pub struct Sizes {
    shards: [Lock; SHARDS],
    mappings: Mutex<BTreeMap<usize, Allocation>>,
}

/// The table of this process.
pub static SIZES: Sizes = Sizes::new();

impl Sizes {
    /// An empty table.
    pub const fn new() -> Self {
        Self { shards: [const { Lock::new() }; SHARDS], mappings: Mutex::new(BTreeMap::new()) }
    }

    /// Remembers an allocation.
    pub fn insert(&self, address: usize, allocation: Allocation) {
        self.shard(address).insert(address, allocation);
    }

    /// Remembers an allocation unless it is known, be it as a mapping; false if it is.
    pub fn insert_new(&self, address: usize, allocation: Allocation) -> bool {
        if lock(&self.mappings).contains_key(&address) {
            return false;
        }
        let mut shard = self.shard(address);
        let is_new = !shard.contains(address);
        if is_new {
            shard.insert(address, allocation);
        }
        is_new
    }

    /// Forgets the allocation that starts at `address`.
    pub fn remove(&self, address: usize) -> Option<Allocation> {
        self.shard(address).remove(address)
    }

    /// Remembers a mapping, part of which may be unmapped later.
    pub fn insert_mapping(&self, address: usize, allocation: Allocation) {
        lock(&self.mappings).insert(address, allocation);
    }

    /// Forgets all mappings between `address` and `address + size`, and gives back those
    /// that there were.
    pub fn remove_mappings(&self, address: usize, size: usize) -> Vec<(usize, Allocation)> {
        let mut mappings = lock(&self.mappings);
        let range = address..address.saturating_add(size);
        let removed: Vec<_> =
            mappings.range(range).map(|(&start, &found)| (start, found)).collect();
        for (start, _) in &removed {
            mappings.remove(start);
        }
        removed
    }

    /// Forgets everything that ends with `owner`.
    pub fn remove_owned(&self, owner: Owner) -> Vec<(usize, Allocation)> {
        let mut removed = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock();
            let first = removed.len();
            removed.extend(shard.iter().filter(|(_, allocation)| allocation.owner == owner));
            for (address, _) in &removed[first..] {
                shard.remove(*address);
            }
        }
        removed.sort_unstable_by_key(|&(address, _)| address);
        removed
    }

    /// All allocations and mappings that are remembered, by address.
    pub fn all(&self) -> Vec<(usize, Allocation)> {
        let mut all: Vec<_> =
            lock(&self.mappings).iter().map(|(&at, &found)| (at, found)).collect();
        for shard in &self.shards {
            all.extend(shard.lock().iter());
        }
        all.sort_unstable_by_key(|&(address, _)| address);
        all
    }

    /// Keeps everything as it is until the result is dropped.
    pub fn lock_for_fork(&self) -> Unchanging<'_> {
        Unchanging {
            mappings: lock(&self.mappings),
            shards: self.shards.each_ref().map(Lock::lock),
        }
    }

    fn shard(&self, address: usize) -> Held<'_> {
        // Allocations are at least 256 bytes apart, so the low bits say little.
        self.shards[(address >> 8 ^ address >> 20) % SHARDS].lock()
    }
}

/// The whole table, locked.
#[derive(Debug)]
pub struct Unchanging<'sizes> {
    mappings: MutexGuard<'sizes, BTreeMap<usize, Allocation>>,
    shards: [Held<'sizes>; SHARDS],
}

impl Unchanging<'_> {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.mappings.clear();
        self.shards.iter_mut().for_each(|shard| shard.clear());
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::new()
    }
}

/// A panic while the lock was held cannot have left a map half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(size: usize, owner: Owner) -> Allocation {
        Allocation { size, class: MemoryClass::Device, owner }
    }

    #[test]
    fn an_allocation_is_forgotten_once() {
        let sizes = Sizes::new();
        sizes.insert(0x7000_0000, device(100, Owner::Itself));
        assert_eq!(sizes.remove(0x7000_0100), None);
        assert_eq!(sizes.remove(0x7000_0000), Some(device(100, Owner::Itself)));
        assert_eq!(sizes.remove(0x7000_0000), None);
    }

    #[test]
    fn what_an_owner_holds_goes_with_it() {
        let sizes = Sizes::new();
        for index in 1..=100 {
            let owner = if index % 2 == 0 { Owner::Context(7) } else { Owner::Module(7) };
            sizes.insert(index << 12, device(index, owner));
        }
        let removed = sizes.remove_owned(Owner::Context(7));
        assert_eq!(removed.len(), 50);
        assert!(removed.is_sorted_by_key(|&(address, _)| address));
        assert_eq!(sizes.remove(2 << 12), None);
        assert!(sizes.remove(1 << 12).is_some());
    }

    #[test]
    fn unmapping_a_range_takes_all_mappings_in_it() {
        let sizes = Sizes::new();
        for start in [0x1000, 0x2000, 0x3000] {
            sizes.insert_mapping(start, device(0x1000, Owner::Itself));
        }
        assert_eq!(sizes.remove_mappings(0x2000, 0x2000).len(), 2);
        assert_eq!(sizes.remove_mappings(0, usize::MAX), [(0x1000, device(0x1000, Owner::Itself))]);
    }
}
