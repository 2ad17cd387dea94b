//! What environment variables lead to: places with headers and libraries that
//! the compiler looks at whatever it is told, and that a program is loaded
//! with.

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    found::{Found, Installation},
    ground::User,
};
use crate::{
    discover::source::same_dir,
    env_vars,
    host::Host,
    model::{MessageKind, Supplied},
    probe::catalog::{PROBES, Stage},
};

/// Something to say: how grave, its code, the text, what to do.
type Remark = (MessageKind, &'static str, String, Option<String>);

/// Headers that other headers of CUDA's include: where a toolkit lacks them, a
/// variable may hide it.
const INNER_HEADERS: [&str; 2] = ["crt/host_defines.h", "nv/target"];

/// Libraries by file name.
const LIBRARIES: [&str; 5] =
    ["libcuda.so", "libcudart.so", "libcudart_static.a", "libnvidia-ml.so", "libgdrapi.so"];

/// What the driver's libraries are loaded by.
const DRIVER_NAMES: [&str; 4] =
    ["libcuda.so", "libcuda.so.1", "libnvidia-ml.so", "libnvidia-ml.so.1"];

/// Everything that a variable leads to.
pub(super) fn supplied(user: &User, found: &Found, host: &Host) -> Vec<Supplied> {
    let mut all = roots(found);
    // In the order in which a compiler looks.
    let mut header_places = flagged("CPPFLAGS", &user.cppflags, &["-I", "-isystem"]);
    header_places.extend(flagged("CFLAGS", &user.cflags, &["-I", "-isystem"]));
    header_places.extend(listed(env_vars::CPATH, host));
    header_places.extend(listed(env_vars::C_INCLUDE_PATH, host));
    let mut taken: Vec<&str> = Vec::new();
    for (variable, place) in header_places {
        let holds: Vec<&str> = headers().filter(|name| place.join(name).is_file()).collect();
        let used = holds.iter().any(|name| !taken.contains(name) && takes_header(found, name));
        taken.extend(&holds);
        push(&mut all, variable, place, &holds, used);
    }
    let mut library_places = flagged("LDFLAGS", &user.ldflags, &["-L"]);
    library_places.extend(listed(env_vars::LIBRARY_PATH, host));
    for (variable, place) in library_places {
        let used = takes_library(found, &place);
        push(&mut all, variable, place.clone(), &holding(&place, &LIBRARIES), used);
    }
    for (variable, place) in listed(env_vars::LD_LIBRARY_PATH, host) {
        push(&mut all, variable, place.clone(), &holding(&place, &DRIVER_NAMES), false);
    }
    all
}

/// What deserves a word: what the answers stand on besides what was named, and
/// stubs that a program would be loaded with.
pub(super) fn remarks(supplied: &[Supplied]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for row in supplied {
        let (variable, place) = (&row.variable, &row.place);
        let holds = row.holds.join(", ");
        let compiler = [env_vars::CPATH, env_vars::C_INCLUDE_PATH, env_vars::LIBRARY_PATH];
        if row.used && compiler.contains(&variable.as_str()) {
            let text = format!(
                "{variable} leads the compiler to `{place}` ({holds}): without it, the answers would be others"
            );
            let hint = format!(
                "Take it out of {variable} where it is not meant; where it is, name it in CPPFLAGS or LDFLAGS, so that the build sees it as well."
            );
            remarks.push((MessageKind::Note, "N0310", text, Some(hint)));
        }
        let is_stub = place.components().any(|part| part.as_str() == "stubs");
        if variable == env_vars::LD_LIBRARY_PATH && is_stub {
            let text = format!(
                "{variable} leads to stubs in `{place}` ({holds}): a program that is loaded with one finds no GPU"
            );
            let hint = format!("Take `{place}` out of {variable}; stubs are for linking alone.");
            remarks.push((MessageKind::Warning, "W0312", text, Some(hint)));
        }
    }
    remarks
}

/// The installations that a variable named.
fn roots(found: &Found) -> Vec<Supplied> {
    let mut all = Vec::new();
    for installation in [&found.cuda, &found.gdrcopy].into_iter().flatten() {
        let variable = installation.found_by.strip_prefix("environment variable ");
        if let (Some(variable), Some(root)) = (variable, &installation.layout.root) {
            let holds = ["include", "lib64", "lib", "bin"];
            let there: Vec<&str> =
                holds.into_iter().filter(|name| root.join(name).is_dir()).collect();
            push(&mut all, variable.to_owned(), root.clone(), &there, true);
        }
    }
    all
}

/// The headers that are looked for.
fn headers() -> impl Iterator<Item = &'static str> {
    let asked = PROBES.iter().filter_map(|probe| match probe.stage {
        Stage::Header(name) => Some(name),
        _ => None,
    });
    asked.chain(INNER_HEADERS)
}

