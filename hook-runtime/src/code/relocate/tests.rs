//! The corpus as data, and properties over random instructions. The corpus is
//! also executed, in `tests/bistro_corpus.rs`.

use super::super::prologue::Function;
use super::*;
use iced_x86::{Decoder, DecoderOptions};
use proptest::prelude::*;

const CORPUS: [&str; 6] = [
    include_str!("../../../../fixtures/code/x86_64/libcuda-470.txt"),
    include_str!("../../../../fixtures/code/x86_64/libcuda-535.txt"),
    include_str!("../../../../fixtures/code/x86_64/libcuda-550.txt"),
    include_str!("../../../../fixtures/code/x86_64/libcuda-575.txt"),
    include_str!("../../../../fixtures/code/x86_64/libcuda-580.txt"),
    include_str!("../../../../fixtures/code/x86_64/openings.txt"),
];

fn bytes(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two digits")).collect()
}

fn address(text: &str) -> u64 {
    u64::from_str_radix(text.strip_prefix("0x").expect("an address"), 16).expect("hexadecimal")
}

#[test]
fn every_opening_becomes_what_the_corpus_says() {
    let mut rows = 0;
    let mut wrong = Vec::new();
    for line in CORPUS.iter().flat_map(|text| text.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [code, size, was, goes, jump, expected, note] = columns[..] else {
            panic!("seven columns: {line}");
        };
        let code = bytes(code);
        let function =
            Function { symbol: "f", address: address(was), bytes: &code, size: size.parse().ok() };
        let jump = jump.parse().expect("a length");
        let result = Prologue::analyse(function, jump)
            .and_then(|prologue| relocate(&prologue, address(goes)));
        let found = match result {
            Ok(relocated) => super::super::error::hex(&relocated.bytes),
            Err(refusal) => {
                assert_eq!((refusal.symbol.as_str(), refusal.address), ("f", address(was)));
                assert!(code.starts_with(&refusal.bytes) && !refusal.bytes.is_empty());
                format!("refused: {}", refusal.reason)
            }
        };
        if found != expected {
            wrong.push(format!("{note}\n  expected {expected}\n  found    {found}"));
        }
        rows += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 110, "the corpus has {rows} rows");
}

/// Instructions with a part that depends on their address, the part left out.
fn relative_instruction() -> impl Strategy<Value = Vec<u8>> {
    let heads: Vec<(&'static [u8], usize, &'static [u8])> = vec![
        (&[0xe8], 4, &[]),                          // call
        (&[0xe9], 4, &[]),                          // jmp
        (&[0xeb], 1, &[]),                          // jmp, short
        (&[0x74], 1, &[]),                          // je, short
        (&[0x7f], 1, &[]),                          // jg, short
        (&[0x0f, 0x85], 4, &[]),                    // jne
        (&[0xe0], 1, &[]),                          // loopne
        (&[0xe2], 1, &[]),                          // loop
        (&[0xe3], 1, &[]),                          // jrcxz
        (&[0x67, 0xe3], 1, &[]),                    // jecxz
        (&[0x8b, 0x05], 4, &[]),                    // mov eax, [rip + d]
        (&[0x48, 0x89, 0x3d], 4, &[]),              // mov [rip + d], rdi
        (&[0x48, 0x8d, 0x0d], 4, &[]),              // lea rcx, [rip + d]
        (&[0x81, 0x3d], 4, &[0, 0xba, 0x1c, 0x32]), // cmp dword [rip + d], imm32
        (&[0x48, 0x83, 0x3d], 4, &[0]),             // cmp qword [rip + d], imm8
        (&[0xf3, 0x0f, 0x10, 0x05], 4, &[]),        // movss xmm0, [rip + d]
        (&[0xc5, 0xf8, 0x28, 0x05], 4, &[]),        // vmovaps xmm0, [rip + d]
        (&[0xff, 0x15], 4, &[]),                    // call [rip + d]
        (&[0xff, 0x25], 4, &[]),                    // jmp [rip + d]
        (&[0xff, 0x35], 4, &[]),                    // push [rip + d]
    ];
    (prop::sample::select(heads), any::<[u8; 4]>())
        .prop_map(|((head, length, tail), part)| [head, &part[..length], tail].concat())
}

