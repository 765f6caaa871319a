//! `lab trusted`: one TCP stream between two hosts, or between a host and the router, and what a gateway
//! between them costs it: as one process, split into confined ones, and with the router in a container or in
//! a virtual machine, by policy.
//!
//! ```text
//! host a: iperf3 ─── eth0 [ a cable | Linux | one process | T0 | T1 | T2 ] eth0 ─── host b: iperf3
//!                                          │
//!                                      the router: iperf3
//! ```
//!
//! The router is the machine itself, reached by a port of kind TAP; in T1 it is a container, reached by a
//! VNIC, and in T2 a virtual machine there, which is emulated: its processor is slow, and its figures say
//! little of a machine with KVM.
//!
//! The method is that of TrustedGateway (RAID 2022): one stream, both ways, offloads off everywhere, and
//! policies that differ along five axes (`policies`). None of its figures is quoted.
//!
//! What stands between the hosts takes turns, policy by policy and round by round, in the opposite order
//! every other round. All its processes are held on one processor.

pub(crate) mod availability;
mod gateways;
mod policies;
mod signing;

use crate::experiment::{Better, Figure, Other, Row};
use crate::forwarding::load::{StreamEnds, TrafficDirection, streams, tcp};
use crate::forwarding::net::B;
use crate::forwarding::{no_networks, processors, steady, whole_seconds};
use crate::needed::{IPERF3, QEMU, require};
use crate::plan::LabPlan;
use crate::traffic::LabError;
use gateways::{Between, Joined};
use policies::Policy;
use ports::live::GuestLink;
use rig::GuestSystem;
use std::collections::BTreeMap;
use std::path::Path;

/// How many rules are added where their number is looked at.
const RULES: [usize; 3] = [10, 100, 1000];
/// How many streams at a time, where their number is looked at.
const FLOWS: [u32; 3] = [1, 10, 100];
/// With which of the nine policies.
const OF_FLOWS: usize = 1;
/// Those of a quick try.
const QUICK: [usize; 2] = [0, 1];

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Measure {
    There,
    Back,
    ToRouter,
    FromRouter,
    Flows(u32),
}

impl Measure {
    fn name(self) -> String {
        match self {
            Measure::There => "one stream a to b".to_owned(),
            Measure::Back => "one stream b to a".to_owned(),
            Measure::ToRouter => "one stream a to router".to_owned(),
            Measure::FromRouter => "one stream router to a".to_owned(),
            Measure::Flows(1) => "1 stream at a time".to_owned(),
            Measure::Flows(count) => format!("{count} streams at a time"),
        }
    }
}

/// Between hosts, both ways.
const HOSTS: [Measure; 2] = [Measure::There, Measure::Back];
/// Between a host and the router, both ways.
const WITH_ROUTER: [Measure; 2] = [Measure::ToRouter, Measure::FromRouter];

/// What is measured with a policy.
struct Part {
    policy: Policy,
    measures: Vec<Measure>,
}

/// What is to be measured.
fn parts(quick: bool) -> Vec<Part> {
    let part = |policy: Policy| {
        let mut measures = HOSTS.to_vec();
        if policy.has_services {
            measures.extend(WITH_ROUTER);
        }
        Part { policy, measures }
    };
    let nine = policies::nine();
    if quick {
        let chosen = nine.into_iter().enumerate().filter(|(place, _)| QUICK.contains(place));
        return chosen.map(|(_, policy)| part(policy)).collect();
    }
    let more = RULES.map(|count| part(policies::with_rules(count)));
    let mut parts: Vec<Part> = nine.into_iter().map(part).collect();
    parts[OF_FLOWS].measures.extend(FLOWS.map(Measure::Flows));
    parts.extend(more);
    parts
}

/// Samples, by what stands between the hosts, by the place of the part and by what was measured; and why
/// there are none. What has no policy has place 0.
#[derive(Default)]
struct Shown {
    samples: BTreeMap<(Between, usize, Measure), Vec<f64>>,
    failed: BTreeMap<(Between, usize, Measure), String>,
}

impl Shown {
    fn figure(&self, between: Between, place: usize, measure: Measure) -> Option<Figure> {
        Figure::of(self.samples.get(&(between, place, measure))?.iter().copied())
    }
}

