//! Puts the questions, in order, and draws the conclusions.

pub mod answers;
pub mod compat;
pub mod schedule;

use crate::{error::Error, model::Report};

/// How a detection ended.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that was found out, complete or as far as it came.
    pub report: Report,
    /// Why it failed, if it did.
    pub error: Option<Error>,
}
