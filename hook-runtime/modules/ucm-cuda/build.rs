//! Gives the module the name inside that UCX's loader and packages know:
//! `libX.so.0`. Cargo itself makes `libX.so` without one.
#![expect(clippy::disallowed_methods, reason = "a build script is its own gate to the outside")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let library = std::env::var("CARGO_PKG_NAME").unwrap_or_default().replace('-', "_");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,lib{library}.so.0");
    // Hooks lead into this object: it must never go away.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
