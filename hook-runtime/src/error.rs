//! What can go wrong while hooks are put in place.

/// A failure that concerns the installation as a whole. What concerns a single
/// symbol is an attempt in the [`Coverage`](crate::Coverage) report instead, since
/// one symbol's failure never stops the others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// Hooks are switched off.
    #[error("hooks are switched off by `{variable}=none`")]
    SwitchedOff {
        /// The variable that says so.
        variable: &'static str,
    },
    /// A mechanism was asked for that this build or processor does not have.
    #[error(
        "none of the hook mechanisms asked for (`{asked}`) exists in this build for {processor}"
    )]
    NoMechanism {
        /// What was asked for.
        asked: String,
        /// The processor.
        processor: &'static str,
    },
    /// The trace file cannot be opened.
    #[error("cannot open the trace file `{path}`: {source}")]
    Trace {
        /// Its name.
        path: String,
        /// What the kernel said.
        source: std::io::Error,
    },
}
