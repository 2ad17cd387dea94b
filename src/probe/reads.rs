//! What compiler runs read, and where they looked without success.
//!
//! An answer may be kept for later as long as all of that is unchanged. Three
//! things say it: dependency files (`-MD`), the linker's trace, and the `-v`
//! of one link, which names the programs and the directories that are
//! searched. Where one of them is missing, nothing is kept.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
    time::SystemTime,
};

use camino::{Utf8Path, Utf8PathBuf};

use super::diagnostics::tidy;
use crate::{
    discover::library::traced,
    host::{fs, process::find_program},
};

/// Directories that linkers search by themselves, behind those that the
/// compiler driver names.
const LINKER_DIRS: [&str; 6] =
    ["/usr/local/lib", "/usr/local/lib64", "/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// Programs that a driver starts by their bare names.
const TOOLS: [&str; 3] = ["as", "ld", "collect2"];

/// Everything that was read so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// Each file, and when the first run that read it began.
    pub files: BTreeMap<Utf8PathBuf, Option<SystemTime>>,
    /// The directories for headers, in the order of the search.
    pub header_dirs: Vec<Utf8PathBuf>,
    /// The directories for libraries.
    pub library_dirs: Vec<Utf8PathBuf>,
    /// Names that were looked for in vain in every directory for headers.
    pub headers: BTreeSet<String>,
    /// Libraries, as `-l` names them.
    pub libraries: BTreeSet<String>,
    /// Programs that were looked for, and the directories for them.
    pub programs: BTreeSet<String>,
    /// Where programs are looked for before PATH.
    pub program_dirs: Vec<Utf8PathBuf>,
    /// Why nothing can be kept.
    pub trouble: Option<String>,
}

/// A place where nothing was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The files that were read.
    pub files: BTreeMap<Utf8PathBuf, Option<SystemTime>>,
    /// What was not there.
    pub absent: BTreeSet<Utf8PathBuf>,
}

impl Reads {
    /// Something was read that cannot be told.
    pub fn give_up(&mut self, why: &str) {
        self.trouble.get_or_insert_with(|| why.to_owned());
    }

    /// Adds a file.
    pub fn file(&mut self, path: Utf8PathBuf, since: SystemTime) {
        let kept = self.files.entry(path).or_insert(Some(since));
        *kept = (*kept).min(Some(since));
    }

    /// Adds the files of a dependency file, those below `own` left out.
    pub fn dependencies(&mut self, text: &str, cwd: &Utf8Path, own: &str, since: SystemTime) {
        for path in prerequisites(text) {
            if !path.starts_with(own) {
                self.file(cwd.join(path), since);
            }
        }
    }

    /// Adds what a run says of a header that it did not find.
    pub fn missing_header(&mut self, stderr: &str) -> bool {
        let name = header_not_found(stderr);
        if let Some(name) = name {
            self.headers.insert(name.to_owned());
        }
        name.is_some()
    }

    /// Adds the files that a linker took, and the libraries that it was told.
    pub fn link(&mut self, trace: &str, words: &[String], cwd: &Utf8Path, since: SystemTime) {
        // The driver's own intermediate files are no input.
        let trace = tidy(trace, "");
        for path in traced(&trace).into_iter().chain(objects(&trace)) {
            self.file(cwd.join(path), since);
        }
        let names = words.iter().filter_map(|word| word.strip_prefix("-l"));
        self.libraries.extend(names.map(str::to_owned));
        for linker in words.iter().filter_map(|word| word.strip_prefix("-fuse-ld=")) {
            self.programs.extend([linker.to_owned(), format!("ld.{linker}")]);
        }
    }

