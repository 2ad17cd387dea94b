//! Live functions hooked and taken back: results, protections, threads inside.
#![cfg(target_arch = "x86_64")]

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hook_runtime::patch::{self, Options, Patched, Target, Transaction};
use hook_runtime::sys::maps::{self, MapsEntry, Protection};

#[path = "bistro_support/mod.rs"]
mod support;
use support::{CALLS, Case, HOOKED, ORIGINALS, call, cases};

/// The functions are shared, so that one test at a time hooks them.
static ONE: Mutex<()> = Mutex::new(());

fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn target(case: &Case) -> Target<'static> {
    Target {
        name: case.name,
        address: case.address,
        size: None,
        replacement: case.replacement as usize,
    }
}

/// Hooks all cases in one transaction.
fn hook_all(options: Options) -> Vec<Patched> {
    let mut transaction = Transaction::with(options);
    for (index, case) in cases().iter().enumerate() {
        let prepared = transaction.add(target(case)).expect("it can be patched");
        ORIGINALS[index].store(prepared.trampoline, Ordering::Relaxed);
    }
    transaction.commit().into_iter().map(|result| result.expect("it is patched")).collect()
}

fn restore_all(patched: &[Patched]) {
    for result in patch::restore(patched) {
        result.expect("it is taken back");
    }
}

/// Address and protection of every mapping of this program's file, merged.
fn protections() -> Vec<(u64, u64, Protection)> {
    let map = maps::read_self().expect("the map can be read");
    assert!(!map.iter().any(|entry| entry.protection.is_writable_and_executable()), "{map:#?}");
    let here = cases()[0].address as u64;
    let path = &maps::find(&map, here).expect("code lies in a mapping").path;
    let mut merged: Vec<(u64, u64, Protection)> = Vec::new();
    for MapsEntry { range, protection, .. } in map.iter().filter(|entry| entry.path == *path) {
        match merged.last_mut() {
            Some((_, end, same)) if *end == range.start && same == protection => *end = range.end,
            _ => merged.push((range.start, range.end, *protection)),
        }
    }
    merged
}

fn code_of(case: &Case) -> [u8; 16] {
    // SAFETY: sixteen bytes of a function's text.
    unsafe { std::ptr::read_volatile(case.address as *const [u8; 16]) }
}

#[test]
fn every_case_is_hooked_and_taken_back() {
    let _one = one_at_a_time();
    let before = protections();
    let code: Vec<_> = cases().iter().map(code_of).collect();
    for round in 0..3 {
        let patched = hook_all(Options::default());
        for (index, case) in cases().iter().enumerate() {
            let (calls, hooked) = (CALLS.load(Ordering::Relaxed), HOOKED.load(Ordering::Relaxed));
            assert_eq!(case.call(7, 5), 26, "{} {}", case.name, patched[index].strategy());
            assert_eq!(CALLS.load(Ordering::Relaxed), calls + 1, "{}", case.name);
            assert_eq!(HOOKED.load(Ordering::Relaxed), hooked + 1, "{}", case.name);
            assert_eq!(call(patched[index].trampoline(), 2, 1), 7, "{}", case.name);
            assert_eq!(patched[index].name(), case.name);
        }
        assert_eq!(protections(), before, "round {round}");
        restore_all(&patched);
        for (index, case) in cases().iter().enumerate() {
            let hooked = HOOKED.load(Ordering::Relaxed);
            assert_eq!(case.call(7, 5), 26, "{}", case.name);
            assert_eq!(HOOKED.load(Ordering::Relaxed), hooked, "{}", case.name);
            assert_eq!(code_of(case), code[index], "{}", case.name);
            assert_eq!(call(patched[index].trampoline(), 2, 1), 7, "the trampoline lives on");
        }
        assert_eq!(protections(), before, "round {round}");
    }
}
