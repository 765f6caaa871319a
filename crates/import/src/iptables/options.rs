//! Matches that remember earlier packets, or ask what only the machine knows, and targets that write logs: a
//! policy keeps their words, and looks into their options no further than to refuse what iptables would.

use super::numbers::parse_number;
use super::values;
use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::text::shown;
use policy::State;

/// The options of a match or a target.
pub(super) struct OptionSet {
    of: &'static str,
    known: &'static [Known],
    /// Of each of these groups one option must be there, and not two.
    needed: &'static [&'static [&'static str]],
    /// Options that exclude each other.
    exclusive: &'static [&'static [&'static str]],
    /// Options that mean something beside one of others only.
    beside: &'static [(&'static str, &'static [&'static str])],
    /// Whether it needs the table of connections.
    pub(super) asks_connections: bool,
    /// The states of the packets that it asks about; none where it asks about all. Without its `!`, others do
    /// not match, with it they do.
    pub(super) states: &'static [State],
}

struct Known {
    name: &'static str,
    value: OptionValue,
    /// Whether it may be turned round.
    turned: bool,
}

/// What the options of a match or target say.
pub(super) struct OptionValues<'a> {
    /// Whether one is turned round.
    pub(super) turned: bool,
    values: Vec<(&'static str, Argument<'a>)>,
}

impl OptionValues<'_> {
    /// What stands behind an option.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(own, _)| *own == name).map(|(_, value)| &*value.text)
    }
}

/// What stands behind an option.
enum OptionValue {
    Nothing,
    /// A number between these.
    Number(u64, u64),
    /// A number from 0 to 1, such as `0.5`.
    Probability,
    /// What a rate of an estimator is compared with, such as `5kbit`, or nothing: so many packets a second.
    Measure,
    /// The same, so many bits or bytes a second.
    MeasureOfBits,
    /// Two numbers up to this, `FROM:TO`, either of which may be missing.
    Between(u64),
    /// Packets in a time, such as `3/hour`, at most this many in a second.
    Rate(u64),
    /// The same, or bytes in a second, such as `40kb/s`.
    RateOrBytes,
    /// A number of packets, or bytes such as `400kb`.
    Burst,
    /// At most so many bytes of text.
    Text(usize),
    OneOf(&'static [&'static str]),
    /// Some of these, between commas.
    SomeOf(&'static [&'static str]),
    /// A mask of addresses, or the length of one.
    Mask,
}

const fn known(name: &'static str, value: OptionValue) -> Known {
    Known { name, value, turned: false }
}

const fn turned(name: &'static str, value: OptionValue) -> Known {
    Known { name, value, turned: true }
}

const PLAIN: OptionSet = OptionSet {
    of: "",
    known: &[],
    needed: &[],
    exclusive: &[],
    beside: &[],
    asks_connections: false,
    states: &[],
};

const U32: u64 = u32::MAX as u64;

/// The rates that `rateest` compares.
const MEASURES: &[&str] = &[
    "--rateest-bps",
    "--rateest-pps",
    "--rateest-bps1",
    "--rateest-pps1",
    "--rateest-bps2",
    "--rateest-pps2",
];

