//! Toolkits without an installation: the embedded stub toolkit and mock
//! driver, and NVIDIA's wheels.
//!
//! Both end in a directory of the shape of /usr/local/cuda, which the rest
//! treats like any other.

pub mod embedded;
mod library;
mod manifest;
pub(crate) mod place;
pub mod stub;

pub use place::STAMP;
