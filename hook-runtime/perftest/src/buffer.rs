//! Memory of each kind to copy from and to, and the context to do it in.

use std::ffi::c_void;

use hook_runtime::cuda::driver::failure::Failure;
use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::memtype::Kind;

/// The primary context of a device, current for as long as this lives.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) driver: &'static Driver,
    pub(crate) device: i32,
}

impl Session {
    pub(crate) fn new(driver: &'static Driver, device: i32) -> Result<Self, Failure> {
        let mut context = 0;
        // SAFETY: the result is a place of ours.
        unsafe { driver.calls.primary_retain(&raw mut context, device) }?;
        let session = Self { driver, device };
        // SAFETY: the context was retained above.
        unsafe { driver.calls.context_set(context) }?;
        Ok(session)
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
        // SAFETY: no context is current afterwards.
        let _ = unsafe { self.driver.calls.context_set(0) };
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
}

impl Buffer {
    pub(crate) fn new(session: &Session, kind: Kind, size: usize) -> Result<Self, Failure> {
        let driver = session.driver;
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
        Ok(Self { driver, kind, address, size })
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
        let host = self.address as *mut c_void;
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
