//! Which installation to ask about: the one that was named, or the first
//! candidate that meets the needs.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    Run,
    ask::Question,
    found::{CUDA_NEEDS, Installation},
};
use crate::{
    discover::{
        Candidate, Layout, Parts, Place, pc, root,
        source::{
            CUDA_PLACES, GDRCOPY_PLACES, above_nvcc, candidates, looked_in, remarks, same_dir,
        },
    },
    env_vars,
    error::Error,
    host::{
        Host,
        process::{find_program, is_executable},
    },
    model::{Attempt, CudaVersion, MessageKind, Outcome, ToolkitKind},
    probe::{Compiler, Source, catalog::probe, nvcc, packages},
    request::{Location, Request, Variable, Want},
    toolkit::{stub, wheel},
};

/// The root that a location stands for; stubs and wheels are made.
pub(super) fn cuda_root(
    location: &Location<CudaVersion>,
    run: &mut Run<'_>,
    compiler: &Compiler,
) -> Result<(Utf8PathBuf, ToolkitKind), Error> {
    match location {
        Location::Dir(typed) => {
            root::resolve("--with-cuda", typed, run.host).map(|dir| (dir, ToolkitKind::Installed))
        }
        Location::Stub(version) => {
            let into = toolkit_place(run, compiler)?;
            let dir = stub::materialise(*version, &into, compiler, run.host, run.sink)?;
            run.let_time_pass(&dir);
            Ok((dir, ToolkitKind::Stub))
        }
        Location::Wheel(version) => {
            let cache = wheel::cache_dir(run.host)?;
            let release = wheel::release_for(*version, &compiler.machine)?;
            // With nvcc only if somebody fetched it: it is large.
            let whole = cache.join(wheel::tree_name(release, true));
            let nvcc = wheel::is_there(release, true, &whole);
            let dir = wheel::materialise(*version, &cache, nvcc, compiler, run.host, run.sink)?;
            Ok((dir, ToolkitKind::Wheel))
        }
    }
}

/// Where stubs are made: with the state of the build directory, or
/// in scratch when nothing may be written.
fn toolkit_place(run: &Run<'_>, compiler: &Compiler) -> Result<Utf8PathBuf, Error> {
    match &run.request.state_dir {
        Some(dir) => Ok(dir.join("toolkit")),
        None => compiler.scratch_dir(),
    }
}

/// The commands that may be nvcc: the one that was named, or the one of the
/// installation, or PATH's where the compiler finds CUDA by itself. The
/// current directory is never one of them.
pub(super) fn nvcc_commands(request: &Request, layout: &Layout, host: &Host) -> Vec<Vec<String>> {
    let named = match request.variable(Variable::Nvcc) {
        "" => host.env.get(env_vars::CUDACXX).unwrap_or_default(),
        named => named,
    };
    if let Some(words) = shlex::split(named).filter(|words| !words.is_empty()) {
        return vec![words];
    }
    let found = match &layout.root {
        Some(_) => layout.nvcc.iter().find(|path| is_executable(path)).cloned(),
        None => find_program("nvcc", &host.env.path_dirs()).0,
    };
    found.map(|path| vec![vec![path.into_string()]]).unwrap_or_default()
}

/// Looks for CUDA where the table says, and asks the first candidates that
/// have a cuda.h until one meets the needs.
pub(super) fn cuda(run: &mut Run<'_>, compiler: &Compiler) -> Result<Installation, Error> {
    if !run.request.cuda_parts.include_dirs.is_empty() {
        return in_parts(run, compiler);
    }
    for text in remarks(CUDA_PLACES, run.host) {
        run.say(MessageKind::Warning, "W0303", text, None);
    }
    let mut first: Option<Installation> = None;
    let mut tried: Vec<Option<Utf8PathBuf>> = Vec::new();
    for place in CUDA_PLACES {
        for candidate in asked(run, compiler, *place) {
            if tried.iter().any(|known| is_same(known.as_deref(), candidate.root.as_deref())) {
                continue;
            }
            tried.push(candidate.root.clone());
            let header = "cuda.header.cuda_h";
            let Some(layout) = qualifies(run, compiler, &candidate, header) else { continue };
            let found_by = candidate.place.to_string();
            run.decide(&format!("trying {} ({found_by})", layout.described()));
            let found = run.cuda_at(layout, ToolkitKind::Installed, found_by, compiler)?;
            if found.meets(&CUDA_NEEDS) {
                return Ok(found);
            }
            let why = found.first_missing(&CUDA_NEEDS).map(|check| check.label.clone());
            let place = found.place();
            // The compiler's own directories are both.
            let by = match found.found_by == place {
                true => String::new(),
                false => format!(" ({})", found.found_by),
            };
            let text = format!(
                "{place}{by} cannot be used: the answer to \"checking {}\" is no",
                why.unwrap_or_default()
            );
            run.say(MessageKind::Note, "N0304", text, None);
            first = first.or(Some(found));
        }
    }
    match first {
        // Its answers are put into the report again: they are the ones to tell.
        Some(found) => {
            for answer in &found.answers {
                run.checks.retain(|check| check.id != answer.check.id);
                run.checks.push(answer.check.clone());
            }
            Ok(found)
        }
        None => nothing(run, compiler),
    }
}

