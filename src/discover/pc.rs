//! The files of pkg-config that describe CUDA: `cuda-12.5.pc`, `cudart-12.5.pc`
//! and `nvidia-ml-12.5.pc`.
//!
//! Their names hold a version, so nobody can ask for one without knowing it:
//! the directories are listed instead. What a file says is asked of pkg-config.

use camino::{Utf8Path, Utf8PathBuf};

use super::source::ROOT_VARIABLE;
use crate::{
    env_vars,
    host::{Host, fs},
    model::CudaVersion,
};

/// The packages of one release; the first has to be there.
pub const PACKAGES: [&str; 3] = ["cuda", "cudart", "nvidia-ml"];

/// Where pkg-config looks by itself; `{triple}` is the compiler's target.
const DIRS: [&str; 6] = [
    "/usr/local/lib/{triple}/pkgconfig",
    "/usr/local/lib/pkgconfig",
    "/usr/local/share/pkgconfig",
    "/usr/lib/{triple}/pkgconfig",
    "/usr/lib/pkgconfig",
    "/usr/lib64/pkgconfig",
];

/// The files of the releases that there are: those of the directories that a
/// variable names first, then the newest.
pub fn releases(host: &Host, triple: &str) -> Vec<Vec<Utf8PathBuf>> {
    let (named, usual) = dirs(host, triple);
    [named, usual].iter().flat_map(|dirs| releases_in(dirs)).collect()
}

fn releases_in(dirs: &[Utf8PathBuf]) -> Vec<Vec<Utf8PathBuf>> {
    let mut found: Vec<(CudaVersion, Utf8PathBuf)> = Vec::new();
    for dir in dirs {
        for name in fs::names(dir) {
            let version = name.strip_prefix("cuda-").and_then(|rest| rest.strip_suffix(".pc"));
            if let Some(version) = version.and_then(|text| text.parse().ok())
                && !found.iter().any(|(known, _)| *known == version)
            {
                found.push((version, dir.clone()));
            }
        }
    }
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    let files = |version: CudaVersion, dir: &Utf8Path| -> Vec<Utf8PathBuf> {
        let named = PACKAGES.iter().map(|name| dir.join(format!("{name}-{version}.pc")));
        named.filter(|file| file.is_file()).collect()
    };
    found.into_iter().map(|(version, dir)| files(version, &dir)).collect()
}

/// The directories that variables name, and those that pkg-config looks at
/// else; `PKG_CONFIG_LIBDIR` stands in their place.
fn dirs(host: &Host, triple: &str) -> (Vec<Utf8PathBuf>, Vec<Utf8PathBuf>) {
    let listed = |name: &str| -> Vec<Utf8PathBuf> {
        let text = host.env.get(name).unwrap_or_default();
        let dirs = text.split(':').map(Utf8PathBuf::from);
        dirs.filter(|dir| dir.is_absolute()).collect()
    };
    let named = listed(env_vars::PKG_CONFIG_PATH);
    if host.env.get(env_vars::PKG_CONFIG_LIBDIR).is_some() {
        return (named, listed(env_vars::PKG_CONFIG_LIBDIR));
    }
    let prefix = host.env.get(ROOT_VARIABLE).unwrap_or("");
    let usual = DIRS.iter().map(|dir| format!("{prefix}{}", dir.replace("{triple}", triple)));
    (named, usual.map(Utf8PathBuf::from).collect())
}

/// The root of an installation that a package's directories lie in.
pub fn root(include_dir: &Utf8Path) -> Option<&Utf8Path> {
    let above = include_dir.parent()?;
    // `ROOT/targets/x86_64-linux/include`
    match above.parent().filter(|dir| dir.file_name() == Some("targets")) {
        Some(targets) => targets.parent(),
        None => Some(above),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{
        env::Snapshot,
        fs::{Scratch, create_dir_all, write_if_changed},
        process::Runner,
    };

    #[test]
    fn the_newest_release_comes_first_and_named_directories_before_it() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path();
        for name in [
            "usr/lib/pkgconfig/cuda-12.4.pc",
            "usr/lib/pkgconfig/cudart-12.4.pc",
            "usr/lib/t/pkgconfig/cuda-12.10.pc",
            "usr/lib/pkgconfig/cuda-abc.pc",
            "usr/lib/pkgconfig/cudart-13.0.pc",
            "own/cuda-11.8.pc",
        ] {
            create_dir_all(root.join(name).parent().unwrap()).unwrap();
            write_if_changed(&root.join(name), b"", 0o644).unwrap();
        }
        let own = root.join("own");
        let host = |pairs: &[(&str, &str)]| Host {
            env: Snapshot::from_pairs(pairs.iter().copied()),
            cwd: "/".into(),
            runner: Runner::new(),
        };
        let with_path = host(&[(ROOT_VARIABLE, root.as_str()), ("PKG_CONFIG_PATH", own.as_str())]);
        let found: Vec<Vec<String>> = releases(&with_path, "t")
            .iter()
            .map(|files| files.iter().map(|file| file.file_name().unwrap().to_owned()).collect())
            .collect();
        let expected: [&[&str]; 3] =
            [&["cuda-11.8.pc"], &["cuda-12.10.pc"], &["cuda-12.4.pc", "cudart-12.4.pc"]];
        assert_eq!(found, expected);
        let only = host(&[(ROOT_VARIABLE, root.as_str()), ("PKG_CONFIG_LIBDIR", own.as_str())]);
        assert_eq!(releases(&only, "t"), [[own.join("cuda-11.8.pc")]]);
    }

    #[test]
    fn the_root_is_above_the_headers() {
        for (dir, expected) in [
            ("/c/include", "/c"),
            ("/c/targets/x86_64-linux/include", "/c"),
            ("/usr/include", "/usr"),
        ] {
            assert_eq!(root(Utf8Path::new(dir)).unwrap(), expected);
        }
    }
}