/// A folder for the gateways of an experiment, once this process may make networks.
fn prepared() -> Result<tempfile::TempDir, LabError> {
    require(&[IPERF3])?;
    rig::become_root().map_err(no_networks)?;
    tempfile::Builder::new().prefix("ravelin-lab-").tempdir().map_err(no_networks)
}

/// Whether the plan has what stands between the hosts.
fn is_wanted(plan: &LabPlan, between: &Between) -> bool {
    plan.gateways.is_empty() || plan.gateways.iter().any(|name| between.name().contains(name.as_str()))
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let directory = prepared()?;
    let no_guest = no_guest(plan.guest.as_deref());
    let (betweens, without_guest): (Vec<Between>, Vec<Between>) = Between::ALL
        .into_iter()
        .filter(|between| is_wanted(plan, between))
        .partition(|between| between.guest().is_none() || no_guest.is_none());
    let parts = parts(plan.quick);
    let mut shown = Shown::default();
    for round in 0..plan.runs {
        for (place, part) in parts.iter().enumerate() {
            let mut order: Vec<Between> = betweens.clone();
            order.retain(|between| between.has_policy() || place == 0);
            if round % 2 == 1 {
                order.reverse();
            }
            for between in order {
                let of = if between.has_policy() { format!(", {}", part.policy.name) } else { String::new() };
                progress(&format!("trusted: round {} of {}, {}{of}", round + 1, plan.runs, between.name()));
                let folder = directory.path().join(format!("{between:?}-{place}-{round}"));
                if let Err(why) = take(between, place, part, &folder, plan, &mut shown) {
                    let all = part.measures.iter().map(|measure| ((between, place, *measure), why.clone()));
                    shown.failed.extend(all);
                }
            }
        }
    }
    let mode = format!(
        "one stream of iperf3 between two hosts on virtual cables, offloads off everywhere but at the link of a virtual machine; all processes of a gateway on processor {}, \
everything else where the system puts it; {}",
        processors().gateway,
        steady()
    );
    let mut rows = told(&betweens, &parts, &shown);
    for (between, why) in without_guest.iter().zip(no_guest.iter().cycle()) {
        rows.push(Row::absent("the router", between.name(), why));
    }
    Ok((rows, mode))
}

/// Why there can be no virtual machine with the Linux of a folder.
fn no_guest(folder: Option<&Path>) -> Option<String> {
    let Some(folder) = folder else { return Some("no Linux is named by `--guest FOLDER`".to_owned()) };
    let system = GuestSystem::below(folder, GuestLink::Tap).map_err(|error| error.to_string());
    QEMU.found().and(system.map(drop)).err()
}

/// One turn.
fn take(
    between: Between,
    place: usize,
    part: &Part,
    folder: &Path,
    plan: &LabPlan,
    shown: &mut Shown,
) -> Result<(), String> {
    let guest = plan.guest.as_deref();
    let joined = Joined::new(between, &part.policy, folder, processors().gateway, None, guest)?;
    let hosts = StreamEnds { client: &joined.net.a, server: &joined.net.b, address: B.1 };
    let router = joined.router().map(|address| StreamEnds { server: &joined, address, ..hosts });
    for &measure in &part.measures {
        let seconds = whole_seconds(plan);
        let bits = match (measure, router) {
            (Measure::There, _) => tcp(hosts, TrafficDirection::There, 0, seconds),
            (Measure::Back, _) => tcp(hosts, TrafficDirection::Back, 0, seconds),
            (Measure::ToRouter, Some(router)) => tcp(router, TrafficDirection::There, 0, seconds),
            (Measure::FromRouter, Some(router)) => tcp(router, TrafficDirection::Back, 0, seconds),
            // A cable has no router.
            (Measure::ToRouter | Measure::FromRouter, None) => continue,
            (Measure::Flows(count), _) => streams(hosts, count, seconds),
        };
        match bits {
            Ok(bits) => shown.samples.entry((between, place, measure)).or_default().push(bits / 1e9),
            Err(why) => drop(shown.failed.insert((between, place, measure), why)),
        }
    }
    Ok(())
}

