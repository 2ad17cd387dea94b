//! The CUDA part of configure.
