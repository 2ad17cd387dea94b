//! The entries: each toolkit with each gdrcopy, from the command line and from
//! a TOML file, and single ones from the file.

use std::collections::BTreeSet;

use camino::Utf8Path;
use serde::Deserialize;

use crate::{
    error::{Code, Error},
    model::{CudaVersion, GdrVersion},
};

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, which no other has.
    pub name: String,
    /// The toolkit as it was named.
    pub toolkit: String,
    /// The gdrcopy as it was named.
    pub gdrcopy: String,
    /// The command line of `check` that it stands for.
    pub arguments: Vec<String>,
}

impl Entry {
    /// A name for its directory: letters, digits and a few marks.
    pub fn directory(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._+-=".contains(c);
        let name: String = self.name.chars().map(|c| if plain(c) { c } else { '-' }).collect();
        format!("matrix-{}", name.trim_start_matches(['-', '.']))
    }
}

/// Toolkits and what goes with each of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lists {
    /// Toolkits.
    #[serde(default)]
    pub toolkits: Vec<String>,
    /// The gdrcopies that each is tried with.
    #[serde(default)]
    pub gdrcopy: Vec<String>,
    /// What has to hold.
    #[serde(default)]
    pub require: Vec<String>,
    /// More arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Entries of their own.
    #[serde(default, rename = "entry")]
    pub entries: Vec<Single>,
}

/// An entry that the file spells out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Single {
    name: Option<String>,
    toolkit: String,
    gdrcopy: Option<String>,
    #[serde(default)]
    require: Vec<String>,
    #[serde(default)]
    arguments: Vec<String>,
}

/// Reads the file; `path` is for messages.
///
/// # Errors
///
/// It is not what it should be.
pub fn read(path: &Utf8Path, text: &str) -> Result<Lists, Error> {
    toml::from_str(text).map_err(|error| {
        Error::new(Code::Usage, format!("`{path}` cannot be read as a matrix"))
            .said(error.to_string())
            .means("It may have `toolkits`, `gdrcopy`, `require` and `arguments`, which are lists, and tables `[[entry]]` with `name`, `toolkit`, `gdrcopy`, `require` and `arguments`.")
            .hint("README.md shows one.")
    })
}

/// The entries of the lists, each with the directory that relative ones in it
/// begin at.
///
/// # Errors
///
/// There is none, one has no name or arguments that are not its to give, or two
/// have the same name.
pub fn list(all: &[(&Lists, &Utf8Path)]) -> Result<Vec<Entry>, Error> {
    let entries: Vec<Entry> = all.iter().flat_map(|(lists, base)| of_lists(lists, base)).collect();
    if entries.is_empty() {
        return Err(Error::new(Code::Usage, "`matrix` has no toolkit to try")
            .hint("Name some, as in `--toolkit 11.8 --toolkit stub:12.5 --toolkit /usr/local/cuda`, or a file with `--config FILE`.")
            .hint("`ucx-configure toolkit list` shows the versions."));
    }
    for (lists, _) in all {
        refuse_unusable(lists)?;
    }
    let mut names = BTreeSet::new();
    let twice = entries.iter().find(|entry| !names.insert(entry.directory()));
    match twice {
        Some(entry) => Err(Error::new(Code::Usage, format!("two entries are called `{}`", entry.name))
            .means("An entry's name is what its answers are recorded under; punctuation does not tell two apart.")
            .hint("Give one of them another `name` in the file, or name it once.")),
        None => Ok(entries),
    }
}

