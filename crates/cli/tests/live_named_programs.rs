//! What is said of names by programs as they are released, for the functions F1 to F5 and F11 of the plan
//! of tests: files of many sizes by HTTP and TLS both ways, a DNS server, copies by ssh and a shell that is
//! silent, pings of every length, each kind of traceroute, datagrams, and an address that is used long after
//! its answer.
//!
//! `cargo xtask soak` lets all of it be as long as the plan has it: 1 GiB, 500 MiB, ten minutes of silence,
//! six minutes behind an answer.

mod net;

use net::script::Script;
use net::small_internet::{Home, Plan, WHOLE_RUN, ZONE, either, page, succeeds, until};
use net::text;
use rig::SmallInternet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PLAN: Plan<'_> = Plan {
    initiators: 2,
    hosts: 2,
    addresses: &["--unknown", "198.51.100.4/30"],
    offloads: true,
    programs: &["dnsmasq"],
};

fn served(test: &str, programs: &[&str]) -> Option<Home> {
    let programs = [PLAN.programs, programs].concat();
    let mut home = Home::new(test, &Plan { programs: &programs, ..PLAN }, |_, file| file)?;
    home.serve("waypoint");
    home.serve("gateway");
    home.dnsmasq();
    Some(home)
}

/// Writes a file of so many bytes, of which no two parts are alike.
fn file_of(path: &Path, bytes: u64) {
    let mut file = std::io::BufWriter::new(fs::File::create(path).expect("can be written"));
    let mut state = bytes | 1;
    for at in (0..bytes).step_by(8) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(at | 1);
        let word = (state >> 7).to_le_bytes();
        file.write_all(&word[..(bytes - at).min(8) as usize]).expect("can be written");
    }
    file.flush().expect("can be written");
}

fn same(one: &Path, other: &Path) {
    succeeds("cmp", &Command::new("cmp").args([one, other]).output().expect("cmp runs"));
}

/// nginx at the first host, with a certificate of its own, which also takes files.
fn web_server(home: &mut Home, root: &Path) {
    fs::create_dir_all(root).expect("can be made");
    let mut made = Command::new("openssl");
    made.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt"]);
    made.args(["ec_paramgen_curve:P-256", "-subj", "/CN=test", "-addext"]);
    made.arg(format!("subjectAltName=DNS:web.{ZONE}")).arg("-keyout").arg(root.join("key"));
    succeeds("openssl", &made.arg("-out").arg(root.join("certificate")).output().expect("openssl runs"));
    let configuration = format!(
        "worker_processes 1;\nuser root;\npid {0}/nginx.pid;\nerror_log {0}/error.log;\nevents {{}}\nhttp {{\n \
         access_log {0}/access.log;\n client_body_temp_path {0}/body;\n proxy_temp_path {0}/proxy;\n \
         fastcgi_temp_path {0}/fastcgi;\n uwsgi_temp_path {0}/uwsgi;\n scgi_temp_path {0}/scgi;\n \
         client_max_body_size 0;\n server {{ listen 80; listen 443 ssl; ssl_certificate {0}/certificate;\n  \
         ssl_certificate_key {0}/key; root {0}/files; dav_methods PUT; }}\n}}\n",
        root.display()
    );
    fs::create_dir_all(root.join("files")).expect("can be made");
    fs::write(root.join("nginx.conf"), configuration).expect("can be written");
    let mut nginx = home.internet.hosts[0].command("nginx", None);
    nginx.arg("-p").arg(root).arg("-c").arg(root.join("nginx.conf"));
    home.keep(nginx.args(["-g", "daemon off; master_process off;"]).stderr(Stdio::null()));
    until(|| match fs::read_to_string(root.join("nginx.pid")) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    });
}

