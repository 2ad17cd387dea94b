//! Quirks of UCX's configure that no recorded run shows, by their names in the
//! contract, on a stub toolkit.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use ucx_configure::{
    engine::{Outcome, compat},
    error::Code,
    model::{DefineValue, FeatureId, Module, ToolkitKind, Verdict},
};

use crate::parity::{check, messages, search_path, substitution};

/// A directory of its own.
struct World {
    _scratch: tempfile::TempDir,
    dir: Utf8PathBuf,
}

impl World {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(scratch.path()).unwrap().canonicalize_utf8().unwrap();
        Self { _scratch: scratch, dir }
    }

    fn check(&self, args: &[&str], env: &[(&str, &str)]) -> Outcome {
        let args: Vec<String> = args.iter().map(|&text| text.to_owned()).collect();
        let env: BTreeMap<String, String> =
            env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        check(&self.dir, &args, &env)
    }

    /// An nvcc that does as its script says.
    fn nvcc(&self, dir: &str, script: &str) {
        let path = self.dir.join(dir).join("nvcc");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_stub_is_a_toolkit_like_any_other() {
    let world = World::new();
    let outcome = world.check(&["--with-cuda=stub:12.8", "--with-gdrcopy=stub:2.5"], &[]);
    assert_eq!(outcome.error, None);
    let report = &outcome.report;
    assert!(report.ok && report.has_cuda() && report.on_stub());
    assert_eq!(report.toolkit.as_ref().unwrap().kind, ToolkitKind::Stub);
    assert_eq!(report.modules, Module::ALL);
    let verdict = |id| report.feature(id).unwrap().verdict;
    assert_eq!(verdict(FeatureId::Cuda12_8), Verdict::Yes);
    assert_eq!(verdict(FeatureId::Cudart11_2), Verdict::Yes);
    assert_eq!(verdict(FeatureId::Cuda13_0), Verdict::No);
    assert_eq!(verdict(FeatureId::GdrPinBufferV2), Verdict::Skipped, "v1.19.0 does not ask");
    assert!(report.cfg["cuda_12_8"]);
    assert!(!report.cfg["have_gdr_pin_buffer_v2"]);
    let define = |name| report.answers.define(name).unwrap().value.clone();
    assert_eq!(define("HAVE_DECL_GDR_PIN_BUFFER_V2"), DefineValue::Undefined);
    assert_eq!(define("uct_cuda_MODULES"), DefineValue::Defined("\":gdrcopy\"".to_owned()));
    assert_eq!(
        compat::summary_lines(report)[1..],
        [
            "         UCT modules:   < cuda >",
            "        CUDA modules:   < gdrcopy >",
            "         UCM modules:   < cuda >",
            "        Perf modules:   < cuda >",
        ]
    );
}

/// Q14: what the environment holds survives where CUDA is refused, and only
/// there.
#[test]
fn stray_values_survive_a_refusal() {
    let world = World::new();
    let env = [("CUDA_LIBS", "-lstray"), ("NVCC", "/stray/nvcc"), ("NVML_LIBS", "x")];
    let refused = world.check(&["--without-cuda", "CUDART_LIBS=-largument"], &env).report;
    assert_eq!(substitution(&refused, "CUDA_LIBS"), "-lstray");
    assert_eq!(substitution(&refused, "CUDART_LIBS"), "-largument");
    assert_eq!(substitution(&refused, "NVML_LIBS"), "x");
    assert_eq!(substitution(&refused, "NVCC"), "", "this one is reset");
    assert_eq!(refused.answers.conditional("HAVE_NVCC"), Some(true), "Q13");
    let guessed = world.check(&[], &env).report;
    assert_eq!(substitution(&guessed, "CUDA_LIBS"), "");
    assert_eq!(substitution(&guessed, "NVCC"), "/stray/nvcc", "Q11: taken without a look");
    assert_eq!(guessed.answers.conditional("HAVE_NVCC"), Some(false));
}

/// Q10: without DIR the current directory comes first; a trailing colon is no
/// element, an empty one is.
#[test]
fn nvcc_of_the_current_directory_wins_without_dir() {
    let world = World::new();
    world.nvcc(".", "exit 0");
    world.nvcc("bin", "exit 0");
    let path = format!("{}/bin:{}", world.dir, search_path());
    let here = world.check(&[], &[("PATH", &path)]).report;
    assert_eq!(substitution(&here, "NVCC"), "./nvcc");
    let bare = world.check(&["NVCC=nvcc"], &[("PATH", &path)]).report;
    assert_eq!(substitution(&bare, "NVCC"), "./nvcc", "a bare name is not looked at");
    let dir = format!("--with-cuda={}/none", world.dir);
    let there = world.check(&[&dir], &[("PATH", &path)]).report;
    assert_eq!(substitution(&there, "NVCC"), format!("{}/bin/nvcc", world.dir));
}

/// Q12: the variable is split on blanks, so nvcc of a directory with one in
/// its name cannot compile.
#[test]
fn nvcc_below_a_blank_does_not_compile() {
    let world = World::new();
    world.nvcc("sp ace/bin", "exit 0");
    let dir = format!("--with-cuda={}/sp ace", world.dir);
    let report = world.check(&[&dir], &[]).report;
    assert_eq!(substitution(&report, "NVCC"), format!("{}/sp ace/bin/nvcc", world.dir));
    let lines: Vec<&str> = report.checks.iter().map(|check| check.label.as_str()).collect();
    assert!(lines.last().unwrap().ends_with("sp ace/bin/nvcc can compile"));
    assert_eq!(report.checks.last().unwrap().verdict, Verdict::No);
}

/// Q18: the option is not declared, and its variable is read all the same.
#[test]
fn an_undeclared_option_works() {
    let world = World::new();
    let libdir = world.dir.join("lib");
    fs::create_dir(&libdir).unwrap();
    let env = [("with_gdrcopy_libdir", libdir.as_str())];
    let guessed = world.check(&["--without-cuda", "--with-gdrcopy=stub:2.5"], &env);
    assert_eq!(guessed.error.unwrap().code, Code::GdrCopyNotMet, "the variable beats DIR");
    let said = messages(&guessed.report);
    assert_eq!(said[0], "configure: WARNING: GDR_COPY runtime not detected. Disable.");
    assert_eq!(said.len(), 2, "the variable is no option: {said:?}");

    let option = format!("--with-gdrcopy-libdir={libdir}");
    let warned = messages(&world.check(&["--without-cuda", &option], &[]).report);
    let text = "configure: WARNING: unrecognized options: --with-gdrcopy-libdir";
    assert_eq!(warned, [text, "configure: WARNING: GDR_COPY not found", text]);
    let off = ["--without-cuda", &option, "--disable-option-checking"];
    assert_eq!(messages(&world.check(&off, &[]).report).len(), 1);
    let fatal = ["--without-cuda", &option, "--enable-option-checking=fatal"];
    assert_eq!(world.check(&fatal, &[]).error.unwrap().code, Code::UnknownOption);
}

/// Q23: none of the variables that other tools know has an effect.
#[test]
fn cuda_home_has_no_effect() {
    let world = World::new();
    let outcome = world.check(&[], &[("CUDA_HOME", "/opt/cuda"), ("CUDA_PATH", "/opt/cuda")]);
    assert!(!outcome.report.has_cuda());
    assert!(outcome.report.checks.iter().all(|check| {
        check.evidence.attempts.iter().all(|attempt| {
            attempt.command.as_deref().is_none_or(|command| !command.contains("/opt/cuda"))
        })
    }));
}

#[test]
fn a_compiler_that_makes_nothing_is_not_a_no() {
    let world = World::new();
    let outcome = world.check(&["LDFLAGS=-Wl,--no-such-option", "--with-cuda"], &[]);
    let error = outcome.error.unwrap();
    assert_eq!(error.code, Code::CompilerBroken);
    assert!(error.command.unwrap().contains("--no-such-option"));
    let outcome = world.check(&["CC=/no/such/compiler"], &[]);
    assert_eq!(outcome.error.unwrap().code, Code::NoCompiler);
    assert!(!outcome.report.ok);
}

/// Reports are the same whenever and wherever the run's scratch files were.
#[test]
fn a_report_is_reproducible() {
    let world = World::new();
    let dir = format!("--with-cuda={}/none", world.dir);
    let [first, second] = [(); 2].map(|()| {
        let outcome = world.check(&[&dir], &[]);
        assert!(outcome.error.is_some());
        serde_json::to_string_pretty(&outcome.report).unwrap()
    });
    assert_eq!(first, second);
}
