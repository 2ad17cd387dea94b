//! The closing table.

use std::fmt::Write as _;

use camino::Utf8Path;

use super::style::{self, paint};
use crate::model::{
    Component, DefineValue, Finding, LibraryClass, Mode, Module, Report, Side, Verdict,
};

/// How wide it may get before a list goes on in the next line.
const WIDTH: usize = 80;

/// The rows of the original's table that are ours: title and macro.
const ORIGINAL: [(&str, &str); 4] = [
    ("UCT modules", "uct_MODULES"),
    ("CUDA modules", "uct_cuda_MODULES"),
    ("UCM modules", "ucm_MODULES"),
    ("Perf modules", "ucx_perftest_MODULES"),
];

/// The closing lines of a run, styled: with `--compat` those of the original's
/// that concern CUDA, else a table of ours. `build_dir` is where the outputs
/// are, if any were written; `not_built` says why the modules were not, if so.
pub fn summary(report: &Report, build_dir: Option<&Utf8Path>, not_built: Option<&str>) -> String {
    match report.mode {
        Mode::Compat => compat(report),
        Mode::Strict => strict(report, build_dir, not_built),
    }
}

/// The original's lines.
fn compat(report: &Report) -> String {
    let mut text = String::new();
    let iodemo = if report.iodemo_cuda { "yes" } else { "no" };
    let _ = writeln!(text, "configure: io_demo CUDA support:   {iodemo}");
    for (title, name) in ORIGINAL {
        let modules: String = match report.answers.define(name).map(|define| &define.value) {
            Some(DefineValue::Defined(value)) => value
                .trim_matches('"')
                .split(':')
                .filter(|module| !module.is_empty())
                .map(|module| format!("{module} "))
                .collect(),
            Some(DefineValue::Undefined) | None => String::new(),
        };
        let _ = writeln!(text, "configure: {title:>20}:   < {modules}>");
    }
    text
}

