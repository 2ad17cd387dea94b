//! A safe view of one loaded object: its segments, dynamic section, symbols.
//!
//! Every read is checked against the object's own readable segments, so that a
//! damaged or unusual object yields "nothing" instead of a fault. What the entries
//! mean for hooking is left to [`slots`](super::slots).

use std::ffi::CStr;
use std::ops::Range;

mod format;
mod hash;

use format::DynamicEntry;
pub use format::{Plain, Relocation, Symbol, tag};
pub use hash::Name;
use hash::SymbolHash;

use crate::sys::loader::{LoadedObject, segment};

/// One loaded object.
#[derive(Debug, Clone, Copy)]
pub struct Image<'object> {
    object: LoadedObject<'object>,
    dynamic: &'object [DynamicEntry],
}

impl<'object> Image<'object> {
    /// The view of `object`; nothing if it has no dynamic section.
    pub fn new(object: LoadedObject<'object>) -> Option<Self> {
        let header = object.headers().iter().find(|header| header.p_type == segment::DYNAMIC)?;
        let mut image = Self { object, dynamic: &[] };
        let start = object.base().wrapping_add(usize::try_from(header.p_vaddr).ok()?);
        let count = usize::try_from(header.p_memsz).ok()? / size_of::<DynamicEntry>();
        let entries = image.slice::<DynamicEntry>(start, count)?;
        let end = entries.iter().position(|entry| entry.tag == tag::NULL).unwrap_or(count);
        image.dynamic = &entries[..end];
        Some(image)
    }

    /// The difference between the addresses in the file and those in memory.
    pub fn base(&self) -> usize {
        self.object.base()
    }

