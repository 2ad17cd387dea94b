//! Processors other than x86_64: the same interface, and a plain no.

use super::{Reason, Refusal, Target};

/// See the form for x86_64.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// No effect here.
    pub force_far: bool,
}

/// Never made here.
#[derive(Debug, Clone, Copy)]
pub struct Prepared {
    /// The original function.
    pub trampoline: usize,
    /// How the function will be patched.
    pub strategy: Strategy,
}

/// Never made here.
#[derive(Debug, Clone, Copy)]
pub enum Patched {}

/// Never made here.
#[derive(Debug, Clone, Copy)]
pub enum Strategy {}

/// A transaction that refuses every target.
#[derive(Debug, Default)]
pub struct Transaction(());

impl Transaction {
    /// An empty transaction.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }

    /// The same; no option has an effect here.
    #[must_use]
    pub fn with(_options: Options) -> Self {
        Self(())
    }

    /// Refuses.
    ///
    /// # Safety
    ///
    /// None is needed here.
    pub unsafe fn add(&mut self, target: Target<'_>) -> Result<Prepared, Refusal> {
        Err(Refusal {
            symbol: target.name.to_owned(),
            address: target.address as u64,
            bytes: Vec::new(),
            instruction: None,
            reason: Reason::Processor,
        })
    }

    /// Nothing to do.
    pub fn seal(&mut self) -> bool {
        false
    }

    /// Nothing to do.
    #[must_use]
    pub fn commit(self) -> Vec<Result<Patched, Refusal>> {
        Vec::new()
    }
}

/// Nothing to do.
#[must_use]
pub fn restore(_patched: &[Patched]) -> Vec<Result<(), Refusal>> {
    Vec::new()
}

/// Nothing has to be prepared where nothing can be patched.
pub const fn prepare() {}
