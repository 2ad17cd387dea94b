//! What a person sees, and the log.

mod bars;
mod config_log;
pub mod error;
mod events;
pub mod explain;
mod progress;
mod scratch;
pub mod style;
mod summary;

pub use bars::Bars;
pub use config_log::ConfigLog;
pub use events::{Ahead, Event, Fanout, Silent, Sink};
pub use progress::{Channel, Progress, Settings};
pub use summary::summary;
