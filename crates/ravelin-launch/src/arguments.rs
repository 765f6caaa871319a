//! What `launch` is told at its start. `ravelin serve` writes these arguments from the gateway's
//! file, which `launch` does not read itself.
//!
//! ```text
//! --core PATH --ravelin PATH --file PATH --control PATH --workers N
//! --containers FOLDER [--native]
//! --port NAME [--kind af_packet|af_xdp|tap|vnic|tunnel] [--offloads cut|whole|off] [--promiscuous] [--keep-from-kernel]   for each port
//!     [--mode driver|generic] [--zero-copy yes|no] [--queue NUMBER]...                                 of AF_XDP
//!     [--own-address ADDRESS]...                                                                       of the gateway there
//!     --ethernet ADDRESS [--address ADDRESS/LENGTH]... [--mtu BYTES] [--advertises] [--dhcp-client] [--guest LINK]   of a VNIC
//!     --datagrams ADDRESS:PORT --tunnel-key FILE... --tunnel-mtu BYTES                                 of a tunnel
//!     [--peer NUMBER=NAME --peer-key TEXT... [--endpoint ADDRESS:PORT] [--keepalive NS] [--no-packets]]...
//! [--tunnel PATH]
//! [--metrics ADDRESS:PORT] [--routing TEXT] [--routes-of PORT] [--vhost PATH] [--as-started TEXT]
//! --without LAYER                                                                                      for each layer
//! --gateway NAME --threshold N --keep-in FOLDER --key NAME=DIGITS for each key                         together or not at all
//! --front PATH --listen ADDRESS:PORT --front-key FILE --client TEXT for each client                    likewise
//! ```

use confinement::Layer;
use lexopt::{Arg, Parser, ValueExt};
use messages::launch::TrustTerms;
use messages::limits::{MOST_TUNNEL_PEERS, MOST_WORKERS};
use messages::tunnel::TunnelPeer;
use ports::live::{GuestLink, Offloads, PortKind, VnicWishes, WantedPort, XdpMode, XdpWishes};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What `launch` is told.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    /// The program `ravelin-core`.
    pub(crate) core: PathBuf,
    /// The program `ravelin`, which has the commands for `compile` and `control`.
    pub(crate) ravelin: PathBuf,
    /// The gateway's file, which `compile` reads.
    pub(crate) file: PathBuf,
    /// The path of the control socket.
    pub(crate) control: PathBuf,
    /// The folder that keeps the namespaces of containers.
    pub(crate) containers: PathBuf,
    /// How many workers there are.
    pub(crate) workers: u16,
    /// The ports in order.
    pub(crate) ports: Vec<WantedPort>,
    /// The gateway's addresses by port.
    pub(crate) addresses: Vec<Vec<IpAddr>>,
    /// What `control` is told of addresses and routes, as a text into which nobody looks here.
    pub(crate) routing: Option<OsString>,
    /// The port of the container whose routes are followed, from 1 on.
    pub(crate) routes_of: Option<u16>,
    /// What `compile` is told of the file as it was at the start, as a text into which nobody looks here.
    pub(crate) as_started: Option<OsString>,
    /// Whether the core makes machine code before it locks itself in: each program needs another core then.
    pub(crate) native: bool,
    /// The layers of confinement that may be missing.
    pub(crate) without: Vec<Layer>,
    /// Whose policies are taken, where they have to be signed.
    pub(crate) trust: Option<Trusting>,
    /// Where it can be asked over a network, and by whom.
    pub(crate) front: Option<Fronting>,
    /// Where metrics can be asked for.
    pub(crate) metrics: Option<SocketAddr>,
    /// The program `ravelin-vhost`, where a port is linked to a virtual machine by vhost-user.
    pub(crate) vhost: Option<PathBuf>,
    /// The program `ravelin-tunnel`, where a port is a tunnel.
    pub(crate) tunnel: Option<PathBuf>,
    /// The tunnels, by the numbers of their ports.
    pub(crate) tunnels: Vec<(u16, Tunnelling)>,
}

