//! Beside the real UCX: our hooks as the installer of its CUDA memory events.
//!
//! UCX's libucm keeps a list of installers, to which each of its memory-event modules
//! adds itself when it is loaded. In the place of UCX's own `libucm_cuda` ours does the
//! same: UCX then asks it for events, decides by its own options how hooks are made, and
//! passes the events on to its own handlers and to its table of memory types.
//!
//! Nothing here links to UCX. Its symbols are looked up in what is loaded, wherever that
//! was loaded from and however local; without it nothing happens. The structures are the
//! same in UCX 1.18 to 1.22 as far as they are used here ([`layout`]); the one number that
//! differs, that of the unknown memory type, is read from UCX's own list of names.
//!
//! A difference to UCX's module: UCX's event lock is held while an event is passed on, not
//! during the whole call to CUDA, so that a slow call keeps nobody waiting.

pub mod layout;
mod library;

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use layout::{Config, EventHandler, Installer, Link, MemTypeEvent, bits, status};
use library::{MemoryTypes, Ucm};

use crate::event::sizes::SIZES;
use crate::event::{self, Event, EventKind, MemoryClass};
use crate::settings::{self, Modes};
use crate::sys::maps;
use crate::{HookError, Options, install};

/// UCX's handlers come before the program's own: these may ask UCX about the memory.
const PRIORITY: i32 = -1000;

/// A place in UCX's list, which UCX reads and changes the links of.
struct Entry(std::cell::UnsafeCell<Installer>);

// SAFETY: the functions never change; the links are only touched by whoever registers and
// unregisters, under [`REGISTERED`], and by UCX, which has its own rules for its list.
unsafe impl Sync for Entry {}

static ENTRY: Entry = Entry(std::cell::UnsafeCell::new(Installer {
    install: Some(on_install),
    get_existing_alloc: Some(on_existing),
    list: Link::unlinked(),
}));

/// Whether [`ENTRY`] is in UCX's list.
static REGISTERED: Mutex<bool> = Mutex::new(false);

/// Adds our installer to the end of the list of UCX's libucm, if that is loaded. Called
/// when the module is loaded, and by UCX's module loader in case UCX itself came later.
pub fn register() {
    guarded((), || {
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ucm) = Ucm::find() else { return };
        if !std::mem::replace(&mut *registered, true) {
            // SAFETY: the entry is a static, in no list now; the head is UCX's own, and it
            // stays loaded since it has been found.
            unsafe { layout::append(ucm.installers, link()) };
            crate::log::debug!("registered with libucm");
        }
    });
}

/// Takes our installer out of the list: the module's code is about to go.
pub fn unregister() {
    guarded((), || {
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *registered) {
            // SAFETY: the entry has been in the list since it was appended.
            unsafe { layout::remove(link()) };
        }
    });
}

fn link() -> *mut Link {
    let entry = ENTRY.0.get();
    // SAFETY: a field of a static; no reference to it is made.
    unsafe { &raw mut (*entry).list }
}

/// What UCX calls to have events of these kinds, once for each handler that wants them.
extern "C" fn on_install(events: c_int) -> c_int {
    if events & (bits::MEM_TYPE_ALLOC | bits::MEM_TYPE_FREE) == 0 {
        return status::OK;
    }
    guarded(status::UNSUPPORTED, || {
        let Some(ucm) = Ucm::find() else { return status::UNSUPPORTED };
        // SAFETY: UCX's own options, plain numbers, which it sets before it loads modules.
        let config = unsafe { ucm.options.read() };
        if let Some(level) = crate::log::Level::from_ucx(config.log_level) {
            crate::log::set(level);
        }
        settings::set_force_far(config.bistro_force_far_jump != 0);
        match start(&config) {
            Ok(()) => status::OK,
            Err(reason) => {
                // UCX goes on without its table, and asks CUDA about each address.
                crate::log::error!("no memory events of CUDA for UCX: {reason}");
                status::UNSUPPORTED
            }
        }
    })
}

