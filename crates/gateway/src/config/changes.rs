//! What a reload may change: programs, tables, addresses, values, names and gateways of hosts; and ports, one
//! by one, as long as none gets the number of another.

use super::names::{GatewayDescription, NamesConfig};
use super::{Config, ConfigError};
use naming::Service;
use naming::dns::{MachineServices, ZoneDescription};
use packet::PortNumber;
use ports::live::PortKind;

impl Config {
    /// Tests whether a running gateway with this configuration can change to another one, and says for each
    /// port of that one whether it is opened anew; the others stay.
    ///
    /// # Errors
    /// The other configuration has other workers, or other addresses of the control socket or metrics, which
    /// are fixed when the gateway starts; or one of its ports would change its number or how it is attached.
    pub fn takes(&self, other: &Config) -> Result<Vec<bool>, ConfigError> {
        let (what, place) = if !self.workers.are(&other.workers) {
            ("workers", Some(other.workers.place))
        } else if self.control != other.control {
            ("`control`", other.places.control)
        } else if self.metrics != other.metrics {
            ("`metrics`", other.places.metrics)
        } else if let Some(what) = self.fixed_names(other) {
            (what, other.names.as_ref().map(|names| names.waypoint_place))
        } else {
            return (1..).zip(&other.ports).map(|(number, _)| self.opens(other, number)).collect();
        };
        let message =
            format!("other {what} than the gateway runs with: stop it and start it anew to have them");
        let (line, column) = place.unwrap_or((1, 1));
        Err(ConfigError { line, column, message })
    }

    /// What of `[names]` is other, and cannot change while the process runs.
    fn fixed_names(&self, other: &Config) -> Option<&'static str> {
        let (own, new) = match (&self.names, &other.names) {
            (None, None) => return None,
            (Some(own), Some(new)) => (own, new),
            _ => return Some("`[names]`"),
        };
        let zone = |names: &NamesConfig| {
            let described = names.zone.clone();
            ZoneDescription { names: Vec::new(), serial: 0, machine: MachineServices::default(), ..described }
        };
        // Those of tunnels come and go with them.
        let machine = |config: &Config, names: &NamesConfig| {
            let tunnels = config.ports.iter().filter_map(|port| Some(port.tunnel.as_ref()?.listen.port()));
            let mut services = names.zone.machine.services.clone();
            for port in tunnels {
                services.remove(&Service { protocol: 17, port });
            }
            services
        };
        let renumbered = |one: &GatewayDescription| {
            own.gateways.iter().any(|known| known.name == one.name && known.peer != one.peer)
        };
        let differ = [
            (own.listen != new.listen, "`listen` of `[names]`"),
            (
                zone(own) != zone(new),
                "names, records, times or `shared_address` of the zone itself in `[names]`",
            ),
            (machine(self, own) != machine(other, new), "`machine_services` of `[names]`"),
            (
                (&own.pool, own.hold, own.network6, &own.server_names)
                    != (&new.pool, new.hold, new.network6, &new.server_names),
                "`[names.waypoint]`",
            ),
            (own.store != new.store, "`store` of `[names]`"),
            (own.elsewhere != new.elsewhere, "`waypoints` or `name_servers` of `[names]`"),
            (new.gateways.iter().any(renumbered), "`peer` of a `[[names.gateway]]`"),
        ];
        differ.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }

    /// Whether a port is the same in both, with the same host interface.
    fn stays(&self, other: &Config, number: PortNumber) -> bool {
        let index = usize::from(number).wrapping_sub(1);
        let host = |config: &Config| config.routing.ports.get(index)?.host_interface.clone();
        let both = self.ports.get(index).zip(other.ports.get(index));
        both.is_some_and(|(own, new)| own.continues_as(new)) && host(self) == host(other)
    }

    /// Whether a port of the other one is opened anew. No reload gives the number of one port to another:
    /// frames of the machine, neighbours and entries that packets left belong to the number.
    fn opens(&self, other: &Config, number: PortNumber) -> Result<bool, ConfigError> {
        let index = usize::from(number) - 1;
        if self.stays(other, number) {
            return Ok(false);
        }
        let (own, new) = (self.ports.get(index), &other.ports[index]);
        if new.kind == PortKind::Empty {
            return Ok(true);
        }
        let wrong = |message: String| Err(other.about_port(number, message));
        if let Some(known) = self.ports.iter().position(|port| port.name() == new.name()) {
            return wrong(format!(
                "`{}` is port {} of the running gateway, with other settings or another number: a port keeps both, so leave its number empty by one reload (`empty = true`), and put it in by another",
                new.name(),
                known + 1
            ));
        }
        if let Some(own) = own.filter(|own| own.kind != PortKind::Empty) {
            return wrong(format!(
                "port {number} of the running gateway is {}, and a number goes from one port to another by two reloads: leave it empty by one (`empty = true`), and put {} in by another",
                own.name(),
                new.name()
            ));
        }
        let mut shared = (1..).zip(&self.ports).filter(|(_, port)| port.interface == new.interface);
        let (any, one) = (shared.clone().next(), shared.find(|(number, _)| self.stays(other, *number)));
        match (any, one) {
            (Some((known, own)), None) => wrong(format!(
                "`{}` divides the interface of port {known} of the running gateway ({}), of which no port stays as it is: ports of one interface come and go one by one, or leave all of them empty by one reload, and put them in by another",
                new.name(),
                own.name()
            )),
            _ => Ok(true),
        }
    }
}
