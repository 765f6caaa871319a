//! The part `[register]` of the file: names of hosts behind this gateway, and the waypoints that are told.
//!
//! ```toml
//! [register]
//! waypoints = ["waypoint"]        # peers of tunnels, by their names
//!
//! [[register.host]]
//! name = "nas.home.example"       # the whole name
//! address = "192.168.1.10"
//! services = ["tcp/22", "tcp/443"]
//! ipv6 = "fd00:10::10"            # its address behind this gateway, one that everybody reaches, or "translated"
//! ```

use naming::control::HostOffer;
use naming::dns::DnsName;
use naming::limits::MOST_NAMES_OF_GATEWAY;
use naming::{HostIpv6, HostIpv6Error, Services};
use serde::Deserialize;
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::ops::Range;
use toml::Spanned;

/// The most waypoints of one gateway.
const MOST_WAYPOINTS: usize = 16;

/// What a gateway registers, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterConfig {
    /// The names of the peers of tunnels that are told.
    pub waypoints: Vec<String>,
    /// The hosts.
    pub offers: Vec<HostOffer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileOffer {
    name: Spanned<String>,
    address: Ipv4Addr,
    services: Spanned<Vec<String>>,
    ipv6: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRegister {
    waypoints: Spanned<Vec<Spanned<String>>>,
    #[serde(default, rename = "host")]
    hosts: Vec<Spanned<FileOffer>>,
}

/// Reads the part. `peers` are the names of all peers of tunnels.
///
/// # Errors
/// The first thing that is wrong, and where.
pub(super) fn read(file: &FileRegister, peers: &[&str]) -> Result<RegisterConfig, (Range<usize>, String)> {
    let mut waypoints: Vec<String> = Vec::new();
    let listed = file.waypoints.get_ref();
    if listed.is_empty() || listed.len() > MOST_WAYPOINTS {
        let message = format!("`waypoints` names 1 to {MOST_WAYPOINTS} peers of tunnels");
        return Err((file.waypoints.span(), message));
    }
    for name in listed {
        let text = name.get_ref();
        match peers.iter().filter(|peer| *peer == text).count() {
            1 if !waypoints.contains(text) => waypoints.push(text.clone()),
            1 => return Err((name.span(), format!("`{text}` stands here twice"))),
            0 => {
                let message = format!("no tunnel has a peer `{text}`: describe it by `[[port.peer]]`");
                return Err((name.span(), message));
            }
            _ => return Err((name.span(), format!("peers of several tunnels are called `{text}`"))),
        }
    }
    let mut names = HashSet::new();
    let mut offers = Vec::with_capacity(file.hosts.len());
    for host in &file.hosts {
        if offers.len() >= MOST_NAMES_OF_GATEWAY {
            let message = format!("a gateway registers at most {MOST_NAMES_OF_GATEWAY} names");
            return Err((host.span(), message));
        }
        let FileOffer { name, address, services, ipv6 } = host.get_ref();
        let wrong = |message: String| (name.span(), message);
        let read = DnsName::parse(name.get_ref()).map_err(|error| wrong(error.to_string()))?;
        if !names.insert(read.clone()) {
            return Err(wrong(format!("`{read}` stands above already")));
        }
        let wrong = |message: String| (services.span(), message);
        let all = services.get_ref().iter().map(|text| text.parse());
        let all: Vec<_> =
            all.collect::<Result<_, naming::ServiceTextError>>().map_err(|error| wrong(error.to_string()))?;
        if all.is_empty() {
            return Err(wrong("a host offers something, such as `tcp/22`".to_owned()));
        }
        let services = Services::new(all).map_err(|error| wrong(error.to_string()))?;
        let told = |text: &Spanned<String>| {
            let six: HostIpv6 =
                text.get_ref().parse().map_err(|error: HostIpv6Error| (text.span(), error.to_string()))?;
            Ok(six.behind_gateway(*address))
        };
        let ipv6 = ipv6.as_ref().map(told).transpose()?;
        offers.push(HostOffer { name: read, host: *address, ipv6, services });
    }
    Ok(RegisterConfig { waypoints, offers })
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigError};
    use std::path::Path;

    const HEAD: &str =
        "program = \"a\"\n[[port]]\nkind = \"tunnel\"\nlisten = \"0.0.0.0:5282\"\nkey = \"home.key\"\n";

    fn read(register: &str) -> Result<Config, ConfigError> {
        let key = tunnel::SecretKey::new([1; 32]).public();
        let peer = format!("[[port.peer]]\nname = \"w\"\nnumber = 1\nkey = \"{key}\"\n");
        Config::read(&format!("{HEAD}{peer}{register}"), Path::new("/etc"))
    }

    fn host(name: &str, more: &str) -> String {
        format!("[[register.host]]\nname = \"{name}\"\naddress = \"10.0.0.80\"\n{more}\n")
    }

    #[test]
    fn hosts_are_registered_at_peers() {
        let text = format!(
            "[register]\nwaypoints = [\"w\"]\n{}",
            host("nas.home.example", "services = [\"tcp/22\"]\nipv6 = \"translated\"")
        );
        let register = read(&text).expect("is right").register.expect("is there");
        assert_eq!(register.waypoints, ["w"]);
        let offer = &register.offers[0];
        assert_eq!(offer.ipv6, "::ffff:10.0.0.80".parse().ok());
        assert_eq!(
            (offer.name.to_string().as_str(), offer.host),
            ("nas.home.example", [10, 0, 0, 80].into())
        );
    }

    #[test]
    fn what_is_wrong_with_a_registration_is_said_at_its_place() {
        let with = |hosts: &str| format!("[register]\nwaypoints = [\"w\"]\n{hosts}");
        let good = host("a.example", "services = [\"icmp\"]");
        let many: String =
            (0..=256).map(|n| host(&format!("n{n}.example"), "services = [\"icmp\"]")).collect();
        let cases = [
            ("[register]\nwaypoints = []\n".to_owned(), (11, 13), "1 to 16 peers"),
            ("[register]\nwaypoints = [\"x\"]\n".to_owned(), (11, 14), "no tunnel has a peer `x`"),
            ("[register]\nwaypoints = [\"w\", \"w\"]\n".to_owned(), (11, 19), "twice"),
            (with(&host("a..b", "services = [\"icmp\"]")), (13, 8), "is not a name"),
            (with(&format!("{good}{good}")), (17, 8), "stands above already"),
            (with(&host("a.example", "services = [\"tcp\"]")), (15, 12), "is not a service"),
            (with(&host("a.example", "services = []")), (15, 12), "offers something"),
            (
                with(&host("a.example", "services = [\"icmp\"]\nipv6 = \"::ffff:10.0.0.81\"")),
                (16, 8),
                "neither",
            ),
            (with(&many), (1036, 1), "at most 256 names"),
        ];
        for (text, place, wanted) in cases {
            let error = read(&text).expect_err(&text);
            assert!(error.message.contains(wanted), "{error}\n{text}");
            assert_eq!((error.line, error.column), place, "{error}");
        }
    }
}
