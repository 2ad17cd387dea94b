use super::*;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One question is asked at a time.
static ONE: Mutex<()> = Mutex::new(());

fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Long enough for every thread of the other tests to get its turn.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn positions_are_read_as_the_kernel_writes_them() {
    assert_eq!(parse_position("running\n"), Position::Running);
    assert_eq!(
        parse_position("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd6b8 0x7f4e4a091117\n"),
        Position::Blocked { counter: 0x7f4e_4a09_1117, stack: 0x7ff_d6b8 }
    );
    let blocked = Position::Blocked { counter: 0x40_1000, stack: 0x7ff_d6b8 };
    assert_eq!(parse_position("-1 0x7ffd6b8 0x401000\n"), blocked);
    assert_eq!(parse_position(""), Position::Unknown);
    assert_eq!(parse_position("-1 0x0 0x0"), Position::Unknown);
}

#[test]
fn busy_and_sleeping_threads_are_shown_to_be_outside() {
    let _one = one_at_a_time();
    static END: AtomicBool = AtomicBool::new(false);
    let busy: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(|| {
                while !END.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let sleeping = std::thread::spawn(|| {
        while !END.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    // The range is nobody's code, and no number that anybody has on a stack.
    let nobodys = 0x6ead_beef_1230..0x6ead_beef_1235;
    assert!(wait_until_outside(std::slice::from_ref(&nobodys), LONG));
    // Every thread is inside the whole address space.
    let everything = 1..u64::MAX;
    assert!(!wait_until_outside(std::slice::from_ref(&everything), Duration::from_millis(30)));
    END.store(true, Ordering::Relaxed);
    for thread in busy.into_iter().chain([sleeping]) {
        thread.join().expect("it ends by itself");
    }
}

/// A stretch of code that a thread spins in, or in which a signal's handler interrupts it.
#[unsafe(naked)]
extern "C" fn spin(_end: &AtomicBool, _begun: &AtomicBool) {
    std::arch::naked_asm!(
        "mov byte ptr [rsi], 1",
        "2: pause",
        "cmp byte ptr [rdi], 0",
        "je 2b",
        "ret"
    )
}

fn stretch() -> Range<u64> {
    let start = spin as extern "C" fn(&AtomicBool, &AtomicBool) as usize as u64;
    start..start + 10
}

#[test]
fn a_thread_that_runs_inside_is_seen_there() {
    let _one = one_at_a_time();
    static END: AtomicBool = AtomicBool::new(false);
    static BEGUN: AtomicBool = AtomicBool::new(false);
    let thread = std::thread::spawn(|| spin(&END, &BEGUN));
    while !BEGUN.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let stretch = stretch();
    let inside = std::slice::from_ref(&stretch);
    assert!(!wait_until_outside(inside, Duration::from_millis(50)), "it does not leave");
    END.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert!(wait_until_outside(inside, LONG));
}

#[test]
fn a_thread_that_a_handler_will_bring_back_inside_is_seen() {
    let _one = one_at_a_time();
    static END: AtomicBool = AtomicBool::new(false);
    static HANDLING: AtomicBool = AtomicBool::new(false);
    static GO_BACK: AtomicBool = AtomicBool::new(false);
    static FROM: AtomicU64 = AtomicU64::new(0);
    extern "C" fn linger(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel gives a valid ucontext for the time of the handler.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        FROM.store(registers[libc::REG_RIP as usize].cast_unsigned(), Ordering::SeqCst);
        HANDLING.store(true, Ordering::SeqCst);
        while !GO_BACK.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
        HANDLING.store(false, Ordering::SeqCst);
    }
    // SAFETY: an action of zeros is valid.
    let mut lingering = unsafe { std::mem::zeroed::<libc::sigaction>() };
    lingering.sa_sigaction =
        linger as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    lingering.sa_flags = libc::SA_SIGINFO;
    let before = action(libc::SIGUSR2, Some(&lingering)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        spin(&END, &AtomicBool::new(false));
    });
    let number = told.recv().unwrap();
    // Again until it is interrupted in the loop, and not on its way there.
    let inside = loop {
        GO_BACK.store(false, Ordering::SeqCst);
        let process = std::process::id();
        // SAFETY: a thread of this process, and a signal with a handler.
        unsafe { libc::syscall(libc::SYS_tgkill, process, number, libc::SIGUSR2) };
        while !HANDLING.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let from = FROM.load(Ordering::SeqCst);
        if stretch().contains(&from) {
            break from..from + 1;
        }
        GO_BACK.store(true, Ordering::SeqCst);
        while HANDLING.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    };
    // It runs the handler, far away, and will be back.
    assert!(!wait_until_outside(std::slice::from_ref(&inside), Duration::from_millis(200)));
    END.store(true, Ordering::SeqCst);
    GO_BACK.store(true, Ordering::SeqCst);
    thread.join().unwrap();
    assert!(wait_until_outside(std::slice::from_ref(&inside), LONG));
    action(libc::SIGUSR2, Some(&before)).unwrap();
}
