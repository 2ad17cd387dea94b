//! `libuct_cuda_gdrcopy.so`: the module for the transport over gdrcopy.
//!
//! Programs in C use it through the functions below, which `hook_transports.h` declares;
//! programs in Rust through hook-runtime itself. It has been run on the mock libgdrapi, not
//! yet on hardware.

use std::ffi::{c_char, c_int, c_uint, c_void};

use hook_runtime::c_api;
use hook_runtime::c_api::transports::{self, CGdr, CTransport, GdrWish};

const MODULE: &str = "uct-cuda-gdrcopy";

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_gdrcopy_version() -> *const c_char {
    c_api::version()
}

/// How many transports libuct_cuda_gdrcopy holds.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_gdrcopy_transports() -> c_uint {
    transports::count(MODULE) as c_uint
}

/// Describes transport `number` of libuct_cuda_gdrcopy, from 0 on.
///
/// # Safety
///
/// `transport` has room for the description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uct_cuda_gdrcopy_describe(
    number: c_uint,
    transport: *mut CTransport,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::describe(MODULE, number as usize, transport) }
}

/// Writes what the last failed call of this thread has met into `buffer`, as
/// `hook_transport_error` does for libuct_cuda.
///
/// # Safety
///
/// `buffer` has room for `length` bytes; it may be null if `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_gdr_error(buffer: *mut c_char, length: usize) -> usize {
    // SAFETY: by this function's contract.
    unsafe { transports::error(buffer, length) }
}

/// gdr_copy: opens libgdrapi. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn hook_gdr_open() -> *mut CGdr {
    transports::gdr_open()
}

/// Gives everything that was registered back, and closes it.
///
/// # Safety
///
/// `gdr` came from `hook_gdr_open`, and is given back once; it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_gdr_close(gdr: *mut CGdr) {
    // SAFETY: by this function's contract.
    unsafe { transports::destroy(gdr) }
}

/// Registers `size` bytes of device memory, unless that is done already. Any thread may call
/// it, and the functions below.
///
/// # Safety
///
/// `gdr` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_gdr_register(
    gdr: *const CGdr,
    address: *mut c_void,
    size: usize,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::gdr(gdr, address, size, GdrWish::Register) }
}

/// Gives up what is registered of `size` bytes of device memory: to be called before they are
/// freed.
///
/// # Safety
///
/// `gdr` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_gdr_forget(
    gdr: *const CGdr,
    address: *mut c_void,
    size: usize,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::gdr(gdr, address, size, GdrWish::Forget) }
}

/// Writes `size` bytes to registered device memory. Complete on return.
///
/// # Safety
///
/// `gdr` is alive; `from` leads to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_gdr_put(
    gdr: *const CGdr,
    address: *mut c_void,
    from: *const c_void,
    size: usize,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::gdr(gdr, address, size, GdrWish::Put(from)) }
}

/// Reads `size` bytes of registered device memory. Complete on return.
///
/// # Safety
///
/// `gdr` is alive; `to` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_gdr_get(
    gdr: *const CGdr,
    to: *mut c_void,
    address: *mut c_void,
    size: usize,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { transports::gdr(gdr, address, size, GdrWish::Get(to)) }
}
