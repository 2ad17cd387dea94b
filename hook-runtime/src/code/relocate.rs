//! Instructions at another address, meaning the same.
//!
//! Each instruction is translated by itself, so that the place of every one of
//! them in the result is known (a thread that was stopped before it is sent on
//! there). iced-x86 decodes, and encodes where an operand changes its form; its
//! block encoder is not used because it does not tell the places of what it rewrites.
//!
//! | instruction | target within 2 GiB of the new place | further away |
//! |---|---|---|
//! | without a relative part | as it is | as it is |
//! | operand relative to `rip` | new displacement | through a register that is saved below the red zone |
//! | `jmp`, `call` | 32-bit displacement | through the address behind the instruction |
//! | `jcc`, `loop`, `jrcxz` | 32-bit displacement, or around a jump | around a jump through the address |
//! | `jmp`, `call`, `push`, `pop` through memory relative to `rip` | new displacement | through `r11`, if nothing that moves uses it |

use iced_x86::{Code, Encoder, FlowControl, Instruction, InstructionInfoFactory, Register};

use super::prologue::{Moved, Prologue};
use super::{Reason, Refusal, jump};

/// The most that one moved instruction can take.
const LONGEST: usize = 48;

/// How far the end of a trampoline may be from its beginning when it is decided
/// whether a target is in reach.
const SLACK: u64 = 1 << 12;

/// Moved instructions, followed by a jump back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocated {
    /// The code.
    pub bytes: Vec<u8>,
    /// Where each instruction is in it.
    pub offsets: Vec<usize>,
}

/// The room that a relocation may need.
#[must_use]
pub fn room(prologue: &Prologue<'_>) -> usize {
    prologue.landing_pad + prologue.moved.len() * LONGEST + jump::INDIRECT
}

/// The addresses from which everything that the instructions refer to is within
/// reach, so that nothing has to be translated; `None` if there are none.
#[must_use]
pub fn window(prologue: &Prologue<'_>) -> Option<std::ops::Range<u64>> {
    let reach = (1 << 31) - 2 * SLACK;
    let mut window = 0..u64::MAX;
    for target in references(prologue).chain([prologue.end()]) {
        window.start = window.start.max(target.saturating_sub(reach));
        window.end = window.end.min(target.saturating_add(reach));
    }
    (window.start < window.end).then_some(window)
}

/// The absolute addresses outside of the moved instructions that they name.
pub fn references<'p>(prologue: &'p Prologue<'_>) -> impl Iterator<Item = u64> + 'p {
    prologue.moved.iter().filter_map(|moved| match relative_part(&moved.instruction) {
        Relative::Branch(target) if !is_inside(prologue, &moved.instruction, target) => {
            Some(target)
        }
        Relative::Memory(target) => Some(target),
        _ => None,
    })
}

/// Moves the instructions of a prologue to `at`.
pub fn relocate(prologue: &Prologue<'_>, at: u64) -> Result<Relocated, Refusal> {
    // An indirect call must find a landing pad where the function had one.
    let pad = if prologue.landing_pad > 0 {
        &prologue.function.bytes[..prologue.landing_pad]
    } else {
        &[]
    };
    let mut pieces = Vec::with_capacity(prologue.moved.len());
    for moved in &prologue.moved {
        let piece = translate(prologue, moved, at).ok_or_else(|| {
            let offset = (moved.instruction.ip() - prologue.function.address) as usize;
            prologue
                .function
                .refusal_at(&moved.instruction, Reason::Untranslatable { offset, to: at })
        })?;
        pieces.push(piece);
    }
    let offsets: Vec<usize> = pieces
        .iter()
        .scan(pad.len(), |next, piece| Some(std::mem::replace(next, *next + piece.bytes.len())))
        .collect();
    let mut bytes = pad.to_vec();
    for piece in pieces {
        let start = bytes.len();
        bytes.extend_from_slice(&piece.bytes);
        let Some(fix) = piece.fix else { continue };
        let target = match fix.target {
            Target::Address(target) => target,
            Target::Moved(index) => at + offsets[index] as u64,
        };
        let next = at + (start + fix.next) as u64;
        let displacement = jump::displacement(next, target).unwrap_or_default();
        bytes[start + fix.offset..][..4].copy_from_slice(&displacement.to_le_bytes());
    }
    let back = at + bytes.len() as u64;
    match jump::near(back, prologue.end()).filter(|_| is_near(at, prologue.end())) {
        Some(near) => bytes.extend_from_slice(&near),
        None => bytes.extend_from_slice(&jump::indirect(prologue.end())),
    }
    Ok(Relocated { bytes, offsets })
}

