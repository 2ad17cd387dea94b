//! What UCX's version guards make of the headers.
//!
//! The original's configure does not ask for a CUDA version; its sources
//! compare `CUDA_VERSION` and `CUDART_VERSION` with numbers. One preprocessor
//! run reads both, and the numbers of the system calls that binary
//! instrumentation needs.

use super::{cuda::digit, shell::Shell};
use crate::{error::Error, model::CudaVersion};

/// Starts every line of the answer.
const MARK: &str = "ucx_configure_level";

/// The system calls that the original asks about, each with its macro.
const CALLS: [(&str, &str); 8] = [
    ("mmap", "HAVE_DECL_SYS_MMAP"),
    ("munmap", "HAVE_DECL_SYS_MUNMAP"),
    ("mremap", "HAVE_DECL_SYS_MREMAP"),
    ("brk", "HAVE_DECL_SYS_BRK"),
    ("madvise", "HAVE_DECL_SYS_MADVISE"),
    ("shmat", "HAVE_DECL_SYS_SHMAT"),
    ("shmdt", "HAVE_DECL_SYS_SHMDT"),
    ("ipc", "HAVE_DECL_SYS_IPC"),
];

/// Without these there is no binary instrumentation; for shared memory either
/// two of their own or the one for everything is needed besides.
const NEEDED: [&str; 5] = ["mmap", "munmap", "mremap", "brk", "madvise"];

/// What the headers say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Levels {
    /// `CUDA_VERSION`.
    pub cuda: Option<CudaVersion>,
    /// `CUDART_VERSION`.
    pub cudart: Option<CudaVersion>,
    calls: Vec<String>,
}

impl Levels {
    /// Whether the system calls for binary instrumentation are known.
    fn system_calls(&self) -> bool {
        let has = |name: &&str| self.has(name);
        NEEDED.iter().all(has) && (["shmat", "shmdt"].iter().all(has) || self.has("ipc"))
    }

    fn has(&self, call: &str) -> bool {
        self.calls.iter().any(|known| known == call)
    }
}

/// Reads them, with the flags that CUDA was found with.
pub(super) fn read(shell: &mut Shell<'_>) -> Result<(), Error> {
    let mut headers = Vec::new();
    if shell.cuda.happy {
        for (macro_name, header) in
            [("HAVE_CUDA_H", "cuda.h"), ("HAVE_CUDA_RUNTIME_H", "cuda_runtime.h")]
        {
            if shell.defines.contains_key(macro_name) {
                headers.push(header);
            }
        }
    }
    let user_cppflags = shell.cppflags.clone();
    shell.cppflags = format!("{user_cppflags} {}", shell.get("CUDA_CPPFLAGS"));
    let trial = shell.preprocess(&question(), &headers);
    shell.cppflags = user_cppflags;
    shell.levels = parse(&trial?.completed.stdout);
    for (call, name) in CALLS {
        let declared = shell.levels.has(call);
        shell.define(name, digit(declared));
    }
    let bistro = shell.request.bistro && shell.levels.system_calls();
    shell.define("UCM_BISTRO_HOOKS", digit(bistro));
    Ok(())
}

/// The text whose preprocessed form is the answer.
fn question() -> String {
    let versions = [("cuda", "CUDA_VERSION"), ("cudart", "CUDART_VERSION")]
        .map(|(key, name)| format!("#ifdef {name}\n{MARK} \"{key}\" {name}\n#endif\n"));
    let calls =
        CALLS.map(|(call, _)| format!("#ifdef SYS_{call}\n{MARK} \"call\" \"{call}\"\n#endif\n"));
    format!("#include <sys/syscall.h>\n{}{}", versions.concat(), calls.concat())
}

fn parse(output: &str) -> Levels {
    let mut levels = Levels::default();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [MARK, "\"cuda\"", number] => levels.cuda = version(number),
            [MARK, "\"cudart\"", number] => levels.cudart = version(number),
            [MARK, "\"call\"", name] => levels.calls.push(name.trim_matches('"').to_owned()),
            _ => {}
        }
    }
    levels
}

fn version(number: &str) -> Option<CudaVersion> {
    number.parse().ok().map(CudaVersion::from_macro)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_system_calls() {
        let call = |name: &str| format!("{MARK} \"call\" \"{name}\"\n");
        let output = format!("{MARK} \"cuda\" 12050\n{MARK} \"cudart\" 11070\n")
            + &NEEDED.map(call).concat();
        let without = parse(&output);
        assert_eq!(without.cuda, Some(CudaVersion::new(12, 5)));
        assert_eq!(without.cudart, Some(CudaVersion::new(11, 7)));
        assert!(!without.system_calls(), "shared memory is missing");
        assert!(parse(&(output + &call("ipc"))).system_calls());
        assert_eq!(parse("int x;\n"), Levels::default());
    }
}
