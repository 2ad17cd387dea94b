//! Hooks on CUDA memory functions.

pub mod code;
pub mod patch;
pub mod sys;
