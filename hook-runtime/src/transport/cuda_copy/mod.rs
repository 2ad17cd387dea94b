//! `cuda_copy`: copies between host and device memory, inside one process.
//!
//! A [`Copier`] belongs to one thread. Memory is made known as [`Region`]s first, which
//! takes its kind and its context, so that a copy asks nothing:
//!
//! ```text
//! small, pinned <-> device    gathered, then one cuMemcpyBatchAsync
//! small, inside a device      gathered, then one launch of a kernel
//! large, pageable             staged through pinned buffers, by several threads
//! everything else             one cuMemcpyAsync
//! ```
//!
//! Copies between the same two kinds of memory in the same context are carried out in
//! their order where they touch the same bytes; others in any order until a flush.

mod batch;
mod kernel;
mod queues;
mod region;
mod staging;

use super::settings::{Limit, Settings};
use super::{Capabilities, CopyError, Cost, Path, Reach, Transport};
use crate::cuda::driver::calls::Context;
use crate::cuda::driver::failure::code;
use crate::cuda::driver::open::Driver;
use crate::memtype::{self, Kind};
use batch::Method;
use queues::{Done, Queues};
pub use region::Region;

/// The transport's row.
#[derive(Debug)]
pub struct CudaCopy;

/// The transport, for the table.
pub static CUDA_COPY: CudaCopy = CudaCopy;

const LATENCY: f64 = 1.8e-6;

impl Transport for CudaCopy {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_short: u32::MAX as usize,
            max_zcopy: usize::MAX,
            put: true,
            get: true,
            reach: Reach::Itself,
        }
    }

    fn estimate(&self, path: Path, settings: &Settings) -> Option<Cost> {
        let on_device = |kind| matches!(kind, Kind::Device | Kind::Managed);
        let direction = match (on_device(path.from), on_device(path.to)) {
            (true, true) => "d2d",
            (true, false) => "d2h",
            (false, true) => "h2d",
            (false, false) => return None,
        };
        Some(Cost { latency: LATENCY, bandwidth: settings.copy_bandwidth.get(direction) })
    }
}

/// Whether a copy is over when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It is.
    Done,
    /// It is not: its token will be reported by [`Copier::progress`] or [`Copier::flush`].
    Pending,
}

/// Is told of each copy that ends, by its token.
pub type Report<'report> = &'report mut dyn FnMut(u64, Result<(), CopyError>);

/// Makes copies for one thread.
#[derive(Debug)]
pub struct Copier {
    driver: &'static Driver,
    settings: Settings,
    queues: Vec<Queues>,
    /// Devices whose primary context is kept alive from here.
    retained: Vec<(i32, Context)>,
    /// Contexts on different devices that may use each other's memory, as far as they can.
    introduced: Vec<(Context, Context)>,
    done: Done,
    epoch: u64,
}

/// One copy, by addresses.
#[derive(Debug, Clone, Copy)]
struct Copy {
    to: u64,
    from: u64,
    size: usize,
    path: Path,
}

impl Copier {
    /// A copier over the driver of this machine.
    pub fn new(driver: &'static Driver, settings: Settings) -> Self {
        let epoch = memtype::owner_epoch();
        Self {
            driver,
            settings,
            queues: Vec::new(),
            retained: Vec::new(),
            introduced: Vec::new(),
            done: Done::default(),
            epoch,
        }
    }

    /// Begins to copy `size` bytes. `token` is reported when it is over, unless that is now.
    ///
    /// # Safety
    ///
    /// Until then both ranges stay allocated, nobody writes to the source, and nobody else
    /// touches the destination.
    pub unsafe fn copy(
        &mut self,
        to: (&Region, usize),
        from: (&Region, usize),
        size: usize,
        token: u64,
    ) -> Result<Posted, CopyError> {
        let copy = Copy {
            to: to.0.at(to.1, size)?,
            from: from.0.at(from.1, size)?,
            size,
            path: Path { from: from.0.kind, to: to.0.kind },
        };
        if size == 0 {
            return Ok(Posted::Done);
        }
        let Some(context) = to.0.context.or(from.0.context) else {
            // SAFETY: both are host memory, in bounds and the caller's to use.
            unsafe { std::ptr::copy(copy.from as *const u8, copy.to as *mut u8, size) };
            return Ok(Posted::Done);
        };
        let one_context = to.0.context.is_none_or(|own| own == context)
            && from.0.context.is_none_or(|own| own == context);
        if !one_context {
            self.introduce(to.0, from.0);
        }
        let number = self.queues_of(context)?;
        let queues = &mut self.queues[number];
        let staged = (copy.path.from == Kind::Host) != (copy.path.to == Kind::Host)
            && size >= self.settings.stage_size.0;
        if staged {
            let staged = queues.stage(&copy, &self.settings, &mut self.done);
            staged.inspect_err(|error| queues.note(error, &mut self.done))?;
            return Ok(Posted::Done);
        }
        let method = queues.method(&copy, one_context, &self.settings);
        let result = match method {
            Method::Single => queues.post(&copy, &[token], &mut self.done),
            _ => queues.gather(&copy, token, method, &self.settings, &mut self.done),
        };
        result.inspect_err(|error| queues.note(error, &mut self.done))?;
        Ok(Posted::Pending)
    }

