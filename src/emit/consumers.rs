//! make, sh and the C compiler read what is meant for them, whatever the
//! paths in it.

use camino::Utf8Path;

use super::{find, fixtures};
use crate::{
    host::{
        fs::{Scratch, write_if_changed},
        process::{Invocation, Runner},
    },
    model::{Mode, Report},
};

/// Characters that some reader gives a meaning to, two plain ones among them.
const ALPHABET: &[char] = &[
    'a', '/', ' ', '\t', '$', '#', '\\', '\'', '"', '`', ';', '%', ':', '=', '(', ')', '{', '~',
    '*', '&', '!', '@', ',',
];

/// What people might call a directory.
const PATHS: &[&str] = &[
    "-I/opt/sp ace/include",
    "-I/opt/a$HOME/include",
    "-I/opt/$(shell date)/`date`/include",
    "-I/opt/semi;colon/include",
    "-I/opt/#hash/\\#/include",
    "-I/opt/it's \"quoted\"/include",
    "-I/opt/back\\slash\\",
    "-I/opt/100%/a:b/include",
    "-I~/cuda",
    "-DX=\"a b\"",
    "",
    " ",
    "\t-I/tab\t",
    "-I/größe/α",
    "*",
    "-Wl,-rpath,$ORIGIN",
];

/// Every text of up to three characters of the alphabet, and the paths.
fn hostile() -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut last = texts.clone();
    for _ in 0..3 {
        let longer = |text: &String| ALPHABET.iter().map(move |c| format!("{text}{c}")).collect();
        last = last.iter().flat_map(|text| -> Vec<String> { longer(text) }).collect();
        texts.extend(last.iter().cloned());
    }
    texts.extend(PATHS.iter().map(|&path| path.to_owned()));
    texts
}

/// The hostile texts as words of a few substitutions.
fn of_words(texts: &[String]) -> Report {
    let mut report = fixtures::report();
    report.answers.substitutions = texts
        .chunks(500)
        .enumerate()
        .map(|(index, chunk)| {
            let chunk: Vec<&str> = chunk.iter().map(String::as_str).collect();
            fixtures::words(&format!("W{index}"), &chunk, "Words; the end is \\")
        })
        .collect();
    report
}

/// The hostile texts as one substitution each, verbatim.
fn of_texts(texts: &[String]) -> Report {
    let mut report = fixtures::compat();
    report.answers.substitutions = texts
        .iter()
        .enumerate()
        .map(|(index, text)| fixtures::text(&format!("T{index}"), text))
        .collect();
    report
}

/// Writes the rendered report and the text of a consumer; returns what the
/// consumer printed.
fn run(id: &str, report: &Report, file: &str, text: &str, command: Invocation) -> String {
    let scratch = Scratch::new(None).unwrap();
    let emitter = find(id).unwrap();
    let rendered = (emitter.render)(report).unwrap();
    let write = |name: &str, text: &str| {
        write_if_changed(&scratch.path().join(name), text.as_bytes(), 0o644).unwrap();
    };
    write(emitter.file.unwrap(), &rendered);
    write(file, text);
    // What a consumer prints is longer than a runner keeps.
    let script = format!("{command} > out 2> err || {{ cat err >&2; exit 1; }}");
    let done = Runner::new().run(Invocation::new("sh").args(["-c", &script]).cwd(scratch.path()));
    assert!(done.success(), "{command}: {}", done.stderr);
    String::from_utf8(crate::host::fs::read(&scratch.path().join("out")).unwrap()).unwrap()
}

/// Whether a program is there; a test that needs it and cannot have it says
/// that it is waived.
fn have(test: &str, command: &str) -> bool {
    let done = Runner::new().run(Invocation::new("sh").args(["-c", command]));
    if !done.success() {
        println!("waived: {test}: `{command}` fails here");
    }
    done.success()
}

