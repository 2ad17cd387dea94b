//! The kept C header is what cbindgen makes of the functions that the module exports, and a
//! program in C and in C++ can use it.
//!
//! `UPDATE_HEADER=1 cargo test -p hook-runtime --test header` makes it anew.
#![expect(clippy::disallowed_methods, reason = "tests read and write files themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn made() -> String {
    let rename = [("CEvent", "hook_runtime_event_t"), ("CHandler", "hook_runtime_handler_t")];
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        include_guard: Some("HOOK_RUNTIME_H".to_owned()),
        header: Some(HEADER.to_owned()),
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        style: cbindgen::Style::Type,
        usize_is_size_t: true,
        line_length: 100,
        documentation_style: cbindgen::DocumentationStyle::C,
        ..cbindgen::Config::default()
    };
    config.export.rename = rename.map(|(from, to)| (from.to_owned(), to.to_owned())).into();
    // Called by the loader of UCX's modules, not by programs.
    config.export.exclude = vec!["CFunction".to_owned(), "ucs_module_global_init".to_owned()];
    let sources = ["src/c_api.rs", "modules/ucm-cuda/src/lib.rs"];
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = sources.iter().fold(builder, |builder, file| builder.with_src(here().join(file)));
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    // A heading for Rust's readers.
    String::from_utf8(text).unwrap().replace(" # Safety\n\n", "")
}

const HEADER: &str = "\
/*
 * Memory events of CUDA: what a program allocates and frees, told as it happens.
 *
 * Link to libucm_cuda, or open it and look the functions up. Made from the functions
 * themselves by `tests/header.rs`, not to be edited.
 */";

#[test]
fn the_kept_header_is_that_of_the_functions() {
    let file = here().join("include/hook_runtime.h");
    let made = made();
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept, made, "`UPDATE_HEADER=1` makes it anew");
    assert!(kept.contains("hook_runtime_set_event_handler"));
}

#[test]
fn the_header_is_c_and_cpp() {
    let directory = tempfile::tempdir().unwrap();
    let example = here().join("examples/events.c");
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        let result = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", language])
            .arg("-I")
            .arg(here().join("include"))
            .arg(&example)
            .current_dir(&directory)
            .output()
            .unwrap();
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    }
}