/// Options that `arguments` may not have, with what says it instead: an entry
/// is a run of `check` on one toolkit, and these would be ignored or mean
/// another.
const NOT_IN_ARGUMENTS: &[(&str, &str)] = &[
    ("--with-cuda", "Name the toolkit with `toolkit`."),
    ("--without-cuda", "Name the toolkit with `toolkit`; `no` is none."),
    ("--with-gdrcopy", "Name it with `gdrcopy`."),
    ("--without-gdrcopy", "Write `gdrcopy = \"no\"`, or nothing."),
    ("--require", "Name it with `require`."),
    ("-B", "Name the place of all entries with `matrix --build -B DIR`."),
    ("--build-dir", "Name the place of all entries with `matrix --build -B DIR`."),
    ("--no-build", "Nothing is built without `matrix --build`."),
    ("--rebuild", "Nothing is built without `matrix --build`."),
    ("--no-cache", "No entry keeps answers."),
    ("--recheck", "Every entry is checked anew."),
    ("--format", "Choose it for all entries with `matrix --format FORMAT`."),
    ("--print", "`matrix --format json` has all values."),
    ("--offline", "Write `matrix --build --offline`."),
    ("-q", "Write `matrix -q`."),
    ("--quiet", "Write `matrix -q`."),
    ("--silent", "Write `matrix -q`."),
];

/// Refuses an empty name, and arguments that would be ignored or would make an
/// entry another one than its name says.
fn refuse_unusable(lists: &Lists) -> Result<(), Error> {
    if lists.entries.iter().any(|single| single.name.as_deref().is_some_and(is_blank)) {
        return Err(Error::new(Code::Usage, "an entry has an empty `name`")
            .means("An entry's name is what its answers are recorded under.")
            .hint("Give it a name, or leave `name` out: then it is the toolkit's."));
    }
    let singles = lists.entries.iter().flat_map(|single| &single.arguments);
    for argument in lists.arguments.iter().chain(singles) {
        let option = argument.split('=').next().unwrap_or_default();
        let is_it = |(name, _): &&(&str, &str)| {
            // `-Bdir` in one word as well.
            *name == option || *name == "-B" && argument.starts_with("-B")
        };
        if let Some((name, instead)) = NOT_IN_ARGUMENTS.iter().find(is_it) {
            let what = format!("`arguments` of a matrix cannot have `{name}`");
            return Err(Error::new(Code::Usage, what)
                .means(format!("`{argument}` would be ignored, or make it another entry."))
                .hint(*instead));
        }
    }
    Ok(())
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn of_lists(lists: &Lists, base: &Utf8Path) -> Vec<Entry> {
    let no = ["no".to_owned()];
    let gdrcopies = if lists.gdrcopy.is_empty() { &no[..] } else { &lists.gdrcopy };
    let mut entries = Vec::new();
    let common = Common { lists, base };
    for toolkit in &lists.toolkits {
        for gdrcopy in gdrcopies {
            entries.push(common.entry(None, toolkit, gdrcopy, &[], &[]));
        }
    }
    for single in &lists.entries {
        let gdrcopy = single.gdrcopy.as_deref().unwrap_or("no");
        let name = single.name.as_deref();
        let (require, arguments) = (&single.require, &single.arguments);
        entries.push(common.entry(name, &single.toolkit, gdrcopy, require, arguments));
    }
    entries
}

/// What all entries of the lists have in common.
struct Common<'a> {
    lists: &'a Lists,
    base: &'a Utf8Path,
}

impl Common<'_> {
    fn entry(
        &self,
        name: Option<&str>,
        toolkit: &str,
        gdrcopy: &str,
        require: &[String],
        arguments: &[String],
    ) -> Entry {
        let default_name = || match gdrcopy {
            "no" => toolkit.to_owned(),
            other => format!("{toolkit} gdrcopy={other}"),
        };
        let cuda = location(toolkit, "wheel", toolkit.parse::<CudaVersion>().is_ok(), self.base);
        let tree = location(gdrcopy, "stub", gdrcopy.parse::<GdrVersion>().is_ok(), self.base);
        let mut words = vec![
            "check".to_owned(),
            format!("--with-cuda={cuda}"),
            format!("--with-gdrcopy={tree}"),
        ];
        let required = self.lists.require.iter().chain(require);
        words.extend(required.map(|list| format!("--require={list}")));
        words.extend(self.lists.arguments.iter().chain(arguments).cloned());
        Entry {
            name: name.map_or_else(default_name, str::to_owned),
            toolkit: toolkit.to_owned(),
            gdrcopy: gdrcopy.to_owned(),
            arguments: words,
        }
    }
}

