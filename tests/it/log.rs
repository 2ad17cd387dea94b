//! config.log of a real run: equal runs write equal logs, and every command in
//! it can be repeated with the same result.

use camino::{Utf8Path, Utf8PathBuf};
use ucx_configure::{
    emit::EMITTERS,
    engine::compat,
    exit::Exit,
    host::{
        Host,
        env::Snapshot,
        fs::{self, Scratch},
        process::{Invocation, Runner},
    },
    model::{CudaVersion, Mode, Report},
    probe::Compiler,
    request::{Location, Request, Want},
    toolkit::stub,
    ui::{ConfigLog, Silent},
};

fn host(cwd: &Utf8Path) -> Host {
    let env = Snapshot::from_pairs([("PATH", "/usr/local/bin:/usr/bin:/bin")]);
    let runner = Runner::with_environment(&env);
    Host { env, cwd: cwd.to_owned(), runner }
}

/// A toolkit in a directory with an awkward name, and a place to stand.
fn world(scratch: &Scratch) -> (Utf8PathBuf, Utf8PathBuf) {
    let stand = scratch.path().join("it's here; $now");
    fs::create_dir_all(&stand).unwrap();
    let host = host(&stand);
    let request = Request::bare(stand.clone());
    let compiler = Compiler::find(&request, &host, &mut Silent).unwrap();
    let version = CudaVersion::new(12, 5);
    let tree = stub::materialise(version, scratch.path(), &compiler, &host, &mut Silent).unwrap();
    (stand, tree)
}

/// One run from the beginning to the end of its log.
fn run(stand: &Utf8Path, tree: &Utf8Path) -> (Report, String) {
    run_with(stand, tree, Want::At(Location::Dir(tree.to_owned())))
}

/// The same with another wish.
fn run_with(stand: &Utf8Path, tree: &Utf8Path, cuda: Want<CudaVersion>) -> (Report, String) {
    let host = host(stand);
    let mut request = Request::bare(stand.join("build"));
    request.mode = Mode::Compat;
    request.cuda.value = cuda;
    request.state_dir = Some(stand.join("state"));
    request.command_line = vec![format!("--with-cuda={tree}"), "--compat=v1.19.0".to_owned()];
    let tool = ucx_configure::model::Tool { name: "ucx-configure".into(), version: "0".into() };
    let mut log = ConfigLog::new(&tool, &request.command_line, &[]);
    let outcome = compat::configure(&request, &host, &mut log);
    let text = log.finish(Some(&outcome.report), outcome.error.as_ref(), Exit::Done);
    (outcome.report, text)
}

/// The numbers of the commands with how each ended.
fn commands(log: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in log.lines() {
        if let Some((number, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            commands.push((number.to_owned(), String::new()));
        } else if let (Some(code), Some(last)) =
            (line.strip_prefix("= exit code "), commands.last_mut())
            && last.1.is_empty()
        {
            last.1 = code.to_owned();
        }
    }
    commands
}

#[test]
fn equal_runs_write_equal_logs() {
    let scratch = Scratch::new(None).unwrap();
    let (stand, tree) = world(&scratch);
    let (report, first) = run(&stand, &tree);
    assert!(report.ok, "{first}");
    assert_eq!(first, run(&stand, &tree).1);
    // Every question is there, with its answer.
    assert!(!report.checks.is_empty());
    for check in &report.checks {
        assert!(first.contains(&format!("? checking {}\n", check.label)), "{}", check.id);
        assert!(first.contains(&format!("! checking {}... ", check.label)), "{}", check.id);
    }
}

/// The schema is not ours alone: a run that succeeds, one that fails and one
/// without CUDA have to fit it.
#[test]
fn reports_of_real_runs_fit_the_schema() {
    let scratch = Scratch::new(None).unwrap();
    let (stand, tree) = world(&scratch);
    let schema = include_str!("../../templates/ucx-configure.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let at = |dir: &Utf8Path| Want::At(Location::Dir(dir.to_owned()));
    let wishes = [(at(&tree), true), (at(&tree.join("no such")), false), (Want::No, true)];
    for (wish, ok) in wishes {
        let (report, log) = run_with(&stand, &tree, wish.clone());
        assert_eq!(report.ok, ok, "{wish:?}: {log}");
        let json = EMITTERS.iter().find(|emitter| emitter.id == "json").unwrap();
        let value = serde_json::from_str(&(json.render)(&report).unwrap()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{wish:?}: {errors:#?}");
    }
}

#[test]
fn every_command_can_be_repeated() {
    let scratch = Scratch::new(None).unwrap();
    let (stand, tree) = world(&scratch);
    let (_, log) = run(&stand, &tree);
    let commands = commands(&log);
    assert!(commands.len() > 10, "{} commands were run", commands.len());
    assert!(commands.iter().any(|(_, code)| code == "0"));
    assert!(commands.iter().any(|(_, code)| code != "0"));
    let build = stand.join("build");
    fs::create_dir_all(&build).unwrap();
    fs::write_if_changed(&build.join("config.log"), log.as_bytes(), 0o644).unwrap();
    // The function is taken from the log's own head.
    let numbers: Vec<&str> = commands.iter().map(|(number, _)| number.as_str()).collect();
    let script = format!(
        "sed -n '/^  repeat() (/,/^  )/p' config.log > repeat.sh && . ./repeat.sh
        for n in {}; do repeat $n > /dev/null 2>&1; echo $n $?; done",
        numbers.join(" ")
    );
    let shell = Invocation::new("sh").args(["-uc", &script]).cwd(&build);
    let done = host(&stand).runner.run(shell);
    let repeated: Vec<(String, String)> = done
        .stdout
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(number, code)| (number.to_owned(), code.to_owned()))
        .collect();
    assert_eq!(repeated, commands, "{}", done.stderr);
}
