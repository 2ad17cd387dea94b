//! The same trees without the network: our stub toolkits stand in for the
//! real ones, brought to what is recorded of each.

#![expect(clippy::disallowed_methods, reason = "tests make the world that the program sees")]

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use ucx_configure::{
    host::{Host, env::Snapshot, process::Runner},
    model::CudaVersion,
    probe::Compiler,
    request::Request,
    toolkit::stub,
    ui::Silent,
};

use super::{Trees, gdrcopy, link_tree, variations, variations::VARIATIONS};

/// The toolkits: the name of the tree, the stub that stands in for it, and
/// whether the real one has a static runtime and an nvcc.
const STAND_INS: &[(&str, (u32, u32), bool, bool)] = &[
    ("11.7", (11, 7), false, false),
    ("12.0", (12, 0), false, false),
    ("12.2", (12, 2), false, false),
    ("12.5", (12, 5), false, false),
    ("12.8", (12, 8), false, false),
    ("12.9", (12, 8), true, false),
    ("13.0", (13, 0), true, true),
];

/// The variations that need what only a real toolkit has.
pub(crate) const REAL_ALONE: [&str; 1] = ["nocrt"];

/// Makes them below `root`.
pub(crate) fn make(root: Utf8PathBuf) -> Trees {
    let root = root.canonicalize_utf8().unwrap();
    let trees = Trees { root };
    for dir in [trees.toolkits(), trees.variations(), trees.gdrcopies()] {
        fs::create_dir_all(dir).unwrap();
    }
    let env = Snapshot::take();
    let runner = Runner::with_environment(&env);
    let host = Host { env, cwd: trees.root.clone(), runner };
    let request = Request::bare(trees.root.clone());
    let compiler = Compiler::find(&request, &host, &mut Silent).unwrap();
    for (name, (major, minor), has_static, has_nvcc) in STAND_INS {
        let version = CudaVersion::new(*major, *minor);
        let made = stub::materialise(version, &trees.root, &compiler, &host, &mut Silent).unwrap();
        stand_in(&made, &trees.toolkit(name), *has_static, *has_nvcc);
    }
    for variation in VARIATIONS.iter().filter(|row| !REAL_ALONE.contains(&row.name)) {
        variation.make(&trees.toolkit(variation.base), &trees.variations());
    }
    variations::make_oddities(&trees.variations());
    gdrcopy::make(&trees.gdrcopies());
    trees
}

fn stand_in(stub: &Utf8Path, tree: &Utf8Path, has_static: bool, has_nvcc: bool) {
    link_tree(stub, tree);
    let archive = tree.join("lib64/libcudart_static.a");
    assert!(archive.exists(), "{archive}");
    if !has_static {
        fs::remove_file(archive).unwrap();
    }
    if has_nvcc {
        variations::nvcc(tree, "exit 0", 0o755);
    }
}
