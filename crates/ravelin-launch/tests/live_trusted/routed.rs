//! A gateway that routes while its core is confined: the policy says of which tables `control` may change
//! which entries, and packets go on whoever dies.

use super::changed::channel_of_control;
use super::signed::{ended, gateway_with, ir, policy, signed, trust};
use super::*;
use bundle::{KeyPrefix, SignedPolicy, TableRight};
use messages::control::{ControlQuestion, CoreAnswer, LinkFrame};
use messages::limits::LONGEST_MESSAGE;
use redteam::asked;
use rig::FrameReceiver;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};

/// A router as it ships.
pub(crate) const ROUTER: &str = include_str!("../../../../programs/router.rav");
/// The tables that `control` fills, with the bits of their keys.
pub(crate) const TABLES: [(&str, u8); 7] = [
    ("routes", 32),
    ("routes6", 128),
    ("next_hops", 16),
    ("behind", 16),
    ("next_hop_groups", 24),
    ("group_ports", 32),
    ("interfaces", 16),
];
/// The hosts, and the gateway at each of them.
pub(crate) const HOSTS: [(Ipv4Addr, Ipv4Addr); 2] = [
    (Ipv4Addr::new(10, 2, 1, 1), Ipv4Addr::new(10, 2, 1, 254)),
    (Ipv4Addr::new(10, 2, 2, 2), Ipv4Addr::new(10, 2, 2, 254)),
];
/// The link of the container.
pub(crate) const CONTAINER: &str = "services";
/// Addresses of host b that are in no network of the gateway.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const FARTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// The router as a policy, with rights over these tables.
fn router(folder: &Path, version: u64, tables: &[(&str, u8)]) -> Vec<u8> {
    router_of(folder, version, ROUTER, tables)
}

/// The same of another program with these tables.
pub(crate) fn router_of(folder: &Path, version: u64, program: &str, tables: &[(&str, u8)]) -> Vec<u8> {
    let right = |(table, bits): &(&str, u8)| TableRight {
        table: (*table).to_owned(),
        prefixes: vec![KeyPrefix::new(*bits, 0, 0).expect("a prefix")],
        most_entries: 4000,
        changes_per_second: 10_000,
    };
    let mut rights: Vec<TableRight> = tables.iter().map(right).collect();
    rights.sort_by(|one, other| one.table.cmp(&other.table));
    let program = ir(folder, program);
    signed(&SignedPolicy { program, rights, ..policy(folder, version, false) }, &[0, 1])
}

/// A gateway with addresses at its ports, which follows the routes of its machine, and the first policy,
/// which has no tables for them.
fn routed(test: &str) -> Option<Trusted> {
    routed_with(test, "", "[kernel]\nroutes = true\n")
}

/// The same, whose file says this of each of its ports and of routes.
pub(crate) fn routed_with(test: &str, of_ports: &str, routes: &str) -> Option<Trusted> {
    let trusted = gateway_with(test, &(trust() + routes), |folder| {
        let file = folder.join("gateway.toml");
        let mut text = fs::read_to_string(&file).expect("it is there");
        text.insert_str(0, &format!("containers = \"{}/containers\"\n", folder.display()));
        for (interface, (_, own)) in ["to-a", "to-b"].into_iter().zip(HOSTS) {
            let port = format!("interface = \"{interface}\"\n");
            let more = format!("{port}addresses = [\"{own}/24\"]\nkeep_from_kernel = true\n{of_ports}");
            text = text.replace(&port, &more);
        }
        fs::write(file, text).expect("written");
    })?;
    for (host, (address, gateway)) in [&trusted.a, &trusted.b].into_iter().zip(HOSTS) {
        let links = host.links().expect("links");
        links.address("eth", address, 24).expect("an address");
        links.default_route(gateway).expect("a route");
    }
    let links = trusted.b.links().expect("links");
    [FAR, FARTHER].into_iter().for_each(|address| links.address("eth", address, 32).expect("an address"));
    Some(trusted)
}

impl Trusted {
    /// `ip` on the gateway's machine.
    fn ip(&self, arguments: &str) {
        let output = self.gateway.command("ip", None).args(arguments.split(' ')).output();
        let (well, said) = ended(output);
        assert!(well, "ip {arguments}: {said}");
    }

    /// `ip` as root in the network of the container.
    pub(crate) fn ip_in_container(&self, arguments: &str) -> String {
        let file = |kind| self.folder.path().join(format!("containers/{CONTAINER}.{kind}"));
        let mut command = Command::new("nsenter");
        command.arg(format!("--user={}", file("userns").display()));
        command.arg(format!("--net={}", file("netns").display()));
        let (well, said) = ended(command.arg("ip").args(arguments.split(' ')).output());
        assert!(well, "ip {arguments}: {said}");
        said
    }

