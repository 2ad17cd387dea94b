//! Machine code as data: what stands at a function's entry, what it becomes
//! elsewhere, and the jumps that lead away from it.
//!
//! Bytes in, bytes out. Nothing here touches live code, so all of it is tested
//! as data; who writes what, and when, is left to `crate::patch`.

#![forbid(unsafe_code)]

mod error;
pub mod jump;
pub mod prologue;
pub mod pun;
pub mod relocate;

pub use error::{Reason, Refusal};
