//! Shows the hooks at work without a GPU: a small C program allocates on the
//! mock driver, libucm_cuda is preloaded, and what the program did stands
//! beside the events that came of it.

use std::fmt::Write as _;

use camino::Utf8Path;

use super::{Wish, install, make};
use crate::{
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Scratch},
        process::{Completed, Invocation},
    },
    model::{CudaVersion, FEATURES, FeatureId, Module},
    probe::Compiler,
    request::Request,
    toolkit::mock::{self, MockDriver},
    ui::{Event, Sink},
};

/// The release that the mock driver plays.
const VERSION: CudaVersion = CudaVersion::new(12, 5);

/// What the demo came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demo {
    /// What is to be shown: the operations with their events, and a verdict.
    pub text: String,
    /// Whether each operation had exactly its events.
    pub ok: bool,
}

/// Builds everything and runs the program.
///
/// # Errors
///
/// Something cannot be built, or the program cannot be run.
pub fn demo(request: &Request, host: &Host, sink: &mut dyn Sink) -> Result<Demo, Error> {
    let compiler = Compiler::find(request, host, sink)?;
    let scratch;
    let room = match &request.state_dir {
        Some(state) => state.join("demo"),
        None => {
            scratch = Scratch::new(None)?;
            scratch.path().to_owned()
        }
    };
    fs::create_dir_all(&room)?;
    sink.event(&Event::Busy("compiling the mock driver"));
    let driver = mock::materialise(VERSION, &room, &compiler, host, sink);
    sink.event(&Event::Idle);
    let driver = driver?;
    let cfg = FEATURES.iter().map(|row| (row.cfg.to_owned(), is_on(row.id))).collect();
    let wish = Wish {
        cfg: &cfg,
        modules: &[Module::UcmCuda],
        compiler: Some(&compiler.identity),
        toolkit: None,
        is_kept: false,
        copied_to: None,
    };
    let made = make(&wish, request, host, sink)?;
    let built = install::install(&made, &room.join("modules"), sink)?;
    let module = built.first().map(|built| built.path.clone()).unwrap_or_default();
    let (said, trace) = run(&driver, &module, &room, host, sink)?;
    Ok(compare(&operations(&said), &events(&trace)))
}

/// Whether a feature is on in the release that the mock driver plays.
fn is_on(id: FeatureId) -> bool {
    let gdrcopy =
        matches!(id, FeatureId::GdrCopy | FeatureId::GdrCopyToMapping | FeatureId::GdrPinBufferV2);
    !gdrcopy && id.row().since.is_none_or(|since| since <= VERSION)
}

/// Runs the program under the hooks; what it said, and the trace.
fn run(
    driver: &MockDriver,
    module: &Utf8Path,
    room: &Utf8Path,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<(String, String), Error> {
    let trace = room.join("trace.txt");
    fs::remove_file_if_there(&trace)?;
    let invocation = Invocation::new(driver.demo.as_str())
        .env("LD_LIBRARY_PATH", driver.dir.as_str())
        .env("LD_PRELOAD", module.as_str())
        .env("HOOK_RUNTIME_TRACE", trace.as_str());
    let completed = host.runner.run(invocation);
    sink.event(&Event::Ran { completed: &completed, source: None });
    host.runner.interrupt.check()?;
    if !completed.success() {
        return Err(failed(&completed));
    }
    let text = if trace.exists() { fs::read_to_string(&trace)? } else { String::new() };
    Ok((completed.stdout, text))
}

fn failed(completed: &Completed) -> Error {
    Error::new(Code::BuildFailed, "the demo's program failed")
        .command(&completed.invocation)
        .said(format!("{}{}", completed.stdout, completed.stderr))
        .means(format!("It ran on the mock driver with the hooks preloaded: {}.", completed.status))
        .hint("Run the command without LD_PRELOAD to see whether the hooks are to blame, and please report it.")
}

/// One thing that the program did.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Operation {
    /// The function that it called.
    call: String,
    /// The address that it got or gave.
    address: String,
    /// The size, where it allocated.
    size: Option<String>,
}

/// One line of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Traced {
    /// `ALLOC` or `FREE`.
    kind: String,
    address: String,
    /// `?` where it is not known.
    size: String,
    /// Class and function, for the reader.
    rest: String,
}

/// Reads what the program said: `demo: CALL SIZE -> ADDRESS` where it
/// allocated, `demo: CALL ADDRESS` where it freed.
fn operations(said: &str) -> Vec<Operation> {
    let read = |line: &str| {
        let words: Vec<&str> = line.strip_prefix("demo: ")?.split(' ').collect();
        let (call, size, address) = match words[..] {
            [call, size, "->", address] => (call, Some(size.to_owned()), address),
            [call, address] => (call, None, address),
            _ => return None,
        };
        let address = address.starts_with("0x").then(|| address.to_owned())?;
        Some(Operation { call: call.to_owned(), address, size })
    };
    said.lines().filter_map(read).collect()
}