/// Matches whose answer depends on earlier packets, on chance, or on routes.
const REMEMBERING: [OptionSet; 11] = [
    OptionSet {
        of: "limit",
        known: &[
            known("--limit", OptionValue::Rate(10_000)),
            known("--limit-burst", OptionValue::Number(0, 10_000)),
        ],
        ..PLAIN
    },
    OptionSet {
        of: "hashlimit",
        known: &[
            turned("--hashlimit", OptionValue::RateOrBytes),
            turned("--hashlimit-upto", OptionValue::RateOrBytes),
            turned("--hashlimit-above", OptionValue::RateOrBytes),
            known("--hashlimit-burst", OptionValue::Burst),
            known("--hashlimit-mode", OptionValue::SomeOf(&["srcip", "srcport", "dstip", "dstport"])),
            known("--hashlimit-srcmask", OptionValue::Number(0, 128)),
            known("--hashlimit-dstmask", OptionValue::Number(0, 128)),
            known("--hashlimit-name", OptionValue::Text(254)),
            known("--hashlimit-htable-size", OptionValue::Number(0, U32)),
            known("--hashlimit-htable-max", OptionValue::Number(0, U32)),
            known("--hashlimit-htable-expire", OptionValue::Number(0, U32)),
            known("--hashlimit-htable-gcinterval", OptionValue::Number(0, U32)),
            known("--hashlimit-rate-match", OptionValue::Nothing),
            known("--hashlimit-rate-interval", OptionValue::Number(1, U32)),
        ],
        needed: &[&["--hashlimit", "--hashlimit-upto", "--hashlimit-above"], &["--hashlimit-name"]],
        beside: &[("--hashlimit-rate-interval", &["--hashlimit-rate-match"])],
        ..PLAIN
    },
    OptionSet {
        of: "recent",
        known: &[
            turned("--set", OptionValue::Nothing),
            turned("--rcheck", OptionValue::Nothing),
            turned("--update", OptionValue::Nothing),
            turned("--remove", OptionValue::Nothing),
            known("--seconds", OptionValue::Number(1, U32)),
            known("--reap", OptionValue::Nothing),
            // Newer versions of Linux remember up to 65,535 packets of an address; those before, and iptables
            // with them, refuse a rule that asks for more than 255.
            known("--hitcount", OptionValue::Number(1, 255)),
            known("--rttl", OptionValue::Nothing),
            known("--name", OptionValue::Text(199)),
            known("--rsource", OptionValue::Nothing),
            known("--rdest", OptionValue::Nothing),
            known("--mask", OptionValue::Mask),
        ],
        needed: &[&["--set", "--rcheck", "--update", "--remove"]],
        exclusive: &[&["--rsource", "--rdest"]],
        beside: &[
            ("--seconds", &["--rcheck", "--update"]),
            ("--hitcount", &["--rcheck", "--update"]),
            ("--rttl", &["--rcheck", "--update"]),
            ("--reap", &["--seconds"]),
        ],
        ..PLAIN
    },
    OptionSet {
        of: "connlimit",
        known: &[
            turned("--connlimit-upto", OptionValue::Number(0, U32)),
            turned("--connlimit-above", OptionValue::Number(0, U32)),
            known("--connlimit-mask", OptionValue::Number(0, 128)),
            known("--connlimit-saddr", OptionValue::Nothing),
            known("--connlimit-daddr", OptionValue::Nothing),
        ],
        needed: &[&["--connlimit-upto", "--connlimit-above"]],
        exclusive: &[&["--connlimit-saddr", "--connlimit-daddr"]],
        asks_connections: true,
        ..PLAIN
    },
    OptionSet {
        of: "connbytes",
        known: &[
            turned("--connbytes", OptionValue::Between(u64::MAX)),
            known("--connbytes-dir", OptionValue::OneOf(&["original", "reply", "both"])),
            known("--connbytes-mode", OptionValue::OneOf(&["packets", "bytes", "avgpkt"])),
        ],
        needed: &[&["--connbytes"], &["--connbytes-dir"], &["--connbytes-mode"]],
        asks_connections: true,
        ..PLAIN
    },
    OptionSet {
        of: "quota",
        known: &[turned("--quota", OptionValue::Number(0, u64::MAX))],
        needed: &[&["--quota"]],
        ..PLAIN
    },
    OptionSet {
        of: "statistic",
        known: &[
            known("--mode", OptionValue::OneOf(&["nth", "random"])),
            turned("--every", OptionValue::Number(1, U32)),
            known("--packet", OptionValue::Number(0, U32)),
            turned("--probability", OptionValue::Probability),
        ],
        needed: &[&["--mode"], &["--every", "--probability"]],
        beside: &[("--every", &["--packet"]), ("--packet", &["--every"])],
        ..PLAIN
    },
    OptionSet {
        of: "rateest",
        known: &[
            known("--rateest", OptionValue::Text(15)),
            known("--rateest1", OptionValue::Text(15)),
            known("--rateest2", OptionValue::Text(15)),
            known("--rateest-delta", OptionValue::Nothing),
            known("--rateest-bps", OptionValue::MeasureOfBits),
            known("--rateest-bps1", OptionValue::MeasureOfBits),
            known("--rateest-bps2", OptionValue::MeasureOfBits),
            known("--rateest-pps", OptionValue::Measure),
            known("--rateest-pps1", OptionValue::Measure),
            known("--rateest-pps2", OptionValue::Measure),
            turned("--rateest-lt", OptionValue::Nothing),
            turned("--rateest-gt", OptionValue::Nothing),
            turned("--rateest-eq", OptionValue::Nothing),
        ],
        needed: &[&["--rateest", "--rateest1"], &["--rateest-lt", "--rateest-gt", "--rateest-eq"]],
        exclusive: &[&["--rateest-bps", "--rateest-bps2"], &["--rateest-pps", "--rateest-pps2"]],
        beside: &[("--rateest-lt", MEASURES), ("--rateest-gt", MEASURES), ("--rateest-eq", MEASURES)],
        ..PLAIN
    },
    OptionSet {
        of: "rpfilter",
        // `--validmark` asks for a mark, and is refused as every rule is that does.
        known: &[
            known("--loose", OptionValue::Nothing),
            known("--accept-local", OptionValue::Nothing),
            known("--invert", OptionValue::Nothing),
        ],
        ..PLAIN
    },
    OptionSet {
        of: "connlabel",
        known: &[
            // Names are those of a file of the machine.
            turned("--label", OptionValue::Number(0, 127)),
            known("--set", OptionValue::Nothing),
        ],
        needed: &[&["--label"]],
        asks_connections: true,
        states: &[State::New, State::Established, State::Related],
        ..PLAIN
    },
    OptionSet {
        of: "helper",
        known: &[turned("--helper", OptionValue::Text(29))],
        needed: &[&["--helper"]],
        asks_connections: true,
        // A connection that a helper expected is never new.
        states: &[State::Established, State::Related],
        ..PLAIN
    },
];

