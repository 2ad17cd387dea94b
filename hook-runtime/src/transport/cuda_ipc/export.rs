//! The owner's side: a key for an allocation.

mod probe;

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::IpcError;
use super::key::{Handed, How, Key, Piece};
use crate::cuda::driver::calls::{Context, Pool};
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::open::Driver;
use crate::cuda::driver::types::{FabricHandle, IpcHandle, PoolPointer, attribute, handle};
use crate::memtype::{Flags, Kind, Memory, types};
use crate::sys::descriptors;
use crate::sys::identity::Identity;

/// A key, and what has to stay open for as long as others may use it.
#[derive(Debug)]
pub struct Export {
    /// What other processes are told.
    pub key: Key,
    /// Where the address that was asked for lies in the allocation.
    pub offset: usize,
    /// Closed and withdrawn with the last key that needs them.
    offers: Vec<Arc<Offered>>,
}

/// Physical memory, or a pool, that others can have.
#[derive(Debug)]
struct Offered {
    handed: Handed,
    descriptor: Option<OwnedFd>,
}

impl Drop for Offered {
    fn drop(&mut self) {
        if self.descriptor.is_some() {
            descriptors::withdraw(self.handed.number);
        }
    }
}

impl Offered {
    /// Exports something in each of the ways in `types` that works; an error if none does.
    fn new(
        types: c_uint,
        mut export: impl FnMut(*mut c_void, c_uint) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let nothing = Failure { function: "cuMemExportToShareableHandle", code: Failure::MISSING };
        let (mut descriptor, mut fabric, mut refused) = (None, None, nothing);
        if types & handle::POSIX_FD != 0 {
            let mut raw: RawFd = -1;
            match export((&raw mut raw).cast(), handle::POSIX_FD) {
                // SAFETY: the driver has made it for its caller, who owns it.
                Ok(()) => descriptor = Some(unsafe { OwnedFd::from_raw_fd(raw) }),
                Err(failure) => refused = failure,
            }
        }
        if types & handle::FABRIC != 0 {
            let mut bytes = FabricHandle([0; 64]);
            match export((&raw mut bytes).cast(), handle::FABRIC) {
                Ok(()) => fabric = Some(bytes),
                Err(failure) => {
                    crate::log::debug!("memory is not shared over the fabric: {failure}");
                    refused = failure;
                }
            }
        }
        if descriptor.is_none() && fabric.is_none() {
            return Err(refused);
        }
        // That it can be had by number may be enough, so that a socket that does not come up
        // is no failure.
        if let Some(Err(error)) = descriptor.as_ref().map(|fd| descriptors::offer(number, fd)) {
            crate::log::warn!(
                "memory can only be shared with processes that may trace this one: no socket ({error})"
            );
        }
        let handed =
            Handed { number, descriptor: descriptor.as_ref().map(AsRawFd::as_raw_fd), fabric };
        Ok(Self { handed, descriptor })
    }
}

/// Makes `length` bytes at `address` known to other processes, with the allocation that
/// they lie in.
///
/// Memory of a pool has to be closed by the others before its owner frees it: that is what
/// the driver asks for.
pub fn export(driver: &'static Driver, address: usize, length: usize) -> Result<Export, IpcError> {
    let not_shareable = |why| IpcError::NotShareable { address, why };
    let memory = types().identify(driver, address, length);
    let memory = memory.ok_or(not_shareable("it is of more than one kind, or unknown"))?;
    if memory.kind != Kind::Device {
        return Err(not_shareable("it is not device memory"));
    }
    let device = memory.device.map(c_int::from).ok_or(not_shareable("its device is unknown"))?;
    let types = handle_types(memory.flags);
    let (how, offers) = if memory.flags.has(Flags::MAPPED) {
        if types == 0 {
            return Err(not_shareable("it was not made to be handed on to other processes"));
        }
        pieces(driver, &memory, types)?
    } else if memory.flags.has(Flags::SEVERAL) {
        return Err(not_shareable("it spans several allocations"));
    } else if memory.flags.has(Flags::LEGACY_IPC) {
        (How::Legacy(legacy(driver, memory.base, device)?), Vec::new())
    } else if memory.flags.has(Flags::POOL) && types != 0 {
        of_pool(driver, memory.base, types)?
    } else {
        return Err(not_shareable("it comes from a pool that was not made to be shared"));
    };
    // The probe last: it stays, and nothing else can fail any more.
    let uuid = driver.uuid(device)?;
    let probe = probe::probe(driver, device, &how)?;
    let key = Key {
        owner: Identity::own(),
        device: uuid,
        buffer: buffer_id(driver, memory.base, &how),
        base: memory.base as u64,
        length: memory.length as u64,
        how,
        probe: Some(Box::new(probe)),
    };
    Ok(Export { key, offset: address - memory.base, offers })
}

impl Export {
    /// How many descriptors are kept open.
    pub fn descriptors(&self) -> usize {
        self.offers.iter().filter(|offered| offered.descriptor.is_some()).count()
    }
}

