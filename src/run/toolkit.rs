//! `toolkit` and `demo`: thin over the modules that do the work.

use std::fmt::Write as _;

use camino::Utf8PathBuf;

use super::{configure::enter, print_line};
use crate::{
    build,
    cli::{DemoOptions, ToolkitCommand, Typed},
    error::{Code, Error},
    host::Host,
    model::{CudaVersion, Mode},
    probe::Compiler,
    request,
    toolkit::{
        stub, wheel,
        wheel_table::{AARCH64_RELEASES, RELEASES},
    },
    ui::{Channel, Progress, Settings},
};

/// Runs `toolkit`.
pub(super) fn run(typed: &Typed, command: &ToolkitCommand, host: &Host) -> Result<(), Error> {
    match command {
        ToolkitCommand::List => print_line(&list(host)),
        ToolkitCommand::Fetch { version, into, with_nvcc } => {
            let version: CudaVersion = version.parse().map_err(|_| {
                Error::new(Code::UnknownVersion, format!("`{version}` is not a version"))
                    .hint("Write it as in `ucx-configure toolkit fetch 12.8`.")
            })?;
            let into = match into {
                Some(into) => Some(request::build_dir(Some(into), host)?),
                None => None,
            };
            fetch(typed, version, into, *with_nvcc, host)
        }
    }
}

/// What there is, and how it is asked for.
fn list(host: &Host) -> String {
    let mut text = String::new();
    let _ =
        writeln!(text, "embedded stubs, for `--with-cuda=stub:VERSION` (nothing runs on them):");
    let _ = writeln!(text, "  {}", stub::versions().join(" "));
    let _ = writeln!(text, "embedded stubs, for `--with-gdrcopy=stub:VERSION`:");
    let _ = writeln!(text, "  {}", stub::gdrcopy_versions().join(" "));
    let _ = writeln!(text, "NVIDIA's wheels, for `--with-cuda=wheel:VERSION`:");
    let cache = wheel::cache_dir(host).ok();
    for release in RELEASES {
        let nvcc = if release.has_nvcc() { "nvcc too" } else { "" };
        let places = [true, false].into_iter().filter_map(|with_nvcc| {
            let tree = cache.as_ref()?.join(wheel::tree_name(release, with_nvcc));
            tree.is_dir().then(|| tree.into_string())
        });
        let here: Vec<String> = places.collect();
        let here = if here.is_empty() { "not fetched".to_owned() } else { here.join(" ") };
        let line = format!("  {:<6} {nvcc:<9} {here}", release.version.to_string());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let others: Vec<String> =
        AARCH64_RELEASES.iter().map(|release| release.version.to_string()).collect();
    let _ = writeln!(text, "the same for servers with ARM, with `--host=aarch64-linux-gnu`:");
    let _ = writeln!(text, "  {}", others.join(" "));
    text.trim_end().to_owned()
}

fn fetch(
    typed: &Typed,
    version: CudaVersion,
    into: Option<Utf8PathBuf>,
    with_nvcc: bool,
    host: &Host,
) -> Result<(), Error> {
    // Before the compiler is looked for: a version that is not there is not
    // there whatever compiler is.
    wheel::release(version)?;
    let request = request::resolve(typed, host)?.request;
    let mut progress =
        Progress::new(Settings { mode: Mode::Strict, quiet: false }, Channel::Stderr);
    let sink = &mut progress;
    let compiler = Compiler::find(&request, host, sink)?;
    let made = match into {
        Some(tree) => wheel::materialise_at(version, &tree, with_nvcc, &compiler, host, sink),
        None => {
            let cache = wheel::cache_dir(host)?;
            wheel::materialise(version, &cache, with_nvcc, &compiler, host, sink)
        }
    };
    progress.finish();
    print_line(made?.as_str())
}

/// Runs `demo`.
pub(super) fn demo(typed: &Typed, options: &DemoOptions, host: &Host) -> Result<(), Error> {
    let build_dir = request::build_dir(options.build_dir.as_deref(), host)?;
    let (state_dir, _lock) = enter(&build_dir, host)?;
    let mut request = request::resolve(typed, host)?.request;
    request.build_dir = build_dir;
    request.state_dir = Some(state_dir);
    request.offline = options.offline;
    let mut progress =
        Progress::new(Settings { mode: Mode::Strict, quiet: false }, Channel::Stderr);
    let shown = build::demo(&request, host, &mut progress);
    progress.finish();
    let shown = shown?;
    print_line(shown.text.trim_end())?;
    if shown.ok {
        return Ok(());
    }
    Err(Error::new(Code::Internal, "the events are not those that the calls should have caused")
        .hint("Please report it, with what is shown above."))
}
