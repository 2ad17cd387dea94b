//! Real toolkits without an installation: NVIDIA's wheels, put together in the
//! shape of /usr/local/cuda and kept in the user's cache directory.
//!
//! The driver's libraries are in no wheel: libcuda and libnvidia-ml are link
//! stubs, made from what the headers declare.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    assemble, exports,
    library::{self, Job, Kind},
    pip::Pip,
    place::{self, Sum},
    wheel_table::{RELEASES, Release, Wheel, X86_64, releases},
};
use crate::{
    error::{Code, Error},
    host::{
        Host,
        fs::{self, Scratch},
    },
    model::{CudaVersion, Message, MessageKind},
    probe::Compiler,
    ui::{Event, Sink},
};

/// The form of the trees that this program makes: another number makes each
/// again.
const FORM: u32 = 1;

/// Where the user's toolkits are kept: `$XDG_CACHE_HOME`, or `~/.cache`.
///
/// # Errors
///
/// Neither XDG_CACHE_HOME nor HOME says where.
pub fn cache_dir(host: &Host) -> Result<Utf8PathBuf, Error> {
    let absolute = |name: &str| {
        let path = Utf8PathBuf::from(host.env.get(name)?);
        path.is_absolute().then_some(path)
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("ucx-configure/toolkits"))
        .ok_or_else(|| {
            Error::new(Code::Write, "there is no place to keep toolkits in")
                .means("Neither XDG_CACHE_HOME nor HOME names a directory.")
                .hint("Set XDG_CACHE_HOME, or name a place: `ucx-configure toolkit fetch VERSION --into DIR`.")
        })
}

/// The releases that there are wheels of.
///
/// # Errors
///
/// There are none of that version.
pub fn release(version: CudaVersion) -> Result<&'static Release, Error> {
    RELEASES.iter().find(|release| release.version == version).ok_or_else(|| {
        let list: Vec<String> =
            RELEASES.iter().map(|release| format!("`{}`", release.version)).collect();
        Error::new(
            Code::UnknownVersion,
            format!("there are no wheels of CUDA {version} in our table"),
        )
        .means(format!("There are wheels of CUDA {}.", list.join(", ")))
        .hint("Take one of these; `ucx-configure toolkit list` shows them.")
    })
}

/// The wheels of a release for a machine.
///
/// # Errors
///
/// There are none of that version, or for that machine.
pub fn release_for(version: CudaVersion, machine: &str) -> Result<&'static Release, Error> {
    let all = releases(machine);
    if let Some(release) = all.iter().find(|release| release.version == version) {
        return Ok(release);
    }
    release(version)?;
    let what = format!("there are no wheels of CUDA {version} for {machine} in our table");
    let list: Vec<String> = all.iter().map(|release| format!("`{}`", release.version)).collect();
    let means = match list.is_empty() {
        true => format!(
            "The C compiler builds for {machine}, and there are wheels for x86_64 and aarch64."
        ),
        false => format!("For {machine} there are wheels of CUDA {}.", list.join(", ")),
    };
    Err(Error::new(Code::UnknownVersion, what)
        .means(means)
        .hint("Name an installed toolkit: `--with-cuda=DIR`."))
}

/// The directory of a release's tree, below the cache directory.
pub fn tree_name(release: &Release, with_nvcc: bool) -> String {
    let nvcc = if with_nvcc && release.has_nvcc() { "-nvcc" } else { "" };
    let machine = match release.machine {
        X86_64 => String::new(),
        machine => format!("-{machine}"),
    };
    format!("wheel-{}{machine}{nvcc}", release.version)
}