/// Instructions that mean the same everywhere.
fn plain_instruction() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec![
        vec![0x55],
        vec![0x41, 0x57],
        vec![0x48, 0x89, 0xe5],
        vec![0x48, 0x83, 0xec, 0x18],
        vec![0x31, 0xc0],
        vec![0x85, 0xff],
        vec![0x0f, 0x1f, 0x40, 0x00],
        vec![0xb8, 1, 2, 3, 4],
        vec![0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0],
        vec![0xf3, 0x0f, 0x1e, 0xfa],
    ])
}

/// Everything absolute that a piece of code names: targets of branches,
/// addresses of operands, 64-bit constants, and the quadwords behind indirect jumps.
fn named(bytes: &[u8], at: u64) -> Vec<u64> {
    let mut named = Vec::new();
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        match relative_part(&instruction) {
            Relative::None => {}
            Relative::Branch(target) => named.push(target),
            Relative::Memory(operand) => {
                named.push(operand);
                let offset = operand.wrapping_sub(at) as usize;
                if let Some(quadword) = bytes.get(offset..).and_then(|rest| rest.first_chunk()) {
                    named.push(u64::from_le_bytes(*quadword));
                }
            }
        }
        if instruction.code() == Code::Mov_r64_imm64 {
            named.push(instruction.immediate64());
        }
    }
    named
}

/// What follows the pieces: the jump back, and nothing else.
fn check(code: &[u8], was: u64, jump: usize, goes: u64) -> Result<(), TestCaseError> {
    let function = Function { symbol: "f", address: was, bytes: code, size: None };
    let Ok(prologue) = Prologue::analyse(function, jump) else { return Ok(()) };
    prop_assert!(prologue.length >= jump);
    prop_assert!(prologue.boundaries().iter().all(|boundary| boundary.offset < jump));
    let Ok(relocated) = relocate(&prologue, goes) else { return Ok(()) };
    prop_assert!(relocated.bytes.len() <= room(&prologue));
    let ends = relocated.offsets.iter().skip(1).copied();
    for (index, moved) in prologue.moved.iter().enumerate() {
        let start = relocated.offsets[index];
        let piece = match ends.clone().nth(index) {
            Some(end) => &relocated.bytes[start..end],
            None => &relocated.bytes[start..],
        };
        let named = named(piece, goes + start as u64);
        match relative_part(&moved.instruction) {
            Relative::None => prop_assert!(piece.starts_with(&moved.bytes)),
            Relative::Branch(target) if is_inside(&prologue, &moved.instruction, target) => {
                let place = prologue.index_of(target).expect("it is inside");
                prop_assert!(named.contains(&(goes + relocated.offsets[place] as u64)));
            }
            Relative::Branch(target) | Relative::Memory(target) => {
                prop_assert!(
                    named.contains(&target),
                    "{target:#x} not in {named:x?}: {piece:02x?}"
                );
            }
        }
    }
    let near = relocated.bytes.len() - jump::NEAR;
    let is_near = jump::near(goes + near as u64, prologue.end())
        .is_some_and(|back| relocated.bytes.ends_with(&back));
    prop_assert!(
        is_near || relocated.bytes.ends_with(&jump::indirect(prologue.end())),
        "no jump back"
    );
    if window(&prologue).is_some_and(|window| window.contains(&goes)) {
        prop_assert!(is_near, "within the window everything is near");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_absolute_target_survives_the_move(
        code in prop::collection::vec(prop_oneof![relative_instruction(), plain_instruction()], 1..8),
        was in 0x1000_0000_0000_u64..0x1000_1000_0000,
        distance in prop_oneof![-0x6000_0000_i64..0x6000_0000, Just(0x1000_0000_0000), Just(-0x8000_0000), Just(0x7fff_f000)],
        far: bool,
    ) {
        let mut code = code.concat();
        code.extend([0x90; 16]);
        let jump = if far { jump::FAR } else { jump::NEAR };
        check(&code, was, jump, was.wrapping_add_signed(distance))?;
    }

    #[test]
    fn random_bytes_are_moved_or_refused(
        code in prop::collection::vec(any::<u8>(), 0..40),
        size in proptest::option::of(0_usize..40),
        far: bool,
    ) {
        let jump = if far { jump::FAR } else { jump::NEAR };
        let function = Function { symbol: "f", address: 0x1000_0000_0000, bytes: &code, size };
        if let Ok(prologue) = Prologue::analyse(function, jump) {
            prop_assert!(size.is_none_or(|size| size >= jump));
            let _ = relocate(&prologue, 0x2000_0000_0000);
        }
        check(&code, 0x1000_0000_0000, jump, 0x1000_1000_0000)?;
    }
}
