//! Tests that need more than one module, or a whole run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// What is wrong with trees of modules.
mod audit;
/// The bindings that hook-runtime keeps.
mod bindings;
/// hook-runtime built with cargo.
mod build_runtime;
/// Compat mode where nothing was recorded: quirks that are known by name.
mod compat;
/// Configuring for another machine.
mod cross;
/// The outputs, read by those whom they are for.
mod emitters;
/// Strict detection on stub toolkits.
mod engine;
/// `explain`: why, and what a key means.
mod explain;
/// Every error, as a fixture.
mod failing;
/// The other formats, read by those whom they are for.
mod formats;
/// A sandbox for whole runs.
mod harness;
/// What is installed, and what is refused.
mod install;
/// Kinds of installations, made by recipes.
mod layouts;
/// config.log of a real run, repeated.
mod log;
/// Many toolkits in one run.
mod matrix;
/// What UCX's own configure did, case by case.
mod parity;
/// Toolkits in directories with odd names.
mod paths;
/// Strict detection on real toolkits.
mod real_toolkits;
/// The recorded cases, asked in batches and one by one.
mod recorded_ways;
/// What people reported of CUDA detection, row by row.
mod reports;
/// Signals, two runs at once, compilers that misbehave, full disks.
mod robustness;
/// Whole runs that work.
mod runs;
/// Sources held against tables.
mod tables;
/// Toolkits that are made from wheels.
mod toolkit;
/// Real toolkits, and what can be wrong with them.
mod trees;
/// What the hooks would see, and ours in the place of UCX's.
mod verify;
