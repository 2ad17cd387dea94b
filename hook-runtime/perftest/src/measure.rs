//! Making copies for a while, by the transport or by the driver alone, and taking the time.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use hook_runtime::memtype::Kind;
use hook_runtime::transport::CopyError;
use hook_runtime::transport::cuda_copy::{Copier, Posted, Region};
use hook_runtime::transport::settings::Settings;

use crate::buffer::{Buffer, Form, Session};
use crate::pair::Remote;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Test {
    /// Copies one after the other, as many under way as the window allows.
    Rate,
    /// One copy at a time, begun and waited for.
    Latency,
}

/// Makes copies of one size between two buffers.
pub(crate) struct Maker {
    from: Buffer,
    to: To,
    size: usize,
    /// Copies under way at a time go to places of their own, as far as there is room.
    slots: usize,
    by: By,
}

/// Where copies go.
enum To {
    Own(Buffer),
    Remote(Remote),
}

impl To {
    fn address(&self) -> usize {
        match self {
            Self::Own(buffer) => buffer.address,
            Self::Remote(remote) => remote.mapping.address(),
        }
    }
}

/// How much memory the slots take at most.
const ROOM: usize = 64 << 20;

enum By {
    Transport {
        copier: Box<Copier>,
        from: Region,
        to: Region,
    },
    Driver {
        driver: &'static hook_runtime::cuda::driver::open::Driver,
        stream: usize,
        events: Vec<usize>,
    },
}

const NON_BLOCKING: u32 = 1;
const NO_TIMING: u32 = 2;

impl By {
    /// A stream, and as many events as copies may be under way.
    fn driver(session: &Session, window: usize) -> Result<Self, CopyError> {
        let driver = session.driver;
        let (mut stream, mut events) = (0, vec![0; window.max(1)]);
        // SAFETY: the result is a place of ours; a context is current.
        unsafe { driver.calls.stream_create(&raw mut stream, NON_BLOCKING) }?;
        for event in &mut events {
            // SAFETY: as above.
            unsafe { driver.calls.event_create(event, NO_TIMING) }?;
        }
        Ok(Self::Driver { driver, stream, events })
    }
}

impl Maker {
    /// By the transport, from one device's memory to the other's, which may be the same.
    pub(crate) fn transport(
        (session, peer): (&Session, &Session),
        from: Kind,
        to: Kind,
        size: usize,
        window: usize,
        settings: Settings,
    ) -> Result<Self, CopyError> {
        let slots = slots(size, window);
        let room = slots * size;
        let (from, to) = (Buffer::new(session, from, room)?, Buffer::new(peer, to, room)?);
        let mut copier = Box::new(Copier::new(session.driver, settings));
        let regions = (copier.region(from.address, room)?, copier.region(to.address, room)?);
        Ok(Self {
            from,
            to: To::Own(to),
            size,
            slots,
            by: By::Transport { copier, from: regions.0, to: regions.1 },
        })
    }

    /// By the transport, from device memory into some of a second process.
    pub(crate) fn remote(
        session: &Session,
        (device, form): (i32, Form),
        size: usize,
        window: usize,
        settings: Settings,
    ) -> Result<Self, CopyError> {
        let slots = slots(size, window);
        let room = slots * size;
        let from = Buffer::new(session, Kind::Device, room)?;
        let remote = Remote::start(session, device, form, room).map_err(CopyError::Peer)?;
        let mut copier = Box::new(Copier::new(session.driver, settings));
        let to = copier.region(remote.mapping.address(), room)?;
        let source = copier.region(from.address, room)?;
        let by = By::Transport { copier, from: source, to };
        Ok(Self { from, to: To::Remote(remote), size, slots, by })
    }

    /// By cuMemcpyAsync, with an event after each copy when many are under way.
    pub(crate) fn raw(
        (session, peer): (&Session, &Session),
        from: Kind,
        to: Kind,
        size: usize,
        window: usize,
    ) -> Result<Self, CopyError> {
        let slots = slots(size, window);
        let room = slots * size;
        let (from, to) = (Buffer::new(session, from, room)?, Buffer::new(peer, to, room)?);
        Ok(Self { from, to: To::Own(to), size, slots, by: By::driver(session, window)? })
    }

    /// The same copies between the same bytes, by the driver alone: where in a device's
    /// memory two buffers lie makes a difference of more than one in a hundred.
    pub(crate) fn by_driver(&mut self, session: &Session, window: usize) -> Result<(), CopyError> {
        if let By::Transport { copier, .. } = &mut self.by {
            copier.flush(&mut |_, _| {})?;
        }
        self.by = By::driver(session, window)?;
        Ok(())
    }

