//! Who is told, in which order, and what may happen meanwhile.
//!
//! A thread that reports an event takes no lock: it reads a list that never changes
//! and is replaced as a whole. Whoever replaces it waits until no other thread can
//! still be using the old one ([`readers`]), so that after
//! [`Subscription::cancel`] the handler does not run any more, anywhere. Inside a
//! handler nothing waits: the old list is then put aside until a later change.
//!
//! A handler may allocate and free GPU memory itself. Those calls are reported too, but
//! after the handler's own event has gone to everybody: never recursively.

mod readers;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Event;
use crate::hook::reentry::{self, Thread};
use readers::Readers;

/// A function that is called with each event.
pub type Handler = dyn Fn(&Event) + Send + Sync;

/// Tells `handler` about every event from now on. Handlers with lower `priority` come
/// first, those with the same in the order in which they came.
///
/// A handler runs on the thread that made the call, and must not wait for a lock that
/// another thread holds while it cancels a subscription. If it panics, the panic ends there.
pub fn subscribe(priority: i32, handler: impl Fn(&Event) + Send + Sync + 'static) -> Subscription {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    SUBSCRIBERS.change(|list| {
        let place = list.partition_point(|other| other.priority <= priority);
        list.insert(place, Subscriber { id, priority, handler: Arc::new(handler) });
    });
    Subscription { id }
}

/// A place in the list of subscribers. It stays there until [`cancel`](Self::cancel) is
/// called: dropping the value changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    id: u64,
}

impl Subscription {
    /// Ends the subscription; false if it had ended already. On return the handler does
    /// not run on any thread, unless this is called inside a handler: then it may still be
    /// running elsewhere, for the last time.
    pub fn cancel(self) -> bool {
        let mut found = false;
        SUBSCRIBERS.change(|list| {
            list.retain(|subscriber| {
                subscriber.id != self.id || std::mem::replace(&mut found, true)
            });
        });
        found
    }

    /// The number of the subscription, for C.
    pub fn id(self) -> u64 {
        self.id
    }

    /// The subscription with this number.
    pub fn from_id(id: u64) -> Self {
        Self { id }
    }
}

/// Tells all subscribers about `event`, or, inside a handler, as soon as that is through.
#[inline]
pub(crate) fn dispatch(thread: &Thread, event: &Event) {
    if SUBSCRIBERS.list.load(Ordering::Relaxed).is_null() {
        return;
    }
    if thread.dispatching.get() {
        let pending = PENDING.with_borrow_mut(|pending| pending.push(*event));
        thread.pending.set(pending);
        return;
    }
    thread.dispatching.set(true);
    SUBSCRIBERS.tell(event, thread);
    while thread.pending.get() > 0 {
        let Some((event, left)) = PENDING.with_borrow_mut(Pending::pop) else { break };
        thread.pending.set(left);
        SUBSCRIBERS.tell(&event, thread);
    }
    thread.dispatching.set(false);
}

thread_local! {
    static PENDING: RefCell<Pending> = const { RefCell::new(Pending::new()) };
}

/// Events that a handler has caused, in their order. The room is fixed: it belongs to
/// every thread, and a handler that allocates this often has lost its way.
struct Pending {
    events: [Option<Event>; Pending::ROOM],
    first: usize,
    count: usize,
}

impl Pending {
    const ROOM: usize = 32;

    const fn new() -> Self {
        Self { events: [None; Self::ROOM], first: 0, count: 0 }
    }

    /// Adds an event; how many there are then.
    fn push(&mut self, event: Event) -> usize {
        if self.count == Self::ROOM {
            crate::log::error!("a handler caused more than {} events: one is lost", Self::ROOM);
        } else {
            self.events[(self.first + self.count) % Self::ROOM] = Some(event);
            self.count += 1;
        }
        self.count
    }

    /// Takes the first out, and how many there are then.
    fn pop(&mut self) -> Option<(Event, usize)> {
        let event = self.events[self.first].take()?;
        self.first = (self.first + 1) % Self::ROOM;
        self.count -= 1;
        Some((event, self.count))
    }
}

#[derive(Clone)]
struct Subscriber {
    id: u64,
    priority: i32,
    handler: Arc<Handler>,
}

struct Subscribers {
    /// The list in force, from `Box::into_raw`; null while there is no subscriber.
    list: AtomicPtr<Vec<Subscriber>>,
    readers: Readers,
    /// Held by whoever replaces the list; with the lists that could not be freed.
    changes: Mutex<Vec<Retired>>,
}

struct Retired(*mut Vec<Subscriber>);

// SAFETY: the list is only freed, by whichever thread comes by, and all in it is `Send`.
unsafe impl Send for Retired {}

static SUBSCRIBERS: Subscribers = Subscribers {
    list: AtomicPtr::new(std::ptr::null_mut()),
    readers: Readers::new(),
    changes: Mutex::new(Vec::new()),
};

/// The list of subscribers, locked.
pub struct Unchanging(
    #[expect(dead_code, reason = "it is held")] MutexGuard<'static, Vec<Retired>>,
);

/// Keeps the list as it is until the result is dropped.
pub(crate) fn lock_for_fork() -> Unchanging {
    Unchanging(SUBSCRIBERS.changes.lock().unwrap_or_else(PoisonError::into_inner))
}

/// In a child after a fork: there is no other thread that reports or waits.
pub(crate) fn restart() {
    SUBSCRIBERS.readers.restart();
}

impl Subscribers {
    fn tell(&'static self, event: &Event, thread: &Thread) {
        let _reading = self.readers.enter(thread);
        let list = self.list.load(Ordering::SeqCst);
        // SAFETY: a list that has been replaced is freed only after all readers have been
        // waited for; this thread has been one since before it read the pointer.
        let Some(list) = (unsafe { list.as_ref() }) else { return };
        let _calls_are_the_handlers = thread.begin_again();
        for subscriber in list {
            let call = AssertUnwindSafe(|| (subscriber.handler)(event));
            if catch_unwind(call).is_err() {
                crate::log::error!("a handler of memory events has panicked");
            }
        }
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<Subscriber>)) {
        let mut retired = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.list.load(Ordering::SeqCst);
        // SAFETY: only this function frees lists, and it holds the lock.
        let mut list = unsafe { old.as_ref() }.cloned().unwrap_or_default();
        edit(&mut list);
        let new = match list.is_empty() {
            true => std::ptr::null_mut(),
            false => Box::into_raw(Box::new(list)),
        };
        self.list.store(new, Ordering::SeqCst);
        if !old.is_null() {
            retired.push(Retired(old));
        }
        if reentry::with_thread(|thread| thread.dispatching.get()) {
            return;
        }
        let garbage = std::mem::take(&mut *retired);
        // Two threads that both report, each in a handler that waits for this lock, must
        // not be waited for while it is held.
        drop(retired);
        self.readers.wait();
        for Retired(list) in garbage {
            // SAFETY: it came from `Box::into_raw`, was taken off the garbage once, and
            // nobody has been using it since the readers have been waited for.
            drop(unsafe { Box::from_raw(list) });
        }
    }
}

#[cfg(test)]
mod tests;