/// What the process of a tunnel is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tunnelling {
    /// Where datagrams come.
    pub(crate) listen: SocketAddr,
    /// The files of its secret keys.
    pub(crate) keys: Vec<PathBuf>,
    /// The longest packet that goes in, in bytes.
    pub(crate) mtu: u16,
    /// Its peers, into whose keys nobody looks here.
    pub(crate) peers: Vec<TunnelPeer>,
}

/// The process that listens on a network, and what it is told.
#[derive(Debug, PartialEq)]
pub(crate) struct Fronting {
    /// The program `ravelin-front`.
    pub(crate) program: PathBuf,
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// The file of its secret key.
    pub(crate) key: PathBuf,
    /// The clients that it knows, as texts into which nobody looks here.
    pub(crate) clients: Vec<String>,
}

/// Whose policies are taken, and where they are kept.
#[derive(Debug, PartialEq)]
pub(crate) struct Trusting {
    /// Whose they are.
    pub(crate) terms: TrustTerms,
    /// The folder that keeps them.
    pub(crate) keep_in: PathBuf,
}

impl Settings {
    /// Reads the arguments.
    ///
    /// # Errors
    /// One is not known, has no value that is understood, or is missing.
    pub(crate) fn parse(mut parser: Parser) -> Result<Settings, lexopt::Error> {
        let (mut core, mut ravelin, mut file, mut control) = (None, None, None, None);
        let (mut containers, mut native, mut vhost, mut as_started) = (None, false, None, None);
        let (mut workers, mut ports, mut without) = (1, Vec::<WantedPort>::new(), Vec::new());
        let (mut gateway, mut threshold, mut keep_in, mut keys) = (None, None, None, Vec::new());
        let (mut front, mut listen, mut front_key, mut clients) = (None, None, None, Vec::new());
        let (mut metrics, mut routing, mut addresses) = (None, None, Vec::<Vec<IpAddr>>::new());
        let (mut routes_of, mut tunnel, mut tunnels) = (None, None, Vec::<(u16, Tunnelling)>::new());
        while let Some(argument) = parser.next()? {
            let port = |ports: &mut Vec<WantedPort>, change: &dyn Fn(&mut WantedPort)| {
                ports.last_mut().map(change).ok_or("it must stand behind a `--port`")
            };
            let vnic = |ports: &mut Vec<WantedPort>, change: &dyn Fn(&mut VnicWishes)| {
                let last = ports.last_mut().and_then(|port| port.vnic.as_mut());
                last.map(change).ok_or("it must stand behind an `--ethernet`")
            };
            let number = ports.len() as u16;
            let of_tunnel = |tunnels: &mut Vec<(u16, Tunnelling)>,
                             change: &mut dyn FnMut(&mut Tunnelling)| {
                let last = tunnels.last_mut().filter(|(port, _)| *port == number);
                last.map(|(_, tunnel)| change(tunnel)).ok_or("it must stand behind a `--datagrams`")
            };
            let of_peer = |tunnels: &mut Vec<(u16, Tunnelling)>, change: &mut dyn FnMut(&mut TunnelPeer)| {
                let last = tunnels.last_mut().filter(|(port, _)| *port == number);
                let last = last.and_then(|(_, tunnel)| tunnel.peers.last_mut());
                last.map(change).ok_or("it must stand behind a `--peer`")
            };
            match argument {
                Arg::Long("core") => core = Some(parser.value()?.into()),
                Arg::Long("ravelin") => ravelin = Some(parser.value()?.into()),
                Arg::Long("file") => file = Some(parser.value()?.into()),
                Arg::Long("control") => control = Some(parser.value()?.into()),
                Arg::Long("containers") => containers = Some(parser.value()?.into()),
                Arg::Long("workers") => workers = parser.value()?.parse()?,
                Arg::Long("without") => without.push(parser.value()?.parse()?),
                Arg::Long("native") => native = true,
                Arg::Long("gateway") => gateway = Some(parser.value()?.string()?),
                Arg::Long("threshold") => threshold = Some(parser.value()?.parse()?),
                Arg::Long("keep-in") => keep_in = Some(parser.value()?.into()),
                Arg::Long("front") => front = Some(parser.value()?.into()),
                Arg::Long("listen") => listen = Some(parser.value()?.parse()?),
                Arg::Long("front-key") => front_key = Some(parser.value()?.into()),
                Arg::Long("metrics") => metrics = Some(parser.value()?.parse()?),
                Arg::Long("client") => clients.push(parser.value()?.string()?),
                Arg::Long("key") => keys.push(parser.value()?.parse_with(|text| {
                    let (name, digits) = text.rsplit_once('=').ok_or("it must be `NAME=DIGITS`")?;
                    Ok::<_, &str>((name.to_owned(), digits.to_owned()))
                })?),
                Arg::Long("port") => {
                    ports.push(WantedPort::plain(&parser.value()?.string()?));
                    addresses.push(Vec::new());
                }
                Arg::Long("own-address") => {
                    let own = parser.value()?.parse()?;
                    addresses.last_mut().ok_or("it must stand behind a `--port`")?.push(own);
                }
                Arg::Long("as-started") => as_started = Some(parser.value()?),
                Arg::Long("routing") => routing = Some(parser.value()?),
                Arg::Long("routes-of") => routes_of = Some(parser.value()?.parse::<u16>()?),
                Arg::Long("kind") => {
                    let kind = parser.value()?.parse_with(|text| match text {
                        "af_packet" => Ok(PortKind::AfPacket),
                        "af_xdp" => Ok(PortKind::AfXdp),
                        "tap" => Ok(PortKind::Tap),
                        "vnic" => Ok(PortKind::Vnic),
                        "tunnel" => Ok(PortKind::Tunnel),
                        _ => Err("it must be `af_packet`, `af_xdp`, `tap`, `vnic` or `tunnel`"),
                    })?;
                    port(&mut ports, &|port| port.kind = kind.clone())?;
                }
                Arg::Long("mode") => {
                    let mode = parser.value()?.parse_with(|text| match text {
                        "driver" => Ok(XdpMode::Driver),
                        "generic" => Ok(XdpMode::Generic),
                        _ => Err("it must be `driver` or `generic`"),
                    })?;
                    port(&mut ports, &|port| port.xdp.mode = Some(mode))?;
                }
                Arg::Long("zero-copy") => {
                    let zero_copy = parser.value()?.parse_with(|text| match text {
                        "yes" => Ok(true),
                        "no" => Ok(false),
                        _ => Err("it must be `yes` or `no`"),
                    })?;
                    port(&mut ports, &|port| port.xdp.zero_copy = Some(zero_copy))?;
                }
                Arg::Long("queue") => {
                    let queue = parser.value()?.parse()?;
                    port(&mut ports, &|port| port.xdp.queues.get_or_insert_default().push(queue))?;
                }
                Arg::Long("offloads") => {
                    let offloads = parser.value()?.parse_with(|text| match text {
                        "cut" => Ok(Offloads::Cut),
                        "whole" => Ok(Offloads::Whole),
                        "off" => Ok(Offloads::Off),
                        _ => Err("it must be `cut`, `whole` or `off`"),
                    })?;
                    port(&mut ports, &|port| port.offloads = offloads)?;
                }
                Arg::Long("promiscuous") => port(&mut ports, &|port| port.promiscuous = true)?,
                Arg::Long("keep-from-kernel") => port(&mut ports, &|port| port.keep_from_kernel = true)?,
                Arg::Long("ethernet") => {
                    let ethernet = parser.value()?.parse_with(station)?;
                    let container = ports.iter().filter(|port| port.vnic.is_some()).count() as u16;
                    port(&mut ports, &|port| port.vnic = Some(VnicWishes::new(ethernet, container)))?;
                }
                Arg::Long("address") => {
                    let address = parser.value()?.parse_with(address)?;
                    vnic(&mut ports, &|vnic| vnic.addresses.push(address))?;
                }
                Arg::Long("mtu") => {
                    let mtu = parser.value()?.parse()?;
                    vnic(&mut ports, &|vnic| vnic.mtu = mtu)?;
                }
                Arg::Long("advertises") => vnic(&mut ports, &|vnic| vnic.advertises = true)?,
                Arg::Long("guest") => {
                    let link = parser
                        .value()?
                        .parse_with(|text| GuestLink::of(text).ok_or("it must be `tap` or `vhost-user`"))?;
                    vnic(&mut ports, &|vnic| vnic.guest = Some(link))?;
                }
                Arg::Long("tunnel") => tunnel = Some(parser.value()?.into()),
                Arg::Long("datagrams") => {
                    let listen = parser.value()?.parse()?;
                    port(&mut ports, &|port| port.kind = PortKind::Tunnel)?;
                    tunnels
                        .push((number, Tunnelling { listen, keys: Vec::new(), mtu: 0, peers: Vec::new() }));
                }
                Arg::Long("tunnel-key") => {
                    let key: PathBuf = parser.value()?.into();
                    of_tunnel(&mut tunnels, &mut |tunnel| tunnel.keys.push(key.clone()))?;
                }
                Arg::Long("tunnel-mtu") => {
                    let mtu = parser.value()?.parse()?;
                    of_tunnel(&mut tunnels, &mut |tunnel| tunnel.mtu = mtu)?;
                }
                Arg::Long("peer") => {
                    let peer = parser.value()?.parse_with(peer)?;
                    of_tunnel(&mut tunnels, &mut |tunnel| tunnel.peers.push(peer.clone()))?;
                }
                Arg::Long("peer-key") => {
                    let key = parser.value()?.string()?;
                    of_peer(&mut tunnels, &mut |peer| peer.keys.push(key.clone()))?;
                }
                Arg::Long("endpoint") => {
                    let endpoint = parser.value()?.parse()?;
                    of_peer(&mut tunnels, &mut |peer| peer.endpoint = Some(endpoint))?;
                }
                Arg::Long("keepalive") => {
                    let keepalive = parser.value()?.parse()?;
                    of_peer(&mut tunnels, &mut |peer| peer.keepalive = Some(keepalive))?;
                }
                Arg::Long("no-packets") => of_peer(&mut tunnels, &mut |peer| peer.packets = false)?,
                Arg::Long("vhost") => vhost = Some(parser.value()?.into()),
                Arg::Long("dhcp-client") => vnic(&mut ports, &|vnic| vnic.dhcp_client = true)?,
                other => return Err(other.unexpected()),
            }
        }
        if workers == 0 || workers > MOST_WORKERS {
            return Err(format!("`--workers` must be 1 to {MOST_WORKERS}").into());
        }
        let trust = match (gateway, threshold, keep_in) {
            (Some(gateway), Some(threshold), Some(keep_in)) => {
                Some(Trusting { terms: TrustTerms { gateway, threshold, keys }, keep_in })
            }
            (None, None, None) if keys.is_empty() => None,
            _ => return Err("`--gateway`, `--threshold`, `--keep-in` and `--key` belong together".into()),
        };
        let front = match (front, listen, front_key) {
            (Some(program), Some(listen), Some(key)) => Some(Fronting { program, listen, key, clients }),
            (None, None, None) if clients.is_empty() => None,
            _ => return Err("`--front`, `--listen`, `--front-key` and `--client` belong together".into()),
        };
        if vhost.is_none() && ports.iter().any(WantedPort::is_by_vhost) {
            return Err("`--vhost` is missing, which `--guest vhost-user` needs".into());
        }
        let tunnel_ports = (1..).zip(&ports).filter(|(_, port)| port.kind == PortKind::Tunnel);
        if !tunnel_ports.map(|(number, _)| number).eq(tunnels.iter().map(|(number, _)| *number)) {
            return Err("each port of kind `tunnel` has one `--datagrams`".into());
        }
        if tunnels.iter().any(|(_, tunnel)| tunnel.keys.is_empty() || tunnel.mtu == 0) {
            return Err("`--datagrams` needs a `--tunnel-key` and a `--tunnel-mtu`".into());
        }
        if tunnel.is_none() && !tunnels.is_empty() {
            return Err("`--tunnel` is missing, which ports of kind `tunnel` need".into());
        }
        if tunnels.iter().map(|(_, tunnel)| tunnel.peers.len()).sum::<usize>() > MOST_TUNNEL_PEERS {
            return Err(format!("tunnels have {MOST_TUNNEL_PEERS} peers together at most").into());
        }
        if ports.iter().any(|port| port.kind != PortKind::AfXdp && port.xdp != XdpWishes::default()) {
            return Err("`--mode`, `--zero-copy` and `--queue` are for ports of kind `af_xdp`".into());
        }
        let of_container = |number: u16| {
            let port = ports.get(usize::from(number).wrapping_sub(1));
            port.and_then(|port| port.vnic.as_ref()).is_some_and(|vnic| vnic.guest.is_none())
        };
        if routes_of.is_some_and(|number| !of_container(number)) {
            return Err("`--routes-of` must be the port of a container".into());
        }
        let needed = |name: &str, path: Option<PathBuf>| {
            path.ok_or_else(|| lexopt::Error::from(format!("`--{name}` is missing")))
        };
        Ok(Settings {
            core: needed("core", core)?,
            ravelin: needed("ravelin", ravelin)?,
            file: needed("file", file)?,
            control: needed("control", control)?,
            containers: needed("containers", containers)?,
            workers,
            ports,
            native,
            without,
            trust,
            front,
            metrics,
            addresses,
            routing,
            routes_of,
            as_started,
            vhost,
            tunnel,
            tunnels,
        })
    }
}

