//! The other side: memory of another process, opened.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::IpcError;
use super::key::{Handed, How, Key, Piece};
use crate::cuda::driver::calls::{Address, Pool};
use crate::cuda::driver::failure::{Failure, code};
use crate::cuda::driver::open::Driver;
use crate::cuda::driver::types::{AccessDescription, PoolPointer, handle};
use crate::sys::descriptors;
use crate::sys::identity::Identity;
use crate::transport::settings::Fetching;

/// Memory that was opened; whoever holds it closes it.
#[derive(Debug)]
pub(super) enum Opened {
    Legacy(Address),
    Mapped(Address, usize),
    Pooled { address: Address, _pool: Arc<Imported> },
}

impl Opened {
    pub(super) fn address(&self) -> Address {
        match self {
            Self::Legacy(address) | Self::Mapped(address, _) | Self::Pooled { address, .. } => {
                *address
            }
        }
    }
}

/// Where memory is opened, and what may be tried for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) driver: &'static Driver,
    /// The memory's own device, by its number here. Its primary context is current.
    pub(super) device: c_int,
    /// Whether descriptors can be had from the owner, and how.
    pub(super) descriptors: Option<Fetching>,
}

/// Opens what `key` names.
pub(super) fn open(place: Place, key: &Key) -> Result<Opened, IpcError> {
    match &key.how {
        How::Legacy(handle) => {
            /// Peers get access as they need it.
            const LAZY_PEER_ACCESS: u32 = 1;
            let mut address = 0;
            let (calls, at) = (&place.driver.calls, &raw mut address);
            // SAFETY: the result is a place of ours; a wrong handle is answered with an error.
            let opened = unsafe { calls.ipc_open(at, *handle, LAZY_PEER_ACCESS) };
            opened.map(|()| Opened::Legacy(address)).map_err(opened_before)
        }
        How::Pieces(pieces) => {
            let sum = pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.length));
            if sum != Some(key.length) {
                return Err(IpcError::BadKey("its pieces are not its length"));
            }
            map(place, key, pieces)
        }
        How::Pool(handed, pointer) => {
            let pool = import_pool(place, key, handed)?;
            let mut address = 0;
            let mut pointer: PoolPointer = *pointer;
            let (at, from) = (&raw mut address, &raw mut pointer);
            // SAFETY: both are places of ours; nonsense is answered with an error.
            let opened = unsafe { place.driver.calls.pool_import_pointer(at, pool.pool, from) };
            opened.map(|()| Opened::Pooled { address, _pool: pool }).map_err(opened_before)
        }
    }
}

fn opened_before(failure: Failure) -> IpcError {
    match failure.code {
        code::ALREADY_MAPPED => IpcError::OpenedByApplication,
        _ => failure.into(),
    }
}

/// Maps the pieces side by side. If one fails, nothing of them stays.
fn map(place: Place, key: &Key, pieces: &[Piece]) -> Result<Opened, IpcError> {
    let (calls, size) = (&place.driver.calls, key.length as usize);
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { calls.reserve(&raw mut address, size, 0, 0, 0) }?;
    let mut mapped = 0;
    let mut all = || -> Result<(), IpcError> {
        for piece in pieces {
            let physical = take(place, key, &piece.handed, |shared, kind| {
                let mut physical = 0;
                // SAFETY: the result is a place of ours, `shared` a handle of this kind.
                unsafe { calls.import_physical(&raw mut physical, shared, kind) }?;
                Ok(physical)
            })?;
            let length = piece.length as usize;
            // SAFETY: the addresses are reserved and free, the memory was imported above.
            let done = unsafe { calls.map(address + mapped, length, 0, physical, 0) };
            if done.is_ok() {
                mapped += piece.length;
            }
            // SAFETY: a mapping keeps the memory; the handle is given back once.
            let released = unsafe { calls.release(physical) };
            done.and(released)?;
        }
        give_access(place, |access, count| {
            // SAFETY: all of the range was mapped above; so many descriptions there are.
            unsafe { calls.set_access(address, size, access, count) }
        })?;
        Ok(())
    };
    let result = all();
    if result.is_err() {
        if mapped > 0 {
            // SAFETY: so much was mapped above, and nobody uses it.
            let _ = unsafe { calls.unmap(address, mapped as usize) };
        }
        // SAFETY: reserved above; nothing is mapped there.
        let _ = unsafe { calls.unreserve(address, size) };
    }
    result.map(|()| Opened::Mapped(address, size))
}

