//! What happens, as values: the engine emits them, terminal and log consume
//! them.

use crate::{
    host::process::Completed,
    model::{Check, Message},
};

/// One thing that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A question is about to be put; shown as `checking LABEL... `.
    Checking(&'a str),
    /// The question was answered. Every answer is preceded by its `Checking`.
    Answered(&'a Check),
    /// A process ran, with the source text it was given, if any.
    Ran {
        /// The process and what it said.
        completed: &'a Completed,
        /// The text of the probe that it compiled, with its name.
        source: Option<(&'a str, &'a str)>,
    },
    /// Something to tell the user; it is in the report as well.
    Message(&'a Message),
    /// A decision, for the log alone: one sentence.
    Decided(&'a str),
    /// Something that takes long has begun: a spinner on a terminal.
    Busy(&'a str),
    /// How far it is: done of total, with a word.
    Progress(u64, u64, &'a str),
    /// It has ended.
    Idle,
    /// A file was written, or found as it should be.
    Wrote {
        /// Its path.
        path: &'a camino::Utf8Path,
        /// Whether its content changed.
        changed: bool,
    },
}

/// Somebody who is told.
pub trait Sink {
    /// Takes one event.
    fn event(&mut self, event: &Event<'_>);

    /// Whether somebody is told. What nobody was told can still be told later.
    fn listens(&self) -> bool {
        true
    }
}

/// Tells nobody.
#[derive(Debug, Default)]
pub struct Silent;

impl Sink for Silent {
    fn event(&mut self, _event: &Event<'_>) {}
}

/// Tells nobody yet: what runs ahead of its question is told with it.
#[derive(Debug, Default)]
pub struct Ahead;

impl Sink for Ahead {
    fn event(&mut self, _event: &Event<'_>) {}

    fn listens(&self) -> bool {
        false
    }
}

/// Tells several.
pub struct Fanout<'a>(pub Vec<&'a mut dyn Sink>);

impl Sink for Fanout<'_> {
    fn event(&mut self, event: &Event<'_>) {
        for sink in &mut self.0 {
            sink.event(event);
        }
    }
}
