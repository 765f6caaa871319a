//! What `ravelin-launch` is told of a gateway's file at the start. It stays so until the gateway ends: a file
//! that says something else later is refused.

use bundle::hex;
use engine::text_hash;
use gateway::Config;
use gateway::routing::FollowedRoutes;
use ports::live::{Offloads, PortKind, TunnelWishes, VnicWishes, WantedPort, XdpMode, XdpWishes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// How long addresses and routes may be as they are handed over, in bytes: Linux takes an argument of
/// 128 KiB.
const LONGEST_ROUTING: usize = 120 << 10;

/// Arguments of `ravelin-launch`, by what of the file they say.
pub(super) struct AsStarted {
    parts: Vec<(&'static str, Vec<OsString>)>,
}

impl AsStarted {
    /// Those of a file in this folder.
    ///
    /// # Errors
    /// Addresses and routes are too long to be handed over.
    pub(super) fn of(config: &Config, folder: &Path) -> Result<AsStarted, String> {
        let mut parts = Vec::new();
        let mut part = |what, add: &mut dyn FnMut(&mut Arguments)| {
            let mut arguments = Arguments(Vec::new());
            add(&mut arguments);
            parts.push((what, arguments.0));
        };
        // Whoever is told of files has another working directory.
        part("`control`", &mut |to| to.add("--control", folder.join(&config.control)));
        part("`containers`", &mut |to| to.add("--containers", folder.join(&config.containers)));
        part("`workers`", &mut |to| to.add("--workers", config.workers.count.to_string()));
        part("`[trust]`", &mut |to| {
            let Some(trust) = &config.trust else { return };
            to.add("--gateway", &trust.gateway);
            to.add("--threshold", trust.threshold.to_string());
            to.add("--keep-in", folder.join(&trust.keep_in));
            for (name, digits) in &trust.keys {
                to.add("--key", format!("{name}={digits}"));
            }
        });
        part("`[front]`", &mut |to| {
            let Some(front) = &config.front else { return };
            to.add("--listen", front.listen.to_string());
            to.add("--front-key", folder.join(&front.key));
            for client in &front.clients {
                to.add("--client", client.to_string());
            }
        });
        part("`metrics`", &mut |to| {
            if let Some(metrics) = config.metrics {
                to.add("--metrics", metrics.to_string());
            }
        });
        let routing = routing(config)?;
        part("addresses or routes", &mut |to| {
            if let Some(routing) = &routing {
                to.add("--routing", routing);
            }
            if let FollowedRoutes::Container(port) = config.routing.kernel {
                to.add("--routes-of", port.to_string());
            }
        });
        part("ports", &mut |to| {
            for (port, of_port) in config.ports.iter().zip(&config.routing.ports) {
                to.port(port, folder);
                for own in &of_port.addresses {
                    to.add("--own-address", own.address.to_string());
                }
            }
        });
        Ok(AsStarted { parts })
    }

    /// The arguments in order.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &OsString> {
        self.parts.iter().flat_map(|(_, arguments)| arguments)
    }

    /// A short text by which [`other_than`](AsStarted::other_than) compares.
    pub(super) fn digest(&self) -> String {
        serde_json::json!(self.digests()).to_string()
    }

    fn digests(&self) -> BTreeMap<&'static str, String> {
        let of = |arguments: &[OsString]| hex(&text_hash(&format!("{arguments:?}")));
        self.parts.iter().map(|(what, arguments)| (*what, of(arguments))).collect()
    }

    /// What is other than at the start, by the text of then.
    ///
    /// # Errors
    /// The text is not understood.
    pub(super) fn other_than(&self, started: &str) -> Result<Vec<&'static str>, String> {
        let before: BTreeMap<String, String> = serde_json::from_str(started)
            .map_err(|error| format!("what the gateway was started with: {error}"))?;
        let digests = self.digests();
        Ok(digests
            .into_iter()
            .filter(|(what, of)| before.get(*what) != Some(of))
            .map(|(what, _)| what)
            .collect())
    }
}

/// Addresses and routes as they are handed over, if there are any.
fn routing(config: &Config) -> Result<Option<String>, String> {
    if !config.routing.is_active() {
        return Ok(None);
    }
    let routing = serde_json::to_string(&config.routing).map_err(|error| error.to_string())?;
    if routing.len() > LONGEST_ROUTING {
        return Err(format!(
            "its addresses and routes are {} bytes long as they are handed over, and may be {LONGEST_ROUTING}: take `[[route]]`s out, and have the machine route these (`[kernel] routes = true`)",
            routing.len()
        ));
    }
    Ok(Some(routing))
}

