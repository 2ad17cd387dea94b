//! Detection by our own rules: the questions of UCX's configure, its quirks
//! mended, and what UCX's sources will make of the headers.
//!
//! | file | what |
//! |---|---|
//! | `ground` | one installation's directories before the user's flags |
//! | `batch` | many questions asked ahead, in few runs |
//! | `ask` | one question: probe, answer, evidence |
//! | `search` | which installation, when nobody said so |
//! | `found` | what the questions came to |
//! | `versions` | what the parts say of their versions |
//! | `why_not` | why a header or a library does not do |
//! | `unmet` | the error for what was asked for and is not there |
//! | `quirk`, `differences` | where the original would have answered otherwise |
//! | `libraries` | every library file that was seen |
//! | `tell` | what deserves a word |
//! | `conclude`, `outputs` | the report that follows, and its answers |

mod ask;
mod batch;
mod conclude;
mod differences;
mod environment;
mod found;
mod ground;
mod hints;
mod libraries;
mod outputs;
pub mod quirk;
mod search;
mod tell;
mod unmet;
mod versions;
mod why_not;

use std::{thread, time::Duration};

pub use self::hints::missing;

use camino::Utf8Path;

use self::{
    ask::{Answer, Question, questions},
    batch::Batch,
    found::{CUDA_NEEDS, Found, GDRCOPY_NEEDS, Installation},
    ground::{Ground, User},
    versions::HeaderVersions,
};
use super::{
    Outcome,
    cache::{Store, TICK},
    schedule,
};
use crate::{
    discover::{Layout, Target, layout::idle},
    error::Error,
    host::{Host, fs},
    model::{Check, Evidence, Family, Message, MessageKind, Supplied, ToolkitKind, Verdict},
    probe::{
        Compiler, Known, Source,
        catalog::{PROBES, Probe, probe},
        compiler::{Located, is_batch},
        control,
    },
    request::{Request, Want},
    toolkit::STAMP,
    ui::{Event, Sink},
};

/// Detects by our own rules.
pub(super) fn configure(request: &Request, host: &Host, sink: &mut dyn Sink) -> Outcome {
    let mut run = Run {
        request,
        host,
        sink,
        checks: Vec::new(),
        messages: Vec::new(),
        user: User::default(),
        compiler: None,
        store: None,
        asked_ahead: Vec::new(),
        versions: Vec::new(),
        environment: Vec::new(),
    };
    let mut found = Found::default();
    let error = run.whole(&mut found).err();
    let (store, compiler) = (run.store.take(), run.compiler.clone());
    let outcome = conclude::outcome(run, &found, error);
    if let (Some(store), Some(known)) = (store, compiler.as_ref().and_then(Compiler::known)) {
        store.close(known, host);
    }
    outcome
}

/// One run: what it has so far, and whom it tells.
struct Run<'a> {
    request: &'a Request,
    host: &'a Host,
    sink: &'a mut dyn Sink,
    checks: Vec<Check>,
    messages: Vec<Message>,
    user: User,
    compiler: Option<Compiler>,
    /// Where answers are kept.
    store: Option<Store>,
    /// The layouts that were asked about ahead.
    asked_ahead: Vec<Layout>,
    /// What headers said of their versions on the way, by layout.
    versions: Vec<(Layout, String)>,
    /// What environment variables lead to.
    environment: Vec<Supplied>,
}

