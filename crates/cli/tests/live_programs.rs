//! Programs that know nothing of a gateway, on both sides of one; and what another decoder says of all that
//! left by it.

mod net;

use net::sshd::{self, Shell};
use net::{Net, installed, program};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A program that serves; it ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM: tcpdump writes what it has, nginx ends its workers. Either may have ended by itself.
        let _ = Command::new("kill").arg(self.0.id().to_string()).output();
        let _ = self.0.wait();
    }
}

/// Starts a program at a host, ended at the latest after a minute.
fn serve(net: &Net, host: &str, command: &[&str]) -> Server {
    let limited = [&["60"], command].concat();
    let mut command = net.at(host, "timeout", &limited);
    Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("can be started"))
}

/// Runs a command at host `a` until it succeeds: servers need a moment.
fn reach(net: &Net, command: &[&str]) -> Output {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let output = net.run("a", "timeout", &[&["15"], command].concat());
        if output.status.success() {
            return output;
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(Instant::now() < end, "{command:?} does not succeed: {errors}");
        thread::sleep(Duration::from_millis(200));
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Hosts hand over long segments and unfinished checksums; those towards `b` are to be cut and finished by
/// the gateway's kernel, so that what is captured there is what would be on a wire.
fn finish_towards_b(net: &Net) {
    let off = ["-K", "to-b", "tx", "off", "tso", "off", "gso", "off", "sg", "off"];
    assert!(net.run("g", "ethtool", &off).status.success());
}

/// A capture of what reaches host `b`, by another program.
fn capture(net: &Net, file: &Path) -> Server {
    let name = file.display().to_string();
    let server = serve(
        net,
        "b",
        &[
            "tcpdump",
            "-i",
            "eth0",
            "-Q",
            "in",
            "-s",
            "0",
            "-B",
            "65536",
            "--immediate-mode",
            "-U",
            "-Z",
            "root",
            "-w",
            &name,
        ],
    );
    let end = Instant::now() + Duration::from_secs(20);
    // It writes the head of the file once it listens.
    while fs::metadata(file).map_or(0, |data| data.len()) < 24 {
        assert!(Instant::now() < end, "tcpdump does not begin");
        thread::sleep(Duration::from_millis(20));
    }
    server
}

/// Ends a capture once nothing more comes.
fn end(watching: Server, file: &Path) {
    let length = || fs::metadata(file).map_or(0, |data| data.len());
    let mut before = 0;
    while before < length() {
        before = length();
        thread::sleep(Duration::from_millis(300));
    }
    drop(watching);
}

/// Segments pass as they are: packets that the gateway joins would reach `b` with a checksum that nobody has
/// finished yet, as on every virtual link, and the decoder would call it bad.
const WHOLE: &str = "[[port]]\ninterface = \"to-a\"\noffloads = \"whole\"\n[[port]]\ninterface = \"to-b\"\noffloads = \"whole\"\n";

/// How many frames of a capture another decoder finds, that checks checksums.
fn frames(file: &Path, filter: &str) -> usize {
    let checks = ["ip", "tcp", "udp"].map(|protocol| format!("{protocol}.check_checksum:TRUE"));
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(file).args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    command.args(checks.iter().flat_map(|check| ["-o", check]));
    let output = command.output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.iter().filter(|&&byte| byte == b'\n').count()
}

/// Every packet that reached `b` had right checksums and a length that fits the link.
fn judge(file: &Path, at_least: usize) {
    let status = |what: &str| {
        let one = |protocol| format!("{protocol}.checksum.status == \"{what}\"");
        ["ip", "tcp", "udp", "icmp", "icmpv6"].map(one).join(" || ")
    };
    assert_eq!(frames(file, &status("Bad")), 0, "bad checksums");
    assert_eq!(frames(file, "frame.len > 1514"), 0, "frames longer than the link's");
    assert_eq!(frames(file, "_ws.malformed"), 0, "damaged packets");
    let good = frames(file, &status("Good"));
    assert!(good >= at_least, "only {good} frames were judged");
}

#[test]
fn a_browser_gets_its_pages() {
    let test = "a_browser_gets_its_pages";
    if !installed(test, &["nginx", "curl", "tcpdump", "tshark", "ethtool"]) {
        return;
    }
    let Some(mut net) = Net::new(test) else { return };
    finish_towards_b(&net);
    net.serve_ports(&program("mac_switch.rav"), WHOLE);
    let (root, captured) = (net.path("www"), net.path("b.pcap"));
    fs::create_dir(&root).expect("can be made");
    let page: Vec<u8> = (0..8_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(root.join("page"), &page).expect("can be written");
    let directory = net.path("").display().to_string();
    let config = format!(
        "worker_processes 1;\nuser root;\npid {directory}/nginx.pid;\nerror_log {directory}/error.log;\nevents {{}}\n\
         http {{\naccess_log off;\nclient_max_body_size 64m;\nclient_body_temp_path {directory}/body;\nproxy_temp_path {directory}/proxy;\n\
         fastcgi_temp_path {directory}/fastcgi;\nuwsgi_temp_path {directory}/uwsgi;\nscgi_temp_path {directory}/scgi;\n\
         server {{ listen 10.0.0.2:8080; listen [fd00::2]:8080; root {};\nlocation = /taken {{ return 204; }} }}\n}}\n",
        root.display()
    );
    let file = net.path("nginx.conf");
    fs::write(&file, config).expect("can be written");
    let watching = capture(&net, &captured);
    let server = serve(&net, "b", &["nginx", "-c", &file.display().to_string(), "-g", "daemon off;"]);
    for address in ["10.0.0.2", "[fd00::2]"] {
        let url = format!("http://{address}:8080/page");
        let got = reach(&net, &["curl", "-s", "-S", "-f", "-g", &url]);
        assert!(got.stdout == page, "{} bytes of {}", got.stdout.len(), page.len());
    }
    // The other way: a long body makes long segments go to `b`.
    let body = format!("@{}", root.join("page").display());
    let form = ["curl", "-s", "-S", "-f", "--data-binary", &body, "http://10.0.0.2:8080/taken"];
    reach(&net, &form);
    drop(server);
    end(watching, &captured);
    let report = net.stop();
    let average = report["received"]["bytes"].as_u64().unwrap_or(0)
        / report["received"]["packets"].as_u64().unwrap_or(1);
    assert!(average > 1514, "segments came whole: {average}");
    judge(&captured, 1_000);
}

#[test]
fn a_resolver_gets_its_names() {
    let test = "a_resolver_gets_its_names";
    if !installed(test, &["dnsmasq", "dig", "ethtool", "tcpdump", "tshark"]) {
        return;
    }
    let Some(mut net) = Net::new(test) else { return };
    finish_towards_b(&net);
    net.serve(&program("mac_switch.rav"));
    let captured = net.path("b.pcap");
    let watching = capture(&net, &captured);
    let settings = [
        "dnsmasq",
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--user=root",
        "--pid-file=",
        "--bind-interfaces",
        "--listen-address=10.0.0.2,fd00::2",
        "--address=/ravelin.test/10.9.8.7",
    ];
    let server = serve(&net, "b", &settings);
    for server in ["@10.0.0.2", "@fd00::2"] {
        for transport in ["+notcp", "+tcp"] {
            let answer =
                reach(&net, &["dig", "+short", "+time=2", transport, server, "gateway.ravelin.test"]);
            assert_eq!(text(&answer), "10.9.8.7");
        }
    }
    drop(server);
    end(watching, &captured);
    net.stop();
    judge(&captured, 8);
}

#[test]
fn a_shell_opens_on_the_other_side() {
    let test = "a_shell_opens_on_the_other_side";
    if !installed(test, &[&sshd::PROGRAMS[..], &["ethtool", "tcpdump", "tshark"]].concat()) {
        return;
    }
    let Some(mut net) = Net::new(test) else { return };
    finish_towards_b(&net);
    net.serve(&program("mac_switch.rav"));
    let captured = net.path("b.pcap");
    let watching = capture(&net, &captured);
    let ssh = Shell::at(&net, "10.0.0.2");
    let server = serve(&net, "b", &["sh", "-c", &ssh.server]);
    let client: Vec<&str> = ssh.client.iter().map(String::as_str).collect();
    assert_eq!(net::text(&reach(&net, &client)), sshd::expected());
    drop(server);
    end(watching, &captured);
    net.stop();
    judge(&captured, 20);
}

#[test]
fn a_route_is_traced_through_the_switch() {
    let test = "a_route_is_traced_through_the_switch";
    if !installed(test, &["traceroute"]) {
        return;
    }
    let Some(mut net) = Net::new(test) else { return };
    net.serve_ports(&program("mac_switch.rav"), WHOLE);
    net.wait_for_pings();
    for (kind, address) in [("-U", "10.0.0.2"), ("-I", "10.0.0.2"), ("-T", "10.0.0.2"), ("-I", "fd00::2")] {
        let output = reach(&net, &["traceroute", "-n", "-w", "5", "-q", "1", kind, address]);
        let hops = text(&output);
        let last = hops.lines().last().unwrap_or_default().trim().to_owned();
        assert!(last.starts_with(&format!("1  {address} ")), "{kind}: {hops}");
    }
    net.stop();
}
