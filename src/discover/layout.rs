//! The shape of one installation: where headers, libraries and stubs lie.
//!
//! The tables below list the subdirectories that installations use. A
//! directory counts by what it holds, never by its name alone: an empty lib64
//! beside a full lib is passed over.

use camino::{Utf8Path, Utf8PathBuf};

use crate::host::fs;

/// Headers that make a directory one of CUDA's.
const HEADERS: [&str; 4] = ["cuda.h", "cuda_runtime.h", "nvml.h", "cudaTypedefs.h"];

/// Files that make a directory one to link with.
const LIBRARIES: [&str; 4] =
    ["libcudart.so", "libcudart_static.a", "libcuda.so", "libnvidia-ml.so"];

/// Directories that compilers and linkers search by themselves; naming them
/// would only change the order of others.
const BUILT_IN: [&str; 5] = ["/usr/include", "/usr/lib", "/usr/lib64", "/lib", "/lib64"];

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
    /// Every directory that was looked at for headers.
    pub looked_for_headers: Vec<Utf8PathBuf>,
    /// Every directory that was looked at for libraries.
    pub looked_for_libraries: Vec<Utf8PathBuf>,
}

/// The names that NVIDIA gives a machine below `targets/`.
fn target_names(machine: &str) -> &'static [&'static str] {
    match machine {
        "x86_64" => &["x86_64-linux"],
        // Servers first; `aarch64-linux` is what Jetson boards have.
        "aarch64" => &["sbsa-linux", "aarch64-linux"],
        "powerpc64le" => &["ppc64le-linux"],
        _ => &[],
    }
}

impl Layout {
    /// A CUDA toolkit. `machine` and `triple` are those that is compiled for.
    pub fn cuda(root: &Utf8Path, machine: &str, triple: &str) -> Self {
        let targets: Vec<Utf8PathBuf> =
            target_names(machine).iter().map(|name| root.join("targets").join(name)).collect();
        let mut headers = vec![root.join("include")];
        headers.extend(targets.iter().map(|dir| dir.join("include")));
        // Fedora's packages put them one level down.
        headers.push(root.join("include/cuda"));
        let mut libraries = vec![root.join("lib64"), root.join("lib")];
        libraries.push(root.join("lib").join(triple));
        libraries.extend(targets.iter().map(|dir| dir.join("lib")));
        let mut stubs: Vec<_> = libraries.iter().map(|dir| dir.join("stubs")).collect();
        // EasyBuild's.
        stubs.push(root.join("stubs/lib64"));
        Self {
            root: Some(root.to_owned()),
            include_dirs: with_content(&headers, &HEADERS),
            library_dirs: with_content(&libraries, &LIBRARIES),
            stub_dirs: with_content(&stubs, &LIBRARIES),
            looked_for_headers: headers,
            looked_for_libraries: libraries.into_iter().chain(stubs).collect(),
        }
    }

