//! What the modules export to C: the bodies behind their `hook_runtime_*` functions.
//!
//! Nothing here panics across the edge, and every result can be told from a failure.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::event::{self, Event, Subscription};
use crate::{Coverage, Options, install, uninstall};

/// The version of the runtime.
pub fn version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"unknown",
        };
    VERSION.as_ptr()
}

/// An event as C sees it (`struct hook_runtime_event`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CEvent {
    /// 1: allocated; 2: freed.
    pub kind: u32,
    /// 0: unknown; 1: device; 2: managed; 3: host.
    pub class: u32,
    /// The first address.
    pub address: *mut c_void,
    /// The number of bytes; 0 if not known.
    pub size: usize,
    /// The function that was called.
    pub symbol: *const c_char,
}

impl From<&Event> for CEvent {
    fn from(event: &Event) -> Self {
        Self {
            kind: event.kind as u32,
            class: event.class as u32,
            address: event.address as *mut c_void,
            size: event.size,
            symbol: event.symbol.as_ptr(),
        }
    }
}

/// A handler in C. It must not throw.
pub type CHandler = unsafe extern "C" fn(*const CEvent, *mut c_void);

/// Installs hooks as the environment says. 0: done; -1: not done, and a message is logged.
pub fn install_hooks() -> c_int {
    guarded(-1, || match install(&Options::from_environment()) {
        Ok(_) => 0,
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

/// Subscribes `handler`, which is called with `argument`. 0 if there is none, else the
/// number of the subscription.
///
/// # Safety
///
/// `handler` may be called by any thread, with `argument`, until the subscription ends.
pub unsafe fn subscribe(priority: c_int, handler: Option<CHandler>, argument: *mut c_void) -> u64 {
    struct Argument(*mut c_void);
    // SAFETY: the caller of `subscribe` vouches for it.
    unsafe impl Send for Argument {}
    // SAFETY: as above.
    unsafe impl Sync for Argument {}
    impl Argument {
        fn get(&self) -> *mut c_void {
            self.0
        }
    }
    let Some(handler) = handler else { return 0 };
    let argument = Argument(argument);
    guarded(0, || {
        event::subscribe(priority, move |event| {
            let event = CEvent::from(event);
            // SAFETY: the caller of `subscribe` vouches for it.
            unsafe { handler(&raw const event, argument.get()) };
        })
        .id()
    })
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
    if !buffer.is_null() && length > 0 {
        let kept = text.floor_char_boundary(length - 1);
        // SAFETY: `kept` is less than the room that the caller vouches for.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), kept) };
        // SAFETY: as above; one byte is left for the NUL.
        let end = unsafe { buffer.add(kept) };
        // SAFETY: as above.
        unsafe { end.write(0) };
    }
    text.len()
}

/// What libucm_cuda does when it is loaded: hooks are installed at once if a trace is asked
/// for, since then nobody else will ask for them.
pub fn on_load() {
    guarded((), || {
        let options = Options::from_environment();
        #[cfg(bistro_hooks)]
        if options.modes.bistro {
            crate::patch::prepare();
        }
        if options.trace.is_some()
            && let Err(error) = install(&options)
        {
            crate::log::error!("no hooks: {error}");
        }
    });
}

fn guarded<R>(on_panic: R, work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        crate::log::error!("a call into the hook runtime has panicked");
        on_panic
    })
}
