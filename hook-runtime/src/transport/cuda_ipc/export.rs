//! The owner's side: a key for an allocation.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::IpcError;
use super::key::{How, Key, Piece, Probe};
use crate::cuda::driver::calls::Context;
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::open::Driver;
use crate::cuda::driver::types::{
    AccessDescription, AllocationProperties, IpcHandle, Location, attribute, handle, location,
};
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
    /// Closed and withdrawn with this.
    descriptors: Vec<Offered>,
}

#[derive(Debug)]
struct Offered {
    number: u64,
    descriptor: OwnedFd,
}

impl Drop for Offered {
    fn drop(&mut self) {
        descriptors::withdraw(self.number);
    }
}

impl Offered {
    /// Takes the descriptor over. That it can be had by number may be enough, so that a
    /// socket that does not come up is no failure.
    fn new(descriptor: OwnedFd) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = descriptors::offer(number, &descriptor) {
            crate::log::warn!(
                "memory can only be shared with processes that may trace this one: no socket ({error})"
            );
        }
        Self { number, descriptor }
    }
}

/// Makes `length` bytes at `address` known to other processes, with the allocation that
/// they lie in.
pub fn export(driver: &'static Driver, address: usize, length: usize) -> Result<Export, IpcError> {
    let not_shareable = |why| IpcError::NotShareable { address, why };
    let memory = types().identify(driver, address, length);
    let memory = memory.ok_or(not_shareable("it is of more than one kind, or unknown"))?;
    if memory.kind != Kind::Device {
        return Err(not_shareable("it is not device memory"));
    }
    let device = memory.device.map(i32::from).ok_or(not_shareable("its device is unknown"))?;
    let (how, descriptors, memory) = if memory.flags.has(Flags::MAPPED) {
        if !memory.flags.has(Flags::POSIX_FD) {
            return Err(not_shareable("it was not made to be handed on as a file descriptor"));
        }
        let (pieces, descriptors) = pieces(driver, &memory)?;
        (How::Pieces(pieces), descriptors, memory)
    } else if memory.flags.has(Flags::SEVERAL) {
        return Err(not_shareable("it spans several allocations"));
    } else if memory.flags.has(Flags::LEGACY_IPC) {
        let handle = legacy(driver, memory.base, device)?;
        (How::Legacy(handle), Vec::new(), memory)
    } else {
        return Err(not_shareable("it comes from a pool that was not made to be shared"));
    };
    let probe = probe(driver, device, &how)?;
    let key = Key {
        owner: Identity::own(),
        device: driver.uuid(device)?,
        buffer: buffer_id(driver, memory.base)?,
        base: memory.base as u64,
        length: memory.length as u64,
        how,
        probe: Some(Box::new(probe)),
    };
    Ok(Export { key, offset: address - memory.base, descriptors })
}

impl Export {
    /// How many descriptors are kept open.
    pub fn descriptors(&self) -> usize {
        self.descriptors.len()
    }
}

