//! The installation directories, as GNU programs name them.

use std::collections::BTreeMap;

use super::Install;

/// One of autoconf's installation directories.
#[derive(Debug, Clone, Copy)]
pub struct InstallDir {
    /// The option, such as `exec-prefix`.
    pub option: &'static str,
    /// The variable in makefiles, such as `exec_prefix`.
    pub variable: &'static str,
    /// Its value when nobody gives one.
    pub default: &'static str,
    /// What goes there.
    pub doc: &'static str,
}

const fn dir(
    option: &'static str,
    variable: &'static str,
    default: &'static str,
    doc: &'static str,
) -> InstallDir {
    InstallDir { option, variable, default, doc }
}

/// Every installation directory, in autoconf's order.
pub const INSTALL_DIRS: &[InstallDir] = &[
    dir("prefix", "prefix", "/usr/local", "architecture-independent files"),
    dir("exec-prefix", "exec_prefix", "${prefix}", "architecture-dependent files"),
    dir("bindir", "bindir", "${exec_prefix}/bin", "programs of users"),
    dir("sbindir", "sbindir", "${exec_prefix}/sbin", "programs of administrators"),
    dir("libexecdir", "libexecdir", "${exec_prefix}/libexec", "programs run by programs"),
    dir("sysconfdir", "sysconfdir", "${prefix}/etc", "configuration of one machine"),
    dir("sharedstatedir", "sharedstatedir", "${prefix}/com", "state that machines share"),
    dir("localstatedir", "localstatedir", "${prefix}/var", "state of one machine"),
    dir("runstatedir", "runstatedir", "${localstatedir}/run", "state of running processes"),
    dir("libdir", "libdir", "${exec_prefix}/lib", "libraries; modules go to its `ucx`"),
    dir("includedir", "includedir", "${prefix}/include", "C headers"),
    dir("oldincludedir", "oldincludedir", "/usr/include", "C headers for other compilers"),
    dir("datarootdir", "datarootdir", "${prefix}/share", "root of read-only data"),
    dir("datadir", "datadir", "${datarootdir}", "read-only data"),
    dir("infodir", "infodir", "${datarootdir}/info", "info documents"),
    dir("localedir", "localedir", "${datarootdir}/locale", "translations"),
    dir("mandir", "mandir", "${datarootdir}/man", "manual pages"),
    dir("docdir", "docdir", "${datarootdir}/doc/ucx", "documentation"),
    dir("htmldir", "htmldir", "${docdir}", "documentation in HTML"),
    dir("dvidir", "dvidir", "${docdir}", "documentation in DVI"),
    dir("pdfdir", "pdfdir", "${docdir}", "documentation in PDF"),
    dir("psdir", "psdir", "${docdir}", "documentation in PostScript"),
];

impl Install {
    /// A directory with nothing left to expand; autoconf's default where the
    /// report does not say.
    pub fn expanded(&self, variable: &str) -> String {
        let mut text = self.value(variable).to_owned();
        // More rounds than there are directories would be a circle.
        for _ in INSTALL_DIRS {
            let Some((name, _)) = text.split_once("${").and_then(|(_, rest)| rest.split_once('}'))
            else {
                break;
            };
            let name = name.to_owned();
            text = text.replace(&format!("${{{name}}}"), self.value(&name));
        }
        text
    }

    /// The same with other directories than were configured, by variable.
    #[must_use]
    pub fn with(mut self, given: BTreeMap<String, String>) -> Self {
        self.dirs.extend(given);
        self
    }

    fn value(&self, variable: &str) -> &str {
        let default = || INSTALL_DIRS.iter().find(|row| row.variable == variable);
        let known = self.dirs.get(variable).map(String::as_str);
        known.or_else(|| default().map(|row| row.default)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_expanded_whatever_they_lead_through() {
        let dirs = [("prefix", "/opt/u"), ("libdir", "${exec_prefix}/lib64"), ("a", "${a}")];
        let dirs = dirs.map(|(name, dir)| (name.to_owned(), dir.to_owned()));
        let install = Install { dirs: BTreeMap::from(dirs) };
        assert_eq!(install.expanded("libdir"), "/opt/u/lib64");
        assert_eq!(install.expanded("htmldir"), "/opt/u/share/doc/ucx");
        assert_eq!(install.expanded("a"), "${a}", "a circle ends");
        let other = install.with(BTreeMap::from([("prefix".to_owned(), String::new())]));
        assert_eq!(other.expanded("libdir"), "/lib64");
    }
}