/// A peer of a tunnel by its number and name.
fn peer(text: &str) -> Result<TunnelPeer, &'static str> {
    let (number, name) = text.split_once('=').ok_or("it must be `NUMBER=NAME`")?;
    let number = number.parse().map_err(|_| "it must begin with a number")?;
    let (keys, endpoint, keepalive, packets) = (Vec::new(), None, None, true);
    Ok(TunnelPeer { name: name.to_owned(), number, keys, endpoint, keepalive, packets })
}

/// An Ethernet address, such as 02:00:00:00:00:01.
fn station(text: &str) -> Result<[u8; 6], &'static str> {
    ports::live::station(text).ok_or("it must be an Ethernet address, such as 02:00:00:00:00:01")
}

/// An address with the length of its prefix.
fn address(text: &str) -> Result<(IpAddr, u8), &'static str> {
    let (address, length) = text.split_once('/').ok_or("it must be an address with a length")?;
    let address: IpAddr = address.parse().map_err(|_| "it must begin with an address")?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|length| *length <= longest);
    Ok((address, length.ok_or("it must end with the length of a prefix")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(Parser::from_args(text.split_whitespace())).map_err(|error| error.to_string())
    }

    const PATHS: &str = "--core /c --ravelin /r --file /f --control /s --containers /n";

    #[test]
    fn what_stands_behind_a_port_is_meant_for_it() {
        let settings = parse(&format!(
            "{PATHS} --workers 2 --port eth0 --promiscuous --port tap0 --kind tap --offloads off --keep-from-kernel --port eth1 --kind af_xdp --mode generic --zero-copy no --queue 0 --queue 3 --without landlock"
        ))
        .expect("understood");
        let first = WantedPort { promiscuous: true, ..WantedPort::plain("eth0") };
        let second = WantedPort {
            kind: PortKind::Tap,
            offloads: Offloads::Off,
            keep_from_kernel: true,
            ..WantedPort::plain("tap0")
        };
        let xdp =
            XdpWishes { mode: Some(XdpMode::Generic), zero_copy: Some(false), queues: Some(vec![0, 3]) };
        let third = WantedPort { kind: PortKind::AfXdp, xdp, ..WantedPort::plain("eth1") };
        assert_eq!(settings.ports, [first, second, third]);
        assert_eq!((settings.workers, settings.without), (2, vec![Layer::Landlock]));
    }

    #[test]
    fn keys_are_passed_on_as_they_are() {
        let text = format!("{PATHS} --gateway g --threshold 2 --keep-in /k --key a=00 --key b=x=11");
        let trust = parse(&text).expect("understood").trust.expect("there is one");
        let keys = vec![("a".to_owned(), "00".to_owned()), ("b=x".to_owned(), "11".to_owned())];
        let terms = TrustTerms { gateway: "g".to_owned(), threshold: 2, keys };
        assert_eq!(trust, Trusting { terms, keep_in: "/k".into() });
    }

    #[test]
    fn clients_of_the_front_are_passed_on_as_they_are() {
        let text = "--front /f --listen [2001:db8::1]:4433 --front-key /k --client a=owner=00 --client b";
        let front = parse(&format!("{PATHS} {text}")).expect("understood").front.expect("there is one");
        let listen = "[2001:db8::1]:4433".parse().expect("an address");
        let clients = vec!["a=owner=00".to_owned(), "b".to_owned()];
        assert_eq!(front, Fronting { program: "/f".into(), listen, key: "/k".into(), clients });
    }

    #[test]
    fn addresses_are_those_of_their_port_and_what_control_is_told_is_passed_on() {
        let text = "--metrics 127.0.0.1:9480 --routing {} --as-started {\"x\":1} --port a --own-address 10.0.0.1 --own-address fd00::1 --port b --port c --own-address 10.0.1.1";
        let settings = parse(&format!("{PATHS} {text}")).expect("understood");
        let addresses = [vec!["10.0.0.1", "fd00::1"], vec![], vec!["10.0.1.1"]];
        let addresses = addresses.map(|own| own.into_iter().map(|one| one.parse().expect("one")).collect());
        assert_eq!(settings.addresses, addresses as [Vec<IpAddr>; 3]);
        assert_eq!(settings.metrics, "127.0.0.1:9480".parse().ok());
        assert_eq!((settings.routing, settings.as_started), (Some("{}".into()), Some("{\"x\":1}".into())));
    }

    #[test]
    fn a_tunnel_has_what_stands_behind_its_port() {
        let text = "--tunnel /t --port a --port udp:x --datagrams 0.0.0.0:5282 --tunnel-key /k1 --tunnel-key /k2 --tunnel-mtu 1420 --peer 1=home=x --peer-key A --peer-key B --endpoint 198.51.100.1:5282 --keepalive 5000000000 --peer 2=other --peer-key C --no-packets";
        let settings = parse(&format!("{PATHS} {text}")).expect("understood");
        let home = TunnelPeer {
            name: "home=x".to_owned(),
            number: 1,
            keys: vec!["A".to_owned(), "B".to_owned()],
            endpoint: "198.51.100.1:5282".parse().ok(),
            keepalive: Some(5_000_000_000),
            packets: true,
        };
        let other = TunnelPeer {
            name: "other".to_owned(),
            number: 2,
            keys: vec!["C".to_owned()],
            endpoint: None,
            keepalive: None,
            packets: false,
        };
        let listen = "0.0.0.0:5282".parse().expect("an address");
        let keys = vec!["/k1".into(), "/k2".into()];
        let tunnel = Tunnelling { listen, keys, mtu: 1420, peers: vec![home, other] };
        assert_eq!((settings.tunnels, settings.tunnel), (vec![(2, tunnel)], Some("/t".into())));
        assert_eq!(settings.ports[1].kind, PortKind::Tunnel);
        let peers: String = (0..=MOST_TUNNEL_PEERS).map(|number| format!(" --peer {number}=p")).collect();
        let many = parse(&format!(
            "{PATHS} --tunnel /t --port a --datagrams [::]:1 --tunnel-key /k --tunnel-mtu 9{peers}"
        ));
        assert!(many.expect_err("too many").contains("1024 peers"));
    }

    #[test]
    fn routes_are_followed_of_a_container_alone() {
        let port = "--port a --port b --kind vnic --ethernet 02:00:00:00:01:01";
        let of = |more: &str| parse(&format!("{PATHS} {port} {more}")).map(|settings| settings.routes_of);
        assert_eq!(of("--routes-of 2"), Ok(Some(2)));
        assert_eq!(of(""), Ok(None));
        for wrong in ["--routes-of 1", "--routes-of 0", "--routes-of 3", "--guest tap --routes-of 2"] {
            assert_eq!(of(wrong), Err("`--routes-of` must be the port of a container".to_owned()), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (more, told) in [
            ("--promiscuous", "behind a `--port`"),
            ("--own-address 10.0.0.1", "behind a `--port`"),
            ("--port x --own-address 10.0.0.1/8", "10.0.0.1/8"),
            ("--metrics x", "invalid socket address"),
            ("--port x --kind wire", "`af_packet`, `af_xdp`, `tap`, `vnic` or `tunnel`"),
            ("--port x --kind af_xdp --mode fast", "`driver` or `generic`"),
            ("--port x --kind af_xdp --zero-copy maybe", "`yes` or `no`"),
            ("--port x --kind af_xdp --queue -1", "-1"),
            ("--port x --kind tap --queue 1", "for ports of kind `af_xdp`"),
            ("--port x --kind vnic --address 10.0.0.1/8", "behind an `--ethernet`"),
            ("--port x --ethernet 1:2", "an Ethernet address"),
            ("--port x --ethernet 02:00:00:00:00:01 --address 10.0.0.1/33", "length of a prefix"),
            ("--port x --offloads no", "`cut`, `whole` or `off`"),
            ("--port x --ethernet 02:00:00:00:00:01 --guest no", "`tap` or `vhost-user`"),
            ("--port x --ethernet 02:00:00:00:00:01 --guest vhost-user", "`--vhost` is missing"),
            ("--port x --kind tunnel", "one `--datagrams`"),
            ("--port x --datagrams [::]:1 --datagrams [::]:2", "one `--datagrams`"),
            ("--port x --datagrams [::]:1", "needs a `--tunnel-key`"),
            ("--port x --datagrams [::]:1 --tunnel-key /k --tunnel-mtu 9", "`--tunnel` is missing"),
            ("--port x --datagrams 10.0.0.1", "10.0.0.1"),
            ("--datagrams [::]:1", "behind a `--port`"),
            ("--port x --datagrams [::]:1 --port y --tunnel-key /k", "behind a `--datagrams`"),
            ("--port x --datagrams [::]:1 --peer-key k", "behind a `--peer`"),
            ("--port x --datagrams [::]:1 --peer home", "`NUMBER=NAME`"),
            ("--port x --datagrams [::]:1 --peer one=home", "begin with a number"),
            ("--port x --datagrams [::]:1 --peer 1=home --keepalive 5s", "5s"),
            ("--workers 0", "1 to 64"),
            ("--workers 65", "1 to 64"),
            ("--without walls", "walls"),
            ("--gateway g --threshold 1 --keep-in /k --key digits", "`NAME=DIGITS`"),
            ("--gateway g --threshold 65536 --keep-in /k", "65536"),
            ("--gateway g --threshold 1", "belong together"),
            ("--key a=00", "belong together"),
            ("--front /f --listen 192.0.2.1 --front-key /k", "192.0.2.1"),
            ("--front /f --listen 192.0.2.1:4433", "belong together"),
            ("--client a", "belong together"),
            ("--verbose", "--verbose"),
            ("more", "more"),
        ] {
            let error = parse(&format!("{PATHS} {more}")).expect_err("refused");
            assert!(error.contains(told), "{more}: {error}");
        }
        assert!(parse("--core /c").expect_err("refused").contains("`--ravelin` is missing"));
    }
}
