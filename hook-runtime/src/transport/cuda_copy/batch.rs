//! Small copies, gathered and handed to the driver together.

use super::kernel::{self, Kernel};
use super::queues::{Done, Queues, pair};
use super::{Copy, Settings};
use crate::cuda::driver::calls::Stream;
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::types::CopyAttributes;
use crate::memtype::Kind;
use crate::transport::{CopyError, Path};

/// How a copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// By one call of its own.
    Single,
    /// Many in one call to the driver.
    Driver,
    /// Many in one launch of a kernel.
    Kernel,
}

/// Copies between the same two kinds of memory that the driver has not been told of yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    to: Vec<u64>,
    from: Vec<u64>,
    sizes: Vec<usize>,
    tokens: Vec<u64>,
    path: Option<(Path, Method)>,
}

/// The driver's largest worthwhile batch, and what fits into a kernel's parameters.
pub(super) const LARGEST: usize = kernel::COPIES;

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn take_tokens(&mut self) -> Vec<u64> {
        self.to.clear();
        self.from.clear();
        self.sizes.clear();
        std::mem::take(&mut self.tokens)
    }

    fn push(&mut self, copy: &Copy, token: u64, method: Method) {
        self.path = Some((copy.path, method));
        self.to.push(copy.to);
        self.from.push(copy.from);
        self.sizes.push(copy.size);
        self.tokens.push(token);
    }

    /// Whether the order of `copy` and what was gathered matters: one writes what the other
    /// reads or writes. The same copy twice may come in any order.
    fn touches(&self, copy: &Copy) -> bool {
        let overlap = |one: u64, one_size: usize, other: u64, other_size: usize| {
            one < other + other_size as u64 && other < one + one_size as u64
        };
        (0..self.tokens.len()).any(|n| {
            let (to, from, size) = (self.to[n], self.from[n], self.sizes[n]);
            let same = (to, from, size) == (copy.to, copy.from, copy.size);
            !same && overlap(to, size, copy.to, copy.size)
                || overlap(to, size, copy.from, copy.size)
                || overlap(from, size, copy.to, copy.size)
        })
    }
}

impl Queues {
    /// How `copy` is to be made.
    pub(super) fn method(&self, copy: &Copy, one_context: bool, settings: &Settings) -> Method {
        let small = copy.size <= settings.batch_size.0 && settings.batch > 1;
        match (copy.path.from, copy.path.to) {
            _ if !small || !one_context => Method::Single,
            (Kind::Pinned, Kind::Device) | (Kind::Device, Kind::Pinned) if self.batching => {
                Method::Driver
            }
            (Kind::Device, Kind::Device) if settings.kernel && self.kernel.is_usable() => {
                Method::Kernel
            }
            _ => Method::Single,
        }
    }

    /// Keeps `copy` until there are enough of its kind.
    pub(super) fn gather(
        &mut self,
        copy: &Copy,
        token: u64,
        method: Method,
        settings: &Settings,
        done: &mut Done,
    ) -> Result<(), CopyError> {
        let number = pair(copy.path);
        if self.batches[number].touches(copy) {
            let _entered = self.enter()?;
            self.submit(copy.path, done)?;
        }
        self.batches[number].push(copy, token, method);
        if self.batches[number].len() < (settings.batch as usize).clamp(1, LARGEST) {
            return Ok(());
        }
        let submitted = match self.enter() {
            Ok(_entered) => self.submit(copy.path, done),
            Err(failure) => Err(failure.into()),
        };
        submitted.inspect_err(|error| {
            // The last one's error is returned, that of the others reported.
            let mut tokens = self.batches[number].take_tokens();
            tokens.pop();
            done.push(&tokens, &Err(error.clone()));
        })
    }

    /// Hands everything gathered to the driver; what it refuses is over, without success.
    pub(super) fn submit_all(&mut self, done: &mut Done) {
        let waiting = |batch: &&Batch| batch.len() > 0;
        if !self.batches.iter().any(|batch| waiting(&batch)) {
            return;
        }
        let paths: Vec<_> =
            self.batches.iter().filter(waiting).filter_map(|batch| batch.path).collect();
        let entered = self.enter();
        for (path, _) in paths {
            let result = match &entered {
                Ok(_) => self.submit(path, done),
                Err(failure) => Err((*failure).into()),
            };
            if let Err(error) = result {
                // Copies that were not handed over are still in their batch.
                let tokens = self.batches[pair(path)].take_tokens();
                done.push(&tokens, &Err(error.clone()));
                self.note(&error, done);
            }
        }
    }

