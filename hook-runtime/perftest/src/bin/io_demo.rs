//! `io_demo`: a client and a server that move buffers between them, by the transports where
//! the memory is CUDA's and both sides can be reached, else over the connection.
//!
//! ```text
//! client                                   server
//!   its memory's key, or none     ──>      opens it, or says why not
//!   write: number, size [, bytes] ──>      looks at the bytes
//!   read: number, size            ──>      puts the bytes there [, or sends them]
//! ```
//!
//! Each buffer's bytes follow from its number, so that both sides know what has to arrive. The
//! server ends with its client; exit code 1 says that bytes were wrong, 2 that it could not run.
#![expect(clippy::print_stdout, reason = "it reports on standard output")]
#![expect(clippy::print_stderr, reason = "and fails on standard error")]

#[expect(dead_code, reason = "its other parts are hook-perftest's")]
#[path = "../buffer.rs"]
mod buffer;

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use buffer::{Buffer, Session};
use clap::{Parser, ValueEnum};
use hook_runtime::cuda::driver::open::Driver;
use hook_runtime::memtype::Kind;
use hook_runtime::transport::cuda_copy::Copier;
use hook_runtime::transport::cuda_ipc::{Export, Key, Mapping, cache, export};
use hook_runtime::transport::settings::Settings;

