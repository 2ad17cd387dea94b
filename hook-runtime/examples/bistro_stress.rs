//! The long form of `tests/bistro_threads.rs`: hooks installed and removed
//! 100,000 times in total under threads that call, allocate, load libraries and fork.
//!
//! `cargo run --release -p hook-runtime --example bistro_stress -- [ROUNDS] [THREADS] [FAR_EVERY]`
//!
//! A round hooks ten functions and takes the hooks back. It prints what it did,
//! and ends with a panic at the first call that was lost, doubled or garbled.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
#[path = "../tests/bistro_support/stress.rs"]
mod stress;
#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
#[path = "../tests/bistro_support/mod.rs"]
mod support;

#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
fn main() {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let numbers: Vec<u64> =
        std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let plan = stress::Plan {
        rounds: number(0, 100_000),
        least: 0,
        limit: std::time::Duration::MAX,
        threads: number(1, 4 * processors as u64) as usize,
        far_every: number(2, 0),
        disturb: true,
    };
    let before = support::protections();
    let start = std::time::Instant::now();
    let report = stress::run(&plan);
    assert_eq!(support::protections(), before, "every page is protected as it was");
    println!("{} threads, {:.1} s: {report:?}", plan.threads, start.elapsed().as_secs_f64());
}

#[cfg(not(all(bistro_hooks, target_arch = "x86_64")))]
fn main() {
    println!("waived: bistro_stress: code patching exists for x86_64 alone");
}
