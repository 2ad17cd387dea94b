//! The driver's functions that the transports call, found when the driver is opened.
//!
//! A row gives the method, the symbols to look for (the newest first), and the arguments.
//! Each method returns a [`Failure`] if the driver lacks the function or returns anything
//! but success. Handles are plain numbers here; who owns one is for the callers to say.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::failure::Failure;
use super::types::{
    AccessDescription, AllocationProperties, CopyAttributes, IpcHandle, PoolPointer, PoolProperties,
};

/// An address that the driver knows.
pub type Address = u64;
/// A context.
pub type Context = usize;
/// A stream.
pub type Stream = usize;
/// An event.
pub type Event = usize;
/// A module.
pub type Module = usize;
/// A kernel.
pub type Function = usize;
/// A memory pool.
pub type Pool = usize;
/// Physical memory of `cuMemCreate`.
pub type Physical = u64;

macro_rules! calls {
    ($($method:ident = $($symbol:literal)|+ ($($argument:ident: $type:ty),*);)+) => {
        /// The addresses of the functions; 0 where the driver lacks one.
        #[derive(Debug, Default)]
        pub struct Calls {
            $($method: usize,)+
        }

        impl Calls {
            /// Looks every function up.
            pub(super) fn find(address_of: impl Fn(&CStr) -> Option<usize>) -> Self {
                let first = |names: &[&CStr]| names.iter().find_map(|name| address_of(name));
                Self { $($method: first(&[$($symbol),+]).unwrap_or(0),)+ }
            }

            $(
                /// Calls the function of the driver's that this method is called after.
                ///
                /// # Safety
                ///
                /// As for the driver's function: pointers are valid for what it reads and
                /// writes, handles are alive.
                #[allow(clippy::too_many_arguments, reason = "they are the driver's")]
                pub unsafe fn $method(&self, $($argument: $type),*) -> Result<(), Failure> {
                    type Call = unsafe extern "C" fn($($type),*) -> c_uint;
                    const NAMES: &[&CStr] = &[$($symbol),+];
                    if self.$method == 0 {
                        return Err(missing(NAMES));
                    }
                    // SAFETY: the address was found under this name, which has this type.
                    let call = unsafe { std::mem::transmute::<usize, Call>(self.$method) };
                    // SAFETY: by this method's contract.
                    let code = unsafe { call($($argument),*) };
                    if code == 0 { Ok(()) } else { Err(Failure { code, ..missing(NAMES) }) }
                }
            )+

            /// Which of the functions this driver has, by the names of the methods.
            pub fn present(&self) -> Vec<(&'static str, bool)> {
                vec![$((stringify!($method), self.$method != 0)),+]
            }
        }
    };
}

