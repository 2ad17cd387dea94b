//! Every recorded case, asked strictly: one compiler run for many questions
//! gives the report that one run for each gives.

use std::{
    ffi::OsString,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use ucx_configure::{
    cli::{self, Parsed},
    engine,
    host::{Host, env::Snapshot, fs, process::Runner},
    request::resolve,
    ui::Silent,
};

use crate::{
    parity::{Case, cases, search_path},
    trees::Trees,
};

/// Asserts that each case has one report, whichever way it is asked.
pub(crate) fn are_one(trees: &Trees) {
    let cases = cases(trees);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let [batch, single] = ["batch", "single"].map(|way| report(case, trees, way));
            if batch != single {
                let mut pairs = batch.lines().zip(single.lines());
                let first = pairs.find(|(one, other)| one != other);
                wrong.lock().unwrap().push(format!("{}: {first:?}", case.id));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a strict run of the case says, its error included.
fn report(case: &Case, trees: &Trees, way: &str) -> String {
    let dir = trees.root.join("build").join(&case.id).join("a/b");
    fs::create_dir_all(&dir).unwrap();
    let mut pairs = case.env.clone();
    pairs.entry("PATH".to_owned()).or_insert_with(search_path);
    let env = Snapshot::from_pairs(pairs);
    let runner = Runner::with_environment(&env);
    let host = Host { env, cwd: dir, runner };
    let way = format!("--probe-mode={way}");
    let arguments: Vec<OsString> = ["check", "--no-cache", &way]
        .into_iter()
        .chain(case.args.iter().map(String::as_str))
        .map(OsString::from)
        .collect();
    let Parsed::Run(typed) = cli::parse(&arguments).unwrap() else { panic!("no run") };
    let request = match resolve(&typed, &host) {
        Ok(resolution) => resolution.request,
        Err(error) => return format!("{error:?}"),
    };
    let mut outcome = engine::configure(&request, &host, &mut Silent);
    // How it was asked is the one thing that differs.
    outcome.report.command_line.clear();
    let text = serde_json::to_string_pretty(&outcome.report).unwrap();
    format!("{text}\n{:?}", outcome.error)
}
