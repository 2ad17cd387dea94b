//! `--bindings=generate`: what bindgen makes of real headers, held against the
//! bindings that hook-runtime keeps, and hook-runtime built with it.
//!
//! Without libclang these tests are waived.

use std::collections::BTreeSet;

use camino::Utf8Path;
use serde_json::json;
use ucx_configure::{
    build,
    emit::bindings::{self, Wanted},
    error::Code,
    host::{
        Host,
        fs::{self, Scratch},
    },
    model::{CudaVersion, FEATURES, Module},
    probe::Compiler,
    request::{Bindings, Request},
    toolkit::{embedded, wheel},
    ui::Silent,
};

use crate::{
    build_runtime::{host, kept_dir, report, request},
    toolkit::on_wheels,
    trees::{are_asked_for, waived},
};

/// Releases whose headers are compared: the first and last of each level that
/// has wheels, and those between that brought something.
const RELEASES: &[(u32, u32)] =
    &[(11, 7), (11, 8), (12, 0), (12, 2), (12, 5), (12, 8), (12, 9), (13, 0)];

/// A file of hook-runtime's sources.
fn source(name: &str) -> String {
    let name = format!("hook-runtime/{name}");
    let found = embedded::HOOK_RUNTIME.iter().find(|(file, _)| *file == name);
    String::from_utf8_lossy(found.unwrap().1).into_owned()
}

/// The bindings that are kept for a release.
fn kept(version: CudaVersion) -> String {
    let level = match (version.major, version.minor) {
        (12.., _) => "v12_0",
        (11, 2..) => "v11_2",
        _ => "v10_2",
    };
    source(&format!("src/cuda/sys/{level}.rs"))
}

/// Whether libclang is missing; says so for a test.
fn lacks_libclang(test: &str) -> bool {
    let wanted = Wanted { headers: "int x;\n", allow: "" };
    match bindings::generate(&wanted, &[], &[]) {
        Ok(_) => false,
        Err(error) => {
            waived(test, &error.said.unwrap_or_default());
            true
        }
    }
}

fn generate(include: &Utf8Path, defines: &[String]) -> Result<String, ucx_configure::error::Error> {
    let (headers, allow) = (source("bindings/headers.h"), source("bindings/allow.txt"));
    let wanted = Wanted { headers: &headers, allow: &allow };
    bindings::generate(&wanted, &[include.to_owned()], defines)
}

/// The items of a file, without layout, attributes and parameter names: what
/// has to agree.
fn items(text: &str) -> BTreeSet<String> {
    let text: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, " "])
        .collect();
    let spaced: String =
        text.chars().flat_map(|c| if is_word(c) { vec![c] } else { vec![' ', c, ' '] }).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let starts = |at: &usize| {
        words[*at] == "pub" && ["const", "type", "struct", "union", "fn"].contains(&words[*at + 1])
    };
    let starts: Vec<usize> = (0..words.len() - 1).filter(starts).collect();
    let ends = starts.iter().skip(1).copied().chain([words.len()]);
    starts.iter().zip(ends).map(|(&start, end)| item(&words[start..end])).collect()
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// One item, up to the semicolon or brace that ends it; a parameter's name is
/// blank.
fn item(words: &[&str]) -> String {
    let mut depth = 0_i32;
    let ends = |word: &&str| {
        depth += i32::from("([{".contains(*word)) - i32::from(")]}".contains(*word));
        depth == 0 && [";", "}"].contains(word)
    };
    let end = words.iter().position(ends).map_or(words.len(), |at| at + 1);
    let mut plain = String::new();
    for (at, word) in words[..end].iter().enumerate() {
        let before = if at == 0 { "" } else { words[at - 1] };
        let after = words.get(at + 1).copied().unwrap_or_default();
        // `name : :: std` is a name before a path, `std ::` is none.
        let is_path = after == ":" && words.get(at + 2) == Some(&":");
        let is_name = after == ":" && (!is_path || words.get(at + 3) == Some(&":"));
        let is_parameter = words[1] == "fn" && ["(", ","].contains(&before) && is_name;
        let is_trailing = *word == "," && [")", "}"].contains(&after);
        if !is_trailing {
            plain.push_str(if is_parameter { "_" } else { word });
            plain.push(' ');
        }
    }
    plain
}

