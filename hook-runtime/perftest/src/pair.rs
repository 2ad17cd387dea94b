//! A second process that owns device memory: this program, started with `--own`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hook_runtime::transport::cuda_ipc::{Key, Mapping, cache, export};
use hook_runtime::transport::settings::Settings;

use crate::buffer::{Buffer, Form, Session};

/// Memory of another process, which lives for as long as this.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) mapping: Arc<Mapping>,
    child: Child,
}

/// Owns `size` bytes that can be told, and says so; ends when standard input does.
pub(crate) fn own(session: &Session, form: Form, size: usize) -> Result<(), String> {
    let buffer = Buffer::of_form(session, form, size).map_err(|error| error.to_string())?;
    buffer.fill(&pattern(size)).map_err(|error| error.to_string())?;
    let export = export(session.driver, buffer.address, size).map_err(|error| error.to_string())?;
    let digits: Vec<_> = export.key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{}", digits.concat());
    let _ = std::io::stdin().lines().count();
    Ok(())
}

/// The bytes that the owner puts into its memory.
pub(crate) fn pattern(size: usize) -> Vec<u8> {
    /// Behind so many bytes it is the same again.
    const PERIOD: usize = 256 << 11;
    let mut bytes: Vec<u8> =
        (0..size.min(PERIOD)).map(|n| (n.wrapping_mul(167) ^ (n >> 11)) as u8).collect();
    while bytes.len() < size {
        bytes.extend_from_within(..PERIOD.min(size - bytes.len()));
    }
    bytes
}

impl Remote {
    /// Starts the other process and opens its memory.
    #[expect(clippy::disallowed_methods, reason = "the one process that this program starts")]
    pub(crate) fn start(
        session: &Session,
        device: i32,
        form: Form,
        size: usize,
    ) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["--own", &size.to_string(), "--device", &device.to_string()])
            .args(["--memory", &form.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a second process: {error}"))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let opened = match line.trim() {
            "" => Err(last_words(&mut child)),
            key => open(session, key),
        };
        if opened.is_err() {
            end(&mut child);
        }
        Ok(Self { mapping: opened?, child })
    }
}

/// What a process that says no key says instead.
fn last_words(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(mut errors) = child.stderr.take() {
        let _ = errors.read_to_string(&mut text);
    }
    let said = text.trim().lines().last().unwrap_or("nothing");
    format!("the second process: {}", said.trim_start_matches("error: "))
}

/// Opens memory by the key that is read from standard input, and says whether it holds what
/// [`pattern`] has.
pub(crate) fn opens(session: &Session, at: &str) -> Result<bool, String> {
    let number = |text: &str| text.parse::<usize>().map_err(|error| format!("`{at}`: {error}"));
    let (offset, size) = at.split_once(':').ok_or_else(|| format!("`{at}` is no OFFSET:BYTES"))?;
    let (offset, size) = (number(offset)?, number(size)?);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| error.to_string())?;
    let mapping = open(session, line.trim())?;
    if offset.checked_add(size).is_none_or(|end| end > mapping.len()) {
        return Err(format!("`{at}` leaves the {} bytes of the other process", mapping.len()));
    }
    let mut bytes = vec![0_u8; size];
    let (to, from) = (bytes.as_mut_ptr() as u64, (mapping.address() + offset) as u64);
    // SAFETY: both are as long as is said.
    unsafe { session.driver.calls.copy(to, from, bytes.len()) }
        .map_err(|failure| failure.to_string())?;
    let right = bytes == pattern(bytes.len());
    println!("{} bytes of another process: {}", bytes.len(), if right { "right" } else { "WRONG" });
    Ok(right)
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
