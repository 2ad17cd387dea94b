//! All hooks in one pass: decide and allocate for every target, then change the
//! code once.
//!
//! The pass that writes is in [`super::apply`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::code::prologue::Function;
use crate::sys::exec_memory::{self, Policy};
use crate::sys::fork_lock::Held;
use crate::sys::maps::{self, MapsEntry};
use crate::sys::{membarrier, threads};

use super::apply::{Change, apply};
use super::arena::Arena;
use super::plan::{self, Patch, Strategy};
use super::registry::{self, Patched, Record};
use super::write::read;
use super::{Reason, Refusal, Target};

/// How much of a function is looked at, at most.
const LOOK: u64 = 1024;
/// How much of a function is looked at, at least: what has to move for the longest jump.
const LEAST: u64 = 64;

/// How a transaction goes about it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Use the twelve-byte jump everywhere (`UCX_MEM_BISTRO_FORCE_FAR_JUMP`), for tests.
    pub force_far: bool,
    /// How long it is waited, at most, until no thread is inside replaced
    /// bytes, where there is no way without waiting.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { force_far: false, patience: Duration::from_secs(2) }
    }
}

/// A target that will be patched by [`Transaction::commit`].
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The original function. It must not be called before [`Transaction::seal`]. Store it
    /// after that and before the commit: then the replacement may be called at once, and
    /// another thread may still be in it, on its way to what was stored there before.
    pub trampoline: usize,
    /// How the function will be patched.
    pub strategy: Strategy,
}

/// The lock, and what the system told when the transaction began.
#[derive(Debug)]
pub(super) struct Ground {
    /// Held for as long as anything is done on this ground.
    lock: Held,
    pub(super) policy: Policy,
    pub(super) map: Vec<MapsEntry>,
}

impl Ground {
    fn survey() -> Result<Self, Reason> {
        let lock = registry::lock()?;
        let policy = exec_memory::probe().map_err(Reason::Policy)?;
        let map = maps::read_self().map_err(|error| Reason::System {
            what: "reading /proc/self/maps",
            error: error.to_string(),
        })?;
        Ok(Self { lock, policy, map })
    }

    /// The readable code from an address on, no more than `length` bytes of it.
    fn code(&self, address: u64, length: u64) -> Result<Vec<u8>, Reason> {
        let entry = maps::find(&self.map, address)
            .filter(|entry| entry.protection.read && entry.protection.execute)
            .ok_or(Reason::NotCode)?;
        if entry.shared {
            return Err(Reason::SharedMapping);
        }
        let mut end = entry.range.end;
        let behind = self.map.partition_point(|next| next.range.start <= address);
        for next in &self.map[behind..] {
            let goes_on =
                next.range.start == end && next.protection.read && next.protection.execute;
            if !goes_on || end - address >= length {
                break;
            }
            end = next.range.end;
        }
        Ok(read(address, length.min(end - address) as usize))
    }
}

/// Does early what the first transaction would otherwise wait for.
///
/// Registering for core synchronisation makes the kernel wait until every
/// processor has passed a quiescent state: microseconds while the process has
/// one thread, 8 to 50 ms once it has many. So it is done now only in the first
/// case, and else when a function comes that cannot be patched by one store.
/// The decoder's tables, which are made on their first use, take another half
/// millisecond.
pub fn prepare() {
    if threads::is_alone() {
        // A refusal comes back, with its words, when a transaction asks again.
        let _ = membarrier::register();
    }
    crate::code::prologue::warm_up();
}

/// What a target became.
#[derive(Debug)]
enum Item {
    /// A plan whose code lies in this transaction's arena.
    New(Box<Patch>),
    /// The same function was hooked in the same way before: its code is still there.
    Again(&'static Record),
}

impl Item {
    fn patch(&self) -> &Patch {
        match self {
            Self::New(patch) => patch,
            Self::Again(record) => &record.patch,
        }
    }
}

/// Targets that are patched together. While it lives, other threads wait with
/// theirs, and with a fork; this thread's own further ones are refused.
#[derive(Debug)]
pub struct Transaction {
    options: Options,
    ground: Result<Ground, Reason>,
    /// What came of making the trampolines executable, once that was tried.
    sealed: Option<Result<(), Reason>>,
    arena: Arena,
    items: Vec<Item>,
}

impl Default for Transaction {
    fn default() -> Self {
        Self::new()
    }
}

impl Transaction {
    /// An empty transaction.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    /// An empty transaction with options.
    #[must_use]
    pub fn with(options: Options) -> Self {
        let ground = Ground::survey();
        let arena = Arena::new(ground.as_ref().map_or(&[], |ground| &ground.map));
        Self { options, ground, sealed: None, arena, items: Vec::new() }
    }

