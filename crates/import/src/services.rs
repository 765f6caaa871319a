//! The numbers of protocols, ports and ICMP messages that rules call by name.

/// All names, a line each.
const NAMES: &str = include_str!("services.txt");

/// The number of a name, and what stands behind a `/`.
fn number(kind: &str, name: &str) -> Option<(&'static str, Option<&'static str>)> {
    let number = NAMES
        .lines()
        .find_map(|line| line.strip_prefix(kind)?.strip_prefix(' ')?.strip_prefix(name)?.strip_prefix(' '))?;
    Some(number.split_once('/').map_or((number, None), |(number, behind)| (number, Some(behind))))
}

/// The number of a protocol; `None` for a name that is not known.
pub(crate) fn protocol(name: &str) -> Option<u8> {
    number("protocol", name)?.0.parse().ok()
}

/// The number of a port, for a protocol by number.
pub(crate) fn port(name: &str, protocol: Option<u8>) -> Option<u16> {
    match number("port", name)? {
        (_, Some("tcp")) if protocol == Some(17) => None,
        (number, _) => number.parse().ok(),
    }
}

/// The type and the code of an ICMP message by name; `v6` for ICMPv6.
pub(crate) fn icmp(name: &str, v6: bool) -> Option<(u8, Option<u8>)> {
    let (kind, code) = number(if v6 { "icmpv6" } else { "icmp" }, name)?;
    Some((kind.parse().ok()?, code.map(str::parse).transpose().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_number() {
        let names = NAMES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut seen = std::collections::BTreeSet::new();
        for line in names {
            let words: Vec<&str> = line.split(' ').collect();
            let [kind, name, _] = words[..] else { panic!("{line}") };
            assert!(seen.insert((kind, name)), "{line}: the name is there twice");
            let is_known = match kind {
                "protocol" => protocol(name).is_some(),
                "port" => port(name, Some(6)).is_some(),
                "icmp" => icmp(name, false).is_some(),
                "icmpv6" => icmp(name, true).is_some(),
                _ => false,
            };
            assert!(is_known, "{line}");
        }
        assert_eq!(seen.len(), 211);
        assert_eq!((port("cmd", Some(6)), port("cmd", Some(17))), (Some(514), None));
        assert_eq!((port("talk", Some(17)), port("talk", None)), (Some(517), Some(517)));
        assert_eq!(
            (icmp("echo-request", false), icmp("echo-request", true)),
            (Some((8, None)), Some((128, None)))
        );
        assert_eq!(
            (icmp("time-exceeded", true), icmp("time-exceeded", false)),
            (Some((3, None)), Some((11, None)))
        );
        assert_eq!(icmp("host-unreachable", false), Some((3, Some(1))));
        assert_eq!((protocol("tcp"), protocol("no such"), protocol("# Names")), (Some(6), None, None));
    }
}
