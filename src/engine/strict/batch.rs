//! Asks ahead: the runs that answer many questions at once, and those that
//! nothing else answers, side by side.
//!
//! What they show is left with the compiler ([`Compiler::deduce`]), as what
//! each question's own run would have said. Questions are then put as ever;
//! one that nothing was left for is run. So the answers are those of asking
//! one by one, and nothing here concludes anything.

use std::thread;

use camino::Utf8PathBuf;

use super::{
    Run,
    ask::{Question, symbol},
    ground::{Ground, User},
    is_cuda, search,
    versions::{MACROS, MARK},
};
use crate::{
    discover::{
        Layout,
        library::taken,
        root,
        symbols::{self, Symbols},
    },
    host::Host,
    probe::{
        Compiler, How, Known, Said, Source, Trial,
        batch::{self, PROGRAM, Reading, Shown, UNIT},
        catalog::{PROBES, Probe, Stage, probe},
        compiler::Kind,
    },
    request::{Location, Want},
    ui::{Ahead, Sink},
};

/// Questions to ask ahead, on one ground.
pub(super) struct Batch {
    ground: Ground,
    probes: Vec<&'static Probe>,
    /// Whether each is asked alone; else one run answers what it can.
    alone: bool,
}

/// The batches that can be made before anything is known: of the installation
/// that is named, or looks like the one to be taken.
pub(super) fn early(run: &mut Run<'_>, compiler: &Compiler) {
    let batches = first(run, compiler);
    ask(run, compiler, batches, true);
}

/// Makes the first runs while the compiler is asked who it is, as if it were
/// the one that its name says. If it is not, their command lines are not those
/// that will be asked for, and nothing of them counts.
pub(super) fn beside_identity(run: &mut Run<'_>, assumed: &Compiler) {
    let batches = first(run, assumed);
    let plans: Vec<Plan> = batches.into_iter().map(|batch| Plan::new(batch, assumed)).collect();
    ahead(run, assumed, &plans, true, true);
}

fn first(run: &mut Run<'_>, compiler: &Compiler) -> Vec<Batch> {
    let mut batches = Vec::new();
    let parts = &run.request.cuda_parts;
    let layout = match &run.request.cuda.value {
        Want::At(Location::Dir(typed)) => root::resolve("--with-cuda", typed, run.host)
            .ok()
            .map(|root| Layout::assemble(Some(&root), parts, &run.target(compiler))),
        Want::Guess | Want::Yes if !parts.include_dirs.is_empty() => {
            Some(Layout::assemble(None, parts, &run.target(compiler)))
        }
        Want::Guess | Want::Yes => search::likely(run, compiler, "cuda.header.cuda_h"),
        _ => None,
    };
    let wants_cuda = layout.is_some();
    let ground = run.ground(layout.unwrap_or_default(), compiler);
    batches.push(Batch::of_cuda(ground, wants_cuda));
    let bare = Layout::default();
    match &run.request.gdrcopy.value {
        Want::At(Location::Dir(typed)) => {
            if let Ok(root) = root::resolve("--with-gdrcopy", typed, run.host) {
                let layout = search::gdrcopy_at(run, compiler, Some(&root));
                batches.push(Batch::of_gdrcopy(run.ground(layout, compiler)));
            }
        }
        Want::Guess | Want::Yes => match search::likely(run, compiler, "gdrcopy.header.gdrapi_h") {
            Some(layout) if layout.root.is_some() => {
                batches.push(Batch::of_gdrcopy(run.ground(layout, compiler)));
            }
            _ => batches.push(Batch {
                ground: run.ground(bare, compiler),
                probes: vec![probe("gdrcopy.header.gdrapi_h")],
                alone: true,
            }),
        },
        _ => {}
    }
    batches
}

impl Batch {
    /// Everything about CUDA, and about the system beside it.
    pub(super) fn of_cuda(ground: Ground, wants_cuda: bool) -> Self {
        // The system comes first: its answers are cheaper before CUDA's headers.
        let system = PROBES.iter().filter(|probe| probe.id.starts_with("system."));
        let cuda = PROBES.iter().filter(|probe| wants_cuda && is_cuda(probe));
        Self { ground, probes: system.chain(cuda).collect(), alone: false }
    }

    /// Everything about gdrcopy.
    pub(super) fn of_gdrcopy(ground: Ground) -> Self {
        let is_asked = |probe: &&Probe| probe.id.starts_with("gdrcopy.");
        Self { ground, probes: PROBES.iter().filter(is_asked).collect(), alone: false }
    }

