//! Holds the replacements against the bindings: this file does not compile unless each has
//! the type of the function that it stands in for.
//!
//! Missing here are functions that no header declares today: those of the interface with
//! 32-bit addresses, the `_ptsz` entries (of the same types as those without), and names that
//! a newer one has replaced.

#[cfg(cuda_11_2)]
use super::stream_ordered;
use super::{contexts, device, globals, host, mapped, runtime};
use crate::cuda::sys;

/// Never called, and generic so that it is not even translated: nothing is to be linked.
#[expect(dead_code, reason = "the types are what matters")]
#[expect(clippy::extra_unused_type_parameters, reason = "it keeps this from being translated")]
#[rustfmt::skip]
fn replacements_have_the_types_of_their_functions<T>() {
    let _ = [sys::cuMemAlloc_v2, device::cuMemAlloc_v2::<0>];
    let _ = [sys::cuMemAllocManaged, device::cuMemAllocManaged::<0>];
    let _ = [sys::cuMemAllocPitch_v2, device::cuMemAllocPitch_v2::<0>];
    #[cfg(cuda_11_2)]
    let _ = [sys::cuMemAllocAsync, stream_ordered::cuMemAllocAsync::<0>];
    #[cfg(cuda_11_2)]
    let _ = [sys::cuMemAllocFromPoolAsync, stream_ordered::cuMemAllocFromPoolAsync::<0>];
    #[cfg(cuda_11_2)]
    let _ = [sys::cuMemPoolImportPointer, stream_ordered::cuMemPoolImportPointer::<0>];
    let _ = [sys::cuMemMap, mapped::cuMemMap::<0>];
    #[cfg(cuda_11_2)]
    let _ = [sys::cuIpcOpenMemHandle_v2, mapped::cuIpcOpenMemHandle_v2::<0>];
    let _ = [sys::cuMemAllocHost_v2, host::cuMemAllocHost_v2::<0>];
    let _ = [sys::cuMemHostAlloc, host::cuMemHostAlloc::<0>];
    let _ = [sys::cuModuleGetGlobal_v2, globals::cuModuleGetGlobal_v2::<0>];
    #[cfg(cuda_12_0)]
    let _ = [sys::cuLibraryGetGlobal, globals::cuLibraryGetGlobal::<0>];
    #[cfg(cuda_12_0)]
    let _ = [sys::cuLibraryGetManaged, globals::cuLibraryGetManaged::<0>];
    let _ = [sys::cuMemFree_v2, device::cuMemFree_v2::<0>];
    #[cfg(cuda_11_2)]
    let _ = [sys::cuMemFreeAsync, stream_ordered::cuMemFreeAsync::<0>];
    let _ = [sys::cuMemUnmap, mapped::cuMemUnmap::<0>];
    let _ = [sys::cuIpcCloseMemHandle, mapped::cuIpcCloseMemHandle::<0>];
    let _ = [sys::cuMemFreeHost, host::cuMemFreeHost::<0>];
    let _ = [sys::cuModuleUnload, globals::cuModuleUnload::<0>];
    #[cfg(cuda_12_0)]
    let _ = [sys::cuLibraryUnload, globals::cuLibraryUnload::<0>];
    let _ = [sys::cuCtxDestroy_v2, contexts::cuCtxDestroy_v2::<0>];
    #[cfg(cuda_11_2)]
    let _ = [sys::cuDevicePrimaryCtxReset_v2, contexts::cuDevicePrimaryCtxReset_v2::<0>];
    #[cfg(cuda_11_2)]
    let _ = [sys::cuDevicePrimaryCtxRelease_v2, contexts::cuDevicePrimaryCtxRelease_v2::<0>];
    let _ = [sys::cudaMalloc, runtime::cudaMalloc::<0>];
    let _ = [sys::cudaMallocManaged, runtime::cudaMallocManaged::<0>];
    let _ = [sys::cudaMallocPitch, runtime::cudaMallocPitch::<0>];
    let _ = [sys::cudaMalloc3D, runtime::cudaMalloc3D::<0>];
    #[cfg(cudart_11_2)]
    let _ = [sys::cudaMallocAsync, runtime::cudaMallocAsync::<0>];
    #[cfg(cudart_11_2)]
    let _ = [sys::cudaMallocFromPoolAsync, runtime::cudaMallocFromPoolAsync::<0>];
    let _ = [sys::cudaGetSymbolAddress, runtime::cudaGetSymbolAddress::<0>];
    let _ = [sys::cudaIpcOpenMemHandle, runtime::cudaIpcOpenMemHandle::<0>];
    let _ = [sys::cudaMallocHost, runtime::cudaMallocHost::<0>];
    let _ = [sys::cudaHostAlloc, runtime::cudaHostAlloc::<0>];
    let _ = [sys::cudaFree, runtime::cudaFree::<0>];
    #[cfg(cudart_11_2)]
    let _ = [sys::cudaFreeAsync, runtime::cudaFreeAsync::<0>];
    let _ = [sys::cudaFreeHost, runtime::cudaFreeHost::<0>];
    let _ = [sys::cudaIpcCloseMemHandle, runtime::cudaIpcCloseMemHandle::<0>];
    let _ = [sys::cudaDeviceReset, runtime::cudaDeviceReset::<0>];
}
