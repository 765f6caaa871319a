//! Profiles of generated traffic: what it looks like, and the built-in profiles.

/// The shape of generated traffic. Shares are fractions of all packets, between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// How many packets there are.
    pub packets: u64,
    /// The mean length of a packet on the wire, in bytes, without the frame check sequence.
    pub mean_bytes: f64,
    /// How many TCP and UDP flows there are, both directions of a conversation counted as one; at least one
    /// for each combination of protocol, tag and address family that has packets.
    pub flows: u64,
    /// How many hosts there are: a quarter of them clients, the others servers.
    pub hosts: u32,
    /// Packets of TCP flows to port 80 or 443; part of `tcp_share`.
    pub web_share: f64,
    /// TCP packets. This and the next four add up to 1.
    pub tcp_share: f64,
    /// UDP packets.
    pub udp_share: f64,
    /// ICMP packets (ICMPv6 where the packet is IPv6).
    pub icmp_share: f64,
    /// ARP packets.
    pub arp_share: f64,
    /// Packets of another EtherType than IP and ARP.
    pub other_share: f64,
    /// Fragments of IPv4 packets; part of `udp_share`.
    pub fragment_share: f64,
    /// Packets with an 802.1Q tag.
    pub vlan_share: f64,
    /// IPv6 packets.
    pub ipv6_share: f64,
    /// The most bytes of a packet that are captured.
    pub snap_bytes: u32,
    /// Packets of which not even all headers were captured.
    pub cut_share: f64,
    /// Packets with a header that cannot be right, or too short for one.
    pub damaged_share: f64,
    /// Of the packets of web flows, those that go to the server.
    pub request_share: f64,
    /// The mean length of those, in bytes, unless all lengths have to shrink for `mean_bytes`.
    pub request_bytes: f64,
    /// Of the web flows, those between two clients: such hosts both ask and serve.
    pub peer_share: f64,
    /// The exponent of the Zipf distribution of packets over flows: 0 is even, 1 as in the Internet.
    pub zipf_exponent: f64,
    /// The time from the first packet to the last, in nanoseconds.
    pub duration_ns: u64,
    /// Whether servers answer.
    pub bidirectional: bool,
}

/// A profile that no traffic can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// {name} is {value}; it must be at least {least} and at most {most}
    #[error("{name} is {value}; it must be at least {least} and at most {most}")]
    Range {
        /// The name of the field.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The smallest possible value.
        least: f64,
        /// The largest possible value.
        most: f64,
    },
    /// the shares of TCP, UDP, ICMP, ARP and others add up to {sum} instead of 1
    #[error("the shares of TCP, UDP, ICMP, ARP and others add up to {sum} instead of 1")]
    Sum {
        /// What they add up to.
        sum: f64,
    },
}

impl Profile {
    /// An office at work on the web: few flows, long answers.
    pub fn sample1() -> Profile {
        Profile {
            packets: 14_261,
            mean_bytes: 646.0,
            flows: 1_209,
            hosts: 240,
            web_share: 0.83,
            tcp_share: 0.9612,
            udp_share: 0.0367,
            icmp_share: 0.0011,
            arp_share: 0.0010,
            other_share: 0.0,
            fragment_share: 0.0,
            vlan_share: 0.0,
            ipv6_share: 0.0,
            snap_bytes: packet::MAXIMUM_CAPTURED,
            cut_share: 0.0,
            damaged_share: 0.0,
            request_share: 0.40,
            request_bytes: 213.0,
            peer_share: 0.0,
            zipf_exponent: 1.0,
            duration_ns: 300_000_000_000,
            bidirectional: true,
        }
    }

    /// A busy access link: many flows, half of the packets web.
    pub fn sample2() -> Profile {
        Profile {
            packets: 791_615,
            mean_bytes: 449.0,
            flows: 40_000,
            hosts: 2_600,
            web_share: 0.5194,
            tcp_share: 0.8022,
            udp_share: 0.1945,
            icmp_share: 0.0013,
            arp_share: 0.0015,
            other_share: 0.0005,
            request_share: 0.46,
            // Shrunk with all others to 403.
            request_bytes: 484.0,
            ..Profile::sample1()
        }
    }

