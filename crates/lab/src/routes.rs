//! `lab routes`: how soon a gateway has the routes that bgpd and zebra of FRR put into the kernel, beside the
//! kernel itself, and what becomes of packets of another route meanwhile.
//!
//! ```text
//! host a                gateway's network                           host b
//! numbered packets ───► to-a  gateway  to-b ──────────────────────► all arrive
//!                             │  ▲ rtnetlink
//!                             │ kernel ◄── zebra ◄── bgpd ◄──────── a speaker of BGP announces and withdraws
//! ```
//!
//! Both counts are read in turn, the kernel's first, from the first message of BGP on.

use crate::experiment::{Better, Figure, Other, Row};
use crate::forwarding::net::{B, CableOffloads, Net, TO_A, TO_B, Way};
use crate::forwarding::{no_networks, steady};
use crate::hosted::{Daemon, HostedGateway, HostedPort, START, until};
use crate::measure::SEED;
use crate::plan::LabPlan;
use crate::traffic::LabError;
use rig::{BgpSpeaker, NumberedFlow, frr_command, frr_daemon, zebra_socket};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tables::generate::Random;

/// How many prefixes, unless the plan says.
const COUNTS: [u32; 3] = [10_000, 100_000, 900_000];
const QUICK: [u32; 1] = [1_000];
/// The most of IPv6: the program's table has room for 256k.
const MOST6: u32 = 250_000;
/// How many of them change in a burst at most.
const BURST: usize = 100_000;
/// How long a table may take to be as wanted, and how much longer for each prefix. With few prefixes it takes
/// parts of a second.
const PATIENCE: Duration = Duration::from_secs(120);
const PATIENCE_EACH: Duration = Duration::from_micros(600);
/// Looks take at most about so large a part of the time, and come no sooner after each other than this.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(2);
/// The flag of an address that is being checked (`IFA_F_TENTATIVE` of linux/if_addr.h).
const TENTATIVE: u32 = 0x40;
/// Between two packets of the route that does not change.
const EVERY: Duration = Duration::from_millis(1);
/// Another address of host b, on the link, and one behind it.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
const BEHIND: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// The addresses of the gateway, of host b and its other one on their link in IPv6.
const LINK6: [Ipv6Addr; 3] = [link6(1), link6(2), link6(3)];

const fn link6(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 0, last)
}

const PARTS: [&str; 3] = ["announced", "changed in a burst", "withdrawn"];

/// Seconds until the kernel and until the gateway were done.
type Seconds = (f64, f64);

/// One run: the seconds of each part, packets that were sent and those that did not arrive.
struct Sample {
    parts: [Seconds; 3],
    sent: u64,
    missing: u64,
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    crate::needed::require(&[crate::needed::PING])?;
    rig::become_root().map_err(no_networks)?;
    Net::new(Way::Routed, CableOffloads::On).map_err(no_networks)?;
    let counts = match &plan.prefixes[..] {
        [] if plan.quick => &QUICK[..],
        [] => &COUNTS[..],
        named => named,
    };
    let directory = tempfile::Builder::new().prefix("ravelin-lab-").tempdir().map_err(no_networks)?;
    let missing = ["zebra", "bgpd"].into_iter().find(|daemon| frr_daemon(daemon).is_none());
    let (mut rows, mut sent) = (Vec::new(), 0);
    let of_both = counts.iter().flat_map(|count| [(*count, Family::Four), (*count, Family::Six)]);
    let fits = |(count, family): &(u32, Family)| matches!(family, Family::Four) || *count <= MOST6;
    for (count, family) in of_both.filter(fits) {
        let case = match family {
            Family::Four => format!("{count} prefixes by BGP, FRR"),
            Family::Six => format!("{count} prefixes of IPv6 by BGP, FRR"),
        };
        if let Some(daemon) = missing {
            rows.push(Row::absent(&case, "routes", &format!("{daemon} is not installed")));
            continue;
        }
        let (mut samples, mut failed) = (Vec::new(), None);
        for run in 0..plan.runs {
            progress(&format!("routes: {case}, round {} of {}", run + 1, plan.runs));
            let folder = directory.path().join(format!("{count}-{family:?}-{run}"));
            match Setting::start(&folder).and_then(|mut setting| setting.run(count, family)) {
                Ok(sample) => samples.push(sample),
                Err(why) => failed = Some(why),
            }
        }
        sent += samples.iter().map(|sample| sample.sent).sum::<u64>();
        match failed {
            Some(why) => rows.push(Row::refused(&case, "routes", "s", &why)),
            None => rows.extend(of(&case, &samples)),
        }
    }
    let mode = format!(
        "gateway, kernel and FRR in one network on all processors, {sent} packets of another route, one each {} ms; {}",
        EVERY.as_millis(),
        steady()
    );
    Ok((rows, mode))
}

