//! Answers that are given, what environment variables lead to, and host
//! compilers that nvcc does not take.

use ucx_configure::{
    host::fs,
    model::{Component, MessageKind, Verdict},
    request::{Given, Variable, Want},
};

use super::world::{World, check, copy, define, toolkit, verdict};

fn given(answer: bool, reason: &str) -> Given {
    Given { answer, reason: reason.to_owned() }
}

#[test]
fn a_given_answer_is_taken_with_its_reason_and_nothing_is_run_for_it() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.5"), &dir, &["lib64/stubs/libnvidia-ml.so"]);
    let mut world = World::on(&dir);
    assert!(world.run().error.is_some(), "NVML is missing");

    world.request.given.insert("nvml.library.nvidia_ml", given(true, "it is on the target"));
    world.request.given.insert("cuda.declaration.handle_type_fabric", given(false, "not wanted"));
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    let row = check(&outcome, "nvml.library.nvidia_ml").unwrap();
    assert_eq!(row.preset.as_deref(), Some("it is on the target"));
    assert_eq!((row.verdict, row.detail.as_deref()), (Verdict::Yes, Some("given")));
    assert!(row.evidence.attempts.iter().all(|attempt| attempt.command.is_none()));
    assert_eq!(verdict(&outcome, "cuda.declaration.handle_type_fabric"), Verdict::No);
    assert_eq!(define(&outcome, "HAVE_CUDA_FABRIC"), None);
    let note = outcome.report.messages.iter().find(|message| message.code == "N0313").unwrap();
    assert!(note.text.contains("`nvml.library.nvidia_ml`"), "{}", note.text);
    // One by one the same is taken.
    world.request.probe_mode = ucx_configure::request::ProbeMode::Single;
    assert_eq!(world.run().report.checks, outcome.report.checks);
}

#[test]
fn what_a_variable_leads_to_is_named() {
    let tree = toolkit("12.5");
    let (include, lib) = (tree.join("include"), tree.join("lib64"));
    let libraries = format!("{lib}:{lib}/stubs");
    let mut world = World::new();
    world.cuda(Want::Yes);
    world.env("CPATH", include.as_str());
    world.env("LIBRARY_PATH", &libraries);
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    let rows = &outcome.report.environment;
    let row = rows.iter().find(|row| row.variable == "CPATH").unwrap();
    assert!(row.used && row.place == include && row.holds.contains(&"cuda.h".to_owned()));
    assert_eq!(rows.iter().filter(|row| row.variable == "LIBRARY_PATH" && row.used).count(), 2);
    let notes = outcome.report.messages.iter().filter(|message| message.code == "N0310");
    assert_eq!(notes.count(), 3);

    // With a directory of its own, CPATH is there and changes nothing.
    let mut world = World::on(&tree);
    world.env("CPATH", include.as_str());
    world.env("LD_LIBRARY_PATH", lib.join("stubs").as_str());
    let outcome = world.run();
    let row = outcome.report.environment.iter().find(|row| row.variable == "CPATH").unwrap();
    assert!(!row.used);
    let codes: Vec<&str> =
        outcome.report.messages.iter().map(|message| message.code.as_str()).collect();
    assert!(codes.contains(&"W0312") && !codes.contains(&"N0310"), "{codes:?}");
}

/// What nvcc does: it says who it is, makes a plan, and refuses the compiler.
const NVCC: &str = r#"case "$*" in
*--version*) echo 'Cuda compilation tools, release 12.2, V12.2.140'; exit 0;;
*--dryrun*) echo '#$ _TARGET_DIR_=targets/x86_64-linux' >&2; exit 0;;
esac
for i in 1 2 3 4 5 6; do echo "In file included from wall.h:$i" >&2; done
echo 'host_config.h:1: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!' >&2
exit 1"#;

