//! Applications that ask more of a network than one connection: a WireGuard tunnel over a name whose client's
//! port changes, and FTP in its three ways.

mod net;

use net::small_internet::{Home, Plan, page, succeeds, until};
use net::{Running, text};
use rig::{Namespace, SmallInternet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

const PLAN: Plan<'_> = Plan {
    initiators: 1,
    hosts: 1,
    addresses: &["--unknown", "198.51.100.4/31"],
    offloads: true,
    programs: &[],
};

/// A waypoint, a gateway and dnsmasq, running.
fn served(test: &str, programs: &[&str]) -> Option<Home> {
    let programs = [&["dnsmasq"], programs].concat();
    let mut home = Home::new(test, &Plan { programs: &programs, ..PLAN }, |_, file| file)?;
    home.capture_at_router("public");
    home.serve("waypoint");
    home.serve("gateway");
    home.dnsmasq();
    Some(home)
}

/// The released implementation of WireGuard in user space, with a device of its own.
struct WireGuard {
    running: Running,
    process: u32,
    key: String,
}

impl WireGuard {
    /// Starts it in a namespace, where sockets that it is told by lie nowhere else.
    fn start(home: &Home, namespace: &Namespace, name: &str, address: &str) -> WireGuard {
        let run = "mount -t tmpfs none /run && mkdir /run/wireguard && mount --bind \"$0\" /etc/resolv.conf && \
                   exec wireguard-go -f wg0";
        let mut command = namespace.command("unshare", None);
        command.args(["--mount", "sh", "-c", run]).arg(home.path("resolv.conf"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("wireguard-go starts");
        let process = child.id();
        let made = Command::new("wg").arg("genkey").output().expect("wg runs");
        let file = home.path(&format!("{name}.wg"));
        fs::write(&file, &made.stdout).expect("can be written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("is ours");
        let public =
            Command::new("wg").arg("pubkey").stdin(fs::File::open(&file).expect("is there")).output();
        let key = String::from_utf8_lossy(&public.expect("wg runs").stdout).trim().to_owned();
        let wireguard = WireGuard { running: Running::of(child), process, key };
        let file = file.display().to_string();
        until(|| match wireguard.inside(&["wg", "set", "wg0", "private-key", &file]) {
            set if set.status.success() => Ok(()),
            set => Err(text(&set)),
        });
        for line in [format!("ip address add {address}/24 dev wg0"), "ip link set wg0 up".to_owned()] {
            succeeds(&line, &wireguard.inside(&line.split(' ').collect::<Vec<_>>()));
        }
        wireguard
    }

    /// Runs a program beside it.
    fn inside(&self, words: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.process.to_string(), "--mount", "--net"]).args(words);
        command.output().expect("nsenter runs")
    }

    fn set(&self, words: &[&str]) {
        succeeds("wg set", &self.inside(&[&["wg", "set", "wg0"], words].concat()));
    }

    /// What it tells of its only peer.
    fn peer(&self, what: &str) -> String {
        let shown = text(&self.inside(&["wg", "show", "wg0", what]));
        shown.split_whitespace().nth(1).unwrap_or("").to_owned()
    }
}

#[test]
fn a_tunnel_of_wireguard_to_a_name_survives_another_port_of_its_client() {
    let test = "a_tunnel_of_wireguard_to_a_name_survives_another_port_of_its_client";
    let Some(mut home) = served(test, &["wireguard-go", "wg", "nsenter"]) else { return };
    home.add_name("vpn", 0, &["udp/51820"]);
    let host = WireGuard::start(&home, &home.internet.hosts[0], "host", "10.9.0.1");
    let client = WireGuard::start(&home, &home.internet.initiators[0], "client", "10.9.0.2");
    host.set(&["listen-port", "51820", "peer", &client.key, "allowed-ips", "10.9.0.2/32"]);
    client.set(&["listen-port", "40001", "peer", &host.key, "allowed-ips", "10.9.0.1/32"]);
    client.set(&["peer", &host.key, "endpoint", "vpn.home.example:51820"]);
    let pings = || text(&client.inside(&["ping", "-c", "5", "-i", "0.2", "-W", "2", "10.9.0.1"]));
    // The first packet may go for the question where the host is; the handshake is sent again after 5 s.
    until(|| match pings() {
        said if said.contains("5 received") => Ok(()),
        said => Err(said),
    });
    let own = SmallInternet::initiator_address(0);
    assert_eq!(host.peer("endpoints"), format!("{own}:40001"));
    let session = client.peer("latest-handshakes");
    client.set(&["listen-port", "40002"]);
    let said = pings();
    assert!(said.contains("5 received"), "{said}");
    assert_eq!(host.peer("endpoints"), format!("{own}:40002"));
    assert_eq!(client.peer("latest-handshakes"), session, "it is the same session");
    // What does not fit into both tunnels at once: the client's system is told, and cuts.
    until(|| match client.inside(&["ping", "-c", "3", "-i", "0.2", "-W", "2", "-s", "1392", "10.9.0.1"]) {
        large if text(&large).contains("3 received") => Ok(()),
        large => Err(text(&large)),
    });
    home.end_captures();
    for port in ["40001", "40002"] {
        let mut read = Command::new("tcpdump");
        read.args(["-n", "-r"]).arg(home.captured("public")).args(["udp", "src", "port", port]);
        let seen = text(&read.output().expect("tcpdump runs"));
        assert!(seen.contains(&format!("{own}.{port} > 198.51.100.")), "{port}: {seen}");
    }
    drop((host.running, client.running));
}

/// vsftpd at the host, which lets everybody read a file.
fn ftp_server(home: &mut Home) {
    let folder = home.path("ftp");
    for made in [&folder, &home.path("empty")] {
        fs::create_dir_all(made).expect("can be made");
        fs::set_permissions(made, fs::Permissions::from_mode(0o555)).expect("is ours");
    }
    fs::set_permissions(home.path(""), fs::Permissions::from_mode(0o755)).expect("is ours");
    fs::write(folder.join("file"), page(0)).expect("can be written");
    let configuration = format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nno_anon_password=YES\nanon_root={}\n\
         secure_chroot_dir={}\nftp_username=daemon\nnopriv_user=nobody\nconnect_from_port_20=YES\n\
         pasv_min_port=2121\npasv_max_port=2121\nisolate_network=NO\nseccomp_sandbox=NO\n",
        folder.display(),
        home.path("empty").display()
    );
    let file = home.path("vsftpd.conf");
    fs::write(&file, configuration).expect("can be written");
    let mut command = home.internet.hosts[0].command("vsftpd", None);
    home.keep(command.arg(&file).stderr(Stdio::null()));
    until(|| match home.internet.hosts[0].run("curl", &["-sS", "ftp://127.0.0.1/file"], "") {
        Ok(output) if output.stdout == page(0).as_bytes() => Ok(()),
        Ok(output) => Err(text(&output)),
        Err(error) => Err(error.to_string()),
    });
}

