//! The types and functions of CUDA's two interfaces that the hook table needs.
//!
//! The kept bindings are made from the project's own stub headers, one file for each release
//! that brought something; so builds are reproducible, and need no CUDA. With
//! `ucx-configure --bindings=generate` those made from the headers found take their place.
//! The functions are only ever declared: nothing here links to CUDA.

#[cfg_attr(all(not(generated_bindings), cuda_12_0), path = "sys/v12_0.rs")]
#[cfg_attr(
    all(not(generated_bindings), not(cuda_12_0), any(cuda_11_2, cudart_11_2)),
    path = "sys/v11_2.rs"
)]
#[cfg_attr(
    all(not(generated_bindings), not(any(cuda_12_0, cuda_11_2, cudart_11_2))),
    path = "sys/v10_2.rs"
)]
#[cfg_attr(generated_bindings, path = "sys/generated.rs")]
#[allow(
    clippy::all,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    reason = "made by bindgen; the names are CUDA's, and documented there"
)]
mod bindings;

use std::ffi::c_uint;

pub use bindings::*;

/// A device address in the interface before CUDA 3.2, which today's headers no longer show.
#[expect(non_camel_case_types, reason = "the name is CUDA's")]
pub type CUdeviceptr_v1 = c_uint;

/// Success, in both interfaces.
pub const SUCCESS: c_uint = 0;
/// "Not initialised", in the driver's interface.
pub const NOT_INITIALIZED: c_uint = 3;
/// "The driver (the runtime) is shutting down", in both interfaces.
pub const SHUTTING_DOWN: c_uint = 4;
/// "The context has been destroyed", in both interfaces.
pub const CONTEXT_IS_DESTROYED: c_uint = 709;
/// "Unknown error", in both interfaces.
pub const UNKNOWN_ERROR: c_uint = 999;
