//! Memory of each kind to copy from and to, and the context to do it in.

use std::ffi::{c_uint, c_void};

use clap::ValueEnum;
use hook_runtime::cuda::driver::calls::{Context, Pool};
use hook_runtime::cuda::driver::failure::{Failure, code};
use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::cuda::driver::types::{
    AccessDescription, AllocationProperties, Location, PoolProperties, handle, location,
};
use hook_runtime::memtype::Kind;

/// The primary context of a device. The program's own device has the first session, whose
/// context is current.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) driver: &'static Driver,
    pub(crate) device: i32,
    pub(crate) context: Context,
    is_current: bool,
}

/// How device memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// By cuMemAlloc
    Plain,
    /// Piece by piece, through the virtual memory interface, for file descriptors
    Mapped,
    /// The same, for the fabric
    MappedFabric,
    /// Out of a pool, for file descriptors
    Pool,
    /// The same, for the fabric
    PoolFabric,
}

impl Form {
    pub(crate) const ALL: [Self; 5] =
        [Self::Plain, Self::Mapped, Self::MappedFabric, Self::Pool, Self::PoolFabric];

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn handle_types(self) -> c_uint {
        match self {
            Self::MappedFabric | Self::PoolFabric => handle::FABRIC,
            _ => handle::POSIX_FD,
        }
    }
}

impl Session {
    pub(crate) fn new(driver: &'static Driver, device: i32) -> Result<Self, Failure> {
        let mut context = 0;
        // SAFETY: the result is a place of ours.
        unsafe { driver.calls.primary_retain(&raw mut context, device) }?;
        let mut session = Self { driver, device, context, is_current: false };
        // SAFETY: the context was retained above.
        unsafe { driver.calls.context_set(context) }?;
        session.is_current = true;
        Ok(session)
    }

    /// A second device, if there is one of this number, and whether the two may use each
    /// other's memory now.
    pub(crate) fn peer(&self, device: i32) -> Result<(Self, bool), Failure> {
        let (driver, mut context, mut can) = (self.driver, 0, 0);
        // SAFETY: the result is a place of ours; wrong numbers are answered with an error.
        unsafe { driver.calls.primary_retain(&raw mut context, device) }?;
        let peer = Self { driver, device, context, is_current: false };
        // SAFETY: as above.
        unsafe { driver.calls.device_can_access_peer(&raw mut can, self.device, device) }?;
        for (one, other) in [(self.context, context), (context, self.context)] {
            let _entered = driver.enter(one)?;
            if can != 0 {
                // SAFETY: both contexts were retained.
                match unsafe { driver.calls.enable_peer(other, 0) } {
                    Err(failure) if failure.code != code::PEER_ACCESS_ALREADY_ENABLED => {
                        return Err(failure);
                    }
                    _ => {}
                }
            }
        }
        Ok((peer, can != 0))
    }

