//! Which process this is, so that no other one is ever taken for it.

use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

/// A process: on this start of this machine, in its namespace, since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// What the kernel calls this start of the machine.
    pub machine: [u8; 16],
    /// The namespace that the number below counts in.
    pub namespace: u64,
    /// The number of the process.
    pub process: u32,
    /// When it was started, in the kernel's ticks.
    pub start: u64,
}

impl Identity {
    /// This process. A child after a fork is another one.
    pub fn own() -> Self {
        static MACHINE: OnceLock<[u8; 16]> = OnceLock::new();
        Self {
            machine: *MACHINE.get_or_init(machine),
            namespace: rustix::fs::stat("/proc/self/ns/pid").map_or(0, |stat| stat.st_ino),
            process: std::process::id(),
            start: read("/proc/self/stat").as_deref().and_then(start_of).unwrap_or(0),
        }
    }

    /// Whether the other process runs on this machine, and its number means the same here.
    pub fn is_neighbour(&self, other: &Self) -> bool {
        self.machine == other.machine && self.namespace == other.namespace
    }
}

fn machine() -> [u8; 16] {
    let text = read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text.chars().filter_map(|c| Some(c.to_digit(16)? as u8)).collect();
    let mut machine = [0; 16];
    for (byte, pair) in machine.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    machine
}

/// The start in a line of `/proc/PID/stat`: the 22nd field, counted from behind the name,
/// which may hold blanks and brackets itself.
fn start_of(line: &str) -> Option<u64> {
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn read(path: &str) -> Option<String> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = [0; 1024];
    let length = rustix::io::read(&file, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_knows_itself() {
        let own = Identity::own();
        assert_eq!(own, Identity::own());
        assert!(own.start > 0 && own.namespace > 0 && own.machine != [0; 16]);
        assert!(own.is_neighbour(&Identity { process: 1, start: 0, ..own }));
        assert!(!own.is_neighbour(&Identity { namespace: 1, ..own }));
    }

    #[test]
    fn a_name_with_brackets_is_no_field() {
        let line = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(start_of(line), Some(4242));
        assert_eq!(start_of("no stat"), None);
    }
}
