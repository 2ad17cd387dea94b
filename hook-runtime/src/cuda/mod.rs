//! What is hooked, and what stands in for it.
//!
//! * [`table`] has a row per function;
//! * [`replacements`] has the functions that are called instead;
//! * [`driver`] asks the loaded driver about memory that was not seen coming;
//! * [`sys`] has the types of CUDA's interfaces.
//!
//! Which rows are compiled in follows from the toolkit that the build was configured for.

pub mod driver;
pub mod existing;
pub mod replacements;
pub mod sys;
pub mod table;
