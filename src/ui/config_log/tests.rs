//! The text, and a command repeated from it.

use camino::{Utf8Path, Utf8PathBuf};

use super::*;
use crate::{
    emit::fixtures,
    error::Code,
    host::{
        fs::{Scratch, names, read_to_string, write_if_changed},
        process::{Invocation, Runner, Status},
    },
    model::{Difference, Verdict},
};

/// A process that has ended, as if it had run.
fn completed(invocation: Invocation, code: i32, stdout: &str, stderr: &str) -> Completed {
    Completed {
        invocation,
        status: Status::Exited(code),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        truncated: false,
        took: std::time::Duration::from_millis(7),
    }
}

fn begin() -> ConfigLog {
    let arguments = ["--with-cuda=/opt/cu da".to_owned(), "CC=gcc".to_owned()];
    ConfigLog::new(&fixtures::report().tool, &arguments, &[("machine", "x86_64".to_owned())])
}

/// A run with a yes, a no, a kept answer and an error.
fn whole() -> String {
    let mut log = begin();
    let mut report = fixtures::report();
    let compile = Invocation::new("cc")
        .args(["-c", "-o", "/tmp/ucx-configure-Ab12Cd/3/probe.o", "-I/opt/cu da", "cuda_h.c"])
        .cwd("/home/me");
    let source = "#include <cuda.h>\n\nint main(void) { return 0; }\n";
    log.event(&Event::Decided("CUDA is looked for in `/opt/cu da`, as --with-cuda says"));
    log.event(&Event::Checking(&report.checks[0].label));
    let done = completed(compile, 0, "", "");
    log.event(&Event::Ran { completed: &done, source: Some(("cuda_h.c", source)) });
    log.event(&Event::Answered(&report.checks[0]));

    log.event(&Event::Checking(&report.checks[1].label));
    let link = Invocation::new("cc").args(["-o", "probe", "link.c", "-lcudart_static"]);
    let done = completed(link, 1, "", "ld: cannot find -lcudart_static\nlast\u{1b}[0m\r\n");
    log.event(&Event::Ran { completed: &done, source: Some(("link.c", "int main(void);")) });
    log.event(&Event::Answered(&report.checks[1]));

    report.checks[1].cached = true;
    log.event(&Event::Checking(&report.checks[1].label));
    log.event(&Event::Answered(&report.checks[1]));
    let version = Invocation::new("/opt/cu da/bin/nvcc").arg("--version");
    log.event(&Event::Ran { completed: &completed(version, 0, "12.8\n", ""), source: None });
    log.event(&Event::Answered(&report.checks[2]));
    let warning = Message {
        kind: MessageKind::Warning,
        code: "W0003".to_owned(),
        text: "nvcc is 12.6, cuda.h is 12.8".to_owned(),
        hint: Some("name one toolkit".to_owned()),
    };
    log.event(&Event::Message(&warning));
    log.event(&Event::Wrote { path: Utf8Path::new("config.h"), changed: true });
    report.messages.push(warning);
    report.differences = vec![Difference { quirk: "Q4".into(), text: "chosen by content".into() }];
    let error = Error::new(Code::NvmlNotMet, "NVML was needed and is not there")
        .command("cc x.c")
        .said("ld: no\nld: really no")
        .means("It was looked for in `/opt`.")
        .hint("install it");
    log.finish(Some(&report), Some(&error), Exit::NotMet)
}

#[test]
fn text() {
    insta::with_settings!({ snapshot_path => "../../../tests/snapshots/ui" }, {
        insta::assert_snapshot!("config-log", whole());
        let early = begin().finish(None, None, Exit::Usage);
        insta::assert_snapshot!("config-log-early", early);
    });
    assert_eq!(whole(), whole(), "equal runs write equal logs");
}

