//! The decision for one function: which bytes become which, where its
//! trampoline and its island go, and why no thread can be hurt.
//!
//! Pure: memory is asked for through [`Space`], and what is decided is data.

use std::fmt;
use std::ops::Range;

use crate::code::prologue::{Boundary, Function, Prologue};
use crate::code::pun::{INT3, Search, Traps};
use crate::code::{Reason, Refusal, jump, relocate};

/// Free memory for code, which the plan takes pieces of.
pub trait Space {
    /// Room for an indirect jump where the search allows it.
    fn island(&mut self, search: &Search) -> Option<u64>;
    /// Room for `length` bytes within a window.
    fn trampoline(&mut self, window: Range<u64>, length: usize) -> Option<u64>;
}

/// The jump at the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Five bytes, straight to the replacement.
    Near,
    /// Five bytes, to an island near the function, which jumps to the replacement.
    Island,
    /// Twelve bytes, through `rax`.
    Far,
}

/// Why no thread is hurt that was stopped inside the replaced bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inside {
    /// No instruction began inside them.
    Nothing,
    /// Traps stand where instructions began.
    Trapped {
        /// The places, counted from the first replaced byte, and the trap at each.
        traps: Vec<(usize, u8)>,
    },
    /// It is waited until no thread is there.
    Waited,
}

/// How the bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// By one store into one aligned word.
    OneStore,
    /// In stages, with `int3` at the entry meanwhile.
    Staged,
    /// By one locked store of sixteen aligned bytes: in place of stages, where
    /// some thread blocks the signal that they need.
    WideStore,
    /// With the whole page, by mapping a patched copy over it.
    WholePage,
}

/// How a function is patched: what a coverage report shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strategy {
    /// The jump.
    pub form: Form,
    /// Why nobody is hurt inside.
    pub inside: Inside,
    /// How it is written.
    pub write: Write,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.form {
            Form::Near => "near jump",
            Form::Island => "near jump through an island",
            Form::Far => "far jump",
        })?;
        match &self.inside {
            Inside::Nothing => f.write_str(", nothing inside")?,
            Inside::Trapped { traps } => {
                f.write_str(", traps at")?;
                for (offset, byte) in traps {
                    write!(f, " +{offset}:{byte:02x}")?;
                }
            }
            Inside::Waited => f.write_str(", waited until nobody was inside")?,
        }
        f.write_str(match self.write {
            Write::OneStore => ", one store",
            Write::Staged => ", in stages",
            Write::WideStore => ", one store of sixteen bytes",
            Write::WholePage => ", with its page",
        })
    }
}

/// Everything that is to be done for one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The function's name.
    pub symbol: String,
    /// The function's address.
    pub target: u64,
    /// The address of the first replaced byte.
    pub start: u64,
    /// What stands there.
    pub old: Vec<u8>,
    /// What will.
    pub new: Vec<u8>,
    /// The instructions that moved: the patch fits only where they stand.
    pub moved: Vec<u8>,
    /// Where the original goes on living.
    pub trampoline: u64,
    /// The function that is called instead.
    pub replacement: u64,
    /// How, and why that is safe.
    pub strategy: Strategy,
    /// Where a thread goes that runs into a trap: trap, continuation.
    pub landings: Vec<(u64, u64)>,
    /// Code to be put in place before the patch: address, bytes.
    pub code: Vec<(u64, Vec<u8>)>,
}

/// Where the second instruction of the far form is.
const FAR_SECOND: usize = 10;

/// Plans the patch of one function. `force_far` leaves out the near forms.
pub fn plan(
    function: Function<'_>,
    replacement: u64,
    force_far: bool,
    space: &mut dyn Space,
) -> Result<Patch, Refusal> {
    if !force_far {
        let prologue = Prologue::analyse(function, jump::NEAR)?;
        if let Some(near) = near_jump(&prologue, replacement, space)? {
            return finish(&prologue, replacement, near, space);
        }
    }
    let prologue = Prologue::analyse(function, jump::FAR)?;
    let inside =
        if prologue.boundaries().is_empty() { Inside::Nothing } else { waited(&prologue)? };
    let far =
        Jump { bytes: jump::far(replacement).to_vec(), form: Form::Far, inside, island: None };
    finish(&prologue, replacement, far, space)
}

