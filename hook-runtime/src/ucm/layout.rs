//! The structures that libucm and its modules share, as they are in UCX 1.18 to 1.22.
//!
//! UCX installs no header for them. The sizes and places are checked when this is compiled;
//! that they are UCX's is checked by running beside each of these releases.

use std::ffi::c_int;
use std::mem::offset_of;

use super::Argument;
use crate::settings::Modes;

/// Kinds of events, as bits.
pub mod bits {
    use std::ffi::c_int;

    /// Memory of some type has appeared.
    pub const MEM_TYPE_ALLOC: c_int = 1 << 20;
    /// Memory of some type vanishes.
    pub const MEM_TYPE_FREE: c_int = 1 << 21;
}

/// What a function of UCX returns.
pub mod status {
    use std::ffi::c_int;

    /// Done.
    pub const OK: c_int = 0;
    /// There is no such thing here.
    pub const UNSUPPORTED: c_int = -22;
}

/// A link of a list that goes round; the head is one as well.
#[derive(Debug)]
#[repr(C)]
pub struct Link {
    previous: *mut Link,
    next: *mut Link,
}

const _: () = assert!(size_of::<Link>() == 16 && offset_of!(Link, next) == 8);

impl Link {
    /// A link that is in no list.
    pub const fn unlinked() -> Self {
        Self { previous: std::ptr::null_mut(), next: std::ptr::null_mut() }
    }
}

/// Adds `item` at the end of the list.
///
/// # Safety
///
/// `head` is the head of a list all of whose links are valid, `item` is valid for as long as
/// it is in the list and is in none now, and nobody else changes the list meanwhile.
pub unsafe fn append(head: *mut Link, item: *mut Link) {
    // SAFETY: by this function's contract.
    let last = unsafe { (*head).previous };
    // SAFETY: by this function's contract.
    unsafe { item.write(Link { previous: last, next: head }) };
    // Whoever walks the list meanwhile goes forward, and meets a whole item or none.
    // SAFETY: the last link is one of the list's.
    unsafe { (*last).next = item };
    // SAFETY: by this function's contract.
    unsafe { (*head).previous = item };
}

/// Takes `item` out of its list. It keeps pointing there, for whoever is looking at it.
///
/// # Safety
///
/// `item` is in a list all of whose links are valid, and nobody else changes it meanwhile.
pub unsafe fn remove(item: *mut Link) {
    // SAFETY: by this function's contract.
    let previous = unsafe { (*item).previous };
    // SAFETY: by this function's contract.
    let next = unsafe { (*item).next };
    // SAFETY: its neighbours are links of the list.
    unsafe { (*previous).next = next };
    // SAFETY: as above.
    unsafe { (*next).previous = previous };
}

/// Someone who makes events happen.
#[derive(Debug)]
#[repr(C)]
pub struct Installer {
    /// Makes events of these kinds happen from now on.
    pub install: Option<extern "C" fn(c_int) -> c_int>,
    /// Tells a handler of what is allocated already.
    pub get_existing_alloc: Option<unsafe extern "C" fn(*mut EventHandler)>,
    /// The place in libucm's list.
    pub list: Link,
}

const _: () = assert!(size_of::<Installer>() == 32);
const _: () = assert!(offset_of!(Installer, get_existing_alloc) == 8);
const _: () = assert!(offset_of!(Installer, list) == 16);

/// The function of a handler.
pub type Callback = unsafe extern "C" fn(c_int, *mut MemTypeEvent, Argument);

/// Someone who is told of events.
#[derive(Debug)]
#[repr(C)]
pub struct EventHandler {
    list: Link,
    /// The kinds of events, as bits.
    pub events: c_int,
    priority: c_int,
    /// What is called.
    pub callback: Option<Callback>,
    /// The last argument of the call.
    pub argument: Argument,
}

const _: () = assert!(size_of::<EventHandler>() == 40);
const _: () = assert!(offset_of!(EventHandler, events) == 16);
const _: () = assert!(offset_of!(EventHandler, priority) == 20);
const _: () = assert!(offset_of!(EventHandler, callback) == 24);
const _: () = assert!(offset_of!(EventHandler, argument) == 32);

/// An event about memory of some type. It is one of the forms of a union, as large as that.
#[derive(Debug)]
#[repr(C)]
pub struct MemTypeEvent {
    address: usize,
    size: usize,
    memory_type: c_int,
    /// Since 1.22; before, nobody looks here.
    system_device: u8,
    /// Since 1.22.
    flags: u8,
    rest_of_union: [u8; 26],
}

