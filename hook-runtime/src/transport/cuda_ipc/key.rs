//! What one process tells another about its memory.

use super::IpcError;
use crate::cuda::driver::types::IpcHandle;
use crate::sys::identity::Identity;

/// Names an allocation of a process for others on the same machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Whose memory it is.
    pub(super) owner: Identity,
    /// The device, by what is the same in every process.
    pub(super) device: [u8; 16],
    /// A number that no other allocation of the owner has had.
    pub(super) buffer: u64,
    /// Where the allocation starts, in the owner.
    pub(super) base: u64,
    /// Its length.
    pub(super) length: u64,
    pub(super) how: How,
    /// Bytes at the start of a piece of memory, to try whether this way leads there.
    pub(super) probe: Option<Box<Probe>>,
}

/// How it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// By a handle of the driver's.
    Legacy(IpcHandle),
    /// By file descriptors, one for each piece.
    Pieces(Vec<Piece>),
}

/// A piece of mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) length: u64,
    /// The descriptor's number in its owner, and the number that it is offered under.
    pub(super) descriptor: i32,
    pub(super) offer: u64,
}

/// Memory of the owner's that holds known bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) key: Key,
    pub(super) bytes: [u8; 32],
}

const MAGIC: [u8; 8] = *b"hookipc1";
const LEGACY: u8 = 1;
const PIECES: u8 = 2;
/// More than any application maps side by side; a limit for what is read from elsewhere.
const MOST_PIECES: usize = 1 << 16;

impl Key {
    /// The process that the memory belongs to.
    pub fn process(&self) -> u32 {
        self.owner.process
    }

    /// The range that it stands for, by the owner's addresses.
    pub fn range(&self) -> (u64, u64) {
        (self.base, self.length)
    }

    /// The key as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let Identity { machine, namespace, process, start } = self.owner;
        bytes.extend(machine);
        bytes.extend(namespace.to_le_bytes());
        bytes.extend(process.to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend(self.device);
        for number in [self.buffer, self.base, self.length] {
            bytes.extend(number.to_le_bytes());
        }
        match &self.how {
            How::Legacy(handle) => {
                bytes.push(LEGACY);
                bytes.extend(handle.0);
            }
            How::Pieces(pieces) => {
                bytes.push(PIECES);
                bytes.extend((pieces.len() as u32).to_le_bytes());
                for piece in pieces {
                    bytes.extend(piece.length.to_le_bytes());
                    bytes.extend(piece.descriptor.to_le_bytes());
                    bytes.extend(piece.offer.to_le_bytes());
                }
            }
        }
        bytes.push(u8::from(self.probe.is_some()));
        if let Some(probe) = &self.probe {
            bytes.extend(probe.bytes);
            probe.key.write(bytes);
        }
    }

    /// Reads a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, IpcError> {
        let mut reader = Reader(bytes);
        if reader.take::<8>()? != MAGIC {
            return Err(IpcError::BadKey("it does not begin like one"));
        }
        let key = Self::read(&mut reader, true)?;
        if reader.0.is_empty() { Ok(key) } else { Err(IpcError::BadKey("it is too long")) }
    }

    fn read(reader: &mut Reader<'_>, may_have_probe: bool) -> Result<Self, IpcError> {
        let owner = Identity {
            machine: reader.take()?,
            namespace: reader.number()?,
            process: u32::from_le_bytes(reader.take()?),
            start: reader.number()?,
        };
        let device = reader.take()?;
        let (buffer, base, length) = (reader.number()?, reader.number()?, reader.number()?);
        let how = match reader.take()? {
            [LEGACY] => How::Legacy(IpcHandle(reader.take()?)),
            [PIECES] => {
                let count = u32::from_le_bytes(reader.take()?) as usize;
                if count > MOST_PIECES {
                    return Err(IpcError::BadKey("it has too many pieces"));
                }
                How::Pieces((0..count).map(|_| reader.piece()).collect::<Result<_, _>>()?)
            }
            _ => return Err(IpcError::BadKey("it names no way")),
        };
        let probe = match (reader.take()?, may_have_probe) {
            ([0], _) => None,
            ([1], true) => {
                let bytes = reader.take()?;
                Some(Box::new(Probe { key: Self::read(reader, false)?, bytes }))
            }
            _ => return Err(IpcError::BadKey("its end is wrong")),
        };
        Ok(Self { owner, device, buffer, base, length, how, probe })
    }
}

struct Reader<'bytes>(&'bytes [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], IpcError> {
        let (first, rest) =
            self.0.split_first_chunk().ok_or(IpcError::BadKey("it is too short"))?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, IpcError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn piece(&mut self) -> Result<Piece, IpcError> {
        let length = self.number()?;
        let descriptor = i32::from_le_bytes(self.take()?);
        Ok(Piece { length, descriptor, offer: self.number()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(how: How) -> Key {
        let owner = Identity::own();
        Key { owner, device: [7; 16], buffer: 9, base: 1 << 40, length: 4096, how, probe: None }
    }

    #[test]
    fn a_key_survives_the_way_and_nonsense_is_refused() {
        let piece = Piece { length: 2 << 20, descriptor: 12, offer: 99 };
        let pieces = key(How::Pieces(vec![piece; 3]));
        let probe = Some(Box::new(Probe { key: pieces.clone(), bytes: [3; 32] }));
        let legacy = Key { probe, ..key(How::Legacy(IpcHandle([5; 64]))) };
        for key in [pieces, legacy] {
            let bytes = key.to_bytes();
            assert_eq!(Key::from_bytes(&bytes).unwrap(), key);
            for end in 0..bytes.len() {
                assert!(Key::from_bytes(&bytes[..end]).is_err(), "cut off at {end}");
            }
            assert!(Key::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        }
    }
}
