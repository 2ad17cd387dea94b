//! One event per user call, in every nesting.
//!
//! The runtime API calls the driver API, drivers call themselves, and both may be
//! hooked at once, by slots and by patched entries. Only the outermost hooked call of
//! a thread is the user's; the ones inside it pass through without a report.
//!
//! The state is a thread-local number without a destructor: it takes no memory
//! from the heap and can be used until the thread's very end.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the process is ending: no call is anybody's any more.
static ENDED: AtomicBool = AtomicBool::new(false);

/// From now on, all calls pass through without a report.
pub fn end() {
    ENDED.store(true, Ordering::Relaxed);
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The depth at which calls are the user's: not 0 inside an event handler.
    static BASE: Cell<u32> = const { Cell::new(0) };
}

/// A hooked call, or other work during which hooked calls are not the user's.
#[derive(Debug)]
pub struct Entered {
    outermost: bool,
}

/// Notes that the calling thread has entered a hooked call.
pub fn enter() -> Entered {
    let depth = DEPTH.get();
    DEPTH.set(depth.wrapping_add(1));
    Entered { outermost: depth == BASE.get() && !ENDED.load(Ordering::Relaxed) }
}

impl Entered {
    /// Whether this is the call that the user made.
    pub fn is_outermost(&self) -> bool {
        self.outermost
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().wrapping_sub(1));
    }
}

/// An event handler, whose calls are its own and not part of the call it is told about.
#[derive(Debug)]
pub struct InHandler {
    base: u32,
}

/// Notes that the calling thread runs event handlers.
pub fn begin_again() -> InHandler {
    InHandler { base: BASE.replace(DEPTH.get()) }
}

impl Drop for InHandler {
    fn drop(&mut self) {
        BASE.set(self.base);
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
        {
            let _handler = begin_again();
            let own = enter();
            assert!(own.is_outermost());
            assert!(!enter().is_outermost());
        }
        assert!(!enter().is_outermost());
    }
}
