//! Why a function is not patched, with everything needed to understand it.

use std::fmt;

/// A function that is left as it is, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The function's name.
    pub symbol: String,
    /// Its address.
    pub address: u64,
    /// The bytes that were found at its entry.
    pub bytes: Vec<u8>,
    /// The instruction that stands in the way, if it is one.
    pub instruction: Option<String>,
    /// What stands in the way.
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot patch `{}` at {:#x}: {}", self.symbol, self.address, self.reason)?;
        if let Some(instruction) = &self.instruction {
            write!(f, " (`{instruction}`)")?;
        }
        if !self.bytes.is_empty() {
            write!(f, "; its code begins with `{}`", hex(&self.bytes))?;
        }
        Ok(())
    }
}

/// Bytes as two-digit numbers with blanks between them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// What stands in the way of a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The function ends before the jump would.
    #[error("the function ends after {length} bytes, and the jump needs {needed}")]
    TooShort {
        /// The bytes that belong to the function, the landing pad not counted.
        length: usize,
        /// The bytes that the jump takes.
        needed: usize,
    },
    /// The readable memory ends before the instructions that have to move.
    #[error("the memory at the function ends after {length} bytes, and {needed} are needed")]
    EndOfMemory {
        /// The bytes that can be read.
        length: usize,
        /// The bytes that are needed.
        needed: usize,
    },
    /// Not an instruction.
    #[error("no valid instruction at byte {offset}")]
    Undecodable {
        /// Counted from the function's entry.
        offset: usize,
    },
    /// Somebody's breakpoint: what it stands for cannot be known.
    #[error("a breakpoint instruction at byte {offset}")]
    Breakpoint {
        /// Counted from the function's entry.
        offset: usize,
    },
    /// The function jumps back to where the jump would be.
    #[error("the function branches from byte {from} back to byte {to}, into the replaced bytes")]
    BranchInto {
        /// Where the branch is, counted from the function's entry.
        from: i64,
        /// Where it goes, likewise.
        to: i64,
    },
    /// A call whose return address is what the function wants.
    #[error("a call at byte {offset} to the instruction behind it reads its own address")]
    ReadsOwnAddress {
        /// Counted from the function's entry.
        offset: usize,
    },
    /// An instruction that means something else at another address.
    #[error("the instruction at byte {offset} cannot be moved to {to:#x}")]
    Untranslatable {
        /// Counted from the function's entry.
        offset: usize,
        /// Where it would have gone.
        to: u64,
    },
    /// A call among the replaced bytes: threads may return into them.
    #[error("threads may return from a call to byte {offset}, inside the replaced bytes")]
    ReturnInside {
        /// Counted from the first replaced byte.
        offset: usize,
    },
    /// The address is not in readable and executable memory.
    #[error("the address is not in readable, executable memory")]
    NotCode,
    /// The mapping is shared: a write would change the file.
    #[error("the code is a shared mapping, and a write would reach the file")]
    SharedMapping,
    /// No memory where code could be put.
    #[error("no memory could be had for the moved instructions")]
    NoMemory,
    /// The function carries a hook of ours already.
    #[error("the function is already hooked")]
    AlreadyHooked,
    /// This thread is already in a transaction.
    #[error("this thread has another transaction under way")]
    Busy,
    /// A policy of the system forbids it.
    #[error("{0}")]
    Policy(String),
    /// A thread may still be inside the replaced bytes.
    #[error(
        "some thread may still be inside the replaced bytes after {milliseconds} ms of waiting"
    )]
    NotQuiescent {
        /// How long was waited.
        milliseconds: u128,
    },
    /// Threads block the signal that the protocol needs.
    #[error("thread {thread} blocks SIGTRAP, and the code cannot be changed by one store")]
    SignalBlocked {
        /// The kernel's number of the thread.
        thread: u32,
    },
    /// The bytes at the address are not those that were left there.
    #[error("the code was changed by somebody else since it was patched")]
    ChangedByOthers,
    /// A system call failed halfway.
    #[error("{what} failed: {error}")]
    System {
        /// What was called, for what.
        what: &'static str,
        /// The kernel's answer.
        error: String,
    },
    /// This processor has no code patching here.
    #[error("code patching exists for x86_64 alone; relocation hooks work here")]
    Processor,
}
