//! Each quirk of the original that we mend: our answer, and the one line where
//! it makes a difference.

use ucx_configure::{
    error::Code,
    host::fs,
    model::Verdict,
    request::{Location, Variable, Want},
};

use super::world::{World, copy, define, gdrcopy, quirks, toolkit, verdict, words};

/// A shim that passes for nvcc: it says its release, its plan, and compiles.
const NVCC: &str = "case \"$1\" in\n\
    --version) echo 'Cuda compilation tools, release 12.5, V12.5.82';;\n\
    --dryrun) echo '#$ _TARGET_SIZE_=64' >&2;;\n\
    *) while [ \"$1\" != -o ]; do shift; done; : > \"$2\";;\nesac";

#[test]
fn nothing_is_told_where_nothing_differs() {
    let outcome = World::on(&toolkit("12.5")).run();
    assert!(quirks(&outcome).is_empty(), "{:?}", outcome.report.differences);
}

#[test]
fn cuda_h_is_needed() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["include/cuda.h"]);
    // The stub's cuda_runtime.h does without cuda.h, as the real one does.
    let outcome = World::on(&dir).run();
    assert_eq!(outcome.error.as_ref().unwrap().code, Code::CudaNotMet);
    assert_eq!(quirks(&outcome), ["Q1"]);
}

#[test]
fn dir_comes_before_the_users_flags() {
    let mut world = World::on(&toolkit("12.5"));
    world.set(Variable::Cppflags, &format!("-I{}", toolkit("11.2").join("include")));
    let outcome = world.run();
    assert_eq!(quirks(&outcome), ["Q3"]);
    assert!(outcome.report.differences[0].text.contains("11.2"));
    assert!(outcome.report.cfg["cuda_12_5"]);
}

#[test]
fn directories_count_by_what_they_hold() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["lib64"]);
    copy(&toolkit("12.5").join("lib64"), &dir.join("lib"), &[]);
    let outcome = World::on(&dir).run();
    assert_eq!(
        (outcome.error.is_none(), quirks(&outcome).len()),
        (true, 0),
        "lib alone is no quirk"
    );
    fs::create_dir_all(&dir.join("lib64")).unwrap();
    let outcome = World::on(&dir).run();
    assert_eq!(outcome.error, None);
    assert_eq!(quirks(&outcome), ["Q4"]);
    let lib = dir.join("lib");
    assert_eq!(words(&outcome, "CUDA_LDFLAGS"), [format!("-L{lib}"), format!("-L{lib}/stubs")]);

    let dir = world.path("targets-only");
    let below = dir.join("targets/x86_64-linux");
    copy(&toolkit("12.5").join("include"), &below.join("include"), &[]);
    copy(&toolkit("12.5").join("lib64"), &below.join("lib"), &[]);
    let outcome = World::on(&dir).run();
    assert_eq!(outcome.error, None);
    assert_eq!(quirks(&outcome), ["Q4"]);
}

#[test]
fn gaps_are_not_filled_from_elsewhere() {
    let world = World::new();
    let dir = world.path("cuda");
    let gone = ["include/nvml.h", "lib64/libcudart.so", "lib64/libcudart.so.12"];
    copy(&toolkit("12.5"), &dir, &gone);
    let mut world = World::on(&dir);
    world.env("CPATH", toolkit("11.7").join("include").as_str());
    world.env("LIBRARY_PATH", toolkit("11.7").join("lib64").as_str());
    let outcome = world.run();
    assert_eq!(verdict(&outcome, "nvml.header.nvml_h"), Verdict::No);
    assert_eq!(verdict(&outcome, "cuda.library.cudart"), Verdict::No);
    assert_eq!(quirks(&outcome), ["Q24"]);
    let error = outcome.error.unwrap();
    assert!(error.what.contains("`libcudart` cannot be used"), "{}", error.what);
}

#[test]
fn a_library_without_its_link_is_taken_by_its_versioned_name() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["lib64/libcudart.so"]);
    let outcome = World::on(&dir).run();
    assert_eq!(outcome.error, None);
    assert_eq!(quirks(&outcome), ["Q29"]);
    assert_eq!(words(&outcome, "CUDART_LIBS"), ["-l:libcudart.so.12"]);
    let told = outcome.report.messages.iter().find(|m| m.code == "N0320").unwrap();
    assert!(told.text.contains("lib64/libcudart.so.12"), "{}", told.text);
}

#[test]
fn nvcc_has_to_be_nvcc() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &[]);
    let fake = world.script("cuda/bin/nvcc", "exit 0");
    let outcome = World::on(&dir).run();
    assert_eq!(verdict(&outcome, "cuda.nvcc"), Verdict::No);
    assert_eq!(outcome.report.answers.conditional("HAVE_NVCC"), Some(false));
    assert_eq!(quirks(&outcome), ["Q12"]);

    world.script("cuda/bin/nvcc", NVCC);
    let outcome = World::on(&dir).run();
    assert_eq!(verdict(&outcome, "cuda.nvcc"), Verdict::Yes);
    assert_eq!(words(&outcome, "NVCC"), [fake.as_str()]);
    assert_eq!(outcome.report.nvcc.as_ref().unwrap().version, "12.5.82");

    // Of another release: it works, and the disagreement is told.
    world.script("cuda/bin/nvcc", &NVCC.replace("12.5", "11.8"));
    let outcome = World::on(&dir).run();
    let told = outcome.report.messages.iter().find(|m| m.code == "W0301").unwrap();
    assert_eq!(told.text, "cuda.h is of CUDA 12.5, nvcc of 11.8");
}

