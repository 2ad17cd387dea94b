//! The wheels of the Python that is active: which directories they are in.
//!
//! No Python is started: a virtual environment names itself in a variable, and
//! for the rest the interpreter in PATH says by its place where packages are.

use camino::{Utf8Path, Utf8PathBuf};

use super::source::ROOT_VARIABLE;
use crate::{
    env_vars,
    host::{Host, fs, process::find_program},
};

/// Directories below a prefix that hold packages; `{python}` is `python3.11`.
const BELOW: [&str; 4] = [
    "lib/{python}/site-packages",
    "lib64/{python}/site-packages",
    "local/lib/{python}/dist-packages",
    "lib/python3/dist-packages",
];

/// The directories `nvidia` that wheels were unpacked into, in the order in
/// which the interpreter would look.
pub fn wheel_dirs(host: &Host) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    for (prefix, names) in prefixes(host) {
        for python in &names {
            for dir in BELOW {
                let dir = prefix.join(dir.replace("{python}", python)).join("nvidia");
                if dir.is_dir() && !found.contains(&dir) {
                    found.push(dir);
                }
            }
        }
    }
    found
}

/// Where packages may be installed, and for which interpreters.
fn prefixes(host: &Host) -> Vec<(Utf8PathBuf, Vec<String>)> {
    let mut all = Vec::new();
    let mut add = |prefix: Utf8PathBuf, known: Option<&str>| {
        let names = match known {
            Some(name) => vec![name.to_owned()],
            None => interpreters(&prefix),
        };
        all.push((prefix, names));
    };
    if let Some(dir) = host.env.get(env_vars::VIRTUAL_ENV).filter(|dir| dir.starts_with('/')) {
        add(dir.into(), None);
    }
    let dirs = host.env.path_dirs();
    let program = ["python3", "python"].iter().find_map(|name| find_program(name, &dirs).0);
    if let Some(program) = &program {
        let real = fs::canonical(program).ok();
        let name = real.as_ref().and_then(|path| path.file_name());
        let name = name.filter(|name| name.starts_with("python3."));
        // A user's own packages come before those of the system.
        if let Some(home) = host.env.get(env_vars::HOME).filter(|home| home.starts_with('/')) {
            add(Utf8Path::new(home).join(".local"), name);
        }
        // A virtual environment has a link to its interpreter, which must not
        // be followed: the packages are where the link is.
        for program in std::iter::once(program).chain(real.as_ref()) {
            if let Some(prefix) = program.parent().and_then(Utf8Path::parent) {
                add(prefix.to_owned(), name);
            }
        }
    }
    if let Some(root) = host.env.get(ROOT_VARIABLE).filter(|root| !root.is_empty()) {
        add(Utf8Path::new(root).join("usr"), None);
    }
    all
}

/// The interpreters that have a directory below a prefix, the newest first.
fn interpreters(prefix: &Utf8Path) -> Vec<String> {
    let mut names: Vec<(u32, String)> = ["lib", "lib64", "local/lib"]
        .iter()
        .flat_map(|dir| fs::names(&prefix.join(dir)))
        .filter_map(|name| Some((name.strip_prefix("python3.")?.parse().ok()?, name)))
        .collect();
    names.sort_by(|one, other| other.cmp(one));
    names.dedup();
    names.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{
        env::Snapshot,
        fs::{Scratch, create_dir_all, symlink, write_if_changed},
        process::Runner,
    };

    #[test]
    fn the_active_environment_comes_first() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path();
        let venv = "venv/lib/python3.12/site-packages/nvidia";
        let user = "home/.local/lib/python3.9/site-packages/nvidia";
        let system = "sys/local/lib/python3.9/dist-packages/nvidia";
        for dir in [venv, user, system, "sys/bin", "venv/bin", "venv/lib/python3.9"] {
            create_dir_all(&root.join(dir)).unwrap();
        }
        write_if_changed(&root.join("sys/bin/python3.9"), b"", 0o755).unwrap();
        symlink("python3.9", &root.join("sys/bin/python3")).unwrap();
        let (path, home) = (root.join("sys/bin"), root.join("home"));
        let active = root.join("venv");
        let pairs =
            [("PATH", path.as_str()), ("HOME", home.as_str()), ("VIRTUAL_ENV", active.as_str())];
        let host = |pairs: &[(&str, &str)]| Host {
            env: Snapshot::from_pairs(pairs.iter().copied()),
            cwd: "/".into(),
            runner: Runner::new(),
        };
        let names = |host: &Host| wheel_dirs(host);
        let all = [venv, user, system].map(|dir| root.join(dir));
        assert_eq!(names(&host(&pairs)), all);
        assert_eq!(names(&host(&pairs[..2])), all[1..]);
        assert!(names(&host(&[])).is_empty());
    }
}
