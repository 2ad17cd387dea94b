//! Punned displacements against a search by hand, and against the decoder.

use super::*;
use iced_x86::{Decoder, DecoderOptions};
use proptest::prelude::*;

/// The signal that stands at each boundary of a jump, if all are traps.
fn signals(from: u64, island: u64, boundaries: &[usize]) -> Option<Vec<Signal>> {
    let bytes = jump::near(from, island)?;
    boundaries.iter().map(|&boundary| signal_of(bytes[boundary])).collect()
}

#[test]
fn the_opening_of_driver_580_wants_an_island_832_mb_below() {
    let from = 0x7f5e_2036_31b0_u64;
    let search = Search::new(from, &[1, 4], Traps::Int3).expect("both are displacement bytes");
    let island = search.first(0..u64::MAX).expect("it exists");
    assert_eq!(signals(from, island, &[1, 4]), Some(vec![Signal::Trap, Signal::Trap]));
    assert_eq!((from - island) >> 20, 831);
    // The highest displacement byte gives a window of 16 MiB, and no other.
    let window = island + (1 << 24);
    assert_eq!(search.first(window..u64::MAX), None);
    assert!(search.first(window - 256..u64::MAX).is_some());
    assert!(
        Search::new(from, &[1, 4], Traps::All).expect("likewise").first(window..u64::MAX).is_some()
    );
}

#[test]
fn every_trap_is_no_instruction_whatever_follows() {
    for byte in 0..=u8::MAX {
        let Some(signal) = signal_of(byte) else { continue };
        for next in 0..=u8::MAX {
            let bytes = [byte, next, next, next, next, next, next, next];
            let instruction = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).decode();
            match signal {
                Signal::Trap => assert_eq!(instruction.code(), iced_x86::Code::Int3),
                Signal::IllegalInstruction => {
                    assert!(instruction.is_invalid(), "{byte:02x} {next:02x}")
                }
            }
        }
    }
    assert!(ALL.is_sorted());
    assert!(ALL.iter().all(|byte| signal_of(*byte).is_some()));
    assert_eq!(ALL.len(), INVALID.len() + 1);
}

#[test]
fn a_boundary_outside_the_displacement_cannot_be_trapped() {
    assert!(Search::new(0x1000, &[0], Traps::All).is_none());
    assert!(Search::new(0x1000, &[5], Traps::All).is_none());
    assert!(!Search::new(0x1000, &[], Traps::All).expect("nothing wanted").is_constrained());
}

#[test]
fn without_boundaries_the_first_address_in_reach_will_do() {
    let search = Search::new(0x7000_0000_0000, &[], Traps::Int3).expect("nothing wanted");
    let lowest = 0x7000_0000_0005 - (1 << 31);
    assert_eq!(search.first(0..u64::MAX), Some(lowest));
    assert_eq!(search.first(0x7000_0000_1000..0x7000_0000_2000), Some(0x7000_0000_1000));
    assert_eq!(search.first(0x7000_8000_0005..u64::MAX), None);
    assert_eq!(search.first(0x1000..0x1000), None);
}

proptest! {
    #[test]
    fn what_is_found_is_trapped_and_the_lowest(
        from in 0x1_0000_0000_u64..0x7fff_0000_0000,
        wanted in proptest::sample::subsequence(vec![1_usize, 2, 3, 4], 0..=4),
        all: bool,
        start in -0x9000_0000_i64..0x9000_0000,
        length in 0_u64..0x2_0000,
    ) {
        let traps = if all { Traps::All } else { Traps::Int3 };
        let search = Search::new(from, &wanted, traps).expect("displacement bytes");
        let start = from.wrapping_add_signed(start);
        let within = start..start + length;
        let fits = |at: u64| {
            jump::near(from, at).is_some_and(|bytes| wanted.iter().all(|&at| traps.bytes().contains(&bytes[at])))
        };
        prop_assert_eq!(search.first(within.clone()), within.clone().find(|&at| fits(at)));
    }
}
