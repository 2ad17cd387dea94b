//! The runtime interface.
//!
//! Only calls through slots come here: the runtime's own calls into the driver are seen,
//! where they are, as nested ones. Every copy of the runtime library keeps to itself.
#![expect(non_snake_case, reason = "the names are CUDA's")]

use std::ffi::{c_uint, c_void};

use super::{Made, allocate, call, destroy, release};
use crate::cuda::driver;
use crate::cuda::sys::{SUCCESS, cudaError_t, cudaExtent, cudaIpcMemHandle_t, cudaPitchedPtr};
#[cfg(cudart_11_2)]
use crate::cuda::sys::{cudaMemPool_t, cudaStream_t};
use crate::event::MemoryClass::{Device, Host, Managed, Unknown};
use crate::event::sizes::Owner;
use crate::hook::original::Original;
use crate::reloc::scan;

type Malloc = unsafe extern "C" fn(*mut *mut c_void, usize) -> cudaError_t;
type MallocFlags = unsafe extern "C" fn(*mut *mut c_void, usize, c_uint) -> cudaError_t;
type MallocPitch = unsafe extern "C" fn(*mut *mut c_void, *mut usize, usize, usize) -> cudaError_t;
type Malloc3D = unsafe extern "C" fn(*mut cudaPitchedPtr, cudaExtent) -> cudaError_t;
#[cfg(cudart_11_2)]
type MallocAsync = unsafe extern "C" fn(*mut *mut c_void, usize, cudaStream_t) -> cudaError_t;
#[cfg(cudart_11_2)]
type MallocFromPool =
    unsafe extern "C" fn(*mut *mut c_void, usize, cudaMemPool_t, cudaStream_t) -> cudaError_t;
type GetSymbol = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> cudaError_t;
type GetSymbolSize = unsafe extern "C" fn(*mut usize, *const c_void) -> cudaError_t;
type IpcOpen = unsafe extern "C" fn(*mut *mut c_void, cudaIpcMemHandle_t, c_uint) -> cudaError_t;
type Free = unsafe extern "C" fn(*mut c_void) -> cudaError_t;
#[cfg(cudart_11_2)]
type FreeAsync = unsafe extern "C" fn(*mut c_void, cudaStream_t) -> cudaError_t;
type Reset = unsafe extern "C" fn() -> cudaError_t;

// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_MALLOC: Original<Malloc> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_MALLOC_MANAGED: Original<MallocFlags> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_MALLOC_PITCH: Original<MallocPitch> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_MALLOC_3D: Original<Malloc3D> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cudart_11_2)]
pub(in crate::cuda) static CUDA_MALLOC_ASYNC: Original<MallocAsync> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cudart_11_2)]
pub(in crate::cuda) static CUDA_MALLOC_ASYNC_PTSZ: Original<MallocAsync> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cudart_11_2)]
pub(in crate::cuda) static CUDA_MALLOC_FROM_POOL_ASYNC: Original<MallocFromPool> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cudart_11_2)]
pub(in crate::cuda) static CUDA_MALLOC_FROM_POOL_ASYNC_PTSZ: Original<MallocFromPool> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_GET_SYMBOL_ADDRESS: Original<GetSymbol> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_IPC_OPEN_MEM_HANDLE: Original<IpcOpen> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_MALLOC_HOST: Original<Malloc> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_HOST_ALLOC: Original<MallocFlags> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_FREE: Original<Free> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cudart_11_2)]
pub(in crate::cuda) static CUDA_FREE_ASYNC: Original<FreeAsync> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cudart_11_2)]
pub(in crate::cuda) static CUDA_FREE_ASYNC_PTSZ: Original<FreeAsync> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_FREE_HOST: Original<Free> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_IPC_CLOSE_MEM_HANDLE: Original<Free> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CUDA_DEVICE_RESET: Original<Reset> = unsafe { Original::new() };