    /// An industrial control network: short packets, little web.
    pub fn sample3() -> Profile {
        Profile {
            packets: 2_274_747,
            mean_bytes: 76.0,
            flows: 100_000,
            hosts: 60,
            web_share: 0.05,
            tcp_share: 0.9525,
            udp_share: 0.0368,
            icmp_share: 0.0030,
            arp_share: 0.0050,
            other_share: 0.0027,
            request_share: 0.5,
            // Shrunk with all others to 97.
            request_bytes: 813.0,
            duration_ns: 86_400_000_000_000,
            ..Profile::sample1()
        }
    }

    /// A little of everything in a small capture: it keeps the headers and little more, as captures for
    /// statistics do.
    pub fn demo() -> Profile {
        Profile {
            packets: 2_000,
            mean_bytes: 240.0,
            flows: 160,
            hosts: 40,
            web_share: 0.45,
            tcp_share: 0.55,
            udp_share: 0.30,
            icmp_share: 0.07,
            arp_share: 0.05,
            other_share: 0.03,
            fragment_share: 0.02,
            vlan_share: 0.05,
            ipv6_share: 0.08,
            snap_bytes: 74,
            cut_share: 0.05,
            damaged_share: 0.02,
            request_share: 0.5,
            request_bytes: 130.0,
            peer_share: 0.6,
            duration_ns: 60_000_000_000,
            ..Profile::sample1()
        }
    }

    /// Whether there can be traffic of this shape.
    pub fn check(&self) -> Result<(), ProfileError> {
        let rounding = f64::EPSILON.sqrt();
        let shares = [self.tcp_share, self.udp_share, self.icmp_share, self.arp_share, self.other_share];
        let with_ipv6 = shares[..3].iter().sum::<f64>() - self.fragment_share;
        let clients = f64::from(super::clients(self.hosts));
        // A class of packets, of which there are at most 24, has no more flows than packets.
        let in_flows =
            (self.packets as f64 * (self.tcp_share + self.udp_share - self.fragment_share) - 24.0).max(0.0);
        for (name, value, least, most) in [
            ("packets", self.packets as f64, 0.0, 1e15),
            ("tcp_share", self.tcp_share, 0.0, 1.0),
            ("udp_share", self.udp_share, 0.0, 1.0),
            ("icmp_share", self.icmp_share, 0.0, 1.0),
            ("arp_share", self.arp_share, 0.0, 1.0),
            ("other_share", self.other_share, 0.0, 1.0),
            ("web_share", self.web_share, 0.0, self.tcp_share),
            ("fragment_share", self.fragment_share, 0.0, self.udp_share),
            ("vlan_share", self.vlan_share, 0.0, 1.0),
            ("ipv6_share", self.ipv6_share, 0.0, with_ipv6 + rounding),
            ("snap_bytes", f64::from(self.snap_bytes), 60.0, f64::from(packet::MAXIMUM_CAPTURED)),
            ("cut_share", self.cut_share, 0.0, 1.0),
            ("damaged_share", self.damaged_share, 0.0, 1.0),
            ("request_share", self.request_share, 0.0, 1.0),
            ("peer_share", self.peer_share, 0.0, 1.0),
            ("request_bytes", self.request_bytes, 60.0, 1_400.0),
            ("mean_bytes", self.mean_bytes, 60.0, 1_400.0),
            ("hosts", f64::from(self.hosts), 2.0, 100_000.0),
            ("zipf_exponent", self.zipf_exponent, 0.0, 10.0),
            ("flows", self.flows as f64, 0.0, in_flows.min(clients * 55_000.0)),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ProfileError::Range { name, value, least, most });
            }
        }
        let sum = shares.iter().sum::<f64>();
        if (sum - 1.0).abs() > rounding {
            return Err(ProfileError::Sum { sum });
        }
        Ok(())
    }
}
