//! What has been patched, for ever: for taking it back, for doing it again, and
//! for the signal handler, which must find a landing without lock or allocation.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

use crate::sys::fork_lock::{self, Held};

use super::Reason;
use super::plan::{Patch, Strategy, Write};

/// A patch that was made at least once.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) patch: Patch,
    pub(super) force_far: bool,
    /// Whether the function carries the patch at present.
    pub(super) active: AtomicBool,
    /// How it was written last: a [`Write`] as a number.
    written: AtomicU8,
    next: AtomicPtr<Record>,
}

/// The order in which `Record::written` counts.
const WRITES: [Write; 4] = [Write::OneStore, Write::Staged, Write::WideStore, Write::WholePage];

impl Record {
    pub(super) fn set_written(&self, write: Write) {
        let number = WRITES.iter().position(|known| *known == write).unwrap_or_default();
        self.written.store(number as u8, Ordering::Release);
    }

    fn written(&self) -> Write {
        WRITES[usize::from(self.written.load(Ordering::Acquire)) % WRITES.len()]
    }
}

/// The newest record. Records are leaked and never change but for `active`.
static NEWEST: AtomicPtr<Record> = AtomicPtr::new(std::ptr::null_mut());

/// One at a time: whoever holds this may change code.
pub(super) fn lock() -> Result<Held, Reason> {
    fork_lock::lock().map_err(|_| Reason::Busy)
}

/// Adds a record. From here on a thread that runs into one of its traps is sent on.
pub(super) fn publish(patch: Patch, force_far: bool, _lock: &Held) -> &'static Record {
    let record: &'static Record = Box::leak(Box::new(Record {
        patch,
        force_far,
        active: AtomicBool::new(false),
        written: AtomicU8::new(0),
        next: AtomicPtr::new(NEWEST.load(Ordering::Acquire)),
    }));
    NEWEST.store(std::ptr::from_ref(record).cast_mut(), Ordering::Release);
    record
}

/// All records, the newest first.
pub(super) fn records() -> impl Iterator<Item = &'static Record> {
    let get = |pointer: &AtomicPtr<Record>| {
        // SAFETY: null or a leaked record, of which only the atomics change.
        unsafe { pointer.load(Ordering::Acquire).as_ref::<'static>() }
    };
    std::iter::successors(get(&NEWEST), move |record| get(&record.next))
}

/// Where a thread goes on that ran into a trap at an address. Async-signal-safe.
pub(super) fn landing(trap: u64) -> Option<u64> {
    // That of the patch in force comes first: an earlier one may have led elsewhere.
    let in_force = records().filter(|record| record.active.load(Ordering::Acquire));
    in_force
        .chain(records())
        .flat_map(|record| &record.patch.landings)
        .find(|(at, _)| *at == trap)
        .map(|(_, to)| *to)
}

/// A function that carries a hook, or has carried it.
#[derive(Debug, Clone, Copy)]
pub struct Patched(pub(super) &'static Record);

impl Patched {
    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        &self.0.patch.symbol
    }

    /// The function's address.
    #[must_use]
    pub fn target(&self) -> usize {
        self.0.patch.target as usize
    }

    /// The original function: valid for ever, hooked or not.
    #[must_use]
    pub fn trampoline(&self) -> usize {
        self.0.patch.trampoline as usize
    }

    /// How it was patched.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        Strategy { write: self.0.written(), ..self.0.patch.strategy.clone() }
    }

    /// The plan in full.
    #[must_use]
    pub fn patch(&self) -> &'static Patch {
        &self.0.patch
    }

    /// Whether the function carries the hook at present.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.0.active.load(Ordering::Acquire)
    }
}
