//! What stands at a function's entry, and how much of it has to move for a jump.
//!
//! A leading `endbr64` stays, since indirect calls must land on it, and the jump
//! goes behind it. Refused is what would break: a function that ends too early,
//! somebody's breakpoint, a branch from the function's visible body into the
//! bytes that will be replaced. Moving them is left to [`super::relocate`].

use iced_x86::{
    Code, ConstantOffsets, Decoder, DecoderError, DecoderOptions, Encoder, FlowControl, Instruction,
};

use super::{Reason, Refusal};

/// How many bytes behind the entry are looked at for branches, at most.
const VISIBLE: usize = 1024;

/// A function as it is found in memory.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    /// Its name, for messages.
    pub symbol: &'a str,
    /// The address of its first byte.
    pub address: u64,
    /// The readable bytes from there on; they may go beyond the function.
    pub bytes: &'a [u8],
    /// Its length, where a symbol table tells.
    pub size: Option<usize>,
}

impl Function<'_> {
    /// A refusal that carries this function's name, address and first bytes.
    #[must_use]
    pub fn refusal(&self, reason: Reason) -> Refusal {
        Refusal {
            symbol: self.symbol.to_owned(),
            address: self.address,
            bytes: self.bytes[..self.bytes.len().min(16)].to_vec(),
            instruction: None,
            reason,
        }
    }

    /// The same, naming the instruction that stands in the way.
    #[must_use]
    pub fn refusal_at(&self, instruction: &Instruction, reason: Reason) -> Refusal {
        Refusal { instruction: Some(format!("{:?}", instruction.code())), ..self.refusal(reason) }
    }

    /// The bytes that belong to the function, as far as anybody can see.
    fn body(&self) -> &[u8] {
        let length = self.size.unwrap_or(VISIBLE).min(VISIBLE).min(self.bytes.len());
        &self.bytes[..length]
    }
}

/// An instruction that has to move.
#[derive(Debug, Clone)]
pub struct Moved {
    /// Decoded, with its old address.
    pub instruction: Instruction,
    /// As it was.
    pub bytes: Vec<u8>,
    /// Where its displacement is.
    pub constants: ConstantOffsets,
}

/// An instruction that began inside the replaced bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundary {
    /// Counted from the first replaced byte; never 0.
    pub offset: usize,
    /// The instruction's place among those that move.
    pub index: usize,
    /// A call stands before it, so it is a return address as well.
    pub after_call: bool,
}

/// The opening of a function: what has to move for a jump of a given length.
#[derive(Debug, Clone)]
pub struct Prologue<'a> {
    /// The function it opens.
    pub function: Function<'a>,
    /// The length of the `endbr64` that stays at the entry: 4 or 0.
    pub landing_pad: usize,
    /// The length of the jump.
    pub jump: usize,
    /// Whole instructions, at least as long as the jump together.
    pub moved: Vec<Moved>,
    /// Their length together.
    pub length: usize,
}

impl<'a> Prologue<'a> {
    /// Decodes what a jump of `jump` bytes would replace.
    pub fn analyse(function: Function<'a>, jump: usize) -> Result<Self, Refusal> {
        let mut prologue = Self { function, landing_pad: 0, jump, moved: Vec::new(), length: 0 };
        if decode(function, function.address).is_some_and(|first| first.code() == Code::Endbr64) {
            prologue.landing_pad = 4;
        }
        if let Some(size) = function.size
            && size < prologue.landing_pad + jump
        {
            let length = size.saturating_sub(prologue.landing_pad);
            return Err(function.refusal(Reason::TooShort { length, needed: jump }));
        }
        prologue.collect()?;
        prologue.refuse_own_address()?;
        prologue.refuse_branches_into()?;
        Ok(prologue)
    }

