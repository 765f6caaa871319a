//! A router in a network namespace of its own, whose kernel forwards between a network inside and one outside
//! as nftables lets it.
//!
//! ```text
//! hosts                   router                      hosts
//! in ───────────────── from-in     from-out ─────────── out
//! ```
//!
//! Frames of both directions are worked on by one processor, in the order in which they were sent: when the
//! marker behind a burst has come, all of the burst that passes has come before it.

use crate::packets::{Address, Packet, UDP, datagram_bytes, frame, number_of};
use rig::{FrameReceiver, FrameSender, Namespace};
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

const INSIDE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ROUTER_IN: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ROUTER_OUT: [u8; 6] = [2, 0, 0, 0, 0, 3];
const OUTSIDE: [u8; 6] = [2, 0, 0, 0, 0, 4];

/// So many packets are under way at once, fewer than wait anywhere without loss.
const AT_ONCE: usize = 256;

/// How long a marker may take before it is taken for lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// Settings of the router that make the kernel mean what the module means, each with why.
const SETTINGS: [(&str, &str); 12] = [
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv6/conf/all/accept_dad", "0"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    // A connection that began before the gateway did is not picked up.
    ("netfilter/nf_conntrack_tcp_loose", "0"),
    ("netfilter/nf_conntrack_tcp_be_liberal", "0"),
    ("netfilter/nf_conntrack_tcp_ignore_invalid_rst", "0"),
    // The kernel's clock runs on while a busy machine stands still; the time of the program does not.
    ("netfilter/nf_conntrack_tcp_timeout_close", "300"),
    ("netfilter/nf_conntrack_icmp_timeout", "300"),
];

pub(crate) struct Network {
    router: Namespace,
    senders: [FrameSender; 2],
    receivers: [FrameReceiver; 4],
    number: u16,
}

impl Network {
    /// A router without rules; `None` where networks cannot be made, or nftables is not there.
    pub(crate) fn new() -> Option<Network> {
        for program in ["nft", "ip"] {
            if Command::new(program).arg("--version").output().is_err() {
                println!("{program} is not installed: nothing was judged");
                return None;
            }
        }
        // Frames wait in a line for each processor: one line keeps their order.
        if !(0..1024).any(|processor| rig::hold(processor).is_ok()) {
            println!("this thread cannot be held on a processor: nothing was judged");
            return None;
        }
        Self::made()
            .map_err(|error| println!("networks cannot be made here ({error}): nothing was judged"))
            .ok()
    }