const _: () = assert!(size_of::<MemTypeEvent>() == 48);
const _: () = assert!(offset_of!(MemTypeEvent, size) == 8);
const _: () = assert!(offset_of!(MemTypeEvent, memory_type) == 16);
const _: () = assert!(offset_of!(MemTypeEvent, system_device) == 20);
const _: () = assert!(offset_of!(MemTypeEvent, flags) == 21);

impl MemTypeEvent {
    /// An event. UCX's table forgets nothing for a size of 0, so that one byte stands for a
    /// size that is not known.
    pub fn new(address: usize, size: usize, memory_type: c_int) -> Self {
        const DEVICE_IS_UNKNOWN: u8 = 0xff;
        const CAN_BE_REGISTERED: u8 = 1;
        Self {
            address,
            size: size.max(1),
            memory_type,
            system_device: DEVICE_IS_UNKNOWN,
            flags: CAN_BE_REGISTERED,
            rest_of_union: [0; 26],
        }
    }
}

/// UCX's options for memory events. Since 1.21 there is one more at the end.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Config {
    /// How much is logged.
    pub log_level: c_int,
    /// `UCX_MEM_EVENTS`.
    pub enable_events: c_int,
    mmap_hook_mode: c_int,
    malloc_hooks: c_int,
    malloc_reloc: c_int,
    cuda_hook_modes: u64,
    dynamic_mmap_threshold: c_int,
    allocation_alignment: usize,
    dlopen_rpath: c_int,
    unload_mode: c_int,
    /// `UCX_MEM_BISTRO_FORCE_FAR_JUMP`.
    pub bistro_force_far_jump: c_int,
}

const _: () = assert!(size_of::<Config>() == 64);
const _: () = assert!(offset_of!(Config, enable_events) == 4);
const _: () = assert!(offset_of!(Config, mmap_hook_mode) == 8);
const _: () = assert!(offset_of!(Config, malloc_hooks) == 12);
const _: () = assert!(offset_of!(Config, malloc_reloc) == 16);
const _: () = assert!(offset_of!(Config, cuda_hook_modes) == 24);
const _: () = assert!(offset_of!(Config, dynamic_mmap_threshold) == 32);
const _: () = assert!(offset_of!(Config, allocation_alignment) == 40);
const _: () = assert!(offset_of!(Config, dlopen_rpath) == 48);
const _: () = assert!(offset_of!(Config, unload_mode) == 52);
const _: () = assert!(offset_of!(Config, bistro_force_far_jump) == 56);

impl Config {
    /// `UCX_MEM_CUDA_HOOK_MODE`: bit 0 means none.
    pub fn modes(&self) -> Modes {
        let has = |bit: u32| self.cuda_hook_modes >> bit & 1 == 1;
        Modes { reloc: has(1), bistro: has(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(head: *mut Link) -> Vec<*mut Link> {
        // SAFETY: the test's own links, all alive.
        let next = |link: &*mut Link| Some(unsafe { (**link).next });
        std::iter::successors(next(&head), next).take_while(|&link| link != head).collect()
    }

    fn backward(head: *mut Link) -> Vec<*mut Link> {
        // SAFETY: the test's own links, all alive.
        let previous = |link: &*mut Link| Some(unsafe { (**link).previous });
        std::iter::successors(previous(&head), previous).take_while(|&link| link != head).collect()
    }

    #[test]
    fn items_are_appended_and_removed() {
        let mut links = [const { Link::unlinked() }; 4];
        let [head, a, b, c] = links.each_mut().map(|link| &raw mut *link);
        // SAFETY: an empty list leads to itself.
        unsafe { head.write(Link { previous: head, next: head }) };
        for item in [a, b, c] {
            // SAFETY: the test's own links, all alive.
            unsafe { append(head, item) };
        }
        assert_eq!(forward(head), [a, b, c]);
        assert_eq!(backward(head), [c, b, a]);
        // SAFETY: it is in the list.
        unsafe { remove(b) };
        assert_eq!(forward(head), [a, c]);
        assert_eq!(backward(head), [c, a]);
        for item in [a, c] {
            // SAFETY: it is in the list.
            unsafe { remove(item) };
        }
        assert!(forward(head).is_empty() && backward(head).is_empty());
    }

    #[test]
    fn what_is_not_known_has_one_byte() {
        assert_eq!(MemTypeEvent::new(4096, 0, 9).size, 1);
        assert_eq!(MemTypeEvent::new(4096, 7, 9).size, 7);
    }
}