/// The installation whose headers were named, and no other.
fn in_parts(run: &mut Run<'_>, compiler: &Compiler) -> Result<Installation, Error> {
    let layout = Layout::assemble(None, &run.request.cuda_parts, &run.target(compiler));
    let found_by = super::unmet::option(&run.request.cuda, "--with-cuda-include");
    run.cuda_at(layout, ToolkitKind::Installed, found_by, compiler)
}

fn is_same(one: Option<&Utf8Path>, other: Option<&Utf8Path>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => same_dir(one, other),
        (one, other) => one == other,
    }
}

/// The candidates of a place, tools asked.
fn asked(run: &mut Run<'_>, compiler: &Compiler, place: Place) -> Vec<Candidate> {
    let candidate = |root: Utf8PathBuf, parts| Candidate { place, root: Some(root), parts };
    match place {
        Place::Nvcc => {
            let mut roots = nvcc_home(run, compiler);
            roots.extend(above_nvcc(run.host));
            let roots = roots.into_iter().filter(|root| root.is_dir());
            roots.map(|root| candidate(root, Parts::default())).collect()
        }
        Place::PkgConfig => {
            let releases = pc::releases(run.host, &compiler.identity.target);
            let mut found = Vec::new();
            for files in releases {
                let parts = packages::ask(&files, compiler.known(), run.sink);
                let root = parts.include_dirs.first().and_then(|dir| pc::root(dir));
                let root = root.map(Utf8Path::to_owned).filter(|root| root.is_dir());
                found.extend(root.map(|root| candidate(root, parts)));
            }
            found
        }
        _ => candidates(place, run.host),
    }
}

/// Where the nvcc of PATH says that it is at home.
fn nvcc_home(run: &mut Run<'_>, compiler: &Compiler) -> Vec<Utf8PathBuf> {
    let program = find_program("nvcc", &run.host.env.path_dirs()).0;
    let (Some(program), Ok(dir)) = (program, compiler.scratch_dir()) else { return Vec::new() };
    let row = probe("cuda.nvcc");
    let setting = nvcc::Setting {
        dir: &dir,
        cwd: &run.host.cwd,
        flags: &[],
        time_limit: compiler.time_limit(),
        known: compiler.known(),
    };
    let source = Source { name: row.file, text: row.text };
    nvcc::home(&[program.into_string()], &source, &setting, run.host, run.sink)
}

/// Nothing qualified: the question about cuda.h is put to the compiler for the
/// record, and every place that was looked at goes into its evidence.
fn nothing(run: &mut Run<'_>, compiler: &Compiler) -> Result<Installation, Error> {
    let layout = Layout::default();
    let ground = run.ground(layout.clone(), compiler);
    let question = Question {
        probe: probe("cuda.header.cuda_h"),
        ground: &ground,
        compiler,
        host: run.host,
        needs: Vec::new(),
    };
    let mut answers = run.ask(&[question])?;
    if let Some(answer) = answers.first_mut() {
        let has_toolkits = |place: &&Place| **place != Place::Driver;
        let looked = CUDA_PLACES.iter().filter(has_toolkits);
        answer.check.evidence.attempts.extend(looked.map(|place| Attempt {
            what: format!("look for include/cuda.h: {}", looked_in(*place, run.host)),
            place: None,
            command: None,
            said: None,
            outcome: Outcome::Absent,
            meaning: None,
        }));
        run.checks.retain(|check| check.id != answer.check.id);
        run.checks.push(answer.check.clone());
    }
    let kind = ToolkitKind::Installed;
    let found_by = Place::Compiler.to_string();
    Ok(Installation { layout, named: None, kind, found_by, answers })
}

