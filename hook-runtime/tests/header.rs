//! The kept C headers are what cbindgen makes of the functions that the modules export, and
//! programs in C and in C++ can use them.
//!
//! `UPDATE_HEADER=1 cargo test -p hook-runtime --test header` makes it anew.
#![expect(clippy::disallowed_methods, reason = "tests read and write files themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// One header.
struct Header {
    file: &'static str,
    guard: &'static str,
    head: &'static str,
    sources: &'static [&'static str],
    rename: &'static [(&'static str, &'static str)],
    exclude: &'static [&'static str],
    /// A program that uses it.
    example: &'static str,
    function: &'static str,
}

const HEADERS: [Header; 2] = [
    Header {
        file: "include/hook_runtime.h",
        guard: "HOOK_RUNTIME_H",
        head: "\
/*
 * Memory events of CUDA: what a program allocates and frees, told as it happens.
 *
 * Link to libucm_cuda, or open it and look the functions up. Made from the functions
 * themselves by `tests/header.rs`, not to be edited.
 */",
        sources: &["src/c_api.rs", "modules/ucm-cuda/src/lib.rs"],
        rename: &[("CEvent", "hook_runtime_event_t"), ("CHandler", "hook_runtime_handler_t")],
        // Called by the loader of UCX's modules, not by programs.
        exclude: &["CFunction", "ucs_module_global_init"],
        example: "examples/events.c",
        function: "hook_runtime_set_event_handler",
    },
    Header {
        file: "include/hook_transports.h",
        guard: "HOOK_TRANSPORTS_H",
        head: "\
/*
 * The transports over CUDA: copies between host and device memory, memory of other
 * processes, and gdrcopy.
 *
 * Link to libuct_cuda, and to libuct_cuda_gdrcopy for `hook_gdr_*`, or open them and look
 * the functions up. Made from the functions themselves by `tests/header.rs`, not to be edited.
 */",
        sources: &[
            "src/c_api/transports.rs",
            "modules/uct-cuda/src/lib.rs",
            "modules/uct-cuda-gdrcopy/src/lib.rs",
        ],
        rename: &[
            ("CTransport", "hook_transport_t"),
            ("CRegion", "hook_region_t"),
            ("CCopier", "hook_copier_t"),
            ("CExport", "hook_export_t"),
            ("CMapping", "hook_mapping_t"),
            ("CGdr", "hook_gdr_t"),
            ("CReport", "hook_report_t"),
        ],
        exclude: &["CCopy", "GdrWish"],
        example: "examples/transports.c",
        function: "hook_copier_copy_now",
    },
];

fn made(header: &Header) -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        include_guard: Some(header.guard.to_owned()),
        header: Some(header.head.to_owned()),
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        style: cbindgen::Style::Type,
        usize_is_size_t: true,
        line_length: 100,
        documentation_style: cbindgen::DocumentationStyle::C,
        ..cbindgen::Config::default()
    };
    let named = header.rename.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
    config.export.rename = named.collect();
    config.export.exclude = header.exclude.iter().map(|name| (*name).to_owned()).collect();
    let builder = cbindgen::Builder::new().with_config(config);
    let files = header.sources.iter();
    let builder = files.fold(builder, |builder, file| builder.with_src(here().join(file)));
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    // A heading for Rust's readers.
    String::from_utf8(text).unwrap().replace(" # Safety\n\n", "")
}

#[test]
fn the_kept_headers_are_those_of_the_functions() {
    for header in HEADERS {
        let file = here().join(header.file);
        let made = made(&header);
        if std::env::var_os("UPDATE_HEADER").is_some() {
            std::fs::write(&file, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        assert_eq!(kept, made, "`UPDATE_HEADER=1` makes it anew");
        assert!(kept.contains(header.function));
    }
}

#[test]
fn the_headers_are_c_and_cpp() {
    let directory = tempfile::tempdir().unwrap();
    for (header, (compiler, language)) in
        HEADERS.iter().flat_map(|header| [("cc", "c"), ("c++", "c++")].map(|both| (header, both)))
    {
        let result = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", language])
            .arg("-I")
            .arg(here().join("include"))
            .arg(here().join(header.example))
            .current_dir(&directory)
            .output()
            .unwrap();
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    }
}
