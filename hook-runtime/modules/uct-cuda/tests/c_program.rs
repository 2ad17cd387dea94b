//! A program in C uses the transports through the module, on the mock driver.
#![expect(clippy::disallowed_methods, reason = "a test runs programs")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../../tests/support/mock.rs"]
mod mock;
#[path = "../../../tests/support/module.rs"]
mod module;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use mock::Mock;

fn build(mock: &Mock, directory: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = here.join("examples/transports.c");
    let include = format!("-I{}", here.join("include").display());
    // The name inside the module is the one that it is installed under.
    std::fs::copy(module::module("uct-cuda"), directory.join("libuct_cuda.so.0")).unwrap();
    let library = directory.join("libuct_cuda.so.0");
    let program = directory.join("transports");
    let result = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", &include, "-o"])
        .args([&program, &source, &library, &mock.libcuda()])
        .output()
        .unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
}

fn program(mock: &Mock, directory: &Path) -> Command {
    let mut command = Command::new(directory.join("transports"));
    let paths = [directory, &mock.dir].map(|path| path.to_str().unwrap().to_owned());
    command.env("LD_LIBRARY_PATH", paths.join(":"));
    command
}

#[test]
fn a_program_in_c_copies_and_shares_memory() {
    let mock = mock::shared_mock("13.0", mock::DEFAULT_PROLOGUE);
    let directory = tempfile::tempdir().unwrap();
    build(&mock, directory.path());
    let mut alone = program(&mock, directory.path());
    let output = alone.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.ends_with("right\n"), "{text}");
    assert!(text.starts_with("cuda_copy: ") && text.contains("\ncuda_ipc: "), "{text}");

    // Two processes: the key goes through a file.
    let key = directory.path().join("key");
    let mut owner = program(&mock, directory.path());
    owner.arg(&key).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut owner = owner.spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| line.unwrap());
    assert!(lines.any(|line| line == "exported"));
    let mut other = program(&mock, directory.path());
    let output = other.arg(&key).arg("open").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.ends_with("right\n"), "{text}");
    owner.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(lines.any(|line| line == "right") && owner.wait().unwrap().success());
}
