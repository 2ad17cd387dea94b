//! `libucx_perftest_cuda.so`: the module for the allocators for performance tests.
//!
//! It has its place, its name and its versions, and holds nothing yet: whoever loads it can
//! ask, and is told so.

use std::ffi::{c_char, c_uint};

use hook_runtime::c_api;

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn ucx_perftest_cuda_version() -> *const c_char {
    c_api::version()
}

/// How many allocators the module holds: none yet; cuda and cuda-managed will be counted here.
#[unsafe(no_mangle)]
pub extern "C" fn ucx_perftest_cuda_allocators() -> c_uint {
    0
}
