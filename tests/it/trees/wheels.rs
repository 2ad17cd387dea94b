//! Toolkits from NVIDIA's wheels, in the shape of /usr/local/cuda.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::{fs, os::unix::fs::PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};

use super::{Trees, stubs, tool};

/// A toolkit, and the wheels that it is made of.
#[derive(Debug)]
pub(crate) struct Toolkit {
    /// Its version, which is its directory's name.
    pub(crate) version: &'static str,
    wheels: &'static [&'static str],
}

const fn toolkit(version: &'static str, wheels: &'static [&'static str]) -> Toolkit {
    Toolkit { version, wheels }
}

/// The twelve.
pub(crate) const TOOLKITS: &[Toolkit] = &[
    toolkit(
        "11.7",
        &[
            "nvidia-cuda-runtime-cu11==11.7.99",
            "nvidia-nvml-dev-cu11==11.7.91",
            "nvidia-cuda-nvcc-cu11==11.7.99",
        ],
    ),
    toolkit(
        "11.8",
        &[
            "nvidia-cuda-runtime-cu11==11.8.89",
            "nvidia-nvml-dev-cu11==11.8.86",
            "nvidia-cuda-nvcc-cu11==11.8.89",
        ],
    ),
    toolkit(
        "12.0",
        &[
            "nvidia-cuda-runtime-cu12==12.0.146",
            "nvidia-nvml-dev-cu12==12.0.140",
            "nvidia-cuda-nvcc-cu12==12.0.140",
        ],
    ),
    toolkit(
        "12.1",
        &[
            "nvidia-cuda-runtime-cu12==12.1.105",
            "nvidia-nvml-dev-cu12==12.1.105",
            "nvidia-cuda-nvcc-cu12==12.1.105",
        ],
    ),
    toolkit(
        "12.2",
        &[
            "nvidia-cuda-runtime-cu12==12.2.140",
            "nvidia-nvml-dev-cu12==12.2.140",
            "nvidia-cuda-nvcc-cu12==12.2.140",
        ],
    ),
    toolkit(
        "12.3",
        &[
            "nvidia-cuda-runtime-cu12==12.3.101",
            "nvidia-nvml-dev-cu12==12.3.101",
            "nvidia-cuda-nvcc-cu12==12.3.107",
        ],
    ),
    toolkit(
        "12.4",
        &[
            "nvidia-cuda-runtime-cu12==12.4.127",
            "nvidia-nvml-dev-cu12==12.4.127",
            "nvidia-cuda-nvcc-cu12==12.4.131",
        ],
    ),
    toolkit(
        "12.5",
        &[
            "nvidia-cuda-runtime-cu12==12.5.82",
            "nvidia-nvml-dev-cu12==12.5.82",
            "nvidia-cuda-nvcc-cu12==12.5.82",
        ],
    ),
    toolkit(
        "12.8",
        &[
            "nvidia-cuda-runtime-cu12==12.8.90",
            "nvidia-nvml-dev-cu12==12.8.90",
            "nvidia-cuda-nvcc-cu12==12.8.93",
        ],
    ),
    toolkit(
        "12.9",
        &[
            "nvidia-cuda-runtime-cu12==12.9.79",
            "nvidia-nvml-dev-cu12==12.9.79",
            "nvidia-cuda-nvcc-cu12==12.9.86",
        ],
    ),
    toolkit(
        "13.0",
        &[
            "nvidia-cuda-runtime==13.0.96",
            "nvidia-nvml-dev==13.0.87",
            "nvidia-cuda-crt==13.0.88",
            "nvidia-cuda-nvcc==13.0.88",
            "nvidia-nvvm==13.0.88",
            "nvidia-cuda-cccl==13.0.85",
        ],
    ),
    toolkit(
        "13.5",
        &[
            "nvidia-cuda-runtime==13.5.37",
            "nvidia-nvml-dev==13.5.37",
            "nvidia-cuda-crt==13.5.37",
            "nvidia-cuda-nvcc==13.5.37",
            "nvidia-nvvm==13.5.37",
            "nvidia-cuda-cccl==13.3.5.0.6",
        ],
    ),
];

/// The libraries that a toolkit keeps of a wheel's `lib`.
const LIBRARIES: [&str; 3] = ["libcudart", "libcudadevrt", "libculibos"];

impl Toolkit {
    /// Makes it, unless it is there.
    pub(super) fn make(&self, trees: &Trees) {
        let dir = trees.toolkit(self.version);
        if dir.join(".done").exists() {
            return;
        }
        let _ = fs::remove_dir_all(&dir);
        for part in ["include", "lib64/stubs", "bin"] {
            fs::create_dir_all(dir.join(part)).unwrap();
        }
        let downloads = trees.root.join("wheels").join(self.version);
        let pip = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d"];
        for wheel in self.wheels {
            tool("python3", &[&pip[..], &[downloads.as_str(), wheel]].concat());
        }
        let unpacked = downloads.join("unpacked");
        let wheels: Vec<_> = downloads.read_dir_utf8().unwrap().map(Result::unwrap).collect();
        for wheel in wheels {
            let args = ["-m", "zipfile", "-e", wheel.path().as_str(), unpacked.as_str()];
            tool("python3", &args);
        }
        assemble(&unpacked, &unpacked, &dir);
        complete(&dir);
        fs::write(dir.join(".done"), "").unwrap();
        // The trees stand on their own; the wheels are 300 MB.
        fs::remove_dir_all(downloads).unwrap();
    }
}

/// Puts what wheels hold where a toolkit has it.
fn assemble(root: &Utf8Path, from: &Utf8Path, dir: &Utf8Path) {
    for entry in from.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            assemble(root, entry.path(), dir);
            continue;
        }
        let name = entry.path().strip_prefix(root).unwrap();
        let Some(target) = place(name.as_str(), dir) else { continue };
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::rename(entry.path(), &target).unwrap();
        let programs = ["bin", "nvvm/bin"].map(|bin| dir.join(bin));
        if programs.iter().any(|bin| target.parent() == Some(bin)) {
            fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

/// Where a file of a wheel (`nvidia/PART/KIND/...`) goes.
fn place(name: &str, dir: &Utf8Path) -> Option<Utf8PathBuf> {
    let parts: Vec<&str> = name.split('/').collect();
    let ["nvidia", _, kind, rest @ ..] = &parts[..] else { return None };
    let rest = rest.join("/");
    match *kind {
        "include" if !rest.ends_with("__init__.py") => Some(dir.join("include").join(rest)),
        "lib" if LIBRARIES.iter().any(|name| rest.starts_with(name)) && !rest.contains('/') => {
            Some(dir.join("lib64").join(rest))
        }
        "bin" | "nvvm" => Some(dir.join(kind).join(rest)),
        _ => None,
    }
}

/// Adds what wheels do not hold: the link name of libcudart, and stubs to link
/// with of the libraries that a driver brings.
fn complete(dir: &Utf8Path) {
    let libraries = dir.join("lib64");
    let runtime = libraries
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .find(|name| name.starts_with("libcudart.so."))
        .unwrap();
    std::os::unix::fs::symlink(runtime, libraries.join("libcudart.so")).unwrap();
    let stub = |header: &str, soname: &str, name: &str| {
        let header = fs::read_to_string(dir.join("include").join(header)).unwrap();
        let names = stubs::declared(&header);
        assert!(names.len() > 200, "{soname}: {} functions", names.len());
        stubs::make(&libraries.join("stubs").join(name), soname, &names);
    };
    stub("cuda.h", "libcuda.so.1", "libcuda.so");
    stub("nvml.h", "libnvidia-ml.so.1", "libnvidia-ml.so");
}
