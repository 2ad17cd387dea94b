//! What each way of typing means.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use camino::Utf8Path;

use super::*;
use crate::{
    cli::{self, Parsed},
    error::{Code, Error},
    host::{Host, env::Snapshot, fs::Scratch, process::Runner},
};

fn host(cwd: &Utf8Path, env: &[(&str, &str)]) -> Host {
    let env = Snapshot::from_pairs(env.iter().copied());
    Host { runner: Runner::with_environment(&env), env, cwd: cwd.to_owned() }
}

fn resolved_os(host: &Host, arguments: &[OsString]) -> Result<Resolved, Error> {
    match cli::parse(arguments)? {
        Parsed::Run(typed) => resolve(&typed, host),
        Parsed::Show(text) => panic!("a text: {text}"),
    }
}

fn resolved(host: &Host, arguments: &[&str]) -> Result<Resolved, Error> {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    resolved_os(host, &arguments)
}

fn request(host: &Host, arguments: &[&str]) -> Request {
    resolved(host, arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error:?}")).request
}

fn code(host: &Host, arguments: &[&str]) -> Code {
    resolved(host, arguments).unwrap_err().code
}

fn codes(request: &Request) -> Vec<&'static str> {
    let code = |remark: &Remark| match *remark {
        Remark::Warning(code, _) | Remark::Note(code, _) => code,
    };
    request.remarks.iter().map(code).collect()
}

fn dir<V>(path: &str) -> Want<V> {
    Want::At(Location::Dir(path.into()))
}

#[test]
fn nothing_typed_is_a_guess_with_defaults() {
    let host = host(Utf8Path::new("/somewhere"), &[]);
    let request = request(&host, &[]);
    assert_eq!(request.cuda, Sourced::default_value(Want::Guess));
    assert_eq!(request.install_dirs["libdir"], "${exec_prefix}/lib");
    assert_eq!(request.install_dirs.len(), crate::model::INSTALL_DIRS.len());
    assert_eq!(request.build_dir, "/somewhere");
    assert_eq!(request.state_dir.unwrap(), "/somewhere/.ucx-configure");
    assert!(request.build_runtime && request.cache && request.bistro && !request.iodemo_cuda);
    assert!(request.variables.is_empty() && request.remarks.is_empty());
}

#[test]
fn wishes() {
    let host = host(Utf8Path::new("/"), &[]);
    let want = |argument| request(&host, &[argument]).cuda.value;
    assert_eq!(want("--with-cuda"), Want::Yes);
    assert_eq!(want("--with-cuda=yes"), Want::Yes);
    assert_eq!(want("--with-cuda=guess"), Want::Guess);
    assert_eq!(want("--without-cuda"), Want::No);
    assert_eq!(want("--with-cuda=stub:12.5"), Want::At(Location::Stub(CudaVersion::new(12, 5))));
    assert_eq!(want("--with-cuda=wheel:13.0"), Want::At(Location::Wheel(CudaVersion::new(13, 0))));
    let gdrcopy = request(&host, &["--with-gdrcopy=stub:2.5"]).gdrcopy;
    assert_eq!(gdrcopy.value, Want::At(Location::Stub(GdrVersion::new(2, 5))));
    assert_eq!(gdrcopy.source, Source::Argument("--with-gdrcopy=stub:2.5".to_owned()));
    for bad in ["--with-cuda=stub:x", "--with-cuda=wheel", "--with-gdrcopy=wheel:2.5"] {
        assert_eq!(code(&host, &[bad]), Code::UnknownVersion, "{bad}");
    }
}

#[test]
fn an_empty_value_names_the_variable() {
    let plain = host(Utf8Path::new("/"), &[("CUDA_PATH", "/opt/cuda")]);
    let error = resolved(&plain, &["--with-cuda="]).unwrap_err();
    assert_eq!(error.code, Code::EmptyValue);
    assert!(error.means[1].contains("`CUDA_HOME`"), "{error:?}");
    assert!(error.hints[0].contains("--with-cuda=$CUDA_PATH"), "{error:?}");
    assert_eq!(code(&plain, &["--with-gdrcopy="]), Code::EmptyValue);
    assert_eq!(code(&plain, &["--libdir="]), Code::EmptyValue);
    assert_eq!(code(&plain, &["-B", ""]), Code::EmptyValue);
    assert_eq!(request(&plain, &["--prefix="]).install_dirs["prefix"], "");
    let compat = request(&plain, &["--compat=v1.19.0", "--with-cuda="]);
    assert_eq!(compat.cuda.value, Want::Empty);
}

