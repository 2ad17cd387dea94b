//! Which directories of a tree count.

use super::*;
use crate::host::{
    env::Snapshot,
    fs::{Scratch, create_dir_all, symlink, write_if_changed},
    process::Runner,
};

fn tree(files: &[&str]) -> Scratch {
    let scratch = Scratch::new(None).unwrap();
    for file in files {
        let path = scratch.path().join(file);
        create_dir_all(path.parent().unwrap()).unwrap();
        // A linker script, which is of no machine.
        write_if_changed(&path, b"INPUT(x)", 0o644).unwrap();
    }
    scratch
}

fn below(scratch: &Scratch, dirs: &[Utf8PathBuf]) -> Vec<String> {
    dirs.iter().map(|dir| dir.strip_prefix(scratch.path()).unwrap().to_string()).collect()
}

/// A machine of one's own, without a driver.
fn host() -> Host {
    let env = Snapshot::from_pairs([("UCX_CONFIGURE_ROOT", "/nonexistent")]);
    Host { env, cwd: "/".into(), runner: Runner::new() }
}

fn target<'a>(machine: &'a str, host: &'a Host) -> Target<'a> {
    let triple = match machine {
        "aarch64" => "aarch64-linux-gnu",
        _ => "x86_64-linux-gnu",
    };
    Target { machine, triple, host }
}

fn cuda(root: &Utf8Path, machine: &str) -> Layout {
    Layout::cuda(root, &target(machine, &host()))
}

#[test]
fn a_directory_counts_by_what_it_holds() {
    let scratch = tree(&["include/cuda.h", "lib/libcudart.so", "lib/stubs/libcuda.so"]);
    create_dir_all(&scratch.path().join("lib64")).unwrap();
    let layout = cuda(scratch.path(), "x86_64");
    assert_eq!(below(&scratch, &layout.include_dirs), ["include"]);
    assert_eq!(below(&scratch, &layout.link_dirs()), ["lib", "lib/stubs"]);
    assert!(layout.header("cuda.h").is_some() && layout.header("nvml.h").is_none());
    assert_eq!(layout.ldflags().len(), 2);
}

#[test]
fn targets_count_once() {
    let scratch = tree(&[
        "targets/x86_64-linux/include/cuda.h",
        "targets/x86_64-linux/lib/libcudart.so",
        "targets/sbsa-linux/lib/libcudart.so",
    ]);
    let layout = cuda(scratch.path(), "x86_64");
    assert_eq!(below(&scratch, &layout.library_dirs), ["targets/x86_64-linux/lib"]);
    let other = cuda(scratch.path(), "aarch64");
    assert_eq!(below(&scratch, &other.library_dirs), ["targets/sbsa-linux/lib"]);
    symlink("targets/x86_64-linux/lib", &scratch.path().join("lib64")).unwrap();
    let layout = cuda(scratch.path(), "x86_64");
    assert_eq!(below(&scratch, &layout.library_dirs), ["lib64"]);
}

#[test]
fn gdrcopy_and_its_libdir() {
    let scratch = tree(&["include/gdrapi.h", "lib/libgdrapi.so", "other/libgdrapi.so"]);
    let layout = Layout::gdrcopy(Some(scratch.path()), None, &target("x86_64", &host()));
    assert_eq!(below(&scratch, &layout.library_dirs), ["lib"]);
    let other = scratch.path().join("other");
    let layout = Layout::gdrcopy(Some(scratch.path()), Some(&other), &target("x86_64", &host()));
    assert_eq!(below(&scratch, &layout.library_dirs), ["other"]);
}

#[test]
fn what_the_compiler_searches_is_not_named() {
    let layout = Layout { include_dirs: vec!["/usr/include".into()], ..Layout::default() };
    assert!(layout.cppflags().is_empty());
    let scratch = tree(&["libcuda.so.1", "libcudart.so"]);
    let dirs = [scratch.path().to_owned()];
    assert_eq!(versioned_names(&dirs, "cuda"), [scratch.path().join("libcuda.so.1")]);
}

