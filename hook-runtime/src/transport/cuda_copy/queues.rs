//! What one context needs: a stream for each pair of kinds, events, and what is under way.

use std::collections::VecDeque;

use super::batch::Batch;
use super::kernel::Kernel;
use super::staging::Staging;
use super::{Copy, Settings};
use crate::cuda::driver::calls::{Context, Event, Stream};
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::open::{Driver, Entered};
use crate::transport::{CopyError, Path};

/// Copies that are over, until they are reported.
#[derive(Debug, Default)]
pub(super) struct Done(Vec<(u64, Result<(), CopyError>)>);

impl Done {
    pub(super) fn push(&mut self, tokens: &[u64], result: &Result<(), CopyError>) {
        self.0.extend(tokens.iter().map(|&token| (token, result.clone())));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn report(&mut self, report: super::Report<'_>) -> usize {
        let number = self.0.len();
        for (token, result) in self.0.drain(..) {
            report(token, result);
        }
        number
    }

    /// What came of one copy, which is then not reported.
    pub(super) fn take(&mut self, token: u64) -> Result<(), CopyError> {
        let place = self.0.iter().position(|done| done.0 == token);
        place.map_or(Ok(()), |place| self.0.swap_remove(place).1)
    }
}

#[derive(Debug)]
struct Group {
    event: Event,
    tokens: Vec<u64>,
}

#[derive(Debug)]
struct Queue {
    stream: Stream,
    groups: VecDeque<Group>,
}

const KINDS: usize = 4;
const PAIRS: usize = KINDS * KINDS;

/// A stream does not wait for the default one.
const NON_BLOCKING: u32 = 1;
/// An event does not take the time.
const NO_TIMING: u32 = 2;

#[derive(Debug)]
pub(super) struct Queues {
    pub(super) driver: &'static Driver,
    context: Context,
    id: Option<u64>,
    queues: [Option<Queue>; PAIRS],
    pub(super) batches: [Batch; PAIRS],
    short: Option<Stream>,
    free_events: Vec<Event>,
    events: usize,
    max_events: usize,
    pub(super) kernel: Kernel,
    pub(super) batching: bool,
    staging: Option<Staging>,
    lost: bool,
}

pub(super) fn pair(path: Path) -> usize {
    path.from as usize * KINDS + path.to as usize
}

impl Queues {
    pub(super) fn new(
        driver: &'static Driver,
        context: Context,
        max_events: usize,
    ) -> Result<Self, CopyError> {
        let _entered = driver.enter(context)?;
        Ok(Self {
            driver,
            context,
            id: driver.context_id(context),
            queues: [const { None }; PAIRS],
            batches: Default::default(),
            short: None,
            free_events: Vec::new(),
            events: 0,
            max_events,
            kernel: Kernel::default(),
            batching: driver.can_batch(),
            staging: None,
            lost: false,
        })
    }

    pub(super) fn context(&self) -> Context {
        self.context
    }

    pub(super) fn enter(&self) -> Result<Entered<'static>, Failure> {
        self.driver.enter(self.context)
    }