    /// The address of the first replaced byte.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.function.address + self.landing_pad as u64
    }

    /// The address behind the last instruction that moves.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start() + self.length as u64
    }

    /// The former instruction boundaries inside the replaced bytes.
    #[must_use]
    pub fn boundaries(&self) -> Vec<Boundary> {
        let starts = self.moved.iter().map(|moved| moved.instruction.ip() - self.start());
        starts
            .enumerate()
            .skip(1)
            .map(|(index, offset)| Boundary {
                offset: offset as usize,
                index,
                after_call: is_call(&self.moved[index - 1].instruction),
            })
            .filter(|boundary| boundary.offset < self.jump)
            .collect()
    }

    /// The place among the moved instructions that an address stands for, if
    /// it does: the entry counts as the first of them.
    #[must_use]
    pub fn index_of(&self, address: u64) -> Option<usize> {
        if address == self.function.address {
            return Some(0);
        }
        self.moved.iter().position(|moved| moved.instruction.ip() == address)
    }

    fn collect(&mut self) -> Result<(), Refusal> {
        let function = self.function;
        while self.length < self.jump {
            let at = self.end();
            let offset = (at - function.address) as usize;
            let available = function.bytes.len().saturating_sub(offset);
            let Some((instruction, constants)) = decode_with_offsets(function, at) else {
                let reason = if runs_out(&function.bytes[offset.min(function.bytes.len())..]) {
                    Reason::EndOfMemory {
                        length: function.bytes.len(),
                        needed: offset + available + 1,
                    }
                } else {
                    Reason::Undecodable { offset }
                };
                return Err(function.refusal(reason));
            };
            match instruction.flow_control() {
                FlowControl::Interrupt if is_breakpoint(&instruction) => {
                    return Err(function.refusal_at(&instruction, Reason::Breakpoint { offset }));
                }
                FlowControl::Exception => {
                    return Err(function.refusal_at(&instruction, Reason::Undecodable { offset }));
                }
                _ => {}
            }
            self.length += instruction.len();
            self.moved.push(Moved {
                instruction,
                bytes: function.bytes[offset..offset + instruction.len()].to_vec(),
                constants,
            });
            let short = self.length < self.jump;
            if short && ends_flow(&instruction) && !self.may_use_what_follows(&instruction) {
                let reason = Reason::TooShort { length: self.length, needed: self.jump };
                return Err(function.refusal_at(&instruction, reason));
            }
            if short && ends_flow(&instruction) {
                // What follows is nobody's code: it is replaced and not moved.
                self.length = self.jump;
            }
        }
        Ok(())
    }

    /// Behind a jump at the entry: true if the bytes up to the end of ours are
    /// the function's own, or padding. (Whether the function still branches
    /// there is looked at afterwards.)
    fn may_use_what_follows(&self, last: &Instruction) -> bool {
        if last.flow_control() != FlowControl::UnconditionalBranch || self.moved.len() != 1 {
            return false;
        }
        let start = self.landing_pad + self.length;
        let end = self.landing_pad + self.jump;
        if self.function.size.is_some() {
            // `analyse` has seen that the jump fits into the function.
            return self.function.bytes.len() >= end;
        }
        let mut at = self.function.address + start as u64;
        while at < self.function.address + end as u64 {
            match decode(self.function, at) {
                Some(padding)
                    if matches!(
                        padding.mnemonic(),
                        iced_x86::Mnemonic::Nop | iced_x86::Mnemonic::Int3
                    ) =>
                {
                    at = padding.next_ip();
                }
                _ => return false,
            }
        }
        true
    }

    fn refuse_own_address(&self) -> Result<(), Refusal> {
        for moved in &self.moved {
            let instruction = &moved.instruction;
            if !instruction.is_call_near() {
                continue;
            }
            let target = instruction.near_branch_target();
            let inside = target > self.start() && target < self.end();
            if inside || target == instruction.next_ip() {
                let offset = (instruction.ip() - self.function.address) as usize;
                return Err(self
                    .function
                    .refusal_at(instruction, Reason::ReadsOwnAddress { offset }));
            }
        }
        Ok(())
    }

    /// Follows the function's flow as far as it can be seen, and refuses if it
    /// comes back to the replaced bytes.
    fn refuse_branches_into(&self) -> Result<(), Refusal> {
        for moved in &self.moved {
            let target = branch_target(&moved.instruction);
            let own = target.is_none_or(|target| {
                target < self.function.address
                    || target >= self.end()
                    || self.index_of(target).is_some()
            });
            if !own {
                return Err(self.branch_into(&moved.instruction));
            }
        }
        if !may_branch_into(self.function.body(), self.landing_pad + self.jump) {
            return Ok(());
        }
        let body = self.function.body().len() as u64;
        let visible = self.end()..self.function.address + body;
        let mut waiting: Vec<u64> =
            self.moved.iter().filter_map(|moved| branch_target(&moved.instruction)).collect();
        if self.moved.last().is_none_or(|last| !ends_flow(&last.instruction)) {
            waiting.push(self.end());
        }
        let mut seen = std::collections::BTreeSet::new();
        while let Some(at) = waiting.pop() {
            if !visible.contains(&at) || !seen.insert(at) {
                continue;
            }
            let Some(instruction) = decode(self.function, at) else { continue };
            if let Some(target) = branch_target(&instruction) {
                if target >= self.function.address && target < self.start() + self.jump as u64 {
                    return Err(self.branch_into(&instruction));
                }
                waiting.push(target);
            }
            if !ends_flow(&instruction) {
                waiting.push(instruction.next_ip());
            }
        }
        Ok(())
    }

    fn branch_into(&self, instruction: &Instruction) -> Refusal {
        let offset = |address: u64| address.wrapping_sub(self.function.address).cast_signed();
        let reason = Reason::BranchInto {
            from: offset(instruction.ip()),
            to: offset(instruction.near_branch_target()),
        };
        self.function.refusal_at(instruction, reason)
    }
}

