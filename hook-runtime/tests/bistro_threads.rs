//! Hooks installed and removed under threads that call: the short form. The long
//! one is `cargo run --release -p hook-runtime --example bistro_stress`.
#![cfg(all(bistro_hooks, target_arch = "x86_64"))]

use std::time::Duration;

#[path = "bistro_support/mod.rs"]
mod support;

#[path = "bistro_support/stress.rs"]
mod stress;

use support::protections;

/// Runs for a few seconds with four threads per processor.
fn run(far_every: u64) {
    let before = protections();
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let report = stress::run(&stress::Plan {
        rounds: 2000,
        least: 10,
        limit: Duration::from_secs(2),
        threads: 4 * processors,
        far_every,
        disturb: true,
    });
    assert!(report.hooked > 0 && report.hooked < report.calls, "{report:?}");
    assert!(report.forks > 0, "{report:?}");
    // On a machine that is much too busy, the far form is left out each time.
    assert_eq!(
        report.far + report.left_out > 0,
        far_every > 0 || report.left_out > 0,
        "{report:?}"
    );
    assert!(far_every > 0 || report.far == 0, "{report:?}");
    assert_eq!(protections(), before, "{report:?}");
}

#[test]
fn nobody_is_hurt_while_hooks_come_and_go() {
    // One after the other: both hook the same functions.
    run(0);
    run(5);
}
