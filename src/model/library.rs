//! What a library file is, as far as linking goes.

use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// What a library file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryClass {
    /// A library of an installed driver.
    Driver,
    /// A stub of one: to link with, never to run with.
    Stub,
    /// One for an older driver (`cuda-compat`): never to be linked by path.
    Compat,
    /// Another shared library: that of the toolkit, of gdrcopy.
    Runtime,
    /// An archive.
    Static,
    /// A text that names other files, as linkers understand it.
    LinkerScript,
    /// A link that leads nowhere.
    Dangling,
    /// An empty file, as images keep them of a driver that was mounted.
    Empty,
    /// Something else.
    NotElf,
    /// An ELF file for another machine or word size.
    WrongMachine,
}

impl LibraryClass {
    /// Every class.
    pub const ALL: [Self; 10] = [
        Self::Driver,
        Self::Stub,
        Self::Compat,
        Self::Runtime,
        Self::Static,
        Self::LinkerScript,
        Self::Dangling,
        Self::Empty,
        Self::NotElf,
        Self::WrongMachine,
    ];

    /// Its name for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Stub => "stub",
            Self::Compat => "compat",
            Self::Runtime => "runtime",
            Self::Static => "static",
            Self::LinkerScript => "linker script",
            Self::Dangling => "dangling link",
            Self::Empty => "empty file",
            Self::NotElf => "not a library",
            Self::WrongMachine => "wrong machine",
        }
    }

    /// What is wrong with it for a link, in words after the file's name; none
    /// where it should work.
    pub const fn trouble(self) -> Option<&'static str> {
        match self {
            Self::Driver | Self::Stub | Self::Runtime | Self::Static | Self::LinkerScript => None,
            Self::Compat => Some("is of `cuda-compat`, for older drivers, and never linked with"),
            Self::WrongMachine => Some("is for another kind of machine"),
            Self::Empty => Some("is an empty file"),
            Self::NotElf => Some("is not a library"),
            Self::Dangling => Some("is a link that leads nowhere"),
        }
    }
}

impl fmt::Display for LibraryClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A library file that was seen, whether it was linked with or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryFile {
    /// What `-l` calls it: `cuda`, `nvidia-ml`.
    pub name: String,
    /// The file.
    pub path: Utf8PathBuf,
    /// Where its links lead, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_path: Option<Utf8PathBuf>,
    /// What it is.
    pub class: LibraryClass,
    /// Whether the linker took it.
    pub linked: bool,
    /// Whether it is there only under a name with a version in it, without
    /// the link that development packages bring.
    pub versioned_only: bool,
    /// The machine that it is for, as compilers name it, or `32-bit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The name by which programs that are linked with it look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soname: Option<String>,
    /// How many symbols it defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<usize>,
    /// The newest version of the C library that it needs, such as `2.17`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glibc: Option<String>,
}

impl LibraryFile {
    /// The release of the driver that the file is of, as its name says it:
    /// `libcuda.so.550.54.15` is of 550.
    pub fn driver_branch(&self) -> Option<u32> {
        if self.class != LibraryClass::Driver {
            return None;
        }
        let path = self.real_path.as_ref().unwrap_or(&self.path);
        let version = path.file_name()?.split_once(".so.")?.1;
        let branch: u32 = version.split('.').next()?.parse().ok()?;
        // `libcuda.so.1` is no version of a driver.
        (branch >= 100).then_some(branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_driver_library_says_its_branch() {
        let branch = |path: &str, class| {
            let file = LibraryFile {
                name: "cuda".to_owned(),
                path: path.into(),
                real_path: None,
                class,
                linked: true,
                versioned_only: false,
                machine: None,
                soname: None,
                symbols: None,
                glibc: None,
            };
            file.driver_branch()
        };
        assert_eq!(branch("/d/libcuda.so.470.57.02", LibraryClass::Driver), Some(470));
        assert_eq!(branch("/d/libcuda.so.1", LibraryClass::Driver), None);
        assert_eq!(branch("/d/libcuda.so", LibraryClass::Driver), None);
        assert_eq!(branch("/d/compat/libcuda.so.550.1", LibraryClass::Compat), None);
    }

    #[test]
    fn every_class_has_a_word_and_those_that_do_not_do_say_why() {
        let words: std::collections::BTreeSet<_> =
            LibraryClass::ALL.iter().map(|class| class.word()).collect();
        assert_eq!(words.len(), LibraryClass::ALL.len());
        let bad = LibraryClass::ALL.iter().filter(|class| class.trouble().is_some()).count();
        assert_eq!(bad, 5);
    }
}
