//! The recipes: what they say, and the trees that they make.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use crate::engine::{gdrcopy, toolkit};

/// A recipe.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    /// Its file's name.
    #[serde(skip)]
    pub(super) file: String,
    pub(super) row: String,
    /// For people.
    #[serde(rename = "title")]
    _title: String,
    #[serde(default = "usual")]
    pub(super) toolkit: String,
    tree: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) run: Vec<RunCase>,
    #[serde(default)]
    pub(super) layout: Vec<LayoutCase>,
}

fn usual() -> String {
    "12.5".to_owned()
}

/// One run of the tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunCase {
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) only_on: Option<String>,
    pub(super) needs: Option<String>,
    pub(super) missing: Option<String>,
    pub(super) found_by: Option<String>,
    pub(super) include: Option<Vec<String>>,
    pub(super) libraries: Option<Vec<String>>,
    pub(super) stubs: Option<Vec<String>>,
    pub(super) gdrcopy: Option<Vec<String>>,
    pub(super) real_root: Option<String>,
    pub(super) nvcc: Option<String>,
    #[serde(default)]
    pub(super) linked: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) classes: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) words: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    #[serde(default)]
    pub(super) says: Vec<String>,
    pub(super) hint: Option<String>,
}

/// What a root comes to for a machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutCase {
    pub(super) only_on: Option<String>,
    pub(super) machine: String,
    pub(super) root: String,
    pub(super) include: Vec<String>,
    pub(super) libraries: Vec<String>,
    #[serde(default)]
    pub(super) stubs: Vec<String>,
    #[serde(default)]
    pub(super) driver: Vec<String>,
}

/// Every recipe, by the names of the files.
pub(super) fn all() -> Vec<Recipe> {
    let dir = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/layouts");
    let names = ucx_configure::host::fs::names(&dir);
    let named = names.into_iter().filter(|name| name.ends_with(".toml"));
    named
        .map(|file| {
            let text = fs::read_to_string(dir.join(&file)).unwrap();
            let recipe: Recipe =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(file.starts_with('L') && !recipe.run.is_empty(), "{file}");
            Recipe { file, ..recipe }
        })
        .collect()
}

/// What the marks in a recipe stand for.
pub(super) struct Marks {
    pub(super) root: Utf8PathBuf,
    pub(super) machine: String,
    stub: Utf8PathBuf,
}

impl Marks {
    pub(super) fn here(root: &Utf8Path, stub: &Utf8Path) -> Self {
        let machine = std::env::consts::ARCH.to_owned();
        Self { root: root.to_owned(), machine, stub: stub.to_owned() }
    }

    /// The text with its marks filled in.
    pub(super) fn fill(&self, text: &str) -> String {
        let (target, other) = match self.machine.as_str() {
            "aarch64" => ("sbsa-linux", "x86_64-linux"),
            _ => ("x86_64-linux", "sbsa-linux"),
        };
        text.replace("[ROOT]", self.root.as_str())
            .replace("[STUB]", self.stub.as_str())
            .replace("{machine}", &self.machine)
            .replace("{triple}", &format!("{}-linux-gnu", self.machine))
            .replace("{target}", target)
            .replace("{other}", other)
    }

    /// A path below the tree.
    pub(super) fn below(&self, path: &str) -> String {
        let below = path.strip_prefix(self.root.as_str());
        below.map_or(path, |path| path.trim_start_matches('/')).to_owned()
    }
}

