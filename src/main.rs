//! The command `ucx-configure`: everything is in the library.

#![forbid(unsafe_code)]

use std::{io::Write as _, panic, process::ExitCode};

use ucx_configure::{
    error::{Code, Error},
    exit::Exit,
    host::{Host, env},
    model::Mode,
    run,
    ui::error::render,
};

fn main() -> ExitCode {
    let result = panic::catch_unwind(|| {
        let arguments = env::arguments();
        let host = match Host::real() {
            Ok(host) => host,
            Err(_) if run::works_anywhere(&arguments) => Host::from_nowhere(),
            Err(error) => return show(&error),
        };
        host.runner.interrupt.install();
        run::run(&arguments, host)
    });
    // The panic's own words are on standard error by now.
    let exit = result.unwrap_or_else(|_| {
        show(
            &Error::new(Code::Internal, "a fault of this program ended the run")
                .means("Outputs that were complete are there; none is half written.")
                .hint("Please report it, with the message above and the command line."),
        )
    });
    exit.into()
}

fn show(error: &Error) -> Exit {
    // Nobody is left to tell when standard error is closed.
    let _ = anstream::stderr().write_all(render(error, Mode::Strict).as_bytes());
    error.exit()
}
