//! Device and managed memory of the driver interface.
//!
//! The functions without a suffix are those of before CUDA 3.2, with addresses and sizes
//! of 32 bits. Today's headers map their names to the `_v2` functions, so that only a
//! program that looks the old name up calls them.
#![expect(non_snake_case, reason = "the names are CUDA's")]

use std::ffi::c_uint;

use super::{Made, allocate, call, release};
use crate::cuda::sys::{CUdeviceptr, CUdeviceptr_v1, CUresult};
use crate::event::MemoryClass::{Device, Managed};
use crate::hook::original::Original;

type Alloc = unsafe extern "C" fn(*mut CUdeviceptr, usize) -> CUresult;
type AllocV1 = unsafe extern "C" fn(*mut CUdeviceptr_v1, c_uint) -> CUresult;
type AllocManaged = unsafe extern "C" fn(*mut CUdeviceptr, usize, c_uint) -> CUresult;
type AllocPitch =
    unsafe extern "C" fn(*mut CUdeviceptr, *mut usize, usize, usize, c_uint) -> CUresult;
type AllocPitchV1 =
    unsafe extern "C" fn(*mut CUdeviceptr_v1, *mut c_uint, c_uint, c_uint, c_uint) -> CUresult;
type Free = unsafe extern "C" fn(CUdeviceptr) -> CUresult;
type FreeV1 = unsafe extern "C" fn(CUdeviceptr_v1) -> CUresult;

// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC: Original<AllocV1> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_V2: Original<Alloc> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_MANAGED: Original<AllocManaged> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_PITCH: Original<AllocPitchV1> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_PITCH_V2: Original<AllocPitch> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_FREE: Original<FreeV1> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_FREE_V2: Original<Free> = unsafe { Original::new() };

pub(in crate::cuda) unsafe extern "C" fn cuMemAlloc<const COPY: usize>(
    address: *mut CUdeviceptr_v1,
    size: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_ALLOC, COPY, |f| unsafe { f(address, size) });
    allocate(c"cuMemAlloc", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::in_context(unsafe { *address } as usize, size as usize, Device))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAlloc_v2<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: usize,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_ALLOC_V2, COPY, |f| unsafe { f(address, size) });
    allocate(c"cuMemAlloc_v2", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::in_context(unsafe { *address } as usize, size, Device))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocManaged<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: usize,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_ALLOC_MANAGED, COPY, |f| unsafe { f(address, size, flags) });
    allocate(c"cuMemAllocManaged", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::in_context(unsafe { *address } as usize, size, Managed))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocPitch<const COPY: usize>(
    address: *mut CUdeviceptr_v1,
    pitch: *mut c_uint,
    width: c_uint,
    height: c_uint,
    element: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let with = |f: AllocPitchV1| unsafe { f(address, pitch, width, height, element) };
    allocate(
        c"cuMemAllocPitch",
        || call(&CU_MEM_ALLOC_PITCH, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written the pitch.
            let size = (unsafe { *pitch } as usize).saturating_mul(height as usize);
            // SAFETY: the same holds for the address.
            Some(Made::in_context(unsafe { *address } as usize, size, Device))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocPitch_v2<const COPY: usize>(
    address: *mut CUdeviceptr,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let with = |f: AllocPitch| unsafe { f(address, pitch, width, height, element) };
    allocate(
        c"cuMemAllocPitch_v2",
        || call(&CU_MEM_ALLOC_PITCH_V2, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written the pitch.
            let size = unsafe { *pitch }.saturating_mul(height);
            // SAFETY: the same holds for the address.
            Some(Made::in_context(unsafe { *address } as usize, size, Device))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cuMemFree<const COPY: usize>(
    address: CUdeviceptr_v1,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_MEM_FREE, COPY, |f| unsafe { f(address) });
    release(c"cuMemFree", address as usize, Device, original)
}

pub(in crate::cuda) unsafe extern "C" fn cuMemFree_v2<const COPY: usize>(
    address: CUdeviceptr,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_MEM_FREE_V2, COPY, |f| unsafe { f(address) });
    release(c"cuMemFree_v2", address as usize, Device, original)
}
