//! What the other threads of this process are doing, as far as `/proc` tells.
//!
//! [`wait_until_outside`] shows that no thread is inside bytes that are to be replaced,
//! where it cannot be caught there.

#[cfg(target_arch = "x86_64")]
mod outside;

use std::time::{Duration, Instant};

#[cfg(target_arch = "x86_64")]
pub use outside::wait_until_outside;

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
    let mut blocking: Vec<u32> = complete().into_iter().filter(blocks).collect();
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

/// The kernel's numbers of all threads, as a directory lists them: one that ends meanwhile can
/// make the list pass over another.
#[must_use]
pub fn all() -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The same, and certainly all that there were at some moment since this was called: as many
/// as the kernel counted, all of which were still there afterwards.
fn complete() -> Vec<u32> {
    loop {
        let listed = all();
        let count = std::fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| parse_count(&status));
        let Some(count) = count else { return listed };
        if listed.len() == count && listed.iter().all(|thread| exists(*thread)) {
            return listed;
        }
        std::thread::yield_now();
    }
}

fn exists(thread: u32) -> bool {
    std::fs::exists(format!("/proc/self/task/{thread}/stat")).unwrap_or(false)
}

/// The number of threads in `/proc/PID/status`.
fn parse_count(status: &str) -> Option<usize> {
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

fn read(thread: u32, file: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok()
}

/// The mask of blocked signals in `/proc/PID/task/TID/status`.
fn parse_blocked(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_threads_is_read() {
        let status = "Name:\tx\nThreads:\t3\nSigBlk:\t0000000000000010\n";
        assert_eq!(parse_blocked(status), Some(0x10));
        assert_eq!(parse_count(status), Some(3));
        assert_eq!((parse_blocked("Name:\tx\n"), parse_count("")), (None, None));
    }

    #[test]
    fn the_list_is_complete_while_others_come_and_go() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let staying = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            let _ = ended.recv();
        });
        let number = told.recv().unwrap();
        for _ in 0..200 {
            let short = std::thread::spawn(|| {});
            assert!(complete().contains(&number));
            short.join().unwrap();
        }
        drop(end);
        staying.join().unwrap();
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
