//! Memory events: which addresses became memory, and which stop being so.
//!
//! Events come from [`cuda::replacements`](crate::cuda::replacements), once per user
//! call, and go to every [subscriber](subscribers). An allocation is reported after the
//! call that made it; a release before the call that carries it out, so that nobody
//! still relies on the memory when the driver hands it to somebody else.

pub mod sizes;
pub mod subscribers;

use std::ffi::CStr;

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
