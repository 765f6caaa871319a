//! Names of protocols, ports and ICMP messages as firewalls write them (IANA's registries, and IOS's own
//! names).

/// Protocol numbers by name.
const PROTOCOLS: [(&str, u8); 30] = [
    ("ah", 51),
    ("ahp", 51),
    ("comp", 108),
    ("dccp", 33),
    ("egp", 8),
    ("eigrp", 88),
    ("esp", 50),
    ("etherip", 97),
    ("gre", 47),
    ("icmp", 1),
    ("icmpv6", 58),
    ("igmp", 2),
    ("igrp", 9),
    ("ipcomp", 108),
    ("ipencap", 4),
    ("ipinip", 4),
    ("ipip", 94),
    ("ipv6", 41),
    ("ipv6-icmp", 58),
    ("l2tp", 115),
    ("nos", 94),
    ("ospf", 89),
    ("pcp", 108),
    ("pim", 103),
    ("rsvp", 46),
    ("sctp", 132),
    ("tcp", 6),
    ("udp", 17),
    ("udplite", 136),
    ("vrrp", 112),
];

/// Port numbers by name, where TCP and UDP agree or only one of them has it.
const PORTS: [(&str, u16); 73] = [
    ("auth", 113),
    ("bgp", 179),
    ("biff", 512),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("daytime", 13),
    ("discard", 9),
    ("dnsix", 195),
    ("domain", 53),
    ("echo", 7),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("gopher", 70),
    ("hostname", 101),
    ("http", 80),
    ("https", 443),
    ("ident", 113),
    ("imap", 143),
    ("imap2", 143),
    ("imaps", 993),
    ("irc", 194),
    ("isakmp", 500),
    ("kerberos", 88),
    ("klogin", 543),
    ("kshell", 544),
    ("ldap", 389),
    ("ldaps", 636),
    ("lpd", 515),
    ("microsoft-ds", 445),
    ("mobile-ip", 434),
    ("msrpc", 135),
    ("mysql", 3306),
    ("nameserver", 42),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ss", 139),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nntp", 119),
    ("non500-isakmp", 4500),
    ("ntp", 123),
    ("pim-auto-rp", 496),
    ("pop2", 109),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgresql", 5432),
    ("printer", 515),
    ("rdp", 3389),
    ("rip", 520),
    ("rsync", 873),
    ("rtsp", 554),
    ("shell", 514),
    ("sip", 5060),
    ("smtp", 25),
    ("snmp", 161),
    ("snmptrap", 162),
    ("ssh", 22),
    ("submission", 587),
    ("sunrpc", 111),
    ("tacacs", 49),
    ("tacacs-ds", 65),
    ("telnet", 23),
    ("tftp", 69),
    ("time", 37),
    ("uucp", 540),
    ("whois", 43),
    ("www", 80),
    ("xdmcp", 177),
    ("drip", 3949),
    ("rje", 5),
    ("x11", 6000),
];

/// The same name for another port, by protocol: TCP's, then UDP's.
const PORTS_BY_PROTOCOL: [(&str, u16, Option<u16>); 6] = [
    ("cmd", 514, None),
    ("exec", 512, None),
    ("login", 513, None),
    ("talk", 517, Some(517)),
    ("syslog", 514, Some(514)),
    ("who", 513, Some(513)),
];

