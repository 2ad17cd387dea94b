//! What cargo says, read.

use super::*;
use crate::host::{env::Snapshot, process::Runner};

fn host(pairs: &[(&str, &str)]) -> Host {
    let env = Snapshot::from_pairs(pairs.iter().copied());
    Host { env, cwd: "/where".into(), runner: Runner::new() }
}

fn order<'a>(modules: &'a [Module]) -> Order<'a> {
    Order {
        cargo: Utf8Path::new("/bin/cargo"),
        source: Utf8Path::new("/sp ace/src"),
        target: Utf8Path::new("/build/target"),
        flags: Utf8Path::new("/build/flags.json"),
        bindings: None,
        modules,
        bistro: true,
        offline: false,
        rust_target: None,
        linker: None,
        compiler: None,
        stamp: None,
        rebuild: false,
    }
}

#[test]
fn without_cargo_the_error_names_no_build() {
    let error = find(&host(&[("PATH", "/no/bin"), ("HOME", "/no/home")])).unwrap_err();
    assert_eq!(error.code, Code::NoCargo);
    assert_eq!(error.means, ["Looked for `/no/bin/cargo`, `/no/home/.cargo/bin/cargo`."]);
    assert!(error.hints.iter().any(|hint| hint.contains("--no-build")));
    let error = find(&host(&[("CARGO", "/no/cargo")])).unwrap_err();
    assert!(error.means[0].contains("`/no/cargo`"));
}

#[test]
fn the_command_follows_the_order() {
    let host = host(&[("RUSTFLAGS", "-C opt-level=1"), ("HOME", "/home/u")]);
    let modules = [Module::UcmCuda, Module::UctCuda];
    let text = invocation(&order(&modules), &host).to_string();
    assert!(text.contains("--locked --profile module"), "{text}");
    assert!(text.contains("-p ucm-cuda -p uct-cuda"), "{text}");
    assert!(!text.contains("--offline") && !text.contains("--no-default-features"), "{text}");
    let without = Order {
        bistro: false,
        offline: true,
        linker: Some("gcc-12".to_owned()),
        ..order(&modules)
    };
    let invocation = invocation(&without, &host);
    let text = invocation.to_string();
    assert!(text.contains("--no-default-features --offline"), "{text}");
    assert!(text.contains(r#"linker="gcc-12""#) || text.contains("gcc-12"), "{text}");
    let flags: Vec<&str> = invocation.env["CARGO_ENCODED_RUSTFLAGS"].split('\u{1f}').collect();
    assert_eq!(
        flags,
        [
            "-C",
            "opt-level=1",
            "--remap-path-prefix=/where=/cwd",
            "--remap-path-prefix=/sp ace/src=/ucx-configure",
            "--remap-path-prefix=/build/target=/target",
            "--remap-path-prefix=/home/u/.cargo=/cargo",
        ]
    );
}

#[test]
fn artifacts_are_the_shared_libraries_of_messages() {
    let stdout = concat!(
        r#"{"reason":"compiler-artifact","filenames":["/t/libhook_runtime.rlib"]}"#,
        "\nnot json\n",
        r#"{"reason":"compiler-artifact","filenames":["/t/libucm_cuda.so"]}"#,
        "\n",
        r#"{"reason":"build-finished","success":true}"#,
    );
    assert_eq!(artifacts(stdout), ["/t/libucm_cuda.so"]);
}

/// What cargo wrote, and a word of the meaning that has to come of it.
const FAILURES: &[(&str, &str, &str)] = &[
    (
        "    Updating the index\nerror: failed to get `libc` as a dependency of package `hook-runtime`\n\nCaused by:\n  download of config.json failed\n\nCaused by:\n  Could not resolve host\n",
        "error: failed to get `libc` as a dependency of package `hook-runtime`\n\nCaused by:\n  download of config.json failed\n\nCaused by:\n  Could not resolve host",
        "not on this machine",
    ),
    (
        "error: rustc 1.70.0 is not supported by the following package:\n  hook-runtime@0.1.0 requires rustc 1.95\n\n",
        "error: rustc 1.70.0 is not supported by the following package:\n  hook-runtime@0.1.0 requires rustc 1.95",
        "too old",
    ),
    (
        "   Compiling libc v0.2\nerror: linker `cc` not found\n  |\n  = note: No such file or directory (os error 2)\n\nerror: could not compile\n",
        "error: linker `cc` not found\n  |\n  = note: No such file or directory (os error 2)",
        "could not be linked",
    ),
    (
        "warning: unused\n\nerror[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:1:1\n\nerror: could not compile\n",
        "error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:1:1",
        "does not compile",
    ),
    ("a\nb\n\nc\n", "a\nb\nc", "a reason of its own"),
];

#[test]
fn failures_show_the_first_error_and_what_it_means() {
    for (stderr, said, means) in FAILURES {
        let completed = Completed {
            invocation: Invocation::new("cargo"),
            status: Status::Exited(101),
            stdout: String::new(),
            stderr: (*stderr).to_owned(),
            truncated: false,
            took: Duration::ZERO,
        };
        let error = failure(&completed, false);
        assert_eq!(error.said.as_deref(), Some(*said));
        assert!(error.means[0].contains(means), "{}", error.means[0]);
        assert!(error.command.is_some() && error.hints.len() >= 2);
    }
}

#[test]
fn for_another_machine_cargo_is_told_which() {
    let modules = [Module::UcmCuda];
    let cross = Order {
        rust_target: Some("aarch64-unknown-linux-gnu".to_owned()),
        linker: Some("aarch64-linux-gnu-gcc".to_owned()),
        ..order(&modules)
    };
    let args = invocation(&cross, &host(&[])).args;
    let has = |pair: [&str; 2]| args.windows(2).any(|words| words == pair);
    assert!(has(["--target", "aarch64-unknown-linux-gnu"]), "{args:?}");
    let linker = r#"target.aarch64-unknown-linux-gnu.linker="aarch64-linux-gnu-gcc""#;
    assert!(has(["--config", linker]), "{args:?}");
}

#[test]
fn what_is_missing_of_rust_is_named() {
    for (said, means) in [
        (
            "error: could not execute process `rustc -vV` (never executed)\n\nCaused by:\n  No such file or directory (os error 2)",
            "rustc, the compiler",
        ),
        ("error: could not execute process `/x/rustc -vV` (never executed)", "rustc, the compiler"),
        (
            "error[E0463]: can't find crate for `core`\n  = note: the `aarch64-unknown-linux-gnu` target may not be installed\nerror: could not compile `x`",
            "no standard library",
        ),
    ] {
        let found = MEANINGS.iter().find(|row| row.marks.iter().any(|mark| said.contains(mark)));
        assert!(found.unwrap().means.contains(means), "{said}");
    }
}
