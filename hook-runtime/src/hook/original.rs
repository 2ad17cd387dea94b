//! Which function a replacement calls.
//!
//! The same symbol may exist more than once in a process: two copies of libcudart,
//! or a library that wraps the driver. A call that was redirected has to reach the
//! function that its own slot led to, never another copy. So each replacement is
//! compiled [`COPIES`] times. Each distinct original gets a copy of its own, and all
//! slots that led to that original lead to this copy now. No code is generated at
//! run time for it, so it works where executable memory cannot be had, and on every
//! processor. Should the copies ever run out, the slot is left alone and reported.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::reloc::image::Name;

/// How many different originals one symbol can have at the same time.
pub const COPIES: usize = 6;

/// The originals of one symbol, one place for each copy of the replacement.
#[derive(Debug, Default)]
pub struct Originals {
    places: [Place; COPIES],
}

#[derive(Debug, Default)]
struct Place {
    state: AtomicU8,
    /// The function's own address, which slots and entries are compared with.
    entry: AtomicUsize,
    /// What the replacement calls: the same, or a trampoline if the entry is patched.
    call: AtomicUsize,
}

/// What a place is used for.
mod state {
    pub(super) const FREE: u8 = 0;
    /// Somebody is changing it.
    pub(super) const BUSY: u8 = 1;
    /// Slots that led to the function lead to the replacement.
    pub(super) const SLOTS: u8 = 2;
    /// The function's entry leads to the replacement, or is about to.
    pub(super) const ENTRY: u8 = 3;
    /// It did, and a thread may still be on its way: what to call stays.
    pub(super) const RETIRED: u8 = 4;
}

impl Originals {
    /// No originals yet.
    pub const fn new() -> Self {
        Self { places: [const { Place::new() }; COPIES] }
    }

    /// The place of the function at `entry`, taken now for slots if it has none yet.
    pub fn claim(&self, entry: usize) -> Option<usize> {
        self.place_of(entry).or_else(|| {
            let place = self.take(state::FREE, |_| true)?;
            self.places[place].set(state::SLOTS, entry, entry);
            Some(place)
        })
    }

    /// The place of the function at `entry`: that of the patched entry, if it is patched.
    pub fn place_of(&self, entry: usize) -> Option<usize> {
        [state::ENTRY, state::SLOTS].into_iter().find_map(|state| {
            let holds = |place: &Place| place.is(state) && place.entry() == entry;
            self.places.iter().position(holds)
        })
    }

    /// Takes a place for the function at `entry`, which is about to be patched. It is
    /// never one that slots lead to: calls through those must not depend on what becomes
    /// of the patch.
    pub fn reserve(&self, entry: usize) -> Option<usize> {
        let before = self.take(state::RETIRED, |place| place.entry() == entry);
        before.or_else(|| self.take(state::FREE, |_| true))
    }

    /// The entry that `place` was reserved for is patched now, or as soon as the engine
    /// is told to: its replacement calls `trampoline`.
    pub fn detour(&self, place: usize, entry: usize, trampoline: usize) {
        self.places[place].set(state::ENTRY, entry, trampoline);
    }

    /// The entry that `place` was reserved for has not been patched after all. If it was
    /// before, a thread may still be on its way, and finds what to call.
    pub fn abandon(&self, place: usize) {
        let place = &self.places[place];
        match place.call.load(Ordering::Acquire) {
            0 => place.set(state::FREE, 0, 0),
            _ => place.state.store(state::RETIRED, Ordering::Release),
        }
    }

    /// The entry that `place` stands for is no longer patched.
    pub fn retire(&self, place: usize) {
        self.places[place].state.store(state::RETIRED, Ordering::Release);
    }

    /// Whether `place` stands for a patched entry.
    pub fn is_detoured(&self, place: usize) -> bool {
        self.places[place].is(state::ENTRY)
    }

    /// The function that `place` stands for.
    pub fn entry(&self, place: usize) -> Option<usize> {
        let entry = self.places[place].entry();
        (entry != 0).then_some(entry)
    }

    /// Frees the places of slots for which `gone` holds: their function has been unloaded.
    pub fn release(&self, gone: impl Fn(usize, usize) -> bool) {
        for (index, place) in self.places.iter().enumerate() {
            if place.is(state::SLOTS) && gone(index, place.entry()) {
                place.set(state::FREE, 0, 0);
            }
        }
    }

    /// Makes a place that is in this state, and for which `fits` holds, busy.
    fn take(&self, from: u8, fits: impl Fn(&Place) -> bool) -> Option<usize> {
        self.places.iter().position(|place| {
            let order = (Ordering::AcqRel, Ordering::Acquire);
            place.is(from)
                && fits(place)
                && place.state.compare_exchange(from, state::BUSY, order.0, order.1).is_ok()
        })
    }
}

