//! Why a header does not compile and a library cannot be linked with, in the
//! words of who looked at the files.

use camino::{Utf8Path, Utf8PathBuf};

use super::{ask::absent, hints};
use crate::{
    discover::{
        Layout, driver,
        elf::{self, Glibc},
        layout::versioned_names,
        library::{DRIVER_LIBRARIES, c_library, classify},
    },
    model::{Attempt, Check, CudaVersion, LibraryClass, Outcome, Verdict},
    probe::reads::header_not_found,
};

/// What CUDA 13 has in a component of its own.
const CRT: &str = "crt/";

/// What to do where that component is missing.
const CRT_HINT: &str = "Install that component (NVIDIA: `cuda-crt-X-Y`, conda: \
     `cuda-crt-dev_linux-64`, pip: `nvidia-cuda-crt`), or name the directory above its `crt` with \
     `--with-cuda-include=DIR`.";

/// What it means that a header is there and does not compile.
pub(super) fn of_header(path: &Utf8Path, stderr: &str) -> String {
    match header_not_found(stderr) {
        Some(name) => format!(
            "`{path}` is there, but does not compile: what it includes, `{name}`, is not there.{}",
            if name.starts_with(CRT) { " CUDA 13 has it in a component of its own." } else { "" }
        ),
        None => format!("`{path}` is there, but does not compile."),
    }
}

/// What to do about a header that does not compile, where that is known.
pub(super) fn header_hint(check: &Check, layout: &Layout, stderr: &str) -> Option<String> {
    let is_no = check.verdict == Verdict::No;
    let name = header_not_found(stderr).filter(|_| is_no)?;
    let cuda = hints::release(layout);
    let known = |it: CudaVersion| CRT_HINT.replace("X-Y", &format!("{}-{}", it.major, it.minor));
    name.starts_with(CRT).then(|| cuda.map_or_else(|| CRT_HINT.to_owned(), known))
}

/// A link that failed.
pub(super) struct Link<'a> {
    /// The library asked about, as `-l` names it.
    pub(super) name: &'a str,
    /// The symbol asked about.
    pub(super) symbol: &'a str,
    pub(super) layout: &'a Layout,
    pub(super) machine: &'a str,
    pub(super) triple: &'a str,
    /// What the linker says it took.
    pub(super) trace: &'a str,
}

