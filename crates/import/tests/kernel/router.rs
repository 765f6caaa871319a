//! A router in a network namespace of its own, between two interfaces of another one: the kernel as judge of
//! what passes.
//!
//! ```text
//! hosts                  router                       hosts
//! in ──────────────── from-in     to-out ──────────── out
//! ```
//!
//! Nothing but these namespaces is ever addressed, and they go with the test.

use super::conversations::{OnTheWay, octets};
use super::judged::Judged;
use super::packets::{Packet, V6};
use rig::{FrameReceiver, FrameSender, Namespace};
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

const HERE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const TO_OUT: [u8; 6] = [2, 0, 0, 0, 0, 3];
const THERE: [u8; 6] = [2, 0, 0, 0, 0, 4];

/// So many frames are under way at once, fewer than wait anywhere without loss.
const AT_ONCE: usize = 64;

/// So often in a row must nothing have come before a burst is taken to be through, each time after a
/// millisecond.
const QUIET: usize = 3;

/// What is sent again if it did not come, since a machine under load may lose a frame: so often, before it
/// counts as dropped.
const AGAIN: usize = 3;

/// What the router tells the sender of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// A segment with RST.
    Reset,
    /// A message of ICMP: its type and code.
    Message(u8, u8),
}

pub(crate) struct Router {
    router: Namespace,
    sender: FrameSender,
    receivers: [FrameReceiver; 2],
    /// From the other side, and back at the first one.
    back: (FrameSender, [FrameReceiver; 2]),
    /// What it was asked.
    pub(crate) judged: Judged,
}

/// What a packet is known by; not 0, in place of which Linux chooses a number.
fn number(index: usize) -> u32 {
    index as u32 + 1
}

