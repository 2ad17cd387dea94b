//! The forms of value that UCX's variables have.

/// A form of value.
pub(super) trait Parse: Sized {
    /// The value of `text`, or what it should have been.
    fn parse(text: &str) -> Result<Self, String>;
}

/// The value of a default, which a test has held to make sense.
pub(super) fn default<T: Parse>(text: &str) -> T {
    match T::parse(text) {
        Ok(value) => value,
        Err(expected) => unreachable!("the default `{text}` is not {expected}"),
    }
}

/// Whether `text` is one of `known`, in upper or lower case, or a list of them with `between`
/// them; NUL: one alone.
pub(super) fn words(text: &str, known: &[&str], between: char) -> Result<(), String> {
    let is_known = |word: &str| known.iter().any(|known| word.trim().eq_ignore_ascii_case(known));
    let names = || known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    match between {
        '\0' if is_known(text) => Ok(()),
        '\0' => Err(format!("one of {}", names())),
        _ if text.split(between).all(is_known) => Ok(()),
        _ => Err(format!("a list of {}", names())),
    }
}

/// Yes, no, or as it can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ternary {
    /// It has to be.
    Yes,
    /// It must not be.
    No,
    /// If it can be had.
    Try,
}

/// A limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So many.
    At(usize),
    /// Any number.
    Infinite,
}

impl Limit {
    /// Whether `number` is more than allowed.
    pub fn is_exceeded_by(self, number: usize) -> bool {
        matches!(self, Self::At(limit) if number > limit)
    }
}

/// A number, or what seems best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Auto {
    /// What seems best.
    Auto,
    /// This.
    Value(f64),
}

/// A way to fetch file descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetching {
    /// By number.
    Pidfd,
    /// Over a socket.
    Socket,
    /// By number, and where that is refused over a socket.
    Try,
}

impl Parse for Fetching {
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "pidfd" => Ok(Self::Pidfd),
            "socket" => Ok(Self::Socket),
            "try" => Ok(Self::Try),
            _ => Err("`pidfd`, `socket` or `try`".into()),
        }
    }
}

/// Bytes a second, one value for all directions and others for some.
#[derive(Debug, Clone, PartialEq)]
pub struct Bandwidths {
    other: f64,
    named: Vec<(String, f64)>,
}

impl Bandwidths {
    /// The bandwidth of the direction with this name.
    pub fn get(&self, name: &str) -> f64 {
        self.named.iter().find(|named| named.0 == name).map_or(self.other, |named| named.1)
    }
}

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub f64);

/// Seconds for each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    /// Reading.
    pub get: f64,
    /// Writing.
    pub put: f64,
}

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl Parse for bool {
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "y" | "yes" | "on" | "1" => Ok(true),
            "n" | "no" | "off" | "0" => Ok(false),
            _ => Err("`y` or `n`".into()),
        }
    }
}

impl Parse for Ternary {
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "try" | "maybe" | "auto" => Ok(Self::Try),
            other => match bool::parse(other) {
                Ok(true) => Ok(Self::Yes),
                Ok(false) => Ok(Self::No),
                Err(_) => Err("`y`, `n`, `try` or `auto`".into()),
            },
        }
    }
}

impl Parse for u32 {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "a whole number".into())
    }
}

impl Parse for f64 {
    fn parse(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| "a number that is not negative".into())
    }
}

impl Parse for Limit {
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "inf" => Ok(Self::Infinite),
            other => match Bytes::parse(other) {
                Ok(bytes) => Ok(Self::At(bytes.0)),
                Err(_) => Err("a whole number or `inf`".into()),
            },
        }
    }
}

impl Parse for Auto {
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            _ => f64::parse(text)
                .or_else(|_| bandwidth(text).ok_or(()))
                .map(Self::Value)
                .map_err(|()| "a number or `auto`".into()),
        }
    }
}

impl Parse for Bytes {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = || "a number of bytes, such as `64k` or `2m`".to_owned();
        let lower = text.to_ascii_lowercase();
        let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match &lower[digits.len()..] {
            "" | "b" => 0,
            "k" | "kb" => 10,
            "m" | "mb" => 20,
            "g" | "gb" => 30,
            _ => return Err(expected()),
        };
        let number: usize = digits.parse().map_err(|_| expected())?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(expected)
    }
}

impl Parse for Seconds {
    fn parse(text: &str) -> Result<Self, String> {
        let split = text.find(['m', 'u', 'n', 's']).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let scale = match unit {
            "" | "s" => 1.0,
            "ms" => 1e-3,
            "us" => 1e-6,
            "ns" => 1e-9,
            _ => return Err("a time, such as `1.8us`".into()),
        };
        let number = f64::parse(number).map_err(|_| "a time, such as `1.8us`".to_owned())?;
        Ok(Self(number * scale))
    }
}

impl Parse for Bandwidths {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = || "a list such as `10000MBs,h2d:8300MBs`".to_owned();
        let mut all = Self { other: 0.0, named: Vec::new() };
        for part in text.split(',').map(str::trim) {
            match part.split_once(':') {
                Some((name, value)) => {
                    all.named.push((name.to_owned(), bandwidth(value).ok_or_else(expected)?));
                }
                None => all.other = bandwidth(part).ok_or_else(expected)?,
            }
        }
        Ok(all)
    }
}

impl Parse for Latencies {
    fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self { get: 0.0, put: 0.0 };
        for part in text.split(',').map(str::trim) {
            let (name, value) = part.split_once(':').unwrap_or(("", part));
            let Seconds(value) = Seconds::parse(value)?;
            match name {
                "get" => all.get = value,
                "put" => all.put = value,
                "" => all = Self { get: value, put: value },
                _ => return Err("a list such as `get:1.4e-6,put:0.4e-6`".into()),
            }
        }
        Ok(all)
    }
}

/// Bytes a second: UCX's units are powers of two below `T`, but its defaults are meant as
/// round figures, and estimates of one per cent more or less decide nothing.
fn bandwidth(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let bits = unit.contains('b');
    let scale =
        match unit.trim_end_matches("ps").trim_end_matches('s').to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "t" | "tb" => 1e12,
            _ => return None,
        };
    let number = f64::parse(number).ok()?;
    Some(number * scale / if bits { 8.0 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_rates() {
        assert_eq!(Bytes::parse("64k"), Ok(Bytes(65536)));
        assert!(Bytes::parse("k").is_err() && Bytes::parse("9999999999999g").is_err());
        assert!((Seconds::parse("1.8us").unwrap().0 - 1.8e-6).abs() < 1e-12);
        assert!((Seconds::parse("1.4e-6").unwrap().0 - 1.4e-6).abs() < 1e-12);
        assert!(Seconds::parse("1 fortnight").is_err());
        assert_eq!(bandwidth("8300MBs"), Some(8.3e9));
        assert_eq!(bandwidth("8Gbps"), Some(1e9));
        assert_eq!(bandwidth("fast"), None);
        assert_eq!(Latencies::parse("get:1ms,put:2ms"), Ok(Latencies { get: 1e-3, put: 2e-3 }));
        assert!(Limit::At(3).is_exceeded_by(4) && !Limit::Infinite.is_exceeded_by(usize::MAX));
        assert_eq!(Ternary::parse("auto"), Ok(Ternary::Try));
        assert_eq!(Auto::parse("2TBs"), Ok(Auto::Value(2e12)));
    }
}
