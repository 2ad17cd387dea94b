//! Tables that sources have to agree with.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use ucx_configure::{discover::source::CUDA_PLACES, env_vars::ENV_VARS, host::fs};

fn sources() -> Vec<(Utf8PathBuf, String)> {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    walkdir::WalkDir::new(&root)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok)
        .filter_map(|entry| Utf8PathBuf::from_path_buf(entry.into_path()).ok())
        .filter(|path| path.extension() == Some("rs") && !path.as_str().contains("tests"))
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap()))
        .collect()
}

/// What stands between quotes directly behind each occurrence of `start`.
fn quoted_behind<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(start)
        .filter_map(move |(at, _)| text[at + start.len()..].strip_prefix('"')?.split('"').next())
}

#[test]
fn every_variable_that_is_read_is_in_the_table() {
    let known: BTreeSet<&str> = ENV_VARS.iter().map(|row| row.name).collect();
    let mut read = BTreeSet::new();
    let mut strangers = Vec::new();
    for (path, text) in sources() {
        if path.ends_with("env_vars.rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let calls = ["env.get(", "get_os(", "Variable(", "VARIABLE: &str = "];
        for name in calls.iter().flat_map(|call| quoted_behind(code, call)) {
            read.insert(name.to_owned());
            if !known.contains(name) {
                strangers.push(format!("{path}: {name}"));
            }
        }
    }
    assert!(strangers.is_empty(), "not in `env_vars.rs`: {strangers:#?}");
    assert!(read.contains("CUDA_HOME") && read.contains("PATH"), "the search still finds reads");
}

/// The order of the search is data; the README repeats it word by word.
#[test]
fn the_readme_has_the_order_of_the_search() {
    let readme = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&readme).unwrap();
    let list: String = CUDA_PLACES
        .iter()
        .enumerate()
        .map(|(index, place)| format!("{}. {place}\n", index + 1))
        .collect();
    assert!(readme.contains(&list), "{list}");
}

#[test]
fn every_code_of_a_remark_is_in_the_table() {
    let known: BTreeSet<&str> = ucx_configure::remarks::REMARKS.iter().map(|row| row.0).collect();
    let mut used = BTreeSet::new();
    for (path, text) in sources() {
        if path.ends_with("remarks.rs") && !path.as_str().contains("request") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let quoted = code.split('"').skip(1).step_by(2).filter(|word| is_remark(word));
        used.extend(quoted.map(str::to_owned));
    }
    let used: BTreeSet<&str> = used.iter().map(String::as_str).collect();
    assert_eq!(used, known);
}

/// Whether a word is a code such as `W0101`.
fn is_remark(word: &str) -> bool {
    word.len() == 5
        && word.starts_with(['W', 'N'])
        && word[1..].bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn no_file_grows_too_long() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > 600)
        .map(|(path, text)| format!("{path}: {} lines", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "split these: {long:#?}");
}
