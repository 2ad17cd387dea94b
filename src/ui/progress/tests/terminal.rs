//! What is shown on a real terminal, and what in a pipe. The test starts
//! itself again on a terminal of its own, and there plays a short run.

use std::{
    fs::File,
    io::Read as _,
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;
use crate::host::env::{Snapshot, current_exe};

/// Tells the test that it is the one on the terminal.
const CHILD: &str = "UCX_CONFIGURE_TEST_CHILD";

/// What a run shows: a question, a warning, and something that takes long.
fn play_briefly() {
    let mut progress = Progress::new(STRICT, Channel::Stdout);
    let check = fixtures::check("a", "for cuda.h", Verdict::Yes, None);
    progress.event(&Event::Checking(&check.label));
    progress.event(&Event::Answered(&check));
    progress.event(&Event::Message(&message(MessageKind::Warning, "odd", None)));
    progress.event(&Event::Busy("fetching wheels"));
    std::thread::sleep(Duration::from_millis(250));
    progress.event(&Event::Idle);
}

/// A command that runs this test again with these variables and no others.
#[expect(clippy::disallowed_methods, reason = "the gate to processes knows no terminals")]
fn again(variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(current_exe().unwrap());
    command
        .args(["--exact", "ui::progress::tests::terminal::colour_follows_the_terminal"])
        .args(["--nocapture", "--test-threads=1"])
        .env_clear()
        .env(CHILD, "1")
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    command
}

fn in_a_pipe(variables: &[(&str, &str)]) -> String {
    let output = again(variables).output().unwrap();
    assert!(output.status.success());
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn on_a_terminal(variables: &[(&str, &str)]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave: OwnedFd = File::options().read(true).write(true).open(name).unwrap().into();
    let mut command = again(variables);
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // Our own ends of the other side are closed, so that reading ends.
    drop(command);
    let mut shown = Vec::new();
    // A terminal whose other side is closed ends with an error.
    let _ = File::from(master).read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown).unwrap()
}

#[test]
fn colour_follows_the_terminal() {
    if Snapshot::take().get(CHILD).is_some() {
        play_briefly();
        return;
    }
    let xterm = ("TERM", "xterm-256color");
    for (variables, colour, spinner) in [
        (&[xterm][..], true, true),
        (&[xterm, ("NO_COLOR", "1")], false, true),
        (&[xterm, ("CLICOLOR", "0")], false, true),
        (&[("TERM", "dumb")], false, false),
    ] {
        let shown = on_a_terminal(variables);
        assert!(shown.contains("checking for cuda.h... "), "{variables:?}: {shown:?}");
        assert_eq!(shown.contains("\x1b[32myes\x1b[0m\r\n"), colour, "{variables:?}: {shown:?}");
        assert_eq!(shown.contains("\x1b[1m\x1b[33mwarning:"), colour, "{variables:?}: {shown:?}");
        assert_eq!(shown.contains("fetching wheels"), spinner, "{variables:?}: {shown:?}");
    }
    for (variables, colour) in [(&[xterm][..], false), (&[xterm, ("CLICOLOR_FORCE", "1")], true)] {
        let shown = in_a_pipe(variables);
        assert_eq!(shown.contains("\x1b[32myes\x1b[0m\n"), colour, "{variables:?}: {shown:?}");
        assert_eq!(shown.contains("checking for cuda.h... yes\n"), !colour, "{shown:?}");
        assert!(!shown.contains("fetching wheels"), "{variables:?}: {shown:?}");
    }
}
