//! One event per user call, in every nesting.
//!
//! The runtime API calls the driver API, drivers call themselves, and both may be
//! hooked at once, by slots and by patched entries. Only the outermost hooked call of
//! a thread is the user's; the ones inside it pass through without a report.
//!
//! All that is known of a thread stands together, so that a hooked call looks it up once,
//! and has no destructor: it takes no memory from the heap and can be used until the
//! thread's very end.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the process is ending: no call is anybody's any more.
static ENDED: AtomicBool = AtomicBool::new(false);

/// From now on, all calls pass through without a report.
pub fn end() {
    ENDED.store(true, Ordering::Relaxed);
}

/// What is known of a thread.
#[derive(Debug)]
pub(crate) struct Thread {
    depth: Cell<u32>,
    /// The depth at which calls are the user's: not 0 inside an event handler.
    base: Cell<u32>,
    /// Whether it tells subscribers of an event.
    pub(crate) dispatching: Cell<bool>,
    /// How many events its handlers have caused that nobody has been told of yet.
    pub(crate) pending: Cell<usize>,
    /// How it is counted among those who read the list of subscribers: for `event` to say.
    pub(crate) seat: Cell<usize>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            depth: Cell::new(0),
            base: Cell::new(0),
            dispatching: Cell::new(false),
            pending: Cell::new(0),
            seat: Cell::new(0),
        }
    };
}

/// Calls `work` with what is known of this thread.
pub(crate) fn with_thread<R>(work: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(work)
}

/// A hooked call, or other work during which hooked calls are not the user's.
#[derive(Debug)]
pub struct Entered {
    /// It stays on its thread, as every pointer does.
    thread: *const Thread,
    outermost: bool,
}

/// Notes that the calling thread has entered a hooked call.
#[inline]
pub fn enter() -> Entered {
    THREAD.with(|thread| {
        let depth = thread.depth.get();
        thread.depth.set(depth.wrapping_add(1));
        let outermost = depth == thread.base.get() && !ENDED.load(Ordering::Relaxed);
        Entered { thread: std::ptr::from_ref(thread), outermost }
    })
}

impl Entered {
    /// Whether this is the call that the user made.
    pub fn is_outermost(&self) -> bool {
        self.outermost
    }

    /// The thread that has entered, which is this one.
    pub(crate) fn thread(&self) -> &Thread {
        // SAFETY: this is the thread that entered, since no pointer leaves its thread; and
        // what is known of it, having no destructor, stays until it has ended.
        unsafe { &*self.thread }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        let depth = &self.thread().depth;
        depth.set(depth.get().wrapping_sub(1));
    }
}

/// An event handler, whose calls are its own and not part of the call it is told about.
#[derive(Debug)]
pub(crate) struct InHandler<'thread> {
    thread: &'thread Thread,
    base: u32,
}

impl Thread {
    /// Notes that the thread runs event handlers.
    pub(crate) fn begin_again(&self) -> InHandler<'_> {
        InHandler { thread: self, base: self.base.replace(self.depth.get()) }
    }
}

impl Drop for InHandler<'_> {
    fn drop(&mut self) {
        self.thread.base.set(self.base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_call_counts() {
        let outer = enter();
        assert!(outer.is_outermost());
        {
            let inner = enter();
            assert!(!inner.is_outermost());
        }
        assert!(!enter().is_outermost());
        std::thread::spawn(|| assert!(enter().is_outermost())).join().unwrap();
        drop(outer);
        assert!(enter().is_outermost());
    }

    #[test]
    fn a_handlers_calls_are_its_own() {
        let _outer = enter();
        with_thread(|thread| {
            let _handler = thread.begin_again();
            let own = enter();
            assert!(own.is_outermost());
            assert!(!enter().is_outermost());
        });
        assert!(!enter().is_outermost());
    }
}
