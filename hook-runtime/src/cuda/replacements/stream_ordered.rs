//! Memory that is allocated and freed in the order of a stream, and memory of pools.
//!
//! A release is reported when it is called, not when the stream gets there: from the call
//! on, the address is no longer the program's to use from the host.
//!
//! The functions whose names end in `_ptsz` are those of a program that is compiled with
//! one default stream per thread. They are separate entries of the driver, so a hook on
//! the plain name does not see them.
#![expect(non_snake_case, reason = "the names are CUDA's")]

use super::{Made, allocate, call, release};
use crate::cuda::driver;
use crate::cuda::sys::{CUdeviceptr, CUmemPoolPtrExportData, CUmemoryPool, CUresult, CUstream};
use crate::event::MemoryClass::Device;
use crate::hook::original::Original;

type AllocAsync = unsafe extern "C" fn(*mut CUdeviceptr, usize, CUstream) -> CUresult;
type AllocFromPool =
    unsafe extern "C" fn(*mut CUdeviceptr, usize, CUmemoryPool, CUstream) -> CUresult;
type FreeAsync = unsafe extern "C" fn(CUdeviceptr, CUstream) -> CUresult;
type ImportPointer =
    unsafe extern "C" fn(*mut CUdeviceptr, CUmemoryPool, *mut CUmemPoolPtrExportData) -> CUresult;

// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_ASYNC: Original<AllocAsync> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_ASYNC_PTSZ: Original<AllocAsync> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_FROM_POOL_ASYNC: Original<AllocFromPool> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_ALLOC_FROM_POOL_ASYNC_PTSZ: Original<AllocFromPool> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_FREE_ASYNC: Original<FreeAsync> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_FREE_ASYNC_PTSZ: Original<FreeAsync> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_POOL_IMPORT_POINTER: Original<ImportPointer> =
    unsafe { Original::new() };

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocAsync<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: usize,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_ALLOC_ASYNC, COPY, |f| unsafe { f(address, size, stream) });
    allocate(c"cuMemAllocAsync", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocAsync_ptsz<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: usize,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let with = |f: AllocAsync| unsafe { f(address, size, stream) };
    allocate(
        c"cuMemAllocAsync_ptsz",
        || call(&CU_MEM_ALLOC_ASYNC_PTSZ, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocFromPoolAsync<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let with = |f: AllocFromPool| unsafe { f(address, size, pool, stream) };
    let original = || call(&CU_MEM_ALLOC_FROM_POOL_ASYNC, COPY, with);
    allocate(c"cuMemAllocFromPoolAsync", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemAllocFromPoolAsync_ptsz<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let with = |f: AllocFromPool| unsafe { f(address, size, pool, stream) };
    let original = || call(&CU_MEM_ALLOC_FROM_POOL_ASYNC_PTSZ, COPY, with);
    allocate(c"cuMemAllocFromPoolAsync_ptsz", original, || {
        // SAFETY: the call has succeeded, so it has written its result.
        Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
    })
}

pub(in crate::cuda) unsafe extern "C" fn cuMemFreeAsync<const COPY: usize>(
    address: CUdeviceptr,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_FREE_ASYNC, COPY, |f| unsafe { f(address, stream) });
    release(c"cuMemFreeAsync", address as usize, Device, original)
}

pub(in crate::cuda) unsafe extern "C" fn cuMemFreeAsync_ptsz<const COPY: usize>(
    address: CUdeviceptr,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_FREE_ASYNC_PTSZ, COPY, |f| unsafe { f(address, stream) });
    release(c"cuMemFreeAsync_ptsz", address as usize, Device, original)
}

/// The memory is another process's; the driver says how much of it there is.
pub(in crate::cuda) unsafe extern "C" fn cuMemPoolImportPointer<const COPY: usize>(
    address: *mut CUdeviceptr,
    pool: CUmemoryPool,
    exported: *mut CUmemPoolPtrExportData,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let with = |f: ImportPointer| unsafe { f(address, pool, exported) };
    allocate(
        c"cuMemPoolImportPointer",
        || call(&CU_MEM_POOL_IMPORT_POINTER, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            let address = unsafe { *address } as usize;
            Some(Made::on_its_own(address, driver::size_at(address).unwrap_or(0), Device))
        },
    )
}
