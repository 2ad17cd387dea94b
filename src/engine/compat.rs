//! The answers of UCX v1.19.0's configure for CUDA and gdrcopy, quirks
//! included (`--compat=v1.19.0`).
//!
//! Everything here follows recorded behaviour, not taste: the order of the
//! questions, what each compiles and links, which flags come first, what stays
//! behind after a "no", and the messages to the letter. Where the strict engine
//! would know better it is of no matter here; `tests/it/parity.rs` holds this
//! against the recorded runs of the real configure.
//!
//! | file | what |
//! |---|---|
//! | `shell` | the variables a configure script has, and its two ways to ask a compiler |
//! | `ask` | the three questions of autoconf: header, library, declaration |
//! | `cuda`, `gdrcopy` | the two macros, step by step |
//! | `made` | stubs and wheels, made into a DIR |
//! | `levels` | what UCX's version guards make of the headers |
//! | `report` | the report that follows |
//! | `summary` | the lines a configure ends with |

mod ask;
mod cuda;
mod gdrcopy;
mod levels;
mod made;
mod report;
mod shell;
mod summary;

use self::shell::Shell;
pub use self::summary::summary_lines;
use super::Outcome;
use crate::{
    error::{Code, Error},
    host::Host,
    model::MessageKind,
    request::Request,
    ui::Sink,
};

/// The option that the original reads without having declared it.
const LIBDIR_OPTION: &str = "--with-gdrcopy-libdir";

/// Detects as UCX v1.19.0's configure does.
pub fn configure(request: &Request, host: &Host, sink: &mut dyn Sink) -> Outcome {
    let mut shell = match Shell::start(request, host, sink) {
        Ok(shell) => shell,
        Err(error) => return report::without_compiler(request, error),
    };
    let error = whole(&mut shell).err();
    report::assemble(&mut shell, error)
}

/// The run as the original orders it: option check, compiler, CUDA, gdrcopy,
/// and the option check's warning once more where nobody overlooks it.
fn whole(shell: &mut Shell<'_>) -> Result<(), Error> {
    let checking = option_checking(&shell.request.command_line);
    let undeclared = shell.request.gdrcopy_libdir.is_some();
    let text = format!("unrecognized options: {LIBDIR_OPTION}");
    if undeclared && checking == OptionChecking::Fatal {
        shell.message(MessageKind::Error, "E0103", &text);
        return Err(Error::new(Code::UnknownOption, text));
    }
    let warn = undeclared && checking == OptionChecking::Warn;
    if warn {
        shell.message(MessageKind::Warning, "C0001", &text);
    }
    shell.prove_compiler()?;
    cuda::check(shell)?;
    gdrcopy::check(shell)?;
    levels::read(shell)?;
    modules(shell);
    if warn {
        shell.message(MessageKind::Warning, "C0001", &text);
    }
    Ok(())
}

/// The module strings. gdrcopy is listed whether or not there is CUDA, though
/// nothing of it is built without.
fn modules(shell: &mut Shell<'_>) {
    let cuda = if shell.cuda.happy { ":cuda" } else { "" };
    let gdrcopy = if shell.gdrcopy.happy { ":gdrcopy" } else { "" };
    let quoted = |text: &str| format!("\"{text}\"");
    shell.define("ucm_MODULES", quoted(cuda));
    shell.define("uct_MODULES", quoted(cuda));
    shell.define("uct_cuda_MODULES", quoted(gdrcopy));
    shell.define("ucx_perftest_MODULES", quoted(cuda));
    shell.set("build_modules", format!("{cuda}{gdrcopy}{cuda}{cuda}"));
    if shell.request.iodemo_cuda {
        shell.define("WITH_IODEMO_CUDA", "1");
    }
}

/// What `--enable-option-checking` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionChecking {
    /// The default.
    Warn,
    /// `no`.
    Off,
    /// `fatal`.
    Fatal,
}

/// The last word on option checking.
fn option_checking(arguments: &[String]) -> OptionChecking {
    arguments.iter().fold(OptionChecking::Warn, |before, argument| match argument.as_str() {
        "--disable-option-checking" | "--enable-option-checking=no" => OptionChecking::Off,
        "--enable-option-checking=fatal" => OptionChecking::Fatal,
        "--enable-option-checking" | "--enable-option-checking=yes" => OptionChecking::Warn,
        _ => before,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_option_checking_counts() {
        let checking =
            |text: &str| option_checking(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(checking("--with-cuda"), OptionChecking::Warn);
        assert_eq!(checking("--enable-option-checking=fatal"), OptionChecking::Fatal);
        assert_eq!(
            checking("--enable-option-checking=fatal --disable-option-checking"),
            OptionChecking::Off
        );
    }
}
