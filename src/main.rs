//! The command `ucx-configure`: everything is in the library.

#![forbid(unsafe_code)]

fn main() {}
