//! Quoting for sh, make and C: what goes in comes out, whatever it is.

use crate::{
    error::{Code, Error},
    model::{SubstValue, Substitution},
};

/// How wide comments are set.
const WIDTH: usize = 78;

/// Quotes a word for a POSIX shell. Plain words stay as they are, so that a
/// value without strange characters can be used without `eval` as well.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:+@%".contains(c);
    // A leading word with `=` would be an assignment; an option is not.
    let option = word.starts_with('-');
    if !word.is_empty() && word.chars().all(|c| plain(c) || (c == '=' && option)) {
        return word.to_owned();
    }
    shell_text(word)
}

/// Quotes a text for a POSIX shell, in single quotes whatever it is.
pub(super) fn shell_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The text that a substitution's variable is to hold: words quoted for the
/// shell that will read them, a text as it is.
pub(super) fn value_text(substitution: &Substitution) -> Result<String, Error> {
    let text = match &substitution.value {
        SubstValue::Words(words) => {
            words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
        }
        SubstValue::Text(text) => text.clone(),
    };
    one_line_or_error(&substitution.name, &text)?;
    Ok(text)
}

/// Refuses what a line of a makefile or a header cannot hold.
pub(super) fn one_line_or_error(name: &str, text: &str) -> Result<(), Error> {
    if !text.contains(['\n', '\r', '\0']) {
        return Ok(());
    }
    Err(Error::new(Code::UnusablePath, format!("the value of `{name}` cannot be written"))
        .said(text.escape_debug().to_string())
        .means("A makefile, a script and a header hold one value a line; this value has a line break or a NUL in it.")
        .hint("Use a directory without line breaks in its name; a symbolic link will do."))
}

/// The right-hand side of an assignment in a makefile. make takes blanks off
/// the front of a value, reads `$` and `#`, and joins a line that ends in a
/// backslash with the next; `empty` names a variable that holds nothing and
/// keeps the ends of the value from make's eyes.
pub(super) fn make_value(text: &str, empty: &str) -> String {
    let blank = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let mut out = String::new();
    if text.starts_with(blank) {
        out.push_str(empty);
    }
    let mut backslashes = 0;
    for c in text.chars() {
        match c {
            '$' => out.push_str("$$"),
            // In front of a `#`, and only there, make halves backslashes.
            '#' => {
                out.extend(std::iter::repeat_n('\\', backslashes + 1));
                out.push('#');
            }
            c => out.push(c),
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
    }
    if text.ends_with(|c: char| blank(c) || c == '\\') {
        out.push_str(empty);
    }
    out
}

/// A comment of a makefile or a script: one line.
pub(super) fn hash_comment(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // A backslash at the end would take the next line into the comment.
    format!("# {}", line.trim_end_matches(['\\', ' ']))
}

/// A comment of C, set in lines, whatever the text holds.
pub(super) fn c_comment(text: &str) -> String {
    let safe = text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /");
    let mut out = String::from("/*");
    let mut column = out.len();
    for word in safe.split_whitespace() {
        if column + 1 + word.len() + 3 > WIDTH {
            out.push_str("\n  ");
            column = 2;
        }
        out.push(' ');
        out.push_str(word);
        column += 1 + word.len();
    }
    out.push_str(" */");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_plain() {
        for plain in ["-lcuda", "-Wl,-z,defs", "-DX=1", "/usr/local/cuda-12.8/bin/nvcc", "a+b:c@d%"]
        {
            assert_eq!(shell_word(plain), plain);
        }
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("A=b"), "'A=b'");
        assert_eq!(shell_word("-I~/it's"), r"'-I~/it'\''s'");
    }

    #[test]
    fn comments_cannot_be_left() {
        assert_eq!(c_comment("a */ b /* c"), "/* a * / b / * c */");
        assert_eq!(c_comment("*/*"), "/* * / * */");
        assert_eq!(hash_comment("a\nb \\"), "# a b");
        let long = c_comment(&"word ".repeat(40));
        assert!(long.lines().count() > 2 && long.lines().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn make_sees_no_ends() {
        assert_eq!(make_value(" -lcuda", "$(E)"), "$(E) -lcuda");
        assert_eq!(make_value("a$b#c\\#d", "$(E)"), "a$$b\\#c\\\\\\#d");
        assert_eq!(make_value("x\\", "$(E)"), "x\\$(E)");
        assert_eq!(make_value("", "$(E)"), "");
    }
}