#[test]
fn files_of_every_size_pass_by_http_and_tls_both_ways() {
    let test = "files_of_every_size_pass_by_http_and_tls_both_ways";
    let Some(mut home) = served(test, &["nginx", "openssl", "cmp"]) else { return };
    let root = home.path("web");
    web_server(&mut home, &root);
    home.add_name("web", 0, &["tcp/80", "tcp/443"]);
    let (sent, got) = (home.path("sent"), home.path("got"));
    for bytes in [1, 1_400, 1 << 20, either(1 << 24, 1 << 30)] {
        file_of(&sent, bytes);
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://web.{ZONE}/{scheme}-{bytes}");
            let mut curl = home.client(0, "curl");
            curl.args(["-sS", "--fail", "--ipv4", "--max-time", either("60", "900"), "--cacert"]);
            curl.arg(root.join("certificate")).arg("--upload-file").arg(&sent).arg(&url);
            succeeds(&url, &curl.output().expect("curl runs"));
            same(&sent, &root.join(format!("files/{scheme}-{bytes}")));
            let mut curl = home.client(0, "curl");
            curl.args(["-sS", "--fail", "--ipv4", "--max-time", either("60", "900"), "--cacert"]);
            curl.arg(root.join("certificate")).arg("--output").arg(&got).arg(&url);
            succeeds(&url, &curl.output().expect("curl runs"));
            same(&sent, &got);
            fs::remove_file(root.join(format!("files/{scheme}-{bytes}"))).expect("is there");
        }
    }
    let log = fs::read_to_string(root.join("access.log")).expect("nginx has written it");
    let own = SmallInternet::initiator_address(0).to_string();
    assert_eq!(log.lines().count(), 16, "{log}");
    assert!(log.lines().all(|line| line.split(' ').next() == Some(own.as_str())), "{log}");
}

/// NSD at the first host, with a zone of its own.
fn domain_server(home: &mut Home) {
    let place = home.path("nsd").display().to_string();
    fs::create_dir_all(&place).expect("can be made");
    let long =
        format!("long TXT {}\n", "\"of the longest text that one string of a record may have\" ".repeat(30));
    let zone = "$ORIGIN inside.example.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\n\
                ns A 10.0.0.80\nwww A 192.0.2.80\nwww AAAA 2001:db8::80\n@ MX 10 www\n";
    fs::write(home.path("nsd/zone"), zone.to_owned() + &long).expect("can be written");
    let configuration = format!(
        "server:\n  ip-address: 0.0.0.0@53\n  server-count: 1\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \
         \"{place}\"\n  database: \"\"\n  pidfile: \"\"\n  xfrdfile: \"{place}/xfrd\"\n  xfrdir: \"{place}\"\n  \
         zonelistfile: \"{place}/zones\"\n  logfile: \"{place}/nsd.log\"\n  rrl-ratelimit: 0\nremote-control:\n  \
         control-enable: no\nzone:\n  name: \"inside.example\"\n  zonefile: \"{place}/zone\"\n"
    );
    fs::write(home.path("nsd.conf"), configuration).expect("can be written");
    let mut nsd = home.internet.hosts[0].command("nsd", None);
    nsd.arg("-d").arg("-c").arg(home.path("nsd.conf"));
    home.keep(nsd.stderr(Stdio::null()));
    let soa = ["@127.0.0.1", "+short", "+tries=1", "+time=1", "inside.example", "SOA"];
    until(|| match home.internet.hosts[0].run("dig", &soa, "") {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => Ok(()),
        Ok(output) => Err(text(&output)),
        Err(error) => Err(error.to_string()),
    });
}

