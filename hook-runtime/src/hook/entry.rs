//! Patching entries: what [`install`](super::install) needs of the engine in `patch`, and
//! plain answers in a build that has none.

use crate::hook::original::Target;

/// A driver function whose entry is to lead to its replacement.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The symbol.
    pub target: &'static Target,
    /// Where the function is.
    pub address: usize,
    /// How long it is, if the symbol table says.
    pub size: Option<usize>,
}

impl Entry {
    /// Whether it leads to its replacement already.
    pub fn is_patched(&self) -> bool {
        let originals = self.target.originals;
        let place = originals.place_of(self.address);
        place.is_some_and(|place| originals.is_detoured(place))
    }
}

/// Why an entry was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The symbol.
    pub symbol: &'static str,
    /// Where it is.
    pub address: usize,
    /// The reason, in words.
    pub reason: String,
    /// Whether trying again would end the same way.
    pub for_good: bool,
}

#[cfg(bistro_hooks)]
mod engine {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::{Entry, Refused};
    use crate::hook::original::Target;
    use crate::patch::{self, Options, Patched, Reason, Refusal, Transaction};

    impl Refused {
        fn new(symbol: &'static str, refusal: &Refusal) -> Self {
            let passing = matches!(
                refusal.reason,
                Reason::NotQuiescent { .. }
                    | Reason::SignalBlocked { .. }
                    | Reason::Busy
                    | Reason::Policy(_)
                    | Reason::System { .. }
            );
            let address = refusal.address as usize;
            Self { symbol, address, reason: refusal.to_string(), for_good: !passing }
        }
    }

    /// The patches in force. Held while entries are patched, too, so that no two threads
    /// patch the same one; the loader is never called meanwhile.
    static PATCHED: Mutex<Vec<One>> = Mutex::new(Vec::new());

    struct One {
        target: &'static Target,
        place: usize,
        patched: Patched,
    }

    fn lock() -> MutexGuard<'static, Vec<One>> {
        PATCHED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The patches in force, locked.
    pub struct Unchanging(
        #[expect(dead_code, reason = "it is held")] MutexGuard<'static, Vec<One>>,
    );

    /// Keeps them as they are until the result is dropped.
    pub fn lock_for_fork() -> Unchanging {
        Unchanging(lock())
    }

    /// Whether this build can patch code.
    pub fn is_available() -> bool {
        patch::SUPPORTED
    }

    /// Patches the `entries` that are not patched yet, all in one go.
    ///
    /// # Safety
    ///
    /// Each is the start of the function that its target names, in an object that stays
    /// loaded for ever.
    pub unsafe fn patch(entries: &[Entry], force_far: bool) -> Vec<Refused> {
        let mut in_force = lock();
        let mut refused = Vec::new();
        let mut prepared = Vec::new();
        let mut transaction = Transaction::with(Options { force_far, ..Options::default() });
        for entry in entries {
            let &Entry { target, address, size } = entry;
            let originals = target.originals;
            if entry.is_patched() {
                continue;
            }
            let symbol = target.name();
            let Some(place) = originals.reserve(address) else {
                let reason = "too many different functions of this name are loaded".to_owned();
                refused.push(Refused { symbol, address, reason, for_good: false });
                continue;
            };
            let replacement = target.replacements[place].address();
            let function = patch::Target { name: symbol, address, size, replacement };
            // SAFETY: the caller's promise; the replacement has the function's own signature.
            match unsafe { transaction.add(function) } {
                Ok(ready) => prepared.push((target, place, symbol, address, ready.trampoline)),
                Err(refusal) => {
                    originals.abandon(place);
                    refused.push(Refused::new(symbol, &refusal));
                }
            }
        }
        let callable = transaction.seal();
        for (target, place, _, address, trampoline) in prepared.iter().filter(|_| callable) {
            // Nothing leads to this copy of the replacement before the commit; but a thread
            // may still be in it since the entry was patched before.
            target.originals.detour(*place, *address, *trampoline);
        }
        let outcomes = transaction.commit();
        for ((target, place, symbol, ..), outcome) in prepared.into_iter().zip(outcomes) {
            match outcome {
                Ok(patched) => in_force.push(One { target, place, patched }),
                Err(refusal) => {
                    target.originals.abandon(place);
                    refused.push(Refused::new(symbol, &refusal));
                }
            }
        }
        refused
    }

    /// Gives all patched entries their instructions back.
    pub fn restore() -> Vec<Refused> {
        let mut in_force = lock();
        let patched: Vec<_> = in_force.iter().map(|one| one.patched).collect();
        let mut outcomes = patch::restore(&patched).into_iter();
        let mut refused = Vec::new();
        in_force.retain(|one| match outcomes.next() {
            Some(Err(refusal)) => {
                refused.push(Refused::new(one.target.name(), &refusal));
                true
            }
            _ => {
                one.target.originals.retire(one.place);
                false
            }
        });
        refused
    }
}

#[cfg(not(bistro_hooks))]
mod engine {
    use super::{Entry, Refused};

    /// Nothing to be kept.
    pub struct Unchanging(());

    /// Keeps nothing.
    pub fn lock_for_fork() -> Unchanging {
        Unchanging(())
    }

    /// Whether this build can patch code.
    pub fn is_available() -> bool {
        false
    }

    /// Patches nothing.
    ///
    /// # Safety
    ///
    /// None is needed.
    pub unsafe fn patch(_: &[Entry], _: bool) -> Vec<Refused> {
        Vec::new()
    }

    /// Restores nothing, since nothing is patched.
    pub fn restore() -> Vec<Refused> {
        Vec::new()
    }
}

pub use engine::{Unchanging, is_available, lock_for_fork, patch, restore};