fn handle_types(flags: Flags) -> c_uint {
    let bit = |flag, bit| if flags.has(flag) { bit } else { 0 };
    bit(Flags::POSIX_FD, handle::POSIX_FD) | bit(Flags::FABRIC, handle::FABRIC)
}

/// A number that no other allocation of this process has had. Where the driver gives none,
/// as it may for memory that it did not allocate in one piece, each export has its own.
fn buffer_id(driver: &Driver, address: usize, how: &How) -> u64 {
    let mut id = 0_u64;
    let place = (&raw mut id).cast();
    // SAFETY: the attribute is a number of 64 bits, and the place has room for it.
    let said =
        unsafe { driver.calls.pointer_attribute(place, attribute::BUFFER_ID, address as u64) };
    if said.is_ok() && id != 0 {
        return id;
    }
    static NEXT: AtomicU64 = AtomicU64::new(0);
    /// Not among the driver's numbers, which count from 1.
    const OWN: u64 = 1 << 63;
    match how {
        How::Pieces(pieces) => pieces.first().map_or(OWN, |piece| OWN | piece.handed.number),
        _ => OWN | 1 << 62 | NEXT.fetch_add(1, Ordering::Relaxed),
    }
}

/// The handle of the allocation that starts at `base`, asked for in its own context.
fn legacy(driver: &'static Driver, base: usize, device: i32) -> Result<IpcHandle, Failure> {
    let mut context: Context = 0;
    let place = (&raw mut context).cast();
    // SAFETY: the attribute is a pointer, and the place has room for one.
    let said = unsafe { driver.calls.pointer_attribute(place, attribute::CONTEXT, base as u64) };
    let context = match said {
        Ok(()) if context != 0 => context,
        _ => driver.primary(device)?,
    };
    let _entered = driver.enter(context)?;
    let mut handle = IpcHandle([0; 64]);
    // SAFETY: the result is a place of ours; a wrong address is answered with an error.
    unsafe { driver.calls.ipc_get(&raw mut handle, base as u64) }?;
    Ok(handle)
}

type Shared = (How, Vec<Arc<Offered>>);

/// Each mapping that the memory is made of, handed over by itself.
fn pieces(driver: &Driver, memory: &Memory, types: c_uint) -> Result<Shared, IpcError> {
    let (mut all, mut open) = (Vec::new(), Vec::new());
    let mut at = memory.base as u64;
    while at < memory.end() as u64 {
        let (mut base, mut length) = (0, 0);
        // SAFETY: both results are places of ours; any address may be asked for.
        unsafe { driver.calls.address_range(&raw mut base, &raw mut length, at) }?;
        if base != at || length == 0 {
            let why = "its mappings do not follow each other";
            return Err(IpcError::NotShareable { address: memory.base, why });
        }
        let mut physical = 0;
        // SAFETY: the result is a place of ours; any address may be asked for.
        unsafe { driver.calls.retain_allocation(&raw mut physical, at) }?;
        let offered = Offered::new(types, |place, kind| {
            // SAFETY: the place has room for a handle of this kind; the memory was retained.
            unsafe { driver.calls.export_physical(place, physical, kind, 0) }
        });
        // SAFETY: it gives back what was retained above, once.
        let released = unsafe { driver.calls.release(physical) };
        let offered = offered.and_then(|offered| released.map(|()| offered))?;
        all.push(Piece { length: length as u64, handed: offered.handed });
        open.push(Arc::new(offered));
        at += length as u64;
    }
    Ok((How::Pieces(all), open))
}

/// The pools that some key names. While one does, memory of the pool is allocated, so that
/// the driver uses its handle for no other.
static POOLS: Mutex<Vec<(Pool, Weak<Offered>)>> = Mutex::new(Vec::new());

/// The pool of the allocation at `base`, and its place there.
fn of_pool(driver: &Driver, base: usize, types: c_uint) -> Result<Shared, IpcError> {
    let mut pool: Pool = 0;
    let place = (&raw mut pool).cast();
    // SAFETY: the attribute is a handle, and the place has room for one.
    unsafe { driver.calls.pointer_attribute(place, attribute::POOL, base as u64) }?;
    let offered = offered_pool(driver, pool, types)?;
    let mut pointer = PoolPointer([0; 64]);
    // SAFETY: the result is a place of ours; a wrong address is answered with an error.
    unsafe { driver.calls.pool_export_pointer(&raw mut pointer, base as u64) }?;
    Ok((How::Pool(offered.handed, pointer), vec![offered]))
}

fn offered_pool(driver: &Driver, pool: Pool, types: c_uint) -> Result<Arc<Offered>, Failure> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|known| known.1.strong_count() > 0);
    let known = pools.iter().find(|known| known.0 == pool);
    if let Some(offered) = known.and_then(|known| known.1.upgrade()) {
        return Ok(offered);
    }
    let offered = Arc::new(Offered::new(types, |place, kind| {
        // SAFETY: the place has room for a handle of this kind; the pool has memory out.
        unsafe { driver.calls.pool_export(place, pool, kind, 0) }
    })?);
    pools.push((pool, Arc::downgrade(&offered)));
    Ok(offered)
}
