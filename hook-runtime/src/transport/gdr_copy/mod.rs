//! `gdr_copy`: small copies between the processor and device memory, which gdrcopy maps
//! into this process.
//!
//! Registering memory takes milliseconds, so registrations are kept, and given up when the
//! memory is announced as freed: that comes before the driver takes it back. One lock is
//! held around every call of the library, copies included; a mapping is not inherited by
//! children, and none is left when the process ends the transport.

mod library;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::settings::Settings;
use super::{Capabilities, Cost, Path, Reach, Transport};
use crate::event::{Event, EventKind, Subscription, subscribe};
use crate::memtype::Kind;
use crate::sys::children;
pub use library::SONAME;
use library::{Gdr, Handle};

/// The transport's row.
#[derive(Debug)]
pub struct GdrCopyRow;

/// The transport, for the table.
pub static GDR_COPY: GdrCopyRow = GdrCopyRow;

/// Up to where the processor's own loads and stores are the sooner way.
const LARGEST: usize = 64 << 10;

impl Transport for GdrCopyRow {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_short: LARGEST,
            max_zcopy: 0,
            put: true,
            get: true,
            reach: Reach::Itself,
        }
    }

    fn estimate(&self, path: Path, settings: &Settings) -> Option<Cost> {
        let (name, latency) = match (path.from, path.to) {
            (Kind::Host | Kind::Pinned, Kind::Device) => ("put_shared", settings.gdr_latency.put),
            (Kind::Device, Kind::Host | Kind::Pinned) => {
                ("get_dedicated", settings.gdr_latency.get)
            }
            _ => return None,
        };
        Some(Cost { latency, bandwidth: settings.gdr_bandwidth.get(name) })
    }
}

/// Why gdrcopy cannot be used, or a copy is not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GdrError {
    /// The library cannot be loaded.
    #[error("cannot open `libgdrapi.so.2`: {0}")]
    Library(String),
    /// It lacks a function.
    #[error("this libgdrapi has no {0:?}: it is too old")]
    Missing(&'static CStr),
    /// The kernel module is not there.
    #[error(
        "`gdr_open` failed: the kernel module gdrdrv is not loaded, or `/dev/gdrdrv` is not accessible"
    )]
    NoDevice,
    /// Library and kernel module do not go together.
    #[error("libgdrapi {}.{} and the kernel module gdrdrv {}.{} do not go together: both need the same major version", .library[0], .library[1], .module[0], .module[1])]
    Version {
        /// The library's, major and minor.
        library: [c_int; 2],
        /// The module's.
        module: [c_int; 2],
    },
    /// A call failed.
    #[error("`{function}` failed: {} (error {code})", std::io::Error::from_raw_os_error(*.code))]
    Call {
        /// The function.
        function: &'static str,
        /// What it returned, an `errno`.
        code: c_int,
    },
    /// The registration has been given up, since its memory was freed.
    #[error("no registration holds {size} bytes at {address:#x}")]
    NotRegistered {
        /// The device address.
        address: usize,
        /// How many bytes.
        size: usize,
    },
}

/// The unit in which memory is mapped.
const PAGE: usize = 64 << 10;

/// A mapped registration, by its first device address.
#[derive(Debug, Clone, Copy)]
struct Registration {
    length: usize,
    handle: Handle,
    at: usize,
}

#[derive(Debug)]
struct State {
    registrations: BTreeMap<usize, Registration>,
    gdr: Gdr,
}

