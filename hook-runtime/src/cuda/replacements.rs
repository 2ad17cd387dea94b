//! The functions that are called instead of CUDA's.
//!
//! Each has the name and signature of the one that it stands in for, calls its original
//! with the same arguments, and hands what it learnt to one of the helpers here. They
//! decide whether the call is the user's, keep the size table, and report.
//!
//! The parameter `COPY` tells the copies of a replacement apart; see
//! [`hook::original`](crate::hook::original).

pub mod contexts;
pub mod device;
pub mod globals;
pub mod host;
pub mod mapped;
pub mod runtime;
mod signatures;
#[cfg(cuda_11_2)]
pub mod stream_ordered;

use std::ffi::{CStr, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::driver;
use super::sys::{CONTEXT_IS_DESTROYED, SHUTTING_DOWN, SUCCESS, UNKNOWN_ERROR};
use crate::event::sizes::{Allocation, Owner, SIZES};
use crate::event::{Event, EventKind, MemoryClass, subscribers::dispatch};
use crate::hook::original::Original;
use crate::hook::reentry::{self, Entered};

/// Memory that a call has made.
struct Made {
    address: usize,
    allocation: Allocation,
}

impl Made {
    /// Memory that ends with the current context, unless it is freed before.
    fn in_context(address: usize, size: usize, class: MemoryClass) -> Self {
        let owner = driver::current_context().map_or(Owner::Itself, Owner::Context);
        Self { address, allocation: Allocation { size, class, owner } }
    }

    /// Memory that belongs to no context.
    fn on_its_own(address: usize, size: usize, class: MemoryClass) -> Self {
        Self { address, allocation: Allocation { size, class, owner: Owner::Itself } }
    }
}

/// Calls the original, or fails if there is none, which no caller can bring about.
fn call<F: Copy>(original: &Original<F>, copy: usize, call: impl FnOnce(F) -> c_uint) -> c_uint {
    original.get(copy).map_or(UNKNOWN_ERROR, call)
}

/// Runs what must not end the caller's process if it panics.
fn guarded<R>(work: impl FnOnce() -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(work));
    if result.is_err() {
        crate::log::error!("reporting a memory event has panicked: the event may be lost");
    }
    result.ok()
}

fn tell(
    call: &Entered,
    kind: EventKind,
    symbol: &'static CStr,
    address: usize,
    allocation: Allocation,
) {
    let Allocation { size, class, .. } = allocation;
    dispatch(call.thread(), &Event { kind, address, size, class, symbol });
}

/// A call that allocates: `made` is asked after it has succeeded.
fn allocate(
    symbol: &'static CStr,
    original: impl FnOnce() -> c_uint,
    made: impl FnOnce() -> Option<Made>,
) -> c_uint {
    let entered = reentry::enter();
    let status = original();
    if status == SUCCESS && entered.is_outermost() {
        guarded(|| {
            if let Some(Made { address, allocation }) = made().filter(|made| made.address != 0) {
                SIZES.insert(address, allocation);
                tell(&entered, EventKind::Allocated, symbol, address, allocation);
            }
        });
    }
    status
}

/// A call that frees what starts at `address`. `class` is what the call itself says
/// about it, for memory that was not seen coming.
fn release(
    symbol: &'static CStr,
    address: usize,
    class: MemoryClass,
    original: impl FnOnce() -> c_uint,
) -> c_uint {
    let entered = reentry::enter();
    if address == 0 || !entered.is_outermost() {
        return original();
    }
    let freed = guarded(|| {
        let unseen = || Allocation {
            size: driver::size_at(address).unwrap_or(0),
            class,
            owner: Owner::Itself,
        };
        let allocation = SIZES.remove(address).unwrap_or_else(unseen);
        tell(&entered, EventKind::Freed, symbol, address, allocation);
        allocation
    });
    let status = original();
    // What has no size was no allocation in the first place, as far as anybody knows.
    if memory_remains(status)
        && let Some(allocation) = freed.filter(|allocation| allocation.size > 0)
    {
        guarded(|| put_back(&entered, symbol, address, allocation));
    }
    status
}

/// A call that destroys `owner`, and with it everything that belongs to it.
fn destroy(
    symbol: &'static CStr,
    owner: impl FnOnce() -> Option<Owner>,
    original: impl FnOnce() -> c_uint,
) -> c_uint {
    let entered = reentry::enter();
    if !entered.is_outermost() {
        return original();
    }
    let gone = guarded(|| {
        crate::memtype::owner_ends();
        let gone = owner().map(|owner| SIZES.remove_owned(owner)).unwrap_or_default();
        for (address, allocation) in &gone {
            tell(&entered, EventKind::Freed, symbol, *address, *allocation);
        }
        gone
    });
    let status = original();
    if memory_remains(status) {
        guarded(|| {
            for (address, allocation) in gone.unwrap_or_default() {
                put_back(&entered, symbol, address, allocation);
            }
        });
    }
    status
}

/// Whether a release that ended with `status` has left the memory in place.
fn memory_remains(status: c_uint) -> bool {
    !matches!(status, SUCCESS | SHUTTING_DOWN | CONTEXT_IS_DESTROYED)
}

/// Takes back the report of a release that failed: the memory is still there.
fn put_back(call: &Entered, symbol: &'static CStr, address: usize, allocation: Allocation) {
    SIZES.insert(address, allocation);
    tell(call, EventKind::Allocated, symbol, address, allocation);
}
