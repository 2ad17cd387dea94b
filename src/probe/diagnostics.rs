//! What a compiler or linker said, cut down to the line that matters.
//!
//! Pure functions over texts; the samples in the tests are what gcc 12,
//! clang 14, GNU ld 2.40, gold, lld 14, mold and nvcc print under LC_ALL=C.

/// The first line that says what went wrong; none when there is nothing.
///
/// Lines that only give context ("in function", "In file included from"),
/// warnings, and the driver's summary ("ld returned 1 exit status") are passed
/// over as long as there is something better.
pub fn first_error_line(text: &str) -> Option<String> {
    let lines: Vec<String> = text
        .lines()
        .map(|line| without_colour(line).trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    let pick = |wanted: fn(&str) -> bool| lines.iter().find(|line| wanted(line)).cloned();
    pick(|line| is_error(line) && !is_summary(line))
        .or_else(|| pick(|line| !is_context(line) && !is_summary(line)))
        .or_else(|| pick(|_| true))
}

/// Whether a line names a fault.
fn is_error(line: &str) -> bool {
    const MARKS: [&str; 10] = [
        "error:",
        "fatal:",
        "nvcc fatal",
        "undefined reference",
        "cannot find",
        "not recognized",
        "could not read symbols",
        "file in wrong format",
        "error adding symbols",
        "internal compiler error",
    ];
    !is_context(line) && MARKS.iter().any(|mark| line.contains(mark))
}

/// Whether a line only leads to another one.
fn is_context(line: &str) -> bool {
    line.contains("warning:")
        || line.contains("note:")
        || line.contains("skipping incompatible")
        || line.starts_with("In file included from")
        || (line.contains("in function `") || line.contains("In function '")) && line.ends_with(':')
}

/// Whether a line is a driver's remark that something below it failed.
fn is_summary(line: &str) -> bool {
    line.starts_with("collect2:")
        || line.contains("linker command failed")
        || line.contains("compilation terminated")
}

/// The line without terminal escapes, for compilers told to colour always.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(letter) = rest.next() {
        if letter == '\u{1b}' {
            // CSI sequences end in a letter; `[K` and `[01;31m` are gcc's.
            if rest.next() == Some('[') {
                for inner in rest.by_ref() {
                    if inner.is_ascii_alphabetic() {
                        break;
                    }
                }
            }
        } else {
            plain.push(letter);
        }
    }
    plain
}

/// The text without what changes from run to run: the scratch directory, and
/// the random names that compiler drivers give their intermediate files.
pub(crate) fn tidy(text: &str, scratch: &str) -> String {
    let text = text.replace(scratch, "");
    let mut tidied = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((start, length)) = intermediate(rest) {
        tidied.push_str(&rest[..start]);
        tidied.push_str("probe.o");
        rest = &rest[start + length..];
    }
    tidied.push_str(rest);
    without_nvcc_names(&tidied)
}

/// The text with nvcc's intermediate files by the names of their sources:
/// `/tmp/tmpxft_00005f1c_00000000-6_probe.c` is `probe.c`.
fn without_nvcc_names(text: &str) -> String {
    const MARK: &str = "tmpxft_";
    let mut tidied = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let before = &rest[..at];
        let dir = before.rfind(|letter: char| letter.is_whitespace() || "`'\"(".contains(letter));
        let start = dir.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        // Two numbers and a count, each with an underscore behind it.
        let behind = &rest[at + MARK.len()..];
        let name = behind.splitn(3, '_').nth(2).unwrap_or(behind);
        let is_path = before[start..].is_empty() || before[start..].starts_with('/');
        tidied.push_str(if is_path { &before[..start] } else { before });
        rest = name;
    }
    tidied.push_str(rest);
    tidied
}

/// Where an intermediate file's path begins, and how long it is: gcc's
/// `/tmp/ccXXXXXX.o`, clang's `/tmp/NAME-xxxxxx.o`.
fn intermediate(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(found) = text[from..].find(".o") {
        let end = from + found + 2;
        let start = text[..end]
            .rfind(|letter: char| letter.is_whitespace() || "`'\"(".contains(letter))
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let path = &text[start..end - 2];
        let whole = !text[end..].starts_with(|letter: char| letter.is_ascii_alphanumeric());
        if whole && path.starts_with('/') && is_random(path.rsplit('/').next().unwrap_or("")) {
            return Some((start, end - start));
        }
        from = end;
    }
    None
}

