//! `install` and `uninstall`: everything into a prefix and away again, or
//! libucm_cuda alone into a UCX.

mod into_ucx;
mod tree;
mod uninstall;

use std::collections::BTreeMap;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::{print_line, report_file};
use crate::{
    cli::{InstallOptions, PackageName, Typed, UninstallOptions},
    emit::installed,
    env_vars,
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Lock},
    },
    model::{Install, Mode, Package, Report},
    request,
};

/// Runs `install`.
pub(super) fn run(typed: &Typed, options: &InstallOptions, host: &Host) -> Result<(), Error> {
    if let Some(given) = &options.into_ucx {
        if let Some(name) = typed.install_dirs.keys().next() {
            return Err(Error::new(
                Code::Usage,
                format!("`--{name}` and `--into-ucx` do not go together"),
            )
            .hint("With `--into-ucx` the files go where UCX's own are."));
        }
        let hint = "Run it as whoever may write to that UCX.";
        return into_ucx::run(given, options, host)
            .map_err(|error| fs::in_other_place(error, hint));
    }
    let build_dir = request::build_dir(options.build_dir.as_deref(), host)?;
    let report = report_file::read(&build_dir)?;
    let given = given(typed, host)?;
    let report = Report { install: report.install.clone().with(given), ..report };
    let place = Place::new(&report.install, options.destdir.as_deref(), host)?;
    let hint = "Name a directory that you may write to with `--prefix DIR`, or below which to install with `--destdir DIR`.";
    tree::install(&report, &build_dir, &place, options)
        .map_err(|error| fs::in_other_place(error, hint))
}

/// Runs `uninstall`.
pub(super) fn uninstall(
    typed: &Typed,
    options: &UninstallOptions,
    host: &Host,
) -> Result<(), Error> {
    let build_dir = request::build_dir(options.build_dir.as_deref(), host)?;
    // Where it was installed can be said without the build directory as well.
    let configured = match report_file::read(&build_dir) {
        Ok(report) => report.install,
        Err(error) if typed.install_dirs.is_empty() => {
            return Err(error.hint("Or say where it was installed, with `--prefix` or `--libdir`."));
        }
        Err(_) => Install { dirs: BTreeMap::new() },
    };
    let place =
        Place::new(&configured.with(given(typed, host)?), options.destdir.as_deref(), host)?;
    let text = uninstall::uninstall(&place, &packages(&options.component))?;
    tell(options.quiet, &text)
}

/// Says what was done, unless nobody wants to know.
fn tell(quiet: bool, text: &str) -> Result<(), Error> {
    if quiet { Ok(()) } else { print_line(text) }
}

/// The installation directories of the command line, by variable.
fn given(typed: &Typed, host: &Host) -> Result<BTreeMap<String, String>, Error> {
    request::given_dirs(&typed.install_dirs, Mode::Strict, host, &mut Vec::new())
}

/// The packages that are meant.
fn packages(named: &[PackageName]) -> Vec<Package> {
    let is_named = |package: &Package| {
        named.is_empty() || named.iter().any(|name| Package::from(*name) == *package)
    };
    Package::ALL.into_iter().filter(is_named).collect()
}

/// The directories that files are installed below.
const DIRS: [&str; 2] = ["libdir", "includedir"];

/// Whether a path is below whatever it is joined to.
fn leads_down(path: &Utf8Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Utf8Component::Normal(_)))
}

/// Where files go: a prefix, perhaps below another directory.
struct Place {
    install: Install,
    destdir: Utf8PathBuf,
}

impl Place {
    fn new(
        install: &Install,
        option: Option<&std::ffi::OsStr>,
        host: &Host,
    ) -> Result<Self, Error> {
        let variable = host.env.get_os(env_vars::DESTDIR).filter(|value| !value.is_empty());
        let destdir = match option.or(variable) {
            Some(dir) => request::build_dir(Some(dir), host)?,
            None => Utf8PathBuf::new(),
        };
        Ok(Self { install: install.clone(), destdir })
    }

    /// A file's path as it will be known, without DESTDIR.
    fn path(&self, dir: &str, name: &str) -> Result<Utf8PathBuf, Error> {
        // An empty prefix is the root, as autoconf has it.
        let base = Some(self.install.expanded(dir)).filter(|base| !base.is_empty());
        let base = base.unwrap_or_else(|| "/".to_owned());
        if base.starts_with('/') && !base.contains("${") {
            return Ok(Utf8Path::new(&base).join(name));
        }
        let what = format!("the directory `{dir}` comes to `{base}`, which is not absolute");
        Err(Error::new(Code::Usage, what).hint(format!("Name it with `--{dir}=DIR`.")))
    }

    /// Whether a file is one that `install` may have put there: below a directory
    /// that it uses, with no way out of it.
    fn holds(&self, path: &Utf8Path) -> Result<bool, Error> {
        for dir in DIRS {
            if path.strip_prefix(self.path(dir, "")?).is_ok_and(leads_down) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where that is written now.
    fn below_destdir(&self, path: &Utf8Path) -> Utf8PathBuf {
        if self.destdir.as_str().is_empty() {
            return path.to_owned();
        }
        self.destdir.join(path.as_str().trim_start_matches('/'))
    }

    /// Where the manifest of a package is.
    fn manifest(&self, package: Package) -> Result<Utf8PathBuf, Error> {
        Ok(self.below_destdir(&self.path("libdir", &installed::manifest(package))?))
    }

    /// Keeps other runs out of a directory.
    fn lock(dir: &Utf8Path) -> Result<Lock, Error> {
        Lock::try_take_dir(dir)?.ok_or_else(|| {
            Error::new(Code::Busy, format!("another run works in `{dir}`"))
                .hint("Wait for it, and run the same command again.")
        })
    }
}

/// Refuses what was made without knowing the CUDA that it will meet.
fn refuse_stub(
    report: &Report,
    build_dir: &Utf8Path,
    allowed: bool,
    means: &str,
    hint: &str,
) -> Result<(), Error> {
    if allowed || !report.on_stub() {
        return Ok(());
    }
    let what = format!("`{build_dir}` was configured on a stub toolkit");
    Err(Error::new(Code::RequirementNotMet, what).means(means).hint(hint))
}
