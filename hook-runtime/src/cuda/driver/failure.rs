//! What a call to the driver can come back with instead of success.

use std::fmt;

/// A call that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The driver's function.
    pub function: &'static str,
    /// What it returned; [`Failure::MISSING`] if the driver does not have it.
    pub code: u32,
}

/// The codes that callers tell apart.
pub mod code {
    /// An argument makes no sense to the driver.
    pub const INVALID_VALUE: u32 = 1;
    /// No memory is left.
    pub const OUT_OF_MEMORY: u32 = 2;
    /// `cuInit` has not been called, or this is a child after a fork.
    pub const NOT_INITIALIZED: u32 = 3;
    /// The process is ending.
    pub const DEINITIALIZED: u32 = 4;
    /// There is no usable device.
    pub const NO_DEVICE: u32 = 100;
    /// No context is current, or it is not valid.
    pub const INVALID_CONTEXT: u32 = 201;
    /// The memory is mapped already.
    pub const ALREADY_MAPPED: u32 = 208;
    /// A handle is not valid.
    pub const INVALID_HANDLE: u32 = 400;
    /// What was asked about is still under way.
    pub const NOT_READY: u32 = 600;
    /// Peer access is there already.
    pub const PEER_ACCESS_ALREADY_ENABLED: u32 = 704;
    /// The context has been destroyed.
    pub const CONTEXT_IS_DESTROYED: u32 = 709;
    /// The memory is page-locked already.
    pub const HOST_MEMORY_ALREADY_REGISTERED: u32 = 712;
    /// Not allowed.
    pub const NOT_PERMITTED: u32 = 800;
    /// This device or driver cannot do it.
    pub const NOT_SUPPORTED: u32 = 801;
}

impl Failure {
    /// Stands for "the driver does not have this function": no code of the driver's.
    pub const MISSING: u32 = u32::MAX;

    /// Whether the context, or all of CUDA, has gone away, so that nothing is left to free.
    pub fn is_gone(self) -> bool {
        matches!(
            self.code,
            code::DEINITIALIZED
                | code::NOT_INITIALIZED
                | code::CONTEXT_IS_DESTROYED
                | code::INVALID_CONTEXT
        )
    }

    /// Whether what was asked about is still under way.
    pub fn is_not_ready(self) -> bool {
        self.code == code::NOT_READY
    }

    /// Whether the driver is too old for the function, or the device cannot do it.
    pub fn is_unsupported(self) -> bool {
        matches!(self.code, Self::MISSING | code::NOT_SUPPORTED)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, code } = self;
        if *code == Self::MISSING {
            return write!(formatter, "this driver has no `{function}`");
        }
        let said = match *code {
            code::INVALID_VALUE => "invalid value",
            code::OUT_OF_MEMORY => "out of memory",
            code::NOT_INITIALIZED => "the driver is not initialised",
            code::DEINITIALIZED => "the driver is shutting down",
            code::NO_DEVICE => "no CUDA device",
            code::INVALID_CONTEXT => "no valid context",
            code::ALREADY_MAPPED => "mapped already",
            code::INVALID_HANDLE => "invalid handle",
            code::NOT_READY => "not ready",
            code::CONTEXT_IS_DESTROYED => "the context was destroyed",
            code::NOT_PERMITTED => "not permitted",
            code::NOT_SUPPORTED => "not supported",
            _ => return write!(formatter, "`{function}` returned error {code}"),
        };
        write!(formatter, "`{function}` returned error {code} ({said})")
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_function_and_the_code() {
        let text = |code| Failure { function: "cuMemAlloc", code }.to_string();
        assert_eq!(text(2), "`cuMemAlloc` returned error 2 (out of memory)");
        assert_eq!(text(719), "`cuMemAlloc` returned error 719");
        assert_eq!(text(Failure::MISSING), "this driver has no `cuMemAlloc`");
        assert!(Failure { function: "f", code: 709 }.is_gone());
    }
}
