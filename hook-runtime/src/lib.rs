//! Hooks on CUDA's memory functions, and the events that follow from them.
//!
//! A program allocates GPU memory through the driver or the runtime API; this
//! crate sees each such call without the program's help and tells its
//! subscribers which addresses appeared and which vanished.
//!
//! ```text
//! cuda::table      which functions, in which API, since which release
//!      │
//! hook::install    per symbol: bistro (patched entry), else reloc (patched slots)
//!      │
//! cuda::replacements   called instead of the function; calls the original
//!      │
//! event            Allocated / Freed, exact address and size, to each subscriber
//!      │
//! memtype          what kind of memory an address is, without asking the driver each time
//! ```
//!
//! Only [`sys`] talks to the kernel and the loader. Nothing here links to CUDA:
//! what the process has loaded is what gets hooked.

pub mod c_api;
#[cfg(bistro_hooks)]
pub mod code;
pub mod cuda;
mod error;
pub mod event;
pub mod hook;
mod lifetime;
pub mod log;
pub mod memtype;
#[cfg(bistro_hooks)]
pub mod patch;
pub mod perftest;
pub mod reloc;
pub mod settings;
pub mod sys;
pub mod trace;
pub mod transport;
pub mod ucm;

pub use error::HookError;
pub use hook::coverage::Coverage;
pub use hook::install::{Options, install, uninstall};

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