/// The value of `--with-cuda` or `--with-gdrcopy` that a name stands for: a
/// version is one of what we can make, and what is no word is a directory.
fn location(name: &str, made: &str, is_version: bool, base: &Utf8Path) -> String {
    let is_word = matches!(name, "yes" | "no" | "guess" | "");
    if is_word || name.starts_with("stub:") || name.starts_with("wheel:") || name.starts_with('~') {
        name.to_owned()
    } else if is_version {
        format!("{made}:{name}")
    } else {
        base.join(name).into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(text: &str) -> Lists {
        read(Utf8Path::new("m.toml"), text).unwrap()
    }

    #[test]
    fn each_toolkit_is_tried_with_each_gdrcopy() {
        let lists = lists(
            "toolkits = ['11.8', 'stub:12.5', 'tk']\ngdrcopy = ['no', '2.5']\nrequire = ['nvml']\n\
             [[entry]]\nname = 'clang'\ntoolkit = '/opt/cuda'\narguments = ['CC=clang']\nrequire = ['fabric']\n",
        );
        let entries = list(&[(&lists, Utf8Path::new("/base"))]).unwrap();
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "11.8",
                "11.8 gdrcopy=2.5",
                "stub:12.5",
                "stub:12.5 gdrcopy=2.5",
                "tk",
                "tk gdrcopy=2.5",
                "clang"
            ]
        );
        let words = |at: usize| entries[at].arguments.join(" ");
        assert_eq!(words(1), "check --with-cuda=wheel:11.8 --with-gdrcopy=stub:2.5 --require=nvml");
        assert_eq!(words(4), "check --with-cuda=/base/tk --with-gdrcopy=no --require=nvml");
        assert_eq!(
            words(6),
            "check --with-cuda=/opt/cuda --with-gdrcopy=no --require=nvml --require=fabric CC=clang"
        );
        assert_eq!(entries[3].directory(), "matrix-stub-12.5-gdrcopy=2.5");
    }

    #[test]
    fn the_sample_in_the_readme_is_one() {
        let readme = include_str!("../../README.md");
        let mut samples = readme.split("```toml\n").filter(|text| text.starts_with("toolkits"));
        let sample = samples.next().and_then(|text| text.split("```").next());
        let lists = lists(sample.unwrap());
        assert_eq!(list(&[(&lists, Utf8Path::new("/"))]).unwrap().len(), 5);
    }

    #[test]
    fn what_cannot_be_tried_is_told() {
        let none = list(&[(&Lists::default(), Utf8Path::new("/"))]).unwrap_err();
        assert!(none.what.contains("no toolkit"));
        let twice = lists("toolkits = ['stub:12.5']\n[[entry]]\ntoolkit = 'stub 12.5'\n");
        let error = list(&[(&twice, Utf8Path::new("/"))]).unwrap_err();
        assert!(error.what.contains("two entries"), "{error}");
        let cannot = |more: &str| {
            let lists = lists(&format!("[[entry]]\ntoolkit = 'stub:12.5'\n{more}"));
            list(&[(&lists, Utf8Path::new("/"))]).unwrap_err()
        };
        for name in ["", "  "] {
            assert!(cannot(&format!("name = '{name}'")).what.contains("empty `name`"));
        }
        for argument in ["-B", "-Bx", "--build-dir=x", "--with-cuda=/opt", "--no-build", "-q"] {
            let error = cannot(&format!("arguments = ['{argument}']"));
            assert!(error.code == Code::Usage && error.what.contains("`arguments`"), "{error}");
            assert!(error.means[0].contains(argument) && !error.hints.is_empty(), "{error}");
        }
        for text in ["toolkit = ['11.8']", "[[entry]]\nname = 'x'", "toolkits = '11.8'", "x"] {
            let error = read(Utf8Path::new("m.toml"), text).unwrap_err();
            assert_eq!(error.code, Code::Usage, "{text}");
            assert!(error.said.is_some() && error.what.contains("`m.toml`"), "{text}");
        }
    }
}
