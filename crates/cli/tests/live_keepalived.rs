//! A gateway whose machine shares a virtual address with another router by VRRP (RFC 5798), as keepalived
//! speaks it.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{HOSTED_PORTS, Net, program, text};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The address that both routers offer.
const SHARED: &str = "10.0.2.100";

/// keepalived in a namespace; it ends with the test.
struct Keepalived {
    child: Child,
    log: std::path::PathBuf,
}

impl Keepalived {
    fn start(net: &Net, host: &str, interface: &str, priority: u8) -> Keepalived {
        let file = |name: &str| net.path(&format!("keepalived-{host}.{name}"));
        let configuration = format!(
            "vrrp_instance shared {{\n  state BACKUP\n  interface {interface}\n  virtual_router_id 51\n  priority {priority}\n  advert_int 1\n  virtual_ipaddress {{\n    {SHARED}/32\n  }}\n}}\n"
        );
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
        // First the one that would start the other again.
        for process in [&self.child.id().to_string(), vrrp.trim()] {
            let _ = Command::new("kill").args(["-KILL", process]).output();
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

/// Waits until the shared address answers with this TTL: 64 where the gateway's machine has it, 63 where
/// host `b` does, behind the gateway.
fn until(net: &Net, ttl: u8, both: &[&Keepalived]) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let said = text(&net.run("a", "ping", &["-c", "3", "-i", "0.2", "-W", "2", SHARED]));
        if said.contains(" 3 received") && said.matches(&format!("ttl={ttl} ")).count() == 3 {
            return;
        }
        if Instant::now() > end {
            let logs: String = both.iter().map(|one| one.said()).collect();
            panic!("no answer with TTL {ttl}:\n{said}\n{logs}\n{}", net.ask(&["show", "neighbours"]));
        }
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_virtual_address_moves_to_the_other_router_and_back_and_packets_follow_it() {
    let test = "a_virtual_address_moves";
    if !net::installed(test, &["keepalived"]) {
        return;
    }
    let Some(mut net) = Net::routed(test) else { return };
    net.serve_ports(&program("router.rav"), HOSTED_PORTS);
    let other = Keepalived::start(&net, "b", "eth0", 100);
    until(&net, 63, &[&other]);
    for _ in 0..2 {
        // The gateway's has the higher priority, and takes the address over.
        let mut own = Keepalived::start(&net, "g", "h-to-b", 150);
        until(&net, 64, &[&own, &other]);
        own.stop();
        until(&net, 63, &[&own, &other]);
    }
    // One that is killed leaves the address in Linux, and so with the gateway; the next one goes on with it.
    let mut own = Keepalived::start(&net, "g", "h-to-b", 150);
    until(&net, 64, &[&own, &other]);
    own.kill(&net, "g");
    until(&net, 64, &[&own, &other]);
    let mut own = Keepalived::start(&net, "g", "h-to-b", 150);
    until(&net, 64, &[&own, &other]);
    own.stop();
    // It leaves an address that was there before it.
    net.ip(&["-n", &net.name("g"), "address", "del", &format!("{SHARED}/32"), "dev", "h-to-b"]);
    until(&net, 63, &[&own, &other]);
    net.stop();
}
