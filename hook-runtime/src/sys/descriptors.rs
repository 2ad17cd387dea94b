//! File descriptors from one process to another: fetched by number where the kernel allows
//! it (`pidfd_getfd`), else asked for over a socket that the owner serves.
//!
//! The socket has a name without a file. Only processes of the same user are served.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::identity::Identity;

/// How long the owner of a descriptor may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Fetches descriptor `number` of another process. It needs the right to trace that process.
pub fn fetch(process: u32, number: RawFd) -> io::Result<OwnedFd> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    Ok(rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty())?)
}

/// The descriptors that this process hands out, by a number of ours.
static OFFERED: Mutex<Option<HashMap<u64, OwnedFd>>> = Mutex::new(None);

/// Offers `descriptor` to whoever asks for `number`, from now on.
pub fn offer(number: u64, descriptor: &OwnedFd) -> io::Result<()> {
    serve()?;
    let copy = descriptor.try_clone()?;
    offered().get_or_insert_default().insert(number, copy);
    Ok(())
}

/// Offers it no more.
pub fn withdraw(number: u64) {
    if let Some(all) = offered().as_mut() {
        all.remove(&number);
    }
}

fn offered() -> std::sync::MutexGuard<'static, Option<HashMap<u64, OwnedFd>>> {
    OFFERED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(owner: &Identity) -> io::Result<SocketAddr> {
    let Identity { namespace, process, start, .. } = owner;
    SocketAddr::from_abstract_name(format!("hook-runtime-{namespace}-{process}-{start}"))
}

/// Starts the thread that answers, once.
fn serve() -> io::Result<()> {
    static SERVED: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    let served = SERVED.get_or_init(|| {
        let start = || {
            let listener = UnixListener::bind_addr(&address(&Identity::own())?)?;
            let answer = move || {
                for stream in listener.incoming().flatten() {
                    // One that asks in vain, or goes away, is no reason to end.
                    let _ = answer(&stream);
                }
            };
            std::thread::Builder::new().name("hook-runtime-fd".into()).spawn(answer)
        };
        start().map(drop).map_err(|error: io::Error| error.kind())
    });
    served.map_err(io::Error::from)
}

fn answer(mut stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != rustix::process::geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    let found = {
        let offered = offered();
        let held = offered.as_ref().and_then(|all| all.get(&u64::from_le_bytes(number)));
        held.map(OwnedFd::try_clone).transpose()?
    };
    let Some(descriptor) = found else { return stream.write_all(&[0]) };
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let descriptors = [descriptor.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    rustix::net::sendmsg(stream, &[IoSlice::new(&[1])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Asks `owner` for what it offers as `number`.
pub fn ask(owner: &Identity, number: u64) -> io::Result<OwnedFd> {
    let mut stream = UnixStream::connect_addr(&address(owner)?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&number.to_le_bytes())?;
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut said = [0];
    let mut parts = [IoSliceMut::new(&mut said)];
    rustix::net::recvmsg(&stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    descriptors.flatten().next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn pipe() -> (OwnedFd, OwnedFd) {
        rustix::pipe::pipe().unwrap()
    }

    fn connected(write: &OwnedFd, read: &OwnedFd) -> bool {
        rustix::io::write(write, b"x").unwrap();
        let mut byte = [0];
        rustix::io::read(read, &mut byte) == Ok(1) && byte == *b"x"
    }

    #[test]
    fn a_descriptor_is_asked_for_over_the_socket() {
        let (read, write) = pipe();
        offer(77, &write).unwrap();
        let got = ask(&Identity::own(), 77).unwrap();
        assert_ne!(got.as_raw_fd(), write.as_raw_fd());
        assert!(connected(&got, &read));
        withdraw(77);
        assert_eq!(ask(&Identity::own(), 77).unwrap_err().kind(), io::ErrorKind::NotFound);
        let nobody = Identity { start: 1, ..Identity::own() };
        assert!(ask(&nobody, 77).is_err());
    }

    #[test]
    fn a_descriptor_is_fetched_by_number_or_that_is_refused() {
        let (read, write) = pipe();
        match fetch(std::process::id(), write.as_raw_fd()) {
            Ok(got) => assert!(connected(&got, &read)),
            Err(error) => println!("waived: a_descriptor_is_fetched_by_number: {error}"),
        }
        assert!(fetch(0, 0).is_err());
    }
}
