//! The module in the place of UCX's own, in every release of UCX that it is made for.
//!
//! UCX comes from the package index: this runs with `UCX_CONFIGURE_REAL_TOOLKITS=1`, and is
//! waived otherwise.
#![expect(clippy::disallowed_methods, reason = "tests build and run things themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "../../../tests/hooks_support/mock.rs"]
mod mock;
mod support;
#[path = "../../../tests/support/ucx.rs"]
mod ucx;
use mock::Mock;
use support::module;

const ASK: &str = "UCX_CONFIGURE_REAL_TOOLKITS";

/// The program that uses UCX.
fn program(mock: &Mock) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/beside_ucx.c");
    mock.program("beside_ucx", &[source], &["-lcudart", "-lcuda", "-ldl"])
}

fn command(program: &Path, libraries: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(libraries).arg(libraries.join("ucx/libucm_cuda.so.0.0.0"));
    for name in ["UCX_MEM_LOG_LEVEL", "HOOK_RUNTIME_TRACE", "UCX_MEM_CUDA_HOOK_MODE"] {
        command.env_remove(name);
    }
    command.env("LD_LIBRARY_PATH", libraries);
    command
}

fn run(program: &Path, libraries: &Path, mode: Option<&str>, far: bool) -> Output {
    let mut command = command(program, libraries);
    command.envs(mode.map(|mode| ("UCX_MEM_CUDA_HOOK_MODE", mode)));
    command.envs(far.then_some(("UCX_MEM_BISTRO_FORCE_FAR_JUMP", "y")));
    command.output().unwrap()
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{all}");
    text.lines().map(str::to_owned).collect()
}

/// Each thing done is told once, and the table of memory types follows.
fn check(lines: &[String]) {
    let all = lines.join("\n");
    let starting = |word: &str| {
        let with = move |line: &&String| line.starts_with(word);
        lines.iter().filter(with).map(|line| &line[word.len()..]).collect::<Vec<_>>()
    };
    let did = starting("did ");
    assert_eq!(did.len(), 9, "{all}");
    let told: Vec<_> = starting("told ").iter().map(|t| t.rsplit_once(' ').unwrap()).collect();
    // What was allocated before is freed with the size that the driver knows.
    assert_eq!(told.iter().map(|told| told.0).collect::<Vec<_>>(), did, "{all}");
    for (event, kind) in told {
        let expected = if event.starts_with("ALLOC") { "unknown" } else { "cuda" };
        assert!(kind.starts_with(expected), "{event} {kind}");
    }
    let cache: Vec<_> = starting("cache ").iter().map(|c| c.split_once(' ').unwrap()).collect();
    let answers: Vec<_> = cache.iter().map(|cache| cache.1).collect();
    let expected = [
        "unknown", "unknown", "nothing", "unknown", "unknown", "nothing", "unknown", "nothing",
        "nothing", "unknown",
    ];
    assert_eq!(answers, expected, "{all}");
    let before = starting("before ")[0].split_once(' ').unwrap().0;
    let number = |text: &str| usize::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let holds = |region: &str| {
        let (start, size) = region.split_once(' ').unwrap();
        let start = number(start);
        (start..start + size.parse::<usize>().unwrap()).contains(&number(before))
    };
    // Once as part of a region; again exactly, if hooks have seen it come.
    assert!(starting("existing 0x").iter().any(|region| holds(region)), "{all}");
    assert_eq!(lines.last().unwrap(), "done", "{all}");
}

fn every_release_in_every_mode() {
    let mock = Mock::build(12_050, "580");
    let program = program(&mock);
    for version in ucx::RELEASES {
        let libraries = ucx::copy_with(version, &mock.path("ucx"), "libucm_cuda", module());
        let modes = [
            (Some("reloc"), false),
            (Some("bistro"), false),
            (Some("bistro,reloc"), false),
            (Some("bistro"), true),
            (None, false),
        ];
        for (mode, far) in modes {
            let lines = lines(&run(&program, &libraries, mode, far));
            assert!(lines.contains(&format!("version {version}")), "{lines:?}");
            check(&lines);
        }
        // No hooks, no events: UCX must know that, or it would trust its table.
        let refused = lines(&run(&program, &libraries, Some("none"), false));
        assert!(refused.contains(&"existing handler: -22".to_owned()), "{refused:?}");
        std::fs::remove_dir_all(libraries).unwrap();
    }
}

/// Loaded before UCX, and tracing by itself: UCX's loader finds it there.
fn a_preloaded_module_serves_as_well() {
    let mock = Mock::build(12_050, "580");
    let program = program(&mock);
    let libraries = ucx::copy_with("1.22.0", &mock.path("ucx"), "libucm_cuda", module());
    let trace = mock.path("trace");
    let mut command = command(&program, &libraries);
    command.env("LD_PRELOAD", libraries.join("ucx/libucm_cuda.so.0.0.0"));
    check(&lines(&command.env("HOOK_RUNTIME_TRACE", &trace).output().unwrap()));
    let traced = std::fs::read_to_string(trace).unwrap();
    assert_eq!(traced.lines().count(), 12, "{traced}");
}

#[test]
fn our_module_serves_the_real_ucx() {
    const WAIVABLE: [(&str, fn()); 2] = [
        ("every_release_in_every_mode", every_release_in_every_mode),
        ("a_preloaded_module_serves_as_well", a_preloaded_module_serves_as_well),
    ];
    let asked = std::env::var(ASK).is_ok_and(|value| value == "1");
    let mut waived = 0;
    for (name, test) in WAIVABLE {
        if asked {
            test();
        } else {
            // Not `println!`, whose text a passing test keeps to itself.
            writeln!(std::io::stdout(), "waived: {name}: {ASK} is not 1").unwrap();
            waived += 1;
        }
    }
    assert_eq!(waived, if asked { 0 } else { 2 });
}