/// The rows: T2 beside T1, T1 beside T0, T0 beside one process with the same back end and kind of ports, by
/// AF_XDP beside AF_PACKET, and one process beside Linux.
fn told(betweens: &[Between], parts: &[Part], shown: &Shown) -> Vec<Row> {
    let (what, unit) = ("TCP payload", "Gbit/s of TCP");
    let mut rows = Vec::new();
    for between in betweens.iter().filter(|between| !between.has_policy()) {
        for measure in HOSTS.into_iter().chain(WITH_ROUTER) {
            if *between == Between::Nothing && WITH_ROUTER.contains(&measure) {
                continue;
            }
            let other = shown.figure(*between, 0, measure).map(|figure| Other::of(between.name(), figure));
            rows.push(match (other, shown.failed.get(&(*between, 0, measure))) {
                (None, Some(why)) => Row::absent(&measure.name(), between.name(), why),
                (other, _) => Row::of_other(&measure.name(), what, unit, other),
            });
        }
    }
    for (place, part) in parts.iter().enumerate() {
        for between in betweens.iter().filter(|between| between.has_policy()) {
            for &measure in &part.measures {
                let case = format!("{}, {}, {}", measure.name(), part.policy.name, between.name());
                if let Some(why) = shown.failed.get(&(*between, place, measure)) {
                    rows.push(Row::refused(&case, what, unit, why));
                    continue;
                }
                let beside = match between {
                    Between::Split => Between::Bytecode,
                    Between::SplitNative => Between::OneProcess,
                    Between::OneProcessByXdp => Between::OneProcess,
                    Between::SplitByXdp => Between::OneProcessByXdp,
                    Between::Contained => Between::Split,
                    Between::ContainedNative => Between::SplitNative,
                    Between::MachineByTap | Between::MachineByRings => Between::ContainedNative,
                    _ => Between::Linux,
                };
                let beside_place = if beside.has_policy() { place } else { 0 };
                let row = Row::alone(&case, what, unit, shown.figure(*between, place, measure), None);
                let other = shown.figure(beside, beside_place, measure);
                rows.push(row.against(other.map(|figure| Other::of(beside.name(), figure)), Better::More));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confined_gateway_stands_beside_one_process_and_what_failed_says_why() {
        let parts = parts(true);
        let mut shown = Shown::default();
        for (between, rate) in [
            (Between::Linux, 4.0),
            (Between::OneProcess, 3.0),
            (Between::Bytecode, 2.0),
            (Between::Split, 1.9),
            (Between::SplitNative, 2.7),
            (Between::ContainedNative, 2.43),
            (Between::OneProcessByXdp, 2.0),
            (Between::SplitByXdp, 2.0),
        ] {
            shown.samples.insert((between, 0, Measure::There), vec![rate]);
        }
        shown.failed.insert((Between::Split, 1, Measure::Back), "it did not begin".to_owned());
        let rows = told(&Between::ALL, &parts, &shown);
        let of = |case: &str| rows.iter().find(|row| row.case == case).unwrap_or_else(|| panic!("{case}"));
        let split = of("one stream a to b, 0 pass all, T0 with bytecode");
        assert_eq!(split.ratio, Some(0.95));
        assert_eq!(split.other.as_ref().map(|other| &*other.name), Some("one process with bytecode"));
        let native = of("one stream a to b, 0 pass all, T0 with native code");
        assert_eq!(native.other.as_ref().map(|other| &*other.name), Some("one process with native code"));
        let contained = of("one stream a to b, 0 pass all, T1 with native code");
        assert_eq!(contained.other.as_ref().map(|other| &*other.name), Some("T0 with native code"));
        assert_eq!(contained.ratio, Some(0.9));
        let by_xdp = of("one stream a to b, 0 pass all, T0 by AF_XDP with native code");
        assert_eq!(by_xdp.ratio, Some(1.0));
        let one = of("one stream a to b, 0 pass all, one process with native code");
        assert_eq!(one.ratio, Some(0.75));
        let failed = of("one stream b to a, 1 with state, at all ports, T0 with bytecode");
        assert!(failed.is_missing() && failed.what.contains("it did not begin"));
    }

    #[test]
    fn the_whole_experiment_has_nine_policies_rules_and_flows() {
        let parts = parts(false);
        assert_eq!(parts.len(), 9 + RULES.len());
        assert_eq!(parts[OF_FLOWS].measures.len(), 4 + FLOWS.len());
        assert!(parts.iter().all(|part| part.measures.starts_with(&HOSTS)));
        let with_router = parts.iter().filter(|part| part.measures.contains(&Measure::ToRouter)).count();
        assert_eq!(with_router, 8);
    }
}