impl Run<'_> {
    /// Everything, in order. What is asked for and not there does not end it:
    /// the rest is found out all the same, and the first such error returned.
    fn whole(&mut self, found: &mut Found) -> Result<(), Error> {
        self.user = User::read(self.request)?;
        let compiler = self.compiler()?;
        self.compiler = Some(compiler.clone());
        found.cuda = self.cuda(&compiler)?;
        self.system_and_gdrcopy(&compiler, found)?;
        self.versions(&compiler, found)?;
        self.host.runner.interrupt.check()?;
        found.libraries = libraries::all(found, &compiler.machine);
        self.tell(found);
        unmet::first(self.request, found, &compiler.machine).map_or(Ok(()), Err)
    }

    /// The compiler, with its two checks.
    fn compiler(&mut self) -> Result<Compiler, Error> {
        self.sink.event(&Event::Checking("for a C compiler"));
        let compiler = self.found();
        let detail = compiler.as_ref().ok().map(|compiler| {
            let identity = &compiler.identity;
            let command = compiler.command.join(" ");
            format!("{command} ({} {}, {})", identity.kind, identity.version, identity.target)
        });
        self.own("tool.compiler", "for a C compiler", compiler.is_ok(), detail);
        let compiler = compiler?;
        compiler.must_be_for(self.request.host.as_deref(), self.host)?;
        batch::early(self, &compiler);
        let label = "whether the C compiler works";
        self.sink.event(&Event::Checking(label));
        let shown = control::check(&compiler, &self.user.flags(), self.host, self.sink);
        self.own("tool.compiler_works", label, shown.is_ok(), None);
        shown.map(|()| compiler)
    }

    /// The compiler, with what is known of it from earlier runs.
    fn found(&mut self) -> Result<Compiler, Error> {
        let (request, host) = (self.request, self.host);
        let (command, found_by) = Compiler::locate(request, host)?;
        self.store = Store::open(request, host, &command);
        let known = match &mut self.store {
            Some(store) => Some(store.known(&command, host)),
            None => is_batch(request).then(Known::default),
        };
        let is_cold = known.as_ref().is_some_and(|known| !known.is_warm());
        let located = Located::new(command, found_by, known, request, host)?;
        if let Some(assumed) = Compiler::assumed(&located, request, host).filter(|_| is_cold) {
            batch::beside_identity(self, &assumed);
        }
        Compiler::identify(located, request.mode, host, self.sink)
    }

    /// Waits until a tree that was just made is older than what reads it, as
    /// far as a clock can tell: else no answer about it could be kept.
    fn let_time_pass(&self, tree: &Utf8Path) {
        let made = fs::stamp(&tree.join(STAMP)).map(|stamp| stamp.changed);
        let age = made.and_then(|made| made.elapsed().ok());
        if self.store.is_some() && age.is_some_and(|age| age < Duration::from_secs(1)) {
            thread::sleep(TICK * 2);
        }
    }

    /// Records the answer to a question of our own; its `Checking` was sent.
    fn own(&mut self, id: &str, label: &str, good: bool, detail: Option<String>) {
        let check = Check {
            id: id.to_owned(),
            label: label.to_owned(),
            family: Family::Tool,
            component: None,
            verdict: if good { Verdict::Yes } else { Verdict::Broken },
            detail_is_answer: detail.is_some(),
            detail,
            evidence: Evidence::default(),
            preset: None,
            cached: false,
        };
        self.sink.event(&Event::Answered(&check));
        self.checks.push(check);
    }

    /// Says something, and keeps it for the report.
    fn say(&mut self, kind: MessageKind, code: &str, text: String, hint: Option<String>) {
        let message = Message { kind, code: code.to_owned(), text, hint };
        self.sink.event(&Event::Message(&message));
        self.messages.push(message);
    }

    /// A decision, for the log.
    fn decide(&mut self, text: &str) {
        self.sink.event(&Event::Decided(text));
    }

    /// What is compiled for.
    fn target<'b>(&'b self, compiler: &'b Compiler) -> Target<'b> {
        Target { machine: &compiler.machine, triple: &compiler.identity.target, host: self.host }
    }

    /// The ground of an installation.
    fn ground(&self, layout: Layout, compiler: &Compiler) -> Ground {
        let nvcc = search::nvcc_commands(self.request, &layout, self.host);
        Ground { layout, user: self.user.clone(), kind: compiler.kind, nvcc }
    }

    /// Puts questions side by side, and records the answers in order.
    fn ask(&mut self, tasks: &[Question<'_>]) -> Result<Vec<Answer>, Error> {
        let mut answers = Vec::new();
        let (sink, checks) = (&mut *self.sink, &mut self.checks);
        let known = tasks.first().and_then(|task| task.compiler.known());
        let deliver = |_: usize, answer: Option<Answer>, tape: schedule::Tape| {
            let Some(answer) = answer else { return };
            sink.event(&Event::Checking(&answer.check.label));
            tape.replay(sink);
            sink.event(&Event::Answered(&answer.check));
            // A later installation's answer replaces an earlier one's.
            checks.retain(|check: &Check| check.id != answer.check.id);
            checks.push(answer.check.clone());
            answers.push(answer);
        };
        match known.is_some_and(Known::is_warm) {
            true => schedule::run_in_turn(tasks, deliver),
            false => schedule::run(tasks, deliver),
        }
        self.host.runner.interrupt.check()?;
        Ok(answers)
    }

    /// CUDA: the installation that was asked about, whatever the answers.
    fn cuda(&mut self, compiler: &Compiler) -> Result<Option<Installation>, Error> {
        match &self.request.cuda.value {
            Want::No => Ok(None),
            Want::Empty => Err(unmet::empty("--with-cuda")),
            Want::At(location) => {
                let (root, kind) = search::cuda_root(location, self, compiler)?;
                let parts = &self.request.cuda_parts;
                let layout = Layout::assemble(Some(&root), parts, &self.target(compiler));
                let found_by = unmet::option(&self.request.cuda, "--with-cuda");
                let found = self.cuda_at(layout, kind, found_by, compiler)?;
                Ok(Some(Installation { named: Some(root), ..found }))
            }
            Want::Yes | Want::Guess => search::cuda(self, compiler).map(Some),
        }
    }

    /// Puts all questions about CUDA to one installation.
    fn cuda_at(
        &mut self,
        layout: Layout,
        kind: ToolkitKind,
        found_by: String,
        compiler: &Compiler,
    ) -> Result<Installation, Error> {
        let ground = self.ground(layout, compiler);
        batch::ask(self, compiler, vec![Batch::of_cuda(ground.clone(), true)], false);
        let probes: Vec<&'static Probe> = PROBES.iter().filter(|probe| is_cuda(probe)).collect();
        let answers = self.ask(&questions(&probes, &ground, compiler, self.host))?;
        Ok(Installation { layout: ground.layout, named: None, kind, found_by, answers })
    }

    /// The system's questions, and gdrcopy's beside them.
    fn system_and_gdrcopy(&mut self, compiler: &Compiler, found: &mut Found) -> Result<(), Error> {
        let gdrcopy = match &self.request.gdrcopy.value {
            Want::No => None,
            Want::Empty => return Err(unmet::empty("--with-gdrcopy")),
            _ => Some(search::gdrcopy(self, compiler)?),
        };
        let of = |start: &'static str| -> Vec<&'static Probe> {
            PROBES.iter().filter(|probe| probe.id.starts_with(start)).collect()
        };
        // They are asked beside CUDA, as they will be used.
        let beside = found.cuda.as_ref().map(|cuda| cuda.layout.clone()).unwrap_or_default();
        let beside = self.ground(beside, compiler);
        let ground = gdrcopy.as_ref().map(|tree| self.ground(tree.layout.clone(), compiler));
        if let Some(ground) = ground.as_ref().filter(|ground| ground.layout.root.is_some()) {
            batch::ask(self, compiler, vec![Batch::of_gdrcopy(ground.clone())], false);
        }
        let mut tasks = questions(&of("system."), &beside, compiler, self.host);
        let count = tasks.len();
        if let Some(ground) = &ground {
            let more = questions(&of("gdrcopy."), ground, compiler, self.host);
            tasks.extend(more.into_iter().map(|question| Question {
                needs: question.needs.iter().map(|need| need + count).collect(),
                ..question
            }));
        }
        let answers = self.ask(&tasks)?;
        let (system, rest): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.check.id.starts_with("system."));
        found.system = system;
        found.gdrcopy = gdrcopy.map(|tree| Installation { answers: rest, ..tree });
        Ok(())
    }

    /// What the headers say of themselves: one preprocessor run over all.
    fn versions(&mut self, compiler: &Compiler, found: &mut Found) -> Result<(), Error> {
        let any = |installation: &Option<Installation>, id: &str| {
            installation.as_ref().is_some_and(|installation| installation.yes(id))
        };
        let wanted = any(&found.cuda, CUDA_NEEDS[0])
            || any(&found.cuda, CUDA_NEEDS[1])
            || any(&found.gdrcopy, GDRCOPY_NEEDS[0]);
        if !wanted {
            return Ok(());
        }
        let label = "which versions the headers name";
        self.sink.event(&Event::Checking(label));
        found.headers = match self.versions_on_the_way(found) {
            Some(lines) => HeaderVersions::parse(&lines),
            None => {
                let mut flags = Vec::new();
                for installation in [&found.cuda, &found.gdrcopy].into_iter().flatten() {
                    flags.extend(installation.layout.cppflags());
                }
                flags.extend(self.user.cflags.iter().chain(&self.user.cppflags).cloned());
                read_versions(compiler, self.host, self.sink, &flags)
            }
        };
        found.headers.only(found.cuda.is_some(), any(&found.gdrcopy, GDRCOPY_NEEDS[0]));
        self.host.runner.interrupt.check()?;
        let text = found.headers.text().unwrap_or_else(|| "none".to_owned());
        self.own("tool.versions", label, true, Some(text));
        Ok(())
    }

    /// What the headers of all installations that were found have said of their
    /// versions; none where one has not.
    fn versions_on_the_way(&self, found: &Found) -> Option<String> {
        let gdrcopy = found.gdrcopy.as_ref().filter(|tree| tree.yes(GDRCOPY_NEEDS[0]));
        let mut all = String::new();
        for installation in found.cuda.as_ref().into_iter().chain(gdrcopy) {
            let said = self.versions.iter().find(|(layout, _)| *layout == installation.layout)?;
            all.push_str(&said.1);
        }
        Some(all)
    }

    /// Tells what deserves a word: a guess that came to nothing, versions that
    /// disagree, a stub.
    fn tell(&mut self, found: &Found) {
        if let Some(compiler) = self.compiler.clone() {
            let named = idle(&self.request.cuda_parts, &self.target(&compiler));
            for (dir, meant) in named {
                let text = format!("`{dir}` was named for CUDA, and holds nothing of it");
                let hint = meant.map(|meant| format!("Did you mean `{meant}`?"));
                self.say(MessageKind::Warning, "W0326", text, hint);
            }
        }
        for (kind, code, text, hint) in tell::all(self.request, found) {
            self.say(kind, code, text, hint);
        }
        self.environment = environment::supplied(&self.user, found, self.host);
        for (kind, code, text, hint) in environment::remarks(&self.environment) {
            self.say(kind, code, text, hint);
        }
        let given: Vec<String> = self.user.given.keys().map(|id| format!("`{id}`")).collect();
        if !given.is_empty() {
            let list = given.join(", ");
            let text = format!("answers that were given, not found out (`--answers`): {list}");
            self.say(MessageKind::Note, "N0313", text, None);
        }
    }
}

/// Whether a probe asks about CUDA, its levels included.
fn is_cuda(probe: &Probe) -> bool {
    ["cuda.", "nvml.", "level."].iter().any(|start| probe.id.starts_with(start))
}

/// One preprocessor run that reads every version macro.
fn read_versions(
    compiler: &Compiler,
    host: &Host,
    sink: &mut dyn Sink,
    flags: &[String],
) -> HeaderVersions {
    let row = probe("versions");
    let source = Source { name: row.file, text: row.text };
    // A header that stops the preprocessor leaves the others' lines.
    let trial = compiler.preprocess_marked(host, sink, &source, flags, versions::MARK);
    HeaderVersions::parse(&trial.completed.stdout)
}
