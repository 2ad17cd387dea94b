//! A second process that owns device memory: this program, started with `--own`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hook_runtime::memtype::Kind;
use hook_runtime::transport::cuda_ipc::{Key, Mapping, cache, export};
use hook_runtime::transport::settings::Settings;

use crate::buffer::{Buffer, Session};

/// Memory of another process, which lives for as long as this.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) mapping: Arc<Mapping>,
    child: Child,
}

/// Owns `size` bytes that can be told, and says so; ends when standard input does.
pub(crate) fn own(session: &Session, size: usize) -> Result<(), String> {
    let buffer = Buffer::new(session, Kind::Device, size).map_err(|error| error.to_string())?;
    buffer.fill(&pattern(size)).map_err(|error| error.to_string())?;
    let export = export(session.driver, buffer.address, size).map_err(|error| error.to_string())?;
    let digits: Vec<_> = export.key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{}", digits.concat());
    let _ = std::io::stdin().lines().count();
    Ok(())
}

/// The bytes that the owner puts into its memory.
pub(crate) fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|n| (n.wrapping_mul(167) ^ (n >> 11)) as u8).collect()
}

impl Remote {
    /// Starts the other process and opens its memory.
    #[expect(clippy::disallowed_methods, reason = "the one process that this program starts")]
    pub(crate) fn start(session: &Session, size: usize) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["--own", &size.to_string(), "--device", &session.device.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a second process: {error}"))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let opened = open(session, line.trim());
        if opened.is_err() {
            end(&mut child);
        }
        Ok(Self { mapping: opened?, child })
    }
}

fn open(session: &Session, text: &str) -> Result<Arc<Mapping>, String> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.ok_or("the second process says no key")?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    let key = Key::from_bytes(&bytes).map_err(|error| error.to_string())?;
    let opened = cache().open(session.driver, &key, &Settings::from_environment());
    opened.map_err(|error| error.to_string())
}

fn end(child: &mut Child) {
    drop(child.stdin.take());
    let _ = child.wait();
}

impl Drop for Remote {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
