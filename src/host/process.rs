//! Starts processes: LC_ALL=C, no standard input, bounded output, a time
//! limit, and a command line that can be pasted into a shell.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    io::{self, Read},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use camino::{Utf8Path, Utf8PathBuf};
use wait_timeout::ChildExt as _;

use super::signal::Interrupt;

/// How much of a stream is kept; a compiler that prints more has said enough.
pub const KEPT_OUTPUT: usize = 256 * 1024;

/// How long a process may take before it is ended, unless its invocation says
/// otherwise.
pub const TIME_LIMIT: Duration = Duration::from_secs(120);

/// How often a waiting run looks whether a signal came.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program: a name that is looked up in PATH, or a path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set on top of the inherited environment and LC_ALL=C.
    pub env: BTreeMap<String, String>,
    /// Variables taken out of the inherited environment.
    pub env_remove: Vec<String>,
    /// Where it runs; the working directory of ours by default.
    pub cwd: Option<Utf8PathBuf>,
    /// How long it may take.
    pub time_limit: Duration,
}

impl Invocation {
    /// A process without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_remove: Vec::new(),
            cwd: None,
            time_limit: TIME_LIMIT,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Runs it in a directory.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<Utf8PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// Gives it another time limit.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }
}

impl fmt::Display for Invocation {
    /// The form that can be pasted into a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dir) = &self.cwd {
            write!(f, "cd {} && ", quote(dir.as_str()))?;
        }
        f.write_str("LC_ALL=C ")?;
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quote(value))?;
        }
        f.write_str(&quote(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", quote(arg))?;
        }
        Ok(())
    }
}

/// Quotes a word for a POSIX shell. Control characters, which a terminal would
/// not show and a copy would lose, are written as a call of printf.
fn quote(word: &str) -> String {
    let is_hidden = |letter: char| letter.is_ascii_control() && letter != '\n' && letter != '\t';
    if let Some(at) = word.find(is_hidden) {
        let (before, after) = (&word[..at], &word[at + 1..]);
        let hidden = format!("\"$(printf '\\{:03o}')\"", word.as_bytes()[at]);
        let part = |text: &str| if text.is_empty() { String::new() } else { quote(text) };
        return part(before) + &hidden + &part(after);
    }
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It took too long and was ended.
    TimedOut(Duration),
    /// We were interrupted, and ended it.
    Interrupted,
    /// It could not be started.
    NotStarted(io::ErrorKind, String),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut(limit) => write!(f, "no end within {} s", limit.as_secs()),
            Self::Interrupted => f.write_str("interrupted"),
            Self::NotStarted(_, text) => write!(f, "could not be started: {text}"),
        }
    }
}

/// A process that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// What was started.
    pub invocation: Invocation,
    /// How it ended.
    pub status: Status,
    /// What it wrote to standard output, at most [`KEPT_OUTPUT`] bytes.
    pub stdout: String,
    /// What it wrote to standard error, at most [`KEPT_OUTPUT`] bytes.
    pub stderr: String,
    /// Whether output was dropped.
    pub truncated: bool,
    /// How long it took.
    pub took: Duration,
}

impl Completed {
    /// Whether it exited with 0.
    pub fn success(&self) -> bool {
        self.status == Status::Exited(0)
    }
}

/// Starts processes, and counts them.
#[derive(Debug, Default)]
pub struct Runner {
    started: AtomicUsize,
    /// Set by signals; a waiting run ends its child and comes back.
    pub interrupt: Interrupt,
    /// The environment that children inherit; ours when none.
    environment: Option<Vec<(OsString, OsString)>>,
    /// Where children put their scratch files.
    scratch: Option<Utf8PathBuf>,
}

impl Runner {
    /// A runner whose children inherit our environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// A runner whose children get exactly this environment, for tests.
    pub fn with_environment(snapshot: &super::env::Snapshot) -> Self {
        let environment =
            snapshot.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { environment: Some(environment), ..Self::default() }
    }

    /// Lets children put their scratch files into a directory of ours: a
    /// compiler that is killed leaves them there and nowhere else.
    pub fn set_scratch(&mut self, dir: Utf8PathBuf) {
        self.scratch = Some(dir);
    }