impl Place {
    const fn new() -> Self {
        Self { state: AtomicU8::new(0), entry: AtomicUsize::new(0), call: AtomicUsize::new(0) }
    }

    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Acquire) == state
    }

    fn entry(&self) -> usize {
        self.entry.load(Ordering::Acquire)
    }

    fn set(&self, state: u8, entry: usize, call: usize) {
        self.entry.store(entry, Ordering::Release);
        self.call.store(call, Ordering::Release);
        self.state.store(state, Ordering::Release);
    }
}

/// The originals of a symbol whose type is `F`, a pointer to a function.
#[derive(Debug)]
pub struct Original<F> {
    /// The same without the type.
    pub untyped: Originals,
    signature: PhantomData<F>,
}

impl<F: Copy> Original<F> {
    const IS_POINTER: () = assert!(size_of::<F>() == size_of::<usize>());

    /// # Safety
    ///
    /// `F` is a pointer to a function, and each address that is ever claimed in
    /// these originals is that of a function with this signature.
    pub const unsafe fn new() -> Self {
        let () = Self::IS_POINTER;
        Self { untyped: Originals::new(), signature: PhantomData }
    }

    /// The original of the replacement's copy number `place`.
    pub fn get(&self, place: usize) -> Option<F> {
        let address = self.untyped.places[place].call.load(Ordering::Acquire);
        // SAFETY: `F` is a pointer to a function, as `new` demands, and the address
        // is that of such a function; zero, which is not, is left out.
        (address != 0).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&address) })
    }
}

/// The address of a replacement's copy.
#[derive(Debug, Clone, Copy)]
pub struct Code(*const ());

// SAFETY: the address of a function is the same for every thread, and never read through.
unsafe impl Sync for Code {}
// SAFETY: as above.
unsafe impl Send for Code {}

impl Code {
    /// The address of a function, given as a pointer to it.
    pub const fn new(function: *const ()) -> Self {
        Self(function)
    }

    /// The address as a number.
    pub fn address(self) -> usize {
        self.0 as usize
    }
}

/// A symbol that is to be redirected.
#[derive(Debug)]
pub struct Target {
    /// The name under which programs refer to it.
    pub symbol: Name,
    /// The copies of its replacement.
    pub replacements: [Code; COPIES],
    /// What each of them calls.
    pub originals: &'static Originals,
}

impl Target {
    /// The name, for messages.
    pub fn name(&self) -> &'static str {
        self.symbol.text().to_str().unwrap_or("?")
    }

    /// The number of the copy that starts at `address`.
    pub fn copy_at(&self, address: usize) -> Option<usize> {
        self.replacements.iter().position(|code| code.address() == address)
    }
}

/// The [`COPIES`] addresses of a replacement, written once.
macro_rules! copies {
    ($replacement:path) => {{
        use $crate::hook::original::Code;
        use $replacement as function;
        [
            Code::new(function::<0> as *const ()),
            Code::new(function::<1> as *const ()),
            Code::new(function::<2> as *const ()),
            Code::new(function::<3> as *const ()),
            Code::new(function::<4> as *const ()),
            Code::new(function::<5> as *const ()),
        ]
    }};
}
pub(crate) use copies;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_original_has_its_own_place_until_it_is_gone() {
        let originals = Originals::new();
        for entry in 1..=COPIES {
            assert_eq!(originals.claim(entry), Some(entry - 1));
            assert_eq!(originals.claim(entry), Some(entry - 1), "the same place again");
        }
        assert_eq!(originals.claim(99), None, "no place is left");
        originals.release(|_, entry| entry == 3);
        assert_eq!(originals.claim(99), Some(2));
        assert_eq!(originals.place_of(3), None);
    }

    #[test]
    fn a_patched_entry_has_a_place_that_no_slot_uses() {
        let originals = Originals::new();
        let slots = originals.claim(0x1000).unwrap();
        let place = originals.reserve(0x1000).unwrap();
        assert_ne!(place, slots);
        assert_eq!(originals.place_of(0x1000), Some(slots), "not patched yet");
        originals.detour(place, 0x1000, 0x2000);
        assert!(originals.is_detoured(place) && !originals.is_detoured(slots));
        assert_eq!(originals.claim(0x1000), Some(place), "slots can stay as they are");
        originals.release(|_, _| true);
        assert_eq!(originals.place_of(0x1000), Some(place), "trampolines live for ever");
        originals.retire(place);
        assert_eq!(originals.place_of(0x1000), None);
        assert_eq!(originals.places[place].call.load(Ordering::Relaxed), 0x2000);
        assert_eq!(originals.reserve(0x1000), Some(place), "the same one, patched again");
        originals.abandon(place);
        assert_eq!(originals.places[place].call.load(Ordering::Relaxed), 0x2000, "as it was");
        assert_eq!(originals.claim(0x3000), Some(0));
    }
}