    /// Seconds for each copy: the best of three runs of `milliseconds`.
    pub(crate) fn measure(
        &mut self,
        test: Test,
        window: usize,
        milliseconds: u64,
    ) -> Result<f64, CopyError> {
        let time = Duration::from_millis(milliseconds);
        self.run(test, window, Duration::from_millis(milliseconds / 4))?; // To warm up.
        let mut best = f64::MAX;
        for _ in 0..3 {
            best = best.min(self.run(test, window, time)?);
        }
        Ok(best)
    }

    fn run(&mut self, test: Test, window: usize, time: Duration) -> Result<f64, CopyError> {
        let (from, to, size) = (self.from.address as u64, self.to.address() as u64, self.size);
        let slots = self.slots;
        match (&mut self.by, test) {
            (By::Transport { copier, from, to }, Test::Rate) => {
                transport_rate(copier, (to, from), (size, slots), window, time)
            }
            (By::Transport { copier, from, to }, Test::Latency) => {
                // SAFETY: the buffers stay, and nothing else touches them.
                timed(time, || unsafe { copier.copy_now((to, 0), (from, 0), size) })
            }
            (By::Driver { driver, stream, .. }, Test::Latency) => timed(time, || {
                // SAFETY: the buffers stay until the stream was waited for, here.
                unsafe { driver.calls.copy_async(to, from, size, *stream) }?;
                // SAFETY: the stream is ours.
                Ok(unsafe { driver.calls.stream_synchronize(*stream) }?)
            }),
            (By::Driver { driver, stream, events }, Test::Rate) => {
                // As for ours, the end of every copy counts: copies that are merely queued
                // when the time is over would make the driver look faster than it is.
                let started = Instant::now();
                let mut next = 0;
                loop {
                    let event = events[next % events.len()];
                    if next >= events.len() {
                        // SAFETY: the event is ours.
                        unsafe { driver.calls.event_synchronize(event) }?;
                    }
                    let at = (next % slots * size) as u64;
                    // SAFETY: the buffers stay until the stream was waited for, below.
                    unsafe { driver.calls.copy_async(to + at, from + at, size, *stream) }?;
                    // SAFETY: both are ours.
                    unsafe { driver.calls.event_record(event, *stream) }?;
                    next += 1;
                    if next % 8 == 0 && started.elapsed() >= time {
                        break;
                    }
                }
                // SAFETY: the stream is ours.
                unsafe { driver.calls.stream_synchronize(*stream) }?;
                Ok(started.elapsed().as_secs_f64() / next as f64)
            }
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // A copier waits for what is under way when it is dropped, before the buffers are.
        if let By::Driver { driver, stream, events } = &self.by {
            // SAFETY: the stream is ours, and destroyed once.
            let _ = unsafe { driver.calls.stream_synchronize(*stream) };
            // SAFETY: as above.
            let _ = unsafe { driver.calls.stream_destroy(*stream) };
            for event in events {
                // SAFETY: as above.
                let _ = unsafe { driver.calls.event_destroy(*event) };
            }
        }
        if let By::Transport { copier, .. } = &mut self.by {
            let _ = copier.flush(&mut |_, _| {});
        }
    }
}

fn slots(size: usize, window: usize) -> usize {
    (ROOM / size.max(1)).clamp(1, window.max(1))
}

/// Seconds for each call of `work`, over `time`.
fn timed(
    time: Duration,
    mut work: impl FnMut() -> Result<(), CopyError>,
) -> Result<f64, CopyError> {
    let started = Instant::now();
    let mut count = 0_u32;
    loop {
        for _ in 0..8 {
            work()?;
        }
        count += 8;
        let elapsed = started.elapsed();
        if elapsed >= time {
            return Ok(elapsed.as_secs_f64() / f64::from(count));
        }
    }
}

fn transport_rate(
    copier: &mut Copier,
    (to, from): (&Region, &Region),
    (size, slots): (usize, usize),
    window: usize,
    time: Duration,
) -> Result<f64, CopyError> {
    let started = Instant::now();
    let (mut begun, mut over, mut failed) = (0_usize, 0_usize, None);
    loop {
        while begun - over < window {
            let at = begun % slots * size;
            // SAFETY: the buffers stay until the flush below. Copies of the same bytes over
            // each other leave the same bytes.
            match unsafe { copier.copy((to, at), (from, at), size, begun as u64) }? {
                Posted::Done => over += 1,
                Posted::Pending => {}
            }
            begun += 1;
            if over == begun && begun % 8 == 0 && started.elapsed() >= time {
                break;
            }
        }
        let mut note = |_, result: Result<(), CopyError>| {
            over += 1;
            failed = failed.take().or(result.err());
        };
        copier.progress(&mut note);
        if started.elapsed() >= time {
            copier.flush(&mut note)?;
            break;
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(started.elapsed().as_secs_f64() / over as f64),
    }
}
