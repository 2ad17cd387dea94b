//! CMake: a package with imported targets, and an initial cache.
//!
//! CMake writes the directory of a library that it knows by its path into run
//! paths. So a stub is known by its directory and name only, as the linker
//! wants it, while a real library is found by its path when the package is
//! loaded.

use camino::Utf8PathBuf;
use serde::Serialize;

use super::{Emitter, parts, template};
use crate::{error::Error, model::Report};

pub(super) const CONFIG: Emitter = Emitter {
    id: "cmake:config",
    file: None,
    name: "ucx-cuda-config.cmake",
    doc: "Imported targets, for `find_package(ucx-cuda)` of CMake.",
    render: config,
};

pub(super) const CACHE: Emitter = Emitter {
    id: "cmake:cache",
    file: None,
    name: "ucx-cuda-cache.cmake",
    doc: "The compilers and the toolkit, for `cmake -C`.",
    render: cache,
};

#[derive(Serialize)]
struct Config {
    on_stub: bool,
    version: Option<String>,
    conditionals: Vec<(String, &'static str)>,
    targets: Vec<Target>,
}

#[derive(Serialize)]
struct Target {
    name: &'static str,
    library: String,
    include: String,
    real: String,
    stubs: String,
    more: &'static str,
}

/// A bracket argument: nothing in it has a meaning to CMake.
fn bracket(text: &str) -> Result<String, Error> {
    parts::refuse("cmake", text, &[])?;
    let mut equals = String::new();
    while text.contains(&format!("]{equals}]")) || text.ends_with(&format!("]{equals}")) {
        equals.push('=');
    }
    Ok(format!("[{equals}[{text}]{equals}]"))
}

/// A list of directories. A semicolon would end an item, and `$<` begins an
/// expression in a target's property.
fn list(dirs: &[Utf8PathBuf]) -> Result<String, Error> {
    let items = dirs.iter().map(|dir| {
        parts::refuse("cmake", dir.as_str(), &[';'])?;
        bracket(dir.as_str())
    });
    Ok(items.collect::<Result<Vec<_>, Error>>()?.join(" "))
}

fn config(report: &Report) -> Result<String, Error> {
    parts::needs_cuda(report, CONFIG.id)?;
    let include = list(&parts::after_flag(&parts::words(report, "CUDA_CPPFLAGS"), "-I"))?;
    let dirs = parts::cuda_dirs(report);
    let (real, stubs) = (list(&dirs.real)?, list(&dirs.stubs)?);
    let target = |name, library: &str| Target {
        name,
        library: library.to_owned(),
        include: include.clone(),
        real: real.clone(),
        stubs: stubs.clone(),
        more: "",
    };
    let mut targets = vec![
        target("driver", &linked(report, "CUDA_LIBS", "cuda")),
        target("cudart", &linked(report, "CUDART_LIBS", "cudart")),
        target("nvml", &linked(report, "NVML_LIBS", "nvidia-ml")),
    ];
    if report.answers.conditional("HAVE_CUDA_STATIC").unwrap_or(false) {
        targets.push(Target {
            more: "-lrt -ldl -lpthread",
            ..target("cudart_static", "cudart_static")
        });
    }
    if parts::has_gdrcopy(report) {
        let dirs = parts::gdrcopy_dirs(report);
        targets.push(Target {
            include: list(&parts::after_flag(&parts::words(report, "GDR_COPY_CPPFLAGS"), "-I"))?,
            real: list(&dirs.real)?,
            stubs: list(&dirs.stubs)?,
            ..target("gdrapi", &linked(report, "GDR_COPY_LIBS", "gdrapi"))
        });
    }
    let context = Config {
        on_stub: report.on_stub(),
        version: version(report),
        conditionals: conditionals(report),
        targets,
    };
    template::render(
        "ucx-cuda-config.cmake.j2",
        include_str!("../../templates/ucx-cuda-config.cmake.j2"),
        context,
    )
}

/// What `-l` calls a library in a substitution.
fn linked(report: &Report, substitution: &str, usual: &str) -> String {
    let words = parts::words(report, substitution);
    let name = words.iter().find_map(|word| word.strip_prefix("-l"));
    name.unwrap_or(usual).to_owned()
}

fn version(report: &Report) -> Option<String> {
    report.toolkit.as_ref()?.versions.cuda_h.map(|version| version.to_string())
}

fn conditionals(report: &Report) -> Vec<(String, &'static str)> {
    let on_off = |on| if on { "ON" } else { "OFF" };
    let conditionals = report.answers.conditionals.iter();
    conditionals.map(|item| (item.name.clone(), on_off(item.value))).collect()
}

#[derive(Serialize)]
struct Cache {
    on_stub: bool,
    prefix: String,
    compiler: Option<Vec<String>>,
    launcher: Option<String>,
    root: Option<String>,
    nvcc: Option<String>,
    conditionals: Vec<(String, &'static str)>,
}

fn cache(report: &Report) -> Result<String, Error> {
    let command = report.compiler.as_ref().map(|compiler| compiler.command.clone());
    let (launcher, compiler) = split(command.unwrap_or_default());
    let root = report.toolkit.as_ref().and_then(|toolkit| toolkit.root.as_ref());
    let compiler = compiler.iter().map(|word| bracket(word)).collect::<Result<Vec<_>, _>>()?;
    let context = Cache {
        on_stub: report.on_stub(),
        prefix: bracket(&parts::install_dir(report, "prefix", "/usr/local"))?,
        compiler: (!compiler.is_empty()).then_some(compiler),
        launcher: launcher.map(|word| bracket(&word)).transpose()?,
        root: root.map(|root| bracket(root.as_str())).transpose()?,
        nvcc: parts::words(report, "NVCC").first().map(|word| bracket(word)).transpose()?,
        conditionals: conditionals(report),
    };
    template::render(
        "ucx-cuda-cache.cmake.j2",
        include_str!("../../templates/ucx-cuda-cache.cmake.j2"),
        context,
    )
}

/// A wrapper such as ccache, which CMake wants to know by itself, and the
/// compiler with its flags.
fn split(command: Vec<String>) -> (Option<String>, Vec<String>) {
    match command.as_slice() {
        [wrapper, compiler, ..] if !compiler.starts_with('-') => {
            (Some(wrapper.clone()), command[1..].to_vec())
        }
        _ => (None, command),
    }
}