    /// How many processes were started.
    pub fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    /// Runs a process to its end. A process that cannot be started is a
    /// [`Status`], not an error: the caller knows what it means.
    pub fn run(&self, invocation: Invocation) -> Completed {
        let begin = Instant::now();
        self.started.fetch_add(1, Ordering::Relaxed);
        let mut command = self.command(&invocation);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let status = Status::NotStarted(error.kind(), error.to_string());
                return Completed {
                    invocation,
                    status,
                    stdout: String::new(),
                    stderr: String::new(),
                    truncated: false,
                    took: begin.elapsed(),
                };
            }
        };
        let out = child.stdout.take().map(|stream| thread::spawn(move || keep(stream)));
        let err = child.stderr.take().map(|stream| thread::spawn(move || keep(stream)));
        let status = self.wait(&mut child, invocation.time_limit);
        let (stdout, cut_out) = collect(out);
        let (stderr, cut_err) = collect(err);
        Completed {
            invocation,
            status,
            stdout,
            stderr,
            truncated: cut_out || cut_err,
            took: begin.elapsed(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the gate to processes")]
    fn command(&self, invocation: &Invocation) -> Command {
        let mut command = Command::new(&invocation.program);
        if let Some(environment) = &self.environment {
            command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        if let Some(dir) = &self.scratch {
            command.env("TMPDIR", dir);
        }
        for name in &invocation.env_remove {
            command.env_remove(name);
        }
        command
            .args(&invocation.args)
            .env("LC_ALL", "C")
            .envs(&invocation.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that a compiler driver's children end
            // with it, and a terminal's Ctrl-C is ours to pass on.
            .process_group(0);
        if let Some(dir) = &invocation.cwd {
            command.current_dir(dir);
        }
        command
    }

    fn wait(&self, child: &mut Child, limit: Duration) -> Status {
        let begin = Instant::now();
        loop {
            match child.wait_timeout(SIGNAL_POLL) {
                Ok(Some(status)) => {
                    return match (status.code(), status.signal()) {
                        (Some(code), _) => Status::Exited(code),
                        (None, Some(signal)) => Status::Signalled(signal),
                        (None, None) => Status::Signalled(0),
                    };
                }
                Ok(None) if self.interrupt.is_set() => {
                    end(child);
                    return Status::Interrupted;
                }
                Ok(None) if begin.elapsed() >= limit => {
                    end(child);
                    return Status::TimedOut(limit);
                }
                Ok(None) => {}
                Err(error) => {
                    end(child);
                    return Status::NotStarted(error.kind(), error.to_string());
                }
            }
        }
    }
}

/// Ends a child and its whole group.
fn end(child: &mut Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        // It may have ended by itself in between, which is as good.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads a stream to its end and keeps its beginning.
fn keep(mut stream: impl Read) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let mut cut = false;
    let mut buffer = [0; 16 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return (kept, cut),
            Ok(count) => {
                let room = KEPT_OUTPUT - kept.len();
                cut |= count > room;
                kept.extend_from_slice(&buffer[..count.min(room)]);
            }
        }
    }
}

fn collect(reader: Option<thread::JoinHandle<(Vec<u8>, bool)>>) -> (String, bool) {
    let (bytes, cut) = reader.and_then(|handle| handle.join().ok()).unwrap_or_default();
    (String::from_utf8_lossy(&bytes).into_owned(), cut)
}

/// Finds a program as the shell would: a name with a slash as it is, another
/// name along the directories given. Every place that was looked at is
/// returned, the successful one last.
pub fn find_program(name: &str, dirs: &[Utf8PathBuf]) -> (Option<Utf8PathBuf>, Vec<Utf8PathBuf>) {
    let mut looked = Vec::new();
    let candidates: Vec<Utf8PathBuf> = if name.contains('/') {
        vec![Utf8PathBuf::from(name)]
    } else {
        dirs.iter().map(|dir| dir.join(name)).collect()
    };
    for candidate in candidates {
        let found = is_executable(&candidate);
        looked.push(candidate.clone());
        if found {
            return (Some(candidate), looked);
        }
    }
    (None, looked)
}

/// Whether a path is a regular file that may be executed.
pub fn is_executable(path: &Utf8Path) -> bool {
    rustix::fs::access(path.as_std_path(), rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let invocation = Invocation::new("cc").args(["-I", "/sp ace", "a$b.c"]).env("X", "1 2");
        assert_eq!(invocation.to_string(), "LC_ALL=C X='1 2' cc -I '/sp ace' 'a$b.c'");
        let invocation = Invocation::new("printf").args(["%s", "a\u{1f}b c\u{1f}"]);
        let pasted = invocation.to_string();
        assert!(!pasted.contains('\u{1f}'), "{pasted}");
        let done = Runner::new().run(Invocation::new("sh").args(["-c", &pasted]));
        assert_eq!(done.stdout, "a\u{1f}b c\u{1f}");
    }

    #[test]
    fn says_how_a_process_ended() {
        let runner = Runner::new();
        let shell = |script: &str| Invocation::new("sh").args(["-c", script]);
        let done = runner.run(shell("echo out; echo err >&2; exit 3"));
        assert_eq!(
            (done.status, done.stdout.as_str(), done.stderr.as_str()),
            (Status::Exited(3), "out\n", "err\n")
        );
        assert_eq!(runner.run(shell("kill -9 $$")).status, Status::Signalled(9));
        let slow = shell("sleep 60 & sleep 60").time_limit(Duration::from_millis(100));
        assert!(matches!(runner.run(slow).status, Status::TimedOut(_)));
        let missing = runner.run(Invocation::new("/no/such/program"));
        assert!(matches!(missing.status, Status::NotStarted(io::ErrorKind::NotFound, _)));
        assert_eq!(runner.started(), 4);
    }

    #[test]
    fn endless_output_is_cut() {
        let done = Runner::new().run(Invocation::new("sh").args(["-c", "yes | head -c 3000000"]));
        assert!(done.success() && done.truncated);
        assert_eq!(done.stdout.len(), KEPT_OUTPUT);
    }
}
