//! Reads the keys `shape`, `impair` and `trace` of a port in a gateway's file, with quantities written as in
//! `tc`.
//!
//! ```toml
//! [[port]]
//! interface = "eth0"
//! shape = { rate = "100Mbit", burst = "64KiB", queue = "1MiB" }
//! impair = { delay = "10ms", jitter = "2ms", distribution = "normal", loss = "1%", seed = 1, direction = "both" }
//! trace = "eth0.pcapng"
//! trace_size = "256MiB"
//! ```

use ports::live::Middleware;
use ports::live::impair::{Bursts, Distribution, Impair};
use ports::live::shape::ShapeSettings;
use ports::live::trace::PortTrace;
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// What is wrong, and where in the file.
pub(crate) type Wrong = (Range<usize>, String);

/// The longest queue, in bytes, and the longest delay, in nanoseconds: a larger number is more likely a
/// mistake than intended.
const LONGEST_QUEUE: u64 = 1 << 30;
const LONGEST_DELAY: u64 = 3_600_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileShape {
    rate: Spanned<String>,
    burst: Option<Spanned<String>>,
    queue: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileImpair {
    delay: Option<Spanned<String>>,
    jitter: Option<Spanned<String>>,
    distribution: Option<Spanned<FileDistribution>>,
    correlation: Option<Spanned<String>>,
    loss: Option<Spanned<String>>,
    gemodel: Option<FileBursts>,
    reorder: Option<Spanned<String>>,
    gap: Option<Spanned<u32>>,
    duplicate: Option<Spanned<String>>,
    corrupt: Option<Spanned<String>>,
    seed: Option<u64>,
    queue: Option<Spanned<String>>,
    #[serde(default)]
    direction: Direction,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBursts {
    p: Spanned<String>,
    r: Option<Spanned<String>>,
    #[serde(rename = "1-h")]
    loss_bad: Option<Spanned<String>>,
    #[serde(rename = "1-k")]
    loss_good: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileDistribution {
    Uniform,
    Normal,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[default]
    Out,
    In,
    Both,
}

/// Reads these keys from a port's table; relative paths are relative to `directory`.
pub(crate) fn read(
    shape: Option<FileShape>,
    impair: Option<FileImpair>,
    trace: Option<Spanned<String>>,
    trace_size: Option<Spanned<String>>,
    directory: &Path,
) -> Result<Middleware, Wrong> {
    let impair = impair.map(|impair| impair.read()).transpose()?;
    let towards = |wanted| {
        impair
            .filter(|&(_, direction)| direction == wanted || direction == Direction::Both)
            .map(|(impair, _)| impair)
    };
    Ok(Middleware {
        shape: shape.map(|shape| shape.read()).transpose()?,
        impair_out: towards(Direction::Out),
        impair_in: towards(Direction::In),
        trace: read_trace(trace, trace_size, directory)?,
    })
}

fn read_trace(
    trace: Option<Spanned<String>>,
    size: Option<Spanned<String>>,
    directory: &Path,
) -> Result<Option<PortTrace>, Wrong> {
    let size = match (&trace, size) {
        (None, Some(size)) => return Err((size.span(), "`trace_size` without `trace`".to_owned())),
        (_, None) => 256 << 20,
        (_, Some(size)) => bounded(&size, bytes(&size)?, 4096, u64::MAX, "4KiB")?,
    };
    match trace {
        None => Ok(None),
        Some(file) if file.get_ref().is_empty() => Err((file.span(), "`trace` names no file".to_owned())),
        Some(file) => Ok(Some(PortTrace { file: directory.join(file.into_inner()), size })),
    }
}

impl FileShape {
    fn read(&self) -> Result<ShapeSettings, Wrong> {
        let rate = bounded(&self.rate, rate(&self.rate)?, 1, u64::MAX, "1bit")?;
        let burst = self.burst.as_ref().map_or(Ok(64 << 10), bytes)?;
        Ok(ShapeSettings { rate, burst, queue: queue(self.queue.as_ref(), 1 << 20)? })
    }
}

impl FileImpair {
    fn read(&self) -> Result<(Impair, Direction), Wrong> {
        let default = Impair::default();
        let share = |what: &Option<Spanned<String>>| what.as_ref().map_or(Ok(0.0), share);
        let time = |what: &Option<Spanned<String>>| what.as_ref().map_or(Ok(0), time);
        let (delay, jitter) = (time(&self.delay)?, time(&self.jitter)?);
        let distribution = match self.distribution.as_ref().map(|own| *own.get_ref()) {
            Some(FileDistribution::Normal) => Distribution::Normal,
            Some(FileDistribution::Uniform) | None => Distribution::Uniform,
        };
        let needs = |span: Option<Range<usize>>, there: bool, what: &str, other: &str| match span {
            Some(span) if !there => {
                Err((span, format!("`{what}` changes nothing without `{other}`; say how long, as \"10ms\"")))
            }
            _ => Ok(()),
        };
        needs(self.distribution.as_ref().map(Spanned::span), jitter > 0, "distribution", "jitter")?;
        needs(self.correlation.as_ref().map(Spanned::span), jitter > 0, "correlation", "jitter")?;
        needs(self.reorder.as_ref().map(Spanned::span), delay > 0, "reorder", "delay")?;
        if let (Some(own), Distribution::Uniform) =
            (self.jitter.as_ref().filter(|_| jitter > delay), distribution)
        {
            let message = "`jitter` is longer than `delay`, and no packet leaves before it came";
            return Err((own.span(), message.to_owned()));
        }
        match &self.gap {
            Some(gap) if *gap.get_ref() == 0 => {
                return Err((gap.span(), "`gap` counts packets from 1".to_owned()));
            }
            Some(gap) if self.reorder.is_none() => {
                return Err((gap.span(), "`gap` changes nothing without `reorder`".to_owned()));
            }
            _ => {}
        }
        let impair = Impair {
            delay,
            jitter,
            distribution,
            correlation: share(&self.correlation)?,
            loss: share(&self.loss)?,
            bursts: self.gemodel.as_ref().map(FileBursts::read).transpose()?,
            reorder: share(&self.reorder)?,
            gap: self.gap.as_ref().map_or(1, |gap| *gap.get_ref()),
            duplicate: share(&self.duplicate)?,
            corrupt: share(&self.corrupt)?,
            seed: self.seed.unwrap_or(default.seed),
            queue: queue(self.queue.as_ref(), default.queue)?,
        };
        Ok((impair, self.direction))
    }
}

impl FileBursts {
    /// Keys that are left out have the values of netem: the line is bad for one packet, loses all packets
    /// while it is bad, and none while it is good.
    fn read(&self) -> Result<Bursts, Wrong> {
        let to_bad = share(&self.p)?;
        Ok(Bursts {
            to_bad,
            to_good: self.r.as_ref().map_or(Ok(1.0 - to_bad), share)?,
            loss_bad: self.loss_bad.as_ref().map_or(Ok(1.0), share)?,
            loss_good: self.loss_good.as_ref().map_or(Ok(0.0), share)?,
        })
    }
}

fn queue(what: Option<&Spanned<String>>, default: usize) -> Result<usize, Wrong> {
    match what {
        None => Ok(default),
        Some(what) => Ok(bounded(what, bytes(what)?, 0, LONGEST_QUEUE, "0B and 1GiB")? as usize),
    }
}

fn bounded(what: &Spanned<String>, value: u64, least: u64, most: u64, words: &str) -> Result<u64, Wrong> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let bound = if most == u64::MAX { "at least" } else { "between" };
    Err((what.span(), format!("`{}`: {bound} {words}", what.get_ref())))
}

/// Bits a second: "100Mbit", "1.5Gbit", "10kbit"; "MBps" and its like are bytes, as for `tc`.
fn rate(what: &Spanned<String>) -> Result<u64, Wrong> {
    const UNITS: [(&str, f64); 10] = [
        ("bit", 1.0),
        ("kbit", 1e3),
        ("mbit", 1e6),
        ("gbit", 1e9),
        ("tbit", 1e12),
        ("bps", 8.0),
        ("kbps", 8e3),
        ("mbps", 8e6),
        ("gbps", 8e9),
        ("tbps", 8e12),
    ];
    quantity(what, &UNITS, "a rate, as \"100Mbit\" (bits a second; \"bps\" is bytes)")
}

fn bytes(what: &Spanned<String>) -> Result<u64, Wrong> {
    const UNITS: [(&str, f64); 7] = [
        ("b", 1.0),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("kib", 1024.0),
        ("mib", 1048576.0),
        ("gib", 1073741824.0),
    ];
    quantity(what, &UNITS, "a size, as \"64KiB\"")
}

fn time(what: &Spanned<String>) -> Result<u64, Wrong> {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let time = quantity(what, &UNITS, "a time, as \"10ms\"")?;
    bounded(what, time, 0, LONGEST_DELAY, "0ns and 3600s")
}

fn quantity(what: &Spanned<String>, units: &[(&str, f64)], wanted: &str) -> Result<u64, Wrong> {
    let text = what.get_ref().trim();
    let digits = text.find(|character: char| !character.is_ascii_digit() && character != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    match (number.parse::<f64>(), factor) {
        (Ok(number), Some(factor)) if number * factor < 9e18 => Ok((number * factor).round() as u64),
        _ => Err((what.span(), format!("`{text}` is not {wanted}"))),
    }
}

/// A share: "1%", "0.25%".
fn share(what: &Spanned<String>) -> Result<f64, Wrong> {
    let text = what.get_ref().trim();
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err((what.span(), format!("`{text}` is not a share, as \"1%\", between 0% and 100%"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn port(lines: &str) -> Result<Middleware, String> {
        let text = format!("program = \"p\"\n[[port]]\ninterface = \"x\"\n{lines}\n");
        Config::read(&text, Path::new("/etc"))
            .map(|mut config| config.ports.remove(0).middleware)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn everything_that_can_be_said() {
        assert_eq!(port(""), Ok(Middleware::default()));
        let all = port(
            "shape = { rate = \"1.5Mbit\", burst = \"10kB\", queue = \"2MiB\" }\n\
             impair = { delay = \"10ms\", jitter = \"2ms\", distribution = \"normal\", correlation = \"25%\", loss = \"1%\", \
             gemodel = { p = \"1%\", r = \"10%\", 1-h = \"90%\", 1-k = \"0.1%\" }, reorder = \"5%\", gap = 5, duplicate = \"2%\", \
             corrupt = \"0.5%\", seed = 7, queue = \"1MiB\", direction = \"both\" }\n\
             trace = \"x.pcapng\"\ntrace_size = \"1GiB\"",
        );
        let impair = Impair {
            delay: 10_000_000,
            jitter: 2_000_000,
            distribution: Distribution::Normal,
            correlation: 0.25,
            loss: 0.01,
            bursts: Some(Bursts { to_bad: 0.01, to_good: 0.1, loss_bad: 0.9, loss_good: 0.001 }),
            reorder: 0.05,
            gap: 5,
            duplicate: 0.02,
            corrupt: 0.005,
            seed: 7,
            queue: 1 << 20,
        };
        assert_eq!(
            all,
            Ok(Middleware {
                shape: Some(ShapeSettings { rate: 1_500_000, burst: 10_000, queue: 2 << 20 }),
                impair_out: Some(impair),
                impair_in: Some(impair),
                trace: Some(PortTrace { file: "/etc/x.pcapng".into(), size: 1 << 30 }),
            })
        );
    }

    #[test]
    fn what_is_left_out_has_a_meaning() {
        let said = port("shape = { rate = \"8bps\" }\nimpair = { gemodel = { p = \"4%\" } }\ntrace = \"/x\"")
            .expect("is right");
        assert_eq!(said.shape, Some(ShapeSettings { rate: 64, burst: 64 << 10, queue: 1 << 20 }));
        let bursts = Bursts { to_bad: 0.04, to_good: 0.96, loss_bad: 1.0, loss_good: 0.0 };
        assert_eq!(said.impair_out, Some(Impair { bursts: Some(bursts), ..Impair::default() }));
        assert_eq!(
            (said.impair_in, said.trace),
            (None, Some(PortTrace { file: "/x".into(), size: 256 << 20 }))
        );
    }

    #[test]
    fn what_is_impossible_is_shown_where_it_is() {
        let cases = [
            ("shape = { rate = \"fast\" }", "line 4, column 18: `fast` is not a rate, as \"100Mbit\""),
            ("shape = { rate = \"0bit\" }", "line 4, column 18: `0bit`: at least 1bit"),
            ("shape = { rate = \"100\" }", "line 4, column 18: `100` is not a rate"),
            ("shape = { burst = \"1B\" }", "line 4, column 9: missing field `rate`"),
            (
                "shape = { rate = \"1bit\", queue = \"2GiB\" }",
                "line 4, column 34: `2GiB`: between 0B and 1GiB",
            ),
            ("shape = { rate = \"1bit\", limit = 1 }", "line 4, column 26: unknown field `limit`"),
            ("impair = { delay = 10 }", "line 4, column 20: invalid type: integer `10`, expected a string"),
            ("impair = { delay = \"10\" }", "line 4, column 20: `10` is not a time, as \"10ms\""),
            ("impair = { delay = \"2h\" }", "line 4, column 20: `2h` is not a time"),
            ("impair = { delay = \"4000s\" }", "line 4, column 20: `4000s`: between 0ns and 3600s"),
            ("impair = { loss = \"101%\" }", "line 4, column 19: `101%` is not a share"),
            ("impair = { loss = \"0.1\" }", "line 4, column 19: `0.1` is not a share, as \"1%\""),
            ("impair = { reorder = \"1%\" }", "line 4, column 22: `reorder` changes nothing without `delay`"),
            ("impair = { correlation = \"1%\" }", "line 4, column 26: `correlation` changes nothing without"),
            ("impair = { distribution = \"pareto\" }", "line 4, column 27: unknown variant `pareto`"),
            ("impair = { jitter = \"1ms\" }", "line 4, column 21: `jitter` is longer than `delay`"),
            ("impair = { gap = 2 }", "line 4, column 18: `gap` changes nothing without `reorder`"),
            ("impair = { delay = \"1s\", reorder = \"1%\", gap = 0 }", "line 4, column 48: `gap` counts"),
            ("impair = { direction = \"up\" }", "line 4, column 24: unknown variant `up`"),
            ("impair = { gemodel = { r = \"1%\" } }", "line 4, column 22: missing field `p`"),
            ("trace = \"\"", "line 4, column 9: `trace` names no file"),
            (
                "trace = \"x\"\n[[port]]\ninterface = \"other\"\ntrace = \"x\"",
                "line 7, column 9: `trace`: port 1 writes this file",
            ),
            ("trace_size = \"1MB\"", "line 4, column 14: `trace_size` without `trace`"),
            ("trace = \"x\"\ntrace_size = \"1B\"", "line 5, column 14: `1B`: at least 4KiB"),
        ];
        for (lines, wanted) in cases {
            let error = port(lines).expect_err(lines);
            assert!(error.starts_with(wanted), "{lines:?} gives {error}");
        }
    }
}