/// gdrcopy, opened.
#[derive(Debug)]
pub struct GdrCopy {
    state: Arc<Mutex<State>>,
    subscription: Subscription,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GdrCopy {
    /// Opens the library. Registrations end with their memory only while hooks are installed.
    pub fn open(settings: &Settings) -> Result<Self, GdrError> {
        let gdr = Gdr::open(settings.gdr_force_pcie)?;
        let state = State { registrations: BTreeMap::new(), gdr };
        let state = Arc::new(Mutex::new(state));
        let weak: Weak<Mutex<State>> = Arc::downgrade(&state);
        let subscription = subscribe(1000, move |event: &Event| {
            if event.kind == EventKind::Freed
                && let Some(state) = weak.upgrade()
            {
                lock(&state).forget(event.address, event.size.max(1));
            }
        });
        Ok(Self { state, subscription })
    }

    /// Registers `size` bytes of device memory at `address`, unless that is done already.
    pub fn register(&self, address: usize, size: usize) -> Result<(), GdrError> {
        lock(&self.state).register(address, size.max(1))
    }

    /// How many registrations are kept.
    pub fn registrations(&self) -> usize {
        lock(&self.state).registrations.len()
    }

    /// Gives up what is registered of `size` bytes at `address`.
    pub fn forget(&self, address: usize, size: usize) {
        lock(&self.state).forget(address, size.max(1));
    }

    /// Writes `bytes` to registered device memory at `address`. Complete on return.
    pub fn put(&self, address: usize, bytes: &[u8]) -> Result<(), GdrError> {
        let state = lock(&self.state);
        let (handle, at) = state.place(address, bytes.len())?;
        // SAFETY: the place lies in the mapping, which stays while the lock is held.
        unsafe { state.gdr.put(handle, at, bytes.as_ptr(), bytes.len()) }
    }

    /// Reads registered device memory at `address`. Complete on return.
    pub fn get(&self, bytes: &mut [u8], address: usize) -> Result<(), GdrError> {
        let state = lock(&self.state);
        let (handle, at) = state.place(address, bytes.len())?;
        // SAFETY: the place lies in the mapping, which stays while the lock is held.
        unsafe { state.gdr.get(handle, bytes.as_mut_ptr(), at, bytes.len()) }
    }
}

impl Drop for GdrCopy {
    fn drop(&mut self) {
        self.subscription.cancel();
        lock(&self.state).forget(0, usize::MAX);
    }
}

impl State {
    /// Where the registration is that holds the range.
    fn place(&self, address: usize, size: usize) -> Result<(Handle, usize), GdrError> {
        let before = self.registrations.range(..=address).next_back();
        let holds = |(start, found): (&usize, &Registration)| {
            let offset = address - start;
            let fits = offset.checked_add(size).is_some_and(|end| end <= found.length);
            fits.then_some((found.handle, found.at + offset))
        };
        before.and_then(holds).ok_or(GdrError::NotRegistered { address, size })
    }

    fn register(&mut self, address: usize, size: usize) -> Result<(), GdrError> {
        if self.place(address, size).is_ok() {
            return Ok(());
        }
        // Whole pages, and whatever was registered of them before as well.
        let mut start = address & !(PAGE - 1);
        let mut end = address.saturating_add(size).next_multiple_of(PAGE);
        for (first, found) in self.touching(start, end) {
            (start, end) = (start.min(first), end.max(first + found.length));
        }
        self.forget(start, end - start);
        let handle = self.gdr.pin(start, end - start)?;
        let (at, first) = match self.gdr.map(handle, end - start) {
            Ok(mapped) => mapped,
            Err(error) => {
                if let Err(also) = self.gdr.unpin(handle) {
                    crate::log::warn!("device memory stays registered with gdrcopy: {also}");
                }
                return Err(error);
            }
        };
        children::keep_from(at, end - start);
        // The mapping begins at the page that holds the first byte.
        let registration = Registration { length: end - first, handle, at };
        self.registrations.insert(first, registration);
        Ok(())
    }

    fn touching(&self, start: usize, end: usize) -> Vec<(usize, Registration)> {
        let before_end = self.registrations.range(..end);
        let touches = |(first, found): &(&usize, &Registration)| **first + found.length > start;
        before_end.filter(touches).map(|(first, found)| (*first, *found)).collect()
    }

    fn forget(&mut self, address: usize, size: usize) {
        for (first, found) in self.touching(address, address.saturating_add(size)) {
            self.registrations.remove(&first);
            let unmapped = self.gdr.unmap(found.handle, found.at, found.length);
            let unpinned = self.gdr.unpin(found.handle);
            if let Err(error) = unmapped.and(unpinned) {
                crate::log::warn!("device memory stays registered with gdrcopy: {error}");
            }
        }
    }
}
