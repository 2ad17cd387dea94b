//! Everything the project has set itself as goals, in one run.

use std::hint::black_box;
use std::time::Instant;

use hook_runtime::event::{Event, EventKind, MemoryClass};
use hook_runtime::memtype::{Kind, Lookup, MemoryTypes};
use hook_runtime::transport::CopyError;
use hook_runtime::transport::settings::Settings;
use serde_json::json;

use crate::buffer::{Form, Session};
use crate::check::{self, Random};
use crate::measure::{Maker, Test};
use crate::report::Format;

/// What a measured figure is held against.
#[derive(Debug, Clone, Copy)]
enum Goal {
    /// At least this share of what raw copies do.
    OfRaw(f64),
    /// At least so many copies a second.
    Rate(f64),
}

struct Row {
    what: &'static str,
    from: Kind,
    to: Kind,
    size: usize,
    window: usize,
    goal: Goal,
    /// The destination belongs to a second process, which allocates so.
    remote: Option<Form>,
}

const LARGE: usize = 64 << 20;
/// Twice what UCX 1.19.0 does on an H200.
const SMALL: Goal = Goal::Rate(370_000.0);

const fn row(
    what: &'static str,
    path: (Kind, Kind),
    size: usize,
    window: usize,
    goal: Goal,
) -> Row {
    Row { what, from: path.0, to: path.1, size, window, goal, remote: None }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("device to device, 64 MiB", (Kind::Device, Kind::Device), LARGE, 16, Goal::OfRaw(0.99)),
    Row { remote: Some(Form::Plain), ..row("to another process, 64 MiB", (Kind::Device, Kind::Device), LARGE, 16, Goal::OfRaw(0.99)) },
    Row { remote: Some(Form::Mapped), ..row("to another's mapped memory, 64 MiB", (Kind::Device, Kind::Device), LARGE, 16, Goal::OfRaw(0.99)) },
    Row { remote: Some(Form::Pool), ..row("to another's pool, 64 MiB", (Kind::Device, Kind::Device), LARGE, 16, Goal::OfRaw(0.99)) },
    row("device to device, 8 B", (Kind::Device, Kind::Device), 8, 32, SMALL),
    row("device to device, 64 B", (Kind::Device, Kind::Device), 64, 32, SMALL),
    row("device to device, 512 B", (Kind::Device, Kind::Device), 512, 32, SMALL),
    row("device to device, 4 KiB", (Kind::Device, Kind::Device), 4096, 32, SMALL),
    row("pinned to device, 8 B", (Kind::Pinned, Kind::Device), 8, 32, Goal::Rate(900_000.0)),
    row("device to pinned, 8 B", (Kind::Device, Kind::Pinned), 8, 32, Goal::Rate(900_000.0)),
    row("pinned to device, 64 MiB", (Kind::Pinned, Kind::Device), LARGE, 4, Goal::OfRaw(0.99)),
    row("device to pinned, 64 MiB", (Kind::Device, Kind::Pinned), LARGE, 4, Goal::OfRaw(0.99)),
    row("pageable to device, 64 MiB", (Kind::Host, Kind::Device), LARGE, 1, Goal::OfRaw(4.0)),
    row("device to pageable, 64 MiB", (Kind::Device, Kind::Host), LARGE, 1, Goal::OfRaw(1.0)),
];

struct Result_ {
    what: String,
    raw: f64,
    ours: f64,
    unit: &'static str,
    met: bool,
}

