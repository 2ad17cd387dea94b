//! `hook-perftest` as a program, on the mock driver.
#![expect(clippy::disallowed_methods, reason = "a test runs the program")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../tests/support/mock.rs"]
mod mock;

use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str], fail: Option<&str>) -> Output {
    let mock = mock::shared_mock("13.0", mock::DEFAULT_PROLOGUE);
    let mut command: Command = mock.command(Path::new(env!("CARGO_BIN_EXE_hook-perftest")));
    command.args(arguments).envs(fail.map(|fault| ("MOCK_CUDA_FAIL", fault))).output().unwrap()
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
    assert_eq!(goals.len(), 13);
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
