//! What each way of typing comes to.

use super::*;

fn typed(arguments: &[&str]) -> Result<Typed, Error> {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    match parse(&arguments)? {
        Parsed::Run(typed) => Ok(*typed),
        Parsed::Show(text) => panic!("a text: {text}"),
    }
}

fn ok(arguments: &[&str]) -> Typed {
    typed(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error:?}"))
}

fn code(arguments: &[&str]) -> Code {
    typed(arguments).unwrap_err().code
}

#[test]
fn with_and_without() {
    for (arguments, expected) in [
        (&["--with-cuda"][..], Some("yes")),
        (&["--with-cuda=yes"], Some("yes")),
        (&["--with-cuda="], Some("")),
        (&["--with-cuda=/a b"], Some("/a b")),
        (&["-with-cuda=/a"], Some("/a")),
        (&["--without-cuda"], Some("no")),
        (&["--with-cuda=/a", "--without-cuda"], Some("no")),
        (&["--without-cuda", "--with-cuda=/a"], Some("/a")),
        (&[], None),
    ] {
        let value = ok(arguments).options.with_cuda;
        assert_eq!(value.as_deref().and_then(|value| value.to_str()), expected, "{arguments:?}");
    }
    assert_eq!(ok(&["--disable-bistro"]).options.enable_bistro, Some("no".into()));
    assert_eq!(code(&["--without-cuda=/a"]), Code::Usage);
}

#[test]
fn an_option_of_ours_is_counted() {
    let twice = ok(&["--with-cuda=/a", "--without-cuda", "-q", "--silent"]);
    assert_eq!(twice.occurrences["with-cuda"].typed, ["--with-cuda=/a", "--without-cuda"]);
    assert!(twice.occurrences["with-cuda"].has_value);
    assert_eq!(twice.occurrences["quiet"].typed.len(), 2);
    assert!(twice.options.quiet && !twice.occurrences["quiet"].has_value);
}

#[test]
fn directories_and_separate_values() {
    let typed = ok(&["--prefix", "/opt/ucx", "--libdir=${prefix}/lib64", "-B", "b", "-C", "-n"]);
    assert_eq!(typed.install_dirs["prefix"], "/opt/ucx");
    assert_eq!(typed.install_dirs["libdir"], "${prefix}/lib64");
    assert_eq!(typed.options.build_dir, Some("b".into()));
    assert!(typed.options.config_cache);
    assert_eq!(typed.without_effect, ["--no-create"]);
    assert_eq!(ok(&["-Bdir"]).options.build_dir, Some("dir".into()));
    assert_eq!(ok(&["-prefix=/p"]).install_dirs["prefix"], "/p");
    assert_eq!(ok(&["--srcdir", "/s", "--target=x"]).without_effect, ["--srcdir", "--target"]);
    assert_eq!(code(&["--prefix"]), Code::Usage);
}

#[test]
fn variables() {
    let typed = ok(&["CC=ccache gcc", "CFLAGS=", "X_1=a=b", "--", "LIBS=-lm"]);
    let names: Vec<_> = typed.assignments.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["CC", "CFLAGS", "X_1", "LIBS"]);
    assert_eq!(typed.assignments[2].1, "a=b");
    assert_eq!(code(&["2X=1"]), Code::Usage);
    assert_eq!(code(&["x86_64-linux"]), Code::Usage);
}

#[test]
fn bytes_that_are_not_utf_8_pass() {
    use std::os::unix::ffi::OsStringExt as _;
    let odd = OsString::from_vec(b"--with-cuda=/a\xff".to_vec());
    let Parsed::Run(typed) = parse(&[odd]).unwrap() else { panic!("a run") };
    assert_eq!(typed.options.with_cuda, Some(OsString::from_vec(b"/a\xff".to_vec())));
    let odd = OsString::from_vec(b"--\xff".to_vec());
    assert_eq!(parse(&[odd]).unwrap_err().code, Code::Usage);
}

#[test]
fn options_of_others_are_collected() {
    let typed =
        ok(&["--enable-mt", "--with-verbs=/v", "--without-java", "--with-frob", "--enable-mt"]);
    assert_eq!(typed.foreign, ["--enable-mt", "--with-verbs", "--without-java", "--with-frob"]);
    assert_eq!(typed.option_checking, OptionChecking::Warn);
    let how = |argument| ok(&[argument]).option_checking;
    assert_eq!(how("--enable-option-checking=fatal"), OptionChecking::Fatal);
    assert_eq!(how("--disable-option-checking"), OptionChecking::Off);
    assert_eq!(code(&["--enable-option-checking=x"]), Code::Usage);
    for option in UCX_OPTIONS {
        assert_eq!(ok(&[&format!("--{option}")]).foreign.len(), 1, "{option}");
    }
}