const LEVELS: &[&str] = &[
    "0", "1", "2", "3", "4", "5", "6", "7", "emerg", "panic", "alert", "crit", "error", "err", "warning",
    "warn", "notice", "info", "debug",
];

/// Targets that write something down and let the packet go on.
const LOGGING: [OptionSet; 5] = [
    OptionSet {
        of: "LOG",
        known: &[
            known("--log-level", OptionValue::OneOf(LEVELS)),
            known("--log-prefix", OptionValue::Text(29)),
            known("--log-tcp-sequence", OptionValue::Nothing),
            known("--log-tcp-options", OptionValue::Nothing),
            known("--log-ip-options", OptionValue::Nothing),
            known("--log-uid", OptionValue::Nothing),
            known("--log-macdecode", OptionValue::Nothing),
        ],
        ..PLAIN
    },
    OptionSet {
        of: "NFLOG",
        known: &[
            known("--nflog-group", OptionValue::Number(0, 0xffff)),
            known("--nflog-prefix", OptionValue::Text(255)),
            known("--nflog-range", OptionValue::Number(0, U32)),
            known("--nflog-size", OptionValue::Number(0, U32)),
            known("--nflog-threshold", OptionValue::Number(1, 0xffff)),
        ],
        exclusive: &[&["--nflog-range", "--nflog-size"]],
        ..PLAIN
    },
    OptionSet {
        of: "ULOG",
        known: &[
            known("--ulog-nlgroup", OptionValue::Number(1, 32)),
            known("--ulog-prefix", OptionValue::Text(31)),
            known("--ulog-cprange", OptionValue::Number(0, U32)),
            known("--ulog-qthreshold", OptionValue::Number(1, 50)),
        ],
        ..PLAIN
    },
    OptionSet {
        of: "AUDIT",
        known: &[known("--type", OptionValue::OneOf(&["accept", "drop", "reject"]))],
        needed: &[&["--type"]],
        ..PLAIN
    },
    OptionSet { of: "TRACE", ..PLAIN },
];

/// The options of a match that remembers earlier packets, or asks for routes.
pub(super) fn remembering(module: &str) -> Option<&'static OptionSet> {
    REMEMBERING.iter().find(|set| set.of == module)
}

/// The options of a target that writes a log.
pub(super) fn logging(target: &str) -> Option<&'static OptionSet> {
    LOGGING.iter().find(|set| set.of == target)
}