/// Runs everything. False if bytes were wrong.
pub(crate) fn run(session: &Session, format: Format, milliseconds: u64) -> Result<bool, String> {
    let text = |error: CopyError| error.to_string();
    let (mut wrong, copies) = check::pairs(session).map_err(text)?;
    if !check::remote(session, session.device, Form::Plain)? {
        wrong.push((Kind::Device, Kind::Device));
    }
    let mut results: Vec<_> = lookups();
    for row in ROWS {
        match measure(session, row, milliseconds) {
            Ok(result) => results.push(result),
            // Not every driver shares every form of memory.
            Err(error) if row.remote.is_some_and(|form| form != Form::Plain) => {
                eprintln!("warning: {}: {error}", row.what);
            }
            Err(error) => return Err(text(error)),
        }
    }
    match format {
        Format::Json => {
            let row = |result: &Result_| {
                json!({"what": result.what, "raw": result.raw, "ours": result.ours,
                       "unit": result.unit, "met": result.met})
            };
            let rows: Vec<_> = results.iter().map(row).collect();
            let wrong: Vec<_> = wrong.iter().map(|pair| format!("{pair:?}")).collect();
            println!(
                "{:#}",
                json!({"device": session.device_name(), "driver": session.driver.version,
                       "wrong": wrong, "copies_for_each_pair": copies, "goals": rows})
            );
        }
        Format::Csv => {
            println!("what,raw,ours,unit,met");
            for r in &results {
                println!("\"{}\",{:.4},{:.4},{},{}", r.what, r.raw, r.ours, r.unit, r.met);
            }
        }
        Format::Text => {
            println!("{}, driver {}", session.device_name(), session.driver.version);
            let pairs = check::KINDS.len().pow(2);
            match wrong.is_empty() {
                true => println!("bytes: right in {copies} copies for each of {pairs} pairs"),
                false => println!("bytes: WRONG for {wrong:?}"),
            }
            println!("{:34} {:>12} {:>12}  {:5}", "", "raw", "ours", "");
            for r in &results {
                let met = if r.met { "met" } else { "missed" };
                println!("{:34} {:>12.2} {:>12.2}  {:12} {met}", r.what, r.raw, r.ours, r.unit);
            }
        }
    }
    Ok(wrong.is_empty())
}

fn measure(session: &Session, row: &Row, milliseconds: u64) -> Result<Result_, CopyError> {
    let settings = Settings::from_environment();
    let both = (session, session);
    let mut maker = match row.remote {
        Some(form) => {
            Maker::remote(session, (session.device, form), row.size, row.window, settings)?
        }
        None => Maker::transport(both, row.from, row.to, row.size, row.window, settings)?,
    };
    let ours = maker.measure(Test::Rate, row.window, milliseconds)?;
    maker.by_driver(session, row.window)?;
    let raw = maker.measure(Test::Rate, row.window, milliseconds)?;
    let large = row.size >= 1 << 20;
    let figure = |seconds: f64| match large {
        true => row.size as f64 / seconds / 1e9,
        false => 1e-3 / seconds,
    };
    let met = match row.goal {
        Goal::OfRaw(share) => ours <= raw / share,
        Goal::Rate(rate) => 1.0 / ours >= rate,
    };
    let unit = if large { "GB/s" } else { "thousand/s" };
    Ok(Result_ { what: row.what.to_owned(), raw: figure(raw), ours: figure(ours), unit, met })
}

/// Hits among a thousand regions with one and with more threads; "raw" is the reference,
/// UCX 1.19.0: 13 ns with one thread, 29 ns each with two.
fn lookups() -> Vec<Result_> {
    const REGIONS: usize = 1000;
    const GOAL: f64 = 8.0;
    let types = MemoryTypes::new();
    types.trust(true);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut address = 0x7f12_3400_0000;
    let mut questions = Vec::new();
    for _ in 0..REGIONS {
        let size = 512 * (1 + random.next() % 8192);
        let (kind, class) = (EventKind::Allocated, MemoryClass::Device);
        types.note(&Event { kind, address, size, class, symbol: c"self-test" });
        questions.push(address + random.next() % size);
        address += size + 512 * (random.next() % 64);
    }
    for place in (1..questions.len()).rev() {
        questions.swap(place, random.next() % (place + 1));
    }
    let one = || {
        let mut best = f64::MAX;
        for _ in 0..100 {
            let started = Instant::now();
            for _ in 0..5 {
                for &question in &questions {
                    let known = types.lookup(black_box(question), 1);
                    assert!(matches!(known, Lookup::Known(_)), "every one is a hit");
                }
            }
            best = best.min(started.elapsed().as_nanos() as f64 / (5 * REGIONS) as f64);
        }
        best
    };
    let several = |threads: usize| -> f64 {
        let sum: f64 = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).sum()
        });
        sum / threads as f64
    };
    let row = |threads: usize, raw: f64| {
        let what = format!("memory type, hit among 1,000, {threads} threads");
        let ours = several(threads);
        Result_ { what, raw, ours, unit: "ns", met: ours <= GOAL }
    };
    vec![row(1, 13.0), row(2, 29.0), row(8, 29.0)]
}
