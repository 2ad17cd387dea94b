//! Which package brings what is missing, and how it is installed here.
//!
//! The names are one table ([`table`]); which column of it counts is decided by
//! the system's os-release file and by an environment that is active
//! ([`manager`]). Nothing is installed, and no package manager is asked.

mod distribution;
mod table;

pub use self::{
    distribution::{OS_RELEASE, manager},
    table::{Item, TABLE},
};
use crate::{host::Host, model::CudaVersion};

/// Who installs packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Manager {
    /// Debian, Ubuntu and what is made from them; their own packages.
    Apt,
    /// The same with NVIDIA's repository.
    AptNvidia,
    /// Red Hat, Fedora and what is made from them.
    Dnf,
    /// SUSE and openSUSE.
    Zypper,
    /// Arch.
    Pacman,
    /// conda-forge.
    Conda,
    /// Python's wheels.
    Pip,
    /// Spack.
    Spack,
}

impl Manager {
    /// Every manager, in the order of the table's columns.
    pub const ALL: [Self; 8] = [
        Self::Apt,
        Self::AptNvidia,
        Self::Dnf,
        Self::Zypper,
        Self::Pacman,
        Self::Conda,
        Self::Pip,
        Self::Spack,
    ];

    /// Whose packages they are, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Apt => "Debian, Ubuntu",
            Self::AptNvidia => "the same, NVIDIA's repository",
            Self::Dnf => "Red Hat, Fedora",
            Self::Zypper => "SUSE",
            Self::Pacman => "Arch",
            Self::Conda => "conda",
            Self::Pip => "pip",
            Self::Spack => "Spack",
        }
    }

    /// The command that installs packages, without their names.
    pub const fn command(self) -> &'static str {
        match self {
            Self::Apt | Self::AptNvidia => "apt-get install",
            Self::Dnf => "dnf install",
            Self::Zypper => "zypper install",
            Self::Pacman => "pacman -S",
            Self::Conda => "conda install -c conda-forge",
            Self::Pip => "pip install",
            Self::Spack => "spack install",
        }
    }

    /// The package that brings every part of CUDA, where the release is not
    /// known and the parts have it in their names.
    const fn whole_toolkit(self) -> Option<&'static str> {
        match self {
            Self::AptNvidia | Self::Dnf | Self::Zypper => Some("cuda-toolkit"),
            _ => None,
        }
    }
}

/// What is known of the thing that is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About<'a> {
    /// The release of CUDA that it has to fit to.
    pub cuda: Option<CudaVersion>,
    /// Whether the toolkit is in a directory of its own, as NVIDIA's packages
    /// have it, and not spread over the system.
    pub own_directory: bool,
    /// The machine that is compiled for, where it is another than ours.
    pub triple: Option<&'a str>,
}

/// The command that installs an item, in full; none where the manager has no
/// package of it.
pub fn install(item: Item, manager: Manager, about: &About<'_>) -> Option<String> {
    let names = item.names(manager)?;
    let names = match (about.cuda, manager.whole_toolkit()) {
        (Some(cuda), _) => names
            .replace("X-Y", &format!("{}-{}", cuda.major, cuda.minor))
            .replace("-cuX", &wheel_suffix(cuda))
            .replace("=X.Y", &format!("={cuda}"))
            .replace("@X.Y", &format!("@{cuda}")),
        // Of what is for another machine there is no other whole.
        (None, _) if item == Item::CrossToolkit => names.replace("-X-Y", ""),
        (None, Some(whole)) if names.contains("X-Y") => whole.to_owned(),
        (None, _) => {
            names.replace("-cuX", "-cu12").replace(" cuda-version=X.Y", "").replace("@X.Y", "")
        }
    };
    let names = names.replace("TRIPLE", about.triple.unwrap_or("aarch64-linux-gnu"));
    Some(format!("{} {names}", manager.command()))
}

/// How wheels name a release: from 13 on they do not.
fn wheel_suffix(cuda: CudaVersion) -> String {
    if cuda.major < 13 { format!("-cu{}", cuda.major) } else { String::new() }
}

/// The commands of every manager that has the item, each with whose it is.
pub fn everywhere(item: Item, about: &About<'_>) -> Vec<(Manager, String)> {
    Manager::ALL
        .into_iter()
        .filter_map(|manager| Some((manager, install(item, manager, about)?)))
        .collect()
}

/// The command for this machine; none where it is not known whose packages it
/// has, or where they do not have the item.
pub fn here(item: Item, host: &Host, about: &About<'_>) -> Option<String> {
    let columns: &[Manager] = match manager(host)? {
        Manager::Apt if about.own_directory => &[Manager::AptNvidia, Manager::Apt],
        Manager::Apt => &[Manager::Apt, Manager::AptNvidia],
        manager => &[manager],
    };
    columns.iter().find_map(|manager| install(item, *manager, about))
}

/// What to do about a missing item, as a sentence; `or` is what can be done
/// instead, a half sentence.
pub fn hint(item: Item, host: &Host, about: &About<'_>, or: Option<&str>) -> String {
    let or = or.map(|or| format!(", or {or}")).unwrap_or_default();
    let what = item.title();
    if let Some(command) = here(item, host, about) {
        return format!("Install {what}: `{command}`{or}.");
    }
    let all: Vec<String> = everywhere(item, about)
        .into_iter()
        .map(|(manager, command)| format!("{}: `{command}`", manager.title()))
        .collect();
    match all.is_empty() {
        true => format!("Install {what}{or}."),
        false => format!("Install {what} ({}){or}.", all.join("; ")),
    }
}

#[cfg(test)]
mod tests;
