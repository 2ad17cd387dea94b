//! A toolkit with one thing changed.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::{fs, os::unix::fs::PermissionsExt as _};

use camino::Utf8Path;

use super::{Trees, link_tree, put, stubs, tool};

/// One change of a tree; the tree of the toolkit that it starts from is a copy.
#[derive(Debug)]
pub(crate) struct Variation {
    /// The name of its directory.
    pub(crate) name: &'static str,
    /// The toolkit that it starts from.
    pub(crate) base: &'static str,
    /// The change, to be made in the copy.
    pub(crate) change: fn(&Utf8Path),
}

const fn of_12_8(name: &'static str, change: fn(&Utf8Path)) -> Variation {
    Variation { name, base: "12.8", change }
}

/// Every variation that is a changed toolkit.
pub(crate) const VARIATIONS: &[Variation] = &[
    of_12_8("nonvmlh", |dir| remove(dir, "include/nvml.h")),
    of_12_8("nonvmllib", |dir| remove(dir, "lib64/stubs/libnvidia-ml.so")),
    of_12_8("nocudart", |dir| remove_named(dir, "lib64", "libcudart")),
    of_12_8("nocudartlink", |dir| remove(dir, "lib64/libcudart.so")),
    of_12_8("nolibcuda", |dir| remove(dir, "lib64/stubs/libcuda.so")),
    of_12_8("nocudah", |dir| remove(dir, "include/cuda.h")),
    of_12_8("nocudarth", |dir| remove(dir, "include/cuda_runtime.h")),
    of_12_8("nocrt", |dir| fs::remove_dir_all(dir.join("include/crt")).unwrap()),
    of_12_8("noinclude", |dir| fs::remove_dir_all(dir.join("include")).unwrap()),
    of_12_8("stubsonly", |dir| {
        for name in names(&dir.join("lib64"), "libcudart.so") {
            rename(dir, &format!("lib64/{name}"), &format!("lib64/stubs/{name}"));
        }
    }),
    of_12_8("libonly", |dir| rename(dir, "lib64", "lib")),
    of_12_8("bothempty", |dir| {
        rename(dir, "lib64", "lib");
        fs::create_dir(dir.join("lib64")).unwrap();
    }),
    of_12_8("bothfull", |dir| link_tree(&dir.join("lib64"), &dir.join("lib"))),
    of_12_8("lib64file", |dir| {
        rename(dir, "lib64", "lib");
        put(&dir.join("lib64"), "");
    }),
    of_12_8("lib64dangling", |dir| {
        rename(dir, "lib64", "lib");
        link("nowhere", &dir.join("lib64"));
    }),
    of_12_8("sp ace", |_| ()),
    of_12_8("targets", |dir| {
        to_targets(dir);
        link("targets/x86_64-linux/include", &dir.join("include"));
        link("targets/x86_64-linux/lib", &dir.join("lib64"));
    }),
    of_12_8("targetsonly", to_targets),
    of_12_8("txtlibcuda", |dir| put(&dir.join("lib64/stubs/libcuda.so"), "not-elf\n")),
    of_12_8("emptylibcuda", |dir| put(&dir.join("lib64/stubs/libcuda.so"), "")),
    of_12_8("lib32", |dir| another_machine(&dir.join("lib64/stubs/libcuda.so"))),
    of_12_8("nogetuuid", |dir| without(dir, "lib64/stubs/libcuda.so", "cuDeviceGetUuid*")),
    of_12_8("getuuidv2only", |dir| without(dir, "lib64/stubs/libcuda.so", "cuDeviceGetUuid")),
    of_12_8("noretain", |dir| {
        without(dir, "lib64/stubs/libcuda.so", "cuMemRetainAllocationHandle");
    }),
    of_12_8("nonvmlinit", |dir| without(dir, "lib64/stubs/libnvidia-ml.so", "nvmlInit")),
    of_12_8("nocudagdc", |dir| {
        let runtime = runtime(dir);
        without(dir, &format!("lib64/{runtime}"), "cudaGetDeviceCount");
    }),
    Variation {
        name: "static-nocudart",
        base: "12.9",
        change: |dir| remove_named(dir, "lib64", "libcudart.so"),
    },
    Variation {
        name: "brokenstatic",
        base: "12.9",
        change: |dir| put(&dir.join("lib64/libcudart_static.a"), "!<arch>\n"),
    },
    of_12_8("fakenvcc-ok", |dir| nvcc(dir, "exit 0", 0o755)),
    of_12_8("fakenvcc-bad", |dir| nvcc(dir, "echo nvcc: broken >&2; exit 1", 0o755)),
    of_12_8("fakenvcc-nox", |dir| nvcc(dir, "exit 0", 0o644)),
    of_12_8("badcudah", |dir| put(&dir.join("include/cuda.h"), "#error broken cuda.h\n")),
    of_12_8("onlyso1", |dir| {
        rename(dir, "lib64/stubs/libcuda.so", "lib64/stubs/libcuda.so.1");
    }),
    of_12_8("semi;colon", |_| ()),
    of_12_8("a$HOME", |_| ()),
];