impl OptionSet {
    /// Reads the options behind the word that names the match or target.
    pub(super) fn read<'a>(
        &self,
        owner: &Argument<'_>,
        arguments: &mut Arguments<'a>,
    ) -> Result<OptionValues<'a>, ImportError> {
        let mut seen: Vec<&str> = Vec::new();
        let (mut values, mut any_turned) = (Vec::new(), false);
        loop {
            let ahead = arguments.ahead();
            let not = ahead.first().is_some_and(|word| word.text == "!");
            let option = ahead.get(usize::from(not));
            let Some(known) = option.and_then(|word| self.known.iter().find(|known| known.name == word.text))
            else {
                break;
            };
            if not {
                arguments.next();
            }
            let Some(option) = arguments.next() else { break };
            if not && !known.turned {
                return Err(values::cannot_be_turned(&option));
            }
            if seen.contains(&known.name) {
                return Err(option.error(format!("`{}` is there twice", known.name), "write it once"));
            }
            seen.push(known.name);
            any_turned |= not;
            let is_there = match known.value {
                OptionValue::Nothing => false,
                OptionValue::Measure | OptionValue::MeasureOfBits => {
                    arguments.ahead().first().is_some_and(|word| !word.text.starts_with(['-', '!']))
                }
                _ => true,
            };
            if is_there {
                let value = arguments.value(&option)?;
                if !known.value.is_met_by(&value.text) {
                    let what = format!("`{}` is no value of `{}`", shown(&value.text), known.name);
                    return Err(value.error(what, known.value.advice()));
                }
                values.push((known.name, value));
            }
        }
        self.whole(owner, &seen)?;
        let value = |name: &str| values.iter().find(|(own, _)| *own == name).map(|(_, value)| value);
        let number = |name: &str| value(name).and_then(|value| Some((value, parse_number(&value.text)?)));
        if let (Some((_, every)), Some((word, packet))) = (number("--every"), number("--packet"))
            && packet >= every
        {
            return Err(word.error(format!("there is no packet {packet} of {every}"), "they count from 0"));
        }
        if let Some(mode) = value("--mode")
            && (mode.text == "nth") != seen.contains(&"--every")
        {
            let what = format!("the mode `{}` has not the option that it asks for", mode.text);
            return Err(mode.error(what, "write `nth` beside `--every`, and `random` beside `--probability`"));
        }
        Ok(OptionValues { turned: any_turned, values })
    }

    /// Refuses options that are missing, or that go not together.
    fn whole(&self, owner: &Argument<'_>, seen: &[&str]) -> Result<(), ImportError> {
        let count = |group: &[&str]| group.iter().filter(|name| seen.contains(name)).count();
        let words = |group: &[&str]| group.join("`, `");
        for group in self.needed {
            match count(group) {
                1 => {}
                0 => {
                    let what = format!("`{}` is without `{}`", self.of, words(group));
                    return Err(owner.error(what, "iptables refuses this as well; say what is meant"));
                }
                _ => {
                    let what = format!("`{}` has more than one of `{}`", self.of, words(group));
                    return Err(owner.error(what, "keep one of them"));
                }
            }
        }
        if let Some(group) = self.exclusive.iter().find(|group| count(group) > 1) {
            let what = format!("`{}` has more than one of `{}`", self.of, words(group));
            return Err(owner.error(what, "keep one of them"));
        }
        for (option, others) in self.beside {
            if seen.contains(option) && count(others) == 0 {
                let what = format!("`{option}` means something beside `{}` only", words(others));
                return Err(owner.error(what, "add that, or remove it"));
            }
        }
        Ok(())
    }
}

/// The seconds of a unit of time, which may be shortened.
fn seconds(unit: &str) -> Option<u64> {
    let units = [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400)];
    units.iter().find(|(name, _)| !unit.is_empty() && name.starts_with(unit)).map(|(_, seconds)| *seconds)
}

/// How many packets in how many seconds, such as `3/hour`.
pub(super) fn packets_in_time(text: &str) -> Option<(u64, u64)> {
    let (count, unit) = text.split_once('/').unwrap_or((text, "second"));
    parse_number(count).filter(|count| *count > 0).zip(seconds(unit))
}