    /// The path that the object was loaded from; empty for the program itself.
    pub fn path(&self) -> &'object CStr {
        self.object.name()
    }

    /// Where its program headers are: no two loaded objects have this in common.
    pub fn headers_address(&self) -> usize {
        self.object.headers().as_ptr() as usize
    }

    /// The name that the object gives itself.
    pub fn soname(&self) -> Option<&'object CStr> {
        self.string(self.entry(tag::SONAME)?)
    }

    /// The first entry of the dynamic section with this tag.
    pub fn entry(&self, wanted: u64) -> Option<u64> {
        self.dynamic.iter().find(|entry| entry.tag == wanted).map(|entry| entry.value)
    }

    /// Whether `address` lies in one of the object's segments.
    pub fn contains(&self, address: usize) -> bool {
        self.segments(0).any(|range| range.contains(&address))
    }

    /// Whether `address` lies in code of the object.
    pub fn contains_code(&self, address: usize) -> bool {
        self.segments(segment::EXECUTABLE).any(|range| range.contains(&address))
    }

    /// The size of the address range that the object takes.
    pub fn span(&self) -> usize {
        self.segments(0).map(|range| range.end - self.base()).max().unwrap_or(0)
    }

    fn segments(&self, flags: u32) -> impl Iterator<Item = Range<usize>> + use<'object> {
        let base = self.base();
        let wanted = move |header: &&_| matches_segment(header, flags);
        self.object.headers().iter().filter(wanted).map(move |header| {
            let start = base.wrapping_add(header.p_vaddr as usize);
            start..start.saturating_add(header.p_memsz as usize)
        })
    }

    /// `count` values of type `T` at `address`, if all of them lie in one readable segment.
    fn slice<T: Plain>(&self, address: usize, count: usize) -> Option<&'object [T]> {
        let length = count.checked_mul(size_of::<T>())?;
        let end = address.checked_add(length)?;
        let inside = |range: Range<usize>| range.start <= address && end <= range.end;
        if !address.is_multiple_of(align_of::<T>()) || !self.segments(segment::READABLE).any(inside)
        {
            return None;
        }
        // SAFETY: the range lies in a readable segment of an object that stays
        // mapped for `'object`, is aligned, and `T` may have any bit pattern.
        Some(unsafe { std::slice::from_raw_parts(address as *const T, count) })
    }

    /// All values of type `T` from `address` to the end of its readable segment.
    fn rest<T: Plain>(&self, address: usize) -> Option<&'object [T]> {
        let range = self.segments(segment::READABLE).find(|range| range.contains(&address))?;
        self.slice(address, (range.end - address) / size_of::<T>())
    }

    fn read<T: Plain>(&self, address: usize) -> Option<T> {
        self.slice(address, 1).map(|values| values[0])
    }

    /// The address that a pointer in the dynamic section stands for: the loader
    /// turns most of them into addresses, but leaves those of some objects
    /// (the kernel's own) relative.
    fn pointer(&self, wanted: u64) -> Option<usize> {
        let value = usize::try_from(self.entry(wanted)?).ok()?;
        let relative = self.base().wrapping_add(value);
        [value, relative].into_iter().find(|&address| self.contains(address))
    }

    /// The string at `offset` of the string table.
    pub fn string(&self, offset: u64) -> Option<&'object CStr> {
        let size = usize::try_from(self.entry(tag::STRSZ)?).ok()?;
        let table = self.slice::<u8>(self.pointer(tag::STRTAB)?, size)?;
        CStr::from_bytes_until_nul(table.get(usize::try_from(offset).ok()?..)?).ok()
    }

    /// The tables that the rest of the crate reads again and again, looked up once.
    pub fn tables(&self) -> Option<Tables<'object>> {
        let size = usize::try_from(self.entry(tag::STRSZ)?).ok()?;
        Some(Tables {
            image: *self,
            strings: self.slice(self.pointer(tag::STRTAB)?, size)?,
            symbols: self.symbols()?,
            versions: self.pointer(tag::VERSYM),
            hash: SymbolHash::of(self),
        })
    }

    /// The symbol table has no length of its own: it ends where another table begins, or
    /// with its segment.
    fn symbols(&self) -> Option<&'object [Symbol]> {
        const OTHERS: [u64; 8] = [
            tag::STRTAB,
            tag::GNU_HASH,
            tag::HASH,
            tag::VERSYM,
            tag::VERNEED,
            tag::VERDEF,
            tag::RELA,
            tag::JMPREL,
        ];
        let start = self.pointer(tag::SYMTAB)?;
        let rest = self.rest::<Symbol>(start)?;
        let next = OTHERS.iter().filter_map(|&table| self.pointer(table));
        let next = next.filter(|&table| table > start).min();
        let room = next.map_or(rest.len(), |next| (next - start) / size_of::<Symbol>());
        Some(&rest[..room.min(rest.len())])
    }

    /// The relocations that are processed when the object is loaded, less those
    /// that name no symbol and stand together at the front.
    pub fn data_relocations(&self) -> &'object [Relocation] {
        let relative = self.entry(tag::RELACOUNT).unwrap_or(0);
        let all = self.relocations(tag::RELA, tag::RELASZ);
        all.get(usize::try_from(relative).unwrap_or(usize::MAX)..).unwrap_or(&[])
    }

    /// The relocations of the slots that calls go through, which may be bound late.
    pub fn call_relocations(&self) -> &'object [Relocation] {
        match self.entry(tag::PLTREL) {
            Some(tag::RELA) => self.relocations(tag::JMPREL, tag::PLTRELSZ),
            _ => &[],
        }
    }

    fn relocations(&self, table: u64, size: u64) -> &'object [Relocation] {
        let find = || {
            let count = usize::try_from(self.entry(size)?).ok()? / size_of::<Relocation>();
            self.slice(self.pointer(table)?, count)
        };
        find().unwrap_or(&[])
    }

    /// The pointer that the slot at `address` holds now.
    pub fn slot_value(&self, address: usize) -> Option<usize> {
        self.read::<u64>(address).and_then(|value| usize::try_from(value).ok())
    }
}

fn matches_segment(header: &libc::Elf64_Phdr, flags: u32) -> bool {
    header.p_type == segment::LOAD && header.p_flags & flags == flags
}

/// The symbol and string tables of one object.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'object> {
    image: Image<'object>,
    strings: &'object [u8],
    /// As many as there is room for, which may be more than there are.
    symbols: &'object [Symbol],
    versions: Option<usize>,
    hash: SymbolHash<'object>,
}

