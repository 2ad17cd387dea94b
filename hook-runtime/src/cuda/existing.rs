//! Allocations that were there before the hooks.
//!
//! The driver has no list of them. It does say, without any context being current, whether
//! an address belongs to an allocation, and where that begins and ends. So the places where
//! its memory can be are asked about: the regions that it maps or that the processor cannot
//! touch. First at every 2 MiB, which is how the driver reserves memory, then at every
//! 512 bytes, which is how it divides what it has reserved.
//!
//! The limits: the number of questions is bounded, and where it does not suffice, the result
//! says so ([`Existing::complete`]). Managed and page-locked memory is found where the
//! driver maps its own device files for it, and not where it looks like any other memory.

use std::collections::BTreeMap;
use std::ops::Range;

use super::driver::{self, Answer};
use crate::event::sizes::Allocation;
use crate::sys::maps;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Existing {
    /// The allocations by their first address.
    pub allocations: BTreeMap<usize, Allocation>,
    /// Whether every place was asked about.
    pub complete: bool,
}

/// How the driver reserves device memory.
const BLOCK: usize = 2 << 20;
/// How it divides what it has reserved.
const GRAIN: usize = 512;
/// Questions about the blocks of one region.
const PER_REGION: usize = 1 << 14;
/// Questions in all. Each takes the driver some 0.2 microseconds.
const IN_ALL: usize = 1 << 18;

/// Asks the loaded driver. Nothing exists if there is none, or if it has not been initialised.
pub fn search() -> Existing {
    let regions: Vec<_> = match maps::read_self() {
        Ok(map) => map
            .iter()
            .filter(|region| maps::may_be_reserved_by_cuda(region))
            .map(|region| region.range.start as usize..region.range.end as usize)
            .collect(),
        Err(error) => {
            crate::log::error!("`/proc/self/maps` cannot be read: {error}");
            return Existing { allocations: BTreeMap::new(), complete: false };
        }
    };
    Search { ask: driver::allocation_at, left: IN_ALL, found: BTreeMap::new() }.run(&regions)
}

struct Search<F> {
    ask: F,
    left: usize,
    found: BTreeMap<usize, Allocation>,
}

/// Why a search ends early.
enum Stop {
    /// The driver holds nothing at all.
    Nothing,
    /// There may be more.
    TooMuch,
}

impl<F: FnMut(usize) -> Answer> Search<F> {
    fn run(mut self, regions: &[Range<usize>]) -> Existing {
        let steps: Vec<_> = regions
            .iter()
            .map(|region| (region.len() / PER_REGION).next_multiple_of(BLOCK).max(BLOCK))
            .collect();
        let all = regions.iter().zip(&steps).try_for_each(|(region, &step)| self.go(region, step));
        let all = all.and_then(|()| {
            let mut small = regions.iter().zip(&steps).filter(|&(_, &step)| step == BLOCK);
            small.try_for_each(|(region, _)| self.go(region, GRAIN))
        });
        let complete = match all {
            Ok(()) => steps.iter().all(|&step| step == BLOCK),
            Err(Stop::Nothing) => true,
            Err(Stop::TooMuch) => false,
        };
        Existing { allocations: self.found, complete }
    }

    /// Asks about every multiple of `step` in `region` that is in no allocation found so
    /// far, and about what follows each allocation.
    fn go(&mut self, region: &Range<usize>, step: usize) -> Result<(), Stop> {
        let mut address = region.start;
        while address < region.end {
            address = match self.at(address)? {
                Some(end) => end.next_multiple_of(GRAIN),
                None => (address + 1).next_multiple_of(step),
            };
        }
        Ok(())
    }

    /// The end of the allocation that holds `address`.
    fn at(&mut self, address: usize) -> Result<Option<usize>, Stop> {
        if let Some((&start, allocation)) = self.found.range(..=address).next_back()
            && address < start.saturating_add(allocation.size)
        {
            return Ok(Some(start + allocation.size));
        }
        self.left = self.left.checked_sub(1).ok_or(Stop::TooMuch)?;
        match (self.ask)(address) {
            Answer::Nothing => Ok(None),
            Answer::NoDriver => Err(Stop::Nothing),
            Answer::Allocation(start, allocation) => {
                let end = start.saturating_add(allocation.size);
                // An answer about something else must not make this go round for ever.
                if !(start..end).contains(&address) {
                    return Ok(None);
                }
                self.found.insert(start, allocation);
                Ok(Some(end))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MemoryClass;
    use crate::event::sizes::Owner;

    fn search(region: Range<usize>, there: &[(usize, usize)]) -> (Vec<(usize, usize)>, bool) {
        let ask = |address| {
            let holds =
                |&&(start, size): &&(usize, usize)| (start..start + size).contains(&address);
            there.iter().find(holds).map_or(Answer::Nothing, |&(start, size)| {
                let class = MemoryClass::Device;
                Answer::Allocation(start, Allocation { size, class, owner: Owner::Itself })
            })
        };
        let found =
            Search { ask, left: IN_ALL, found: BTreeMap::new() }.run(std::slice::from_ref(&region));
        let sizes = found.allocations.iter().map(|(&start, found)| (start, found.size));
        (sizes.collect(), found.complete)
    }

    #[test]
    fn what_lies_in_a_region_is_found_wherever_it_begins() {
        const BASE: usize = 0x7000_0000_0000;
        let there = [
            (BASE, 100),
            (BASE + 512, 512),
            (BASE + 4096, 1),
            (BASE + BLOCK, 3 * BLOCK),
            (BASE + 8 * BLOCK - 512, 512),
        ];
        assert_eq!(search(BASE..BASE + 8 * BLOCK, &there), (there.to_vec(), true));
        assert_eq!(search(BASE + 8 * BLOCK..BASE + 9 * BLOCK, &there), (vec![], true));
    }

    #[test]
    fn a_region_that_is_too_large_is_looked_through_roughly() {
        const BASE: usize = 0x1000_0000_0000;
        let there = [(BASE, 100), (BASE + 512, 7)];
        let (found, complete) = search(BASE..BASE + (1 << 44), &there);
        assert_eq!(found, there);
        assert!(!complete);
    }

    #[test]
    fn wrong_answers_do_no_harm() {
        let strange = |_| {
            let (class, owner) = (MemoryClass::Device, Owner::Itself);
            Answer::Allocation(16, Allocation { size: 0, class, owner })
        };
        let search = Search { ask: strange, left: IN_ALL, found: BTreeMap::new() };
        let found = search.run(std::slice::from_ref(&(0x20_0000..0x40_0000)));
        assert_eq!(found.allocations.len(), 0);
        let none = Search { ask: |_| Answer::NoDriver, left: 1, found: BTreeMap::new() };
        assert!(none.run(std::slice::from_ref(&(0..usize::MAX))).complete);
    }
}