/// The jump, before the rest is known.
struct Jump {
    bytes: Vec<u8>,
    form: Form,
    inside: Inside,
    island: Option<u64>,
}

/// A five-byte jump; `None` where no memory within its reach is to be had.
fn near_jump(
    prologue: &Prologue<'_>,
    replacement: u64,
    space: &mut dyn Space,
) -> Result<Option<Jump>, Refusal> {
    let from = prologue.start();
    let boundaries = prologue.boundaries();
    let offsets: Vec<usize> = boundaries.iter().map(|boundary| boundary.offset).collect();
    let mut island = |inside: &[usize], traps| {
        let search = Search::new(from, inside, traps)?;
        let island = space.island(&search)?;
        jump::near(from, island).map(|bytes| (bytes, island))
    };
    if !boundaries.is_empty() {
        let trapped = island(&offsets, Traps::Int3).or_else(|| island(&offsets, Traps::All));
        if let Some((bytes, island)) = trapped {
            let traps = offsets.iter().map(|&offset| (offset, bytes[offset])).collect();
            let inside = Inside::Trapped { traps };
            return Ok(Some(Jump {
                bytes: bytes.to_vec(),
                form: Form::Island,
                inside,
                island: Some(island),
            }));
        }
    }
    let direct = jump::near(from, replacement).map(|bytes| (bytes, None));
    let Some((bytes, island)) =
        direct.or_else(|| island(&[], Traps::Int3).map(|(bytes, island)| (bytes, Some(island))))
    else {
        return Ok(None);
    };
    let inside = if boundaries.is_empty() { Inside::Nothing } else { waited(prologue)? };
    let form = if island.is_some() { Form::Island } else { Form::Near };
    Ok(Some(Jump { bytes: bytes.to_vec(), form, inside, island }))
}

/// Waiting is of no use for a thread that is in a call and will return inside.
fn waited(prologue: &Prologue<'_>) -> Result<Inside, Refusal> {
    match prologue.boundaries().iter().find(|boundary| boundary.after_call) {
        Some(&Boundary { offset, index, .. }) => {
            let call = &prologue.moved[index - 1].instruction;
            Err(prologue.function.refusal_at(call, Reason::ReturnInside { offset }))
        }
        None => Ok(Inside::Waited),
    }
}

/// Places the trampoline and completes the patch.
fn finish(
    prologue: &Prologue<'_>,
    replacement: u64,
    jump: Jump,
    space: &mut dyn Space,
) -> Result<Patch, Refusal> {
    let room = relocate::room(prologue);
    let trampoline = relocate::window(prologue)
        .and_then(|window| space.trampoline(window, room))
        .or_else(|| space.trampoline(0..u64::MAX, room))
        .ok_or_else(|| prologue.function.refusal(Reason::NoMemory))?;
    let relocated = relocate::relocate(prologue, trampoline)?;
    let start = prologue.start();
    let continuation = |index: usize| trampoline + relocated.offsets[index] as u64;
    let mut landings = vec![(start, continuation(0))];
    landings.extend(
        prologue
            .boundaries()
            .iter()
            .map(|boundary| (start + boundary.offset as u64, continuation(boundary.index))),
    );
    if jump.form == Form::Far {
        // While the far form is taken back, its second instruction is a trap, too.
        landings.retain(|(trap, _)| *trap != start + FAR_SECOND as u64);
        landings.push((start + FAR_SECOND as u64, replacement));
    }
    let length = jump.bytes.len();
    let one_store = start % 8 + length as u64 <= 8;
    let mut code = vec![(trampoline, relocated.bytes)];
    code.extend(jump.island.map(|island| (island, jump::indirect(replacement).to_vec())));
    let offset = prologue.landing_pad;
    Ok(Patch {
        symbol: prologue.function.symbol.to_owned(),
        target: prologue.function.address,
        start,
        old: prologue.function.bytes[offset..offset + length].to_vec(),
        new: jump.bytes,
        moved: prologue.moved.iter().flat_map(|moved| moved.bytes.iter().copied()).collect(),
        trampoline,
        replacement,
        strategy: Strategy {
            form: jump.form,
            inside: jump.inside,
            write: if one_store { Write::OneStore } else { Write::Staged },
        },
        landings,
        code,
    })
}

