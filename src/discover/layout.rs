//! The shape of one installation: where headers, libraries and stubs lie.
//!
//! The tables below list the subdirectories that installations use. A
//! directory counts by what it holds, never by its name alone: an empty lib64
//! beside a full lib is passed over, and so is one for another machine.

mod content;

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    driver,
    library::DRIVER_LIBRARIES,
    pc,
    shape::{self, Shape},
    source::Place,
};
use crate::host::Host;

use self::content::{
    flags, is_of_another_target, library_in, or_named, versioned, with_content, with_headers,
    with_libraries,
};
pub use self::content::{idle, is_built_in, versioned_names};

/// Headers that make a directory one of CUDA's.
pub(super) const HEADERS: [&str; 4] = ["cuda.h", "cuda_runtime.h", "nvml.h", "cudaTypedefs.h"];

/// Libraries that make a directory one to link with, as `-l` names them.
const LIBRARIES: [&str; 4] = ["cudart", "cudart_static", "cuda", "nvidia-ml"];

/// What is compiled for, and the machine on which things are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The machine, such as `x86_64`.
    pub machine: &'a str,
    /// The compiler's target, such as `x86_64-linux-gnu`.
    pub triple: &'a str,
    /// Where things are looked for.
    pub host: &'a Host,
}

/// Parts of CUDA that lie elsewhere than in one directory, as they were named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Directories with headers, in order.
    pub include_dirs: Vec<Utf8PathBuf>,
    /// Directories with libraries, in order.
    pub library_dirs: Vec<Utf8PathBuf>,
    /// Where NVML is.
    pub nvml: Option<Utf8PathBuf>,
}

impl Parts {
    /// Whether nothing was named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where the parts of an installation lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Its root, where it has one; none when the compiler is to find it.
    pub root: Option<Utf8PathBuf>,
    /// Directories with headers, in the order of search.
    pub include_dirs: Vec<Utf8PathBuf>,
    /// Directories with libraries, in the order of search.
    pub library_dirs: Vec<Utf8PathBuf>,
    /// Directories with stub libraries, for linking only.
    pub stub_dirs: Vec<Utf8PathBuf>,
    /// Directories with the driver's libraries, of which it has none itself.
    pub driver_dirs: Vec<Utf8PathBuf>,
    /// Libraries that are there only under a name with a version in it: what
    /// `-l` calls them, and the file.
    pub names: Vec<(&'static str, Utf8PathBuf)>,
    /// Where its nvcc may be.
    pub nvcc: Vec<Utf8PathBuf>,
    /// What to say about how the directory was taken.
    pub note: Option<String>,
    /// Every directory that was looked at for headers.
    pub looked_for_headers: Vec<Utf8PathBuf>,
    /// Every directory that was looked at for libraries.
    pub looked_for_libraries: Vec<Utf8PathBuf>,
}

impl Layout {
    /// A CUDA toolkit.
    pub fn cuda(root: &Utf8Path, target: &Target<'_>) -> Self {
        Self::assemble(Some(root), &Parts::default(), target)
    }

    /// A CUDA toolkit of which parts lie elsewhere. Without a root, the first
    /// directory with headers says where the libraries are that nobody named.
    pub fn assemble(root: Option<&Utf8Path>, parts: &Parts, target: &Target<'_>) -> Self {
        let machine = target.machine;
        let above = parts.include_dirs.first().and_then(|dir| pc::root(dir));
        let root = root.or(above.filter(|_| parts.library_dirs.is_empty()));
        let shape = root.map(|root| Shape::of(root, machine));
        let mut headers = parts.include_dirs.clone();
        let mut libraries: Vec<Utf8PathBuf> = Vec::new();
        let mut stubs: Vec<Utf8PathBuf> = Vec::new();
        for dir in &parts.library_dirs {
            let is_stubs = dir.file_name() == Some("stubs");
            if is_stubs { &mut stubs } else { &mut libraries }.push(dir.clone());
        }
        for part in shape.iter().flat_map(|shape| &shape.parts) {
            let first = shape.as_ref().is_some_and(|shape| shape.targets_first);
            headers.extend(shape::header_dirs(part, machine, first));
            libraries.extend(library_dirs(part, target, first));
        }
        stubs.extend(libraries.iter().map(|dir| dir.join("stubs")));
        // EasyBuild's.
        stubs.extend(shape.iter().map(|shape| shape.root.join("stubs/lib64")));
        let is_ours = |dir: &Utf8PathBuf| !is_of_another_target(dir, machine);
        let of_ours =
            |dirs: &[Utf8PathBuf]| dirs.iter().filter(|dir| is_ours(dir)).cloned().collect();
        let (own, linked): (Vec<_>, Vec<_>) = (of_ours(&headers), of_ours(&libraries));
        let mut layout = Self {
            include_dirs: or_named(with_headers(&own), &parts.include_dirs, &headers),
            library_dirs: or_named(
                with_libraries(&linked, &LIBRARIES, machine),
                &parts.library_dirs,
                &libraries,
            ),
            stub_dirs: or_named(
                with_libraries(&of_ours(&stubs), &LIBRARIES, machine),
                &parts.library_dirs,
                &stubs,
            ),
            nvcc: shape.iter().flat_map(|shape| shape.nvcc.clone()).collect(),
            note: shape.as_ref().and_then(|shape| shape.note.clone()),
            root: shape.map(|shape| shape.root),
            looked_for_headers: headers,
            looked_for_libraries: libraries.into_iter().chain(stubs).collect(),
            ..Self::default()
        };
        if let Some(nvml) = &parts.nvml {
            layout.add_nvml(nvml, target);
        }
        layout.complete(&["cudart", "cuda", "nvidia-ml"], target);
        layout.add_driver(root, target);
        layout
    }

