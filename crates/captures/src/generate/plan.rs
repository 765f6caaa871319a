//! Divides the packets and flows of a profile among classes: every combination of protocol, tag and address
//! family.
//!
//! Whole numbers are dealt out by largest remainders, so that they add up exactly. While packets are made,
//! each is drawn from what is left, like cards from a stack; the order is random and the counts at the end
//! are exact.

use super::frame::{LONGEST, SHORTEST};
use super::profile::Profile;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Web,
    Tcp,
    Udp,
    Fragment,
    Icmp,
    Arp,
    Other,
}

/// Packets of one kind with or without a tag, of one address family.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) kind: Kind,
    pub(super) vlan: bool,
    pub(super) ipv6: bool,
    /// How many packets there are in all.
    pub(super) total: u64,
    /// How many are still to come.
    pub(super) left: u64,
    /// How many of those go from client to server.
    pub(super) forward_left: u64,
    /// The number of its first flow; the others follow.
    pub(super) first_flow: u64,
    pub(super) flows: u64,
    /// How many flows have begun.
    pub(super) begun: u64,
    /// The mean lengths of packets to servers and to clients.
    pub(super) mean: [f64; 2],
}

impl Class {
    /// The shortest frame with a payload of nothing.
    pub(super) fn shortest(&self) -> usize {
        let headers = match self.kind {
            Kind::Web | Kind::Tcp => 54,
            Kind::Udp | Kind::Icmp => 42,
            Kind::Fragment => 58,
            Kind::Arp => 42,
            Kind::Other => 18,
        };
        (headers + if self.vlan { 4 } else { 0 } + if self.ipv6 { 20 } else { 0 }).max(SHORTEST)
    }

    /// Whether the next packet of the class begins a flow: so that the beginnings are spread over all its
    /// packets.
    pub(super) fn begins_flow(&self) -> bool {
        // Two fragments make one packet of the flow.
        let unit = if self.kind == Kind::Fragment { 2 } else { 1 };
        let done = (self.total - self.left) / unit;
        let total = self.total.div_ceil(unit);
        self.begun < self.flows
            && u128::from(self.begun) * u128::from(total) <= u128::from(done) * u128::from(self.flows)
    }
}

/// The classes of a profile that have packets.
pub(super) fn classes(profile: &Profile) -> Vec<Class> {
    let kinds = [
        (Kind::Web, profile.web_share),
        (Kind::Tcp, profile.tcp_share - profile.web_share),
        (Kind::Udp, profile.udp_share - profile.fragment_share),
        (Kind::Fragment, profile.fragment_share),
        (Kind::Icmp, profile.icmp_share),
        (Kind::Arp, profile.arp_share),
        (Kind::Other, profile.other_share),
    ];
    let may_be_ipv6 = |kind| matches!(kind, Kind::Web | Kind::Tcp | Kind::Udp | Kind::Icmp);
    let with_ipv6: f64 = kinds.iter().filter(|(kind, _)| may_be_ipv6(*kind)).map(|(_, share)| share).sum();
    let ipv6_part = if with_ipv6 > 0.0 { (profile.ipv6_share / with_ipv6).min(1.0) } else { 0.0 };
    let (mut all, mut weights) = (Vec::new(), Vec::new());
    for (kind, share) in kinds {
        for vlan in [false, true] {
            for ipv6 in [false, true] {
                let ipv6_part = if may_be_ipv6(kind) { ipv6_part } else { 0.0 };
                let part = |has: bool, part: f64| if has { part } else { 1.0 - part };
                weights.push(share.max(0.0) * part(vlan, profile.vlan_share) * part(ipv6, ipv6_part));
                all.push(Class {
                    kind,
                    vlan,
                    ipv6,
                    total: 0,
                    left: 0,
                    forward_left: 0,
                    first_flow: 0,
                    flows: 0,
                    begun: 0,
                    mean: [0.0; 2],
                });
            }
        }
    }
    for (class, packets) in all.iter_mut().zip(deal(profile.packets, &weights)) {
        class.total = packets;
        class.left = packets;
        let forward = match class.kind {
            _ if !profile.bidirectional => 1.0,
            Kind::Web => profile.request_share,
            Kind::Tcp => 0.45,
            Kind::Udp | Kind::Icmp | Kind::Arp => 0.5,
            Kind::Fragment | Kind::Other => 1.0,
        };
        class.forward_left = (packets as f64 * forward).round() as u64;
    }
    all.retain(|class| class.total > 0);
    deal_flows(profile.flows, &mut all);
    set_means(profile, &mut all);
    all
}

