//! Handlers that are known by their function and argument, as UCX's are.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    CEvent, CFunction, HOOK_RUNTIME_EVENT_ALLOC, HOOK_RUNTIME_EVENT_EXISTING,
    HOOK_RUNTIME_EVENT_FREE,
};
use crate::event::{self, Event, EventKind, Subscription};

/// What is called, and with what.
#[derive(Clone, Copy)]
pub(super) struct Called {
    pub(super) handler: CFunction,
    pub(super) argument: *mut c_void,
}

// SAFETY: whoever hands in a handler vouches for it.
unsafe impl Send for Called {}
// SAFETY: as above.
unsafe impl Sync for Called {}

impl Called {
    fn is(self, other: Self) -> bool {
        std::ptr::fn_addr_eq(self.handler, other.handler) && self.argument == other.argument
    }

    pub(super) fn with(self, event: &Event) {
        let event = CEvent::from(event);
        // SAFETY: whoever handed in the handler vouches for it.
        unsafe { (self.handler)(&raw const event, self.argument) };
    }
}

struct Handler {
    called: Called,
    /// The kinds of events that are still wanted.
    kinds: Arc<AtomicI32>,
    subscription: Subscription,
}

/// Never held while a handler is called or waited for.
static HANDLERS: Mutex<Vec<Handler>> = Mutex::new(Vec::new());

/// The list, locked.
pub(crate) struct Unchanging(
    #[expect(dead_code, reason = "it is held")] MutexGuard<'static, Vec<Handler>>,
);

/// Keeps the list as it is until the result is dropped.
pub(crate) fn lock_for_fork() -> Unchanging {
    Unchanging(HANDLERS.lock().unwrap_or_else(PoisonError::into_inner))
}

const KINDS: c_int = HOOK_RUNTIME_EVENT_ALLOC | HOOK_RUNTIME_EVENT_FREE;

fn bit(kind: EventKind) -> c_int {
    match kind {
        EventKind::Allocated => HOOK_RUNTIME_EVENT_ALLOC,
        EventKind::Freed => HOOK_RUNTIME_EVENT_FREE,
    }
}

/// # Safety
///
/// The handler may be called by any thread, with the argument, until it is unset.
pub(super) unsafe fn set(
    events: c_int,
    priority: c_int,
    handler: CFunction,
    argument: *mut c_void,
) {
    let called = Called { handler, argument };
    let kinds = Arc::new(AtomicI32::new(events & KINDS));
    let wanted = kinds.clone();
    let tell = move |event: &Event| {
        if wanted.load(Ordering::Relaxed) & bit(event.kind) != 0 {
            called.with(event);
        }
    };
    let existing = HOOK_RUNTIME_EVENT_ALLOC | HOOK_RUNTIME_EVENT_EXISTING;
    let subscription = event::subscribe(priority, tell.clone());
    let mut handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
    handlers.push(Handler { called, kinds, subscription });
    drop(handlers);
    if events & existing == existing && !event::tell_existing(&tell) {
        crate::log::info!("not all places where CUDA may have memory have been looked at");
    }
}

pub(super) fn unset(events: c_int, handler: CFunction, argument: *mut c_void) {
    let called = Called { handler, argument };
    let mut handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = handlers.extract_if(.., |one| {
        let left = |one: &Handler| one.kinds.fetch_and(!events, Ordering::Relaxed) & !events;
        one.called.is(called) && left(one) == 0
    });
    let ended: Vec<_> = ended.collect();
    drop(handlers);
    for one in ended {
        one.subscription.cancel();
    }
}
