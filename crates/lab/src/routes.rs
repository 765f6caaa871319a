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
use crate::measure::SEED;
use crate::plan::LabPlan;
use crate::programs::PROGRAMS;
use crate::traffic::LabError;
use rig::{AnnouncedPrefix, BgpSpeaker, NumberedFlow, frr_command, frr_daemon, zebra_socket};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tables::generate::Random;

/// How many prefixes, unless the plan says.
const COUNTS: [u32; 3] = [10_000, 100_000, 900_000];
const QUICK: [u32; 1] = [1_000];
/// How many of them change in a burst at most.
const BURST: usize = 100_000;
/// How long daemons may take to begin, and a table to be as wanted.
const START: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(600);
/// Looks take at most about so large a part of the time, and come no sooner after each other than this.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(2);
/// Between two packets of the route that does not change.
const EVERY: Duration = Duration::from_millis(1);
/// Another address of host b, on the link, and one behind it.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
const BEHIND: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

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
    for &count in counts {
        let case = format!("{count} prefixes by BGP, FRR");
        if let Some(daemon) = missing {
            rows.push(Row::absent(&case, "routes", &format!("{daemon} is not installed")));
            continue;
        }
        let (mut samples, mut failed) = (Vec::new(), None);
        for run in 0..plan.runs {
            progress(&format!("routes: {count} prefixes, round {} of {}", run + 1, plan.runs));
            let folder = directory.path().join(format!("{count}-{run}"));
            match Setting::start(&folder).and_then(|mut setting| setting.run(count)) {
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
    net: Net,
    children: Vec<Child>,
    folder: std::path::PathBuf,
    control: BufReader<UnixStream>,
    speaker: BgpSpeaker,
}

impl Drop for Setting {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Setting {
    fn start(folder: &Path) -> Result<Setting, String> {
        let system = |error: io::Error| error.to_string();
        fs::create_dir_all(folder).map_err(system)?;
        let net = Net::new(Way::Routed, CableOffloads::On).map_err(system)?;
        let ip = |host: &rig::Namespace, words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            let output = host.run("ip", &words, "").map_err(system)?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(format!("ip {words:?}: {said}")) }
        };
        ip(&net.b, &format!("address add {OTHER}/24 dev eth0"))?;
        ip(&net.b, &format!("address add {BEHIND}/32 dev lo"))?;
        let socket = folder.join("control.sock");
        let program = PROGRAMS.iter().find(|(name, _)| *name == "router").map_or("", |(_, text)| text);
        fs::write(folder.join("program.rav"), program).map_err(system)?;
        let mut text = format!("program = \"program.rav\"\ncontrol = {:?}\n", socket.display().to_string());
        for (interface, own) in [("to-a", TO_A.1), ("to-b", TO_B.1)] {
            text.push_str(&format!(
                "[[port]]\ninterface = \"{interface}\"\naddresses = [\"{own}/24\"]\nhost = true\n"
            ));
        }
        fs::write(folder.join("gateway.toml"), text).map_err(system)?;
        let mut children = Vec::new();
        let begun = (|| {
            let binary = std::env::current_exe().map_err(system)?;
            let mut gateway = net.gateway.command(binary, None);
            children.push(started(gateway.arg("serve").arg(folder.join("gateway.toml"))).map_err(system)?);
            let control = until(START, "the gateway begins", || {
                let mut control = BufReader::new(UnixStream::connect(&socket).ok()?);
                ask(&mut control, "picture").ok().map(|_| control)
            })?;
            ip(&net.gateway, &format!("route add {BEHIND}/32 via {} dev h-to-b", B.1))?;
            let frr = |daemon: &str, text: &str| {
                let command = frr_command(&net.gateway, &folder.join("frr"), daemon, text);
                command.and_then(|mut command| started(&mut command)).map_err(system)
            };
            children.push(frr("zebra", "")?);
            until(START, "zebra begins", || zebra_socket(&folder.join("frr")).exists().then_some(()))?;
            let bgpd = format!(
                "router bgp 65001\n bgp router-id {}\n no bgp ebgp-requires-policy\n neighbor {} remote-as 65002\n neighbor {} passive\n",
                TO_B.1, B.1, B.1
            );
            children.push(frr("bgpd", &bgpd)?);
            let speaker = BgpSpeaker::open(&net.b, 65002, TO_B.1, START).map_err(system)?;
            until(START, "the hosts reach each other", || {
                let ping = net.a.run("ping", &["-c", "1", "-W", "1", &BEHIND.to_string()], "").ok()?;
                ping.status.success().then_some(())
            })?;
            Ok((control, speaker))
        })();
        match begun {
            Ok((control, speaker)) => {
                Ok(Setting { net, children, folder: folder.to_owned(), control, speaker })
            }
            Err(why) => {
                for child in &mut children {
                    // It may have ended by itself.
                    let _ = child.kill();
                    let _ = child.wait();
                }
                Err(why)
            }
        }
    }

    fn run(&mut self, count: u32) -> Result<Sample, String> {
        let system = |error: io::Error| error.to_string();
        let all = prefixes(count);
        let flow =
            NumberedFlow::start(&self.net.a, &self.net.b, (BEHIND, 7000).into(), EVERY).map_err(system)?;
        let before = (self.kernel()?, self.gateway()?);
        let has = |more: usize| (before.0 + more as u64, before.1 + more as u64);
        let half = all.len().min(BURST) / 2;
        let (goes, rest) = all.split_at(half);
        let stays = &rest[..half];
        let announced = self.part(has(all.len()), true, |speaker| speaker.announce(&all, B.1))?;
        let changed = self.part(has(all.len() - half), false, |speaker| {
            speaker.announce(stays, OTHER)?;
            speaker.withdraw(goes)
        })?;
        self.compare(all.len() - half)?;
        let withdrawn = self.part(before, false, |speaker| speaker.withdraw(rest))?;
        let end = flow.stop().map_err(system)?;
        let parts = [announced, changed, withdrawn];
        Ok(Sample { parts, sent: end.sent, missing: end.missing.len() as u64 })
    }

    /// Sends something by BGP, and takes the seconds from its beginning until the kernel and the gateway have
    /// so many prefixes: as many at least where they grow, at most where they shrink.
    fn part(
        &mut self,
        wanted: (u64, u64),
        grows: bool,
        send: impl FnOnce(&mut BgpSpeaker) -> io::Result<()> + Send,
    ) -> Result<Seconds, String> {
        let Setting { net, control, speaker, .. } = self;
        let is_there = |has: u64, wanted: u64| if grows { has >= wanted } else { has <= wanted };
        let (begun, mut kernel) = (Instant::now(), None);
        thread::scope(|scope| {
            let sent = scope.spawn(|| send(speaker));
            loop {
                let look = Instant::now();
                if kernel.is_none() && is_there(prefixes_of_kernel(net)?, wanted.0) {
                    kernel = Some(begun.elapsed().as_secs_f64());
                }
                if let Some(kernel) = kernel
                    && is_there(prefixes_of_gateway(control)?, wanted.1)
                {
                    let gateway = begun.elapsed().as_secs_f64();
                    let sent = sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    return sent.map(|()| (kernel, gateway)).map_err(|error| error.to_string());
                }
                if begun.elapsed() > PATIENCE {
                    return Err(format!("it does not come to {wanted:?} prefixes in {PATIENCE:?}"));
                }
                thread::sleep(PAUSE.max(look.elapsed() * LOOKS));
            }
        })
    }

    fn kernel(&self) -> Result<u64, String> {
        prefixes_of_kernel(&self.net)
    }

    fn gateway(&mut self) -> Result<u64, String> {
        prefixes_of_gateway(&mut self.control)
    }

    /// Compares both tables, prefix by prefix, until they are alike: each next hop of the kernel has a number
    /// of its own in the gateway.
    fn compare(&self, count: usize) -> Result<(), String> {
        until(START, "the gateway has the kernel's routes", || {
            let shown = self.net.gateway.run("ip", &["route", "show", "proto", "bgp"], "").ok()?;
            let word = |line: &str, place: usize| line.split_whitespace().nth(place).map(str::to_owned);
            let via = |line: &str| {
                line.split_whitespace().skip_while(|word| *word != "via").nth(1).map(str::to_owned)
            };
            let text = String::from_utf8_lossy(&shown.stdout).into_owned();
            let kernel: BTreeSet<(String, String)> =
                text.lines().filter_map(|line| Some((word(line, 0)?, via(line)?))).collect();
            let mut command = Command::new(std::env::current_exe().ok()?);
            command.args(["table", "show", "routes", "--control"]).arg(self.folder.join("control.sock"));
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

/// How many prefixes the kernel has in a network.
fn prefixes_of_kernel(net: &Net) -> Result<u64, String> {
    let read = net.gateway.inside(|| fs::read_to_string("/proc/thread-self/net/fib_triestat"));
    let text = read.map_err(|error| format!("/proc/net/fib_triestat: {error}"))?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Prefixes:"));
    line.and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| "fib_triestat has no prefixes".to_owned())
}

/// How many prefixes the program in the gateway has.
fn prefixes_of_gateway(control: &mut BufReader<UnixStream>) -> Result<u64, String> {
    let picture = ask(control, "picture").map_err(|error| format!("control: {error}"))?;
    let entries = picture.pointer("/picture/report/tables/routes/entries").and_then(Value::as_u64);
    entries.ok_or_else(|| "the gateway does not say how many routes it has".to_owned())
}

fn ask(control: &mut BufReader<UnixStream>, what: &str) -> io::Result<Value> {
    control.get_mut().write_all(format!("{{\"ask\":\"{what}\"}}\n").as_bytes())?;
    let mut line = String::new();
    control.read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn started(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Tries until something is there.
fn until<T>(limit: Duration, what: &str, mut there: impl FnMut() -> Option<T>) -> Result<T, String> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = there() {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(format!("in {limit:?} it does not come about that {what}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Different networks of 256 addresses, in an order of their own, none of which holds an address of the
/// hosts.
fn prefixes(count: u32) -> Vec<AnnouncedPrefix> {
    let (mut random, mut seen) = (Random::new(SEED), BTreeSet::new());
    let mut made = Vec::with_capacity(count as usize);
    while made.len() < count as usize {
        let network = Ipv4Addr::from((random.between(11 << 16, (127 << 16) - 1) as u32) << 8);
        if seen.insert(network) {
            made.push((network, 24));
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
        let made = prefixes(2_000);
        let different: BTreeSet<_> = made.iter().collect();
        assert_eq!(different.len(), 2_000);
        let of = |address: Ipv4Addr| (Ipv4Addr::from(u32::from(address) & 0xffff_ff00), 24);
        assert!([A.1, B.1, OTHER, BEHIND].into_iter().all(|own| !made.contains(&of(own))));
    }
}
