//! Questions to the driver that the process has loaded.
//!
//! Nothing in this file loads it; [`open`] does, for the transports. Its functions are
//! looked up in the loaded object itself when the list of objects is walked, and called by
//! address, so that no question goes through a hooked slot. Where the driver is missing or
//! lacks a function, there is no answer.

pub mod calls;
pub mod failure;
pub mod open;
pub mod types;

use std::ffi::{CStr, c_uint, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUresult, NOT_INITIALIZED, SHUTTING_DOWN, SUCCESS,
};
use crate::event::MemoryClass;
use crate::event::sizes::{Allocation, Owner};
use crate::reloc::image::{Image, Name};

/// What the driver's library calls itself.
pub const SONAME: &CStr = c"libcuda.so.1";

/// Whether `image` is the driver.
pub fn is_driver(image: &Image<'_>) -> bool {
    image.soname() == Some(SONAME)
}

static ADDRESS_RANGE: AtomicUsize = AtomicUsize::new(0);
static POINTER_ATTRIBUTE: AtomicUsize = AtomicUsize::new(0);
static CURRENT_CONTEXT: AtomicUsize = AtomicUsize::new(0);
static PRIMARY_STATE: AtomicUsize = AtomicUsize::new(0);
static PRIMARY_RETAIN: AtomicUsize = AtomicUsize::new(0);
static PRIMARY_RELEASE: AtomicUsize = AtomicUsize::new(0);

/// The functions asked, newest name first.
static QUESTIONS: [(&AtomicUsize, &[Name]); 6] = [
    (&ADDRESS_RANGE, &[Name::new(c"cuMemGetAddressRange_v2")]),
    (&POINTER_ATTRIBUTE, &[Name::new(c"cuPointerGetAttribute")]),
    (&CURRENT_CONTEXT, &[Name::new(c"cuCtxGetCurrent")]),
    (&PRIMARY_STATE, &[Name::new(c"cuDevicePrimaryCtxGetState")]),
    (&PRIMARY_RETAIN, &[Name::new(c"cuDevicePrimaryCtxRetain")]),
    (
        &PRIMARY_RELEASE,
        &[Name::new(c"cuDevicePrimaryCtxRelease_v2"), Name::new(c"cuDevicePrimaryCtxRelease")],
    ),
];

/// Looks the functions up in the loaded driver, or forgets them if it is not loaded.
pub fn refresh(images: &[Image<'_>]) {
    let tables = images.iter().find(|image| is_driver(image)).and_then(Image::tables);
    for (place, names) in &QUESTIONS {
        let found = tables
            .as_ref()
            .and_then(|tables| names.iter().find_map(|name| tables.definitions(name).next()));
        place.store(found.unwrap_or(0), Ordering::Release);
    }
}

/// The function whose address `place` holds.
///
/// # Safety
///
/// `F` is the type of a pointer to that function.
unsafe fn question<F: Copy>(place: &AtomicUsize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = place.load(Ordering::Acquire);
    // SAFETY: by this function's contract; no function lies at zero.
    (address != 0).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&address) })
}

/// What the driver says about an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is in this allocation, which starts here.
    Allocation(usize, Allocation),
    /// It is in none.
    Nothing,
    /// There is no driver that could have made any.
    NoDriver,
}

/// One attribute of the allocation that holds `address`. No context needs to be current.
///
/// # Safety
///
/// `T` is the type that the driver documents for `attribute`.
unsafe fn attribute<T>(attribute: c_uint, address: usize) -> Result<T, CUresult> {
    type Ask = unsafe extern "C" fn(*mut c_void, c_uint, CUdeviceptr) -> CUresult;
    // SAFETY: the type is the one that the driver documents.
    let ask = unsafe { question::<Ask>(&POINTER_ATTRIBUTE) }.ok_or(NOT_INITIALIZED)?;
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: the result is a place of ours of the documented size; any address may be asked for.
    let status = unsafe { ask(value.as_mut_ptr().cast(), attribute, address as CUdeviceptr) };
    // SAFETY: the driver says that it has written it.
    (status == SUCCESS).then(|| unsafe { value.assume_init() }).ok_or(status)
}

