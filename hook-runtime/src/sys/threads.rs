//! What the other threads of this process are doing, as far as `/proc` tells.
//!
//! Used where a thread may be inside bytes that are to be replaced and cannot
//! be caught there. Nobody is interrupted: a thread that is blocked shows its
//! program counter, and one that runs has left a few instructions behind as
//! soon as it has used processor time. (What cannot be seen: a signal handler
//! that interrupted a thread inside those bytes and is still running.)

use std::ops::Range;
use std::time::{Duration, Instant};

/// Processor time after which a running thread has left the replaced bytes.
const LEFT_AFTER: u64 = 20_000;

/// Waits until no thread can be inside `ranges`, for `limit` at most. The
/// caller has closed their entries. True if it is so.
#[must_use]
pub fn wait_until_outside(ranges: &[Range<u64>], limit: Duration) -> bool {
    let end = Instant::now() + limit;
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let mut waiting: Vec<Waiting> =
        all().into_iter().filter(|thread| *thread != own).map(Waiting::new).collect();
    loop {
        waiting.retain_mut(|thread| !thread.is_outside(ranges));
        if waiting.is_empty() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A thread that may be inside.
#[derive(Debug)]
struct Waiting {
    thread: u32,
    /// Processor time that it had used when it was last looked at.
    used: Option<u64>,
    /// Whether that was booked after the entries were closed. The kernel books
    /// the time of a running thread late, so that the first increase may be of
    /// time before, and says nothing.
    booked_since: bool,
}

impl Waiting {
    fn new(thread: u32) -> Self {
        Self { thread, used: processor_time(thread), booked_since: false }
    }

    /// True if the thread has ended, is blocked elsewhere, or has run since it was waited for.
    fn is_outside(&mut self, ranges: &[Range<u64>]) -> bool {
        match read(self.thread, "syscall").as_deref().map(parse_position) {
            None => return !all().contains(&self.thread),
            Some(Position::Blocked(counter)) => {
                return !ranges.iter().any(|range| range.contains(&counter));
            }
            Some(Position::Running | Position::Unknown) => {}
        }
        let (Some(before), Some(now)) = (self.used, processor_time(self.thread)) else {
            return false;
        };
        if self.booked_since {
            return now.saturating_sub(before) >= LEFT_AFTER;
        }
        if now > before {
            self.used = Some(now);
            self.booked_since = true;
        }
        false
    }
}

/// A thread that blocks a signal, and would end the process if it ran into a
/// trap. One that starts or ends blocks all signals for a moment, so that only
/// those count which do so for as long as `limit`.
#[must_use]
pub fn first_that_blocks(signal: i32, limit: Duration) -> Option<u32> {
    let bit = 1_u64 << (signal - 1);
    let blocks = |thread: &u32| {
        read(*thread, "status")
            .and_then(|status| parse_blocked(&status))
            .is_some_and(|mask| mask & bit != 0)
    };
    let end = Instant::now() + limit;
    let mut blocking: Vec<u32> = all().into_iter().filter(blocks).collect();
    while !blocking.is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_micros(200));
        blocking.retain(blocks);
    }
    blocking.first().copied()
}

/// Whether this thread is the only one.
#[must_use]
pub fn is_alone() -> bool {
    all().len() == 1
}

/// The kernel's numbers of all threads.
#[must_use]
pub fn all() -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn read(thread: u32, file: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok()
}

/// Nanoseconds of processor time that a thread has used.
fn processor_time(thread: u32) -> Option<u64> {
    read(thread, "schedstat")?.split_whitespace().next()?.parse().ok()
}

/// Where a thread is, by `/proc/PID/task/TID/syscall`.
#[derive(Debug, PartialEq, Eq)]
enum Position {
    Running,
    Blocked(u64),
    Unknown,
}

/// The last of the fields is the program counter, if the thread is blocked.
fn parse_position(text: &str) -> Position {
    if text.trim() == "running" {
        return Position::Running;
    }
    let counter = text.split_whitespace().next_back().and_then(|field| field.strip_prefix("0x"));
    match counter.and_then(|counter| u64::from_str_radix(counter, 16).ok()) {
        // A kernel that hides it says 0.
        Some(0) | None => Position::Unknown,
        Some(counter) => Position::Blocked(counter),
    }
}

/// The mask of blocked signals in `/proc/PID/task/TID/status`.
fn parse_blocked(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn positions_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_position("running\n"), Position::Running);
        assert_eq!(
            parse_position("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd6b8 0x7f4e4a091117\n"),
            Position::Blocked(0x7f4e_4a09_1117)
        );
        assert_eq!(parse_position("-1 0x7ffd6b8 0x401000\n"), Position::Blocked(0x40_1000));
        assert_eq!(parse_position(""), Position::Unknown);
        assert_eq!(parse_position("0 0x0 0x0"), Position::Unknown);
        assert_eq!(parse_blocked("Name:\tx\nSigBlk:\t0000000000000010\n"), Some(0x10));
        assert_eq!(parse_blocked("Name:\tx\n"), None);
    }

    #[test]
    fn busy_and_sleeping_threads_are_outside_soon() {
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
        // The range is nobody's code.
        assert!(wait_until_outside(
            std::slice::from_ref(&(0x1000..0x1005)),
            Duration::from_secs(10)
        ));
        // Every blocked thread is inside the whole address space.
        assert!(!wait_until_outside(
            std::slice::from_ref(&(0..u64::MAX)),
            Duration::from_millis(30)
        ));
        END.store(true, Ordering::Relaxed);
        for thread in busy.into_iter().chain([sleeping]) {
            thread.join().expect("it ends by itself");
        }
    }

    #[test]
    fn a_thread_that_blocks_a_signal_is_found() {
        let (ready, wait) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: an all-zero signal set is a valid value to be filled in.
            let mut set = unsafe { std::mem::zeroed::<libc::sigset_t>() };
            // SAFETY: `set` is a valid, writable signal set.
            unsafe { libc::sigaddset(&mut set, libc::SIGXFSZ) };
            // SAFETY: only this thread's mask changes; nobody sends SIGXFSZ.
            let rc = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
            assert_eq!(rc, 0);
            let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            ready.send(own).expect("the test waits");
            let _ = ended.recv();
        });
        let blocking = wait.recv().expect("the thread starts");
        assert_eq!(first_that_blocks(libc::SIGXFSZ, Duration::from_millis(5)), Some(blocking));
        drop(end);
        thread.join().expect("it ends by itself");
        assert_eq!(first_that_blocks(libc::SIGXFSZ, Duration::from_millis(5)), None);
    }
}