#[test]
fn directories_of_every_kind() {
    let scratch = Scratch::new(None).unwrap();
    let root = scratch.path();
    for name in ["cuda-12.8", "sp ace", "a$HOME", "semi;colon", "a=b", "quo'te\"", "h\u{e9}"] {
        crate::host::fs::create_dir_all(&root.join(name)).unwrap();
    }
    crate::host::fs::create_dir_all(&root.join("cuda-12.8/bin")).unwrap();
    crate::host::fs::write_if_changed(&root.join("cuda-12.8/bin/nvcc"), b"", 0o755).unwrap();
    crate::host::fs::symlink("gone", &root.join("dangling")).unwrap();
    crate::host::fs::symlink("circle", &root.join("circle")).unwrap();
    let host = host(root, &[("HOME", root.as_str())]);

    for name in ["cuda-12.8", "sp ace", "a$HOME", "semi;colon", "a=b", "quo'te\"", "h\u{e9}"] {
        for form in [format!("{root}/{name}"), name.to_owned(), format!("{root}/{name}/")] {
            let request = request(&host, &[&format!("--with-cuda={form}")]);
            assert_eq!(request.cuda.value, dir(&form), "{form}");
            assert!(request.remarks.is_empty());
        }
    }
    let home = request(&host, &["--with-cuda=~/cuda-12.8"]);
    assert_eq!(home.cuda.value, dir(&format!("{root}/cuda-12.8")));
    assert_eq!(codes(&home), ["N0103"]);

    let error = |argument: &str| resolved(&host, &[argument]).unwrap_err();
    for (argument, hint) in [
        ("--with-cuda=cuda-12.8x", format!("Did you mean `--with-cuda={root}/cuda-12.8`?")),
        (
            "--with-gdrcopy-libdir=sp_ace",
            format!("Did you mean `--with-gdrcopy-libdir={root}/sp ace`?"),
        ),
        ("--with-cuda=cuda-12.8/bin/nvcc", "Did you mean `--with-cuda=cuda-12.8`?".to_owned()),
        ("--with-cuda=~nobody/cuda", "Write `--with-cuda=$HOME/...`.".to_owned()),
        (
            "--with-cuda=dangling",
            "Mend the link, or name the directory that it should lead to.".to_owned(),
        ),
    ] {
        let error = error(argument);
        assert_eq!(error.code, Code::NoSuchDirectory, "{argument}");
        assert_eq!(error.hints, [hint], "{argument}");
    }
    assert_eq!(error("--with-cuda=circle").code, Code::NoSuchDirectory);
    assert_eq!(error("--with-cuda=a\nb").code, Code::UnusablePath);
    assert_eq!(code(&host, &["-B", "a\nb"]), Code::UnusablePath);
    let broken = self::host(Utf8Path::new("/a\nb"), &[]);
    assert_eq!(code(&broken, &[]), Code::UnusablePath, "the working directory counts");
    assert_eq!(code(&broken, &["-B", "x"]), Code::UnusablePath);
    assert_eq!(request(&broken, &["-B", "/x"]).build_dir, "/x");
}

#[test]
fn compat_takes_a_directory_as_it_is() {
    let host = host(Utf8Path::new("/"), &[("HOME", "/root")]);
    for typed in ["/no/such", "~/cuda", "../x/"] {
        let request = request(&host, &["--compat=v1.19.0", &format!("--with-cuda={typed}")]);
        assert_eq!((request.mode, request.cuda.value), (Mode::Compat, dir(typed)));
        assert!(request.remarks.is_empty());
    }
    assert_eq!(code(&host, &["--compat=v1.18.0"]), Code::Usage);
    assert_eq!(code(&host, &["--compat=v1.19.0", "--with-cuda=a\nb"]), Code::UnusablePath);
}

