//! How results are written.

use std::fmt::Write;

use clap::ValueEnum;
use serde_json::json;

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Csv,
    Json,
}

/// What was measured for one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) size: usize,
    /// For each copy.
    pub(crate) seconds: f64,
}

impl Point {
    fn rate(self) -> f64 {
        1.0 / self.seconds
    }

    fn gigabytes(self) -> f64 {
        self.size as f64 / self.seconds / 1e9
    }
}

/// Writes all points to standard output.
pub(crate) fn write(format: Format, points: &[Point]) {
    match format {
        Format::Text => {
            println!("{:>12} {:>12} {:>14} {:>10}", "bytes", "us each", "copies/s", "GB/s");
            for point in points {
                let (us, rate) = (point.seconds * 1e6, point.rate());
                println!("{:>12} {us:>12.3} {rate:>14.0} {:>10.3}", point.size, point.gigabytes());
            }
        }
        Format::Csv => {
            println!("bytes,microseconds,copies_per_second,gigabytes_per_second");
            for point in points {
                let (us, rate) = (point.seconds * 1e6, point.rate());
                println!("{},{us:.4},{rate:.1},{:.4}", point.size, point.gigabytes());
            }
        }
        Format::Json => {
            let row = |point: &Point| {
                json!({"bytes": point.size, "microseconds": point.seconds * 1e6,
                       "copies_per_second": point.rate(), "gigabytes_per_second": point.gigabytes()})
            };
            println!("{:#}", json!(points.iter().map(row).collect::<Vec<_>>()));
        }
    }
}

/// The bandwidth over the size, both by powers, as a picture.
pub(crate) fn svg(points: &[Point]) -> String {
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 400.0;
    const EDGE: f64 = 50.0;
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|point| ((point.size as f64).log2(), point.gigabytes().max(1e-9).log10()))
        .collect();
    let span = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low < high { (low, high) } else { (low - 1.0, low + 1.0) }
    };
    let (left, right) = span(&mut logs.iter().map(|log| log.0));
    let (bottom, top) = span(&mut logs.iter().map(|log| log.1));
    let x = |log: f64| EDGE + (log - left) / (right - left) * (WIDTH - 2.0 * EDGE);
    let y = |log: f64| HEIGHT - EDGE - (log - bottom) / (top - bottom) * (HEIGHT - 2.0 * EDGE);
    let mut line = String::new();
    let mut marks = String::new();
    for (log, point) in logs.iter().zip(points) {
        let (x, y) = (x(log.0), y(log.1));
        let _ = write!(line, "{x:.1},{y:.1} ");
        let title = format!("{} bytes: {:.3} GB/s", point.size, point.gigabytes());
        let _ = writeln!(
            marks,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3"><title>{title}</title></circle>"#
        );
    }
    let (low, high) = (10_f64.powf(bottom), 10_f64.powf(top));
    let (first, last) = (2_f64.powf(left), 2_f64.powf(right));
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>
<path d="M{EDGE} {EDGE}V{b}H{r}" fill="none" stroke="black"/>
<polyline points="{line}" fill="none" stroke="steelblue" stroke-width="2"/>
{marks}<text x="{EDGE}" y="{under}">{first:.0} bytes</text>
<text x="{r}" y="{under}" text-anchor="end">{last:.0} bytes</text>
<text x="4" y="{b}">{low:.3}</text>
<text x="4" y="{EDGE}">{high:.3} GB/s</text>
</svg>
"#,
        b = HEIGHT - EDGE,
        r = WIDTH - EDGE,
        under = HEIGHT - EDGE + 18.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_holds_every_point() {
        let points = [8, 64, 512].map(|size| Point { size, seconds: 1e-6 });
        let picture = svg(&points);
        assert_eq!(picture.matches("<circle").count(), 3);
        assert!(picture.contains("512 bytes: 0.512 GB/s"));
        assert!(!svg(&points[..1]).contains("NaN"));
    }
}
