//! What can go wrong while it runs: signals, two runs at once, compilers that
//! misbehave, full disks. Nothing is ever half written, nothing is left
//! outside the build directory, and a later run works.

use std::{
    collections::BTreeMap,
    fs::File,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use ucx_configure::host::fs;

use crate::harness::{Run, Sandbox};

/// The run that everything here is done to.
const STUB: &[&str] = &["-B", "b", "--with-cuda=stub:12.5", "--no-build"];

/// The same, every question put.
const COLD: &[&str] = &["-B", "b", "--with-cuda=stub:12.5", "--no-build", "--no-cache"];

/// The outputs whose content does not depend on what came from the cache.
const OUTPUTS: [&str; 4] = ["config.h", "config.mk", "config.sh", "ucx-configure.json"];

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}

fn outputs(sandbox: &Sandbox) -> BTreeMap<&'static str, String> {
    let there = sandbox.names("work/b");
    OUTPUTS
        .into_iter()
        .filter(|name| there.iter().any(|other| other == name))
        .map(|name| (name, sandbox.read(&format!("work/b/{name}"))))
        .collect()
}

/// A compiler that works, after a while.
fn slow_compiler(sandbox: &Sandbox, seconds: &str) {
    sandbox
        .tool("slow-cc", &format!("echo $$ >> \"$HOME/../pids\"\nsleep {seconds}\nexec cc \"$@\""));
}

#[test]
fn a_signal_at_any_point_leaves_nothing_half_written() {
    let reference = Sandbox::new();
    let begin = Instant::now();
    reference.run(COLD).must_end(0);
    let whole = begin.elapsed();
    let expected = outputs(&reference);
    assert_eq!(expected.len(), OUTPUTS.len());

    let sandbox = Sandbox::new();
    let signals = [Signal::INT, Signal::TERM, Signal::KILL];
    for step in 0..12_u32 {
        let signal = signals[step as usize % signals.len()];
        let mut child = sandbox.spawn(COLD);
        thread::sleep(whole * step / 11);
        send(&child, signal);
        let code = sandbox.ended(wait(&mut child)).code;
        assert!([0, 130, -9, -2, -15].contains(&code), "step {step}: {code}");
        for (name, content) in outputs(&sandbox) {
            let same = sandbox.path("work").into_string();
            let other = reference.path("work").into_string();
            let is_whole = content.replace(&same, "X") == expected[name].replace(&other, "X");
            assert!(is_whole, "step {step}: {name}: {content}");
        }
        assert_eq!(sandbox.names("work").iter().filter(|name| *name != "b").count(), 0);
        assert!(sandbox.names("tmp").is_empty(), "{:?}", sandbox.names("tmp"));
        if signal != Signal::KILL {
            let litter = sandbox
                .names("work/b")
                .into_iter()
                .filter(|name| name.starts_with(".ucx-configure-"));
            assert_eq!(litter.count(), 0, "step {step}");
        }
    }
    sandbox.run(STUB).must_end(0);
    let state = sandbox.names("work/b/.ucx-configure");
    assert!(!state.iter().any(|name| name.starts_with("ucx-configure-")), "{state:?}");
    assert!(!sandbox.names("work/b").iter().any(|name| name.starts_with(".ucx-configure-")));
}

#[test]
fn a_build_directory_that_cannot_be_looked_at_ends_the_run() {
    let sandbox = Sandbox::new();
    fs::symlink("loop", &sandbox.path("work").join("loop")).unwrap();
    for dir in ["loop", &"n".repeat(300)] {
        let run = sandbox.run(["-B", dir, "--with-cuda=stub:12.5", "--no-build"]).must_end(5);
        assert!(run.stderr.contains("E0502") && run.stderr.contains("os error"), "{}", run.stderr);
    }
    assert_eq!(sandbox.names("work"), ["loop"]);
}

