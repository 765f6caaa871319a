//! The services of a router in the container of a gateway: dnsmasq gives a host an address and a name, sshd
//! lets it log in, and FRR learns a route by BGP, which packets take.
//!
//! The programs are those that a distribution has, started as [trust](../../../../docs/trust.md) says.

use super::routed::{CONTAINER, FAR, HOSTS, ROUTER, TABLES, routed_with, router_of};
use super::signed::ended;
use super::{Trusted, built};
use rig::{BgpSpeaker, Namespace, frr_libraries};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a router as it ships says before it looks at a frame: it lets hosts and these services reach each
/// other, and nothing else to the container or from it.
const SERVICES: &str = r#"
// The container of the router's services, at port 3. The hosts behind port 1 ask for addresses and names and
// log in; the router behind port 2 tells routes by BGP.
const SERVICES: mac = 02:00:00:00:01:01
reason no_service "no service in the container has this port, or nobody asked for this"
reason not_ours "for another station of the link"

table services: exact(at: port, proto: u8, number: u16) {
    capacity 16
    entries {
        (1, 17, 53)
        (1, 6, 53)
        (1, 17, 67)
        (1, 6, 22)
        (2, 6, 179)
    }
}

stage asked(proto: u8, number: u16) {
    match services[in_port, proto, number] { some _ => send 3, none => drop no_service }
}
stage answered(proto: u8, number: u16) {
    match services[1, proto, number] { some _ => send 1, none => {} }
    match services[2, proto, number] { some _ => send 2, none => drop no_service }
}
decoder to_service(ip: ipv4) {
    if ip.frag != 0 || ip.flags.mf { drop no_service }
    match ip.proto {
        6 => to_stream
        17 => to_datagram
        else => drop no_service
    }
}
decoder to_stream(segment: tcp) { goto asked(6, segment.dst) }
decoder to_datagram(datagram: udp) { goto asked(17, datagram.dst) }
decoder from_service(ip: ipv4) {
    if ip.frag != 0 || ip.flags.mf { drop no_service }
    match ip.proto {
        6 => from_stream
        17 => from_datagram
        else => drop no_service
    }
}
decoder from_stream(segment: tcp) {
    // The container begins no connection itself.
    if segment.flags.syn && !segment.flags.ack { drop no_service }
    goto answered(6, segment.src)
}
decoder from_datagram(datagram: udp) { goto answered(17, datagram.src) }

decoder arp_of_container(message: arp) {
    if message.target_ip in 10.2.1.0/24 { send 1 }
    if message.target_ip in 10.2.2.0/24 { send 2 }
    drop no_service
}
decoder arp_of_link(message: arp) {
    if message.target_ip == 10.2.1.3 || message.target_ip == 10.2.2.3 { send 3 }
    punt neighbours
}
start decoder frame(eth: ethernet) {
    if in_port == 3 {
        match eth.type {
            0x0800 => from_service
            0x0806 => arp_of_container
            else => drop no_service
        }
    }
    match eth.type {
        0x0806 => arp_of_link
        0x0800 if eth.dst == SERVICES || is_group(eth.dst) => to_service
        else => {}
    }
    // The ports take frames for other stations, too.
    match interfaces[in_port] { some (own, _, _) if own == eth.dst => {}, else => drop not_ours }
"#;
/// The addresses of the container in the networks of both hosts.
const OWN: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 2, 1, 3), Ipv4Addr::new(10, 2, 2, 3)];
/// How long anything may take in a container, whose processes have a small share of a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);
/// The users of packages that may be unpacked here and not installed.
const USERS: &str =
    "sshd:x:64997:65534::/run/sshd:/usr/sbin/nologin\nfrr:x:64998:64998::/:/usr/sbin/nologin\n";
const GROUPS: &str = "frr:x:64998:\nfrrvty:x:64999:frr\n";
/// What root does who has logged in: says who he is, and how many files cannot be written.
const LOGGED_IN: &str = "id -u; cat /proc/self/uid_map; \
    touch /srv/router/written /srv/written /etc/shadow 2>&1 | grep -c 'Read-only file system'";