/// The toolkit of a version in the user's cache, fetched unless it is there.
///
/// # Errors
///
/// There is no such version, pip is not there or fails, a sum is wrong, the
/// compiler cannot make the link stubs, or a file cannot be written.
pub fn materialise(
    version: CudaVersion,
    cache: &Utf8Path,
    with_nvcc: bool,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Utf8PathBuf, Error> {
    let release = release_for(version, &compiler.machine)?;
    make(release, &cache.join(tree_name(release, with_nvcc)), with_nvcc, compiler, host, sink)
}

/// The toolkit of a version at a place of the user's choice.
///
/// # Errors
///
/// As with [`materialise`]; and something else is at that place.
pub fn materialise_at(
    version: CudaVersion,
    tree: &Utf8Path,
    with_nvcc: bool,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Utf8PathBuf, Error> {
    make(release_for(version, &compiler.machine)?, tree, with_nvcc, compiler, host, sink)
}

/// Whether a release's tree is whole at a place.
pub(crate) fn is_there(release: &Release, with_nvcc: bool, tree: &Utf8Path) -> bool {
    place::is_complete(tree, &stamp(release, with_nvcc && release.has_nvcc()))
}

fn make(
    release: &Release,
    tree: &Utf8Path,
    with_nvcc: bool,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<Utf8PathBuf, Error> {
    if with_nvcc && !release.has_nvcc() {
        note(
            sink,
            "N0601",
            &format!(
                "the wheels of CUDA {} hold no nvcc; those of 13.0 and later do",
                release.version
            ),
        );
    }
    let with_nvcc = with_nvcc && release.has_nvcc();
    let made = place::complete(tree, &stamp(release, with_nvcc), host, |partial| {
        fetch(release, with_nvcc, partial, host, sink)?;
        finish(partial, compiler, host, sink)
    });
    sink.event(&Event::Idle);
    made
}

/// What a tree is made from: the sums of its wheels.
fn stamp(release: &Release, with_nvcc: bool) -> String {
    let sum = release
        .wheels(with_nvcc)
        .fold(Sum::default(), |sum, wheel| sum.part(wheel.sha256.as_bytes()));
    format!("wheel {} {FORM} {}\n", release.version, sum.hex())
}

/// Fetches the wheels and puts them together.
fn fetch(
    release: &Release,
    with_nvcc: bool,
    tree: &Utf8Path,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let pip = Pip::find(host, sink)?;
    let wheels: Vec<&Wheel> = release.wheels(with_nvcc).collect();
    let total: u64 = wheels.iter().map(|wheel| wheel.size).sum();
    let mut done = 0;
    let mut licence = None;
    for wheel in wheels {
        sink.event(&Event::Progress(done, total, wheel.name));
        let scratch = Scratch::new(Some(tree))?;
        let file = pip.fetch(wheel, release.machine, scratch.path(), host, sink)?;
        licence = assemble::extract(wheel, &fs::read(&file)?, tree, with_nvcc, host)?.or(licence);
        done += wheel.size;
    }
    sink.event(&Event::Progress(done, total, "assembling"));
    let licence = licence.unwrap_or_else(|| "NVIDIA Proprietary Software".to_owned());
    let text = format!(
        "CUDA {} is NVIDIA's, under its end user licence agreement (`{licence}`); the text is in `licenses/` of the toolkit",
        release.version
    );
    note(sink, "N0602", &text);
    Ok(())
}

/// Makes what is in no wheel: the development link of libcudart and the stubs
/// of the driver's libraries.
fn finish(
    tree: &Utf8Path,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let lib = tree.join("lib64");
    let runtime = fs::names(&lib).into_iter().find(|name| name.starts_with("libcudart.so."));
    let runtime = runtime.ok_or_else(|| {
        Error::new(Code::FetchFailed, "the wheels hold no libcudart.so.N")
            .hint("Please report this: the table of wheels has to change.")
    })?;
    fs::symlink(&runtime, &lib.join("libcudart.so"))?;
    let scratch = compiler.scratch_dir()?;
    let mut jobs = Vec::new();
    for (header, library, names) in [
        ("cuda.h", "libcuda", exports::cuda as fn(&str) -> _),
        ("nvml.h", "libnvidia-ml", exports::nvml),
    ] {
        let bytes = fs::read(&tree.join("include").join(header))?;
        let names = names(&String::from_utf8_lossy(&bytes));
        let source = format!("{library}.c");
        fs::write_new(&scratch.join(&source), exports::stub_source(&names).as_bytes(), 0o644)?;
        jobs.push(stub_job(library, source, &scratch, &lib));
    }
    let built = library::build(&jobs, compiler, host, sink);
    let _ = fs::remove_dir_all_if_there(&scratch);
    built
}

fn stub_job(library: &str, source: String, cwd: &Utf8Path, lib: &Utf8Path) -> Job {
    let flags = ["-w", "-O1", "-fPIC", "-fno-builtin", "-fno-stack-protector", "-nostdlib"];
    let soname = format!("-Wl,-soname,{library}.so.1");
    Job {
        output: lib.join("stubs").join(format!("{library}.so")),
        kind: Kind::Shared,
        cwd: cwd.to_owned(),
        sources: vec![source],
        flags: flags.iter().map(|flag| (*flag).to_owned()).chain([soname]).collect(),
        libs: Vec::new(),
        links: Vec::new(),
    }
}

fn note(sink: &mut dyn Sink, code: &str, text: &str) {
    let message = Message {
        kind: MessageKind::Note,
        code: code.to_owned(),
        text: text.to_owned(),
        hint: None,
    };
    sink.event(&Event::Message(&message));
}
