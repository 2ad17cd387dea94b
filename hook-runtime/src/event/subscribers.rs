//! Who is told, in which order, and what may happen meanwhile.
//!
//! A thread that reports an event takes no lock: it reads a list that never changes
//! and is replaced as a whole. Whoever replaces it waits until no other thread can
//! still be using the old one (two counters, in turn), so that after
//! [`Subscription::cancel`] the handler does not run any more, anywhere. Inside a
//! handler nothing waits: the old list is then put aside until a later change.
//!
//! A handler may allocate and free GPU memory itself. Those calls are reported too, but
//! after the handler's own event has gone to everybody: never recursively.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Event;
use crate::hook::reentry;

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
pub(crate) fn dispatch(event: Event) {
    if SUBSCRIBERS.list.load(Ordering::Relaxed).is_null() {
        return;
    }
    if DISPATCHING.get() {
        PENDING.with_borrow_mut(|pending| pending.push(event));
        return;
    }
    DISPATCHING.set(true);
    SUBSCRIBERS.tell(&event);
    while let Some(event) = PENDING.with_borrow_mut(Pending::pop) {
        SUBSCRIBERS.tell(&event);
    }
    DISPATCHING.set(false);
}

thread_local! {
    static DISPATCHING: Cell<bool> = const { Cell::new(false) };
    /// The counter that this thread is counted in.
    static READING: Cell<*const AtomicUsize> = const { Cell::new(std::ptr::null()) };
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

    fn push(&mut self, event: Event) {
        if self.count == Self::ROOM {
            crate::log::error!("a handler caused more than {} events: one is lost", Self::ROOM);
            return;
        }
        self.events[(self.first + self.count) % Self::ROOM] = Some(event);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<Event> {
        let event = self.events[self.first].take()?;
        self.first = (self.first + 1) % Self::ROOM;
        self.count -= 1;
        Some(event)
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
    /// Which of the two counters threads that begin to report use.
    turn: AtomicUsize,
    readers: [Readers; 2],
    /// Held by whoever replaces the list; with the lists that could not be freed.
    changes: Mutex<Vec<Retired>>,
    /// Set by whoever waits for readers: the two counters take turns. Not a mutex, since a
    /// handler may fork while it is waited for.
    waiting: AtomicBool,
}

struct Retired(*mut Vec<Subscriber>);

// SAFETY: the list is only freed, by whichever thread comes by, and all in it is `Send`.
unsafe impl Send for Retired {}

static SUBSCRIBERS: Subscribers = Subscribers {
    list: AtomicPtr::new(std::ptr::null_mut()),
    turn: AtomicUsize::new(0),
    readers: [const { Readers::new() }; 2],
    changes: Mutex::new(Vec::new()),
    waiting: AtomicBool::new(false),
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
    let here = READING.get();
    for shard in SUBSCRIBERS.readers.iter().flat_map(|readers| &readers.shards) {
        shard.0.store(usize::from(std::ptr::eq(&raw const shard.0, here)), Ordering::SeqCst);
    }
    SUBSCRIBERS.waiting.store(false, Ordering::SeqCst);
}

impl Subscribers {
    fn tell(&self, event: &Event) {
        let _reading = self.readers[self.turn.load(Ordering::SeqCst) % 2].enter();
        let list = self.list.load(Ordering::SeqCst);
        // SAFETY: a list that has been replaced is freed only after both counters were
        // seen at zero; this thread has been counted since before it read the pointer.
        let Some(list) = (unsafe { list.as_ref() }) else { return };
        let _calls_are_the_handlers = reentry::begin_again();
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
        if DISPATCHING.get() {
            return;
        }
        let garbage = std::mem::take(&mut *retired);
        // Two threads that both report, each in a handler that waits for this lock, must
        // not be waited for while it is held.
        drop(retired);
        self.wait_for_readers();
        for Retired(list) in garbage {
            // SAFETY: it came from `Box::into_raw`, was taken off the garbage once, and
            // nobody has been using it since both counters were seen at zero.
            drop(unsafe { Box::from_raw(list) });
        }
    }

    /// Waits until every thread that was reporting when this began has ended that.
    fn wait_for_readers(&self) {
        while self.waiting.swap(true, Ordering::SeqCst) {
            std::thread::sleep(Duration::from_micros(100));
        }
        // A reader may have read `turn` before it changed, and be counted afterwards:
        // waiting for both counters, one after the other, covers it.
        for _ in 0..2 {
            let before = self.turn.fetch_add(1, Ordering::SeqCst) % 2;
            let mut rounds = 0_u32;
            while !self.readers[before].is_zero() {
                rounds += 1;
                match rounds {
                    0..100 => std::thread::yield_now(),
                    _ => std::thread::sleep(Duration::from_micros(100)),
                }
            }
        }
        self.waiting.store(false, Ordering::SeqCst);
    }
}

/// A counter that many threads change at once, spread over several cache lines.
struct Readers {
    shards: [Shard; Readers::SHARDS],
}

#[repr(align(64))]
struct Shard(AtomicUsize);

struct Reading<'shard>(&'shard AtomicUsize);

impl Readers {
    const SHARDS: usize = 8;

    const fn new() -> Self {
        Self { shards: [const { Shard(AtomicUsize::new(0)) }; Self::SHARDS] }
    }

    fn enter(&self) -> Reading<'_> {
        // The address of a thread-local variable tells threads apart at no cost.
        let here = DISPATCHING.with(|cell| std::ptr::from_ref(cell) as usize);
        let shard = &self.shards[(here >> 12) % Self::SHARDS].0;
        shard.fetch_add(1, Ordering::SeqCst);
        READING.set(shard);
        Reading(shard)
    }

    fn is_zero(&self) -> bool {
        self.shards.iter().all(|shard| shard.0.load(Ordering::SeqCst) == 0)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
        READING.set(std::ptr::null());
    }
}

#[cfg(test)]
mod tests;
