//! What hooks add to a call: `cuMemFree(0)`, and pairs of `cuMemAllocAsync` and
//! `cuMemFreeAsync`, bare, hooked, and with one subscriber, in one process.
//!
//! `LD_LIBRARY_PATH=MOCK cargo run --release -p hook-runtime --example call_bench`
//!
//! Any `libcuda.so.1` will do that works without a context: the mock driver, or one whose
//! functions do nothing, which shows the hooks' own time best.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::time::{Duration, Instant};

use hook_runtime::settings::Modes;
use hook_runtime::{Options, event, install};

type Init = unsafe extern "C" fn(c_uint) -> c_int;
type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
type SetCurrent = unsafe extern "C" fn(*mut c_void) -> c_int;
type Free = unsafe extern "C" fn(u64) -> c_int;
type AllocAsync = unsafe extern "C" fn(*mut u64, usize, *mut c_void) -> c_int;
type FreeAsync = unsafe extern "C" fn(u64, *mut c_void) -> c_int;

fn main() {
    // SAFETY: the loader's own search; a driver's constructors do no harm.
    let driver = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    if driver.is_null() {
        println!("waived: call_bench: there is no `libcuda.so.1`");
        return;
    }
    let find = |name: &CStr| {
        // SAFETY: the handle is open.
        unsafe { libc::dlsym(driver, name.as_ptr()) }
    };
    start(&find);
    let [free, alloc_async, free_async] =
        [c"cuMemFree_v2", c"cuMemAllocAsync", c"cuMemFreeAsync"].map(find);
    let measure = || {
        let null = (!free.is_null()).then(|| {
            // SAFETY: the driver's function of this name, which has this type.
            let free = unsafe { std::mem::transmute::<*mut c_void, Free>(free) };
            // SAFETY: freeing nothing is allowed.
            nanoseconds(|| unsafe { free(0) })
        });
        let pair = (!alloc_async.is_null() && !free_async.is_null()).then(|| {
            // SAFETY: the driver's function of this name, which has this type.
            let alloc = unsafe { std::mem::transmute::<*mut c_void, AllocAsync>(alloc_async) };
            // SAFETY: as above.
            let free = unsafe { std::mem::transmute::<*mut c_void, FreeAsync>(free_async) };
            let mut address = 0;
            nanoseconds(|| {
                // SAFETY: the result is a place of ours; the stream is the default one.
                unsafe { alloc(&raw mut address, 4096, std::ptr::null_mut()) };
                // SAFETY: allocated above, on the same stream.
                unsafe { free(address, std::ptr::null_mut()) }
            })
        });
        [null, pair].map(Option::unwrap_or_default)
    };
    let bare = measure();
    install(&Options { modes: Modes::BOTH, trace: None }).expect("hooks can be installed");
    let hooked = measure();
    event::subscribe(0, |event| {
        std::hint::black_box(event.address);
    });
    let told = measure();
    for (index, what) in ["cuMemFree(0)", "cuMemAllocAsync and cuMemFreeAsync"].iter().enumerate() {
        let [bare, hooked, told] = [bare[index], hooked[index], told[index]];
        println!(
            "{what}: bare {bare:.1} ns, hooked +{:.1} ns, with a subscriber +{:.1} ns",
            hooked - bare,
            told - bare
        );
    }
}

/// Makes the primary context current, as far as the driver knows of such things.
fn start(find: &dyn Fn(&CStr) -> *mut c_void) {
    let functions = [c"cuInit", c"cuDevicePrimaryCtxRetain", c"cuCtxSetCurrent"].map(find);
    if functions.iter().any(|function| function.is_null()) {
        return;
    }
    let [init, retain, set_current] = functions;
    // SAFETY: the driver's function of this name, which has this type.
    let init = unsafe { std::mem::transmute::<*mut c_void, Init>(init) };
    // SAFETY: as above.
    let retain = unsafe { std::mem::transmute::<*mut c_void, Retain>(retain) };
    // SAFETY: as above.
    let set_current = unsafe { std::mem::transmute::<*mut c_void, SetCurrent>(set_current) };
    let mut context = std::ptr::null_mut();
    // SAFETY: the flags have to be 0.
    assert_eq!(unsafe { init(0) }, 0, "the driver starts");
    // SAFETY: the result is a place of ours.
    assert_eq!(unsafe { retain(&raw mut context, 0) }, 0, "there is a device");
    // SAFETY: a context that is kept.
    assert_eq!(unsafe { set_current(context) }, 0);
}

/// The time of one call: the best of many rounds, since others use this machine as well.
fn nanoseconds(mut call: impl FnMut() -> c_int) -> f64 {
    const CALLS: u32 = 2000;
    let rounds = (0..400).map(|_| {
        let begun = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(call());
        }
        begun.elapsed()
    });
    rounds.min().unwrap_or(Duration::ZERO).as_secs_f64() * 1e9 / f64::from(CALLS)
}
