//! The allocators of `ucx_perftest`, UCX's performance test, for CUDA's memory.
//!
//! UCX loads its module for them by name and has it fill a table that the program exports.
//! What they are called with is private to UCX and differs from release to release: the
//! [`LAYOUTS`] that are known are listed, and any other release is refused, in words.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::cuda::driver::calls::Context;
use crate::cuda::driver::failure::Failure;
use crate::cuda::driver::open::Driver;
use crate::sys::library;

/// Where things are in the structure that a release calls an allocator with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// The release, without its last number.
    release: (c_uint, c_uint),
    /// The group of processes, and the functions to ask it.
    group: (usize, usize),
    /// The memory domain.
    domain: usize,
    /// The device that the user has chosen, for the first process and for the other; -1 if none.
    devices: Option<(usize, usize)>,
}

const LAYOUTS: [Layout; 5] = [
    Layout { release: (1, 18), group: (0x80, 0x88), domain: 0x4400, devices: None },
    Layout { release: (1, 19), group: (0x80, 0x88), domain: 0x4400, devices: None },
    Layout { release: (1, 20), group: (0xa0, 0xa8), domain: 0x4420, devices: Some((0x30, 0x28)) },
    Layout { release: (1, 21), group: (0xb8, 0xc0), domain: 0x4438, devices: Some((0x30, 0x28)) },
    Layout { release: (1, 22), group: (0xb8, 0xc0), domain: 0x4438, devices: Some((0x30, 0x28)) },
];

/// Where, among the functions to ask a group, the one is that tells the process's number.
const GROUP_INDEX: usize = 0x18;

type Status = i8;
const OK: Status = 0;
const NO_MEMORY: Status = -4;
const NO_DEVICE: Status = -14;

type MemoryType = c_int;
const CUDA: MemoryType = 1;
const CUDA_MANAGED: MemoryType = 2;

/// What UCX tells of memory, in all the releases.
#[derive(Debug)]
#[repr(C)]
struct Allocated {
    address: *mut c_void,
    length: usize,
    method: c_int,
    memory_type: MemoryType,
    domain: *mut c_void,
    handle: *mut c_void,
}

#[repr(C)]
struct Allocator {
    memory_type: MemoryType,
    init: unsafe extern "C" fn(*const u8) -> Status,
    alloc: unsafe extern "C" fn(*const u8, usize, c_uint, *mut Allocated) -> Status,
    free: unsafe extern "C" fn(*const u8, *mut Allocated),
    copy: unsafe extern "C" fn(*mut c_void, MemoryType, *const c_void, MemoryType, usize),
    set: unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void,
}

static ALLOCATORS: [Allocator; 2] = [
    Allocator { memory_type: CUDA, init, alloc: alloc_device, free, copy, set },
    Allocator { memory_type: CUDA_MANAGED, init, alloc: alloc_managed, free, copy, set },
];

type Register =
    unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_uint, *mut *mut c_void) -> Status;
type Deregister = unsafe extern "C" fn(*mut c_void, *mut c_void) -> Status;
type Version = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);

/// What is used of the program and of UCX.
#[derive(Debug)]
struct Host {
    layout: Layout,
    register: Register,
    deregister: Deregister,
}

static HOST: OnceLock<Host> = OnceLock::new();
static DEVICE: AtomicI32 = AtomicI32::new(0);
static REGISTERED: AtomicUsize = AtomicUsize::new(0);

/// Why there are no allocators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// The program has no table for them.
    #[error("this program is no ucx_perftest")]
    NoPerftest,
    /// A function of UCX's is missing.
    #[error("`{0:?}` is not loaded")]
    Missing(&'static CStr),
    /// The release's structures are not known.
    #[error("ucx_perftest of UCX {0}.{1} is not known: 1.18 to 1.22 are")]
    Release(c_uint, c_uint),
}

/// The function `name`, wherever the process has it.
///
/// # Safety
///
/// `F` is the type of a pointer to that function.
unsafe fn function<F: Copy>(name: &'static CStr) -> Result<F, NotServed> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = library::anywhere(name).ok_or(NotServed::Missing(name))?;
    // SAFETY: by this function's contract.
    Ok(unsafe { std::mem::transmute_copy::<usize, F>(&address) })
}