    /// Hands over what was gathered for `path`. The context is current.
    ///
    /// An error concerns the gathered copies alone and is reported for them; it is returned
    /// only if nothing of them was begun and they are still gathered.
    pub(super) fn submit(&mut self, path: Path, done: &mut Done) -> Result<(), CopyError> {
        let batch = std::mem::take(&mut self.batches[pair(path)]);
        let Some((_, method)) = batch.path.filter(|_| batch.len() > 0) else { return Ok(()) };
        let (stream, event) = match self.stream_and_event(path, done) {
            Ok(both) => both,
            Err(error) => {
                self.batches[pair(path)] = batch;
                return Err(error);
            }
        };
        let mut result = match method {
            Method::Driver => self.driver_batch(&batch, stream),
            Method::Kernel => self.kernel_batch(&batch, stream),
            Method::Single => self.one_by_one(&batch, stream),
        };
        if result.is_err_and(Failure::is_unsupported) {
            match method {
                Method::Driver => self.batching = false,
                _ => self.kernel = Kernel::unusable(),
            }
            result = self.one_by_one(&batch, stream);
        }
        match result {
            Ok(()) => {
                if let Err(error) = self.mark(path, stream, event, batch.tokens.clone()) {
                    done.push(&batch.tokens, &Err(error));
                }
            }
            Err(failure) => {
                self.give_back(event);
                // Some of them may have been begun: their memory is in use until the stream ends.
                // SAFETY: the stream is ours.
                let _ = unsafe { self.driver.calls.stream_synchronize(stream) };
                done.push(&batch.tokens, &Err(failure.into()));
            }
        }
        // Its room is used again.
        let mut batch = batch;
        batch.take_tokens();
        self.batches[pair(path)] = batch;
        Ok(())
    }

    fn one_by_one(&self, batch: &Batch, stream: Stream) -> Result<(), Failure> {
        for n in 0..batch.len() {
            let (to, from, size) = (batch.to[n], batch.from[n], batch.sizes[n]);
            // SAFETY: whoever gathered the copy vouches for the memory until it is over.
            unsafe { self.driver.calls.copy_async(to, from, size, stream) }?;
        }
        Ok(())
    }

    fn driver_batch(&self, batch: &Batch, stream: Stream) -> Result<(), Failure> {
        /// The source is read in the order of the stream.
        const IN_ORDER: u32 = 1;
        let attributes = CopyAttributes { source_access: IN_ORDER, ..CopyAttributes::default() };
        let (count, first) = (batch.len(), 0_usize);
        let (to, from, sizes) = (batch.to.as_ptr(), batch.from.as_ptr(), batch.sizes.as_ptr());
        let (attributes, starts) = (&raw const attributes, &raw const first);
        let calls = &self.driver.calls;
        // SAFETY: three arrays of `count`, one attribute that begins at the first copy; whoever
        // gathered the copies vouches for the memory until they are over.
        let newest =
            unsafe { calls.copy_batch_v2(to, from, sizes, count, attributes, starts, 1, stream) };
        match newest {
            Err(failure) if failure.code == Failure::MISSING => {
                let mut failed = usize::MAX;
                let place = &raw mut failed;
                // SAFETY: as above; `failed` is a place of ours.
                unsafe {
                    calls.copy_batch(to, from, sizes, count, attributes, starts, 1, place, stream)
                }
            }
            other => other,
        }
    }

    fn kernel_batch(&mut self, batch: &Batch, stream: Stream) -> Result<(), Failure> {
        let function = self.kernel.function(self.driver)?;
        let table = kernel::table(&batch.to, &batch.from, &batch.sizes);
        // SAFETY: the context is current and the stream ours; whoever gathered the copies
        // vouches for the memory until they are over.
        unsafe { kernel::launch(self.driver, function, &table, batch.len(), stream) }
    }
}