#[test]
fn a_toolkit_for_two_machines_gives_each_its_own() {
    let scratch = tree(&[
        "targets/x86_64-linux/include/cuda.h",
        "targets/x86_64-linux/lib/libcudart.so",
        "targets/sbsa-linux/include/cuda.h",
        "targets/sbsa-linux/lib/libcudart.so",
    ]);
    for (link, target) in [("include", "include"), ("lib64", "lib")] {
        let path = scratch.path().join(link);
        symlink(&format!("targets/x86_64-linux/{target}"), &path).unwrap();
    }
    let layout = cuda(scratch.path(), "x86_64");
    assert_eq!(below(&scratch, &layout.include_dirs), ["include"]);
    assert_eq!(below(&scratch, &layout.library_dirs), ["lib64"]);
    let layout = cuda(scratch.path(), "aarch64");
    assert_eq!(below(&scratch, &layout.include_dirs), ["targets/sbsa-linux/include"]);
    assert_eq!(below(&scratch, &layout.library_dirs), ["targets/sbsa-linux/lib"]);
    let part = cuda(&scratch.path().join("targets/sbsa-linux"), "aarch64");
    assert_eq!(below(&scratch, &part.include_dirs), ["targets/sbsa-linux/include"]);
    let nvcc =
        [scratch.path().join("targets/sbsa-linux/bin/nvcc"), scratch.path().join("bin/nvcc")];
    assert_eq!(part.nvcc, nvcc);
}

#[test]
fn the_shortest_versioned_name_is_taken_where_there_is_no_link() {
    let scratch = tree(&[
        "include/cuda.h",
        "lib/libcudart.so.12.5.82",
        "lib/libcudart.so.12",
        "lib/libcuda.so.9",
        "lib/libcuda.so.10",
    ]);
    let layout = cuda(scratch.path(), "x86_64");
    assert_eq!(layout.link_word("cudart"), "-l:libcudart.so.12");
    assert_eq!(layout.link_word("cuda"), "-l:libcuda.so.10");
    assert_eq!(layout.link_word("nvidia-ml"), "-lnvidia-ml");
    assert_eq!(below(&scratch, &layout.link_dirs()), ["lib"]);
}

#[test]
fn parts_come_first_and_nvml_last_where_it_would_hide_the_rest() {
    let scratch = tree(&[
        "tk/include/cuda.h",
        "tk/lib64/libcudart.so",
        "crt/include/crt/host_config.h",
        "own/libcudart.so",
        "own/stubs/libcuda.so",
        "nvml/include/nvml.h",
        "nvml/lib/libnvidia-ml.so",
        "whole/include/cuda.h",
        "whole/include/nvml.h",
        "whole/lib64/libcudart.so",
        "whole/lib64/libnvidia-ml.so",
    ]);
    let path = |name: &str| scratch.path().join(name);
    let assemble = |root: Option<&str>, parts: &Parts| {
        let root = root.map(path);
        Layout::assemble(root.as_deref(), parts, &target("x86_64", &host()))
    };
    let mut parts = Parts {
        include_dirs: vec![path("crt/include")],
        library_dirs: vec![path("own")],
        nvml: Some(path("nvml")),
    };
    let layout = assemble(Some("tk"), &parts);
    let headers = ["nvml/include", "crt/include", "tk/include"];
    assert_eq!(below(&scratch, &layout.include_dirs), headers);
    assert_eq!(below(&scratch, &layout.link_dirs()), ["nvml/lib", "own", "own/stubs"]);
    parts.nvml = Some(path("whole"));
    let layout = assemble(Some("tk"), &parts);
    let headers = ["crt/include", "tk/include", "whole/include"];
    assert_eq!(below(&scratch, &layout.include_dirs), headers);
    assert_eq!(below(&scratch, &layout.library_dirs), ["own", "whole/lib64"]);
    // Without a root, headers alone say where the rest is.
    let only = Parts { include_dirs: vec![path("tk/include")], ..Parts::default() };
    assert_eq!(assemble(None, &only).root, Some(path("tk")));
    let split = Parts { library_dirs: vec![path("own")], ..only };
    let layout = assemble(None, &split);
    assert_eq!((layout.root.clone(), layout.is_scoped()), (None, true));
    assert_eq!(layout.described(), format!("`{}`", path("tk/include")));
}

#[test]
fn directories_that_linkers_search_are_known() {
    for dir in ["/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"] {
        assert!(is_built_in(Utf8Path::new(dir)), "{dir}");
    }
    for dir in ["/usr/lib/wsl/lib", "/usr/lib/cuda", "/x/usr/lib/x86_64-linux-gnu"] {
        assert!(!is_built_in(Utf8Path::new(dir)), "{dir}");
    }
}
