//! Threads that call functions without pause, while these are hooked and taken
//! back again and again.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hook_runtime::patch::{self, Options, Patched, Reason, Target, Transaction};

use crate::support::{CALLS, Case, ORIGINALS, add, call, cases, entrances};

thread_local! {
    /// Hooks that this thread's current call went through.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// What is to be done.
pub(crate) struct Plan {
    /// Hooking and taking back, so often; or until `limit` is over, but not less than `least`.
    pub(crate) rounds: u64,
    pub(crate) least: u64,
    pub(crate) limit: Duration,
    /// Threads that call.
    pub(crate) threads: usize,
    /// Every so many rounds the far form, which has to wait.
    /// Then no thread may come in by the middle: that is what it waits for.
    pub(crate) far_every: u64,
    /// Threads that allocate, load and unload a library, and fork.
    pub(crate) disturb: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rounds: u64,
    pub(crate) calls: u64,
    pub(crate) hooked: u64,
    pub(crate) far: u64,
    /// Changes that were left out: a thread might have been inside, or blocked SIGTRAP for long.
    pub(crate) left_out: u64,
    pub(crate) forks: u64,
}

/// Set by whoever waits for a hooked call, until there is one.
static WAITED_FOR: AtomicBool = AtomicBool::new(false);

extern "C" fn counting<const CASE: usize>(a: u64, b: u64) -> u64 {
    SEEN.set(SEEN.get() + 1);
    if WAITED_FOR.load(Ordering::Relaxed) {
        WAITED_FOR.store(false, Ordering::Relaxed);
    }
    call(ORIGINALS[CASE].load(Ordering::Relaxed), a, b)
}

const COUNTING: [crate::support::Function; 10] = [
    counting::<0>,
    counting::<1>,
    counting::<2>,
    counting::<3>,
    counting::<4>,
    counting::<5>,
    counting::<6>,
    counting::<7>,
    counting::<8>,
    counting::<9>,
];

fn target(index: usize, case: &Case) -> Target<'static> {
    Target {
        name: case.name,
        address: case.address,
        size: None,
        replacement: COUNTING[index] as usize,
    }
}

/// Runs a plan. Every deviation is a panic.
pub(crate) fn run(plan: &Plan) -> Report {
    let end = AtomicBool::new(false);
    let forks = AtomicU64::new(0);
    let before = CALLS.load(Ordering::SeqCst);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        // The others end even if a check fails here.
        let _ends = EndOnDrop(&end);
        let callers: Vec<_> = (0..plan.threads)
            .map(|seed| {
                scope.spawn({
                    let end = &end;
                    move || {
                        give_way();
                        calls(seed as u64, plan.far_every == 0, end)
                    }
                })
            })
            .collect();
        if plan.disturb {
            scope.spawn(|| disturb(&end, &forks));
        }
        let start = Instant::now();
        while report.rounds < plan.rounds
            && (start.elapsed() < plan.limit || report.rounds < plan.least)
        {
            let force_far =
                plan.far_every > 0 && report.rounds % plan.far_every == plan.far_every - 1;
            round(force_far, &mut report);
            report.rounds += 1;
        }
        end.store(true, Ordering::SeqCst);
        for caller in callers {
            let (calls, hooked) = caller.join().expect("the caller saw nothing wrong");
            report.calls += calls;
            report.hooked += hooked;
        }
    });
    report.forks = forks.load(Ordering::SeqCst);
    assert_eq!(CALLS.load(Ordering::SeqCst) - before, report.calls, "no call is lost or doubled");
    report
}

