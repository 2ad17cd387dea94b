//! The hook table: one row per function.
//!
//! A row and a function of the same name in [`replacements`](super::replacements) are all
//! that a new hook takes. A function that the loaded driver or runtime lacks is reported
//! as absent; that is not a failure.
//!
//! Left out on purpose: `cuModuleGetGlobal` (the interface with 32-bit addresses, to
//! variables that no program has asked for in it since CUDA 3.2); `cuMemPoolDestroy` and
//! `cuMemPoolTrimTo` (what they give back has been freed by its address before; what has
//! not stays valid); arrays (they have no linear address).

use crate::hook::original::{COPIES, Code, Originals, Target, copies};
use crate::reloc::image::Name;

#[cfg(cuda_11_2)]
use super::replacements::stream_ordered;
use super::replacements::{contexts, device, globals, host, mapped, runtime};

/// Which of CUDA's interfaces a function belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// The driver's: both mechanisms.
    Driver,
    /// The runtime's: slots only, since it is often linked statically and then has no entry
    /// of that name; its calls into the driver are seen there.
    Runtime,
}

/// What a function does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Memory appears.
    Allocates,
    /// Memory vanishes.
    Frees,
}

/// One row.
#[derive(Debug)]
pub struct Hook {
    /// The symbol, its replacement, and what that calls.
    pub target: Target,
    /// The interface.
    pub api: Api,
    /// What it does.
    pub kind: Kind,
    /// The CUDA release that brought it.
    pub since: &'static str,
    /// The cfg flag without which the row is not compiled in.
    pub gate: Option<&'static str>,
    /// What memory it is about.
    pub doc: &'static str,
}

impl Hook {
    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.target.name()
    }

    const fn new(
        api: Api,
        kind: Kind,
        since: &'static str,
        symbol: &'static std::ffi::CStr,
        replacements: [Code; COPIES],
        originals: &'static Originals,
        doc: &'static str,
    ) -> Self {
        let target = Target { symbol: Name::new(symbol), replacements, originals };
        Self { target, api, kind, since, gate: None, doc }
    }

    #[cfg(any(cuda_11_2, cudart_11_2, cuda_12_0))]
    const fn behind(mut self, gate: &'static str) -> Self {
        self.gate = Some(gate);
        self
    }
}

use Api::{Driver, Runtime};
use Kind::{Allocates, Frees};

