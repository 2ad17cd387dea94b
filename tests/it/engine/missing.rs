//! What is asked for and not there is an error that names it; a compiler that
//! fails is never a "no".

use ucx_configure::{
    error::{Code, Error},
    exit::Exit,
    host::fs,
    model::{Component, Verdict},
    request::{Location, Variable, Want},
};

use super::world::{World, check, copy, define, gdrcopy, toolkit, verdict, words};

/// The error for a toolkit without some files.
fn without(files: &[&str]) -> Error {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, files);
    let outcome = World::on(&dir).run();
    let error = outcome.error.clone().unwrap();
    assert!(!outcome.report.ok && !outcome.report.has_cuda());
    assert_eq!(error.exit(), Exit::NotMet);
    let parts = [error.command.is_some(), error.said.is_some(), !error.means.is_empty()];
    assert_eq!((parts, error.hints.is_empty()), ([true; 3], false), "{error:?}");
    error
}

#[test]
fn the_first_missing_item_is_named() {
    for (file, code, item) in [
        ("include/cuda.h", Code::CudaNotMet, "`cuda.h` was not found"),
        ("include/cuda_runtime.h", Code::CudaNotMet, "`cuda_runtime.h` was not found"),
        ("lib64/stubs/libcuda.so", Code::CudaNotMet, "`libcuda` was not found"),
        ("lib64/libcudart.so", Code::CudaNotMet, "`libcudart` was not found"),
        ("include/nvml.h", Code::NvmlNotMet, "`nvml.h` was not found"),
        ("lib64/stubs/libnvidia-ml.so", Code::NvmlNotMet, "`libnvidia-ml` was not found"),
    ] {
        let error = without(
            &[file, "lib64/libcudart.so.12"][..1 + usize::from(file.contains("cudart.so"))],
        );
        assert_eq!(error.code, code, "{file}");
        assert!(error.what.contains(item), "{file}: {}", error.what);
        let name = file.rsplit('/').next().unwrap().trim_end_matches(".so");
        assert!(error.said.unwrap().contains(name.trim_start_matches("lib")), "{file}");
    }
    let error = without(&["include/nvml.h", "include/cuda_runtime.h"]);
    assert!(error.what.contains("`cuda_runtime.h`"));
    assert!(error.means.contains(&"Also missing: `nvml.h`.".to_owned()), "{:?}", error.means);
}

#[test]
fn a_library_that_does_not_do_says_what_it_is() {
    let link = "lib64/stubs/libcuda.so";
    let make = |content: Option<&[u8]>, name: &str| {
        let world = World::new();
        let dir = world.path("cuda");
        copy(&toolkit("12.5"), &dir, &[link]);
        let path = dir.join("lib64/stubs").join(name);
        match content {
            Some(bytes) => {
                fs::write_if_changed(&path, bytes, 0o644).unwrap();
            }
            None => {
                fs::symlink("nowhere", &path).unwrap();
            }
        }
        World::on(&dir).run().error.unwrap().means.join(" ")
    };
    for (content, name, means) in [
        (Some(&b"not a library"[..]), "libcuda.so", "is not a library"),
        (Some(&b""[..]), "libcuda.so", "is an empty file"),
        (None, "libcuda.so", "leads nowhere"),
        (Some(&b"\x7fELF"[..]), "libcuda.so.1", "is there, and it is not a library"),
    ] {
        let said = make(content, name);
        assert!(said.contains(means), "{means}: {said}");
    }
}

#[test]
fn a_library_for_another_machine_is_not_to_be_installed_again() {
    let (theirs, number) = match cfg!(target_arch = "x86_64") {
        true => ("aarch64", 183),
        false => ("x86_64", 62),
    };
    let world = World::new();
    let dir = world.path("cuda");
    let link = "lib64/libcudart.so";
    copy(&toolkit("12.5"), &dir, &[link, "lib64/libcudart.so.12"]);
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(64, 0);
    (elf[16], elf[18]) = (3, number);
    fs::write_if_changed(&dir.join(link), &elf, 0o644).unwrap();
    let hint = World::on(&dir).run().error.unwrap().hints.join(" ");
    assert!(hint.contains(&format!("`--host={theirs}-linux-gnu`")), "{hint}");
    assert!(!hint.contains("Install"), "{hint}");
}

#[test]
fn places_of_drivers_are_in_the_evidence() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["lib64/stubs/libcuda.so"]);
    let outcome = World::on(&dir).run();
    let evidence = &check(&outcome, "cuda.library.cuda").unwrap().evidence;
    let places = evidence.attempts.last().unwrap();
    for place in ["/nvidia/current", "/usr/lib/wsl/lib", "/etc/ld.so.cache"] {
        assert!(places.what.contains(place), "{}", places.what);
    }
}