impl Router {
    /// A router without rules; `None` where networks cannot be made, or a program that it needs is not there.
    pub(crate) fn new(programs: &[&str]) -> Option<Router> {
        let runs = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        if let Some(missing) = programs.iter().chain(&["ip"]).find(|program| !runs(program)) {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing} is not installed");
            println!("{missing} is not installed: nothing was judged");
            return None;
        }
        match Self::made() {
            Ok(router) => Some(router),
            Err(error) => {
                println!("networks cannot be made here ({error}): nothing was judged");
                None
            }
        }
    }

    /// A router whose kernel has iptables of its own, for both families, besides these programs.
    pub(crate) fn with_iptables(programs: &[&str]) -> Option<Router> {
        const IPTABLES: [&str; 3] = ["nft", "iptables-legacy-restore", "ip6tables-legacy-restore"];
        let router = Router::new(&[&IPTABLES, programs].concat())?;
        if router.run("ip6tables-legacy-save", &[], "").is_ok_and(|output| output.status.success()) {
            return Some(router);
        }
        println!("this kernel has no iptables of its own: nothing was judged");
        None
    }

    fn made() -> io::Result<Router> {
        let (hosts, router) = (Namespace::new()?, Namespace::new()?);
        hosts.links()?.cable(("in", HERE), ("from-in", ROUTER), &router)?;
        hosts.links()?.cable(("out", THERE), ("to-out", TO_OUT), &router)?;
        for interface in ["in", "out"] {
            hosts.links()?.up(interface)?;
        }
        for (setting, value) in [
            ("ipv4/ip_forward", "1"),
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/from-in/rp_filter", "0"),
            // Every packet that is rejected is answered.
            ("ipv4/icmp_ratemask", "0"),
            // Not a type, as none cannot be written.
            ("ipv6/icmp/ratemask", "255"),
            ("ipv6/conf/all/forwarding", "1"),
            ("ipv6/conf/all/accept_dad", "0"),
        ] {
            router.set(setting, value)?;
        }
        let router = Router {
            sender: FrameSender::new(&hosts, "in")?,
            receivers: [FrameReceiver::new(&hosts, "out", None)?, FrameReceiver::of_ipv6(&hosts, "out")?],
            back: (
                FrameSender::new(&hosts, "out")?,
                [FrameReceiver::new(&hosts, "in", None)?, FrameReceiver::of_ipv6(&hosts, "in")?],
            ),
            router,
            judged: Judged::default(),
        };
        let made = router.run(
            "sh",
            &["-e"],
            "ip link set from-in up; ip link set to-out up
             ip address add 198.18.0.1/30 dev from-in; ip address add 198.18.0.5/30 dev to-out
             ip neigh add 198.18.0.6 lladdr 02:00:00:00:00:04 dev to-out; ip route add default via 198.18.0.6
             ip address add fd00:1::1/64 dev from-in nodad; ip address add fd00:2::1/64 dev to-out nodad
             ip neigh add fd00:2::9 lladdr 02:00:00:00:00:04 dev to-out; ip route add default via fd00:2::9\n",
        )?;
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        if made.status.success() { Ok(router) } else { Err(io::Error::other(said)) }
    }

    /// Runs a program in the router with an input.
    pub(crate) fn run(&self, program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
        self.router.run(program, arguments, input)
    }

    /// Gives the router these rules in place of those it has.
    pub(crate) fn load(&mut self, program: &str, arguments: &[&str], rules: &str) {
        let flushed = self.run("nft", &["flush", "ruleset"], "").expect("nft runs");
        assert!(flushed.status.success(), "{}", String::from_utf8_lossy(&flushed.stderr));
        let loaded = self.run(program, arguments, rules).expect("it runs");
        assert!(loaded.status.success(), "{}\n{rules}", String::from_utf8_lossy(&loaded.stderr));
        self.count_rules(rules);
    }

    /// Notes the rules that were loaded: those of a dump, or what nftables has now.
    fn count_rules(&mut self, loaded: &str) {
        let of_iptables = loaded.lines().filter(|line| line.starts_with("-A ")).count();
        self.judged.rulesets += 1;
        self.judged.rules += match of_iptables {
            0 => self.listed().matches("{\"rule\": ").count(),
            of_iptables => of_iptables,
        };
    }

    /// What nftables has now, as JSON.
    pub(crate) fn listed(&self) -> String {
        let listed = self.run("nft", &["-j", "list", "ruleset"], "").expect("nft runs");
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        String::from_utf8(listed.stdout).expect("nft prints text")
    }

    /// Tells the router that 100.64.0.0/10 and 2001:db8::100.64.0.0/106 are at the side of the first sender.
    pub(crate) fn knows_clients(&self) {
        let known = "ip neigh add 198.18.0.2 lladdr 02:00:00:00:00:01 dev from-in
             ip route add 100.64.0.0/10 via 198.18.0.2 dev from-in
             ip neigh add fd00:1::9 lladdr 02:00:00:00:00:01 dev from-in
             ip route add 2001:db8::6440:0/106 via fd00:1::9 dev from-in\n";
        let known = self.run("sh", &["-e"], known).expect("sh runs");
        assert!(known.status.success(), "{}", String::from_utf8_lossy(&known.stderr));
    }

    /// Sends packets, in this order, from the one side or (`true`) the other, and says which come out
    /// at the opposite one, by their identification.
    pub(crate) fn exchange(&mut self, packets: &[(bool, Vec<u8>)], on_the_way: &OnTheWay) -> HashSet<u16> {
        for (from_out, packet) in packets {
            self.send(*from_out, packet);
        }
        let mut came = HashSet::new();
        let mut quiet = 0;
        while quiet < QUIET {
            thread::sleep(Duration::from_millis(1));
            let mut count = 0;
            let there = self.receivers.iter_mut().map(|receiver| (receiver, THERE));
            let here = self.back.1.iter_mut().map(|receiver| (receiver, HERE));
            for (receiver, station) in there.chain(here) {
                let mut one = |_, frame: &[u8]| {
                    let (at, addresses) = if &frame[12..14] == V6 { (16, 22..54) } else { (18, 26..34) };
                    let identification = u16::from_be_bytes([frame[at], frame[at + 1]]);
                    // The router's own messages have other addresses, or no identification.
                    let of_packet = |(source, target): &(IpAddr, IpAddr)| {
                        [octets(*source), octets(*target)].concat() == frame[addresses.clone()]
                    };
                    if frame[..6] == station && on_the_way.get(&identification).is_some_and(of_packet) {
                        came.insert(identification);
                    }
                };
                count += receiver.receive(&mut one).expect("frames can be received");
            }
            quiet = if count == 0 { quiet + 1 } else { 0 };
        }
        came
    }

    /// Sends packets from the first side, and says what the router tells their senders, each known by its
    /// address.
    pub(crate) fn answers(&mut self, packets: &[Vec<u8>]) -> HashMap<IpAddr, Answer> {
        for packet in packets {
            self.send(false, packet);
        }
        let mut answers = HashMap::new();
        let mut quiet = 0;
        while quiet < QUIET {
            thread::sleep(Duration::from_millis(1));
            let mut count = 0;
            let mut one = |_, frame: &[u8]| {
                if frame[..6] != HERE || frame[6..12] != ROUTER {
                    return;
                }
                let four = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).map(Ipv4Addr::from).map(IpAddr::V4);
                let six = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).map(Ipv6Addr::from).map(IpAddr::V6);
                let (protocol, to, rest) = match &frame[12..14] {
                    V6 => (frame[20], six(&frame[38..54]), &frame[54..]),
                    _ => (frame[23], four(&frame[30..34]), &frame[34..]),
                };
                let answer = match protocol {
                    6 if rest[13] & 4 != 0 => Answer::Reset,
                    1 | 58 => Answer::Message(rest[0], rest[1]),
                    _ => return,
                };
                answers.insert(to.expect("an address"), answer);
            };
            for receiver in &mut self.back.1 {
                count += receiver.receive(&mut one).expect("frames can be received");
            }
            quiet = if count == 0 { quiet + 1 } else { 0 };
        }
        answers
    }

    /// Sends a packet from the one side or (`true`) the other.
    fn send(&self, from_out: bool, packet: &[u8]) {
        let (sender, to, from) =
            if from_out { (&self.back.0, TO_OUT, THERE) } else { (&self.sender, ROUTER, HERE) };
        let kind = if packet[0] >> 4 == 6 { V6 } else { &[8, 0] };
        let frame = [&to[..], &from, kind, packet].concat();
        while sender.send(&[&frame]).expect("frames can be sent") == 0 {}
    }

    /// Gives the router a ruleset of nftables in place of what it has, or says why that cannot be.
    pub(crate) fn try_load(&mut self, rules: &str) -> Result<(), String> {
        let loaded = self.run("nft", &["-f", "-"], &format!("flush ruleset\n{rules}\n")).expect("nft runs");
        if loaded.status.success() {
            self.count_rules(rules);
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&loaded.stderr).into_owned())
        }
    }

    /// Which of these packets come out at the other side. Those that are wanted there are sent again if they
    /// do not come.
    pub(crate) fn passes(&mut self, packets: &[Packet], wanted: &[bool]) -> Vec<bool> {
        self.asked(wanted, |router, burst, passed| {
            router.burst(packets, burst);
            router.collect(packets, passed);
        })
    }

    /// Which of these packets come out at the other side, each sent once, one after the other.
    pub(crate) fn passes_once(&mut self, packets: &[Packet]) -> Vec<bool> {
        let mut passed = vec![false; packets.len()];
        for burst in (0..packets.len()).collect::<Vec<usize>>().chunks(AT_ONCE) {
            self.burst(packets, burst);
            self.collect(packets, &mut passed);
        }
        passed
    }

    /// Which of these packets for the router itself reach the table `watch`, whose sets `four` and `six`
    /// remember what they are known by.
    pub(crate) fn reaches(&mut self, packets: &[Packet], wanted: &[bool]) -> Vec<bool> {
        self.asked(wanted, |router, burst, passed| {
            router.burst(packets, burst);
            thread::sleep(Duration::from_millis(5));
            let listed = router.run("nft", &["list", "table", "inet", "watch"], "").expect("nft runs");
            let listed = String::from_utf8(listed.stdout).expect("nft prints text");
            let elements = listed.split("elements = {").skip(1).filter_map(|rest| rest.split('}').next());
            for word in elements.flat_map(|elements| elements.split([',', ' ', '\n', '\t'])) {
                let number = match word.strip_prefix("0x") {
                    Some(digits) => usize::from_str_radix(digits, 16).ok(),
                    None => word.parse().ok(),
                };
                if let Some(seen) = number.and_then(|number| passed.get_mut(number.checked_sub(1)?)) {
                    *seen = true;
                }
            }
        })
    }

    /// Which of these packets come out at the other side when the router itself sends them.
    pub(crate) fn leaves(&mut self, packets: &[Packet], wanted: &[bool]) -> Vec<bool> {
        const SEND: &str = "
import socket, sys
four = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
six = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
for line in sys.stdin:
    packet = bytes.fromhex(line)
    try:
        if packet[0] >> 4 == 6:
            six.sendto(packet, (socket.inet_ntop(socket.AF_INET6, packet[24:40]), 0))
        else:
            four.sendto(packet, (socket.inet_ntop(socket.AF_INET, packet[16:20]), 0))
    except PermissionError:
        pass  # A rule has dropped it.
";
        self.asked(wanted, |router, burst, passed| {
            let hex = |index: &usize| {
                let frame = packets[*index].frame(number(*index), ROUTER, HERE);
                frame[14..].iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n"
            };
            let text: String = burst.iter().map(hex).collect();
            let sent = router.run("python3", &["-c", SEND], &text).expect("python3 runs");
            assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
            router.collect(packets, passed);
        })
    }

    /// Asks about packets in bursts, and again about those that are wanted and did not come.
    fn asked(
        &mut self,
        wanted: &[bool],
        mut ask: impl FnMut(&mut Router, &[usize], &mut Vec<bool>),
    ) -> Vec<bool> {
        let mut passed = vec![false; wanted.len()];
        let mut left: Vec<usize> = (0..wanted.len()).collect();
        for _ in 0..=AGAIN {
            for burst in left.chunks(AT_ONCE) {
                ask(self, burst, &mut passed);
            }
            left.retain(|&index| wanted[index] && !passed[index]);
        }
        self.judged.packets += wanted.len();
        passed
    }

    fn burst(&self, packets: &[Packet], burst: &[usize]) {
        let frames: Vec<Vec<u8>> =
            burst.iter().map(|&index| packets[index].frame(number(index), ROUTER, HERE)).collect();
        let mut frames: &[&[u8]] = &frames.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>();
        while !frames.is_empty() {
            let taken = self.sender.send(frames).expect("frames can be sent");
            frames = &frames[taken..];
        }
    }

    fn collect(&mut self, packets: &[Packet], passed: &mut [bool]) {
        let mut quiet = 0;
        while quiet < QUIET {
            thread::sleep(Duration::from_millis(1));
            let mut came = 0;
            for receiver in &mut self.receivers {
                came += receiver
                    .receive(|_, frame| {
                        let (id, source) = match &frame[12..14] {
                            V6 => (
                                u32::from_be_bytes([0, frame[15] & 15, frame[16], frame[17]]),
                                &frame[22..38],
                            ),
                            _ => (u32::from_be_bytes([0, 0, frame[18], frame[19]]), &frame[26..30]),
                        };
                        let index = (id as usize).wrapping_sub(1);
                        let packet = packets.get(index);
                        // The router's own messages have its own addresses.
                        if packet.is_some_and(|packet| packet.source().ends_with(source)) {
                            passed[index] = true;
                        }
                    })
                    .expect("frames can be received");
            }
            quiet = if came == 0 { quiet + 1 } else { 0 };
        }
    }
}