impl<'object> Tables<'object> {
    /// The symbol with this index.
    pub fn symbol(&self, index: u32) -> Option<&'object Symbol> {
        self.symbols.get(index as usize)
    }

    /// The name of a symbol.
    pub fn name(&self, symbol: &Symbol) -> Option<&'object CStr> {
        CStr::from_bytes_until_nul(self.strings.get(symbol.name as usize..)?).ok()
    }

    /// The symbols that no lookup by name finds, with their indices: all that the object
    /// takes from others are among them, or are found by their names. An object without a
    /// hash table has no others, as far as anybody can see.
    pub fn unlisted(&self) -> impl Iterator<Item = (u32, &'object Symbol)> + use<'object> {
        let count = self.hash.first_listed().map_or(self.symbols.len(), |first| first as usize);
        (0..).zip(self.symbols.iter().take(count)).skip(1)
    }

    /// Whether a symbol's name begins with these two letters: the cheap question that spares
    /// most symbols the comparison.
    pub fn begins_with(&self, symbol: &Symbol, letters: [u8; 2]) -> bool {
        let start = symbol.name as usize;
        self.strings.get(start..start.saturating_add(2)) == Some(&letters)
    }

    /// The version that the object asks for when it refers to symbol `index`.
    pub fn needed_version(&self, index: u32) -> Option<&'object CStr> {
        let entry = self.versions?.checked_add(index as usize * size_of::<u16>())?;
        let wanted = self.image.read::<u16>(entry)? & 0x7fff;
        // 0 and 1 stand for local and for unversioned symbols.
        if wanted < 2 {
            return None;
        }
        let mut need = self.image.pointer(tag::VERNEED)?;
        for _ in 0..self.image.entry(tag::VERNEEDNUM)? {
            // Elf64_Verneed: version u16, count u16, file u32, aux u32, next u32.
            let count = self.image.read::<u16>(need.wrapping_add(2))?;
            let mut aux =
                need.checked_add(self.image.read::<u32>(need.wrapping_add(8))? as usize)?;
            for _ in 0..count {
                // Elf64_Vernaux: hash u32, flags u16, other u16, name u32, next u32.
                if self.image.read::<u16>(aux.wrapping_add(6))? & 0x7fff == wanted {
                    return self.image.string(self.image.read::<u32>(aux.wrapping_add(8))?.into());
                }
                aux = aux.checked_add(self.image.read::<u32>(aux.wrapping_add(12))? as usize)?;
            }
            need = need.checked_add(self.image.read::<u32>(need.wrapping_add(12))? as usize)?;
        }
        None
    }

    /// The addresses of all functions of this name that the object defines: more
    /// than one where it has several versions of it.
    ///
    /// This asks the object alone, not the loader, so that it can be used while the
    /// list of objects is locked.
    pub fn definitions(&self, name: &Name) -> impl Iterator<Item = usize> {
        self.functions(name).map(|(address, _)| address)
    }

    /// The same, with their lengths where the object gives them.
    pub fn functions(&self, name: &Name) -> impl Iterator<Item = (usize, Option<usize>)> {
        let defined = self.addresses(name, |symbol| symbol.section != 0);
        defined.map(|(address, size)| (address, (size > 0).then_some(size)))
    }

    /// Whether the object lends `address` to the function `name`: as its definition,
    /// or, in a program at a fixed address, as the stub that stands for the function
    /// wherever its address is taken.
    pub fn lends(&self, name: &Name, address: usize) -> bool {
        self.addresses(name, |_| true).any(|(lent, _)| lent == address)
    }

    /// The indices of the symbols of this name that can be looked up.
    pub fn listed(&self, name: &Name) -> impl Iterator<Item = u32> {
        let wanted = name.text();
        self.hash.candidates(name).filter(move |&index| {
            self.symbol(index).is_some_and(|symbol| self.name(symbol) == Some(wanted))
        })
    }

    /// The addresses and lengths of the symbols of this name for which `filter` holds.
    fn addresses(
        &self,
        name: &Name,
        filter: impl Fn(&Symbol) -> bool,
    ) -> impl Iterator<Item = (usize, usize)> {
        self.listed(name)
            .filter_map(|index| self.symbol(index))
            .filter(move |symbol| symbol.has_address() && filter(symbol))
            .map(|symbol| {
                let address = self.image.base().wrapping_add(symbol.value as usize);
                (address, usize::try_from(symbol.size).unwrap_or(0))
            })
            .filter(|&(address, _)| self.image.contains_code(address))
    }
}

#[cfg(test)]
mod tests;
