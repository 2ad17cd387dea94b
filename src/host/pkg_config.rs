//! Asks pkg-config about one file of its own, through the crate of that name.
//!
//! The crate starts the program itself, with the process's environment, and
//! knows its variables (`PKG_CONFIG` and the rest); which file to ask about is
//! found by [`crate::discover::pc`].

use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};

/// What a package says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Its version.
    pub version: String,
    /// The directories of its `-I` flags.
    pub include_dirs: Vec<Utf8PathBuf>,
    /// The directories of its `-L` flags.
    pub library_dirs: Vec<Utf8PathBuf>,
}

/// Asks about the package that a `.pc` file describes.
///
/// # Errors
///
/// pkg-config is missing or refuses, in its own words.
pub fn ask(file: &Utf8Path) -> Result<Package, String> {
    // The crate takes its answers for UTF-8.
    super::fs::read_to_string(file).map_err(|error| error.what)?;
    let mut config = pkg_config::Config::new();
    config
        .cargo_metadata(false)
        .env_metadata(false)
        // Where the headers are is asked, not which flags are needed.
        .print_system_cflags(true)
        .print_system_libs(true);
    let library = config.probe(file.as_str()).map_err(|error| error.to_string())?;
    let plain = |dirs: Vec<PathBuf>| -> Vec<Utf8PathBuf> {
        dirs.into_iter().filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok()).collect()
    };
    Ok(Package {
        version: library.version,
        include_dirs: plain(library.include_paths),
        library_dirs: plain(library.link_paths),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fs::{Scratch, write_if_changed};

    #[test]
    fn a_file_is_asked_about_by_its_path() {
        let scratch = Scratch::new(None).unwrap();
        let file = scratch.path().join("cuda-12.5.pc");
        let text = "root=/opt/cu da\nName: cuda\nDescription: CUDA\nVersion: 12.5\nLibs: -L/opt/cuda/lib -lcuda\nCflags: -I/opt/cuda/include\n";
        write_if_changed(&file, text.as_bytes(), 0o644).unwrap();
        let package = match ask(&file) {
            Ok(package) => package,
            Err(said) => {
                assert!(said.contains("pkg-config"), "{said}");
                println!("waived: a_file_is_asked_about_by_its_path: {said}");
                return;
            }
        };
        assert_eq!(package.version, "12.5");
        assert_eq!(package.include_dirs, ["/opt/cuda/include"]);
        assert_eq!(package.library_dirs, ["/opt/cuda/lib"]);
        assert!(ask(&scratch.path().join("gone.pc")).is_err());
        write_if_changed(&file, b"Version: \xff\n", 0o644).unwrap();
        assert!(ask(&file).unwrap_err().contains("cannot be read"));
    }
}