/// The part of an instruction that depends on its address.
enum Relative {
    None,
    Branch(u64),
    Memory(u64),
}

fn relative_part(instruction: &Instruction) -> Relative {
    if instruction.is_ip_rel_memory_operand() {
        return Relative::Memory(instruction.ip_rel_memory_address());
    }
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            Relative::Branch(instruction.near_branch_target())
        }
        FlowControl::Call if instruction.is_call_near() => {
            Relative::Branch(instruction.near_branch_target())
        }
        _ => Relative::None,
    }
}

/// True if a branch stays among the moved instructions. A call to the
/// function's own entry does not: a recursion goes through the hook.
fn is_inside(prologue: &Prologue<'_>, instruction: &Instruction, target: u64) -> bool {
    !instruction.is_call_near() && prologue.index_of(target).is_some()
}

fn is_near(at: u64, target: u64) -> bool {
    at.abs_diff(target) < (1 << 31) - SLACK
}

/// Where a branch goes.
#[derive(Clone, Copy)]
enum Target {
    Address(u64),
    /// To a moved instruction, by its place.
    Moved(usize),
}

/// A 32-bit displacement that is filled in when all lengths are known.
struct Fix {
    /// Where it stands in the piece.
    offset: usize,
    /// The end of its instruction, from which it counts.
    next: usize,
    target: Target,
}

/// One instruction in its new form.
struct Piece {
    bytes: Vec<u8>,
    fix: Option<Fix>,
}

impl Piece {
    fn plain(bytes: Vec<u8>) -> Self {
        Self { bytes, fix: None }
    }

    /// `head`, and a displacement at its end.
    fn with_displacement(head: &[u8], target: Target) -> Self {
        let mut bytes = head.to_vec();
        let offset = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        Self { fix: Some(Fix { offset, next: bytes.len(), target }), bytes }
    }
}

fn translate(prologue: &Prologue<'_>, moved: &Moved, at: u64) -> Option<Piece> {
    let instruction = &moved.instruction;
    if instruction.flow_control() == FlowControl::XbeginXabortXend
        && instruction.code() != Code::Xend
    {
        return None;
    }
    match relative_part(instruction) {
        Relative::None => Some(Piece::plain(moved.bytes.clone())),
        Relative::Branch(target) => translate_branch(prologue, moved, at, target),
        Relative::Memory(target) => translate_memory(prologue, moved, at, target),
    }
}

