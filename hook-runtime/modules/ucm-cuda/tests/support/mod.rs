//! What the tests of the module share.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The module. Cargo builds no module for a test that does not link to it, so that this is
/// done here, into the same target directory.
pub(crate) fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        // The test is TARGET/PROFILE/deps/NAME.
        let profile = test.ancestors().nth(2).unwrap();
        let result = Command::new(env!("CARGO"))
            .args(["build", "--offline", "--quiet", "--package", "ucm-cuda", "--target-dir"])
            .arg(profile.parent().unwrap())
            .args(if profile.ends_with("release") { &["--release"][..] } else { &[] })
            .args(if cfg!(feature = "bistro") { &[][..] } else { &["--no-default-features"] })
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        profile.join("libucm_cuda.so")
    })
}