#[test]
fn bytes_that_are_not_utf_8_go_through_a_link() {
    let scratch = Scratch::new(None).unwrap();
    let root = scratch.path();
    let odd = OsString::from_vec(b"cuda\xff".to_vec());
    assert!(rustix::fs::mkdir(root.as_std_path().join(&odd), 0o755.into()).is_ok());
    let host = host(root, &[]);
    let mut argument = OsString::from("--with-cuda=");
    argument.push(&odd);
    let resolved = resolved_os(&host, &[argument.clone()]).unwrap();
    let link = root.join(".ucx-configure/with-cuda");
    assert_eq!(resolved.request.cuda.value, dir(link.as_str()));
    assert_eq!(codes(&resolved.request), ["N0107"]);
    assert_eq!(
        resolved.links,
        [Link { target: root.as_std_path().join(&odd), link: link.clone() }]
    );
    resolved.links[0].make().unwrap();
    assert_eq!(crate::host::fs::kind(link.as_std_path()), crate::host::fs::Kind::Directory);

    let check = resolved_os(&host, &["check".into(), argument]).unwrap_err();
    assert_eq!(check.code, Code::UnusablePath, "check may write nothing");
    let missing = OsString::from_vec(b"--with-cuda=\xfe".to_vec());
    assert_eq!(resolved_os(&host, &[missing]).unwrap_err().code, Code::NoSuchDirectory);
}

#[test]
fn an_argument_wins_over_the_environment() {
    let host = host(Utf8Path::new("/"), &[("CC", "cc"), ("LIBS", ""), ("CXX", "c++")]);
    let request = request(&host, &["CC=clang", "CXX=g++", "CUDA_HOME=/c"]);
    assert_eq!(request.variable(Variable::Cc), "clang");
    assert_eq!(request.variables[&Variable::Cc].source, Source::Argument("CC=clang".to_owned()));
    assert!(request.is_set(Variable::Libs) && !request.is_set(Variable::Cflags));
    assert_eq!(request.variables[&Variable::Libs].source, Source::Environment("LIBS".to_owned()));
    assert_eq!(codes(&request), ["N0105", "N0105"]);
}

#[test]
fn remarks() {
    let host = host(Utf8Path::new("/"), &[]);
    let request = self::request(
        &host,
        &["--enable-mt", "--with-cuda", "--without-cuda", "-C", "--no-create", "CC=a", "CC=b"],
    );
    assert_eq!(codes(&request), ["W0101", "W0102", "W0102", "N0104", "N0106"]);
    let text = |at: usize| match &request.remarks[at] {
        Remark::Warning(_, text) | Remark::Note(_, text) => text.as_str(),
    };
    assert_eq!(text(0), "unrecognized options: --enable-mt");
    assert_eq!(text(1), "`--with-cuda` was given 2 times; the last one counts: `--without-cuda`");
    assert_eq!(text(2), "`CC` was given 2 times; the last one counts: `CC=b`");
    assert!(text(4).contains("config.cache") && text(4).contains("/.ucx-configure"));
    assert_eq!(
        code(&host, &["--enable-option-checking=fatal", "--enable-mt"]),
        Code::UnknownOption
    );
    assert!(self::request(&host, &["--disable-option-checking", "--enable-mt"]).remarks.is_empty());
    assert!(self::request(&host, &["--cache-file=/dev/null"]).remarks.is_empty());
}

#[test]
fn installation_directories_are_absolute() {
    let host = host(Utf8Path::new("/w"), &[("HOME", "/home/u")]);
    let dirs =
        request(&host, &["--prefix=/opt/ucx//", "--mandir=$HOME/m", "--bindir=~/b"]).install_dirs;
    assert_eq!(dirs["prefix"], "/opt/ucx");
    assert_eq!(dirs["mandir"], "$HOME/m");
    assert_eq!(dirs["bindir"], "/home/u/b");
    let error = resolved(&host, &["--prefix=opt"]).unwrap_err();
    assert_eq!((error.code, &error.hints[0][..]), (Code::Usage, "Write `--prefix=/w/opt`."));
}

