//! The one place that talks to the kernel and the loader.
//!
//! Everything above works on plain values: this is where they are read, and
//! where a decision becomes a system call.

#![expect(clippy::disallowed_methods, reason = "this is the way out, as `host` is for the tool")]

pub mod exec_memory;
pub mod fork_lock;
pub mod maps;
pub mod membarrier;
#[cfg(target_arch = "x86_64")]
pub mod signal;
pub mod threads;
