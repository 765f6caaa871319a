//! A gateway whose machine shares virtual addresses of IPv4 and IPv6 with another router by VRRP (RFC 5798),
//! as keepalived speaks it.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::capture::Capture;
use net::{Net, program, text};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The gateway's machine is a host in the networks of `a` and `b`, of both families.
const PORTS: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24", "fd00:1::1/64"]
host = true
[[port]]
interface = "to-b"
addresses = ["10.0.2.1/24", "fd00:2::1/64"]
host = true
"#;

/// The addresses that both routers offer.
const SHARED: [&str; 2] = ["10.0.2.100/32", "fd00:2::100/128"];
/// Of IPv6, the first has to be one of the link (RFC 5798, 5.2.9).
const SHARED_ON_LINK: &str = "fe80::100/64";

/// keepalived in a namespace; it ends with the test.
struct Keepalived {
    child: Child,
    log: std::path::PathBuf,
}

impl Keepalived {
    fn start(net: &Net, host: &str, interface: &str, priority: u8) -> Keepalived {
        let file = |name: &str| net.path(&format!("keepalived-{host}.{name}"));
        let instance = |name: &str, addresses: &str| {
            format!(
                "vrrp_instance {name} {{\n  state BACKUP\n  interface {interface}\n  virtual_router_id 51\n  priority {priority}\n  advert_int 1\n  virtual_ipaddress {{\n    {addresses}\n  }}\n}}\n"
            )
        };
        let six = format!("{SHARED_ON_LINK}\n    {}", SHARED[1]);
        let configuration = instance("shared", SHARED[0]) + &instance("shared6", &six);
        std::fs::write(file("conf"), configuration).expect("a file");
        let log = std::fs::File::create(file("log")).expect("a file");
        let names = ["conf", "pid", "vrrp.pid"].map(|name| file(name).display().to_string());
        let [conf, pid, vrrp] = names.each_ref().map(String::as_str);
        let options =
            ["--dont-fork", "--log-console", "--log-detail", "--vrrp", "-f", conf, "-p", pid, "-r", vrrp];
        let mut command: Command = net.at(host, "keepalived", &options);
        let outputs = (log.try_clone().expect("a file"), log);
        let child = command.stdin(Stdio::null()).stdout(outputs.0).stderr(outputs.1).spawn();
        Keepalived { child: child.expect("keepalived starts"), log: file("log") }
    }

    /// Ends it as a service is ended: it gives the address away.
    fn stop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).output();
        let _ = self.child.wait();
    }

    /// Kills both of its processes. What it has put into Linux stays there.
    fn kill(&mut self, net: &Net, host: &str) {
        let vrrp = std::fs::read_to_string(net.path(&format!("keepalived-{host}.vrrp.pid")));
        let vrrp = vrrp.expect("the number of the process that speaks VRRP");
        // The one is stopped first, since it would start the other again; while it is there, the other one is
        // not told to end, and gives nothing away.
        let parent = self.child.id().to_string();
        for (signal, process) in [("-STOP", &*parent), ("-KILL", vrrp.trim()), ("-KILL", &*parent)] {
            let _ = Command::new("kill").args([signal, process]).output();
        }
        let _ = self.child.wait();
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Keepalived {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until the shared addresses answer with this TTL: 64 where the gateway's machine has them, 63 where
/// host `b` does, behind the gateway.
fn until(net: &Net, ttl: u8, both: &[&Keepalived]) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let ping = |shared: &str| {
            let address = shared.split('/').next().unwrap_or(shared);
            text(&net.run("a", "ping", &["-c", "3", "-i", "0.2", "-W", "2", address]))
        };
        let answers =
            |said: &String| said.contains(" 3 received") && said.matches(&format!("ttl={ttl} ")).count() == 3;
        let said = SHARED.map(ping);
        if said.iter().all(answers) {
            return;
        }
        let said = said.concat();
        if Instant::now() > end {
            let logs: String = both.iter().map(|one| one.said()).collect();
            panic!("no answer with TTL {ttl}:\n{said}\n{logs}\n{}", net.ask(&["show", "neighbours"]));
        }
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn virtual_addresses_move_to_the_other_router_and_back_and_packets_follow_them() {
    let test = "virtual_addresses_move";
    if !net::installed(test, &["keepalived", "tcpdump", "tshark"]) {
        return;
    }
    let Some(mut net) = Net::routed(test) else { return };
    net.serve_ports(&program("router.rav"), PORTS);
    let (link, machine) = (Capture::at(&net, "b", "eth0"), Capture::at(&net, "g", "h-to-b"));
    let other = Keepalived::start(&net, "b", "eth0", 100);
    until(&net, 63, &[&other]);
    for _ in 0..2 {
        // The gateway's has the higher priority, and takes the addresses over.
        let mut own = Keepalived::start(&net, "g", "h-to-b", 150);
        until(&net, 64, &[&own, &other]);
        own.stop();
        until(&net, 63, &[&own, &other]);
    }
    // One that is killed leaves the addresses in Linux, and so with the gateway; the next one goes on with
    // them.
    let mut own = Keepalived::start(&net, "g", "h-to-b", 150);
    until(&net, 64, &[&own, &other]);
    own.kill(&net, "g");
    until(&net, 64, &[&own, &other]);
    let mut own = Keepalived::start(&net, "g", "h-to-b", 150);
    until(&net, 64, &[&own, &other]);
    own.stop();
    // It leaves addresses that were there before it.
    for address in SHARED.into_iter().chain([SHARED_ON_LINK]) {
        // Whether it had seen this one is its own affair.
        let _ = net.run("g", "ip", &["address", "del", address, "dev", "h-to-b"]);
    }
    until(&net, 63, &[&own, &other]);
    // Each router's words reach the other: those of the gateway's machine leave by the port, and those of the
    // host come to the machine. With priority 0 a master says that it goes (RFC 5798, 5.2.4).
    for to in ["ip.dst == 224.0.0.18", "ipv6.dst == ff02::12"] {
        for (capture, priority) in [(&link, 150), (&link, 0), (&machine, 100)] {
            let words = format!("{to} && vrrp.prio == {priority}");
            capture.until(&words, |frames| frames > 0);
        }
    }
    net.stop();
}
