//! Memory with known bytes, by which others find out whether a way leads here. It is made
//! once for each device and way, and stays until the process ends.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::IpcError;
use super::super::key::{Handed, How, Key, Probe};
use super::{Offered, buffer_id, legacy, of_pool, pieces};
use crate::cuda::driver::calls::{Address, Pool};
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::open::Driver;
use crate::cuda::driver::types::{
    AccessDescription, AllocationProperties, Location, PoolProperties, handle, location,
};
use crate::memtype::{Kind, Memory};
use crate::sys::identity::Identity;

/// A way, as far as probes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Legacy,
    Pieces(c_uint),
    Pool(c_uint),
}

#[derive(Debug)]
struct Kept {
    device: c_int,
    way: Way,
    probe: Probe,
    _offers: Vec<Arc<Offered>>,
    _memory: Own,
}

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// The probe for memory of `device` that is opened like `how`.
pub(super) fn probe(driver: &'static Driver, device: c_int, how: &How) -> Result<Probe, IpcError> {
    let way = match how {
        How::Legacy(_) => Way::Legacy,
        How::Pieces(pieces) => Way::Pieces(pieces.first().map_or(0, |piece| types(&piece.handed))),
        How::Pool(handed, _) => Way::Pool(types(handed)),
    };
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let owner = Identity::own();
    let fits =
        |kept: &&Kept| (kept.device, kept.way) == (device, way) && kept.probe.key.owner == owner;
    if let Some(kept) = kept.iter().find(fits) {
        return Ok(kept.probe.clone());
    }
    let made = make(driver, device, way)?;
    let probe = made.probe.clone();
    kept.push(made);
    Ok(probe)
}

fn types(handed: &Handed) -> c_uint {
    let bit = |there, bit| if there { bit } else { 0 };
    bit(handed.descriptor.is_some(), handle::POSIX_FD)
        | bit(handed.fabric.is_some(), handle::FABRIC)
}

/// Pools that could not be exported. Some drivers crash when such a pool is destroyed, so that
/// it is kept, and tried again instead of another one.
static REFUSED: Mutex<Vec<(c_int, c_uint, Own)>> = Mutex::new(Vec::new());

fn make(driver: &'static Driver, device: c_int, way: Way) -> Result<Kept, IpcError> {
    let _entered = driver.enter(driver.primary(device)?)?;
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |pool: &(c_int, c_uint, Own)| (pool.0, Way::Pool(pool.1)) == (device, way);
    let own = match refused.iter().position(same) {
        Some(place) => refused.swap_remove(place).2,
        None => Own::new(driver, device, way)?,
    };
    match (share(driver, device, way, &own), way) {
        (Ok((probe, offers)), _) => Ok(Kept { device, way, probe, _offers: offers, _memory: own }),
        (Err(error), Way::Pool(types)) => {
            refused.push((device, types, own));
            Err(error)
        }
        (Err(error), _) => Err(error),
    }
}

