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
    /// The largest cluster once more, which most questions are about: it is tried first. Where
    /// it begins, how many bytes it covers, and its first bucket.
    main: AtomicU64,
    main_span: AtomicU64,
    main_shift: AtomicU32,
    main_bucket: AtomicU32,
    /// The first address of each cluster; all ones if there are fewer.
    firsts: [AtomicU64; CLUSTERS],
    clusters: [Cluster; CLUSTERS],
    /// How many ranges start before each bucket, and one place more for the end.
    before: Box<[AtomicU32]>,
    used: AtomicUsize,
    changes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Cluster {
    first: AtomicU64,
    shift: AtomicU32,
    /// The number of its first and of its last bucket.
    bucket: AtomicU32,
    last: AtomicU32,
}

impl Cluster {
    /// The bucket of an address that lies `inside` bytes behind the first one.
    #[inline]
    fn bucket(&self, inside: u64) -> usize {
        let last = self.last.load(Ordering::Relaxed);
        let shift = self.shift.load(Ordering::Relaxed);
        let bucket = (inside >> (shift & 63)) + u64::from(self.bucket.load(Ordering::Relaxed));
        bucket.min(u64::from(last)) as usize
    }

    fn put(&self, first: u64, shift: u32, bucket: usize, last: usize) {
        self.first.store(first, Ordering::Relaxed);
        self.shift.store(shift, Ordering::Relaxed);
        self.bucket.store(bucket as u32, Ordering::Relaxed);
        self.last.store(last as u32, Ordering::Relaxed);
    }
}

impl Directory {
    pub(super) fn new(capacity: usize) -> Self {
        // Each cluster's width is rounded, which may bring a bucket more.
        let places = BUCKETS_PER_RANGE * capacity + 2 * CLUSTERS + 1;
        let this = Self {
            main: AtomicU64::new(0),
            main_span: AtomicU64::new(0),
            main_shift: AtomicU32::new(0),
            main_bucket: AtomicU32::new(0),
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
        let inside = address.wrapping_sub(self.main.load(Ordering::Relaxed));
        let bucket = match inside < self.main_span.load(Ordering::Relaxed) {
            true => {
                let shift = self.main_shift.load(Ordering::Relaxed) & 63;
                (inside >> shift) as usize + self.main_bucket.load(Ordering::Relaxed) as usize
            }
            false => self.bucket_of(address)?,
        };
        Some(self.before.get(bucket)?.load(Ordering::Relaxed) as usize)
    }

    fn bucket_of(&self, address: u64) -> Option<usize> {
        // Half, a quarter, an eighth of the clusters: without a branch to be guessed wrong.
        let mut number = 0;
        for step in [CLUSTERS / 2, CLUSTERS / 4, CLUSTERS / 8] {
            let first = self.firsts[(number + step) % CLUSTERS].load(Ordering::Relaxed);
            number += step * usize::from(first <= address);
        }
        let cluster = self.clusters.get(number)?;
        // An address before the first cluster counts for that one's first bucket.
        Some(cluster.bucket(address.saturating_sub(cluster.first.load(Ordering::Relaxed))))
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

    /// Builds the directory for ranges that are in order.
    pub(super) fn build(&self, ranges: &[Entry]) {
        let cuts = cuts(ranges);
        let end_of = |number: usize| cuts.get(number + 1).copied().unwrap_or(ranges.len());
        let count = if ranges.is_empty() { 0 } else { cuts.len() };
        let size = |number: &usize| end_of(*number) - cuts[*number];
        let main = (0..count).max_by_key(size).unwrap_or(0);
        self.main_span.store(0, Ordering::Relaxed);
        for first in &self.firsts {
            first.store(u64::MAX, Ordering::Relaxed);
        }
        let mut bucket = 0;
        for (number, &begin) in cuts.iter().enumerate().take(count) {
            let end = end_of(number);
            let start = |place: usize| ranges[place].start();
            let first = start(begin);
            // Up to the end of the last range, so that every address in it has a bucket.
            let span = ranges[end - 1].range().end - 1 - first;
            let shift = shift_for(span, BUCKETS_PER_RANGE * (end - begin));
            let last = bucket + (span >> shift) as usize;
            self.firsts[number].store(first, Ordering::Relaxed);
            self.clusters[number].put(first, shift, bucket, last);
            if number == main {
                self.main.store(first, Ordering::Relaxed);
                self.main_shift.store(shift, Ordering::Relaxed);
                self.main_bucket.store(bucket as u32, Ordering::Relaxed);
                self.main_span.store(span + 1, Ordering::Relaxed);
            }
            let mut place = begin;
            for (offset, before) in self.before[bucket..=last].iter().enumerate() {
                while place < end && (start(place) - first) >> shift < offset as u64 {
                    place += 1;
                }
                before.store(place as u32, Ordering::Relaxed);
            }
            bucket = last + 1;
        }
        if count == 0 {
            // One bucket for everything.
            self.clusters[0].put(0, 0, 0, 0);
            self.before[0].store(0, Ordering::Relaxed);
            bucket = 1;
        }
        self.before[bucket].store(ranges.len() as u32, Ordering::Relaxed);
        self.used.store(bucket, Ordering::Relaxed);
        self.changes.store(0, Ordering::Relaxed);
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

/// Where clusters begin: at the first range, and behind the widest gaps, as far as leaving a
/// gap out makes what is left of the addresses noticeably shorter.
fn cuts(ranges: &[Entry]) -> Vec<usize> {
    /// A part of what is left that is worth a cluster of its own.
    const NOTICEABLE: u64 = 16;
    // The narrowest first, as that is the one to make room.
    let mut widest: Vec<(u64, usize)> = Vec::with_capacity(CLUSTERS);
    for (place, pair) in ranges.windows(2).enumerate() {
        let gap = pair[1].start() - pair[0].start();
        if widest.len() < CLUSTERS - 1 {
            widest.push((gap, place + 1));
            widest.sort_unstable();
        } else if gap > widest[0].0 {
            widest[0] = (gap, place + 1);
            widest.sort_unstable();
        }
    }
    let (first, last) =
        (ranges.first().map_or(0, Entry::start), ranges.last().map_or(0, Entry::start));
    let mut left = last - first;
    let mut cuts = vec![0];
    for (gap, place) in widest.into_iter().rev() {
        if gap < left / NOTICEABLE {
            break;
        }
        left -= gap;
        cuts.push(place);
    }
    cuts.sort_unstable();
    cuts
}
