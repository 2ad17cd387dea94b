//! Where things are: which directories to try, and what lies in them.
//!
//! Everything here looks at names and files only; whether something compiles
//! and links is asked by [`crate::probe`].

pub mod layout;
pub mod library;
pub mod root;
pub mod source;
pub mod symbols;

pub use layout::Layout;
pub use source::{Candidate, Place};