/// Whether some byte of `body` could begin a branch to its first `length` bytes, were it an
/// instruction. Hardly ever; so the body of most functions need not be decoded.
fn may_branch_into(body: &[u8], length: usize) -> bool {
    let inside = |next: usize, displacement: i32| {
        let target = next as i64 + i64::from(displacement);
        (0..length as i64).contains(&target)
    };
    let long = |at: usize| {
        let bytes = body.get(at..).and_then(|rest| rest.first_chunk());
        bytes.is_some_and(|bytes| inside(at + 4, i32::from_le_bytes(*bytes)))
    };
    body.iter().enumerate().any(|(at, byte)| match byte {
        0x70..=0x7f | 0xe0..=0xe3 | 0xeb => {
            body.get(at + 1).is_some_and(|short| inside(at + 2, short.cast_signed().into()))
        }
        0xe9 => long(at + 1),
        0x0f => matches!(body.get(at + 1), Some(0x80..=0x8f)) && long(at + 2),
        _ => false,
    })
}

fn decode(function: Function<'_>, at: u64) -> Option<Instruction> {
    decode_with_offsets(function, at).map(|(instruction, _)| instruction)
}

fn decode_with_offsets(function: Function<'_>, at: u64) -> Option<(Instruction, ConstantOffsets)> {
    let offset = usize::try_from(at.checked_sub(function.address)?).ok()?;
    let bytes = function.bytes.get(offset..)?;
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then(|| (instruction, decoder.get_constant_offsets(&instruction)))
}

/// True if the bytes end before the instruction that they begin.
fn runs_out(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let _ = decoder.decode();
    decoder.last_error() == DecoderError::NoMoreBytes
}

/// A call that comes back to the instruction behind it.
pub(super) fn is_call(instruction: &Instruction) -> bool {
    instruction.is_call_near()
        || instruction.is_call_far()
        || instruction.flow_control() == FlowControl::IndirectCall
}

/// The target of a jump that is not a call, if it stands in the instruction.
fn branch_target(instruction: &Instruction) -> Option<u64> {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
    )
    .then(|| instruction.near_branch_target())
}

fn ends_flow(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Exception
    )
}

fn is_breakpoint(instruction: &Instruction) -> bool {
    matches!(instruction.code(), Code::Int3 | Code::Int1)
}

/// Decodes and re-encodes one instruction, so that the tables behind that exist.
pub fn warm_up() {
    // `lea rax, [rip]` has an operand that a move changes.
    const LEA: [u8; 7] = [0x48, 0x8d, 0x05, 0, 0, 0, 0];
    let instruction = Decoder::with_ip(64, &LEA, 0x1000, DecoderOptions::NONE).decode();
    let encoded = Encoder::new(64).encode(&instruction, 0x1000);
    debug_assert_eq!(encoded.ok(), Some(LEA.len()));
}

#[cfg(test)]
mod tests;