/// A piece of a consumer's text for each substitution, by its name.
fn for_each(report: &Report, piece: impl Fn(&str) -> String) -> String {
    report.answers.substitutions.iter().map(|substitution| piece(&substitution.name)).collect()
}

/// Holds what came out, one text between angle brackets a line, against what
/// went in.
fn compare(printed: &str, texts: &[String]) {
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), texts.len());
    for (line, text) in lines.iter().zip(texts) {
        assert_eq!(*line, format!("<{text}>"));
    }
}

#[test]
fn make_passes_words_to_a_recipe_unchanged() {
    if !have("make_passes_words_to_a_recipe_unchanged", "make --version") {
        return;
    }
    let texts = hostile();
    let report = of_words(&texts);
    let recipe = for_each(&report, |name| format!("\t@printf '<%s>\\n' $({name})\n"));
    let makefile = format!("include config.mk\nall:\n{recipe}");
    let make = Invocation::new("make").args(["-s", "-f", "Makefile"]);
    compare(&run("mk", &report, "Makefile", &makefile, make), &texts);
}

#[test]
fn make_keeps_texts_and_their_blanks() {
    if !have("make_keeps_texts_and_their_blanks", "make --version") {
        return;
    }
    let texts = hostile();
    let report = of_texts(&texts);
    let lines = for_each(&report, |name| format!("$(info <$({name})>)\n"));
    let makefile = format!("include config.mk\n{lines}all: ;@:\n");
    let make = Invocation::new("make").args(["-s", "-f", "Makefile"]);
    compare(&run("mk", &report, "Makefile", &makefile, make), &texts);
}

/// A report with installation directories through which no shell would go.
fn in_a_strange_prefix(mode: Mode) -> Report {
    let mut report = fixtures::report();
    report.mode = mode;
    let prefix = match mode {
        Mode::Strict => "/opt/a b'$HOME#x",
        Mode::Compat => "/opt/ucx",
    };
    let dirs = [("prefix", prefix), ("exec_prefix", "${prefix}"), ("libdir", "${exec_prefix}/l")];
    report.install.dirs = dirs.map(|(name, dir)| (name.to_owned(), dir.to_owned())).into();
    report
}

#[test]
fn make_and_sh_know_the_installation_directories() {
    let script = "set -eu\n. ./config.sh\nprintf '<%s>\\n' \"$prefix\" \"$libdir\"\n";
    for (mode, prefix) in [(Mode::Strict, "/opt/a b'$HOME#x"), (Mode::Compat, "/opt/ucx")] {
        let report = in_a_strange_prefix(mode);
        let expected = format!("<{prefix}>\n<{prefix}/l>\n");
        assert_eq!(run("sh", &report, "s", script, Invocation::new("sh").arg("s")), expected);
        if !have("make_and_sh_know_the_installation_directories", "make --version") {
            return;
        }
        let makefile = "include config.mk\nall:\n\t@printf '<%s>\\n' $(prefix) $(libdir)\n";
        let make = || Invocation::new("make").args(["-s", "-f", "Makefile"]);
        assert_eq!(run("mk", &report, "Makefile", makefile, make()), expected);
        let moved = run("mk", &report, "Makefile", makefile, make().arg("prefix=/y"));
        assert_eq!(moved, "</y>\n</y/l>\n", "what is below the prefix moves with it");
    }
}

#[test]
fn make_reads_conditionals() {
    if !have("make_reads_conditionals", "make --version") {
        return;
    }
    let makefile = "include config.mk\nifeq ($(HAVE_CUDA),yes)\n$(info cuda)\nendif\n\
                    ifeq ($(HAVE_CUDA_STATIC),yes)\n$(info static)\nendif\n\
                    ifeq ($(UCX_CONFIGURE_ON_STUB),yes)\n$(info stub)\nendif\nall: ;@:\n";
    let make = || Invocation::new("make").args(["-s", "-f", "Makefile"]);
    let printed = run("mk", &fixtures::report(), "Makefile", makefile, make());
    assert_eq!(printed, "cuda\n");
    let printed = run("mk", &fixtures::on_stub(), "Makefile", makefile, make());
    assert_eq!(printed, "cuda\nstub\n");
}

