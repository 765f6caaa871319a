//! What a file and the constants of its program have to agree on: addresses of names, and how long packets in
//! tunnels are.

use super::constants::{OURS, POOL, TUNNEL_MTU};
use super::{Config, ConfigError};
use crate::routing::IpPrefix;
use naming::dns::Ipv4Mode;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

impl Config {
    /// Compares the file with constants of the program: `constant` gives the text of the value that one has,
    /// if the program declares it as settable.
    ///
    /// # Errors
    /// An address of names that the program does not take, or packets that would not fit into a tunnel.
    pub fn agrees(&self, constant: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        fn read<T: FromStr>(text: Option<String>) -> Option<T> {
            text?.trim_matches('"').parse().ok()
        }
        if let Some(longest) = read::<u16>(constant(TUNNEL_MTU)) {
            let mut tunnels =
                (1..).zip(&self.ports).filter_map(|(port, one)| Some((port, one.tunnel.as_ref()?)));
            if let Some((port, tunnel)) = tunnels.find(|(_, tunnel)| tunnel.mtu < longest) {
                let message = format!(
                    "this tunnel takes packets of {} bytes (`mtu`), and the program sends up to {longest}, which would be dropped: set `{TUNNEL_MTU} = {}` in `[set]`, or raise `mtu`",
                    tunnel.mtu, tunnel.mtu
                );
                return Err(self.about_port(port, message));
            }
        }
        let Some((names, pool)) = self.names.as_ref().and_then(|names| Some((names, names.pool.as_ref()?)))
        else {
            return Ok(());
        };
        let (line, column) = names.waypoint_place;
        let wrong = |message: String| Err(ConfigError { line, column, message });
        let shared = names.zone.shared_address;
        if let Some(network) = read::<IpPrefix>(constant(POOL)) {
            let own = names.zone.names.iter().filter_map(|name| match name.ipv4 {
                Ipv4Mode::Dedicated(address) => Some(address),
                _ => None,
            });
            let mut all = pool.known.iter().chain(&pool.unknown).copied().chain(shared).chain(own);
            if let Some(address) = all.find(|&address| !network.contains(IpAddr::V4(address))) {
                return wrong(format!(
                    "{address} leads to hosts, and the program takes packets to {network} alone: set `{POOL}` in `[set]` to a network of all addresses of names"
                ));
            }
        }
        let is_of_machine = |address: &Ipv4Addr| names.zone.machine.has(*address);
        if let (Some(network), Some(shared)) =
            (read::<IpPrefix>(constant(OURS)), shared.filter(is_of_machine))
            && !network.contains(IpAddr::V4(shared))
        {
            return wrong(format!(
                "`shared_address` {shared} is the machine's own, and the program keeps packets of the machine at {network} alone: set `{OURS} = \"{shared}/32\"` in `[set]`"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(names: &str, constants: &[(&str, &str)]) -> Result<(), String> {
        let text = format!(
            "program = \"p.rav\"\n[[port]]\ninterface = \"x\"\n[[port]]\nkind = \"tunnel\"\nlisten = \"192.0.2.1:9\"\nkey = \"k\"\nmtu = 1400\n\
             [names]\nlisten = [\"192.0.2.53:53\"]\nzone = \"home.example\"\n{names}"
        );
        let config = Config::read(&text, std::path::Path::new("")).map_err(|error| error.to_string())?;
        let constant =
            |name: &str| constants.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned());
        config.agrees(&constant).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_and_lengths_that_the_program_does_not_take_are_said_at_their_place() {
        let server = "[[names.server]]\nname = \"ns.other.\"\n";
        let pool = format!("{server}[names.waypoint]\nknown = [\"198.51.100.16/31\"]\n");
        let shared = |address: &str| format!("shared_address = \"{address}\"\n{pool}");
        let network = ("POOL", "198.51.100.16/28");
        assert_eq!(said(&pool, &[]), Ok(()), "another program");
        assert_eq!(said(&pool, &[network, ("TUNNEL_MTU", "1400")]), Ok(()));
        assert_eq!(said(&shared("198.51.100.31"), &[network, ("OURS", "198.51.100.14/32")]), Ok(()));
        for (names, constants, wanted) in [
            (pool.clone(), ("POOL", "198.51.100.0/28"), "line 14, column 1: 198.51.100.16 leads to hosts"),
            (shared("198.51.100.32"), network, "line 15, column 1: 198.51.100.32 leads to hosts"),
            (
                pool.clone(),
                ("TUNNEL_MTU", "1401"),
                "line 6, column 10: this tunnel takes packets of 1400 bytes",
            ),
            (
                shared("192.0.2.53"),
                ("OURS", "198.51.100.14/32"),
                "line 15, column 1: `shared_address` 192.0.2.53 is the machine's own",
            ),
        ] {
            let error = said(&names, &[constants]).expect_err(wanted);
            assert!(error.starts_with(wanted), "{error}\nnot {wanted}");
        }
    }
}