/// ICMP messages of IPv4 by name: the type, and the code where the name means one.
const ICMP: [(&str, u8, Option<u8>); 40] = [
    ("address-mask-reply", 18, None),
    ("address-mask-request", 17, None),
    ("administratively-prohibited", 3, Some(13)),
    ("communication-prohibited", 3, Some(13)),
    ("destination-unreachable", 3, None),
    ("dod-host-prohibited", 3, Some(10)),
    ("dod-net-prohibited", 3, Some(9)),
    ("echo", 8, None),
    ("echo-reply", 0, None),
    ("echo-request", 8, None),
    ("fragmentation-needed", 3, Some(4)),
    ("host-isolated", 3, Some(8)),
    ("host-precedence-unreachable", 3, Some(14)),
    ("host-prohibited", 3, Some(10)),
    ("host-redirect", 5, Some(1)),
    ("host-tos-redirect", 5, Some(3)),
    ("host-tos-unreachable", 3, Some(12)),
    ("host-unknown", 3, Some(7)),
    ("host-unreachable", 3, Some(1)),
    ("info-reply", 16, None),
    ("info-request", 15, None),
    ("net-redirect", 5, Some(0)),
    ("net-unreachable", 3, Some(0)),
    ("network-prohibited", 3, Some(9)),
    ("network-unknown", 3, Some(6)),
    ("network-unreachable", 3, Some(0)),
    ("packet-too-big", 3, Some(4)),
    ("parameter-problem", 12, None),
    ("port-unreachable", 3, Some(3)),
    ("protocol-unreachable", 3, Some(2)),
    ("redirect", 5, None),
    ("router-advertisement", 9, None),
    ("router-solicitation", 10, None),
    ("source-quench", 4, None),
    ("source-route-failed", 3, Some(5)),
    ("time-exceeded", 11, None),
    ("timestamp-reply", 14, None),
    ("timestamp-request", 13, None),
    ("ttl-exceeded", 11, Some(0)),
    ("unreachable", 3, None),
];

/// ICMP messages of IPv6 by name.
const ICMP_V6: [(&str, u8, Option<u8>); 26] = [
    ("address-unreachable", 1, Some(3)),
    ("bad-header", 4, Some(0)),
    ("beyond-scope", 1, Some(2)),
    ("communication-prohibited", 1, Some(1)),
    ("destination-unreachable", 1, None),
    ("echo-reply", 129, None),
    ("echo-request", 128, None),
    ("mld-listener-done", 132, None),
    ("mld-listener-query", 130, None),
    ("mld-listener-reduction", 132, None),
    ("mld-listener-report", 131, None),
    ("mld2-listener-report", 143, None),
    ("nd-neighbor-advert", 136, None),
    ("nd-neighbor-solicit", 135, None),
    ("nd-redirect", 137, None),
    ("nd-router-advert", 134, None),
    ("nd-router-solicit", 133, None),
    ("neighbor-advertisement", 136, None),
    ("neighbor-solicitation", 135, None),
    ("no-route", 1, Some(0)),
    ("packet-too-big", 2, None),
    ("parameter-problem", 4, None),
    ("port-unreachable", 1, Some(4)),
    ("redirect", 137, None),
    ("router-advertisement", 134, None),
    ("router-solicitation", 133, None),
];

/// The number of a protocol; `None` for a name that is not known.
pub(crate) fn protocol(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|(own, _)| *own == name).map(|(_, number)| *number)
}

/// The number of a port, for a protocol by number.
pub(crate) fn port(name: &str, protocol: Option<u8>) -> Option<u16> {
    if let Some((_, number)) = PORTS.iter().find(|(own, _)| *own == name) {
        return Some(*number);
    }
    let (_, tcp, udp) = PORTS_BY_PROTOCOL.iter().find(|(own, ..)| *own == name)?;
    if protocol == Some(17) { *udp } else { Some(*tcp) }
}

/// The type and the code of an ICMP message by name; `v6` for ICMPv6.
pub(crate) fn icmp(name: &str, v6: bool) -> Option<(u8, Option<u8>)> {
    let names = if v6 { &ICMP_V6[..] } else { &ICMP[..] };
    let extra = [("time-exceeded", 3, None), ("ttl-zero-during-transit", 3, Some(0))];
    let extra = if v6 { &extra[..] } else { &[] };
    names.iter().chain(extra).find(|(own, ..)| *own == name).map(|(_, kind, code)| (*kind, *code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_number() {
        for names in [&ICMP[..], &ICMP_V6[..]] {
            assert!(names.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        assert!(PROTOCOLS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (index, (name, _)) in PORTS.iter().enumerate() {
            assert!(PORTS[index + 1..].iter().all(|(other, _)| other != name), "{name}");
        }
        assert_eq!((port("cmd", Some(6)), port("cmd", Some(17))), (Some(514), None));
        assert_eq!(
            (icmp("echo-request", false), icmp("echo-request", true)),
            (Some((8, None)), Some((128, None)))
        );
        assert_eq!(icmp("time-exceeded", true), Some((3, None)));
    }
}