/// All rows.
#[rustfmt::skip]
pub static HOOKS: &[Hook] = &[
    Hook::new(Driver, Allocates, "1.0", c"cuMemAlloc", copies!(device::cuMemAlloc), &device::CU_MEM_ALLOC.untyped,
        "Device memory, by the interface with 32-bit addresses."),
    Hook::new(Driver, Allocates, "3.2", c"cuMemAlloc_v2", copies!(device::cuMemAlloc_v2), &device::CU_MEM_ALLOC_V2.untyped,
        "Device memory."),
    Hook::new(Driver, Allocates, "6.0", c"cuMemAllocManaged", copies!(device::cuMemAllocManaged), &device::CU_MEM_ALLOC_MANAGED.untyped,
        "Managed memory."),
    Hook::new(Driver, Allocates, "1.0", c"cuMemAllocPitch", copies!(device::cuMemAllocPitch), &device::CU_MEM_ALLOC_PITCH.untyped,
        "Rows of device memory, by the interface with 32-bit addresses."),
    Hook::new(Driver, Allocates, "3.2", c"cuMemAllocPitch_v2", copies!(device::cuMemAllocPitch_v2), &device::CU_MEM_ALLOC_PITCH_V2.untyped,
        "Rows of device memory: pitch times height."),
    #[cfg(cuda_11_2)]
    Hook::new(Driver, Allocates, "11.2", c"cuMemAllocAsync", copies!(stream_ordered::cuMemAllocAsync), &stream_ordered::CU_MEM_ALLOC_ASYNC.untyped,
        "Device memory, in the order of a stream.").behind("cuda_11_2"),
    #[cfg(cuda_11_2)]
    Hook::new(Driver, Allocates, "11.2", c"cuMemAllocAsync_ptsz", copies!(stream_ordered::cuMemAllocAsync_ptsz), &stream_ordered::CU_MEM_ALLOC_ASYNC_PTSZ.untyped,
        "The same, with one default stream per thread.").behind("cuda_11_2"),
    #[cfg(cuda_11_2)]
    Hook::new(Driver, Allocates, "11.2", c"cuMemAllocFromPoolAsync", copies!(stream_ordered::cuMemAllocFromPoolAsync), &stream_ordered::CU_MEM_ALLOC_FROM_POOL_ASYNC.untyped,
        "Memory of a pool, in the order of a stream.").behind("cuda_11_2"),
    #[cfg(cuda_11_2)]
    Hook::new(Driver, Allocates, "11.2", c"cuMemAllocFromPoolAsync_ptsz", copies!(stream_ordered::cuMemAllocFromPoolAsync_ptsz), &stream_ordered::CU_MEM_ALLOC_FROM_POOL_ASYNC_PTSZ.untyped,
        "The same, with one default stream per thread.").behind("cuda_11_2"),
    #[cfg(cuda_11_2)]
    Hook::new(Driver, Allocates, "11.2", c"cuMemPoolImportPointer", copies!(stream_ordered::cuMemPoolImportPointer), &stream_ordered::CU_MEM_POOL_IMPORT_POINTER.untyped,
        "Memory of another process's pool.").behind("cuda_11_2"),
    Hook::new(Driver, Allocates, "10.2", c"cuMemMap", copies!(mapped::cuMemMap), &mapped::CU_MEM_MAP.untyped,
        "Memory that is mapped into a reserved range."),
    Hook::new(Driver, Allocates, "4.1", c"cuIpcOpenMemHandle", copies!(mapped::cuIpcOpenMemHandle), &mapped::CU_IPC_OPEN_MEM_HANDLE.untyped,
        "Memory of another process."),
    Hook::new(Driver, Allocates, "11.0", c"cuIpcOpenMemHandle_v2", copies!(mapped::cuIpcOpenMemHandle_v2), &mapped::CU_IPC_OPEN_MEM_HANDLE_V2.untyped,
        "Memory of another process."),
    Hook::new(Driver, Allocates, "1.0", c"cuMemAllocHost", copies!(host::cuMemAllocHost), &host::CU_MEM_ALLOC_HOST.untyped,
        "Page-locked host memory, by the interface with 32-bit sizes."),
    Hook::new(Driver, Allocates, "3.2", c"cuMemAllocHost_v2", copies!(host::cuMemAllocHost_v2), &host::CU_MEM_ALLOC_HOST_V2.untyped,
        "Page-locked host memory."),
    Hook::new(Driver, Allocates, "2.2", c"cuMemHostAlloc", copies!(host::cuMemHostAlloc), &host::CU_MEM_HOST_ALLOC.untyped,
        "Page-locked host memory, with flags."),
    Hook::new(Driver, Allocates, "3.2", c"cuModuleGetGlobal_v2", copies!(globals::cuModuleGetGlobal_v2), &globals::CU_MODULE_GET_GLOBAL_V2.untyped,
        "A module's variable."),
    #[cfg(cuda_12_0)]
    Hook::new(Driver, Allocates, "12.0", c"cuLibraryGetGlobal", copies!(globals::cuLibraryGetGlobal), &globals::CU_LIBRARY_GET_GLOBAL.untyped,
        "A library's variable; what runtimes since 12.0 call.").behind("cuda_12_0"),
    #[cfg(cuda_12_0)]
    Hook::new(Driver, Allocates, "12.0", c"cuLibraryGetManaged", copies!(globals::cuLibraryGetManaged), &globals::CU_LIBRARY_GET_MANAGED.untyped,
        "A library's managed variable.").behind("cuda_12_0"),
    Hook::new(Driver, Frees, "1.0", c"cuMemFree", copies!(device::cuMemFree), &device::CU_MEM_FREE.untyped,
        "Device memory, by the interface with 32-bit addresses."),
    Hook::new(Driver, Frees, "3.2", c"cuMemFree_v2", copies!(device::cuMemFree_v2), &device::CU_MEM_FREE_V2.untyped,
        "Device and managed memory."),
    #[cfg(cuda_11_2)]
    Hook::new(Driver, Frees, "11.2", c"cuMemFreeAsync", copies!(stream_ordered::cuMemFreeAsync), &stream_ordered::CU_MEM_FREE_ASYNC.untyped,
        "Device memory, in the order of a stream.").behind("cuda_11_2"),
    #[cfg(cuda_11_2)]
    Hook::new(Driver, Frees, "11.2", c"cuMemFreeAsync_ptsz", copies!(stream_ordered::cuMemFreeAsync_ptsz), &stream_ordered::CU_MEM_FREE_ASYNC_PTSZ.untyped,
        "The same, with one default stream per thread.").behind("cuda_11_2"),
    Hook::new(Driver, Frees, "10.2", c"cuMemUnmap", copies!(mapped::cuMemUnmap), &mapped::CU_MEM_UNMAP.untyped,
        "Mappings in a reserved range."),
    Hook::new(Driver, Frees, "4.1", c"cuIpcCloseMemHandle", copies!(mapped::cuIpcCloseMemHandle), &mapped::CU_IPC_CLOSE_MEM_HANDLE.untyped,
        "Memory of another process."),
    Hook::new(Driver, Frees, "1.0", c"cuMemFreeHost", copies!(host::cuMemFreeHost), &host::CU_MEM_FREE_HOST.untyped,
        "Page-locked host memory."),
    Hook::new(Driver, Frees, "none", c"cuMemFreeHost_v2", copies!(host::cuMemFreeHost_v2), &host::CU_MEM_FREE_HOST_V2.untyped,
        "Named in UCX's list; no driver is known to have it."),
    Hook::new(Driver, Frees, "1.0", c"cuModuleUnload", copies!(globals::cuModuleUnload), &globals::CU_MODULE_UNLOAD.untyped,
        "A module's variables."),
    #[cfg(cuda_12_0)]
    Hook::new(Driver, Frees, "12.0", c"cuLibraryUnload", copies!(globals::cuLibraryUnload), &globals::CU_LIBRARY_UNLOAD.untyped,
        "A library's variables.").behind("cuda_12_0"),
    Hook::new(Driver, Frees, "1.0", c"cuCtxDestroy", copies!(contexts::cuCtxDestroy), &contexts::CU_CTX_DESTROY.untyped,
        "All that a context holds."),
    Hook::new(Driver, Frees, "4.0", c"cuCtxDestroy_v2", copies!(contexts::cuCtxDestroy_v2), &contexts::CU_CTX_DESTROY_V2.untyped,
        "All that a context holds."),
    Hook::new(Driver, Frees, "7.0", c"cuDevicePrimaryCtxReset", copies!(contexts::cuDevicePrimaryCtxReset), &contexts::CU_DEVICE_PRIMARY_CTX_RESET.untyped,
        "All that a primary context holds."),
    Hook::new(Driver, Frees, "11.0", c"cuDevicePrimaryCtxReset_v2", copies!(contexts::cuDevicePrimaryCtxReset_v2), &contexts::CU_DEVICE_PRIMARY_CTX_RESET_V2.untyped,
        "All that a primary context holds."),
    Hook::new(Driver, Frees, "7.0", c"cuDevicePrimaryCtxRelease", copies!(contexts::cuDevicePrimaryCtxRelease), &contexts::CU_DEVICE_PRIMARY_CTX_RELEASE.untyped,
        "All that a primary context holds, if this was its last user."),
    Hook::new(Driver, Frees, "11.0", c"cuDevicePrimaryCtxRelease_v2", copies!(contexts::cuDevicePrimaryCtxRelease_v2), &contexts::CU_DEVICE_PRIMARY_CTX_RELEASE_V2.untyped,
        "All that a primary context holds, if this was its last user."),
    Hook::new(Runtime, Allocates, "1.0", c"cudaMalloc", copies!(runtime::cudaMalloc), &runtime::CUDA_MALLOC.untyped,
        "Device memory."),
    Hook::new(Runtime, Allocates, "6.0", c"cudaMallocManaged", copies!(runtime::cudaMallocManaged), &runtime::CUDA_MALLOC_MANAGED.untyped,
        "Managed memory."),
    Hook::new(Runtime, Allocates, "1.0", c"cudaMallocPitch", copies!(runtime::cudaMallocPitch), &runtime::CUDA_MALLOC_PITCH.untyped,
        "Rows of device memory: pitch times height."),
    Hook::new(Runtime, Allocates, "2.0", c"cudaMalloc3D", copies!(runtime::cudaMalloc3D), &runtime::CUDA_MALLOC_3D.untyped,
        "Slices of rows of device memory: pitch times height times depth."),
    #[cfg(cudart_11_2)]
    Hook::new(Runtime, Allocates, "11.2", c"cudaMallocAsync", copies!(runtime::cudaMallocAsync), &runtime::CUDA_MALLOC_ASYNC.untyped,
        "Device memory, in the order of a stream.").behind("cudart_11_2"),
    #[cfg(cudart_11_2)]
    Hook::new(Runtime, Allocates, "11.2", c"cudaMallocAsync_ptsz", copies!(runtime::cudaMallocAsync_ptsz), &runtime::CUDA_MALLOC_ASYNC_PTSZ.untyped,
        "The same, with one default stream per thread.").behind("cudart_11_2"),
    #[cfg(cudart_11_2)]
    Hook::new(Runtime, Allocates, "11.2", c"cudaMallocFromPoolAsync", copies!(runtime::cudaMallocFromPoolAsync), &runtime::CUDA_MALLOC_FROM_POOL_ASYNC.untyped,
        "Memory of a pool, in the order of a stream.").behind("cudart_11_2"),
    #[cfg(cudart_11_2)]
    Hook::new(Runtime, Allocates, "11.2", c"cudaMallocFromPoolAsync_ptsz", copies!(runtime::cudaMallocFromPoolAsync_ptsz), &runtime::CUDA_MALLOC_FROM_POOL_ASYNC_PTSZ.untyped,
        "The same, with one default stream per thread.").behind("cudart_11_2"),
    Hook::new(Runtime, Allocates, "1.0", c"cudaGetSymbolAddress", copies!(runtime::cudaGetSymbolAddress), &runtime::CUDA_GET_SYMBOL_ADDRESS.untyped,
        "A variable of the program."),
    Hook::new(Runtime, Allocates, "4.1", c"cudaIpcOpenMemHandle", copies!(runtime::cudaIpcOpenMemHandle), &runtime::CUDA_IPC_OPEN_MEM_HANDLE.untyped,
        "Memory of another process."),
    Hook::new(Runtime, Allocates, "1.0", c"cudaMallocHost", copies!(runtime::cudaMallocHost), &runtime::CUDA_MALLOC_HOST.untyped,
        "Page-locked host memory."),
    Hook::new(Runtime, Allocates, "2.2", c"cudaHostAlloc", copies!(runtime::cudaHostAlloc), &runtime::CUDA_HOST_ALLOC.untyped,
        "Page-locked host memory, with flags."),
    Hook::new(Runtime, Frees, "1.0", c"cudaFree", copies!(runtime::cudaFree), &runtime::CUDA_FREE.untyped,
        "Device and managed memory."),
    #[cfg(cudart_11_2)]
    Hook::new(Runtime, Frees, "11.2", c"cudaFreeAsync", copies!(runtime::cudaFreeAsync), &runtime::CUDA_FREE_ASYNC.untyped,
        "Device memory, in the order of a stream.").behind("cudart_11_2"),
    #[cfg(cudart_11_2)]
    Hook::new(Runtime, Frees, "11.2", c"cudaFreeAsync_ptsz", copies!(runtime::cudaFreeAsync_ptsz), &runtime::CUDA_FREE_ASYNC_PTSZ.untyped,
        "The same, with one default stream per thread.").behind("cudart_11_2"),
    Hook::new(Runtime, Frees, "1.0", c"cudaFreeHost", copies!(runtime::cudaFreeHost), &runtime::CUDA_FREE_HOST.untyped,
        "Page-locked host memory."),
    Hook::new(Runtime, Frees, "4.1", c"cudaIpcCloseMemHandle", copies!(runtime::cudaIpcCloseMemHandle), &runtime::CUDA_IPC_CLOSE_MEM_HANDLE.untyped,
        "Memory of another process."),
    Hook::new(Runtime, Frees, "4.0", c"cudaDeviceReset", copies!(runtime::cudaDeviceReset), &runtime::CUDA_DEVICE_RESET.untyped,
        "All that the current device holds."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The functions of the mission's list.
    #[cfg(all(cuda_11_2, cudart_11_2))]
    #[rustfmt::skip]
    const WANTED: [&str; 24] = [
        "cuMemAlloc", "cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocPitch",
        "cuMemAllocPitch_v2", "cuMemMap", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
        "cuModuleGetGlobal_v2", "cuMemFree", "cuMemFree_v2", "cuMemFreeHost", "cuMemFreeHost_v2",
        "cuMemUnmap", "cuMemFreeAsync", "cudaMalloc", "cudaMallocManaged", "cudaMallocPitch",
        "cudaMallocAsync", "cudaMallocFromPoolAsync", "cudaGetSymbolAddress", "cudaFree",
        "cudaFreeHost", "cudaFreeAsync",
    ];

    #[test]
    fn rows_are_unique_documented_and_gated_by_known_flags() {
        let mut names = HashSet::new();
        let mut replacements = HashSet::new();
        let mut originals = HashSet::new();
        for hook in HOOKS {
            assert!(names.insert(hook.name()), "{} has two rows", hook.name());
            assert!(hook.doc.ends_with('.'), "{} has no sentence", hook.name());
            let api = if hook.name().starts_with("cuda") { Runtime } else { Driver };
            assert_eq!(hook.api, api, "{}", hook.name());
            for code in hook.target.replacements {
                assert!(replacements.insert(code.address()), "{} shares code", hook.name());
            }
            let place = std::ptr::from_ref(hook.target.originals);
            assert!(originals.insert(place), "{} shares originals", hook.name());
            let gates = ["cuda_11_2", "cudart_11_2", "cuda_12_0"];
            assert!(hook.gate.is_none_or(|gate| gates.contains(&gate)), "{}", hook.name());
        }
        assert_eq!(replacements.len(), HOOKS.len() * COPIES);
    }

    #[test]
    #[cfg(all(cuda_11_2, cudart_11_2))]
    fn the_missions_functions_are_all_there() {
        for name in WANTED {
            assert!(HOOKS.iter().any(|hook| hook.name() == name), "{name} has no row");
        }
    }

    #[test]
    fn a_row_that_needs_a_release_is_gated_by_it() {
        for hook in HOOKS {
            let gate = match (hook.since, hook.api) {
                ("11.2", Driver) => Some("cuda_11_2"),
                ("11.2", Runtime) => Some("cudart_11_2"),
                ("12.0", Driver) => Some("cuda_12_0"),
                _ => None,
            };
            assert_eq!(hook.gate, gate, "{}", hook.name());
        }
    }
}
