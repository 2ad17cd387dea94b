//! Makes the names of scratch directories the same in every run.

/// What our scratch directories are called, before six letters or digits.
const PREFIX: &str = "ucx-configure-";

/// How many letters or digits follow.
const RANDOM: usize = 6;

/// The text with `ucx-configure-aB3dE6/12/` made `ucx-configure-XXXXXX/N/`: a
/// scratch directory, and the number of the trial in it, which depends on the
/// order in which trials that run at once begin. A directory of the user's
/// with such a name has no number in it, and stays.
pub(super) fn without_scratch(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(PREFIX) {
        let (before, after) = rest.split_at(start + PREFIX.len());
        out.push_str(before);
        rest = match random_part(after) {
            Some(end) => {
                out.push_str("XXXXXX/N/");
                &after[end..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

/// Where the random part ends: six letters or digits, `/`, a number, `/`.
fn random_part(text: &str) -> Option<usize> {
    let random = text.get(..RANDOM)?;
    let number = text.get(RANDOM..)?.strip_prefix('/')?;
    let digits = number.find(|c: char| !c.is_ascii_digit())?;
    let whole = random.chars().all(|c| c.is_ascii_alphanumeric())
        && digits > 0
        && number[digits..].starts_with('/');
    whole.then_some(RANDOM + 1 + digits + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directories_get_one_name() {
        for (text, expected) in [
            ("/tmp/ucx-configure-aB3dE6/12/a.o x", "/tmp/ucx-configure-XXXXXX/N/a.o x"),
            (
                "ucx-configure-aB3dE6/0/ucx-configure-zzzzzz/1/",
                "ucx-configure-XXXXXX/N/ucx-configure-XXXXXX/N/",
            ),
            ("/src/ucx-configure-master/src", "/src/ucx-configure-master/src"),
            ("/src/ucx-configure-1.2.30/0/", "/src/ucx-configure-1.2.30/0/"),
            ("ucx-configure-äöü", "ucx-configure-äöü"),
            ("ucx-configure-", "ucx-configure-"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without_scratch(text), expected);
        }
    }
}