/// Whether a header is taken from where the compiler looks by itself: no
/// installation that was named has it.
fn takes_header(found: &Found, name: &str) -> bool {
    let asked =
        PROBES.iter().find(|probe| matches!(probe.stage, Stage::Header(own) if own == name));
    let lacks = |it: &Installation| it.layout.header(name).is_none();
    match asked {
        Some(probe) => [&found.cuda, &found.gdrcopy]
            .into_iter()
            .flatten()
            .any(|it| it.yes(probe.id) && lacks(it)),
        // A part of cuda_runtime.h, where that is there.
        None => {
            found.cuda.as_ref().is_some_and(|it| it.yes("cuda.header.cuda_runtime_h") && lacks(it))
        }
    }
}

/// Whether a library was taken from a directory that no installation has.
fn takes_library(found: &Found, place: &Utf8Path) -> bool {
    [&found.cuda, &found.gdrcopy].into_iter().flatten().any(|it| {
        let own = it.layout.link_dirs();
        let files = it.answers.iter().filter(|answer| answer.check.verdict.is_yes());
        files
            .filter_map(|answer| answer.library.as_ref()?.parent())
            .any(|dir| same_dir(dir, place) && !own.iter().any(|own| same_dir(own, place)))
    })
}

fn holding<'a>(place: &Utf8Path, names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| place.join(name).is_file()).collect()
}

fn push(all: &mut Vec<Supplied>, variable: String, place: Utf8PathBuf, holds: &[&str], used: bool) {
    if !holds.is_empty() {
        let holds = holds.iter().map(|name| (*name).to_owned()).collect();
        all.push(Supplied { variable, place, holds, used });
    }
}

/// The directories of a variable that lists some.
fn listed(variable: &str, host: &Host) -> Vec<(String, Utf8PathBuf)> {
    let value = host.env.get(variable).unwrap_or_default();
    let dirs = value.split(':').filter(|dir| !dir.is_empty());
    dirs.map(|dir| (variable.to_owned(), host.absolute(Utf8Path::new(dir)))).collect()
}

/// The directories that flags name.
fn flagged(variable: &str, flags: &[String], options: &[&str]) -> Vec<(String, Utf8PathBuf)> {
    let mut all = Vec::new();
    let mut rest = flags.iter();
    while let Some(flag) = rest.next() {
        let dir = options.iter().find_map(|option| match flag.strip_prefix(option)? {
            "" => rest.clone().next().cloned(),
            dir => Some(dir.to_owned()),
        });
        if let Some(dir) = dir {
            all.push((variable.to_owned(), Utf8PathBuf::from(dir)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_flags_and_lists() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let dirs = |text: &str, options: &[&str]| -> Vec<String> {
            flagged("X", &words(text), options).into_iter().map(|row| row.1.into()).collect()
        };
        assert_eq!(
            dirs("-O2 -I/a -I /b -isystem /c -L/d", &["-I", "-isystem"]),
            ["/a", "/b", "/c"]
        );
        assert_eq!(dirs("-L/d -lcuda", &["-L"]), ["/d"]);
    }

    #[test]
    fn only_what_is_used_or_a_stub_deserves_a_word() {
        let row = |variable: &str, place: &str, used| Supplied {
            variable: variable.to_owned(),
            place: place.into(),
            holds: vec!["cuda.h".to_owned()],
            used,
        };
        let rows = [
            row("CPATH", "/a", true),
            row("CPATH", "/b", false),
            row("CPPFLAGS", "/c", true),
            row("LD_LIBRARY_PATH", "/d/stubs", false),
            row("LD_LIBRARY_PATH", "/e", false),
        ];
        let codes: Vec<&str> = remarks(&rows).iter().map(|remark| remark.1).collect();
        assert_eq!(codes, ["N0310", "W0312"]);
    }
}