/// Reads the trace; its form is documented in hook-runtime.
fn events(trace: &str) -> Vec<Traced> {
    let read = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (kind, address, size) = (words.next()?, words.next()?, words.next()?);
        let rest: Vec<String> = words.take(2).collect();
        Some(Traced { kind, address, size, rest: rest.join(" ") })
    };
    trace.lines().filter_map(read).collect()
}

impl Operation {
    /// Whether an event is the one that this has to have.
    fn is_told_by(&self, event: &Traced) -> bool {
        let kind = if self.size.is_some() { "ALLOC" } else { "FREE" };
        let size = self.size.as_ref().is_none_or(|size| *size == event.size);
        kind == event.kind && self.address == event.address && size
    }

    fn text(&self) -> String {
        let Self { call, address, size } = self;
        match size {
            Some(size) => format!("{call} {size} -> {address}"),
            None => format!("{call} {address}"),
        }
    }
}

/// Puts operations and events side by side, in order.
fn compare(operations: &[Operation], events: &[Traced]) -> Demo {
    let mut text = String::new();
    row(&mut text, "the program", "its events");
    let mut left = events.iter().peekable();
    let mut faults = 0;
    let mut matched = 0;
    for (index, operation) in operations.iter().enumerate() {
        // An event that belongs to nothing that is still to come is one too many.
        let rest = &operations[index..];
        while let Some(event) =
            left.next_if(|event| !rest.iter().any(|later| later.is_told_by(event)))
        {
            faults += 1;
            row(&mut text, "(nothing)", &format!("{}   one too many", event.text()));
        }
        let told = left.next_if(|event| operation.is_told_by(event));
        let shown = told.map_or_else(|| "missing".to_owned(), Traced::text);
        faults += usize::from(told.is_none());
        matched += usize::from(told.is_some());
        row(&mut text, &operation.text(), &shown);
    }
    for event in left {
        faults += 1;
        row(&mut text, "(nothing)", &format!("{}   one too many", event.text()));
    }
    let count = operations.len();
    let ok = faults == 0 && matched > 0;
    let _ = match (ok, faults) {
        (true, _) => writeln!(
            text,
            "\n{count} operations, {matched} events: each operation has exactly its events"
        ),
        (false, 0) => writeln!(text, "\nthe program did nothing that could be told"),
        (false, _) => writeln!(
            text,
            "\n{count} operations, {matched} events that fit, {faults} that are missing or too many"
        ),
    };
    Demo { text, ok }
}

impl Traced {
    fn text(&self) -> String {
        let Self { kind, address, size, rest } = self;
        format!("{kind:<5} {address} {size} {rest}")
    }
}

fn row(text: &mut String, left: &str, right: &str) {
    let _ = writeln!(text, "{left:<50} {right}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
demo: 1 device(s)
demo: cudaMalloc 4096 -> 0x700000000000
demo: cudaFree 0x700000000000
demo: cudaMallocHost 64 -> 0x720000000000
demo: cudaFreeHost 0x720000000000
demo: done, 0 failure(s)
";
    const TRACE: &str = "\
ALLOC 0x700000000000 4096 device cudaMalloc 1:1
FREE 0x700000000000 4096 device cudaFree 1:1
ALLOC 0x720000000000 64 host cudaMallocHost 1:1
FREE 0x720000000000 ? host cudaFreeHost 1:1
";

    fn compared(trace: &str) -> Demo {
        compare(&operations(SAID), &events(trace))
    }

    #[test]
    fn each_operation_has_its_event() {
        let demo = compared(TRACE);
        assert!(demo.ok, "{}", demo.text);
        assert!(demo.text.contains("4 operations, 4 events: each operation has exactly"));
        assert!(demo.text.contains("cudaMalloc 4096 -> 0x700000000000"));
    }

    #[test]
    fn a_missing_a_wrong_and_a_surplus_event_are_found() {
        let lines: Vec<&str> = TRACE.lines().collect();
        for (trace, words) in [
            (lines[1..].join("\n"), "missing"),
            (lines[..3].join("\n"), "missing"),
            (format!("{}\n{TRACE}", lines[0]), "one too many"),
            (format!("{TRACE}{}", lines[0]), "one too many"),
            (TRACE.replace(" 4096 device cudaMalloc", " 4095 device cudaMalloc"), "missing"),
            (String::new(), "missing"),
        ] {
            let demo = compared(&trace);
            assert!(!demo.ok && demo.text.contains(words), "{}", demo.text);
        }
        assert!(!compare(&[], &[]).ok, "nothing done is no proof");
    }
}