    /// A gdrcopy installation; `libdir` replaces its directories for
    /// libraries.
    pub fn gdrcopy(root: Option<&Utf8Path>, libdir: Option<&Utf8Path>, triple: &str) -> Self {
        let headers: Vec<_> = root.iter().map(|root| root.join("include")).collect();
        let libraries = match (libdir, root) {
            (Some(libdir), _) => vec![libdir.to_owned()],
            (None, Some(root)) => {
                vec![root.join("lib64"), root.join("lib"), root.join("lib").join(triple)]
            }
            (None, None) => Vec::new(),
        };
        Self {
            root: root.map(Utf8Path::to_owned),
            include_dirs: with_content(&headers, &["gdrapi.h"]),
            library_dirs: with_content(&libraries, &["libgdrapi.so"]),
            stub_dirs: Vec::new(),
            looked_for_headers: headers,
            looked_for_libraries: libraries,
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

    /// The directories to link with: libraries before stubs, so that a real
    /// driver library beside the toolkit comes first.
    pub fn link_dirs(&self) -> Vec<Utf8PathBuf> {
        self.library_dirs.iter().chain(&self.stub_dirs).cloned().collect()
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

/// A flag for each directory that a compiler does not search by itself.
fn flags(flag: &str, dirs: &[Utf8PathBuf]) -> Vec<String> {
    dirs.iter()
        .filter(|dir| !BUILT_IN.contains(&dir.as_str()))
        .map(|dir| format!("{flag}{dir}"))
        .collect()
}

/// The directories that add something to what the earlier ones hold. The same
/// directory under another name, as when `lib64` is a link to `targets/*/lib`,
/// adds nothing.
fn with_content(dirs: &[Utf8PathBuf], wanted: &[&str]) -> Vec<Utf8PathBuf> {
    let mut missing: Vec<&str> = wanted.to_vec();
    let mut chosen = Vec::new();
    for dir in dirs {
        let before = missing.len();
        missing.retain(|name| !dir.join(name).is_file());
        if missing.len() < before {
            chosen.push(dir.clone());
        }
    }
    chosen
}

/// The versioned names of a library in the directories: what driver packages
/// and wheels have where a development link is missing.
pub fn versioned_names(dirs: &[Utf8PathBuf], library: &str) -> Vec<Utf8PathBuf> {
    let start = format!("lib{library}.so.");
    let in_dir = |dir: &Utf8PathBuf| -> Vec<Utf8PathBuf> {
        let names = fs::names(dir);
        names.iter().filter(|name| name.starts_with(&start)).map(|name| dir.join(name)).collect()
    };
    dirs.iter().flat_map(in_dir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fs::{Scratch, create_dir_all, symlink, write_if_changed};

    fn tree(files: &[&str]) -> Scratch {
        let scratch = Scratch::new(None).unwrap();
        for file in files {
            let path = scratch.path().join(file);
            create_dir_all(path.parent().unwrap()).unwrap();
            write_if_changed(&path, b"", 0o644).unwrap();
        }
        scratch
    }

    fn below(scratch: &Scratch, dirs: &[Utf8PathBuf]) -> Vec<String> {
        dirs.iter().map(|dir| dir.strip_prefix(scratch.path()).unwrap().to_string()).collect()
    }

    const TRIPLE: &str = "x86_64-linux-gnu";

    #[test]
    fn a_directory_counts_by_what_it_holds() {
        let scratch = tree(&["include/cuda.h", "lib/libcudart.so", "lib/stubs/libcuda.so"]);
        create_dir_all(&scratch.path().join("lib64")).unwrap();
        let layout = Layout::cuda(scratch.path(), "x86_64", TRIPLE);
        assert_eq!(below(&scratch, &layout.include_dirs), ["include"]);
        assert_eq!(below(&scratch, &layout.link_dirs()), ["lib", "lib/stubs"]);
        assert!(layout.header("cuda.h").is_some() && layout.header("nvml.h").is_none());
        assert_eq!(layout.ldflags().len(), 2);
    }

    #[test]
    fn targets_count_once() {
        let scratch = tree(&[
            "targets/x86_64-linux/include/cuda.h",
            "targets/x86_64-linux/lib/libcudart.so",
            "targets/sbsa-linux/lib/libcudart.so",
        ]);
        let layout = Layout::cuda(scratch.path(), "x86_64", TRIPLE);
        assert_eq!(below(&scratch, &layout.library_dirs), ["targets/x86_64-linux/lib"]);
        let other = Layout::cuda(scratch.path(), "aarch64", "aarch64-linux-gnu");
        assert_eq!(below(&scratch, &other.library_dirs), ["targets/sbsa-linux/lib"]);
        symlink("targets/x86_64-linux/lib", &scratch.path().join("lib64")).unwrap();
        let layout = Layout::cuda(scratch.path(), "x86_64", TRIPLE);
        assert_eq!(below(&scratch, &layout.library_dirs), ["lib64"]);
    }

    #[test]
    fn gdrcopy_and_its_libdir() {
        let scratch = tree(&["include/gdrapi.h", "lib/libgdrapi.so", "other/libgdrapi.so"]);
        let layout = Layout::gdrcopy(Some(scratch.path()), None, TRIPLE);
        assert_eq!(below(&scratch, &layout.library_dirs), ["lib"]);
        let other = scratch.path().join("other");
        let layout = Layout::gdrcopy(Some(scratch.path()), Some(&other), TRIPLE);
        assert_eq!(below(&scratch, &layout.library_dirs), ["other"]);
    }

    #[test]
    fn what_the_compiler_searches_is_not_named() {
        let layout = Layout { include_dirs: vec!["/usr/include".into()], ..Layout::default() };
        assert!(layout.cppflags().is_empty());
        let scratch = tree(&["libcuda.so.1", "libcudart.so"]);
        let dirs = [scratch.path().to_owned()];
        assert_eq!(versioned_names(&dirs, "cuda"), [scratch.path().join("libcuda.so.1")]);
    }
}
