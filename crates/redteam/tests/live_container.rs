//! A container of a router's services behind a running gateway: its services are reached, and whoever is root
//! in it brings no frame past the guard and nothing into the machine around it.
//!
//! Where the rights to make namespaces are missing, a test says so and ends.
#![cfg(target_os = "linux")]

mod laboratory;

use laboratory::{REDTEAM, unless};
use redteam::{ACTIONS, ATTACKS, EXHAUSTIONS, InContainer, Laboratory, MachineAction, Tap};
use serde_json::json;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::Duration;

/// The first containers of two gateways have the same users of the machine, and so the same number of
/// processes together: whoever takes all of them does so alone.
static USERS: RwLock<()> = RwLock::new(());

/// Beside other containers.
fn beside() -> RwLockReadGuard<'static, ()> {
    USERS.read().unwrap_or_else(PoisonError::into_inner)
}

/// `None` where namespaces cannot be made.
fn with_services(test: &str) -> Option<Laboratory> {
    let started = Laboratory::start(Path::new(REDTEAM), &InContainer::Services);
    unless(&[ErrorKind::PermissionDenied], test, started)
}

/// Whether the host of the LAN reaches the router.
fn is_reached(laboratory: &Laboratory) -> bool {
    let router = laboratory.scene.own().ipv4.to_string();
    let pinged = laboratory.lan.run("ping", &["-c", "1", "-W", "2", &router], "");
    pinged.is_ok_and(|output| output.status.success())
}

#[test]
fn no_frame_of_root_in_a_container_passes_that_is_not_the_routers() {
    let _beside = beside();
    let Some(mut laboratory) =
        with_services("no_frame_of_root_in_a_container_passes_that_is_not_the_routers")
    else {
        return;
    };
    let mut sent = 0;
    for attack in ATTACKS {
        let result = laboratory.attack(attack, 300).expect("it can be tried");
        assert_eq!(result.violations, 0, "{result:?}");
        assert!(result.frames > 0, "{result:?}");
        sent += result.frames;
    }
    assert!(sent > 290 * ATTACKS.len() as u64, "{sent}");
    let shown = laboratory.shown().expect("it answers");
    let refused = shown["refused"]["services"].as_object().expect("by reason");
    assert!(refused.len() >= 20, "{refused:?}");
    assert!(is_reached(&laboratory));
    let seen = laboratory.overheard().expect("hosts reach each other");
    assert_eq!((seen.name.as_str(), seen.violations), ("lan_frames_seen", 0), "{seen:?}");
    assert!(seen.frames > ATTACKS.len() as u64, "{seen:?}");
}

#[test]
fn root_in_a_container_has_no_way_to_the_machine() {
    let _beside = beside();
    let Some(laboratory) = with_services("root_in_a_container_has_no_way_to_the_machine") else { return };
    let core = laboratory.core().expect("it runs");
    let holds = |script| MachineAction { name: "what must be possible", script, harmless: false };
    let is_tried_with = holds(
        "python3 -c '' && rights=$(sed -n 's/^CapEff:[[:space:]]*/0x/p' /proc/self/status) && \
         test $((rights >> 21 & 1)) = 1",
    );
    let has_programs = holds("python3 -c ''");
    for output in [laboratory.act(&has_programs), laboratory.act_with_sys_admin(&is_tried_with)] {
        let output = output.expect("it runs");
        assert!(output.status.success(), "{output:?}");
    }
    for action in ACTIONS {
        if action.harmless {
            let output = laboratory.act_outside(action).expect("it runs");
            assert!(output.status.success(), "{} outside: {output:?}", action.name);
        }
        for output in [laboratory.act(action), laboratory.act_with_sys_admin(action)] {
            let output = output.expect("it runs");
            assert!(!output.status.success(), "{}: {output:?}", action.name);
            assert_eq!(laboratory.core().expect("it runs"), core, "{}", action.name);
        }
    }
    let inside = laboratory.contain(&["sh", "-c", "id -u; cat /proc/self/uid_map /proc/self/oom_score_adj"]);
    let output = { inside }.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("0"), "{said}");
    let map: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(map, ["0", "1879048192", "65536"]);
    // Linux ends it first where memory ends (proc_pid_oom_score_adj(5)).
    assert_eq!(lines.next(), Some("1000"));
}

