//! What the gate to files promises.

use super::*;

#[test]
fn writes_only_what_changed() {
    let scratch = Scratch::new(None).unwrap();
    let file = scratch.path().join("a");
    assert!(write_if_changed(&file, b"1", 0o644).unwrap());
    assert!(!write_if_changed(&file, b"1", 0o644).unwrap());
    assert!(write_if_changed(&file, b"2", 0o644).unwrap());
    assert_eq!(read_to_string(&file).unwrap(), "2");
    assert_eq!(names(scratch.path()), ["a"], "nothing is left beside it");
    assert!(symlink("a", &scratch.path().join("l")).unwrap());
    assert!(!symlink("a", &scratch.path().join("l")).unwrap());
    assert!(symlink("b", &scratch.path().join("l")).unwrap());
}

#[test]
fn errors_name_the_path() {
    let error = read(Utf8Path::new("/no/such/file")).unwrap_err();
    assert!(error.what.contains("/no/such/file"));
    let error = write_if_changed(Utf8Path::new("/proc/x"), b"", 0o644).unwrap_err();
    assert_eq!(error.code, Code::Write);
}

#[test]
fn tells_what_a_path_leads_to() {
    let scratch = Scratch::new(None).unwrap();
    let at = |name: &str| scratch.path().join(name);
    write_if_changed(&at("file"), b"", 0o644).unwrap();
    symlink("nowhere", &at("dangling")).unwrap();
    symlink("circle", &at("circle")).unwrap();
    symlink(".", &at("link")).unwrap();
    let kind = |name: &str| super::kind(at(name).as_std_path());
    assert_eq!(kind("link"), Kind::Directory);
    assert_eq!(kind("file"), Kind::File);
    assert_eq!(kind("no"), Kind::Missing);
    assert_eq!(kind("file/no"), Kind::Missing);
    assert_eq!(kind("dangling"), Kind::Dangling("nowhere".to_owned()));
    assert!(matches!(kind("circle"), Kind::Unreachable(_)));
}

#[test]
fn a_lock_is_exclusive() {
    let scratch = Scratch::new(None).unwrap();
    let path = scratch.path().join("lock");
    let first = Lock::try_take(&path).unwrap();
    assert!(first.is_some());
    assert!(Lock::try_take(&path).unwrap().is_none());
    drop(first);
    assert!(Lock::try_take(&path).unwrap().is_some());
}

/// A FIFO that nobody writes to.
fn fifo(path: &Utf8Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, path.as_std_path(), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
}

#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let scratch = Scratch::new(None).unwrap();
    let path = scratch.path().join("fifo");
    fifo(&path);
    assert_eq!(kind(path.as_std_path()), Kind::Special);
    assert_eq!(read(&path).unwrap_err().code, Code::Read);
    assert_eq!(read_to_string(&path).unwrap_err().code, Code::Read);
    assert_eq!(Lock::try_take(&path).unwrap_err().code, Code::NotOurs);
    assert_eq!(Lock::try_take(Utf8Path::new("/dev/null")).unwrap_err().code, Code::NotOurs);
    assert!(write_if_changed(&path, b"x", 0o644).unwrap(), "it is replaced");
    assert_eq!(read(&path).unwrap(), b"x");
    assert_eq!(read(scratch.path()).unwrap_err().code, Code::Read);
}
