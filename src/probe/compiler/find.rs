//! Which command is the C compiler: the one that CC names, or the system's.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    error::{Code, Error, Remedy},
    host::{Host, fs, process::find_program},
    packages::{self, About, Item},
    probe::identity::Kind,
    request::{Request, Variable},
};

/// The command that CC holds; none where it is not set or empty.
pub(super) fn named(request: &Request) -> Result<Option<Vec<String>>, Error> {
    let text = request.variable(Variable::Cc);
    if text.trim().is_empty() {
        return Ok(None);
    }
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(Some(words)),
        _ => Err(Error::new(Code::Usage, format!("CC cannot be read as a command: `{text}`"))
            .means("A quote is not closed, or a backslash ends it.")
            .hint("Quote it as a shell would need it, such as `CC='ccache gcc'`.")),
    }
}

/// An error unless the first word of CC can be started.
pub(super) fn require_program(command: &[String], host: &Host) -> Result<(), Error> {
    let name = command.first().map_or("", String::as_str);
    let dirs = host.env.path_dirs();
    // A name with a slash is relative to where the user stands.
    let place =
        if name.contains('/') { host.cwd.join(name).into_string() } else { name.to_owned() };
    let (found, looked) = find_program(&place, &dirs);
    if found.is_some() {
        return Ok(());
    }
    let error = Error::new(Code::NoCompiler, format!("the C compiler `{name}` (CC) was not found"));
    let error = match Utf8Path::new(&place) {
        path if path.is_dir() => error.means(format!("`{place}` is a directory.")),
        path if path.is_file() => error.means(format!("`{place}` may not be executed.")),
        _ if name.contains('/') => error.means(format!("There is no file `{place}`.")),
        _ => error.means(looked_in(&looked)),
    };
    let error =
        error.hint("Set CC to a C compiler, such as `CC=gcc`, or unset it to have one found.");
    let other =
        ["gcc", "cc", "clang"].into_iter().find(|name| find_program(name, &dirs).0.is_some());
    Err(match other {
        Some(other) => error.remedy(Remedy::Set(format!("CC={other}"))),
        None => error,
    })
}

/// The sentence that lists where a program was looked for.
fn looked_in(looked: &[Utf8PathBuf]) -> String {
    let dirs: Vec<String> =
        looked.iter().filter_map(|path| path.parent()).map(|dir| format!("`{dir}`")).collect();
    if dirs.is_empty() {
        return "PATH holds no directory to look in.".to_owned();
    }
    format!("Looked in {}.", dirs.join(", "))
}

/// The system's compiler, or the cross compiler for `--host`.
pub(super) fn system(triple: Option<&str>, host: &Host) -> Result<(Vec<String>, String), Error> {
    let mut names: Vec<String> = Vec::new();
    if let Some(triple) = triple {
        names.extend(["gcc", "cc", "clang"].map(|name| format!("{triple}-{name}")));
    }
    if triple.is_none_or(is_native) {
        names.extend(["cc", "gcc", "clang"].map(str::to_owned));
    }
    let dirs = host.env.path_dirs();
    for name in &names {
        if find_program(name, &dirs).0.is_some() {
            return Ok((vec![name.clone()], "PATH".to_owned()));
        }
    }
    names.dedup();
    let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let looked: Vec<Utf8PathBuf> = dirs.iter().map(|dir| dir.join("cc")).collect();
    let item = if triple.is_none_or(is_native) { Item::CCompiler } else { Item::CrossCompiler };
    let about = About { triple, ..About::default() };
    Err(Error::new(Code::NoCompiler, format!("no C compiler was found: tried {}", list.join(", ")))
        .means(looked_in(&looked))
        .hint(packages::hint(item, host, &about, Some("set CC to one"))))
}

/// The machine that a triplet names, as compilers call it.
fn machine(triple: &str) -> &str {
    match triple.split('-').next().unwrap_or_default() {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        "ppc64le" => "powerpc64le",
        machine => machine,
    }
}

/// An error if a compiler is one for another machine than `--host` names: its
/// answers would be about that machine.
pub(super) fn require_machine(
    command: &[String],
    compiled_for: &str,
    triple: &str,
    host: &Host,
) -> Result<(), Error> {
    let wanted = machine(triple);
    if compiled_for == wanted || compiled_for == "unknown" {
        return Ok(());
    }
    let name = command.join(" ");
    let error = Error::new(
        Code::WrongCompiler,
        format!(
            "the C compiler `{name}` compiles for {compiled_for}, and `--host={triple}` is {wanted}"
        ),
    )
    .means("Its answers would be about another machine than the one that is configured for.");
    let cross = ["gcc", "cc", "clang"].map(|name| format!("{triple}-{name}"));
    let dirs = host.env.path_dirs();
    Err(match cross.into_iter().find(|name| find_program(name, &dirs).0.is_some()) {
        Some(cross) => error
            .hint(format!("Write `CC={cross}`, or leave CC out."))
            .remedy(Remedy::Set(format!("CC={cross}"))),
        None => {
            let about = About { triple: Some(triple), ..About::default() };
            error.hint(packages::hint(Item::CrossCompiler, host, &about, Some("set CC to one")))
        }
    })
}

/// Whether a `--host` names the kind of machine that we run on.
fn is_native(triple: &str) -> bool {
    machine(triple) == std::env::consts::ARCH
}

/// Which compiler a command most likely is, by the name of the program that
/// it leads to. A wrapper's name says nothing.
pub(super) fn kind_by_name(command: &[String], request: &Request, host: &Host) -> Option<Kind> {
    let [name] = command else { return None };
    let program = find_program(name, &host.env.path_dirs()).0?;
    let real = fs::canonical(&program).ok()?;
    let name = real.file_name()?;
    match request.host {
        Some(_) => None,
        None if name.contains("++") => None,
        None if name.contains("clang") => Some(Kind::Clang),
        None if name.contains("gcc") => Some(Kind::Gcc),
        None => None,
    }
}