    fn made() -> io::Result<Network> {
        let (hosts, router) = (Namespace::new()?, Namespace::new()?);
        hosts.links()?.cable(("in", INSIDE), ("from-in", ROUTER_IN), &router)?;
        hosts.links()?.cable(("out", OUTSIDE), ("from-out", ROUTER_OUT), &router)?;
        for interface in ["in", "out"] {
            hosts.links()?.up(interface)?;
        }
        let network = Network {
            senders: [FrameSender::new(&hosts, "in")?, FrameSender::new(&hosts, "out")?],
            receivers: [
                FrameReceiver::new(&hosts, "in", None)?,
                FrameReceiver::of_ipv6(&hosts, "in")?,
                FrameReceiver::new(&hosts, "out", None)?,
                FrameReceiver::of_ipv6(&hosts, "out")?,
            ],
            router,
            number: 0,
        };
        let made = network.router.run(
            "sh",
            &["-e"],
            "ip link set from-in up; ip link set from-out up
             ip address add 198.18.0.1/30 dev from-in; ip address add 198.18.0.5/30 dev from-out
             ip neigh add 198.18.0.2 lladdr 02:00:00:00:00:01 dev from-in
             ip neigh add 198.18.0.6 lladdr 02:00:00:00:00:04 dev from-out
             ip route add 10.0.0.0/8 via 198.18.0.2; ip route add default via 198.18.0.6
             ip address add fd00:1::1/64 dev from-in nodad; ip address add fd00:2::1/64 dev from-out nodad
             ip neigh add fd00:1::9 lladdr 02:00:00:00:00:01 dev from-in
             ip neigh add fd00:2::9 lladdr 02:00:00:00:00:04 dev from-out
             ip route add 2001:db8::/48 via fd00:1::9; ip route add default via fd00:2::9\n",
        )?;
        if !made.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned()));
        }
        // The settings of conntrack are there as soon as a rule asks for a state.
        let first = network.router.run(
            "nft",
            &["-f", "-"],
            "table inet first {\n chain c {\n ct state new\n }\n}\n",
        )?;
        if !first.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&first.stderr).into_owned()));
        }
        for (setting, value) in SETTINGS {
            network.router.set(setting, value)?;
        }
        Ok(network)
    }

    /// Gives the router these rules in place of those it has.
    pub(crate) fn load(&self, rules: &str) {
        let text = format!("flush ruleset\n{rules}");
        let loaded = self.router.run("nft", &["-f", "-"], &text).expect("nft runs");
        assert!(loaded.status.success(), "{}\n{rules}", String::from_utf8_lossy(&loaded.stderr));
    }

    /// Which of these packets come out at the other side, in order; `None` if a marker was lost.
    pub(crate) fn passes(&mut self, packets: &[&Packet]) -> Option<Vec<bool>> {
        let mut passed = Vec::with_capacity(packets.len());
        for burst in packets.chunks(AT_ONCE) {
            passed.extend(self.burst(burst)?);
        }
        Some(passed)
    }

    fn burst(&mut self, packets: &[&Packet]) -> Option<Vec<bool>> {
        let markers = [true, false].map(marker);
        let all: Vec<&Packet> = packets.iter().copied().chain(&markers).collect();
        let first = self.number;
        self.number = self.number.wrapping_add(all.len() as u16);
        for (index, packet) in all.iter().enumerate() {
            let (sender, to, from) = if packet.from_inside {
                (&self.senders[0], ROUTER_IN, INSIDE)
            } else {
                (&self.senders[1], ROUTER_OUT, OUTSIDE)
            };
            for piece in packet.pieces(first.wrapping_add(index as u16)) {
                sender.send(&[&frame(&piece, to, from)]).expect("a frame can be sent");
            }
        }
        let mut passed = vec![false; all.len()];
        let until = Instant::now() + PATIENCE;
        // Once more after the markers: they may have been read before frames of another socket.
        let mut rounds = 2;
        while rounds > 0 {
            let mut came = 0;
            for (place, receiver) in self.receivers.iter_mut().enumerate() {
                let read = receiver.receive(|_, bytes| {
                    let Some((number, source)) = number_of(bytes) else { return };
                    let index = usize::from(number.wrapping_sub(first));
                    let Some(packet) = all.get(index) else { return };
                    // What the router says itself has its own addresses.
                    if (packet.from.bits as u32).to_be_bytes() == source && packet.from_inside == (place >= 2)
                    {
                        passed[index] = true;
                    }
                });
                came += read.expect("frames can be received");
            }
            if passed.ends_with(&[true, true]) {
                rounds -= usize::from(came == 0);
            } else if Instant::now() > until {
                return None;
            } else if came == 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        passed.truncate(packets.len());
        Some(passed)
    }
}

/// A datagram that every rule set lets pass and no connection is made of ([`crate::rules::PREAMBLE`]).
fn marker(from_inside: bool) -> Packet {
    let (inside, outside) =
        (Address { v6: false, bits: 0x0aff_ff01 }, Address { v6: false, bits: 0xcb00_7101 });
    let (from, to) = if from_inside { (inside, outside) } else { (outside, inside) };
    let body = datagram_bytes((9, 9), 8);
    Packet { from_inside, from_client: from_inside, label: "marker", from, to, proto: UDP, body, cut: None }
        .summed()
}
