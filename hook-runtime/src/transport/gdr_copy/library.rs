//! libgdrapi, opened at run time: a build needs no gdrcopy, and one build serves every
//! version. What a version lacks is said when it is needed.

use std::ffi::{CStr, c_int, c_void};

use super::GdrError;
use crate::sys::library::Library;

/// What the library is called since its version 2.
pub const SONAME: &CStr = c"libgdrapi.so.2";

/// A registration, as the library hands it out (`gdr_mh_t`).
pub(super) type Handle = usize;

type Version = unsafe extern "C" fn(*mut c_int, *mut c_int);
type DriverVersion = unsafe extern "C" fn(usize, *mut c_int, *mut c_int) -> c_int;
type Open = unsafe extern "C" fn() -> usize;
type Close = unsafe extern "C" fn(usize) -> c_int;
type Pin = unsafe extern "C" fn(usize, usize, usize, u64, u32, *mut Handle) -> c_int;
type PinV2 = unsafe extern "C" fn(usize, usize, usize, u32, *mut Handle) -> c_int;
type Attribute = unsafe extern "C" fn(usize, c_int, *mut c_int) -> c_int;
type Unpin = unsafe extern "C" fn(usize, Handle) -> c_int;
type Map = unsafe extern "C" fn(usize, Handle, *mut *mut c_void, usize) -> c_int;
type Unmap = unsafe extern "C" fn(usize, Handle, *mut c_void, usize) -> c_int;
type Info = unsafe extern "C" fn(usize, Handle, *mut [u64; 16]) -> c_int;
type Copy = unsafe extern "C" fn(Handle, *mut c_void, *const c_void, usize) -> c_int;

/// The library's functions, and its handle. It is not made for several threads: whoever
/// has it holds a lock.
#[derive(Debug)]
pub(super) struct Gdr {
    gdr: usize,
    close: Close,
    pin: Pinning,
    unpin: Unpin,
    map: Map,
    unmap: Unmap,
    info: Info,
    to_mapping: Copy,
    from_mapping: Copy,
}

/// How memory is registered.
#[derive(Debug, Clone, Copy)]
enum Pinning {
    /// As every version can.
    Plain(Pin),
    /// As since version 2.5, with flags.
    WithFlags(PinV2, u32),
}

/// The function `name`, if the library has it.
///
/// # Safety
///
/// `F` is the type of a pointer to that function.
unsafe fn find<F: std::marker::Copy>(library: Library, name: &'static CStr) -> Result<F, GdrError> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = library.symbol(name).ok_or(GdrError::Missing(name))?;
    // SAFETY: by this function's contract.
    Ok(unsafe { std::mem::transmute_copy::<usize, F>(&address) })
}

fn check(function: &'static str, code: c_int) -> Result<(), GdrError> {
    if code == 0 { Ok(()) } else { Err(GdrError::Call { function, code }) }
}

/// The newer way to register memory, where the library has it.
fn pinning(library: Library, gdr: usize, force_pcie: bool) -> Option<Pinning> {
    const SUPPORTS_FORCE_PCIE: c_int = 2;
    const FORCE_PCIE: u32 = 1;
    // SAFETY: the types are those that gdrapi.h declares, here and below.
    let newer: Option<PinV2> = unsafe { find(library, c"gdr_pin_buffer_v2") }.ok();
    let flags = if force_pcie {
        // SAFETY: as above.
        let ask: Option<Attribute> = unsafe { find(library, c"gdr_get_attribute") }.ok();
        let mut can = 0;
        let place = &raw mut can;
        // SAFETY: the handle is open, the result a place of ours.
        let asked = ask.map(|ask| unsafe { ask(gdr, SUPPORTS_FORCE_PCIE, place) });
        let can = newer.is_some() && asked == Some(0) && can != 0;
        if !can {
            crate::log::warn!(
                "this gdrcopy cannot be told to map through PCIe: it maps as it does"
            );
        }
        if can { FORCE_PCIE } else { 0 }
    } else {
        0
    };
    newer.map(|pin| Pinning::WithFlags(pin, flags))
}

impl Gdr {
    /// With `force_pcie` memory is mapped through PCIe where the library can see to that.
    pub(super) fn open(force_pcie: bool) -> Result<Self, GdrError> {
        let library =
            Library::open(SONAME).map_err(|error| GdrError::Library(error.to_string()))?;
        // SAFETY: the types are those that gdrapi.h declares, here and below.
        let open: Open = unsafe { find(library, c"gdr_open") }?;
        // SAFETY: as above. The newer form came with version 2.4.
        let newest: Result<Info, _> = unsafe { find(library, c"gdr_get_info_v2") };
        let info = match newest {
            Ok(info) => info,
            // SAFETY: as above.
            Err(_) => unsafe { find(library, c"gdr_get_info") }?,
        };
        // SAFETY: as above, for each of them.
        let close = unsafe { find(library, c"gdr_close") }?;
        // SAFETY: as above.
        let plain = unsafe { find(library, c"gdr_pin_buffer") }?;
        // SAFETY: as above.
        let unpin = unsafe { find(library, c"gdr_unpin_buffer") }?;
        // SAFETY: as above.
        let map = unsafe { find(library, c"gdr_map") }?;
        // SAFETY: as above.
        let unmap = unsafe { find(library, c"gdr_unmap") }?;
        // SAFETY: as above.
        let to_mapping = unsafe { find(library, c"gdr_copy_to_mapping") }?;
        // SAFETY: as above.
        let from_mapping = unsafe { find(library, c"gdr_copy_from_mapping") }?;
        // SAFETY: no requirement.
        let gdr = unsafe { open() };
        if gdr == 0 {
            return Err(GdrError::NoDevice);
        }
        let pin = pinning(library, gdr, force_pcie).unwrap_or(Pinning::Plain(plain));
        let this = Self { gdr, close, pin, unpin, map, unmap, info, to_mapping, from_mapping };
        this.compare_versions(library)?;
        Ok(this)
    }

