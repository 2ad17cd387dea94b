//! `libuct_cuda_gdrcopy.so`: the module for the transport over gdrcopy.
//!
//! Whoever loads it can ask whether it holds the transport, which is used through the Rust
//! interface of hook-runtime. It has been run on the mock libgdrapi, not yet on hardware.

use std::ffi::{c_char, c_uint};

use hook_runtime::c_api;
use hook_runtime::transport::TRANSPORTS;

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_gdrcopy_version() -> *const c_char {
    c_api::version()
}

/// How many transports the module holds.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_gdrcopy_transports() -> c_uint {
    TRANSPORTS.iter().filter(|row| row.module == "uct-cuda-gdrcopy").count() as c_uint
}
