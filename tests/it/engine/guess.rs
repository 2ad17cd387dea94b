//! Nobody said where: the order of the places, and what a guess that comes to
//! nothing says.

use ucx_configure::{
    discover::source::ROOT_VARIABLE,
    error::Code,
    host::fs,
    model::{MessageKind, Verdict},
    request::Want,
};

use super::world::{World, check, copy, define, quirks, toolkit, verdict};
use crate::trees::waived;

/// Whether this machine's compiler finds a cuda.h by itself: then a guess
/// cannot come to nothing here.
fn has_cuda(name: &str) -> bool {
    let found = camino::Utf8Path::new("/usr/include/cuda.h").exists();
    if found {
        waived(name, "this machine has a cuda.h in /usr/include");
    }
    found
}

#[test]
fn a_guess_that_finds_nothing_says_why_and_is_no_error() {
    if has_cuda("a guess that finds nothing") {
        return;
    }
    let outcome = World::new().run();
    assert_eq!(outcome.error, None);
    let report = &outcome.report;
    assert!(report.ok && !report.has_cuda() && report.toolkit.is_none());
    assert!(report.modules.is_empty() && report.cfg.values().all(|on| !on));
    let warnings: Vec<_> =
        report.messages.iter().filter(|m| m.kind == MessageKind::Warning).collect();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].text, "CUDA not found: the compiler finds no cuda.h by itself");
    let evidence = &check(&outcome, "cuda.header.cuda_h").unwrap().evidence;
    let looked = |text: &str| evidence.attempts.iter().any(|it| it.what.contains(text));
    assert!(looked("environment variable CUDA_HOME") && looked("/opt/cuda"));
    assert_eq!(define(&outcome, "HAVE_CUDA"), None);
    assert_eq!(define(&outcome, "UCM_BISTRO_HOOKS").unwrap(), "1", "it does not depend on CUDA");
}

#[test]
fn a_demand_that_finds_nothing_is_an_error() {
    if has_cuda("a demand that finds nothing") {
        return;
    }
    let mut world = World::new();
    world.cuda(Want::Yes);
    let error = world.run().error.unwrap();
    assert_eq!(error.code, Code::CudaNotMet);
    assert!(error.means.iter().any(|text| text.contains("/usr/local/cuda")), "{error:?}");
}

#[test]
fn places_are_tried_in_order_until_one_does() {
    let toolkit = toolkit("12.5");
    let mut world = World::new();
    let root = world.path("root");
    let half = root.join("usr/local/cuda-13.9");
    copy(&toolkit, &half, &["include/nvml.h"]);
    copy(&toolkit, &root.join("usr/local/cuda-12.10"), &[]);
    copy(&toolkit, &root.join("opt/cuda"), &[]);
    world.env(ROOT_VARIABLE, root.as_str());
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    let found = outcome.report.toolkit.as_ref().unwrap();
    assert_eq!(found.root.as_ref().unwrap(), &root.join("usr/local/cuda-12.10"));
    assert!(found.found_by.contains("the newest first"));
    let passed = outcome.report.messages.iter().find(|m| m.code == "N0304").unwrap();
    assert!(passed.text.contains(half.as_str()) && passed.text.contains("nvml.h"));
    let ids: Vec<_> = outcome.report.checks.iter().map(|check| &check.id).collect();
    let unique: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len(), "each question is there once");
    assert_eq!(quirks(&outcome), ["Q23"]);

    // A variable comes first, and a second one that says otherwise is told.
    let other = world.path("other");
    copy(&toolkit, &other, &[]);
    world.env("CUDA_PATH", other.as_str());
    world.env("CUDA_ROOT", "/no/such/dir");
    let outcome = world.run();
    let found = outcome.report.toolkit.as_ref().unwrap();
    assert_eq!(found.root.as_ref().unwrap(), &other);
    assert_eq!(found.found_by, "environment variable CUDA_PATH");
    let told = outcome.report.messages.iter().find(|m| m.code == "W0303").unwrap();
    assert!(told.text.starts_with("CUDA_ROOT is `/no/such/dir`"));
}

#[test]
fn the_compilers_own_directories_count() {
    let toolkit = toolkit("12.5");
    let mut world = World::new();
    world.env("CPATH", toolkit.join("include").as_str());
    let libraries = format!("{0}/lib64:{0}/lib64/stubs", toolkit);
    world.env("LIBRARY_PATH", &libraries);
    let outcome = world.run();
    assert_eq!(outcome.error, None);
    assert!(outcome.report.has_cuda());
    assert_eq!(outcome.report.toolkit.as_ref().unwrap().root, None);
    assert!(quirks(&outcome).is_empty(), "the original finds it there, too");
}

#[test]
fn an_nvcc_in_the_current_directory_is_never_taken() {
    let toolkit = toolkit("12.5");
    let mut world = World::new();
    world.env("CPATH", toolkit.join("include").as_str());
    world.env("LIBRARY_PATH", &format!("{0}/lib64:{0}/lib64/stubs", toolkit));
    world.script("nvcc", "echo 'release 12.5, V12.5.1'; echo '#$ X=' >&2; touch probe.o");
    let outcome = world.run();
    assert_eq!(verdict(&outcome, "cuda.nvcc"), Verdict::No);
    assert_eq!(quirks(&outcome), ["Q10"]);
    assert!(fs::names(world.scratch.path()).contains(&"nvcc".to_owned()));
}
