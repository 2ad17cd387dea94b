//! Whether a compiler's answers mean anything, shown once per compiler and
//! flags: a good program builds, a bad one does not, and a missing symbol is
//! noticed.
//!
//! Without this, a compiler that is broken looks like a toolkit without
//! anything, and one that accepts everything like a toolkit with everything.

use super::{
    catalog::probe,
    compiler::{Compiler, Source, Trial, broken},
};
use crate::{
    error::{Code, Error},
    host::Host,
    ui::Sink,
};

/// The flags that every question of a run will carry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// CFLAGS and CPPFLAGS.
    pub cflags: Vec<String>,
    /// LDFLAGS.
    pub ldflags: Vec<String>,
    /// LIBS.
    pub libs: Vec<String>,
}

/// Puts the controls.
///
/// # Errors
///
/// The compiler, with these flags, builds nothing or accepts everything.
pub fn check(
    compiler: &Compiler,
    flags: &Flags,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let Flags { cflags, ldflags, libs } = flags;
    let good = compiler.link(host, sink, &source("control.ok"), cflags, ldflags, libs);
    host.runner.interrupt.check()?;
    if !good.ok {
        return Err(cannot_build(compiler, flags, &good));
    }
    let bad = compiler.compile(host, sink, &source("control.bad"), cflags);
    host.runner.interrupt.check()?;
    if bad.ok {
        return Err(accepts_anything(compiler, &bad));
    }
    let open = compiler.link(host, sink, &source("control.unresolved"), cflags, ldflags, libs);
    host.runner.interrupt.check()?;
    if open.ok {
        return Err(links_anything(compiler, &open));
    }
    Ok(())
}

fn source(id: &str) -> Source<'static> {
    let probe = probe(id);
    Source { name: probe.file, text: probe.text }
}

fn cannot_build(compiler: &Compiler, flags: &Flags, trial: &Trial) -> Error {
    let name = compiler.command.join(" ");
    let error = Error::new(
        Code::CompilerBroken,
        format!("the C compiler `{name}` cannot build an empty program"),
    );
    let error = broken(error, trial);
    if *flags == Flags::default() {
        return error.hint(
            "Install the C library's headers and start files (Debian: `apt-get install \
             libc6-dev`), or set CC to a compiler that works.",
        );
    }
    error.hint(
        "Try again without CFLAGS, CPPFLAGS, LDFLAGS and LIBS; if that works, one of them is at \
         fault.",
    )
}

fn accepts_anything(compiler: &Compiler, trial: &Trial) -> Error {
    let name = compiler.command.join(" ");
    Error::new(Code::CompilerBroken, format!("the C compiler `{name}` accepts a wrong program"))
        .command(trial.command())
        .said(trial.first_error_line().unwrap_or_default())
        .means("It exits with 0 whatever it is given, so that its \"yes\" says nothing.")
        .hint("Set CC to a C compiler, such as `CC=gcc`.")
}

fn links_anything(compiler: &Compiler, trial: &Trial) -> Error {
    let name = compiler.command.join(" ");
    Error::new(Code::CompilerBroken, format!("`{name}` links a program with a missing symbol"))
        .command(trial.command())
        .said(trial.first_error_line().unwrap_or_default())
        .means("Whether a library has a function cannot be asked in this way.")
        .hint(
            "Take options such as `-shared`, `-r` or `--unresolved-symbols=ignore-all` out of \
             CFLAGS and LDFLAGS.",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::fs::{Scratch, write_if_changed},
        request::{Request, Source as Origin, Sourced, Variable},
        ui::Silent,
    };

    fn outcome(script: &str, ldflags: &[&str]) -> Result<(), Error> {
        let scratch = Scratch::new(None).unwrap();
        let shim = scratch.path().join("shim");
        write_if_changed(&shim, format!("#!/bin/sh\n{script}\n").as_bytes(), 0o755).unwrap();
        let mut request = Request::bare("/nonexistent/build".into());
        let value = Sourced { value: shim.to_string(), source: Origin::Default };
        request.variables.insert(Variable::Cc, value);
        let host = Host::real().unwrap();
        let compiler = Compiler::find(&request, &host, &mut Silent)?;
        let ldflags = ldflags.iter().map(|&flag| flag.to_owned()).collect();
        check(&compiler, &Flags { ldflags, ..Flags::default() }, &host, &mut Silent)
    }

    #[test]
    fn a_compiler_that_works_passes() {
        assert_eq!(outcome("exec cc \"$@\"", &[]), Ok(()));
    }

    #[test]
    fn a_compiler_that_does_not_is_broken_never_a_no() {
        let preprocesses = "case \"$*\" in *identity*) exec cc \"$@\";; esac";
        for (rest, what) in [
            ("exit 0", "accepts a wrong program"),
            ("exit 1", "cannot build an empty program"),
            ("kill -SEGV $$", "cannot build an empty program"),
            ("case $1 in -c) exec cc \"$@\";; esac; exit 0", "with a missing symbol"),
        ] {
            let error = outcome(&format!("{preprocesses}\n{rest}"), &[]).unwrap_err();
            assert_eq!(error.code, Code::CompilerBroken, "{rest}");
            assert!(error.what.contains(what), "{rest}: {error:?}");
            assert!(error.command.is_some() && !error.means.is_empty() && !error.hints.is_empty());
        }
    }

    #[test]
    fn flags_that_hide_missing_symbols_are_told() {
        let error = outcome("exec cc \"$@\"", &["-shared"]).unwrap_err();
        assert!(error.hints[0].contains("-shared"));
        let error = outcome("exec cc \"$@\"", &["-Wl,--no-such-option"]).unwrap_err();
        assert!(error.hints[0].contains("LDFLAGS"));
    }
}
