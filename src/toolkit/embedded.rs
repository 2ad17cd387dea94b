//! What is embedded in the binary: lists of names and bytes that the build
//! script makes, and how a list becomes a directory.

use camino::Utf8Path;

use crate::{error::Error, host::fs};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Writes a list's files below a directory; a file that is already right
/// keeps its time, so that nothing is compiled again. Returns whether anything
/// changed.
///
/// # Errors
///
/// A file cannot be written.
pub fn unpack(list: &[(&str, &[u8])], into: &Utf8Path) -> Result<bool, Error> {
    let mut changed = false;
    for (name, content) in list {
        let path = into.join(name);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        changed |= fs::write_if_changed(&path, content, 0o644)?;
    }
    Ok(changed)
}
