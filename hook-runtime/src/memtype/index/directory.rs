//! From an address to the ranges that start near it, in a few instructions.
//!
//! Addresses come in clusters that lie far apart: device memory, managed memory, pinned
//! host memory. Each cluster is cut into buckets of the same width, a power of two, about
//! four for each range; a bucket knows how many ranges start before it. Whatever the
//! addresses are, the answer is right; if they are spread unevenly, it takes longer.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::Entry;

/// How many ranges of a bucket are compared without a branch.
pub(super) const WINDOW: usize = 2;

/// What three comparisons tell apart.
const CLUSTERS: usize = 8;
const BUCKETS_PER_RANGE: usize = 4;
/// A directory is not made anew for fewer changes than this.
const PATIENCE: usize = 16;

#[derive(Debug)]
pub(super) struct Directory {
    /// The first address of each cluster; all ones if there are fewer.
    firsts: [AtomicU64; CLUSTERS],
    clusters: [Cluster; CLUSTERS],
    /// How many ranges start before each bucket, and one place more for the end.
    before: Box<[AtomicU32]>,
    used: AtomicUsize,
    changes: AtomicUsize,
}

#[derive(Debug, Default)]
#[repr(align(32))]
struct Cluster {
    first: AtomicU64,
    shift: AtomicU32,
    /// The number of its first and of its last bucket.
    bucket: AtomicU32,
    last: AtomicU32,
}

impl Directory {
    pub(super) fn new(capacity: usize) -> Self {
        // Each cluster's width is rounded, which may bring a bucket more.
        let places = BUCKETS_PER_RANGE * capacity + 2 * CLUSTERS + 1;
        let this = Self {
            firsts: [const { AtomicU64::new(u64::MAX) }; CLUSTERS],
            clusters: Default::default(),
            before: (0..places).map(|_| AtomicU32::new(0)).collect(),
            used: AtomicUsize::new(0),
            changes: AtomicUsize::new(0),
        };
        this.build(&[]);
        this
    }

    /// How many ranges start before the bucket of `address`.
    #[inline]
    pub(super) fn before(&self, address: u64) -> Option<usize> {
        let bucket = self.bucket_of(address)?;
        Some(self.before.get(bucket)?.load(Ordering::Relaxed) as usize)
    }

    #[inline]
    fn bucket_of(&self, address: u64) -> Option<usize> {
        // Half, a quarter, an eighth of the clusters: without a branch to be guessed wrong.
        let mut number = 0;
        for step in [CLUSTERS / 2, CLUSTERS / 4, CLUSTERS / 8] {
            let first = self.firsts[(number + step) % CLUSTERS].load(Ordering::Relaxed);
            number += step * usize::from(first <= address);
        }
        let cluster = self.clusters.get(number)?;
        // An address before the first cluster counts for that one's first bucket.
        let inside = address.saturating_sub(cluster.first.load(Ordering::Relaxed));
        let last = cluster.last.load(Ordering::Relaxed);
        let shift = cluster.shift.load(Ordering::Relaxed);
        let bucket = (inside >> (shift & 63)) + u64::from(cluster.bucket.load(Ordering::Relaxed));
        Some(bucket.min(u64::from(last)) as usize)
    }

    /// A range that starts at `start` has been added. False if it is time to build anew.
    pub(super) fn added(&self, start: u64) -> bool {
        let Some(bucket) = self.bucket_of(start) else { return false };
        let used = self.used.load(Ordering::Relaxed);
        for place in &self.before[bucket + 1..=used] {
            place.store(place.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        let changes = self.changes.fetch_add(1, Ordering::Relaxed);
        let here = self.before[bucket + 1].load(Ordering::Relaxed)
            - self.before[bucket].load(Ordering::Relaxed);
        here as usize <= WINDOW || changes < PATIENCE.max(used / 16)
    }

    /// A range that starts at `start` is about to go.
    pub(super) fn removed(&self, start: u64) {
        let Some(bucket) = self.bucket_of(start) else { return };
        for place in &self.before[bucket + 1..=self.used.load(Ordering::Relaxed)] {
            place.store(place.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Builds the directory for ranges that start at `starts`, which are in order.
    pub(super) fn build(&self, starts: &[Entry]) {
        let start = |place: usize| starts[place].start();
        let cuts = cuts(starts);
        let mut bucket = 0;
        for (number, cluster) in self.clusters.iter().enumerate() {
            let Some(&begin) = cuts.get(number).filter(|_| !starts.is_empty()) else {
                self.firsts[number].store(u64::MAX, Ordering::Relaxed);
                continue;
            };
            let end = cuts.get(number + 1).copied().unwrap_or(starts.len());
            let span = start(end - 1) - start(begin);
            let shift = shift_for(span, BUCKETS_PER_RANGE * (end - begin));
            let last = bucket + (span >> shift) as usize;
            self.firsts[number].store(start(begin), Ordering::Relaxed);
            cluster.first.store(start(begin), Ordering::Relaxed);
            cluster.shift.store(shift, Ordering::Relaxed);
            cluster.bucket.store(bucket as u32, Ordering::Relaxed);
            cluster.last.store(last as u32, Ordering::Relaxed);
            let mut place = begin;
            for (offset, before) in self.before[bucket..=last].iter().enumerate() {
                while place < end && (start(place) - start(begin)) >> shift < offset as u64 {
                    place += 1;
                }
                before.store(place as u32, Ordering::Relaxed);
            }
            bucket = last + 1;
        }
        if starts.is_empty() {
            self.clear();
            bucket = 1;
        }
        self.before[bucket].store(starts.len() as u32, Ordering::Relaxed);
        self.used.store(bucket, Ordering::Relaxed);
        self.changes.store(0, Ordering::Relaxed);
    }

    /// One bucket for everything.
    fn clear(&self) {
        let cluster = &self.clusters[0];
        cluster.first.store(0, Ordering::Relaxed);
        for number in [&cluster.shift, &cluster.bucket, &cluster.last, &self.before[0]] {
            number.store(0, Ordering::Relaxed);
        }
    }
}

/// The smallest shift that leaves fewer than `buckets` of a span.
fn shift_for(span: u64, buckets: usize) -> u32 {
    let mut shift = 0;
    while span >> shift >= buckets as u64 {
        shift += 1;
    }
    shift
}

/// Where clusters begin: at the first range, and behind the widest gaps.
fn cuts(starts: &[Entry]) -> Vec<usize> {
    // The narrowest first, as that is the one to make room.
    let mut widest: Vec<(u64, usize)> = Vec::with_capacity(CLUSTERS);
    for (place, pair) in starts.windows(2).enumerate() {
        let gap = pair[1].start() - pair[0].start();
        if widest.len() < CLUSTERS - 1 {
            widest.push((gap, place + 1));
            widest.sort_unstable();
        } else if gap > widest[0].0 {
            widest[0] = (gap, place + 1);
            widest.sort_unstable();
        }
    }
    let mut cuts: Vec<usize> = std::iter::once(0).chain(widest.iter().map(|cut| cut.1)).collect();
    cuts.sort_unstable();
    cuts
}