fn missing(names: &[&'static CStr]) -> Failure {
    let function = names.last().and_then(|name| name.to_str().ok()).unwrap_or("?");
    Failure { function, code: Failure::MISSING }
}

#[rustfmt::skip]
calls! {
    init = c"cuInit" (flags: c_uint);
    driver_version = c"cuDriverGetVersion" (version: *mut c_int);
    device_count = c"cuDeviceGetCount" (count: *mut c_int);
    device_get = c"cuDeviceGet" (device: *mut c_int, ordinal: c_int);
    device_name = c"cuDeviceGetName" (name: *mut c_char, length: c_int, device: c_int);
    device_attribute = c"cuDeviceGetAttribute" (value: *mut c_int, attribute: c_int, device: c_int);
    device_uuid = c"cuDeviceGetUuid_v2" | c"cuDeviceGetUuid" (uuid: *mut [u8; 16], device: c_int);
    device_can_access_peer = c"cuDeviceCanAccessPeer" (can: *mut c_int, device: c_int, peer: c_int);
    primary_retain = c"cuDevicePrimaryCtxRetain" (context: *mut Context, device: c_int);
    primary_release = c"cuDevicePrimaryCtxRelease_v2" | c"cuDevicePrimaryCtxRelease" (device: c_int);
    primary_state = c"cuDevicePrimaryCtxGetState" (device: c_int, flags: *mut c_uint, active: *mut c_int);
    context_create = c"cuCtxCreate_v2" (context: *mut Context, flags: c_uint, device: c_int);
    context_destroy = c"cuCtxDestroy_v2" (context: Context);
    context_push = c"cuCtxPushCurrent_v2" (context: Context);
    context_pop = c"cuCtxPopCurrent_v2" (context: *mut Context);
    context_current = c"cuCtxGetCurrent" (context: *mut Context);
    context_set = c"cuCtxSetCurrent" (context: Context);
    context_device = c"cuCtxGetDevice" (device: *mut c_int);
    context_id = c"cuCtxGetId" (context: Context, id: *mut u64);
    context_synchronize = c"cuCtxSynchronize" ();
    enable_peer = c"cuCtxEnablePeerAccess" (peer: Context, flags: c_uint);
    pointer_attribute = c"cuPointerGetAttribute" (data: *mut c_void, attribute: c_int, address: Address);
    pointer_attributes = c"cuPointerGetAttributes" (count: c_uint, attributes: *mut c_int, data: *mut *mut c_void, address: Address);
    pointer_set_attribute = c"cuPointerSetAttribute" (value: *const c_void, attribute: c_int, address: Address);
    address_range = c"cuMemGetAddressRange_v2" (base: *mut Address, size: *mut usize, address: Address);
    alloc = c"cuMemAlloc_v2" (address: *mut Address, size: usize);
    free = c"cuMemFree_v2" (address: Address);
    alloc_managed = c"cuMemAllocManaged" (address: *mut Address, size: usize, flags: c_uint);
    alloc_host = c"cuMemHostAlloc" (address: *mut *mut c_void, size: usize, flags: c_uint);
    free_host = c"cuMemFreeHost" (address: *mut c_void);
    host_register = c"cuMemHostRegister_v2" (address: *mut c_void, size: usize, flags: c_uint);
    host_unregister = c"cuMemHostUnregister" (address: *mut c_void);
    stream_create = c"cuStreamCreate" (stream: *mut Stream, flags: c_uint);
    stream_destroy = c"cuStreamDestroy_v2" (stream: Stream);
    stream_query = c"cuStreamQuery" (stream: Stream);
    stream_synchronize = c"cuStreamSynchronize" (stream: Stream);
    stream_wait_event = c"cuStreamWaitEvent" (stream: Stream, event: Event, flags: c_uint);
    event_create = c"cuEventCreate" (event: *mut Event, flags: c_uint);
    event_destroy = c"cuEventDestroy_v2" (event: Event);
    event_record = c"cuEventRecord" (event: Event, stream: Stream);
    event_query = c"cuEventQuery" (event: Event);
    event_synchronize = c"cuEventSynchronize" (event: Event);
    copy = c"cuMemcpy" (to: Address, from: Address, size: usize);
    copy_async = c"cuMemcpyAsync" (to: Address, from: Address, size: usize, stream: Stream);
    copy_batch = c"cuMemcpyBatchAsync" (to: *const Address, from: *const Address, sizes: *const usize, count: usize, attributes: *const CopyAttributes, starts: *const usize, attribute_count: usize, failed: *mut usize, stream: Stream);
    copy_batch_v2 = c"cuMemcpyBatchAsync_v2" (to: *const Address, from: *const Address, sizes: *const usize, count: usize, attributes: *const CopyAttributes, starts: *const usize, attribute_count: usize, stream: Stream);
    set_bytes = c"cuMemsetD8_v2" (to: Address, value: u8, count: usize);
    module_load = c"cuModuleLoadData" (module: *mut Module, image: *const c_void);
    module_unload = c"cuModuleUnload" (module: Module);
    module_function = c"cuModuleGetFunction" (function: *mut Function, module: Module, name: *const c_char);
    launch = c"cuLaunchKernel" (function: Function, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Stream, parameters: *mut *mut c_void, extra: *mut *mut c_void);
    ipc_get = c"cuIpcGetMemHandle" (handle: *mut IpcHandle, address: Address);
    ipc_open = c"cuIpcOpenMemHandle_v2" | c"cuIpcOpenMemHandle" (address: *mut Address, handle: IpcHandle, flags: c_uint);
    ipc_close = c"cuIpcCloseMemHandle" (address: Address);
    reserve = c"cuMemAddressReserve" (address: *mut Address, size: usize, alignment: usize, wish: Address, flags: u64);
    unreserve = c"cuMemAddressFree" (address: Address, size: usize);
    create = c"cuMemCreate" (physical: *mut Physical, size: usize, properties: *const AllocationProperties, flags: u64);
    release = c"cuMemRelease" (physical: Physical);
    map = c"cuMemMap" (address: Address, size: usize, offset: usize, physical: Physical, flags: u64);
    unmap = c"cuMemUnmap" (address: Address, size: usize);
    set_access = c"cuMemSetAccess" (address: Address, size: usize, access: *const AccessDescription, count: usize);
    granularity = c"cuMemGetAllocationGranularity" (granularity: *mut usize, properties: *const AllocationProperties, option: c_uint);
    retain_allocation = c"cuMemRetainAllocationHandle" (physical: *mut Physical, address: Address);
    allocation_properties = c"cuMemGetAllocationPropertiesFromHandle" (properties: *mut AllocationProperties, physical: Physical);
    export_physical = c"cuMemExportToShareableHandle" (handle: *mut c_void, physical: Physical, kind: c_uint, flags: u64);
    import_physical = c"cuMemImportFromShareableHandle" (physical: *mut Physical, handle: *mut c_void, kind: c_uint);
    alloc_async = c"cuMemAllocAsync" (address: *mut Address, size: usize, stream: Stream);
    free_async = c"cuMemFreeAsync" (address: Address, stream: Stream);
    pool_create = c"cuMemPoolCreate" (pool: *mut Pool, properties: *const PoolProperties);
    pool_destroy = c"cuMemPoolDestroy" (pool: Pool);
    pool_set_access = c"cuMemPoolSetAccess" (pool: Pool, access: *const AccessDescription, count: usize);
    pool_alloc_async = c"cuMemAllocFromPoolAsync" (address: *mut Address, size: usize, pool: Pool, stream: Stream);
    pool_export = c"cuMemPoolExportToShareableHandle" (handle: *mut c_void, pool: Pool, kind: c_uint, flags: u64);
    pool_import = c"cuMemPoolImportFromShareableHandle" (pool: *mut Pool, handle: *mut c_void, kind: c_uint, flags: u64);
    pool_export_pointer = c"cuMemPoolExportPointer" (data: *mut PoolPointer, address: Address);
    pool_import_pointer = c"cuMemPoolImportPointer" (address: *mut Address, pool: Pool, data: *mut PoolPointer);
}
