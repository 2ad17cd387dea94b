//! Whether bytes arrive: copies at random sizes and offsets between every two kinds of
//! memory, held against the same copies made in plain memory.

use hook_runtime::memtype::Kind;
use hook_runtime::transport::CopyError;
use hook_runtime::transport::cuda_copy::Copier;
use hook_runtime::transport::settings::Settings;

use crate::buffer::{Buffer, Session};
use crate::pair::{Remote, pattern};

const SIZE: usize = 4 << 20;
const COPIES: u64 = 200;
pub(crate) const KINDS: [Kind; 4] = [Kind::Host, Kind::Pinned, Kind::Device, Kind::Managed];

/// Numbers that look random and are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(4))
            .flat_map(|_| (self.next() as u32).to_le_bytes())
            .take(count)
            .collect()
    }
}

/// The pairs of kinds between which bytes did not arrive as they should, and how many copies
/// were made for each pair.
pub(crate) fn pairs(session: &Session) -> Result<(Vec<(Kind, Kind)>, u64), CopyError> {
    let mut wrong = Vec::new();
    let mut random = Random(0x1234_5678_9abc_def1);
    for from in KINDS {
        for to in KINDS {
            if !pair(session, from, to, &mut random)? {
                wrong.push((from, to));
            }
        }
    }
    Ok((wrong, COPIES))
}

/// Whether memory of a second process shows the bytes that this process wrote there.
pub(crate) fn remote(session: &Session) -> Result<bool, String> {
    let text = |error: CopyError| error.to_string();
    let remote = Remote::start(session, SIZE)?;
    let mut copier = Copier::new(session.driver, Settings::from_environment());
    let there = copier.region(remote.mapping.address(), SIZE).map_err(text)?;
    let mut bytes = vec![0_u8; SIZE];
    let here = copier.region(bytes.as_mut_ptr() as usize, SIZE).map_err(text)?;
    // SAFETY: the mapping is held and the vector ours; nothing else touches them.
    unsafe { copier.copy_now((&here, 0), (&there, 0), SIZE) }.map_err(text)?;
    Ok(bytes == pattern(SIZE))
}

fn pair(
    session: &Session,
    from_kind: Kind,
    to_kind: Kind,
    random: &mut Random,
) -> Result<bool, CopyError> {
    let (from, to) = (Buffer::new(session, from_kind, SIZE)?, Buffer::new(session, to_kind, SIZE)?);
    let (source, mut expected) = (random.bytes(SIZE), random.bytes(SIZE));
    from.fill(&source)?;
    to.fill(&expected)?;
    let mut copier = Copier::new(session.driver, Settings::from_environment());
    let (from_region, to_region) =
        (copier.region(from.address, SIZE)?, copier.region(to.address, SIZE)?);
    let mut failed = None;
    for token in 0..COPIES {
        let size = match token % 8 {
            0 => random.next() % (SIZE / 2),
            1 => random.next() % 200_000,
            _ => random.next() % 4097,
        };
        // Every other one on whole words, as applications do.
        let mask = if token % 2 == 0 { usize::MAX } else { !15 };
        let at = (random.next() % (SIZE - size)) & mask;
        let into = (random.next() % (SIZE - size)) & mask;
        expected[into..into + size].copy_from_slice(&source[at..at + size]);
        // SAFETY: both buffers stay until the flush, and nothing else touches them.
        unsafe { copier.copy((&to_region, into), (&from_region, at), size, token) }?;
        copier.progress(&mut |_, result| failed = failed.take().or(result.err()));
    }
    copier.flush(&mut |_, result| failed = failed.take().or(result.err()))?;
    if let Some(error) = failed {
        return Err(error);
    }
    Ok(to.read()? == expected)
}