fn translate_branch(
    prologue: &Prologue<'_>,
    moved: &Moved,
    at: u64,
    address: u64,
) -> Option<Piece> {
    let instruction = &moved.instruction;
    let inside = prologue.index_of(address).filter(|_| is_inside(prologue, instruction, address));
    let target = inside.map_or(Target::Address(address), Target::Moved);
    let near = inside.is_some() || is_near(at, address);
    if instruction.is_call_near() {
        return Some(if near {
            Piece::with_displacement(&[0xe8], target)
        } else {
            // `call [rip + 2]`, and a jump over the address when it comes back.
            let mut bytes = vec![0xff, 0x15, 2, 0, 0, 0, 0xeb, 8];
            bytes.extend_from_slice(&address.to_le_bytes());
            Piece::plain(bytes)
        });
    }
    if instruction.is_jmp_short_or_near() {
        return Some(if near {
            Piece::with_displacement(&[0xe9], target)
        } else {
            Piece::plain(jump::indirect(address).to_vec())
        });
    }
    if instruction.is_jcc_short_or_near() {
        // The low four bits of the opcode are the condition, in both forms.
        let opcode = match moved.bytes.iter().position(|byte| *byte == 0x0f) {
            Some(escape) if instruction.is_jcc_near() => *moved.bytes.get(escape + 1)?,
            _ => *moved.bytes.get(moved.bytes.len() - 2)?,
        };
        let condition = opcode & 0x0f;
        return Some(if near {
            Piece::with_displacement(&[0x0f, 0x80 | condition], target)
        } else {
            let mut bytes = vec![0x70 | condition ^ 1, jump::INDIRECT as u8];
            bytes.extend_from_slice(&jump::indirect(address));
            Piece::plain(bytes)
        });
    }
    // `loop` and `jrcxz` have no long form: if taken, they skip the jump over the jump.
    let (_, head) = moved.bytes.split_last()?;
    let mut bytes = head.to_vec();
    if near {
        bytes.extend_from_slice(&[2, 0xeb, jump::NEAR as u8, 0xe9]);
        return Some(Piece::with_displacement(&bytes, target));
    }
    bytes.extend_from_slice(&[2, 0xeb, jump::INDIRECT as u8]);
    bytes.extend_from_slice(&jump::indirect(address));
    Some(Piece::plain(bytes))
}

fn translate_memory(prologue: &Prologue<'_>, moved: &Moved, at: u64, target: u64) -> Option<Piece> {
    let instruction = &moved.instruction;
    if instruction.memory_base() != Register::RIP {
        return None;
    }
    if is_near(at, target) {
        let bytes = moved.bytes.clone();
        let offset =
            moved.constants.has_displacement().then(|| moved.constants.displacement_offset())?;
        let fix = Fix { offset, next: bytes.len(), target: Target::Address(target) };
        return Some(Piece { bytes, fix: Some(fix) });
    }
    let uses = |register: Register, instruction: &Instruction| {
        let mut factory = InstructionInfoFactory::new();
        factory
            .info(instruction)
            .used_registers()
            .iter()
            .any(|used| used.register().full_register() == register)
    };
    if uses(Register::RSP, instruction) || instruction.flow_control() == FlowControl::IndirectBranch
    {
        // `r11` holds nothing at a function's entry, and nothing for the
        // function that a jump leads to.
        if prologue.moved.iter().any(|moved| uses(Register::R11, &moved.instruction)) {
            return None;
        }
        let mut bytes = load_address(Register::R11, target)?;
        bytes.extend(encode(&through(instruction, Register::R11))?);
        return Some(Piece::plain(bytes));
    }
    // Any register that the instruction does not name, saved below the red zone.
    [Register::RAX, Register::RCX, Register::RDX, Register::RSI, Register::RDI, Register::RBX]
        .into_iter()
        .filter(|register| !uses(*register, instruction))
        .find_map(|register| {
            let mut bytes = vec![0x48, 0x8d, 0x64, 0x24, 0x80]; // lea rsp, [rsp - 128]
            bytes.push(0x50 | register.number() as u8); // push
            bytes.extend(load_address(register, target)?);
            bytes.extend(encode(&through(instruction, register))?);
            bytes.push(0x58 | register.number() as u8); // pop
            bytes.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
            Some(Piece::plain(bytes))
        })
}

/// `movabs register, address`.
fn load_address(register: Register, address: u64) -> Option<Vec<u8>> {
    encode(&Instruction::with2(Code::Mov_r64_imm64, register, address).ok()?)
}

/// The instruction with its operand where `base` points.
fn through(instruction: &Instruction, base: Register) -> Instruction {
    let mut through = *instruction;
    through.set_memory_base(base);
    through.set_memory_displacement64(0);
    through.set_memory_displ_size(0);
    through
}

fn encode(instruction: &Instruction) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, 0).ok()?;
    Some(encoder.take_buffer())
}

#[cfg(test)]
mod tests;
