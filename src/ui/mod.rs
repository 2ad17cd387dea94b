//! What a person sees, and the log.

mod events;

pub use events::{Event, Fanout, Silent, Sink};