fn of(case: &str, samples: &[Sample]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (part, what) in PARTS.into_iter().enumerate() {
        let kernel = Figure::of(samples.iter().map(|sample| sample.parts[part].0));
        let gateway = Figure::of(samples.iter().map(|sample| sample.parts[part].1));
        let other = kernel.map(|kernel| Other::of("the kernel's table", kernel));
        rows.push(Row::alone(case, what, "s", gateway, None).against(other, Better::Less));
    }
    let lost = Figure::of(samples.iter().map(|sample| sample.missing as f64));
    rows.push(Row::alone(case, "packets of another route that do not arrive", "packets", lost, None));
    rows
}

/// A gateway with FRR behind it, between its hosts.
struct Setting {
    speaker: BgpSpeaker,
    _daemons: [Daemon; 2],
    gateway: HostedGateway,
    folder: std::path::PathBuf,
    net: Net,
}

impl Setting {
    fn start(folder: &Path) -> Result<Setting, String> {
        let system = |error: io::Error| error.to_string();
        fs::create_dir_all(folder).map_err(system)?;
        let net = Net::new(Way::Routed, CableOffloads::On).map_err(system)?;
        let run = |host: &rig::Namespace, program: &str, words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            let output = host.run(program, &words, "").map_err(system)?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(format!("{program} {words:?}: {said}")) }
        };
        let ip = |host: &rig::Namespace, words: &str| run(host, "ip", words);
        // The hosts are without IPv6 otherwise.
        for host in [&net.gateway, &net.b] {
            let settings = ["all", "default"].map(|of| format!("net.ipv6.conf.{of}.disable_ipv6=0"));
            run(host, "sysctl", &format!("-qw {}", settings.join(" ")))?;
        }
        ip(&net.b, &format!("address add {OTHER}/24 dev eth0"))?;
        ip(&net.b, &format!("address add {BEHIND}/32 dev lo"))?;
        for own in &LINK6[1..] {
            ip(&net.b, &format!("address add {own}/64 dev eth0 nodad"))?;
        }
        let six = format!(", \"{}/64\"", LINK6[0]);
        let port = |interface, own, others| HostedPort { interface, own, others, kind: "af_packet" };
        let ports = [port("to-a", TO_A.1, ""), port("to-b", TO_B.1, &six)];
        let gateway = HostedGateway::start(&net.gateway, folder, "", &ports)?;
        ip(&net.gateway, &format!("route add {BEHIND}/32 via {} dev h-to-b", B.1))?;
        let frr = |daemon: &str, text: &str| {
            let command = frr_command(&net.gateway, &folder.join("frr"), daemon, text);
            command.and_then(|mut command| Daemon::start(&mut command)).map_err(system)
        };
        let zebra = frr("zebra", "")?;
        until(START, "zebra begins", || zebra_socket(&folder.join("frr")).exists().then_some(()))?;
        let bgpd = format!(
            "router bgp 65001\n bgp router-id {}\n no bgp ebgp-requires-policy\n neighbor {} remote-as 65002\n neighbor {} passive\n address-family ipv6 unicast\n  neighbor {} activate\n exit-address-family\n",
            TO_B.1, B.1, B.1, B.1
        );
        let daemons = [frr("bgpd", &bgpd)?, zebra];
        let speaker = BgpSpeaker::open(&net.b, 65002, TO_B.1, START).map_err(system)?;
        until(START, "the hosts reach each other", || {
            let ping = net.a.run("ping", &["-c", "1", "-W", "1", &BEHIND.to_string()], "").ok()?;
            ping.status.success().then_some(())
        })?;
        until(START, "the kernel has checked its addresses of IPv6", || {
            (!has_tentative_addresses(&net).ok()?).then_some(())
        })?;
        Ok(Setting { speaker, _daemons: daemons, gateway, folder: folder.to_owned(), net })
    }

    fn run(&mut self, count: u32, family: Family) -> Result<Sample, String> {
        let system = |error: io::Error| error.to_string();
        let all = Prefixes::of(count, family);
        let flow =
            NumberedFlow::start(&self.net.a, &self.net.b, (BEHIND, 7000).into(), EVERY).map_err(system)?;
        let before =
            (prefixes_of_kernel(&self.net, family)?, prefixes_of_gateway(&mut self.gateway, family)?);
        let has = |more: usize| (before.0 + more as u64, before.1 + more as u64);
        let count = count as usize;
        let half = count.min(BURST) / 2;
        let announced = self.part(&all, has(count), true, |speaker| all.announce(speaker, 0..count, 0))?;
        let changed = self.part(&all, has(count - half), false, |speaker| {
            all.announce(speaker, half..2 * half, 1)?;
            all.withdraw(speaker, 0..half)
        })?;
        self.compare(family, count - half)?;
        let withdrawn = self.part(&all, before, false, |speaker| all.withdraw(speaker, half..count))?;
        let end = flow.stop().map_err(system)?;
        let parts = [announced, changed, withdrawn];
        Ok(Sample { parts, sent: end.sent, missing: end.missing.len() as u64 })
    }

    /// Sends something by BGP, and takes the seconds from its beginning until the kernel and the gateway have
    /// so many prefixes: as many at least where they grow, at most where they shrink.
    fn part(
        &mut self,
        all: &Prefixes,
        wanted: (u64, u64),
        grows: bool,
        send: impl FnOnce(&mut BgpSpeaker) -> io::Result<()> + Send,
    ) -> Result<Seconds, String> {
        let Setting { net, gateway, speaker, .. } = self;
        let is_there = |has: u64, wanted: u64| if grows { has >= wanted } else { has <= wanted };
        let (family, patience) = (all.family(), all.patience());
        let (begun, mut kernel) = (Instant::now(), None);
        thread::scope(|scope| {
            let sent = scope.spawn(|| send(speaker));
            loop {
                let look = Instant::now();
                if kernel.is_none() && is_there(prefixes_of_kernel(net, family)?, wanted.0) {
                    kernel = Some(begun.elapsed().as_secs_f64());
                }
                if let Some(kernel) = kernel
                    && is_there(prefixes_of_gateway(gateway, family)?, wanted.1)
                {
                    let both = (kernel, begun.elapsed().as_secs_f64());
                    let sent = sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    return sent.map(|()| both).map_err(|error| error.to_string());
                }
                if begun.elapsed() > patience {
                    return Err(format!("it does not come to {wanted:?} prefixes in {patience:?}"));
                }
                thread::sleep(PAUSE.max(look.elapsed() * LOOKS));
            }
        })
    }

    /// Compares both tables, prefix by prefix, until they are alike: each next hop of the kernel has a number
    /// of its own in the gateway.
    fn compare(&self, family: Family, count: usize) -> Result<(), String> {
        until(START, "the gateway has the kernel's routes", || {
            let shown =
                self.net.gateway.run("ip", &[family.option(), "route", "show", "proto", "bgp"], "").ok()?;
            let word = |line: &str, place: usize| line.split_whitespace().nth(place).map(str::to_owned);
            let via = |line: &str| {
                line.split_whitespace().skip_while(|word| *word != "via").nth(1).map(str::to_owned)
            };
            let text = String::from_utf8_lossy(&shown.stdout).into_owned();
            let kernel: BTreeSet<(String, String)> =
                text.lines().filter_map(|line| Some((word(line, 0)?, via(line)?))).collect();
            let mut command = Command::new(std::env::current_exe().ok()?);
            command
                .args(["table", "show", family.table(), "--control"])
                .arg(HostedGateway::socket(&self.folder));
            let shown = String::from_utf8_lossy(&command.output().ok()?.stdout).into_owned();
            let gateway: std::collections::BTreeMap<&str, &str> =
                shown.lines().filter_map(|line| line.split_once(" => ")).collect();
            let pairs: Option<BTreeSet<(&str, &str)>> = kernel
                .iter()
                .map(|(prefix, via)| Some((via.as_str(), *gateway.get(prefix.as_str())?)))
                .collect();
            let (hops, numbers): (BTreeSet<_>, BTreeSet<_>) = pairs.as_ref()?.iter().copied().unzip();
            let alike = hops.len() == pairs.as_ref()?.len() && numbers.len() == hops.len();
            (alike && kernel.len() == count).then_some(())
        })
    }
}