#[test]
fn ftp_passes_where_its_client_connects_to_a_port_that_the_name_has() {
    let test = "ftp_passes_where_its_client_connects_to_a_port_that_the_name_has";
    let Some(mut home) = served(test, &["vsftpd"]) else { return };
    home.add_name("files", 0, &["tcp/21", "tcp/2121"]);
    ftp_server(&mut home);
    let fetch = |options: &[&str]| {
        let all = [options, &["--max-time", "3", "ftp://files.home.example/file"]].concat();
        home.curl(0, &all).output().expect("curl runs")
    };
    // EPSV names a port alone, and the client connects to the address that it has (RFC 2428, 3).
    let extended = fetch(&[]);
    assert_eq!(text(&extended), page(0));
    // PASV names an address, which is the private one. Who uses it reaches nobody; who takes the address
    // that it has does (RFC 1123, 4.1.2.6).
    assert_eq!(text(&fetch(&["--disable-epsv", "--ftp-skip-pasv-ip"])), page(0));
    let obeyed = fetch(&["--disable-epsv", "--no-ftp-skip-pasv-ip"]);
    assert!(!obeyed.status.success() && !text(&obeyed).contains(&page(0)), "{}", text(&obeyed));
    // An active server connects to the client. Names are no way out, so its gateway drops that.
    let before = home.drops("gateway", "not_asked");
    let active = fetch(&["--ftp-port", "-"]);
    assert!(!active.status.success() && !text(&active).contains(&page(0)), "{}", text(&active));
    assert!(home.drops("gateway", "not_asked") > before);
    home.end_captures();
    let mut read = Command::new("tcpdump");
    read.args(["-n", "-r"]).arg(home.captured("public"));
    let seen = text(&read.args(["tcp", "port", "20"]).output().expect("tcpdump runs"));
    assert!(!seen.contains(" IP "), "nothing of it leaves: {seen}");
}
