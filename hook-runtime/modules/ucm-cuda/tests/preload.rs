//! The module preloaded into an unmodified program: every call of the program is one event,
//! with its address and size, whatever the mechanism and the kind of runtime.
#![expect(clippy::disallowed_methods, reason = "tests build and run things themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};

#[path = "../../../tests/hooks_support/mock.rs"]
mod mock;
mod support;
use mock::Mock;
use support::module;

fn run(program: &Path, mode: &str, trace: &Path) -> Output {
    Command::new(program)
        .env("LD_PRELOAD", module())
        .env("HOOK_RUNTIME_TRACE", trace)
        .env("UCX_MEM_CUDA_HOOK_MODE", mode)
        .env_remove("UCX_MEM_LOG_LEVEL")
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap()
}

/// What happened: allocated or freed, at which address, how many bytes.
type Happened = (bool, String, String);

/// What the program says that it did: `demo: NAME SIZE -> ADDRESS` and `demo: NAME ADDRESS`.
/// With `driver_only` the calls of the runtime interface are left out.
fn said(output: &Output, driver_only: bool) -> Vec<Happened> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut sizes = HashMap::new();
    let mut happened = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let (name, event) = match words[..] {
            ["demo:", name, size, "->", address] => {
                sizes.insert(address.to_owned(), size.to_owned());
                (name, (true, address.to_owned(), size.to_owned()))
            }
            ["demo:", name, address] if address.starts_with("0x") => {
                (name, (false, address.to_owned(), sizes[address].clone()))
            }
            _ => continue,
        };
        if !(driver_only && name.starts_with("cuda")) {
            happened.push(event);
        }
    }
    assert!(happened.len() > 10, "{text}");
    happened
}

/// What the trace says.
fn traced(trace: &Path) -> (Vec<Happened>, Vec<String>) {
    let text = std::fs::read_to_string(trace).unwrap();
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let ["ALLOC" | "FREE", address, size, class, symbol, caller] = words[..] else {
            panic!("not as documented: `{line}`");
        };
        assert!(["unknown", "device", "managed", "host"].contains(&class), "{line}");
        assert!(caller.contains(':'), "{line}");
        ((words[0] == "ALLOC", address.to_owned(), size.to_owned()), symbol.to_owned())
    });
    lines.unzip()
}

#[test]
fn every_call_is_one_event_in_every_mode() {
    let mock = Mock::build(12_050, "580");
    let shared = mock.demo("shared", false);
    let fixed = mock.demo("static", true);
    let bistro = cfg!(all(feature = "bistro", target_arch = "x86_64"));
    let with_bistro = [
        (&shared, "bistro", true),
        (&shared, "bistro,reloc", true),
        (&fixed, "bistro", true),
        (&fixed, "bistro,reloc", true),
    ];
    let with_reloc = [
        (&shared, "reloc", true),
        // Calls within the program use no slot: only those into the driver are seen.
        (&fixed, "reloc", false),
    ];
    let with_bistro = with_bistro.into_iter().filter(|_| bistro);
    for (program, mode, all) in with_bistro.chain(with_reloc) {
        let trace = mock.path("trace");
        let output = run(program, mode, &trace);
        let (events, symbols) = traced(&trace);
        std::fs::remove_file(&trace).unwrap();
        assert_eq!(events, said(&output, !all), "{} {mode}", program.display());
        let runtime = symbols.iter().any(|symbol| symbol.starts_with("cuda"));
        assert_eq!(runtime, mode != "bistro" && program == &shared, "{mode}: {symbols:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn without_hooks_the_program_runs_all_the_same() {
    let mock = Mock::build(12_050, "580");
    let program = mock.demo("shared", false);
    let trace = mock.path("trace");
    let output = run(&program, "none", &trace);
    said(&output, false);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("hooks are switched off by `UCX_MEM_CUDA_HOOK_MODE=none`"), "{text}");
    assert!(!trace.exists());
    let nowhere = run(&program, "reloc", Path::new("/no/such/directory/trace"));
    said(&nowhere, false);
    let text = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(text.contains("cannot open the trace file `/no/such/directory/trace`"), "{text}");
}

#[test]
fn the_coverage_report_is_written_when_the_module_is_loaded() {
    let mock = Mock::build(12_050, "580");
    let report = mock.path("coverage");
    let driver = mock.path("libcuda.so.1");
    for (preload, row, outcome) in [
        (format!("{} {}", driver.display(), module().display()), "cuMemAlloc_v2", "bistro"),
        (module().display().to_string(), "cuMemAlloc_v2", "waiting"),
    ] {
        let output = Command::new("/bin/true")
            .env("LD_PRELOAD", preload)
            .env("HOOK_RUNTIME_COVERAGE", &report)
            .env_remove("UCX_MEM_CUDA_HOOK_MODE")
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = std::fs::read_to_string(&report).unwrap();
        std::fs::remove_file(&report).unwrap();
        let row = text.lines().find(|line| line.split_whitespace().next() == Some(row)).unwrap();
        // Elsewhere there are slots alone, and this program has none.
        let bistro = cfg!(feature = "bistro") && cfg!(target_arch = "x86_64");
        let outcome = if bistro { outcome } else { "waiting" };
        assert!(row.split_whitespace().nth(1) == Some(outcome), "{row}");
    }
}

#[test]
fn the_module_loads_where_there_is_no_cuda() {
    let trace = tempfile::tempdir().unwrap();
    let trace = trace.path().join("trace");
    let output = run(Path::new("/bin/true"), "bistro,reloc", &trace);
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "");
}
