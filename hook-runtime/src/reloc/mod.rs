//! Hooks through relocation slots.
//!
//! A call from one object into another goes through a slot that the loader has
//! filled with the function's address. Swapping that address redirects the call,
//! without touching code, on every processor.
//!
//! * [`image`] reads one loaded object;
//! * [`slots`] finds the slots that belong to wanted symbols;
//! * [`rewrite`] decides what a slot's original is, and swaps it;
//! * [`scan`] does so for all objects, and keeps up with what is loaded later;
//! * [`loader`] notices that, and `search_path` keeps its callers' search paths intact.
//!
//! Calls that use no slot (a static CUDA runtime, pointers from `dlsym` or
//! `cuGetProcAddress`) are out of reach here; the coverage report says so.

pub mod image;
pub mod loader;
pub mod rewrite;
pub mod scan;
mod search_path;
pub mod slots;
