//! Strict detection on stub toolkits: every probe on every level, what is
//! missing told with its evidence, and each mended quirk.

mod batch;
mod cache;
mod given;
mod guess;
mod levels;
mod missing;
mod quirks;
mod split;
mod world;

pub(crate) use world::{copy, gdrcopy, toolkit};
