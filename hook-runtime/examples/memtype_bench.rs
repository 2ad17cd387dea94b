//! How long a lookup of a memory type takes: hits among many regions, with one thread and
//! with several at once, beside a lock around a map. Prints nanoseconds and ratios.
//!
//! `memtype_bench [REGIONS] [MILLISECONDS]`
#![expect(clippy::print_stdout, reason = "it reports")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hook_runtime::event::{Event, EventKind, MemoryClass};
use hook_runtime::memtype::{Lookup, MemoryTypes};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let regions = arguments.next().and_then(Result::ok).unwrap_or(1000);
    let time = Duration::from_millis(arguments.next().and_then(Result::ok).unwrap_or(300) as u64);
    let types = MemoryTypes::new();
    types.trust(true);
    let plain = RwLock::new(BTreeMap::new());
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut address = 0x7f12_3400_0000;
    let mut questions = Vec::new();
    for _ in 0..regions {
        let size = 512 * (1 + random.next() as usize % 8192);
        let class = MemoryClass::Device;
        types.note(&Event { kind: EventKind::Allocated, address, size, class, symbol: c"bench" });
        plain.write().expect("not poisoned").insert(address, size);
        questions.extend((0..4).map(|_| address + random.next() as usize % size));
        address += size.next_multiple_of(512) + 512 * (random.next() as usize % 64);
    }
    for place in (1..questions.len()).rev() {
        questions.swap(place, random.next() as usize % (place + 1));
    }
    let ours = |at: usize| matches!(types.lookup(at, 1), Lookup::Known(_));
    let locked = |at: usize| {
        let map = plain.read().expect("not poisoned");
        map.range(..=at).next_back().is_some_and(|(&start, &size)| at < start + size)
    };
    println!("{regions} regions, every lookup a hit");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let base = measure(&ours, &questions, 1, time);
    println!("  1 thread:   {base:6.2} ns a lookup");
    for threads in [2, 4, 8, 16].into_iter().filter(|&threads| threads <= cores) {
        let each = measure(&ours, &questions, threads, time);
        println!("  {threads} threads:  {each:6.2} ns each, {:.2} of one thread", each / base);
    }
    let map = measure(&locked, &questions, 1, time);
    println!("  a lock and a map, 1 thread: {map:.2} ns, {:.1} times as long", map / base);
    let started = Instant::now();
    const CHANGES: u32 = 2000;
    for change in 0..CHANGES {
        let (address, size) = (questions[change as usize % questions.len()], 256);
        let (kind, class) = (EventKind::Allocated, MemoryClass::Device);
        types.note(&Event { kind, address, size, class, symbol: c"bench" });
    }
    println!("  a change: {} ns", started.elapsed().as_nanos() / u128::from(CHANGES));
}

/// Nanoseconds for each lookup, as each of `threads` sees it; the best of three.
fn measure(
    lookup: &(impl Fn(usize) -> bool + Sync),
    questions: &[usize],
    threads: usize,
    time: Duration,
) -> f64 {
    (0..3).map(|_| once(lookup, questions, threads, time)).fold(f64::MAX, f64::min)
}

fn once(
    lookup: &(impl Fn(usize) -> bool + Sync),
    questions: &[usize],
    threads: usize,
    time: Duration,
) -> f64 {
    let stop = AtomicBool::new(false);
    let total: f64 = std::thread::scope(|scope| {
        let work = || {
            // The best pass of all: one during which the thread was not interrupted.
            let mut best = f64::MAX;
            while !stop.load(Ordering::Relaxed) {
                for part in questions.chunks(1000) {
                    let started = Instant::now();
                    for &question in part {
                        assert!(lookup(black_box(question)), "{question:#x} is a hit");
                    }
                    best = best.min(started.elapsed().as_nanos() as f64 / part.len() as f64);
                }
            }
            best
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });
    total / threads as f64
}

/// xorshift: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