#[test]
fn a_header_that_does_not_compile_is_told_from_one_that_is_missing() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["include/cuda.h"]);
    fs::write_if_changed(&dir.join("include/cuda.h"), b"#error broken\n", 0o644).unwrap();
    let outcome = World::on(&dir).run();
    let error = outcome.error.clone().unwrap();
    assert!(error.what.contains("`cuda.h` cannot be used"), "{}", error.what);
    assert!(error.said.unwrap().contains("#error broken"));
}

#[test]
fn a_directory_that_does_not_exist_is_said_at_once() {
    let world = World::on(toolkit("12.5").with_file_name("cuda-12.5x").as_path());
    let outcome = world.run();
    assert_eq!(outcome.error.clone().unwrap().code, Code::NoSuchDirectory);
    assert_eq!(verdict(&outcome, "cuda.header.cuda_h"), Verdict::Skipped);
}

#[test]
fn what_needs_cuda_is_refused_without_it() {
    let mut world = World::new();
    world.cuda(Want::No);
    world.gdrcopy(Want::At(Location::Dir(gdrcopy("2.0"))));
    let outcome = world.run();
    let error = outcome.error.clone().unwrap();
    assert_eq!((error.code, error.exit()), (Code::NeedsCuda, Exit::NotMet));
    let finding = outcome.report.finding(Component::GdrCopy).unwrap();
    assert_eq!(finding.verdict, Verdict::No);
    assert!(outcome.report.modules.is_empty());

    let mut world = World::new();
    world.cuda(Want::No);
    world.request.iodemo_cuda = true;
    assert_eq!(world.run().error.unwrap().code, Code::NeedsCuda);

    let mut world = World::on(&toolkit("12.5"));
    world.request.iodemo_cuda = true;
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert_eq!(define(&outcome, "WITH_IODEMO_CUDA").unwrap(), "1");
}

#[test]
fn gdrcopy_that_was_asked_for_has_to_be_whole() {
    for (file, item) in [("include/gdrapi.h", "`gdrapi.h`"), ("lib/libgdrapi.so", "`libgdrapi`")] {
        let mut world = World::on(&toolkit("12.5"));
        let dir = world.path("gdr");
        copy(&gdrcopy("2.5"), &dir, &[file, "lib/libgdrapi.so.2"]);
        world.gdrcopy(Want::At(Location::Dir(dir.clone())));
        let error = world.run().error.unwrap();
        assert_eq!(error.code, Code::GdrCopyNotMet);
        assert!(error.what.contains(item), "{}", error.what);
    }
    // The library may lie elsewhere, if that is said.
    let mut world = World::on(&toolkit("12.5"));
    let dir = world.path("gdr");
    copy(&gdrcopy("2.5"), &dir, &["lib/libgdrapi.so", "lib/libgdrapi.so.2"]);
    world.gdrcopy(Want::At(Location::Dir(dir)));
    let libdir = gdrcopy("2.5").join("lib");
    world.request.gdrcopy_libdir =
        Some(ucx_configure::request::Sourced::default_value(libdir.clone()));
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert_eq!(words(&outcome, "GDR_COPY_LDFLAGS"), [format!("-L{libdir}")]);
}

#[test]
fn a_compiler_that_fails_is_broken_never_a_no() {
    // It works, until it meets one of the probes.
    for (misdeed, code) in [
        ("kill -SEGV $$", Code::CompilerBroken),
        ("echo 'probe.c:1: internal compiler error: in x' >&2; exit 1", Code::CompilerBroken),
        ("sleep 30", Code::CompilerBroken),
    ] {
        let mut world = World::on(&toolkit("12.5"));
        let shim = world.script(
            "shim",
            &format!("case \"$*\" in *cuda-cuda_h.c*|*batch.c*) {misdeed};; esac\nexec cc \"$@\""),
        );
        world.set(Variable::Cc, shim.as_str());
        world.env("UCX_CONFIGURE_TIME_LIMIT", "3");
        let outcome = world.run();
        assert_eq!(verdict(&outcome, "cuda.header.cuda_h"), Verdict::Broken, "{misdeed}");
        let error = outcome.error.clone().unwrap();
        assert_eq!((error.code, error.exit()), (code, Exit::CompilerBroken), "{misdeed}");
    }
}

#[test]
fn bad_flags_are_a_fault_of_the_flags() {
    let mut world = World::on(&toolkit("12.5"));
    world.set(Variable::Ldflags, "-Wl,--no-such-option");
    let outcome = world.run();
    let error = outcome.error.clone().unwrap();
    assert_eq!(error.code, Code::CompilerBroken);
    assert!(error.hints[0].contains("LDFLAGS"));
    assert_eq!(verdict(&outcome, "tool.compiler_works"), Verdict::Broken);
    assert_eq!(verdict(&outcome, "cuda.header.cuda_h"), Verdict::Skipped);
}
