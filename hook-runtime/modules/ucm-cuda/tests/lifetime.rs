//! What becomes of events when things begin and end, on the mock driver; and that a program
//! in C can use the module through its header. `c/lifetime.c` is the program.
#![expect(clippy::disallowed_methods, reason = "tests build and run things themselves")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

#[path = "../../../tests/hooks_support/mock.rs"]
mod mock;
mod support;
use mock::Mock;
use support::module;

const BISTRO: bool = cfg!(all(feature = "bistro", target_arch = "x86_64"));

fn modes() -> &'static [&'static str] {
    if BISTRO { &["reloc", "bistro", "bistro,reloc"] } else { &["reloc"] }
}

struct Program {
    mock: Mock,
    path: PathBuf,
}

impl Program {
    /// The program, which tests that run at the same time share.
    fn build() -> Arc<Self> {
        static SHARED: Mutex<Weak<Program>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(Self::new());
            *shared = Arc::downgrade(&made);
            made
        })
    }

    fn new() -> Self {
        let mock = Mock::build(12_050, "580");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(module(), mock.path("libucm_cuda.so")).unwrap();
        // The name under which the program looks for it.
        std::os::unix::fs::symlink("libucm_cuda.so", mock.path("libucm_cuda.so.0")).unwrap();
        let include = format!("-I{}", here.join("../../include").display());
        let libraries = ["-lucm_cuda", "-lcudart", "-lcuda", "-ldl", "-pthread", &include];
        let path = mock.program("lifetime", &[here.join("tests/c/lifetime.c")], &libraries);
        Self { mock, path }
    }

    fn run(&self, mode: &str, arguments: &[&str]) -> String {
        let output = Command::new(&self.path)
            .args(arguments)
            .env("UCX_MEM_CUDA_HOOK_MODE", mode)
            .env("LD_LIBRARY_PATH", self.mock.path(""))
            .env_remove("HOOK_RUNTIME_TRACE")
            .env_remove("UCX_MEM_LOG_LEVEL")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{mode} {arguments:?}: {}{text}{errors}", output.status);
        text
    }

    fn passes(&self, part: &str) {
        for mode in modes() {
            assert_eq!(self.run(mode, &[part]), "passed\n", "{mode}");
        }
    }
}

#[test]
fn what_was_there_before_is_found_without_a_context() {
    let program = Program::build();
    program.passes("existing");
    program.passes("existing_unasked");
}

#[test]
fn a_context_takes_its_memory_with_it() {
    Program::build().passes("contexts");
}

#[test]
fn children_never_wait_for_threads_that_they_do_not_have() {
    Program::build().passes("forks");
}

#[test]
fn nothing_is_reported_at_the_end() {
    let program = Program::build();
    for mode in modes() {
        assert_eq!(program.run(mode, &["end"]), "passed\nended\n", "{mode}");
    }
}

#[test]
fn pointers_to_functions_are_seen_by_their_entries_alone() {
    let program = Program::build();
    for mode in modes() {
        assert_eq!(program.run(mode, &["ways", mode]), "passed\n", "{mode}");
    }
}

#[test]
fn two_copies_of_the_module_do_not_disturb_each_other() {
    let program = Program::build();
    let another = program.mock.path("another.so");
    std::fs::copy(module(), &another).unwrap();
    for mode in modes() {
        assert_eq!(program.run(mode, &["two", another.to_str().unwrap()]), "passed\n", "{mode}");
    }
}

#[test]
fn where_code_cannot_change_slots_serve() {
    let program = Program::build();
    let said = program.run("bistro,reloc", &["refuse"]);
    assert!(said.ends_with("passed\n"), "{said}");
    assert!(said.starts_with("hooks (bistro,reloc): 0 by bistro, "), "{said}");
}

#[test]
fn the_example_prints_what_a_library_does() {
    let program = Program::build();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = format!("-I{}", here.join("../../include").display());
    let example = here.join("../../examples/events.c");
    let libraries = ["-lucm_cuda", "-ldl", &include];
    let example = program.mock.program("events", &[example], &libraries);
    let using = [here.join("tests/c/use.c")];
    let library = program.mock.program("libuse.so", &using, &["-shared", "-lcudart"]);
    let output = Command::new(example)
        .arg(library)
        .arg("use")
        .env("LD_LIBRARY_PATH", program.mock.path(""))
        .env("UCX_MEM_CUDA_HOOK_MODE", "reloc")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Vec<_>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let [
        ["allocated", first, "4096", "by", "cudaMalloc"],
        ["freed", second, "4096", "by", "cudaFree"],
    ] = [&lines[0][..], &lines[1][..]]
    else {
        panic!("{text}");
    };
    assert_eq!((first, lines.len()), (second, 2), "{text}");
}

#[test]
fn handlers_are_set_and_unset_by_kind() {
    Program::build().passes("arguments");
}
