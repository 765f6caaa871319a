//! How packets are made up: which share of them is TCP, UDP, or comes from or goes to a web server.

use crate::experiment::{Figure, Row};
use crate::thesis::PublishedSample;
use crate::traffic::Traffic;

/// Numbers of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) packets: u64,
    /// Bytes on the wire.
    pub(crate) bytes: u64,
    pub(crate) tcp: u64,
    pub(crate) udp: u64,
    /// From or to port 80 or 443 of TCP or UDP.
    pub(crate) web: u64,
    /// Of those, what goes there, which is what a firewall by destination lets through.
    pub(crate) to_web: u64,
    /// Its bytes on the wire.
    pub(crate) to_web_bytes: u64,
}

impl Shares {
    /// Counts packets in untagged Ethernet.
    pub(crate) fn of(traffic: &Traffic) -> Shares {
        let mut shares = Shares::default();
        for frame in traffic.frames.iter() {
            shares.packets += 1;
            shares.bytes += u64::from(frame.wire);
            shares.transport(frame.bytes, frame.wire);
        }
        shares
    }

    fn transport(&mut self, bytes: &[u8], wire: u32) -> Option<()> {
        let packet = bytes.strip_prefix(bytes.get(..12)?)?.strip_prefix(&[8, 0])?;
        let header = packet.get(..20)?;
        let length = usize::from(header[0] & 0x0f) * 4;
        let count = match header[9] {
            6 => &mut self.tcp,
            17 => &mut self.udp,
            _ => return None,
        };
        *count += 1;
        // Later fragments hold no ports.
        if u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0 {
            return None;
        }
        let ports = packet.get(length..length + 4)?;
        let web = |at: usize| matches!(u16::from_be_bytes([ports[at], ports[at + 1]]), 80 | 443);
        self.web += u64::from(web(0) || web(2));
        if web(2) {
            self.to_web += 1;
            self.to_web_bytes += u64::from(wire);
        }
        Some(())
    }

    fn of_packets(&self, part: u64) -> f64 {
        part as f64 / self.packets.max(1) as f64 * 100.0
    }

    /// Rows beside what the thesis published of the sample.
    pub(crate) fn rows(&self, name: &str, published: Option<PublishedSample>) -> Vec<Row> {
        let case = format!("{name}, the capture");
        let row = |what: &str, unit: &str, value: f64, paper: Option<f64>| {
            Row::alone(&case, what, unit, Some(Figure::exactly(value)), paper)
        };
        let mean = self.bytes as f64 / self.packets.max(1) as f64;
        let to_web = self.to_web_bytes as f64 / self.bytes.max(1) as f64 * 100.0;
        vec![
            row("packets", "packets", self.packets as f64, published.map(|sample| sample.packets)),
            row("mean length of a packet", "bytes", mean, published.map(|sample| sample.mean_bytes)),
            row("packets of TCP", "%", self.of_packets(self.tcp), published.map(|sample| sample.tcp)),
            row("packets of UDP", "%", self.of_packets(self.udp), published.map(|sample| sample.udp)),
            row(
                "packets from or to port 80 or 443",
                "%",
                self.of_packets(self.web),
                published.and_then(|sample| sample.web),
            ),
            row("packets to port 80 or 443", "%", self.of_packets(self.to_web), None),
            row("bytes to port 80 or 443", "%", to_web, None),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thesis::{self, ThesisApplication};
    use crate::traffic::{TrafficCapture, segments};

    #[test]
    fn packets_are_counted_by_what_they_are() {
        let mut frames = segments(10);
        frames.push(&[0; 60], 60, 1);
        frames.push(&[8; 13], 13, 1);
        let shares = Shares::of(&Traffic { name: "made".into(), sample: None, frames });
        let wanted =
            Shares { packets: 12, bytes: 673, tcp: 10, udp: 0, web: 10, to_web: 10, to_web_bytes: 600 };
        assert_eq!(shares, wanted);
    }

    #[test]
    fn made_samples_have_the_published_shares() {
        for number in 1..=3 {
            let traffic = TrafficCapture::Generated(number).load(true).expect("it can be made");
            let published = thesis::sample(number).expect("a sample");
            let shares = Shares::of(&traffic);
            let near = |what: &str, ours: f64, wanted: f64| {
                assert!((ours - wanted).abs() < 0.5, "{what} of sample {number}: {ours} for {wanted}");
            };
            near("TCP", shares.of_packets(shares.tcp), published.tcp);
            near("UDP", shares.of_packets(shares.udp), published.udp);
            if let Some(web) = published.web {
                near("web", shares.of_packets(shares.web), web);
            }
            let mean = shares.bytes as f64 / shares.packets as f64;
            assert!((mean / published.mean_bytes - 1.0).abs() < 0.01, "{mean} bytes");
            let firewall = ThesisApplication::Firewall.published(number).expect("a sample");
            let forwarded = shares.to_web_bytes as f64 / shares.bytes as f64 * 100.0;
            near("forwarded bytes", forwarded, firewall.forwarded());
        }
    }
}