#[test]
fn what_was_written_is_bounded() {
    let mut log = begin();
    let long = format!("{}\n{}", "x".repeat(5000), "y\n".repeat(10_000));
    let mut done = completed(Invocation::new("cc"), 1, &long, &long);
    done.truncated = true;
    log.event(&Event::Ran { completed: &done, source: None });
    let text = log.finish(None, None, Exit::Done);
    assert!(text.len() < 10_000, "{}", text.len());
    assert_eq!(text.matches("(9801 more lines)").count(), 2);
    assert!(text.contains("(it wrote more than was kept)"));
}

/// Takes the shell function out of the log's own head, and repeats.
fn repeat(dir: &Utf8Path, number: usize) -> (Status, String, String) {
    let script = "sed -n '/^  repeat() (/,/^  )/p' config.log > repeat.sh
        . ./repeat.sh
        repeat \"$0\"";
    let invocation = Invocation::new("sh").args(["-uc", script, &number.to_string()]);
    let done = Runner::new().run(invocation.cwd(dir));
    (done.status, done.stdout, done.stderr)
}

#[test]
fn a_command_can_be_repeated_from_the_log() {
    let scratch = Scratch::new(None).unwrap();
    let dir: Utf8PathBuf = scratch.path().join("it's $a (dir)");
    crate::host::fs::create_dir_all(&dir).unwrap();
    // The log is elsewhere than the directory in which the commands ran.
    let build = scratch.path().join("build");
    crate::host::fs::create_dir_all(&build).unwrap();
    let mut log = begin();
    // Every source has lines that look like the log's own.
    let good = "#define A 1\n\n[1] - \n= 0\n$ false\n| x\n#undef A\n";
    let good = format!("/*\n{good}*/\n#ifndef NAME\n#error no name\n#endif\nint answer = 42;");
    let bad = "int main(void) { return missing_function(); }\n";
    let runs = [
        ("good.c", good.as_str(), vec!["-c", "-DNAME=\"a b\"", "-o", "good.o", "good.c"]),
        ("bad.c", bad, vec!["-Werror", "-o", "bad", "bad.c"]),
    ];
    for (name, text, args) in &runs {
        let invocation = Invocation::new("cc").args(args.iter().copied()).cwd(&dir);
        write_if_changed(&dir.join(name), text.as_bytes(), 0o644).unwrap();
        let done = Runner::new().run(invocation);
        log.event(&Event::Ran { completed: &done, source: Some((name, text)) });
    }
    let echo = Invocation::new("printf").args(["%s|", "two\nlines", "$HOME"]).cwd(&dir);
    log.event(&Event::Ran { completed: &Runner::new().run(echo), source: None });
    let text = log.finish(None, None, Exit::Done);
    for (name, ..) in &runs {
        crate::host::fs::remove_file_if_there(&dir.join(name)).unwrap();
    }
    crate::host::fs::remove_file_if_there(&dir.join("good.o")).unwrap();
    write_if_changed(&build.join("config.log"), text.as_bytes(), 0o644).unwrap();

    assert_eq!(repeat(&build, 1), (Status::Exited(0), String::new(), String::new()));
    assert_eq!(names(&dir), ["good.o"], "the source is gone again");
    let (status, _, stderr) = repeat(&build, 2);
    assert_eq!(status, Status::Exited(1));
    assert!(stderr.contains("missing_function"), "{stderr}");
    assert_eq!(repeat(&build, 3).1, "two\nlines|$HOME|");
    write_if_changed(&dir.join("good.c"), b"mine", 0o644).unwrap();
    assert_ne!(repeat(&build, 1).0, Status::Exited(0), "a file of the user's is in the way");
    assert_eq!(read_to_string(&dir.join("good.c")).unwrap(), "mine");
}

#[test]
fn a_check_without_evidence_has_its_answer_alone() {
    let mut log = begin();
    let check = fixtures::check("a.b", "for nvml.h", Verdict::Skipped, Some("CUDA is off"));
    log.event(&Event::Answered(&check));
    let text = log.finish(None, None, Exit::Done);
    assert!(text.contains("\n! checking for nvml.h... skipped (CUDA is off) [a.b]\n"));
}
