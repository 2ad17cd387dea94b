//! How many processors this thread may use.

/// The number of processors in the calling thread's affinity mask; 1 if it cannot be told.
pub fn processors() -> usize {
    let mask = rustix::thread::sched_getaffinity(None);
    mask.map_or(1, |mask| mask.count().max(1) as usize)
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_at_least_this_one() {
        assert!(super::processors() >= 1);
    }
}
