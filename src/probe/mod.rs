//! Does this compile, does this link?
//!
//! A probe is a file under `probes/` and a row in [`catalog`]; [`compiler`]
//! runs it, [`control`] shows that its answer means something. Which probes
//! are run, in which order, and what follows, is the engine's business.

pub mod catalog;
pub mod compiler;
pub mod control;
mod diagnostics;
mod identity;
pub mod nvcc;

pub use compiler::{Compiler, Source, Trial};
pub use diagnostics::first_error_line;
pub(crate) use diagnostics::tidy;