/// Puts the allocators into the table of the ucx_perftest that has loaded this. Returns how
/// many there are then.
pub fn register() -> Result<usize, NotServed> {
    let table = library::anywhere(c"ucx_perf_mem_type_allocators").ok_or(NotServed::NoPerftest)?;
    // SAFETY: the types are those of UCX's public interface, here and below.
    let version: Version = unsafe { function(c"ucp_get_version") }?;
    let (mut major, mut minor, mut release) = (0, 0, 0);
    let places = (&raw mut major, &raw mut minor, &raw mut release);
    // SAFETY: the results are places of ours.
    unsafe { version(places.0, places.1, places.2) };
    let known = LAYOUTS.iter().find(|layout| layout.release == (major, minor));
    let layout = *known.ok_or(NotServed::Release(major, minor))?;
    // SAFETY: as above.
    let register: Register = unsafe { function(c"uct_md_mem_reg") }?;
    // SAFETY: as above.
    let deregister: Deregister = unsafe { function(c"uct_md_mem_dereg") }?;
    let _ = HOST.set(Host { layout, register, deregister });
    for allocator in &ALLOCATORS {
        // SAFETY: the table has a place for each type of memory that UCX knows.
        let place = unsafe { (table as *mut *const Allocator).add(allocator.memory_type as usize) };
        // SAFETY: as above; the program reads it later, in the same thread.
        unsafe { place.write(allocator) };
    }
    REGISTERED.store(ALLOCATORS.len(), Ordering::Relaxed);
    crate::log::info!("ucx_perftest {major}.{minor}: allocators for cuda and cuda-managed memory");
    Ok(ALLOCATORS.len())
}

/// What the module does when it is loaded. In another program than ucx_perftest that is
/// nothing; what keeps it from serving one is logged.
pub fn on_load() {
    match std::panic::catch_unwind(register) {
        Ok(Ok(_)) => {}
        Ok(Err(NotServed::NoPerftest)) => {
            crate::log::debug!("no allocators: {}", NotServed::NoPerftest);
        }
        Ok(Err(error)) => crate::log::error!("no allocators for ucx_perftest: {error}"),
        Err(_) => crate::log::error!("no allocators for ucx_perftest: a fault of this module's"),
    }
}

/// How many allocators ucx_perftest has from here.
pub fn registered() -> usize {
    REGISTERED.load(Ordering::Relaxed)
}

/// Takes them out of the table again, for when the module is unloaded.
pub fn unregister() {
    let table = library::anywhere(c"ucx_perf_mem_type_allocators");
    let Some(table) = table.filter(|_| REGISTERED.swap(0, Ordering::Relaxed) > 0) else { return };
    for allocator in &ALLOCATORS {
        // SAFETY: as when they were put there.
        let place = unsafe { (table as *mut *const Allocator).add(allocator.memory_type as usize) };
        // SAFETY: as above.
        unsafe { place.write(std::ptr::null()) };
    }
}

/// What lies `offset` bytes behind `start`.
///
/// # Safety
///
/// There is a `T` there.
unsafe fn at<T: Copy>(start: *const u8, offset: usize) -> T {
    // SAFETY: by this function's contract.
    let place = unsafe { start.add(offset) };
    // SAFETY: as above.
    unsafe { place.cast::<T>().read_unaligned() }
}

fn guarded<R>(on_failure: R, work: impl FnOnce() -> Result<R, Failure>) -> R {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match result {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => {
            crate::log::error!("ucx_perftest: {failure}");
            on_failure
        }
        Err(_) => on_failure,
    }
}

fn driver() -> Result<&'static Driver, Failure> {
    Driver::get().map_err(|error| {
        crate::log::error!("ucx_perftest: {error}");
        Failure { function: "cuInit", code: Failure::MISSING }
    })
}

fn context(driver: &'static Driver) -> Result<Context, Failure> {
    driver.primary(DEVICE.load(Ordering::Relaxed))
}

/// Chooses the device: the user's, or by the number of the process in its group.
unsafe extern "C" fn init(perf: *const u8) -> Status {
    guarded(NO_DEVICE, || {
        let (driver, Some(host)) = (driver()?, HOST.get()) else { return Ok(NO_DEVICE) };
        let Layout { group, devices, .. } = host.layout;
        // SAFETY: UCX calls this with the structure of its release, here and below.
        let of: *mut c_void = unsafe { at(perf, group.0) };
        // SAFETY: as above.
        let functions: *const u8 = unsafe { at(perf, group.1) };
        // SAFETY: as above.
        let index: unsafe extern "C" fn(*mut c_void) -> c_uint =
            unsafe { at(functions, GROUP_INDEX) };
        // SAFETY: as above.
        let index = unsafe { index(of) };
        let place = devices.map(|both| if index == 0 { both.0 } else { both.1 });
        // SAFETY: as above.
        let chosen: c_int = place.map_or(-1, |place| unsafe { at(perf, place) });
        let count = driver.devices as c_int;
        let device = if chosen >= 0 { chosen } else { index as c_int % count.max(1) };
        if device >= count {
            crate::log::error!("ucx_perftest: there is no device {device} among {count}");
            return Ok(NO_DEVICE);
        }
        DEVICE.store(device, Ordering::Relaxed);
        let context = context(driver)?;
        // SAFETY: the context was retained, and is kept.
        unsafe { driver.calls.context_set(context) }?;
        Ok(OK)
    })
}