    fn of_stage(&self, wanted: fn(Stage) -> bool) -> Vec<&'static Probe> {
        self.probes.iter().copied().filter(|probe| wanted(probe.stage)).collect()
    }

    /// The declarations; none where a warning could be an answer.
    fn declarations(&self) -> Vec<&'static Probe> {
        if self.alone || self.ground.cflags().iter().any(|flag| flag.starts_with("-Werror")) {
            return Vec::new();
        }
        self.of_stage(|stage| matches!(stage, Stage::Header(_) | Stage::Check))
    }

    /// What nothing else answers.
    fn alone(&self, linked: &[Linked]) -> Vec<&'static Probe> {
        if self.alone {
            return self.probes.clone();
        }
        let asked = self.of_stage(|stage| matches!(stage, Stage::Link(_) | Stage::Nvcc));
        let is_linked = |probe: &&Probe| linked.iter().any(|link| link.probe.id == probe.id);
        asked.into_iter().filter(|probe| !is_linked(probe)).collect()
    }
}

/// A question about a library whose file has the symbol.
struct Linked {
    probe: &'static Probe,
    name: &'static str,
    file: Utf8PathBuf,
}

/// The runs of a batch.
struct Plan {
    batch: Batch,
    declarations: Vec<&'static Probe>,
    unit: String,
    linked: Vec<Linked>,
    program: String,
    alone: Vec<&'static Probe>,
}

impl Plan {
    fn new(mut batch: Batch, compiler: &Compiler) -> Self {
        let given = &batch.ground.user.given;
        batch.probes.retain(|probe| !given.contains_key(probe.id));
        let declarations = batch.declarations();
        let linked = linked(&batch, compiler);
        let needed: Vec<&str> = linked.iter().map(|link| symbol(link.probe)).collect();
        Self {
            unit: batch::unit(&declarations, MARK, &MACROS),
            program: batch::program(&needed, compiler.pointer_size),
            alone: batch.alone(&linked),
            declarations,
            linked,
            batch,
        }
    }

    /// The run over all declarations. No limit of the user's may end it early.
    fn check(&self, compiler: &Compiler, host: &Host, sink: &mut dyn Sink) -> Trial {
        let mut flags = self.batch.ground.cflags();
        let unlimited = match compiler.kind {
            Kind::Clang => "-ferror-limit=0",
            _ => "-fmax-errors=0",
        };
        flags.extend([unlimited.to_owned(), "-Wno-fatal-errors".to_owned()]);
        let source = Source { name: UNIT, text: &self.unit };
        compiler.check_syntax(host, sink, &source, &flags)
    }

    /// The link of all libraries.
    fn link(&self, compiler: &Compiler, host: &Host, sink: &mut dyn Sink) -> Trial {
        let ground = &self.batch.ground;
        let mut names: Vec<&str> = Vec::new();
        for link in &self.linked {
            if !names.contains(&link.name) {
                names.push(link.name);
            }
        }
        let source = Source { name: PROGRAM, text: &self.program };
        let libs = ground.libs(&names);
        compiler.link(host, sink, &source, &ground.cflags(), &ground.ldflags(), &libs)
    }
}

/// The link that a question about one library comes to, in assembly.
fn link_alone(
    probe: &Probe,
    ground: &Ground,
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
) -> Option<Trial> {
    let Stage::Link(libraries) = probe.stage else { return None };
    if let [name] = libraries
        && file_of(name, ground, &link_dirs(ground, compiler)).is_some()
    {
        // It is there and does not do: that is told with the probe's own name.
        return None;
    }
    let name = format!("{}.s", probe.id);
    let text = batch::program(&[symbol(probe)], compiler.pointer_size);
    let source = Source { name: &name, text: &text };
    let libs = ground.libs(libraries);
    Some(compiler.link(host, sink, &source, &ground.cflags(), &ground.ldflags(), &libs))
}

/// The control that a missing symbol is noticed, in assembly.
fn link_open(user: &User, compiler: &Compiler, host: &Host, sink: &mut dyn Sink) -> Trial {
    let flags = user.flags();
    let text = batch::program(&["ucx_configure_is_defined_nowhere"], compiler.pointer_size);
    let source = Source { name: "control/unresolved.s", text: &text };
    compiler.link(host, sink, &source, &flags.cflags, &flags.ldflags, &flags.libs)
}

