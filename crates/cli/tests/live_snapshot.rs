//! A gateway that keeps over a restart what packets learned.

mod net;

use net::{Net, program, text};
use std::fs;
use std::time::{Duration, Instant};

/// Sends one datagram from `argv[1]`, `argv[2]` to `argv[3]`, `argv[4]`.
const SEND: &str = "import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
s.sendto(b'x', (sys.argv[3], int(sys.argv[4])))";

const FILE: &str = "snapshot = \"state\"\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";

fn send(net: &Net, host: &str, from: (&str, &str), to: (&str, &str)) {
    let sent = net.run(host, "python3", &["-c", SEND, from.0, from.1, to.0, to.1]);
    assert!(sent.status.success(), "{}", text(&sent));
}

/// How many packets the program has dropped for a reason, and how many it has sent on.
fn figures(net: &Net, reason: &str) -> (u64, u64) {
    let report = &net.ask(&["show", "run", "--total"])["now"]["report"];
    (report["drops"][reason].as_u64().unwrap_or(0), report["forwarded"]["packets"].as_u64().unwrap_or(0))
}

/// Sends a datagram from outside again and again, since hosts have to find each other first, until a figure
/// has grown.
fn until_one(net: &Net, from: &str, what: &str, grown: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !grown() {
        assert!(Instant::now() < end, "{what}: {}", net.ask(&["show", "run", "--total"]));
        send(net, "b", ("10.0.0.2", from), ("10.0.0.1", "5000"));
    }
}

/// The snapshot and the files beside it.
fn files(net: &Net) -> Vec<String> {
    let folder = fs::read_dir(net.path("")).expect("a folder");
    let names = folder.map(|file| file.expect("is read").file_name().display().to_string());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("state")).collect();
    names.sort();
    names
}

#[test]
fn a_connection_goes_on_after_a_restart_and_others_from_outside_do_not() {
    let Some(mut net) = Net::new("a_connection_goes_on_after_a_restart") else { return };
    net.serve_ports(&program("stateful.rav"), FILE);
    net.wait_for_pings();
    send(&net, "a", ("10.0.0.1", "5000"), ("10.0.0.2", "6000"));
    let control = net.path("control.sock").display().to_string();
    until_one(&net, "6000", "the connection is there", || {
        text(&net.ravelin(&["table", "show", "flow_assured", "--control", &control])).contains("6000")
    });
    let (_, said) = net.stop_and_hear();
    assert!(!said.contains("came back"), "there was none before: {said}");
    assert_eq!(files(&net), ["state"]);

    net.serve_ports(&program("stateful.rav"), FILE);
    net.wait_for_pings();
    assert_eq!(files(&net), ["state.old"], "it was read, and a gateway after a crash does not read it again");
    let (refused, sent) = figures(&net, "unasked");
    until_one(&net, "6001", "nobody has asked for it", || figures(&net, "unasked").0 > refused);
    until_one(&net, "6000", "it goes on", || figures(&net, "unasked").1 > sent + 1);
    let (_, said) = net.stop_and_hear();
    assert!(said.contains("entries of `flow_assured` came back"), "{said}");

    // What is damaged brings nothing, and the gateway starts all the same.
    let mut file = fs::read(net.path("state")).expect("there");
    file[20] ^= 1;
    fs::write(net.path("state"), file).expect("written");
    net.serve_ports(&program("stateful.rav"), FILE);
    let (refused, _) = figures(&net, "unasked");
    until_one(&net, "6000", "nobody has asked for it any more", || figures(&net, "unasked").0 > refused);
    let (_, said) = net.stop_and_hear();
    assert!(said.contains("nothing came back, since it is damaged"), "{said}");
}

#[test]
fn a_snapshot_that_cannot_be_written_is_an_error_at_its_place_before_the_start() {
    let Some(net) = Net::new("a_snapshot_that_cannot_be_written") else { return };
    let file = format!("program = {:?}\ncontrol = \"c\"\n{}", program("stateful.rav"), FILE);
    let file = file.replace("\"state\"", "\"none/state\"");
    fs::write(net.path("gateway.toml"), file).expect("can be written");
    let output = net.ravelin(&["serve", "--one-process", &net.path("gateway.toml").display().to_string()]);
    let said = text(&output);
    assert!(
        !output.status.success() && said.contains("line 3, column 12") && said.contains("none/state"),
        "{said}"
    );
}
