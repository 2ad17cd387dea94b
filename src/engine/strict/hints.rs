//! What to do about a "no", by question.

use camino::Utf8Path;

use crate::{
    discover::Layout,
    host::{Host, fs},
    model::CudaVersion,
    packages::{self, About, Item},
    probe::Compiler,
};

/// What is missing where a question is answered with "no", and what can be
/// done besides installing it.
const ROWS: &[(&str, Item, Option<&str>)] = &[
    ("cuda.header.cuda_h", Item::CudaHeader, Some("name another one with `--with-cuda=DIR`")),
    ("cuda.header.cuda_runtime_h", Item::Runtime, None),
    (
        "cuda.library.cuda",
        Item::DriverLibrary,
        Some("add the directory that has the driver's to LDFLAGS with `-L`"),
    ),
    ("cuda.library.cudart", Item::Runtime, None),
    ("nvml.header.nvml_h", Item::Nvml, None),
    ("nvml.library.nvidia_ml", Item::Nvml, None),
    ("cuda.nvcc", Item::Nvcc, Some("name it with `NVCC=PATH`; only tests and examples need it")),
    ("gdrcopy.header.gdrapi_h", Item::GdrCopy, Some("name it with `--with-gdrcopy=DIR`")),
    (
        "gdrcopy.library.gdrapi",
        Item::GdrCopy,
        Some("name its place with `--with-gdrcopy-libdir=DIR`"),
    ),
];

/// What a question's "no" means to be missing.
pub fn missing(id: &str) -> Option<Item> {
    ROWS.iter().find(|(probe, ..)| *probe == id).map(|(_, item, _)| *item)
}

/// The hint for a question; none where there is nothing to do.
pub(super) fn for_probe(
    id: &str,
    layout: &Layout,
    compiler: &Compiler,
    host: &Host,
) -> Option<String> {
    let (_, item, or) = ROWS.iter().find(|(probe, ..)| *probe == id)?;
    let is_cross = compiler.machine != std::env::consts::ARCH;
    let item = match item {
        Item::GdrCopy => Item::GdrCopy,
        _ if is_cross => Item::CrossToolkit,
        item => *item,
    };
    let holds_something = !layout.include_dirs.is_empty() || !layout.library_dirs.is_empty();
    let about = About {
        cuda: release(layout),
        own_directory: layout.root.as_ref().is_some_and(|root| root != "/usr") && holds_something,
        triple: None,
    };
    Some(packages::hint(item, host, &about, *or))
}

/// The release of an installation, as far as its files say without a compiler.
pub(super) fn release(layout: &Layout) -> Option<CudaVersion> {
    let of_file = layout.root.as_ref().and_then(|root| recorded(&root.join("version.json")));
    let stated = || layout.header("cuda.h").and_then(|path| stated(&path));
    of_file.or_else(stated).or_else(|| {
        let name = layout.root.as_ref()?.file_name()?;
        name.strip_prefix("cuda-")?.parse().ok()
    })
}

/// The release that a toolkit's own record names.
fn recorded(file: &Utf8Path) -> Option<CudaVersion> {
    if !file.is_file() {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    let full = value.get("cuda")?.get("version")?.as_str()?;
    let parts: Vec<&str> = full.splitn(3, '.').collect();
    parts.get(..2)?.join(".").parse().ok()
}

/// The value of `CUDA_VERSION` where a header defines it as a number.
fn stated(header: &Utf8Path) -> Option<CudaVersion> {
    let text = fs::read_to_string(header).ok()?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("#define CUDA_VERSION "))?;
    line.split_whitespace().next()?.parse().ok().map(CudaVersion::from_macro)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        discover::Target,
        host::{
            env::Snapshot,
            fs::{Scratch, create_dir_all, write_if_changed},
            process::Runner,
        },
    };

    #[test]
    fn hints_belong_to_probes() {
        for (id, item, or) in ROWS {
            assert_eq!(crate::probe::catalog::probe(id).id, *id);
            assert_eq!(missing(id), Some(*item));
            assert!(or.is_none_or(|or| !or.ends_with('.') && !or.contains("  ")));
        }
        assert_eq!(missing("cuda.declaration.handle_type_fabric"), None);
    }

    #[test]
    fn a_release_is_read_from_the_header_or_the_name() {
        let scratch = Scratch::new(None).unwrap();
        let root = scratch.path().join("cuda-12.2");
        create_dir_all(&root.join("include")).unwrap();
        let host = Host {
            env: Snapshot::from_pairs([("UCX_CONFIGURE_ROOT", "/nonexistent")]),
            cwd: "/".into(),
            runner: Runner::new(),
        };
        let target = Target { machine: "x86_64", triple: "x86_64-linux-gnu", host: &host };
        let layout = || Layout::cuda(&root, &target);
        assert_eq!(release(&layout()), Some(CudaVersion::new(12, 2)));
        let header = b"/* x */\n#define CUDA_VERSION 12050\n";
        write_if_changed(&root.join("include/cuda.h"), header, 0o644).unwrap();
        assert_eq!(release(&layout()), Some(CudaVersion::new(12, 5)));
        let record = br#"{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}}"#;
        write_if_changed(&root.join("version.json"), record, 0o644).unwrap();
        assert_eq!(release(&layout()), Some(CudaVersion::new(12, 8)));
        assert_eq!(release(&Layout::default()), None);
    }
}
