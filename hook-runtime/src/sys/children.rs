//! Memory that children are not to have.

use std::ffi::c_void;

/// Keeps the pages of `address..address + size` out of children after a fork. Where the
/// kernel refuses, they inherit them, which it says with an error that nobody can act on.
pub fn keep_from(address: usize, size: usize) {
    let (address, advice) = (address as *mut c_void, rustix::mm::Advice::LinuxDontFork);
    // SAFETY: the advice changes nothing in this process.
    if let Err(error) = unsafe { rustix::mm::madvise(address, size, advice) } {
        crate::log::debug!("a mapping will be inherited by children: {error}");
    }
}