    /// Copies `size` bytes, and returns when that is over. It does not wait for copies that
    /// were begun before.
    ///
    /// # Safety
    ///
    /// Meanwhile nobody writes to the source, and nobody else touches the destination.
    pub unsafe fn copy_now(
        &mut self,
        to: (&Region, usize),
        from: (&Region, usize),
        size: usize,
    ) -> Result<(), CopyError> {
        let staged = size >= self.settings.stage_size.0;
        let context = to.0.context.or(from.0.context);
        let (Some(context), true, false) = (context, size > 0, staged) else {
            // SAFETY: by this function's contract.
            let posted = unsafe { self.copy(to, from, size, u64::MAX) }?;
            return if posted == Posted::Pending { self.wait_for_last(to, from) } else { Ok(()) };
        };
        self.introduce(to.0, from.0);
        let path = Path { from: from.0.kind, to: to.0.kind };
        let copy = Copy { to: to.0.at(to.1, size)?, from: from.0.at(from.1, size)?, size, path };
        let number = self.queues_of(context)?;
        let queues = &mut self.queues[number];
        queues.copy_now(&copy).inspect_err(|error| queues.note(error, &mut self.done))
    }

    /// A large copy that had to be posted: its stream is waited for.
    fn wait_for_last(
        &mut self,
        to: (&Region, usize),
        from: (&Region, usize),
    ) -> Result<(), CopyError> {
        let Some(context) = to.0.context.or(from.0.context) else { return Ok(()) };
        let number = self.queues_of(context)?;
        self.queues[number].wait_all(&mut self.done)?;
        self.done.take(u64::MAX)
    }

    /// Hands gathered copies to the driver and reports those that are over, as far as one
    /// look tells. Returns how many were reported.
    pub fn progress(&mut self, report: Report<'_>) -> usize {
        self.look_for_lost_contexts();
        let polls = self.settings.copy_max_poll.max(1) as usize;
        for queues in &mut self.queues {
            queues.submit_all(&mut self.done);
            queues.poll(polls, &mut self.done);
        }
        self.done.report(report)
    }

    /// Waits until everything that was begun is over, and reports it.
    pub fn flush(&mut self, report: Report<'_>) -> Result<(), CopyError> {
        self.look_for_lost_contexts();
        let mut result = Ok(());
        for queues in &mut self.queues {
            queues.submit_all(&mut self.done);
            let waited = queues.wait_all(&mut self.done);
            if let Err(error) = waited {
                queues.note(&error, &mut self.done);
                result = Err(error);
            }
        }
        self.done.report(report);
        result
    }

    /// How many copies are under way.
    pub fn outstanding(&self) -> usize {
        self.queues.iter().map(Queues::outstanding).sum::<usize>() + self.done.len()
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The number of the queues of `context`, made now if it has none yet.
    fn queues_of(&mut self, context: Context) -> Result<usize, CopyError> {
        self.look_for_lost_contexts();
        if let Some(number) = self.queues.iter().position(|queues| queues.context() == context) {
            return Ok(number);
        }
        let events = match self.settings.copy_max_events {
            Limit::At(limit) => limit.max(1),
            Limit::Infinite => usize::MAX,
        };
        self.queues.push(Queues::new(self.driver, context, events)?);
        Ok(self.queues.len() - 1)
    }

    /// Lets contexts on two devices use each other's memory, once. Where they cannot, the
    /// driver copies through the host, and a user should know.
    fn introduce(&mut self, one: &Region, other: &Region) {
        let (Some(first), Some(second)) = (one.context, other.context) else { return };
        let pair = (first.min(second), first.max(second));
        if first == second || one.device == other.device || self.introduced.contains(&pair) {
            return;
        }
        self.introduced.push(pair);
        for (context, peer) in [(first, second), (second, first)] {
            let enabled = self.driver.enter(context).and_then(|_entered| {
                // SAFETY: a context that was destroyed is refused.
                unsafe { self.driver.calls.enable_peer(peer, 0) }
            });
            match enabled {
                Ok(()) => {}
                Err(failure) if failure.code == code::PEER_ACCESS_ALREADY_ENABLED => {}
                Err(failure) => crate::log::warn!(
                    "copies between devices {:?} and {:?} go through the host: {failure}",
                    one.device.unwrap_or(0),
                    other.device.unwrap_or(0)
                ),
            }
        }
    }

    /// Contexts end behind our back: what was under way in them is over, without success.
    fn look_for_lost_contexts(&mut self) {
        let epoch = memtype::owner_epoch();
        let changed = epoch != self.epoch;
        self.epoch = epoch;
        let done = &mut self.done;
        if changed {
            self.introduced.clear(); // A new context may have an old one's number.
        }
        self.queues.retain_mut(|queues| {
            let lost = queues.is_lost() || changed && !queues.is_alive();
            if lost {
                queues.give_up(done);
            }
            !lost
        });
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        // Whoever drops a copier has promised to keep the memory until copies are over.
        if let Err(error) = self.flush(&mut |_, _| {}) {
            crate::log::debug!("copies under way when their copier ended: {error}");
        }
        self.queues.clear();
        for (device, _) in self.retained.drain(..) {
            // SAFETY: it gives back what was retained, once.
            if let Err(failure) = unsafe { self.driver.calls.primary_release(device) } {
                crate::log::debug!("a primary context is not given back: {failure}");
            }
        }
    }
}
