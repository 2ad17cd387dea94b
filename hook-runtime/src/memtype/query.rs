//! Asking the driver what an address belongs to.

use std::ffi::{c_int, c_uint, c_void};

use super::{Answer, Flags, Kind, Memory, Oracle};
use crate::cuda::driver::open::Driver;
use crate::cuda::driver::types::{AllocationProperties, attribute, handle, location};

const TYPE_HOST: u32 = 1;
const TYPE_DEVICE: u32 = 2;

impl Oracle for Driver {
    fn ask(&self, address: usize) -> Answer {
        let Some(said) = Said::new(self, address) else { return Answer::None };
        if said.memory_type != TYPE_HOST && said.memory_type != TYPE_DEVICE {
            return Answer::NotCuda;
        }
        let range = address_range(self, address)
            .or_else(|| (said.size != 0).then_some((said.start as usize, said.size)));
        let Some((base, length)) = range else { return Answer::None };
        let (kind, flags) = match mapping(self, address) {
            Some(properties) => (kind_of(&properties), flags_of(&properties)),
            None => (said.kind(), said.flags()),
        };
        let device = match kind {
            Kind::Device => u16::try_from(said.device).ok(),
            _ => None,
        };
        Answer::Memory(Memory { kind, device, base, length, flags, detailed: true })
    }
}

/// The attributes of one address.
#[derive(Debug, Default)]
struct Said {
    memory_type: u32,
    /// Not 0: yes. Drivers differ in how many bytes they write for a truth value.
    managed: u32,
    device: c_int,
    context: usize,
    /// As above.
    legacy_ipc: u32,
    start: u64,
    size: usize,
    handle_types: u64,
    pool: usize,
}

impl Said {
    /// Nothing if the driver does not answer at all.
    fn new(driver: &Driver, address: usize) -> Option<Self> {
        let mut said = Self::default();
        // The newest attributes are unknown to older drivers, which then answer none of them.
        [9, 8, 4].into_iter().find_map(|count| said.fill(driver, address, count)).map(|()| said)
    }

    fn fill(&mut self, driver: &Driver, address: usize, count: usize) -> Option<()> {
        fn place<T>(value: &mut T) -> *mut c_void {
            std::ptr::from_mut(value).cast()
        }
        let mut attributes: [c_int; 9] = [
            attribute::MEMORY_TYPE,
            attribute::IS_MANAGED,
            attribute::DEVICE_ORDINAL,
            attribute::CONTEXT,
            attribute::LEGACY_IPC,
            attribute::RANGE_START,
            attribute::RANGE_SIZE,
            attribute::HANDLE_TYPES,
            attribute::POOL,
        ];
        let mut places = [
            place(&mut self.memory_type),
            place(&mut self.managed),
            place(&mut self.device),
            place(&mut self.context),
            place(&mut self.legacy_ipc),
            place(&mut self.start),
            place(&mut self.size),
            place(&mut self.handle_types),
            place(&mut self.pool),
        ];
        // SAFETY: each attribute is written into a place of the size that it is documented to
        // have; any address may be asked for.
        unsafe {
            driver.calls.pointer_attributes(
                count as c_uint,
                attributes.as_mut_ptr(),
                places.as_mut_ptr(),
                address as u64,
            )
        }
        .ok()
    }

    fn kind(&self) -> Kind {
        match (self.managed != 0, self.memory_type) {
            (true, _) => Kind::Managed,
            (false, TYPE_HOST) => Kind::Pinned,
            (false, _) => Kind::Device,
        }
    }

    /// Memory in the order of a stream belongs to no context. Some drivers have denied legacy
    /// handles of plain allocations, so that these are told by what they are not.
    fn flags(&self) -> Flags {
        let device = self.kind() == Kind::Device;
        let pool = device && (self.pool != 0 || self.context == 0);
        let handles = self.handle_types as c_uint;
        Flags::default()
            .with_if(Flags::POOL, pool)
            .with_if(
                Flags::LEGACY_IPC,
                device && !pool && (self.legacy_ipc != 0 || self.context != 0),
            )
            .with_if(Flags::POSIX_FD, pool && handles & handle::POSIX_FD != 0)
            .with_if(Flags::FABRIC, pool && handles & handle::FABRIC != 0)
    }
}

fn address_range(driver: &Driver, address: usize) -> Option<(usize, usize)> {
    let (mut base, mut size) = (0, 0);
    // SAFETY: both results are places of ours; any address may be asked for.
    unsafe { driver.calls.address_range(&raw mut base, &raw mut size, address as u64) }.ok()?;
    (size != 0).then_some((base as usize, size))
}

/// How the memory was made, if it is mapped through the virtual memory interface.
fn mapping(driver: &Driver, address: usize) -> Option<AllocationProperties> {
    let mut physical = 0;
    // SAFETY: the result is a place of ours; any address may be asked for.
    unsafe { driver.calls.retain_allocation(&raw mut physical, address as u64) }.ok()?;
    let mut properties = AllocationProperties::default();
    // SAFETY: the handle was given out above; the result is a place of ours.
    let known = unsafe { driver.calls.allocation_properties(&raw mut properties, physical) };
    // SAFETY: it gives back what was retained above, once.
    let released = unsafe { driver.calls.release(physical) };
    if let Err(failure) = released {
        crate::log::warn!("a handle of mapped memory cannot be given back: {failure}");
    }
    known.ok().map(|()| properties)
}

fn kind_of(properties: &AllocationProperties) -> Kind {
    if properties.location.kind >= location::HOST { Kind::Pinned } else { Kind::Device }
}

fn flags_of(properties: &AllocationProperties) -> Flags {
    let types = properties.handle_types;
    Flags::MAPPED
        .with_if(Flags::POSIX_FD, types & handle::POSIX_FD != 0)
        .with_if(Flags::FABRIC, types & handle::FABRIC != 0)
}