/// Gives the memory's device and those that can reach it access; its own at least.
fn give_access(
    place: Place,
    mut set: impl FnMut(*const AccessDescription, usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let reaches = |other: &c_int| {
        let mut can = 0;
        // SAFETY: the result is a place of ours; wrong numbers are answered with an error.
        let said = unsafe {
            place.driver.calls.device_can_access_peer(&raw mut can, *other, place.device)
        };
        said.is_ok() && can != 0
    };
    let others = (0..place.driver.devices as c_int).filter(|other| *other != place.device);
    let mut all = vec![AccessDescription::read_write(place.device)];
    all.extend(others.filter(reaches).map(AccessDescription::read_write));
    match set(all.as_ptr(), all.len()) {
        Err(failure) if all.len() > 1 => {
            crate::log::debug!("other devices get no access to opened memory: {failure}");
            set(all.as_ptr(), 1)
        }
        done => done,
    }
}

/// Takes over what was handed, in the first way that works. The first refusal is told.
fn take<T>(
    place: Place,
    key: &Key,
    handed: &Handed,
    mut import: impl FnMut(*mut c_void, c_uint) -> Result<T, Failure>,
) -> Result<T, IpcError> {
    let mut refused = None;
    if let (Some(fetching), Some(number)) = (place.descriptors, handed.descriptor) {
        match fetch(key, number, handed.number, fetching) {
            // The argument is the descriptor itself.
            Ok(open) => match import(open.as_raw_fd() as usize as *mut c_void, handle::POSIX_FD) {
                Ok(taken) => return Ok(taken),
                Err(failure) => refused = Some(failure.into()),
            },
            Err(error) => refused = Some(error),
        }
    }
    if let Some(mut fabric) = handed.fabric {
        match import((&raw mut fabric).cast(), handle::FABRIC) {
            Ok(taken) => return Ok(taken),
            Err(failure) => refused = refused.or(Some(failure.into())),
        }
    }
    Err(refused.unwrap_or(IpcError::BadKey("it offers nothing that can be had here")))
}

fn fetch(key: &Key, number: c_int, offer: u64, fetching: Fetching) -> Result<OwnedFd, IpcError> {
    let by_number = || descriptors::fetch(key.owner.process, number);
    let by_socket = || descriptors::ask(&key.owner, offer);
    let fetched = match fetching {
        Fetching::Pidfd => by_number(),
        Fetching::Socket => by_socket(),
        Fetching::Try => by_number().or_else(|first| by_socket().map_err(|_| first)),
    };
    fetched.map_err(|source| IpcError::Descriptor { process: key.owner.process, source })
}

/// A pool of another process, which stays for as long as memory of it is open.
#[derive(Debug)]
pub(super) struct Imported {
    driver: &'static Driver,
    pool: Pool,
    owner: Identity,
    number: u64,
    device: c_int,
}

static POOLS: Mutex<Vec<Weak<Imported>>> = Mutex::new(Vec::new());

fn import_pool(place: Place, key: &Key, handed: &Handed) -> Result<Arc<Imported>, IpcError> {
    let Place { driver, device, .. } = place;
    let (owner, number) = (key.owner, handed.number);
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.strong_count() > 0);
    let same =
        |pool: &Arc<Imported>| (pool.owner, pool.number, pool.device) == (owner, number, device);
    if let Some(pool) = pools.iter().filter_map(Weak::upgrade).find(same) {
        return Ok(pool);
    }
    let pool = take(place, key, handed, |shared, kind| {
        let mut pool = 0;
        // SAFETY: the result is a place of ours, `shared` a handle of this kind.
        unsafe { driver.calls.pool_import(&raw mut pool, shared, kind, 0) }?;
        Ok(pool)
    })?;
    let pool = Arc::new(Imported { driver, pool, owner, number, device });
    give_access(place, |access, count| {
        // SAFETY: the pool was imported above; so many descriptions there are.
        unsafe { driver.calls.pool_set_access(pool.pool, access, count) }
    })?;
    pools.push(Arc::downgrade(&pool));
    Ok(pool)
}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: imported once, destroyed once; no memory of it is open any more.
        if let Err(failure) = unsafe { self.driver.calls.pool_destroy(self.pool) }
            && !failure.is_gone()
        {
            crate::log::warn!("a pool of another process stays imported: {failure}");
        }
    }
}

/// Closes memory. The primary context of its device is current. Of a pool that was imported
/// for it, nothing is said here: that goes with `opened`.
///
/// What is not closed cannot be opened again, so that a failure that passes is not given in to.
pub(super) fn close(driver: &Driver, opened: &Opened) -> Result<(), Failure> {
    let twice = |close: &dyn Fn() -> Result<(), Failure>| close().or_else(|_| close());
    let calls = &driver.calls;
    match *opened {
        // SAFETY: opened by `open`, closed once, and not in use: the cache sees to it.
        Opened::Legacy(address) => twice(&|| unsafe { calls.ipc_close(address) }),
        Opened::Mapped(address, size) => {
            // SAFETY: as above.
            twice(&|| unsafe { calls.unmap(address, size) })?;
            // SAFETY: reserved by `open`, and nothing is mapped there any more.
            twice(&|| unsafe { calls.unreserve(address, size) })
        }
        // SAFETY: as above.
        Opened::Pooled { address, .. } => twice(&|| unsafe { calls.free(address) }),
    }
}
