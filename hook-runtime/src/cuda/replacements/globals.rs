//! Variables of modules and libraries. A program learns such a variable's address when it
//! asks for it, which counts as its allocation each time; it ends with its module.
#![expect(non_snake_case, reason = "the names are CUDA's")]

use std::ffi::c_char;

use super::{Made, allocate, call, destroy};
#[cfg(cuda_12_0)]
use crate::cuda::sys::CUlibrary;
use crate::cuda::sys::{CUdeviceptr, CUmodule, CUresult};
#[cfg(cuda_12_0)]
use crate::event::MemoryClass::Managed;
use crate::event::MemoryClass::{self, Unknown};
use crate::event::sizes::{Allocation, Owner};
use crate::hook::original::Original;

type GetGlobal =
    unsafe extern "C" fn(*mut CUdeviceptr, *mut usize, CUmodule, *const c_char) -> CUresult;
type Unload = unsafe extern "C" fn(CUmodule) -> CUresult;
#[cfg(cuda_12_0)]
type LibraryGetGlobal =
    unsafe extern "C" fn(*mut CUdeviceptr, *mut usize, CUlibrary, *const c_char) -> CUresult;
#[cfg(cuda_12_0)]
type LibraryUnload = unsafe extern "C" fn(CUlibrary) -> CUresult;

// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MODULE_GET_GLOBAL_V2: Original<GetGlobal> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cuda_12_0)]
pub(in crate::cuda) static CU_LIBRARY_GET_GLOBAL: Original<LibraryGetGlobal> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cuda_12_0)]
pub(in crate::cuda) static CU_LIBRARY_GET_MANAGED: Original<LibraryGetGlobal> =
    unsafe { Original::new() };
// SAFETY: the type is that of the function.
pub(in crate::cuda) static CU_MODULE_UNLOAD: Original<Unload> = unsafe { Original::new() };
// SAFETY: the type is that of the function.
#[cfg(cuda_12_0)]
pub(in crate::cuda) static CU_LIBRARY_UNLOAD: Original<LibraryUnload> = unsafe { Original::new() };

/// Either result may be left out by the caller; what is needed for the report is then
/// received in a place of ours.
struct Results {
    address: *mut CUdeviceptr,
    size: *mut usize,
    own_size: usize,
}

impl Results {
    fn new(address: *mut CUdeviceptr, size: *mut usize) -> Self {
        Self { address, size, own_size: 0 }
    }

    fn size(&mut self) -> *mut usize {
        if self.size.is_null() { &raw mut self.own_size } else { self.size }
    }

    /// The variable; nothing if the caller has not asked for its address.
    ///
    /// # Safety
    ///
    /// The call has succeeded with the address given to `new`, and [`Self::size`].
    unsafe fn variable(&mut self, owner: Owner, class: MemoryClass) -> Option<Made> {
        if self.address.is_null() {
            return None;
        }
        // SAFETY: by this function's contract; it is not null.
        let address = unsafe { *self.address } as usize;
        // SAFETY: by this function's contract.
        let size = unsafe { *self.size() };
        Some(Made { address, allocation: Allocation { size, class, owner } })
    }
}

pub(in crate::cuda) unsafe extern "C" fn cuModuleGetGlobal_v2<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: *mut usize,
    module: CUmodule,
    name: *const c_char,
) -> CUresult {
    let mut results = Results::new(address, size);
    let size = results.size();
    // SAFETY: the user's own arguments, and a valid place for the size.
    let with = |f: GetGlobal| unsafe { f(address, size, module, name) };
    allocate(
        c"cuModuleGetGlobal_v2",
        || call(&CU_MODULE_GET_GLOBAL_V2, COPY, with),
        || {
            // SAFETY: the call has succeeded with these places.
            unsafe { results.variable(Owner::Module(module as usize), Unknown) }
        },
    )
}

#[cfg(cuda_12_0)]
pub(in crate::cuda) unsafe extern "C" fn cuLibraryGetGlobal<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: *mut usize,
    library: CUlibrary,
    name: *const c_char,
) -> CUresult {
    let mut results = Results::new(address, size);
    let size = results.size();
    // SAFETY: the user's own arguments, and a valid place for the size.
    let with = |f: LibraryGetGlobal| unsafe { f(address, size, library, name) };
    allocate(
        c"cuLibraryGetGlobal",
        || call(&CU_LIBRARY_GET_GLOBAL, COPY, with),
        || {
            // SAFETY: the call has succeeded with these places.
            unsafe { results.variable(Owner::Module(library as usize), Unknown) }
        },
    )
}

#[cfg(cuda_12_0)]
pub(in crate::cuda) unsafe extern "C" fn cuLibraryGetManaged<const COPY: usize>(
    address: *mut CUdeviceptr,
    size: *mut usize,
    library: CUlibrary,
    name: *const c_char,
) -> CUresult {
    let mut results = Results::new(address, size);
    let size = results.size();
    // SAFETY: the user's own arguments, and a valid place for the size.
    let with = |f: LibraryGetGlobal| unsafe { f(address, size, library, name) };
    allocate(
        c"cuLibraryGetManaged",
        || call(&CU_LIBRARY_GET_MANAGED, COPY, with),
        || {
            // SAFETY: the call has succeeded with these places.
            unsafe { results.variable(Owner::Module(library as usize), Managed) }
        },
    )
}

pub(in crate::cuda) unsafe extern "C" fn cuModuleUnload<const COPY: usize>(
    module: CUmodule,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_MODULE_UNLOAD, COPY, |f| unsafe { f(module) });
    destroy(c"cuModuleUnload", || Some(Owner::Module(module as usize)), original)
}

#[cfg(cuda_12_0)]
pub(in crate::cuda) unsafe extern "C" fn cuLibraryUnload<const COPY: usize>(
    library: CUlibrary,
) -> CUresult {
    // SAFETY: the user's own argument.
    let original = || call(&CU_LIBRARY_UNLOAD, COPY, |f| unsafe { f(library) });
    destroy(c"cuLibraryUnload", || Some(Owner::Module(library as usize)), original)
}
