//! Builds hook-runtime's modules with cargo, as the report says, and puts
//! them into the build directory.
//!
//! What is built, and with which flags, is decided before: this finds cargo
//! and the sources, runs, looks at what came out, and removes what an earlier
//! run left that is no longer wanted.

mod cargo;
mod demo;
pub mod elf;
mod install;
mod source;
mod stamp;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

pub use demo::{Demo, demo};
pub use source::SOURCE_VARIABLE;

use crate::{
    emit::bindings,
    error::Error,
    host::{Host, fs},
    model::{Module, Report, SCHEMA_VERSION, ToolIdentity, Toolkit},
    request::{Bindings, Request},
    ui::{Event, Sink},
};

/// Where modules go, below the build directory.
pub const MODULE_DIR: &str = "lib/ucx";

/// A module that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Which.
    pub module: Module,
    /// The file itself, `libX.so.0.0.0`; the links are beside it.
    pub path: Utf8PathBuf,
    /// Whether this run changed it.
    pub changed: bool,
}

/// What a build came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildResult {
    /// The modules, in the report's order.
    pub built: Vec<Built>,
    /// Files of modules that are no longer wanted, now removed.
    pub removed: Vec<Utf8PathBuf>,
}

/// Builds the report's modules, and removes those of earlier runs that it
/// does not name. Without a module to build cargo is not needed.
///
/// # Errors
///
/// There is no cargo, it fails, what it made is not what it should be, or a
/// file cannot be written.
pub fn build_runtime(
    report: &Report,
    request: &Request,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<BuildResult, Error> {
    let removed = remove_stale(&report.modules, &request.build_dir, sink)?;
    if report.modules.is_empty() {
        return Ok(BuildResult { built: Vec::new(), removed });
    }
    let wish = Wish {
        cfg: &report.cfg,
        modules: &report.modules,
        compiler: report.compiler.as_ref(),
        toolkit: match request.bindings {
            Bindings::Kept => None,
            Bindings::Generate => report.toolkit.as_ref(),
        },
        is_kept: true,
    };
    let made = make(&wish, request, host, sink)?;
    let built = install::install(&made, &request.build_dir.join(MODULE_DIR), sink)?;
    Ok(BuildResult { built, removed })
}

/// What is to be built.
struct Wish<'a> {
    cfg: &'a BTreeMap<String, bool>,
    modules: &'a [Module],
    compiler: Option<&'a ToolIdentity>,
    /// The toolkit whose headers bindings are made from; none for the kept
    /// bindings.
    toolkit: Option<&'a Toolkit>,
    /// Whether it is kept what the build was made from.
    is_kept: bool,
}

/// Builds modules and leaves them where cargo puts them.
fn make(
    wish: &Wish<'_>,
    request: &Request,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Vec<cargo::Made>, Error> {
    let state = state_dir(request);
    fs::create_dir_all(&state)?;
    let cargo = cargo::find(host)?;
    let source = source::find(&state, host)?;
    sink.event(&Event::Decided(&format!("hook-runtime is built from {source}")));
    let flags = state.join("hook-runtime.json");
    fs::write_if_changed(&flags, flags_text(wish.cfg).as_bytes(), 0o644)?;
    let bindings = match wish.toolkit {
        Some(toolkit) => Some(generate_bindings(toolkit, &source, &state)?),
        None => None,
    };
    let kept = state.join("hook-runtime-build.json");
    let order = cargo::Order {
        cargo: &cargo,
        source: &source,
        target: &state.join("target"),
        flags: &flags,
        bindings: bindings.as_deref(),
        modules: wish.modules,
        bistro: wish.cfg.get("bistro_hooks").copied().unwrap_or(false),
        offline: request.offline,
        linker: wish.compiler.and_then(|compiler| linker(compiler, request, host)),
        compiler: wish.compiler.map(|compiler| compiler.command.join(" ")),
        stamp: wish.is_kept.then_some(&*kept),
        rebuild: request.rebuild,
    };
    sink.event(&Event::Busy("building hook-runtime with cargo"));
    let made = cargo::run(&order, host, sink);
    sink.event(&Event::Idle);
    made
}

/// Removes the files of modules that are not in `wanted`. Returns what was
/// there.
///
/// # Errors
///
/// A file is there and cannot be removed.
pub fn remove_stale(
    wanted: &[Module],
    build_dir: &Utf8Path,
    sink: &mut dyn Sink,
) -> Result<Vec<Utf8PathBuf>, Error> {
    install::remove_stale(wanted, &build_dir.join(MODULE_DIR), sink)
}

/// Where state between runs is kept.
fn state_dir(request: &Request) -> Utf8PathBuf {
    request.state_dir.clone().unwrap_or_else(|| request.build_dir.join(".ucx-configure"))
}

/// The part of the report that hook-runtime's build script reads. It is a
/// file of its own, so that other changes of the report build nothing again.
fn flags_text(cfg: &BTreeMap<String, bool>) -> String {
    let value = serde_json::json!({ "schema_version": SCHEMA_VERSION, "cfg": cfg });
    format!("{value:#}\n")
}

/// The linker for cargo to use, where its own choice would not do: CC as the
/// user gave it, or the compiler that was found where there is no `cc`. One
/// with a wrapper or flags cannot be named as a linker.
fn linker(compiler: &ToolIdentity, request: &Request, host: &Host) -> Option<String> {
    let [word] = compiler.command.as_slice() else { return None };
    let has_cc = || crate::host::process::find_program("cc", &host.env.path_dirs()).0.is_some();
    let asked = request.is_set(crate::request::Variable::Cc);
    (asked || !has_cc()).then(|| word.clone())
}

/// Runs bindgen over the headers that were found, as the sources want it.
fn generate_bindings(
    toolkit: &Toolkit,
    source: &Utf8Path,
    state: &Utf8Path,
) -> Result<Utf8PathBuf, Error> {
    let dir = source.join("hook-runtime/bindings");
    let headers = fs::read_to_string(&dir.join("headers.h"))?;
    let allow = fs::read_to_string(&dir.join("allow.txt"))?;
    let wanted = bindings::Wanted { headers: &headers, allow: &allow };
    let text = bindings::generate(&wanted, &toolkit.include_dirs, &[])?;
    let file = state.join("bindings.rs");
    fs::write_if_changed(&file, text.as_bytes(), 0o644)?;
    Ok(file)
}
