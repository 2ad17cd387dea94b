//! Allocations by their first address: a table without a chain, an allocation or a system
//! call on the way, behind a lock that is held for some ten instructions.
//!
//! An entry is found at the place that its address hashes to, or right behind it; one that
//! is removed leaves no mark, since those behind it move up.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Allocation, Owner};
use crate::event::MemoryClass;

/// Half a cache line, so that a look at an entry is a look at one line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Entry {
    /// 0 if the place is free: nothing is allocated there.
    address: usize,
    size: usize,
    owner: usize,
    owned: Owned,
    class: MemoryClass,
}

/// [`Owner`] without its handle.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
enum Owned {
    Itself,
    Context,
    Module,
}

impl Entry {
    const FREE: Self =
        Self { address: 0, size: 0, owner: 0, owned: Owned::Itself, class: MemoryClass::Unknown };

    fn new(address: usize, allocation: Allocation) -> Self {
        let Allocation { size, class, owner } = allocation;
        let (owned, owner) = match owner {
            Owner::Itself => (Owned::Itself, 0),
            Owner::Context(handle) => (Owned::Context, handle),
            Owner::Module(handle) => (Owned::Module, handle),
        };
        Self { address, size, owner, owned, class }
    }

    fn allocation(&self) -> Allocation {
        let owner = match self.owned {
            Owned::Itself => Owner::Itself,
            Owned::Context => Owner::Context(self.owner),
            Owned::Module => Owner::Module(self.owner),
        };
        Allocation { size: self.size, class: self.class, owner }
    }
}

/// The table. It has room for a third more than it holds, and grows by doubling.
#[derive(Debug)]
pub(super) struct Table {
    /// None, or a power of two.
    entries: Vec<Entry>,
    count: usize,
}

impl Table {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), count: 0 }
    }

    /// Remembers an allocation in the place of an earlier one at the same address.
    pub(super) fn insert(&mut self, address: usize, allocation: Allocation) {
        if address == 0 {
            return;
        }
        if self.count * 4 >= self.entries.len() * 3 {
            self.grow();
        }
        let place = self.find(address);
        self.count += usize::from(self.entries[place].address == 0);
        self.entries[place] = Entry::new(address, allocation);
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        !self.entries.is_empty() && self.entries[self.find(address)].address != 0
    }

    pub(super) fn remove(&mut self, address: usize) -> Option<Allocation> {
        if self.entries.is_empty() || address == 0 {
            return None;
        }
        let mut hole = self.find(address);
        let removed = self.entries[hole];
        if removed.address == 0 {
            return None;
        }
        // Those behind it would not be found any more, if the search for them comes by here.
        let mut place = self.after(hole);
        while self.entries[place].address != 0 {
            let home = self.home(self.entries[place].address);
            if self.distance(home, hole) <= self.distance(home, place) {
                self.entries[hole] = self.entries[place];
                hole = place;
            }
            place = self.after(place);
        }
        self.entries[hole] = Entry::FREE;
        self.count -= 1;
        Some(removed.allocation())
    }

    /// Everything in it, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Allocation)> {
        let taken = self.entries.iter().filter(|entry| entry.address != 0);
        taken.map(|entry| (entry.address, entry.allocation()))
    }

    /// Forgets everything, and keeps the memory: another thread's locks may be held.
    pub(super) fn clear(&mut self) {
        self.entries.fill(Entry::FREE);
        self.count = 0;
    }

    /// Where `address` is, or would go.
    fn find(&self, address: usize) -> usize {
        let mut place = self.home(address);
        while ![0, address].contains(&self.entries[place].address) {
            place = self.after(place);
        }
        place
    }

    fn home(&self, address: usize) -> usize {
        // Fibonacci hashing: addresses are multiples of powers of two, and the highest bits
        // of the product depend on all of theirs.
        let product = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> 32) as usize & (self.entries.len() - 1)
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.entries.len() - 1)
    }

    /// How many steps a search makes from one place to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.entries.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let room = (self.entries.len() * 2).max(16);
        let old = std::mem::replace(&mut self.entries, vec![Entry::FREE; room]);
        for entry in old.into_iter().filter(|entry| entry.address != 0) {
            let place = self.find(entry.address);
            self.entries[place] = entry;
        }
    }
}

/// A lock that costs one atomic operation. Whoever holds it does nothing that waits, but
/// for the memory that a growing table needs.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Lock {
    held: AtomicBool,
    table: UnsafeCell<Table>,
}

// SAFETY: the table is reached through `Held` alone, of which there is one at a time.
unsafe impl Sync for Lock {}

/// The table, locked.
#[derive(Debug)]
pub(super) struct Held<'lock>(&'lock Lock);

impl Lock {
    pub(super) const fn new() -> Self {
        Self { held: AtomicBool::new(false), table: UnsafeCell::new(Table::new()) }
    }

    #[inline]
    pub(super) fn lock(&self) -> Held<'_> {
        if self.held.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Held(self)
    }

    #[cold]
    fn wait(&self) {
        let mut rounds = 0_u32;
        loop {
            while self.held.load(Ordering::Relaxed) {
                rounds += 1;
                match rounds {
                    0..100 => std::hint::spin_loop(),
                    // Its holder is not running, perhaps since this thread is.
                    100..200 => std::thread::yield_now(),
                    _ => std::thread::sleep(std::time::Duration::from_micros(50)),
                }
            }
            if !self.held.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}

impl Deref for Held<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        // SAFETY: the lock is held by this value alone.
        unsafe { &*self.0.table.get() }
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Table {
        // SAFETY: the lock is held by this value alone, which is borrowed mutably.
        unsafe { &mut *self.0.table.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn device(size: usize) -> Allocation {
        Allocation { size, class: MemoryClass::Device, owner: Owner::Context(size) }
    }

    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut table, mut map) = (Table::new(), BTreeMap::new());
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for size in 1..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Few enough addresses that each comes and goes many times.
            let address = (1 + random as usize % 700) << 8;
            if random >> 32 & 1 == 0 {
                table.insert(address, device(size));
                map.insert(address, device(size));
            } else {
                assert_eq!(table.remove(address), map.remove(&address));
            }
            assert_eq!(table.count, map.len());
        }
        let mut all: Vec<_> = table.iter().collect();
        all.sort_unstable_by_key(|&(address, _)| address);
        assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        assert!(table.entries.len() <= 1024, "it does not grow by what has gone");
        table.clear();
        assert_eq!((table.count, table.iter().count()), (0, 0));
    }

    #[test]
    fn entries_are_half_a_cache_line() {
        assert_eq!(size_of::<Entry>(), 32);
        assert!(size_of::<Lock>() == 64 && align_of::<Lock>() == 64);
    }

    #[test]
    fn many_threads_take_turns() {
        let lock = Lock::new();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let lock = &lock;
                scope.spawn(move || {
                    for round in 0..2000_usize {
                        let address = (1 + thread * 2000 + round) << 8;
                        lock.lock().insert(address, device(round));
                        assert_eq!(lock.lock().remove(address), Some(device(round)));
                    }
                });
            }
        });
        assert_eq!(lock.lock().count, 0);
    }
}
