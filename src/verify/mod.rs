//! What the hooks would see: of a program, from its ELF file alone, and of
//! the modules in a directory, by loading them.
//!
//! This answers in data; `run::verify` shows the answers.

mod audit;
mod closure;
mod contents;
mod hooks;
mod image;
pub mod modules;
pub mod program;

pub use audit::{Problem, Prologue};
pub use contents::Contents;
pub use image::Image;
