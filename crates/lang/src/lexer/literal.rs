//! Numbers, durations, addresses and prefixes.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Lexer, is_word_byte};
use crate::diagnostic::Diagnostic;
use crate::token::TokenKind;

/// No address is written with more bytes; a limit keeps the reading linear.
const LONGEST_RUN: usize = 64;

/// Units of time with their length in nanoseconds.
const DURATIONS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The nanoseconds of a time such as `30s`; `None` if it is none, or does not fit 64 bits.
pub fn duration(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, length) = DURATIONS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*length)
}

/// Units people try, and the one they mean.
const MEANT_UNITS: [(&str, &str); 14] = [
    ("K", "k"),
    ("kb", "k"),
    ("Ki", "k"),
    ("KiB", "k"),
    ("m", "min"),
    ("Mi", "M"),
    ("MiB", "M"),
    ("MB", "M"),
    ("sec", "s"),
    ("S", "s"),
    ("secs", "s"),
    ("hr", "h"),
    ("hours", "h"),
    ("mins", "min"),
];

impl Lexer<'_> {
    /// Reads an IPv6 or MAC address if one stands here; a run of digits and colons that was meant as one is
    /// told.
    pub(super) fn address_with_colons(&mut self) -> bool {
        let full = self.short_run(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.');
        let run = &self.text[self.at..self.at + full];
        let run = run.split("..").next().unwrap_or(run);
        let length = run.len();
        let colons = run.bytes().filter(|&byte| byte == b':').count();
        let behind_word = self
            .tokens
            .last()
            .is_some_and(|last| last.kind == TokenKind::Word && last.span.end as usize == self.at);
        if run.starts_with(':') && behind_word {
            return false;
        }
        let continues = length == full && self.byte(length).is_some_and(is_word_byte);
        let double = run.contains("::");
        // Two colons between digits begin nothing else, so an address was meant.
        let meant = colons >= 2 && !continues && run.as_bytes()[0].is_ascii_digit();
        if !(double || colons == 7 || colons == 5 || meant) {
            return false;
        }
        if continues {
            // `net::ethernet`: the sign is told as such, not as half an address.
            if !run.as_bytes()[0].is_ascii_digit() {
                return false;
            }
            let word = self.run_length(length, is_word_byte);
            self.faulty_colons(length + word);
            return true;
        }
        let short_groups = run.split(':').all(|group| group.len() <= 2);
        if !double && (colons == 5 || colons < 7 && short_groups) {
            match mac(run).filter(|_| colons == 5) {
                Some(address) => self.push(TokenKind::Mac(address), length),
                None => {
                    let span = self.span(self.at, self.at + length);
                    self.report(
                        Diagnostic::error(
                            "E0009",
                            "This is not a MAC address.",
                            span,
                            "six groups of two digits are needed",
                        )
                        .help("Write for example `02:00:5e:00:00:01`."),
                    );
                    self.push(TokenKind::Mac(0), length);
                }
            }
            return true;
        }
        match run.parse::<Ipv6Addr>() {
            Ok(address) => {
                let bits = u128::from(address);
                match self.prefix_length(length, 128) {
                    Some((prefix, end)) => {
                        let value = bits & mask(prefix, 128);
                        self.check_prefix(bits != value, end, prefix, &Ipv6Addr::from(value).to_string());
                        self.push(TokenKind::Prefix6(value, prefix), end);
                    }
                    None => self.push(TokenKind::Ip6(bits), length),
                }
            }
            Err(_) => self.faulty_colons(length),
        }
        true
    }

    /// Reads a number, a duration, an IPv4 address or an IPv4 prefix; the first byte is a digit.
    pub(super) fn number(&mut self) {
        let dotted = self.short_run(|byte| byte.is_ascii_digit() || byte == b'.');
        let run = &self.text[self.at..self.at + dotted];
        let run = run.split("..").next().unwrap_or(run).trim_end_matches('.');
        if run.contains('.') {
            return self.dotted_number(run.len());
        }
        let length = self.run_length(0, is_word_byte);
        let word = &self.text[self.at..self.at + length];
        let (radix, digits, unit) = match word.get(..2) {
            Some("0x") => (16, &word[2..], ""),
            Some("0b") => (2, &word[2..], ""),
            _ => {
                let end = word.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'_').count();
                (10, &word[..end], &word[end..])
            }
        };
        let digits: String = digits.chars().filter(|&digit| digit != '_').collect();
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            let span = self.span(self.at, self.at + length);
            let class = if radix == 16 { "hexadecimal" } else { "binary" };
            self.report(
                Diagnostic::error(
                    "E0005",
                    format!("`{word}` is not a {class} number."),
                    span,
                    "digits are missing or wrong",
                )
                .help("Hexadecimal digits are 0–9 and a–f (`0x0800`), binary digits 0 and 1 (`0b101`)."),
            );
            return self.push(TokenKind::Int(0), length);
        }
        let number = u128::from_str_radix(&digits, radix).ok();
        let kind = match unit {
            "" => number.map(TokenKind::Int),
            "k" => number.and_then(|number| number.checked_mul(1 << 10)).map(TokenKind::Int),
            "M" => number.and_then(|number| number.checked_mul(1 << 20)).map(TokenKind::Int),
            _ => match DURATIONS.iter().find(|(name, _)| *name == unit) {
                Some(&(_, scale)) => number
                    .and_then(|number| number.checked_mul(u128::from(scale)))
                    .and_then(|time| u64::try_from(time).ok())
                    .map(TokenKind::Duration),
                None => return self.unknown_unit(length, digits.len(), unit),
            },
        };
        match kind {
            Some(kind) => self.push(kind, length),
            None => {
                let is_time = !matches!(unit, "" | "k" | "M");
                let help = if is_time {
                    "Times reach up to 584 years, kept in nanoseconds in 64 bits."
                } else {
                    "Numbers have at most 128 bits."
                };
                let span = self.span(self.at, self.at + length);
                self.report(
                    Diagnostic::error("E0004", "This number is too large.", span, "does not fit").help(help),
                );
                self.push(if is_time { TokenKind::Duration(0) } else { TokenKind::Int(0) }, length);
            }
        }
    }

    fn unknown_unit(&mut self, length: usize, digits: usize, unit: &str) {
        let unit_span = self.span(self.at + length - unit.len(), self.at + length);
        let fault = Diagnostic::error("E0005", format!("`{unit}` is not a unit."), unit_span, "unknown unit")
            .help("Sizes take `k` (1,024) or `M` (1,048,576), times `ns`, `us`, `ms`, `s`, `min` or `h`.");
        let meant = MEANT_UNITS.iter().find(|(wrong, _)| *wrong == unit).map(|(_, meant)| *meant);
        let is_time = meant.is_some_and(|meant| DURATIONS.iter().any(|(name, _)| *name == meant));
        self.report(match meant {
            Some(meant) => fault.suggest(format!("write `{meant}`"), unit_span, meant),
            None if digits > 0 && unit.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let start = self.span(self.at, self.at);
                fault.suggest("write a hexadecimal number with `0x`", start, "0x")
            }
            None => fault,
        });
        self.push(if is_time { TokenKind::Duration(0) } else { TokenKind::Int(0) }, length);
    }

    fn dotted_number(&mut self, length: usize) {
        let word = self.run_length(length, is_word_byte);
        let text = &self.text[self.at..self.at + length];
        let span = self.span(self.at, self.at + length);
        if text.bytes().filter(|&byte| byte == b'.').count() == 1 {
            self.report(
                Diagnostic::error("E0006", "Numbers have no fraction.", span, "a whole number is needed")
                    .help("Use a smaller unit (`1500ms` for 1.5 s), or `..` for a range."),
            );
            // The unit stays, so that a time remains a time.
            let is_time = word > 0;
            return self
                .push(if is_time { TokenKind::Duration(0) } else { TokenKind::Int(0) }, length + word);
        }
        let address = if word == 0 { text.parse::<Ipv4Addr>().ok().map(u32::from) } else { None };
        let Some(address) = address else {
            self.report(
                Diagnostic::error(
                    "E0007",
                    "This is not an IPv4 address.",
                    span,
                    "four numbers from 0 to 255 are needed",
                )
                .help("Write for example `192.0.2.1`, without leading zeros."),
            );
            let end = length + word;
            return match self.slash_digits(end) {
                Some(digits) => self.push(TokenKind::Prefix4(0, 0), end + 1 + digits),
                None => self.push(TokenKind::Ip4(0), end),
            };
        };
        match self.prefix_length(length, 32) {
            Some((prefix, end)) => {
                let value = address & mask(prefix, 32) as u32;
                self.check_prefix(address != value, end, prefix, &Ipv4Addr::from(value).to_string());
                self.push(TokenKind::Prefix4(value, prefix), end);
            }
            None => self.push(TokenKind::Ip4(address), length),
        }
    }

    /// The prefix length behind an address of `length` bytes, and where the whole prefix ends.
    fn prefix_length(&mut self, length: usize, most: u8) -> Option<(u8, usize)> {
        let digits = self.slash_digits(length)?;
        let text = &self.text[self.at + length + 1..self.at + length + 1 + digits];
        let end = length + 1 + digits;
        match text.parse::<u8>() {
            Ok(prefix) if prefix <= most => Some((prefix, end)),
            _ => {
                let span = self.span(self.at + length + 1, self.at + end);
                self.report(
                    Diagnostic::error(
                        "E0011",
                        "This prefix is longer than its address.",
                        span,
                        format!("at most {most}"),
                    )
                    .help("The length of a prefix counts the bits that are compared."),
                );
                Some((most, end))
            }
        }
    }

    /// How many bytes from here on hold the condition, at most [`LONGEST_RUN`].
    fn short_run(&self, condition: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter().take(LONGEST_RUN).take_while(|&&byte| condition(byte)).count()
    }

    fn slash_digits(&self, length: usize) -> Option<usize> {
        let digits = (self.byte(length) == Some(b'/'))
            .then(|| self.run_length(length + 1, |byte| byte.is_ascii_digit()))?;
        (digits > 0).then_some(digits)
    }

    fn check_prefix(&mut self, faulty: bool, end: usize, prefix: u8, network: &str) {
        if faulty {
            let span = self.span(self.at, self.at + end);
            let right = format!("{network}/{prefix}");
            self.report(
                Diagnostic::error(
                    "E0010",
                    "This prefix has bits behind its length.",
                    span,
                    "these bits are never compared",
                )
                .help("The bits behind the length of a prefix must be zero.")
                .suggest(format!("write `{right}`"), span, right),
            );
        }
    }

    fn faulty_colons(&mut self, length: usize) {
        let span = self.span(self.at, self.at + length);
        self.report(
            Diagnostic::error("E0008", "This is not an IPv6 address.", span, "groups are missing or wrong")
                .help("Write eight groups of up to four hexadecimal digits; one run of zero groups may be `::`."),
        );
        match self.slash_digits(length) {
            Some(digits) => self.push(TokenKind::Prefix6(0, 0), length + 1 + digits),
            None => self.push(TokenKind::Ip6(0), length),
        }
    }
}

fn mac(text: &str) -> Option<u64> {
    let mut value = 0;
    for group in text.split(':') {
        if group.len() != 2 {
            return None;
        }
        value = value << 8 | u64::from(u8::from_str_radix(group, 16).ok()?);
    }
    Some(value)
}

/// The top `length` of `width` bits set.
fn mask(length: u8, width: u8) -> u128 {
    let all = u128::MAX >> (128 - u32::from(width));
    all.checked_shr(u32::from(length)).map_or(all, |low| all & !low)
}
