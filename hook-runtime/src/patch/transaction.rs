//! All hooks in one pass: decide and allocate for every target, then change the
//! code once.
//!
//! This is the one place that decides when live code is written.

use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::code::prologue::Function;
use crate::code::pun::{self, Signal};
use crate::sys::exec_memory::{self, Policy};
use crate::sys::maps::{self, MapsEntry};
use crate::sys::{membarrier, signal, threads};

use super::arena::Arena;
use super::plan::{self, Inside, Patch, Steps, Strategy};
use super::registry::{self, Patched, Record};
use super::write::{Writer, read};
use super::{Reason, Refusal, Target};

/// How much of a function is looked at, at most.
const LOOK: u64 = 1024;

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
        Self { force_far: false, patience: Duration::from_millis(100) }
    }
}

/// A target that will be patched by [`Transaction::commit`].
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The original function. Store it before the commit: the replacement may
    /// be called at once. It must not be called before the commit.
    pub trampoline: usize,
    /// How the function will be patched.
    pub strategy: Strategy,
}

/// What the system told when the transaction began.
#[derive(Debug)]
struct Ground {
    policy: Policy,
    map: Vec<MapsEntry>,
    /// Why no core synchronisation is to be had, if so.
    barrier: Result<(), String>,
}

impl Ground {
    fn survey() -> Result<Self, Reason> {
        let policy = exec_memory::probe().map_err(Reason::Policy)?;
        let map = maps::read_self().map_err(|error| Reason::System {
            what: "reading /proc/self/maps",
            error: error.to_string(),
        })?;
        let barrier = membarrier::register().map_err(|error| {
            format!("membarrier(PRIVATE_EXPEDITED_SYNC_CORE) is refused: {error}")
        });
        Ok(Self { policy, map, barrier })
    }

    /// The readable code from an address on.
    fn code(&self, address: u64) -> Result<Vec<u8>, Reason> {
        let entry = maps::find(&self.map, address)
            .filter(|entry| entry.protection.read && entry.protection.execute)
            .ok_or(Reason::NotCode)?;
        if entry.shared {
            return Err(Reason::SharedMapping);
        }
        let mut end = entry.range.end;
        for next in self.map.iter().filter(|next| next.range.start > address) {
            if next.range.start != end || !next.protection.read || !next.protection.execute {
                break;
            }
            end = next.range.end;
        }
        Ok(read(address, LOOK.min(end - address) as usize))
    }
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

/// Targets that are patched together. While it lives, no other transaction does.
#[derive(Debug)]
pub struct Transaction {
    lock: MutexGuard<'static, ()>,
    options: Options,
    ground: Result<Ground, Reason>,
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
        let lock = registry::lock();
        let ground = Ground::survey();
        let arena = Arena::new(ground.as_ref().map_or(&[], |ground| &ground.map));
        Self { lock, options, ground, arena, items: Vec::new() }
    }

    /// Decodes a target and prepares everything for it. A refused one leaves
    /// the others as they are.
    pub fn add(&mut self, target: Target<'_>) -> Result<Prepared, Refusal> {
        let address = target.address as u64;
        let bare = Function { symbol: target.name, address, bytes: &[], size: target.size };
        let ground = self.ground.as_ref().map_err(|reason| bare.refusal(reason.clone()))?;
        let bytes = ground.code(address).map_err(|reason| bare.refusal(reason))?;
        let function = Function { bytes: &bytes, ..bare };
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
        if let (true, Err(error)) = (staged, &ground.barrier) {
            return Err(function.refusal(Reason::Policy(error.clone())));
        }
        for (at, code) in &patch.code {
            self.arena.write(*at, code);
        }
        let prepared =
            Prepared { trampoline: patch.trampoline as usize, strategy: patch.strategy.clone() };
        self.items.push(item);
        Ok(prepared)
    }

