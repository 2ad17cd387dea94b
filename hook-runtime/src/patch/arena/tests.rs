//! Gaps of a map, and blocks in this process.

use super::*;
use crate::code::pun::Traps;
use crate::sys::maps;

#[test]
fn gaps_leave_room_for_heap_and_stack() {
    let map = maps::parse(include_str!("../../../../fixtures/maps/plain.txt"));
    let gaps = gaps(&map);
    let free = |address: u64| gaps.iter().any(|gap| gap.contains(&address));
    for entry in map.iter().filter(|entry| entry.range.end <= USABLE.end) {
        assert!(
            gaps.iter().all(|gap| gap.end <= entry.range.start || gap.start >= entry.range.end),
            "{entry:?}"
        );
    }
    assert!(free(0x55d0_c000_0000) && free(0x7f5e_1fff_0000));
    assert!(!free(0x55d0_ca21_f000), "the heap grows there");
    assert!(free(0x55d0_ca21_f000 + GROWTH));
    assert!(!free(0x7ffd_4a3d_0000), "the stack grows there");
    assert!(free(0x7ffd_4a3d_0000 - GROWTH));
    assert!(!free(0) && !free(0x7fff_ffff_f000));
    assert!(gaps.iter().all(|gap| gap.end - gap.start >= BLOCK));
}

#[test]
fn pieces_never_overlap_and_lie_where_they_were_wanted() {
    let map = maps::read_self().expect("the map can be read");
    let mut arena = Arena::new(&map);
    let target = pieces_never_overlap_and_lie_where_they_were_wanted as fn() as usize as u64 & !0xf;
    let mut taken: Vec<Range<u64>> = Vec::new();
    for index in 0..60 {
        let from = target + index * 0x40;
        let search = Search::new(from, &[1, 4], Traps::All).expect("displacement bytes");
        let island = arena.island(&search).expect("there is a place");
        let bytes = jump::near(from, island).expect("in reach");
        assert!(
            crate::code::pun::signal_of(bytes[1]).is_some()
                && crate::code::pun::signal_of(bytes[4]).is_some()
        );
        taken.push(island..island + jump::INDIRECT as u64);
        let window = from - 0x7000_0000..from + 0x7000_0000;
        let trampoline = arena.trampoline(window.clone(), 70).expect("there is a place");
        assert!(window.contains(&trampoline) && trampoline % 16 == 0);
        taken.push(trampoline..trampoline + 70);
    }
    taken.sort_by_key(|piece| piece.start);
    assert!(taken.windows(2).all(|pair| pair[0].end <= pair[1].start), "{taken:x?}");
    assert!(arena.blocks.len() <= 4, "{} blocks for 120 pieces", arena.blocks.len());
}

#[test]
fn a_gap_that_is_taken_meanwhile_is_passed_over() {
    let map = maps::read_self().expect("the map can be read");
    let mut arena = Arena::new(&map);
    let window = USABLE.start..USABLE.end;
    // Where the arena would look first.
    let first = Arena::new(&map).trampoline(window.clone(), 16).expect("there is a place");
    let _taken = reserve(Some(first & !(PAGE - 1)), PAGE).expect("it was free");
    let other = arena.trampoline(window, 16).expect("there is another place");
    assert_ne!(other & !(PAGE - 1), first & !(PAGE - 1));
}

#[test]
fn nothing_is_found_where_nothing_is_free() {
    let mut arena = Arena { gaps: Vec::new(), blocks: Vec::new(), hopeless: Vec::new() };
    assert_eq!(arena.trampoline(0..u64::MAX, 16), None);
    let search = Search::new(0x7000_0000_0000, &[1], Traps::All).expect("a displacement byte");
    assert_eq!(arena.island(&search), None);
}
