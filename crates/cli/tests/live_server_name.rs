//! Clients that were promised nothing, as a browser that kept an old address, reach hosts by the server name
//! of TLS that they say; and only those.

mod net;

use net::small_internet::{Home, Plan, ZONE, page, succeeds, until};
use net::text;
use rig::SmallInternet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// An address of the waypoint that is for clients of any resolver, and nobody is promised here.
const STALE: &str = "198.51.100.4";

/// Serves the folder over TLS, and writes down who asked.
const SERVER: &str = "
import functools, http.server, ssl, sys
folder, key, certificate = sys.argv[1:]
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
server = http.server.ThreadingHTTPServer(('0.0.0.0', 443), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
";

/// Gets the page of a server at an address, with so many protocols in its first message that it takes several
/// segments, as one with a key for a time of quantum computers does.
const LONG_CLIENT: &str = "
import socket, ssl, sys
address, name, certificate = sys.argv[1:]
context = ssl.create_default_context(cafile=certificate)
context.set_alpn_protocols(['%0200d' % one for one in range(10)] + ['http/1.0'])
connection = socket.create_connection((address, 443), 9)
connection = context.wrap_socket(connection, server_hostname=name)
connection.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
print(connection.makefile().read().split('\\n\\n', 1)[1], end='')
";

fn whole(name: &str) -> String {
    format!("{name}.{ZONE}")
}

fn certificate(home: &Home, host: usize) -> PathBuf {
    home.path(&format!("host{host}.pem"))
}

/// A host with its page over TLS, and a certificate for this name alone.
fn web_server(home: &mut Home, host: usize, name: &str) {
    let folder = home.path(&format!("host{host}"));
    fs::create_dir_all(&folder).expect("can be made");
    fs::write(folder.join("index.html"), page(host)).expect("can be written");
    let (key, certificate) = (home.path(&format!("host{host}.key")), certificate(home, host));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]);
    openssl.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=test", "-addext"]);
    openssl.arg(format!("subjectAltName=DNS:{}", whole(name)));
    openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    succeeds("openssl", &openssl.output().expect("openssl runs"));
    let log = fs::File::create(home.path(&format!("host{host}.log"))).expect("can be written");
    let mut server = home.internet.hosts[host].command("python3", None);
    server.args(["-u", "-c", SERVER]).arg(folder).arg(key).arg(certificate);
    home.keep(server.stderr(log));
    let own = ["-sS", "--insecure", "https://127.0.0.1/"];
    until(|| match home.internet.hosts[host].run("curl", &own, "") {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(text(&output)),
        Err(error) => Err(error.to_string()),
    });
}

/// curl of an initiator that asks at the stale address by a name, with the certificate of a host.
fn curl(home: &Home, initiator: usize, name: &str, port: u16, host: usize) -> Command {
    let resolve = format!("{}:{port}:{STALE}", whole(name));
    let mut curl = home.curl(initiator, &["--resolve", &resolve, "--cacert"]);
    curl.arg(certificate(home, host)).arg(format!("https://{}:{port}/", whole(name)));
    curl
}

fn gets(home: &Home, initiator: usize, name: &str, host: usize) {
    // The gateway asks for a host first that it does not know.
    until(|| match curl(home, initiator, name, 443, host).output().expect("curl runs") {
        got if got.stdout == page(host).as_bytes() => Ok(()),
        got => Err(format!("{name}: {}; {:?}", text(&got), home.ask("waypoint", &["names", "list"]))),
    });
}

/// An initiator gets nothing by a name, while something is counted more often.
fn is_refused(home: &Home, name: &str, port: u16, count: impl Fn(&Home) -> u64) {
    let before = count(home);
    let mut curl = curl(home, 0, name, port, 0);
    let mut curl = curl.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("curl runs");
    until(|| if count(home) > before { Ok(()) } else { Err(format!("{name} is not refused")) });
    // It would go on until its time is over.
    let _ = curl.kill();
    let got = curl.wait_with_output().expect("curl ends");
    assert!(got.stdout.is_empty(), "{name}: {}", text(&got));
}

fn unknown(home: &Home) -> u64 {
    home.ask("waypoint", &["names", "list"])["server_names"]["unknown_name"].as_u64().unwrap_or(0)
}

fn unexpected(home: &Home) -> u64 {
    home.drops("waypoint", "no_expectation")
}

#[test]
fn clients_with_an_old_address_reach_the_host_whose_name_they_say() {
    let addresses = ["--known", "198.51.100.2/31", "--unknown", "198.51.100.4/31"];
    let plan =
        Plan { initiators: 2, hosts: 2, addresses: &addresses, offloads: false, programs: &["openssl"] };
    let open = |role: &str, file: String| match role {
        "waypoint" => file.replace("[names.waypoint]\n", "[names.waypoint]\nserver_names = [\"tcp/443\"]\n"),
        _ => file,
    };
    let test = "clients_with_an_old_address_reach_the_host_whose_name_they_say";
    let Some(mut home) = Home::new(test, &plan, open) else { return };
    home.serve("waypoint");
    home.serve("gateway");
    web_server(&mut home, 0, "one");
    web_server(&mut home, 1, "two");
    home.add_name("one", 0, &["tcp/443", "tcp/8443"]);
    home.add_name("two", 1, &["tcp/443"]);
    let client = SmallInternet::initiator_address(0).to_string();
    let why = || text(&home.ravelin("waypoint", &["names", "why", &client, STALE, "tcp/443"]));
    assert!(
        why().starts_with("no expectation: a client of TLS reaches the host whose name it says"),
        "{}",
        why()
    );

    // Two hosts, one client, one address, one port; the certificates say which host it was.
    gets(&home, 0, "one", 0);
    gets(&home, 0, "two", 1);
    gets(&home, 1, "one", 0);
    assert!(why().contains("last said by TLS: two.home.example (led)"), "{}", why());
    for (host, others) in [(0, 0), (1, 1)] {
        let log = fs::read_to_string(home.path(&format!("host{host}.log"))).expect("a log");
        assert!(log.contains(&format!("{client} - - ")), "{log}");
        let other = SmallInternet::initiator_address(1).to_string();
        assert_eq!(log.contains(&format!("{other} - - ")), others == 0, "{log}");
    }

    // A first message that takes several segments.
    let long = || {
        let mut python = home.client(1, "python3");
        python.args(["-c", LONG_CLIENT, STALE, &whole("two")]).arg(certificate(&home, 1));
        python.stderr(Stdio::piped()).output().expect("python runs")
    };
    until(|| match long() {
        got if got.stdout == page(1).as_bytes() => Ok(()),
        got => Err(text(&got)),
    });

    // A name that nobody has, and a port that the file does not open although the host offers it.
    is_refused(&home, "three", 443, unknown);
    is_refused(&home, "one", 8443, unexpected);

    // A name that is gone leads nowhere, and the other one as before.
    succeeds("names remove", &home.ravelin("waypoint", &["names", "remove", "two"]));
    is_refused(&home, "two", 443, unknown);
    succeeds("reload", &home.ravelin("waypoint", &["reload"]));
    gets(&home, 0, "one", 0);
    // With the last name that is offered there, nobody is answered any more.
    succeeds("names remove", &home.ravelin("waypoint", &["names", "remove", "one"]));
    is_refused(&home, "one", 443, unexpected);
}
