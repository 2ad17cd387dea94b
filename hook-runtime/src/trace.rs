//! A line for every event, so that an unmodified program can be watched.
//!
//! `HOOK_RUNTIME_TRACE=FILE` names the file; lines are appended. Each has six fields with
//! single blanks between them:
//!
//! ```text
//! ALLOC 0x7f1200000000 1048576 device cuMemAlloc_v2 4711:4712
//! FREE 0x7f1200000000 1048576 device cuMemFree_v2 4711:4711
//! ```
//!
//! `ALLOC` or `FREE`; the first address; the size in bytes, or `?` if it is not known; the
//! class (`unknown`, `device`, `managed`, `host`); the function that was called; the
//! process and thread that called it. New fields will only ever be added at the end.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

use crate::HookError;
use crate::event::{self, Event, EventKind, MemoryClass};
use crate::log::Line;
use crate::sys::output;

/// Writes all events from now on to the file `path`, after every other handler has seen
/// them. A second call changes nothing.
pub fn start(path: &OsStr) -> Result<(), HookError> {
    static STARTED: OnceLock<()> = OnceLock::new();
    if STARTED.get().is_some() {
        return Ok(());
    }
    let file = output::open_for_appending(Path::new(path))
        .map_err(|source| HookError::Trace { path: path.to_string_lossy().into_owned(), source })?;
    if STARTED.set(()).is_ok() {
        event::subscribe(i32::MAX, move |event| write(&file, event));
    }
    Ok(())
}

fn write(file: &OwnedFd, event: &Event) {
    let mut line = Line::new();
    // A line on the stack takes whatever fits, so this cannot fail.
    let _ = format(&mut line, event, (output::process_id(), output::thread_id()));
    output::append(file, line.finish());
}

fn format(line: &mut impl Write, event: &Event, caller: (i32, i32)) -> std::fmt::Result {
    let kind = match event.kind {
        EventKind::Allocated => "ALLOC",
        EventKind::Freed => "FREE",
    };
    write!(line, "{kind} {:#x} ", event.address)?;
    match event.size {
        0 => line.write_str("?")?,
        size => write!(line, "{size}")?,
    }
    let class = match event.class {
        MemoryClass::Unknown => "unknown",
        MemoryClass::Device => "device",
        MemoryClass::Managed => "managed",
        MemoryClass::Host => "host",
    };
    let symbol = event.symbol.to_str().unwrap_or("?");
    write!(line, " {class} {symbol} {}:{}", caller.0, caller.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event: &Event) -> String {
        let mut text = String::new();
        format(&mut text, event, (11, 12)).unwrap();
        text
    }

    #[test]
    fn lines_are_as_documented() {
        let mut event = Event {
            kind: EventKind::Allocated,
            address: 0x7f12_0000_0000,
            size: 1 << 20,
            class: MemoryClass::Device,
            symbol: c"cuMemAlloc_v2",
        };
        assert_eq!(text(&event), "ALLOC 0x7f1200000000 1048576 device cuMemAlloc_v2 11:12");
        event = Event { kind: EventKind::Freed, size: 0, class: MemoryClass::Unknown, ..event };
        assert_eq!(text(&event), "FREE 0x7f1200000000 ? unknown cuMemAlloc_v2 11:12");
    }
}
