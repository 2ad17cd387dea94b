//! The driver opened at run time, for those who call it rather than watch it.

use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

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

    /// Makes `context` current on this thread until the result is dropped. A context that was
    /// destroyed is refused.
    pub fn enter(&'static self, context: Context) -> Result<Entered<'static>, Failure> {
        // Not knowing which one is current is no reason not to push.
        if self.current() == Ok(Some(context)) {
            return Ok(Entered { driver: self, pushed: false });
        }
        // SAFETY: the driver keeps a list of its contexts and refuses what is not in it.
        unsafe { self.calls.context_push(context) }?;
        Ok(Entered { driver: self, pushed: true })
    }

    /// The same for giving back what was made in the context, which is lost if this fails: a
    /// failure that passes is not taken for the end of the context.
    pub fn enter_to_clean(&'static self, context: Context) -> Result<Entered<'static>, Failure> {
        self.enter(context).or_else(|_| self.enter(context))
    }

    /// The primary context of `device`, kept alive until the process ends.
    pub fn primary(&self, device: c_int) -> Result<Context, Failure> {
        static KEPT: Mutex<Vec<(c_int, Context)>> = Mutex::new(Vec::new());
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, context)) = kept.iter().find(|kept| kept.0 == device) {
            return Ok(context);
        }
        let mut context = 0;
        // SAFETY: the result is a place of ours.
        unsafe { self.calls.primary_retain(&raw mut context, device) }?;
        kept.push((device, context));
        Ok(context)
    }

    /// A number that no other context of this process has had; nothing before CUDA 12.0. The
    /// context has to be alive.
    pub fn context_id(&self, context: Context) -> Option<u64> {
        let mut id = 0;
        // SAFETY: the result is a place of ours; the callers have just entered the context.
        unsafe { self.calls.context_id(context, &raw mut id) }.ok()?;
        Some(id)
    }

    /// Whether many copies can be handed over in one call.
    pub fn can_batch(&self) -> bool {
        let present = self.calls.present();
        present.iter().any(|(name, there)| name.starts_with("copy_batch") && *there)
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

/// A context is current for as long as this lives. It stays on its thread.
#[derive(Debug)]
pub struct Entered<'driver> {
    driver: &'driver Driver,
    pushed: bool,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut context = 0;
            // SAFETY: it takes off what was put on top; the result is a place of ours.
            let _ = unsafe { self.driver.calls.context_pop(&raw mut context) };
        }
    }
}
