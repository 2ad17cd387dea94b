//! `libuct_cuda_gdrcopy.so`: the module for the transport over gdrcopy.
//!
//! It has its place, its name and its versions, and holds nothing yet: whoever loads it can
//! ask, and is told so.

use std::ffi::{c_char, c_uint};

use hook_runtime::c_api;

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_gdrcopy_version() -> *const c_char {
    c_api::version()
}

/// How many transports the module holds: none yet; gdr_copy will be counted here.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_gdrcopy_transports() -> c_uint {
    0
}