/// What dhclient does with a lease.
const LEASE: &str = r#"#!/bin/sh
case "$reason" in
BOUND | RENEW | REBIND | REBOOT)
    ip address replace "$new_ip_address/$new_subnet_mask" dev "$interface"
    for router in $new_routers; do ip route replace default via "$router" dev "$interface"; done ;;
esac
"#;
const SSHD: &str = "HostKey /srv/router/host-key
AuthorizedKeysFile /srv/router/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
";
const BGPD: &str = "router bgp 65001
 bgp router-id 10.2.2.3
 no bgp ebgp-requires-policy
 neighbor 10.2.2.2 remote-as 65002
 neighbor 10.2.2.2 passive
";

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Programs of packages, each where the search path has it; `None` where one is missing.
fn found<const N: usize>(test: &str, names: [&str; N]) -> Option<[PathBuf; N]> {
    let listed = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&listed).chain(["/usr/lib/frr".into()]).collect();
    let found = names.map(|name| places.iter().map(|place| place.join(name)).find(|path| path.is_file()));
    if let Some(missing) = found.iter().position(Option::is_none) {
        let name = names[missing];
        assert!(std::env::var_os("CI").is_none(), "{test}: `{name}` is missing");
        eprintln!("{test}: not run, since `{name}` is missing");
        return None;
    }
    // A link would lead out of what is shown in a container.
    Some(found.map(|path| fs::canonicalize(path.expect("was looked at")).expect("it is there")))
}

/// Whether it becomes so in time.
fn becomes(what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{}", what());
        thread::sleep(Duration::from_millis(50));
    }
}

/// A gateway whose container is to run services.
struct Router {
    trusted: Trusted,
    /// What is shown in the container.
    shown: PathBuf,
}

impl Router {
    /// `None` where that is not allowed here.
    fn start(test: &str) -> Option<Router> {
        let routes = format!(
            "[kernel]\nroutes = \"{CONTAINER}\"\n\
             [[port]]\ninterface = \"{CONTAINER}\"\nkind = \"vnic\"\n\
             [port.vnic]\nethernet = \"02:00:00:00:01:01\"\naddresses = [\"{}/24\", \"{}/24\"]\n",
            OWN[0], OWN[1]
        );
        let trusted = routed_with(test, "promiscuous = true\n", &routes)?;
        let frame = "start decoder frame(eth: ethernet) {\n";
        assert!(ROUTER.contains(frame) && ROUTER.contains("import std.net.{"));
        let program =
            ROUTER.replace(frame, SERVICES).replace("import std.net.{", "import std.net.{arp, udp, ");
        let bundle = router_of(trusted.folder.path(), 2, &program, &TABLES);
        let (well, said) = trusted.install(&bundle, &[]);
        assert!(well, "{said}");
        let shown = trusted.folder.path().join("router");
        fs::create_dir(&shown).expect("ours");
        for (list, more) in [("passwd", USERS), ("group", GROUPS)] {
            let all = fs::read_to_string(Path::new("/etc").join(list)).expect("a list");
            fs::write(trusted.folder.path().join(list), all + more).expect("written");
        }
        Some(Router { trusted, shown })
    }

