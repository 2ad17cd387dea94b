//! A lock that a fork waits for, so that no child begins with half of a change.
//!
//! `fork` copies memory as it is, the lock included, and none of the other
//! threads: a child born while another thread changes code would keep what was
//! half done, and could never take the lock. (`vfork` and a bare `clone` do not
//! ask; their children have nothing to do here before they call `exec`.)

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: it is only used through the functions of pthread, which are made for that.
unsafe impl Sync for Lock {}

/// Told apart from a plain mutex by the error that the holder gets when it
/// takes the lock again, instead of waiting for itself for ever.
const FREE: libc::pthread_mutex_t = libc::PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static LOCK: Lock = Lock(UnsafeCell::new(FREE));
static HELD_FOR_FORK: AtomicBool = AtomicBool::new(false);
static REGISTER: Once = Once::new();

/// The lock is held for as long as this lives, by the thread that took it.
#[derive(Debug)]
pub struct Held(PhantomData<*const ()>);

/// Takes the lock. An error says that this thread holds it already.
pub fn lock() -> io::Result<Held> {
    register();
    take().map(|()| Held(PhantomData))
}

/// Makes forks wait for the lock. Whoever holds another lock while taking this one has to
/// register his own functions after this has been called.
pub fn register() {
    REGISTER.call_once(|| {
        // SAFETY: the three functions only touch the lock, and live as long as
        // the library. If there is no memory to register them, a fork may copy
        // a held lock, and that is all.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

impl Drop for Held {
    fn drop(&mut self) {
        release();
    }
}

fn take() -> io::Result<()> {
    // SAFETY: a mutex that was initialised statically.
    match unsafe { libc::pthread_mutex_lock(LOCK.0.get()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn release() {
    // SAFETY: likewise. It fails in a child of the thread that held it, where the lock is free.
    unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) };
}

extern "C" fn before() {
    // It fails if the forking thread is the one that holds it, and then there is nothing to wait for.
    HELD_FOR_FORK.store(take().is_ok(), Ordering::SeqCst);
}

extern "C" fn in_parent() {
    if HELD_FOR_FORK.swap(false, Ordering::SeqCst) {
        release();
    }
}

extern "C" fn in_child() {
    HELD_FOR_FORK.store(false, Ordering::SeqCst);
    // SAFETY: the child has one thread, which is here. The lock is known by the
    // number of the parent's thread, so that it is made anew.
    unsafe { LOCK.0.get().write(FREE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_it_once_and_a_child_finds_it_free() {
        let held = loop {
            // Other tests of this binary take it as well.
            if let Ok(held) = lock() {
                break held;
            }
        };
        assert!(lock().is_err(), "this thread holds it");
        // SAFETY: the child only takes the lock and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let free = lock().is_ok();
            // SAFETY: ends the child without anything else of this process's.
            unsafe { libc::_exit(i32::from(!free)) };
        }
        let mut status = -1;
        // SAFETY: our child, and `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "it was free in the child");
        drop(held);
        assert!(lock().is_ok());
    }
}