/// Makes them all, and what is no toolkit.
pub(super) fn make(trees: &Trees) {
    let root = trees.variations();
    for variation in VARIATIONS {
        variation.make(&trees.toolkit(variation.base), &root);
    }
    make_oddities(&root);
}

/// What is no changed toolkit: a link to one, a file, an empty directory.
pub(crate) fn make_oddities(root: &Utf8Path) {
    link(root.join("targets").as_str(), &root.join("cuda-symlink"));
    put(&root.join("afile"), "");
    fs::create_dir(root.join("emptydir")).unwrap();
}

impl Variation {
    /// Makes the changed copy of a toolkit below `root`.
    pub(crate) fn make(&self, toolkit: &Utf8Path, root: &Utf8Path) {
        let dir = root.join(self.name);
        link_tree(toolkit, &dir);
        (self.change)(&dir);
    }
}

fn remove(dir: &Utf8Path, path: &str) {
    fs::remove_file(dir.join(path)).unwrap();
}

fn names(dir: &Utf8Path, prefix: &str) -> Vec<String> {
    let names: Vec<String> = dir
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .filter(|name| name.starts_with(prefix))
        .collect();
    assert!(!names.is_empty(), "{dir}: nothing is called {prefix}...");
    names
}

fn remove_named(dir: &Utf8Path, sub: &str, prefix: &str) {
    for name in names(&dir.join(sub), prefix) {
        remove(dir, &format!("{sub}/{name}"));
    }
}

fn rename(dir: &Utf8Path, from: &str, to: &str) {
    fs::rename(dir.join(from), dir.join(to)).unwrap();
}

fn link(target: &str, path: &Utf8Path) {
    std::os::unix::fs::symlink(target, path).unwrap();
}

/// The file that libcudart.so leads to.
fn runtime(dir: &Utf8Path) -> String {
    dir.join("lib64/libcudart.so").canonicalize_utf8().unwrap().file_name().unwrap().to_owned()
}

/// The shape that cross-compiling toolkits have.
fn to_targets(dir: &Utf8Path) {
    fs::create_dir_all(dir.join("targets/x86_64-linux")).unwrap();
    rename(dir, "include", "targets/x86_64-linux/include");
    rename(dir, "lib64", "targets/x86_64-linux/lib");
}

/// Replaces a library by one that lacks a symbol; a `*` at the end stands for
/// every name that begins so.
fn without(dir: &Utf8Path, library: &str, symbol: &str) {
    let path = dir.join(library);
    let names = stubs::exported(&path, |name| match symbol.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == symbol,
    });
    let file = path.file_name().unwrap();
    let soname = if file.ends_with(".so") { format!("{file}.1") } else { file.to_owned() };
    stubs::make(&path, &soname, &names);
}

/// Replaces a library by one for a machine that nobody here compiles for.
fn another_machine(library: &Utf8Path) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(scratch.path()).unwrap();
    let [source, wide, narrow] = ["s.c", "s.o", "s32.o"].map(|name| dir.join(name));
    fs::write(&source, "int cuDeviceGetUuid(void) { return 1; }\n").unwrap();
    tool("cc", &["-c", source.as_str(), "-o", wide.as_str()]);
    let formats = ["-I", "elf64-x86-64", "-O", "elf32-i386"];
    tool("objcopy", &[&formats[..], &[wide.as_str(), narrow.as_str()]].concat());
    fs::remove_file(library).unwrap();
    let head = ["-m", "elf_i386", "-shared", "-soname", "libcuda.so.1", "-o", library.as_str()];
    tool("ld", &[&head[..], &[narrow.as_str()]].concat());
}

pub(super) fn nvcc(dir: &Utf8Path, script: &str, mode: u32) {
    fs::create_dir_all(dir.join("bin")).unwrap();
    let path = dir.join("bin/nvcc");
    put(&path, &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}
