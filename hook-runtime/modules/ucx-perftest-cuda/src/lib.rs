//! `libucx_perftest_cuda.so`: allocators of CUDA's memory for UCX's own `ucx_perftest`, of
//! releases 1.18 to 1.22.
//!
//! UCX loads the module by its name. In any other program, or another release, it registers
//! nothing and says so to whoever asks. Tests that run on the device itself (UCX 1.21 and
//! later) need UCX's own module.

use std::ffi::{c_char, c_uint};

use hook_runtime::{c_api, perftest};

/// Run by the loader as soon as the module is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = {
    extern "C" fn on_load() {
        perftest::on_load();
    }
    on_load
};

/// Run by the loader when the module is unloaded, or at the very end.
#[used]
#[unsafe(link_section = ".fini_array")]
static ON_EXIT: extern "C" fn() = {
    extern "C" fn on_exit() {
        perftest::unregister();
    }
    on_exit
};

/// The version of the hook runtime that the module was built from.
#[unsafe(no_mangle)]
pub extern "C" fn ucx_perftest_cuda_version() -> *const c_char {
    c_api::version()
}

/// How many allocators ucx_perftest has from the module: 2, for `cuda` and `cuda-managed`
/// memory, or 0 if it is not in a ucx_perftest that it knows.
#[unsafe(no_mangle)]
pub extern "C" fn ucx_perftest_cuda_allocators() -> c_uint {
    perftest::registered() as c_uint
}
