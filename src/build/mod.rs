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
    toolkit::place::Sum,
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
        copied_to: None,
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
    /// Where the modules are put before the next build in the same place of
    /// cargo's takes theirs away.
    copied_to: Option<&'a Utf8Path>,
}

/// Modules that several build directories get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shared(Vec<cargo::Made>);

/// Builds a report's modules for several build directories with the same
/// flags. The first gets them now; `request` says where cargo works, which
/// other builds may do as well.
///
/// # Errors
///
/// As with [`build_runtime`].
pub fn build_shared(
    report: &Report,
    request: &Request,
    first: &Utf8Path,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Shared, Error> {
    if report.modules.is_empty() {
        return Ok(Shared::default());
    }
    let wish = Wish {
        cfg: &report.cfg,
        modules: &report.modules,
        compiler: report.compiler.as_ref(),
        toolkit: None,
        is_kept: true,
        copied_to: Some(&first.join(MODULE_DIR)),
    };
    make(&wish, request, host, sink).map(Shared)
}

/// Puts the modules that were built for several into one of their build
/// directories, and removes those that it is not to have.
///
/// # Errors
///
/// A file cannot be written.
pub fn install_shared(
    shared: &Shared,
    wanted: &[Module],
    build_dir: &Utf8Path,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    remove_stale(wanted, build_dir, sink)?;
    install::install(&shared.0, &build_dir.join(MODULE_DIR), sink).map(drop)
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
    let mark = wish.copied_to.map_or_else(String::new, |_| format!("-{}", name_of(wish)));
    let flags = state.join(format!("hook-runtime{mark}.json"));
    fs::write_if_changed(&flags, flags_text(wish.cfg).as_bytes(), 0o644)?;
    let bindings = match wish.toolkit {
        Some(toolkit) => Some(generate_bindings(toolkit, &source, &state)?),
        None => None,
    };
    let kept = state.join(format!("hook-runtime-build{mark}.json"));
    let order = cargo::Order {
        cargo: &cargo,
        source: &source,
        target: &state.join("target"),
        flags: &flags,
        bindings: bindings.as_deref(),
        modules: wish.modules,
        bistro: wish.cfg.get("bistro_hooks").copied().unwrap_or(false),
        offline: request.offline,
        rust_target: wish.compiler.and_then(rust_target),
        linker: wish.compiler.and_then(|compiler| linker(compiler, request, host)),
        compiler: wish.compiler.map(|compiler| compiler.command.join(" ")),
        stamp: wish.is_kept.then_some(&*kept),
        rebuild: request.rebuild,
    };
    sink.event(&Event::Busy("building hook-runtime with cargo"));
    let made = match wish.copied_to {
        None => cargo::run(&order, host, sink),
        Some(dir) => copied(order, dir, host, sink),
    };
    sink.event(&Event::Idle);
    made
}

/// What tells the builds apart that share one place.
fn name_of(wish: &Wish<'_>) -> String {
    let modules: Vec<&str> = wish.modules.iter().map(|module| module.package()).collect();
    let sum = Sum::default().part(flags_text(wish.cfg).as_bytes());
    sum.part(modules.join(" ").as_bytes()).hex()
}

/// Runs cargo and puts the modules where no other build takes them away,
/// unless they are there from an earlier run.
fn copied(
    order: cargo::Order<'_>,
    dir: &Utf8Path,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Vec<cargo::Made>, Error> {
    let made_of = |module: Module, file: Utf8PathBuf| cargo::Made { module, file };
    if let Some(files) = stamp::still_there(&order, host) {
        let file = |module: Module| {
            let name = format!("{}.so.0.0.0", module.library());
            files.iter().find(|file| file.file_name() == Some(name.as_str())).cloned()
        };
        let made: Option<Vec<_>> =
            order.modules.iter().map(|module| Some(made_of(*module, file(*module)?))).collect();
        if let Some(made) = made {
            return Ok(made);
        }
    }
    let made = cargo::run(&cargo::Order { stamp: None, ..order.clone() }, host, sink)?;
    let built = install::install(&made, dir, sink)?;
    let made: Vec<_> = built.into_iter().map(|built| made_of(built.module, built.path)).collect();
    stamp::remember(&order, host, made.iter().map(|made| made.file.clone()).collect());
    Ok(made)
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

/// The machine that a compiler is for, as Rust calls it; none where it is the
/// one that builds.
fn rust_target(compiler: &ToolIdentity) -> Option<String> {
    let (machine, system) = compiler.target.split_once('-')?;
    if machine == std::env::consts::ARCH {
        return None;
    }
    let machine = if machine == "riscv64" { "riscv64gc" } else { machine };
    Some(format!("{machine}-unknown-{system}"))
}

/// The linker for cargo to use, where its own choice would not do: CC as the
/// user gave it, or the compiler that was found where there is no `cc`. One
/// with a wrapper or flags cannot be named as a linker.
fn linker(compiler: &ToolIdentity, request: &Request, host: &Host) -> Option<String> {
    let [word] = compiler.command.as_slice() else { return None };
    let has_cc = || crate::host::process::find_program("cc", &host.env.path_dirs()).0.is_some();
    let asked = request.is_set(crate::request::Variable::Cc) || rust_target(compiler).is_some();
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
