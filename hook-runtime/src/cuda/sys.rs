//! The types of CUDA's two interfaces that the hook table needs.
#![expect(non_camel_case_types, reason = "the names are CUDA's")]
#![expect(missing_docs, reason = "the types are documented by CUDA")]

use std::ffi::{c_int, c_uint, c_void};

pub type CUresult = c_uint;
pub type CUdevice = c_int;
/// A device address.
pub type CUdeviceptr = u64;
/// A device address in the interface before CUDA 3.2.
pub type CUdeviceptr_v1 = c_uint;
pub type CUcontext = *mut c_void;
pub type CUmodule = *mut c_void;
pub type CUlibrary = *mut c_void;
pub type CUstream = *mut c_void;
pub type CUmemoryPool = *mut c_void;
pub type CUmemGenericAllocationHandle = u64;

/// Names memory of another process. Passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CUipcMemHandle {
    pub reserved: [u8; 64],
}

pub type cudaError_t = c_uint;
pub type cudaStream_t = *mut c_void;
pub type cudaMemPool_t = *mut c_void;
pub type cudaIpcMemHandle_t = CUipcMemHandle;

/// Memory in rows, as the runtime describes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct cudaPitchedPtr {
    pub ptr: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}

/// The size of a box, in bytes, rows and slices. Passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct cudaExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// Success, in both interfaces.
pub const SUCCESS: c_uint = 0;
/// "The driver (the runtime) is shutting down", in both interfaces.
pub const SHUTTING_DOWN: c_uint = 4;
/// "The context has been destroyed", in both interfaces.
pub const CONTEXT_IS_DESTROYED: c_uint = 709;
/// "Unknown error", in both interfaces.
pub const UNKNOWN_ERROR: c_uint = 999;
