//! The other side: memory of another process, opened.

use std::os::fd::{AsRawFd, OwnedFd};

use super::IpcError;
use super::key::{How, Key, Piece};
use crate::cuda::driver::calls::Address;
use crate::cuda::driver::failure::{Failure, code};
use crate::cuda::driver::open::Driver;
use crate::cuda::driver::types::{AccessDescription, handle};
use crate::sys::descriptors;
use crate::transport::settings::Fetching;

/// Memory that was opened; whoever holds it closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    Legacy(Address),
    Mapped(Address, usize),
}

impl Opened {
    pub(super) fn address(self) -> Address {
        match self {
            Self::Legacy(address) | Self::Mapped(address, _) => address,
        }
    }
}

/// Opens what `key` names. The primary context of `device` is current.
pub(super) fn open(
    driver: &Driver,
    key: &Key,
    device: i32,
    fetching: Fetching,
) -> Result<Opened, IpcError> {
    match &key.how {
        How::Legacy(handle) => {
            /// Peers get access as they need it.
            const LAZY_PEER_ACCESS: u32 = 1;
            let mut address = 0;
            // SAFETY: the result is a place of ours; a wrong handle is answered with an error.
            match unsafe { driver.calls.ipc_open(&raw mut address, *handle, LAZY_PEER_ACCESS) } {
                Ok(()) => Ok(Opened::Legacy(address)),
                Err(failure) if failure.code == code::ALREADY_MAPPED => {
                    Err(IpcError::OpenedByApplication)
                }
                Err(failure) => Err(failure.into()),
            }
        }
        How::Pieces(pieces) => {
            let sum = pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.length));
            if sum != Some(key.length) {
                return Err(IpcError::BadKey("its pieces are not its length"));
            }
            map(driver, key, pieces, device, fetching)
        }
    }
}

/// Maps the pieces side by side. If one fails, nothing of them stays.
fn map(
    driver: &Driver,
    key: &Key,
    pieces: &[Piece],
    device: i32,
    fetching: Fetching,
) -> Result<Opened, IpcError> {
    let size = key.length as usize;
    let mut address = 0;
    // SAFETY: the result is a place of ours.
    unsafe { driver.calls.reserve(&raw mut address, size, 0, 0, 0) }?;
    let mut mapped = 0;
    let mut all = || -> Result<(), IpcError> {
        for piece in pieces {
            let descriptor = fetch(key, piece, fetching)?;
            map_piece(driver, &descriptor, address + mapped, piece.length as usize)?;
            mapped += piece.length;
        }
        let access = AccessDescription::read_write(device);
        // SAFETY: all of the range was mapped above.
        Ok(unsafe { driver.calls.set_access(address, size, &raw const access, 1) }?)
    };
    let result = all();
    if result.is_err() {
        if mapped > 0 {
            // SAFETY: so much was mapped above, and nobody uses it.
            let _ = unsafe { driver.calls.unmap(address, mapped as usize) };
        }
        // SAFETY: reserved above; nothing is mapped there.
        let _ = unsafe { driver.calls.unreserve(address, size) };
    }
    result.map(|()| Opened::Mapped(address, size))
}

fn map_piece(
    driver: &Driver,
    descriptor: &OwnedFd,
    address: Address,
    size: usize,
) -> Result<(), Failure> {
    let mut physical = 0;
    let shared = descriptor.as_raw_fd() as usize as *mut std::ffi::c_void;
    // SAFETY: for this kind of handle the argument is the descriptor itself, which is open.
    unsafe { driver.calls.import_physical(&raw mut physical, shared, handle::POSIX_FD) }?;
    // SAFETY: the addresses are reserved and free, the memory was imported above.
    let mapped = unsafe { driver.calls.map(address, size, 0, physical, 0) };
    // SAFETY: a mapping keeps the memory; the handle is given back once.
    let released = unsafe { driver.calls.release(physical) };
    mapped.and(released)
}

fn fetch(key: &Key, piece: &Piece, fetching: Fetching) -> Result<OwnedFd, IpcError> {
    let by_number = || descriptors::fetch(key.owner.process, piece.descriptor);
    let by_socket = || descriptors::ask(&key.owner, piece.offer);
    let fetched = match fetching {
        Fetching::Pidfd => by_number(),
        Fetching::Socket => by_socket(),
        Fetching::Try => by_number().or_else(|first| by_socket().map_err(|_| first)),
    };
    fetched.map_err(|source| IpcError::Descriptor { process: key.owner.process, source })
}

/// Closes memory. The primary context of its device is current.
pub(super) fn close(driver: &Driver, opened: Opened) -> Result<(), Failure> {
    match opened {
        // SAFETY: opened by `open`, closed once, and not in use: the cache sees to it.
        Opened::Legacy(address) => unsafe { driver.calls.ipc_close(address) },
        Opened::Mapped(address, size) => {
            // SAFETY: as above.
            let unmapped = unsafe { driver.calls.unmap(address, size) };
            // SAFETY: reserved by `open`, and nothing is mapped there any more.
            unmapped.and_then(|()| unsafe { driver.calls.unreserve(address, size) })
        }
    }
}
