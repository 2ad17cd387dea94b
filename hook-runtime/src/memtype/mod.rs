//! What kind of memory an address is, without asking the driver each time.
//!
//! ```text
//! event ──> index: ranges in order ──> lookup       a few nanoseconds, no lock
//!              ▲                          │ not known
//!              └── kept, if it may be ─── identify   asks the driver
//! ```
//!
//! Ranges are allocations and mappings as they were made; neighbours never merge. An answer
//! is never wrong: what the events do not say for certain is not known, and then the driver
//! is asked. Its answer is kept only if the end of that memory will be seen:
//!
//! * not for page-locked host memory, whose registration may end without an event;
//! * not if the memory has been announced as freed, since that comes before the call;
//! * not if an event has come in while the driver was asked;
//! * and only until a context ends, which takes memory away that no event was seen for.

pub mod index;
mod memory;
mod query;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub use memory::{Flags, Kind, Memory};

use crate::cuda::table::Api;
use crate::event::{Event, EventKind, MemoryClass, Subscription, subscribe};
use crate::hook::coverage::{Coverage, Mechanism, Outcome};
use crate::sys::environment;
use index::{Found, Index};
use memory::unknown;

/// `UCX_MEMTYPE_CACHE`: `y`, `n` or `try`.
pub const VARIABLE: &str = "UCX_MEMTYPE_CACHE";

/// What is known without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// All of the range is this.
    Known(Memory),
    /// The driver has to be asked.
    Unknown,
    /// No allocation that was seen touches the range.
    Absent,
}

/// What the driver says of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It belongs to this.
    Memory(Memory),
    /// CUDA knows nothing of it: plain host memory.
    NotCuda,
    /// The driver does not say.
    None,
}

/// Whom to ask: the driver, or in tests something that knows as much.
pub trait Oracle {
    /// What `address` belongs to.
    fn ask(&self, address: usize) -> Answer;
}

/// The kinds of memory in this process, by address.
#[derive(Debug, Default)]
pub struct MemoryTypes {
    index: Index,
    /// Whether every end of memory is seen, so that what is known may be believed.
    trusted: AtomicBool,
    /// Counts events.
    events: AtomicU64,
    /// Ranges that were announced as freed, and not allocated again since.
    freed: Mutex<VecDeque<(usize, usize)>>,
    /// The ranges known only from the driver.
    asked: Mutex<Vec<(usize, usize)>>,
}

static TYPES: MemoryTypes = MemoryTypes::new();

/// The kinds of memory in this process; they follow the events once [`start`] was called.
pub fn types() -> &'static MemoryTypes {
    &TYPES
}

/// Makes [`types`] follow the events, unless `UCX_MEMTYPE_CACHE=n`. To be called after hooks
/// were installed, and again when more of CUDA was loaded since: the answers are believed
/// as far as the hooks cover the driver (or always, with `y`).
pub fn start() -> Option<Subscription> {
    static STARTED: Mutex<Option<Subscription>> = Mutex::new(None);
    let mode = environment::variable(VARIABLE).unwrap_or_default();
    let mode = mode.to_string_lossy().to_ascii_lowercase();
    let trusted = match mode.as_str() {
        "n" | "no" | "off" | "0" => return None,
        "y" | "yes" | "on" | "1" => true,
        "" | "try" => sees_everything(&Coverage::now()),
        other => {
            crate::log::error!("`{VARIABLE}={other}` is none of y, n, try: using `try`");
            sees_everything(&Coverage::now())
        }
    };
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let subscription = *started.get_or_insert_with(|| subscribe(1000, |event| TYPES.note(event)));
    TYPES.trust(trusted);
    Some(subscription)
}

/// Whether each function of the driver is hooked at its entry: a slot can be gone around.
fn sees_everything(coverage: &Coverage) -> bool {
    let driver = coverage.rows.iter().filter(|row| row.api == Api::Driver);
    let mut hooked = 0;
    for row in driver {
        match row.outcome {
            Outcome::Hooked(Mechanism::Bistro) => hooked += 1,
            Outcome::Absent => {}
            _ => return false,
        }
    }
    hooked > 0
}

/// A context or a module is about to end; what it held may end without an event.
pub(crate) fn owner_ends() {
    OWNERS_ENDED.fetch_add(1, Ordering::SeqCst);
    TYPES.forget_asked();
}

static OWNERS_ENDED: AtomicU64 = AtomicU64::new(0);

/// Changes whenever a context or a module is about to end, as far as hooks see it.
pub fn owner_epoch() -> u64 {
    OWNERS_ENDED.load(Ordering::SeqCst)
}

impl MemoryTypes {
    const REMEMBERED: usize = 64;

    /// Nothing is known yet, and nothing is believed.
    pub const fn new() -> Self {
        Self {
            index: Index::new(),
            trusted: AtomicBool::new(false),
            events: AtomicU64::new(0),
            freed: Mutex::new(VecDeque::new()),
            asked: Mutex::new(Vec::new()),
        }
    }

    /// Whether what the events say may be believed.
    pub fn trust(&self, trusted: bool) {
        self.trusted.store(trusted, Ordering::Release);
    }

    /// How many ranges are known.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no range is known.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// What is known of `length` bytes at `address`. Takes no lock.
    #[inline]
    pub fn lookup(&self, address: usize, length: usize) -> Lookup {
        if !self.trusted.load(Ordering::Relaxed) {
            return Lookup::Unknown;
        }
        let end = address.saturating_add(length.max(1)) as u64;
        match self.index.find(address as u64) {
            Found::Range(range) if end <= range.end => {
                Memory::unpack(range).map_or(Lookup::Unknown, Lookup::Known)
            }
            Found::Gap(next) if next.is_none_or(|next| end <= next) => Lookup::Absent,
            _ => Lookup::Unknown,
        }
    }

