//! Builds hook-runtime's modules with cargo, as the report says, and puts
//! them into the build directory.
//!
//! What is built, and with which flags, is decided before: this finds cargo
//! and the sources, runs, and looks at what came out.

pub mod elf;
