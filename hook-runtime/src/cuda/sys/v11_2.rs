// Made by `tests/bindings.rs` from the stub toolkit's headers. Not to be edited.
pub const CUDA_SUCCESS: cudaError_enum = 0;
pub const CUDA_ERROR_INVALID_VALUE: cudaError_enum = 1;
pub const CUDA_ERROR_OUT_OF_MEMORY: cudaError_enum = 2;
pub const CUDA_ERROR_NOT_INITIALIZED: cudaError_enum = 3;
pub const CUDA_ERROR_DEINITIALIZED: cudaError_enum = 4;
pub const CUDA_ERROR_PROFILER_DISABLED: cudaError_enum = 5;
pub const CUDA_ERROR_PROFILER_NOT_INITIALIZED: cudaError_enum = 6;
pub const CUDA_ERROR_PROFILER_ALREADY_STARTED: cudaError_enum = 7;
pub const CUDA_ERROR_PROFILER_ALREADY_STOPPED: cudaError_enum = 8;
pub const CUDA_ERROR_STUB_LIBRARY: cudaError_enum = 34;
pub const CUDA_ERROR_NO_DEVICE: cudaError_enum = 100;
pub const CUDA_ERROR_INVALID_DEVICE: cudaError_enum = 101;
pub const CUDA_ERROR_DEVICE_NOT_LICENSED: cudaError_enum = 102;
pub const CUDA_ERROR_INVALID_IMAGE: cudaError_enum = 200;
pub const CUDA_ERROR_INVALID_CONTEXT: cudaError_enum = 201;
pub const CUDA_ERROR_CONTEXT_ALREADY_CURRENT: cudaError_enum = 202;
pub const CUDA_ERROR_MAP_FAILED: cudaError_enum = 205;
pub const CUDA_ERROR_UNMAP_FAILED: cudaError_enum = 206;
pub const CUDA_ERROR_ARRAY_IS_MAPPED: cudaError_enum = 207;
pub const CUDA_ERROR_ALREADY_MAPPED: cudaError_enum = 208;
pub const CUDA_ERROR_NO_BINARY_FOR_GPU: cudaError_enum = 209;
pub const CUDA_ERROR_ALREADY_ACQUIRED: cudaError_enum = 210;
pub const CUDA_ERROR_NOT_MAPPED: cudaError_enum = 211;
pub const CUDA_ERROR_NOT_MAPPED_AS_ARRAY: cudaError_enum = 212;
pub const CUDA_ERROR_NOT_MAPPED_AS_POINTER: cudaError_enum = 213;
pub const CUDA_ERROR_ECC_UNCORRECTABLE: cudaError_enum = 214;
pub const CUDA_ERROR_UNSUPPORTED_LIMIT: cudaError_enum = 215;
pub const CUDA_ERROR_CONTEXT_ALREADY_IN_USE: cudaError_enum = 216;
pub const CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: cudaError_enum = 217;
pub const CUDA_ERROR_INVALID_PTX: cudaError_enum = 218;
pub const CUDA_ERROR_INVALID_GRAPHICS_CONTEXT: cudaError_enum = 219;
pub const CUDA_ERROR_NVLINK_UNCORRECTABLE: cudaError_enum = 220;
pub const CUDA_ERROR_JIT_COMPILER_NOT_FOUND: cudaError_enum = 221;
pub const CUDA_ERROR_UNSUPPORTED_PTX_VERSION: cudaError_enum = 222;
pub const CUDA_ERROR_JIT_COMPILATION_DISABLED: cudaError_enum = 223;
pub const CUDA_ERROR_INVALID_SOURCE: cudaError_enum = 300;
pub const CUDA_ERROR_FILE_NOT_FOUND: cudaError_enum = 301;
pub const CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: cudaError_enum = 302;
pub const CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: cudaError_enum = 303;
pub const CUDA_ERROR_OPERATING_SYSTEM: cudaError_enum = 304;
pub const CUDA_ERROR_INVALID_HANDLE: cudaError_enum = 400;
pub const CUDA_ERROR_ILLEGAL_STATE: cudaError_enum = 401;
pub const CUDA_ERROR_NOT_FOUND: cudaError_enum = 500;
pub const CUDA_ERROR_NOT_READY: cudaError_enum = 600;
pub const CUDA_ERROR_ILLEGAL_ADDRESS: cudaError_enum = 700;
pub const CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: cudaError_enum = 701;
pub const CUDA_ERROR_LAUNCH_TIMEOUT: cudaError_enum = 702;
pub const CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING: cudaError_enum = 703;
pub const CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED: cudaError_enum = 704;
pub const CUDA_ERROR_PEER_ACCESS_NOT_ENABLED: cudaError_enum = 705;
pub const CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE: cudaError_enum = 708;
pub const CUDA_ERROR_CONTEXT_IS_DESTROYED: cudaError_enum = 709;
pub const CUDA_ERROR_ASSERT: cudaError_enum = 710;
pub const CUDA_ERROR_TOO_MANY_PEERS: cudaError_enum = 711;
pub const CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: cudaError_enum = 712;
pub const CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: cudaError_enum = 713;
pub const CUDA_ERROR_HARDWARE_STACK_ERROR: cudaError_enum = 714;
pub const CUDA_ERROR_ILLEGAL_INSTRUCTION: cudaError_enum = 715;
pub const CUDA_ERROR_MISALIGNED_ADDRESS: cudaError_enum = 716;
pub const CUDA_ERROR_INVALID_ADDRESS_SPACE: cudaError_enum = 717;
pub const CUDA_ERROR_INVALID_PC: cudaError_enum = 718;
pub const CUDA_ERROR_LAUNCH_FAILED: cudaError_enum = 719;
pub const CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: cudaError_enum = 720;
pub const CUDA_ERROR_NOT_PERMITTED: cudaError_enum = 800;
pub const CUDA_ERROR_NOT_SUPPORTED: cudaError_enum = 801;
pub const CUDA_ERROR_SYSTEM_NOT_READY: cudaError_enum = 802;
pub const CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: cudaError_enum = 803;
pub const CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: cudaError_enum = 804;
pub const CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: cudaError_enum = 900;
pub const CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: cudaError_enum = 901;
pub const CUDA_ERROR_STREAM_CAPTURE_MERGE: cudaError_enum = 902;
pub const CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: cudaError_enum = 903;
pub const CUDA_ERROR_STREAM_CAPTURE_UNJOINED: cudaError_enum = 904;
pub const CUDA_ERROR_STREAM_CAPTURE_ISOLATION: cudaError_enum = 905;
pub const CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: cudaError_enum = 906;
pub const CUDA_ERROR_CAPTURED_EVENT: cudaError_enum = 907;
pub const CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: cudaError_enum = 908;
pub const CUDA_ERROR_TIMEOUT: cudaError_enum = 909;
pub const CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: cudaError_enum = 910;
pub const CUDA_ERROR_UNKNOWN: cudaError_enum = 999;
pub type cudaError_enum = ::std::ffi::c_uint;
pub use self::cudaError_enum as CUresult;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUstream_st {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmemPoolHandle_st {
    _unused: [u8; 0],
}
pub type CUdeviceptr_v2 = ::std::ffi::c_ulonglong;
pub type CUdeviceptr = CUdeviceptr_v2;
pub type CUdevice_v1 = ::std::ffi::c_int;
pub type CUdevice = CUdevice_v1;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUctx_st {
    _unused: [u8; 0],
}
pub type CUcontext = *mut CUctx_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmod_st {
    _unused: [u8; 0],
}
pub type CUmodule = *mut CUmod_st;
pub type CUstream = *mut CUstream_st;
pub type CUmemoryPool = *mut CUmemPoolHandle_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUipcMemHandle_st {
    pub reserved: [::std::ffi::c_char; 64usize],
}
pub type CUipcMemHandle_v1 = CUipcMemHandle_st;
pub type CUipcMemHandle = CUipcMemHandle_v1;
pub type CUmemGenericAllocationHandle_v1 = ::std::ffi::c_ulonglong;
pub type CUmemGenericAllocationHandle = CUmemGenericAllocationHandle_v1;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct CUmemPoolPtrExportData_st {
    pub reserved: [::std::ffi::c_uchar; 64usize],
}
pub type CUmemPoolPtrExportData_v1 = CUmemPoolPtrExportData_st;
pub type CUmemPoolPtrExportData = CUmemPoolPtrExportData_v1;
pub const cudaSuccess: cudaError = 0;
pub const cudaErrorInvalidValue: cudaError = 1;
pub const cudaErrorMemoryAllocation: cudaError = 2;
pub const cudaErrorInitializationError: cudaError = 3;
pub const cudaErrorCudartUnloading: cudaError = 4;
pub const cudaErrorProfilerDisabled: cudaError = 5;
pub const cudaErrorProfilerNotInitialized: cudaError = 6;
pub const cudaErrorProfilerAlreadyStarted: cudaError = 7;
pub const cudaErrorProfilerAlreadyStopped: cudaError = 8;
pub const cudaErrorInvalidConfiguration: cudaError = 9;
pub const cudaErrorInvalidPitchValue: cudaError = 12;
pub const cudaErrorInvalidSymbol: cudaError = 13;
pub const cudaErrorInvalidHostPointer: cudaError = 16;
pub const cudaErrorInvalidDevicePointer: cudaError = 17;
pub const cudaErrorInvalidTexture: cudaError = 18;
pub const cudaErrorInvalidTextureBinding: cudaError = 19;
pub const cudaErrorInvalidChannelDescriptor: cudaError = 20;
pub const cudaErrorInvalidMemcpyDirection: cudaError = 21;
pub const cudaErrorAddressOfConstant: cudaError = 22;
pub const cudaErrorTextureFetchFailed: cudaError = 23;
pub const cudaErrorTextureNotBound: cudaError = 24;
pub const cudaErrorSynchronizationError: cudaError = 25;
pub const cudaErrorInvalidFilterSetting: cudaError = 26;
pub const cudaErrorInvalidNormSetting: cudaError = 27;
pub const cudaErrorMixedDeviceExecution: cudaError = 28;
pub const cudaErrorNotYetImplemented: cudaError = 31;
pub const cudaErrorMemoryValueTooLarge: cudaError = 32;
pub const cudaErrorStubLibrary: cudaError = 34;
pub const cudaErrorInsufficientDriver: cudaError = 35;
pub const cudaErrorCallRequiresNewerDriver: cudaError = 36;
pub const cudaErrorInvalidSurface: cudaError = 37;
pub const cudaErrorDuplicateVariableName: cudaError = 43;
pub const cudaErrorDuplicateTextureName: cudaError = 44;
pub const cudaErrorDuplicateSurfaceName: cudaError = 45;
pub const cudaErrorDevicesUnavailable: cudaError = 46;
pub const cudaErrorIncompatibleDriverContext: cudaError = 49;
pub const cudaErrorMissingConfiguration: cudaError = 52;
pub const cudaErrorPriorLaunchFailure: cudaError = 53;
pub const cudaErrorLaunchMaxDepthExceeded: cudaError = 65;
pub const cudaErrorLaunchFileScopedTex: cudaError = 66;
pub const cudaErrorLaunchFileScopedSurf: cudaError = 67;
pub const cudaErrorSyncDepthExceeded: cudaError = 68;
pub const cudaErrorLaunchPendingCountExceeded: cudaError = 69;
pub const cudaErrorInvalidDeviceFunction: cudaError = 98;
pub const cudaErrorNoDevice: cudaError = 100;
pub const cudaErrorInvalidDevice: cudaError = 101;
pub const cudaErrorDeviceNotLicensed: cudaError = 102;
pub const cudaErrorSoftwareValidityNotEstablished: cudaError = 103;
pub const cudaErrorStartupFailure: cudaError = 127;
pub const cudaErrorInvalidKernelImage: cudaError = 200;
pub const cudaErrorDeviceUninitialized: cudaError = 201;
pub const cudaErrorMapBufferObjectFailed: cudaError = 205;
pub const cudaErrorUnmapBufferObjectFailed: cudaError = 206;
pub const cudaErrorArrayIsMapped: cudaError = 207;
pub const cudaErrorAlreadyMapped: cudaError = 208;
pub const cudaErrorNoKernelImageForDevice: cudaError = 209;
pub const cudaErrorAlreadyAcquired: cudaError = 210;
pub const cudaErrorNotMapped: cudaError = 211;
pub const cudaErrorNotMappedAsArray: cudaError = 212;
pub const cudaErrorNotMappedAsPointer: cudaError = 213;
pub const cudaErrorECCUncorrectable: cudaError = 214;
pub const cudaErrorUnsupportedLimit: cudaError = 215;
pub const cudaErrorDeviceAlreadyInUse: cudaError = 216;
pub const cudaErrorPeerAccessUnsupported: cudaError = 217;
pub const cudaErrorInvalidPtx: cudaError = 218;
pub const cudaErrorInvalidGraphicsContext: cudaError = 219;
pub const cudaErrorNvlinkUncorrectable: cudaError = 220;
pub const cudaErrorJitCompilerNotFound: cudaError = 221;
pub const cudaErrorUnsupportedPtxVersion: cudaError = 222;
pub const cudaErrorJitCompilationDisabled: cudaError = 223;
pub const cudaErrorInvalidSource: cudaError = 300;
pub const cudaErrorFileNotFound: cudaError = 301;
pub const cudaErrorSharedObjectSymbolNotFound: cudaError = 302;
pub const cudaErrorSharedObjectInitFailed: cudaError = 303;
pub const cudaErrorOperatingSystem: cudaError = 304;
pub const cudaErrorInvalidResourceHandle: cudaError = 400;
pub const cudaErrorIllegalState: cudaError = 401;
pub const cudaErrorSymbolNotFound: cudaError = 500;
pub const cudaErrorNotReady: cudaError = 600;
pub const cudaErrorIllegalAddress: cudaError = 700;
pub const cudaErrorLaunchOutOfResources: cudaError = 701;
pub const cudaErrorLaunchTimeout: cudaError = 702;
pub const cudaErrorLaunchIncompatibleTexturing: cudaError = 703;
pub const cudaErrorPeerAccessAlreadyEnabled: cudaError = 704;
pub const cudaErrorPeerAccessNotEnabled: cudaError = 705;
pub const cudaErrorSetOnActiveProcess: cudaError = 708;
pub const cudaErrorContextIsDestroyed: cudaError = 709;
pub const cudaErrorAssert: cudaError = 710;
pub const cudaErrorTooManyPeers: cudaError = 711;
pub const cudaErrorHostMemoryAlreadyRegistered: cudaError = 712;
pub const cudaErrorHostMemoryNotRegistered: cudaError = 713;
pub const cudaErrorHardwareStackError: cudaError = 714;
pub const cudaErrorIllegalInstruction: cudaError = 715;
pub const cudaErrorMisalignedAddress: cudaError = 716;
pub const cudaErrorInvalidAddressSpace: cudaError = 717;
pub const cudaErrorInvalidPc: cudaError = 718;
pub const cudaErrorLaunchFailure: cudaError = 719;
pub const cudaErrorCooperativeLaunchTooLarge: cudaError = 720;
pub const cudaErrorNotPermitted: cudaError = 800;
pub const cudaErrorNotSupported: cudaError = 801;
pub const cudaErrorSystemNotReady: cudaError = 802;
pub const cudaErrorSystemDriverMismatch: cudaError = 803;
pub const cudaErrorCompatNotSupportedOnDevice: cudaError = 804;
pub const cudaErrorStreamCaptureUnsupported: cudaError = 900;
pub const cudaErrorStreamCaptureInvalidated: cudaError = 901;
pub const cudaErrorStreamCaptureMerge: cudaError = 902;
pub const cudaErrorStreamCaptureUnmatched: cudaError = 903;
pub const cudaErrorStreamCaptureUnjoined: cudaError = 904;
pub const cudaErrorStreamCaptureIsolation: cudaError = 905;
pub const cudaErrorStreamCaptureImplicit: cudaError = 906;
pub const cudaErrorCapturedEvent: cudaError = 907;
pub const cudaErrorStreamCaptureWrongThread: cudaError = 908;
pub const cudaErrorTimeout: cudaError = 909;
pub const cudaErrorGraphExecUpdateFailure: cudaError = 910;
pub const cudaErrorUnknown: cudaError = 999;
pub const cudaErrorApiFailureBase: cudaError = 10000;
pub type cudaError = ::std::ffi::c_uint;
pub use self::cudaError as cudaError_t;
pub type cudaStream_t = *mut CUstream_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaIpcMemHandle_st {
    pub reserved: [::std::ffi::c_char; 64usize],
}
pub type cudaIpcMemHandle_t = cudaIpcMemHandle_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct cudaPitchedPtr {
    pub ptr: *mut ::std::ffi::c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}
pub type cudaMemPool_t = *mut CUmemPoolHandle_st;
unsafe extern "C" {
    pub fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) -> CUresult;
    pub fn cuDevicePrimaryCtxGetState(
        device: CUdevice,
        flags: *mut ::std::ffi::c_uint,
        active: *mut ::std::ffi::c_int,
    ) -> CUresult;
    pub fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> CUresult;
    pub fn cuDevicePrimaryCtxReset_v2(device: CUdevice) -> CUresult;
    pub fn cuCtxDestroy_v2(context: CUcontext) -> CUresult;
    pub fn cuCtxGetCurrent(context: *mut CUcontext) -> CUresult;
    pub fn cuModuleUnload(module: CUmodule) -> CUresult;
    pub fn cuModuleGetGlobal_v2(
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        module: CUmodule,
        name: *const ::std::ffi::c_char,
    ) -> CUresult;
    pub fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) -> CUresult;
    pub fn cuMemAllocPitch_v2(
        address: *mut CUdeviceptr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: ::std::ffi::c_uint,
    ) -> CUresult;
    pub fn cuMemAllocManaged(
        address: *mut CUdeviceptr,
        bytes: usize,
        flags: ::std::ffi::c_uint,
    ) -> CUresult;
    pub fn cuMemFree_v2(address: CUdeviceptr) -> CUresult;
    pub fn cuMemGetAddressRange_v2(
        base: *mut CUdeviceptr,
        bytes: *mut usize,
        address: CUdeviceptr,
    ) -> CUresult;
    pub fn cuMemAllocHost_v2(address: *mut *mut ::std::ffi::c_void, bytes: usize) -> CUresult;
    pub fn cuMemHostAlloc(
        address: *mut *mut ::std::ffi::c_void,
        bytes: usize,
        flags: ::std::ffi::c_uint,
    ) -> CUresult;
    pub fn cuMemFreeHost(address: *mut ::std::ffi::c_void) -> CUresult;
    pub fn cuMemMap(
        address: CUdeviceptr,
        bytes: usize,
        offset: usize,
        handle: CUmemGenericAllocationHandle,
        flags: ::std::ffi::c_ulonglong,
    ) -> CUresult;
    pub fn cuMemUnmap(address: CUdeviceptr, bytes: usize) -> CUresult;
    pub fn cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult;
    pub fn cuMemAllocFromPoolAsync(
        address: *mut CUdeviceptr,
        bytes: usize,
        pool: CUmemoryPool,
        stream: CUstream,
    ) -> CUresult;
    pub fn cuMemFreeAsync(address: CUdeviceptr, stream: CUstream) -> CUresult;
    pub fn cuMemPoolImportPointer(
        address: *mut CUdeviceptr,
        pool: CUmemoryPool,
        data: *mut CUmemPoolPtrExportData,
    ) -> CUresult;
    pub fn cuIpcOpenMemHandle_v2(
        address: *mut CUdeviceptr,
        handle: CUipcMemHandle,
        flags: ::std::ffi::c_uint,
    ) -> CUresult;
    pub fn cuIpcCloseMemHandle(address: CUdeviceptr) -> CUresult;
    pub fn cudaDeviceReset() -> cudaError_t;
    pub fn cudaMalloc(address: *mut *mut ::std::ffi::c_void, bytes: usize) -> cudaError_t;
    pub fn cudaMallocPitch(
        address: *mut *mut ::std::ffi::c_void,
        pitch: *mut usize,
        width: usize,
        height: usize,
    ) -> cudaError_t;
    pub fn cudaMalloc3D(address: *mut cudaPitchedPtr, extent: cudaExtent) -> cudaError_t;
    pub fn cudaMallocManaged(
        address: *mut *mut ::std::ffi::c_void,
        bytes: usize,
        flags: ::std::ffi::c_uint,
    ) -> cudaError_t;
    pub fn cudaFree(address: *mut ::std::ffi::c_void) -> cudaError_t;
    pub fn cudaMallocHost(address: *mut *mut ::std::ffi::c_void, bytes: usize) -> cudaError_t;
    pub fn cudaHostAlloc(
        address: *mut *mut ::std::ffi::c_void,
        bytes: usize,
        flags: ::std::ffi::c_uint,
    ) -> cudaError_t;
    pub fn cudaFreeHost(address: *mut ::std::ffi::c_void) -> cudaError_t;
    pub fn cudaGetSymbolAddress(
        address: *mut *mut ::std::ffi::c_void,
        symbol: *const ::std::ffi::c_void,
    ) -> cudaError_t;
    pub fn cudaGetSymbolSize(bytes: *mut usize, symbol: *const ::std::ffi::c_void) -> cudaError_t;
    pub fn cudaMallocAsync(
        address: *mut *mut ::std::ffi::c_void,
        bytes: usize,
        stream: cudaStream_t,
    ) -> cudaError_t;
    pub fn cudaMallocFromPoolAsync(
        address: *mut *mut ::std::ffi::c_void,
        bytes: usize,
        pool: cudaMemPool_t,
        stream: cudaStream_t,
    ) -> cudaError_t;
    pub fn cudaFreeAsync(address: *mut ::std::ffi::c_void, stream: cudaStream_t) -> cudaError_t;
    pub fn cudaIpcOpenMemHandle(
        address: *mut *mut ::std::ffi::c_void,
        handle: cudaIpcMemHandle_t,
        flags: ::std::ffi::c_uint,
    ) -> cudaError_t;
    pub fn cudaIpcCloseMemHandle(address: *mut ::std::ffi::c_void) -> cudaError_t;
}
