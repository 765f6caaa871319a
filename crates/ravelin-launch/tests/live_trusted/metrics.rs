//! Metrics of a gateway whose core is confined: they tell what the core tells, whatever dies.

use super::signed::{gateway_with, policy, signed, trust};
use super::*;
use rustix::io::Errno;
use rustix::net::{self, Shutdown, shutdown};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

const AT: &str = "127.0.0.1:9480";

/// A gateway with metrics.
fn measured(test: &str) -> Option<Trusted> {
    let trusted = Trusted::with(test, &[], "", add_metrics)?;
    trusted.gateway.links().expect("links").up("lo").expect("it is on");
    Some(trusted)
}

/// Has the file of a gateway ask for metrics.
fn add_metrics(folder: &Path) {
    let file = folder.join("gateway.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(file, format!("metrics = \"{AT}\"\n{text}")).expect("written");
}

impl Trusted {
    /// The page of metrics, once it is there.
    fn page(&self) -> String {
        let end = Instant::now() + LIMIT;
        loop {
            let asked = self.gateway.inside(|| {
                let mut stream = TcpStream::connect(AT)?;
                stream.set_read_timeout(Some(Duration::from_secs(10)))?;
                stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")?;
                let mut page = String::new();
                stream.read_to_string(&mut page)?;
                Ok(page)
            });
            match asked {
                Ok(page) if page.starts_with("HTTP/1.1 200 OK\r\n") => return page,
                other => assert!(Instant::now() < end, "{other:?}"),
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The value of a metric with its labels.
    fn metric(&self, name: &str) -> Option<u64> {
        let page = self.page();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|value| value.parse().expect("a number"))
    }

    /// The socket at which `control` is asked for metrics.
    fn listening(&self) -> OwnedFd {
        let control = pidfd_open(self.process("ravelin-control"), PidfdFlags::empty()).expect("it runs");
        let listens = |descriptor: i32| {
            let socket = pidfd_getfd(&control, descriptor, PidfdGetfdFlags::empty()).ok()?;
            let is_inet = net::sockopt::socket_domain(&socket).ok()? == net::AddressFamily::INET;
            (is_inet && net::sockopt::socket_acceptconn(&socket).ok()?).then_some(socket)
        };
        (0..32).find_map(listens).expect("it listens")
    }
}

#[test]
fn metrics_tell_what_the_core_tells_whatever_dies() {
    let Some(trusted) = measured("metrics_tell_what_the_core_tells_whatever_dies") else { return };
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    assert_eq!(trusted.metric("ravelin_generation"), Some(2));
    assert!(trusted.metric("ravelin_drops_total{reason=\"closed\",at=\"\"}") > Some(0));
    assert!(trusted.metric("ravelin_port_received_total{port=\"1\",interface=\"to-a\"}") > Some(0));
    assert_eq!(trusted.metric("ravelin_port_there{port=\"2\",interface=\"to-b\"}"), Some(1));

    // Whoever takes `control` over can shut this socket and no other.
    let socket = trusted.listening();
    shutdown(&socket, Shutdown::Both).expect("so may whoever has it");
    let refused = trusted.gateway.inside(|| TcpStream::connect(AT).map(drop));
    assert_eq!(refused.map_err(|error| Errno::from_io_error(&error)), Err(Some(Errno::CONNREFUSED)));
    drop(socket);
    trusted.kill("ravelin-control");
    trusted.hears("control was ended by signal 9");
    assert_eq!(trusted.metric("ravelin_generation"), Some(2));

    trusted.kill("ravelin-core");
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    assert!(trusted.metric("ravelin_received_total") > Some(0));

    let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
    kill_process(launch, Signal::USR2).expect("it runs");
    trusted.hears("another core runs");
    assert_eq!(trusted.metric("ravelin_generation"), Some(2));
}

#[test]
fn metrics_tell_which_signed_policy_runs() {
    let test = "metrics_tell_which_signed_policy_runs";
    let Some(trusted) = gateway_with(test, &trust(), add_metrics) else { return };
    trusted.gateway.links().expect("links").up("lo").expect("it is on");
    let hash = trusted.shown()["policy"]["hash"].as_str().expect("a text").to_owned();
    assert_eq!(trusted.metric(&format!("ravelin_policy_version{{hash=\"{hash}\"}}")), Some(1));
    assert_eq!(trusted.metric("ravelin_policy_confirmed"), Some(1));
    let next = signed(&policy(trusted.folder.path(), 2, true), &[0, 1]);
    let (well, said) = trusted.install(&next, &["--confirm-within", "600s"]);
    assert!(well, "{said}");
    let hash = trusted.shown()["policy"]["hash"].as_str().expect("a text").to_owned();
    assert_eq!(trusted.metric(&format!("ravelin_policy_version{{hash=\"{hash}\"}}")), Some(2));
    assert_eq!(trusted.metric("ravelin_policy_confirmed"), Some(0));
}

#[test]
fn an_address_that_is_taken_is_told_at_the_start() {
    let test = "an_address_that_is_taken_is_told_at_the_start";
    let Some(gateway) = namespace(test) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("filter.rav"), PROGRAM).expect("written");
    let file = folder.path().join("gateway.toml");
    let text = format!(
        "program = \"filter.rav\"\ncontrol = {:?}\n[[port]]\ninterface = \"tap\"\nkind = \"tap\"\n",
        folder.path().join("control.sock")
    );
    fs::write(&file, text).expect("written");
    add_metrics(folder.path());
    gateway.links().expect("links").up("lo").expect("it is on");
    let _taken = gateway.inside(|| std::net::TcpListener::bind(AT)).expect("it is free");
    let mut command = gateway.command(built("ravelin"), None);
    let output = command.args(["serve", "--trusted"]).arg(&file).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("metrics cannot be asked for at 127.0.0.1:9480: Address already in use"), "{said}");
    assert!(said.contains("give another address as `metrics` in the file"), "{said}");
}
