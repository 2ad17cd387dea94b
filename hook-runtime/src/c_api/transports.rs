//! The transports for programs in C: the bodies behind the functions of libuct_cuda and
//! libuct_cuda_gdrcopy.
//!
//! What fails leaves a message for the thread that asked, for [`error`].

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::fmt::Display;
use std::sync::Arc;

use super::guarded;
use crate::cuda::driver::open::Driver;
use crate::memtype::Kind;
use crate::transport::cuda_copy::{Copier, Posted, Region};
use crate::transport::cuda_ipc::{self, Export, Key, Mapping};
use crate::transport::gdr_copy::GdrCopy;
use crate::transport::settings::Settings;
use crate::transport::{CopyError, Path, Reach, Row, TRANSPORTS};

/// Status: done.
pub const HOOK_TRANSPORT_OK: c_int = 0;
/// Status: a copy goes on; its token will be reported.
pub const HOOK_TRANSPORT_PENDING: c_int = 1;
/// Status: not done; `hook_transport_error` says why.
pub const HOOK_TRANSPORT_ERROR: c_int = -1;

/// Kind of memory: the host's, unknown to CUDA.
pub const HOOK_MEMORY_HOST: u32 = 0;
/// Kind of memory: the host's, page-locked.
pub const HOOK_MEMORY_PINNED: u32 = 1;
/// Kind of memory: a device's.
pub const HOOK_MEMORY_DEVICE: u32 = 2;
/// Kind of memory: managed.
pub const HOOK_MEMORY_MANAGED: u32 = 3;

/// What a transport is and can do.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CTransport {
    /// Its name, which is UCX's.
    pub name: [c_char; 16],
    /// What it is for.
    pub purpose: [c_char; 112],
    /// The largest copy that is complete when the call returns; 0: there is none.
    pub max_short: usize,
    /// The largest copy that goes on after the call; 0: there is none.
    pub max_zcopy: usize,
    /// Not 0: the other side's memory can be written.
    pub put: c_int,
    /// Not 0: it can be read.
    pub get: c_int,
    /// Not 0: the memory of other processes on this machine; 0: this process's own.
    pub other_processes: c_int,
}

/// A range of memory of one kind. It keeps nothing alive.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CRegion {
    /// The first address.
    pub address: *mut c_void,
    /// The number of bytes.
    pub length: usize,
    /// The context that copies are made in; 0 for host memory.
    pub context: usize,
    /// One of `HOOK_MEMORY_*`.
    pub kind: u32,
    /// The device that it lies on; -1 if that is not one device's.
    pub device: i32,
}

/// Makes copies, for one thread at a time.
#[derive(Debug)]
pub struct CCopier(Copier);
/// Memory that is known to other processes for as long as this is there.
#[derive(Debug)]
pub struct CExport {
    export: Export,
    key: Vec<u8>,
}
/// Memory of another process, open for as long as this is there.
#[derive(Debug)]
pub struct CMapping(Arc<Mapping>);
/// gdrcopy, opened.
#[derive(Debug)]
pub struct CGdr(GdrCopy);

/// Is told of each copy that ends: its token, and whether it was made (`HOOK_TRANSPORT_OK`
/// or `HOOK_TRANSPORT_ERROR`).
pub type CReport = Option<unsafe extern "C" fn(token: u64, status: c_int, argument: *mut c_void)>;

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

fn failed<R>(result: R, error: impl Display) -> R {
    MESSAGE.with_borrow_mut(|message| *message = error.to_string());
    result
}

fn status<E: Display>(result: Result<(), E>) -> c_int {
    result.map_or_else(|error| failed(HOOK_TRANSPORT_ERROR, error), |()| HOOK_TRANSPORT_OK)
}

/// What the last failed call of this thread has met, written as `snprintf` writes.
///
/// # Safety
///
/// `buffer` has room for `length` bytes; it may be null if `length` is 0.
pub unsafe fn error(buffer: *mut c_char, length: usize) -> usize {
    let text = MESSAGE.with_borrow(String::clone);
    // SAFETY: by this function's contract.
    unsafe { super::write_text(&text, buffer, length) };
    text.len()
}