/// Runs the batches; with `controls`, what the controls need as well.
pub(super) fn ask(run: &mut Run<'_>, compiler: &Compiler, batches: Vec<Batch>, controls: bool) {
    if compiler.known().is_none() || !matches!(compiler.kind, Kind::Gcc | Kind::Clang) {
        return;
    }
    let is_new = |batch: &Batch| batch.alone || !run.asked_ahead.contains(&batch.ground.layout);
    let plans: Vec<Plan> =
        batches.into_iter().filter(is_new).map(|batch| Plan::new(batch, compiler)).collect();
    if !compiler.known().is_some_and(Known::is_warm) {
        ahead(run, compiler, &plans, controls, false);
    }
    for plan in &plans {
        conclude(run, compiler, plan, controls);
        if !plan.batch.alone {
            run.asked_ahead.push(plan.batch.ground.layout.clone());
        }
    }
}

/// Makes the runs of all plans, side by side. Where they are known from
/// earlier, each is looked up when it is needed.
fn ahead(run: &Run<'_>, compiler: &Compiler, plans: &[Plan], controls: bool, identity: bool) {
    let (host, user) = (run.host, &run.user);
    thread::scope(|scope| {
        if identity {
            scope.spawn(|| compiler.ask_identity_ahead(host));
        }
        for plan in plans {
            if !plan.declarations.is_empty() {
                scope.spawn(|| plan.check(compiler, host, &mut Ahead));
            }
            if links(plan, controls) {
                scope.spawn(|| plan.link(compiler, host, &mut Ahead));
            }
            for &probe in &plan.alone {
                let ground = &plan.batch.ground;
                let question = Question { probe, ground, compiler, host, needs: Vec::new() };
                scope.spawn(move || {
                    if link_alone(probe, ground, compiler, host, &mut Ahead).is_none() {
                        question.put(&mut Ahead);
                    }
                });
            }
        }
        if controls {
            scope.spawn(move || link_open(user, compiler, host, &mut Ahead));
        }
    });
}

/// Whether a plan has a link to make: the controls need one in any case.
fn links(plan: &Plan, controls: bool) -> bool {
    !plan.batch.alone && (controls || !plan.linked.is_empty())
}

/// Leaves with the compiler what the runs show, and tells of them.
fn conclude(run: &mut Run<'_>, compiler: &Compiler, plan: &Plan, controls: bool) {
    let ground = &plan.batch.ground;
    if !plan.declarations.is_empty() {
        let trial = plan.check(compiler, run.host, run.sink);
        let whole = trial.fault().is_none() && !trial.ok && !trial.completed.truncated;
        let reading = Reading::new(&trial.completed.stderr, &plan.declarations, MARK);
        match reading.filter(|_| whole) {
            Some(reading) => {
                declarations(compiler, plan, &reading);
                if controls {
                    let flags = run.user.flags().cflags;
                    let said = Said::no(String::new());
                    leave(compiler, probe("control.bad"), How::Compile, (&flags, &[]), said);
                }
                if let Some(lines) = reading.versions {
                    run.versions.push((ground.layout.clone(), lines));
                }
            }
            None => run.decide("the run over all declarations leaves them open: one by one"),
        }
    }
    if links(plan, controls) {
        let trial = plan.link(compiler, run.host, run.sink);
        if trial.ok && !trial.completed.truncated {
            libraries(compiler, plan, &trial.completed.stdout);
            for &probe in &plan.alone {
                alone(run, compiler, ground, probe);
            }
            if controls {
                let open = link_open(&run.user, compiler, run.host, run.sink);
                controlled(compiler, &run.user, !open.ok && open.fault().is_none());
            }
        } else {
            run.decide("the link of all libraries leaves them open: one by one");
        }
    }
}

/// Leaves what the controls of the linker would come to.
fn controlled(compiler: &Compiler, user: &User, is_refused: bool) {
    let flags = user.flags();
    let words: Vec<String> = flags.cflags.iter().chain(&flags.ldflags).cloned().collect();
    leave(compiler, probe("control.ok"), How::Link, (&words, &flags.libs), Said::yes(""));
    if is_refused {
        let open = probe("control.unresolved");
        leave(compiler, open, How::Link, (&words, &flags.libs), Said::no(String::new()));
    }
}

