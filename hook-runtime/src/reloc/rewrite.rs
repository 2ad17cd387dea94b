//! What a slot holds now, and swapping it.
//!
//! The original of a slot is what the slot led to, not what a lookup from here would
//! find. Only a slot that is bound at its first call does not tell yet; then the
//! loader is asked on behalf of the object that owns the slot.
//!
//! One window stays open. While another thread loads an object, its slots are bound before
//! the loader takes the permission to write from their page; in between, the page is seen
//! as writable, and the store would fault if the loader came first. The loader has no lock
//! that could be held against it. To leave out such pages is no way, since other tools
//! leave them writable for good. The window is some microseconds of a `dlopen` in another
//! thread at the moment of an installation, or of a load that is not through a hooked slot:
//! one through such a slot is followed by a scan of its own, when the loader is done.

use super::image::Image;
use super::slots::{Slot, SlotKind};
use crate::hook::original::Target;
use crate::sys::pages::{SlotWriter, StoreError};

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// One of our replacements, by the number of its copy.
    Redirected(usize),
    /// The function at this address.
    Bound(usize),
    /// The loader's stub, until the first call goes through it.
    Late,
    /// Nothing: the symbol is weak, and nobody defines it.
    Empty,
    /// What was in the file: the object is still being loaded.
    Loading,
    /// A pointer that the program has set to something else.
    Changed,
}

/// Why a slot was not redirected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SlotFailure {
    /// More different functions bear this name than there are copies of the replacement.
    #[error("too many different functions of this name are loaded")]
    NoCopyLeft,
    /// The loader could not say what the slot will be bound to.
    #[error("the slot is not bound yet, and its function cannot be found")]
    NotFound,
    /// The slot could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What `slot` of `image` holds, where `images` are all loaded objects.
pub fn state(slot: &Slot, target: &Target, image: &Image<'_>, images: &[Image<'_>]) -> State {
    let value = image.slot_value(slot.address).unwrap_or(0);
    if value == 0 {
        return State::Empty;
    }
    if let Some(copy) = target.copy_at(value) {
        return State::Redirected(copy);
    }
    if image.base() != 0 && value < image.span() {
        return State::Loading;
    }
    let lends = |image: &Image<'_>| {
        let tables = image.contains(value).then(|| image.tables()).flatten();
        tables.is_some_and(|tables| tables.lends(&target.symbol, value))
    };
    match slot.kind {
        SlotKind::Call | SlotKind::Address if !image.contains(value) => State::Bound(value),
        SlotKind::Call | SlotKind::Address if lends(image) => State::Bound(value),
        SlotKind::Call | SlotKind::Address => State::Late,
        SlotKind::Pointer if images.iter().any(lends) => State::Bound(value),
        SlotKind::Pointer => State::Changed,
    }
}

/// The function that a late slot of `image` will be bound to, given what the loader
/// `found`. A program at a fixed address lends its own stub to a function whose address
/// it takes; the stub leads back to the slot, so it cannot be the slot's original.
pub fn late_original(
    target: &Target,
    image: &Image<'_>,
    images: &[Image<'_>],
    found: Option<usize>,
) -> Result<usize, SlotFailure> {
    let defined = |image: &Image<'_>| -> Vec<usize> {
        let tables = image.tables();
        tables.map(|tables| tables.definitions(&target.symbol).collect()).unwrap_or_default()
    };
    match found {
        Some(address) if !image.contains(address) => Ok(address),
        Some(address) if defined(image).contains(&address) => Ok(address),
        Some(_) => {
            let others = images.iter().filter(|other| other.base() != image.base());
            others.flat_map(defined).next().ok_or(SlotFailure::NotFound)
        }
        None => Err(SlotFailure::NotFound),
    }
}

/// Redirects `slot`, which leads to `original`. Nothing is left to do if the entry
/// of `original` is patched: whoever calls it is seen there.
///
/// # Safety
///
/// The slot belongs to an object that stays loaded as long as `writer`.
pub unsafe fn redirect(
    slot: &Slot,
    target: &Target,
    original: usize,
    writer: &mut SlotWriter<'_>,
) -> Result<usize, SlotFailure> {
    let place = target.originals.claim(original).ok_or(SlotFailure::NoCopyLeft)?;
    if !target.originals.is_detoured(place) {
        // SAFETY: by this function's contract.
        unsafe { writer.store(slot.address, target.replacements[place].address()) }?;
    }
    Ok(place)
}

/// Gives `slot`, which leads to our copy number `place`, its original back.
///
/// # Safety
///
/// The slot belongs to an object that stays loaded as long as `writer`.
pub unsafe fn restore(
    slot: &Slot,
    target: &Target,
    place: usize,
    writer: &mut SlotWriter<'_>,
) -> Result<(), SlotFailure> {
    let original = target.originals.entry(place).ok_or(SlotFailure::NotFound)?;
    // SAFETY: by this function's contract.
    unsafe { writer.store(slot.address, original) }.map_err(Into::into)
}
