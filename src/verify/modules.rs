//! The modules in a directory: what they are, whether they load here, and
//! what libucm_cuda would hook.
//!
//! Loading is tried in a child, which is this program doing nothing, with the
//! module preloaded: no fault of a module is one of ours.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::{
    build::{MODULE_DIR, elf::Dynamic},
    error::{Code, Error},
    host::{
        Host, env,
        fs::{self, Scratch},
        process::{Completed, Invocation},
    },
    model::Module,
};

/// A module's file names, the first that is there counts.
const SUFFIXES: &[&str] = &[".so.0.0.0", ".so.0", ".so"];

/// Names a file that libucm_cuda writes its coverage report to when it is
/// loaded.
const COVERAGE: &str = "HOOK_RUNTIME_COVERAGE";

/// The driver, by the name under which everyone opens it.
const DRIVER: &str = "libcuda.so.1";

/// A module that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its file's name.
    pub file: String,
    /// Its name inside.
    pub soname: Option<String>,
    /// What it is linked to.
    pub needed: Vec<String>,
    /// Whether it can be loaded here.
    pub loads: bool,
    /// What the loader said, where it cannot.
    pub said: Option<String>,
}

/// What there is in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Modules {
    /// The directory with the modules.
    pub dir: Utf8PathBuf,
    /// Those that are there.
    pub modules: Vec<Found>,
    /// Those that are not.
    pub absent: Vec<String>,
    /// Whether the driver could be loaded.
    pub driver_loads: bool,
    /// libucm_cuda's coverage report, where it made one.
    pub coverage: Option<String>,
    /// What limits the answer.
    pub notes: Vec<String>,
}

/// Looks at the modules of a build directory, or of a directory of modules.
///
/// # Errors
///
/// There is no module, or none can be looked at.
pub fn look(dir: &Utf8Path, host: &Host) -> Result<Modules, Error> {
    let places = [dir.join(MODULE_DIR), dir.join("lib64/ucx"), dir.to_owned()];
    let has_some = |dir: &&Utf8PathBuf| Module::ALL.iter().any(|row| file(*row, dir).is_some());
    let Some(place) = places.iter().find(has_some) else {
        return Err(Error::new(Code::Read, format!("there is no module in `{dir}`"))
            .means(format!("Looked in {}.", list(&places)))
            .hint("Run `ucx-configure` there first, or name a build directory or a `lib/ucx`."));
    };
    // Links are followed, since the loader's list of files has none.
    let place = fs::canonical(place)?;
    let exe = env::current_exe().ok().and_then(|exe| Utf8PathBuf::from_path_buf(exe).ok());
    let exe = exe.ok_or_else(|| Error::new(Code::Read, "the path of this program is not known"))?;
    let world = World { exe, dir: place.clone(), host };
    let mut found = Modules {
        dir: place,
        modules: Vec::new(),
        absent: Vec::new(),
        driver_loads: false,
        coverage: None,
        notes: Vec::new(),
    };
    for module in Module::ALL {
        match file(module, &found.dir) {
            Some(name) => found.modules.push(world.found(name)?),
            None => found.absent.push(module.library().to_owned()),
        }
    }
    if let Some(name) = file(Module::UcmCuda, &found.dir) {
        world.cover(&name, &mut found)?;
    }
    Ok(found)
}

fn list(places: &[Utf8PathBuf]) -> String {
    places.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>().join(", ")
}

/// The module's file in a directory.
fn file(module: Module, dir: &Utf8Path) -> Option<String> {
    let names = SUFFIXES.iter().map(|suffix| format!("{}{suffix}", module.library()));
    names.into_iter().find(|name| dir.join(name).is_file())
}

struct World<'a> {
    exe: Utf8PathBuf,
    dir: Utf8PathBuf,
    host: &'a Host,
}

impl World<'_> {
    fn found(&self, name: String) -> Result<Found, Error> {
        let path = self.dir.join(&name);
        let dynamic = Dynamic::read(&fs::read(&path)?).unwrap_or_default();
        let real = fs::canonical(&path)?;
        let done = self.host.runner.run(self.child(&format!("./{name}")));
        self.host.runner.interrupt.check()?;
        let loads = done.success() && is_mapped(&done, real.file_name().unwrap_or(&name));
        let said = (!loads).then(|| format!("{}\n{}", done.status, done.stderr.trim()));
        let Dynamic { soname, needed } = dynamic;
        Ok(Found { file: name, soname, needed, loads, said })
    }

    /// This program with something preloaded. UCX's libraries are one
    /// directory above its modules, and loaded before these.
    fn child(&self, preload: &str) -> Invocation {
        let above = self.dir.parent().unwrap_or(&self.dir);
        let path = match self.host.env.get("LD_LIBRARY_PATH") {
            Some(path) => format!("{path}:{above}"),
            None => above.to_string(),
        };
        let mut invocation = Invocation::new(self.exe.as_str())
            .arg("loaded")
            .cwd(self.dir.clone())
            .env("LD_LIBRARY_PATH", path)
            .env("LD_PRELOAD", preload);
        invocation.env_remove.extend(["HOOK_RUNTIME_TRACE".to_owned(), COVERAGE.to_owned()]);
        invocation
    }

    /// Asks libucm_cuda what it would hook, with the driver loaded as well.
    fn cover(&self, name: &str, found: &mut Modules) -> Result<(), Error> {
        let scratch = Scratch::new(None)?;
        let report = scratch.path().join("coverage");
        let child = self.child(&format!("{DRIVER} ./{name}")).env(COVERAGE, report.as_str());
        let done = self.host.runner.run(child);
        self.host.runner.interrupt.check()?;
        found.driver_loads = is_mapped(&done, "libcuda.so");
        if !found.driver_loads {
            found.notes.push(format!(
                "the driver `{DRIVER}` cannot be loaded here: its functions will be hooked when it can"
            ));
        }
        if report.is_file() {
            found.coverage = Some(fs::read_to_string(&report)?);
        } else {
            found.notes.push(format!(
                "`{name}` tells no coverage: it is not this hook runtime's, or it installs no \
                 hooks here ({}; {})",
                done.status,
                done.stderr.trim().lines().last().unwrap_or("nothing said")
            ));
        }
        Ok(())
    }
}

/// Whether a file whose name begins so was loaded into the child.
fn is_mapped(done: &Completed, name: &str) -> bool {
    let names = done.stdout.lines().filter_map(|path| path.rsplit('/').next());
    names.into_iter().any(|mapped| mapped.starts_with(name))
}
