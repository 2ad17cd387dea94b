//! Releases of the real UCX, from the package index.
#![expect(clippy::disallowed_methods, reason = "a test fetches and copies files")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Those that the modules are made for.
pub(crate) const RELEASES: [&str; 5] = ["1.18.1", "1.19.0", "1.20.1", "1.21.0", "1.22.0"];

/// The libraries of one release, fetched once and kept; its programs lie beside them.
pub(crate) fn release(version: &str) -> PathBuf {
    let kept = std::env::var_os("UCX_CONFIGURE_REAL_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/real-toolkits"),
        PathBuf::from,
    );
    let directory = kept.join("ucx").join(version);
    std::fs::create_dir_all(&directory).unwrap();
    let lock = std::fs::File::create(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    let libraries = directory.join("libucx/lib");
    if !libraries.join("ucx").is_dir() {
        let python = |arguments: &[&str]| {
            let mut command = Command::new("python3");
            let done = command.args(arguments).current_dir(&directory).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let package = format!("libucx-cu12=={version}");
        let fetch = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"];
        python(&[&fetch[..], &["--platform=manylinux_2_28_x86_64", &package]].concat());
        let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        let wheel = files.into_iter().find(|path| path.extension().is_some_and(|e| e == "whl"));
        python(&["-m", "zipfile", "-e", wheel.unwrap().to_str().unwrap(), "."]);
        // What unpacks it leaves programs unable to run.
        let program = directory.join("libucx/bin/ucx_perftest");
        std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    }
    libraries
}

/// A copy of a release's libraries below `place`, with `module` in the place of UCX's own
/// called `name`. Its other modules for CUDA need what is not here, and stay away.
pub(crate) fn copy_with(version: &str, place: &Path, name: &str, module: &Path) -> PathBuf {
    let libraries = place.join(version);
    std::fs::create_dir_all(libraries.join("ucx")).unwrap();
    for part in ["", "ucx"] {
        for entry in std::fs::read_dir(release(version).join(part)).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            if path.is_file() && !(part == "ucx" && file.contains("cuda")) {
                std::fs::copy(&path, libraries.join(part).join(file)).unwrap();
            }
        }
    }
    // Which of the names the loader of UCX asks for depends on how libucs was found.
    let whole = format!("{name}.so.0.0.0");
    std::fs::copy(module, libraries.join("ucx").join(&whole)).unwrap();
    for end in ["so", "so.0"] {
        std::os::unix::fs::symlink(&whole, libraries.join(format!("ucx/{name}.{end}"))).unwrap();
    }
    libraries
}
