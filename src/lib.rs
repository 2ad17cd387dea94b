//! The CUDA part of UCX's configure, as a library behind the command
//! `ucx-configure`.
//!
//! ```text
//! argv, environment
//!      | cli, request            what was typed, what is meant (no side effects)
//!      v
//!   Request
//!      | engine                  which questions, in which order
//!      |   discover, probe       where things are; what compiles and links (through host)
//!      |   events -> ui          terminal, config.log
//!      v
//!   Report                       plain data, complete, deterministic order
//!      | emit                    pure: report -> text
//!      v
//!   config.h, config.mk, config.sh, ucx-configure.json; hook-runtime
//! ```
//!
//! Two consequences: every output can be made again from the JSON report
//! alone, and deleting the cache changes the time of a run, never its result.

#![forbid(unsafe_code)]

pub mod build;
pub mod cli;
pub mod discover;
pub mod emit;
pub mod engine;
pub mod env_vars;
pub mod error;
pub mod exit;
pub mod host;
pub mod manifest;
pub mod matrix;
pub mod model;
pub mod packages;
pub mod probe;
pub mod remarks;
pub mod request;
pub mod run;
pub mod toolkit;
pub mod ui;
pub mod verify;
