//! `libuct_cuda.so`: the module for the transports over CUDA.
//!
//! It has its place, its name and its versions, and holds nothing yet: whoever loads it can
//! ask, and is told so.

use std::ffi::{c_char, c_uint};

use hook_runtime::c_api;

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_version() -> *const c_char {
    c_api::version()
}

/// How many transports the module holds: none yet; cuda_copy and cuda_ipc will be counted here.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_transports() -> c_uint {
    0
}
