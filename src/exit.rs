//! The exit codes, documented here and nowhere else.

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Everything that was asked for was done.
    Done = 0,
    /// Something that was asked for or required is not there.
    NotMet = 1,
    /// The command line, or a value in it, cannot be used.
    Usage = 2,
    /// There is no C compiler that can build what is needed.
    CompilerBroken = 3,
    /// hook-runtime could not be built.
    BuildFailed = 4,
    /// A file could not be read or written.
    Io = 5,
    /// Wheels could not be fetched or assembled.
    Fetch = 6,
    /// Another run works in the same build directory.
    Busy = 7,
    /// A fault of this program; please report it.
    Internal = 70,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl Exit {
    /// Every exit code.
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::NotMet,
        Self::Usage,
        Self::CompilerBroken,
        Self::BuildFailed,
        Self::Io,
        Self::Fetch,
        Self::Busy,
        Self::Internal,
        Self::Interrupted,
    ];

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What it means, one sentence.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Done => "Everything that was asked for was done.",
            Self::NotMet => "Something that was asked for or required is not there.",
            Self::Usage => "The command line, or a value in it, cannot be used.",
            Self::CompilerBroken => "There is no C compiler that can build what is needed.",
            Self::BuildFailed => "hook-runtime could not be built.",
            Self::Io => "A file could not be read or written.",
            Self::Fetch => "Wheels could not be fetched or assembled.",
            Self::Busy => "Another run works in the same build directory.",
            Self::Internal => "A fault of this program; please report it.",
            Self::Interrupted => "Interrupted by a signal.",
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
