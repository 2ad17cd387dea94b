//! Where drivers put libcuda and libnvidia-ml: a toolkit has stubs of them at
//! most, and some toolkits have not even those.

use camino::{Utf8Path, Utf8PathBuf};

use super::{loader_cache, source::ROOT_VARIABLE};
use crate::host::{Host, fs};

/// The directories, in the order of the search; `{triple}` is the compiler's
/// target. Then comes the loader's cache.
pub const DRIVER_DIRS: &[(&str, &str)] = &[
    ("/usr/lib/{triple}", "Debian, Ubuntu"),
    ("/usr/lib64", "Fedora, RHEL, SUSE"),
    ("/usr/lib", "Arch"),
    ("/usr/lib/{triple}/nvidia/current", "Debian, before alternatives"),
    ("/usr/lib64/nvidia", "older packages"),
    ("/usr/lib/{triple}/nvidia", "Jetson"),
    ("/usr/lib/{triple}/tegra", "Jetson before JetPack 6"),
    ("/usr/lib/wsl/lib", "WSL 2"),
    ("/run/opengl-driver/lib", "NixOS"),
    ("/usr/local/nvidia/lib64", "containers"),
    ("/usr/local/nvidia/lib", "containers"),
];

/// The loader's cache.
pub const CACHE: &str = "/etc/ld.so.cache";

/// Where the driver's libraries are looked for, for people.
pub fn looked_in(triple: &str) -> String {
    let dirs = DRIVER_DIRS.iter().map(|(dir, _)| format!("`{}`", dir.replace("{triple}", triple)));
    format!("{}, or the loader's cache, `{CACHE}`", dirs.collect::<Vec<_>>().join(", "))
}

/// The directories that may hold the driver's libraries; those of `sysroot`
/// before those of the machine.
pub fn dirs(host: &Host, triple: &str, sysroot: Option<&Utf8Path>) -> Vec<Utf8PathBuf> {
    let prefix = Utf8Path::new(host.env.get(ROOT_VARIABLE).unwrap_or(""));
    let mut found: Vec<Utf8PathBuf> = Vec::new();
    for prefix in sysroot.into_iter().chain([prefix]) {
        let under = |path: &str| Utf8PathBuf::from(format!("{}{path}", prefix.as_str()));
        let named = DRIVER_DIRS.iter().map(|(dir, _)| under(&dir.replace("{triple}", triple)));
        let cache = fs::read(&under(CACHE)).unwrap_or_default();
        let cached = ["libcuda.so.1", "libnvidia-ml.so.1"].into_iter().flat_map(|name| {
            let dirs = loader_cache::paths(&cache, name).into_iter();
            dirs.filter_map(|path| Some(under(Utf8Path::new(&path).parent()?.as_str())))
        });
        for dir in named.chain(cached) {
            if !found.contains(&dir) && dir.is_dir() {
                found.push(dir);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{env::Snapshot, fs::Scratch, process::Runner};

    #[test]
    fn a_sysroot_comes_before_the_machine() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path();
        for dir in ["one/usr/lib64", "two/usr/lib/wsl/lib", "two/usr/lib/t"] {
            fs::create_dir_all(&root.join(dir)).unwrap();
        }
        let (one, two) = (root.join("one"), root.join("two"));
        let env = Snapshot::from_pairs([(ROOT_VARIABLE, two.as_str())]);
        let host = Host { env, cwd: "/".into(), runner: Runner::new() };
        let expected = [
            one.join("usr/lib64"),
            one.join("usr/lib"),
            two.join("usr/lib/t"),
            two.join("usr/lib"),
            two.join("usr/lib/wsl/lib"),
        ];
        let found = dirs(&host, "t", Some(&one));
        let expected: Vec<_> = expected.iter().filter(|dir| dir.is_dir()).cloned().collect();
        assert_eq!(found, expected);
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