    /// Reads the `-v` of a link: the programs and the directories.
    pub fn verbose(&mut self, text: &str, cwd: &Utf8Path, since: SystemTime) {
        let mut in_list = false;
        for line in text.lines() {
            if line.starts_with("#include ") {
                in_list = true;
            } else if line == "End of search list." {
                in_list = false;
            } else if in_list {
                let dir = line.trim().trim_end_matches(" (framework directory)");
                push(&mut self.header_dirs, cwd.join(dir));
            } else if let Some(rest) = line.strip_prefix("ignoring nonexistent directory \"") {
                // If it comes into being, it is searched.
                push(&mut self.header_dirs, cwd.join(rest.trim_end_matches('"')));
            } else if let Some(dirs) = line.strip_prefix("COMPILER_PATH=") {
                for dir in dirs.split(':').filter(|dir| !dir.is_empty()) {
                    push(&mut self.program_dirs, cwd.join(dir));
                }
            } else if line.starts_with([' ', '"']) {
                self.command(line, cwd, since);
            }
        }
    }

    /// One command that a driver started.
    fn command(&mut self, line: &str, cwd: &Utf8Path, since: SystemTime) {
        let Some(words) = shlex::split(line) else { return };
        let Some(program) = words.first() else { return };
        let name = program.rsplit('/').next().unwrap_or_default();
        if program.contains('/') {
            let path = cwd.join(program);
            if let Some(dir) = path.parent().filter(|_| name == "cc1") {
                // nvcc starts the compiler for C++ beside it.
                self.programs.insert("cc1plus".to_owned());
                push(&mut self.program_dirs, dir.to_owned());
            }
            self.file(path, since);
        }
        self.programs.extend(TOOLS.map(str::to_owned));
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let dir = match word.strip_prefix("-L") {
                Some("") => rest.next().map(String::as_str),
                dir => dir,
            };
            if let Some(dir) = dir {
                push(&mut self.library_dirs, cwd.join(dir));
            }
            if let Some(name) = word.strip_prefix("-l").filter(|_| name != "cc1") {
                self.libraries.insert(name.to_owned());
            }
        }
    }

    /// Adds what nvcc consists of: the programs beside it, and their data. The
    /// host compiler is one of its own.
    pub fn nvcc(&mut self, command: &[String], path_dirs: &[Utf8PathBuf], since: SystemTime) {
        for word in command {
            self.programs.extend((!word.contains('/')).then(|| word.clone()));
            let Some(program) = find_program(word, path_dirs).0 else { continue };
            let Ok(real) = fs::canonical(&program) else { continue };
            let Some(dir) = real.parent() else { continue };
            for dir in [dir.to_owned(), dir.join("../nvvm/bin"), dir.join("../nvvm/libdevice")] {
                for name in fs::names(&dir) {
                    self.file(dir.join(name), since);
                }
            }
            self.file(program, since);
        }
        self.programs.extend(["gcc", "g++", "cc1plus"].map(str::to_owned));
    }

    /// The files, and the places where others would have been taken instead.
    pub fn places(&self, path_dirs: &[Utf8PathBuf]) -> Places {
        let mut places = Places { files: self.files.clone(), absent: BTreeSet::new() };
        self.headers_in_vain(&mut places);
        let mut dirs = self.library_dirs.clone();
        for dir in LINKER_DIRS {
            push(&mut dirs, dir.into());
        }
        for name in &self.libraries {
            // `-l:NAME` is a file by that name.
            let names = match name.strip_prefix(':') {
                Some(file) => vec![file.to_owned()],
                None => vec![format!("lib{name}.so"), format!("lib{name}.a")],
            };
            let all = dirs.iter().flat_map(|dir| names.iter().map(|name| dir.join(name)));
            until_there(all, &mut places.absent);
        }
        let dirs: Vec<Utf8PathBuf> = self.program_dirs.iter().chain(path_dirs).cloned().collect();
        for name in &self.programs {
            let found = until_there(dirs.iter().map(|dir| dir.join(name)), &mut places.absent);
            if let Some(path) = found {
                places.files.entry(path).or_insert(None);
            }
        }
        places.absent = places.absent.iter().map(|path| topmost(path)).collect();
        places
    }

    /// Every name that a file that was read could include: it is looked for in
    /// the file's own directory and along the search.
    fn headers_in_vain(&self, places: &mut Places) {
        let mut names = self.headers.clone();
        let mut beside = BTreeSet::new();
        for path in self.files.keys().filter(|path| self.is_header(path)) {
            let Ok(bytes) = fs::read(path) else { continue };
            for line in directives(&bytes) {
                for (name, is_quoted) in included(&line) {
                    if let Some(dir) = path.parent().filter(|_| is_quoted) {
                        beside.insert(format!("{dir}/{name}"));
                    }
                    names.insert(name.to_owned());
                }
            }
        }
        let beside = beside.into_iter().map(Utf8PathBuf::from);
        places.absent.extend(beside.filter(|path| !path.exists()));
        let read: HashSet<&str> = self.files.keys().map(|path| path.as_str()).collect();
        let mut gaps = HashSet::new();
        for name in &names {
            // `#include_next` goes on behind the first, so all gaps count up
            // to the last that was read.
            let all: Vec<Utf8PathBuf> = self.header_dirs.iter().map(|dir| dir.join(name)).collect();
            let last = all.iter().rposition(|path| read.contains(path.as_str()));
            let end = last.unwrap_or(all.len());
            let absent = all.into_iter().take(end).filter(|path| !path.exists());
            gaps.extend(absent.map(|path| topmost(&path).into_string()));
        }
        places.absent.extend(gaps.into_iter().map(Utf8PathBuf::from));
    }

    fn is_header(&self, path: &Utf8Path) -> bool {
        let is_other = |end: &str| path.as_str().ends_with(end);
        !path.as_str().contains(".so")
            && !is_other(".a")
            && !is_other(".o")
            && !self.program_dirs.iter().any(|dir| path.parent() == Some(dir))
            && path.extension().is_some_and(|end| ["h", "hpp", "inl", "cuh"].contains(&end))
            || self.header_dirs.iter().any(|dir| path.starts_with(dir))
    }
}

