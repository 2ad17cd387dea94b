use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

/// The same by the plainest means: a map from start to end and number.
#[derive(Debug, Default)]
struct Naive(BTreeMap<u64, (u64, u64)>);

impl Naive {
    fn remove(&mut self, start: u64, end: u64) {
        self.0.retain(|&from, &mut (to, _)| !(from < end && start < to));
    }

    fn insert(&mut self, range: Range) {
        self.remove(range.start, range.end);
        self.0.insert(range.start, (range.end, range.about));
    }

    fn find(&self, address: u64) -> Found {
        let before = self.0.range(..=address).next_back();
        if let Some((&start, &(end, about))) = before.filter(|(_, range)| address < range.0) {
            return Found::Range(Range { start, end, about });
        }
        Found::Gap(self.0.range(address..).next().map(|(&start, _)| start))
    }
}

/// Addresses as they are met: a few clusters that are far apart, tight inside.
fn address() -> impl Strategy<Value = u64> {
    let cluster = prop_oneof![
        Just(0_u64),
        Just(0x3_0200_0000),
        Just(0x7000_0000_0000),
        Just(0x7f12_3400_0000),
        Just(u64::MAX - 0x10_0000)
    ];
    (cluster, prop_oneof![0_u64..256, 0_u64..0x8_0000]).prop_map(|(base, offset)| base + offset)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn it_says_what_a_plain_map_says(
        changes in prop::collection::vec(
            (address(), 1_u64..5000, any::<u64>(), prop::bool::weighted(0.3)), 1..400),
        questions in prop::collection::vec(address(), 50),
    ) {
        let (index, mut naive) = (Index::new(), Naive::default());
        for (start, length, about, remove) in changes {
            let end = start + length;
            if remove {
                index.write().remove(start, end);
                naive.remove(start, end);
            } else {
                let added = index.write().insert(Range { start, end, about });
                prop_assert!(added);
                naive.insert(Range { start, end, about });
            }
            for at in [start.saturating_sub(1), start, end - 1, end] {
                prop_assert_eq!(index.find(at), naive.find(at), "at {:#x}", at);
            }
        }
        for at in questions {
            prop_assert_eq!(index.find(at), naive.find(at), "at {:#x}", at);
        }
        let all: Vec<_> =
            naive.0.iter().map(|(&start, &(end, about))| Range { start, end, about }).collect();
        prop_assert_eq!(index.write().ranges(), all);
    }
}

#[test]
fn nonsense_is_refused() {
    let index = Index::new();
    assert_eq!(index.find(5), Found::Gap(None));
    assert!(!index.write().insert(Range { start: 5, end: 5, about: 0 }));
    assert!(!index.write().insert(Range { start: 5, end: u64::MAX, about: 0 }));
    assert!(index.is_empty());
    assert_eq!(index.find(u64::MAX), Found::Gap(None));
}

#[test]
fn thousands_of_ranges_in_every_order() {
    let index = Index::new();
    let range = |n: u64| Range { start: 0x1000 * n, end: 0x1000 * n + 0x800, about: n };
    for n in 0..3000 {
        let n = n * 1103 % 3000; // Coprime to 3000, so that each comes once.
        assert!(index.write().insert(range(n)));
    }
    assert_eq!(index.len(), 3000);
    for n in 0..3000 {
        assert_eq!(index.find(0x1000 * n + 0x7ff), Found::Range(range(n)));
        let next = (n < 2999).then_some(0x1000 * (n + 1));
        assert_eq!(index.find(0x1000 * n + 0x800), Found::Gap(next));
    }
    for n in 0..3000 {
        assert_eq!(index.write().remove(0x1000 * n, 0x1000 * n + 1), (1, Some(range(n))));
    }
    assert!(index.is_empty());
}

/// Eight threads: half change ranges of their own and hold what they read against a plain
/// map, the others look at ranges that never change and must always be found as they are.
#[test]
fn readers_are_right_while_writers_write() {
    const FIXED: u64 = 500;
    let fixed = |n: u64| Range { start: n << 20, end: (n << 20) + 4096, about: n * 7 };
    let index = Index::new();
    for n in 0..FIXED {
        assert!(index.write().insert(fixed(n)));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = [0_u64, 1, 2, 3].map(|number| {
            let index = &index;
            scope.spawn(move || {
                let mut naive = Naive::default();
                let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1);
                for _ in 0..1500 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    // Behind the fixed one of the same megabyte, in a part of its own.
                    let start = ((random % FIXED) << 20) + 0x1_0000 * (number + 1);
                    let range = Range { start, end: start + 1 + random % 0x1_0000, about: random };
                    if random & 0x100 == 0 {
                        index.write().remove(range.start, range.end);
                        naive.remove(range.start, range.end);
                    } else {
                        assert!(index.write().insert(range));
                        naive.insert(range);
                    }
                    match (naive.find(start), index.find(start)) {
                        (Found::Gap(_), Found::Gap(_) | Found::Busy) => {}
                        (expected, found) => assert!(found == expected || found == Found::Busy),
                    }
                }
            })
        });
        for seed in 0..4_u64 {
            let (index, done) = (&index, &done);
            scope.spawn(move || {
                let (mut n, mut known) = (seed, 0_u64);
                while !done.load(Ordering::Relaxed) || known == 0 {
                    n = (n * 5 + 3) % FIXED;
                    match index.find((n << 20) + 4095) {
                        Found::Range(found) => {
                            assert_eq!(found, fixed(n));
                            known += 1;
                        }
                        Found::Busy => {}
                        Found::Gap(_) => panic!("{n} was not found"),
                    }
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Kinds of memory far apart, of which one is much larger: every question about each of them,
/// and about what lies between, whichever cluster is tried first.
#[test]
fn clusters_of_every_size_are_found() {
    let index = Index::new();
    let mut naive = Naive::default();
    let bases = [0x1000_u64, 0x3_0200_0000, 0x7f12_3400_0000, 0x7f80_0000_0000];
    for (number, &base) in bases.iter().enumerate() {
        for n in 0..[3, 400, 40, 7][number] {
            let start = base + n * 0x20_0000;
            let range = Range { start, end: start + 0x18_0000 + n, about: n };
            assert!(index.write().insert(range));
            naive.insert(range);
        }
    }
    for &base in &bases {
        for n in 0..410 {
            for at in [0, 1, 0x17_ffff, 0x18_0000 + n, 0x1f_ffff] {
                let address = (base + n * 0x20_0000 + at).wrapping_sub(1);
                assert_eq!(index.find(address), naive.find(address), "at {address:#x}");
            }
        }
    }
    assert_eq!(index.find(0), naive.find(0));
    assert_eq!(index.find(u64::MAX), Found::Gap(None));
}
