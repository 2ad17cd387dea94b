//! Where things are: which directories to try, and what lies in them.
//!
//! Everything here looks at names and files only; whether something compiles
//! and links is asked by [`crate::probe`].

pub mod driver;
pub mod elf;
pub mod incomplete;
pub mod layout;
pub mod library;
pub mod loader_cache;
pub mod pc;
pub mod python;
pub mod root;
mod shape;
pub mod source;
pub mod symbols;

pub use layout::{Layout, Parts, Target};
pub use source::{Candidate, Place};
