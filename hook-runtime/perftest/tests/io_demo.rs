//! `io_demo` between two processes, over loopback, on the mock driver.
#![expect(clippy::disallowed_methods, reason = "a test runs the program")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../tests/support/mock.rs"]
mod mock;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// A client's and the server's words, and whether both ended well.
fn pair(client: &[&str], server: &[&str], fault: &str) -> (String, String, bool) {
    let mock = mock::shared_mock("13.0", mock::DEFAULT_PROLOGUE);
    let program = || -> Command { mock.command(Path::new(env!("CARGO_BIN_EXE_io_demo"))) };
    let mut other =
        program().args(server).env("MOCK_CUDA_FAIL", fault).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    let address = first.trim().strip_prefix("listening on ").unwrap();
    let output = program().arg(address).args(client).output().unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let ended = other.wait().unwrap().success() && output.status.success();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (text, rest, ended)
}

#[test]
fn buffers_of_every_kind_go_both_ways() {
    for (client, server, way) in [
        (&["-m", "host"][..], &[][..], "over the connection"),
        (&["-m", "pinned"], &["-m", "managed"], "over the connection"),
        (&["-m", "cuda"], &[], "over cuda_ipc"),
        (&["-m", "cuda"], &["-m", "cuda"], "over cuda_ipc"),
    ] {
        let client = [client, &["-n", "20", "-s", "300000"]].concat();
        let (said, served, ended) = pair(&client, server, "");
        assert!(ended, "{client:?}: {said}{served}");
        assert_eq!(served, "served 40 buffers, 0 wrong\n");
        for word in ["write: 20 buffers, ", "read: 20 buffers, "] {
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(said.matches(way).count(), 2, "{said}");
    }
}

#[test]
fn where_memory_cannot_be_opened_the_connection_does() {
    let (said, served, ended) =
        pair(&["-m", "cuda", "-n", "5"], &[], "cuIpcOpenMemHandle_v2:201:0");
    assert!(ended, "{said}{served}");
    assert!(
        said.contains("warning: over the connection: `cuIpcOpenMemHandle` returned error 201"),
        "{said}"
    );
    assert_eq!(served, "served 10 buffers, 0 wrong\n");
}

#[test]
fn nobody_there_is_said() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_io_demo"));
    let output = command.arg("127.0.0.1:1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: `127.0.0.1:1`: "));
}