#[test]
fn a_dns_server_of_a_host_answers_by_its_name_as_beside_it() {
    let test = "a_dns_server_of_a_host_answers_by_its_name_as_beside_it";
    let Some(mut home) = served(test, &["nsd"]) else { return };
    domain_server(&mut home);
    home.add_name("dns", 0, &["udp/53", "tcp/53"]);
    let (by_name, beside) = (format!("@dns.{ZONE}"), format!("@{}", SmallInternet::host_address(0)));
    let shown = ["+norecurse", "+nocookie", "+noall", "+answer", "+authority", "+additional", "+time=5"];
    let mut records = 0;
    // The first packet may go for the question where the host is.
    until(|| {
        let mut dig = home.client(0, "dig");
        let said = text(
            &dig.args([by_name.as_str(), "-4", "+short", "inside.example", "SOA"])
                .output()
                .expect("dig runs"),
        );
        if said.starts_with("ns.inside.example.") { Ok(()) } else { Err(said) }
    });
    for question in ["www A", "www AAAA", "@ MX", "@ SOA", "long TXT", "nothing A"] {
        let (label, kind) = question.split_once(' ').expect("a label and a kind");
        let name = if label == "@" { "inside.example".to_owned() } else { format!("{label}.inside.example") };
        // Longer than 512 bytes: without EDNS dig is told so by UDP, and comes by TCP.
        for transport in [&["+notcp"][..], &["+tcp"], &["+noedns"]] {
            let asked = [&["-4", name.as_str(), kind], &shown[..], transport].concat();
            let mut dig = home.client(0, "dig");
            let got = text(&dig.arg(&by_name).args(&asked).output().expect("dig runs"));
            let wanted = home.internet.hosts[1].run("dig", &[&[beside.as_str()], &asked[..]].concat(), "");
            assert_eq!(got, text(&wanted.expect("dig runs")), "{question} {transport:?}");
            assert!(got.contains("inside.example."), "{got}");
            records += got.lines().count();
        }
    }
    assert!(records > 18, "{records}");
}

