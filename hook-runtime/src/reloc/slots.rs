//! Finding the slots of wanted symbols in one object.
//!
//! A symbol can have several slots in one object: one that calls go through
//! (`JUMP_SLOT`), one that its address is read from (`GLOB_DAT`), and one for every
//! initialised pointer in data (`R_X86_64_64`). All of them are found. Other types
//! are not pointers to functions (`COPY`, thread-local offsets) and never touched,
//! whatever their symbol is called.

use std::ffi::{CStr, CString};

use super::image::{Image, Name, Relocation, Symbol, Tables};
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

/// The wanted symbols.
#[derive(Debug)]
pub struct Wanted {
    /// Sorted by name, with their numbers.
    names: Vec<(Name, usize)>,
    /// The letters that they begin with.
    beginnings: Vec<[u8; 2]>,
}

impl Wanted {
    /// All of `targets`, whose numbers are their places.
    pub fn new(targets: &[&'static Target]) -> Self {
        let mut names: Vec<_> =
            targets.iter().enumerate().map(|(index, target)| (target.symbol, index)).collect();
        names.sort_unstable_by_key(|(name, _)| name.text());
        let beginning = |(name, _): &(Name, usize)| name.text().to_bytes().first_chunk().copied();
        let mut beginnings: Vec<_> = names.iter().filter_map(beginning).collect();
        beginnings.dedup();
        Self { names, beginnings }
    }

    fn number(&self, name: &CStr) -> Option<usize> {
        let found = self.names.binary_search_by(|(known, _)| known.text().cmp(name)).ok()?;
        Some(self.names[found].1)
    }

    /// The wanted symbols that an object takes from others or has itself: their indices
    /// there, in ascending order, and their numbers. Most objects have none, and are
    /// spared the walk through their relocations.
    fn symbols_of(&self, tables: &Tables<'_>) -> Vec<(u32, usize)> {
        let may_be = |symbol: &Symbol| {
            self.beginnings.iter().any(|letters| tables.begins_with(symbol, *letters))
        };
        let taken = tables
            .unlisted()
            .filter(|(_, symbol)| may_be(symbol))
            .filter_map(|(index, symbol)| Some((index, self.number(tables.name(symbol)?)?)));
        let has = |(name, number): &(Name, usize)| {
            let number = *number;
            tables.listed(name).map(move |index| (index, number)).collect::<Vec<_>>()
        };
        let mut found: Vec<_> = taken.chain(self.names.iter().flat_map(has)).collect();
        found.retain(|(index, _)| tables.symbol(*index).is_some_and(Symbol::may_be_function));
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// All slots of `wanted` symbols in `image`.
pub fn find(image: &Image<'_>, wanted: &Wanted) -> Vec<Slot> {
    let Some(tables) = image.tables() else { return Vec::new() };
    let symbols = wanted.symbols_of(&tables);
    let (Some(&(first, _)), Some(&(last, _))) = (symbols.first(), symbols.last()) else {
        return Vec::new();
    };
    let relocations = image.call_relocations().iter().chain(image.data_relocations());
    relocations
        .filter(|relocation| (first..=last).contains(&relocation.symbol()))
        .filter_map(|&relocation| {
            let place = symbols.binary_search_by_key(&relocation.symbol(), |found| found.0).ok()?;
            slot(image, &tables, relocation, symbols[place].1)
        })
        .collect()
}

/// What a relocation of a wanted symbol fills.
fn slot(
    image: &Image<'_>,
    tables: &Tables<'_>,
    relocation: Relocation,
    target: usize,
) -> Option<Slot> {
    let kind = SlotKind::of(relocation)?;
    // With an addend the pointer would not be to the function's start.
    if relocation.addend != 0 && kind == SlotKind::Pointer {
        return None;
    }
    let address = image.base().wrapping_add(usize::try_from(relocation.offset).ok()?);
    let version = tables.needed_version(relocation.symbol()).map(CStr::to_owned);
    image.contains(address).then_some(Slot { address, kind, target, version })
}
