//! CUDA in several directories: which parts were named, and what that demands.

use std::{collections::BTreeMap, ffi::OsStr};

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    CudaParts, Remark, Sourced, Variable, Want,
    directories::{self, Named},
    resolve::{Resolver, empty},
};
use crate::{
    error::{Code, Error},
    host::{Host, process::is_executable},
    model::{CudaVersion, Mode},
};

/// `NVCC` and `--with-nvcc` name different programs.
const TWO_NVCCS: &str = "W0108";

/// Older branches than this one had no numbers that anybody would name.
const OLDEST_BRANCH: u32 = 300;

/// The newest driver branch that may be needed.
///
/// # Errors
///
/// It is no number of a branch.
pub(super) fn max_driver(value: Option<&OsStr>, host: &Host) -> Result<Option<u32>, Error> {
    let Some(value) = value else { return Ok(None) };
    if value.is_empty() {
        return Err(empty("--max-driver", host, None));
    }
    let text = value.to_string_lossy();
    let number = text.trim_start_matches(['R', 'r']).split('.').next().unwrap_or_default();
    match number.parse() {
        Ok(branch) if branch >= OLDEST_BRANCH => Ok(Some(branch)),
        _ => Err(Error::new(
            Code::Usage,
            format!("`--max-driver={text}` is no branch of NVIDIA's driver"),
        )
        .means("A driver 470.57.02 is of the branch 470.")
        .hint("Write the branch, as in `--max-driver=470`.")),
    }
}

impl Resolver<'_> {
    /// The parts that were named.
    pub(super) fn cuda_parts(&mut self) -> Result<CudaParts, Error> {
        let options = &self.typed.options;
        let parts = CudaParts {
            include_dirs: self.dirs("--with-cuda-include", &options.with_cuda_include)?,
            library_dirs: self.dirs("--with-cuda-libdir", &options.with_cuda_libdir)?,
            nvml: match options.with_nvml.as_deref().and_then(OsStr::to_str) {
                Some("no") => return Err(nvml_is_needed()),
                Some("yes") => None,
                _ => self.dirs("--with-nvml", options.with_nvml.as_slice())?.pop(),
            },
        };
        if self.mode == Mode::Compat && !parts.is_empty() {
            return Err(Error::new(
                Code::Usage,
                "`--with-cuda-include`, `--with-cuda-libdir` and `--with-nvml` do not go with `--compat`",
            )
            .means("UCX v1.19.0 takes one directory, `--with-cuda=DIR`, and fills gaps from CPPFLAGS and LDFLAGS.")
            .hint("Leave out `--compat`, or write `CPPFLAGS=-I... LDFLAGS=-L...`."));
        }
        Ok(parts)
    }

    fn dirs(
        &mut self,
        option: &str,
        values: &[std::ffi::OsString],
    ) -> Result<Vec<Utf8PathBuf>, Error> {
        let one = |value: &std::ffi::OsString| {
            if value.is_empty() {
                return Err(empty(option, self.host, None));
            }
            let dir = self.directory(option, value)?;
            Ok(self.host.absolute(&dir).components().collect())
        };
        values.iter().map(one).collect()
    }

    /// Who says where a part is wants it.
    pub(super) fn demand_parts(
        &self,
        cuda: &mut Sourced<Want<CudaVersion>>,
        parts: &CudaParts,
    ) -> Result<(), Error> {
        if parts.is_empty() {
            return Ok(());
        }
        let named = ["with-cuda-include", "with-cuda-libdir", "with-nvml"];
        let source = named.into_iter().map(|name| self.source(name));
        let source = source.into_iter().find(|source| *source != super::Source::Default);
        match cuda.value {
            Want::No => Err(Error::new(
                Code::Usage,
                "CUDA is switched off, and a part of it named",
            )
            .means("`--without-cuda` and `--with-cuda-include` or its like contradict each other.")
            .hint("Leave out one of them.")),
            Want::Guess => {
                cuda.value = Want::Yes;
                cuda.source = source.unwrap_or(super::Source::Default);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `--with-nvcc` stands for NVCC, and wins.
    pub(super) fn nvcc(
        &mut self,
        variables: &mut BTreeMap<Variable, Sourced<String>>,
    ) -> Result<(), Error> {
        let option = "--with-nvcc";
        let Some(value) = &self.typed.options.with_nvcc else { return Ok(()) };
        if value.is_empty() {
            return Err(empty(option, self.host, None));
        }
        let named = match directories::named(option, value)? {
            Named::Plain(path) => path,
            Named::Odd(path) => return Err(directories::not_utf8(option, &path)),
        };
        let named = directories::expand_tilde(option, named, self.host, &mut self.remarks);
        let program = program(option, &self.host.absolute(&named))?;
        let words = shlex::try_quote(program.as_str()).map_err(|_| {
            Error::new(Code::UnusablePath, format!("`{option}`: `{program}` cannot be quoted"))
        })?;
        if let Some(other) = variables.get(&Variable::Nvcc)
            && !other.value.is_empty()
            && other.value != words
        {
            let text = format!("NVCC is `{}`, but `{option}` wins: `{program}`", other.value);
            self.remarks.push(Remark::Warning(TWO_NVCCS, text));
        }
        let source = self.source("with-nvcc");
        variables.insert(Variable::Nvcc, Sourced { value: words.into_owned(), source });
        Ok(())
    }
}

/// The program that a path means: itself, or the nvcc below it.
fn program(option: &str, path: &Utf8Path) -> Result<Utf8PathBuf, Error> {
    let candidates = [path.to_owned(), path.join("bin/nvcc"), path.join("nvcc")];
    if let Some(found) = candidates.iter().find(|path| is_executable(path)) {
        return Ok(found.clone());
    }
    let trouble = match (path.is_dir(), path.exists()) {
        (true, _) => "holds no `bin/nvcc` that may be executed",
        (false, true) => "may not be executed",
        (false, false) => "does not exist",
    };
    Err(Error::new(Code::NoSuchDirectory, format!("`{option}`: `{path}` {trouble}"))
        .means("nvcc is needed for UCX's tests and examples alone.")
        .hint(format!(
            "Name the program, as in `{option}=/usr/local/cuda/bin/nvcc`, or leave it out."
        )))
}

fn nvml_is_needed() -> Error {
    Error::new(Code::Usage, "NVML cannot be left out of CUDA support")
        .means("UCX's cuda_ipc is built on it: without NVML there are no CUDA modules.")
        .hint("Write `--without-cuda`, or `--with-nvml=DIR` to say where it is.")
}
