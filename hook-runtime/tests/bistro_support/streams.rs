//! Instructions of which random streams are made, to be moved and executed.

/// What stands between the head and the tail of an instruction.
pub(crate) enum Part {
    None,
    /// An 8-bit displacement of a branch.
    Short,
    /// A 32-bit one.
    Branch,
    /// The displacement of an operand relative to `rip`.
    Operand,
}

/// Instructions of which streams are made.
pub(crate) const STREAM: [(&[u8], Part, &[u8]); 19] = [
    (&[0x55], Part::None, &[]),
    (&[0x41, 0x57], Part::None, &[]),
    (&[0x48, 0x89, 0xe5], Part::None, &[]),
    (&[0x48, 0x83, 0xec, 0x18], Part::None, &[]),
    (&[0x31, 0xc0], Part::None, &[]),
    (&[0x48, 0x39, 0xf7], Part::None, &[]),
    (&[0x48, 0x85, 0xff], Part::None, &[]),
    (&[0x89, 0x7c, 0x24, 0xf0], Part::None, &[]), // mov [rsp - 16], edi: the red zone
    (&[0x48, 0x8b, 0x44, 0x24, 0xf8], Part::None, &[]), // mov rax, [rsp - 8]
    (&[0x74], Part::Short, &[]),
    (&[0x7f], Part::Short, &[]),
    (&[0xe3], Part::Short, &[]),
    (&[0x0f, 0x82], Part::Branch, &[]),
    (&[0xe9], Part::Branch, &[]),
    (&[0x8b, 0x05], Part::Operand, &[]),
    (&[0x48, 0x01, 0x3d], Part::Operand, &[]), // add [rip + d], rdi
    (&[0x48, 0x8d, 0x0d], Part::Operand, &[]),
    (&[0x81, 0x3d], Part::Operand, &[0, 0xba, 0x1c, 0x32]),
    (&[0x48, 0x13, 0x15], Part::Operand, &[]), // adc rdx, [rip + d]
];
