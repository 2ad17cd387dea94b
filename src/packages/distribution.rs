//! Whose packages this machine has.

use camino::{Utf8Path, Utf8PathBuf};

use super::Manager;
use crate::{
    env_vars,
    host::{Host, fs},
};

/// Where a system says what it is: the second where the first is not there.
pub const OS_RELEASE: [&str; 2] = ["/etc/os-release", "/usr/lib/os-release"];

/// Names in `ID` and `ID_LIKE`, and whose packages they stand for.
const NAMES: &[(&str, Manager)] = &[
    ("debian", Manager::Apt),
    ("ubuntu", Manager::Apt),
    ("linuxmint", Manager::Apt),
    ("raspbian", Manager::Apt),
    ("rhel", Manager::Dnf),
    ("fedora", Manager::Dnf),
    ("centos", Manager::Dnf),
    ("rocky", Manager::Dnf),
    ("almalinux", Manager::Dnf),
    ("ol", Manager::Dnf),
    ("amzn", Manager::Dnf),
    ("suse", Manager::Zypper),
    ("opensuse", Manager::Zypper),
    ("opensuse-leap", Manager::Zypper),
    ("opensuse-tumbleweed", Manager::Zypper),
    ("sles", Manager::Zypper),
    ("arch", Manager::Pacman),
    ("manjaro", Manager::Pacman),
];

/// Whose packages count: those of an environment that is active, else those
/// of the system. The fixed files are looked for below
/// [`env_vars::UCX_CONFIGURE_ROOT`], as everything else is.
pub fn manager(host: &Host) -> Option<Manager> {
    let is_set = |name| host.env.get(name).is_some_and(|value| !value.is_empty());
    if is_set(env_vars::CONDA_PREFIX) {
        return Some(Manager::Conda);
    }
    if is_set(env_vars::SPACK_ENV) {
        return Some(Manager::Spack);
    }
    let root = host.env.get(env_vars::UCX_CONFIGURE_ROOT).unwrap_or_default();
    let files = OS_RELEASE.map(|file| Utf8PathBuf::from(format!("{root}{file}")));
    let text = files.iter().find_map(|file| read(file))?;
    of_text(&text)
}

fn read(file: &Utf8Path) -> Option<String> {
    file.is_file().then(|| fs::read_to_string(file).ok()).flatten()
}

/// Reads os-release: `ID` counts before the names of `ID_LIKE`, in order.
pub(super) fn of_text(text: &str) -> Option<Manager> {
    let value = |key: &str| {
        let mut lines = text.lines().rev();
        // The last line with a key counts, as where a shell reads the file.
        let last = lines.find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='));
        last.map(|value| value.trim().trim_matches(['"', '\'']).to_lowercase())
    };
    let (id, like) = (value("ID").unwrap_or_default(), value("ID_LIKE").unwrap_or_default());
    std::iter::once(id.as_str())
        .chain(like.split_whitespace())
        .find_map(|name| NAMES.iter().find(|(known, _)| *known == name))
        .map(|(_, manager)| *manager)
}
