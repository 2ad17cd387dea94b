//! What happens to the process as a whole: forks and its end.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs `before` in the thread that is about to fork, and then one of the others there and
/// in the child. Later registrations come first before the fork, and last after it.
pub fn at_fork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) {
    // The lock under which code is changed is taken after those that are held around it.
    #[cfg(bistro_hooks)]
    super::fork_lock::register();
    // SAFETY: the functions belong to an object that stays loaded, since hooks lead into it.
    // If there is no memory to register them, a fork may copy a held lock, and that is all.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Runs `end` when the program calls `exit` or returns from `main`.
pub fn at_exit(end: extern "C" fn()) {
    // SAFETY: the function belongs to an object that stays loaded.
    unsafe { libc::atexit(end) };
}

/// How many walks through the loader's list are under way.
static WALKS: AtomicUsize = AtomicUsize::new(0);
/// How many threads are about to fork.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// A thread that waits for others waits no longer than this: something is wrong with them.
const PATIENCE: Duration = Duration::from_secs(1);

thread_local! {
    static WALKING: Cell<usize> = const { Cell::new(0) };
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// A walk through the loader's list, during which no other thread forks: the loader's lock
/// would stay held in the child for ever.
#[derive(Debug)]
pub struct Walk(());

impl Walk {
    /// Waits for forks to be over.
    pub fn begin() -> Self {
        loop {
            WALKS.fetch_add(1, Ordering::SeqCst);
            let may = FORKING.get() || WALKING.get() > 0 || FORKS.load(Ordering::SeqCst) == 0;
            if may {
                WALKING.set(WALKING.get() + 1);
                return Self(());
            }
            WALKS.fetch_sub(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        WALKING.set(WALKING.get() - 1);
        WALKS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Before a fork: lets the walks of other threads end, and no new one begin.
pub fn stop_walks() {
    FORKING.set(true);
    FORKS.fetch_add(1, Ordering::SeqCst);
    let begun = Instant::now();
    while WALKS.load(Ordering::SeqCst) > WALKING.get() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// After a fork, in the parent.
pub fn resume_walks() {
    FORKING.set(false);
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// After a fork, in the child: there is no other thread.
pub fn restart_walks() {
    FORKING.set(false);
    FORKS.store(0, Ordering::SeqCst);
    WALKS.store(WALKING.get(), Ordering::SeqCst);
}