    /// Waits until `ravelin show routes` says this, or does not.
    pub(crate) fn shows_route(&self, prefix: &str, is_there: bool) {
        let end = Instant::now() + LIMIT;
        while self.routes().contains(prefix) != is_there {
            assert!(Instant::now() < end, "{prefix}: {}", self.routes());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many of so many datagrams arrive that host a sends to an address of host b, one every few
    /// milliseconds, after the first one that does.
    pub(crate) fn arrive(&self, address: Ipv4Addr, datagrams: u32, work: impl FnOnce()) -> u32 {
        let from = self.a.inside(|| UdpSocket::bind((HOSTS[0].0, 0))).expect("a socket");
        let to = self.b.inside(|| UdpSocket::bind((address, 0))).expect("a socket");
        to.set_read_timeout(Some(Duration::from_millis(500))).expect("so");
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&to, 64 << 20).expect("root may");
        let at = SocketAddrV4::new(address, to.local_addr().expect("bound").port());
        let (end, mut bytes) = (Instant::now() + LIMIT, [0; 16]);
        loop {
            // Where the neighbour is not known yet, the machine says so later.
            let _ = from.send_to(&[0; 4], at);
            if to.recv(&mut bytes).is_ok() {
                break;
            }
            assert!(Instant::now() < end, "nothing reaches {address}: {}", self.routes());
        }
        let all_sent = AtomicBool::new(false);
        thread::scope(|scope| {
            let arrived = scope.spawn(|| {
                let (mut count, mut bytes) = (0, [0; 4]);
                loop {
                    // Who sends may wait for a processor meanwhile.
                    let over = all_sent.load(Ordering::SeqCst);
                    match to.recv(&mut bytes) {
                        Ok(_) => count += u32::from(u32::from_be_bytes(bytes) > 0),
                        Err(_) if over => return count,
                        Err(_) => {}
                    }
                }
            });
            let sends = scope.spawn(|| {
                for number in 1..=datagrams {
                    let _ = from.send_to(&number.to_be_bytes(), at);
                    thread::sleep(Duration::from_millis(3));
                }
                all_sent.store(true, Ordering::SeqCst);
            });
            work();
            sends.join().expect("sent");
            arrived.join().expect("counted")
        })
    }

    /// `ravelin show routes`.
    fn routes(&self) -> String {
        let mut command = Command::new(built("ravelin"));
        command.args(["show", "routes", "--control"]).arg(self.folder.path().join("control.sock"));
        ended(command.output()).1
    }
}

/// The frames of ARP that have come, once there is one.
fn arrived(mut from: FrameReceiver) -> Vec<Vec<u8>> {
    let (end, mut all) = (Instant::now() + LIMIT, Vec::new());
    loop {
        let seen = all.len();
        from.receive(|_, frame| all.push(frame.to_vec())).expect("it is there");
        if seen > 0 && all.len() == seen {
            return all;
        }
        assert!(Instant::now() < end, "nothing comes");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn routes_of_the_machine_and_neighbours_come_into_a_confined_core_and_packets_go_on_whoever_dies() {
    let test =
        "routes_of_the_machine_and_neighbours_come_into_a_confined_core_and_packets_go_on_whoever_dies";
    let Some(trusted) = routed(test) else { return };
    let (well, said) = trusted.install(&router(trusted.folder.path(), 2, &TABLES), &[]);
    assert!(well, "{said}");
    assert_eq!(trusted.arrive(HOSTS[1].0, 100, || ()), 100);
    trusted.ip("route add 10.2.2.2/32 dev to-b");
    trusted.ip("route add 10.9.0.0/16 via 10.2.2.2 dev to-b");
    assert_eq!(trusted.arrive(FAR, 20, || ()), 20);
    // A host that is farther away, with a route of its own by the same neighbour.
    trusted.ip("route add 198.51.100.9/32 via 10.2.2.2 dev to-b");
    // A prefix that is shorter than those that a core changes.
    trusted.ip("route add default via 10.2.2.2 dev to-b");
    assert_eq!(trusted.arrive(FARTHER, 20, || ()), 20);
    for prefix in ["10.9.0.0/16", "0.0.0.0/0"] {
        assert!(trusted.routes().contains(prefix), "{}", trusted.routes());
    }

    // What `control` knew stays in the tables, and whoever follows it goes on with that.
    let control = || {
        trusted.kill("ravelin-control");
        trusted.hears("control was ended by signal 9");
    };
    for address in [HOSTS[1].0, FAR, FARTHER] {
        assert_eq!(trusted.arrive(address, 600, control), 600, "{address}");
    }
    let successor = || {
        let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
        kill_process(launch, Signal::USR2).expect("it runs");
        trusted.hears("another core runs");
    };
    for address in [FAR, FARTHER] {
        assert_eq!(trusted.arrive(address, 600, successor), 600, "{address}");
    }

    trusted.kill("ravelin-core");
    trusted.hears("core: program 2 runs, sha256 ");
    assert_eq!(trusted.arrive(FARTHER, 20, || ()), 20);
    assert_eq!(trusted.arrive(HOSTS[1].0, 20, || ()), 20);
}

#[test]
fn routes_of_a_router_in_a_container_lead_to_the_ports_in_whose_networks_their_next_hops_are() {
    let test = "routes_of_a_router_in_a_container_lead_to_the_ports_in_whose_networks_their_next_hops_are";
    let routes = format!(
        "[kernel]\nroutes = \"{CONTAINER}\"\n\
         [[port]]\ninterface = \"{CONTAINER}\"\nkind = \"vnic\"\n\
         [port.vnic]\nethernet = \"02:00:00:00:01:01\"\naddresses = [\"10.2.1.3/24\", \"10.2.2.3/24\"]\n"
    );
    let Some(trusted) = routed_with(test, "", &routes) else { return };
    // Those of the machine are nobody's.
    trusted.ip("route add 203.0.113.0/24 dev to-b");
    trusted.ip_in_container("route add 10.9.0.0/16 via 10.2.2.2 dev services");
    let (well, said) = trusted.install(&router(trusted.folder.path(), 2, &TABLES), &[]);
    assert!(well, "{said}");
    assert_eq!(trusted.arrive(FAR, 20, || ()), 20);
    trusted.ip_in_container("route add 192.0.2.0/24 via 10.2.2.2 dev services");
    assert_eq!(trusted.arrive(FARTHER, 20, || ()), 20);
    assert!(!trusted.routes().contains("203.0.113.0/24"), "{}", trusted.routes());

    // What the router sends to the gateway says nothing to it, and what lies nowhere leads nowhere.
    trusted.ip_in_container("route add default via 10.2.2.254 dev services");
    trusted.ip_in_container("route add 198.51.100.0/24 via 172.31.0.9 dev services onlink");
    trusted.shows_route("198.51.100.0/24", true);
    let routes = trusted.routes();
    assert!(routes.contains("its next hop is in no network"), "{routes}");
    assert!(!routes.contains("0.0.0.0/0"), "{routes}");

    // Whoever follows a control that died has another socket there.
    let control = || {
        trusted.kill("ravelin-control");
        trusted.hears("control was ended by signal 9");
    };
    assert_eq!(trusted.arrive(FAR, 600, control), 600);
    trusted.ip_in_container("route del 192.0.2.0/24");
    trusted.shows_route("192.0.2.0/24", false);
    // Routes go silently with a link.
    trusted.ip_in_container("link set services down");
    trusted.shows_route("10.9.0.0/16", false);
}

#[test]
fn a_table_without_a_right_stays_as_it_was_signed_and_the_operator_is_told() {
    let test = "a_table_without_a_right_stays_as_it_was_signed_and_the_operator_is_told";
    let Some(trusted) = routed(test) else { return };
    let (well, said) = trusted.install(&router(trusted.folder.path(), 2, &TABLES[..1]), &[]);
    assert!(well, "{said}");
    trusted.hears("table `next_hops`: the policy in force gives no right for it");
    let mut command = Command::new(built("ravelin"));
    command.args(["table", "show", "next_hops", "--control"]).arg(trusted.folder.path().join("control.sock"));
    let (well, said) = ended(command.output());
    // Those of the program's text, and no neighbour of here.
    assert!(well && said.contains("02:00:00:00:01:02") && !said.contains("02:00:00:00:00:02"), "{said}");
}

#[test]
fn a_control_that_is_taken_over_says_on_links_only_who_the_gateway_is() {
    let test = "a_control_that_is_taken_over_says_on_links_only_who_the_gateway_is";
    let Some(trusted) = routed(test) else { return };
    // That of the gateway's end of the cable.
    let station = [2, 0, 0, 0, 9, 1];
    let arp = |station: [u8; 6], sender: Ipv4Addr| {
        let head = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let kind = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
        let target = HOSTS[0].0.octets();
        [&head[..], &station, &kind, &station, &sender.octets(), &[0; 6], &target].concat()
    };
    let (own, other) = (HOSTS[0].1, HOSTS[1].0);
    let datagram = [&arp(station, own)[..12], &[8, 0], &[0x45; 60]].concat();
    let frames: Vec<(u16, Vec<u8>)> = vec![
        (1, arp(station, own)),
        (2, arp(station, own)),
        (1, arp(station, other)),
        (1, arp([2, 0, 0, 0, 0, 7], own)),
        (1, datagram),
        (3, arp(station, own)),
        (0, arp(station, own)),
    ];
    let all = frames.len() as u32;
    let frames = frames.into_iter().map(|(port, bytes)| LinkFrame { port, bytes }).collect();
    let (control, mut core) = channel_of_control(&trusted);
    let heard = FrameReceiver::of_arp(&trusted.a, "eth").expect("a socket");
    let mut answer = asked(&mut core, &ControlQuestion::Exchange { frames, patience: 0 });
    // `control` may have asked before it stood still.
    if !matches!(answer, Some(CoreAnswer::Exchanged { left_out, .. }) if left_out > 0) {
        answer = core.receive_alone(LONGEST_MESSAGE).expect("the core answers");
    }
    assert!(
        matches!(answer, Some(CoreAnswer::Exchanged { left_out, .. }) if left_out == all - 1),
        "{answer:?}"
    );
    assert_eq!(arrived(heard), [arp(station, own)]);
    kill_process(control, Signal::KILL).expect("it is there");
}
