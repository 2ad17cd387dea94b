//! Where the original would have answered otherwise in this very run.
//!
//! Each line is proved, by what is known already or by asking once more in the
//! original's way; a quirk that changes nothing here is not told.

use super::{
    Run,
    ask::{Answer, Question},
    found::{CUDA_NEEDS, Found, Installation},
    ground::Ground,
    quirk::Quirk,
    read_versions,
};
use crate::{
    discover::{Layout, source::same_dir},
    host::process::{find_program, is_executable},
    model::{Difference, Family, Verdict},
    probe::{Compiler, catalog::probe},
    request::{Variable, Want},
};

/// Variables that a configure script's caller may have in the environment.
const STRAY: [&str; 6] = [
    "CUDA_CPPFLAGS",
    "CUDA_LDFLAGS",
    "CUDA_LIBS",
    "CUDART_LIBS",
    "CUDART_STATIC_LIBS",
    "NVML_LIBS",
];

/// Every difference of this run.
pub(super) fn all(run: &mut Run<'_>, compiler: &Compiler, found: &Found) -> Vec<Difference> {
    let mut told = Vec::new();
    if let Some(cuda) = &found.cuda {
        told.extend(last_header(cuda));
        told.extend(gaps(cuda));
        told.extend(not_cleared(cuda, found));
        if found.cuda_on() {
            told.extend(subdirectories(run, compiler, cuda));
            told.extend(user_first(run, compiler, cuda, found));
            told.extend(variables(run, compiler, cuda));
            told.extend(blanks(cuda));
            told.extend(versioned_names(cuda));
        }
        told.extend(nvcc(run, cuda));
        told.extend(warnings(cuda));
    }
    told.extend(without_cuda(run, found));
    told.extend(gdrcopy(run, found));
    told
}

/// cuda.h is missing and everything else is there.
fn last_header(cuda: &Installation) -> Option<Difference> {
    let others = &CUDA_NEEDS[1..];
    let only = cuda.verdict(CUDA_NEEDS[0]) == Verdict::No && cuda.meets(others);
    only.then(|| Quirk::LastHeader.differs("there CUDA would be on, here cuda.h is needed"))
}

/// Something was there, outside the installation.
fn gaps(cuda: &Installation) -> Option<Difference> {
    let outside: Vec<&str> = cuda
        .answers
        .iter()
        .filter(|answer| answer.elsewhere)
        .map(|answer| answer.check.label.trim_start_matches("for "))
        .collect();
    (!outside.is_empty()).then(|| {
        Quirk::Gaps.differs(&format!("there the answer would be yes for: {}", outside.join(", ")))
    })
}

/// A guess ended with "no", and the original leaves what it had found.
fn not_cleared(cuda: &Installation, found: &Found) -> Option<Difference> {
    if found.cuda_on() || cuda.layout.is_scoped() {
        return None;
    }
    let left: Vec<&str> = [
        ("HAVE_CUDA_H", "cuda.header.cuda_h"),
        ("HAVE_CUDA_RUNTIME_H", "cuda.header.cuda_runtime_h"),
        ("CUDA_LIBS", "cuda.library.cuda"),
        ("CUDART_LIBS", "cuda.library.cudart"),
        ("HAVE_NVML_H", "nvml.header.nvml_h"),
        ("HAVE_NVML_FABRIC_INFO", "nvml.declaration.gpu_fabric_info"),
        ("HAVE_CUDA_FABRIC", "cuda.declaration.handle_type_fabric"),
    ]
    .into_iter()
    .filter(|(_, id)| cuda.yes(id))
    .map(|(name, _)| name)
    .collect();
    (!left.is_empty()).then(|| {
        Quirk::NotCleared.differs(&format!("there these would be set: {}", left.join(", ")))
    })
}

/// The original's directories, where they are others than ours, do not do.
fn subdirectories(
    run: &mut Run<'_>,
    compiler: &Compiler,
    cuda: &Installation,
) -> Option<Difference> {
    let root = cuda.layout.root.as_ref()?;
    let lib64 = root.join("lib64");
    let library = if lib64.is_dir() { lib64 } else { root.join("lib") };
    let theirs = Layout {
        root: None,
        include_dirs: vec![root.join("include")],
        stub_dirs: vec![library.join("stubs")],
        library_dirs: vec![library],
        // Their own line tells of these.
        names: cuda.layout.names.clone(),
        ..Layout::default()
    };
    let covers = |ours: &[camino::Utf8PathBuf], theirs: &[camino::Utf8PathBuf]| {
        ours.iter().all(|dir| theirs.iter().any(|other| same_dir(dir, other)))
    };
    if covers(&cuda.layout.include_dirs, &theirs.include_dirs)
        && covers(&cuda.layout.link_dirs(), &theirs.link_dirs())
    {
        return None;
    }
    let ground = run.ground(theirs, compiler);
    let no = CUDA_NEEDS.iter().find(|id| {
        let answer = put(run, compiler, &ground, id);
        answer.check.verdict == Verdict::No
    })?;
    let dirs = if no.contains("library") {
        cuda.layout.link_dirs()
    } else {
        cuda.layout.include_dirs.clone()
    };
    let dirs: Vec<String> = dirs.iter().map(|dir| format!("`{dir}`")).collect();
    let label = probe(no).label;
    Some(Quirk::Lib64.differs(&format!(
        "there the answer to \"checking {label}\" would be no, here {} are searched",
        dirs.join(", ")
    )))
}

/// Puts a question on another ground.
fn put(run: &mut Run<'_>, compiler: &Compiler, ground: &Ground, id: &str) -> Answer {
    let probe = probe(id);
    Question { probe, ground, compiler, host: run.host, needs: Vec::new() }.put(run.sink)
}

