//! The commands: what is done, in which order, once the command line is
//! understood.
//!
//! Everything is put together here and decided elsewhere: `request` says what
//! is wanted, `engine` what is there, `emit` what the files hold, `build` what
//! is built. Errors come back to [`run`], which shows them and turns them into
//! the exit code.

mod check;
mod configure;
mod emit;
mod explain;
mod generate;
mod info;
mod install;
mod last_run;
mod matrix;
mod outputs;
mod print;
mod remarks;
mod remedy;
mod report_file;
mod requirement;
mod toolkit;
mod verify;

use std::{
    ffi::OsString,
    io::{self, Write as _},
};

use crate::{
    cli::{self, Command, Parsed, ToolkitCommand, Typed},
    error::{Code, Error},
    exit::Exit,
    host::Host,
    model::Mode,
    ui::error::render,
};

/// Runs the command that the arguments ask for, and shows how it ended.
pub fn run(arguments: &[OsString], host: Host) -> Exit {
    match cli::parse(arguments) {
        Ok(Parsed::Show(text)) => finish(print_line(text.trim_end()), Mode::Strict, arguments),
        Ok(Parsed::Run(typed)) => {
            let mode = match typed.options.compat {
                Some(_) => Mode::Compat,
                None => Mode::Strict,
            };
            finish(command(&typed, host), mode, arguments)
        }
        Err(error) => finish(Err(error), Mode::Strict, arguments),
    }
}

/// Whether it does not matter where the user stands: texts and lists that are
/// the same everywhere, and what is refused without a look at the disk.
pub fn works_anywhere(arguments: &[OsString]) -> bool {
    match cli::parse(arguments) {
        Ok(Parsed::Run(typed)) => match &typed.command {
            Command::Toolkit(command) => *command == ToolkitCommand::List,
            Command::Emit(options) => options.format.is_none(),
            Command::Generate(_) | Command::Info(_) => true,
            _ => false,
        },
        Ok(Parsed::Show(_)) | Err(_) => true,
    }
}

fn command(typed: &Typed, host: Host) -> Result<(), Error> {
    match &typed.command {
        Command::Configure => configure::run(typed, host),
        Command::Check(options) => check::run(typed, options, host),
        Command::Toolkit(command) => toolkit::run(typed, command, &host),
        Command::Demo(options) => toolkit::demo(typed, options, &host),
        Command::Emit(options) => emit::run(options, &host),
        Command::Info(options) => info::run(options, &host),
        Command::Explain(options) => explain::run(typed, options, host),
        Command::Verify(options) => verify::run(options, &host),
        Command::Install(options) => install::run(typed, options, &host),
        Command::Uninstall(options) => install::uninstall(typed, options, &host),
        Command::Matrix(options) => matrix::run(options, host),
        Command::Loaded => verify::loaded(),
        Command::Generate(what) => generate::run(*what),
    }
}

/// Shows an error, if there is one, and says how the run ends.
fn finish(result: Result<(), Error>, mode: Mode, arguments: &[OsString]) -> Exit {
    let Err(error) = result else { return Exit::Done };
    let error = match remedy::command(arguments, &error.remedies) {
        Some(command) => error.hint(format!("Run `{command}`.")),
        None => error,
    };
    // The first line is the original's where the error is one of its own.
    let mode = match error.code {
        Code::CudaNotMet | Code::NvmlNotMet | Code::GdrCopyNotMet => mode,
        _ => Mode::Strict,
    };
    // Nobody is left to tell when standard error is closed.
    let _ = anstream::stderr().write_all(render(&error, mode).as_bytes());
    error.exit()
}

/// Writes a text and a line break to standard output. A reader that has gone
/// away has read enough.
fn print_line(text: &str) -> Result<(), Error> {
    let mut stdout = anstream::stdout();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(Code::Write, "standard output cannot be written")
                .said(error.to_string()))
        }
        _ => Ok(()),
    }
}