/// Those shells that are here; `sh` always is.
fn shells(test: &str) -> Vec<&'static str> {
    let others = ["dash", "bash"].into_iter().filter(|name| have(test, &format!("{name} -c :")));
    std::iter::once("sh").chain(others).collect()
}

#[test]
fn shells_take_words_apart_again() {
    let texts = hostile();
    let report = of_words(&texts);
    let lines = for_each(&report, |name| {
        format!("eval \"set -- ${name}\"\nfor word; do printf '<%s>\\n' \"$word\"; done\n")
    });
    let script = format!("set -eu\n. ./config.sh\n{lines}");
    for shell in shells("shells_take_words_apart_again") {
        compare(&run("sh", &report, "s", &script, Invocation::new(shell).arg("s")), &texts);
    }
}

#[test]
fn shells_keep_texts_and_their_blanks() {
    let texts = hostile();
    let report = of_texts(&texts);
    let lines = for_each(&report, |name| format!("printf '<%s>\\n' \"${name}\"\n"));
    let last = "test $HAVE_CUDA = yes && test $HAVE_CUDA_STATIC = no\n";
    let script = format!("set -eu\n. ./config.sh\n{lines}{last}");
    for shell in shells("shells_keep_texts_and_their_blanks") {
        compare(&run("sh", &report, "s", &script, Invocation::new(shell).arg("s")), &texts);
    }
}

/// A header with everything that could go wrong in it.
fn strange_header() -> Report {
    let mut report = fixtures::on_stub();
    report.answers.defines.extend([
        fixtures::define("ODD_COMMENT", Some("1"), "Ends */ here, /* begins, ??/ and ends in \\"),
        fixtures::define("ODD_PATH", Some("\"/sp ace/a$b;c%d\""), &"Long words follow. ".repeat(9)),
        fixtures::define("ABSENT", None, "Not there, and */ its comment is odd."),
    ]);
    report
}

const USER: &str = "#include \"config.h\"\n#include \"config.h\"\n#include <string.h>\n\
    #if defined(ABSENT) || defined(HAVE_CUDA_FABRIC)\n#error defined\n#endif\n\
    int main(void)\n{\n    return !(HAVE_CUDA == 1 && ODD_COMMENT == 1 && UCX_CONFIGURE_ON_STUB == 1 &&\n\
    strcmp(ODD_PATH, \"/sp ace/a$b;c%d\") == 0 && strcmp(ucm_MODULES, \":cuda\") == 0);\n}\n";

fn compile_and_run(language: &str, standard: &str) {
    let command = format!(
        "cc -x {language} -std={standard} -Wall -Wextra -Werror -pedantic user -o user.out && ./user.out"
    );
    let shell = Invocation::new("sh").args(["-c", &command]);
    run("config-h", &strange_header(), "user", USER, shell);
}

#[test]
fn c_compiles_config_h() {
    for standard in ["c99", "gnu11"] {
        compile_and_run("c", standard);
    }
}

#[test]
fn cxx_compiles_config_h() {
    if have("cxx_compiles_config_h", "echo 'int x;' | cc -x c++ -fsyntax-only -") {
        compile_and_run("c++", "c++11");
    }
}

#[test]
fn rendered_files_hold_no_trace_of_this_run() {
    let scratch = Scratch::new(None).unwrap();
    for emitter in super::EMITTERS {
        let report = match emitter.id {
            "config-site" => fixtures::compat(),
            _ => fixtures::report(),
        };
        let text = (emitter.render)(&report).unwrap();
        let here: &Utf8Path = scratch.path().parent().unwrap();
        assert!(!text.contains(&format!("{here}/")), "{}", emitter.id);
        assert!(text.ends_with('\n') && !text.contains("\n\n\n"), "{}", emitter.id);
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{}", emitter.id);
    }
}