impl Link<'_> {
    /// Says in the attempt why it failed, and returns what was looked at.
    pub(super) fn explain(&self, attempt: &mut Attempt) -> Vec<Attempt> {
        if let Some((path, class)) = self.file() {
            attempt.outcome = Outcome::Rejected;
            attempt.meaning = Some(self.of_file(&path, class, attempt));
            attempt.place = Some(path);
            return Vec::new();
        }
        let looked = &self.layout.looked_for_libraries;
        attempt.outcome = Outcome::Absent;
        attempt.meaning = Some(match (self.bad_version(), looked.is_empty()) {
            (Some((path, trouble)), _) => {
                attempt.outcome = Outcome::Rejected;
                attempt.place = Some(path.clone());
                format!("Only `{path}` is there, and it {trouble}.")
            }
            (None, true) => format!("The linker finds no lib{} by itself.", self.name),
            (None, false) => {
                let driver = match self.is_the_drivers() {
                    true => ", and no installed driver has one",
                    false => "",
                };
                let name = self.name;
                format!("There is no lib{name} in the installation{driver}.{}", self.compat())
            }
        });
        let mut attempts: Vec<Attempt> =
            looked.iter().map(|dir| absent(dir.join(self.link_name()))).collect();
        if self.is_the_drivers() && !looked.is_empty() {
            let places = driver::looked_in(self.triple);
            attempts.push(Attempt {
                what: format!("look for lib{} of a driver in {places}", self.name),
                place: None,
                ..absent(Utf8PathBuf::new())
            });
        }
        attempts
    }

    /// What to do about a library for another machine: to install the same
    /// once more helps nobody.
    pub(super) fn hint(&self) -> Option<String> {
        let (path, _) = self.file().filter(|(_, class)| *class == LibraryClass::WrongMachine)?;
        let head = crate::host::fs::head(&path, 64).unwrap_or_default();
        let compile = match elf::machine(&head) {
            Some(theirs @ ("x86_64" | "aarch64")) if theirs != self.machine => {
                format!("Compile for it with `--host={theirs}-linux-gnu`, or name")
            }
            _ => "Name".to_owned(),
        };
        let option = if self.name == "gdrapi" { "--with-gdrcopy" } else { "--with-cuda" };
        Some(format!("{compile} a directory for {} with `{option}=DIR`.", self.machine))
    }

    fn link_name(&self) -> String {
        format!("lib{}.so", self.name)
    }

    /// The first file of that name, whatever it is; one that can be linked
    /// with before one that cannot.
    fn file(&self) -> Option<(Utf8PathBuf, LibraryClass)> {
        if let Some(file) = self.layout.versioned_name(self.name) {
            return Some((file.to_owned(), classify(file, self.machine)));
        }
        let files = [self.link_name(), format!("lib{}.a", self.name)];
        let dirs = self.layout.link_dirs().into_iter();
        let all = dirs.chain(self.layout.looked_for_libraries.iter().cloned());
        let there: Vec<(Utf8PathBuf, LibraryClass)> = all
            .flat_map(|dir| files.iter().map(move |file| dir.join(file)))
            .filter(|path| path.is_symlink() || path.exists())
            .map(|path| (path.clone(), classify(&path, self.machine)))
            .collect();
        let usable = there.iter().find(|(_, class)| class.trouble().is_none());
        usable.or(there.first()).cloned()
    }

    fn of_file(&self, path: &Utf8Path, class: LibraryClass, attempt: &Attempt) -> String {
        if let Some(trouble) = class.trouble() {
            return format!("`{path}` {trouble}{}.", machines(path, class, self.machine));
        }
        let libc = c_library(self.trace);
        if let Some(gap) = libc.and_then(|libc| glibc_gap(path, &libc)) {
            return gap;
        }
        let said = attempt.said.as_deref().unwrap_or_default();
        match said.contains("undefined") {
            true => format!("`{path}` has no function `{}`.", self.symbol),
            false => format!("`{path}` is there, but cannot be linked with."),
        }
    }

    /// A versioned name that does not do.
    fn bad_version(&self) -> Option<(Utf8PathBuf, String)> {
        let named = versioned_names(&self.layout.looked_for_libraries, self.name);
        named.into_iter().find_map(|path| {
            let class = classify(&path, self.machine);
            let trouble = class.trouble()?;
            let machines = machines(&path, class, self.machine);
            Some((path, format!("{trouble}{machines}")))
        })
    }

    fn is_the_drivers(&self) -> bool {
        DRIVER_LIBRARIES.contains(&self.name)
    }

    /// A word on cuda-compat, which has such a file and must not be taken.
    fn compat(&self) -> String {
        let dir = self.layout.root.as_ref().map(|root| root.join("compat"));
        let file = dir.and_then(|dir| versioned_names(&[dir], self.name).into_iter().next());
        file.map_or_else(String::new, |path| {
            let trouble = LibraryClass::Compat.trouble().unwrap_or_default();
            format!(" `{path}` {trouble}.")
        })
    }
}

/// Both machines, where they are what is wrong.
fn machines(path: &Utf8Path, class: LibraryClass, ours: &str) -> String {
    if class != LibraryClass::WrongMachine {
        return String::new();
    }
    let head = crate::host::fs::head(path, 64).unwrap_or_default();
    let theirs = elf::machine(&head).unwrap_or("unknown");
    format!(" ({theirs}; the compiler is for {ours})")
}

/// That a library needs a newer C library than the one that is linked with.
pub(super) fn glibc_gap(library: &Utf8Path, libc: &Utf8Path) -> Option<String> {
    let needed: Glibc = elf::facts(library)?.glibc_needed?;
    let defined: Glibc = elf::facts(libc)?.glibc_defined?;
    (needed > defined).then(|| {
        format!("`{library}` needs GLIBC_{needed}, and the C library that is linked with, `{libc}`, has GLIBC_{defined} at most.")
    })
}
