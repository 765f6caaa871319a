//! Finds addresses of a gateway that the machine's Linux kernel has, too: the kernel would answer packets for
//! them a second time.
//!
//! The kernel answers for an address by whichever interface it is asked, so it does not matter at which one
//! it has it. What it never gets to see, it does not answer: packets of AF_XDP, and of ports that keep what
//! comes in from it.

use super::prefix::InterfaceAddress;
use super::router::RoutingSettings;
use super::rtnetlink::{self, Told, Wanted as Asked};
use ports::live::{Netlink, PortKind, WantedPort};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long the kernel may take to tell.
const PATIENCE: Duration = Duration::from_secs(2);

/// An address of the kernel, and the interface that it is at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    address: IpAddr,
    interface: String,
}

/// What is to be said of addresses that a gateway shares with the kernel, a sentence for each.
///
/// # Errors
/// The kernel does not tell of its addresses.
pub fn shared(settings: &RoutingSettings, ports: &[WantedPort]) -> io::Result<Vec<String>> {
    if settings.ports.iter().all(|port| port.addresses.is_empty()) {
        return Ok(Vec::new());
    }
    Ok(sentences(settings, ports, &held()?))
}

fn sentences(settings: &RoutingSettings, ports: &[WantedPort], held: &[Held]) -> Vec<String> {
    let seen = |wanted: &&WantedPort| wanted.kind != PortKind::AfXdp && !wanted.keep_from_kernel;
    // What the kernel sees of any port it answers, whichever port has the address. A TAP device is the
    // kernel's own side: it may have addresses of that network, but not the gateway's.
    let mut names: Vec<&str> = ports.iter().filter(seen).map(|wanted| wanted.interface.as_str()).collect();
    names.dedup();
    if names.is_empty() {
        return Vec::new();
    }
    let own = settings.ports.iter().flat_map(|port| &port.addresses);
    let both = own.flat_map(|own| {
        held.iter().filter(move |held| held.address == own.address).map(move |held| (own, held))
    });
    both.map(|(own, held)| sentence(own, held, &names)).collect()
}

fn sentence(own: &InterfaceAddress, held: &Held, names: &[&str]) -> String {
    let (address, interface) = (held.address, &held.interface);
    format!(
        "{address} is an address of this machine's kernel, too, at `{interface}`: it answers what comes by {} for it a second time. \
         Take it from the kernel (`ip address del {own} dev {interface}`), or write `keep_from_kernel = true` at these ports",
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    )
}

/// All addresses of the kernel in this network namespace.
fn held() -> io::Result<Vec<Held>> {
    let mut netlink = Netlink::open(&[])?;
    let (mut names, mut found) = (HashMap::new(), Vec::new());
    for asked in [Asked::Links, Asked::Addresses] {
        all(&mut netlink, asked, |told| match told {
            Told::Link { index, name, .. } => {
                names.insert(index, name);
            }
            Told::Address { index, address, .. } => found.push((index, address.address)),
            _ => {}
        })?;
    }
    let named = |(index, address)| {
        let interface = names.get(&index).cloned().unwrap_or_else(|| format!("interface {index}"));
        Held { address, interface }
    };
    Ok(found.into_iter().map(named).collect())
}

/// Asks for all of something and takes it to its end.
fn all(netlink: &mut Netlink, asked: Asked, mut take: impl FnMut(Told)) -> io::Result<()> {
    netlink.ask(&rtnetlink::question(asked))?;
    let end = Instant::now() + PATIENCE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let Some(bytes) = netlink.receive(left.as_nanos() as u64)? else {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel says nothing of its addresses"));
        };
        let told = rtnetlink::read(bytes);
        let done = told.iter().any(|told| matches!(told, Told::Done { .. }));
        told.into_iter().for_each(&mut take);
        if done {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::path::Path;

    #[test]
    fn shared_addresses_are_told_where_the_kernel_sees_packets() {
        let told = |more: &str, held: &[(&str, &str)]| {
            let text = format!(
                "program = \"a\"\n[[port]]\ninterface = \"x\"\naddresses = [\"10.0.1.1/24\", \"fd00:1::1/64\"]\n[[port]]\ninterface = \"y\"\n{more}"
            );
            let config = Config::read(&text, Path::new("/etc")).expect("is right");
            let held: Vec<Held> = held
                .iter()
                .map(|(address, interface)| Held {
                    address: address.parse().expect("an address"),
                    interface: (*interface).to_owned(),
                })
                .collect();
            sentences(&config.routing, &config.ports, &held)
        };
        assert_eq!(told("", &[("10.0.1.2", "x"), ("127.0.0.1", "lo")]), [""; 0]);
        let both = told("", &[("10.0.1.1", "x"), ("fd00:1::1", "z")]);
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[0].starts_with("10.0.1.1 is an address of this machine's kernel, too, at `x`: it answers what comes by `x`, `y` for it a second time."), "{both:?}");
        assert!(both[1].contains("`ip address del fd00:1::1/64 dev z`"), "{both:?}");
        // One port whose packets the kernel never sees.
        let one = told("keep_from_kernel = true\n", &[("10.0.1.1", "x")]);
        assert!(one[0].contains("what comes by `x` for it"), "{one:?}");
        let none = "program = \"a\"\n[[port]]\ninterface = \"x\"\nkeep_from_kernel = true\naddresses = [\"10.0.1.1/24\"]\n[[port]]\ninterface = \"y\"\nkind = \"af_xdp\"\n";
        let config = Config::read(none, Path::new("/etc")).expect("is right");
        let held = [Held { address: "10.0.1.1".parse().expect("an address"), interface: "x".to_owned() }];
        assert_eq!(sentences(&config.routing, &config.ports, &held), [""; 0]);
    }

    #[test]
    fn the_kernel_tells_of_its_addresses() {
        let held = match held() {
            Ok(held) => held,
            Err(error) => return println!("skipped: {error}"),
        };
        // Whatever this machine has, each is at an interface with a name.
        assert!(held.iter().all(|held| !held.interface.starts_with("interface ")), "{held:?}");
    }
}
