//! A gateway between two hosts in network namespaces of their own, used by programs that know nothing of it.
//!
//! Nothing but those namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, program, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn hosts_reach_each_other_and_every_packet_is_in_the_account() {
    let Some(mut net) = Net::new("hosts_reach_each_other") else { return };
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.pings("fd00::2"), 20);
    // Offloads are on, as they are on every new virtual cable: hosts send long segments, their checksums
    // unfinished.
    for (address, direction) in [("10.0.0.2", &[][..]), ("10.0.0.2", &["-R"]), ("fd00::2", &[])] {
        let report = net.tcp(address, direction);
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 10_000_000, "only {bytes} bytes came over: {report}");
    }
    let now = net.ask(&["show", "tables", "--total"]);
    assert_eq!(now["now"]["report"]["tables"]["hosts"]["entries"], 2);
    net.stop();
}

#[test]
fn segments_are_packets_to_a_program_unless_it_wants_them_whole() {
    const STRICT: &str = "reason too_big \"longer than the MTU\"\n\
        start stage cable() {\n\
            if length > 1514 { drop too_big }\n\
            match in_port {\n 1 => send 2\n 2 => send 1\n else => drop too_big\n }\n\
        }\n";
    let Some(mut net) = Net::new("segments_are_packets") else { return };
    let strict = net.path("strict.rav");
    fs::write(&strict, STRICT).expect("can be written");
    let average =
        |packets: &Value, bytes: &Value| bytes.as_u64().unwrap_or(0) / packets.as_u64().unwrap_or(1).max(1);
    for (program, offloads) in [(strict, "cut"), (program("wire.rav"), "whole")] {
        let port = |name: &str| format!("[[port]]\ninterface = \"{name}\"\noffloads = \"{offloads}\"\n");
        net.serve_ports(&program, &(port("to-a") + &port("to-b")));
        for (address, direction) in [("10.0.0.2", &[][..]), ("10.0.0.2", &["-R"]), ("fd00::2", &[])] {
            let report = net.tcp(address, direction);
            let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
            assert!(bytes > 10_000_000, "only {bytes} bytes came over: {report}");
        }
        let report = net.stop();
        assert!(report["drops"]["too_big"].as_u64().unwrap_or(0) == 0, "{report}");
        let received = average(&report["received"]["packets"], &report["received"]["bytes"]);
        assert_eq!(received > 1514, offloads == "whole", "{offloads}: {received} bytes a packet");
        let output = net.run("b", "ip", &["-s", "-j", "link", "show", "eth0"]).stdout;
        let links: Value = serde_json::from_slice(&output).expect("JSON");
        let came = &links[0]["stats64"]["rx"];
        assert!(
            average(&came["packets"], &came["bytes"]) > 1514,
            "{offloads}: the host got segments: {came}"
        );
    }
}

#[test]
fn the_kernel_answers_only_for_interfaces_that_are_not_kept_from_it() {
    let Some(mut net) = Net::new("the_kernel_answers") else { return };
    let gateway = net.name("g");
    net.ip(&["-n", &gateway, "address", "add", "10.0.0.9/24", "dev", "to-a"]);
    assert_eq!(net.pings("10.0.0.9"), 20);
    let port = |name: &str| format!("[[port]]\ninterface = \"{name}\"\nkeep_from_kernel = true\n");
    let ports = port("to-a") + &port("to-b");
    net.serve_ports(&program("wire.rav"), &ports);
    assert_eq!(
        (net.pings("10.0.0.9"), net.pings("10.0.0.2")),
        (0, 20),
        "kept from the kernel, not from the program"
    );
    let mut killed = net.gateway.take().expect("was started");
    killed.kill().expect("can be killed");
    killed.wait().expect("ends");
    assert_eq!(net.pings("10.0.0.9"), 20, "a gateway that was killed keeps nothing");
    net.serve_ports(&program("wire.rav"), &ports);
    assert_eq!((net.pings("10.0.0.9"), net.pings("10.0.0.2")), (0, 20));
    net.stop();
    assert_eq!(net.pings("10.0.0.9"), 20);
}

