//! Hooks by changed code: the entry of a function becomes a jump.
//!
//! [`Transaction`] takes any number of targets, decodes and allocates for each,
//! and then changes all of them in one pass, so that no thread executes half an
//! instruction or wakes up inside replaced bytes. What cannot be patched safely
//! is refused, one function at a time and with its reason. How a hook decides
//! what to do, and the relocation tables, are left to others.
//!
//! A thread that was stopped inside the bytes that are replaced would wake up
//! in the middle of the jump. In this order:
//!
//! 1. **Nothing can be inside**, where the first instruction is at least as long as the jump.
//! 2. **The inside is made safe**: the jump's displacement is chosen so that a
//!    trap stands where an instruction began, and its handler sends the thread on
//!    to the same instruction in the trampoline (see [`crate::code::pun`]).
//! 3. **Proof**, by asking every thread where it is ([`crate::sys::threads`]); a
//!    function for which there is none in time is left as it was. It is the far
//!    form alone that needs this, or a near one without memory for its traps.
//!
//! The bytes are written by one store where they lie in one aligned word. Where
//! they do not, `int3` stands at the entry, and at the boundaries, until the
//! rest is in place, and the entry's first byte comes last; if a thread blocks SIGTRAP for long, one locked store of
//! sixteen bytes takes the place of the stages, or the function is refused.
//! Where a page may not be writable and executable even for a moment, a patched
//! copy is mapped over it. Afterwards every page has the protection that it had.
//!
//! Limits, said plainly:
//!
//! - A thread that blocks SIGTRAP and was stopped inside a replaced instruction
//!   ends the process when it wakes up in a trap, as it would have without one.
//! - A program that replaces our signal handler later takes over that duty;
//!   from then on, patches that need a trap are refused.
//! - Trampolines, handlers and what leads to them live for ever, so the library
//!   that holds this code must never be unloaded (`-z nodelete`).

#[cfg(target_arch = "x86_64")]
mod apply;
#[cfg(target_arch = "x86_64")]
mod arena;
#[cfg(target_arch = "x86_64")]
pub mod plan;
#[cfg(target_arch = "x86_64")]
mod registry;
#[cfg(target_arch = "x86_64")]
mod transaction;
#[cfg(target_arch = "x86_64")]
mod write;

#[cfg(not(target_arch = "x86_64"))]
mod unsupported;

pub use crate::code::{Reason, Refusal};
#[cfg(target_arch = "x86_64")]
pub use plan::{Form, Inside, Strategy, Write};
#[cfg(target_arch = "x86_64")]
pub use registry::Patched;
#[cfg(target_arch = "x86_64")]
pub use transaction::{Options, Prepared, Transaction, prepare, restore};

#[cfg(not(target_arch = "x86_64"))]
pub use unsupported::{Options, Patched, Prepared, Strategy, Transaction, prepare, restore};

/// True where code can be patched at all. Elsewhere there are relocation hooks alone.
pub const SUPPORTED: bool = cfg!(target_arch = "x86_64");

/// A function to be hooked.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its name, for messages and reports.
    pub name: &'a str,
    /// The address of its first byte.
    pub address: usize,
    /// Its length, where a symbol table tells: it lets more functions be
    /// patched, and too short ones be refused.
    pub size: Option<usize>,
    /// The function that is to be called in its place.
    pub replacement: usize,
}
