//! Live functions hooked and taken back: results, protections, threads inside.
#![cfg(all(bistro_hooks, target_arch = "x86_64"))]
#![expect(clippy::disallowed_methods, reason = "a test looks at /proc by itself")]

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hook_runtime::code::pun;
use hook_runtime::patch::{
    self, Form, Inside, Options, Patched, Reason, Target, Transaction, Write,
};

#[path = "bistro_support/mod.rs"]
mod support;
use support::{
    CALLS, Case, HOOKED, ORIGINALS, add, call, cases, entrances, protections, short, waiting,
};

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
        let prepared = add(&mut transaction, target(case)).expect("it can be patched");
        ORIGINALS[index].store(prepared.trampoline, Ordering::Relaxed);
    }
    transaction.commit().into_iter().map(|result| result.expect("it is patched")).collect()
}

fn restore_all(patched: &[Patched]) {
    for result in patch::restore(patched) {
        result.expect("it is taken back");
    }
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

#[test]
fn each_case_has_the_strategy_that_its_opening_allows() {
    let _one = one_at_a_time();
    let patched = hook_all(Options::default());
    let found: Vec<_> = patched
        .iter()
        .map(|one| {
            let strategy = one.strategy();
            let inside: Vec<usize> = match &strategy.inside {
                Inside::Nothing => Vec::new(),
                Inside::Trapped { traps } => {
                    for (offset, byte) in traps {
                        assert_eq!(one.patch().new[*offset], *byte);
                        assert!(pun::signal_of(*byte).is_some());
                    }
                    traps.iter().map(|(offset, _)| *offset).collect()
                }
                Inside::Waited => panic!("{}: {strategy}", one.name()),
            };
            (one.name(), strategy.form, one.patch().strategy.write, inside)
        })
        .collect();
    restore_all(&patched);
    let expected = [
        ("case_580", Form::Island, Write::OneStore, vec![1, 4]),
        ("case_470", Form::Near, Write::OneStore, vec![]),
        ("case_575", Form::Island, Write::OneStore, vec![4]),
        // Four bytes further on, the jump lies in two words.
        ("case_endbr64", Form::Island, Write::Staged, vec![1, 3]),
        ("case_unaligned", Form::Island, Write::Staged, vec![1, 4]),
        ("case_pushes", Form::Island, Write::OneStore, vec![1, 2, 3, 4]),
        ("case_branch", Form::Island, Write::OneStore, vec![3]),
        ("case_call", Form::Near, Write::OneStore, vec![]),
        ("case_hooked", Form::Near, Write::OneStore, vec![]),
        ("case_pages", Form::Island, Write::Staged, vec![1, 4]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_thread_inside_the_replaced_bytes_goes_on_in_the_trampoline() {
    let _one = one_at_a_time();
    let check = |state: &str| {
        for (case, offset, way) in entrances() {
            let (calls, hooked) = (CALLS.load(Ordering::Relaxed), HOOKED.load(Ordering::Relaxed));
            assert_eq!(call(way, 9, 4), 31, "{} at +{offset}, {state}", cases()[case].name);
            assert_eq!(CALLS.load(Ordering::Relaxed), calls + 1);
            // It had entered before the hook was there.
            assert_eq!(HOOKED.load(Ordering::Relaxed), hooked);
        }
    };
    check("never hooked");
    let patched = hook_all(Options::default());
    for (case, offset, _) in entrances() {
        assert!(pun::signal_of(code_of(&cases()[case])[offset]).is_some(), "a trap stands there");
    }
    check("hooked");
    restore_all(&patched);
    check("taken back");
}

#[test]
fn other_traps_serve_where_int3_finds_no_place() {
    let _one = one_at_a_time();
    // The island of +4:cc would lie between 832 and 816 MiB below.
    let case = &cases()[2];
    let window = (case.address as u64 + 5).wrapping_add(0xffff_ffff_cc00_0000);
    let window = (window & !0xfff) - 0x4_0000..(window & !0xfff) + 0x104_0000;
    let taken = support::occupy(window.clone());
    let mut transaction = Transaction::new();
    // Another replacement than elsewhere, or the earlier island would be used again.
    let other = Target { replacement: cases()[6].replacement as usize, ..target(case) };
    let prepared = add(&mut transaction, other).expect("it can be patched");
    ORIGINALS[6].store(prepared.trampoline, Ordering::Relaxed);
    let patched: Vec<_> =
        transaction.commit().into_iter().map(|one| one.expect("it is patched")).collect();
    let Inside::Trapped { traps } = &patched[0].strategy().inside else {
        panic!("{}", patched[0].strategy());
    };
    assert_eq!(
        pun::signal_of(traps[0].1),
        Some(pun::Signal::IllegalInstruction),
        "{taken} regions taken"
    );
    assert_eq!(case.call(1, 1), 4);
    restore_all(&patched);
    assert_eq!(case.call(1, 1), 4);
}

#[test]
fn the_far_form_is_used_when_forced_and_waits() {
    let _one = one_at_a_time();
    let mut transaction = Transaction::with(Options { force_far: true, ..Options::default() });
    let added: Vec<_> = cases().iter().map(|case| add(&mut transaction, target(case))).collect();
    let mut hooked = Vec::new();
    for (index, result) in added.into_iter().enumerate() {
        match (cases()[index].name, result) {
            ("case_branch" | "case_call", Err(refusal)) => {
                assert!(
                    matches!(refusal.reason, Reason::ReturnInside { .. } | Reason::TooShort { .. }),
                    "{refusal}"
                );
            }
            (name, Ok(prepared)) => {
                assert_eq!(prepared.strategy.form, Form::Far);
                // A jump with nothing but padding behind it has no inside.
                let inside = if name == "case_hooked" { Inside::Nothing } else { Inside::Waited };
                assert_eq!(prepared.strategy.inside, inside, "{name}");
                ORIGINALS[index].store(prepared.trampoline, Ordering::Relaxed);
                hooked.push(index);
            }
            (name, Err(refusal)) => {
                // The last of the moved instructions is a call that returns inside.
                assert!(matches!(refusal.reason, Reason::ReturnInside { .. }), "{name}: {refusal}");
            }
        }
    }
    let patched: Vec<_> =
        transaction.commit().into_iter().map(|one| one.expect("it is patched")).collect();
    assert!(hooked.len() >= 4, "{hooked:?}");
    for index in &hooked {
        let case = &cases()[*index];
        let before = HOOKED.load(Ordering::Relaxed);
        assert_eq!(case.call(7, 5), 26, "{}", case.name);
        assert_eq!(HOOKED.load(Ordering::Relaxed), before + 1, "{}", case.name);
        assert_eq!(
            code_of(case)[patched
                .iter()
                .find(|one| one.name() == case.name)
                .map_or(0, |one| (one.patch().start - one.patch().target) as usize)..][..2],
            [0x48, 0xb8]
        );
    }
    restore_all(&patched);
    for index in &hooked {
        assert_eq!(cases()[*index].call(7, 5), 26);
    }
    protections();
}

/// Starts a thread that waits in the kernel inside a function; the sender lets it go on.
fn wait_inside() -> (std::thread::JoinHandle<u64>, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        use std::os::fd::AsRawFd;
        tell.send(rustix::thread::gettid()).expect("the test waits");
        call(waiting().1, reader.as_raw_fd() as u64, 1000)
    });
    let number = told.recv().expect("it starts");
    let inside = format!("{:#x}", waiting().0 + 4);
    loop {
        let file = format!("/proc/self/task/{}/syscall", number.as_raw_nonzero());
        if std::fs::read_to_string(file).expect("it runs").trim().ends_with(&inside) {
            return (thread, writer);
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_thread_that_waits_in_the_kernel_wakes_up_in_a_trap_and_goes_on() {
    use std::io::Write as _;
    let _one = one_at_a_time();
    let (thread, mut writer) = wait_inside();
    let mut transaction = Transaction::new();
    let target =
        Target { name: "case_waiting", address: waiting().0, size: None, replacement: short() };
    let prepared = add(&mut transaction, target).expect("it can be patched");
    assert!(matches!(prepared.strategy.inside, Inside::Trapped { .. }), "{}", prepared.strategy);
    let patched: Vec<_> =
        transaction.commit().into_iter().map(|one| one.expect("it is patched")).collect();
    writer.write_all(&[7]).expect("the thread reads");
    assert_eq!(thread.join().expect("it returns"), 1007);
    restore_all(&patched);
}

#[test]
fn where_a_thread_stays_inside_the_far_form_is_refused() {
    use std::io::Write as _;
    let _one = one_at_a_time();
    let (thread, mut writer) = wait_inside();
    let options = Options { force_far: true, patience: std::time::Duration::from_millis(20) };
    let mut transaction = Transaction::with(options);
    let target =
        Target { name: "case_waiting", address: waiting().0, size: None, replacement: short() };
    add(&mut transaction, target).expect("it is tried");
    let results = transaction.commit();
    let refusal = results[0].as_ref().expect_err("the thread is inside");
    assert_eq!(refusal.reason, Reason::NotQuiescent { milliseconds: 20 });
    assert_eq!(refusal.bytes[..4], [0x31, 0xc0, 0x0f, 0x05]);
    // SAFETY: the function's text.
    let code = unsafe { std::ptr::read_volatile(waiting().0 as *const [u8; 12]) };
    assert_eq!(code[..], refusal.bytes[..], "it is as it was");
    writer.write_all(&[9]).expect("the thread reads");
    assert_eq!(thread.join().expect("it returns"), 1009);
}

#[test]
fn what_cannot_be_patched_is_refused_alone() {
    let _one = one_at_a_time();
    static DATA: u64 = 0x9090_9090_9090_9090;
    let case = &cases()[0];
    let mut transaction = Transaction::new();
    let too_short =
        Target { name: "case_short", address: short(), size: None, replacement: case.address };
    let refusal = add(&mut transaction, too_short).expect_err("it is too short");
    assert_eq!(refusal.reason, Reason::TooShort { length: 4, needed: 5 });
    assert_eq!(refusal.address, short() as u64);
    let message = refusal.to_string();
    assert!(message.contains("cannot patch `case_short` at 0x"), "{message}");
    assert!(message.contains("its code begins with `89 f8 90 c3"), "{message}");
    let data = Target { name: "data", address: &raw const DATA as usize, ..too_short };
    assert_eq!(add(&mut transaction, data).expect_err("no code").reason, Reason::NotCode);
    let nowhere = Target { name: "nowhere", address: 0x10, ..too_short };
    assert_eq!(add(&mut transaction, nowhere).expect_err("not mapped").reason, Reason::NotCode);
    let prepared = add(&mut transaction, target(case)).expect("it can be patched");
    ORIGINALS[0].store(prepared.trampoline, Ordering::Relaxed);
    assert_eq!(
        add(&mut transaction, target(case)).expect_err("twice").reason,
        Reason::AlreadyHooked
    );
    let patched: Vec<_> =
        transaction.commit().into_iter().map(|one| one.expect("it is patched")).collect();
    assert_eq!(patched.len(), 1);
    let mut again = Transaction::new();
    assert_eq!(add(&mut again, target(case)).expect_err("twice").reason, Reason::AlreadyHooked);
    drop(again);
    assert!(patched[0].is_active());
    restore_all(&patched);
    assert!(!patched[0].is_active());
    // Taking back what was taken back changes nothing.
    restore_all(&patched);
    assert_eq!(case.call(7, 5), 26);
}

#[test]
fn a_patch_that_others_have_changed_is_left_alone() {
    let _one = one_at_a_time();
    let case = &cases()[0];
    let mut transaction = Transaction::new();
    let prepared = add(&mut transaction, target(case)).expect("it can be patched");
    ORIGINALS[0].store(prepared.trampoline, Ordering::Relaxed);
    let patched: Vec<_> =
        transaction.commit().into_iter().map(|one| one.expect("it is patched")).collect();
    let ours = code_of(case);
    overwrite(case.address, &[0x90; 5]);
    let results = patch::restore(&patched);
    assert_eq!(results[0].as_ref().expect_err("it was changed").reason, Reason::ChangedByOthers);
    assert_eq!(code_of(case)[..5], [0x90; 5]);
    assert!(patched[0].is_active());
    overwrite(case.address, &ours[..5]);
    restore_all(&patched);
    assert_eq!(case.call(7, 5), 26);
}

/// Another tool's way to patch.
fn overwrite(address: usize, bytes: &[u8]) {
    use rustix::mm::{MprotectFlags, mprotect};
    let page = (address & !0xfff) as *mut std::ffi::c_void;
    // SAFETY: a page of this test's own text; nobody runs in it now.
    unsafe {
        mprotect(page, 0x2000, MprotectFlags::READ | MprotectFlags::WRITE | MprotectFlags::EXEC)
    }
    .expect("allowed");
    // SAFETY: it is writable now.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    // SAFETY: the protection that it had.
    unsafe { mprotect(page, 0x2000, MprotectFlags::READ | MprotectFlags::EXEC) }.expect("allowed");
}
