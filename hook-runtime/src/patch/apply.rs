//! The pass that writes: the entries of all functions closed at once where they
//! have to be, the new bytes, the entries opened, and the protections restored.

use std::ops::Range;
use std::time::Duration;

use crate::code::pun::{self, Signal};
use crate::sys::exec_memory::{self, PAGE};
use crate::sys::{membarrier, signal, threads};

use super::Reason;
use super::plan::{Inside, Patch, Steps, Write};
use super::registry::{self, Record};
use super::transaction::Ground;
use super::write::{self, Writer};

/// A change of one function's bytes, on its way.
pub(super) struct Change {
    record: &'static Record,
    /// `None` where nothing is to be done.
    pub(super) steps: Option<Steps>,
    pub(super) refused: Option<Reason>,
    /// What stands there at the end.
    to: &'static [u8],
}

impl Change {
    /// The change that installs a patch.
    pub(super) fn install(record: &'static Record) -> Self {
        record.set_written(record.patch.strategy.write);
        Self { record, steps: Some(record.patch.install()), refused: None, to: &record.patch.new }
    }

    /// The change that takes it back.
    pub(super) fn remove(record: &'static Record) -> Self {
        Self { record, steps: Some(record.patch.remove()), refused: None, to: &record.patch.old }
    }

    /// A page that is mapped over another changes at once.
    fn prefer_whole_page(&mut self) {
        let range = self.range();
        if range.start / PAGE == (range.end - 1) / PAGE {
            self.at_once(Write::WholePage);
        }
    }

    /// Sixteen aligned bytes change at once.
    fn prefer_wide_store(&mut self) {
        if write::fits_wide_store(self.record.patch.start, self.to.len()) {
            self.at_once(Write::WideStore);
        }
    }

    /// Does without stages, unless something has to be waited for meanwhile.
    fn at_once(&mut self, write: Write) {
        let is_staged = |steps: &Steps| !steps.hold.is_empty() || write == Write::WholePage;
        if self.steps().is_some_and(|steps| steps.wait.is_none() && is_staged(steps)) {
            self.steps = Some(Steps::at_once(self.record.patch.start, self.to));
            self.record.set_written(write);
        }
    }

    /// The steps, unless something has come in between.
    fn steps(&self) -> Option<&Steps> {
        self.steps.as_ref().filter(|_| self.refused.is_none())
    }

    /// True if traps stand in it for a moment.
    fn is_staged(&self) -> bool {
        self.steps().is_some_and(|steps| !steps.hold.is_empty())
    }

    /// The whole stretch that is replaced.
    fn range(&self) -> Range<u64> {
        self.record.patch.start..self.record.patch.start + self.record.patch.new.len() as u64
    }
}

/// Changes code in one pass. What goes wrong for one function is its result;
/// what goes wrong for all of them is everybody's.
pub(super) fn apply(
    mut changes: Vec<Change>,
    ground: &Ground,
    patience: Duration,
) -> Vec<Result<(), Reason>> {
    if ground.policy.change != exec_memory::Change::InPlace {
        changes.iter_mut().for_each(Change::prefer_whole_page);
    }
    avoid_blocked_signals(&mut changes, patience);
    let mut handlers = Handlers::default();
    for change in &mut changes {
        if let Some(steps) = change.steps() {
            change.refused = handlers.prepare(&change.record.patch, steps).err();
        }
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

/// A thread that blocks SIGTRAP would end the process if it came to an entry
/// that is closed by a trap. Where there is one, the stages are replaced by a
/// wider store if the bytes allow it; else the thread is given time.
fn avoid_blocked_signals(changes: &mut [Change], patience: Duration) {
    if !changes.iter().any(Change::is_staged) {
        return;
    }
    if threads::first_that_blocks(libc::SIGTRAP, Duration::from_millis(1)).is_none() {
        return;
    }
    changes.iter_mut().for_each(Change::prefer_wide_store);
    if !changes.iter().any(Change::is_staged) {
        return;
    }
    let moment = patience.min(Duration::from_millis(100));
    if let Some(thread) = threads::first_that_blocks(libc::SIGTRAP, moment) {
        for change in changes.iter_mut().filter(|change| change.is_staged()) {
            change.refused = Some(Reason::SignalBlocked { thread });
        }
    }
}

/// The handlers that changes rely on: put in place at the first that does.
#[derive(Default)]
struct Handlers {
    trap: Option<Result<(), Reason>>,
    illegal_instruction: Option<Result<(), Reason>>,
}

impl Handlers {
    fn prepare(&mut self, patch: &Patch, steps: &Steps) -> Result<(), Reason> {
        let traps = match &patch.strategy.inside {
            Inside::Trapped { traps } => traps.as_slice(),
            _ => &[],
        };
        let held = steps.hold.iter().map(|(_, byte)| *byte);
        let bytes = held.chain(traps.iter().map(|(_, byte)| *byte));
        bytes.filter_map(pun::signal_of).try_for_each(|signal| self.of(signal).clone())
    }

    fn of(&mut self, signal: Signal) -> &Result<(), Reason> {
        let (place, number, what) = match signal {
            Signal::Trap => (&mut self.trap, libc::SIGTRAP, "taking over SIGTRAP"),
            Signal::IllegalInstruction => {
                (&mut self.illegal_instruction, libc::SIGILL, "taking over SIGILL")
            }
        };
        place.get_or_insert_with(|| {
            signal::install(number, registry::landing)
                .map_err(|error| Reason::System { what, error: error.to_string() })
        })
    }
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
