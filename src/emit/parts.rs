//! What formats have in common: the flags as words, the directories by what
//! may be done with them, and the packages with their modules.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    error::{Code, Error},
    model::{Module, Package, Report, SubstValue, ToolkitKind},
};

/// The release of UCX that the outputs stand for. It is what packages carry
/// as a version: ours would change files whose answers did not change.
pub(super) const UCX_VERSION: &str = "1.19.0";

/// The CUDA modules' package, and the name of their pkg-config file.
pub(super) const CUDA_PACKAGE: &str = Package::UcxCuda.name();
/// The gdrcopy module's package, and the name of its pkg-config file.
pub(super) const GDRCOPY_PACKAGE: &str = Package::UcxGdrcopy.name();

/// A substitution as words; of a text, those that blanks separate.
pub(super) fn words(report: &Report, name: &str) -> Vec<String> {
    match report.answers.substitution(name).map(|substitution| &substitution.value) {
        Some(SubstValue::Words(words)) => words.clone(),
        Some(SubstValue::Text(text)) => shlex::split(text)
            .unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect()),
        None => Vec::new(),
    }
}

/// The values of the words that begin with a flag such as `-I`.
pub(super) fn after_flag(words: &[String], flag: &str) -> Vec<Utf8PathBuf> {
    let dirs = words.iter().filter_map(|word| word.strip_prefix(flag));
    dirs.filter(|dir| !dir.is_empty()).map(Utf8PathBuf::from).collect()
}

/// Directories to link with, by whether a program may look there when it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LinkDirs {
    /// With real libraries.
    pub(super) real: Vec<Utf8PathBuf>,
    /// With stubs: for the linker, and never in a run path.
    pub(super) stubs: Vec<Utf8PathBuf>,
}

/// Those of CUDA.
pub(super) fn cuda_dirs(report: &Report) -> LinkDirs {
    let toolkit = report.toolkit.as_ref();
    let all_stubs = toolkit.is_some_and(|toolkit| toolkit.kind == ToolkitKind::Stub);
    let known = toolkit.map(|toolkit| toolkit.stub_dirs.as_slice()).unwrap_or_default();
    sort(&words(report, "CUDA_LDFLAGS"), all_stubs, known)
}

/// Those of gdrcopy.
pub(super) fn gdrcopy_dirs(report: &Report) -> LinkDirs {
    let all_stubs = report.gdrcopy.as_ref().is_some_and(|tree| tree.kind == ToolkitKind::Stub);
    sort(&words(report, "GDR_COPY_LDFLAGS"), all_stubs, &[])
}

fn sort(words: &[String], all_stubs: bool, known: &[Utf8PathBuf]) -> LinkDirs {
    let is_stub = |dir: &Utf8Path| {
        all_stubs || dir.file_name() == Some("stubs") || known.contains(&dir.into())
    };
    let (stubs, real) =
        after_flag(words, "-L").into_iter().partition(|dir: &Utf8PathBuf| is_stub(dir));
    LinkDirs { real, stubs }
}

/// The modules of a package that are built.
pub(super) fn modules(report: &Report, package: Package) -> Vec<Module> {
    let modules = report.modules.iter().copied();
    modules.filter(|module| Package::of(*module) == package).collect()
}

/// An installation directory as configured, with `${prefix}` and the like in
/// it; autoconf's default where none is known.
pub(super) fn install_dir(report: &Report, name: &str, default: &str) -> String {
    report.install.dirs.get(name).cloned().unwrap_or_else(|| default.to_owned())
}

/// `libdir`, with nothing left to expand.
pub(super) fn libdir(report: &Report) -> String {
    report.install.expanded("libdir")
}

/// Refuses a report without CUDA.
pub(super) fn needs_cuda(report: &Report, id: &str) -> Result<(), Error> {
    if report.has_cuda() {
        return Ok(());
    }
    Err(Error::new(Code::NeedsCuda, format!("`{id}` needs CUDA, and this report has none"))
        .hint("Run `ucx-configure --with-cuda=DIR` in the build directory first."))
}

/// Whether gdrcopy support is on.
pub(super) fn has_gdrcopy(report: &Report) -> bool {
    report.answers.conditional("HAVE_GDR_COPY").unwrap_or_else(|| report.gdrcopy.is_some())
}

/// Refuses a report without gdrcopy.
pub(super) fn needs_gdrcopy(report: &Report, id: &str) -> Result<(), Error> {
    if has_gdrcopy(report) {
        return Ok(());
    }
    Err(Error::new(Code::GdrCopyNotMet, format!("`{id}` needs gdrcopy, and this report has none"))
        .hint("Run `ucx-configure --with-gdrcopy=DIR` in the build directory first."))
}

/// Refuses a value with characters that a format cannot carry.
pub(super) fn refuse(id: &str, value: &str, characters: &[char]) -> Result<(), Error> {
    let Some(bad) = value.chars().find(|c| c.is_control() || characters.contains(c)) else {
        return Ok(());
    };
    Err(Error::new(Code::UnusablePath, format!("`{id}` cannot carry `{}`", value.escape_debug()))
        .means(format!("The format has no way to write `{}`.", bad.escape_debug()))
        .hint("Use a directory without that character in its name; a symbolic link will do."))
}
