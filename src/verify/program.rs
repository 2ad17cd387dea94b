//! Is reloc alone enough for a program? From the ELF files of the program and
//! its libraries: which runtime it has, who calls through slots, and who gets
//! pointers.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::{Image, closure, hooks};
use crate::{
    error::{Code, Error},
    host::Host,
};

/// Functions that give out pointers to the driver's.
const GIVERS: &[&str] = &[
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cudaGetDriverEntryPoint",
    "cudaGetDriverEntryPoint_ptsz",
    "cudaGetDriverEntryPointByVersion",
    "cudaGetDriverEntryPointByVersion_ptsz",
];

/// How an object reaches CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Through import slots.
    Slots,
    /// By a static runtime inside it.
    StaticRuntime,
    /// By pointers that cuGetProcAddress or cudaGetDriverEntryPoint gives.
    EntryPoints,
    /// By pointers that dlsym gives: it imports dlsym and has the names.
    Dlsym,
}

/// An object that reaches CUDA in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// Which.
    pub file: Utf8PathBuf,
    /// How.
    pub how: How,
    /// The hooked functions, as far as they can be told.
    pub functions: Vec<String>,
}

/// What one mode would miss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModeAnswer {
    /// As in `UCX_MEM_CUDA_HOOK_MODE`.
    pub mode: &'static str,
    /// The calls that cause no event; none where all do.
    pub missed: Vec<User>,
}

/// The answer for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The program, or library.
    pub program: Utf8PathBuf,
    /// The machine that it is for.
    pub machine: &'static str,
    /// The shared runtimes that are loaded with it.
    pub shared_runtimes: Vec<Utf8PathBuf>,
    /// Who reaches CUDA, and how.
    pub users: Vec<User>,
    /// Libraries that were not found, and so not looked at.
    pub unresolved: Vec<String>,
    /// What each mode would miss.
    pub modes: Vec<ModeAnswer>,
    /// Whether reloc alone sees every call; none where no use of CUDA is
    /// seen, or a library that could decide is missing.
    pub reloc_is_enough: Option<bool>,
    /// What to do, in a sentence.
    pub recommendation: String,
    /// What limits the answer, a sentence each.
    pub notes: Vec<String>,
}

/// Answers for the program in a file.
///
/// # Errors
///
/// The file is not there, or no 64-bit ELF file.
pub fn answer(file: &Utf8Path, host: &Host) -> Result<Answer, Error> {
    if !file.is_file() {
        return Err(Error::new(Code::Read, format!("there is no file `{file}`"))
            .hint("Name the program's file, or one of its libraries, after `--program`."));
    }
    let program = Image::read(file).ok_or_else(|| {
        Error::new(Code::Read, format!("`{file}` is not a 64-bit ELF file"))
            .means("Only compiled programs and shared libraries say how they reach CUDA.")
            .hint("For a script, name the interpreter, and then the libraries that it loads.")
    })?;
    let closure = closure::of(program, host);
    let users: Vec<User> = closure.images.iter().flat_map(users).collect();
    Ok(conclude(&closure, users))
}

/// How one object reaches CUDA.
fn users(image: &Image) -> Vec<User> {
    if image.is_shared_runtime() || image.name().starts_with("libucm_cuda") {
        return Vec::new();
    }
    let hooks = hooks::all();
    let among = |names: &BTreeSet<String>, of_runtime: Option<bool>| -> Vec<String> {
        let wanted = |hook: &&hooks::Hook| {
            of_runtime.is_none_or(|wanted| wanted == hook.of_runtime) && names.contains(hook.name)
        };
        hooks.iter().filter(wanted).map(|hook| hook.name.to_owned()).collect()
    };
    let mut users = Vec::new();
    let mut add = |how, functions| users.push(User { file: image.path.clone(), how, functions });
    let imported = among(&image.imports, None);
    if !imported.is_empty() {
        add(How::Slots, imported);
    }
    let embeds = image.embeds_runtime();
    if embeds {
        add(How::StaticRuntime, among(&image.defined, Some(true)));
    }
    if GIVERS.iter().any(|giver| image.imports.contains(*giver)) {
        // The runtime's own names inside it say nothing about its callers.
        let named = if embeds { Vec::new() } else { among(&image.words, Some(false)) };
        add(How::EntryPoints, named);
    } else if !embeds && ["dlsym", "dlvsym"].iter().any(|name| image.imports.contains(*name)) {
        let named = among(&image.words, None);
        let asks = GIVERS.iter().any(|giver| image.words.contains(*giver));
        if !named.is_empty() || asks {
            add(How::Dlsym, named);
        }
    }
    users
}