    /// What `length` bytes at `address` are, by asking where that is not known: nothing if
    /// they are of more than one kind, or if `oracle` does not say. A range over several
    /// allocations of one kind is described by [`Flags::SEVERAL`] and what they share.
    pub fn identify(&self, oracle: &impl Oracle, address: usize, length: usize) -> Option<Memory> {
        let end = address.saturating_add(length.max(1));
        let mut at = address;
        let mut all: Option<Memory> = None;
        while at < end {
            let piece = self.piece(oracle, at, end)?;
            let joined = all.map_or(Some(piece), |before| join(before, piece))?;
            at = joined.end();
            all = Some(joined);
        }
        all
    }

    /// What begins at `at`, and is known in detail.
    fn piece(&self, oracle: &impl Oracle, at: usize, end: usize) -> Option<Memory> {
        if let Lookup::Known(memory) = self.lookup(at, 1)
            && memory.detailed
        {
            return Some(memory);
        }
        let before = self.events.load(Ordering::SeqCst);
        match oracle.ask(at) {
            Answer::Memory(memory) if memory.base <= at && at < memory.end() => {
                self.keep(memory, at, before);
                Some(memory)
            }
            Answer::NotCuda => self.host(oracle, at, end),
            Answer::Memory(_) | Answer::None => None,
        }
    }

    /// Plain host memory has no bounds that could be asked for: it must not touch anything
    /// that is known to be something else, and its other end must be host memory as well.
    fn host(&self, oracle: &impl Oracle, at: usize, end: usize) -> Option<Memory> {
        let clear = !self.index.write().touches(at as u64, end as u64);
        let same = end - at == 1 || oracle.ask(end - 1) == Answer::NotCuda;
        let host = Memory { detailed: true, ..Memory::seen(Kind::Host, at, end - at) };
        (clear && same).then_some(host)
    }

    /// Takes an event in.
    pub fn note(&self, event: &Event) {
        self.events.fetch_add(1, Ordering::SeqCst);
        let (start, size) = (event.address, event.size);
        match event.kind {
            EventKind::Allocated => {
                self.freed().retain(|freed| !overlap(*freed, (start, start.saturating_add(size))));
                let range = match event.class {
                    MemoryClass::Device => Memory::seen(Kind::Device, start, size).pack(),
                    MemoryClass::Managed => Memory::seen(Kind::Managed, start, size).pack(),
                    MemoryClass::Host => Memory::seen(Kind::Pinned, start, size).pack(),
                    MemoryClass::Unknown => unknown(start, size),
                };
                let mut index = self.index.write();
                if !index.insert(range) {
                    index.remove(start as u64, start.saturating_add(size.max(1)) as u64);
                }
            }
            EventKind::Freed => {
                let end = start.saturating_add(size.max(1));
                let mut gone = (start, end);
                let (number, last) = self.index.write().remove(start as u64, end as u64);
                // Of memory that was not seen coming, the driver's answer has told the size.
                if let (1, Some(range)) = (number, last) {
                    gone = (start.min(range.start as usize), end.max(range.end as usize));
                }
                let mut freed = self.freed();
                freed.truncate(Self::REMEMBERED - 1);
                freed.push_front(gone);
            }
        }
    }

    /// Keeps what the driver has said of the memory at `at`, asked when `before` events had
    /// come in. Where an event has told the bounds of the memory, these stay.
    fn keep(&self, memory: Memory, at: usize, before: u64) {
        if memory.kind == Kind::Host {
            return;
        }
        let mut index = self.index.write();
        if self.events.load(Ordering::SeqCst) != before {
            return;
        }
        if let Some(known) = index.find(at as u64) {
            let (base, length) = (known.start as usize, (known.end - known.start) as usize);
            match Memory::unpack(known) {
                Some(seen) if seen.kind != memory.kind => {
                    index.remove(known.start, known.end).0 > 0
                }
                _ => index.insert(Memory { base, length, ..memory }.pack()),
            };
            return;
        }
        let range = (memory.base, memory.end());
        let freed = self.freed().iter().any(|freed| overlap(*freed, range));
        if memory.kind == Kind::Pinned || freed || index.touches(range.0 as u64, range.1 as u64) {
            return;
        }
        if index.insert(memory.pack()) {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(range);
        }
    }

    /// Forgets what no event has announced.
    fn forget_asked(&self) {
        self.events.fetch_add(1, Ordering::SeqCst);
        let mut index = self.index.write();
        let asked = std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        for (start, end) in asked {
            index.remove(start as u64, end as u64);
        }
    }

    fn freed(&self) -> std::sync::MutexGuard<'_, VecDeque<(usize, usize)>> {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn overlap(one: (usize, usize), other: (usize, usize)) -> bool {
    one.0 < other.1 && other.0 < one.1
}

/// Two pieces, one behind the other, as one; nothing if they differ in kind.
fn join(before: Memory, behind: Memory) -> Option<Memory> {
    if before.kind != behind.kind || before.device != behind.device {
        return None;
    }
    let shared = before.flags.without(Flags::SEVERAL).shared(behind.flags);
    Some(Memory {
        length: behind.end() - before.base,
        flags: shared.with(Flags::SEVERAL).without(Flags::LEGACY_IPC),
        ..before
    })
}

#[cfg(test)]
mod tests;