#[test]
fn a_time_limit_is_a_number_of_seconds() {
    let with = |value: &str| host(Utf8Path::new("/"), &[("UCX_CONFIGURE_TIME_LIMIT", value)]);
    for value in ["abc", "-1", "0", "1.5", "10s"] {
        let error = resolved(&with(value), &[]).unwrap_err();
        assert_eq!(error.code, Code::Usage, "{value}");
        assert!(error.what.contains(&format!("UCX_CONFIGURE_TIME_LIMIT={value}")), "{error}");
    }
    assert_eq!(time_limit(&with("7")).unwrap(), Some(std::time::Duration::from_secs(7)));
    assert_eq!(time_limit(&with("")).unwrap(), None);
}

#[test]
fn switches() {
    let host = host(Utf8Path::new("/"), &[]);
    assert!(!request(&host, &["--disable-bistro"]).bistro);
    assert!(request(&host, &["--with-iodemo-cuda"]).iodemo_cuda);
    assert!(!request(&host, &["--without-iodemo-cuda"]).iodemo_cuda);
    assert_eq!(code(&host, &["--with-iodemo-cuda=maybe"]), Code::Usage);
    assert!(request(&host, &["--compat=v1.19.0", "--with-iodemo-cuda=maybe"]).iodemo_cuda);
    assert_eq!(request(&host, &["--bindings=generate"]).bindings, Bindings::Generate);
    assert_eq!(code(&host, &["--bindings=x"]), Code::Usage);
    let check = request(&host, &["check", "--host", "aarch64-linux-gnu"]);
    assert_eq!(check.host.as_deref(), Some("aarch64-linux-gnu"));
    assert!(!check.build_runtime && check.state_dir.is_none());
    for good in ["x86_64-pc-linux-gnu", "aarch64-linux", "powerpc64le-unknown-linux-gnu"] {
        assert_eq!(request(&host, &[&format!("--host={good}")]).host.as_deref(), Some(good));
    }
    for option in ["--host", "--build"] {
        assert_eq!(code(&host, &[&format!("{option}=")]), Code::EmptyValue);
        let compat = request(&host, &["--compat=v1.19.0", &format!("{option}=")]);
        assert_eq!((compat.host, compat.build), (None, None));
        for bad in ["banana", "a--b", "-linux", "a/b-linux", "a b-linux"] {
            assert_eq!(code(&host, &[&format!("{option}={bad}")]), Code::Usage, "{bad}");
        }
    }
}

#[test]
fn parts_of_cuda_are_directories_that_demand_it() {
    let scratch = Scratch::new(None).unwrap();
    let root = scratch.path();
    for dir in ["include", "lib", "tk/bin"] {
        crate::host::fs::create_dir_all(&root.join(dir)).unwrap();
    }
    crate::host::fs::write_if_changed(&root.join("tk/bin/nvcc"), b"", 0o755).unwrap();
    let host = host(root, &[("NVCC", "/other/nvcc")]);
    let request = self::request(
        &host,
        &[
            "--with-cuda-include=include",
            "--with-cuda-libdir=lib",
            "--with-cuda-libdir=./lib/",
            "--with-nvcc=tk",
        ],
    );
    assert_eq!(request.cuda.value, Want::Yes);
    assert_eq!(request.cuda.source, Source::Argument("--with-cuda-include=include".to_owned()));
    assert_eq!(request.cuda_parts.include_dirs, [root.join("include")]);
    assert_eq!(request.cuda_parts.library_dirs, [root.join("lib"), root.join("lib")]);
    assert_eq!(request.variable(Variable::Nvcc), root.join("tk/bin/nvcc"));
    assert!(codes(&request).contains(&"W0108"), "NVCC says otherwise");
    for (argument, expected) in [
        ("--with-cuda-include=", Code::EmptyValue),
        ("--with-cuda-libdir=gone", Code::NoSuchDirectory),
        ("--with-nvml=gone", Code::NoSuchDirectory),
        ("--with-nvcc=include", Code::NoSuchDirectory),
        ("--max-driver=", Code::EmptyValue),
        ("--max-driver=12", Code::Usage),
    ] {
        assert_eq!(code(&host, &[argument]), expected, "{argument}");
    }
    for (text, branch) in [("470", 470), ("R525", 525), ("550.54.15", 550)] {
        let argument = format!("--max-driver={text}");
        assert_eq!(self::request(&host, &[&argument]).max_driver, Some(branch));
    }
}