unsafe extern "C" fn alloc_device(
    perf: *const u8,
    length: usize,
    flags: c_uint,
    memory: *mut Allocated,
) -> Status {
    // SAFETY: UCX calls this as its release does.
    unsafe { alloc(perf, length, flags, memory, CUDA) }
}

unsafe extern "C" fn alloc_managed(
    perf: *const u8,
    length: usize,
    flags: c_uint,
    memory: *mut Allocated,
) -> Status {
    // SAFETY: UCX calls this as its release does.
    unsafe { alloc(perf, length, flags, memory, CUDA_MANAGED) }
}

/// Allocates, and registers with the memory domain.
///
/// # Safety
///
/// `perf` is the structure of UCX's release; `memory` has room for the answer.
unsafe fn alloc(
    perf: *const u8,
    length: usize,
    flags: c_uint,
    memory: *mut Allocated,
    memory_type: MemoryType,
) -> Status {
    /// The driver gives whole pages their own place: then whole units of what a domain
    /// registers, which are no larger than this, belong to nobody else.
    const PAGE: usize = 2 << 20;
    const UNIT: usize = 64 << 10;
    const GLOBAL: c_uint = 1;
    guarded(NO_MEMORY, || {
        let (driver, Some(host)) = (driver()?, HOST.get()) else { return Ok(NO_DEVICE) };
        let _entered = driver.enter(context(driver)?)?;
        let (mut address, size) = (0, length.max(1).next_multiple_of(PAGE));
        match memory_type {
            // SAFETY: the result is a place of ours.
            CUDA => unsafe { driver.calls.alloc(&raw mut address, size) }?,
            // SAFETY: as above.
            _ => unsafe { driver.calls.alloc_managed(&raw mut address, size, GLOBAL) }?,
        }
        // SAFETY: by this function's contract.
        let domain: *mut c_void = unsafe { at(perf, host.layout.domain) };
        let (mut handle, start) = (std::ptr::null_mut(), address as usize as *mut c_void);
        let all = length.max(1).next_multiple_of(UNIT);
        // SAFETY: the memory was allocated above, the domain is the program's own.
        let status = unsafe { (host.register)(domain, start, all, flags, &raw mut handle) };
        if status != OK {
            // SAFETY: allocated above, freed once.
            unsafe { driver.calls.free(address) }?;
            return Ok(status);
        }
        const METHOD: c_int = 0; // The program does not look at it for memory from here.
        let said =
            Allocated { address: start, length, method: METHOD, memory_type, domain, handle };
        // SAFETY: by this function's contract.
        unsafe { memory.write(said) };
        Ok(OK)
    })
}

unsafe extern "C" fn free(_perf: *const u8, memory: *mut Allocated) {
    guarded((), || {
        let (driver, Some(host)) = (driver()?, HOST.get()) else { return Ok(()) };
        // SAFETY: UCX gives back what it got, once.
        let Allocated { address, domain, handle, .. } = unsafe { memory.read() };
        let _entered = driver.enter(context(driver)?)?;
        // SAFETY: as above.
        let status = unsafe { (host.deregister)(domain, handle) };
        if status != OK {
            crate::log::error!("ucx_perftest: memory stays registered (UCX's status {status})");
        }
        // SAFETY: as above.
        unsafe { driver.calls.free(address as u64) }
    });
}

unsafe extern "C" fn copy(
    to: *mut c_void,
    _to_type: MemoryType,
    from: *const c_void,
    _from_type: MemoryType,
    count: usize,
) {
    guarded((), || {
        let driver = driver()?;
        let _entered = driver.enter(context(driver)?)?;
        // SAFETY: UCX vouches for both ranges.
        unsafe { driver.calls.copy(to as u64, from as u64, count) }?;
        // SAFETY: a context is current.
        unsafe { driver.calls.context_synchronize() }
    });
}

unsafe extern "C" fn set(to: *mut c_void, value: c_int, count: usize) -> *mut c_void {
    guarded((), || {
        let driver = driver()?;
        let _entered = driver.enter(context(driver)?)?;
        // SAFETY: UCX vouches for the range.
        unsafe { driver.calls.set_bytes(to as u64, value as u8, count) }?;
        // SAFETY: a context is current.
        unsafe { driver.calls.context_synchronize() }
    });
    to
}