    /// The library and the kernel module have to agree on the first part of their versions.
    fn compare_versions(&self, library: Library) -> Result<(), GdrError> {
        // SAFETY: the types are those that gdrapi.h declares. Version 1 lacks both.
        let own: Result<Version, _> = unsafe { find(library, c"gdr_runtime_get_version") };
        // SAFETY: as above.
        let module: Result<DriverVersion, _> = unsafe { find(library, c"gdr_driver_get_version") };
        let (Ok(own), Ok(module)) = (own, module) else { return Ok(()) };
        let (mut ours, mut theirs) = ([0, 0], [0, 0]);
        let [major, minor] = &mut ours;
        // SAFETY: the results are places of ours.
        unsafe { own(major, minor) };
        let [major, minor] = &mut theirs;
        // SAFETY: as above; the handle is open.
        check("gdr_driver_get_version", unsafe { module(self.gdr, major, minor) })?;
        if ours[0] != theirs[0] {
            return Err(GdrError::Version { library: ours, module: theirs });
        }
        Ok(())
    }

    pub(super) fn pin(&self, address: usize, size: usize) -> Result<Handle, GdrError> {
        let mut handle = 0;
        match self.pin {
            Pinning::Plain(pin) => {
                // SAFETY: the result is a place of ours; a wrong address is answered with an error.
                let code = unsafe { pin(self.gdr, address, size, 0, 0, &raw mut handle) };
                check("gdr_pin_buffer", code)?;
            }
            Pinning::WithFlags(pin, flags) => {
                // SAFETY: as above.
                let code = unsafe { pin(self.gdr, address, size, flags, &raw mut handle) };
                check("gdr_pin_buffer_v2", code)?;
            }
        }
        Ok(handle)
    }

    pub(super) fn unpin(&self, handle: Handle) -> Result<(), GdrError> {
        // SAFETY: the handle came from `pin`, and is given back once.
        check("gdr_unpin_buffer", unsafe { (self.unpin)(self.gdr, handle) })
    }

    /// Maps a registration: where it is, and which device address its first byte is.
    pub(super) fn map(&self, handle: Handle, size: usize) -> Result<(usize, usize), GdrError> {
        let mut at = std::ptr::null_mut();
        // SAFETY: the handle came from `pin`; the result is a place of ours.
        check("gdr_map", unsafe { (self.map)(self.gdr, handle, &raw mut at, size) })?;
        // Larger than any version's structure; its first member is the device address.
        let mut info = [0_u64; 16];
        // SAFETY: as above.
        let asked = check("gdr_get_info", unsafe { (self.info)(self.gdr, handle, &raw mut info) });
        if let Err(error) = asked {
            // SAFETY: mapped above, and unmapped once.
            unsafe { (self.unmap)(self.gdr, handle, at, size) };
            return Err(error);
        }
        Ok((at as usize, info[0] as usize))
    }

    pub(super) fn unmap(&self, handle: Handle, at: usize, size: usize) -> Result<(), GdrError> {
        // SAFETY: mapped by `map` with this size, unmapped once; nobody copies meanwhile, since
        // that takes the lock that the caller holds.
        check("gdr_unmap", unsafe { (self.unmap)(self.gdr, handle, at as *mut c_void, size) })
    }

    /// # Safety
    ///
    /// `to` lies with `size` bytes in the mapping of `handle`; `from` can be read.
    pub(super) unsafe fn put(
        &self,
        handle: Handle,
        to: usize,
        from: *const u8,
        size: usize,
    ) -> Result<(), GdrError> {
        // SAFETY: by this function's contract.
        let code = unsafe { (self.to_mapping)(handle, to as *mut c_void, from.cast(), size) };
        check("gdr_copy_to_mapping", code)
    }

    /// # Safety
    ///
    /// `from` lies with `size` bytes in the mapping of `handle`; `to` can be written.
    pub(super) unsafe fn get(
        &self,
        handle: Handle,
        to: *mut u8,
        from: usize,
        size: usize,
    ) -> Result<(), GdrError> {
        // SAFETY: by this function's contract.
        let code = unsafe { (self.from_mapping)(handle, to.cast(), from as *const c_void, size) };
        check("gdr_copy_from_mapping", code)
    }
}

impl Drop for Gdr {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once, and everything was unmapped before.
        unsafe { (self.close)(self.gdr) };
    }
}
