//! The jumps that a patch is made of.

/// The length of [`near`].
pub const NEAR: usize = 5;
/// The length of [`far`].
pub const FAR: usize = 12;
/// The length of [`indirect`].
pub const INDIRECT: usize = 14;

/// The displacement from the end of an instruction to a target, if it fits.
#[must_use]
pub fn displacement(next: u64, to: u64) -> Option<i32> {
    i32::try_from(to.wrapping_sub(next).cast_signed()).ok()
}

/// `jmp rel32`: five bytes, no register touched, within 2 GiB.
#[must_use]
pub fn near(from: u64, to: u64) -> Option<[u8; NEAR]> {
    let [a, b, c, d] = displacement(from.wrapping_add(NEAR as u64), to)?.to_le_bytes();
    Some([0xe9, a, b, c, d])
}

/// `movabs rax, to; jmp rax`: twelve bytes, to anywhere. It overwrites `rax`,
/// which holds nothing at the entry of a function without variable arguments.
#[must_use]
pub fn far(to: u64) -> [u8; FAR] {
    let [a, b, c, d, e, f, g, h] = to.to_le_bytes();
    [0x48, 0xb8, a, b, c, d, e, f, g, h, 0xff, 0xe0]
}

/// `jmp [rip]` with the address behind it: fourteen bytes, to anywhere, no
/// register touched.
#[must_use]
pub fn indirect(to: u64) -> [u8; INDIRECT] {
    let [a, b, c, d, e, f, g, h] = to.to_le_bytes();
    [0xff, 0x25, 0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn a_near_jump_reaches_both_ways_and_no_further() {
        let decode = |from: u64, bytes: &[u8]| {
            Decoder::with_ip(64, bytes, from, DecoderOptions::NONE).decode().near_branch_target()
        };
        for (from, to) in [
            (0x1000, 0x2000),
            (0x7fff_0000_0000, 0x7fff_0000_0005 + 0x7fff_ffff),
            (0x7fff_0000_0000, 0x7fff_0000_0005 - 0x8000_0000),
        ] {
            assert_eq!(decode(from, &near(from, to).expect("in reach")), to);
        }
        assert_eq!(near(0x7fff_0000_0000, 0x7fff_0000_0005 + 0x8000_0000), None);
        assert_eq!(near(0x7fff_0000_0000, 0x7fff_0000_0005 - 0x8000_0001), None);
    }

    #[test]
    fn the_long_jumps_are_what_they_say() {
        let to = 0x7f12_3456_789a;
        let far = far(to);
        let mut decoder = Decoder::with_ip(64, &far, 0, DecoderOptions::NONE);
        let first = decoder.decode();
        assert_eq!((first.mnemonic(), first.immediate64()), (Mnemonic::Mov, to));
        assert_eq!(decoder.decode().mnemonic(), Mnemonic::Jmp);
        assert!(!decoder.can_decode());
        let indirect = indirect(to);
        let jump = Decoder::with_ip(64, &indirect, 0x1000, DecoderOptions::NONE).decode();
        assert_eq!(jump.ip_rel_memory_address(), 0x1006);
        assert_eq!(indirect[6..], to.to_le_bytes());
    }
}
