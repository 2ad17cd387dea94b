use super::*;
use crate::event::{EventKind, MemoryClass};
use std::sync::atomic::{AtomicBool, AtomicUsize};

// The subscribers are the process's: each test looks only at events of its own addresses.
fn event(address: usize) -> Event {
    Event {
        kind: EventKind::Allocated,
        address,
        size: 1,
        class: MemoryClass::Device,
        symbol: c"test",
    }
}

fn dispatch(event: Event) {
    reentry::with_thread(|thread| super::dispatch(thread, &event));
}

fn log() -> (Arc<Mutex<Vec<u32>>>, impl Fn(u32) + Clone + Send + Sync + 'static) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = log.clone();
    (log, move |entry| writer.lock().unwrap().push(entry))
}

#[test]
fn handlers_come_in_the_order_of_their_priorities() {
    let (log, note) = log();
    let subscriptions = [(5, 2), (-1, 1), (5, 3)].map(|(priority, number)| {
        let note = note.clone();
        subscribe(priority, move |event| {
            if event.address == 0x1000 {
                note(number);
            }
        })
    });
    dispatch(event(0x1000));
    assert_eq!(*log.lock().unwrap(), [1, 2, 3]);
    assert!(subscriptions[1].cancel());
    assert!(!subscriptions[1].cancel(), "ended already");
    dispatch(event(0x1000));
    assert_eq!(*log.lock().unwrap(), [1, 2, 3, 2, 3]);
    assert!(subscriptions[0].cancel());
    assert!(subscriptions[2].cancel());
}

#[test]
fn what_a_handler_causes_comes_after_its_own_event() {
    let (log, note) = log();
    let second = note.clone();
    let first = subscribe(0, move |event| {
        if event.address == 0x2000 {
            dispatch(self::event(0x2001));
            dispatch(self::event(0x2002));
            note(0x2000);
        }
    });
    let last = subscribe(1, move |event| {
        if event.address >> 8 == 0x20 {
            second(event.address as u32);
        }
    });
    dispatch(event(0x2000));
    assert_eq!(*log.lock().unwrap(), [0x2000, 0x2000, 0x2001, 0x2002]);
    assert!(first.cancel() && last.cancel());
}

#[test]
fn a_handler_can_end_itself_and_a_panic_ends_with_the_handler() {
    let (log, note) = log();
    let own = Arc::new(Mutex::new(None::<Subscription>));
    let inside = own.clone();
    let subscription = subscribe(0, move |event| {
        if event.address == 0x3000 {
            note(1);
            assert!(inside.lock().unwrap().unwrap().cancel());
            panic!("on purpose");
        }
    });
    *own.lock().unwrap() = Some(subscription);
    dispatch(event(0x3000));
    dispatch(event(0x3000));
    assert_eq!(*log.lock().unwrap(), [1]);
}

#[test]
fn after_cancelling_the_handler_does_not_run_anywhere() {
    let stop = AtomicBool::new(false);
    let late = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    dispatch(event(0x4000));
                }
            });
        }
        for _ in 0..200 {
            let alive = Arc::new(AtomicBool::new(true));
            let seen = alive.clone();
            let runs_late = late.clone();
            let subscription = subscribe(0, move |_| {
                if !seen.load(Ordering::SeqCst) {
                    runs_late.fetch_add(1, Ordering::SeqCst);
                }
            });
            dispatch(event(0x4000));
            subscription.cancel();
            alive.store(false, Ordering::SeqCst);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(late.load(Ordering::SeqCst), 0);
}
