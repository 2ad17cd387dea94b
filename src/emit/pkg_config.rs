//! pkg-config files: what the modules' code is compiled and linked with, and
//! gdrcopy itself, which comes without such a file.
//!
//! UCX generates two files of these names with nothing in them and installs
//! neither. These have flags, and a `moduledir` that says where modules are.

use serde::Serialize;

use super::{Emitter, parts, template};
use crate::{
    error::Error,
    model::{Package, Report},
};

pub(super) const CUDA: Emitter = Emitter {
    id: "pkg-config:ucx-cuda",
    file: None,
    name: "ucx-cuda.pc",
    doc: "CUDA as configured, for pkg-config.",
    render: cuda,
};

pub(super) const GDRCOPY: Emitter = Emitter {
    id: "pkg-config:ucx-gdrcopy",
    file: None,
    name: "ucx-gdrcopy.pc",
    doc: "CUDA and gdrcopy as configured, for pkg-config.",
    render: gdrcopy,
};

pub(super) const GDRAPI: Emitter = Emitter {
    id: "pkg-config:gdrapi",
    file: None,
    name: "gdrapi.pc",
    doc: "The gdrcopy library alone, for pkg-config.",
    render: gdrapi,
};

#[derive(Serialize)]
struct File {
    on_stub: bool,
    prefix: String,
    exec_prefix: String,
    libdir: String,
    includedir: String,
    module_dir: bool,
    modules: String,
    name: &'static str,
    description: &'static str,
    version: String,
    requires: &'static str,
    cflags: String,
    libs: String,
    libs_private: String,
}

/// Quotes a word: pkg-config reads the flags as a shell would, after it has
/// expanded `$` and cut comments off.
fn word(word: &str) -> String {
    let mut out = String::new();
    for c in word.chars() {
        match c {
            '$' => out.push_str(r"\$$"),
            c if c.is_alphanumeric() || "-_./,:+@%=#".contains(c) => {
                // An escaped `#` is one to pkg-config; it stays in a word.
                if c == '#' {
                    out.push('\\');
                }
                out.push(c);
            }
            c => out.extend(['\\', c]),
        }
    }
    out
}

fn flags(id: &str, report: &Report, names: &[&str]) -> Result<String, Error> {
    let words: Vec<String> = names.iter().flat_map(|name| parts::words(report, name)).collect();
    words.iter().try_for_each(|text| parts::refuse(id, text, &['\\']))?;
    Ok(words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" "))
}

fn file(
    report: &Report,
    emitter: &Emitter,
    name: &'static str,
    compile: &[&str],
    link: &[&str],
) -> Result<File, Error> {
    let package = Package::ALL.into_iter().find(|package| package.name() == name);
    let modules = package.map(|package| parts::modules(report, package)).unwrap_or_default();
    let libraries: Vec<&str> = modules.iter().map(|module| module.library()).collect();
    Ok(File {
        on_stub: report.on_stub(),
        prefix: parts::install_dir(report, "prefix", "/usr/local"),
        exec_prefix: parts::install_dir(report, "exec_prefix", "${prefix}"),
        libdir: parts::install_dir(report, "libdir", "${exec_prefix}/lib"),
        includedir: parts::install_dir(report, "includedir", "${prefix}/include"),
        module_dir: true,
        modules: libraries.join(" "),
        name,
        description: "CUDA as UCX's CUDA modules use it",
        version: parts::UCX_VERSION.to_owned(),
        requires: "",
        cflags: flags(emitter.id, report, compile)?,
        libs: flags(emitter.id, report, link)?,
        libs_private: String::new(),
    })
}

fn fill(file: File) -> Result<String, Error> {
    template::render("pkg-config.pc.j2", include_str!("../../templates/pkg-config.pc.j2"), file)
}

fn cuda(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, CUDA.id)?;
    let link = ["CUDA_LDFLAGS", "CUDA_LIBS", "CUDART_LIBS", "NVML_LIBS"];
    let mut file = file(report, &CUDA, parts::CUDA_PACKAGE, &["CUDA_CPPFLAGS"], &link)?;
    // Of the header of memory events, which is installed beside this file. A
    // blank would part the word, after the variable was expanded.
    let dir = report.install.expanded("includedir");
    let include = if word(&dir) == dir { "-I${includedir}" } else { "-I\"${includedir}\"" };
    file.cflags = format!("{include} {}", file.cflags);
    // What `--static` adds; the shared runtime stays, since a consumer may
    // not be able to tell the two apart.
    file.libs_private = flags(CUDA.id, report, &["CUDART_STATIC_LIBS"])?;
    fill(file)
}

const GDR_COMPILE: [&str; 1] = ["GDR_COPY_CPPFLAGS"];
const GDR_LINK: [&str; 2] = ["GDR_COPY_LDFLAGS", "GDR_COPY_LIBS"];

fn gdrcopy(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, GDRCOPY.id)?;
    parts::needs_gdrcopy(report, GDRCOPY.id)?;
    let file = file(report, &GDRCOPY, parts::GDRCOPY_PACKAGE, &GDR_COMPILE, &GDR_LINK)?;
    fill(File {
        description: "gdrcopy as UCX's gdr_copy module uses it",
        requires: parts::CUDA_PACKAGE,
        ..file
    })
}

fn gdrapi(report: &Report) -> Result<String, Error> {
    parts::needs_gdrcopy(report, GDRAPI.id)?;
    let version = report.gdrcopy.as_ref().and_then(|tree| tree.version);
    let root = report.gdrcopy.as_ref().and_then(|tree| tree.root.clone());
    let file = file(report, &GDRAPI, "gdrapi", &GDR_COMPILE, &GDR_LINK)?;
    fill(File {
        description: "Copies between GPU memory and a CPU mapping of it",
        version: version.map_or_else(|| "0".to_owned(), |version| version.to_string()),
        prefix: root
            .map_or_else(|| "/usr".to_owned(), |root| root.into_string().replace('$', "$$")),
        module_dir: false,
        ..file
    })
}