/// Whether the kernel still looks for others that have one of the gateway's addresses (duplicate address
/// detection, RFC 4862, section 5.4). Where it has found none, it makes routes of its own, which would be
/// counted with those of a run.
fn has_tentative_addresses(net: &Net) -> io::Result<bool> {
    // Each line has an address, the interface's number, the length of the prefix, the scope and the flags.
    let text = net.gateway.inside(|| fs::read_to_string("/proc/thread-self/net/if_inet6"))?;
    let flags = text.lines().filter_map(|line| line.split_whitespace().nth(4));
    Ok(flags.filter_map(|flags| u32::from_str_radix(flags, 16).ok()).any(|flags| flags & TENTATIVE != 0))
}

/// How many prefixes the kernel has in a network.
fn prefixes_of_kernel(net: &Net, family: Family) -> Result<u64, String> {
    let file = match family {
        Family::Four => "/proc/thread-self/net/fib_triestat",
        Family::Six => "/proc/thread-self/net/rt6_stats",
    };
    let text = net.gateway.inside(|| fs::read_to_string(file)).map_err(|error| format!("{file}: {error}"))?;
    let number = match family {
        Family::Four => {
            let line = text.lines().find_map(|line| line.trim().strip_prefix("Prefixes:"));
            line.and_then(|number| number.trim().parse().ok())
        }
        // Nodes, nodes with routes, routes since the start, routes.
        Family::Six => text.split_whitespace().nth(3).and_then(|word| u64::from_str_radix(word, 16).ok()),
    };
    number.ok_or_else(|| format!("{file} has no prefixes"))
}