    /// Writes a file that is shown in the container as one of `/srv/router`.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.shown.join(name), text).expect("written");
    }

    /// Has `ravelin contain` run this script of the shell, with further options, where `/srv/router` and
    /// these places of programs are shown.
    fn contain(&self, options: &[&str], places: &[&Path], script: &str) -> Running {
        let folder = self.trusted.folder.path().display();
        // Nobody else sees this folder and these users.
        let mount = format!(
            "mount -t tmpfs none /srv && mkdir /srv/router && mount --bind {} /srv/router && \
             mount --bind {folder}/passwd /etc/passwd && mount --bind {folder}/group /etc/group && exec \"$@\"",
            self.shown.display()
        );
        let mut command = self.trusted.gateway.command("unshare", None);
        command.args(["--mount", "sh", "-c", &mount, "sh"]).arg(built("ravelin"));
        command.args(["contain", "--containers", &format!("{folder}/containers"), "--show", "/srv/router"]);
        command.args(places.iter().flat_map(|place| [OsStr::new("--show"), place.as_os_str()]));
        command.args(options).args(["--", "sh", "-c", script]);
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"))
    }

    /// What a program says that a host runs to its end.
    fn said(&self, host: &Namespace, program: &Path, arguments: &[&str]) -> String {
        ended(host.command(program, None).args(arguments).stdin(Stdio::null()).output()).1
    }

    /// dnsmasq as the server of DHCP and DNS of host a.
    fn serve_names(&self, dnsmasq: &Path) -> Running {
        let text = format!(
            "interface={CONTAINER}\nbind-interfaces\ndhcp-range={},static\n\
             dhcp-host=02:00:00:00:00:01,{}\ndhcp-option=option:router,{}\n\
             dhcp-leasefile=/run/dnsmasq.leases\npid-file\nno-resolv\naddress=/gateway.test/{}\n",
            Ipv4Addr::from_bits(HOSTS[0].0.to_bits() & !0xff),
            HOSTS[0].0,
            HOSTS[0].1,
            HOSTS[0].1
        );
        self.write("dnsmasq.conf", &text);
        let script =
            format!("exec {} --keep-in-foreground --conf-file=/srv/router/dnsmasq.conf", dnsmasq.display());
        self.contain(&[], &[dnsmasq], &script)
    }

    /// dhclient of host a, which has no address yet.
    fn lease(&self, dhclient: &Path) -> Running {
        let folder = self.trusted.folder.path();
        let at = |name: &str| folder.join(name).display().to_string();
        fs::write(at("lease-script"), LEASE).expect("written");
        fs::set_permissions(at("lease-script"), fs::Permissions::from_mode(0o755)).expect("ours");
        let flushed = self.said(&self.trusted.a, Path::new("ip"), &["address", "flush", "dev", "eth"]);
        assert_eq!(flushed, "");
        let mut command = self.trusted.a.command(dhclient, None);
        command.args(["-d", "-cf", "/dev/null", "-sf", &at("lease-script")]);
        command.args(["-lf", &at("client-leases"), "-pf", &at("client-pid"), "eth"]);
        let streams = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(streams.spawn().expect("it starts"))
    }

    /// sshd with the public half of this key.
    fn serve_shells(&self, sshd: &Path, keygen: &Path, user: &Path) -> Running {
        let host = self.shown.join("host-key");
        for key in [&host, user] {
            let made = Command::new(keygen).args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(key).status();
            assert!(made.expect("it runs").success());
        }
        let users = self.trusted.folder.path().join(format!("containers/{CONTAINER}.users"));
        let users = fs::read_to_string(users).expect("a file");
        let root = users.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a number");
        chown(&host, Some(root), Some(root)).expect("root may");
        let public = fs::read_to_string(user.with_extension("pub")).expect("it was made");
        self.write("authorized_keys", &public);
        self.write("sshd.conf", SSHD);
        let script = format!("mkdir /run/sshd && exec {} -D -e -f /srv/router/sshd.conf", sshd.display());
        self.contain(&[], &[sshd], &script)
    }

    /// zebra and bgpd.
    fn serve_routes(&self, zebra: &Path, bgpd: &Path) -> Running {
        self.write("zebra.conf", "");
        self.write("bgpd.conf", BGPD);
        let libraries = frr_libraries(zebra);
        let script = format!(
            "export LD_LIBRARY_PATH={} && install -d -o frr -g frr /run/frr && {} -d -f /srv/router/zebra.conf && \
             exec {} -f /srv/router/bgpd.conf",
            libraries.display(),
            zebra.display(),
            bgpd.display()
        );
        self.contain(&["--sys-admin"], &[&libraries, zebra, bgpd], &script)
    }

    /// Whether a stream that begins there is answered.
    fn answers(&self, from: &Namespace, to: (Ipv4Addr, u16)) -> bool {
        let connected = from.inside(|| {
            TcpStream::connect_timeout(&SocketAddr::from((to.0, to.1)), Duration::from_millis(700))
        });
        match connected {
            Err(error) if error.kind() == ErrorKind::TimedOut => false,
            Err(error) => panic!("{to:?}: {error}"),
            Ok(_) => true,
        }
    }
}

