//! Address ranges in order, read without a lock and without a write to shared memory.
//!
//! One writer at a time changes the arrays in place; readers notice by a version number
//! and look again. The arrays are never freed, only replaced by larger ones, so that a
//! reader that is late sees old numbers, never other memory, and no code here is unsafe.
//!
//! A range is found in two steps: a [directory](directory) leads from the address to the
//! last range that starts before its neighbourhood, and the next two are compared without a
//! branch. All that is said of a range lies side by side, and nothing that was read leaves the
//! processor's registers before it is known to fit together.

mod directory;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use directory::{Directory, WINDOW};

/// A range of addresses, and 64 bits about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// What the owner of the index wants to know of the range.
    pub about: u64,
}

/// What a reader learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The range that holds the address.
    Range(Range),
    /// None does; the next one starts here, if there is one.
    Gap(Option<u64>),
    /// A writer has been at work for too long, for instance in a parent that forked.
    Busy,
}

/// The ranges of one kind; they never overlap.
#[derive(Debug)]
pub struct Index {
    /// Odd while a writer changes something.
    version: AtomicU64,
    current: AtomicUsize,
    /// Arrays of growing size: each holds twice as many ranges as the one before it.
    arrays: [OnceLock<Box<Arrays>>; Index::SIZES],
    writer: Mutex<()>,
}

#[derive(Debug)]
struct Arrays {
    length: AtomicUsize,
    /// In order, behind one that holds nothing, so that each has another before it. Behind
    /// the last range all start at the end of the address space.
    entries: Box<[Entry]>,
    directory: Directory,
}

/// A range where readers find it.
#[derive(Debug)]
#[repr(C)]
struct Entry {
    start: AtomicU64,
    end: AtomicU64,
    about: AtomicU64,
}

impl Entry {
    fn new(start: u64) -> Self {
        Self { start: AtomicU64::new(start), end: AtomicU64::new(0), about: AtomicU64::new(0) }
    }

    #[inline]
    fn start(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    #[inline]
    fn range(&self) -> Range {
        let [start, end, about] = [&self.start, &self.end, &self.about];
        Range {
            start: start.load(Ordering::Relaxed),
            end: end.load(Ordering::Relaxed),
            about: about.load(Ordering::Relaxed),
        }
    }

    fn put(&self, range: Range) {
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.about.store(range.about, Ordering::Relaxed);
    }
}

/// The right to change an index.
#[derive(Debug)]
pub struct Writer<'index> {
    index: &'index Index,
    _lock: MutexGuard<'index, ()>,
}

impl Index {
    const SIZES: usize = 24;
    const SMALLEST: usize = 64;
    const SPINS: u32 = 128;
    const YIELDS: u32 = 4096;

    /// An index without ranges.
    pub const fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            current: AtomicUsize::new(0),
            arrays: [const { OnceLock::new() }; Self::SIZES],
            writer: Mutex::new(()),
        }
    }

    /// The range that holds `address`.
    #[inline]
    pub fn find(&self, address: u64) -> Found {
        let before = self.version.load(Ordering::Acquire);
        // What was read is put together only when it is known to fit together: this way it
        // stays in registers.
        if let Some(near) = self.arrays().and_then(|arrays| arrays.near(address)) {
            let [_, second, third] = near;
            let (one, two) = (second.start() <= address, third.start() <= address);
            let range = near[usize::from(one)].range();
            if !two && address < range.end && self.is_still(before) {
                return Found::Range(range);
            }
            if !two && address >= range.end {
                let next = near[1 + usize::from(one)].start();
                if self.is_still(before) {
                    return Found::Gap((next != u64::MAX).then_some(next));
                }
            }
        }
        self.find_slowly(address)
    }

    /// Whether nothing has been changed since the version was `before`, nor was then.
    #[inline]
    fn is_still(&self, before: u64) -> bool {
        fence(Ordering::Acquire);
        before & 1 == 0 && self.version.load(Ordering::Relaxed) == before
    }

    /// In a crowd, while something is changed, or where there is nothing.
    #[cold]
    fn find_slowly(&self, address: u64) -> Found {
        for attempt in 0..Self::SPINS + Self::YIELDS {
            let before = self.version.load(Ordering::Acquire);
            let found = self.arrays().map_or(Some(Found::Gap(None)), |arrays| arrays.find(address));
            // What is missing was torn, which the version tells.
            if let (Some(found), true) = (found, self.is_still(before)) {
                return found;
            }
            match attempt {
                0..Self::SPINS => std::hint::spin_loop(),
                _ => std::thread::yield_now(),
            }
        }
        Found::Busy
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.arrays().map_or(0, |arrays| arrays.length.load(Ordering::Relaxed))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the right to change something.
    pub fn write(&self) -> Writer<'_> {
        // A panic cannot leave a change half done: nothing in one panics.
        let lock = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Writer { index: self, _lock: lock }
    }

    #[inline]
    fn arrays(&self) -> Option<&Arrays> {
        self.arrays.get(self.current.load(Ordering::Acquire))?.get().map(|boxed| &**boxed)
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer<'_> {
    /// Takes away every range that touches `start..end`, as a whole: a part of what was
    /// there says nothing about the rest. The last of them is given back, and their number.
    pub fn remove(&mut self, start: u64, end: u64) -> (usize, Option<Range>) {
        let Some(arrays) = self.index.arrays() else { return (0, None) };
        let length = arrays.length.load(Ordering::Relaxed);
        let mut first = arrays.lower_bound(start);
        if first > 0 && arrays.range(first - 1).end > start {
            first -= 1;
        }
        let last = arrays.lower_bound(end).max(first);
        if first == last {
            return (0, None);
        }
        let removed = arrays.range(last - 1);
        self.change(|| arrays.close_gap(first, last, length));
        (last - first, Some(removed))
    }

    /// Adds a range in place of whatever touches it. False if it is empty or there are too many.
    pub fn insert(&mut self, range: Range) -> bool {
        if range.start >= range.end || range.end == u64::MAX {
            return false;
        }
        self.remove(range.start, range.end);
        if !self.make_room() {
            return false;
        }
        let Some(arrays) = self.index.arrays() else { return false };
        self.change(|| arrays.insert(range));
        true
    }

    /// The range that holds `address`, as it is for as long as this writer lives.
    pub fn find(&self, address: u64) -> Option<Range> {
        match self.index.arrays()?.find(address)? {
            Found::Range(range) => Some(range),
            _ => None,
        }
    }

    /// Whether a range touches `start..end`.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let Some(arrays) = self.index.arrays() else { return false };
        let before = arrays.lower_bound(end);
        before > 0 && arrays.range(before - 1).end > start
    }

    /// All ranges.
    pub fn ranges(&self) -> Vec<Range> {
        let Some(arrays) = self.index.arrays() else { return Vec::new() };
        (0..arrays.length.load(Ordering::Relaxed)).map(|place| arrays.range(place)).collect()
    }

    fn change(&self, change: impl FnOnce()) {
        let version = &self.index.version;
        let before = version.load(Ordering::Relaxed);
        version.store(before.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        change();
        version.store(before.wrapping_add(2), Ordering::Release);
    }

    fn make_room(&self) -> bool {
        let index = self.index;
        let size = index.current.load(Ordering::Relaxed);
        let Some(old) = index.arrays() else {
            index.arrays[size].get_or_init(|| Box::new(Arrays::new(Index::SMALLEST)));
            return true;
        };
        let length = old.length.load(Ordering::Relaxed);
        if length < old.capacity() {
            return true;
        }
        if size + 1 == Index::SIZES {
            return false;
        }
        let new = index.arrays[size + 1].get_or_init(|| Box::new(Arrays::new(2 * length)));
        new.copy(old, length);
        self.change(|| index.current.store(size + 1, Ordering::Release));
        true
    }
}

