//! Ports of AF_XDP beside a confined core: `launch` makes the sockets and the memory of frames, and the core
//! has neither rights at the interfaces nor the right to make others.

use super::upgraded::{SaysOver, UPGRADES, numbered, signal};
use super::{A, B, LIMIT, Trusted, built, plug, signed};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// With these settings of its first port and of its second one.
fn with(test: &str, arguments: &[&str], [first, second]: [&str; 2]) -> Option<Trusted> {
    let arguments = [&["--trusted"], arguments].concat();
    Trusted::by(test, built("ravelin"), &arguments, second, |folder| {
        let file = folder.join("gateway.toml");
        let text = fs::read_to_string(&file).expect("written");
        let first = format!("interface = \"to-a\"\n{first}\n");
        fs::write(file, text.replace("interface = \"to-a\"\n", &first)).expect("written");
    })
}

/// How a port is attached, as the gateway says it.
fn mode(trusted: &Trusted, port: usize) -> String {
    let mut command = Command::new(built("ravelin"));
    command.args(["show", "ports", "--total", "--json", "--control"]);
    let output = command.arg(trusted.folder.path().join("control.sock")).output().expect("it runs");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    told["now"]["ports"][port - 1]["mode"].as_str().unwrap_or_default().to_owned()
}

/// One core after the other takes over while datagrams pass.
fn no_datagram_is_lost(trusted: &Trusted) {
    let ran = trusted.hears("core: program 2 runs, sha256 ");
    let (sent, came) = numbered(trusted, || {
        for _ in 0..UPGRADES {
            signal(trusted, Signal::USR2);
            trusted.hears("core: another core runs, which took over after ");
            assert!(trusted.hears("core: program 2 runs").starts_with(&ran), "the same");
        }
    });
    assert!(sent > 0);
    assert!(came.iter().copied().eq(0..sent), "{} of {sent} came", came.len());
    assert_eq!(trusted.passes(), 0);
}

#[test]
fn a_core_takes_over_the_frames_of_another_and_no_datagram_is_lost() {
    let test = "a_core_takes_over_the_frames_of_another_and_no_datagram_is_lost";
    for (arguments, ports, modes) in [
        (&[][..], ["kind = \"af_xdp\""; 2], ["af_xdp, driver mode, "; 2]),
        (&["--native"], ["kind = \"af_xdp\"\nmode = \"generic\""; 2], ["af_xdp, generic mode, copies, "; 2]),
        (
            &[],
            ["kind = \"af_xdp\"\nzero_copy = false\nqueues = [0]", "kind = \"af_packet\""],
            ["af_xdp, driver mode, copies, 1 queue, ", "af_packet, "],
        ),
    ] {
        let Some(trusted) = with(test, arguments, ports) else { return };
        no_datagram_is_lost(&trusted);
        for (port, wanted) in (1..).zip(modes) {
            let mode = mode(&trusted, port);
            assert!(mode.starts_with(wanted), "{mode}");
        }
    }
}

#[test]
fn a_takeover_that_is_refused_again_and_again_leaves_frames_and_rings_as_they_are() {
    let test = "a_takeover_that_is_refused_again_and_again_leaves_frames_and_rings_as_they_are";
    let xdp = "kind = \"af_xdp\"\n";
    let in_file = format!("{xdp}{}", signed::trust());
    let trusted = signed::gateway_with(test, &in_file, |folder| {
        let file = folder.join("gateway.toml");
        let text = fs::read_to_string(&file).expect("written");
        let to_a = "interface = \"to-a\"\n";
        fs::write(file, text.replace(to_a, &format!("{to_a}{xdp}"))).expect("written");
    });
    let Some(trusted) = trusted else { return };
    trusted.installed(2, false, &["--confirm-within", "600s"]);
    let core = trusted.core();
    let (sent, came) = numbered(&trusted, || {
        for _ in 0..UPGRADES {
            signal(&trusted, Signal::USR2);
            trusted.hears("a policy waits to be confirmed");
        }
    });
    assert!(sent > 0);
    assert!(came.iter().copied().eq(0..sent), "{} of {sent} came", came.len());
    assert_eq!(trusted.core(), core);
    assert_eq!(trusted.passes(), 0);
}

