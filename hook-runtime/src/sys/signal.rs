//! The handler that sends a thread on which ran into a trap of ours.
//!
//! A trap that is not ours goes to whoever had the signal before: their
//! handler, or the default action. What an address stands for is the
//! resolver's knowledge, given once; it must not allocate, lock or panic.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Where a thread goes that ran into a trap at an address, if the trap is ours.
pub type Resolver = fn(u64) -> Option<u64>;

static RESOLVER: AtomicUsize = AtomicUsize::new(0);

/// The signals that a trap of ours can cause, and who had them before us.
/// An entry is written once, and what it points to lives for ever.
static EARLIER: [(c_int, AtomicPtr<libc::sigaction>); 2] = [
    (libc::SIGTRAP, AtomicPtr::new(std::ptr::null_mut())),
    (libc::SIGILL, AtomicPtr::new(std::ptr::null_mut())),
];

/// Takes over `SIGTRAP` or `SIGILL`. A second call for the same signal sees
/// that the handler is still ours: an error says if somebody replaced it since,
/// because a trap would then end in their hands.
pub fn install(signal: c_int, resolver: Resolver) -> io::Result<()> {
    RESOLVER.store(resolver as usize, Ordering::Release);
    let slot = EARLIER
        .iter()
        .find(|(known, _)| *known == signal)
        .map(|(_, slot)| slot)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let current = query(signal)?;
    if current.sa_sigaction == handler_address() {
        return Ok(());
    }
    let is_default = current.sa_sigaction == libc::SIG_DFL || current.sa_sigaction == libc::SIG_IGN;
    if !slot.load(Ordering::Acquire).is_null() && !is_default {
        return Err(io::Error::other("another handler has taken the place of ours"));
    }
    slot.store(Box::into_raw(Box::new(current)), Ordering::Release);
    let mut ours = empty_action();
    ours.sa_sigaction = handler_address();
    // SA_ONSTACK, for threads whose own stack may be small, such as Go's.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // An alternative stack has room for one signal's frame, not always for two.
    // SAFETY: the mask is a signal set to be filled.
    unsafe { libc::sigfillset(&mut ours.sa_mask) };
    // SAFETY: `ours` is a whole action; its handler is async-signal-safe.
    match unsafe { libc::sigaction(signal, &ours, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn handler_address() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

fn empty_action() -> libc::sigaction {
    // SAFETY: an action of zeros is valid: the default one with an empty mask.
    unsafe { std::mem::zeroed() }
}

fn query(signal: c_int) -> io::Result<libc::sigaction> {
    let mut current = empty_action();
    // SAFETY: with no new action this only writes `current`.
    match unsafe { libc::sigaction(signal, std::ptr::null(), &mut current) } {
        0 => Ok(current),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid ucontext for the time of the handler,
    // and nobody else refers to it.
    let counter = unsafe {
        &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize]
    };
    // SAFETY: the kernel gives a valid siginfo for the time of the handler.
    let code = unsafe { (*info).si_code };
    if let Some(to) = resolve(signal, code, counter.cast_unsigned()) {
        *counter = to.cast_signed();
        return;
    }
    chain(signal, info, context);
}

/// Where the thread goes on, if it ran into a trap of ours.
fn resolve(signal: c_int, code: c_int, counter: u64) -> Option<u64> {
    const KERNEL: c_int = 0x80; // SI_KERNEL, which int3 gives on x86.
    const BREAKPOINT: c_int = 1; // TRAP_BRKPT, which it might.
    let trap = match signal {
        libc::SIGTRAP if code == KERNEL || code == BREAKPOINT => counter.wrapping_sub(1),
        // Positive codes come from the processor; others from `kill` and its kin.
        libc::SIGILL if code > 0 => counter,
        _ => return None,
    };
    let resolver = RESOLVER.load(Ordering::Acquire);
    if resolver == 0 {
        return None;
    }
    // SAFETY: only `install` writes it, and only with a `Resolver`.
    let resolver = unsafe { std::mem::transmute::<usize, Resolver>(resolver) };
    resolver(trap)
}

/// Passes a signal on to whoever had it before.
fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let earlier = EARLIER
        .iter()
        .find(|(known, _)| *known == signal)
        .map_or(std::ptr::null_mut(), |(_, slot)| slot.load(Ordering::Acquire));
    // SAFETY: either null or a leaked action, never written again.
    let earlier = unsafe { earlier.as_ref() };
    match earlier.map(|earlier| (earlier.sa_sigaction, earlier.sa_flags)) {
        None | Some((libc::SIG_DFL, _)) => by_default(signal),
        Some((libc::SIG_IGN, _)) => {
            // SAFETY: the kernel gives a valid siginfo for the time of the handler.
            // The kernel does not let a fault be ignored either.
            if unsafe { (*info).si_code } > 0 {
                by_default(signal);
            }
        }
        Some((handler, flags)) if flags & libc::SA_SIGINFO != 0 => {
            block_as_for(signal, earlier, context);
            type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: the flag says that it is a handler of this form.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        Some((handler, _)) => {
            block_as_for(signal, earlier, context);
            // SAFETY: without the flag it is a handler of the short form.
            let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
            handler(signal);
        }
    }
}

/// Blocks what would be blocked if the kernel had called the earlier handler: what was, what
/// that asks for, and the signal itself. It ends with our handler.
fn block_as_for(signal: c_int, earlier: Option<&libc::sigaction>, context: *mut c_void) {
    let Some(earlier) = earlier else { return };
    // SAFETY: the kernel gives a valid ucontext for the time of the handler.
    let mut mask = unsafe { (*context.cast::<libc::ucontext_t>()).uc_sigmask };
    for number in 1..=libc::SIGRTMAX() {
        let itself = number == signal && earlier.sa_flags & libc::SA_NODEFER == 0;
        // SAFETY: a whole signal set.
        if itself || unsafe { libc::sigismember(&earlier.sa_mask, number) } == 1 {
            // SAFETY: as above; the numbers are valid ones.
            unsafe { libc::sigaddset(&mut mask, number) };
        }
    }
    // SAFETY: a whole signal set; it is async-signal-safe.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) };
}

/// The default action, which ends the process: raised again, it is delivered
/// when this handler returns and unblocks it.
fn by_default(signal: c_int) {
    // SAFETY: the default action is a whole one; `sigaction` is async-signal-safe.
    unsafe { libc::sigaction(signal, &empty_action(), std::ptr::null_mut()) };
    // SAFETY: `raise` is async-signal-safe.
    unsafe { libc::raise(signal) };
}