impl Arrays {
    fn new(capacity: usize) -> Self {
        let free = std::iter::repeat_with(|| Entry::new(u64::MAX)).take(capacity + WINDOW);
        Self {
            length: AtomicUsize::new(0),
            entries: std::iter::once(Entry::new(0)).chain(free).collect(),
            directory: Directory::new(capacity),
        }
    }

    fn capacity(&self) -> usize {
        self.entries.len() - 1 - WINDOW
    }

    /// The ranges, without what lies around them.
    fn ranges(&self, length: usize) -> &[Entry] {
        &self.entries[1..=length]
    }

    fn copy(&self, old: &Self, length: usize) {
        for (to, from) in self.entries[1..].iter().zip(old.ranges(length)) {
            to.put(from.range());
        }
        self.length.store(length, Ordering::Relaxed);
        self.directory.build(self.ranges(length));
    }

    /// The last range that starts before the neighbourhood of `address`, and the next ones.
    #[inline]
    fn near(&self, address: u64) -> Option<&[Entry; WINDOW + 1]> {
        self.entries.get(self.directory.before(address)?..)?.first_chunk()
    }

    /// The range that holds `address`. Nothing only if what was read did not fit together.
    fn find(&self, address: u64) -> Option<Found> {
        let address = address.min(u64::MAX - 1); // All ones are no address here.
        let rest = self.entries.get(self.directory.before(address)?..)?;
        let place = rest.partition_point(|entry| entry.start() <= address).checked_sub(1)?;
        let range = rest.get(place)?.range();
        if address < range.end {
            return Some(Found::Range(range));
        }
        let next = rest.get(place + 1)?.start();
        Some(Found::Gap((next != u64::MAX).then_some(next)))
    }

    /// How many ranges start before `address`.
    fn lower_bound(&self, address: u64) -> usize {
        let length = self.length.load(Ordering::Relaxed);
        self.ranges(length).partition_point(|entry| entry.start() < address)
    }

    fn range(&self, place: usize) -> Range {
        self.entries[place + 1].range()
    }

    fn put(&self, place: usize, range: Range) {
        self.entries[place + 1].put(range);
    }

    fn insert(&self, range: Range) {
        let length = self.length.load(Ordering::Relaxed);
        let place = self.lower_bound(range.start);
        for at in (place..length).rev() {
            self.put(at + 1, self.range(at));
        }
        self.put(place, range);
        self.length.store(length + 1, Ordering::Relaxed);
        if !self.directory.added(range.start) {
            self.directory.build(self.ranges(length + 1));
        }
    }

    fn close_gap(&self, first: usize, last: usize, length: usize) {
        for place in first..last {
            self.directory.removed(self.range(place).start);
        }
        for at in last..length {
            self.put(first + at - last, self.range(at));
        }
        let left = length - (last - first);
        for at in left..length {
            self.put(at, Range { start: u64::MAX, end: 0, about: 0 });
        }
        self.length.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
