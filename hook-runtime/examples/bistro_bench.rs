//! What live patching costs: installing twenty hooks, idle and under 64 busy
//! threads, and what a hook adds to a call.
//!
//! `cargo run --release -p hook-runtime --example bistro_bench`
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
#[path = "../tests/bistro_support/mod.rs"]
mod support;

#[cfg(all(bistro_hooks, target_arch = "x86_64"))]
mod bench {
    use std::arch::global_asm;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use hook_runtime::patch::{self, Patched, Target, Transaction};

    use super::support::{add, call};

    // Twenty functions that begin as driver 580's, each in a page of its own,
    // which is as bad as it gets.
    global_asm!(
        r#"
        .section .text.bistro_bench, "ax", @progbits
        .p2align 12
        .globl bistro_bench_targets
        .hidden bistro_bench_targets
        bistro_bench_targets:
        .rept 20
        .p2align 12
        push rbp
        mov rbp, rsp
        push r12
        lea rax, [rdi + rdi*2]
        add rax, rsi
        pop r12
        pop rbp
        ret
        .endr
        .text
        "#
    );

    unsafe extern "C" {
        fn bistro_bench_targets();
    }

    const TARGETS: usize = 20;

    fn address(index: usize) -> usize {
        bistro_bench_targets as unsafe extern "C" fn() as usize + index * 4096
    }

    static ORIGINAL: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn replacement(a: u64, b: u64) -> u64 {
        call(ORIGINAL.load(Ordering::Relaxed), a, b)
    }

    /// Hooks all targets; the time at which the ground was surveyed, and all was planned.
    fn install_in_parts() -> (Vec<Patched>, Instant, Instant) {
        let mut transaction = Transaction::new();
        let surveyed = Instant::now();
        for index in 0..TARGETS {
            let target = Target {
                name: "target",
                address: address(index),
                size: None,
                replacement: replacement as extern "C" fn(u64, u64) -> u64 as usize,
            };
            let prepared = add(&mut transaction, target).expect("it can be patched");
            ORIGINAL.store(prepared.trampoline, Ordering::Relaxed);
        }
        let planned = Instant::now();
        let results = transaction.commit().into_iter();
        (results.map(|one| one.expect("it is patched")).collect(), surveyed, planned)
    }

    fn install() -> Vec<Patched> {
        install_in_parts().0
    }

    /// The very first time, when tables are built and pages copied.
    fn first() {
        let start = Instant::now();
        let (patched, surveyed, planned) = install_in_parts();
        let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
        println!(
            "first: survey {:.0} us, plan {:.0} us, commit {:.0} us",
            micros(surveyed - start),
            micros(planned - surveyed),
            micros(planned.elapsed()),
        );
        assert!(patch::restore(&patched).iter().all(Result::is_ok));
    }

    /// The first time, and the median of the times after it, in microseconds: install, restore.
    fn rounds(count: usize) -> (f64, f64, f64) {
        let micros = |start: Instant| start.elapsed().as_secs_f64() * 1e6;
        let mut times = Vec::new();
        for _ in 0..count {
            let start = Instant::now();
            let patched = install();
            let installed = micros(start);
            let start = Instant::now();
            assert!(patch::restore(&patched).iter().all(Result::is_ok));
            times.push((installed, micros(start)));
        }
        let first = times[0].0;
        let median = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let (installs, restores): (Vec<_>, Vec<_>) = times.into_iter().unzip();
        (first, median(installs), median(restores))
    }

    fn nanoseconds_per_call() -> f64 {
        const CALLS: u32 = 5_000_000;
        let best = (0..5).map(|_| {
            let start = Instant::now();
            for value in 0..u64::from(CALLS) {
                std::hint::black_box(call(address(0), value, 1));
            }
            start.elapsed()
        });
        best.min().unwrap_or(Duration::ZERO).as_secs_f64() * 1e9 / f64::from(CALLS)
    }

    pub(super) fn main() {
        first();
        let (_, install_idle, restore_idle) = rounds(200);
        println!("20 targets, idle: install {install_idle:.0} us, restore {restore_idle:.0} us");
        let bare = nanoseconds_per_call();
        let patched = install();
        let hooked = nanoseconds_per_call();
        println!(
            "per call: bare {bare:.2} ns, hooked {hooked:.2} ns, added {:.2} ns",
            hooked - bare
        );
        println!("strategy: {}", patched[0].strategy());
        assert!(patch::restore(&patched).iter().all(Result::is_ok));
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    while !end.load(Ordering::Relaxed) {
                        for index in 0..TARGETS {
                            assert_eq!(call(address(index), 7, 5), 26);
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(100));
            let (first, install, restore) = rounds(50);
            println!(
                "20 targets, 64 busy threads: first {first:.0} us, then install {install:.0} us, restore {restore:.0} us"
            );
            end.store(true, Ordering::Relaxed);
        });
    }
}

fn main() {
    #[cfg(all(bistro_hooks, target_arch = "x86_64"))]
    bench::main();
    #[cfg(not(all(bistro_hooks, target_arch = "x86_64")))]
    println!("waived: bistro_bench: code patching exists for x86_64 alone");
}
