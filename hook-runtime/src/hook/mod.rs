//! Hooks: what a replacement is, what it calls, how often it reports.
//!
//! * [`original`] ties a replacement to the function that it stands in for;
//! * [`reentry`] keeps nested calls from being reported twice;
//! * [`entry`] patches entries (bistro), in a build that can;
//! * [`install`] chooses a mechanism per symbol, and [`coverage`] tells what came of it.

pub mod coverage;
pub mod entry;
pub mod install;
pub mod original;
pub mod reentry;