#[test]
fn a_container_ends_with_its_command_and_with_whoever_started_it_whichever_user_it_became() {
    let _beside = beside();
    let test = "a_container_ends_with_its_command_and_with_whoever_started_it_whichever_user_it_became";
    let Some(laboratory) = with_services(test) else { return };
    // Linux forgets whose death is that of a process which becomes another user (prctl(2)).
    const OTHER: &str = "setpriv --reuid 1000 --regid 1000 --clear-groups \
                         sh -c 'echo runs; echo > /tmp/begun; sleep 60; echo lives'";
    let begun = |script: &str| {
        let mut contain = laboratory.contain(&["sh", "-c", script]);
        let mut contain = contain.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(contain.stdout.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it says so");
        assert_eq!(line, "runs\n");
        (contain, said)
    };
    let nothing_more = |mut said: BufReader<ChildStdout>| {
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("until nobody has it");
        assert_eq!(rest, "");
    };
    for (end, code) in [("exit 7", 7), ("kill -9 $$", 128 + 9)] {
        let (mut contain, said) =
            begun(&format!("mkfifo -m 666 /tmp/begun; {OTHER} & read -r _ < /tmp/begun; {end}"));
        assert_eq!(contain.wait().expect("it ends").code(), Some(code), "{end}");
        nothing_more(said);
    }
    // Nor does one begin whose starter has ended before.
    for microseconds in (0..30_000).step_by(1_000) {
        let mut contain = laboratory.contain(&["sh", "-c", "sleep 5; echo lives"]);
        let mut contain = contain.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let said = BufReader::new(contain.stdout.take().expect("piped"));
        thread::sleep(Duration::from_micros(microseconds));
        contain.kill().expect("it runs");
        contain.wait().expect("it ends");
        nothing_more(said);
    }
    let (mut contain, said) = begun(&format!("umask 0; : > /tmp/begun; exec {OTHER}"));
    contain.kill().expect("it runs");
    contain.wait().expect("it ends");
    nothing_more(said);
}

#[test]
fn services_are_reached_and_see_nothing_of_what_hosts_say_to_each_other() {
    let _beside = beside();
    let test = "services_are_reached_and_see_nothing_of_what_hosts_say_to_each_other";
    let Some(laboratory) = with_services(test) else { return };
    assert!(is_reached(&laboratory));
    let mut serve = laboratory.contain(&[REDTEAM, "serve", "7"]);
    let mut serve = serve.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut told = String::new();
    BufReader::new(serve.stdout.take().expect("piped")).read_line(&mut told).expect("it says so");
    assert_eq!(told, "listening\n");
    let (scene, message) = (&laboratory.scene, [7; 100_000]);
    let back = laboratory.lan.inside(|| {
        let stream = TcpStream::connect((scene.own().ipv4, 7))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut sends = stream.try_clone()?;
        let sender = thread::spawn(move || sends.write_all(&message));
        let mut back = vec![0; message.len()];
        (&stream).read_exact(&mut back)?;
        sender.join().expect("it ends")?;
        Ok(back)
    });
    assert!(back.expect("it answers") == message);
    // The policy lets nothing of the WAN to the router.
    let router = scene.own().ipv4.to_string();
    let pinged = laboratory.wan.run("ping", &["-c", "1", "-W", "1", &router], "").expect("it runs");
    assert!(!pinged.status.success());

    let namespaces = container::Namespaces::open(&laboratory.containers(), "services").expect("kept");
    let mut tap = namespaces.inside(|| Tap::new("services")).expect("it enters").expect("a tap");
    assert_eq!(across(&laboratory, 200), 200);
    while let Some(frame) = tap.take().expect("a frame or none") {
        assert!(!frame.ends_with(b"across"), "{frame:02x?}");
    }
    serve.kill().expect("it runs");
    serve.wait().expect("it ends");
}

/// Sends so many datagrams from the LAN to the WAN, and says how many arrive.
fn across(laboratory: &Laboratory, count: usize) -> usize {
    across_by(laboratory, &hosts(laboratory), count)
}

/// Sockets of the LAN and the WAN.
fn hosts(laboratory: &Laboratory) -> [UdpSocket; 2] {
    let wan = laboratory.scene.wan.ipv4;
    let hears = laboratory.wan.inside(|| UdpSocket::bind((wan, 9))).expect("a socket");
    hears.set_nonblocking(true).expect("so");
    [laboratory.lan.inside(|| UdpSocket::bind(("0.0.0.0", 0))).expect("a socket"), hears]
}

fn across_by(laboratory: &Laboratory, [says, hears]: &[UdpSocket; 2], count: usize) -> usize {
    let wan = laboratory.scene.wan.ipv4;
    let mut bytes = [0; 16];
    let mut heard = || std::iter::from_fn(|| hears.recv(&mut bytes).ok()).count();
    let mut arrived = 0;
    for _ in 0..count {
        says.send_to(b"across", (wan, 9)).expect("sent");
        thread::sleep(Duration::from_millis(2));
        arrived += heard();
    }
    thread::sleep(Duration::from_millis(300));
    arrived + heard()
}

#[test]
fn hosts_reach_each_other_while_the_container_floods() {
    let _beside = beside();
    let Some(laboratory) = with_services("hosts_reach_each_other_while_the_container_floods") else { return };
    for attack in ["garbage", "ipv4_of_another", "right_frames_changed"] {
        let mut flood = laboratory.contain(&[REDTEAM, "send", "services", attack, "1000000000", "1"]);
        let mut flood = flood.stdout(Stdio::null()).spawn().expect("it starts");
        let flooded = received(&laboratory) + 10_000;
        while received(&laboratory) < flooded {
            assert!(flood.try_wait().expect("it can be asked").is_none(), "{attack}: it is no flood");
            thread::sleep(Duration::from_millis(20));
        }
        let arrived = across(&laboratory, 500);
        assert!(flood.try_wait().expect("it can be asked").is_none(), "it floods all the time");
        flood.kill().expect("it runs");
        flood.wait().expect("it ends");
        assert!(arrived >= 400, "{attack}: {arrived} of 500");
    }
}

#[test]
fn hosts_reach_each_other_while_root_in_a_container_takes_all_that_it_gets() {
    let _alone = USERS.write().unwrap_or_else(PoisonError::into_inner);
    let test = "hosts_reach_each_other_while_root_in_a_container_takes_all_that_it_gets";
    let Some(laboratory) = with_services(test) else { return };
    let (core, hosts) = (laboratory.core().expect("it runs"), hosts(&laboratory));
    let groups = std::fs::read_to_string(laboratory.containers().join("services.groups"));
    let bounds_memory = groups.expect("a file").contains("memory");
    if !bounds_memory {
        eprintln!("{test}: attacks on memory are not run, since there is no control group for it here");
    }
    for action in EXHAUSTIONS.iter().filter(|action| bounds_memory || !action.name.contains("memory")) {
        if action.harmless {
            let output = laboratory.act_outside(action).expect("it runs");
            assert!(output.status.success(), "{} outside: {output:?}", action.name);
        }
        let mut acts = laboratory.begin(action).expect("it runs");
        while acts.try_wait().expect("it can be asked").is_none() {
            let arrived = across_by(&laboratory, &hosts, 100);
            assert!(arrived >= 80, "{}: {arrived} of 100", action.name);
        }
        let output = acts.wait_with_output().expect("it ends");
        assert!(!output.status.success(), "{}: {output:?}", action.name);
        assert_eq!(laboratory.core().expect("it runs"), core, "{}", action.name);
    }
    assert!(is_reached(&laboratory));
}

/// How many frames came from the container or to the program.
fn received(laboratory: &Laboratory) -> u64 {
    let shown = laboratory.shown().expect("it answers");
    let refused = shown["refused"]["services"].as_object();
    let refused: u64 = refused.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
    refused + shown["received"].as_u64().expect("a number")
}

#[test]
fn a_vnic_is_there_again_after_the_core_died_and_after_root_deleted_it() {
    let _beside = beside();
    let test = "a_vnic_is_there_again_after_the_core_died_and_after_root_deleted_it";
    let Some(laboratory) = with_services(test) else { return };
    assert!(is_reached(&laboratory));
    let killed = Command::new("kill").args(["-9", &laboratory.core().expect("it runs").to_string()]).status();
    assert!(killed.expect("it runs").success());
    laboratory.hears("core: program 2 runs").expect("another core");
    assert!((0..20).any(|_| is_reached(&laboratory)));
    let delete = laboratory.contain(&["ip", "link", "delete", "services"]).status();
    assert!(delete.expect("it runs").success());
    laboratory.hears("services is there again").expect("another device");
    assert!((0..20).any(|_| is_reached(&laboratory)));
    // Another core has it, too.
    let launch = rustix::process::Pid::from_raw(laboratory.launch() as i32).expect("a process");
    rustix::process::kill_process(launch, rustix::process::Signal::USR2).expect("it runs");
    laboratory.hears("another core runs").expect("it takes over");
    assert!((0..20).any(|_| is_reached(&laboratory)));
    // Another link in its place does not keep it away.
    let instead = "until ip link delete services && ip link add services type bridge; do :; done";
    let instead = laboratory.contain(&["sh", "-c", instead]).status();
    assert!(instead.expect("it runs").success());
    laboratory.hears("services is there again").expect("another device");
    assert!((0..20).any(|_| is_reached(&laboratory)));
    // Nor does the name, given to a link that cannot be deleted.
    let besides = "until ip link delete services && ip link property add dev lo altname services; do :; done";
    let besides = laboratory.contain(&["sh", "-c", besides]).status();
    assert!(besides.expect("it runs").success());
    laboratory.hears("services is there again").expect("another device");
    assert!((0..20).any(|_| is_reached(&laboratory)));
}

#[test]
fn other_runtimes_join_the_network_by_its_file() {
    let _beside = beside();
    let Some(laboratory) = with_services("other_runtimes_join_the_network_by_its_file") else { return };
    let file =
        |ending: &str| laboratory.containers().join(format!("services.{ending}")).display().to_string();
    let output = Command::new("nsenter")
        .arg(format!("--user={}", file("userns")))
        .arg(format!("--net={}", file("netns")))
        .args([
            "sh",
            "-c",
            "ip -o link && ip address add 10.9.9.9/32 dev services && ping -c 1 -W 2 10.1.1.1",
        ])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let links = said.lines().filter(|line| line.contains(" mtu ")).count();
    assert_eq!(links, 2, "{said}");
}

/// The configuration of a bundle of the OCI runtime specification whose services join a container of the
/// gateway, and which has the machine's programs, not to be written.
fn bundle(containers: &Path, arguments: &[&str]) -> serde_json::Value {
    let file = |ending: &str| containers.join(format!("services.{ending}"));
    let users = std::fs::read_to_string(file("users")).expect("a file");
    let mut numbers = users.split_whitespace().map(|number| number.parse::<u32>().expect("a number"));
    let (first, size) = (numbers.next(), numbers.next());
    let mapping = json!([{"containerID": 0, "hostID": first, "size": size}]);
    let capabilities = json!(["CAP_NET_ADMIN", "CAP_NET_RAW"]);
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": arguments,
            "cwd": "/",
            "env": ["PATH=/usr/sbin:/usr/bin"],
            "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
            "noNewPrivileges": true,
        },
        "root": {"path": "root", "readonly": true},
        "mounts": [
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755", "size=64k"]},
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
        ],
        "linux": {
            "uidMappings": mapping,
            "gidMappings": mapping,
            "namespaces": [
                {"type": "user", "path": file("userns")},
                {"type": "network", "path": file("netns")},
                {"type": "mount"},
                {"type": "pid"},
                {"type": "ipc"},
            ],
        },
    })
}

