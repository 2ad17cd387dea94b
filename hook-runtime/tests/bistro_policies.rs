//! Systems that forbid things: each in a process of its own, since a policy is for ever.
#![cfg(all(bistro_hooks, target_arch = "x86_64"))]
#![expect(clippy::disallowed_methods, reason = "a test starts itself again")]

use std::sync::atomic::Ordering;

use hook_runtime::patch::{
    self, Form, Inside, Options, Patched, Reason, Target, Transaction, Write,
};
use hook_runtime::sys::exec_memory::{self, Change, Source};
use hook_runtime::sys::maps;

#[path = "bistro_support/mod.rs"]
mod support;
use support::{HOOKED, ORIGINALS, add, call, cases, entrances, protections};

const CHILD: &str = "BISTRO_POLICIES_CHILD";

/// Runs `body` in a process of its own: this program, with one test.
fn alone(name: &str, body: fn()) {
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        return body();
    }
    let output = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn target(index: usize) -> Target<'static> {
    let case = &cases()[index];
    Target {
        name: case.name,
        address: case.address,
        size: None,
        replacement: case.replacement as usize,
    }
}

fn hook_all() -> Vec<Patched> {
    let mut transaction = Transaction::new();
    for (index, original) in ORIGINALS.iter().enumerate() {
        let prepared = add(&mut transaction, target(index)).expect("it can be patched");
        original.store(prepared.trampoline, Ordering::Relaxed);
    }
    transaction.commit().into_iter().map(|result| result.expect("it is patched")).collect()
}

/// Hooks everything, calls it, comes in by the middle, and takes it back.
fn hook_and_restore(expected: Write) {
    let before: Vec<_> = flags();
    for _ in 0..3 {
        let patched = hook_all();
        for (case, patched) in cases().iter().zip(&patched) {
            let hooked = HOOKED.load(Ordering::Relaxed);
            assert_eq!(case.call(7, 5), 26, "{}", case.name);
            assert_eq!(HOOKED.load(Ordering::Relaxed), hooked + 1, "{}", case.name);
            assert_eq!(call(patched.trampoline(), 2, 1), 7, "{}", case.name);
            if case.name != "case_pages" {
                assert_eq!(patched.strategy().write, expected, "{}", case.name);
            }
        }
        for (_, _, way) in entrances() {
            assert_eq!(call(way, 9, 4), 31);
        }
        assert_eq!(flags(), before);
        for result in patch::restore(&patched) {
            result.expect("it is taken back");
        }
        for case in cases() {
            assert_eq!(case.call(7, 5), 26, "{}", case.name);
        }
        assert_eq!(flags(), before);
    }
}

/// What the text of the cases may be used for, page by page, and that nothing is W+X.
fn flags() -> Vec<maps::Protection> {
    let map = maps::read_self().expect("the map can be read");
    assert!(!map.iter().any(|entry| entry.protection.is_writable_and_executable()), "{map:#?}");
    let start = cases()[0].address as u64 & !0xfff;
    (0..4)
        .map(|page| maps::find(&map, start + page * 4096).expect("it is mapped").protection)
        .collect()
}

/// False on a kernel that has no such flag.
fn deny_write_and_execute() -> bool {
    const PR_SET_MDWE: i32 = 65;
    // SAFETY: it only sets a flag of this process.
    let rc = unsafe { libc::prctl(PR_SET_MDWE, 1_usize, 0_usize, 0_usize, 0_usize) };
    if rc != 0 {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("it is Linux");
        let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        assert!(version < (6, 3), "Linux {release} has the flag");
    }
    rc == 0
}

#[test]
fn under_mdwe_patched_copies_of_pages_are_mapped() {
    alone("under_mdwe_patched_copies_of_pages_are_mapped", || {
        if !deny_write_and_execute() {
            println!("waived: under_mdwe_patched_copies_of_pages_are_mapped: Linux 6.3 has it");
            return;
        }
        let policy = exec_memory::probe().expect("files can still be mapped");
        assert_eq!(policy.source, Source::MemoryFile);
        let Change::Swap(why) = &policy.change else { panic!("{policy:?}") };
        assert!(why.contains("PR_SET_MDWE") && why.contains("mprotect"), "{why}");
        hook_and_restore(Write::WholePage);
    });
}

