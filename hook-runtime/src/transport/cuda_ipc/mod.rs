//! `cuda_ipc`: device memory of another process on the same machine.
//!
//! ```text
//! owner:   export ──> Key ── as bytes, by any way ──> open ──> Mapping     other process
//!            │                                          │
//!            └─ keeps descriptors open                  └─ cache: used mappings stay, of the
//!                                                          others the least recently used go
//! ```
//!
//! A mapping is device memory like any other: [`cuda_copy`](super::cuda_copy) copies to and
//! from it. Memory of `cudaMalloc` goes by the driver's handles. Memory that was mapped through
//! the virtual memory interface goes piece by piece, memory of a pool with its pool: by file
//! descriptors, or over the fabric where it was made for that and descriptors do not do.

mod cache;
mod export;
mod import;
mod key;

use std::io;

use super::settings::{Auto, Settings, Ternary};
use super::{Capabilities, Cost, Path, Reach, Transport};
use crate::cuda::driver::failure::Failure;
use crate::memtype::Kind;

pub use cache::{Cache, Mapping, cache};
pub use export::{Export, export};
pub use key::Key;

/// The transport's row.
#[derive(Debug)]
pub struct CudaIpc;

/// The transport, for the table.
pub static CUDA_IPC: CudaIpc = CudaIpc;

/// What is estimated for a device that nothing is known of.
const BANDWIDTH: f64 = 6911e6;

impl Transport for CudaIpc {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_short: 0,
            max_zcopy: usize::MAX,
            put: true,
            get: true,
            reach: Reach::Machine,
        }
    }

    fn estimate(&self, path: Path, settings: &Settings) -> Option<Cost> {
        if path.from != Kind::Device || path.to != Kind::Device {
            return None;
        }
        let bandwidth = match settings.ipc_bandwidth {
            Auto::Auto => BANDWIDTH,
            Auto::Value(bandwidth) => bandwidth,
        };
        let latency = settings.ipc_latency.0 + settings.ipc_overhead.0;
        Some(Cost { latency, bandwidth })
    }
}

/// Whether these settings allow reading from another process's memory.
pub fn may_get(settings: &Settings) -> bool {
    settings.ipc_get != Ternary::No
}

/// Why memory cannot be shared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IpcError {
    /// The driver refused.
    #[error("{0}")]
    Driver(#[from] Failure),
    /// Not device memory, or of a kind that no other process can open.
    #[error("memory at {address:#x} cannot be opened by another process: {why}")]
    NotShareable {
        /// Its address.
        address: usize,
        /// What it is.
        why: &'static str,
    },
    /// It is this process's own: cuda_copy is the way.
    #[error("the memory belongs to this process")]
    OwnMemory,
    /// The other process cannot be reached.
    #[error("process {process} cannot be reached: {why}")]
    Unreachable {
        /// Its number.
        process: u32,
        /// What stands between.
        why: &'static str,
    },
    /// The device that the memory lies on is not visible here.
    #[error("the device that the memory lies on is not visible to this process")]
    NoSuchDevice,
    /// The application has opened the same handle by itself, and the driver opens it once.
    #[error("the application has this memory open already; another transport has to be used")]
    OpenedByApplication,
    /// A file descriptor cannot be had.
    #[error("cannot get a file descriptor of process {process}: {source}")]
    Descriptor {
        /// Whose.
        process: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// What was received is no key.
    #[error("not a key of this version: {0}")]
    BadKey(&'static str),
    /// The memory can be opened, but holds something else than its owner says.
    #[error("memory of process {process} does not show the bytes that it wrote there")]
    WrongBytes {
        /// Its owner.
        process: u32,
    },
}