/// Why UCX gets no events.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("its option `UCX_MEM_EVENTS` is off")]
    EventsOff,
    #[error("libucs has no list of memory types that is understood")]
    MemoryTypes,
    #[error(transparent)]
    Hooks(#[from] HookError),
}

fn start(config: &Config) -> Result<(), Refusal> {
    static SUBSCRIBE: Once = Once::new();
    if config.enable_events == 0 {
        return Err(Refusal::EventsOff);
    }
    if MemoryTypes::find().is_none() {
        return Err(Refusal::MemoryTypes);
    }
    let wanted = config.modes();
    let active = crate::hook::install::active();
    if (wanted.bistro && !active.bistro) || (wanted.reloc && !active.reloc) || active == Modes::NONE
    {
        install(&Options { modes: wanted, trace: None })?;
        // A function whose calls are not seen makes UCX take CUDA's memory for the host's.
        if !wanted.reloc
            && let Some(symbol) = crate::hook::install::unpatched()
        {
            crate::log::warn!("`{symbol}` cannot be patched: using reloc as well");
            install(&Options { modes: Modes::BOTH, trace: None })?;
        }
    }
    SUBSCRIBE.call_once(|| {
        event::subscribe(PRIORITY, pass_on);
    });
    Ok(())
}

/// Passes one event on to UCX's handlers.
fn pass_on(event: &Event) {
    let (Some(ucm), Some(types)) = (Ucm::find(), MemoryTypes::find()) else { return };
    let (kind, memory_type) = match (event.kind, event.class) {
        // What is not in UCX's table is the host's, so this need not be.
        (EventKind::Allocated, MemoryClass::Host) => return,
        // Which device, and what exactly, UCX asks CUDA when it needs to know.
        (EventKind::Allocated, _) => (bits::MEM_TYPE_ALLOC, types.unknown),
        (EventKind::Freed, class) => (bits::MEM_TYPE_FREE, types.of_class(class)),
    };
    let mut event = MemTypeEvent::new(event.address, event.size, memory_type);
    // SAFETY: UCX's functions with their own signatures; the event outlives the call.
    unsafe { ucm.dispatch(kind, &raw mut event) };
}

/// What UCX calls to hear of the allocations that there were before: ours by the table of
/// what has been seen, and every region of the address space that CUDA may have reserved.
/// That is more than there is, which costs UCX a question and is never wrong; less would be.
unsafe extern "C" fn on_existing(handler: *mut EventHandler) {
    // SAFETY: UCX passes a handler of its own, which it does not change meanwhile.
    let Some(handler) = (unsafe { handler.as_ref() }) else { return };
    let Some(callback) = handler.callback else { return };
    if handler.events & bits::MEM_TYPE_ALLOC == 0 {
        return;
    }
    guarded((), || {
        let Some(types) = MemoryTypes::find() else { return };
        let tell = |address: usize, size: usize| {
            let mut event = MemTypeEvent::new(address, size, types.unknown);
            // SAFETY: the handler's own function and argument; the event outlives the call.
            unsafe { callback(bits::MEM_TYPE_ALLOC, &raw mut event, handler.argument) };
        };
        for (address, allocation) in SIZES.all() {
            if allocation.class != MemoryClass::Host {
                tell(address, allocation.size);
            }
        }
        match maps::read_self() {
            Ok(map) => {
                for region in map.iter().filter(|region| maps::may_be_reserved_by_cuda(region)) {
                    tell(region.range.start as usize, region.size());
                }
            }
            Err(error) => crate::log::error!(
                "`/proc/self/maps` cannot be read ({error}): UCX does not hear of earlier memory"
            ),
        }
    });
}

/// Runs what must not unwind into UCX.
fn guarded<R>(on_panic: R, work: impl FnOnce() -> R) -> R {
    static TOLD: AtomicBool = AtomicBool::new(false);
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        if !TOLD.swap(true, Ordering::Relaxed) {
            crate::log::error!("what UCX asked for has panicked");
        }
        on_panic
    })
}

/// An argument that UCX hands back as it is.
type Argument = *mut c_void;