#[test]
fn hosts_without_offloads_reach_each_other() {
    let Some(mut net) = Net::new("hosts_without_offloads") else { return };
    for host in ["a", "b"] {
        let off =
            ["-K", "eth0", "tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off", "sg", "off"];
        assert!(net.run(host, "ethtool", &off).status.success());
    }
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    let bytes = net.tcp("10.0.0.2", &[])["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
    assert!(bytes > 10_000_000, "only {bytes} bytes came over");
    let report = net.stop();
    let average = report["received"]["bytes"].as_u64().unwrap_or(0)
        / report["received"]["packets"].as_u64().unwrap_or(1);
    assert!(average <= 1514, "nothing is longer than the MTU: {average}");
}

#[test]
fn no_ping_is_lost_while_programs_take_over() {
    let Some(mut net) = Net::new("no_ping_is_lost") else { return };
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    let ping = net
        .at("a", "ping", &["-c", "400", "-i", "0.005", "-W", "2", "10.0.0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("ping runs");
    for _ in 0..10 {
        let answer = net.ask(&["reload"]);
        let text = answer["done"].as_str().unwrap_or_default().to_owned();
        assert!(text.ends_with("2 entries went over"), "{text}");
    }
    let output = ping.wait_with_output().expect("ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("bytes from").count(), 400, "{text}");
    assert_eq!(net.ask(&["show", "run", "--total"])["now"]["generation"], 11);
    net.stop();
}

#[test]
fn a_reload_reads_the_values_of_the_file_anew_and_keeps_the_old_ones_where_one_is_wrong() {
    const PROGRAM: &str = "import std.net.{ethernet, ipv4}
settable const LONGEST: u16 in 100..1500 = 1500
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => flood } }
decoder packet(ip: ipv4) { if ip.total > LONGEST { drop long } flood }
";
    let ports = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";
    let test = "a_reload_reads_the_values";
    let Some(mut net) = Net::served(test, PROGRAM, "[set]\nLONGEST = 1000\n") else { return };
    let passes = |net: &Net, size: &str| {
        let ping = net.run("a", "ping", &["-c", "2", "-i", "0.1", "-W", "1", "-s", size, "10.0.0.2"]);
        ping.status.success()
    };
    let control = net.path("control.sock").display().to_string();
    let reload = |net: &Net, set: &str| {
        let program = net.path("program.rav");
        let file = format!("program = {program:?}\ncontrol = {control:?}\n[set]\n{set}\n{ports}");
        fs::write(net.path("gateway.toml"), file).expect("can be written");
        let output = net.ravelin(&["reload", "--control", &control]);
        (output.status.success(), text(&output))
    };
    assert_eq!([passes(&net, "900"), passes(&net, "1100")], [true, false]);
    let (done, said) = reload(&net, "LONGEST = 1200");
    assert!(done, "{said}");
    assert_eq!([passes(&net, "1100"), passes(&net, "1300")], [true, false]);
    let (done, said) = reload(&net, "LONGEST = 1501");
    assert!(!done && said.contains("E0235") && said.contains("gateway.toml:4:11"), "{said}");
    assert_eq!([passes(&net, "1100"), passes(&net, "1300")], [true, false], "{said}");
    net.stop();
}

#[test]
fn a_killed_gateway_starts_again() {
    let Some(mut net) = Net::new("a_killed_gateway") else { return };
    net.serve(&program("mac_switch.rav"));
    let mut gateway = net.gateway.take().expect("was started");
    gateway.kill().expect("can be killed");
    gateway.wait().expect("ends");
    assert_eq!(net.pings("10.0.0.2"), 0);
    net.serve(&program("mac_switch.rav"));
    net.wait_for_pings();
    net.stop();
}

#[test]
fn an_interface_that_was_off_is_used_again() {
    let Some(mut net) = Net::new("an_interface_that_was_off") else { return };
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.ip(&["-n", &net.name("g"), "link", "set", "to-b", "down"]);
    assert_eq!(net.pings("10.0.0.2"), 0);
    let down = |now: &Value| now["now"]["ports"][1]["down"].as_u64().unwrap_or(0);
    assert!(down(&net.ask(&["show", "ports", "--total"])) > 0, "what was sent meanwhile is counted");
    net.ip(&["-n", &net.name("g"), "link", "set", "to-b", "up"]);
    net.wait_for_pings();
    net.stop();
}

#[test]
fn segments_leave_by_an_interface_that_cannot_cut_them() {
    let Some(mut net) = Net::new("segments_leave") else { return };
    for port in ["to-a", "to-b"] {
        assert!(net.run("g", "ethtool", &["-K", port, "tso", "off", "gso", "off"]).status.success());
    }
    net.serve(&program("mac_switch.rav"));
    for direction in [&[][..], &["-R"]] {
        let report = net.tcp("10.0.0.2", direction);
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 1_000_000, "only {bytes} bytes came over: {report}");
    }
    let ports = net.ask(&["show", "ports", "--total"]);
    for port in 0..2 {
        assert_eq!(ports["now"]["ports"][port]["busy"], 0, "{ports}");
    }
    net.stop();
}

#[test]
fn an_interface_that_vanished_is_used_again_and_the_others_go_on() {
    let Some(mut net) = Net::new("an_interface_that_vanished") else { return };
    let make = |net: &Net| {
        let gateway = net.name("g");
        net.ip(&["-n", &gateway, "link", "add", "to-c", "type", "veth", "peer", "name", "c"]);
        net.ip(&["-n", &gateway, "link", "set", "c", "address", "02:00:00:00:00:03"]);
        for interface in ["to-c", "c"] {
            net.ip(&["-n", &gateway, "link", "set", interface, "up"]);
        }
        net.ip(&["-n", &gateway, "address", "add", "10.0.0.3/24", "dev", "c"]);
    };
    make(&net);
    let ports = ["to-a", "to-b", "to-c"].map(|name| format!("[[port]]\ninterface = \"{name}\"\n")).concat();
    net.serve_ports(&program("hub.rav"), &ports);
    let third = |net: &Net| net.ask(&["show", "ports", "--total"])["now"]["ports"][2].clone();
    let wait_for = |net: &Net, what: &str, there: &dyn Fn(&Value) -> bool| {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let port = third(net);
            if there(&port) {
                return port;
            }
            assert!(Instant::now() < end, "{what}: {port}");
            thread::sleep(Duration::from_millis(50));
        }
    };
    assert_eq!((net.pings("10.0.0.2"), net.pings("10.0.0.3")), (20, 20));
    let ping = net
        .at("a", "ping", &["-c", "400", "-i", "0.01", "-W", "2", "10.0.0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("ping runs");
    for times in 1..=2 {
        net.ip(&["-n", &net.name("g"), "link", "delete", "to-c"]);
        let port = wait_for(&net, "it is missed", &|port| port["gone_seconds"].as_f64().is_some());
        assert_eq!(port["vanished"], times);
        wait_for(&net, "what is sent meanwhile is counted", &|port| port["down"].as_u64() > Some(0));
        make(&net);
        wait_for(&net, "it is back", &|port| port["gone_seconds"].is_null());
        let end = Instant::now() + Duration::from_secs(20);
        while net.pings("10.0.0.3") < 20 {
            assert!(Instant::now() < end, "it is used again: {}", third(&net));
        }
    }
    let output = ping.wait_with_output().expect("ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("bytes from").count(), 400, "{text}");
    net.stop();
}

#[test]
fn a_program_that_is_wrong_does_not_take_over() {
    let Some(mut net) = Net::new("a_program_that_is_wrong") else { return };
    let copy = net.path("program.rav");
    fs::copy(program("mac_switch.rav"), &copy).expect("can be copied");
    net.serve(&copy);
    let control = net.path("control.sock").display().to_string();
    fs::write(&copy, "program").expect("can be written");
    let output = net.ravelin(&["reload", "--control", &control]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("nothing has changed"), "{errors}");
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.ask(&["show", "run", "--total"])["now"]["generation"], 1);
    net.stop();
}

/// A control group that holds so many bytes, and goes with this; nothing where none can be made.
struct Group(std::path::PathBuf);

impl Group {
    fn new(test: &str, bytes: u64) -> Option<Group> {
        let name = format!("ravelin-test-{}", std::process::id());
        for (root, bound) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let group = Group(std::path::Path::new(root).join(&name));
            if fs::create_dir(&group.0).is_ok() && fs::write(group.0.join(bound), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        eprintln!("{test}: not run, since no control group with a bound of memory can be made here");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It goes when its last process has.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_program_that_finds_no_memory_in_its_control_group_is_refused_and_the_one_before_goes_on() {
    let Some(group) = Group::new("a_program_that_finds_no_memory", 128 << 20) else { return };
    let Some(mut net) = Net::new("a_program_that_finds_no_memory") else { return };
    let copy = net.path("program.rav");
    fs::copy(program("mac_switch.rav"), &copy).expect("can be copied");
    net.serve(&copy);
    net.stop();
    // Not as `ip netns exec` starts programs, which hides control groups behind a /sys of its own.
    let space = format!("--net=/run/netns/{}", net.name("g"));
    let file = net.path("gateway.toml").display().to_string();
    let mut command = Command::new("nsenter");
    command
        .args([&space, net::binary(), "serve", "--one-process", &file, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    net.gateway = Some(command.spawn().expect("it starts"));
    net.wait_for_pings();
    let process = net.gateway.as_ref().map(|gateway| gateway.id().to_string()).expect("runs");
    fs::write(group.0.join("cgroup.procs"), process).expect("it can be put there");
    let control = net.path("control.sock").display().to_string();
    let text = fs::read_to_string(&copy).expect("is there");
    let reload = |capacity: &str| {
        let larger = text.replacen("capacity 64k", &format!("capacity {capacity}"), 1);
        assert_ne!(larger, text);
        fs::write(&copy, larger).expect("can be written");
        let output = net.ravelin(&["reload", "--control", &control]);
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let said = reload("64M");
    assert!(said.contains("its tables take up to") && said.contains("nothing has changed"), "{said}");
    assert_eq!(net.pings("10.0.0.2"), 20);
    // The table would find room, and what is read to fill it does not.
    let lines = (0..200_000_u32).map(|line| format!("{} => 1\n", std::net::Ipv4Addr::from(line)));
    fs::write(net.path("many.txt"), lines.collect::<String>()).expect("can be written");
    let filled = format!(
        "{text}\ntable many: exact(ip4) -> port {{\n    capacity 200000\n    from \"many.txt\"\n}}\n"
    );
    fs::write(&copy, filled).expect("can be written");
    let output = net.ravelin(&["reload", "--control", &control]);
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("while it is read it takes up to") && said.contains("nothing has changed"),
        "{said}"
    );
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert!(reload("128k").contains("took over"), "what finds room does");
    net.stop();
}

#[test]
fn what_cannot_be_a_port_is_said() {
    let Some(mut net) = Net::new("what_cannot_be_a_port") else { return };
    net.ip(&["-n", &net.name("g"), "link", "set", "to-b", "down"]);
    let file = net.path("gateway.toml");
    let write = |second: &str| {
        let (program, control) = (program("hub.rav"), net.path("control.sock"));
        let text = format!(
            "program = \"{}\"\ncontrol = \"{}\"\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"{second}\"\n",
            program.display(),
            control.display()
        );
        fs::write(&file, text).expect("can be written");
    };
    let cases = [
        ("none", "port 2: there is no interface none here"),
        ("to-b", "port 2: interface to-b is switched off"),
        ("to-a", "line 6, column 13: interface `to-a` is port 1 already"),
    ];
    for (second, wanted) in cases {
        write(second);
        let output = net.ravelin(&["serve", "--one-process", &file.display().to_string()]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(wanted), "{errors}");
    }
    net.gateway = None;
}

#[test]
fn two_gateways_do_not_share_an_interface() {
    let Some(mut net) = Net::new("two_gateways_do_not_share") else { return };
    net.serve(&program("hub.rav"));
    let file = net.path("second.toml");
    let write = |interface: &str| {
        let (program, control) = (program("hub.rav"), net.path("second.sock"));
        let (program, control) = (program.display(), control.display());
        let text = format!(
            "program = \"{program}\"\ncontrol = \"{control}\"\n[[port]]\ninterface = \"{interface}\"\n"
        );
        fs::write(&file, text).expect("can be written");
    };
    write("to-b");
    let output = net.ravelin(&["serve", "--one-process", &file.display().to_string()]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let first = net.run("g", "pgrep", &["-f", "serve.*gateway.toml"]);
    let first = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(
        first.lines().any(|process| errors.contains(&format!("taken by process {process} (ravelin)"))),
        "{errors} of {first}"
    );
    assert!(errors.starts_with("error") || errors.contains("port 1: "), "{errors}");
    // Where the first is gone, the second gets it.
    assert_eq!(net.pings("10.0.0.2"), 20, "the first goes on, and answers once");
    net.stop();
    net.serve_ports(&program("hub.rav"), "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n");
    net.stop();
}

#[test]
fn who_interrupts_twice_does_not_wait() {
    let Some(mut net) = Net::new("who_interrupts_twice") else { return };
    net.serve(&program("hub.rav"));
    net.stop();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // It ends by telling its account, and there is no room left for that.
        let (reader, writer) = UnixStream::pair().expect("two sockets");
        writer.set_nonblocking(true).expect("a socket");
        while (&writer).write(&[0; 4096]).is_ok() {}
        writer.set_nonblocking(false).expect("a socket");
        let file = net.path("gateway.toml").display().to_string();
        let mut command = net.at("g", net::binary(), &["serve", "--one-process", &file, "--json"]);
        let output = Stdio::from(OwnedFd::from(writer));
        net.gateway = Some(command.stdout(output).stderr(Stdio::null()).spawn().expect("ravelin runs"));
        let control = net.path("control.sock");
        let name = control.display().to_string();
        let asks = || net.ravelin(&["show", "run", "--total", "--control", &name]).status.success();
        let end = Instant::now() + Duration::from_secs(30);
        while !asks() {
            assert!(Instant::now() < end, "the gateway does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        let id = net.gateway.as_ref().expect("was started").id().to_string();
        let interrupt = || Command::new("kill").args(["-s", signal, &id]).status().expect("kill runs");
        assert!(interrupt().success());
        while control.exists() {
            assert!(Instant::now() < end, "the gateway does not end");
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_millis(200));
        let gateway = net.gateway.as_mut().expect("was started");
        assert!(gateway.try_wait().expect("a child").is_none(), "it waits for a reader of its account");
        assert!(interrupt().success());
        let ended = loop {
            match gateway.try_wait().expect("a child") {
                Some(ended) => break ended,
                None => assert!(Instant::now() < end, "the second signal is not heeded"),
            }
            thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(ended.code(), Some(code));
        drop(reader);
    }
}
