//! Installations in pieces: what is named counts, releases are compared, and a
//! C library that is too old is named.

use camino::Utf8Path;
use ucx_configure::{
    discover::Parts,
    host::{
        fs,
        process::{Invocation, Runner},
    },
    model::{LibraryClass, MessageKind, Verdict},
    request::Want,
};

use super::world::{World, check, copy, toolkit, verdict, words};

/// The texts of the warnings with this code.
fn warnings(outcome: &ucx_configure::engine::Outcome, code: &str) -> Vec<String> {
    let of_code = outcome.report.messages.iter().filter(|message| message.code == code);
    of_code
        .inspect(|message| assert_eq!(message.kind, MessageKind::Warning))
        .map(|message| message.text.clone())
        .collect()
}

#[test]
fn libraries_of_another_release_are_taken_and_both_numbers_told() {
    let mut world = World::on(&toolkit("12.5"));
    let old = toolkit("11.7");
    world.request.cuda_parts = Parts { library_dirs: vec![old.join("lib64")], ..Parts::default() };
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    let dirs = &outcome.report.toolkit.as_ref().unwrap().library_dirs;
    assert_eq!(dirs[0], old.join("lib64"));
    let told = warnings(&outcome, "W0301");
    assert_eq!(told, ["cuda_runtime_api.h is of CUDA 12.5, libcudart of 11.0"]);
}

#[test]
fn nvml_of_another_directory_is_taken() {
    let world = World::new();
    let (cuda, nvml) = (world.path("cuda"), world.path("nvml"));
    let files = ["include/nvml.h", "lib64/stubs/libnvidia-ml.so"];
    copy(&toolkit("12.5"), &cuda, &files);
    copy(&toolkit("12.5"), &nvml, &["include/cuda.h", "lib64/stubs/libcuda.so"]);
    let mut world = World::on(&cuda);
    assert_eq!(verdict(&world.run(), "nvml.header.nvml_h"), Verdict::No);
    world.request.cuda_parts = Parts { nvml: Some(nvml.clone()), ..Parts::default() };
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    let library = |name: &str| {
        let mut files = outcome.report.libraries.iter();
        files.find(|file| file.linked && file.name == name).unwrap()
    };
    assert!(library("nvidia-ml").path.starts_with(&nvml));
    assert!(library("cuda").path.starts_with(&cuda));
    assert_eq!(library("cuda").class, LibraryClass::Stub);
    assert_eq!(library("cuda").soname.as_deref(), Some("libcuda.so.1"));
    assert!(library("cudart").symbols.unwrap() > 10);
    assert_eq!(library("cudart").machine.as_deref(), Some(std::env::consts::ARCH));
}

#[test]
fn headers_that_are_named_need_no_root() {
    let toolkit = toolkit("12.5");
    let mut world = World::new();
    world.cuda(Want::Yes);
    world.request.cuda_parts = Parts {
        include_dirs: vec![toolkit.join("include")],
        library_dirs: vec![toolkit.join("lib64"), toolkit.join("lib64/stubs")],
        ..Parts::default()
    };
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.report.toolkit.as_ref().unwrap().root, None);
    assert_eq!(words(&outcome, "CUDA_CPPFLAGS"), [format!("-I{toolkit}/include")]);
    // A part that is missing is not taken from elsewhere.
    world.request.cuda_parts.library_dirs.pop();
    world.request.cuda_parts.library_dirs[0] = toolkit.join("lib64/stubs");
    let error = world.run().error.unwrap();
    assert!(error.what.contains("`libcudart`"), "{}", error.what);
}

#[test]
fn a_named_directory_that_holds_nothing_is_told() {
    let toolkit = toolkit("12.5");
    let mut world = World::on(&toolkit);
    world.request.cuda_parts = Parts {
        include_dirs: vec![toolkit.clone()],
        library_dirs: vec![toolkit.join("include")],
        ..Parts::default()
    };
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert_eq!(warnings(&outcome, "W0326").len(), 2);
    let told = outcome.report.messages.iter().find(|message| message.code == "W0326").unwrap();
    let meant = format!("Did you mean `{toolkit}/include`?");
    assert_eq!(told.hint.as_deref(), Some(meant.as_str()));
    let flags = [format!("-I{toolkit}"), format!("-I{toolkit}/include")];
    assert_eq!(words(&outcome, "CUDA_CPPFLAGS"), flags, "what is named counts");
}

/// A libcudart that needs a C library which does not exist yet.
fn runtime_of_the_future(dir: &Utf8Path, toolkit: &Utf8Path) {
    let file = |name: &str, text: &str| {
        fs::write_if_changed(&dir.join(name), text.as_bytes(), 0o644).unwrap();
    };
    file("c.c", "int of_the_c_library(void) { return 0; }\n");
    file("c.map", "GLIBC_2.0 { };\nGLIBC_9.21 { of_the_c_library; };\n");
    let source = "int of_the_c_library(void);\nint cudaGetDeviceCount(int *n) { return of_the_c_library(); }\n";
    file("r.c", source);
    let out = toolkit.join("lib64/libcudart.so");
    let shared = "cc -shared -fPIC -nostdlib";
    let script = format!(
        "{shared} -Wl,-soname,libc.so.6 -Wl,--version-script=c.map -o libc.so.6 c.c\n\
         {shared} -Wl,-soname,libcudart.so.12 -o {out} r.c libc.so.6"
    );
    let done = Runner::new().run(Invocation::new("sh").args(["-ec", &script]).cwd(dir));
    assert!(done.success(), "{}", done.stderr);
}

#[test]
fn a_library_that_needs_a_newer_c_library_says_both_versions() {
    let world = World::new();
    let (cuda, made) = (world.path("cuda"), world.path("made"));
    copy(&toolkit("12.5"), &cuda, &["lib64/libcudart.so", "lib64/libcudart.so.12"]);
    fs::create_dir_all(&made).unwrap();
    runtime_of_the_future(&made, &cuda);
    let outcome = World::on(&cuda).run();
    let attempt = check(&outcome, "cuda.library.cudart").unwrap().evidence.first_failure();
    let meaning = attempt.unwrap().meaning.clone().unwrap();
    assert!(meaning.contains("needs GLIBC_9.21, and the C library"), "{meaning}");
    assert!(meaning.contains("has GLIBC_2."), "{meaning}");
    let files = &outcome.report.libraries;
    let runtime = files.iter().find(|file| file.name == "cudart").unwrap();
    assert_eq!((runtime.glibc.as_deref(), runtime.linked), (Some("9.21"), false));
}
