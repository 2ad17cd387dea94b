//! Looking at files, for the one purpose of finding a library as the loader would.

use std::ffi::CStr;

use rustix::fs::{Mode, OFlags};

/// Whether `path` is an ELF file that this process could load: the loader passes over
/// files for other machines, and so must whoever searches in its place.
pub fn is_loadable(path: &CStr) -> bool {
    const HEADER: usize = 20;
    let mut header = [0_u8; HEADER];
    let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let read = rustix::io::read(&file, &mut header);
    let class = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    let machine = u16::from_ne_bytes([header[18], header[19]]);
    read == Ok(HEADER) && header.starts_with(b"\x7fELF") && header[4] == class && machine == MACHINE
}

/// The directory that the running program lies in.
pub fn program_directory() -> Option<Vec<u8>> {
    let path = rustix::fs::readlink("/proc/self/exe", Vec::new()).ok()?.into_bytes();
    path.iter().rposition(|&byte| byte == b'/').map(|slash| path[..slash].to_vec())
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u16 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_for_this_machine_count() {
        assert!(is_loadable(c"/proc/self/exe"));
        assert!(!is_loadable(c"/proc/self/maps"), "not ELF");
        assert!(!is_loadable(c"/proc"), "a directory");
        assert!(!is_loadable(c"/no/such/file"));
    }
}