/// The layout of a candidate that has the header. The compiler is asked only
/// when it is its turn.
fn qualifies(
    run: &mut Run<'_>,
    compiler: &Compiler,
    candidate: &Candidate,
    header: &str,
) -> Option<Layout> {
    let root = candidate.root.as_deref();
    let layout = match header.starts_with("cuda.") {
        true => cuda_layout(run, compiler, candidate),
        false => gdrcopy_at(run, compiler, root),
    };
    let has = match root {
        Some(_) => layout.header(name_of(header)).is_some(),
        None => compiler_has(run, compiler, header),
    };
    has.then_some(layout)
}

/// The layout of a candidate, the parts that were named before it.
fn cuda_layout(run: &Run<'_>, compiler: &Compiler, candidate: &Candidate) -> Layout {
    let mut parts = run.request.cuda_parts.clone();
    parts.include_dirs.extend(candidate.parts.include_dirs.iter().cloned());
    parts.library_dirs.extend(candidate.parts.library_dirs.iter().cloned());
    match &candidate.root {
        None if parts.is_empty() => Layout::default(),
        root => Layout::assemble(root.as_deref(), &parts, &run.target(compiler)),
    }
}

/// The layout that will most likely be taken: the first candidate whose files
/// say so; that of the compiler's own directories where it is their turn.
pub(super) fn likely(run: &mut Run<'_>, compiler: &Compiler, header: &str) -> Option<Layout> {
    let places = if header.starts_with("cuda.") { CUDA_PLACES } else { GDRCOPY_PLACES };
    let host = run.host;
    let mut all = places.iter().flat_map(|place| candidates(*place, host));
    all.find_map(|candidate| match candidate.root {
        Some(_) => qualifies(run, compiler, &candidate, header),
        None if header.starts_with("cuda.") => Some(cuda_layout(run, compiler, &candidate)),
        None => Some(gdrcopy_at(run, compiler, None)),
    })
}

/// The layout of a gdrcopy.
pub(super) fn gdrcopy_at(run: &Run<'_>, compiler: &Compiler, root: Option<&Utf8Path>) -> Layout {
    Layout::gdrcopy(root, libdir(run).as_deref(), &run.target(compiler))
}

/// The header that a question is about.
fn name_of(id: &str) -> &'static str {
    match probe(id).stage {
        crate::probe::catalog::Stage::Header(name) => name,
        _ => "",
    }
}

/// Whether the compiler finds a header by itself.
fn compiler_has(run: &mut Run<'_>, compiler: &Compiler, header: &str) -> bool {
    let ground = run.ground(Layout::default(), compiler);
    let probe = probe(header);
    let question = Question { probe, ground: &ground, compiler, host: run.host, needs: Vec::new() };
    question.put(run.sink).check.verdict.is_yes()
}

/// `--with-gdrcopy-libdir`, absolute.
fn libdir(run: &Run<'_>) -> Option<Utf8PathBuf> {
    run.request.gdrcopy_libdir.as_ref().map(|dir| run.host.absolute(&dir.value))
}

/// The gdrcopy to ask about, not asked yet.
pub(super) fn gdrcopy(run: &mut Run<'_>, compiler: &Compiler) -> Result<Installation, Error> {
    let (layout, kind, found_by) = match &run.request.gdrcopy.value {
        Want::At(Location::Dir(typed)) => {
            let dir = root::resolve("--with-gdrcopy", typed, run.host)?;
            let found_by = super::unmet::option(&run.request.gdrcopy, "--with-gdrcopy");
            (gdrcopy_at(run, compiler, Some(&dir)), ToolkitKind::Installed, found_by)
        }
        Want::At(Location::Stub(version)) => {
            let into = toolkit_place(run, compiler)?;
            let dir = stub::materialise_gdrcopy(*version, &into, compiler, run.host, run.sink)?;
            run.let_time_pass(&dir);
            let found_by = super::unmet::option(&run.request.gdrcopy, "--with-gdrcopy");
            (gdrcopy_at(run, compiler, Some(&dir)), ToolkitKind::Stub, found_by)
        }
        Want::At(Location::Wheel(version)) => {
            return Err(super::unmet::no_wheel(&version.to_string()));
        }
        Want::No | Want::Empty | Want::Guess | Want::Yes => {
            let header = "gdrcopy.header.gdrapi_h";
            let host = run.host;
            let mut all = GDRCOPY_PLACES.iter().flat_map(|place| candidates(*place, host));
            let found = all.find_map(|candidate| {
                Some((qualifies(run, compiler, &candidate, header)?, candidate.place))
            });
            let (layout, place) =
                found.unwrap_or_else(|| (gdrcopy_at(run, compiler, None), Place::Compiler));
            (layout, ToolkitKind::Installed, place.to_string())
        }
    };
    Ok(Installation { layout, named: None, kind, found_by, answers: Vec::new() })
}
