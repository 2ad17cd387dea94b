//! What a question stands on: one installation's directories before the
//! user's flags, so that `--with-cuda=DIR` means DIR.

use crate::{
    discover::Layout,
    error::{Code, Error},
    probe::{compiler::Kind, control::Flags},
    request::{Answers, Request, Variable},
};

/// The user's flags, as words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) cppflags: Vec<String>,
    pub(super) cflags: Vec<String>,
    pub(super) ldflags: Vec<String>,
    pub(super) libs: Vec<String>,
    pub(super) nvccflags: Vec<String>,
    /// Answers that are given instead of found out.
    pub(super) given: Answers,
}

impl User {
    /// Splits the variables as a shell would.
    pub(super) fn read(request: &Request) -> Result<Self, Error> {
        let words = |variable: Variable| {
            let text = request.variable(variable);
            shlex::split(text).ok_or_else(|| {
                let name = variable.name();
                Error::new(Code::Usage, format!("{name} cannot be read as words: `{text}`"))
                    .means("A quote is not closed, or a backslash ends it.")
                    .hint(format!(
                        "Quote it as a shell would need it, such as `{name}='-I/my dir'`."
                    ))
            })
        };
        Ok(Self {
            cppflags: words(Variable::Cppflags)?,
            cflags: words(Variable::Cflags)?,
            ldflags: words(Variable::Ldflags)?,
            libs: words(Variable::Libs)?,
            nvccflags: words(Variable::Nvccflags)?,
            given: request.given.clone(),
        })
    }

    /// The flags that the controls are put with.
    pub(super) fn flags(&self) -> Flags {
        Flags {
            cflags: self.cflags.iter().chain(&self.cppflags).cloned().collect(),
            ldflags: self.ldflags.clone(),
            libs: self.libs.clone(),
        }
    }

    /// Whether a flag of theirs names a directory to search.
    pub(super) fn names_directories(&self) -> bool {
        let dir = |flag: &String| {
            ["-I", "-L", "-isystem", "-idirafter"].iter().any(|start| flag.starts_with(start))
        };
        self.cppflags.iter().chain(&self.cflags).chain(&self.ldflags).any(dir)
    }
}

/// One installation and the user's flags.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    /// The installation.
    pub(super) layout: Layout,
    /// The user's flags.
    pub(super) user: User,
    /// Which compiler the flags are for.
    pub(super) kind: Kind,
    /// The commands that may be nvcc, the best first.
    pub(super) nvcc: Vec<Vec<String>>,
}

impl Ground {
    /// Flags for compiling. Probes are about code, not about warnings, which
    /// the user's `-Werror` would turn into answers.
    pub(super) fn cflags(&self) -> Vec<String> {
        let mut flags = self.layout.cppflags();
        flags.extend(self.user.cflags.iter().chain(&self.user.cppflags).cloned());
        if matches!(self.kind, Kind::Gcc | Kind::Clang)
            && flags.iter().any(|flag| flag.starts_with("-Werror"))
        {
            flags.push("-Wno-error".to_owned());
        }
        flags
    }

    /// Flags for linking; the linker is asked which files it takes.
    pub(super) fn ldflags(&self) -> Vec<String> {
        let mut flags = self.layout.ldflags();
        flags.extend(self.user.ldflags.iter().cloned());
        if matches!(self.kind, Kind::Gcc | Kind::Clang) {
            flags.push("-Wl,--trace".to_owned());
        }
        flags
    }

    /// The libraries asked about, before the user's.
    pub(super) fn libs(&self, names: &[&str]) -> Vec<String> {
        let asked = names.iter().map(|name| self.layout.link_word(name));
        asked.chain(self.user.libs.iter().cloned()).collect()
    }

    /// Flags for nvcc, which takes no options of the C compiler's.
    pub(super) fn nvcc_flags(&self) -> Vec<String> {
        let mut flags = self.user.nvccflags.clone();
        flags.extend(self.layout.cppflags());
        let usable = |flag: &&String| ["-I", "-D", "-U"].iter().any(|s| flag.starts_with(s));
        flags.extend(self.user.cppflags.iter().filter(usable).cloned());
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuda_comes_before_the_user() {
        let layout = Layout {
            root: Some("/c".into()),
            include_dirs: vec!["/c/include".into()],
            library_dirs: vec!["/c/lib64".into()],
            names: vec![("cudart", "/c/lib64/libcudart.so.12".into())],
            ..Layout::default()
        };
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let user = User {
            cppflags: words("-I/u -DX"),
            cflags: words("-Wall -Werror"),
            ldflags: words("-L/u"),
            libs: words("-lm"),
            nvccflags: words("-O1"),
            given: Answers::new(),
        };
        assert!(user.names_directories());
        let ground = Ground { layout, user, kind: Kind::Gcc, nvcc: Vec::new() };
        assert_eq!(ground.cflags(), words("-I/c/include -Wall -Werror -I/u -DX -Wno-error"));
        assert_eq!(ground.ldflags(), words("-L/c/lib64 -L/u -Wl,--trace"));
        assert_eq!(ground.libs(&["cuda"]), words("-lcuda -lm"));
        assert_eq!(ground.libs(&["cudart"]), words("-l:libcudart.so.12 -lm"));
        assert_eq!(ground.nvcc_flags(), words("-O1 -I/c/include -I/u -DX"));
    }

    #[test]
    fn an_open_quote_is_a_usage_error() {
        let mut request = Request::bare("/b".into());
        let value = crate::request::Sourced::default_value("-DX='1".to_owned());
        request.variables.insert(Variable::Cflags, value);
        assert_eq!(User::read(&request).unwrap_err().code, Code::Usage);
    }
}
