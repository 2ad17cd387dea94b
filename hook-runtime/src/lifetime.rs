//! Forks and the end of the process.
//!
//! A child has one thread and no CUDA: contexts and addresses are the parent's. So it gets
//! locks that are free, an empty table of allocations, and the same hooks and subscribers.
//! (Children of `vfork` and of a bare `clone` ask nobody; they have nothing to do here
//! before they call `exec`.)
//!
//! When the process ends, hooks pass calls through and do nothing else: handlers' data may
//! be gone, and the driver must not be asked any more.

use std::cell::RefCell;
use std::sync::Once;

use crate::c_api::handlers;
use crate::event::sizes::{self, SIZES};
use crate::event::subscribers::{self, Unchanging};
use crate::hook::{entry, install, reentry};
use crate::sys::process;

/// What must not change while a fork copies it, in the order in which it is locked: that is
/// the order in which it is locked elsewhere, where one is held while another is taken.
struct Held {
    _entries: entry::Unchanging,
    _refusals: install::Unchanging,
    _handlers: handlers::Unchanging,
    _subscribers: Unchanging,
    sizes: sizes::Unchanging<'static>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Makes forks and the end safe from now on.
pub(crate) fn watch() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        process::at_fork(before, in_parent, in_child);
        process::at_exit(at_exit);
    });
}

extern "C" fn before() {
    process::stop_walks();
    let held = Held {
        _entries: entry::lock_for_fork(),
        _refusals: install::lock_for_fork(),
        _handlers: handlers::lock_for_fork(),
        _subscribers: subscribers::lock_for_fork(),
        sizes: SIZES.lock_for_fork(),
    };
    HELD.set(Some(held));
}

extern "C" fn in_parent() {
    drop(HELD.take());
    process::resume_walks();
}

extern "C" fn in_child() {
    if let Some(mut held) = HELD.take() {
        held.sizes.clear();
    }
    subscribers::restart();
    process::restart_walks();
}

extern "C" fn at_exit() {
    reentry::end();
}