/// Rows of a name and words that may be broken between.
#[derive(Default)]
struct Table(Vec<(&'static str, Vec<String>)>);

impl Table {
    /// A row of one text, not broken.
    fn row(&mut self, name: &'static str, text: impl Into<String>) {
        self.0.push((name, vec![text.into()]));
    }

    /// A row of items with commas between.
    fn list(&mut self, name: &'static str, items: &[&str]) {
        let last = items.len().saturating_sub(1);
        let comma = |index| if index < last { "," } else { "" };
        let words = items.iter().enumerate().map(|(index, item)| format!("{item}{}", comma(index)));
        match items {
            [] => self.row(name, "none"),
            _ => self.0.push((name, words.collect())),
        }
    }

    /// The same, and no row at all where there are no items.
    fn list_unless_empty(&mut self, name: &'static str, items: &[&str]) {
        if !items.is_empty() {
            self.list(name, items);
        }
    }

    /// Adds a word to the last row.
    fn add(&mut self, word: String) {
        if let Some((_, words)) = self.0.last_mut() {
            words.push(word);
        }
    }

    /// Sets it in two columns. A name that repeats the one above is left out.
    fn set(&self) -> String {
        let column = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
        let mut text = String::new();
        let mut above = "";
        for (name, words) in &self.0 {
            let shown = if *name == above { "" } else { name };
            above = name;
            let padding = " ".repeat(column - shown.len());
            let _ = write!(text, "  {}{padding}", paint(style::HEADING, shown));
            let mut at = 2 + column;
            for (index, word) in words.iter().enumerate() {
                if index > 0 && at + 1 + word.chars().count() > WIDTH {
                    let _ = write!(text, "\n{}", " ".repeat(2 + column));
                    at = 2 + column;
                } else if index > 0 {
                    text.push(' ');
                    at += 1;
                }
                text.push_str(word);
                at += word.chars().count();
            }
            text.push('\n');
        }
        text
    }
}

/// Our table.
fn strict(report: &Report, build_dir: Option<&Utf8Path>, not_built: Option<&str>) -> String {
    let mut table = Table::default();
    cuda(&mut table, report);
    for component in [Component::Nvml, Component::Nvcc, Component::CudaRuntimeStatic] {
        if let Some(finding) = report.finding(component) {
            table.row(component.title(), found(finding, version(report, component)));
        }
    }
    gdrcopy(&mut table, report);
    if report.has_cuda() {
        features(&mut table, report);
    }
    let modules: Vec<_> = report.modules.iter().map(|module| module.library()).collect();
    table.list("modules", &modules);
    if let Some(why) = not_built.filter(|_| !modules.is_empty()) {
        table.add(format!("({why})"));
    }
    if report.modules.contains(&Module::UcmCuda) {
        table.row("hooks", hooks(report));
    }
    table.row("io_demo with CUDA", if report.iodemo_cuda { "yes" } else { "no" });
    linking(&mut table, report);
    floor(&mut table, report);
    for difference in &report.differences {
        table.row("unlike UCX v1.19.0", format!("{}: {}", difference.quirk, difference.text));
    }
    if let Some(dir) = build_dir {
        table.row("outputs in", dir.as_str());
    }
    format!("\n{}", table.set())
}

/// What became of a component: where it is, or why it is not there.
fn found(finding: &Finding, version: Option<String>) -> String {
    let style = style::verdict(finding.verdict);
    let word = match (finding.verdict, version) {
        (Verdict::Yes, Some(version)) => version,
        (verdict, _) => verdict.word().to_owned(),
    };
    let colon = if finding.verdict.is_yes() { "," } else { ":" };
    match finding.why.as_str() {
        "" => paint(style, &word),
        why => format!("{}{colon} {why}", paint(style, &word)),
    }
}

/// The version that a component says of itself.
fn version(report: &Report, component: Component) -> Option<String> {
    let versions = report.toolkit.as_ref().map(|toolkit| &toolkit.versions)?;
    match component {
        Component::Nvml => versions.nvml_h.clone(),
        Component::Nvcc => match &report.nvcc {
            Some(nvcc) => Some(nvcc.version.clone()),
            None => versions.nvcc.map(|version| version.to_string()),
        },
        _ => None,
    }
}

fn cuda(table: &mut Table, report: &Report) {
    match (&report.toolkit, report.has_cuda()) {
        (Some(toolkit), true) => {
            let version = toolkit.versions.cuda_h.map(|version| version.to_string());
            let version = version.as_deref().unwrap_or("of an unknown version");
            let root = toolkit.root.as_ref().map(|root| root.as_str());
            let place = match (root, &toolkit.real_root) {
                (Some(root), Some(real)) => format!("{root} -> {real}"),
                (root, _) => root.unwrap_or("found by the compiler").to_owned(),
            };
            let version = paint(style::verdict(Verdict::Yes), version);
            table.row("CUDA", format!("{version}, {place} ({})", toolkit.found_by));
        }
        _ => {
            let needed = [Component::CudaDriver, Component::CudaRuntime, Component::Nvml];
            let missing = needed
                .iter()
                .filter_map(|component| report.finding(*component))
                .find(|finding| !finding.verdict.is_yes());
            let no = paint(style::verdict(Verdict::No), "no");
            let why = missing.map(|finding| {
                let title = finding.component.title();
                match finding.verdict {
                    Verdict::No => format!(": {title}: {}", finding.why),
                    verdict => format!(": {title} is {}: {}", verdict.word(), finding.why),
                }
            });
            table.row("CUDA", format!("{no}{}", why.unwrap_or_default()));
        }
    }
}

fn gdrcopy(table: &mut Table, report: &Report) {
    let Some(finding) = report.finding(Component::GdrCopy) else { return };
    let version = report.gdrcopy.as_ref().and_then(|tree| tree.version);
    table.row("gdrcopy", found(finding, version.map(|version| version.to_string())));
}

/// The two families of features, and what is not there.
fn features(table: &mut Table, report: &Report) {
    let names = |side: Side, verdict: fn(Verdict) -> bool| -> Vec<&str> {
        let features = report.features.iter().map(|answer| (answer.id.row(), answer.verdict));
        features
            .filter(|(feature, answer)| feature.side == side && verdict(*answer))
            .map(|(feature, _)| feature.key)
            .collect()
    };
    let yes = |verdict: Verdict| verdict.is_yes();
    let no = |verdict: Verdict| !verdict.is_yes();
    table.list("configure's features", &names(Side::Configure, yes));
    table.list_unless_empty("  not there", &names(Side::Configure, no));
    table.list("sources' levels", &names(Side::Sources, yes));
    table.list_unless_empty("  not there", &names(Side::Sources, no));
    for answer in &report.features {
        // A guard that says otherwise than the code means a mixed toolkit.
        let known = matches!(answer.verdict, Verdict::Yes | Verdict::No);
        if known && answer.by_version.is_some_and(|guard| guard != answer.verdict.is_yes()) {
            let (key, word) = (answer.id.row().key, answer.verdict.word());
            let guard = if answer.verdict.is_yes() { "no" } else { "yes" };
            table.row("guards disagree", format!("{key}: {word}, its version guard says {guard}"));
        }
    }
}

fn hooks(report: &Report) -> &'static str {
    if report.cfg.get("bistro_hooks").copied().unwrap_or(false) {
        "driver API: bistro, then reloc; runtime API: reloc"
    } else {
        "driver and runtime API: reloc (no bistro code is built)"
    }
}

/// What the link flags lead to, where it is not what will be run with.
fn linking(table: &mut Table, report: &Report) {
    if report.on_stub() {
        let text = "a stub toolkit: enough to build with, and nothing to run on";
        table.row("linked against", paint(style::WARNING, text));
        return;
    }
    for file in report.libraries.iter().filter(|file| file.linked && report.has_cuda()) {
        let class = match file.class {
            LibraryClass::Stub => paint(style::WARNING, "stub, at run time the driver's"),
            class => class.word().to_owned(),
        };
        table.row("linked against", format!("lib{}: {class}, `{}`", file.name, file.path));
    }
}

/// The oldest driver for UCX, and what needs it.
fn floor(table: &mut Table, report: &Report) {
    let Some(floor) = report.driver_floor.as_ref().filter(|_| report.has_cuda()) else { return };
    let reasons: Vec<&str> = floor.deciding().map(|reason| reason.why.as_str()).collect();
    let text = format!("R{} or newer for UCX itself: {}", floor.branch, reasons.join("; "));
    table.row("driver floor", text);
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::{
        emit::fixtures,
        model::{Difference, FeatureId},
    };

    fn plain(report: &Report, build_dir: Option<&Utf8Path>) -> String {
        strip_str(&summary(report, build_dir, None)).to_string()
    }

    /// CUDA was guessed, and is not there.
    fn without_cuda() -> Report {
        let mut report = fixtures::report();
        (report.toolkit, report.gdrcopy, report.nvcc) = (None, None, None);
        report.modules.clear();
        for conditional in &mut report.answers.conditionals {
            conditional.value = false;
        }
        for finding in &mut report.components {
            finding.verdict = Verdict::No;
            finding.why = "`cuda.h` is in no directory that was searched".to_owned();
        }
        report
    }

    #[test]
    fn modules_that_were_not_built_are_said_to_be_so() {
        let why = Some("not built: --no-build");
        let text = |report: &Report| strip_str(&summary(report, None, why)).to_string();
        assert!(text(&fixtures::report()).contains("(not built: --no-build)\n"));
        assert!(!text(&without_cuda()).contains("not built"));
    }

    /// Everything that can be odd.
    fn odd() -> Report {
        let mut report = fixtures::on_stub();
        report.iodemo_cuda = true;
        report.cfg.insert("bistro_hooks".to_owned(), false);
        let quirk = |quirk: &str, text: &str| Difference { quirk: quirk.into(), text: text.into() };
        report.differences =
            vec![quirk("Q4", "lib64 is chosen by content"), quirk("Q19", "no `-I/include/`")];
        for answer in &mut report.features {
            if answer.id == FeatureId::Cuda12_8 {
                answer.verdict = Verdict::No;
            }
        }
        report
    }

    #[test]
    fn strict_tables() {
        let dir = Some(Utf8Path::new("/home/me/build"));
        insta::with_settings!({ snapshot_path => "../../tests/snapshots/ui" }, {
            insta::assert_snapshot!("summary", plain(&fixtures::report(), dir));
            insta::assert_snapshot!("summary-without-cuda", plain(&without_cuda(), dir));
            insta::assert_snapshot!("summary-odd", plain(&odd(), None));
        });
        assert!(plain(&odd(), dir).lines().all(|line| line.trim_end() == line));
    }

    #[test]
    fn compat_lines_are_the_originals() {
        let mut report = fixtures::compat();
        report.answers.defines = vec![
            fixtures::define("uct_MODULES", Some("\":cuda:cma\""), "M."),
            fixtures::define("uct_cuda_MODULES", Some("\":gdrcopy\""), "M."),
            fixtures::define("ucm_MODULES", Some("\"\""), "M."),
        ];
        // As recorded of the original, but for the last line, which a report
        // without that macro gets.
        assert_eq!(
            summary(&report, None, None),
            "configure: io_demo CUDA support:   no\n\
             configure:          UCT modules:   < cuda cma >\n\
             configure:         CUDA modules:   < gdrcopy >\n\
             configure:          UCM modules:   < >\n\
             configure:         Perf modules:   < >\n"
        );
        report.iodemo_cuda = true;
        assert!(
            summary(&report, None, None).starts_with("configure: io_demo CUDA support:   yes\n")
        );
    }
}
