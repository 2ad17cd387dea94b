//! The driver opened at run time, for those who call it rather than watch it.

use std::ffi::c_int;
use std::sync::OnceLock;

use super::SONAME;
use super::calls::{Calls, Context};
use super::failure::Failure;
use crate::sys::library::Library;

/// The driver of this machine.
#[derive(Debug)]
pub struct Driver {
    /// Its functions.
    pub calls: Calls,
    /// Its version: 1000 x major + 10 x minor.
    pub version: u32,
    /// How many devices there are.
    pub devices: u32,
}

/// Why there is no driver to call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoDriver {
    /// The library cannot be loaded.
    #[error("cannot open `libcuda.so.1`: {0}")]
    Library(String),
    /// It does not start.
    #[error("the driver does not start: {0}")]
    Start(#[from] Failure),
}

impl Driver {
    /// The driver, opened and initialised once. A failure is remembered, too.
    pub fn get() -> Result<&'static Self, NoDriver> {
        static DRIVER: OnceLock<Result<Driver, NoDriver>> = OnceLock::new();
        DRIVER.get_or_init(Self::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Self, NoDriver> {
        let library =
            Library::open(SONAME).map_err(|error| NoDriver::Library(error.to_string()))?;
        let calls = Calls::find(|name| library.symbol(name));
        // SAFETY: the flags have to be 0.
        unsafe { calls.init(0) }?;
        let (mut version, mut devices): (c_int, c_int) = (0, 0);
        // SAFETY: the result is a place of ours.
        unsafe { calls.driver_version(&raw mut version) }?;
        // SAFETY: the result is a place of ours.
        unsafe { calls.device_count(&raw mut devices) }?;
        Ok(Self {
            calls,
            version: version.try_into().unwrap_or(0),
            devices: devices.try_into().unwrap_or(0),
        })
    }

    /// The context that is current on this thread.
    pub fn current(&self) -> Result<Option<Context>, Failure> {
        let mut context = 0;
        // SAFETY: the result is a place of ours.
        unsafe { self.calls.context_current(&raw mut context) }?;
        Ok((context != 0).then_some(context))
    }

    /// An attribute of a device (`CUdevice_attribute`).
    pub fn attribute(&self, device: c_int, attribute: c_int) -> Result<c_int, Failure> {
        let mut value = 0;
        // SAFETY: the result is a place of ours; wrong numbers are answered with an error.
        unsafe { self.calls.device_attribute(&raw mut value, attribute, device) }?;
        Ok(value)
    }

    /// What tells a device from every other one.
    pub fn uuid(&self, device: c_int) -> Result<[u8; 16], Failure> {
        let mut uuid = [0; 16];
        // SAFETY: the result is a place of ours.
        unsafe { self.calls.device_uuid(&raw mut uuid, device) }?;
        Ok(uuid)
    }
}