#[test]
fn dhcp_names_logins_and_bgp_run_in_a_container_and_the_policy_lets_them_through_alone() {
    let test = "dhcp_names_logins_and_bgp_run_in_a_container_and_the_policy_lets_them_through_alone";
    let programs = ["dnsmasq", "dhclient", "dig", "sshd", "ssh", "ssh-keygen", "zebra", "bgpd"];
    let Some([dnsmasq, dhclient, dig, sshd, ssh, keygen, zebra, bgpd]) = found(test, programs) else {
        return;
    };
    let Some(router) = Router::start(test) else { return };
    let Router { trusted, .. } = &router;

    let names = router.serve_names(&dnsmasq);
    let _client = router.lease(&dhclient);
    let address =
        || router.said(&trusted.a, Path::new("ip"), &["-4", "-br", "address", "show", "dev", "eth"]);
    becomes(address, || address().contains(&HOSTS[0].0.to_string()));
    let server = format!("@{}", OWN[0]);
    let asked = || router.said(&trusted.a, &dig, &["+short", "+time=2", &server, "gateway.test"]);
    becomes(asked, || asked().trim() == HOSTS[0].1.to_string());

    let user = trusted.folder.path().join("user-key");
    let _shells = router.serve_shells(&sshd, &keygen, &user);
    let (user, at) = (user.display().to_string(), format!("root@{}", OWN[0]));
    let logged_in = || {
        let options = ["-q", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"];
        let more = ["-o", "UserKnownHostsFile=/dev/null", "-i", &user, &at, LOGGED_IN];
        router.said(&trusted.a, &ssh, &[&options[..], &more].concat())
    };
    becomes(logged_in, || logged_in().split_whitespace().eq(["0", "0", "1879048192", "65536", "3"]));

    let _routes = router.serve_routes(&zebra, &bgpd);
    let mut speaker = BgpSpeaker::open(&trusted.b, 65002, OWN[1], PATIENCE).expect("a session");
    let far = (Ipv4Addr::from_bits(FAR.to_bits() & !0xffff), 16);
    speaker.announce(&[far], HOSTS[1].0).expect("a session");
    let kernel = || trusted.ip_in_container("route show proto bgp");
    becomes(kernel, || kernel().contains("10.9.0.0/16") && kernel().contains("via 10.2.2.2"));
    assert_eq!(trusted.arrive(FAR, 20, || ()), 20);
    speaker.withdraw(&[far]).expect("a session");
    trusted.shows_route("10.9.0.0/16", false);

    for (host, to) in [
        (&trusted.a, (OWN[0], 179)),
        (&trusted.a, (OWN[0], 80)),
        (&trusted.b, (OWN[1], 22)),
        (&trusted.b, (OWN[1], 53)),
    ] {
        assert!(!router.answers(host, to), "{to:?}");
    }
    for (host, to) in [(&trusted.a, (OWN[0], 22)), (&trusted.b, (OWN[1], 179))] {
        becomes(|| format!("{to:?} does not answer"), || router.answers(host, to));
    }
    let listener = trusted.a.inside(|| TcpListener::bind((HOSTS[0].0, 22))).expect("a socket");
    let namespaces = container::Namespaces::open(&trusted.folder.path().join("containers"), CONTAINER);
    let namespaces = namespaces.expect("kept");
    let at = SocketAddr::from((HOSTS[0].0, 22));
    let begun = namespaces.inside(|| TcpStream::connect_timeout(&at, Duration::from_millis(700)));
    assert_eq!(begun.expect("it enters").expect_err("it begins none").kind(), ErrorKind::TimedOut);
    drop(listener);
    assert!(trusted.shown()["dropped"]["no_service"].as_u64() > Some(0));

    // It is another user than the one that started it.
    drop(names);
    let bound = || namespaces.inside(|| UdpSocket::bind((OWN[0], 53))).expect("it enters");
    becomes(|| format!("{:?}", bound()), || bound().is_ok());
}
