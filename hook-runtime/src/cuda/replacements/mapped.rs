//! Memory that is mapped into an address range: the driver's virtual memory interface, and
//! memory of other processes.
#![expect(non_snake_case, reason = "the names are CUDA's")]

use std::ffi::{CStr, c_uint};

use super::{Made, allocate, call, guarded, memory_remains, release, tell};
use crate::cuda::driver;
use crate::cuda::sys::{
    CUdeviceptr, CUipcMemHandle, CUmemGenericAllocationHandle, CUresult, SUCCESS,
};
use crate::event::EventKind::{Allocated, Freed};
use crate::event::MemoryClass::{Device, Unknown};
use crate::event::sizes::{Allocation, Owner, SIZES};
use crate::hook::original::Original;
use crate::hook::reentry;

type Map =
    unsafe extern "C" fn(CUdeviceptr, usize, usize, CUmemGenericAllocationHandle, u64) -> CUresult;
type Unmap = unsafe extern "C" fn(CUdeviceptr, usize) -> CUresult;
type IpcOpen = unsafe extern "C" fn(*mut CUdeviceptr, CUipcMemHandle, c_uint) -> CUresult;
type IpcClose = unsafe extern "C" fn(CUdeviceptr) -> CUresult;

// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_MAP: Original<Map> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MEM_UNMAP: Original<Unmap> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_IPC_OPEN_MEM_HANDLE: Original<IpcOpen> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_IPC_OPEN_MEM_HANDLE_V2: Original<IpcOpen> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_IPC_CLOSE_MEM_HANDLE: Original<IpcClose> = unsafe { Original::new() };

/// The class stays unknown: what is mapped may lie in host memory as well.
pub(in crate::cuda) unsafe extern "C" fn cuMemMap<const COPY: usize>(
    address: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: u64,
) -> CUresult {
    let entered = reentry::enter();
    // SAFETY: the user's own arguments.
    let with = |f: Map| unsafe { f(address, size, offset, handle, flags) };
    let status = call(&CU_MEM_MAP, COPY, with);
    if status == SUCCESS && entered.is_outermost() {
        guarded(|| {
            let mapping = Allocation { size, class: Unknown, owner: Owner::Itself };
            SIZES.insert_mapping(address as usize, mapping);
            tell(&entered, Allocated, c"cuMemMap", address as usize, mapping);
        });
    }
    status
}

/// One call may end several mappings; it is one event nevertheless, for the whole range.
pub(in crate::cuda) unsafe extern "C" fn cuMemUnmap<const COPY: usize>(
    address: CUdeviceptr,
    size: usize,
) -> CUresult {
    const SYMBOL: &CStr = c"cuMemUnmap";
    let entered = reentry::enter();
    // SAFETY: the user's own arguments.
    let original = || call(&CU_MEM_UNMAP, COPY, |f| unsafe { f(address, size) });
    if !entered.is_outermost() {
        return original();
    }
    let range = Allocation { size, class: Unknown, owner: Owner::Itself };
    let ended = guarded(|| {
        let ended = SIZES.remove_mappings(address as usize, size);
        // One from before the hooks is not known to be a mapping.
        SIZES.remove(address as usize);
        tell(&entered, Freed, SYMBOL, address as usize, range);
        ended
    });
    let status = original();
    if memory_remains(status) {
        guarded(|| {
            let ended = ended.unwrap_or_default();
            if !ended.is_empty() {
                tell(&entered, Allocated, SYMBOL, address as usize, range);
            }
            for (address, mapping) in ended {
                SIZES.insert_mapping(address, mapping);
            }
        });
    }
    status
}

pub(in crate::cuda) unsafe extern "C" fn cuIpcOpenMemHandle<const COPY: usize>(
    address: *mut CUdeviceptr,
    handle: CUipcMemHandle,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let original = || call(&CU_IPC_OPEN_MEM_HANDLE, COPY, |f| unsafe { f(address, handle, flags) });
    // SAFETY: asked only after the call has succeeded, so that it has written its result.
    allocate(c"cuIpcOpenMemHandle", original, || Some(opened(unsafe { *address })))
}

pub(in crate::cuda) unsafe extern "C" fn cuIpcOpenMemHandle_v2<const COPY: usize>(
    address: *mut CUdeviceptr,
    handle: CUipcMemHandle,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the user's own arguments.
    let with = |f: IpcOpen| unsafe { f(address, handle, flags) };
    let original = || call(&CU_IPC_OPEN_MEM_HANDLE_V2, COPY, with);
    // SAFETY: asked only after the call has succeeded, so that it has written its result.
    allocate(c"cuIpcOpenMemHandle_v2", original, || Some(opened(unsafe { *address })))
}

/// Memory of another process, whose size the driver knows.
fn opened(address: CUdeviceptr) -> Made {
    let address = address as usize;
    Made::in_context(address, driver::size_at(address).unwrap_or(0), Device)
}

pub(in crate::cuda) unsafe extern "C" fn cuIpcCloseMemHandle<const COPY: usize>(
    address: CUdeviceptr,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_IPC_CLOSE_MEM_HANDLE, COPY, |f| unsafe { f(address) });
    release(c"cuIpcCloseMemHandle", address as usize, Device, original)
}
