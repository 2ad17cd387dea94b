//! What is installed, by package: one table for `install`, and for the lists
//! of files in packages.

use super::parts;
use crate::model::{Module, Package, Report};

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Whose it is.
    pub package: Package,
    /// The variable of the installation directory that it is below.
    pub dir: &'static str,
    /// Its path there.
    pub name: String,
    /// What it holds.
    pub content: Content,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A module.
    Module(Module),
    /// A link to the module, under one of the names that it is loaded by.
    Link(Module),
    /// The rendering of the report in this format.
    Emitted(&'static str),
    /// The C interface to memory events.
    Header,
}

/// The files that are not modules: whose they are, where, and what they hold.
const BESIDE: &[(Package, &str, &str, Content)] = &[
    (Package::UcxCuda, "libdir", "pkgconfig/ucx-cuda.pc", Content::Emitted("pkg-config:ucx-cuda")),
    (
        Package::UcxCuda,
        "libdir",
        "cmake/ucx-cuda/ucx-cuda-config.cmake",
        Content::Emitted("cmake:config"),
    ),
    (Package::UcxCuda, "includedir", "hook_runtime.h", Content::Header),
    (
        Package::UcxGdrcopy,
        "libdir",
        "pkgconfig/ucx-gdrcopy.pc",
        Content::Emitted("pkg-config:ucx-gdrcopy"),
    ),
    (Package::UcxGdrcopy, "libdir", "pkgconfig/gdrapi.pc", Content::Emitted("pkg-config:gdrapi")),
];

/// Where modules are, below `libdir`.
pub const MODULES: &str = "ucx";

/// The files of a report's packages; a package without a module has none.
pub fn installed(report: &Report) -> Vec<Installed> {
    let mut files = Vec::new();
    for package in Package::ALL {
        let modules = parts::modules(report, package);
        for module in &modules {
            for (suffix, content) in [
                (".so.0.0.0", Content::Module(*module)),
                (".so.0", Content::Link(*module)),
                (".so", Content::Link(*module)),
            ] {
                let name = format!("{MODULES}/{}{suffix}", module.library());
                files.push(Installed { package, dir: "libdir", name, content });
            }
        }
        let beside = BESIDE.iter().filter(|row| row.0 == package && !modules.is_empty());
        files.extend(beside.map(|(package, dir, name, content)| Installed {
            package: *package,
            dir,
            name: (*name).to_owned(),
            content: *content,
        }));
    }
    files
}

/// The file, below `libdir`, that says what was installed of a package. It is
/// for `uninstall` and `verify`; packages do without.
pub fn manifest(package: Package) -> String {
    format!("{MODULES}/{}.manifest.json", package.name())
}

/// The files of a package as a packager lists them, each as its directory's
/// variable and a pattern. Links without a version are for developers, and
/// nobody links with a module.
pub(super) fn patterns(report: &Report, package: Package) -> Vec<(&'static str, String)> {
    let files = installed(report).into_iter().filter(|file| file.package == package);
    files
        .filter_map(|file| match file.content {
            Content::Module(module) => {
                Some((file.dir, format!("{MODULES}/{}.so.*", module.library())))
            }
            Content::Link(_) => None,
            Content::Emitted(_) | Content::Header => Some((file.dir, file.name)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::emit::{find, fixtures};

    #[test]
    fn every_file_has_its_own_place_and_its_format() {
        let files = installed(&fixtures::report());
        let places: BTreeSet<_> = files.iter().map(|file| (file.dir, &file.name)).collect();
        assert_eq!(places.len(), files.len());
        assert_eq!(files.len(), 4 * 3 + BESIDE.len());
        for (_, _, name, content) in BESIDE {
            if let Content::Emitted(id) = content {
                assert!(name.ends_with(find(id).unwrap().name), "{id}");
            }
        }
        let mut report = fixtures::report();
        report.modules.retain(|module| Package::of(*module) == Package::UcxCuda);
        assert!(installed(&report).iter().all(|file| file.package == Package::UcxCuda));
        assert!(patterns(&report, Package::UcxGdrcopy).is_empty());
        report.modules.clear();
        assert!(installed(&report).is_empty());
    }
}
