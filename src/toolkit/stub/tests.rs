//! Stub toolkits, made with the system's compiler.

use super::*;
use crate::{
    host::{env::Snapshot, fs::Scratch, process::Runner},
    request::Request,
    toolkit::place::is_complete,
    ui::Silent,
};

struct World {
    scratch: Scratch,
    host: Host,
    compiler: Compiler,
}

fn world() -> World {
    let scratch = Scratch::new(None).unwrap();
    let env = Snapshot::from_pairs([("PATH", "/usr/bin:/bin")]);
    let runner = Runner::with_environment(&env);
    let host = Host { env, cwd: scratch.path().to_owned(), runner };
    let request = Request::bare(scratch.path().join("build"));
    let compiler = Compiler::find(&request, &host, &mut Silent).unwrap();
    World { scratch, host, compiler }
}

fn soname(file: &Utf8Path) -> String {
    let bytes = fs::read(file).unwrap();
    crate::build::elf::Dynamic::read(&bytes).unwrap().soname.unwrap()
}

#[test]
fn every_version_is_made_in_the_shape_of_a_toolkit() {
    let World { scratch, host, compiler } = world();
    assert_eq!(versions().len(), 9);
    for version in versions() {
        let version: CudaVersion = version.parse().unwrap();
        let tree = materialise(version, scratch.path(), &compiler, &host, &mut Silent).unwrap();
        for file in ["include/cuda.h", "include/cuda_runtime.h", "include/nvml.h", "version.json"] {
            assert!(tree.join(file).is_file(), "{tree}/{file}");
        }
        assert_eq!(soname(&tree.join("lib64/stubs/libcuda.so")), "libcuda.so.1");
        assert_eq!(soname(&tree.join("lib64/stubs/libnvidia-ml.so")), "libnvidia-ml.so.1");
        assert!(tree.join("lib64/libcudart_static.a").is_file());
        let runtime = soname(&tree.join("lib64/libcudart.so"));
        assert!(runtime.starts_with("libcudart.so.1"), "{runtime}");
        let header = fs::read_to_string(&tree.join("include/ucx_stub_version.h")).unwrap();
        assert!(header.contains(&version.to_macro().to_string()), "{header}");
        assert!(!header.contains('@'));
    }
}

#[test]
fn gdrcopy_too() {
    let World { scratch, host, compiler } = world();
    for version in gdrcopy_versions() {
        let version: GdrVersion = version.parse().unwrap();
        let tree =
            materialise_gdrcopy(version, scratch.path(), &compiler, &host, &mut Silent).unwrap();
        assert!(tree.join("include/gdrapi.h").is_file());
        assert_eq!(soname(&tree.join("lib/libgdrapi.so")), "libgdrapi.so.2");
    }
}

#[test]
fn a_second_run_starts_no_compiler() {
    let World { scratch, host, compiler } = world();
    let version = CudaVersion::new(12, 5);
    let make = || materialise(version, scratch.path(), &compiler, &host, &mut Silent).unwrap();
    let before = host.runner.started();
    let tree = make();
    let runs = host.runner.started() - before;
    assert_eq!(runs, 5, "three shared libraries, one object, one archive");
    assert_eq!(make(), tree);
    assert_eq!(host.runner.started() - before, runs);
}

#[test]
fn a_compiler_that_fails_leaves_nothing() {
    let World { scratch, host, mut compiler } = world();
    compiler.command = vec!["false".to_owned()];
    let into = scratch.path().join("into");
    let error = materialise(CudaVersion::new(12, 5), &into, &compiler, &host, &mut Silent);
    let error = error.unwrap_err();
    assert_eq!(error.code, Code::CompilerBroken);
    assert!(error.command.unwrap().contains("libcuda.so"));
    assert!(fs::names(&into).is_empty());
}

#[test]
fn an_unknown_version_names_the_known_ones() {
    let World { scratch, host, compiler } = world();
    let error = materialise(CudaVersion::new(12, 6), scratch.path(), &compiler, &host, &mut Silent)
        .unwrap_err();
    assert_eq!(error.code, Code::UnknownVersion);
    assert!(error.means[0].contains("`12.5`") && error.means[0].contains("`10.2`"));
    assert!(!is_complete(&scratch.path().join("stub-cuda-12.6"), ""));
}