#[test]
fn slips_are_told() {
    for (slip, meant) in [
        ("--with-cudda=/a", "--with-cuda"),
        ("--with-cud", "--with-cuda"),
        ("--without-cudaa", "--without-cuda"),
        ("--enable-cuda", "--with-cuda"),
        ("--disable-cuda", "--without-cuda"),
        ("--cuda=/a", "--with-cuda"),
        ("--with_cuda", "--with-cuda"),
        ("--with-gdr-copy", "--with-gdrcopy"),
        ("--with-gdrcopy-lib-dir=/a", "--with-gdrcopy-libdir"),
        ("--without-bistro", "--disable-bistro"),
        ("--preffix=/a", "--prefix"),
        ("--no-buidl", "--no-build"),
        ("--ofline", "--offline"),
    ] {
        let error = typed(&[slip]).unwrap_err();
        assert_eq!(error.code, Code::NearMiss, "{slip}");
        assert_eq!(error.hints[0], format!("Did you mean `{meant}`?"), "{slip}");
    }
    assert_eq!(code(&["--frobnicate"]), Code::Usage);
    assert_eq!(ok(&["--disable-option-checking", "--with-cudda"]).foreign, ["--with-cudda"]);
}

#[test]
fn a_blank_instead_of_the_equals_sign_is_explained() {
    for directory in ["/usr/local/cuda", "/opt/a=b"] {
        let error = typed(&["--with-cuda", directory]).unwrap_err();
        assert_eq!(error.code, Code::Usage);
        assert_eq!(error.hints, [format!("Write `--with-cuda={directory}`.")]);
    }
    assert_eq!(typed(&["chekc"]).unwrap_err().hints, ["Did you mean the command `check`?"]);
}

#[test]
fn check_has_the_same_options_and_its_own() {
    let typed = ok(&["-B", "check", "check", "--with-cuda=/a", "--format=json", "--require=nvml"]);
    assert_eq!(typed.options.build_dir, Some("check".into()));
    assert_eq!(typed.options.with_cuda, Some("/a".into()));
    let Command::Check(check) = typed.command else { panic!("check") };
    assert_eq!((check.format, check.require), (Format::Json, vec!["nvml".to_owned()]));
    let before = ok(&["--prefix=/p", "--print", "CUDA_LIBS", "check"]);
    assert_eq!(before.install_dirs["prefix"], "/p");
    assert!(
        matches!(before.command, Command::Check(CheckOptions { ref print, .. }) if print.len() == 1)
    );
    assert_eq!(code(&["--format=json"]), Code::Usage);
    assert_eq!(code(&["check", "--format=xml"]), Code::Usage);
    assert_eq!(code(&["check", "--print=X", "--format=json"]), Code::Usage);
}

#[test]
fn other_commands() {
    let fetch = ok(&["toolkit", "fetch", "12.8", "--into", "/t", "--with-nvcc"]);
    let expected = ToolkitCommand::Fetch {
        version: "12.8".to_owned(),
        into: Some("/t".into()),
        with_nvcc: true,
    };
    assert_eq!(fetch.command, Command::Toolkit(expected));
    assert!(matches!(ok(&["demo", "-B", "b"]).command, Command::Demo(_)));
    assert_eq!(code(&["toolkit"]), Code::Usage);
}

#[test]
fn help_and_version_come_before_anything_that_can_fail() {
    let text = |arguments: &[&str]| {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        match parse(&arguments) {
            Ok(Parsed::Show(text)) => text,
            other => panic!("{arguments:?}: {other:?}"),
        }
    };
    let help = text(&["--with-cudda", "--help"]);
    for expected in ["--with-cuda", "--libdir", "${exec_prefix}/lib", "CPPFLAGS", "130", "wheel:"] {
        assert!(help.contains(expected), "{expected}");
    }
    assert!(text(&["check", "--help"]).contains("--require"));
    assert!(text(&["toolkit", "--help"]).contains("fetch"));
    assert!(text(&["demo", "--help"]).contains("--build-dir"));
    assert!(text(&["--version"]).starts_with("ucx-configure "));
}

#[test]
fn clap_finds_no_fault_with_the_definition() {
    definition().debug_assert();
}
