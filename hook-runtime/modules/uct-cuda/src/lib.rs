//! `libuct_cuda.so`: the module for the transports over CUDA.
//!
//! Whoever loads it can ask which transports it was built with. They are used through the
//! Rust interface of hook-runtime; the module does not register with a UCX that is loaded,
//! whose private structures change with each release.

use std::ffi::{c_char, c_uint};

use hook_runtime::c_api;
use hook_runtime::transport::TRANSPORTS;

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_version() -> *const c_char {
    c_api::version()
}

/// How many transports the module holds.
#[unsafe(no_mangle)]
pub extern "C" fn uct_cuda_transports() -> c_uint {
    TRANSPORTS.iter().filter(|row| row.module == "uct-cuda").count() as c_uint
}
