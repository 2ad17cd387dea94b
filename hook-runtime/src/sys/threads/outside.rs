//! Proof that no thread is inside a stretch of code, by asking each where it is.
//!
//! Time proves nothing: a thread that has "used the processor" may have spent it in the
//! kernel, in a page fault at the very instruction, or not at all, if the machine is a
//! virtual one that was stopped meanwhile. So each thread is looked at itself:
//!
//! * One that is blocked has its program counter and stack pointer in `/proc`.
//! * One that runs is sent a signal, whose handler knows both.
//!
//! The counter is only where the thread is now. It may have been interrupted inside the
//! stretch by some signal, whose handler is what it runs; it will go back there. The kernel
//! has put that place on the stack, among the other registers, so the stack is looked
//! through, from the pointer up, for such a record. What only looks like one, left behind
//! by a signal of long ago, makes this say "not shown", which is the safe direction.
//!
//! The caller has closed the ways into the stretch, so that a thread which is outside of it
//! stays outside, and one that is inside leaves it when it runs. Not seen are threads that
//! switch stacks inside a signal's handler and mean to come back.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use super::{complete, read};

/// Waits until it is shown that no thread but this one is inside `ranges`, for `limit` at
/// most. True if it is so.
#[must_use]
pub fn wait_until_outside(ranges: &[Range<u64>], limit: Duration) -> bool {
    let end = Instant::now() + limit;
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let threads: Vec<u32> = complete().into_iter().filter(|thread| *thread != own).collect();
    let question = Box::new(Question {
        ranges: ranges.to_vec(),
        answers: threads.iter().map(|_| AtomicU8::new(answer::NOT_ASKED)).collect(),
    });
    let signal = take_signal();
    let asked = Box::into_raw(question);
    ASKED.store(asked, Ordering::SeqCst);
    // SAFETY: it is freed below, and nobody has a unique reference to it.
    let question = unsafe { &*asked };
    let mut waiting: Vec<usize> = (0..threads.len()).collect();
    let shown = loop {
        waiting.retain(|&index| !question.is_answered(index, threads[index], signal));
        if waiting.is_empty() {
            break true;
        }
        if Instant::now() >= end {
            break false;
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    ASKED.store(std::ptr::null_mut(), Ordering::SeqCst);
    // A thread that was asked and has not answered may yet come, and look at this question or
    // at a later one.
    let is_late = |answer: &AtomicU8| answer.load(Ordering::SeqCst) == answer::ASKED;
    if question.answers.iter().any(is_late) {
        LATE.store(true, Ordering::SeqCst);
    }
    if !LATE.load(Ordering::SeqCst) {
        // SAFETY: it came from `Box::into_raw`, and whoever was asked has answered, which is
        // the last that a handler does with it.
        drop(unsafe { Box::from_raw(asked) });
    }
    shown
}

/// What is asked of every thread.
struct Question {
    ranges: Vec<Range<u64>>,
    /// One for each thread.
    answers: Vec<AtomicU8>,
}

mod answer {
    pub(super) const NOT_ASKED: u8 = 0;
    pub(super) const ASKED: u8 = 1;
    pub(super) const OUTSIDE: u8 = 2;
    /// It is inside, or it cannot be told.
    pub(super) const INSIDE: u8 = 3;
}

impl Question {
    /// Whether it is shown that a thread is outside, by itself or by what `/proc` says.
    fn is_answered(&self, index: usize, thread: u32, signal: Option<c_int>) -> bool {
        let answer = &self.answers[index];
        if answer.load(Ordering::SeqCst) == answer::OUTSIDE {
            return true;
        }
        match read(thread, "syscall").as_deref().map(parse_position) {
            None => return has_ended(thread),
            Some(Position::Blocked { counter, stack }) => {
                return self.is_outside(thread, counter, stack, &mut [0_u64; 4096]);
            }
            Some(Position::Unknown) if has_ended(thread) => return true,
            Some(Position::Running | Position::Unknown) => {}
        }
        if let Some(signal) = signal
            && answer.load(Ordering::SeqCst) != answer::ASKED
        {
            answer.store(answer::ASKED, Ordering::SeqCst);
            if send(thread, signal, answer).is_err() {
                answer.store(answer::INSIDE, Ordering::SeqCst);
            }
        }
        false
    }

    /// Whether neither a thread's counter nor any that a signal left on its stack points
    /// inside. Runs in a signal's handler, too, where this thread is number 0.
    fn is_outside(&self, thread: u32, counter: u64, stack: u64, buffer: &mut [u64]) -> bool {
        let is_inside = |word: &u64| self.ranges.iter().any(|range| range.contains(word));
        if is_inside(&counter) {
            return false;
        }
        let (lowest, room) = (stack & !7, buffer.len());
        let end = end_of_stack(thread).filter(|end| (lowest..lowest + DEEPEST).contains(end));
        let mut at = lowest;
        while at - lowest < DEEPEST {
            if end.is_some_and(|end| at >= end) {
                return true;
            }
            let Some(words) = read_memory(at, buffer) else { return false };
            let counters = words.iter().zip(words.iter().skip(SEGMENTS));
            let mut saved = counters.filter(|(_, segments)| are_segments(**segments));
            if saved.any(|(counter, _)| is_inside(counter)) {
                return false;
            }
            if words.len() < room {
                // The stack ends here. Where it was not to be read at all, nothing is shown.
                return !words.is_empty() || at > lowest;
            }
            at += size_of_val(&words[SEGMENTS..]) as u64;
        }
        false
    }
}

/// In the record of a thread's registers that the kernel makes for a signal, the segments come
/// so many words behind the program counter.
const SEGMENTS: usize = 2;

/// Whether a word can be the record of the segments: that of 64-bit code, and two that are 0.
/// (The fourth is the stack's, which older kernels leave out.)
fn are_segments(word: u64) -> bool {
    const USER_CODE: u64 = 0x33;
    word & 0xffff_ffff_ffff == USER_CODE
}

/// The end of a thread's stack: the C library keeps its own record of the thread there, and
/// has told the kernel an address in it. (The first thread's record is elsewhere, and nothing
/// lies behind its stack.)
fn end_of_stack(thread: u32) -> Option<u64> {
    let (mut head, mut length) = (0_u64, 0_usize);
    // SAFETY: both results are places of ours.
    let status =
        unsafe { libc::syscall(libc::SYS_get_robust_list, thread, &raw mut head, &raw mut length) };
    (status == 0 && head != 0).then_some(head)
}

/// Stacks are looked at so far; what is deeper is not known.
const DEEPEST: u64 = 64 << 20;

/// As much as can be read from `address` on, up to the length of `buffer`: through the kernel,
/// since another thread may unmap what lies behind a stack. Nothing if it refuses that.
fn read_memory(address: u64, buffer: &mut [u64]) -> Option<&[u64]> {
    const PAGE: u64 = 4096;
    // SAFETY: it only tells the number of this process.
    let process = unsafe { libc::getpid() };
    let mut filled = 0;
    // Page by page: a read ends before the first that is not there.
    while filled < buffer.len() {
        let at = address + 8 * filled as u64;
        let rest = &mut buffer[filled..];
        let length = (PAGE - at % PAGE).min(8 * rest.len() as u64) as usize;
        let local = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: at as *mut c_void, iov_len: length };
        // SAFETY: the local vector is part of the buffer; the kernel checks the other.
        let got = unsafe {
            libc::syscall(
                libc::SYS_process_vm_readv,
                process,
                &raw const local,
                1_usize,
                &raw const remote,
                1_usize,
                0_usize,
            )
        };
        if got != length as i64 {
            // SAFETY: it only tells where the thread's own variable is.
            let error = unsafe { libc::__errno_location() };
            // SAFETY: as above.
            let error = unsafe { error.read() };
            let ends = got >= 0 || error == libc::EFAULT;
            return ends.then_some(&buffer[..filled]);
        }
        filled += length / 8;
    }
    Some(buffer)
}

fn has_ended(thread: u32) -> bool {
    // What has ended and is still listed says `Z` or `X` behind its name.
    read(thread, "stat").is_none_or(|stat| {
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_some_and(|state| state.starts_with(['Z', 'X']))
    })
}

/// The question under way; one at a time, by the lock under which code is changed.
static ASKED: AtomicPtr<Question> = AtomicPtr::new(std::ptr::null_mut());

/// Whether some thread has ever left a question unanswered. Then questions are kept for ever.
static LATE: AtomicBool = AtomicBool::new(false);

/// The signal that is used; 0 while there is none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// A real-time signal that nobody else handles, with our handler. It is kept for ever, since
/// one that comes late would end the process otherwise.
fn take_signal() -> Option<c_int> {
    let handler = handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    let taken = SIGNAL.load(Ordering::SeqCst);
    if taken != 0 && action(taken, None).is_some_and(|now| now.sa_sigaction == handler) {
        return Some(taken);
    }
    // The first of them are those that programs take first.
    let free =
        |signal: &c_int| action(*signal, None).is_some_and(|now| now.sa_sigaction == libc::SIG_DFL);
    let signal = (libc::SIGRTMIN() + 2..libc::SIGRTMAX()).rev().find(free)?;
    // SAFETY: an action of zeros is valid: the default one with an empty mask.
    let mut ours = unsafe { std::mem::zeroed::<libc::sigaction>() };
    ours.sa_sigaction = handler;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // An alternative stack has room for one signal's frame, not always for two.
    // SAFETY: the mask is a signal set to be filled.
    unsafe { libc::sigfillset(&mut ours.sa_mask) };
    action(signal, Some(&ours))?;
    SIGNAL.store(signal, Ordering::SeqCst);
    Some(signal)
}

/// Sets a signal's action, if one is given, and tells what it was.
fn action(signal: c_int, new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    // SAFETY: an action of zeros is valid.
    let mut before = unsafe { std::mem::zeroed::<libc::sigaction>() };
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the new action, if any, is a whole one whose handler is async-signal-safe.
    (unsafe { libc::sigaction(signal, new, &mut before) } == 0).then_some(before)
}

/// Sends a signal to a thread of this process, with the place for its answer.
fn send(thread: u32, signal: c_int, answer: &AtomicU8) -> Result<(), c_int> {
    /// The beginning of `siginfo_t` as the kernel lays it out for a queued signal.
    #[repr(C)]
    struct Queued {
        signal: c_int,
        error: c_int,
        code: c_int,
        padding: c_int,
        process: libc::pid_t,
        user: libc::uid_t,
        value: *const AtomicU8,
        rest: [u64; 12],
    }
    const { assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>()) };
    // SAFETY: it only tells the number of this process.
    let process = unsafe { libc::getpid() };
    let info = Queued {
        signal,
        error: 0,
        code: libc::SI_QUEUE,
        padding: 0,
        process,
        // SAFETY: it only tells the number of this user.
        user: unsafe { libc::getuid() },
        value: answer,
        rest: [0; 12],
    };
    // SAFETY: the information is a whole one; the handler of the signal is ours.
    let sent = unsafe {
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, &raw const info)
    };
    if sent == 0 { Ok(()) } else { Err(signal) }
}