/// Whether a stem looks like one that a driver made up.
fn is_random(stem: &str) -> bool {
    let six = |tail: &str| tail.len() == 6 && tail.chars().all(|c| c.is_ascii_alphanumeric());
    stem.strip_prefix("cc").is_some_and(six)
        || stem.rsplit_once('-').is_some_and(|(_, tail)| six(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intermediate_files_of_nvcc_are_named_by_their_sources() {
        let text = "/tmp/tmpxft_00005f1c_00000000-6_nvcc-runtime.cudafe1.stub.c:13: error: x\nin (/s/tmpxft_0001_00-1_cuda.ii)";
        assert_eq!(tidy(text, "/none/"), "nvcc-runtime.cudafe1.stub.c:13: error: x\nin (cuda.ii)");
        assert_eq!(tidy("no such name", "/none/"), "no such name");
    }

    /// What the tool said, and the line that matters.
    const SAMPLES: &[(&str, &str)] = &[
        // gcc
        (
            "a.c:1:10: fatal error: cuda.h: No such file or directory\n    1 | #include <cuda.h>\n      |          ^~~~~~~~\ncompilation terminated.\n",
            "a.c:1:10: fatal error: cuda.h: No such file or directory",
        ),
        (
            "In file included from a.c:1:\na.c: In function 'main':\na.c:2:9: warning: unused variable 'x' [-Wunused-variable]\na.c:3:5: error: 'CU_X' undeclared (first use in this function)\n",
            "a.c:3:5: error: 'CU_X' undeclared (first use in this function)",
        ),
        // clang
        (
            "a.c:1:10: fatal error: 'cuda.h' file not found\n#include <cuda.h>\n         ^~~~~~~~\n1 error generated.\n",
            "a.c:1:10: fatal error: 'cuda.h' file not found",
        ),
        // GNU ld
        (
            "/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit status\n",
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
        ),
        (
            "/usr/bin/ld: probe.o: in function `main':\na.c:(.text+0x5): undefined reference to `nvmlInit'\ncollect2: error: ld returned 1 exit status\n",
            "a.c:(.text+0x5): undefined reference to `nvmlInit'",
        ),
        (
            "/usr/bin/ld: skipping incompatible /x/libcuda.so when searching for -lcuda\n/usr/bin/ld: cannot find -lcuda: No such file or directory\n",
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
        ),
        (
            "/x/libcuda.so: file not recognized: file format not recognized\ncollect2: error: ld returned 1 exit status\n",
            "/x/libcuda.so: file not recognized: file format not recognized",
        ),
        // gold
        (
            "/usr/bin/ld.gold: error: cannot find -lcuda\ncollect2: error: ld returned 1 exit status\n",
            "/usr/bin/ld.gold: error: cannot find -lcuda",
        ),
        (
            "a.c:function main: error: undefined reference to 'nvmlInit'\n",
            "a.c:function main: error: undefined reference to 'nvmlInit'",
        ),
        // lld
        (
            "ld.lld: error: unable to find library -lcuda\ncollect2: error: ld returned 1 exit status\n",
            "ld.lld: error: unable to find library -lcuda",
        ),
        (
            "ld.lld: error: undefined symbol: nvmlInit\n>>> referenced by a.c\n>>>               probe.o:(main)\nclang: error: linker command failed with exit code 1 (use -v to see invocation)\n",
            "ld.lld: error: undefined symbol: nvmlInit",
        ),
        // mold
        ("mold: fatal: library not found: cuda\n", "mold: fatal: library not found: cuda"),
        // nvcc
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_30'\n",
            "nvcc fatal   : Unsupported gpu architecture 'compute_30'",
        ),
        // Only a summary, only something else.
        (
            "collect2: error: ld returned 1 exit status\n",
            "collect2: error: ld returned 1 exit status",
        ),
        ("\n  licence server is down\n", "licence server is down"),
        // Coloured.
        (
            "\u{1b}[01m\u{1b}[Ka.c:1:1:\u{1b}[m\u{1b}[K \u{1b}[01;31m\u{1b}[Kerror: \u{1b}[m\u{1b}[Kno\n",
            "a.c:1:1: error: no",
        ),
    ];

    #[test]
    fn finds_the_line_that_matters() {
        for (text, line) in SAMPLES {
            assert_eq!(first_error_line(text).as_deref(), Some(*line));
        }
        assert_eq!(first_error_line(" \n\n"), None);
    }

    #[test]
    fn random_names_are_tidied() {
        let text = "/s/1/a.c:(.text+0x5): undefined";
        assert_eq!(tidy(text, "/s/1/"), "a.c:(.text+0x5): undefined");
        assert_eq!(tidy("ld: /tmp/ccAb12Cd.o: in", "/s/"), "ld: probe.o: in");
        assert_eq!(tidy("ld: /tmp/a-0f9d3c.o: in", "/s/"), "ld: probe.o: in");
        assert_eq!(tidy("ld: /x/libfoo.other: in", "/s/"), "ld: /x/libfoo.other: in");
        assert_eq!(tidy("ld: /x/crt1.o: in", "/s/"), "ld: /x/crt1.o: in");
    }
}