/// The thread that hooks is not to spend its time waiting for its turn among those that call:
/// they are a little nicer than it.
fn give_way() {
    // SAFETY: it lowers this thread's own priority, nothing else.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) };
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Hooks everything that can be, and takes it back.
fn round(force_far: bool, report: &mut Report) {
    let mut transaction = Transaction::with(Options { force_far, ..Options::default() });
    let mut trampolines = Vec::new();
    for (index, case) in cases().iter().enumerate() {
        match add(&mut transaction, target(index, case)) {
            Ok(prepared) => trampolines.push((index, prepared.trampoline)),
            Err(refusal) => assert!(force_far, "{refusal}"),
        }
    }
    // A thread may be in a replacement since the last round, and about to look here.
    assert!(transaction.seal(), "memory for code is to be had");
    for (index, trampoline) in trampolines {
        ORIGINALS[index].store(trampoline, Ordering::SeqCst);
    }
    let mut patched: Vec<Patched> = Vec::new();
    for result in transaction.commit() {
        match result {
            Ok(one) => patched.push(one),
            Err(refusal) => {
                assert!(
                    matches!(
                        refusal.reason,
                        Reason::NotQuiescent { .. } | Reason::SignalBlocked { .. }
                    ),
                    "{refusal}"
                );
                report.left_out += 1;
            }
        }
    }
    report.far += if force_far { patched.len() as u64 } else { 0 };
    // On a busy machine the callers might never run between hooking and taking back.
    if report.rounds.is_multiple_of(16) && !patched.is_empty() {
        WAITED_FOR.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while WAITED_FOR.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
    }
    while !patched.is_empty() {
        // The far form can be taken back only when nobody is inside it.
        let results = patch::restore(&patched);
        let left = patched.into_iter().zip(results).filter_map(|(one, result)| match result {
            Ok(()) => None,
            Err(refusal) => {
                assert!(
                    matches!(
                        refusal.reason,
                        Reason::NotQuiescent { .. } | Reason::SignalBlocked { .. }
                    ),
                    "{refusal}"
                );
                report.left_out += 1;
                Some(one)
            }
        });
        patched = left.collect();
    }
}

/// Calls everything until the end; the calls, and how many were hooked.
fn calls(seed: u64, by_the_middle: bool, end: &AtomicBool) -> (u64, u64) {
    let cases = cases();
    let entrances = entrances();
    let (mut made, mut hooked) = (0, 0);
    let mut value = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while !end.load(Ordering::Relaxed) {
        for case in &cases {
            // xorshift: arguments that are never the same.
            value ^= value << 13;
            value ^= value >> 7;
            value ^= value << 17;
            SEEN.set(0);
            let result = case.call(value, seed);
            assert_eq!(
                result,
                value.wrapping_mul(3).wrapping_add(seed),
                "{} got its arguments",
                case.name
            );
            assert!(SEEN.get() <= 1, "{} was hooked once", case.name);
            hooked += SEEN.get();
            made += 1;
        }
        for (_, offset, way) in entrances.iter().filter(|_| by_the_middle) {
            assert_eq!(
                call(*way, value, seed),
                value.wrapping_mul(3).wrapping_add(seed),
                "at +{offset}"
            );
            made += 1;
        }
    }
    (made, hooked)
}

/// What else a process does meanwhile.
fn disturb(end: &AtomicBool, forks: &AtomicU64) {
    while !end.load(Ordering::Relaxed) {
        let memory: Vec<Vec<u8>> = (1..64).map(|size| vec![1; size * 1000]).collect();
        assert_eq!(memory.iter().map(Vec::len).sum::<usize>(), 63 * 64 / 2 * 1000);
        // SAFETY: a library of the system, whose constructors do nothing.
        let library = unsafe { libc::dlopen(c"libresolv.so.2".as_ptr(), libc::RTLD_NOW) };
        if !library.is_null() {
            // SAFETY: opened above, and nothing of it is used.
            unsafe { libc::dlclose(library) };
        }
        // SAFETY: the child only calls the targets and ends.
        match unsafe { libc::fork() } {
            0 => {
                let right = cases().iter().all(|case| case.call(7, 5) == 26);
                // SAFETY: ends the child without anything else of this process's.
                unsafe { libc::_exit(i32::from(!right)) };
            }
            child => {
                assert!(child > 0, "fork works");
                let mut status = -1;
                // SAFETY: our child, and `status` is writable.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0, "the child got its results");
                forks.fetch_add(1, Ordering::SeqCst);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