/// The header that a compiler says it did not find.
pub fn header_not_found(stderr: &str) -> Option<&str> {
    stderr.lines().find_map(|line| {
        let rest = line.split_once("fatal error: ")?.1;
        match rest.strip_prefix('\'') {
            Some(rest) => rest.split_once("' file not found").map(|(name, _)| name),
            None => rest.split_once(": No such file").map(|(name, _)| name),
        }
    })
}

fn push(dirs: &mut Vec<Utf8PathBuf>, dir: Utf8PathBuf) {
    if !dirs.contains(&dir) {
        dirs.push(dir);
    }
}

/// Adds places until one is there, which is returned.
fn until_there(
    places: impl Iterator<Item = Utf8PathBuf>,
    absent: &mut BTreeSet<Utf8PathBuf>,
) -> Option<Utf8PathBuf> {
    for place in places {
        if place.exists() {
            return Some(place);
        }
        absent.insert(place);
    }
    None
}

/// The first part of a path that is not there: nothing below it can be.
fn topmost(path: &Utf8Path) -> Utf8PathBuf {
    let gone = |path: &&Utf8Path| !path.exists();
    path.ancestors().take_while(gone).last().unwrap_or(path).to_owned()
}

/// Object files in a trace.
fn objects(trace: &str) -> impl Iterator<Item = Utf8PathBuf> {
    let lines = trace.lines().map(str::trim);
    lines.filter(|line| line.starts_with('/') && line.ends_with(".o")).map(Utf8PathBuf::from)
}

/// The lines of a text that a preprocessor acts on.
fn directives(bytes: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii_start();
        line.starts_with(b"#").then(|| String::from_utf8_lossy(line))
    })
}

/// What a directive could include: each name, and whether it is in quotes.
fn included(line: &str) -> Vec<(&str, bool)> {
    let rest = line.trim_start_matches('#').trim_start();
    if let Some(rest) = rest.strip_prefix("include") {
        let rest = rest.strip_prefix("_next").unwrap_or(rest);
        return named(rest.trim_start()).into_iter().collect();
    }
    if !rest.starts_with("if") && !rest.starts_with("elif") {
        return Vec::new();
    }
    let asked = rest.split("__has_include").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix("_next").unwrap_or(rest);
        named(rest.trim_start().strip_prefix('(')?.trim_start())
    });
    asked.collect()
}