/// How many prefixes the program in the gateway has.
fn prefixes_of_gateway(gateway: &mut HostedGateway, family: Family) -> Result<u64, String> {
    let place = format!("/report/tables/{}/entries", family.table());
    let entries = gateway.picture()?.pointer(&place).and_then(Value::as_u64);
    entries.ok_or_else(|| "the gateway does not say how many routes it has".to_owned())
}

/// The prefixes of a run are of one family.
#[derive(Clone, Copy, Debug)]
enum Family {
    Four,
    Six,
}

impl Family {
    /// The option of `ip`.
    fn option(self) -> &'static str {
        match self {
            Family::Four => "-4",
            Family::Six => "-6",
        }
    }

    /// The program's table.
    fn table(self) -> &'static str {
        match self {
            Family::Four => "routes",
            Family::Six => "routes6",
        }
    }
}

/// The prefixes of a run.
enum Prefixes {
    Four(Vec<(Ipv4Addr, u8)>),
    Six(Vec<(Ipv6Addr, u8)>),
}

impl Prefixes {
    fn of(count: u32, family: Family) -> Prefixes {
        let numbers = networks(count).into_iter();
        match family {
            Family::Four => Prefixes::Four(numbers.map(|number| (Ipv4Addr::from(number << 8), 24)).collect()),
            // Of 2001::/16, with 40 bits each.
            Family::Six => Prefixes::Six(
                numbers.map(|number| ((0x2001 << 112 | u128::from(number) << 88).into(), 40)).collect(),
            ),
        }
    }

    fn family(&self) -> Family {
        match self {
            Prefixes::Four(_) => Family::Four,
            Prefixes::Six(_) => Family::Six,
        }
    }

    /// How long both tables may take to follow.
    fn patience(&self) -> Duration {
        let count = match self {
            Prefixes::Four(all) => all.len(),
            Prefixes::Six(all) => all.len(),
        };
        PATIENCE + PATIENCE_EACH * count as u32
    }

    /// Announces some of them by an address of host b, its first or its other one.
    fn announce(&self, speaker: &mut BgpSpeaker, which: Range<usize>, hop: usize) -> io::Result<()> {
        match self {
            Prefixes::Four(all) => speaker.announce(&all[which], [B.1, OTHER][hop]),
            Prefixes::Six(all) => speaker.announce6(&all[which], LINK6[1 + hop]),
        }
    }

    fn withdraw(&self, speaker: &mut BgpSpeaker, which: Range<usize>) -> io::Result<()> {
        match self {
            Prefixes::Four(all) => speaker.withdraw(&all[which]),
            Prefixes::Six(all) => speaker.withdraw6(&all[which]),
        }
    }
}

/// Numbers of 24 bits of different networks, in an order of their own: as networks of IPv4 none holds an
/// address of the hosts.
fn networks(count: u32) -> Vec<u32> {
    let (mut random, mut seen) = (Random::new(SEED), BTreeSet::new());
    let mut made = Vec::with_capacity(count as usize);
    while made.len() < count as usize {
        let network = random.between(11 << 16, (127 << 16) - 1) as u32;
        if seen.insert(network) {
            made.push(network);
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::net::A;

    #[test]
    fn prefixes_differ_and_hold_no_address_of_the_hosts() {
        let made = networks(2_000);
        let different: BTreeSet<_> = made.iter().collect();
        assert_eq!(different.len(), 2_000);
        let of = |address: Ipv4Addr| u32::from(address) >> 8;
        assert!([A.1, B.1, OTHER, BEHIND].into_iter().all(|own| !made.contains(&of(own))));
    }
}
