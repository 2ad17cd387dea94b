//! SIGINT, SIGTERM and SIGHUP set a flag, so that a run can end between two
//! steps with its outputs whole.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::error::{Code, Error};

/// Whether a signal asked us to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that the signals set. A second signal ends the process at once,
    /// in case a step does not come back.
    pub fn install(&self) {
        for signal in
            [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            // Registration fails only for signals that cannot be caught,
            // which these are not; without it the signal simply ends us.
            let exit = i32::from(crate::exit::Exit::Interrupted.code());
            let _ =
                signal_hook::flag::register_conditional_shutdown(signal, exit, Arc::clone(&self.0));
            let _ = signal_hook::flag::register(signal, Arc::clone(&self.0));
        }
    }

    /// Whether a signal came.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error if a signal came.
    ///
    /// # Errors
    ///
    /// A signal came.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_set() {
            return Err(Error::new(Code::Interrupted, "interrupted by a signal")
                .means("Outputs that were complete are there; none is half written.")
                .hint("Run the same command again."));
        }
        Ok(())
    }
}