#[test]
fn a_host_compiler_that_is_too_new_is_said_before_nvccs_own_words() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.2"), &dir, &[]);
    let mut world = World::on(&dir);
    let gcc = |major: u32| {
        format!(
            "for mark in 'kind gcc' 'version {major} 2 0' 'machine x86_64' 'system linux gnu' \
             'pointer 8'; do echo \"ucx_configure_identity $mark\"; done"
        )
    };
    let new = world.script("tools/gcc", &gcc(14));
    let tools = new.parent().unwrap().to_owned();
    fs::create_dir_all(&dir.join("bin")).unwrap();
    fs::write_if_changed(&dir.join("bin/nvcc"), format!("#!/bin/sh\n{NVCC}\n").as_bytes(), 0o755)
        .unwrap();
    // The C compiler is another one.
    world.set(Variable::Cc, "/usr/bin/cc");
    for name in ["as", "ld"] {
        fs::symlink(&format!("/usr/bin/{name}"), &tools.join(name)).unwrap();
    }
    world.env("PATH", tools.as_str());
    let outcome = world.run();
    assert_eq!(outcome.error, None, "nvcc is not needed");
    let finding = outcome.report.finding(Component::Nvcc).unwrap();
    assert_eq!(finding.verdict, Verdict::No);
    assert_eq!(
        finding.why,
        "nvcc 12.2 takes gcc up to 12, and its host compiler `gcc` is gcc 14.2.0."
    );
    let attempts = &finding.evidence.attempts;
    let at = |text: &str| attempts.iter().position(|attempt| attempt.what.contains(text)).unwrap();
    assert!(at("host compiler") < at("compile a kernel"));
    let said = attempts[at("compile a kernel")].said.as_deref().unwrap();
    assert!(said.contains("unsupported GNU version"), "{said}");
    let warning = outcome.report.messages.iter().find(|message| message.code == "W0311").unwrap();
    assert_eq!(warning.kind, MessageKind::Warning);
    assert_eq!(
        warning.hint.as_deref(),
        Some("Install gcc 12 or older, and name it: `NVCCFLAGS=-ccbin=gcc-12`.")
    );

    // An older one that is there is named; with it the fault is nvcc's own.
    world.script("tools/gcc-11", &gcc(11));
    let outcome = world.run();
    let warning = outcome.report.messages.iter().find(|message| message.code == "W0311").unwrap();
    assert_eq!(warning.hint.as_deref(), Some("Write `NVCCFLAGS=-ccbin=gcc-11`."));
    world.set(Variable::Nvccflags, "-ccbin=gcc-11");
    let outcome = world.run();
    let why = &outcome.report.finding(Component::Nvcc).unwrap().why;
    assert!(why.contains("It takes gcc up to 12"), "{why}");
}

#[test]
fn an_nvcc_that_is_there_is_not_to_be_installed() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("12.2"), &dir, &[]);
    fs::create_dir_all(&dir.join("bin")).unwrap();
    let world = World::on(&dir);
    // A release that no table knows says the newest itself.
    let nvcc = |text: &str| {
        let text = format!("#!/bin/sh\n{text}\n");
        fs::write_if_changed(&dir.join("bin/nvcc"), text.as_bytes(), 0o755).unwrap();
    };
    nvcc(&NVCC.replace("12.2", "19.1").replace("than 12", "than 21"));
    let outcome = world.run();
    let warning = outcome.report.messages.iter().find(|message| message.code == "W0311").unwrap();
    assert!(
        warning.text.contains("it takes gcc up to 21, and its host compiler is a newer one")
            && warning.text.contains("`host_config.h:1: error: #error -- unsupported GNU version!"),
        "{}",
        warning.text
    );
    let hint = warning.hint.as_deref().unwrap();
    assert!(hint.ends_with("`NVCCFLAGS=-ccbin=gcc-21`."), "{hint}");

    // Another fault: its words are said, and nobody is told to install it.
    nvcc(&NVCC.replace("12.2", "19.1").replace("unsupported GNU version", "too tired"));
    let outcome = world.run();
    let warning = outcome.report.messages.iter().find(|message| message.code == "W0311").unwrap();
    let hint = warning.hint.as_deref().unwrap();
    assert!(!hint.contains("Install") && hint.contains("NVCCFLAGS"), "{hint}");
    assert!(warning.text.contains("too tired"), "{}", warning.text);
}

#[test]
fn a_missing_component_of_cuda_13_is_told_once_and_with_its_release() {
    let world = World::new();
    let dir = world.path("cuda");
    copy(&toolkit("13.0"), &dir, &[]);
    let header = dir.join("include/cuda_runtime.h");
    fs::write_if_changed(&header, b"#include \"crt/gone.h\"\n", 0o644).unwrap();
    fs::create_dir_all(&dir.join("bin")).unwrap();
    world.script("cuda/bin/nvcc", &NVCC.replace("12.2", "13.0"));
    let outcome = World::on(&dir).run();
    let hint = outcome.error.unwrap().hints.join(" ");
    assert!(hint.contains("`cuda-crt-13-0`") && !hint.contains("X-Y"), "{hint}");
    assert!(outcome.report.messages.iter().all(|message| message.code != "W0311"));
}