fn rows(module: &str) -> impl Iterator<Item = &'static Row> {
    TRANSPORTS.iter().filter(move |row| row.module == module)
}

fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut all = [0; N];
    for (place, byte) in all.iter_mut().take(N - 1).zip(text.bytes()) {
        *place = byte as c_char;
    }
    all
}

/// How many transports a module holds.
pub fn count(module: &str) -> usize {
    rows(module).count()
}

/// Describes transport `number` of a module.
///
/// # Safety
///
/// `to` has room for the description.
pub unsafe fn describe(module: &str, number: usize, to: *mut CTransport) -> c_int {
    let Some(row) = rows(module).nth(number).filter(|_| !to.is_null()) else {
        return failed(HOOK_TRANSPORT_ERROR, "there is no such transport, or no place for it");
    };
    let can = row.transport.capabilities();
    let described = CTransport {
        name: text(row.name),
        purpose: text(row.purpose),
        max_short: can.max_short,
        max_zcopy: can.max_zcopy,
        put: can.put.into(),
        get: can.get.into(),
        other_processes: (can.reach == Reach::Machine).into(),
    };
    // SAFETY: by this function's contract.
    unsafe { to.write(described) };
    HOOK_TRANSPORT_OK
}

/// Seconds that a copy is estimated to take; below 0 if the transport does not do that.
pub fn estimate(module: &str, number: usize, from: u32, to: u32, size: usize) -> f64 {
    let kind = |number: u32| Kind::ALL.get(number as usize).copied();
    let (Some(row), Some(from), Some(to)) = (rows(module).nth(number), kind(from), kind(to)) else {
        return -1.0;
    };
    let cost = || row.transport.estimate(Path { from, to }, &Settings::from_environment());
    guarded(-1.0, || cost().map_or(-1.0, |cost| cost.of(size)))
}

/// A copier with the settings of the environment; null on failure.
pub fn copier_create() -> *mut CCopier {
    guarded(std::ptr::null_mut(), || match Driver::get() {
        Ok(driver) => {
            let copier = Copier::new(driver, Settings::from_environment());
            Box::into_raw(Box::new(CCopier(copier)))
        }
        Err(error) => failed(std::ptr::null_mut(), error),
    })
}

/// Gives back what one of this file's functions has made. Null is nothing.
///
/// # Safety
///
/// `made` came from such a function, and is given back once.
pub unsafe fn destroy<T>(made: *mut T) {
    if !made.is_null() {
        // SAFETY: by this function's contract it came from a box.
        let made = unsafe { Box::from_raw(made) };
        guarded((), || drop(made));
    }
}

/// Finds out what `length` bytes at `address` are.
///
/// # Safety
///
/// `copier` is alive and used by this thread alone; `to` has room for a region.
pub unsafe fn region(
    copier: *mut CCopier,
    address: *mut c_void,
    length: usize,
    to: *mut CRegion,
) -> c_int {
    // SAFETY: by this function's contract.
    let Some(CCopier(copier)) = (unsafe { copier.as_mut() }) else {
        return failed(HOOK_TRANSPORT_ERROR, "there is no copier");
    };
    if to.is_null() {
        return failed(HOOK_TRANSPORT_ERROR, "there is no place for the region");
    }
    guarded(HOOK_TRANSPORT_ERROR, || match copier.region(address as usize, length) {
        Ok(region) => {
            let (_, length, kind, device, context) = region.parts();
            let (context, device) = (context.unwrap_or(0), device.map_or(-1, i32::from));
            // SAFETY: by this function's contract.
            unsafe { to.write(CRegion { address, length, context, kind: kind as u32, device }) };
            HOOK_TRANSPORT_OK
        }
        Err(error) => failed(HOOK_TRANSPORT_ERROR, error),
    })
}

