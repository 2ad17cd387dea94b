//! Does this compile, does this link?
//!
//! A probe is a file under `probes/` and a row in [`catalog`]; [`compiler`]
//! runs it, [`control`] shows that its answer means something. Which probes
//! are run, in which order, and what follows, is the engine's business.

pub mod batch;
pub mod catalog;
pub mod compiler;
pub mod control;
mod diagnostics;
pub mod host_compiler;
mod identity;
pub mod known;
pub mod nvcc;
pub mod packages;
pub mod reads;

pub use compiler::{Compiler, How, Source, Trial};
pub use diagnostics::first_error_line;
pub(crate) use diagnostics::tidy;
pub use known::{Known, Said};