/// sshd at the first host, which lets the key `user` in. What it insists on is made where nobody else sees
/// it.
fn shell_server(home: &mut Home) {
    for key in ["host-key", "user"] {
        let mut made = Command::new("ssh-keygen");
        made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(home.path(key));
        succeeds("ssh-keygen", &made.output().expect("ssh-keygen runs"));
    }
    let configuration = format!(
        "Port 2222\nListenAddress 0.0.0.0\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\nTCPKeepAlive no\n\
         Subsystem sftp internal-sftp\n",
        home.path("host-key").display(),
        home.path("user.pub").display()
    );
    fs::write(home.path("sshd.conf"), configuration).expect("can be written");
    let users = fs::read_to_string("/etc/passwd").expect("a list of users");
    fs::write(home.path("passwd"), users + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
        .expect("can be written");
    let run = format!(
        "mount -t tmpfs none /run && mkdir /run/sshd && mount --bind {} /etc/passwd && \
         exec $(command -v sshd) -D -e -f {}",
        home.path("passwd").display(),
        home.path("sshd.conf").display()
    );
    let log = fs::File::create(home.path("sshd.log")).expect("can be written");
    let mut server = home.internet.hosts[0].command("unshare", None);
    home.keep(server.args(["--mount", "sh", "-c", &run]).stderr(log));
    until(|| match fs::read_to_string(home.path("sshd.log")) {
        Ok(log) if log.contains("Server listening") => Ok(()),
        log => Err(format!("{log:?}")),
    });
}

#[test]
fn files_pass_by_ssh_and_a_silent_shell_goes_on() {
    let test = "files_pass_by_ssh_and_a_silent_shell_goes_on";
    let Some(mut home) = served(test, &["sshd", "ssh", "scp", "ssh-keygen", "cmp"]) else { return };
    shell_server(&mut home);
    home.add_name("shell", 0, &["tcp/2222"]);
    let user = format!("IdentityFile={}", home.path("user").display());
    let options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", &user];
    let options = [&options[..], &["ServerAliveInterval=0", "TCPKeepAlive=no"]].concat();
    let ours = |program: &str, port: &str| {
        let mut command = home.client(0, program);
        command.args(["-q", "-4", "-F", "none", port, "2222"]);
        command.args(options.iter().flat_map(|option| ["-o", option]));
        command
    };
    let at = format!("root@shell.{ZONE}");
    let mut shell = ours("ssh", "-p");
    let mut shell = Script::start(shell.args([&at, "cat"]));
    assert_eq!(shell.ask("before"), "before");
    let silent = Instant::now();
    let [sent, there, got] = ["sent", "there", "got"].map(|name| home.path(name));
    file_of(&sent, either(1 << 24, 500 << 20));
    let there_at = format!("{at}:{}", there.display());
    let mut scp = ours("scp", "-P");
    succeeds("scp", &scp.arg(&sent).arg(&there_at).output().expect("scp runs"));
    same(&sent, &there);
    let mut scp = ours("scp", "-P");
    succeeds("scp", &scp.arg(&there_at).arg(&got).output().expect("scp runs"));
    same(&sent, &got);
    // Longer than the time of datagrams; that of TCP is 124 minutes.
    thread::sleep(Duration::from_secs(either(2, 600)).saturating_sub(silent.elapsed()));
    assert_eq!(shell.ask("after"), "after");
    assert!(shell.ends());
    let log = fs::read_to_string(home.path("sshd.log")).expect("sshd has written it");
    let own = format!("Accepted publickey for root from {} port", SmallInternet::initiator_address(0));
    assert_eq!(log.matches(&own).count(), 3, "{log}");
    assert_eq!(log.matches("Accepted ").count(), 3, "{log}");
}

/// Sends datagrams of many lengths, some at a time, and wants them back as they were and in their order.
const DATAGRAM_CLIENT: &str = "
import os, socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.connect((sys.argv[1], 7))
client.settimeout(2)
for size in (1, 2, 18, 100, 512, 1000, 1391, 1392, 1393, 1400, 1471, 1472):
    for attempt in range(8):
        sent = [bytes([number, attempt])[:size] + os.urandom(max(0, size - 2)) for number in range(4)]
        for data in sent:
            client.send(data)
        got = []
        try:
            while len(got) < len(sent):
                data = client.recv(2048)
                if data in sent:
                    got.append(data)
        except OSError:
            pass
        if got == sent:
            break
        if len(got) == len(sent):
            sys.exit('%d bytes came in another order' % size)
    else:
        sys.exit('no answer to %d bytes' % size)
";

#[test]
fn pings_and_datagrams_of_every_length_pass_and_each_traceroute_ends_at_the_host() {
    let test = "pings_and_datagrams_of_every_length_pass_and_each_traceroute_ends_at_the_host";
    let Some(mut home) = served(test, &["ping", "traceroute", "mtr"]) else { return };
    home.add_name("host0", 0, &["tcp/80", "udp/7", "icmp"]);
    home.web_server(0, 80);
    home.datagram_server(0);
    let name = format!("host0.{ZONE}");
    let run = |program: &str, arguments: &[&str]| {
        text(&home.client(0, program).args(arguments).arg(&name).output().expect("it runs"))
    };
    for size in ["0", "56", "1472", "4000", "65000"] {
        until(|| match run("ping", &["-4", "-c", "3", "-i", "0.2", "-W", "2", "-M", "dont", "-s", size]) {
            said if said.contains("3 received") => Ok(()),
            said => Err(format!("{size}: {said}")),
        });
    }
    let fits = run("ping", &["-4", "-c", "2", "-i", "0.2", "-W", "2", "-M", "do", "-s", "1392"]);
    assert!(fits.contains("2 received"), "{fits}");
    let too_long = run("ping", &["-4", "-c", "2", "-i", "0.2", "-W", "2", "-M", "do", "-s", "1393"]);
    assert!(too_long.contains("mtu") && too_long.contains("1420"), "{too_long}");
    let at = text(&home.client(0, "dig").args(["+short", &name]).output().expect("dig runs"));
    let router = SmallInternet::initiator_address(0).to_bits() - 1;
    for kind in [&["-I"][..], &["-U", "-p", "33434"], &["-T", "-p", "80"], &[]] {
        until(|| {
            let said = run("traceroute", &[&["-4", "-n", "-q", "1", "-w", "2", "-m", "8"], kind].concat());
            let hops: Vec<&str> =
                said.lines().skip(1).filter_map(|hop| hop.split_whitespace().nth(1)).collect();
            // The client's router, and by the address of the name the waypoint, the gateway and the host.
            let router = std::net::Ipv4Addr::from_bits(router).to_string();
            let wanted = [router.as_str(), at.trim(), at.trim(), at.trim()];
            if hops == wanted { Ok(()) } else { Err(format!("{kind:?}: {said}")) }
        });
    }
    // mtr ends at the first router that answers by the address of its target, which is the waypoint.
    until(|| {
        let said = run("mtr", &["--report", "--report-cycles", "3", "--no-dns", "-4"]);
        let hops = said.lines().filter_map(|line| line.split_once(".|-- "));
        let hops: Vec<Vec<&str>> = hops.map(|(_, hop)| hop.split_whitespace().take(3).collect()).collect();
        let router = std::net::Ipv4Addr::from_bits(router).to_string();
        match hops == [[&router, "0.0%", "3"], [at.trim(), "0.0%", "3"]] {
            true => Ok(()),
            false => Err(said),
        }
    });
    let output = home.client(0, "python3").args(["-c", DATAGRAM_CLIENT, &name]).output();
    succeeds("datagrams", &output.expect("python runs"));
}

#[test]
fn streams_of_datagrams_arrive_whole_and_in_order() {
    let test = "streams_of_datagrams_arrive_whole_and_in_order";
    let Some(mut home) = served(test, &["iperf3"]) else { return };
    home.add_name("host0", 0, &["tcp/5201", "udp/5201"]);
    let mut iperf = home.internet.hosts[0].command("iperf3", None);
    home.keep(iperf.arg("-s").stderr(Stdio::null()));
    let rates = either(&["2M", "8M"][..], &["20M", "80M", "150M"]);
    for (rate, direction) in rates.iter().flat_map(|rate| [(rate, None), (rate, Some("-R"))]) {
        until(|| {
            let mut client = home.client(0, "iperf3");
            let seconds = either("1", "10");
            client.args(["-u", "-J", "-l", "1392", "-b", rate, "-t", seconds, "-c"]);
            let output = client.arg(format!("host0.{ZONE}")).args(direction).output().expect("iperf3 runs");
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let stream = &report["end"]["streams"][0]["udp"];
            let [packets, lost, late] =
                ["packets", "lost_packets", "out_of_order"].map(|figure| stream[figure].as_u64());
            println!(
                "{test}: {rate} {direction:?}: {packets:?} datagrams, lost {lost:?}, out of order {late:?}"
            );
            match packets.zip(lost).is_some_and(|(packets, lost)| packets > 100 && lost * 1000 <= packets) {
                true if late == Some(0) => Ok(()),
                _ => Err(format!("{rate} {direction:?}: {stream} {}", report["error"])),
            }
        });
    }
}

#[test]
fn who_uses_an_address_long_after_its_answer_reaches_its_host_or_nobody() {
    let test = "who_uses_an_address_long_after_its_answer_reaches_its_host_or_nobody";
    let Some(mut home) = served(test, &[]) else { return };
    for host in 0..2 {
        home.web_server(host, 80);
        home.add_name(&format!("host{host}"), host, &["tcp/80"]);
    }
    let at = text(&home.client(0, "dig").args(["+short", "host0.home.example"]).output().expect("dig runs"));
    let url = format!("http://{}/", at.trim());
    let got = || {
        let output = home.curl(0, &["--max-time", "5", &url]).output().expect("curl runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let other = |host: usize| {
        let url = format!("http://host{host}.{ZONE}/");
        text(&home.curl(1, &["--max-time", "5", &url]).output().expect("curl runs"))
    };
    thread::sleep(Duration::from_secs(either(3, 60)));
    assert_eq!(other(1), page(1), "the other name has the other address");
    assert_eq!(got(), page(0));
    if std::env::var_os(WHOLE_RUN).is_none() {
        return;
    }
    // Five minutes later the address may be promised for another host, and the client has a binding or not.
    thread::sleep(Duration::from_secs(300));
    for host in [1, 0, 1] {
        other(host);
        let seen = got();
        assert!(seen == page(0) || seen.is_empty(), "{seen}");
    }
}
