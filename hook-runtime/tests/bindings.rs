//! The kept bindings are what bindgen makes of the stub toolkit's headers.
//!
//! `UPDATE_BINDINGS=1 cargo test -p hook-runtime --test bindings` makes them anew.
#![expect(clippy::disallowed_methods, reason = "tests read and write files themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

/// The kept files, with the releases whose headers they are made from.
const KEPT: [(&str, u32); 3] = [("v10_2", 10_020), ("v11_2", 11_020), ("v12_0", 12_000)];

#[test]
fn kept_bindings_are_those_of_the_stub_headers() {
    // bindgen opens libclang itself, and panics if there is none.
    let waived = std::panic::catch_unwind(bindgen::clang_version).is_err();
    if waived {
        println!("waived: kept_bindings_are_those_of_the_stub_headers: libclang cannot be opened");
        return;
    }
    let mut checked = 0;
    for (name, version) in KEPT {
        let file = format!("{}/src/cuda/sys/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let made = format!(
            "// Made by `tests/bindings.rs` from the stub toolkit's headers. Not to be edited.\n{}",
            generate(version)
        );
        if std::env::var_os("UPDATE_BINDINGS").is_some() {
            std::fs::write(&file, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        assert_eq!(tokens(&kept), tokens(&made), "`{file}` is not what the headers say");
        checked += 1;
    }
    assert_eq!(checked, KEPT.len());
}

/// How a file is laid out does not matter.
fn tokens(text: &str) -> Vec<&str> {
    let is_end = |c: char| c.is_whitespace() || ",(){}".contains(c);
    text.split(is_end).filter(|token| !token.is_empty()).collect()
}

fn generate(version: u32) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let toolkit = here.parent().unwrap().join("fixtures/toolkit/include");
    let mut builder = bindgen::builder()
        .header(here.join("bindings/headers.h").to_str().unwrap())
        .clang_arg(format!("-I{}", toolkit.display()))
        .clang_arg(format!("-DUCX_STUB_CUDA_VERSION={version}"))
        .ctypes_prefix("::std::ffi")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .disable_header_comment()
        .generate_comments(false)
        .layout_tests(false)
        .merge_extern_blocks(true)
        .prepend_enum_name(false)
        .rust_target(bindgen::RustTarget::stable(85, 0).ok().unwrap())
        .rust_edition(bindgen::RustEdition::Edition2024);
    for line in include_str!("../bindings/allow.txt").lines() {
        builder = match line.split_once(' ') {
            Some(("type", name)) => builder.allowlist_type(name),
            Some(("function", name)) => builder.allowlist_function(name),
            Some(("value", name)) => builder.allowlist_var(name),
            _ => {
                assert!(line.is_empty() || line.starts_with('#'), "`{line}` is no item");
                builder
            }
        };
    }
    builder.generate().unwrap().to_string()
}
