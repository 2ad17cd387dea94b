//! The modules in a directory: what they are, whether they load here, and
//! what libucm_cuda would hook.
//!
//! Loading is tried in a child, which is this program doing nothing, with the
//! module preloaded: no fault of a module is one of ours.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::{
    Image,
    audit::{self, Problem, Prologue},
    closure,
    contents::{self, Contents},
};
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

/// The same for NVML.
const NVML: &str = "libnvidia-ml.so.1";

/// A module that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its file's name.
    pub file: String,
    /// Whether it is a 64-bit ELF file at all; else there is nothing to tell.
    pub is_elf: bool,
    /// Its name inside.
    pub soname: Option<String>,
    /// What it is linked to.
    pub needed: Vec<String>,
    /// DT_RPATH, as written.
    pub rpath: Vec<String>,
    /// DT_RUNPATH, as written.
    pub runpath: Vec<String>,
    /// Whether it is one of UCX's own: linked to UCX's libraries, as ours
    /// never are.
    pub of_ucx: bool,
    /// Whether it can be loaded here.
    pub loads: bool,
    /// What the loader said, where it cannot.
    pub said: Option<String>,
    /// The libraries that it is linked to, directly or not, and that are not
    /// here.
    pub unresolved: Vec<String>,
    /// The functions that it is linked to, or looks up by name, and that the
    /// driver or NVML which is here has not.
    pub missing: Vec<Missing>,
}

impl Found {
    /// A file with a module's name that is none.
    fn no_elf(file: String, said: Option<String>) -> Self {
        Self {
            file,
            is_elf: false,
            soname: None,
            needed: Vec::new(),
            rpath: Vec::new(),
            runpath: Vec::new(),
            of_ucx: false,
            loads: false,
            said,
            unresolved: Vec::new(),
            missing: Vec::new(),
        }
    }
}

/// Functions that a library has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The library's file.
    pub library: Utf8PathBuf,
    /// Whether the module is linked to them, so that a call of one ends the
    /// program; else it looks them up, and does without.
    pub linked: bool,
    /// The functions.
    pub functions: Vec<String>,
}

/// What there is in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Modules {
    /// Whether nothing is wrong.
    pub ok: bool,
    /// The directory with the modules.
    pub dir: Utf8PathBuf,
    /// Those that are there.
    pub modules: Vec<Found>,
    /// Those that are not.
    pub absent: Vec<String>,
    /// What each package should have, and has.
    pub packages: Vec<Contents>,
    /// Whether the driver could be loaded.
    pub driver_loads: bool,
    /// The driver's file, where it could.
    pub driver: Option<Utf8PathBuf>,
    /// NVML's file, where it could be loaded.
    pub nvml: Option<Utf8PathBuf>,
    /// What became of the entry of each hooked function of the driver: whether
    /// it can be taken apart and patched, tried on the driver that is here.
    pub prologues: Vec<Prologue>,
    /// libucm_cuda's coverage report, where it made one.
    pub coverage: Option<String>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What limits the answer.
    pub notes: Vec<String>,
}

/// Looks at the modules of a build directory, or of a directory of modules.
///
/// # Errors
///
/// There is no module, or none can be looked at.
pub fn look(dir: &Utf8Path, host: &Host) -> Result<Modules, Error> {
    let places = places(dir);
    let has_some = |dir: &&Utf8PathBuf| Module::ALL.iter().any(|row| file(*row, dir).is_some());
    let Some(place) = places.iter().find(has_some) else {
        return Err(Error::new(Code::Read, format!("there is no module in `{dir}`"))
            .means(format!("Looked in {}.", list(&places)))
            .hint("Run `ucx-configure` there first, or name a build directory, a prefix or a `lib/ucx`."));
    };
    // Links are followed, since the loader's list of files has none.
    let place = fs::canonical(place)?;
    let exe = env::current_exe().ok().and_then(|exe| Utf8PathBuf::from_path_buf(exe).ok());
    let exe = exe.ok_or_else(|| Error::new(Code::Read, "the path of this program is not known"))?;
    let world = World { exe, dir: place.clone(), host };
    let [driver, nvml] = [world.library(DRIVER)?, world.library(NVML)?];
    let mut problems = Vec::new();
    let mut found = Modules {
        ok: true,
        packages: contents::of(dir, &place, &mut problems),
        dir: place,
        modules: Vec::new(),
        absent: Vec::new(),
        driver_loads: driver.is_some(),
        driver,
        nvml,
        prologues: Vec::new(),
        coverage: None,
        problems,
        notes: Vec::new(),
    };
    for module in Module::ALL {
        match file(module, &found.dir) {
            Some(name) => {
                let here = [&found.driver, &found.nvml].map(Option::as_deref);
                found.modules.push(world.found(name, here)?);
            }
            None => found.absent.push(module.library().to_owned()),
        }
    }
    if let Some(name) = file(Module::UcmCuda, &found.dir) {
        world.cover(&name, &mut found)?;
    }
    audit::all(&mut found);
    Ok(found)
}

