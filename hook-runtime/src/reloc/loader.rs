//! Noticing that the program loads something.
//!
//! `dlopen` is redirected like any other symbol. It differs in one way: the real one looks
//! at where it was called from, and searches the calling object's `RUNPATH`, `RPATH` and
//! `$ORIGIN`. Called from here, it would search ours. So the replacement is a stub that
//! first of all picks up the caller's address; [`search_path`](super::search_path) then
//! finds the library as it would have been found from there, and the real `dlopen` is given
//! the path. In all cases where the caller makes no difference, which is nearly always, it
//! is given the caller's own arguments.
//!
//! Once it is back, what was loaded is hooked. No lock of ours is held meanwhile, so that
//! constructors may load further objects, and other threads load others at the same time.
//! What has been unloaded needs no notice: the next scan sees it from the loader's counts.
//! `dlmopen` is left alone; it loads into namespaces that scans do not see.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::image::Name;
use super::search_path;
use crate::hook::install;
use crate::hook::original::{Original, Target, copies};

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

// SAFETY: the type is that of the function.
static DLOPEN: Original<Open> = unsafe { Original::new() };

/// The target that stands for `dlopen`.
pub(super) fn target() -> &'static Target {
    static TARGET: Target = Target {
        symbol: Name::new(c"dlopen"),
        replacements: copies!(dlopen),
        originals: &DLOPEN.untyped,
    };
    &TARGET
}

/// Called instead of `dlopen`: passes the caller's address on as a third argument.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn dlopen<const COPY: usize>(_name: *const c_char, _flags: c_int) -> *mut c_void {
    std::arch::naked_asm!("endbr64", "mov rdx, [rsp]", "jmp {open}", open = sym open::<COPY>)
}

/// Called instead of `dlopen`: passes the caller's address on as a third argument.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn dlopen<const COPY: usize>(_name: *const c_char, _flags: c_int) -> *mut c_void {
    std::arch::naked_asm!("hint #34", "mov x2, x30", "b {open}", open = sym open::<COPY>)
}

/// Called instead of `dlopen` where the caller's address cannot be had: the caller's search
/// path is then not respected.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe extern "C" fn dlopen<const COPY: usize>(name: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: the user's own arguments; no object holds address zero.
    unsafe { open::<COPY>(name, flags, 0) }
}

/// # Safety
///
/// As for `dlopen`; `caller` is the address that the call returns to.
unsafe extern "C" fn open<const COPY: usize>(
    name: *const c_char,
    flags: c_int,
    caller: usize,
) -> *mut c_void {
    let Some(original) = DLOPEN.get(COPY) else { return std::ptr::null_mut() };
    // SAFETY: a name that is not null ends in NUL, by this function's contract.
    let plain = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    let find = AssertUnwindSafe(|| search_path::find(plain?, caller));
    let found = catch_unwind(find).ok().flatten();
    let path = found.as_deref().map_or(name, CStr::as_ptr);
    // SAFETY: the user's own arguments, or the path of the library that they name.
    let handle = unsafe { original(path, flags) };
    // With `RTLD_NOLOAD` nothing new can have been loaded.
    if !handle.is_null() && flags & libc::RTLD_NOLOAD == 0 {
        let _ = catch_unwind(install::after_loading);
    }
    handle
}
