//! A module, built for a test. Cargo builds no module for a test that does not link to it,
//! so that this is done here, into the same target directory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::Command;

/// The module of a package of this workspace.
#[expect(clippy::disallowed_methods, reason = "a test runs cargo by itself")]
pub(crate) fn module(package: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // The test is TARGET/PROFILE/deps/NAME.
    let profile = test.ancestors().nth(2).unwrap();
    let result = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet", "--package", package, "--target-dir"])
        .arg(profile.parent().unwrap())
        .args(if profile.ends_with("release") { &["--release"][..] } else { &[] })
        .args(if cfg!(feature = "bistro") { &[][..] } else { &["--no-default-features"] })
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    profile.join(format!("lib{}.so", package.replace('-', "_")))
}