fn conclude(closure: &closure::Closure, users: Vec<User>) -> Answer {
    let program = &closure.images[0];
    let by_reloc: Vec<User> = users.iter().filter(|user| user.how != How::Slots).cloned().collect();
    let can_patch = program.machine == "x86_64";
    let by_bistro = if can_patch { Vec::new() } else { users.clone() };
    let by_both = if can_patch { Vec::new() } else { by_reloc.clone() };
    // What a shared runtime does inside is known without its file.
    let undecided = closure.unresolved.iter().any(|name| !name.starts_with("libcudart"));
    let reloc_is_enough = match (by_reloc.is_empty(), undecided) {
        _ if users.is_empty() => None,
        (false, _) => Some(false),
        (true, undecided) => (!undecided).then_some(true),
    };
    let recommendation = match (reloc_is_enough, can_patch) {
        (None, _) if !users.is_empty() => {
            "reloc alone is enough for what was found: name the directories of what was not in \
             LD_LIBRARY_PATH, and ask again"
        }
        (None, _) => "no use of CUDA is seen here; verify the libraries that it opens at run time",
        (Some(true), _) => "reloc alone is enough",
        (Some(false), true) => {
            "reloc alone is not enough: use bistro, or both, which is the default"
        }
        (Some(false), false) => {
            "reloc alone is not enough, and there is nothing else on this machine: link it to the \
             shared CUDA runtime, and call by import instead of by pointer"
        }
    };
    let runtimes = closure.images.iter().filter(|image| image.is_shared_runtime());
    Answer {
        program: program.path.clone(),
        machine: program.machine,
        shared_runtimes: runtimes.map(|image| image.path.clone()).collect(),
        notes: notes(closure, &users),
        modes: vec![
            ModeAnswer { mode: "reloc", missed: by_reloc },
            ModeAnswer { mode: "bistro", missed: by_bistro },
            ModeAnswer { mode: "bistro,reloc", missed: by_both },
        ],
        unresolved: closure.unresolved.clone(),
        reloc_is_enough,
        recommendation: recommendation.to_owned(),
        users,
    }
}

/// What limits the answer.
fn notes(closure: &closure::Closure, users: &[User]) -> Vec<String> {
    let mut notes = Vec::new();
    if !closure.unresolved.is_empty() {
        let list: Vec<_> = closure.unresolved.iter().map(|name| format!("`{name}`")).collect();
        notes.push(format!("not found, and so not looked at: {}", list.join(", ")));
    }
    let opens = closure.images.iter().filter(|image| {
        !image.is_shared_runtime() && !image.embeds_runtime() && image.imports.contains("dlopen")
    });
    let opens: Vec<_> = opens.map(|image| format!("`{}`", image.name())).collect();
    if !opens.is_empty() {
        notes.push(format!(
            "libraries that are opened at run time are not looked at, and {} can open some: \
             verify these with `--program` too",
            opens.join(", ")
        ));
    }
    let symbol = "cudaGetSymbolAddress";
    let by_symbol = |user: &User| user.functions.iter().any(|function| function == symbol);
    if users.iter().any(by_symbol) {
        notes.push(format!(
            "bistro sees `{symbol}` only where the runtime asks the driver for the address"
        ));
    }
    notes
}
