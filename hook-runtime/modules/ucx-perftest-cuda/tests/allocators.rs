//! The allocators, called as each release of ucx_perftest calls them, on the mock driver;
//! and the real ucx_perftest of each release with the module in the place of UCX's own.
//!
//! UCX comes from the package index: that part runs with `UCX_CONFIGURE_REAL_TOOLKITS=1`,
//! and is waived otherwise.
#![expect(clippy::disallowed_methods, reason = "a test runs programs")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../tests/support/mock.rs"]
mod mock;
#[path = "../../../tests/support/module.rs"]
mod module;
#[path = "../../../tests/support/ucx.rs"]
mod ucx;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Release, where its structure has group, functions and domain, and whether it has devices.
const RELEASES: [(&str, [&str; 3], bool); 5] = [
    ("18", ["0x80", "0x88", "0x4400"], false),
    ("19", ["0x80", "0x88", "0x4400"], false),
    ("20", ["0xa0", "0xa8", "0x4420"], true),
    ("21", ["0xb8", "0xc0", "0x4438"], true),
    ("22", ["0xb8", "0xc0", "0x4438"], true),
];

struct Subject {
    mock: mock::Mock,
    module: PathBuf,
    program: PathBuf,
}

impl Subject {
    fn new() -> Self {
        let mock = mock::shared_mock("12.5", mock::DEFAULT_PROLOGUE);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/program.c");
        let options = ["-lcuda", "-ldl", "-rdynamic"];
        let program = mock.compile("stands-for-ucx-perftest", &[&source], &options);
        Self { mock, module: module::module("ucx-perftest-cuda"), program }
    }

    fn run(&self, minor: &str, places: [&str; 3], device: &str, more: &[(&str, &str)]) -> Output {
        let mut command = self.mock.command(&self.program);
        command.arg(&self.module).args(["1", minor]).args(places).arg(device);
        command.env("MOCK_CUDA_DEVICES", "2").envs(more.iter().copied());
        command.output().unwrap()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn each_release_gets_allocators_that_work() {
    let subject = Subject::new();
    for (minor, places, devices) in RELEASES {
        // Where there is a device to choose, zero has been chosen for the second process.
        let output = subject.run(minor, places, if devices { "1" } else { "0" }, &[]);
        assert!(output.status.success() && text(&output).ends_with("done\n"), "{}", text(&output));
        let refused = [("FAIL_REGISTER", "1")];
        let output = subject.run(minor, places, if devices { "1" } else { "0" }, &refused);
        assert!(output.status.success() && text(&output).ends_with("done\n"), "{}", text(&output));
    }
}

#[test]
fn what_is_not_known_is_refused_in_words() {
    let subject = Subject::new();
    for minor in ["17", "23"] {
        let output = subject.run(minor, RELEASES[4].1, "1", &[]);
        let said = text(&output);
        assert!(output.status.success() && said.contains("none\n"), "{said}");
        assert!(
            said.contains(&format!("of UCX 1.{minor} is not known: 1.18 to 1.22 are")),
            "{said}"
        );
    }
    // In any other program the module is silent.
    let output = Command::new("true").env("LD_PRELOAD", &subject.module).output().unwrap();
    assert!(output.status.success() && text(&output).is_empty(), "{}", text(&output));
}

#[test]
fn a_driver_that_fails_is_no_fault_of_the_program() {
    let subject = Subject::new();
    for (function, line) in
        [("cuDevicePrimaryCtxRetain", "init(perf) == 0"), ("cuMemAlloc_v2", "status == 0")]
    {
        let fault = format!("{function}:2:0");
        let (minor, places, _) = RELEASES[1];
        let said = text(&subject.run(minor, places, "0", &[("MOCK_CUDA_FAIL", &fault)]));
        assert!(said.contains(line), "{said}");
        assert!(said.contains(&format!("`{function}` returned error 2 (out of memory)")), "{said}");
    }
}

/// The real program loads the module, which knows the release, and goes on to run a test.
/// The releases whose program does not even start by itself.
fn the_real_ucx_perftest_has_our_allocators() -> Vec<&'static str> {
    let subject = Subject::new();
    let mut broken = Vec::new();
    for version in ucx::RELEASES {
        let scratch = tempfile::tempdir().unwrap();
        let module = &subject.module;
        let libraries = ucx::copy_with(version, scratch.path(), "libucx_perftest_cuda", module);
        let program = ucx::release(version).parent().unwrap().join("bin/ucx_perftest");
        let run = |arguments: &[&str]| {
            let mut command = subject.mock.command(&program);
            let paths = format!("{}:{}", libraries.display(), subject.mock.dir.display());
            command.args(arguments).env("LD_LIBRARY_PATH", paths).env("UCX_MEM_LOG_LEVEL", "info");
            command.output().unwrap()
        };
        if run(&["-h"]).status.code().is_none() {
            let waiver = format!("waived: UCX {version}: its ucx_perftest crashes\n");
            std::io::stdout().write_all(waiver.as_bytes()).unwrap();
            broken.push(version);
            continue;
        }
        let test = ["-l", "-t", "put_bw", "-d", "memory", "-x", "self", "-n", "100"];
        let said = text(&run(&test));
        let release = version.rsplit_once('.').unwrap().0;
        let line = format!("ucx_perftest {release}: allocators for cuda and cuda-managed memory");
        assert!(said.contains(&line) && said.contains("Final:"), "{version}: {said}");
    }
    broken
}

#[test]
fn the_real_thing() {
    let asked = std::env::var("UCX_CONFIGURE_REAL_TOOLKITS").is_ok_and(|value| value == "1");
    let name = "the_real_ucx_perftest_has_our_allocators";
    let mut waived = 0;
    if asked {
        // The loader cannot load the program that came with this one.
        assert_eq!(the_real_ucx_perftest_has_our_allocators(), ["1.18.1"]);
    } else {
        let why = "UCX_CONFIGURE_REAL_TOOLKITS is not 1";
        writeln!(std::io::stdout(), "waived: {name}: {why}").unwrap();
        waived += 1;
    }
    assert_eq!(waived, if asked { 0 } else { 1 });
}
