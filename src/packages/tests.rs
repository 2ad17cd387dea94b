//! Every system gets its own command, and the table has no holes.

use std::collections::BTreeSet;

use super::{distribution::of_text, *};
use crate::host::{
    env::Snapshot,
    fs::{Scratch, create_dir_all, write_if_changed},
    process::Runner,
};

const CUDA_12_5: About<'static> =
    About { cuda: Some(CudaVersion::new(12, 5)), own_directory: true, triple: None };

/// A machine whose os-release says this.
fn host(scratch: &Scratch, os_release: &str, variables: &[(&str, &str)]) -> Host {
    let root = scratch.path();
    create_dir_all(&root.join("etc")).unwrap();
    write_if_changed(&root.join("etc/os-release"), os_release.as_bytes(), 0o644).unwrap();
    let env = Snapshot::from_pairs(
        [("UCX_CONFIGURE_ROOT", root.as_str())].into_iter().chain(variables.iter().copied()),
    );
    Host { env, cwd: "/".into(), runner: Runner::new() }
}

#[test]
fn rows_are_complete_and_unique() {
    let items: BTreeSet<Item> = TABLE.iter().map(|row| row.item).collect();
    assert_eq!(items.len(), TABLE.len());
    assert_eq!(items.len(), Item::Libclang as usize + 1, "every variant has a row");
    for row in TABLE {
        assert!(!row.title.is_empty() && !row.title.ends_with('.'));
        let has = |manager| row.item.names(manager).is_some();
        assert!(has(Manager::Apt) || has(Manager::AptNvidia), "{:?}", row.item);
        assert!(has(Manager::Dnf), "{:?}", row.item);
        for name in row.names {
            assert_eq!(name, name.trim());
        }
    }
}

#[test]
fn os_release_says_whose_packages_there_are() {
    for (text, expected) in [
        ("ID=debian\n", Some(Manager::Apt)),
        ("NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\n", Some(Manager::Apt)),
        ("ID=pop\nID_LIKE=\"ubuntu debian\"\n", Some(Manager::Apt)),
        ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Some(Manager::Dnf)),
        ("ID=new-one\nID_LIKE=\"rhel fedora\"\n", Some(Manager::Dnf)),
        ("ID=fedora\n", Some(Manager::Dnf)),
        ("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", Some(Manager::Zypper)),
        ("ID='sles'\n", Some(Manager::Zypper)),
        ("ID=arch\n", Some(Manager::Pacman)),
        ("ID=nixos\n", None),
        ("", None),
    ] {
        assert_eq!(of_text(text), expected, "{text}");
    }
}

#[test]
fn each_system_gets_its_own_command() {
    let scratch = Scratch::new(None).unwrap();
    for (os_release, variables, expected) in [
        ("ID=debian", &[][..], "apt-get install cuda-nvml-dev-12-5"),
        ("ID=fedora", &[], "dnf install cuda-nvml-devel-12-5"),
        ("ID=sles", &[], "zypper install cuda-nvml-devel-12-5"),
        ("ID=arch", &[], "pacman -S cuda"),
        (
            "ID=debian",
            &[("CONDA_PREFIX", "/c")],
            "conda install -c conda-forge cuda-nvml-dev cuda-version=12.5",
        ),
        ("ID=debian", &[("SPACK_ENV", "/s")], "spack install cuda@12.5"),
    ] {
        let host = host(&scratch, os_release, variables);
        assert_eq!(here(Item::Nvml, &host, &CUDA_12_5).as_deref(), Some(expected));
    }
    let debian = host(&scratch, "ID=debian", &[]);
    let spread = About { own_directory: false, ..CUDA_12_5 };
    let own = here(Item::Nvml, &debian, &spread);
    assert_eq!(own.as_deref(), Some("apt-get install libnvidia-ml-dev"));
    let unknown = About { own_directory: true, ..About::default() };
    let whole = here(Item::Nvml, &debian, &unknown);
    assert_eq!(whole.as_deref(), Some("apt-get install cuda-toolkit"));
    let arch = host(&scratch, "ID=arch", &[]);
    assert_eq!(here(Item::GdrCopy, &arch, &CUDA_12_5), None);
}

#[test]
fn a_hint_names_one_command_or_all() {
    let scratch = Scratch::new(None).unwrap();
    let debian = host(&scratch, "ID=debian", &[]);
    assert_eq!(
        hint(Item::Nvml, &debian, &CUDA_12_5, Some("leave it")),
        "Install NVML's development files: `apt-get install cuda-nvml-dev-12-5`, or leave it."
    );
    let other = host(&scratch, "ID=plan9", &[]);
    let text = hint(Item::Nvml, &other, &CUDA_12_5, None);
    for name in ["apt-get", "dnf", "zypper", "pacman", "conda", "nvidia-nvml-dev-cu12", "spack"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let unknown = About::default();
    for (manager, command) in
        TABLE.iter().map(|row| row.item).flat_map(|item| everywhere(item, &unknown))
    {
        let has_hole = ["X-Y", "cuX", "X.Y", "TRIPLE"].iter().any(|hole| command.contains(hole));
        assert!(!has_hole, "{manager:?}: {command}");
    }
}
