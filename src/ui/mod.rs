//! What a person sees, and the log.

mod events;
mod progress;
pub mod style;

pub use events::{Event, Fanout, Silent, Sink};
pub use progress::{Channel, Progress, Settings};
