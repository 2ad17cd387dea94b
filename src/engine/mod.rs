//! Puts the questions, in order, and draws the conclusions.

pub mod answers;
mod cache;
pub mod compat;
pub mod schedule;
pub mod strict;

use crate::{
    error::Error,
    host::Host,
    model::{Mode, Report},
    request::Request,
    ui::Sink,
};

/// How a detection ended.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that was found out, complete or as far as it came.
    pub report: Report,
    /// Why it failed, if it did.
    pub error: Option<Error>,
}

/// Detects what the request is about.
pub fn configure(request: &Request, host: &Host, sink: &mut dyn Sink) -> Outcome {
    match request.mode {
        Mode::Strict => strict::configure(request, host, sink),
        Mode::Compat => compat::configure(request, host, sink),
    }
}
