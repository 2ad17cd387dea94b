//! Plain data: what was asked, what was found, and what follows from it.
//!
//! Nothing here does IO, prints, or knows a colour. Everything else may use
//! this module; it uses nothing of ours.

mod answers;
mod check;
mod component;
mod driver;
mod evidence;
mod feature;
mod install_dirs;
mod library;
mod report;
mod version;

pub use answers::{Answers, Conditional, Define, DefineValue, SubstValue, Substitution};
pub use check::{Check, Family, Verdict};
pub use component::{Component, Module, Package};
pub use driver::{DRIVER_FLOORS, DriverFloor, FloorReason, FloorRow};
pub use evidence::{Attempt, Evidence, Outcome};
pub use feature::{FEATURES, Feature, FeatureId, Side};
pub use install_dirs::{INSTALL_DIRS, InstallDir};
pub use library::{LibraryClass, LibraryFile};
pub use report::{
    Difference, FeatureAnswer, Finding, GdrCopyTree, Install, Message, MessageKind, Mode, Report,
    SCHEMA_VERSION, Supplied, Tool, ToolIdentity, Toolkit, ToolkitKind, Versions,
};
pub use version::{CudaVersion, GdrVersion, ParseVersionError};
