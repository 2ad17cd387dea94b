//! Ways to move bytes between kinds of memory, and what each can do.
//!
//! ```text
//! cuda_copy    host <-> device, device <-> device, inside one process
//! cuda_ipc     device memory of another process on the same machine
//! gdr_copy     host <-> device, small, by the processor itself
//! ```
//!
//! A transport is one module and one row in [`TRANSPORTS`]; its variables are rows in
//! [`settings`]. Everything is asked of the driver through
//! [`Driver`](crate::cuda::driver::open::Driver), which is opened at run time.

pub mod cuda_copy;
pub mod cuda_ipc;
pub mod gdr_copy;
pub mod settings;

use crate::cuda::driver::failure::Failure;
use crate::memtype::Kind;
use settings::Settings;

/// From what kind of memory, to what kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// The source.
    pub from: Kind,
    /// The destination.
    pub to: Kind,
}

/// Whose memory the other side is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The same process.
    Itself,
    /// Another process on the same machine.
    Machine,
}

/// What a transport can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The largest copy that is complete when the call returns; 0: there is none.
    pub max_short: usize,
    /// The largest copy that goes on after the call; 0: there is none.
    pub max_zcopy: usize,
    /// Whether the other side's memory can be written.
    pub put: bool,
    /// Whether it can be read.
    pub get: bool,
    /// Whose memory it reaches.
    pub reach: Reach,
}

/// What a copy costs, as a line: `latency + size / bandwidth`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Seconds.
    pub latency: f64,
    /// Bytes a second.
    pub bandwidth: f64,
}

impl Cost {
    /// Seconds for `size` bytes.
    pub fn of(&self, size: usize) -> f64 {
        self.latency + size as f64 / self.bandwidth
    }
}

/// What every transport can be asked before it is used.
pub trait Transport: Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// What a copy along `path` costs by these settings; nothing if it does not do that.
    fn estimate(&self, path: Path, settings: &Settings) -> Option<Cost>;
}

/// One transport.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name, which is UCX's.
    pub name: &'static str,
    /// What it is for, in one line.
    pub purpose: &'static str,
    /// The module that it is shipped in.
    pub module: &'static str,
    /// What begins the names of its variables.
    pub prefix: &'static str,
    /// The transport.
    pub transport: &'static dyn Transport,
}

/// Every transport.
pub const TRANSPORTS: &[Row] = &[
    Row {
        name: "cuda_copy",
        purpose: "copies between host and device memory, inside one process",
        module: "uct-cuda",
        prefix: "UCX_CUDA_COPY_",
        transport: &cuda_copy::CUDA_COPY,
    },
    Row {
        name: "cuda_ipc",
        purpose: "copies to and from device memory of another process on this machine",
        module: "uct-cuda",
        prefix: "UCX_CUDA_IPC_",
        transport: &cuda_ipc::CUDA_IPC,
    },
    Row {
        name: "gdr_copy",
        purpose: "small copies by the processor, through device memory that gdrcopy maps",
        module: "uct-cuda-gdrcopy",
        prefix: "UCX_GDR_COPY_",
        transport: &gdr_copy::GDR_COPY,
    },
];

/// The transport that moves `size` bytes along `path` the soonest.
pub fn cheapest(
    path: Path,
    reach: Reach,
    size: usize,
    settings: &Settings,
) -> Option<&'static Row> {
    let cost = |row: &Row| {
        let can = row.transport.capabilities();
        let fits = can.reach == reach && size <= can.max_short.max(can.max_zcopy);
        row.transport.estimate(path, settings).filter(|_| fits).map(|cost| cost.of(size))
    };
    let costs = TRANSPORTS.iter().filter_map(|row| Some((row, cost(row)?)));
    costs.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(row, _)| row)
}

/// Why a copy is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The driver refused.
    #[error("{0}")]
    Driver(#[from] Failure),
    /// The range leaves its region.
    #[error("{size} bytes at offset {offset} leave a region of {length} bytes")]
    OutOfRange {
        /// Where the copy begins.
        offset: usize,
        /// How much was to be copied.
        size: usize,
        /// The region's length.
        length: usize,
    },
    /// What the memory is cannot be told.
    #[error("cannot tell what kind of memory is at {address:#x} ({length} bytes)")]
    UnknownMemory {
        /// The first address.
        address: usize,
        /// How many bytes.
        length: usize,
    },
    /// The context that the memory belongs to is no more.
    #[error("the context that the memory belongs to was destroyed")]
    ContextGone,
    /// The process at the other side cannot be had.
    #[error("the other process: {0}")]
    Peer(String),
    /// A worker thread cannot be started, or ended early.
    #[error("a thread for staged copies cannot be used: {0}")]
    Thread(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole_and_unique() {
        for (number, row) in TRANSPORTS.iter().enumerate() {
            assert!(!row.purpose.is_empty() && row.prefix.starts_with("UCX_"));
            assert!(TRANSPORTS[..number].iter().all(|other| other.name != row.name));
            let can = row.transport.capabilities();
            assert!(can.put || can.get);
            assert!(can.max_short > 0 || can.max_zcopy > 0);
            let variables = settings::VARIABLES.iter();
            assert!(variables.filter(|row_| row_.name.starts_with(row.prefix)).count() > 0);
        }
    }

    #[test]
    fn the_cheapest_transport_reaches_the_memory() {
        let path = Path { from: Kind::Pinned, to: Kind::Device };
        let settings = Settings::default();
        let found = cheapest(path, Reach::Itself, 1 << 20, &settings).map(|row| row.name);
        assert_eq!(found, Some("cuda_copy"));
        let found = cheapest(path, Reach::Itself, 8, &settings).map(|row| row.name);
        assert_eq!(found, Some("gdr_copy"));
        let device = Path { from: Kind::Device, to: Kind::Device };
        let found = cheapest(device, Reach::Machine, 1 << 20, &settings).map(|row| row.name);
        assert_eq!(found, Some("cuda_ipc"));
        let host = Path { from: Kind::Host, to: Kind::Host };
        assert!(cheapest(host, Reach::Machine, 8, &settings).is_none());
    }
}