/// A change of bytes, in the order that keeps every thread safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Bytes that stand while the others are written: traps, the entry's first.
    /// Empty where one store does it all.
    pub hold: Vec<(u64, u8)>,
    /// After these have been written (and nobody is inside, if `wait` says so), the others.
    pub rest: Vec<(u64, Vec<u8>)>,
    /// At last, what the traps stood for; the entry's opens it, and comes after all others.
    pub last: Vec<(u64, u8)>,
    /// What the traps replaced, to go back.
    pub back: Vec<(u64, u8)>,
    /// The bytes that nobody may be inside of.
    pub wait: Option<Range<u64>>,
}

impl Steps {
    /// All bytes at once.
    #[must_use]
    pub fn at_once(start: u64, to: &[u8]) -> Self {
        let rest = vec![(start, to.to_vec())];
        Self { hold: Vec::new(), rest, last: Vec::new(), back: Vec::new(), wait: None }
    }
}

impl Patch {
    /// The steps that install the patch.
    #[must_use]
    pub fn install(&self) -> Steps {
        let mut hold = vec![(0, INT3)];
        if let Inside::Trapped { traps } = &self.strategy.inside {
            hold.extend_from_slice(traps);
        }
        self.steps(&self.old, &self.new, hold, self.strategy.inside == Inside::Waited)
    }

    /// The steps that take it back.
    #[must_use]
    pub fn remove(&self) -> Steps {
        let mut hold = vec![(0, INT3)];
        if let Inside::Trapped { traps } = &self.strategy.inside {
            hold.extend_from_slice(traps);
        }
        let far = self.strategy.form == Form::Far;
        if far {
            hold.push((FAR_SECOND, INT3));
        }
        // A jump of one instruction has no inside to be waited for.
        self.steps(&self.new, &self.old, hold, far)
    }

    fn steps(&self, from: &[u8], to: &[u8], hold: Vec<(usize, u8)>, wait: bool) -> Steps {
        let at = |offset: usize| self.start + offset as u64;
        let wait = wait.then(|| self.start + 1..self.start + to.len() as u64);
        if self.strategy.write == Write::OneStore && wait.is_none() {
            return Steps::at_once(self.start, to);
        }
        // Traps at boundaries serve threads that may yet come to them. Where it has been waited
        // until there are none, all but the entry's goes with the rest: a thread that enters
        // must find nothing of what stood there before.
        let held = |offset: &usize| hold.iter().any(|(held, _)| held == offset);
        let kept = |offset: &usize| *offset == 0 || held(offset) && wait.is_none();
        let rest = (0..to.len())
            .filter(|offset| !kept(offset))
            .map(|offset| (at(offset), vec![to[offset]]))
            .collect();
        Steps {
            rest,
            last: (0..to.len()).rev().filter(kept).map(|offset| (at(offset), to[offset])).collect(),
            back: hold.iter().map(|&(offset, _)| (at(offset), from[offset])).collect(),
            hold: hold.into_iter().map(|(offset, byte)| (at(offset), byte)).collect(),
            wait,
        }
    }
}

#[cfg(test)]
mod tests;
