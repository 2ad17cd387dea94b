//! `libuct_cuda.so`: the module for the transports over CUDA.
//!
//! Programs in C use them through the functions below, which `hook_transports.h` declares;
//! programs in Rust through hook-runtime itself. The module does not register with a UCX
//! that is loaded, whose private structures change with each release.

use std::ffi::{c_char, c_int, c_uint, c_void};

use hook_runtime::c_api;
use hook_runtime::c_api::transports::{
    self, CCopier, CCopy, CExport, CMapping, CRegion, CReport, CTransport,
};

const MODULE: &str = "uct-cuda";

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_version() -> *const c_char {
    c_api::version()
}

/// How many transports libuct_cuda holds.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_transports() -> c_uint {
    transports::count(MODULE) as c_uint
}

/// Describes transport `number` of libuct_cuda, from 0 on.
///
/// # Safety
///
/// `transport` has room for the description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uct_cuda_describe(number: c_uint, transport: *mut CTransport) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::describe(MODULE, number as usize, transport) }
}

/// Seconds that a copy of `size` bytes between two kinds of memory (`HOOK_MEMORY_*`) is
/// estimated to take with transport `number`; below 0 if it does not do that.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_estimate(number: c_uint, from: u32, to: u32, size: usize) -> f64 {
    transports::estimate(MODULE, number as usize, from, to, size)
}

/// Writes what the last failed call of this thread has met into `buffer`, cut off to `length`
/// bytes, and returns the length of the whole text, as `snprintf` does.
///
/// # Safety
///
/// `buffer` has room for `length` bytes; it may be null if `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_transport_error(buffer: *mut c_char, length: usize) -> usize {
    // SAFETY: by this function's contract.
    unsafe { transports::error(buffer, length) }
}

/// cuda_copy: makes a copier, for one thread at a time, with the settings of the environment.
/// Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn hook_copier_create() -> *mut CCopier {
    transports::copier_create()
}

/// Waits for the copies of a copier and gives it back.
///
/// # Safety
///
/// `copier` came from `hook_copier_create`, and is given back once; it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_copier_destroy(copier: *mut CCopier) {
    // SAFETY: by this function's contract.
    unsafe { transports::destroy(copier) }
}

/// Finds out what kind of memory `length` bytes at `address` are. A region stays right until
/// its memory is freed.
///
/// # Safety
///
/// `copier` is alive and used by this thread alone; `region` has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_copier_region(
    copier: *mut CCopier,
    address: *mut c_void,
    length: usize,
    region: *mut CRegion,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::region(copier, address, length, region) }
}

/// Begins to copy `size` bytes. `HOOK_TRANSPORT_PENDING`: `token` will be reported when it is
/// over; `HOOK_TRANSPORT_OK`: it is over now, and not reported.
///
/// # Safety
///
/// Until then both ranges stay allocated, nobody writes to the source, and nobody else
/// touches the destination.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_copier_copy(
    copier: *mut CCopier,
    to: *const CRegion,
    to_offset: usize,
    from: *const CRegion,
    from_offset: usize,
    size: usize,
    token: u64,
) -> c_int {
    let copy = CCopy { to: (to, to_offset), from: (from, from_offset), size };
    // SAFETY: by this function's contract.
    unsafe { transports::copy(copier, copy, Some(token)) }
}

/// Copies `size` bytes and returns when that is over, without waiting for copies that were
/// begun before.
///
/// # Safety
///
/// Meanwhile nobody writes to the source, and nobody else touches the destination.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_copier_copy_now(
    copier: *mut CCopier,
    to: *const CRegion,
    to_offset: usize,
    from: *const CRegion,
    from_offset: usize,
    size: usize,
) -> c_int {
    let copy = CCopy { to: (to, to_offset), from: (from, from_offset), size };
    // SAFETY: by this function's contract.
    unsafe { transports::copy(copier, copy, None) }
}

/// Hands small copies that were gathered to the driver, and reports copies that are over as
/// far as one look tells. Returns how many, or `HOOK_TRANSPORT_ERROR`.
///
/// # Safety
///
/// `copier` is alive and used by this thread alone; `report` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_copier_progress(
    copier: *mut CCopier,
    report: CReport,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::report(copier, false, report, argument) }
}

/// Waits until every copy that was begun is over, and reports them.
///
/// # Safety
///
/// As for `hook_copier_progress`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_copier_flush(
    copier: *mut CCopier,
    report: CReport,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::report(copier, true, report, argument) }
}

/// cuda_ipc: makes device memory known to other processes, with the allocation that it lies
/// in. Null on failure. Memory of a pool has to be closed by the others before it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn hook_ipc_export(address: *mut c_void, length: usize) -> *mut CExport {
    transports::export(address, length)
}

/// Takes the memory back; what is open elsewhere stays open.
///
/// # Safety
///
/// `exported` came from `hook_ipc_export`, and is given back once; it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_ipc_unexport(exported: *mut CExport) {
    // SAFETY: by this function's contract.
    unsafe { transports::destroy(exported) }
}

/// Writes at most `length` bytes of the key, which other processes open the memory with, into
/// `buffer`. Returns the length of the whole key.
///
/// # Safety
///
/// `buffer` has room for `length` bytes; it may be null if `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_ipc_key(
    exported: *const CExport,
    buffer: *mut c_void,
    length: usize,
) -> usize {
    // SAFETY: by this function's contract.
    unsafe { transports::key(exported, buffer, length) }
}

/// Where the exported address lies in the memory that the key stands for.
///
/// # Safety
///
/// `exported` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_ipc_offset(exported: *const CExport) -> usize {
    // SAFETY: by this function's contract.
    unsafe { transports::offset(exported) }
}

/// Opens the memory of another process that a key stands for. Null on failure.
///
/// # Safety
///
/// `key` leads to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_ipc_open(key: *const c_void, length: usize) -> *mut CMapping {
    // SAFETY: by this function's contract.
    unsafe { transports::open(key, length) }
}

/// Where that memory is in this process; its length is written to `length` unless that is
/// null.
///
/// # Safety
///
/// `mapping` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_ipc_address(
    mapping: *const CMapping,
    length: *mut usize,
) -> *mut c_void {
    // SAFETY: by this function's contract.
    unsafe { transports::address(mapping, length) }
}

/// Closes it. The mapping may be kept for the next time, as the environment says.
///
/// # Safety
///
/// `mapping` came from `hook_ipc_open`, is given back once, and no copy uses it; it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_ipc_close(mapping: *mut CMapping) {
    // SAFETY: by this function's contract.
    unsafe { transports::destroy(mapping) }
}