/// Leaves what a library's own link showed: a yes, or that there is no such
/// file, in the linker's words. Another failure is asked in C, which has the
/// probe's name in it.
fn alone(run: &mut Run<'_>, compiler: &Compiler, ground: &Ground, probe: &Probe) {
    let Some(trial) = link_alone(probe, ground, compiler, run.host, run.sink) else { return };
    let Stage::Link(libraries) = probe.stage else { return };
    let name = libraries.first().copied().unwrap_or_default();
    let done = trial.completed;
    let is_absent = file_of(name, ground, &link_dirs(ground, compiler)).is_none()
        && done.stderr.contains(name)
        && !done.stderr.contains("undefined");
    let said = match trial.ok {
        true => Said::yes(&done.stdout),
        false if is_absent => Said::no(done.stderr),
        false => return,
    };
    let flags: Vec<String> = ground.cflags().into_iter().chain(ground.ldflags()).collect();
    leave(compiler, probe, How::Link, (&flags, &ground.libs(libraries)), said);
}

fn leave(compiler: &Compiler, probe: &Probe, how: How, words: (&[String], &[String]), said: Said) {
    compiler.deduce(how, &Source { name: probe.file, text: probe.text }, words, said);
}

fn declarations(compiler: &Compiler, plan: &Plan, reading: &Reading) {
    let flags = plan.batch.ground.cflags();
    for probe in &plan.declarations {
        let said = match (reading.shown(probe), probe.stage) {
            (Shown::Yes, _) => Said::yes(""),
            (Shown::No(stderr), Stage::Check) => Said::no(stderr),
            _ => continue,
        };
        let how = match probe.stage {
            Stage::Header(_) => How::Compile,
            _ => compiler.how_to_check(),
        };
        leave(compiler, probe, how, (&flags, &[]), said);
    }
}

/// A library is proved by the link and by being the file that was looked into.
fn libraries(compiler: &Compiler, plan: &Plan, trace: &str) {
    let ground = &plan.batch.ground;
    let flags: Vec<String> = ground.cflags().into_iter().chain(ground.ldflags()).collect();
    for link in &plan.linked {
        if taken(trace, link.name).as_ref() != Some(&link.file) {
            continue;
        }
        let said = Said::yes(trace);
        leave(compiler, link.probe, How::Link, (&flags, &ground.libs(&[link.name])), said);
    }
}

/// The questions that one link can answer: of each the file is there, brings
/// the symbol, and needs nothing that another one of them brings, which would
/// hide what it lacks alone.
fn linked(batch: &Batch, compiler: &Compiler) -> Vec<Linked> {
    if batch.alone {
        return Vec::new();
    }
    let dirs = link_dirs(&batch.ground, compiler);
    let mut files: Vec<(&'static str, Utf8PathBuf, Symbols)> = Vec::new();
    let asked = batch.of_stage(|stage| matches!(stage, Stage::Link([_])));
    for probe in &asked {
        let Stage::Link([name]) = probe.stage else { continue };
        if files.iter().any(|(known, ..)| known == name) {
            continue;
        }
        let file = file_of(name, &batch.ground, &dirs);
        let Some(file) = file.filter(|file| file.extension() != Some("a")) else { continue };
        if let Some(table) = symbols::symbols(&file, &compiler.machine, &dirs) {
            files.push((name, file, table));
        }
    }
    let leans = |name: &str, table: &Symbols| {
        let others = files.iter().filter(|(other, ..)| *other != name);
        others.into_iter().any(|(_, _, other)| !table.wanted.is_disjoint(&other.defined))
    };
    asked
        .into_iter()
        .filter_map(|probe| {
            let Stage::Link([asked]) = probe.stage else { return None };
            let (name, file, table) = files.iter().find(|(name, ..)| name == asked)?;
            let brings = table.defined.contains(symbol(probe)) && !leans(name, table);
            brings.then(|| Linked { probe, name, file: file.clone() })
        })
        .collect()
}

/// The file that a linker would take.
fn file_of(name: &str, ground: &Ground, dirs: &[Utf8PathBuf]) -> Option<Utf8PathBuf> {
    let Some(known) = ground.layout.versioned_name(name) else { return symbols::find(name, dirs) };
    let file = known.file_name()?;
    let found = dirs.iter().map(|dir| dir.join(file)).find(|path| path.is_file());
    // It may lie where the linker looks by itself.
    found.or_else(|| Some(known.to_owned()))
}

/// The directories that a link searches first.
fn link_dirs(ground: &Ground, compiler: &Compiler) -> Vec<Utf8PathBuf> {
    let mut dirs = Vec::new();
    let flags = ground.ldflags();
    let mut words = flags.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("-L") {
            Some("") => dirs.extend(words.next().map(|dir| compiler.cwd().join(dir))),
            Some(dir) => dirs.push(compiler.cwd().join(dir)),
            None => {}
        }
    }
    dirs
}