fn is_rate(text: &str, most: u64) -> bool {
    packets_in_time(text).is_some_and(|(count, seconds)| count <= most.saturating_mul(seconds))
}

/// A number of bytes, such as `400kb`.
fn is_bytes(text: &str) -> bool {
    let Some(number) = text.strip_suffix('b') else { return false };
    let (number, most) = match number.strip_suffix(['k', 'm']) {
        Some(rest) if number.ends_with('k') => (rest, U32 >> 10),
        Some(rest) => (rest, U32 >> 20),
        None => (number, U32),
    };
    number.bytes().all(|byte| byte.is_ascii_digit())
        && parse_number(number).is_some_and(|number| (1..=most).contains(&number))
}

/// A decimal number from 0 to 1.
fn is_probability(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "0" => digits(part),
        "1" => digits(part) && part.bytes().all(|byte| byte == b'0'),
        _ => false,
    }
}

/// A whole number of bits or bytes a second, as `iptables-save` writes it. What is too large for the 32 bits
/// in which Linux keeps bytes is refused.
fn is_measure_of_bits(text: &str) -> bool {
    const UNITS: [(&str, u64); 7] = [
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("kbps", 8_000),
        ("mbps", 8_000_000),
        ("bit", 1),
        ("bps", 8),
    ];
    let text = text.to_ascii_lowercase();
    let found = UNITS.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
    let (number, bits) = found.unwrap_or((&text, 8));
    let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit());
    let rate = parse_number(number).filter(|_| is_decimal).and_then(|number| number.checked_mul(bits));
    rate.is_some_and(|rate| rate / 8 <= U32)
}

impl OptionValue {
    fn is_met_by(&self, text: &str) -> bool {
        let between = |text: &str, low: u64, high: u64| {
            parse_number(text).is_some_and(|number| (low..=high).contains(&number))
        };
        match self {
            OptionValue::Nothing => false,
            OptionValue::Number(low, high) => between(text, *low, *high),
            OptionValue::Between(most) => {
                let (low, high) = text.split_once(':').unwrap_or((text, ""));
                let end = |text: &str, empty| if text.is_empty() { Some(empty) } else { parse_number(text) };
                let ends = end(low, 0).zip(end(high, *most));
                ends.is_some_and(|(low, high)| low <= high && high <= *most)
            }
            OptionValue::Rate(most) => is_rate(text, *most),
            OptionValue::RateOrBytes => {
                is_rate(text, 1_000_000) || text.strip_suffix("/s").is_some_and(is_bytes)
            }
            OptionValue::Probability => is_probability(text),
            OptionValue::Measure => between(text, 0, U32),
            OptionValue::MeasureOfBits => is_measure_of_bits(text),
            OptionValue::Burst => between(text, 1, U32) || is_bytes(text),
            OptionValue::Text(most) => text.len() <= *most,
            OptionValue::OneOf(names) => names.contains(&text),
            OptionValue::SomeOf(names) => text.split(',').all(|part| names.contains(&part)),
            OptionValue::Mask => between(text, 0, 128) || crate::address::parse(text.as_bytes()).is_some(),
        }
    }

    fn advice(&self) -> String {
        match self {
            OptionValue::Nothing => String::new(),
            OptionValue::Probability => "write a number from 0 to 1, as in 0.5".to_owned(),
            OptionValue::Measure => "write a number of packets a second, as in 5".to_owned(),
            OptionValue::MeasureOfBits => "write a whole number with its unit, as in 5000bit".to_owned(),
            OptionValue::Number(low, high) => format!("write a number from {low} to {high}"),
            OptionValue::Between(most) => format!("write `FROM:TO`, numbers up to {most}"),
            OptionValue::Rate(most) => format!("write a rate as in 3/hour, at most {most}/second"),
            OptionValue::RateOrBytes => "write a rate as in 3/hour or 40kb/s".to_owned(),
            OptionValue::Burst => "write a number, or bytes as in 400kb".to_owned(),
            OptionValue::Text(most) => format!("write at most {most} bytes of text"),
            OptionValue::OneOf(names) | OptionValue::SomeOf(names) => {
                format!("known here: {}", names.join(", "))
            }
            OptionValue::Mask => "write a mask as in 255.255.255.0".to_owned(),
        }
    }
}
