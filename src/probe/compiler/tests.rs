//! The compiler against real ones and against shims that misbehave.

use super::*;
use crate::{
    host::{env::Snapshot, process::Runner},
    request::{Source as Origin, Sourced, Variable},
    ui::Silent,
};

/// A request that names a compiler.
fn request(cc: Option<&str>) -> Request {
    let mut request = Request::bare("/nonexistent/build".into());
    if let Some(cc) = cc {
        let value = Sourced { value: cc.to_owned(), source: Origin::Argument("CC".to_owned()) };
        request.variables.insert(Variable::Cc, value);
    }
    request
}

/// A host with one directory before the system's in PATH.
fn host(dir: &Utf8Path) -> Host {
    let path = format!("{dir}:/usr/bin:/bin");
    let env = Snapshot::from_pairs([("PATH", path.as_str()), (TIME_LIMIT_VARIABLE, "1")]);
    let runner = Runner::with_environment(&env);
    Host { env, cwd: dir.to_owned(), runner }
}

/// A shim under the name `cc`.
fn shim(script: &str) -> Scratch {
    let scratch = Scratch::new(None).unwrap();
    fs::write_if_changed(
        &scratch.path().join("shim"),
        format!("#!/bin/sh\n{script}\n").as_bytes(),
        0o755,
    )
    .unwrap();
    scratch
}

fn failure(script: &str) -> Error {
    let scratch = shim(script);
    let host = host(scratch.path());
    Compiler::find(&request(Some("shim")), &host, &mut Silent).unwrap_err()
}

#[test]
fn the_system_has_one_and_it_works() {
    let scratch = Scratch::new(None).unwrap();
    let host = host(scratch.path());
    let compiler = Compiler::find(&request(None), &host, &mut Silent).unwrap();
    assert_eq!(host.runner.started(), 1, "one process says who it is");
    assert_eq!(compiler.pointer_size, 8);
    assert!(compiler.identity.target.ends_with("-linux-gnu"), "{}", compiler.identity.target);
    let good = Source { name: "a/good.c", text: "int main(void) { return 0; }\n" };
    let bad = Source { name: "a/bad.c", text: "#include <no/such/header.h>\n" };
    assert!(compiler.compile(&host, &mut Silent, &good, &[]).ok);
    assert!(compiler.check_syntax(&host, &mut Silent, &good, &[]).ok);
    assert!(compiler.link(&host, &mut Silent, &good, &[], &[], &[]).ok);
    let trial = compiler.compile(&host, &mut Silent, &bad, &[]);
    assert!(!trial.ok && trial.fault().is_none());
    assert!(trial.first_error_line().unwrap().starts_with("a-bad.c:1:10: fatal error"));
    assert_eq!(trial.command(), "LC_ALL=C cc -c -o probe.o a-bad.c");
    let libs = ["-lno_such_library".to_owned()];
    let trial = compiler.link(&host, &mut Silent, &good, &[], &[], &libs);
    assert!(trial.first_error_line().unwrap().contains("cannot find -lno_such_library"));
}

#[test]
fn wrappers_and_flags_are_part_of_the_command() {
    let scratch = shim("exec \"$@\"");
    let host = host(scratch.path());
    let compiler =
        Compiler::find(&request(Some("shim gcc -DX='1 2'")), &host, &mut Silent).unwrap();
    assert_eq!(compiler.command, ["shim", "gcc", "-DX=1 2"]);
    assert_eq!(compiler.kind, Kind::Gcc);
}

#[test]
fn shims_that_misbehave_are_broken_and_say_how() {
    for (script, means) in [
        ("exit 0", "exits with 0 whatever"),
        ("sleep 30", "hangs: no end within 1 s"),
        ("kill -SEGV $$", "ended by signal 11"),
        ("yes | head -c 2000000", "printed more than any compiler would"),
        ("echo licence expired >&2; exit 9", "ended with exit code 9"),
    ] {
        let error = failure(script);
        assert_eq!(error.code, Code::CompilerBroken, "{script}");
        assert!(error.means.iter().any(|text| text.contains(means)), "{script}: {error:?}");
        assert!(error.command.is_some() && error.said.is_some() && !error.hints.is_empty());
    }
    assert_eq!(failure("echo licence expired >&2; exit 9").said.unwrap(), "licence expired");
}

#[test]
fn what_is_not_there_is_said() {
    let scratch = Scratch::new(None).unwrap();
    let here = host(scratch.path());
    for (cc, means) in [
        ("no-such-compiler", "Looked in `"),
        ("/", "is a directory"),
        ("./gone", "There is no file"),
        ("/etc/passwd", "may not be executed"),
    ] {
        let error = Compiler::find(&request(Some(cc)), &here, &mut Silent).unwrap_err();
        assert_eq!(error.code, Code::NoCompiler, "{cc}");
        assert!(error.means[0].contains(means), "{cc}: {error:?}");
    }
    let error = Compiler::find(&request(Some("gcc 'x")), &here, &mut Silent).unwrap_err();
    assert_eq!(error.code, Code::Usage);
    let mut cross = request(None);
    cross.host = Some("mips64-unknown-linux-gnu".to_owned());
    let error = Compiler::find(&cross, &here, &mut Silent).unwrap_err();
    assert!(error.what.contains("`mips64-unknown-linux-gnu-gcc`"));
    assert!(!error.what.contains("`gcc`"), "a native compiler is no stand-in");
}