/// Answers for the thread that it interrupts.
extern "C" fn handle(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid siginfo for the time of the handler.
    let info = unsafe { &*info };
    // SAFETY: it is async-signal-safe.
    let own = unsafe { libc::getpid() };
    // SAFETY: for a signal that was queued, the fields are those of one that was sent.
    let ours = info.si_code == libc::SI_QUEUE && unsafe { info.si_pid() } == own;
    // SAFETY: null, or a question that is not freed before it has its answers.
    let question = unsafe { ASKED.load(Ordering::SeqCst).as_ref() };
    let Some(question) = question.filter(|_| ours) else { return };
    // SAFETY: a queued signal has a value; it is only compared.
    let place = unsafe { info.si_value() }.sival_ptr.cast::<AtomicU8>().cast_const();
    let Some(answer) = question.answers.iter().find(|answer| std::ptr::eq(*answer, place)) else {
        return;
    };
    // SAFETY: the thread's own variable, which the system calls below may change.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { errno.read() };
    // SAFETY: the kernel gives a valid ucontext for the time of the handler.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let counter = registers[libc::REG_RIP as usize].cast_unsigned();
    let stack = registers[libc::REG_RSP as usize].cast_unsigned();
    let outside = question.is_outside(0, counter, stack, &mut [0_u64; 64]);
    // SAFETY: as above.
    unsafe { errno.write(before) };
    answer.store(if outside { answer::OUTSIDE } else { answer::INSIDE }, Ordering::SeqCst);
}

/// Where a thread is, by `/proc/PID/task/TID/syscall`.
#[derive(Debug, PartialEq, Eq)]
enum Position {
    Running,
    Blocked { counter: u64, stack: u64 },
    Unknown,
}

/// The last two of the fields are the stack pointer and the program counter, if the thread
/// is blocked.
fn parse_position(text: &str) -> Position {
    if text.trim() == "running" {
        return Position::Running;
    }
    let mut fields = text.split_whitespace().rev().map(|field| {
        field.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
    });
    match (fields.next().flatten(), fields.next().flatten()) {
        // One that has ended, and a kernel that hides it, say 0.
        (Some(counter @ 1..), Some(stack @ 1..)) => Position::Blocked { counter, stack },
        _ => Position::Unknown,
    }
}

#[cfg(test)]
mod tests;