/// What a region of the caller's says.
///
/// # Safety
///
/// The pointer is null or leads to a region.
unsafe fn known(region: *const CRegion) -> Option<Region> {
    // SAFETY: by this function's contract.
    let region = unsafe { region.as_ref() }?;
    let kind = *Kind::ALL.get(region.kind as usize)?;
    let context = (region.context != 0).then_some(region.context);
    let device = u16::try_from(region.device).ok();
    Some(Region::from_parts((region.address as usize, region.length, kind, device, context)))
}

/// One copy, as C gives it.
#[derive(Debug, Clone, Copy)]
pub struct CCopy {
    /// The destination, and where in it.
    pub to: (*const CRegion, usize),
    /// The source, and where in it.
    pub from: (*const CRegion, usize),
    /// How many bytes.
    pub size: usize,
}

/// Begins a copy, or makes it and waits if it has no token.
///
/// # Safety
///
/// As for [`Copier::copy`] and [`Copier::copy_now`]; the pointers lead to what they say.
pub unsafe fn copy(copier: *mut CCopier, copy: CCopy, token: Option<u64>) -> c_int {
    // SAFETY: by this function's contract, here and below.
    let copier = unsafe { copier.as_mut() };
    // SAFETY: as above.
    let to = unsafe { known(copy.to.0) };
    // SAFETY: as above.
    let from = unsafe { known(copy.from.0) };
    let (Some(CCopier(copier)), Some(to), Some(from)) = (copier, to, from) else {
        return failed(HOOK_TRANSPORT_ERROR, "a copier and two regions are needed");
    };
    let (to, from) = ((&to, copy.to.1), (&from, copy.from.1));
    guarded(HOOK_TRANSPORT_ERROR, || {
        let posted = match token {
            // SAFETY: as above.
            Some(token) => unsafe { copier.copy(to, from, copy.size, token) },
            // SAFETY: as above.
            None => unsafe { copier.copy_now(to, from, copy.size) }.map(|()| Posted::Done),
        };
        match posted {
            Ok(Posted::Done) => HOOK_TRANSPORT_OK,
            Ok(Posted::Pending) => HOOK_TRANSPORT_PENDING,
            Err(error) => failed(HOOK_TRANSPORT_ERROR, error),
        }
    })
}

/// Looks once (`wait` is false) or waits for all, and reports what is over.
///
/// # Safety
///
/// `copier` is alive and used by this thread alone; `report` may be called with `argument`.
pub unsafe fn report(
    copier: *mut CCopier,
    wait: bool,
    report: CReport,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: by this function's contract.
    let Some(CCopier(copier)) = (unsafe { copier.as_mut() }) else {
        return failed(HOOK_TRANSPORT_ERROR, "there is no copier");
    };
    let mut tell = |token, result: Result<(), CopyError>| {
        let status = status(result);
        if let Some(report) = report {
            // SAFETY: by this function's contract.
            unsafe { report(token, status, argument) };
        }
    };
    guarded(HOOK_TRANSPORT_ERROR, || match wait {
        true => status(copier.flush(&mut tell)),
        false => c_int::try_from(copier.progress(&mut tell)).unwrap_or(c_int::MAX),
    })
}

/// Makes memory known to other processes; null on failure.
pub fn export(address: *mut c_void, length: usize) -> *mut CExport {
    let export = || -> Result<CExport, String> {
        let driver = Driver::get().map_err(|error| error.to_string())?;
        let export = cuda_ipc::export(driver, address as usize, length);
        let export = export.map_err(|error| error.to_string())?;
        Ok(CExport { key: export.key.to_bytes(), export })
    };
    guarded(std::ptr::null_mut(), || match export() {
        Ok(export) => Box::into_raw(Box::new(export)),
        Err(error) => failed(std::ptr::null_mut(), error),
    })
}

/// Writes the key of exported memory, at most `length` bytes of it; returns its length.
///
/// # Safety
///
/// `export` is alive; `buffer` has room for `length` bytes, and may be null if that is 0.
pub unsafe fn key(export: *const CExport, buffer: *mut c_void, length: usize) -> usize {
    // SAFETY: by this function's contract.
    let Some(export) = (unsafe { export.as_ref() }) else { return 0 };
    if !buffer.is_null() {
        let size = length.min(export.key.len());
        // SAFETY: by this function's contract.
        unsafe { std::ptr::copy_nonoverlapping(export.key.as_ptr(), buffer.cast(), size) };
    }
    export.key.len()
}

