//! The only part of this crate that talks to the kernel and to the loader.
//!
//! Everything above works on plain values: this is where they are read, and where a
//! decision becomes a system call.
//!
//! * [`affinity`] counts processors;
//! * [`environment`] reads variables;
//! * [`files`] looks at candidates for loading;
//! * [`library`] opens libraries;
//! * [`loader`] lists what is loaded and asks for symbols;
//! * [`maps`] reads the memory map;
//! * [`pages`] makes a protected slot writable for one store;
//! * [`process`] is told of forks and of the end;
//! * [`output`] writes without a buffer;
//! * the others serve the patching of code.

#![expect(clippy::disallowed_methods, reason = "this is the way out, as `host` is for the tool")]

pub mod affinity;
pub mod children;
pub mod descriptors;
pub mod environment;
pub mod files;
pub mod identity;
pub mod library;
pub mod loader;
pub mod maps;
pub mod output;
pub mod pages;
pub mod process;

#[cfg(bistro_hooks)]
pub mod exec_memory;
#[cfg(bistro_hooks)]
pub mod fork_lock;
#[cfg(bistro_hooks)]
pub mod membarrier;
#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
pub mod signal;
#[cfg(bistro_hooks)]
pub mod threads;