/// `<name>` or `"name"` at the beginning of a text.
fn named(text: &str) -> Option<(&str, bool)> {
    match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>').map(|(name, _)| (name, false)),
        None => text.strip_prefix('"')?.split_once('"').map(|(name, _)| (name, true)),
    }
}

/// The paths behind the colon of a dependency file.
fn prerequisites(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('\n') | None => {
                    if !word.is_empty() {
                        words.push(std::mem::take(&mut word));
                    }
                }
                Some(next @ (' ' | '#' | '\\')) => word.push(next),
                Some(next) => word.extend(['\\', next]),
            },
            '$' if letters.peek() == Some(&'$') => {
                letters.next();
                word.push('$');
            }
            letter if letter.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            letter => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words.into_iter().skip_while(|word| !word.ends_with(':')).skip(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_files_are_read() {
        let text = "probe.o: /s/a.c /usr/include/stdio.h \\\n /x/sp\\ ace/$$a\\#b.h\n";
        assert_eq!(prerequisites(text), ["/s/a.c", "/usr/include/stdio.h", "/x/sp ace/$a#b.h"]);
        let mut reads = Reads::default();
        reads.dependencies(text, Utf8Path::new("/w"), "/s/", SystemTime::now());
        assert_eq!(reads.files.len(), 2);
    }

    #[test]
    fn what_could_be_included_is_found() {
        let text = "#include <a.h>\n # include_next \"b.h\"\n#if __has_include(<c.h>) || __has_include ( \"d.h\" )\nint include;\n";
        let lines: Vec<_> = directives(text.as_bytes()).collect();
        let found: Vec<_> = lines.iter().flat_map(|line| included(line)).collect();
        assert_eq!(found, [("a.h", false), ("b.h", true), ("c.h", false), ("d.h", true)]);
    }

    #[test]
    fn missing_headers_are_named() {
        for said in [
            "a.c:2:10: fatal error: no/such.h: No such file or directory\n",
            "a.c:2:10: fatal error: 'no/such.h' file not found\n",
        ] {
            let mut reads = Reads::default();
            assert!(reads.missing_header(said));
            assert!(reads.headers.contains("no/such.h"));
        }
        assert!(!Reads::default().missing_header("a.c:1:1: error: other\n"));
    }

    #[test]
    fn programs_and_directories_are_named_by_the_driver() {
        let text = "COLLECT_GCC=gcc\n /usr/lib/gcc/12/cc1 -quiet -v a.c\nignoring nonexistent directory \"/usr/local/include/x\"\n#include \"...\" search starts here:\n#include <...> search starts here:\n /c/include\n rel\nEnd of search list.\n as -v --64\nCOMPILER_PATH=/usr/lib/gcc/12/:/x/\n /usr/lib/gcc/12/collect2 -o probe -L/c/lib64 -L /d -lcuda -lgcc\n";
        let mut reads = Reads::default();
        reads.verbose(text, Utf8Path::new("/w"), SystemTime::now());
        assert_eq!(reads.header_dirs, ["/usr/local/include/x", "/c/include", "/w/rel"]);
        assert_eq!(reads.library_dirs, ["/c/lib64", "/d"]);
        assert!(reads.libraries.contains("cuda") && reads.programs.contains("as"));
        assert!(reads.files.contains_key(Utf8Path::new("/usr/lib/gcc/12/cc1")));
        assert_eq!(reads.program_dirs, ["/usr/lib/gcc/12", "/x"]);
        let mut reads = Reads::default();
        reads.verbose(
            " \"/usr/lib/llvm/bin/clang\" -cc1 -x c\n \"/usr/bin/ld\" \"-L/c\" -lc\n",
            Utf8Path::new("/w"),
            SystemTime::now(),
        );
        assert_eq!((reads.files.len(), reads.library_dirs.len()), (2, 1));
    }
}