/// The user's directories hold another version.
fn user_first(
    run: &mut Run<'_>,
    compiler: &Compiler,
    cuda: &Installation,
    found: &Found,
) -> Option<Difference> {
    if cuda.layout.root.is_none() || !run.user.names_directories() {
        return None;
    }
    let mut flags: Vec<String> =
        run.user.cflags.iter().chain(&run.user.cppflags).cloned().collect();
    flags.extend(cuda.layout.cppflags());
    let theirs = read_versions(compiler, run.host, run.sink, &flags).cuda?;
    let ours = found.headers.cuda?;
    (theirs != ours).then(|| {
        let text = format!("there cuda.h would be of CUDA {theirs}, here it is of {ours}");
        Quirk::UserFirst.differs(&text)
    })
}

/// CUDA was found where the original does not look.
fn variables(run: &mut Run<'_>, compiler: &Compiler, cuda: &Installation) -> Option<Difference> {
    let guessed = matches!(run.request.cuda.value, Want::Guess | Want::Yes);
    if !guessed || cuda.layout.root.is_none() {
        return None;
    }
    let ground = run.ground(Layout::default(), compiler);
    let alone = put(run, compiler, &ground, CUDA_NEEDS[0]).check.verdict.is_yes();
    let there = if alone { "another CUDA would be taken" } else { "CUDA would not be found" };
    let here = format!("there {there}, here it comes from {} ({})", cuda.place(), cuda.found_by);
    Some(Quirk::VariablesIgnored.differs(&here))
}

/// A path that a shell script cuts.
fn blanks(cuda: &Installation) -> Option<Difference> {
    let root = cuda.layout.root.as_ref()?;
    root.as_str()
        .contains(char::is_whitespace)
        .then(|| Quirk::Blanks.differs(&format!("there `{root}` would not be found")))
}

/// Libraries that are there only under a versioned name.
fn versioned_names(cuda: &Installation) -> Option<Difference> {
    let names: Vec<String> =
        cuda.layout.names.iter().map(|(name, _)| format!("lib{name}")).collect();
    (!names.is_empty()).then(|| {
        let text = format!("there CUDA would be off for want of {}", names.join(", "));
        Quirk::VersionedName.differs(&text)
    })
}

/// nvcc: another one would have been taken.
fn nvcc(run: &Run<'_>, cuda: &Installation) -> Option<Difference> {
    let here = run.host.cwd.join("nvcc");
    let named = !run.request.variable(Variable::Nvcc).is_empty();
    if !named && cuda.layout.root.is_none() && is_executable(&here) {
        return Some(Quirk::NvccHere.differs(&format!("there NVCC would be `{here}`")));
    }
    if cuda.answer("cuda.nvcc").is_some_and(|answer| answer.idle_nvcc) {
        return Some(Quirk::AnyNvcc.differs("there HAVE_NVCC would be true, here it is false"));
    }
    let root = cuda.layout.root.as_ref()?;
    if named || is_executable(&root.join("bin/nvcc")) {
        return None;
    }
    let other = find_program("nvcc", &run.host.env.path_dirs()).0?;
    let text = format!("there NVCC would be `{other}`, here `{root}` has none");
    Some(Quirk::ForeignNvcc.differs(&text))
}

/// Warnings that would have been errors.
fn warnings(cuda: &Installation) -> Option<Difference> {
    let labels: Vec<&str> = cuda
        .answers
        .iter()
        .filter(|answer| answer.warned && answer.check.family == Family::Configure)
        .map(|answer| answer.check.label.as_str())
        .collect();
    (!labels.is_empty()).then(|| {
        Quirk::Warnings.differs(&format!("there this would be a no: {}", labels.join(", ")))
    })
}

/// What stays set without CUDA.
fn without_cuda(run: &Run<'_>, found: &Found) -> Vec<Difference> {
    let mut told = Vec::new();
    if found.cuda.is_none() && matches!(run.request.cuda.value, Want::No) {
        told.push(Quirk::NvccWithoutCuda.differs("there it is true, here it is false"));
        let stray: Vec<&str> =
            STRAY.into_iter().filter(|name| run.host.env.get_os(name).is_some()).collect();
        if !stray.is_empty() {
            let text = format!("there these would be kept: {}", stray.join(", "));
            told.push(Quirk::StrayValues.differs(&text));
        }
    } else if found.cuda_yes("cuda.nvcc") && !found.cuda_on() {
        told.push(Quirk::NvccWithoutCuda.differs("there it is true, here it is false"));
    }
    told
}

fn gdrcopy(run: &Run<'_>, found: &Found) -> Vec<Difference> {
    let mut told = Vec::new();
    let wanted = !matches!(run.request.gdrcopy.value, Want::No);
    let variable = "with_gdrcopy_libdir";
    if wanted && run.request.gdrcopy_libdir.is_none() && run.host.env.get_os(variable).is_some() {
        let text = "there it would be used, here `--with-gdrcopy-libdir` is an option";
        told.push(Quirk::StrayLibdir.differs(text));
    }
    if found.gdrcopy_there() && !found.cuda_on() {
        let text = "there uct_cuda_MODULES would be \":gdrcopy\", here it is empty";
        told.push(Quirk::GdrcopyAlone.differs(text));
    }
    let on = found.gdrcopy.as_ref().filter(|_| found.gdrcopy_on());
    if on.is_some_and(|tree| tree.layout.root.is_none()) {
        told.push(Quirk::BogusInclude.differs("here GDR_COPY_CPPFLAGS is empty"));
    }
    if let Some(root) = on.and_then(|tree| tree.layout.root.as_ref())
        && root.as_str().contains(char::is_whitespace)
    {
        told.push(Quirk::Blanks.differs(&format!("there `{root}` would not be found")));
    }
    told
}
