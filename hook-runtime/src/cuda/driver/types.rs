//! The driver's structures, as far as the transports fill or read them.
//!
//! Their sizes are part of the driver's binary interface and the same in every release.

use std::ffi::{c_int, c_uint};

/// `CUipcMemHandle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct IpcHandle(pub [u8; 64]);

/// `CUmemPoolPtrExportData`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct PoolPointer(pub [u8; 64]);

/// `CUmemFabricHandle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct FabricHandle(pub [u8; 64]);

/// `CUmemLocation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Location {
    /// See [`location`].
    pub kind: c_uint,
    /// The device, or the NUMA node.
    pub id: c_int,
}

/// What a [`Location`] is.
pub mod location {
    use std::ffi::c_uint;

    /// A device.
    pub const DEVICE: c_uint = 1;
    /// Host memory; the values above it are kinds of host memory too.
    pub const HOST: c_uint = 2;
}

/// How memory is handed to another process, as a set of bits.
pub mod handle {
    use std::ffi::c_uint;

    /// As a file descriptor.
    pub const POSIX_FD: c_uint = 1;
    /// Over the fabric.
    pub const FABRIC: c_uint = 8;
}

/// `CUmemAllocationProp`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct AllocationProperties {
    /// 1: pinned.
    pub kind: c_uint,
    /// Bits of [`handle`].
    pub handle_types: c_uint,
    /// Where it lies.
    pub location: Location,
    /// For Windows.
    pub windows: usize,
    /// Compression, GPUDirect RDMA, usage.
    pub flags: [u8; 8],
}

/// `CUmemPoolProps`. Releases differ in what the end of it means; zeros mean nothing special
/// in all of them.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PoolProperties {
    /// 1: pinned.
    pub kind: c_uint,
    /// Bits of [`handle`].
    pub handle_types: c_uint,
    /// Where its memory lies.
    pub location: Location,
    /// For Windows.
    pub windows: usize,
    /// Largest size, usage, and room for more.
    pub rest: [u64; 8],
}

impl PoolProperties {
    /// A pool on `device` that can be handed on in the ways of `handle_types`.
    pub fn new(device: c_int, handle_types: c_uint) -> Self {
        let location = Location { kind: location::DEVICE, id: device };
        Self { kind: 1, handle_types, location, windows: 0, rest: [0; 8] }
    }
}

/// `CUmemAccessDesc`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct AccessDescription {
    /// Who gets access.
    pub location: Location,
    /// 1: reading; 3: reading and writing.
    pub flags: c_uint,
}

impl AccessDescription {
    /// A device may read and write.
    pub fn read_write(device: c_int) -> Self {
        Self { location: Location { kind: location::DEVICE, id: device }, flags: 3 }
    }
}

/// `CUmemcpyAttributes`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct CopyAttributes {
    /// 1: the source is read in the order of the stream.
    pub source_access: c_uint,
    /// A hint.
    pub source: Location,
    /// A hint.
    pub destination: Location,
    /// 1: prefers to run beside computation.
    pub flags: c_uint,
}

/// The attributes of a pointer that are asked for (`CUpointer_attribute`).
pub mod attribute {
    use std::ffi::c_int;

    /// The context that it was allocated in.
    pub const CONTEXT: c_int = 1;
    /// 1: host; 2: device.
    pub const MEMORY_TYPE: c_int = 2;
    /// A number that no other allocation of this process has had.
    pub const BUFFER_ID: c_int = 7;
    /// Whether it is managed.
    pub const IS_MANAGED: c_int = 8;
    /// The device.
    pub const DEVICE_ORDINAL: c_int = 9;
    /// Whether `cuIpcGetMemHandle` takes it.
    pub const LEGACY_IPC: c_int = 10;
    /// Where the range starts.
    pub const RANGE_START: c_int = 11;
    /// Its size.
    pub const RANGE_SIZE: c_int = 12;
    /// Bits of [`handle`](super::handle).
    pub const HANDLE_TYPES: c_int = 14;
    /// The pool it comes from.
    pub const POOL: c_int = 17;
}

const _: () = {
    assert!(size_of::<AllocationProperties>() == 32);
    assert!(size_of::<PoolProperties>() == 88);
    assert!(size_of::<AccessDescription>() == 12);
    assert!(size_of::<CopyAttributes>() == 24);
};
