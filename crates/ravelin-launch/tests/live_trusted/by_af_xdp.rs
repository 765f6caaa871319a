//! Ports of AF_XDP beside a confined core: `launch` makes the sockets and the memory of frames, and the core
//! has neither rights at the interfaces nor the right to make others.

use super::upgraded::{UPGRADES, numbered, signal};
use super::{A, Trusted, built, plug};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::Command;

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
fn whatever_dies_or_goes_away_datagrams_pass_by_af_xdp_again() {
    let test = "whatever_dies_or_goes_away_datagrams_pass_by_af_xdp_again";
    let Some(trusted) = with(test, &[], ["kind = \"af_xdp\"\nkeep_from_kernel = true", "kind = \"af_xdp\""])
    else {
        return;
    };
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    for _ in 0..3 {
        trusted.kill("ravelin-core");
        trusted.hears("core: program 2 runs");
        assert_eq!(trusted.passes(), 0);
    }
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
    }
}