/// Waits, and fails the test when it takes too long.
fn wait(child: &mut Child) -> std::process::Output {
    use std::io::Read as _;
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.read_to_end(&mut bytes);
        bytes
    });
    let mut out = Vec::new();
    let _ = stdout.read_to_end(&mut out);
    let status = child.wait().unwrap();
    std::process::Output { status, stdout: out, stderr: reader.join().unwrap() }
}

#[test]
fn an_interrupted_run_ends_its_compiler_and_says_so() {
    let sandbox = Sandbox::new();
    slow_compiler(&sandbox, "60");
    let mut child = sandbox.spawn(STUB.iter().copied().chain(["CC=slow-cc"]));
    let pids =
        until(|| fs::read_to_string(&sandbox.path("pids")).ok().filter(|text| !text.is_empty()));
    send(&child, Signal::INT);
    let begin = Instant::now();
    let run = sandbox.ended(wait(&mut child)).must_end(130);
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(run.stderr.contains("interrupted by a signal [E0901]"), "{}", run.stderr);
    for pid in pids.lines() {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        assert!(test_kill_process(pid).is_err(), "the compiler still runs");
    }
    assert!(outputs(&sandbox).is_empty());
    assert!(sandbox.read("work/b/config.log").contains("exit code 130"));
}

#[test]
fn an_interrupted_build_ends_cargo_and_leaves_the_outputs() {
    let sandbox = Sandbox::new();
    sandbox.tool("cargo", "echo $$ > \"$HOME/../pids\"\nsleep 60");
    let mut child = sandbox.spawn(["-B", "b", "--with-cuda=stub:12.5"]);
    let pid = until(|| {
        let text = fs::read_to_string(&sandbox.path("pids")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    });
    send(&child, Signal::TERM);
    sandbox.ended(wait(&mut child)).must_end(130);
    assert!(test_kill_process(pid).is_err(), "cargo still runs");
    assert_eq!(outputs(&sandbox).len(), OUTPUTS.len(), "they were whole before");
    assert!(sandbox.names("work/b/lib/ucx").is_empty());
    sandbox.run(STUB).must_end(0);
}

/// Polls for something, ten seconds at most.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "it never came");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn two_runs_in_one_directory() {
    let sandbox = Sandbox::new();
    let children: Vec<Child> = (0..3).map(|_| sandbox.spawn(STUB)).collect();
    let runs: Vec<Run> =
        children.into_iter().map(|mut child| sandbox.ended(wait(&mut child))).collect();
    for run in &runs {
        assert!(run.code == 0 || run.stderr.contains("[E0504]"), "{run:?}");
    }
    assert!(runs.iter().any(|run| run.code == 0));
    assert_eq!(outputs(&sandbox).len(), OUTPUTS.len());
}

#[test]
fn a_second_run_waits_and_then_says_who_is_in_the_way() {
    let sandbox = Sandbox::new();
    sandbox.run(STUB).must_end(0);
    let lock =
        File::options().write(true).open(sandbox.path("work/b/.ucx-configure/lock")).unwrap();
    lock.lock().unwrap();
    let run = sandbox.run(STUB).must_end(7);
    assert!(run.stderr.contains("another run works in `[ROOT]/work/b` [E0504]"), "{}", run.stderr);
    let mut child = sandbox.spawn(STUB);
    thread::sleep(Duration::from_millis(500));
    lock.unlock().unwrap();
    sandbox.ended(wait(&mut child)).must_end(0);
}