    /// Patches every prepared target. The results are in the order of `add`,
    /// without those that it refused.
    #[must_use]
    pub fn commit(self) -> Vec<Result<Patched, Refusal>> {
        let Self { lock, options, ground, arena, items } = self;
        let ground = match ground {
            Ok(ground) => ground,
            Err(reason) => {
                return items
                    .iter()
                    .map(|item| Err(refuse(item.patch(), reason.clone())))
                    .collect();
            }
        };
        if let Err(error) = arena.seal(&ground.policy.source) {
            let reason = Reason::System {
                what: "making the trampolines executable",
                error: error.to_string(),
            };
            return items.iter().map(|item| Err(refuse(item.patch(), reason.clone()))).collect();
        }
        let records: Vec<&'static Record> = items
            .into_iter()
            .map(|item| match item {
                Item::New(patch) => registry::publish(*patch, options.force_far, &lock),
                Item::Again(record) => record,
            })
            .collect();
        let changes =
            records.iter().map(|record| Change::new(record, record.patch.install())).collect();
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
    let _lock = registry::lock();
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
            let mut change = Change::new(one.0, one.patch().remove());
            if !one.is_active() || seen.contains(&one.patch().target) {
                // Taken back already, and nothing to be done.
                change.steps = None;
            } else if ground
                .code(one.patch().start)
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

/// A change of one function's bytes, on its way.
struct Change {
    record: &'static Record,
    /// `None` where nothing is to be done.
    steps: Option<Steps>,
    refused: Option<Reason>,
}

impl Change {
    fn new(record: &'static Record, steps: Steps) -> Self {
        Self { record, steps: Some(steps), refused: None }
    }

    /// The steps, unless something has come in between.
    fn steps(&self) -> Option<&Steps> {
        self.steps.as_ref().filter(|_| self.refused.is_none())
    }

    /// The whole stretch that is replaced.
    fn range(&self) -> Range<u64> {
        self.record.patch.start..self.record.patch.start + self.record.patch.new.len() as u64
    }
}

/// Changes code in one pass. What goes wrong for one function is its result;
/// what goes wrong for all of them is everybody's.
fn apply(mut changes: Vec<Change>, ground: &Ground, patience: Duration) -> Vec<Result<(), Reason>> {
    // Asked once, and only if some change has a stage in which a trap may be run into.
    let is_staged = |change: &Change| change.steps().is_some_and(|steps| !steps.hold.is_empty());
    let blocking =
        changes.iter().any(is_staged).then(|| threads::first_that_blocks(libc::SIGTRAP)).flatten();
    for change in &mut changes {
        let Some(steps) = change.steps() else { continue };
        change.refused = match blocking {
            Some(thread) if !steps.hold.is_empty() => Some(Reason::SignalBlocked { thread }),
            _ => prepare_signals(&change.record.patch, steps).err(),
        };
    }
    let outcome = write_all(&mut changes, ground, patience);
    changes
        .into_iter()
        .map(|change| match (change.refused, &outcome) {
            (Some(reason), _) => Err(reason),
            (None, Err(reason)) if change.steps.is_some() => Err(reason.clone()),
            _ => Ok(()),
        })
        .collect()
}

/// Puts the handlers in place that a change relies on.
fn prepare_signals(patch: &Patch, steps: &Steps) -> Result<(), Reason> {
    let mut bytes: Vec<u8> = steps.hold.iter().map(|(_, byte)| *byte).collect();
    if let Inside::Trapped { traps } = &patch.strategy.inside {
        bytes.extend(traps.iter().map(|(_, byte)| *byte));
    }
    let signals = bytes.into_iter().filter_map(pun::signal_of);
    for (number, what, wanted) in [
        (libc::SIGTRAP, "taking over SIGTRAP", Signal::Trap),
        (libc::SIGILL, "taking over SIGILL", Signal::IllegalInstruction),
    ] {
        if signals.clone().any(|signal| signal == wanted) {
            signal::install(number, registry::landing)
                .map_err(|error| Reason::System { what, error: error.to_string() })?;
        }
    }
    Ok(())
}

/// The pass itself: traps, the rest, what the traps stood for.
fn write_all(changes: &mut [Change], ground: &Ground, patience: Duration) -> Result<(), Reason> {
    if changes.iter().all(|change| change.steps().is_none()) {
        return Ok(());
    }
    let why_not = match &ground.policy.change {
        exec_memory::Change::InPlace => String::new(),
        exec_memory::Change::Swap(why) => format!("; {why}"),
    };
    let failed = |what| {
        let why_not = why_not.clone();
        move |error: std::io::Error| Reason::System { what, error: format!("{error}{why_not}") }
    };
    let ranges = changes.iter().filter(|change| change.steps().is_some()).map(Change::range);
    let mut writer = Writer::open(&ground.policy, &ground.map, ranges)
        .map_err(failed("making the code writable"))?;
    let result = write_stages(changes, &mut writer, patience).map_err(failed("writing the code"));
    let closed = writer.close().map_err(failed("restoring the protection of the code"));
    // Without it, other threads see the new code a little later: each sees it whole.
    let _ = membarrier::sync_core();
    result.and(closed)
}

fn write_stages(
    changes: &mut [Change],
    writer: &mut Writer<'_>,
    patience: Duration,
) -> std::io::Result<()> {
    let stage =
        |writer: &mut Writer<'_>, changes: &[Change], pick: &dyn Fn(&Steps) -> &[(u64, u8)]| {
            let bytes: Vec<(u64, [u8; 1])> = changes
                .iter()
                .filter_map(Change::steps)
                .flat_map(|steps| pick(steps).iter().map(|(at, byte)| (*at, [*byte])))
                .collect();
            if bytes.is_empty() {
                return Ok(());
            }
            let pieces: Vec<(u64, &[u8])> =
                bytes.iter().map(|(at, byte)| (*at, byte.as_slice())).collect();
            writer.write(&pieces)?;
            membarrier::sync_core()
        };
    stage(writer, changes, &|steps| &steps.hold)?;
    wait_for_threads(changes, writer, patience)?;
    let rest: Vec<(u64, &[u8])> = changes
        .iter()
        .filter_map(Change::steps)
        .flat_map(|steps| steps.rest.iter().map(|(at, bytes)| (*at, bytes.as_slice())))
        .collect();
    if !rest.is_empty() {
        writer.write(&rest)?;
    }
    if changes.iter().filter_map(Change::steps).any(|steps| !steps.last.is_empty()) {
        membarrier::sync_core()?;
    }
    stage(writer, changes, &|steps| &steps.last)
}

/// With the entries closed, waits until nobody is inside. Those for which that
/// cannot be shown get back what their traps replaced.
fn wait_for_threads(
    changes: &mut [Change],
    writer: &mut Writer<'_>,
    patience: Duration,
) -> std::io::Result<()> {
    let waiting: Vec<Range<u64>> =
        changes.iter().filter_map(Change::steps).filter_map(|steps| steps.wait.clone()).collect();
    if waiting.is_empty() || threads::wait_until_outside(&waiting, patience) {
        return Ok(());
    }
    for change in
        changes.iter_mut().filter(|change| change.steps().is_some_and(|steps| steps.wait.is_some()))
    {
        let back: Vec<(u64, [u8; 1])> = change
            .steps()
            .map(|steps| steps.back.iter().map(|(at, byte)| (*at, [*byte])).collect())
            .unwrap_or_default();
        let pieces: Vec<(u64, &[u8])> =
            back.iter().map(|(at, byte)| (*at, byte.as_slice())).collect();
        writer.write(&pieces)?;
        change.refused = Some(Reason::NotQuiescent { milliseconds: patience.as_millis() });
    }
    membarrier::sync_core()
}
