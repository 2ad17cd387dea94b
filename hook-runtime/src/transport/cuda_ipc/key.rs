//! What one process tells another about its memory.

use super::IpcError;
use crate::cuda::driver::types::{FabricHandle, IpcHandle, PoolPointer};
use crate::sys::identity::Identity;

/// Names an allocation of a process for others.
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
    /// Piece by piece, each handed over by itself.
    Pieces(Vec<Piece>),
    /// By the pool that it comes from, and its place there.
    Pool(Handed, PoolPointer),
}

/// A piece of mapped memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) length: u64,
    pub(super) handed: Handed,
}

/// Physical memory, or a pool, as it is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Handed {
    /// Which one, among all that the owner has handed over; it is offered under this number.
    pub(super) number: u64,
    /// The descriptor's number in its owner.
    pub(super) descriptor: Option<i32>,
    /// What is needed to have it over the fabric.
    pub(super) fabric: Option<FabricHandle>,
}

/// Memory of the owner's that holds known bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) key: Key,
    pub(super) bytes: [u8; 32],
}

const MAGIC: [u8; 8] = *b"hookipc2";
const LEGACY: u8 = 1;
const PIECES: u8 = 2;
const POOL: u8 = 3;
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

    /// Whether it can be opened without descriptors, and so from anywhere on the fabric.
    pub fn is_on_fabric(&self) -> bool {
        match &self.how {
            How::Legacy(_) => false,
            How::Pieces(pieces) => pieces.iter().all(|piece| piece.handed.fabric.is_some()),
            How::Pool(handed, _) => handed.fabric.is_some(),
        }
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
                    piece.handed.write(bytes);
                }
            }
            How::Pool(handed, pointer) => {
                bytes.push(POOL);
                handed.write(bytes);
                bytes.extend(pointer.0);
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
            [POOL] => How::Pool(reader.handed()?, PoolPointer(reader.take()?)),
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

impl Handed {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.descriptor.unwrap_or(-1).to_le_bytes());
        bytes.push(u8::from(self.fabric.is_some()));
        bytes.extend(self.fabric.iter().flat_map(|handle| handle.0));
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
        Ok(Piece { length: self.number()?, handed: self.handed()? })
    }

    fn handed(&mut self) -> Result<Handed, IpcError> {
        let number = self.number()?;
        let descriptor = i32::from_le_bytes(self.take()?);
        let fabric = match self.take()? {
            [0] => None,
            [1] => Some(FabricHandle(self.take()?)),
            _ => return Err(IpcError::BadKey("it says neither yes nor no to the fabric")),
        };
        Ok(Handed { number, descriptor: (descriptor >= 0).then_some(descriptor), fabric })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(how: How) -> Key {
        let owner = Identity::own();
        Key { owner, device: [7; 16], buffer: 9, base: 1 << 40, length: 4096, how, probe: None }
    }

    fn handed(descriptor: Option<i32>, fabric: bool) -> Handed {
        Handed { number: 99, descriptor, fabric: fabric.then_some(FabricHandle([4; 64])) }
    }

    fn all() -> [Key; 4] {
        let piece = Piece { length: 2 << 20, handed: handed(Some(12), false) };
        let far = Piece { handed: handed(None, true), ..piece };
        let pieces = key(How::Pieces(vec![piece, far, piece]));
        let probe = Some(Box::new(Probe { key: pieces.clone(), bytes: [3; 32] }));
        let legacy = Key { probe, ..key(How::Legacy(IpcHandle([5; 64]))) };
        let pool = How::Pool(handed(Some(3), true), PoolPointer([6; 64]));
        [pieces, key(How::Pieces(vec![far; 2])), legacy, key(pool)]
    }

    #[test]
    fn a_key_survives_the_way_and_nonsense_is_refused() {
        for key in all() {
            let bytes = key.to_bytes();
            assert_eq!(Key::from_bytes(&bytes).unwrap(), key);
            for end in 0..bytes.len() {
                assert!(Key::from_bytes(&bytes[..end]).is_err(), "cut off at {end}");
            }
            assert!(Key::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn only_what_needs_no_descriptor_is_on_the_fabric() {
        assert_eq!(all().map(|key| key.is_on_fabric()), [false, true, false, true]);
    }
}
