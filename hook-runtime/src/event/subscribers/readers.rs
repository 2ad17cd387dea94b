//! Who is reading the list of subscribers at this moment.
//!
//! A thread has a seat of its own, with a number that is odd while it reads: to begin is
//! one atomic operation on memory that no other thread writes, to end a plain store. (A
//! plain store at the beginning as well, made up for by `membarrier` on the other side,
//! was measured to gain nothing.) Those who find no seat, because there are too many
//! threads or since theirs is about to end, are counted together.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::hook::reentry::{self, Thread};

/// All threads that read.
#[derive(Debug)]
pub(super) struct Readers {
    seats: [Seat; Readers::SEATS],
    /// Those without a seat, in two counters that take turns.
    standing: [AtomicUsize; 2],
    turn: AtomicUsize,
    /// Set by whoever waits for them. Not a mutex, since a handler may fork meanwhile.
    waiting: AtomicBool,
}

#[derive(Debug)]
#[repr(align(64))]
struct Seat {
    taken: AtomicBool,
    number: AtomicUsize,
}

/// `Thread::seat`: no seat has been looked for.
const NOT_YET: usize = 0;
/// There is none. The seats themselves are counted from 1; what is above this value tells
/// which of the counters a thread without a seat is counted in now.
const STANDING: usize = usize::MAX / 2;

thread_local! {
    /// Gives the seat back when the thread ends.
    static KEEPER: Keeper = const { Keeper(Cell::new(None)) };
}

struct Keeper(Cell<Option<&'static Seat>>);

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(seat) = self.0.get() {
            reentry::with_thread(|thread| thread.seat.set(STANDING));
            seat.taken.store(false, Ordering::Release);
        }
    }
}

/// A thread reads as long as this lives.
#[derive(Debug)]
pub(super) enum Reading<'thread> {
    /// With the number that comes after it.
    Seated(&'static AtomicUsize, usize),
    Standing(&'static AtomicUsize, &'thread Thread),
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        match self {
            Self::Seated(number, after) => number.store(*after, Ordering::Release),
            Self::Standing(count, thread) => {
                thread.seat.set(STANDING);
                count.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

impl Readers {
    const SEATS: usize = 256;

    pub(super) const fn new() -> Self {
        Self {
            seats: [const { Seat { taken: AtomicBool::new(false), number: AtomicUsize::new(0) } };
                Self::SEATS],
            standing: [const { AtomicUsize::new(0) }; 2],
            turn: AtomicUsize::new(0),
            waiting: AtomicBool::new(false),
        }
    }

    fn seat(&self, number: usize) -> Option<&Seat> {
        self.seats.get(number.wrapping_sub(1))
    }

    /// Notes that `thread` reads. Nobody frees what it finds from now on.
    #[inline]
    pub(super) fn enter<'thread>(&'static self, thread: &'thread Thread) -> Reading<'thread> {
        let seat = self.seat(thread.seat.get()).or_else(|| self.look_for_seat(thread));
        let Some(Seat { number, .. }) = seat else { return self.stand(thread) };
        let odd = number.load(Ordering::Relaxed) | 1;
        // Nothing of the list may be read before this is seen: `wait` counts on it.
        number.swap(odd, Ordering::SeqCst);
        Reading::Seated(number, odd.wrapping_add(1))
    }

    #[cold]
    fn look_for_seat(&'static self, thread: &Thread) -> Option<&'static Seat> {
        if thread.seat.get() != NOT_YET {
            return None;
        }
        thread.seat.set(STANDING);
        let free = |seat: &Seat| {
            !seat.taken.load(Ordering::Relaxed) && !seat.taken.swap(true, Ordering::Acquire)
        };
        let found = self.seats.iter().position(free)?;
        if KEEPER.try_with(|keeper| keeper.0.set(Some(&self.seats[found]))).is_err() {
            // The thread is at its end.
            self.seats[found].taken.store(false, Ordering::Release);
            return None;
        }
        thread.seat.set(found + 1);
        Some(&self.seats[found])
    }

    #[cold]
    fn stand<'thread>(&'static self, thread: &'thread Thread) -> Reading<'thread> {
        let turn = self.turn.load(Ordering::SeqCst) % 2;
        self.standing[turn].fetch_add(1, Ordering::SeqCst);
        thread.seat.set(STANDING + 1 + turn);
        Reading::Standing(&self.standing[turn], thread)
    }

    /// Waits until every thread that was reading when this began has ended that. Not to be
    /// called by one that reads.
    pub(super) fn wait(&self) {
        for Seat { number, .. } in &self.seats {
            let seen = number.load(Ordering::SeqCst);
            if seen % 2 == 1 {
                wait_until(|| number.load(Ordering::SeqCst) != seen);
            }
        }
        wait_until(|| !self.waiting.swap(true, Ordering::SeqCst));
        // A reader may have read `turn` before it changed, and be counted afterwards:
        // waiting for both counters, one after the other, covers it.
        for _ in 0..2 {
            let before = self.turn.fetch_add(1, Ordering::SeqCst) % 2;
            wait_until(|| self.standing[before].load(Ordering::SeqCst) == 0);
        }
        self.waiting.store(false, Ordering::SeqCst);
    }

    /// In a child after a fork: no thread but this reads, if it does.
    pub(super) fn restart(&self) {
        let own = reentry::with_thread(|thread| thread.seat.get());
        for (_, seat) in (1..).zip(&self.seats).filter(|(index, _)| *index != own) {
            let number = seat.number.load(Ordering::SeqCst);
            seat.number.store(number.wrapping_add(number % 2), Ordering::SeqCst);
            seat.taken.store(false, Ordering::SeqCst);
        }
        for (turn, count) in self.standing.iter().enumerate() {
            count.store(usize::from(own == STANDING + 1 + turn), Ordering::SeqCst);
        }
        self.waiting.store(false, Ordering::SeqCst);
    }
}

fn wait_until(done: impl Fn() -> bool) {
    let mut rounds = 0_u32;
    while !done() {
        rounds += 1;
        match rounds {
            0..100 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn readers_are_waited_for_with_a_seat_and_without() {
        static READERS: Readers = Readers::new();
        let (told, tell) = mpsc::channel();
        // More threads than seats, each of which reads until it is told to end.
        let threads: Vec<_> = (0..Readers::SEATS + 3)
            .map(|_| {
                let (end, ended) = mpsc::channel::<()>();
                let told = told.clone();
                let thread = std::thread::spawn(move || {
                    reentry::with_thread(|thread| {
                        let reading = READERS.enter(thread);
                        told.send(matches!(reading, Reading::Seated(..))).unwrap();
                        let _ = ended.recv();
                        drop(reading);
                        drop(READERS.enter(thread));
                    });
                });
                (thread, end)
            })
            .collect();
        let seated = tell.iter().take(threads.len()).filter(|seated| *seated).count();
        assert_eq!(seated, Readers::SEATS);
        let waiting = std::thread::spawn(|| READERS.wait());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished(), "somebody reads");
        for (thread, end) in threads {
            drop(end);
            thread.join().unwrap();
        }
        waiting.join().unwrap();
        READERS.wait();
    }
}
