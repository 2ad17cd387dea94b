//! `hook-perftest`: bandwidth, latency and message rate of the transports, beside raw copies
//! of the driver in the same run.
//!
//! `--self-test` checks the bytes of copies between every two kinds of memory, measures what
//! the project has set itself as goals, and says which are met. It needs a GPU and nothing
//! else; exit code 1 says that bytes were wrong, 2 that it could not run.
#![expect(clippy::print_stdout, reason = "it reports on standard output")]
#![expect(clippy::print_stderr, reason = "and fails on standard error")]

mod buffer;
mod check;
mod measure;
mod pair;
mod report;
mod selftest;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::memtype::Kind;
use hook_runtime::settings::Modes;
use hook_runtime::transport::settings::Settings;

use buffer::{Form, Session};
use measure::{Maker, Test};
use report::{Format, Point};

/// Measures the transports of hook-runtime beside raw copies of the driver.
#[derive(Debug, Parser)]
#[command(name = "hook-perftest", version)]
struct Arguments {
    /// Check bytes and measure every goal
    #[arg(long)]
    self_test: bool,
    /// Measure raw copies of the driver instead of the transport
    #[arg(long)]
    raw: bool,
    /// Check bytes only: every two kinds of memory, and every form of memory of a second
    /// process
    #[arg(long)]
    check: bool,
    /// The destination belongs to a second process (cuda_ipc)
    #[arg(long, conflicts_with = "raw")]
    remote: bool,
    /// How the second process allocates
    #[arg(long, value_enum, default_value_t = Form::Plain)]
    memory: Form,
    /// The destination, or the second process, is on this device
    #[arg(long, value_name = "DEVICE")]
    peer: Option<i32>,
    /// Be the second process
    #[arg(long, hide = true, value_name = "BYTES")]
    own: Option<usize>,
    /// Open another process's memory by the key on standard input, and check its bytes
    #[arg(long, hide = true, requires = "at")]
    opens: bool,
    /// Where they are in what the key stands for
    #[arg(long, hide = true, value_name = "OFFSET:BYTES")]
    at: Option<String>,
    /// What to measure
    #[arg(short, long, value_enum, default_value_t = Test::Rate)]
    test: Test,
    /// The source's kind of memory
    #[arg(long, value_enum, default_value_t = MemoryKind::Pinned)]
    from: MemoryKind,
    /// The destination's kind of memory
    #[arg(long, value_enum, default_value_t = MemoryKind::Device)]
    to: MemoryKind,
    /// The sizes, from the first to the second by powers of two, or one size
    #[arg(short, long, default_value = "8:67108864", value_name = "BYTES[:BYTES]")]
    size: String,
    /// How many copies are under way at a time
    #[arg(short, long, default_value_t = 32)]
    window: usize,
    /// How long each size is measured, in milliseconds
    #[arg(long, default_value_t = 200)]
    time: u64,
    /// The device
    #[arg(short, long, default_value_t = 0)]
    device: i32,
    /// How results are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// A file for the curve, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<std::path::PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MemoryKind {
    Host,
    Pinned,
    Device,
    Managed,
}

impl From<MemoryKind> for Kind {
    fn from(kind: MemoryKind) -> Self {
        match kind {
            MemoryKind::Host => Self::Host,
            MemoryKind::Pinned => Self::Pinned,
            MemoryKind::Device => Self::Device,
            MemoryKind::Managed => Self::Managed,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// False if bytes were wrong.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let driver = Driver::get().map_err(|error| error.to_string())?;
    // What an application has: hooks that keep the table of memory types.
    let options = hook_runtime::Options { modes: Modes::BOTH, trace: None };
    match hook_runtime::install(&options) {
        Ok(_) => drop(hook_runtime::memtype::start()),
        Err(error) => eprintln!("warning: {error}"),
    }
    let session = Session::new(driver, arguments.device).map_err(|error| error.to_string())?;
    if let Some(size) = arguments.own {
        return pair::own(&session, arguments.memory, size).map(|()| true);
    }
    if arguments.opens {
        return pair::opens(&session, arguments.at.as_deref().unwrap_or_default());
    }
    if arguments.check {
        return check::all(&session, arguments.peer);
    }
    if arguments.self_test {
        return selftest::run(&session, arguments.format, arguments.time);
    }
    let sizes = sizes(&arguments.size)?;
    let peer = match arguments.peer {
        Some(device) => Some(session.peer(device).map_err(|error| error.to_string())?.0),
        None => None,
    };
    let both = (&session, peer.as_ref().unwrap_or(&session));
    let mut points = Vec::new();
    for size in sizes {
        let (from, to) = (arguments.from.into(), arguments.to.into());
        let maker = if arguments.raw {
            Maker::raw(both, from, to, size, arguments.window)
        } else if arguments.remote {
            let other = (both.1.device, arguments.memory);
            Maker::remote(&session, other, size, arguments.window, Settings::from_environment())
        } else {
            let settings = Settings::from_environment();
            Maker::transport(both, from, to, size, arguments.window, settings)
        };
        let mut maker = maker.map_err(|error| error.to_string())?;
        let window = if arguments.test == Test::Latency { 1 } else { arguments.window.max(1) };
        let seconds = maker.measure(arguments.test, window, arguments.time);
        points.push(Point { size, seconds: seconds.map_err(|error| error.to_string())? });
    }
    report::write(arguments.format, &points);
    if let Some(path) = &arguments.svg {
        #[expect(clippy::disallowed_methods, reason = "the one file that this program writes")]
        let written = std::fs::write(path, report::svg(&points));
        written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(true)
}

fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let number = |text: &str| {
        let parsed = text.parse().ok().filter(|&number: &usize| number > 0);
        parsed.ok_or_else(|| format!("`{text}` is not a number of bytes"))
    };
    let Some((first, last)) = text.split_once(':') else { return Ok(vec![number(text)?]) };
    let (first, last) = (number(first)?, number(last)?);
    let double = |size: &usize| size.checked_mul(2).filter(|&next| next <= last);
    Ok(std::iter::successors(Some(first), double).collect())
}
