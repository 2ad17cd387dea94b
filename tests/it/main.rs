//! Tests that need more than one module, or a whole run.

/// hook-runtime built with cargo.
mod build_runtime;