/// What a filter refuses.
struct Rule {
    call: libc::c_long,
    /// The argument that is looked at, and the bits that are refused if all are set.
    refused: Option<(u32, u32)>,
}

/// Installs a seccomp filter for this thread.
fn install_filter(rules: &[Rule]) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |k: u32, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let refuse =
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32);
    let mut program = Vec::new();
    for rule in rules {
        program.push(statement(load, 0));
        match rule.refused {
            None => program.extend([jump(rule.call as u32, 1), refuse]),
            Some((argument, bits)) => program.extend([
                jump(rule.call as u32, 4),
                statement(load, 16 + 8 * argument),
                statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, bits),
                jump(bits, 1),
                refuse,
            ]),
        }
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: it only sets a flag of this thread.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the filter is a whole program, which the kernel copies.
    let rc = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter, 0, 0) };
    assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
}

const WRITE: u32 = libc::PROT_WRITE as u32;
const EXECUTE: u32 = libc::PROT_EXEC as u32;

#[test]
fn where_no_page_may_be_both_a_copy_is_moved_over_it() {
    alone("where_no_page_may_be_both_a_copy_is_moved_over_it", || {
        install_filter(&[
            Rule { call: libc::SYS_mprotect, refused: Some((2, WRITE | EXECUTE)) },
            Rule { call: libc::SYS_memfd_create, refused: None },
        ]);
        let policy = exec_memory::probe().expect("first one, then the other is allowed");
        assert_eq!(policy.source, Source::Anonymous);
        let Change::Swap(why) = &policy.change else { panic!("{policy:?}") };
        assert!(why.contains("seccomp"), "{why}");
        hook_and_restore(Write::WholePage);
    });
}

#[test]
fn where_no_code_can_be_made_every_target_is_refused_and_says_why() {
    alone("where_no_code_can_be_made_every_target_is_refused_and_says_why", || {
        let before = protections();
        install_filter(&[
            Rule { call: libc::SYS_mprotect, refused: Some((2, EXECUTE)) },
            Rule { call: libc::SYS_memfd_create, refused: None },
        ]);
        let mut transaction = Transaction::new();
        for index in 0..cases().len() {
            let refusal = add(&mut transaction, target(index)).expect_err("no memory for it");
            let Reason::Policy(why) = &refusal.reason else { panic!("{refusal}") };
            for part in ["seccomp", "mprotect from writable to executable", "memfd_create"] {
                assert!(why.contains(part), "{why}");
            }
        }
        assert!(transaction.commit().is_empty());
        assert_eq!(protections(), before);
        assert_eq!(cases()[0].call(7, 5), 26);
    });
}

#[test]
fn without_a_barrier_only_single_stores_are_made() {
    alone("without_a_barrier_only_single_stores_are_made", || {
        install_filter(&[Rule { call: libc::SYS_membarrier, refused: None }]);
        let mut transaction = Transaction::new();
        for (index, original) in ORIGINALS.iter().enumerate() {
            match add(&mut transaction, target(index)) {
                Ok(prepared) => {
                    assert_eq!(prepared.strategy.write, Write::OneStore);
                    original.store(prepared.trampoline, Ordering::Relaxed);
                }
                Err(refusal) => {
                    assert!(
                        ["case_endbr64", "case_unaligned", "case_pages"]
                            .contains(&cases()[index].name)
                    );
                    assert!(refusal.to_string().contains("membarrier"), "{refusal}");
                }
            }
        }
        let patched = transaction.commit();
        assert_eq!(patched.len(), 7);
        assert!(patched.iter().all(Result::is_ok));
        assert!(cases().iter().all(|case| case.call(7, 5) == 26));
    });
}

