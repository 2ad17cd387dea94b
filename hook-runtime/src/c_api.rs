//! What the modules export to C: the bodies behind their `hook_runtime_*` functions.
//!
//! Nothing here panics across the edge, and every result can be told from a failure.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

pub(crate) mod handlers;
pub mod transports;

use crate::event::{self, Event, Subscription};
use crate::sys::{environment, output};
use crate::{Coverage, Options, install, settings, uninstall};

/// The version of the runtime.
pub fn version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"unknown",
        };
    VERSION.as_ptr()
}

/// Kind of event: memory was allocated. It is told after the call.
pub const HOOK_RUNTIME_EVENT_ALLOC: c_int = 1 << 20;
/// Kind of event: memory is freed. It is told before the call.
pub const HOOK_RUNTIME_EVENT_FREE: c_int = 1 << 21;
/// With the kinds: no hooks are to be installed now.
pub const HOOK_RUNTIME_EVENT_NO_INSTALL: c_int = 1 << 24;
/// With `HOOK_RUNTIME_EVENT_ALLOC`: what is allocated already is told at once.
pub const HOOK_RUNTIME_EVENT_EXISTING: c_int = 1 << 25;

/// Class of memory: not known; CUDA can be asked.
pub const HOOK_RUNTIME_MEMORY_UNKNOWN: u32 = 0;
/// Class of memory: a device's.
pub const HOOK_RUNTIME_MEMORY_DEVICE: u32 = 1;
/// Class of memory: managed.
pub const HOOK_RUNTIME_MEMORY_MANAGED: u32 = 2;
/// Class of memory: the host's, page-locked.
pub const HOOK_RUNTIME_MEMORY_HOST: u32 = 3;

/// Status: done.
pub const HOOK_RUNTIME_OK: c_int = 0;
/// Status: not done; a message is logged.
pub const HOOK_RUNTIME_ERROR: c_int = -1;
/// Status: the arguments make no sense.
pub const HOOK_RUNTIME_INVALID: c_int = -5;

/// One event. It is valid until the handler returns.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CEvent {
    /// 1: allocated; 2: freed.
    pub kind: u32,
    /// One of `HOOK_RUNTIME_MEMORY_*`.
    pub memory_class: u32,
    /// The first address.
    pub address: *mut c_void,
    /// The number of bytes; 0 if not known.
    pub size: usize,
    /// The function that was called, or `existing`. The text stays for ever.
    pub symbol: *const c_char,
}

impl From<&Event> for CEvent {
    fn from(event: &Event) -> Self {
        Self {
            kind: event.kind as u32,
            memory_class: event.class as u32,
            address: event.address as *mut c_void,
            size: event.size,
            symbol: event.symbol.as_ptr(),
        }
    }
}

/// A handler. It is called by the thread that allocates or frees, must not throw, and may
/// itself allocate and free. Its second argument is the one that it was set with.
pub type CHandler = Option<unsafe extern "C" fn(event: *const CEvent, argument: *mut c_void)>;

/// The same where there certainly is one.
pub type CFunction = unsafe extern "C" fn(event: *const CEvent, argument: *mut c_void);

/// Installs hooks as the environment says. 0: done; -1: not done, and a message is logged.
pub fn install_hooks() -> c_int {
    guarded(-1, || match install(&Options::from_environment()) {
        Ok(()) => 0,
        Err(error) => {
            crate::log::error!("no hooks: {error}");
            -1
        }
    })
}

/// Takes all hooks out again.
pub fn uninstall_hooks() {
    guarded((), uninstall);
}