/// Moves buffers between two processes. Without an address it is the server.
#[derive(Debug, Parser)]
#[command(name = "io_demo", version)]
struct Arguments {
    /// The server's address, as it has said it
    address: Option<String>,
    /// Where the server listens
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// The kind of memory of this side's buffer
    #[arg(short, long, value_enum, default_value_t = Memory::Host)]
    memory: Memory,
    /// The largest buffer, in bytes
    #[arg(short, long, default_value_t = 1 << 20)]
    size: usize,
    /// How many buffers go each way
    #[arg(short = 'n', long, default_value_t = 100)]
    count: u64,
    /// The device
    #[arg(short, long, default_value_t = 0)]
    device: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Memory {
    Host,
    Pinned,
    Cuda,
    Managed,
}

type Outcome<T> = Result<T, String>;

const HELLO: [u8; 8] = *b"hookio01";
const WRITE: u8 = 1;
const READ: u8 = 2;
/// How long the other side may take for anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than anybody asks for by mistake.
const LARGEST: u64 = 1 << 34;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.address {
        Some(address) => client(&arguments, address),
        None => server(&arguments),
    };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            eprintln!("error: {wrong} buffers held wrong bytes");
            ExitCode::from(1)
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The bytes of buffer `number`.
fn bytes_of(number: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size.next_multiple_of(8)];
    for (place, word) in bytes.chunks_exact_mut(8).enumerate() {
        let mixed = (number << 32 ^ place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&mixed.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// One side's buffer, and how it is reached.
enum Side {
    Host(Vec<u8>),
    Cuda(Box<Cuda>),
}

struct Cuda {
    // Dropped first: copies are over before the memory goes.
    copier: Copier,
    buffer: Buffer,
    session: Session,
}

impl Side {
    fn new(arguments: &Arguments, memory: Memory, size: usize) -> Outcome<Self> {
        let kind = match memory {
            Memory::Host => return Ok(Self::Host(vec![0; size])),
            Memory::Pinned => Kind::Pinned,
            Memory::Cuda => Kind::Device,
            Memory::Managed => Kind::Managed,
        };
        let driver = Driver::get().map_err(text)?;
        let session = Session::new(driver, arguments.device).map_err(text)?;
        let buffer = Buffer::new(&session, kind, size).map_err(text)?;
        let copier = Copier::new(driver, Settings::from_environment());
        Ok(Self::Cuda(Box::new(Cuda { copier, buffer, session })))
    }

    fn put(&mut self, bytes: &[u8]) -> Outcome<()> {
        match self {
            Self::Host(own) => own[..bytes.len()].copy_from_slice(bytes),
            Self::Cuda(cuda) => {
                cuda.copy(cuda.buffer.address, bytes.as_ptr() as usize, bytes.len())?
            }
        }
        Ok(())
    }

    fn get(&mut self, size: usize) -> Outcome<Vec<u8>> {
        let mut bytes = vec![0_u8; size];
        match self {
            Self::Host(own) => bytes.copy_from_slice(&own[..size]),
            Self::Cuda(cuda) => {
                cuda.copy(bytes.as_mut_ptr() as usize, cuda.buffer.address, size)?
            }
        }
        Ok(bytes)
    }
}

impl Cuda {
    /// Copies between places that the caller owns, or holds open.
    fn copy(&mut self, to: usize, from: usize, size: usize) -> Outcome<()> {
        let to = self.copier.region(to, size).map_err(text)?;
        let from = self.copier.region(from, size).map_err(text)?;
        // SAFETY: every caller has both places for itself until this returns.
        unsafe { self.copier.copy_now((&to, 0), (&from, 0), size) }.map_err(text)
    }
}

/// The connection: numbers and bytes, both ways.
struct Line {
    read: BufReader<TcpStream>,
    write: TcpStream,
}

impl Line {
    fn new(stream: TcpStream) -> Outcome<Self> {
        stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        Ok(Self { read: BufReader::new(stream.try_clone().map_err(text)?), write: stream })
    }

    fn send(&mut self, parts: &[&[u8]]) -> Outcome<()> {
        self.write.write_all(&parts.concat()).map_err(|error| format!("the connection: {error}"))
    }

    fn receive(&mut self, size: usize) -> Outcome<Vec<u8>> {
        let mut bytes = vec![0; size];
        self.read.read_exact(&mut bytes).map_err(|error| format!("the connection: {error}"))?;
        Ok(bytes)
    }

    fn number(&mut self) -> Outcome<u64> {
        let mut bytes = [0; 8];
        self.read.read_exact(&mut bytes).map_err(|error| format!("the connection: {error}"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The next request's kind; nothing if the other side has ended.
    fn request(&mut self) -> Outcome<Option<u8>> {
        let mut kind = [0];
        match self.read.read_exact(&mut kind) {
            Ok(()) => Ok(Some(kind[0])),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(format!("the connection: {error}")),
        }
    }
}

/// Returns how many buffers were wrong.
fn client(arguments: &Arguments, address: &str) -> Outcome<u64> {
    let stream = TcpStream::connect(address).map_err(|error| format!("`{address}`: {error}"))?;
    let mut line = Line::new(stream)?;
    let size = arguments.size.max(1);
    let mut side = Side::new(arguments, arguments.memory, size)?;
    let exported: Option<Export> = match &side {
        Side::Cuda(cuda) if arguments.memory == Memory::Cuda => {
            let exported = export(cuda.session.driver, cuda.buffer.address, size);
            exported.map_err(|error| eprintln!("warning: {error}")).ok()
        }
        _ => None,
    };
    let (key, offset) = match &exported {
        Some(export) => (export.key.to_bytes(), export.offset),
        None => (Vec::new(), 0),
    };
    let numbers = [size as u64, key.len() as u64, offset as u64].map(u64::to_le_bytes);
    line.send(&[&HELLO, numbers.as_flattened(), &key])?;
    let why = line.number()? as usize;
    let is_direct = exported.is_some() && why == 0;
    if why > 0 {
        let said = line.receive(why.min(4096))?;
        eprintln!("warning: over the connection: {}", String::from_utf8_lossy(&said));
    }
    let mut wrong = 0;
    for (kind, name) in [(WRITE, "write"), (READ, "read")] {
        let (started, mut moved) = (Instant::now(), 0);
        for number in 0..arguments.count {
            let part = 1 + (number as usize * 7919) % size;
            wrong += u64::from(!once(&mut line, &mut side, kind, (number, part), is_direct)?);
            moved += part;
        }
        let seconds = started.elapsed().as_secs_f64();
        let way = if is_direct { "cuda_ipc" } else { "the connection" };
        println!(
            "{name}: {} buffers, {moved} bytes, {:.1} MB/s over {way}, checked on both sides",
            arguments.count,
            moved as f64 / seconds / 1e6
        );
    }
    Ok(wrong)
}

/// One request; whether its bytes arrived.
fn once(
    line: &mut Line,
    side: &mut Side,
    kind: u8,
    (number, size): (u64, usize),
    is_direct: bool,
) -> Outcome<bool> {
    let bytes = bytes_of(number, size);
    let head = [number, size as u64].map(u64::to_le_bytes);
    if kind == WRITE {
        side.put(&bytes)?;
        let body = if is_direct { Vec::new() } else { side.get(size)? };
        line.send(&[&[kind], head.as_flattened(), &body])?;
        return Ok(line.number()? == 1);
    }
    line.send(&[&[kind], head.as_flattened()])?;
    if is_direct {
        let done = line.number()? == 1;
        return Ok(done && side.get(size)? == bytes);
    }
    let body = line.receive(size)?;
    side.put(&body)?;
    Ok(side.get(size)? == bytes)
}

/// Serves one client. Returns how many buffers were wrong.
fn server(arguments: &Arguments) -> Outcome<u64> {
    let listener = TcpListener::bind(&arguments.listen)
        .map_err(|error| format!("`{}`: {error}", arguments.listen))?;
    println!("listening on {}", listener.local_addr().map_err(text)?);
    let (stream, _) = listener.accept().map_err(text)?;
    let mut line = Line::new(stream)?;
    if line.receive(HELLO.len())? != HELLO {
        return Err("the client is no io_demo of this version".into());
    }
    let (size, key, offset) = (line.number()?, line.number()?, line.number()?);
    if size > LARGEST || key > 1 << 24 {
        return Err("the client asks for more than makes sense".into());
    }
    let key = line.receive(key as usize)?;
    // Memory of the same kind as the client's, unless this side was told another.
    let memory = match (arguments.memory, key.is_empty()) {
        (Memory::Host, false) => Memory::Cuda,
        (memory, _) => memory,
    };
    let mut side = Side::new(arguments, memory, size as usize)?;
    let opened = if key.is_empty() { Ok(None) } else { open(&side, &key).map(Some) };
    let why = opened.as_ref().err().cloned().unwrap_or_default();
    line.send(&[&(why.len() as u64).to_le_bytes(), why.as_bytes()])?;
    let theirs = opened.ok().flatten();
    let theirs = theirs.as_ref().map(|mapping| mapping.address() + offset as usize);
    let (mut served, mut wrong) = (0_u64, 0);
    while let Some(kind) = line.request()? {
        let (number, part) = (line.number()?, line.number()?);
        if part > size {
            return Err(format!("a buffer of {part} bytes where {size} is the largest"));
        }
        wrong += u64::from(!serve(&mut line, &mut side, kind, (number, part as usize), theirs)?);
        served += 1;
    }
    println!("served {served} buffers, {wrong} wrong");
    Ok(wrong)
}

fn open(side: &Side, key: &[u8]) -> Outcome<Arc<Mapping>> {
    let Side::Cuda(cuda) = side else { return Err("the server's memory is the host's".into()) };
    let key = Key::from_bytes(key).map_err(text)?;
    cache().open(cuda.session.driver, &key, &Settings::from_environment()).map_err(text)
}

/// One request; whether what came was right.
fn serve(
    line: &mut Line,
    side: &mut Side,
    kind: u8,
    (number, size): (u64, usize),
    theirs: Option<usize>,
) -> Outcome<bool> {
    let bytes = bytes_of(number, size);
    let direct = match (&mut *side, theirs) {
        (Side::Cuda(cuda), Some(theirs)) => Some((cuda, theirs)),
        _ => None,
    };
    match (kind, direct) {
        (WRITE, Some((cuda, theirs))) => cuda.copy(cuda.buffer.address, theirs, size)?,
        (WRITE, None) => {
            let body = line.receive(size)?;
            side.put(&body)?;
        }
        (READ, Some((cuda, theirs))) => {
            cuda.copy(cuda.buffer.address, bytes.as_ptr() as usize, size)?;
            cuda.copy(theirs, cuda.buffer.address, size)?;
            line.send(&[&1_u64.to_le_bytes()])?;
            return Ok(true);
        }
        (READ, None) => {
            side.put(&bytes)?;
            let body = side.get(size)?;
            line.send(&[&body])?;
            return Ok(true);
        }
        _ => return Err(format!("there is no request {kind}")),
    }
    let right = side.get(size)? == bytes;
    line.send(&[&u64::from(right).to_le_bytes()])?;
    Ok(right)
}
