//! Hooks on CUDA memory functions.
