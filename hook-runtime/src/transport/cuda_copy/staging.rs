//! Pageable host memory to and from a device, through pinned buffers.
//!
//! The driver copies such memory with one thread and through one buffer. Here each of
//! several threads has a stream and two buffers: while one is on its way, the other is
//! filled or emptied. The thread that asks for the copy is one of them, so that a process
//! that may use one processor needs no other.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::{Copy, Settings};
use crate::cuda::driver::calls::{Context, Event, Stream};
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::open::Driver;
use crate::memtype::Kind;
use crate::sys::affinity;
use crate::transport::CopyError;
use crate::transport::settings::Auto;

const AUTO_THREADS: usize = 8;
const SMALLEST_CHUNK: usize = 256 << 10;
const NO_TIMING: u32 = 2;
const NON_BLOCKING: u32 = 1;
/// The buffer is pinned for every context.
const PORTABLE: u32 = 1;

/// A stream and two pinned buffers, each with an event that says when it is free.
#[derive(Debug, Default, Clone, Copy)]
struct Lane {
    stream: Stream,
    buffers: [usize; 2],
    events: [Event; 2],
}

/// One copy, shared by those who make it.
#[derive(Debug)]
struct Job {
    copy: Copy,
    /// Offsets and lengths, in the order in which they are taken.
    pieces: Vec<(usize, usize)>,
    next: AtomicUsize,
}

/// Cuts `size` bytes for `lanes` threads. The device waits until the first pieces have been
/// filled, or the caller until the last ones have been emptied: these are small, a round of
/// them for each size up to `chunk`.
fn pieces(size: usize, lanes: usize, chunk: usize, to_device: bool) -> Vec<(usize, usize)> {
    let (mut all, mut done, mut length) = (Vec::new(), 0, SMALLEST_CHUNK.min(chunk));
    while done < size {
        let piece = length.min(size - done);
        all.push((done, piece));
        done += piece;
        if all.len() % lanes == 0 {
            length = (2 * length).min(chunk);
        }
    }
    if !to_device {
        // The same lengths the other way round.
        all.reverse();
        for (offset, length) in &mut all {
            *offset = size - *offset - *length;
        }
    }
    all
}

type Task = (Arc<Job>, Sender<Result<(), Failure>>);

#[derive(Debug)]
struct Worker {
    tasks: Sender<Task>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
pub(super) struct Staging {
    driver: &'static Driver,
    lanes: Vec<Lane>,
    workers: Vec<Worker>,
    chunk: usize,
}

/// How many threads make a copy, the calling one included.
fn threads(settings: &Settings) -> usize {
    let allowed = affinity::processors();
    match settings.threads {
        Auto::Auto => allowed.min(AUTO_THREADS),
        Auto::Value(wanted) => (wanted as usize).clamp(1, allowed),
    }
}

impl Staging {
    /// The context is current.
    pub(super) fn new(
        driver: &'static Driver,
        context: Context,
        settings: &Settings,
    ) -> Result<Self, CopyError> {
        let chunk = settings.stage_chunk.0.max(4096);
        let mut this = Self { driver, lanes: Vec::new(), workers: Vec::new(), chunk };
        for number in 0..threads(settings) {
            let mut lane = Lane::default();
            let made = lane.make(driver, chunk);
            this.lanes.push(lane); // What was made of it is given back with the others.
            made?;
            if number > 0 {
                this.workers.push(Worker::start(driver, context, lane)?);
            }
        }
        Ok(this)
    }

    /// Makes a copy, and returns when it is over. The context is current.
    pub(super) fn copy(&mut self, copy: &Copy) -> Result<(), CopyError> {
        let to_device = copy.path.from == Kind::Host;
        let pieces = pieces(copy.size, self.lanes.len(), self.chunk, to_device);
        let count = pieces.len();
        let job = Arc::new(Job { copy: *copy, pieces, next: AtomicUsize::new(0) });
        let (report, results) = channel();
        let helpers = count.saturating_sub(1).min(self.workers.len());
        for worker in &self.workers[..helpers] {
            // A worker that is gone does no harm: the others do its part.
            let _ = worker.tasks.send((job.clone(), report.clone()));
        }
        drop(report);
        let own = self.lanes.first().map_or(Ok(()), |lane| lane.run(self.driver, &job));
        if own.is_err() {
            job.next.store(usize::MAX / 2, Ordering::Relaxed);
        }
        let mut result = own;
        // Ends when every helper has reported or is gone: nobody uses the memory any more.
        for helper in &results {
            result = result.and(helper);
        }
        let begun = job.next.load(Ordering::Relaxed);
        if result.is_ok() && begun < count {
            return Err(CopyError::Thread("a part of the copy was left".into()));
        }
        Ok(result?)
    }