/// Arguments that are about one thing.
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, name: &str, value: impl Into<OsString>) {
        self.0.extend([name.into(), value.into()]);
    }

    fn flag(&mut self, name: &str, is_said: bool) {
        self.0.extend(is_said.then(|| name.into()));
    }

    fn port(&mut self, port: &WantedPort, folder: &Path) {
        self.add("--port", port.name());
        self.add(
            "--kind",
            match port.kind {
                PortKind::AfXdp => "af_xdp",
                PortKind::Tap => "tap",
                PortKind::Vnic => "vnic",
                PortKind::Tunnel => "tunnel",
                _ => "af_packet",
            },
        );
        self.xdp(&port.xdp);
        if let Some(tunnel) = &port.tunnel {
            self.tunnel(tunnel, folder);
        }
        if let Some(vnic) = &port.vnic {
            self.router(vnic);
        }
        self.add(
            "--offloads",
            match port.offloads {
                Offloads::Cut => "cut",
                Offloads::Whole => "whole",
                Offloads::Off => "off",
            },
        );
        self.flag("--promiscuous", port.promiscuous);
        self.flag("--keep-from-kernel", port.keep_from_kernel);
    }

    fn xdp(&mut self, XdpWishes { mode, zero_copy, queues }: &XdpWishes) {
        if let Some(mode) = mode {
            self.add(
                "--mode",
                match mode {
                    XdpMode::Driver => "driver",
                    XdpMode::Generic => "generic",
                },
            );
        }
        if let Some(zero_copy) = zero_copy {
            self.add("--zero-copy", if *zero_copy { "yes" } else { "no" });
        }
        for queue in queues.iter().flatten() {
            self.add("--queue", queue.to_string());
        }
    }

    fn tunnel(&mut self, tunnel: &TunnelWishes, folder: &Path) {
        self.add("--datagrams", tunnel.listen.to_string());
        self.add("--tunnel-mtu", tunnel.mtu.to_string());
        for key in &tunnel.keys {
            self.add("--tunnel-key", folder.join(key));
        }
        for peer in &tunnel.peers {
            self.add("--peer", format!("{}={}", peer.number, peer.name));
            for key in &peer.keys {
                self.add("--peer-key", key.to_string());
            }
            if let Some(endpoint) = peer.endpoint {
                self.add("--endpoint", endpoint.to_string());
            }
            if let Some(keepalive) = peer.keepalive {
                self.add("--keepalive", keepalive.to_string());
            }
            self.flag("--no-packets", !peer.packets);
        }
    }

    /// The router in the container of a port: its addresses, its MTU and what it may send.
    fn router(&mut self, vnic: &VnicWishes) {
        let station: Vec<_> = vnic.ethernet.iter().map(|byte| format!("{byte:02x}")).collect();
        self.add("--ethernet", station.join(":"));
        self.add("--mtu", vnic.mtu.to_string());
        for (address, length) in &vnic.addresses {
            self.add("--address", format!("{address}/{length}"));
        }
        self.flag("--advertises", vnic.advertises);
        self.flag("--dhcp-client", vnic.dhcp_client);
        if let Some(link) = vnic.guest {
            self.add("--guest", link.name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "program = \"p.rav\"\ncontrol = \"c.sock\"\n[[port]]\ninterface = \"a\"\n";

    fn of(text: &str) -> AsStarted {
        let config = Config::read(text, Path::new("")).expect("a file");
        AsStarted::of(&config, Path::new("/etc/gateway")).expect("it is short")
    }

    #[test]
    fn what_stays_until_the_end_is_compared_and_nothing_else() {
        let started = of(FILE).digest();
        let trust = format!(
            "[trust]\ngateway = \"g\"\nthreshold = 1\nkeep_in = \"k\"\n[trust.keys]\na = \"{}\"\n",
            "11".repeat(32)
        );
        for (text, other) in [
            (FILE.to_owned(), &[][..]),
            (FILE.replace("p.rav", "q.rav"), &[]),
            (FILE.replace("c.sock", "/etc/gateway/c.sock"), &[]),
            (FILE.replace("c.sock", "d.sock"), &["`control`"]),
            (format!("workers = 2\nmetrics = \"127.0.0.1:9480\"\n{FILE}"), &["`metrics`", "`workers`"]),
            (format!("{FILE}promiscuous = false\n"), &["ports"]),
            (format!("{FILE}[[port]]\ninterface = \"b\"\n"), &["ports"]),
            (format!("{FILE}addresses = [\"10.0.0.1/24\"]\n"), &["addresses or routes", "ports"]),
            (format!("{FILE}{trust}"), &["`[trust]`"]),
        ] {
            assert_eq!(of(&text).other_than(&started), Ok(other.to_vec()), "{text}");
        }
        assert!(of(FILE).other_than("nothing").is_err());
    }
}
