//! What moves, where its boundaries are, and what a refusal says. The openings
//! of real functions are in the corpus (see `relocate`).

use super::*;

const ADDRESS: u64 = 0x1000;

fn function(bytes: &[u8], size: Option<usize>) -> Function<'_> {
    Function { symbol: "cuMemFree_v2", address: ADDRESS, bytes, size }
}

#[test]
fn the_opening_of_driver_580_has_two_boundaries() {
    let code = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x83, 0xec, 8, 0x90, 0x90, 0xc3];
    let prologue = Prologue::analyse(function(&code, None), 5).expect("it can be moved");
    assert_eq!((prologue.length, prologue.landing_pad), (6, 0));
    let boundaries: Vec<_> =
        prologue.boundaries().iter().map(|at| (at.offset, at.index, at.after_call)).collect();
    assert_eq!(boundaries, [(1, 1, false), (4, 2, false)]);
    assert_eq!(prologue.index_of(ADDRESS + 4), Some(2));
    assert_eq!(prologue.index_of(ADDRESS + 5), None);
}

#[test]
fn a_first_instruction_as_long_as_the_jump_has_no_inside() {
    let code =
        [0x81, 0x3d, 0, 1, 0, 0, 0, 0xba, 0x1c, 0x32, 0x74, 0x0c, 0xff, 0x25, 0, 1, 0, 0, 0x90];
    let near = Prologue::analyse(function(&code, None), 5).expect("it can be moved");
    assert_eq!((near.length, near.boundaries()), (10, vec![]));
    let far = Prologue::analyse(function(&code, None), 12).expect("it can be moved");
    assert_eq!(far.length, 12);
    assert_eq!(far.boundaries(), [Boundary { offset: 10, index: 1, after_call: false }]);
}

#[test]
fn the_landing_pad_stays_and_its_bytes_do_not_count() {
    let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0xc3];
    let prologue = Prologue::analyse(function(&code, None), 5).expect("it can be moved");
    assert_eq!((prologue.start(), prologue.end()), (ADDRESS + 4, ADDRESS + 10));
    // A branch to the entry means the first instruction behind the pad.
    assert_eq!(prologue.index_of(ADDRESS), Some(0));
    let short =
        Prologue::analyse(function(&code[..8], Some(8)), 5).expect_err("four bytes are left");
    assert_eq!(short.reason, Reason::TooShort { length: 4, needed: 5 });
}

#[test]
fn a_place_that_calls_return_to_is_marked() {
    // `call [rax]; call [rax]; nop`: two bytes each.
    let code = [0xff, 0x10, 0xff, 0x10, 0x90, 0xc3];
    let prologue = Prologue::analyse(function(&code, None), 5).expect("it can be moved");
    assert!(prologue.boundaries().iter().all(|boundary| boundary.after_call));
}

#[test]
fn a_refusal_says_all_that_is_needed() {
    // `push rbp; nop; nop; nop; nop; jmp -8`: back to the second byte.
    let code = [0x55, 0x90, 0x90, 0x90, 0x90, 0xeb, 0xfa];
    let refusal = Prologue::analyse(function(&code, None), 5).expect_err("it branches back");
    assert_eq!(
        refusal.to_string(),
        "cannot patch `cuMemFree_v2` at 0x1000: the function branches from byte 5 back to byte 1, \
         into the replaced bytes (`Jmp_rel8_64`); its code begins with `55 90 90 90 90 eb fa`"
    );
}

#[test]
fn only_what_is_visible_is_looked_at() {
    // The branch back lies behind the function's end, if that is known.
    let code = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x90, 0x90, 0xe9, 0xf4, 0xff, 0xff, 0xff];
    assert!(Prologue::analyse(function(&code, None), 5).is_err());
    assert!(Prologue::analyse(function(&code, Some(8)), 5).is_ok());
    // Behind an unconditional jump nothing is reached.
    let code = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0xc3, 0x90, 0xe9, 0xf4, 0xff, 0xff, 0xff];
    assert!(Prologue::analyse(function(&code, None), 5).is_ok());
}

#[test]
fn empty_and_cut_code_is_refused() {
    for length in 0..5 {
        let code = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x54];
        let refusal = Prologue::analyse(function(&code[..length], None), 5).expect_err("cut");
        assert!(
            matches!(refusal.reason, Reason::EndOfMemory { length: found, .. } if found == length),
            "{refusal}"
        );
    }
}