#[test]
fn whatever_dies_or_goes_away_datagrams_pass_by_af_xdp_again() {
    let test = "whatever_dies_or_goes_away_datagrams_pass_by_af_xdp_again";
    let ports = ["kind = \"af_xdp\"\nqueues = [0]", "kind = \"af_xdp\""];
    let Some(trusted) = with(test, &[], ports) else { return };
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    // The machine is a host at the first port, too, and hears nothing of that even while no core runs.
    let own = Ipv4Addr::new(10, 1, 1, 3);
    trusted.gateway.links().expect("links").address("to-a", own, 24).expect("an address");
    let neighbour = ["neighbour", "replace", &own.to_string(), "lladdr", "02:00:00:00:09:01", "dev", "eth"];
    assert!(trusted.a.run("ip", &neighbour, "").expect("it runs").status.success());
    let machine = trusted.gateway.inside(|| UdpSocket::bind((own, 9))).expect("in the namespace");
    machine.set_nonblocking(true).expect("so");
    let from = trusted.a.inside(|| UdpSocket::bind((A, 0))).expect("in the namespace");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                from.send_to(b"to the machine", (own, 9)).expect("sent");
                thread::sleep(Duration::from_micros(200));
            }
        });
        let _over = SaysOver(&is_over);
        for _ in 0..3 {
            trusted.kill("ravelin-core");
            trusted.hears("core: program 2 runs");
            assert_eq!(trusted.passes(), 0);
        }
    });
    assert!(machine.recv(&mut [0; 32]).is_err(), "the machine got a datagram");
    let unplug = || {
        let output = trusted.gateway.run("ip", &["link", "delete", "to-a"], "").expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        trusted.hears("to-a is gone");
    };
    unplug();
    plug(&trusted.gateway, &trusted.a, ("to-a", A, 1));
    trusted.hears("to-a is there again");
    assert_eq!(trusted.passes(), 0);
    // What was handed over since is what another core takes over.
    signal(&trusted, Signal::USR2);
    trusted.hears("core: another core runs, which took over after ");
    assert_eq!(trusted.passes(), 0);
    unplug();
    trusted.kill("ravelin-core");
    trusted.hears("ravelin-launch: core: ");
    plug(&trusted.gateway, &trusted.a, ("to-a", A, 1));
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    // That core has the port as it is: nothing is handed over once more, nor let go of.
    for _ in 0..2 {
        signal(&trusted, Signal::USR2);
        trusted.hears("core: another core runs, which took over after ");
        assert_eq!(trusted.passes(), 0);
    }
}

#[test]
fn several_queues_are_shared_out_among_workers_that_another_core_takes_over() {
    let test = "several_queues_are_shared_out_among_workers_that_another_core_takes_over";
    let Some(mut trusted) = with(test, &[], ["kind = \"af_xdp\""; 2]) else { return };
    trusted.hears("core: program 2 runs");
    trusted.launch.kill().expect("it runs");
    trusted.launch.wait().expect("it ends");
    for (at, interface) in
        [(&trusted.gateway, "to-a"), (&trusted.gateway, "to-b"), (&trusted.a, "eth"), (&trusted.b, "eth")]
    {
        let queues = ["-L", interface, "rx", "2", "tx", "2"];
        assert!(at.run("ethtool", &queues, "").expect("it runs").status.success());
    }
    let file = trusted.folder.path().join("gateway.toml");
    for (workers, wanted) in [(1, ", 2 queues, "), (2, ", 2 queues on 2 workers, ")] {
        if workers == 2 {
            trusted.launch.kill().expect("it runs");
            trusted.launch.wait().expect("it ends");
            let text = fs::read_to_string(&file).expect("written");
            fs::write(&file, format!("workers = 2\n{text}")).expect("written");
        }
        trusted.start_again();
        no_datagram_is_lost(&trusted);
        let mode = mode(&trusted, 1);
        assert!(mode.contains(wanted), "{mode}");
        // The hash of each flow chooses its queue.
        let open = trusted.b.inside(|| UdpSocket::bind((B, 7))).expect("in the namespace");
        open.set_read_timeout(Some(LIMIT)).expect("a time");
        for flow in 0..16u8 {
            let from = trusted.a.inside(|| UdpSocket::bind((A, 0))).expect("in the namespace");
            from.send_to(&[flow; 33], (B, 7)).expect("sent");
            let mut bytes = [0; 64];
            // Of those before, one may still come.
            while open.recv(&mut bytes).expect("it comes") != 33 || bytes[0] != flow {}
        }
    }
}
