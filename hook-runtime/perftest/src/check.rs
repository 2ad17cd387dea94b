//! Whether bytes arrive: copies at random sizes and offsets between every two kinds of
//! memory, held against the same copies made in plain memory.

use hook_runtime::memtype::Kind;
use hook_runtime::transport::CopyError;
use hook_runtime::transport::cuda_copy::Copier;
use hook_runtime::transport::settings::Settings;

use crate::buffer::{Buffer, Form, Session};
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
        let mut bytes = vec![0; count.next_multiple_of(8)];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(
                &(self.next() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes(),
            );
        }
        bytes.truncate(count);
        bytes
    }
}

/// The pairs of kinds between which bytes did not arrive as they should, and how many copies
/// were made for each pair.
pub(crate) fn pairs(session: &Session) -> Result<(Vec<(Kind, Kind)>, u64), CopyError> {
    let mut wrong = Vec::new();
    let mut random = Random(0x1234_5678_9abc_def1);
    for from in KINDS {
        for to in KINDS {
            if !pair((session, session), from, to, &mut random)? {
                wrong.push((from, to));
            }
        }
    }
    Ok((wrong, COPIES))
}

/// Whether memory of a second process shows the bytes that it wrote there, and takes those
/// that are written from here: copies at random places, both ways.
pub(crate) fn remote(session: &Session, device: i32, form: Form) -> Result<bool, String> {
    let text = |error: CopyError| error.to_string();
    let remote = Remote::start(session, device, form, SIZE)?;
    let mut copier = Copier::new(session.driver, Settings::from_environment());
    let there = copier.region(remote.mapping.address(), SIZE).map_err(text)?;
    let buffer = Buffer::new(session, Kind::Device, SIZE).map_err(|error| error.to_string())?;
    let here = copier.region(buffer.address, SIZE).map_err(text)?;
    let mut random = Random(0x2468_ace0_1357_9bdf);
    let (mut expected, mut own) = (pattern(SIZE), random.bytes(SIZE));
    buffer.fill(&own).map_err(|error| error.to_string())?;
    for number in 0..COPIES {
        let size = random.next() % if number % 8 == 0 { SIZE / 2 } else { 5000 };
        let (at, into) = (random.next() % (SIZE - size), random.next() % (SIZE - size));
        let done = if number % 2 == 0 {
            own[into..into + size].copy_from_slice(&expected[at..at + size]);
            // SAFETY: the mapping is held, the buffer ours; nothing else touches them.
            unsafe { copier.copy_now((&here, into), (&there, at), size) }
        } else {
            expected[into..into + size].copy_from_slice(&own[at..at + size]);
            // SAFETY: as above.
            unsafe { copier.copy_now((&there, into), (&here, at), size) }
        };
        done.map_err(text)?;
    }
    let mut seen = vec![0_u8; SIZE];
    let (to, from) = (seen.as_mut_ptr() as u64, remote.mapping.address() as u64);
    // SAFETY: both are as long as this.
    unsafe { session.driver.calls.copy(to, from, SIZE) }.map_err(|error| error.to_string())?;
    Ok(seen == expected && buffer.read().map_err(|error| error.to_string())? == own)
}

/// Checks everything, a line for each thing. False if bytes were wrong.
pub(crate) fn all(session: &Session, peer: Option<i32>) -> Result<bool, String> {
    let mut right = true;
    let mut line = |what: String, result: Result<bool, String>| {
        let said = match result {
            Ok(true) => "right".to_owned(),
            Ok(false) => "WRONG".to_owned(),
            Err(error) => format!("not done: {error}"),
        };
        right &= said != "WRONG";
        println!("{what}: {said}");
    };
    let mut random = Random(0x0f1e_2d3c_4b5a_6978);
    let other = match peer {
        Some(device) => Some(session.peer(device).map_err(|error| error.to_string())?),
        None => None,
    };
    let mut sessions = vec![(session, session, String::new())];
    if let Some((other, can)) = &other {
        let how = if *can { "peer access" } else { "no peer access" };
        println!("devices {} and {}: {how}", session.device, other.device);
        sessions.push((session, other, format!(" on device {}", other.device)));
        sessions.push((other, session, format!(" from device {}", other.device)));
    }
    for (one, two, place) in sessions {
        for (from, to) in KINDS.iter().flat_map(|from| KINDS.map(|to| (*from, to))) {
            let result = pair((one, two), from, to, &mut random).map_err(|error| error.to_string());
            line(format!("copies {from:?} to {to:?}{place}"), result);
        }
    }
    let devices = std::iter::once(session.device).chain(peer);
    for (device, form) in devices.flat_map(|device| Form::ALL.map(|form| (device, form))) {
        let what = format!("another process, {} memory on device {device}", form.name());
        line(what, remote(session, device, form));
    }
    Ok(right)
}

fn pair(
    (session, other): (&Session, &Session),
    from_kind: Kind,
    to_kind: Kind,
    random: &mut Random,
) -> Result<bool, CopyError> {
    let (from, to) = (Buffer::new(session, from_kind, SIZE)?, Buffer::new(other, to_kind, SIZE)?);
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