/// Writes known bytes into memory of ours, and makes it known to others.
fn share(
    driver: &'static Driver,
    device: c_int,
    way: Way,
    own: &Own,
) -> Result<(Probe, Vec<Arc<Offered>>), IpcError> {
    let memory = Memory::seen(Kind::Device, own.address as usize, own.size);
    let (how, offers) = match way {
        Way::Legacy => (How::Legacy(legacy(driver, memory.base, device)?), Vec::new()),
        Way::Pieces(types) => pieces(driver, &memory, types)?,
        Way::Pool(types) => of_pool(driver, memory.base, types)?,
    };
    let owner = Identity::own();
    let buffer = buffer_id(driver, memory.base, &how);
    let mut bytes = [0; 32];
    let parts = [buffer, owner.start, u64::from(owner.process), own.address];
    for (place, part) in bytes.chunks_exact_mut(8).zip(parts) {
        // Any bytes do that nobody else has: mixed, so that they are not addresses.
        place.copy_from_slice(&part.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    // SAFETY: the memory was made above and is longer than this.
    unsafe { driver.calls.copy(own.address, bytes.as_ptr() as u64, bytes.len()) }?;
    let (base, length) = (own.address, own.size as u64);
    let device_id = driver.uuid(device)?;
    let key = Key { owner, device: device_id, buffer, base, length, how, probe: None };
    Ok((Probe { key, bytes }, offers))
}

/// Memory of ours; given back if the probe comes to nothing.
#[derive(Debug)]
struct Own {
    driver: &'static Driver,
    address: Address,
    size: usize,
    made: Made,
}

#[derive(Debug)]
enum Made {
    Plain,
    /// Addresses, and whether memory is mapped there.
    Mapped(bool),
    /// A pool, out of which the memory may not have come yet.
    Pool(Pool),
}

const SIZE: usize = 512;

impl Own {
    /// The primary context of `device` is current.
    fn new(driver: &'static Driver, device: c_int, way: Way) -> Result<Self, Failure> {
        match way {
            Way::Legacy => {
                let mut address = 0;
                // SAFETY: the result is a place of ours.
                unsafe { driver.calls.alloc(&raw mut address, SIZE) }?;
                Ok(Self { driver, address, size: SIZE, made: Made::Plain })
            }
            Way::Pieces(types) => Self::mapped(driver, device, types),
            Way::Pool(types) => Self::pooled(driver, device, types),
        }
    }

    fn pooled(driver: &'static Driver, device: c_int, types: c_uint) -> Result<Self, Failure> {
        let properties = PoolProperties::new(device, types);
        let (calls, mut pool) = (&driver.calls, 0);
        // SAFETY: the arguments are places of ours.
        unsafe { calls.pool_create(&raw mut pool, &raw const properties) }?;
        let mut own = Self { driver, address: 0, size: SIZE, made: Made::Pool(pool) };
        let place = &raw mut own.address;
        // SAFETY: the pool was made above; 0 is the default stream.
        unsafe { calls.pool_alloc_async(place, SIZE, pool, 0) }?;
        // SAFETY: the default stream is always there.
        unsafe { calls.stream_synchronize(0) }?;
        Ok(own)
    }

    fn mapped(driver: &'static Driver, device: c_int, types: c_uint) -> Result<Self, Failure> {
        let location = Location { kind: location::DEVICE, id: device };
        let properties = AllocationProperties {
            kind: 1,
            handle_types: types,
            location,
            ..AllocationProperties::default()
        };
        let calls = &driver.calls;
        let (mut size, mut physical, mut address) = (0, 0, 0);
        // SAFETY: the arguments are places of ours.
        unsafe { calls.granularity(&raw mut size, &raw const properties, 0) }?;
        // SAFETY: as above.
        unsafe { calls.reserve(&raw mut address, size, 0, 0, 0) }?;
        let mut own = Self { driver, address, size, made: Made::Mapped(false) };
        // SAFETY: as above.
        unsafe { calls.create(&raw mut physical, size, &raw const properties, 0) }?;
        // SAFETY: the addresses were reserved, the memory made, above.
        let mapped = unsafe { calls.map(address, size, 0, physical, 0) };
        own.made = Made::Mapped(mapped.is_ok());
        // SAFETY: a mapping keeps the memory; the handle is given back once.
        let released = unsafe { calls.release(physical) };
        mapped.and(released)?;
        let access = AccessDescription::read_write(device);
        // SAFETY: the range was mapped above.
        unsafe { calls.set_access(address, size, &raw const access, 1) }?;
        Ok(own)
    }
}

impl Drop for Own {
    /// Only reached with the context current, when a probe could not be made: one that was
    /// stays. There is nobody to tell of another failure.
    fn drop(&mut self) {
        let (calls, address, size) = (&self.driver.calls, self.address, self.size);
        let _ = match self.made {
            // SAFETY: allocated in `new`, freed once, here and below; nobody uses it.
            Made::Plain => unsafe { calls.free(address) },
            Made::Mapped(mapped) => {
                if mapped {
                    // SAFETY: as above.
                    let _ = unsafe { calls.unmap(address, size) };
                }
                // SAFETY: as above.
                unsafe { calls.unreserve(address, size) }
            }
            Made::Pool(pool) => {
                if address != 0 {
                    // SAFETY: as above.
                    let _ = unsafe { calls.free(address) };
                }
                // SAFETY: as above.
                unsafe { calls.pool_destroy(pool) }
            }
        };
    }
}