#[test]
fn nvcc_of_another_installation_is_not_taken_unless_it_is_named() {
    let mut world = World::on(&toolkit("12.5"));
    let nvcc = world.script("tools/nvcc", NVCC);
    world.env("PATH", &format!("{}:/usr/bin:/bin", world.path("tools")));
    let outcome = world.run();
    assert_eq!(verdict(&outcome, "cuda.nvcc"), Verdict::No);
    assert_eq!(quirks(&outcome), ["Q27"]);
    world.set(Variable::Nvcc, nvcc.as_str());
    let outcome = world.run();
    assert_eq!(verdict(&outcome, "cuda.nvcc"), Verdict::Yes);
    assert!(quirks(&outcome).is_empty());
    world.set(Variable::Nvcc, "/no/such/nvcc");
    let outcome = world.run();
    assert_eq!(verdict(&outcome, "cuda.nvcc"), Verdict::No);
    assert!(outcome.report.messages.iter().any(|message| message.code == "W0309"));
}

#[test]
fn without_cuda_nothing_of_it_stays() {
    let mut world = World::new();
    world.cuda(Want::No);
    world.env("CUDA_LIBS", "-lstray");
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert_eq!(quirks(&outcome), ["Q13", "Q14"]);
    assert_eq!(outcome.report.answers.conditional("HAVE_NVCC"), Some(false));
    assert!(words(&outcome, "CUDA_LIBS").is_empty());

    // A guess that fails late clears what it had found.
    let mut world = World::new();
    world.env("CPATH", toolkit("12.5").join("include").as_str());
    let outcome = world.run();
    assert_eq!((outcome.error.is_none(), outcome.report.has_cuda()), (true, false));
    assert_eq!(quirks(&outcome), ["Q15"]);
    for name in ["HAVE_CUDA_H", "HAVE_CUDA_FABRIC", "HAVE_NVML_H"] {
        assert_eq!(define(&outcome, name), None, "{name}");
    }
}

#[test]
fn gdrcopy_counts_with_cuda_only() {
    let mut world = World::new();
    world.cuda(Want::No);
    world.env("GDRCOPY_HOME", gdrcopy("2.5").as_str());
    world.env("with_gdrcopy_libdir", "/stray");
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert_eq!(quirks(&outcome), ["Q13", "Q18", "Q25"]);
    assert_eq!(define(&outcome, "uct_cuda_MODULES").unwrap(), "\"\"");
    assert_eq!(outcome.report.answers.conditional("HAVE_GDR_COPY"), Some(false));
}

#[test]
fn odd_directories_work() {
    for (name, expected) in [("sp ace", &["Q26"][..]), ("semi;colon", &[]), ("a$HOME", &[])] {
        let world = World::new();
        let dir = world.path(name);
        copy(&toolkit("12.5"), &dir, &[]);
        let outcome = World::on(&dir).run();
        assert_eq!(outcome.error, None, "{name}");
        assert_eq!(quirks(&outcome), expected, "{name}");
        assert_eq!(words(&outcome, "CUDA_CPPFLAGS"), [format!("-I{}", dir.join("include"))]);
    }
    let mut world = World::new();
    copy(&toolkit("12.5"), &world.path("cuda"), &[]);
    world.cuda(Want::At(Location::Dir("./cuda/".into())));
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    let root = outcome.report.toolkit.as_ref().unwrap().root.clone().unwrap();
    assert_eq!(root, world.path("cuda"), "a relative directory is made absolute");
}

#[test]
fn warnings_are_no_answers() {
    let mut world = World::on(&toolkit("12.5"));
    world.set(Variable::Cflags, "-Wall -Wextra -Wpedantic -Werror");
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert!(outcome.report.cfg["cuda_12_5"] && !outcome.report.cfg["cuda_12_8"]);
}

#[test]
fn bistro_can_be_left_out() {
    let mut world = World::on(&toolkit("12.5"));
    world.request.bistro = false;
    let outcome = world.run();
    assert_eq!(define(&outcome, "UCM_BISTRO_HOOKS").unwrap(), "0");
    assert!(!outcome.report.cfg["bistro_hooks"]);
}

#[test]
fn a_version_that_promises_more_than_there_is_is_told() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["include/cudaTypedefs.h", "include/nvml.h"]);
    let nvml = fs::canonical(&toolkit("12.0").join("include/nvml.h")).unwrap();
    fs::symlink(nvml.as_str(), &dir.join("include/nvml.h")).unwrap();
    let outcome = World::on(&dir).run();
    assert_eq!(outcome.error, None);
    let told: Vec<_> = outcome
        .report
        .messages
        .iter()
        .filter(|message| message.code == "W0302")
        .map(|message| message.text.as_str())
        .collect();
    assert!(told[0].starts_with("CUDA_VERSION says 12.5, but what came with 11.7 is missing"));
    let answer = outcome
        .report
        .features
        .iter()
        .find(|answer| answer.id == ucx_configure::model::FeatureId::Cuda11_7)
        .unwrap();
    assert_eq!((answer.verdict, answer.by_version), (Verdict::No, Some(true)));
    assert!(!outcome.report.cfg["cuda_11_7"]);
}

#[test]
fn gdrcopy_of_the_compiler_gets_no_bogus_path() {
    let gdrcopy = gdrcopy("2.5");
    let mut world = World::on(&toolkit("12.5"));
    world.set(Variable::Cppflags, &format!("-I{gdrcopy}/include"));
    world.set(Variable::Ldflags, &format!("-L{gdrcopy}/lib"));
    let outcome = world.run();
    assert_eq!(outcome.report.answers.conditional("HAVE_GDR_COPY"), Some(true));
    assert!(words(&outcome, "GDR_COPY_CPPFLAGS").is_empty());
    assert_eq!(quirks(&outcome), ["Q19"]);
}