#[test]
fn compilers_that_misbehave_are_no_answer() {
    let mut sandbox = Sandbox::new();
    sandbox.set("UCX_CONFIGURE_TIME_LIMIT", "1");
    sandbox.dir("work/directory");
    sandbox.write("work/not-executable", "");
    for (name, script, said) in [
        ("hangs", "sleep 100", "no end within 1 s"),
        ("crashes", "kill -SEGV $$", "signal 11"),
        ("prints", "yes error | head -c 5000000 >&2; exit 1", "error"),
        ("fails", "echo nothing works >&2; exit 1", "nothing works"),
    ] {
        sandbox.tool(name, script);
        let begin = Instant::now();
        let run =
            sandbox.run(["-B", "b", "--with-cuda=stub:12.5", &format!("CC={name}")]).must_end(3);
        assert!(begin.elapsed() < Duration::from_secs(20), "{name}");
        assert!(run.stderr.contains(said), "{name}: {}", run.stderr);
        assert!(run.stderr.len() < 10_000, "{name}: {} bytes", run.stderr.len());
        let log = sandbox.read("work/b/config.log");
        assert!(log.contains("exit code 3") && log.len() < 2_000_000, "{name}: {}", log.len());
        assert!(outputs(&sandbox).keys().all(|output| *output == "ucx-configure.json"), "{name}");
    }
    for path in ["./directory", "./not-executable", "/no/such/cc", "no-such-cc"] {
        let run =
            sandbox.run(["-B", "b", "--with-cuda=stub:12.5", &format!("CC={path}")]).must_end(3);
        assert!(run.stderr.contains("[E0301]"), "{path}: {}", run.stderr);
    }
}

#[test]
fn a_compiler_that_talks_much_is_still_believed() {
    let sandbox = Sandbox::new();
    sandbox.tool("loud-cc", "yes 'warning: none' | head -c 2000000 >&2\nexec cc \"$@\"");
    let run = sandbox.run(STUB.iter().copied().chain(["CC=loud-cc"])).must_end(0);
    assert!(run.stdout.contains("checking for cuda.h... yes"));
}

#[test]
fn a_fifo_in_the_place_of_an_output_is_told() {
    let sandbox = Sandbox::new();
    for name in ["config.log", "config.h", "ucx-configure.json", ".ucx-configure/lock"] {
        let path = format!("b/{name}");
        let made = format!("mkdir -p b/.ucx-configure && mkfifo '{path}'");
        assert!(sandbox.shell(&made).status().unwrap().success());
        let run = sandbox.run(STUB).must_end(5);
        assert!(run.stderr.contains(&format!("`[ROOT]/work/{path}`")), "{}", run.stderr);
        assert!(run.stderr.contains("[E0503]"), "{}", run.stderr);
        fs::remove_file_if_there(&sandbox.path(format!("work/{path}"))).unwrap();
    }
    sandbox.write("work/b/config.log", "");
    sandbox.run(STUB).must_end(0);
    assert!(sandbox.read("work/b/config.log").contains("exit code 0"));
}

#[test]
fn what_needs_no_directory_works_in_a_removed_one() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_ucx-configure");
    for (arguments, code) in
        [("--version", 0), ("--help", 0), ("toolkit list", 0), ("--frobnicate", 2), ("check", 5)]
    {
        let script =
            format!("mkdir gone && cd gone && rmdir ../gone && exec '{program}' {arguments}");
        let run = sandbox.ended(sandbox.shell(&script).output().unwrap()).must_end(code);
        assert_eq!(run.stdout.is_empty(), code != 0, "{arguments}");
    }
}

#[test]
fn a_full_disk_is_told_and_survived() {
    let sandbox = Sandbox::new();
    let small = sandbox.dir("small");
    let mounted = sandbox
        .shell(&format!("mount -t tmpfs -o size=64k none '{small}' 2>/dev/null"))
        .status()
        .unwrap()
        .success();
    if !mounted {
        crate::trees::waived("a full disk", "no right to mount a small one");
        return;
    }
    let run = sandbox.run(["-B", "../small/b", "--with-cuda=stub:12.5", "--no-build"]);
    let litter = sandbox.names("small/b");
    sandbox.shell(&format!("umount '{small}'")).status().unwrap();
    assert!(run.stderr.contains("No space left on device"), "{}", run.stderr);
    assert!([3, 5].contains(&run.code), "{run:?}");
    assert!(!litter.iter().any(|name| name.starts_with(".ucx-configure-")), "{litter:?}");
}