    /// Decodes a target and prepares everything for it. A refused one leaves
    /// the others as they are.
    ///
    /// # Safety
    ///
    /// If the address lies in executable memory, it is the first byte of a
    /// function that stays where it is for as long as the process lives, and
    /// the replacement can be called wherever that function is called.
    pub unsafe fn add(&mut self, target: Target<'_>) -> Result<Prepared, Refusal> {
        let address = target.address as u64;
        let bare = Function { symbol: target.name, address, bytes: &[], size: target.size };
        let ground = self.ground.as_ref().map_err(|reason| bare.refusal(reason.clone()))?;
        // A short function ends before the jump does, which is seen from what follows it.
        let length = target.size.map_or(LOOK, |size| LOOK.min(size as u64).max(LEAST));
        let bytes = ground.code(address, length).map_err(|reason| bare.refusal(reason))?;
        let function = Function { bytes: &bytes, ..bare };
        if self.sealed.is_some() {
            return Err(function.refusal(Reason::Busy));
        }
        let hooked_before = registry::records()
            .filter(|record| record.active.load(Ordering::Acquire))
            .any(|record| record.patch.target == address);
        if hooked_before || self.items.iter().any(|item| item.patch().target == address) {
            return Err(function.refusal(Reason::AlreadyHooked));
        }
        let replacement = target.replacement as u64;
        let item = match earlier(&function, replacement, self.options.force_far) {
            Some(record) => Item::Again(record),
            None => {
                let patch =
                    plan::plan(function, replacement, self.options.force_far, &mut self.arena)?;
                Item::New(Box::new(patch))
            }
        };
        let patch = item.patch();
        let staged = !patch.install().hold.is_empty() || !patch.remove().hold.is_empty();
        // Where one store does it all, nobody has to wait for the registration.
        if staged && let Err(error) = membarrier::register() {
            let refused = "membarrier(PRIVATE_EXPEDITED_SYNC_CORE) is refused";
            return Err(function.refusal(Reason::Policy(format!("{refused}: {error}"))));
        }
        for (at, code) in &patch.code {
            self.arena.write(*at, code);
        }
        let prepared =
            Prepared { trampoline: patch.trampoline as usize, strategy: patch.strategy.clone() };
        self.items.push(item);
        Ok(prepared)
    }

    /// Makes the trampolines executable; true if they can be called. Nothing more can be
    /// added then. What goes wrong is told by the commit.
    pub fn seal(&mut self) -> bool {
        let Ok(ground) = &self.ground else { return false };
        let arena = std::mem::replace(&mut self.arena, Arena::new(&[]));
        let source = &ground.policy.source;
        let sealed = self.sealed.get_or_insert_with(|| {
            arena.seal(source).map_err(|error| Reason::System {
                what: "making the trampolines executable",
                error: error.to_string(),
            })
        });
        sealed.is_ok()
    }

    /// Patches every prepared target. The results are in the order of `add`,
    /// without those that it refused.
    #[must_use]
    pub fn commit(mut self) -> Vec<Result<Patched, Refusal>> {
        self.seal();
        let Self { options, ground, sealed, items, .. } = self;
        // Without ground to stand on, `add` has refused every target.
        let Ok(ground) = ground else { return Vec::new() };
        if let Some(Err(reason)) = sealed {
            return items.iter().map(|item| Err(refuse(item.patch(), reason.clone()))).collect();
        }
        let records: Vec<&'static Record> = items
            .into_iter()
            .map(|item| match item {
                Item::New(patch) => registry::publish(*patch, options.force_far, &ground.lock),
                Item::Again(record) => record,
            })
            .collect();
        let changes = records.iter().map(|record| Change::install(record)).collect();
        let results = apply(changes, &ground, options.patience);
        let patched = |(record, result): (&'static Record, Result<(), Reason>)| {
            result.map_err(|reason| refuse(&record.patch, reason))?;
            record.active.store(true, Ordering::Release);
            Ok(Patched(record))
        };
        records.into_iter().zip(results).map(patched).collect()
    }
}

/// Takes hooks back, all in one pass. The trampolines stay valid.
#[must_use]
pub fn restore(patched: &[Patched]) -> Vec<Result<(), Refusal>> {
    let ground = match Ground::survey() {
        Ok(ground) => ground,
        Err(reason) => {
            return patched.iter().map(|one| Err(refuse(one.patch(), reason.clone()))).collect();
        }
    };
    let mut seen = Vec::new();
    let changes = patched
        .iter()
        .map(|one| {
            let mut change = Change::remove(one.0);
            if !one.is_active() || seen.contains(&one.patch().target) {
                // Taken back already, and nothing to be done.
                change.steps = None;
            } else if ground
                .code(one.patch().start, one.patch().new.len() as u64)
                .is_ok_and(|code| code.starts_with(&one.patch().new))
            {
                seen.push(one.patch().target);
            } else {
                change.refused = Some(Reason::ChangedByOthers);
            }
            change
        })
        .collect();
    let results = apply(changes, &ground, Options::default().patience);
    let restored = |(one, result): (&Patched, Result<(), Reason>)| {
        result.map_err(|reason| refuse(one.patch(), reason))?;
        one.0.active.store(false, Ordering::Release);
        Ok(())
    };
    patched.iter().zip(results).map(restored).collect()
}

fn refuse(patch: &Patch, reason: Reason) -> Refusal {
    Refusal {
        symbol: patch.symbol.clone(),
        address: patch.target,
        bytes: patch.old.clone(),
        instruction: None,
        reason,
    }
}

/// An earlier patch of the same function to the same replacement, whose code can be used again.
fn earlier(function: &Function<'_>, replacement: u64, force_far: bool) -> Option<&'static Record> {
    registry::records().find(|record| {
        let patch = &record.patch;
        let offset = (patch.start - patch.target) as usize;
        patch.target == function.address
            && patch.replacement == replacement
            && record.force_far == force_far
            && function.bytes.get(offset..).is_some_and(|bytes| bytes.starts_with(&patch.moved))
    })
}