impl Recipe {
    /// Makes the tree.
    pub(super) fn make(&self, marks: &Marks) {
        for (path, body) in &self.tree {
            let path = marks.root.join(marks.fill(path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            self.body(&path, &marks.fill(body), marks);
        }
    }

    fn body(&self, path: &Utf8Path, body: &str, marks: &Marks) {
        let stub = toolkit(&self.toolkit);
        let copy = |from: Utf8PathBuf| {
            assert!(fs::copy(&from, path).is_ok(), "{}: {from}", self.file);
        };
        let (word, rest) = body.split_once(' ').unwrap_or((body, ""));
        match (word, rest) {
            ("->", target) => std::os::unix::fs::symlink(target, path).unwrap(),
            ("dir", "") => fs::create_dir_all(path).unwrap(),
            ("empty", "") => fs::write(path, "").unwrap(),
            ("text", text) => fs::write(path, text).unwrap(),
            ("elf32", "") => fs::write(path, elf(1, 3)).unwrap(),
            ("elf", machine) => fs::write(path, elf(2, number(machine))).unwrap(),
            ("headers", which) => self.headers(path, which, &stub.join("include")),
            ("cache", entries) => fs::write(path, loader_cache(entries)).unwrap(),
            ("nvml.h", "") => copy(stub.join("include/nvml.h")),
            ("libcuda", "") => copy(stub.join("lib64/stubs/libcuda.so")),
            ("libnvidia-ml", "") => copy(stub.join("lib64/stubs/libnvidia-ml.so")),
            ("libcudart", "") => copy(stub.join("lib64/libcudart.so")),
            ("libcudart_static", "") => copy(stub.join("lib64/libcudart_static.a")),
            ("libgdrapi", "") => copy(gdrcopy("2.5").join("lib/libgdrapi.so")),
            ("nvcc", rest) => {
                let (release, home) = rest.split_once(" at ").unwrap_or((rest, ""));
                fs::write(path, nvcc(release, home, path, marks)).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            _ => panic!("{}: `{body}` is no body", self.file),
        }
    }

    fn headers(&self, to: &Utf8Path, which: &str, from: &Utf8Path) {
        match which {
            "" => copy_headers(from, to, |_| true),
            "of cuda" => copy_headers(from, to, |name| name != "nvml.h"),
            "of nvml" => {
                copy_headers(from, to, |name| name == "nvml.h" || name.starts_with("ucx_stub"))
            }
            "with crt" => {
                copy_headers(from, to, |name| name != "nvml.h");
                let path = to.join("cuda_runtime.h");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(&path, format!("#include \"crt/host_config.h\"\n{text}")).unwrap();
            }
            "of gdrcopy" => copy_headers(&gdrcopy("2.5").join("include"), to, |_| true),
            "of old gdrcopy" => {
                fs::create_dir_all(to).unwrap();
                fs::write(to.join("gdrapi.h"), OLD_GDRAPI_H).unwrap();
            }
            _ => panic!("{}: `headers {which}` is no body", self.file),
        }
    }
}

/// What gdrcopy 1.x declares of what is asked about.
const OLD_GDRAPI_H: &str = "#include <stddef.h>\n#include <stdint.h>\n\
     typedef struct gdr *gdr_t;\ntypedef unsigned gdr_mh_t;\n\
     int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t token,\n\
     uint32_t space, gdr_mh_t *handle);\n\
     int gdr_copy_to_bar(void *bar, const void *from, size_t size);\n";

fn copy_headers(from: &Utf8Path, to: &Utf8Path, wanted: fn(&str) -> bool) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if !wanted(name) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy_headers(entry.path(), &to.join(name), |_| true);
        } else {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// The first bytes of an ELF file.
fn elf(class: u8, machine: u16) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    bytes[16] = 3;
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes
}

/// The loader's cache with `NAME=PATH`, as ldconfig writes it.
fn loader_cache(entries: &str) -> Vec<u8> {
    let entries: Vec<(&str, &str)> =
        entries.split(' ').map(|entry| entry.split_once('=').unwrap()).collect();
    let mut table = b"glibc-ld.so.cache1.1".to_vec();
    table.extend(u32::try_from(entries.len()).unwrap().to_ne_bytes());
    table.resize(48, 0);
    let mut strings = Vec::new();
    for (name, path) in &entries {
        let mut add = |text: &str| {
            let at = 48 + entries.len() * 24 + strings.len();
            strings.extend(text.bytes().chain([0]));
            u32::try_from(at).unwrap().to_ne_bytes()
        };
        let (name, path) = (add(name), add(path));
        table.extend(0x0303u32.to_ne_bytes().into_iter().chain(name).chain(path));
        table.extend([0; 12]);
    }
    table.extend(strings);
    table
}

/// A machine's number in ELF files.
fn number(machine: &str) -> u16 {
    match machine {
        "x86_64" => 62,
        "aarch64" => 183,
        "powerpc64le" => 21,
        _ => panic!("{machine} has no number here"),
    }
}

/// A script that does what an nvcc would, as far as it is asked.
fn nvcc(release: &str, home: &str, path: &Utf8Path, marks: &Marks) -> String {
    let bin = path.parent().unwrap();
    let top = if home.is_empty() { format!("{bin}/..") } else { home.to_owned() };
    let include = marks.fill("targets/{target}/include");
    format!(
        "#!/bin/sh\ncase \"$*\" in\n\
         *--version*) echo 'Cuda compilation tools, release {release}, V{release}.1'; exit 0;;\n\
         *--dryrun*) echo '#$ TOP={top}' >&2; echo '#$ INCLUDES=\"-I{top}/{include}\"  ' >&2; exit 0;;\n\
         esac\n\
         while [ $# -gt 0 ]; do\n  [ \"$1\" = -o ] && : > \"$2\"\n  [ \"$1\" = -MF ] && echo 'probe.o:' > \"$2\"\n  shift\ndone\n"
    )
}