/// The allocation that holds `address`, whichever context it belongs to.
pub fn allocation_at(address: usize) -> Answer {
    /// Numbers of attributes, which are the same in all releases.
    const CONTEXT: c_uint = 1;
    const MEMORY_TYPE: c_uint = 2;
    const IS_MANAGED: c_uint = 8;
    const RANGE_START: c_uint = 11;
    const RANGE_SIZE: c_uint = 12;
    const HOST_MEMORY: c_uint = 1;
    // SAFETY: an address.
    let start = match unsafe { attribute::<u64>(RANGE_START, address) } {
        Ok(start) => start as usize,
        Err(NOT_INITIALIZED | SHUTTING_DOWN) => return Answer::NoDriver,
        Err(_) => return Answer::Nothing,
    };
    // SAFETY: a number of bytes.
    let Ok(size) = (unsafe { attribute::<usize>(RANGE_SIZE, address) }) else {
        return Answer::Nothing;
    };
    // SAFETY: a number for the kind of memory.
    let kind = unsafe { attribute::<c_uint>(MEMORY_TYPE, address) };
    // SAFETY: a truth value, which is one byte; read as one that may have any value.
    let managed = unsafe { attribute::<u8>(IS_MANAGED, address) };
    let class = match (managed, kind) {
        (Ok(1..), _) => MemoryClass::Managed,
        (_, Ok(HOST_MEMORY)) => MemoryClass::Host,
        (_, Ok(_)) => MemoryClass::Device,
        _ => MemoryClass::Unknown,
    };
    // SAFETY: a handle. Stream-ordered memory has none.
    let context = unsafe { attribute::<usize>(CONTEXT, address) };
    let owner = match context {
        Ok(context) if context != 0 => Owner::Context(context),
        _ => Owner::Itself,
    };
    Answer::Allocation(start, Allocation { size, class, owner })
}

/// The size of the allocation that starts at `address`, asked in the current context if
/// there is one, or without; nothing if none starts there.
pub fn size_at(address: usize) -> Option<usize> {
    size_in_context(address).or_else(|| match allocation_at(address) {
        Answer::Allocation(start, allocation) if start == address => Some(allocation.size),
        _ => None,
    })
}

fn size_in_context(address: usize) -> Option<usize> {
    type Ask = unsafe extern "C" fn(*mut CUdeviceptr, *mut usize, CUdeviceptr) -> CUresult;
    // SAFETY: the type is the one that the driver documents.
    let ask = unsafe { question::<Ask>(&ADDRESS_RANGE) }?;
    let (mut base, mut size) = (0, 0);
    // SAFETY: both results are places of ours; any address may be asked for.
    let status = unsafe { ask(&raw mut base, &raw mut size, address as CUdeviceptr) };
    (status == SUCCESS && base as usize == address).then_some(size)
}

/// The context that is current on the calling thread.
pub fn current_context() -> Option<usize> {
    type Ask = unsafe extern "C" fn(*mut CUcontext) -> CUresult;
    // SAFETY: the type is the one that the driver documents.
    let ask = unsafe { question::<Ask>(&CURRENT_CONTEXT) }?;
    let mut context: CUcontext = std::ptr::null_mut();
    // SAFETY: the result is a place of ours.
    let status = unsafe { ask(&raw mut context) };
    (status == SUCCESS && !context.is_null()).then_some(context as usize)
}

/// Whether the primary context of `device` exists; nothing if that is not known.
pub fn primary_context_exists(device: CUdevice) -> Option<bool> {
    type Ask = unsafe extern "C" fn(CUdevice, *mut c_uint, *mut i32) -> CUresult;
    // SAFETY: the type is the one that the driver documents.
    let ask = unsafe { question::<Ask>(&PRIMARY_STATE) }?;
    let (mut flags, mut active) = (0, 0);
    // SAFETY: both results are places of ours; a wrong device is answered with an error.
    let status = unsafe { ask(device, &raw mut flags, &raw mut active) };
    (status == SUCCESS).then_some(active != 0)
}

/// The primary context of `device`, if it exists.
pub fn primary_context(device: CUdevice) -> Option<usize> {
    type Retain = unsafe extern "C" fn(*mut CUcontext, CUdevice) -> CUresult;
    type Release = unsafe extern "C" fn(CUdevice) -> CUresult;
    if !primary_context_exists(device)? {
        return None;
    }
    // SAFETY: the type is the one that the driver documents.
    let retain = unsafe { question::<Retain>(&PRIMARY_RETAIN) }?;
    // SAFETY: the type is the one that the driver documents.
    let release = unsafe { question::<Release>(&PRIMARY_RELEASE) }?;
    let mut context: CUcontext = std::ptr::null_mut();
    // SAFETY: the result is a place of ours.
    if unsafe { retain(&raw mut context, device) } != SUCCESS {
        return None;
    }
    // SAFETY: it takes back what was retained above, no more.
    unsafe { release(device) };
    Some(context as usize)
}
