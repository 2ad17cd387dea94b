//! `hook-perftest` as a program, on the mock driver.
#![expect(clippy::disallowed_methods, reason = "a test runs the program")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../tests/support/mock.rs"]
mod mock;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str], fail: Option<&str>) -> Output {
    run_with(arguments, fail.map(|fault| ("MOCK_CUDA_FAIL", fault)).as_slice())
}

fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mock = mock::shared_mock("13.0", mock::DEFAULT_PROLOGUE);
    let mut command: Command = mock.command(Path::new(env!("CARGO_BIN_EXE_hook-perftest")));
    command.args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_self_test_checks_bytes_and_measures_every_goal() {
    let output = run(&["--self-test", "--time", "4", "--format", "json"], None);
    assert!(output.status.success(), "{}", text(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["wrong"].as_array().unwrap().len(), 0);
    let goals = report["goals"].as_array().unwrap();
    assert_eq!(goals.len(), 17);
    for goal in goals {
        assert!(goal["raw"].as_f64().unwrap() > 0.0 && goal["ours"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_curve_is_measured_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("curve.svg");
    let svg = picture.to_str().unwrap();
    for raw in [&[][..], &["--raw"]] {
        let mut arguments =
            vec!["-s", "8:64", "--time", "4", "--format", "csv", "--from", "device", "--svg", svg];
        arguments.extend(raw);
        let output = run(&arguments, None);
        assert!(output.status.success(), "{}", text(&output));
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let sizes: Vec<_> =
            lines.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        assert_eq!(sizes, ["8", "16", "32", "64"]);
        assert_eq!(std::fs::read_to_string(&picture).unwrap().matches("<circle").count(), 4);
    }
}

#[test]
fn what_the_driver_says_is_what_the_user_reads() {
    let output = run(&["-s", "8"], Some("cuMemcpyBatchAsync_v2:719:0"));
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("`cuMemcpyBatchAsync_v2` returned error 719"));
    let output = run(&["-s", "none"], None);
    assert!(text(&output).contains("`none` is not a number of bytes"));
}

#[test]
fn bytes_are_checked_between_devices_and_in_every_form_of_memory() {
    let check = ["--check", "--peer", "1"];
    for (fabric, done, devices) in [("0", "not done: ", 1), ("1", "right", 2)] {
        let variables = [("MOCK_CUDA_DEVICES", "2"), ("MOCK_CUDA_FABRIC", fabric)];
        let output = run_with(if devices == 2 { &check } else { &check[..1] }, &variables);
        assert!(output.status.success(), "{}", text(&output));
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(devices == 1 || lines.starts_with("devices 0 and 1: peer access\n"), "{lines}");
        let (on_fabric, other): (Vec<_>, Vec<_>) =
            lines.lines().skip(devices - 1).partition(|line| line.contains("-fabric memory"));
        let expected = [(2, 16 + 3), (4, 3 * 16 + 2 * 3)][devices - 1];
        assert_eq!((on_fabric.len(), other.len()), expected, "{lines}");
        assert!(other.iter().all(|line| line.ends_with(": right")), "{lines}");
        let as_expected = |line: &&str| line.split_once(": ").unwrap().1.starts_with(done);
        assert!(on_fabric.iter().all(as_expected), "{lines}");
    }
}

#[test]
fn another_devices_memory_is_measured() {
    for how in [&["--raw"][..], &[], &["--remote", "--memory", "pool"]] {
        let mut arguments = vec!["-s", "64", "--time", "4", "--from", "device", "--peer", "1"];
        arguments.extend(how);
        let output = run_with(&arguments, &[("MOCK_CUDA_DEVICES", "2")]);
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).lines().count() == 2, "{}", text(&output));
    }
}

/// The script for real GPUs, on two mock ones: that it runs to its end, and finds no byte wrong.
#[test]
fn the_gpu_script_goes_through_all_its_parts() {
    let tools = tempfile::tempdir().unwrap();
    let smi = tools.path().join("nvidia-smi");
    std::fs::write(&smi, "#!/bin/sh\nprintf 'Mock GPU, 1.0\\nMock GPU, 1.0\\n'\n").unwrap();
    std::fs::set_permissions(&smi, PermissionsExt::from_mode(0o755)).unwrap();
    let mock = mock::shared_mock("13.0", mock::DEFAULT_PROLOGUE);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/gpu/transports.py");
    let path = std::env::var_os("PATH").unwrap();
    let parts = std::iter::once(tools.path().to_owned()).chain(std::env::split_paths(&path));
    let output = mock
        .command(Path::new("python3"))
        .arg(script)
        .args([tools.path(), Path::new(env!("CARGO_BIN_EXE_hook-perftest"))])
        .env("PATH", std::env::join_paths(parts).unwrap())
        .env("TRANSPORTS_TRY", "1")
        .env("MOCK_CUDA_DEVICES", "2")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("48 of 48 pairs of kinds of memory: every byte right"), "{said}");
    assert_eq!(said.matches("another process, pool |").count(), 2, "{said}");
    // The allocator is not there, and PyTorch need not be.
    assert!(said.contains("0 failed, 2 waived") || said.contains("0 failed, 1 waived"), "{said}");
}
