//! Looking a symbol up in one object, as the loader does.

use std::ffi::CStr;

use super::{Image, tag};

/// A symbol's name, with what the hash tables know it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    text: &'static CStr,
    gnu: u32,
    sysv: u32,
}

impl Name {
    /// The name, hashed.
    pub const fn new(text: &'static CStr) -> Self {
        let bytes = text.to_bytes();
        let (mut gnu, mut sysv) = (5381_u32, 0_u32);
        let mut index = 0;
        while index < bytes.len() {
            gnu = gnu.wrapping_mul(33).wrapping_add(bytes[index] as u32);
            sysv = (sysv << 4).wrapping_add(bytes[index] as u32);
            let high = sysv & 0xf000_0000;
            sysv = (sysv ^ (high >> 24)) & !high;
            index += 1;
        }
        Self { text, gnu, sysv }
    }

    /// The name itself.
    pub const fn text(&self) -> &'static CStr {
        self.text
    }
}

/// The table that an object brings for it. All slices end where their segment does.
#[derive(Debug, Clone, Copy)]
pub(super) enum SymbolHash<'object> {
    Gnu {
        /// Which hashes may be there at all.
        bloom: &'object [u64],
        shift: u32,
        buckets: &'object [u32],
        /// The index of the first symbol in the chains.
        first: u32,
        chains: &'object [u32],
    },
    SysV {
        buckets: &'object [u32],
        chains: &'object [u32],
    },
    None,
}

impl<'object> SymbolHash<'object> {
    pub(super) fn of(image: &Image<'object>) -> Self {
        Self::gnu(image).or_else(|| Self::sysv(image)).unwrap_or(Self::None)
    }

    fn gnu(image: &Image<'object>) -> Option<Self> {
        let table = image.pointer(tag::GNU_HASH)?;
        let &[buckets, first, words, shift] = image.slice::<u32>(table, 4)? else { return None };
        let bloom = image.slice::<u64>(table.checked_add(16)?, words as usize)?;
        let at = table.checked_add(16)?.checked_add(size_of_val(bloom))?;
        let buckets = image.slice::<u32>(at, buckets as usize)?;
        let chains = image.rest(at.checked_add(size_of_val(buckets))?).unwrap_or(&[]);
        Some(Self::Gnu { bloom, shift, buckets, first, chains })
    }

    fn sysv(image: &Image<'object>) -> Option<Self> {
        let table = image.pointer(tag::HASH)?;
        let &[buckets, symbols] = image.slice::<u32>(table, 2)? else { return None };
        let buckets = image.slice::<u32>(table.checked_add(8)?, buckets as usize)?;
        let at = table.checked_add(8)?.checked_add(size_of_val(buckets))?;
        Some(Self::SysV { buckets, chains: image.slice(at, symbols as usize)? })
    }

    /// Up to which index symbols are in no chain.
    pub(super) fn first_listed(&self) -> Option<u32> {
        match self {
            // A table that lists nothing need not say where it would begin.
            Self::Gnu { first, buckets, .. } => {
                buckets.iter().any(|&bucket| bucket != 0).then_some(*first)
            }
            // Every symbol has its place in the chains, and those of others cannot be told apart.
            Self::SysV { chains, .. } => u32::try_from(chains.len()).ok(),
            Self::None => None,
        }
    }

    /// The indices that the table lists for a name's hash.
    pub(super) fn candidates(&self, name: &Name) -> Candidates<'object> {
        match *self {
            Self::Gnu { bloom, shift, buckets, first, chains } => {
                let hash = name.gnu;
                let bit = |hash: u32| 1_u64 << (hash % 64);
                let wanted = bit(hash) | bit(hash.checked_shr(shift).unwrap_or(0));
                let word = (hash as usize / 64).checked_rem(bloom.len());
                let may = word.is_some_and(|word| bloom[word] & wanted == wanted);
                let bucket = (hash as usize).checked_rem(buckets.len()).filter(|_| may);
                let next = bucket.and_then(|bucket| buckets[bucket].checked_sub(first));
                Candidates::Gnu { hash, first, chains, next }
            }
            Self::SysV { buckets, chains } => {
                let bucket = (name.sysv as usize).checked_rem(buckets.len());
                let next = bucket.map_or(0, |bucket| buckets[bucket]);
                Candidates::SysV { chains, next, left: chains.len() }
            }
            Self::None => Candidates::SysV { chains: &[], next: 0, left: 0 },
        }
    }
}

/// One chain of a hash table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Candidates<'object> {
    Gnu {
        hash: u32,
        first: u32,
        chains: &'object [u32],
        /// The place in the chains that is looked at next.
        next: Option<u32>,
    },
    SysV {
        chains: &'object [u32],
        next: u32,
        /// A chain in a damaged table may lead round in a circle.
        left: usize,
    },
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            Self::Gnu { hash, first, chains, next } => loop {
                let place = (*next)?;
                let Some(&entry) = chains.get(place as usize) else {
                    *next = None;
                    return None;
                };
                *next = if entry & 1 == 1 { None } else { place.checked_add(1) };
                if entry | 1 == *hash | 1 {
                    return first.checked_add(place);
                }
            },
            Self::SysV { chains, next, left } => {
                let index = *next;
                if index == 0 || *left == 0 {
                    return None;
                }
                *left -= 1;
                *next = chains.get(index as usize).copied().unwrap_or(0);
                Some(index)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_hashes_that_linkers_give_them() {
        // From the specifications of the two tables.
        let printf = Name::new(c"printf");
        assert_eq!((printf.gnu, printf.sysv), (0x156b_2bb8, 0x077_905a6));
        assert_eq!(Name::new(c"").gnu, 5381);
        assert_eq!(Name::new(c"exit").gnu, 0x7c96_7e3f);
    }
}