    /// A gdrcopy installation; `libdir` replaces its directories for
    /// libraries.
    pub fn gdrcopy(
        root: Option<&Utf8Path>,
        libdir: Option<&Utf8Path>,
        target: &Target<'_>,
    ) -> Self {
        let headers: Vec<_> = root.iter().map(|root| root.join("include")).collect();
        let libraries = match (libdir, root) {
            (Some(libdir), _) => vec![libdir.to_owned()],
            (None, Some(root)) => {
                vec![root.join("lib64"), root.join("lib"), root.join("lib").join(target.triple)]
            }
            (None, None) => Vec::new(),
        };
        let mut layout = Self {
            root: root.map(Utf8Path::to_owned),
            include_dirs: with_content(&headers, &["gdrapi.h"], |dir, name| {
                dir.join(name).is_file()
            }),
            library_dirs: with_libraries(&libraries, &["gdrapi"], target.machine),
            looked_for_headers: headers,
            looked_for_libraries: libraries,
            ..Self::default()
        };
        layout.complete(&["gdrapi"], target);
        layout
    }

    /// NVML of another directory: before the toolkit's own, unless that would
    /// change what else is found.
    fn add_nvml(&mut self, root: &Utf8Path, target: &Target<'_>) {
        let mut headers = shape::header_dirs(root, target.machine, false);
        headers.push(root.to_owned());
        let mut libraries = library_dirs(root, target, false);
        libraries.push(root.to_owned());
        let stubs: Vec<_> = libraries.iter().map(|dir| dir.join("stubs")).collect();
        let header = headers.iter().find(|dir| dir.join("nvml.h").is_file());
        let library = libraries
            .iter()
            .chain(&stubs)
            .find(|dir| library_in(dir, "nvidia-ml", target.machine).is_some())
            .or_else(|| {
                let has =
                    |dir: &&Utf8PathBuf| versioned(dir, "nvidia-ml", target.machine).is_some();
                libraries.iter().find(has)
            });
        let place = |dirs: &mut Vec<Utf8PathBuf>, dir: &Utf8PathBuf, holds_more: bool| {
            dirs.retain(|other| other != dir);
            let at = if holds_more { dirs.len() } else { 0 };
            dirs.insert(at, dir.clone());
        };
        if let Some(dir) = header {
            place(&mut self.include_dirs, dir, dir.join("cuda.h").is_file());
        }
        if let Some(dir) = library {
            let others = ["cuda", "cudart"];
            let more = others.iter().any(|name| library_in(dir, name, target.machine).is_some());
            let is_stubs = dir.file_name() == Some("stubs");
            let dirs = if is_stubs && more { &mut self.stub_dirs } else { &mut self.library_dirs };
            place(dirs, dir, more);
        }
        self.looked_for_headers.splice(0..0, headers);
        self.looked_for_libraries.splice(0..0, libraries.into_iter().chain(stubs));
    }

