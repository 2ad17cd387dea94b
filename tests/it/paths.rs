//! Toolkits in directories with every kind of name: what is written has to
//! reach the compiler unchanged.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use camino::Utf8PathBuf;

use crate::harness::Sandbox;

/// A stub toolkit in the sandbox, as `tk`.
fn toolkit(sandbox: &Sandbox) -> Utf8PathBuf {
    sandbox.run(["-B", "../made", "-q", "--with-cuda=stub:12.5", "--no-build"]).must_end(0);
    let tree = sandbox.path("made/.ucx-configure/toolkit/stub-cuda-12.5");
    assert!(tree.is_dir(), "{tree}");
    tree
}

#[test]
fn any_name_reaches_the_compiler() {
    let sandbox = Sandbox::new();
    let tree = toolkit(&sandbox);
    for name in
        ["sp ace", "a$HOME", "semi;colon", "quo'te\"", "a=b", "h\u{e9}", "back`tick", "st*r"]
    {
        let link = sandbox.path("work").join(name);
        ucx_configure::host::fs::symlink(tree.as_str(), &link).unwrap();
        for form in [link.to_string(), name.to_owned(), format!("{link}/")] {
            let run = sandbox.run(["-B", "b", "--no-build", "-q", &format!("--with-cuda={form}")]);
            assert_eq!(run.code, 0, "{form}: {}", run.stderr);
        }
        sandbox.write(
            "work/x.c",
            "#include <cuda.h>\nint main(void) { return CUDA_VERSION != 12050; }\n",
        );
        let script = ". ./b/config.sh; eval \"cc $CUDA_CPPFLAGS -o x x.c\" && ./x";
        let mut command = sandbox.shell(script);
        let done = sandbox.ended(command.output().unwrap());
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
    }
}

#[test]
fn bytes_that_are_not_utf_8_work_through_a_link() {
    let sandbox = Sandbox::new();
    let tree = toolkit(&sandbox);
    let name = OsString::from_vec(b"cu\xffda".to_vec());
    let link = sandbox.path("work").into_std_path_buf().join(&name);
    std::os::unix::fs::symlink(&tree, &link).unwrap();
    let mut argument = OsString::from("--with-cuda=");
    argument.push(&name);
    let plain: [&OsStr; 3] = ["-B".as_ref(), "b".as_ref(), "--no-build".as_ref()];
    let run = sandbox.run(plain.into_iter().chain([argument.as_os_str()])).must_end(0);
    assert!(
        run.stdout.contains("is not UTF-8; outputs name it through the link"),
        "{}",
        run.stdout
    );
    assert!(sandbox.read("work/b/config.mk").contains("/b/.ucx-configure/with-cuda"));
    // The same, again: the bytes were kept.
    sandbox.run(["-B", "b", "--recheck"]).must_end(0);
    let check = sandbox.run([OsStr::new("check"), &argument]).must_end(2);
    assert!(check.stderr.contains("[E0105]"), "{}", check.stderr);
    assert!(argument.as_bytes().contains(&0xff));
}

#[test]
fn a_tilde_is_expanded() {
    let sandbox = Sandbox::new();
    let tree = toolkit(&sandbox);
    ucx_configure::host::fs::symlink(tree.as_str(), &sandbox.path("home/cuda")).unwrap();
    let run = sandbox.run(["-B", "b", "--no-build", "--with-cuda=~/cuda"]).must_end(0);
    assert!(run.stdout.contains("note: `--with-cuda`: the shell left `~/cuda` as it is"));
    assert!(sandbox.read("work/b/config.mk").contains("/home/cuda/include"));
}

#[test]
fn links_in_a_circle_inside_a_toolkit_hold_nothing_up() {
    let sandbox = Sandbox::new();
    let tree = toolkit(&sandbox);
    let copy = sandbox.path("tk");
    let mut command = sandbox.shell(&format!(
        "cp -R '{tree}' '{copy}' && ln -s . '{copy}/include/again' && ln -s circle '{copy}/circle' && ln -s ../.. '{copy}/lib64/up'"));
    sandbox.ended(command.output().unwrap()).must_end(0);
    sandbox.run(["-B", "b", "--no-build", &format!("--with-cuda={copy}")]).must_end(0);
    let mut command = sandbox.shell(&format!("rm -r '{copy}/lib64' && ln -s lib64 '{copy}/lib64'"));
    sandbox.ended(command.output().unwrap()).must_end(0);
    let run = sandbox.run(["-B", "b", "--no-build", &format!("--with-cuda={copy}")]).must_end(1);
    assert!(run.stderr.contains("[E0201]"), "{}", run.stderr);
}