pub(in crate::cuda) unsafe extern "C" fn cudaMalloc<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: Malloc| unsafe { f(address, size) };
    allocate(
        c"cudaMalloc",
        || call(&CUDA_MALLOC, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::in_context(unsafe { *address } as usize, size, Device))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cudaMallocManaged<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
    flags: c_uint,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: MallocFlags| unsafe { f(address, size, flags) };
    allocate(
        c"cudaMallocManaged",
        || call(&CUDA_MALLOC_MANAGED, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::in_context(unsafe { *address } as usize, size, Managed))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cudaMallocPitch<const COPY: usize>(
    address: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: MallocPitch| unsafe { f(address, pitch, width, height) };
    allocate(
        c"cudaMallocPitch",
        || call(&CUDA_MALLOC_PITCH, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written the pitch.
            let size = unsafe { *pitch }.saturating_mul(height);
            // SAFETY: the same holds for the address.
            Some(Made::in_context(unsafe { *address } as usize, size, Device))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cudaMalloc3D<const COPY: usize>(
    memory: *mut cudaPitchedPtr,
    extent: cudaExtent,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: Malloc3D| unsafe { f(memory, extent) };
    allocate(
        c"cudaMalloc3D",
        || call(&CUDA_MALLOC_3D, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            let cudaPitchedPtr { ptr, pitch, .. } = unsafe { *memory };
            let size = pitch.saturating_mul(extent.height).saturating_mul(extent.depth);
            Some(Made::in_context(ptr as usize, size, Device))
        },
    )
}

#[cfg(cudart_11_2)]
pub(in crate::cuda) unsafe extern "C" fn cudaMallocAsync<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
    stream: cudaStream_t,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: MallocAsync| unsafe { f(address, size, stream) };
    allocate(
        c"cudaMallocAsync",
        || call(&CUDA_MALLOC_ASYNC, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
        },
    )
}

#[cfg(cudart_11_2)]
pub(in crate::cuda) unsafe extern "C" fn cudaMallocAsync_ptsz<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
    stream: cudaStream_t,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: MallocAsync| unsafe { f(address, size, stream) };
    allocate(
        c"cudaMallocAsync_ptsz",
        || call(&CUDA_MALLOC_ASYNC_PTSZ, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
        },
    )
}

#[cfg(cudart_11_2)]
pub(in crate::cuda) unsafe extern "C" fn cudaMallocFromPoolAsync<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
    pool: cudaMemPool_t,
    stream: cudaStream_t,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: MallocFromPool| unsafe { f(address, size, pool, stream) };
    allocate(
        c"cudaMallocFromPoolAsync",
        || call(&CUDA_MALLOC_FROM_POOL_ASYNC, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
        },
    )
}

#[cfg(cudart_11_2)]
pub(in crate::cuda) unsafe extern "C" fn cudaMallocFromPoolAsync_ptsz<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
    pool: cudaMemPool_t,
    stream: cudaStream_t,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: MallocFromPool| unsafe { f(address, size, pool, stream) };
    allocate(
        c"cudaMallocFromPoolAsync_ptsz",
        || call(&CUDA_MALLOC_FROM_POOL_ASYNC_PTSZ, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::on_its_own(unsafe { *address } as usize, size, Device))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cudaGetSymbolAddress<const COPY: usize>(
    address: *mut *mut c_void,
    symbol: *const c_void,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: GetSymbol| unsafe { f(address, symbol) };
    allocate(
        c"cudaGetSymbolAddress",
        || call(&CUDA_GET_SYMBOL_ADDRESS, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            let address = unsafe { *address } as usize;
            let size = symbol_size(COPY, symbol).or_else(|| driver::size_at(address));
            Some(Made::on_its_own(address, size.unwrap_or(0), Unknown))
        },
    )
}

/// The size of a variable, from the same copy of the runtime that gave its address: no
/// other copy knows the variable.
fn symbol_size(copy: usize, symbol: *const c_void) -> Option<usize> {
    let runtime = CUDA_GET_SYMBOL_ADDRESS.untyped.entry(copy)?;
    let ask = scan::sibling(runtime, c"cudaGetSymbolSize")?;
    // SAFETY: it is the function of this name in a CUDA runtime, which has this type.
    let ask = unsafe { std::mem::transmute::<usize, GetSymbolSize>(ask) };
    let mut size = 0;
    // SAFETY: the result is a place of ours, and the symbol one that this runtime knows.
    let status = unsafe { ask(&raw mut size, symbol) };
    (status == SUCCESS).then_some(size)
}

pub(in crate::cuda) unsafe extern "C" fn cudaIpcOpenMemHandle<const COPY: usize>(
    address: *mut *mut c_void,
    handle: cudaIpcMemHandle_t,
    flags: c_uint,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: IpcOpen| unsafe { f(address, handle, flags) };
    allocate(
        c"cudaIpcOpenMemHandle",
        || call(&CUDA_IPC_OPEN_MEM_HANDLE, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            let address = unsafe { *address } as usize;
            Some(Made::in_context(address, driver::size_at(address).unwrap_or(0), Device))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cudaMallocHost<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: Malloc| unsafe { f(address, size) };
    allocate(
        c"cudaMallocHost",
        || call(&CUDA_MALLOC_HOST, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::in_context(unsafe { *address } as usize, size, Host))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cudaHostAlloc<const COPY: usize>(
    address: *mut *mut c_void,
    size: usize,
    flags: c_uint,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let with = |f: MallocFlags| unsafe { f(address, size, flags) };
    allocate(
        c"cudaHostAlloc",
        || call(&CUDA_HOST_ALLOC, COPY, with),
        || {
            // SAFETY: the call has succeeded, so it has written its result.
            Some(Made::in_context(unsafe { *address } as usize, size, Host))
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cudaFree<const COPY: usize>(
    address: *mut c_void,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let original = || call(&CUDA_FREE, COPY, |f| unsafe { f(address) });
    release(c"cudaFree", address as usize, Device, original)
}

#[cfg(cudart_11_2)]
pub(in crate::cuda) unsafe extern "C" fn cudaFreeAsync<const COPY: usize>(
    address: *mut c_void,
    stream: cudaStream_t,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let original = || call(&CUDA_FREE_ASYNC, COPY, |f| unsafe { f(address, stream) });
    release(c"cudaFreeAsync", address as usize, Device, original)
}

#[cfg(cudart_11_2)]
pub(in crate::cuda) unsafe extern "C" fn cudaFreeAsync_ptsz<const COPY: usize>(
    address: *mut c_void,
    stream: cudaStream_t,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let original = || call(&CUDA_FREE_ASYNC_PTSZ, COPY, |f| unsafe { f(address, stream) });
    release(c"cudaFreeAsync_ptsz", address as usize, Device, original)
}

pub(in crate::cuda) unsafe extern "C" fn cudaFreeHost<const COPY: usize>(
    address: *mut c_void,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let original = || call(&CUDA_FREE_HOST, COPY, |f| unsafe { f(address) });
    release(c"cudaFreeHost", address as usize, Host, original)
}

pub(in crate::cuda) unsafe extern "C" fn cudaIpcCloseMemHandle<const COPY: usize>(
    address: *mut c_void,
) -> cudaError_t {
    // SAFETY: the user's own arguments.
    let original = || call(&CUDA_IPC_CLOSE_MEM_HANDLE, COPY, |f| unsafe { f(address) });
    release(c"cudaIpcCloseMemHandle", address as usize, Device, original)
}

/// Destroys the current device's primary context, which is the one that the runtime uses.
pub(in crate::cuda) unsafe extern "C" fn cudaDeviceReset<const COPY: usize>() -> cudaError_t {
    // SAFETY: it takes no argument.
    let original = || call(&CUDA_DEVICE_RESET, COPY, |f| unsafe { f() });
    let owner = || driver::current_context().map(Owner::Context);
    destroy(c"cudaDeviceReset", owner, original)
}