/// Where the address that was exported lies in what the key stands for.
///
/// # Safety
///
/// `export` is alive.
pub unsafe fn offset(export: *const CExport) -> usize {
    // SAFETY: by this function's contract.
    unsafe { export.as_ref() }.map_or(0, |export| export.export.offset)
}

/// Opens memory of another process; null on failure.
///
/// # Safety
///
/// `key` leads to `length` bytes.
pub unsafe fn open(key: *const c_void, length: usize) -> *mut CMapping {
    let open = || -> Result<CMapping, String> {
        if key.is_null() {
            return Err("there is no key".into());
        }
        // SAFETY: by this function's contract.
        let bytes = unsafe { std::slice::from_raw_parts(key.cast::<u8>(), length) };
        let driver = Driver::get().map_err(|error| error.to_string())?;
        let key = Key::from_bytes(bytes).map_err(|error| error.to_string())?;
        let opened = cuda_ipc::cache().open(driver, &key, &Settings::from_environment());
        opened.map(CMapping).map_err(|error| error.to_string())
    };
    guarded(std::ptr::null_mut(), || match open() {
        Ok(mapping) => Box::into_raw(Box::new(mapping)),
        Err(error) => failed(std::ptr::null_mut(), error),
    })
}

/// Where memory of another process is in this one, and its length.
///
/// # Safety
///
/// `mapping` is alive; `length` is null or has room for a number.
pub unsafe fn address(mapping: *const CMapping, length: *mut usize) -> *mut c_void {
    // SAFETY: by this function's contract.
    let Some(CMapping(mapping)) = (unsafe { mapping.as_ref() }) else {
        return std::ptr::null_mut();
    };
    if !length.is_null() {
        // SAFETY: by this function's contract.
        unsafe { length.write(mapping.len()) };
    }
    mapping.address() as *mut c_void
}

/// Opens gdrcopy; null on failure.
pub fn gdr_open() -> *mut CGdr {
    guarded(std::ptr::null_mut(), || match GdrCopy::open(&Settings::from_environment()) {
        Ok(gdr) => Box::into_raw(Box::new(CGdr(gdr))),
        Err(error) => failed(std::ptr::null_mut(), error),
    })
}

/// What is asked of gdrcopy.
#[derive(Debug, Clone, Copy)]
pub enum GdrWish {
    /// Register device memory.
    Register,
    /// Give up what is registered of it.
    Forget,
    /// Write to it, from here.
    Put(*const c_void),
    /// Read it, to here.
    Get(*mut c_void),
}

/// Does with `size` bytes of device memory at `device_address` what is asked for.
///
/// # Safety
///
/// `gdr` is alive; the host's address leads to `size` bytes.
pub unsafe fn gdr(
    gdr: *const CGdr,
    device_address: *mut c_void,
    size: usize,
    wish: GdrWish,
) -> c_int {
    // SAFETY: by this function's contract.
    let Some(CGdr(gdr)) = (unsafe { gdr.as_ref() }) else {
        return failed(HOOK_TRANSPORT_ERROR, "gdrcopy is not open");
    };
    let at = device_address as usize;
    guarded(HOOK_TRANSPORT_ERROR, || match wish {
        GdrWish::Register => status(gdr.register(at, size)),
        GdrWish::Forget => {
            gdr.forget(at, size);
            HOOK_TRANSPORT_OK
        }
        GdrWish::Put(from) if !from.is_null() => {
            // SAFETY: by this function's contract.
            status(gdr.put(at, unsafe { std::slice::from_raw_parts(from.cast(), size) }))
        }
        GdrWish::Get(to) if !to.is_null() => {
            // SAFETY: as above.
            status(gdr.get(unsafe { std::slice::from_raw_parts_mut(to.cast(), size) }, at))
        }
        _ => failed(HOOK_TRANSPORT_ERROR, "there is no place for the bytes"),
    })
}