fn buffer_id(driver: &Driver, address: usize) -> Result<u64, Failure> {
    let mut id = 0_u64;
    let place = (&raw mut id).cast();
    // SAFETY: the attribute is a number of 64 bits, and the place has room for it.
    unsafe { driver.calls.pointer_attribute(place, attribute::BUFFER_ID, address as u64) }?;
    Ok(id)
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

/// A descriptor for each mapping that the memory is made of.
fn pieces(driver: &Driver, memory: &Memory) -> Result<(Vec<Piece>, Vec<Offered>), IpcError> {
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
        let mut descriptor: RawFd = -1;
        let place = (&raw mut descriptor).cast();
        // SAFETY: for this kind of handle the result is a descriptor.
        let exported =
            unsafe { driver.calls.export_physical(place, physical, handle::POSIX_FD, 0) };
        // SAFETY: it gives back what was retained above, once.
        let released = unsafe { driver.calls.release(physical) };
        exported.and(released)?;
        // SAFETY: the driver has made it for its caller, who owns it.
        let offered = Offered::new(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let (descriptor, offer) = (offered.descriptor.as_raw_fd(), offered.number);
        all.push(Piece { length: length as u64, descriptor, offer });
        open.push(offered);
        at += length as u64;
    }
    Ok((all, open))
}

/// Memory with known bytes, by which others find out whether a way leads here. It is made
/// once for each device and way, and stays until the process ends.
#[derive(Debug)]
struct Kept {
    device: i32,
    pieces: bool,
    probe: Probe,
    _descriptors: Vec<Offered>,
}

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn probe(driver: &'static Driver, device: i32, how: &How) -> Result<Probe, IpcError> {
    let pieces = matches!(how, How::Pieces(_));
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let owner = Identity::own();
    let fits = |kept: &&Kept| {
        (kept.device, kept.pieces) == (device, pieces) && kept.probe.key.owner == owner
    };
    if let Some(kept) = kept.iter().find(fits) {
        return Ok(kept.probe.clone());
    }
    let made = make_probe(driver, device, pieces)?;
    let probe = made.probe.clone();
    kept.push(made);
    Ok(probe)
}

fn make_probe(driver: &'static Driver, device: i32, mapped: bool) -> Result<Kept, IpcError> {
    let _entered = driver.enter(driver.primary(device)?)?;
    let memory = if mapped { map_some(driver, device)? } else { allocate_some(driver)? };
    let owner = Identity::own();
    let buffer = buffer_id(driver, memory.base)?;
    let mut bytes = [0; 32];
    let parts = [buffer, owner.start, u64::from(owner.process), memory.base as u64];
    for (place, part) in bytes.chunks_exact_mut(8).zip(parts) {
        // Any bytes do that nobody else has: mixed, so that they are not addresses.
        place.copy_from_slice(&part.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    // SAFETY: the memory was made above and is longer than this.
    unsafe { driver.calls.copy(memory.base as u64, bytes.as_ptr() as u64, bytes.len()) }?;
    let (how, descriptors) = match mapped {
        true => pieces(driver, &memory).map(|(pieces, open)| (How::Pieces(pieces), open))?,
        false => (How::Legacy(legacy(driver, memory.base, device)?), Vec::new()),
    };
    let (base, length) = (memory.base as u64, memory.length as u64);
    let device_id = driver.uuid(device)?;
    let key = Key { owner, device: device_id, buffer, base, length, how, probe: None };
    let probe = Probe { key, bytes };
    Ok(Kept { device, pieces: mapped, probe, _descriptors: descriptors })
}

fn allocate_some(driver: &Driver) -> Result<Memory, Failure> {
    const SIZE: usize = 512;
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.alloc(&raw mut address, SIZE) }?;
    Ok(Memory::seen(Kind::Device, address as usize, SIZE))
}

fn map_some(driver: &Driver, device: i32) -> Result<Memory, Failure> {
    let location = Location { kind: location::DEVICE, id: device };
    let properties = AllocationProperties {
        kind: 1,
        handle_types: handle::POSIX_FD,
        location,
        ..AllocationProperties::default()
    };
    let calls = &driver.calls;
    let (mut size, mut physical, mut address) = (0, 0, 0);
    // SAFETY: the arguments are places of ours.
    unsafe { calls.granularity(&raw mut size, &raw const properties, 0) }?;
    // SAFETY: as above.
    unsafe { calls.create(&raw mut physical, size, &raw const properties, 0) }?;
    // SAFETY: as above.
    let reserved = unsafe { calls.reserve(&raw mut address, size, 0, 0, 0) };
    let mapped = reserved.and_then(|()| {
        // SAFETY: the addresses were reserved, the memory made, above.
        unsafe { calls.map(address, size, 0, physical, 0) }
    });
    // SAFETY: a mapping keeps the memory; the handle is given back once.
    let released = unsafe { calls.release(physical) };
    mapped.and(released)?;
    let access = AccessDescription::read_write(device);
    // SAFETY: the range was mapped above.
    unsafe { calls.set_access(address, size, &raw const access, 1) }?;
    Ok(Memory::seen(Kind::Device, address as usize, size))
}