    /// The name of the device.
    pub(crate) fn device_name(&self) -> String {
        let mut name = [0_u8; 128];
        // SAFETY: the place is as long as is said.
        let said =
            unsafe { self.driver.calls.device_name(name.as_mut_ptr().cast(), 127, self.device) };
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        match said {
            Ok(()) => String::from_utf8_lossy(&name[..end]).into_owned(),
            Err(failure) => failure.to_string(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_current {
            // SAFETY: no context is current afterwards.
            let _ = unsafe { self.driver.calls.context_set(0) };
        }
        // SAFETY: it gives back what was retained, once.
        let _ = unsafe { self.driver.calls.primary_release(self.device) };
    }
}

/// Memory of one kind.
#[derive(Debug)]
pub(crate) struct Buffer {
    driver: &'static Driver,
    pub(crate) kind: Kind,
    pub(crate) address: usize,
    pub(crate) size: usize,
    more: More,
}

/// What else there is to give back.
#[derive(Debug, Clone, Copy)]
enum More {
    Nothing,
    /// So many bytes of addresses, and those of them where memory is mapped.
    Addresses(usize, usize),
    Pool(Pool),
    /// Nothing is given back.
    Kept,
}

/// What expandable segments are made of, too.
const PIECE: usize = 2 << 20;

impl Buffer {
    /// Device memory of some form.
    pub(crate) fn of_form(session: &Session, form: Form, size: usize) -> Result<Self, Failure> {
        let _entered = session.driver.enter(session.context)?;
        match form {
            Form::Plain => Self::new(session, Kind::Device, size),
            Form::Mapped | Form::MappedFabric => Self::mapped(session, form, size),
            Form::Pool | Form::PoolFabric => Self::pooled(session, form, size),
        }
    }

    fn pooled(session: &Session, form: Form, size: usize) -> Result<Self, Failure> {
        let Session { driver, device, .. } = *session;
        let properties = PoolProperties::new(device, form.handle_types());
        let (calls, mut pool, mut address) = (&driver.calls, 0, 0);
        // SAFETY: the arguments are places of ours.
        unsafe { calls.pool_create(&raw mut pool, &raw const properties) }?;
        // Drivers have crashed when a pool was destroyed that could not be exported, as those
        // for the fabric cannot without one: these end with the program.
        let more = if form == Form::PoolFabric { More::Kept } else { More::Pool(pool) };
        let mut buffer = Self { driver, kind: Kind::Device, address: 0, size, more };
        // SAFETY: the pool was made above; 0 is the default stream.
        unsafe { calls.pool_alloc_async(&raw mut address, size, pool, 0) }?;
        buffer.address = address as usize;
        // SAFETY: the default stream is always there.
        unsafe { calls.stream_synchronize(0) }?;
        Ok(buffer)
    }

    fn mapped(session: &Session, form: Form, size: usize) -> Result<Self, Failure> {
        let Session { driver, device, .. } = *session;
        let (calls, all, mut address) = (&driver.calls, size.next_multiple_of(PIECE), 0);
        // SAFETY: the result is a place of ours.
        unsafe { calls.reserve(&raw mut address, all, 0, 0, 0) }?;
        let more = More::Addresses(all, 0);
        let mut buffer = Self { driver, kind: Kind::Device, address: address as usize, size, more };
        let location = Location { kind: location::DEVICE, id: device };
        let properties = AllocationProperties {
            kind: 1,
            handle_types: form.handle_types(),
            location,
            ..AllocationProperties::default()
        };
        for at in (0..all).step_by(PIECE) {
            let mut physical = 0;
            // SAFETY: the arguments are places of ours.
            unsafe { calls.create(&raw mut physical, PIECE, &raw const properties, 0) }?;
            // SAFETY: the addresses were reserved, the memory made, above.
            let mapped = unsafe { calls.map(address + at as u64, PIECE, 0, physical, 0) };
            if mapped.is_ok() {
                buffer.more = More::Addresses(all, at + PIECE);
            }
            // SAFETY: a mapping keeps the memory; the handle is given back once.
            let released = unsafe { calls.release(physical) };
            mapped.and(released)?;
        }
        let access = AccessDescription::read_write(device);
        // SAFETY: the range was mapped above.
        unsafe { calls.set_access(address, all, &raw const access, 1) }?;
        Ok(buffer)
    }

    pub(crate) fn new(session: &Session, kind: Kind, size: usize) -> Result<Self, Failure> {
        let driver = session.driver;
        let _entered = driver.enter(session.context)?;
        let (mut address, mut host): (u64, *mut c_void) = (0, std::ptr::null_mut());
        const GLOBAL: u32 = 1;
        match kind {
            // Touched, so that its pages are there.
            Kind::Host => host = Box::into_raw(vec![1_u8; size].into_boxed_slice()).cast(),
            // SAFETY: the result is a place of ours.
            Kind::Pinned => unsafe { driver.calls.alloc_host(&raw mut host, size, 0) }?,
            // SAFETY: as above.
            Kind::Device => unsafe { driver.calls.alloc(&raw mut address, size) }?,
            Kind::Managed => {
                // SAFETY: as above.
                unsafe { driver.calls.alloc_managed(&raw mut address, size, GLOBAL) }?;
            }
        }
        let address = if host.is_null() { address as usize } else { host as usize };
        Ok(Self { driver, kind, address, size, more: More::Nothing })
    }

    /// Puts bytes into it.
    pub(crate) fn fill(&self, bytes: &[u8]) -> Result<(), Failure> {
        assert!(bytes.len() <= self.size);
        // SAFETY: both are as long as is said.
        unsafe { self.driver.calls.copy(self.address as u64, bytes.as_ptr() as u64, bytes.len()) }
    }

    /// All its bytes.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0_u8; self.size];
        let to = bytes.as_mut_ptr() as u64;
        // SAFETY: both are as long as is said.
        unsafe { self.driver.calls.copy(to, self.address as u64, self.size) }?;
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let (host, calls) = (self.address as *mut c_void, &self.driver.calls);
        match self.more {
            More::Nothing => {}
            More::Kept => return,
            More::Addresses(all, mapped) => {
                if mapped > 0 {
                    // SAFETY: mapped in `mapped`, here and below given back once.
                    let _ = unsafe { calls.unmap(self.address as u64, mapped) };
                }
                // SAFETY: as above.
                let _ = unsafe { calls.unreserve(self.address as u64, all) };
                return;
            }
            More::Pool(pool) => {
                if self.address != 0 {
                    // SAFETY: allocated in `pooled`, here and below given back once.
                    let _ = unsafe { calls.free(self.address as u64) };
                }
                // SAFETY: as above.
                let _ = unsafe { calls.pool_destroy(pool) };
                return;
            }
        }
        // At the end of a run there is nobody to tell of a failure.
        let _ = match self.kind {
            Kind::Host => {
                let slice = std::ptr::slice_from_raw_parts_mut(host.cast::<u8>(), self.size);
                // SAFETY: it came from `Box::into_raw` with this length.
                drop(unsafe { Box::from_raw(slice) });
                Ok(())
            }
            // SAFETY: allocated in `new`, freed once; nobody copies any more.
            Kind::Pinned => unsafe { self.driver.calls.free_host(host) },
            // SAFETY: as above.
            Kind::Device | Kind::Managed => unsafe { self.driver.calls.free(self.address as u64) },
        };
    }
}
