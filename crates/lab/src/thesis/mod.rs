//! The thesis on the language Steve (2016): the numbers that it published, and its programs in this language.

use crate::programs::compile;
use ir::Program;
use lang::pipeline::Decode;

/// The applications that the thesis measured, in the order of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThesisApplication {
    Mac,
    Ipv4,
    Wire,
    Firewall,
}

/// What it published of an application over a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Published {
    /// Gbit/s that were processed.
    pub(crate) data_rate: f64,
    /// Gbit/s that were forwarded.
    pub(crate) throughput: f64,
    /// Millions of packets a second.
    pub(crate) packet_rate: f64,
}

/// What it published of a sample: how its packets are made up, and what full decode costs the firewall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PublishedSample {
    pub(crate) packets: f64,
    /// The mean length of a packet, in bytes.
    pub(crate) mean_bytes: f64,
    /// Per cent of the packets that are TCP, and UDP.
    pub(crate) tcp: f64,
    pub(crate) udp: f64,
    /// Per cent of the packets that come from or go to port 80 or 443.
    pub(crate) web: Option<f64>,
    /// Millions of packets a second with partial decode, and with full decode.
    pub(crate) partial: f64,
    pub(crate) full: f64,
    /// The difference of both by [`percentage_difference`].
    pub(crate) difference: f64,
}

/// Data rate, throughput and packet rate, by sample (its tables 6.2 to 6.4) and application.
const TABLES: [[[f64; 3]; 4]; 3] = [
    [[10.10, 10.10, 1.96], [8.15, 8.15, 1.58], [16.41, 16.41, 3.17], [8.47, 0.94, 1.64]],
    [[7.07, 7.07, 1.97], [5.77, 5.77, 1.61], [12.07, 12.07, 3.36], [6.29, 1.35, 1.75]],
    [[1.30, 1.30, 2.14], [1.07, 1.06, 1.76], [2.28, 2.28, 3.75], [1.25, 0.04, 2.06]],
];

/// The packet rate of the firewall over a sample from 0 on; it decodes partially.
const fn firewall_rate(sample: usize) -> f64 {
    TABLES[sample][ThesisApplication::Firewall as usize][2]
}

/// Its tables 6.1 and 6.5.
const SAMPLES: [PublishedSample; 3] = [
    PublishedSample {
        packets: 14_261.0,
        mean_bytes: 646.0,
        tcp: 96.12,
        udp: 3.67,
        web: Some(83.0),
        partial: firewall_rate(0),
        full: 1.56,
        difference: 5.00,
    },
    PublishedSample {
        packets: 791_615.0,
        mean_bytes: 449.0,
        tcp: 80.22,
        udp: 19.45,
        web: Some(51.94),
        partial: firewall_rate(1),
        full: 1.63,
        difference: 7.10,
    },
    PublishedSample {
        packets: 2_274_747.0,
        mean_bytes: 76.0,
        tcp: 95.25,
        udp: 3.68,
        web: None,
        partial: firewall_rate(2),
        full: 1.91,
        difference: 7.56,
    },
];

impl Published {
    /// Per cent of the bytes that were forwarded.
    pub(crate) fn forwarded(&self) -> f64 {
        self.throughput / self.data_rate * 100.0
    }
}

impl ThesisApplication {
    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ThesisApplication::Mac => "MAC learning",
            ThesisApplication::Ipv4 => "IPv4 learning",
            ThesisApplication::Wire => "wire",
            ThesisApplication::Firewall => "firewall",
        }
    }

    /// By how many ports its packets come.
    pub(crate) fn ports(self) -> u16 {
        if self == ThesisApplication::Wire { 2 } else { 5 }
    }

    /// What it published of the application over a sample from 1 on.
    pub(crate) fn published(self, sample: usize) -> Option<Published> {
        let [data_rate, throughput, packet_rate] = TABLES.get(sample.checked_sub(1)?)?[self as usize];
        Some(Published { data_rate, throughput, packet_rate })
    }
}

/// What it published of a sample from 1 on.
pub(crate) fn sample(number: usize) -> Option<PublishedSample> {
    SAMPLES.get(number.checked_sub(1)?).copied()
}

/// The measure in which the thesis says by how much two rates differ: their difference in per cent of the
/// middle between them. It does not say so; its three figures follow from this measure alone.
pub(crate) fn percentage_difference(partial: f64, full: f64) -> f64 {
    (partial - full) / ((partial + full) / 2.0) * 100.0
}

/// Its firewall. It names the fields that it uses; behind `full:` stands what its copy has that names all.
const FIREWALL: &str = include_str!("firewall.rav");

/// Its programs in this language, with as many tables, no hairpins dropped, and entries that do not end
/// within a run; under names that no program that ships has, since hand-written versions are found by these.
pub(crate) const PROGRAMS: [(&str, ThesisApplication, &str); 3] = [
    ("thesis_mac", ThesisApplication::Mac, include_str!("mac.rav")),
    ("thesis_ipv4", ThesisApplication::Ipv4, include_str!("ipv4.rav")),
    ("thesis_firewall", ThesisApplication::Firewall, FIREWALL),
];

/// The text of the firewall that names every field.
fn full_text() -> String {
    let full = FIREWALL.lines().map(|line| line.split_once("// full: ").map_or(line, |(_, full)| full));
    full.collect::<Vec<&str>>().join("\n")
}

/// Its firewall that names the fields that it uses, and its copy that names all.
///
/// # Errors
/// If the text of the lab does not compile.
pub(crate) fn firewalls() -> Result<[Program; 2], String> {
    Ok([
        compile("thesis_firewall", FIREWALL, Decode::Declared)?,
        compile("thesis_firewall", &full_text(), Decode::Declared)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_differences_are_by_the_middle_of_both_rates() {
        for sample in SAMPLES {
            let ours = percentage_difference(sample.partial, sample.full);
            assert!((ours - sample.difference).abs() < 0.005, "{ours} for {}", sample.difference);
        }
    }

    #[test]
    fn published_rates_hang_together() {
        for (sample, table) in SAMPLES.iter().zip(TABLES) {
            for [data_rate, throughput, packet_rate] in table {
                assert!(throughput <= data_rate);
                let by_packets = packet_rate * sample.mean_bytes * 8.0 / 1e3;
                // Rates have three digits, so that the last one is worth up to 0.5 %.
                assert!((by_packets / data_rate - 1.0).abs() < 0.01, "{by_packets} for {data_rate}");
            }
        }
        let firewall =
            |sample| ThesisApplication::Firewall.published(sample).expect("three samples").forwarded();
        let shares = [1, 2, 3].map(|sample| (firewall(sample) * 10.0).round() / 10.0);
        assert_eq!(shares, [11.1, 21.5, 3.2]);
        assert_eq!(
            (ThesisApplication::Wire.published(0), ThesisApplication::Wire.published(4)),
            (None, None)
        );
    }

    #[test]
    fn the_full_copy_names_every_field() {
        let text = full_text();
        assert_eq!(text.matches("extract all").count(), 4, "each decoder");
        assert_eq!(text.matches("extract ").count(), 4, "{text}");
        let [partial, full] = firewalls().expect("they compile");
        assert_ne!(format!("{partial:?}"), format!("{full:?}"), "the lines behind `full:` took their places");
    }
}