    /// Whether the context is still the one that the queues were made in.
    pub(super) fn is_alive(&self) -> bool {
        self.enter().is_ok() && self.driver.context_id(self.context) == self.id
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Notes that the context is no more, if that is what an error means.
    pub(super) fn note(&mut self, error: &CopyError, done: &mut Done) {
        let gone = matches!(error, CopyError::Driver(failure) if failure.is_gone());
        if gone && !self.is_alive() {
            self.give_up(done);
        }
    }

    /// The context is gone, and with it everything that was made in it.
    pub(super) fn give_up(&mut self, done: &mut Done) {
        self.lost = true;
        for queue in self.queues.iter_mut().filter_map(Option::take) {
            for group in queue.groups {
                done.push(&group.tokens, &Err(CopyError::ContextGone));
            }
        }
        for batch in &mut self.batches {
            done.push(&batch.take_tokens(), &Err(CopyError::ContextGone));
        }
        self.free_events.clear();
        self.short = None;
        self.kernel = Kernel::default();
        if let Some(staging) = self.staging.take() {
            staging.abandon();
        }
    }

    pub(super) fn outstanding(&self) -> usize {
        let groups = self.queues.iter().flatten().flat_map(|queue| &queue.groups);
        let gathered: usize = self.batches.iter().map(Batch::len).sum();
        groups.map(|group| group.tokens.len()).sum::<usize>() + gathered
    }

    fn new_stream(&self) -> Result<Stream, Failure> {
        let mut stream = 0;
        // SAFETY: the result is a place of ours; the context is current.
        unsafe { self.driver.calls.stream_create(&raw mut stream, NON_BLOCKING) }?;
        Ok(stream)
    }

    /// The stream for a pair of kinds. The context is current.
    pub(super) fn stream(&mut self, path: Path) -> Result<Stream, CopyError> {
        if let Some(queue) = &self.queues[pair(path)] {
            return Ok(queue.stream);
        }
        let stream = self.new_stream()?;
        self.queues[pair(path)] = Some(Queue { stream, groups: VecDeque::new() });
        Ok(stream)
    }

    /// An event that nobody uses. Where there may be no more of them, the oldest of the
    /// copies under way is waited for.
    fn event(&mut self, done: &mut Done) -> Result<Event, CopyError> {
        if self.free_events.is_empty() && self.events >= self.max_events {
            self.wait_for_oldest(done)?;
        }
        if let Some(event) = self.free_events.pop() {
            return Ok(event);
        }
        let mut event = 0;
        // SAFETY: the result is a place of ours; the context is current.
        unsafe { self.driver.calls.event_create(&raw mut event, NO_TIMING) }?;
        self.events += 1;
        Ok(event)
    }

    fn wait_for_oldest(&mut self, done: &mut Done) -> Result<(), CopyError> {
        let Self { driver, queues, free_events, .. } = self;
        let Some(queue) = queues.iter_mut().flatten().find(|queue| !queue.groups.is_empty()) else {
            return Ok(());
        };
        let Some(group) = queue.groups.front() else { return Ok(()) };
        // SAFETY: the event was made in this context and is still ours.
        unsafe { driver.calls.event_synchronize(group.event) }?;
        if let Some(group) = queue.groups.pop_front() {
            done.push(&group.tokens, &Ok(()));
            free_events.push(group.event);
        }
        Ok(())
    }

    /// Posts one copy by itself.
    pub(super) fn post(
        &mut self,
        copy: &Copy,
        tokens: &[u64],
        done: &mut Done,
    ) -> Result<(), CopyError> {
        let _entered = self.enter()?;
        // What was gathered before it, and touches the same bytes, comes first.
        self.submit(copy.path, done)?;
        let stream = self.stream(copy.path)?;
        let event = self.event(done)?;
        // SAFETY: whoever posts the copy vouches for the memory until it is over.
        let posted = unsafe { self.driver.calls.copy_async(copy.to, copy.from, copy.size, stream) };
        if let Err(failure) = posted {
            self.free_events.push(event);
            return Err(failure.into());
        }
        self.mark(copy.path, stream, event, tokens.to_vec())
    }

    /// Notes what is over when the stream gets to here.
    pub(super) fn mark(
        &mut self,
        path: Path,
        stream: Stream,
        event: Event,
        tokens: Vec<u64>,
    ) -> Result<(), CopyError> {
        // SAFETY: both were made in this context and are ours.
        if let Err(failure) = unsafe { self.driver.calls.event_record(event, stream) } {
            self.free_events.push(event);
            // The copy is under way, and its memory must not be given back before its end.
            // SAFETY: the stream is ours.
            let waited = unsafe { self.driver.calls.stream_synchronize(stream) };
            return Err(waited.err().unwrap_or(failure).into());
        }
        if let Some(queue) = &mut self.queues[pair(path)] {
            queue.groups.push_back(Group { event, tokens });
        }
        Ok(())
    }

    /// A stream and an event to go with it.
    pub(super) fn stream_and_event(
        &mut self,
        path: Path,
        done: &mut Done,
    ) -> Result<(Stream, Event), CopyError> {
        Ok((self.stream(path)?, self.event(done)?))
    }

    pub(super) fn give_back(&mut self, event: Event) {
        self.free_events.push(event);
    }

    /// Copies and waits, in a stream of its own.
    pub(super) fn copy_now(&mut self, copy: &Copy) -> Result<(), CopyError> {
        let _entered = self.enter()?;
        let stream = match self.short {
            Some(stream) => stream,
            None => *self.short.insert(self.new_stream()?),
        };
        let calls = &self.driver.calls;
        // SAFETY: whoever asks for the copy vouches for the memory until this returns.
        unsafe { calls.copy_async(copy.to, copy.from, copy.size, stream) }?;
        // SAFETY: the stream is ours.
        unsafe { calls.stream_synchronize(stream) }?;
        Ok(())
    }

    /// Copies between pageable host memory and a device, through pinned buffers.
    pub(super) fn stage(
        &mut self,
        copy: &Copy,
        settings: &Settings,
        done: &mut Done,
    ) -> Result<(), CopyError> {
        let _entered = self.enter()?;
        self.submit(copy.path, done)?;
        if let Some(queue) = self.queues[pair(copy.path)].as_ref().filter(|q| !q.groups.is_empty())
        {
            // It goes through other streams, and comes after what was posted before it.
            // SAFETY: the stream is ours.
            unsafe { self.driver.calls.stream_synchronize(queue.stream) }?;
        }
        let staging = match &mut self.staging {
            Some(staging) => staging,
            none => none.insert(Staging::new(self.driver, self.context, settings)?),
        };
        staging.copy(copy)
    }

    /// Looks at the oldest of each queue, as long as they are over.
    pub(super) fn poll(&mut self, polls: usize, done: &mut Done) {
        let Self { driver, queues, free_events, .. } = self;
        let mut gone = false;
        for queue in queues.iter_mut().flatten() {
            for _ in 0..polls {
                let Some(group) = queue.groups.front() else { break };
                // SAFETY: the event was made in this context and is still ours.
                let result = match unsafe { driver.calls.event_query(group.event) } {
                    Err(failure) if failure.is_not_ready() => break,
                    other => other.map_err(CopyError::from),
                };
                gone |= matches!(&result, Err(CopyError::Driver(failure)) if failure.is_gone());
                if let Some(group) = queue.groups.pop_front() {
                    done.push(&group.tokens, &result);
                    free_events.push(group.event);
                }
            }
        }
        if gone && !self.is_alive() {
            self.give_up(done);
        }
    }

    /// Waits for everything.
    pub(super) fn wait_all(&mut self, done: &mut Done) -> Result<(), CopyError> {
        let active = |queue: &&mut Queue| !queue.groups.is_empty();
        if !self.queues.iter_mut().flatten().any(|queue| active(&queue)) {
            return Ok(());
        }
        let _entered = self.enter()?;
        let Self { driver, queues, free_events, .. } = self;
        let mut first = Ok(());
        for queue in queues.iter_mut().flatten().filter(active) {
            // SAFETY: the stream is ours.
            let result = unsafe { driver.calls.stream_synchronize(queue.stream) };
            let result = result.map_err(CopyError::from);
            for group in queue.groups.drain(..) {
                done.push(&group.tokens, &result);
                free_events.push(group.event);
            }
            first = first.and(result);
        }
        first
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        if self.lost {
            return;
        }
        let Ok(_entered) = self.driver.enter_to_clean(self.context) else { return };
        self.staging = None;
        self.kernel.unload(self.driver);
        let streams = self.queues.iter().flatten().map(|queue| queue.stream).chain(self.short);
        for stream in streams {
            // SAFETY: it was made in this context, which is alive, and is destroyed once.
            let _ = unsafe { self.driver.calls.stream_destroy(stream) };
        }
        let used = self.queues.iter().flatten().flat_map(|queue| &queue.groups);
        for event in self.free_events.iter().copied().chain(used.map(|group| group.event)) {
            // SAFETY: as above.
            let _ = unsafe { self.driver.calls.event_destroy(event) };
        }
    }
}
