//! `libucm_cuda.so`: hooks on CUDA's memory functions as a module.
//!
//! Preloaded or opened, it installs hooks by itself if `HOOK_RUNTIME_TRACE` asks for a
//! trace; otherwise when `hook_runtime_install` is called, or when UCX asks for its events:
//! in the place of UCX's own module, or preloaded, it makes them for UCX. It needs neither CUDA nor UCX to
//! be loaded, and is hooked into whatever of CUDA is.

use std::ffi::{c_char, c_int, c_void};

use hook_runtime::c_api::{self, CHandler};
use hook_runtime::ucm;

/// Run by the loader as soon as the module is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = {
    extern "C" fn on_load() {
        c_api::on_load();
        ucm::register();
    }
    on_load
};

/// Run by the loader at the very end: this object itself never goes before.
#[used]
#[unsafe(link_section = ".fini_array")]
static ON_EXIT: extern "C" fn() = {
    extern "C" fn on_exit() {
        ucm::unregister();
    }
    on_exit
};

/// What UCX's module loader calls after it has loaded this. Usually there is nothing left
/// to do, unless this was loaded before UCX was.
#[unsafe(no_mangle)]
pub extern "C" fn ucs_module_global_init() -> c_int {
    ucm::register();
    0
}

/// The version of the hook runtime.
#[unsafe(no_mangle)]
pub extern "C" fn hook_runtime_version() -> *const c_char {
    c_api::version()
}

/// Installs hooks as the environment says. 0: done; -1: not done, and a message is logged.
#[unsafe(no_mangle)]
pub extern "C" fn hook_runtime_install() -> c_int {
    c_api::install_hooks()
}

/// Takes all hooks out again.
#[unsafe(no_mangle)]
pub extern "C" fn hook_runtime_uninstall() {
    c_api::uninstall_hooks();
}

/// Sets `handler` for the kinds of `events` (`HOOK_RUNTIME_EVENT_*`, joined by `|`), and
/// installs hooks unless `HOOK_RUNTIME_EVENT_NO_INSTALL` is among them. Handlers of lower
/// `priority` are called first. Returns `HOOK_RUNTIME_OK`, or a negative status.
///
/// # Safety
///
/// `handler` may be called by any thread, with `argument`, until it is unset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_runtime_set_event_handler(
    events: c_int,
    priority: c_int,
    handler: CHandler,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { c_api::set_event_handler(events, priority, handler, argument) }
}

/// Ends what `hook_runtime_set_event_handler` began with the same handler and argument, for
/// the kinds of `events`. On return the handler does not run any more, unless this is called
/// inside a handler.
#[unsafe(no_mangle)]
pub extern "C" fn hook_runtime_unset_event_handler(
    events: c_int,
    handler: CHandler,
    argument: *mut c_void,
) {
    c_api::unset_event_handler(events, handler, argument);
}

/// Calls `handler` with each event and `argument`. 0 if there is no handler, else the
/// number of the subscription.
///
/// # Safety
///
/// `handler` may be called by any thread, with `argument`, until the subscription ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_runtime_subscribe(
    priority: c_int,
    handler: CHandler,
    argument: *mut c_void,
) -> u64 {
    // SAFETY: by this function's contract.
    unsafe { c_api::subscribe(priority, handler, argument) }
}

/// Ends a subscription. 0: ended; -1: there is none with this number.
#[unsafe(no_mangle)]
pub extern "C" fn hook_runtime_unsubscribe(subscription: u64) -> c_int {
    c_api::unsubscribe(subscription)
}

/// Writes the coverage report into `buffer`, cut off to `length` bytes, and returns the
/// length of the whole text, as `snprintf` does.
///
/// # Safety
///
/// `buffer` has room for `length` bytes; it may be null if `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hook_runtime_coverage(buffer: *mut c_char, length: usize) -> usize {
    // SAFETY: by this function's contract.
    unsafe { c_api::coverage(buffer, length) }
}