    /// Finds those libraries that are there only under a versioned name.
    fn complete(&mut self, names: &[&'static str], target: &Target<'_>) {
        for &name in names {
            if self.has_library(name, target.machine) {
                continue;
            }
            let looked = self.looked_for_libraries.iter();
            let usable = looked.filter(|dir| !is_of_another_target(dir, target.machine));
            let Some(file) = usable.filter_map(|dir| versioned(dir, name, target.machine)).next()
            else {
                continue;
            };
            if let Some(dir) =
                file.parent().filter(|dir| !self.link_dirs().iter().any(|d| d == dir))
            {
                self.library_dirs.push(dir.to_owned());
            }
            self.names.push((name, file));
        }
    }

    /// Takes the driver's libraries from where drivers put them, where the
    /// installation has none of its own.
    fn add_driver(&mut self, root: Option<&Utf8Path>, target: &Target<'_>) {
        if self.looked_for_libraries.is_empty() {
            return;
        }
        let is_there = |layout: &Self, name: &str| {
            layout.has_library(name, target.machine) || layout.is_named(name)
        };
        let missing: Vec<_> =
            DRIVER_LIBRARIES.into_iter().filter(|name| !is_there(self, name)).collect();
        if missing.is_empty() {
            return;
        }
        let sysroot =
            root.filter(|root| root.file_name() == Some("usr")).and_then(Utf8Path::parent);
        let sysroot = sysroot.filter(|dir| *dir != "/");
        let dirs = driver::dirs(target.host, target.triple, sysroot);
        for name in missing {
            let linked = dirs.iter().find(|dir| library_in(dir, name, target.machine).is_some());
            let dir = linked.cloned().or_else(|| {
                let file = dirs.iter().find_map(|dir| versioned(dir, name, target.machine))?;
                let dir = file.parent().map(Utf8Path::to_owned);
                self.names.push((name, file));
                dir
            });
            if let Some(dir) = dir.filter(|dir| !self.driver_dirs.contains(dir)) {
                self.driver_dirs.push(dir);
            }
        }
    }

    fn has_library(&self, name: &str, machine: &str) -> bool {
        self.link_dirs().iter().any(|dir| library_in(dir, name, machine).is_some())
    }

    fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| *known == name)
    }

    /// Whether its own directories are the only ones that count.
    pub fn is_scoped(&self) -> bool {
        self.root.is_some() || !self.looked_for_headers.is_empty()
    }

    /// Where it is, for people.
    pub fn described(&self) -> String {
        match (&self.root, self.is_scoped()) {
            (Some(root), _) => format!("`{root}`"),
            (None, true) => {
                let dirs: Vec<String> =
                    self.include_dirs.iter().map(|dir| format!("`{dir}`")).collect();
                dirs.join(", ")
            }
            (None, false) => Place::Compiler.to_string(),
        }
    }

    /// Where a header lies in its directories, if it does.
    pub fn header(&self, name: &str) -> Option<Utf8PathBuf> {
        self.include_dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file())
    }

    /// Where a file lies in its directories to link with, if it does.
    pub fn library(&self, file: &str) -> Option<Utf8PathBuf> {
        self.link_dirs().into_iter().map(|dir| dir.join(file)).find(|path| path.is_file())
    }

    /// The file that it has only under a versioned name.
    pub fn versioned_name(&self, name: &str) -> Option<&Utf8Path> {
        self.names.iter().find(|(known, _)| *known == name).map(|(_, file)| file.as_path())
    }

    /// The word by which a linker is told to take a library.
    pub fn link_word(&self, name: &str) -> String {
        match self.versioned_name(name).and_then(Utf8Path::file_name) {
            Some(file) => format!("-l:{file}"),
            None => format!("-l{name}"),
        }
    }

    /// The directories to link with: libraries before stubs, so that a real
    /// driver library beside the toolkit comes first.
    pub fn link_dirs(&self) -> Vec<Utf8PathBuf> {
        let own = self.library_dirs.iter().chain(&self.stub_dirs);
        own.chain(&self.driver_dirs).cloned().collect()
    }

    /// `-I` flags.
    pub fn cppflags(&self) -> Vec<String> {
        flags("-I", &self.include_dirs)
    }

    /// `-L` flags.
    pub fn ldflags(&self) -> Vec<String> {
        flags("-L", &self.link_dirs())
    }
}

/// Directories for libraries below a part, in order.
fn library_dirs(part: &Utf8Path, target: &Target<'_>, targets_first: bool) -> Vec<Utf8PathBuf> {
    let names = shape::target_names(target.machine).iter();
    let targets = names.map(|name| part.join("targets").join(name).join("lib"));
    let mut dirs = vec![part.join("lib64"), part.join("lib"), part.join("lib").join(target.triple)];
    if targets_first {
        dirs.splice(0..0, targets);
    } else {
        dirs.extend(targets);
    }
    dirs
}

#[cfg(test)]
mod tests;
