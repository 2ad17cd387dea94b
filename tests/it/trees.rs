//! Real toolkits, and what can be wrong with them.
//!
//! The trees are those that the recorded runs of the real configure were made
//! on, and two toolkits more: twelve assembled from NVIDIA's wheels, variations
//! of two of them with one thing changed, and gdrcopy trees. They need the
//! network once, 1.5 GB and a minute or two, so they are made only when
//! `UCX_CONFIGURE_REAL_TOOLKITS=1` is set, and kept in
//! `UCX_CONFIGURE_REAL_DIR` (`target/real-toolkits` by default).

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

mod gdrcopy;
pub(crate) mod stand_in;
mod stubs;
pub(crate) mod variations;
mod wheels;

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
    sync::OnceLock,
};

use camino::{Utf8Path, Utf8PathBuf};

pub(crate) use self::wheels::TOOLKITS;

/// Set to 1 by whoever wants the tests on real toolkits.
const ASK: &str = "UCX_CONFIGURE_REAL_TOOLKITS";

/// Where the trees are kept.
const PLACE: &str = "UCX_CONFIGURE_REAL_DIR";

/// Changes whenever the variations or the gdrcopy trees change.
const RECIPE: &str = "1";

/// The trees, complete.
#[derive(Debug)]
pub(crate) struct Trees {
    /// The directory that holds them all.
    pub(crate) root: Utf8PathBuf,
}

/// The trees, made on first use; none when nobody asked for them.
fn trees() -> Option<&'static Trees> {
    static TREES: OnceLock<Option<Trees>> = OnceLock::new();
    TREES.get_or_init(|| are_asked_for().then(|| Trees::make(place()))).as_ref()
}

/// Whether somebody wants the tests on real toolkits.
pub(crate) fn are_asked_for() -> bool {
    std::env::var(ASK).is_ok_and(|value| value == "1")
}

/// A test on real toolkits, with its name.
pub(crate) type RealTest = (&'static str, fn(&Trees));

/// Runs tests on real toolkits, or waives every one; returns how many were
/// waived.
pub(crate) fn on_real_toolkits(tests: &[RealTest]) -> usize {
    let mut waivers = Vec::new();
    for (name, test) in tests {
        match trees() {
            Some(trees) => test(trees),
            None => waivers.push(waived(name, "UCX_CONFIGURE_REAL_TOOLKITS is not 1")),
        }
    }
    waivers.len()
}

fn place() -> Utf8PathBuf {
    match std::env::var(PLACE) {
        Ok(dir) => Utf8PathBuf::from(dir),
        Err(_) => Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("target/real-toolkits"),
    }
}

impl Trees {
    fn make(root: Utf8PathBuf) -> Self {
        fs::create_dir_all(&root).unwrap();
        let root = root.canonicalize_utf8().unwrap();
        // Two test processes at once: the second waits, and finds them made.
        let lock = fs::File::create(root.join("lock")).unwrap();
        lock.lock().unwrap();
        let trees = Self { root };
        for toolkit in TOOLKITS {
            toolkit.make(&trees);
        }
        let stamp = trees.root.join("stamp");
        if fs::read_to_string(&stamp).is_ok_and(|text| text == RECIPE) {
            return trees;
        }
        for made in ["var", "gdr"] {
            let _ = fs::remove_dir_all(trees.root.join(made));
            fs::create_dir_all(trees.root.join(made)).unwrap();
        }
        variations::make(&trees);
        gdrcopy::make(&trees.gdrcopies());
        fs::write(stamp, RECIPE).unwrap();
        trees
    }

    /// `{TK}` of the recorded runs.
    pub(crate) fn toolkits(&self) -> Utf8PathBuf {
        self.root.join("tk")
    }

    /// `{VAR}` of the recorded runs.
    pub(crate) fn variations(&self) -> Utf8PathBuf {
        self.root.join("var")
    }

    /// `{GDR}` of the recorded runs.
    pub(crate) fn gdrcopies(&self) -> Utf8PathBuf {
        self.root.join("gdr")
    }

    /// One toolkit.
    pub(crate) fn toolkit(&self, version: &str) -> Utf8PathBuf {
        self.toolkits().join(version)
    }
}

/// Says that a test, or a part of one, cannot be run here; returns its name for
/// the count.
pub(crate) fn waived(name: &str, why: &str) -> String {
    // Not `println!`, whose text a passing test keeps to itself.
    let _ = writeln!(std::io::stdout(), "waived: {name}: {why}");
    name.to_owned()
}

/// Runs a tool that has to succeed.
fn tool(program: &str, args: &[&str]) {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {}\n{}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A second tree of the same files, by hard links.
fn link_tree(from: &Utf8Path, to: &Utf8Path) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            std::os::unix::fs::symlink(source.read_link_utf8().unwrap(), target).unwrap();
        } else if kind.is_dir() {
            link_tree(source, &target);
        } else {
            fs::hard_link(source, target).unwrap();
        }
    }
}

/// Puts a new file in place of an old one, whose other names keep theirs.
fn put(path: &Utf8Path, text: &str) {
    let _ = fs::remove_file(path);
    fs::write(path, text).unwrap();
}