/// Where modules may be: of a build directory, of a prefix, or there.
fn places(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut places = vec![dir.join(MODULE_DIR), dir.join("lib64/ucx")];
    let lib = dir.join("lib");
    places.extend(fs::names(&lib).into_iter().map(|name| lib.join(name).join("ucx")));
    places.retain(|place| place.is_dir());
    places.extend([dir.join("ucx"), dir.to_owned()]);
    places
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
    fn found(&self, name: String, here: [Option<&Utf8Path>; 2]) -> Result<Found, Error> {
        let path = self.dir.join(&name);
        let real = fs::canonical(&path)?;
        let done = self.host.runner.run(self.child(&format!("./{name}")));
        self.host.runner.interrupt.check()?;
        let loads = done.success() && is_mapped(&done, real.file_name().unwrap_or(&name)).is_some();
        let said = (!loads).then(|| format!("{}\n{}", done.status, done.stderr.trim()));
        let Some(image) = Image::read(&real) else {
            return Ok(Found::no_elf(name, said));
        };
        let Dynamic { soname, needed } = image.dynamic.clone();
        let (rpath, runpath) = (image.rpath.clone(), image.runpath.clone());
        let of_ucx = needed.iter().any(|name| {
            ["libucs.so", "libuct.so", "libucm.so"].iter().any(|library| name.starts_with(library))
        });
        let missing = audit::missing(&image, here);
        let absent = [DRIVER, NVML].into_iter().zip(here).filter(|(_, here)| here.is_none());
        let absent: Vec<&str> = absent.map(|(name, _)| name).collect();
        let unresolved = self.unresolved(image, &absent);
        Ok(Found {
            file: name,
            is_elf: true,
            soname,
            needed,
            rpath,
            runpath,
            of_ucx,
            loads,
            said,
            unresolved,
            missing,
        })
    }

    /// The libraries that a module is linked to and that are not here; the
    /// loader's own search, with UCX's libraries above and modules beside.
    fn unresolved(&self, image: Image, absent: &[&str]) -> Vec<String> {
        let above = self.dir.parent().unwrap_or(&self.dir);
        let mut closure = closure::with_dirs(image, &[above.to_owned()], self.host);
        // Those of the driver are not looked into, but it is known whether they load.
        for image in &closure.images {
            let needed = image.dynamic.needed.iter();
            let gone = needed.filter(|name| absent.contains(&name.as_str()));
            closure.unresolved.extend(gone.cloned());
        }
        closure.unresolved.sort();
        closure.unresolved.dedup();
        closure.unresolved
    }

    /// The file of a library that everyone opens by name; none where it cannot
    /// be loaded.
    fn library(&self, name: &str) -> Result<Option<Utf8PathBuf>, Error> {
        let done = self.host.runner.run(self.child(name));
        self.host.runner.interrupt.check()?;
        let stem = name.trim_end_matches(".1");
        Ok(is_mapped(&done, stem).map(Utf8PathBuf::from))
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
        if !found.driver_loads {
            found.notes.push(format!(
                "the driver `{DRIVER}` cannot be loaded here: its functions will be hooked when it can"
            ));
        }
        if report.is_file() {
            let text = fs::read_to_string(&report)?;
            if found.driver_loads {
                found.prologues = audit::prologues(&text);
            }
            found.coverage = Some(text);
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

/// The file whose name begins so, if it was loaded into the child.
fn is_mapped<'a>(done: &'a Completed, name: &str) -> Option<&'a str> {
    let is_it = |path: &&str| path.rsplit('/').next().is_some_and(|file| file.starts_with(name));
    done.stdout.lines().find(is_it)
}
