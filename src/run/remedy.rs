//! The command line that was typed, with what an error says to change: a
//! whole command, ready to be pasted.

use std::ffi::OsString;

use crate::error::Remedy;

/// Options with a short form that takes its value as the next argument.
const SHORT: &[(&str, &str)] = &[("--build-dir", "-B")];

/// What takes none of configure's options: the remedy is not for that command
/// line.
const OTHERS: &[&str] = &[
    "--recheck",
    "matrix",
    "toolkit",
    "demo",
    "emit",
    "verify",
    "install",
    "uninstall",
    "generate",
];

/// The command; none where there is nothing to change, or the arguments are no
/// text.
pub(super) fn command(arguments: &[OsString], remedies: &[Remedy]) -> Option<String> {
    if remedies.is_empty() {
        return None;
    }
    let is_other = |word: &OsString| OTHERS.iter().any(|other| word == other);
    if arguments.iter().any(is_other) {
        return None;
    }
    let mut words: Vec<String> =
        arguments.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>()?;
    for remedy in remedies {
        words = match remedy {
            Remedy::Set(argument) => set(words, argument),
            Remedy::Drop(argument) => without(words, argument).0,
        };
    }
    let mut command = "ucx-configure".to_owned();
    for word in &words {
        command.push(' ');
        command += &quoted(word)?;
    }
    Some(command)
}

/// A word as a shell needs it; the name before an equals sign needs no quotes.
pub(super) fn quoted(word: &str) -> Option<String> {
    let is_plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    match word.split_once('=').filter(|(name, _)| is_plain(name)) {
        Some((name, "")) => Some(format!("{name}=")),
        Some((name, value)) => Some(format!("{name}={}", shlex::try_quote(value).ok()?)),
        None => Some(shlex::try_quote(word).ok()?.into_owned()),
    }
}

/// With an argument in the place of the first that it replaces.
fn set(words: Vec<String>, argument: &str) -> Vec<String> {
    let (mut words, at) = without(words, name(argument));
    let at = at.unwrap_or(words.len());
    words.insert(at, argument.to_owned());
    words
}

/// Without an argument or an option, and where the first of them was.
fn without(words: Vec<String>, what: &str) -> (Vec<String>, Option<usize>) {
    let short = SHORT.iter().find(|(long, _)| *long == what).map(|(_, short)| *short);
    let mut kept = Vec::new();
    let mut at = None;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let is_short = short.is_some_and(|short| word.starts_with(short));
        let is_it = word == what || name(&word) == what || positive(&word) == positive(what);
        if !is_short && !is_it {
            kept.push(word);
            continue;
        }
        at = at.or(Some(kept.len()));
        let takes_next = short.is_some() && (Some(word.as_str()) == short || word == what);
        if takes_next {
            words.next();
        }
    }
    (kept, at)
}

/// What an argument names: the part before the equals sign.
fn name(argument: &str) -> &str {
    argument.split('=').next().unwrap_or(argument)
}

/// The option that an argument sets or denies; other arguments are themselves.
fn positive(argument: &str) -> String {
    if !argument.starts_with("--") || argument.contains('=') {
        return argument.to_owned();
    }
    argument.replacen("--without-", "--with-", 1).replacen("--disable-", "--enable-", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(typed: &str, remedies: &[Remedy]) -> Option<String> {
        let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        command(&words, remedies)
    }

    #[test]
    fn an_option_takes_the_place_of_its_like() {
        let set = |text: &str| Remedy::Set(text.to_owned());
        let drop = |text: &str| Remedy::Drop(text.to_owned());
        for (typed, remedies, expected) in [
            (
                "check --with-cuda=/x --no-build",
                vec![set("--with-cuda=/a b")],
                "check --with-cuda='/a b' --no-build",
            ),
            ("-q --without-cuda", vec![set("--with-cuda=/x")], "-q --with-cuda=/x"),
            ("--with-cuda /x", vec![set("--with-cuda=/x"), drop("/x")], "--with-cuda=/x"),
            (
                "--with-cudda=/x -q",
                vec![drop("--with-cudda=/x"), set("--with-cuda=/x")],
                "-q --with-cuda=/x",
            ),
            ("-q", vec![set("CC=gcc")], "-q CC=gcc"),
            ("CC=g++ -q", vec![set("CC=gcc")], "CC=gcc -q"),
            ("-B x -q", vec![set("--build-dir=y")], "--build-dir=y -q"),
            ("-Bx -q", vec![set("--build-dir=y")], "--build-dir=y -q"),
            ("--build-dir x", vec![set("--build-dir=y")], "--build-dir=y"),
            ("--without-cuda --with-gdrcopy", vec![drop("--with-gdrcopy")], "--without-cuda"),
        ] {
            let expected = format!("ucx-configure {expected}");
            assert_eq!(changed(typed, &remedies), Some(expected), "{typed}");
        }
        assert_eq!(changed("-q", &[]), None);
        assert_eq!(changed("-B b --recheck", &[set("--with-cuda=/x")]), None);
        assert_eq!(changed("matrix --toolkit /y", &[set("--with-cuda=/x")]), None);
    }
}