#[test]
fn without_near_memory_the_far_form_reaches_everything() {
    alone("without_near_memory_the_far_form_reaches_everything", || {
        // The replacement itself has to be far away.
        let mut far =
            exec_memory::reserve(Some(0x1000_0000_0000), exec_memory::PAGE).expect("a page");
        let start = far.start;
        let replacement = cases()[1].replacement as usize as u64;
        far.write(start, &hook_runtime::code::jump::indirect(replacement));
        far.seal(&Source::Anonymous).expect("no policy here");
        let here = cases()[1].address as u64;
        support::occupy(here - 0x8100_0000..here + 0x8100_0000);
        let mut transaction = Transaction::with(Options::default());
        let target = Target { replacement: start as usize, ..target(1) };
        let prepared = add(&mut transaction, target).expect("it can be patched");
        assert_eq!(prepared.strategy.form, Form::Far);
        assert_eq!(prepared.strategy.inside, Inside::Waited);
        ORIGINALS[1].store(prepared.trampoline, Ordering::Relaxed);
        let patched: Vec<_> =
            transaction.commit().into_iter().map(|one| one.expect("it is patched")).collect();
        assert!((patched[0].trampoline() as u64).abs_diff(here) > 1 << 31);
        let hooked = HOOKED.load(Ordering::Relaxed);
        assert_eq!(cases()[1].call(7, 5), 26);
        assert_eq!(HOOKED.load(Ordering::Relaxed), hooked + 1);
        assert!(patch::restore(&patched).iter().all(Result::is_ok));
        assert_eq!(cases()[1].call(7, 5), 26);
    });
}

#[test]
fn a_trap_that_is_not_ours_goes_to_the_earlier_handler() {
    alone("a_trap_that_is_not_ours_goes_to_the_earlier_handler", || {
        static SEEN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        extern "C" fn earlier(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
            SEEN.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: an action of zeros is a valid one.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = earlier as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: the handler only counts.
        assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()) }, 0);
        let patched = hook_all();
        // SAFETY: the earlier handler comes back behind it.
        unsafe { std::arch::asm!("int3") };
        // SAFETY: a signal to this thread, with the handler in place.
        unsafe { libc::raise(libc::SIGTRAP) };
        assert_eq!(SEEN.load(Ordering::Relaxed), 2);
        for (_, _, way) in entrances() {
            assert_eq!(call(way, 9, 4), 31);
        }
        assert_eq!(SEEN.load(Ordering::Relaxed), 2, "ours did not get there");
        assert!(patch::restore(&patched).iter().all(Result::is_ok));
        // Somebody who takes the signal over is not overruled: what needs it is refused.
        // SAFETY: as above.
        assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()) }, 0);
        let mut transaction = Transaction::new();
        let prepared = add(&mut transaction, target(0)).expect("it can be planned");
        ORIGINALS[0].store(prepared.trampoline, Ordering::Relaxed);
        let refusal = transaction.commit().remove(0).expect_err("the handler is not ours");
        assert!(refusal.to_string().contains("another handler"), "{refusal}");
        assert_eq!(cases()[0].call(7, 5), 26);
    });
}

#[test]
fn a_thread_that_blocks_the_signal_for_ever_is_never_led_into_a_trap() {
    alone("a_thread_that_blocks_the_signal_for_ever_is_never_led_into_a_trap", || {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: an all-zero signal set is a valid value to be filled in.
            let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
            // SAFETY: `set` is a valid, writable signal set.
            unsafe { libc::sigfillset(&mut set) };
            // SAFETY: only this thread's mask changes.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
            tell.send(()).expect("the test waits");
            while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                assert!(cases().iter().all(|case| case.call(7, 5) == 26));
            }
        });
        told.recv().expect("it starts");
        let mut transaction = Transaction::new();
        for (index, original) in ORIGINALS.iter().enumerate() {
            let prepared = add(&mut transaction, target(index)).expect("it can be planned");
            original.store(prepared.trampoline, Ordering::Relaxed);
        }
        let mut patched = Vec::new();
        for (case, result) in cases().iter().zip(transaction.commit()) {
            match (case.name, result) {
                ("case_endbr64" | "case_unaligned", Ok(one)) => {
                    assert_eq!(one.strategy().write, Write::WideStore);
                    patched.push(one);
                }
                (_, Ok(one)) => {
                    assert_eq!(one.strategy().write, Write::OneStore);
                    patched.push(one);
                }
                (name, Err(refusal)) => {
                    assert_eq!(name, "case_pages");
                    assert!(matches!(refusal.reason, Reason::SignalBlocked { .. }), "{refusal}");
                }
            }
        }
        assert_eq!(patched.len(), 9);
        assert!(patch::restore(&patched).iter().all(Result::is_ok));
        drop(end);
        thread.join().expect("all its calls were right");
    });
}