#[test]
fn an_oci_runtime_runs_services_in_the_container_of_a_gateway() {
    let _beside = beside();
    let test = "an_oci_runtime_runs_services_in_the_container_of_a_gateway";
    if Command::new("runc").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "{test}: runc is missing");
        eprintln!("{test}: not run, since runc is missing");
        return;
    }
    let Some(laboratory) = with_services(test) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("ours");
    for below in ["dev", "proc", "usr"] {
        std::fs::create_dir_all(folder.path().join("root").join(below)).expect("ours");
    }
    for name in ["bin", "lib", "lib64"] {
        symlink(format!("usr/{name}"), folder.path().join("root").join(name)).expect("ours");
    }
    let lan = laboratory.scene.lan.ipv4.to_string();
    let script = format!(
        "cat /proc/self/uid_map && ip -o link && ping -c 1 -W 2 {lan} && \
         ip address add 10.9.9.9/32 dev services && ! ping -c 1 -W 1 -I 10.9.9.9 {lan}"
    );
    let config = bundle(&laboratory.containers(), &["sh", "-c", &script]).to_string();
    std::fs::write(folder.path().join("config.json"), config).expect("ours");
    let mut runc = Command::new("runc");
    runc.arg("--root").arg(folder.path().join("state")).args(["run", "--bundle"]).arg(folder.path());
    let output = runc.arg(format!("services-{}", std::process::id())).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let map: Vec<_> = said.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(map, ["0", "1879048192", "65536"], "{said}");
    let links = said.lines().filter(|line| line.contains(" mtu ")).count();
    assert_eq!(links, 2, "{said}");
    let shown = laboratory.shown().expect("it answers");
    let refused = shown["refused"]["services"]["ipv4_source"].as_u64();
    assert!(refused > Some(0), "the guard refuses the address that is not the router's: {shown}");
}
