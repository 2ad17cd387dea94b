//! What the tests of the module share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[path = "../../../../tests/support/module.rs"]
mod built;

/// The module, built once.
pub(crate) fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| built::module("ucm-cuda"))
}