#[test]
fn bindings_from_real_toolkits() {
    if lacks_libclang("bindings_from_real_toolkits") {
        return;
    }
    let waived = on_wheels(&[
        ("real headers agree with the kept bindings", real_headers_agree_with_the_kept_bindings),
        ("hook-runtime is built with real headers", hook_runtime_is_built_with_real_headers),
    ]);
    assert_eq!(waived, if are_asked_for() { 0 } else { 2 });
}

fn real_headers_agree_with_the_kept_bindings() {
    let scratch = Scratch::new(None).unwrap();
    let machine: Host = host(scratch.path(), &[]);
    let bare = Request::bare(scratch.path().to_owned());
    let compiler = Compiler::find(&bare, &machine, &mut Silent).unwrap();
    let cache = wheel::cache_dir(&machine).unwrap();
    for &(major, minor) in RELEASES {
        let version = CudaVersion::new(major, minor);
        let tree =
            wheel::materialise(version, &cache, false, &compiler, &machine, &mut Silent).unwrap();
        let found = items(&generate(&tree.join("include"), &[]).unwrap());
        let kept = items(&kept(version));
        assert!(kept.len() > 100, "the kept bindings are not read: {}", kept.len());
        let missing: Vec<_> = kept.difference(&found).collect();
        assert!(missing.is_empty(), "the headers of CUDA {version} lack: {missing:#?}");
    }
}

/// Builds libucm_cuda against the headers in a directory.
fn build_against(include: &Utf8Path, version: CudaVersion) {
    let mut report = report(&[Module::UcmCuda]);
    for row in FEATURES.iter().filter(|row| row.since.is_some_and(|since| since > version)) {
        report.cfg.insert(row.cfg.to_owned(), false);
    }
    report.toolkit = serde_json::from_value(json!({
        "root": null, "kind": "installed", "found_by": "a test",
        "include_dirs": [include], "library_dirs": [], "stub_dirs": [],
        "versions": {
            "cuda_h": null, "cudart_h": null, "cudart_library": null, "nvml_h": null, "nvcc": null
        },
    }))
    .unwrap();
    let dir = kept_dir("bindings");
    let mut request = request(&dir);
    request.bindings = Bindings::Generate;
    let machine = host(Utf8Path::new("/"), &[]);
    build::build_runtime(&report, &request, &machine, &mut Silent).unwrap();
    let made = fs::read_to_string(&dir.join(".ucx-configure/bindings.rs")).unwrap();
    assert!(made.contains("cuMemAlloc_v2"));
}

/// hook-runtime holds its replacements against the bindings, so this shows that
/// the types of all hooks are those of the headers.
#[test]
fn hook_runtime_is_built_with_bindings_from_the_headers() {
    if lacks_libclang("hook_runtime_is_built_with_bindings_from_the_headers") {
        return;
    }
    let scratch = Scratch::new(None).unwrap();
    embedded::unpack(embedded::TOOLKIT, scratch.path()).unwrap();
    let include = scratch.path().join("include");
    let version = b"#define UCX_STUB_CUDA_VERSION 12050\n";
    fs::write_new(&include.join("ucx_stub_version.h"), version, 0o644).unwrap();
    build_against(&include, CudaVersion::new(12, 5));
}

fn hook_runtime_is_built_with_real_headers() {
    let scratch = Scratch::new(None).unwrap();
    let machine = host(scratch.path(), &[]);
    let bare = Request::bare(scratch.path().to_owned());
    let compiler = Compiler::find(&bare, &machine, &mut Silent).unwrap();
    let cache = wheel::cache_dir(&machine).unwrap();
    for &(major, minor) in RELEASES {
        let version = CudaVersion::new(major, minor);
        let tree =
            wheel::materialise(version, &cache, false, &compiler, &machine, &mut Silent).unwrap();
        build_against(&tree.join("include"), version);
    }
}

#[test]
fn headers_that_are_not_there_are_told() {
    if lacks_libclang("headers_that_are_not_there_are_told") {
        return;
    }
    let error = generate(Utf8Path::new("/no/include"), &[]).unwrap_err();
    assert_eq!(error.code, Code::BindingsFailed);
    assert!(error.said.unwrap().contains("cuda.h"));
    assert!(error.means[0].contains("`/no/include`"));
}
