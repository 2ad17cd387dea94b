//! Libraries to link with: every symbol is there, and returns an error.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::{collections::BTreeSet, fs};

use camino::Utf8Path;
use object::{Object as _, ObjectSymbol as _, SymbolKind};

use super::tool;

/// Makes a shared library that exports these functions.
pub(super) fn make(output: &Utf8Path, soname: &str, names: &BTreeSet<String>) {
    let scratch = tempfile::tempdir().unwrap();
    let source = Utf8Path::from_path(scratch.path()).unwrap().join("stub.c");
    let text: String =
        names.iter().map(|name| format!("int {name}(void) {{ return 999; }}\n")).collect();
    fs::write(&source, text).unwrap();
    let _ = fs::remove_file(output);
    let soname = format!("-Wl,-soname,{soname}");
    let flags = ["-w", "-shared", "-fPIC", "-nostdlib", &soname, "-o", output.as_str()];
    tool("cc", &[&flags[..], &[source.as_str()]].concat());
}

/// The functions that a library exports, some left out.
pub(super) fn exported(library: &Utf8Path, left_out: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let data = fs::read(library).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let names: BTreeSet<String> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .map(|symbol| symbol.name().unwrap().to_owned())
        .collect();
    let kept: BTreeSet<String> = names.iter().filter(|name| !left_out(name)).cloned().collect();
    assert!(kept.len() < names.len(), "{library}: nothing was left out");
    kept
}

/// The functions that cuda.h or nvml.h declares, under every name that it has
/// for them: those that a macro maps to are exported, too.
pub(super) fn declared(header: &str) -> BTreeSet<String> {
    let text = without_comments(header);
    let words: Vec<&str> = text
        .split(|letter: char| letter.is_whitespace() || "*;,".contains(letter))
        .filter(|word| !word.is_empty())
        .collect();
    let mut names = BTreeSet::new();
    for pair in words.windows(2) {
        // `CUDAAPI cuInit(` and `DECLDIR nvmlInit_v2(`, with the type between
        // in `DECLDIR char* nvmlErrorString(`.
        let marked = matches!(pair[0], "CUDAAPI" | "DECLDIR" | "nvmlReturn_t" | "char");
        let name = pair[1].split('(').next().unwrap_or_default();
        let called = pair[1].contains('(') || words_call(&words, pair[1]);
        if marked && called && is_function(name) {
            names.insert(name.to_owned());
        }
    }
    for line in text.lines() {
        names.extend(mapped(line));
    }
    names
}

/// Whether a name is followed by a parenthesis somewhere: `cuInit (`.
fn words_call(words: &[&str], name: &str) -> bool {
    words.windows(2).any(|pair| pair[0] == name && pair[1].starts_with('('))
}

/// The names that `#define cuA cuB` and `#define cuA __CUDA_API_PTDS(cuB)`
/// bring.
fn mapped(line: &str) -> Vec<String> {
    let line = line.trim_start().strip_prefix('#').unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["define", from, to] = words[..] else { return Vec::new() };
    if !is_function(from) {
        return Vec::new();
    }
    let inner = |prefix: &str| to.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
    if let Some(name) = inner("__CUDA_API_PTDS(") {
        return vec![name.to_owned(), format!("{name}_ptds")];
    }
    if let Some(name) = inner("__CUDA_API_PTSZ(") {
        return vec![name.to_owned(), format!("{name}_ptsz")];
    }
    if is_function(to) { vec![from.to_owned(), to.to_owned()] } else { Vec::new() }
}

/// Whether a word looks like a function of the driver or of NVML.
fn is_function(word: &str) -> bool {
    let after = |prefix: &str| {
        word.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase()))
    };
    (after("cu") || after("nvml"))
        && !word.ends_with("_t")
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        kept.push_str(&rest[..start]);
        kept.push(' ');
        let end = if rest[start..].starts_with("/*") { "*/" } else { "\n" };
        let Some(length) = rest[start..].find(end) else { return kept };
        // A line's end stays.
        rest = &rest[start + length + if end == "\n" { 0 } else { 2 }..];
    }
    kept + rest
}

#[test]
fn finds_every_name_of_a_function() {
    let header = "/* cuNot( */\n#define cuMemAlloc cuMemAlloc_v2 // x\n#define cuX __CUDA_API_PTSZ(cuX)\n\
                  CUresult CUDAAPI cuInit(unsigned flags);\ntypedef CUresult (CUDAAPI *CUt)(int);\n\
                  const DECLDIR char* nvmlErrorString(nvmlReturn_t result);\n\
                  nvmlReturn_t DECLDIR nvmlInit_v2(void);\n#define nvmlInit nvmlInit_v2\n";
    let names: Vec<String> = declared(header).into_iter().collect();
    let wanted = [
        "cuInit",
        "cuMemAlloc",
        "cuMemAlloc_v2",
        "cuX",
        "cuX_ptsz",
        "nvmlErrorString",
        "nvmlInit",
        "nvmlInit_v2",
    ];
    assert_eq!(names, wanted);
}