/// Gives each class of TCP or UDP packets its flows: at least one, and otherwise as it has packets.
fn deal_flows(flows: u64, classes: &mut [Class]) {
    let mut left = flows;
    for class in classes.iter_mut().filter(|class| class.kind == Kind::Fragment) {
        // A conversation with fragments has many.
        class.flows = 1 + class.total / 1_000;
        left = left.saturating_sub(class.flows);
    }
    let in_flows = |class: &&mut Class| matches!(class.kind, Kind::Web | Kind::Tcp | Kind::Udp);
    let mut some: Vec<_> = classes.iter_mut().filter(in_flows).collect();
    for class in &mut some {
        class.flows = 1;
        left = left.saturating_sub(1);
    }
    // The rest by the packets beyond the one of each class's first flow, so that no class gets more flows
    // than packets.
    let weights: Vec<_> = some.iter().map(|class| (class.total - class.flows) as f64).collect();
    for (class, more) in some.iter_mut().zip(deal(left, &weights)) {
        class.flows += more;
    }
    let mut first = 0;
    for class in classes {
        class.first_flow = first;
        first += class.flows;
    }
}

/// Sets the mean lengths so that the mean over all packets is the profile's.
///
/// Each class has a typical length; all are stretched or shrunk from the shortest possible by one factor,
/// except those of requests to web servers, which the profile gives and which are only shrunk. The factor is
/// found by bisection.
fn set_means(profile: &Profile, classes: &mut [Class]) {
    let wanted = profile.mean_bytes * classes.iter().map(|class| class.total as f64).sum::<f64>();
    let (mut low, mut high) = (0.0, 4_000.0);
    for _ in 0..100 {
        let factor = (low + high) / 2.0;
        let mut bytes = 0.0;
        for class in classes.iter_mut() {
            class.mean = [mean(profile, class, true, factor), mean(profile, class, false, factor)];
            let forward = class.forward_left as f64;
            bytes += forward * class.mean[0] + (class.total as f64 - forward) * class.mean[1];
        }
        if bytes < wanted {
            low = factor;
        } else {
            high = factor;
        }
    }
}

fn mean(profile: &Profile, class: &Class, forward: bool, factor: f64) -> f64 {
    let shortest = class.shortest() as f64;
    let (typical, factor) = match (class.kind, forward) {
        (Kind::Web, true) if profile.bidirectional => (profile.request_bytes, factor.min(1.0)),
        (Kind::Web, _) => (1_000.0, factor),
        (Kind::Tcp, true) => (200.0, factor),
        (Kind::Tcp, false) => (500.0, factor),
        (Kind::Udp, true) => (160.0, factor),
        (Kind::Udp, false) => (260.0, factor),
        (Kind::Fragment, _) => (600.0, factor.min(1.0)),
        (Kind::Icmp, _) => (98.0, factor.min(1.0)),
        (Kind::Arp | Kind::Other, _) => (shortest, 1.0),
    };
    (shortest + factor * (typical - shortest).max(0.0)).min(LONGEST as f64 - 20.0)
}

/// Deals out `n` things by weight. The numbers add up to `n` if any weight is above 0.
fn deal(n: u64, weights: &[f64]) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return vec![0; weights.len()];
    }
    let exact: Vec<_> = weights.iter().map(|weight| n as f64 * weight / sum).collect();
    let mut dealt: Vec<_> = exact.iter().map(|share| share.floor() as u64).collect();
    let mut order: Vec<_> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    let left = n.saturating_sub(dealt.iter().sum());
    for &i in order.iter().cycle().take(left as usize) {
        dealt[i] += 1;
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dealing_adds_up() {
        assert_eq!(deal(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(deal(10, &[0.0, 0.0]), [0, 0]);
        assert_eq!(deal(7, &[0.5, 0.0, 0.5]), [4, 0, 3]);
        assert_eq!(deal(1, &[0.1, 0.9]), [0, 1]);
    }

    #[test]
    fn requests_are_as_long_as_is_said_of_their_profiles() {
        for (profile, bytes) in
            [(Profile::sample1(), 213.0), (Profile::sample2(), 403.0), (Profile::sample3(), 97.0)]
        {
            let classes = classes(&profile);
            let web = classes.iter().find(|class| class.kind == Kind::Web).expect("there is web traffic");
            assert_eq!(web.mean[0].round(), bytes, "{}", web.mean[0]);
        }
    }

    #[test]
    fn classes_add_up_and_have_no_more_flows_than_packets() {
        for profile in [Profile::sample1(), Profile::sample2(), Profile::sample3(), Profile::demo()] {
            let classes = classes(&profile);
            assert_eq!(classes.iter().map(|class| class.total).sum::<u64>(), profile.packets);
            assert_eq!(classes.iter().map(|class| class.flows).sum::<u64>(), profile.flows);
            for class in &classes {
                assert!(class.flows <= class.total, "{class:?}");
            }
        }
    }
}
