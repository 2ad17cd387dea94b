//! Page-locked host memory of the driver interface.
#![expect(non_snake_case, reason = "the names are CUDA's")]

use std::ffi::{c_uint, c_void};

use super::{Made, allocate, call, release};
use crate::cuda::sys::CUresult;
use crate::event::MemoryClass::Host;
use crate::hook::original::Original;

type AllocHost = unsafe extern "C" fn(*mut *mut c_void, usize) -> CUresult;
type AllocHostV1 = unsafe extern "C" fn(*mut *mut c_void, c_uint) -> CUresult;
type HostAlloc = unsafe extern "C" fn(*mut *mut c_void, usize, c_uint) -> CUresult;
type FreeHost = unsafe extern "C" fn(*mut c_void) -> CUresult;

// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_HOST: Original<AllocHostV1> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_HOST_V2: Original<AllocHost> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_HOST_ALLOC: Original<HostAlloc> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_FREE_HOST: Original<FreeHost> = unsafe { Original::new() };
// SAFETY: the type is that of the function, should a driver ever have it.
pub(in crate::cuda) static CU_MEM_FREE_HOST_V2: Original<FreeHost> = unsafe { Original::new() };

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocHost<const COPY: usize>(
    address: *mut *mut c_void,
    size: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_ALLOC_HOST, COPY, |f| unsafe { f(address, size) });
    allocate(c"cuMemAllocHost", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::in_context(unsafe { *address } as usize, size as usize, Host))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocHost_v2<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_ALLOC_HOST_V2, COPY, |f| unsafe { f(address, size) });
    allocate(c"cuMemAllocHost_v2", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::in_context(unsafe { *address } as usize, size, Host))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemHostAlloc<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_HOST_ALLOC, COPY, |f| unsafe { f(address, size, flags) });
    allocate(c"cuMemHostAlloc", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::in_context(unsafe { *address } as usize, size, Host))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemFreeHost<const COPY: usize>(
    address: *mut c_void,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_MEM_FREE_HOST, COPY, |f| unsafe { f(address) });
    release(c"cuMemFreeHost", address as usize, Host, original)
}

/// No driver known today has this function.
pub(in crate::cuda) unsafe extern "C" fn cuMemFreeHost_v2<const COPY: usize>(
    address: *mut c_void,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_MEM_FREE_HOST_V2, COPY, |f| unsafe { f(address) });
    release(c"cuMemFreeHost_v2", address as usize, Host, original)
}
