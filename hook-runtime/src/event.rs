//! Memory events: which addresses became memory, and which stop being so.
//!
//! Events come from [`cuda::replacements`](crate::cuda::replacements), once per user
//! call, and go to every [subscriber](subscribers). An allocation is reported after the
//! call that made it; a release before the call that carries it out, so that nobody
//! still relies on the memory when the driver hands it to somebody else.

pub mod sizes;
pub mod subscribers;

use std::ffi::CStr;

use crate::cuda::driver::{self, Answer};
use crate::cuda::existing;
use sizes::{Allocation, SIZES};

pub use subscribers::{Subscription, subscribe};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EventKind {
    /// Memory appeared.
    Allocated = 1,
    /// Memory vanishes.
    Freed = 2,
}

/// What the call that allocated says about the memory. Where it says nothing certain
/// (a mapping may be host memory, a module's variable managed), the class is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MemoryClass {
    /// Ask the driver.
    Unknown = 0,
    /// Memory of a device.
    Device = 1,
    /// Managed memory.
    Managed = 2,
    /// Page-locked host memory.
    Host = 3,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The first address.
    pub address: usize,
    /// How many bytes. 0 in a [`EventKind::Freed`] event means: unknown, since the memory
    /// was allocated before hooks were installed and the driver could not be asked.
    pub size: usize,
    /// What kind of memory it is.
    pub class: MemoryClass,
    /// The function that the user called.
    pub symbol: &'static CStr,
}

/// Like [`subscribe`], and tells `handler` of every allocation that there is already, those
/// from before the hooks included. False in the result means that there may be more: see
/// [`cuda::existing`](crate::cuda::existing) for what can be found.
///
/// An allocation that is made or freed meanwhile may be reported twice.
pub fn subscribe_with_existing(
    priority: i32,
    handler: impl Fn(&Event) + Send + Sync + 'static,
) -> (Subscription, bool) {
    let handler = std::sync::Arc::new(handler);
    let told = handler.clone();
    let subscription = subscribe(priority, move |event| told(event));
    (subscription, tell_existing(&*handler))
}

/// Tells `handler` of every allocation that there is; false if there may be more.
pub fn tell_existing(handler: &dyn Fn(&Event)) -> bool {
    let tell = |kind, address, allocation: Allocation| {
        let Allocation { size, class, .. } = allocation;
        handler(&Event { kind, address, size, class, symbol: c"existing" });
    };
    for (address, allocation) in SIZES.all() {
        tell(EventKind::Allocated, address, allocation);
    }
    let earlier = existing::search();
    for (address, allocation) in earlier.allocations {
        // From now on it is known, so that its end is reported as that of any other.
        if SIZES.insert_new(address, allocation) {
            tell(EventKind::Allocated, address, allocation);
            // Its release may have been seen before it was known.
            if driver::allocation_at(address) != Answer::Allocation(address, allocation)
                && SIZES.remove(address).is_some()
            {
                tell(EventKind::Freed, address, allocation);
            }
        }
    }
    earlier.complete
}