/// Sets `handler` for the kinds of `events`, with the manners of UCX's memory events: hooks
/// are installed unless [`HOOK_RUNTIME_EVENT_NO_INSTALL`] says no; handlers of lower
/// `priority` come first.
///
/// # Safety
///
/// `handler` may be called by any thread, with `argument`, until it is unset.
pub unsafe fn set_event_handler(
    events: c_int,
    priority: c_int,
    handler: CHandler,
    argument: *mut c_void,
) -> c_int {
    let kinds = events & (HOOK_RUNTIME_EVENT_ALLOC | HOOK_RUNTIME_EVENT_FREE);
    let Some(handler) = handler.filter(|_| kinds != 0) else { return HOOK_RUNTIME_INVALID };
    if events & HOOK_RUNTIME_EVENT_NO_INSTALL == 0 && install_hooks() != 0 {
        return HOOK_RUNTIME_ERROR;
    }
    // SAFETY: by this function's contract.
    guarded(HOOK_RUNTIME_ERROR, || unsafe {
        handlers::set(events, priority, handler, argument);
        HOOK_RUNTIME_OK
    })
}

/// Ends what [`set_event_handler`] began, for the kinds of `events`. On return the handler
/// does not run any more, unless this is called inside a handler.
pub fn unset_event_handler(events: c_int, handler: CHandler, argument: *mut c_void) {
    if let Some(handler) = handler {
        guarded((), || handlers::unset(events, handler, argument));
    }
}

/// Subscribes `handler`, which is called with `argument`. 0 if there is none, else the
/// number of the subscription.
///
/// # Safety
///
/// `handler` may be called by any thread, with `argument`, until the subscription ends.
pub unsafe fn subscribe(priority: c_int, handler: CHandler, argument: *mut c_void) -> u64 {
    let Some(handler) = handler else { return 0 };
    let called = handlers::Called { handler, argument };
    guarded(0, || event::subscribe(priority, move |event| called.with(event)).id())
}

/// Ends a subscription. 0: ended; -1: there is none with this number.
pub fn unsubscribe(id: u64) -> c_int {
    guarded(-1, || if Subscription::from_id(id).cancel() { 0 } else { -1 })
}

/// Writes the coverage report into `buffer`, cut off to `length` bytes with the NUL at its
/// end. Returns the length of the whole text without the NUL, as `snprintf` does.
///
/// # Safety
///
/// `buffer` has room for `length` bytes; it may be null if `length` is 0.
pub unsafe fn coverage(buffer: *mut c_char, length: usize) -> usize {
    let text = guarded(String::new(), || Coverage::now().to_string());
    // SAFETY: by this function's contract.
    unsafe { write_text(&text, buffer, length) };
    text.len()
}

/// Writes as much of `text` as there is room for, with a NUL at its end.
///
/// # Safety
///
/// `buffer` has room for `length` bytes; it may be null if `length` is 0.
unsafe fn write_text(text: &str, buffer: *mut c_char, length: usize) {
    if buffer.is_null() || length == 0 {
        return;
    }
    let kept = text.floor_char_boundary(length - 1);
    // SAFETY: `kept` is less than the room that the caller vouches for.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), kept) };
    // SAFETY: as above; one byte is left for the NUL.
    let end = unsafe { buffer.add(kept) };
    // SAFETY: as above.
    unsafe { end.write(0) };
}

/// What libucm_cuda does when it is loaded: hooks are installed at once if a trace or a
/// coverage report is asked for, since then nobody else will ask for them.
pub fn on_load() {
    guarded((), || {
        let options = Options::from_environment();
        #[cfg(bistro_hooks)]
        if options.modes.bistro {
            crate::patch::prepare();
        }
        let report = environment::variable(settings::COVERAGE);
        if options.trace.is_none() && report.is_none() {
            return;
        }
        match (install(&options), report) {
            (Ok(()), Some(path)) => write_coverage(&Coverage::now(), Path::new(&path)),
            (Ok(()), None) => {}
            (Err(error), _) => crate::log::error!("no hooks: {error}"),
        }
    });
}

fn write_coverage(coverage: &Coverage, path: &Path) {
    match output::open_for_appending(path) {
        Ok(file) => output::append(&file, coverage.to_string().as_bytes()),
        Err(error) => crate::log::error!("no coverage report in `{}`: {error}", path.display()),
    }
}

fn guarded<R>(on_panic: R, work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        crate::log::error!("a call into the hook runtime has panicked");
        on_panic
    })
}