    /// The context is gone, and its memory with it: only threads are ended.
    pub(super) fn abandon(mut self) {
        self.lanes.clear();
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for worker in self.workers.drain(..) {
            drop(worker.tasks);
            let _ = worker.thread.join();
        }
        for lane in self.lanes.drain(..) {
            lane.give_back(self.driver);
        }
    }
}

impl Worker {
    fn start(driver: &'static Driver, context: Context, lane: Lane) -> Result<Self, CopyError> {
        let (tasks, receiver): (_, Receiver<Task>) = channel();
        let work = move || {
            while let Ok((job, report)) = receiver.recv() {
                let entered = driver.enter(context);
                let result = entered.and_then(|_entered| lane.run(driver, &job));
                if result.is_err() {
                    job.next.store(usize::MAX / 2, Ordering::Relaxed);
                }
                drop(job);
                let _ = report.send(result);
            }
        };
        let builder = std::thread::Builder::new().name("cuda-copy-stage".into());
        let thread = builder.spawn(work).map_err(|error| CopyError::Thread(error.to_string()))?;
        Ok(Self { tasks, thread })
    }
}

impl Job {
    /// The next piece that nobody has taken: its offset and length.
    fn take(&self) -> Option<(usize, usize)> {
        self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }
}

impl Lane {
    fn make(&mut self, driver: &Driver, chunk: usize) -> Result<(), Failure> {
        // SAFETY: the result is a place of ours; the context is current.
        unsafe { driver.calls.stream_create(&raw mut self.stream, NON_BLOCKING) }?;
        for buffer in &mut self.buffers {
            let mut address: *mut c_void = std::ptr::null_mut();
            // SAFETY: as above.
            unsafe { driver.calls.alloc_host(&raw mut address, chunk, PORTABLE) }?;
            *buffer = address as usize;
        }
        for event in &mut self.events {
            // SAFETY: as above.
            unsafe { driver.calls.event_create(event, NO_TIMING) }?;
        }
        Ok(())
    }

    fn give_back(self, driver: &Driver) {
        for event in self.events.into_iter().filter(|&event| event != 0) {
            // SAFETY: made in `make`, destroyed once.
            let _ = unsafe { driver.calls.event_destroy(event) };
        }
        for buffer in self.buffers.into_iter().filter(|&buffer| buffer != 0) {
            // SAFETY: as above.
            let _ = unsafe { driver.calls.free_host(buffer as *mut c_void) };
        }
        if self.stream != 0 {
            // SAFETY: as above.
            let _ = unsafe { driver.calls.stream_destroy(self.stream) };
        }
    }

    /// Makes pieces of the copy until none is left. Afterwards nothing is under way in it.
    fn run(&self, driver: &Driver, job: &Job) -> Result<(), Failure> {
        let result = if job.copy.path.from == Kind::Host {
            self.run_to_device(driver, job)
        } else {
            self.run_from_device(driver, job)
        };
        // SAFETY: the stream is ours.
        let waited = unsafe { driver.calls.stream_synchronize(self.stream) };
        result.and(waited)
    }

    fn run_to_device(&self, driver: &Driver, job: &Job) -> Result<(), Failure> {
        let mut used = [false; 2];
        let mut slot = 0;
        while let Some((offset, length)) = job.take() {
            if used[slot] {
                // SAFETY: the event is ours.
                unsafe { driver.calls.event_synchronize(self.events[slot]) }?;
            }
            let buffer = self.buffers[slot];
            let from = (job.copy.from as usize + offset) as *const u8;
            // SAFETY: whoever asked for the copy vouches for the source; the buffer is as long
            // as a chunk, and the copy out of it is over.
            unsafe { std::ptr::copy_nonoverlapping(from, buffer as *mut u8, length) };
            self.send(driver, job.copy.to + offset as u64, buffer as u64, length, slot)?;
            used[slot] = true;
            slot ^= 1;
        }
        Ok(())
    }

    fn run_from_device(&self, driver: &Driver, job: &Job) -> Result<(), Failure> {
        let mut before = None;
        let mut slot = 0;
        while let Some((offset, length)) = job.take() {
            let from = job.copy.from + offset as u64;
            self.send(driver, self.buffers[slot] as u64, from, length, slot)?;
            if let Some(arrived) = before.replace((slot, offset, length)) {
                self.empty(driver, job, arrived)?;
            }
            slot ^= 1;
        }
        before.map_or(Ok(()), |arrived| self.empty(driver, job, arrived))
    }

    fn send(
        &self,
        driver: &Driver,
        to: u64,
        from: u64,
        size: usize,
        slot: usize,
    ) -> Result<(), Failure> {
        // SAFETY: one side is a buffer of ours, which stays; the other side is vouched for by
        // whoever asked for the copy, and waits for it.
        unsafe { driver.calls.copy_async(to, from, size, self.stream) }?;
        // SAFETY: both are ours.
        unsafe { driver.calls.event_record(self.events[slot], self.stream) }
    }

    fn empty(
        &self,
        driver: &Driver,
        job: &Job,
        piece: (usize, usize, usize),
    ) -> Result<(), Failure> {
        let (slot, offset, length) = piece;
        // SAFETY: the event is ours.
        unsafe { driver.calls.event_synchronize(self.events[slot]) }?;
        let to = (job.copy.to as usize + offset) as *mut u8;
        // SAFETY: the buffer is filled; whoever asked for the copy vouches for the destination.
        unsafe { std::ptr::copy_nonoverlapping(self.buffers[slot] as *const u8, to, length) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once_and_are_small_where_somebody_waits() {
        for (size, lanes, chunk) in
            [(64 << 20, 8, 2 << 20), (1 << 20, 1, 4096), ((5 << 20) + 3, 3, 1 << 20), (7, 2, 4096)]
        {
            for to_device in [true, false] {
                let all = pieces(size, lanes, chunk, to_device);
                let mut sorted = all.clone();
                sorted.sort_unstable();
                let end = sorted.iter().fold(0, |end, &(offset, length)| {
                    assert_eq!(offset, end, "side by side");
                    assert!(length > 0 && length <= chunk);
                    end + length
                });
                assert_eq!(end, size);
                let small = if to_device { all[0].1 } else { all[all.len() - 1].1 };
                assert_eq!(small, SMALLEST_CHUNK.min(chunk).min(size));
            }
        }
    }
}
