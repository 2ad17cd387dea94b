//! Finding the slots of wanted symbols in one object.
//!
//! A symbol can have several slots in one object: one that calls go through
//! (`JUMP_SLOT`), one that its address is read from (`GLOB_DAT`), and one for every
//! initialised pointer in data (`R_X86_64_64`). All of them are found. Other types
//! are not pointers to functions (`COPY`, thread-local offsets) and never touched,
//! whatever their symbol is called.

use std::ffi::{CStr, CString};

use super::image::{Image, Relocation, Symbol, Tables};
use crate::hook::original::Target;

/// What a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotKind {
    /// Calls go through it; it may be bound at the first call.
    Call,
    /// The function's address is read from it.
    Address,
    /// A pointer in data that the program may have changed since.
    Pointer,
}

impl SlotKind {
    #[cfg(target_arch = "x86_64")]
    const TYPES: [(u32, Self); 3] = [(7, Self::Call), (6, Self::Address), (1, Self::Pointer)];
    #[cfg(target_arch = "aarch64")]
    const TYPES: [(u32, Self); 3] =
        [(1026, Self::Call), (1025, Self::Address), (257, Self::Pointer)];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    const TYPES: [(u32, Self); 0] = [];

    fn of(relocation: Relocation) -> Option<Self> {
        let same = |&(number, _): &(u32, Self)| number == relocation.kind();
        Self::TYPES.into_iter().find(same).map(|(_, kind)| kind)
    }
}

/// One slot of a wanted symbol.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Where it is.
    pub address: usize,
    /// What it is for.
    pub kind: SlotKind,
    /// The symbol, by its number in the list of targets.
    pub target: usize,
    /// The version that the object asks for.
    pub version: Option<CString>,
}

/// The wanted symbols, sorted by name.
#[derive(Debug)]
pub struct Wanted {
    names: Vec<(&'static CStr, usize)>,
}

impl Wanted {
    /// All of `targets`, whose numbers are their places.
    pub fn new(targets: &[&'static Target]) -> Self {
        let mut names: Vec<_> =
            targets.iter().enumerate().map(|(index, target)| (target.symbol, index)).collect();
        names.sort_unstable();
        Self { names }
    }

    fn number(&self, name: &CStr) -> Option<usize> {
        let found = self.names.binary_search_by(|(candidate, _)| (*candidate).cmp(name)).ok()?;
        Some(self.names[found].1)
    }
}

/// All slots of `wanted` symbols in `image`.
pub fn find(image: &Image<'_>, wanted: &Wanted) -> Vec<Slot> {
    let Some(tables) = image.tables() else { return Vec::new() };
    let relocations = image.call_relocations().iter().chain(image.data_relocations());
    relocations.filter_map(|&relocation| slot(image, &tables, wanted, relocation)).collect()
}

fn slot(
    image: &Image<'_>,
    tables: &Tables<'_>,
    wanted: &Wanted,
    relocation: Relocation,
) -> Option<Slot> {
    let kind = SlotKind::of(relocation)?;
    let index = relocation.symbol();
    // With an addend the pointer would not be to the function's start.
    if index == 0 || relocation.addend != 0 && kind == SlotKind::Pointer {
        return None;
    }
    let symbol: Symbol = tables.symbol(index)?;
    if !tables.may_be_wanted(&symbol) || !symbol.may_be_function() {
        return None;
    }
    let target = wanted.number(tables.name(&symbol)?)?;
    let address = image.base().wrapping_add(usize::try_from(relocation.offset).ok()?);
    let version = tables.needed_version(index).map(CStr::to_owned);
    image.contains(address).then_some(Slot { address, kind, target, version })
}
