//! Processes of a gateway are killed at any time, while datagrams pass and policies are handed in: packets
//! follow the policy before or the new one, and nothing but the death of the core holds them up.

use super::over_network::Keys;
use super::signed::{gateway_with, policy_of, signed, trust};
use super::tunnelled::new_key;
use super::{A, B, Choice, LIMIT, PROGRAM, Trusted};
use bundle::SignedPolicy;
use container::monitor_socket;
use rig::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::panic::{self, AssertUnwindSafe};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many kills, unless [`KILLS_VARIABLE`] says otherwise; and how many gateways at a time where it does.
const KILLS: u64 = 20;
const KILLS_VARIABLE: &str = "RAVELIN_KILLS";
const GATEWAYS: u64 = 6;

/// The port that each policy lets pass, the one that those of odd versions let pass besides, that of even
/// versions, and one that none lets pass.
const ALWAYS: u16 = 11;
const ODD: u16 = 7;
const EVEN: u16 = 9;
const NEVER: u16 = 13;
/// The processes.
const CORE: &str = "ravelin-core";
const COMPILE: &str = "ravelin-compile";
const LAUNCH: &str = "ravelin-launch";
const VHOST: &str = "ravelin-vhost";
/// Those without which packets pass; and all of them, the core twice as often.
const BESIDE_PACKETS: [&str; 5] = ["ravelin-control", COMPILE, "ravelin-front", "ravelin-tunnel", VHOST];
const ALL: [&str; 8] =
    [CORE, CORE, "ravelin-control", COMPILE, "ravelin-front", "ravelin-tunnel", "ravelin-vhost", LAUNCH];
/// In one of so many steps the new policy has to be confirmed, and is not.
const UNCONFIRMED: u64 = 8;
/// A tunnel whose other end is not there, and a link for a virtual machine.
const MORE_PORTS: &str = "[[port]]
kind = \"tunnel\"
listen = \"127.0.0.1:5001\"
key = \"tunnel.key\"
[[port.peer]]
name = \"other\"
number = 1
key = \"PEER\"
endpoint = \"127.0.0.1:5002\"
[[port]]
interface = \"services\"
kind = \"vnic\"
[port.vnic]
ethernet = \"02:00:00:00:00:63\"
addresses = [\"10.1.1.99/24\"]
guest = \"vhost-user\"
";
/// From one round of datagrams to the next.
const STEP: Duration = Duration::from_millis(1);
/// Milliseconds within which a process is killed after a policy was handed in, or another one killed.
const SPAN: u64 = 250;

/// What is known of the datagrams of a gateway.
#[derive(Default)]
struct Seen {
    /// Rounds that were sent.
    sent: AtomicU64,
    /// Datagrams to [`NEVER`] that came.
    wrong: AtomicU64,
    always: Mutex<Arrived>,
}

/// Datagrams to [`ALWAYS`] since it was looked.
#[derive(Clone, Copy, Default)]
struct Arrived {
    /// The last one, and when it came.
    last: Option<(u64, Instant)>,
    /// How many did not come, of those before it.
    lost: u64,
    /// The longest time from one to the next.
    pause: Duration,
}

impl Seen {
    fn look(&self) -> Arrived {
        let mut always = self.always.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = *always;
        (always.lost, always.pause) = (0, Duration::ZERO);
        seen
    }

    fn arrived(&self, number: u64) {
        let (mut always, now) = (self.always.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if let Some((last, before)) = always.last {
            always.pause = always.pause.max(now - before);
            always.lost += number.saturating_sub(last + 1);
        }
        always.last = Some((number, now));
    }

    /// Waits until a datagram to [`ALWAYS`] comes that was sent a few rounds from now; returns the number of
    /// the first of these rounds.
    fn wait(&self) -> u64 {
        let (first, end) = (self.sent.load(Ordering::Acquire), Instant::now() + LIMIT);
        let last = || self.always.lock().unwrap_or_else(PoisonError::into_inner).last;
        while last().is_none_or(|(number, _)| number < first + 5) {
            assert!(Instant::now() < end, "nothing passes any more");
            thread::sleep(STEP);
        }
        first
    }
}

/// Sends a round of datagrams again and again, and sees which come.
fn watch([from, always, never]: [UdpSocket; 3], seen: &Seen, ends: &AtomicBool) {
    let (mut bytes, begun, mut number) = ([0; 8], Instant::now(), 0u64);
    while !ends.load(Ordering::Relaxed) {
        while u128::from(number) * STEP.as_micros() <= begun.elapsed().as_micros() {
            for port in [ALWAYS, ODD, EVEN, NEVER] {
                // Where nobody listens, the machine may say so later.
                let _ = from.send_to(&number.to_be_bytes(), (B, port));
            }
            number += 1;
            seen.sent.store(number, Ordering::Release);
        }
        while always.recv(&mut bytes).is_ok() {
            seen.arrived(u64::from_be_bytes(bytes));
        }
        while never.recv(&mut bytes).is_ok() {
            seen.wrong.fetch_add(1, Ordering::Relaxed);
        }
        thread::sleep(STEP / 4);
    }
}

/// A socket of a host that has room for what comes while nobody reads.
fn host_socket(host: &Namespace, address: (Ipv4Addr, u16)) -> UdpSocket {
    let socket = host.inside(|| UdpSocket::bind(address)).expect("in the namespace");
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 8 << 20).expect("root may");
    socket.set_nonblocking(true).expect("so");
    socket
}

/// What came of the kills.
#[derive(Debug, Default)]
struct Counted {
    kills: BTreeMap<&'static str, u64>,
    /// How often the policy before was in force afterwards, and how often the new one.
    before: u64,
    new: u64,
    /// How often the policy before was seen to come back, since the new one was not confirmed.
    returned: u64,
    /// How long nothing passed when a core died.
    pauses: Vec<Duration>,
}

impl Counted {
    fn kills(&self) -> u64 {
        self.kills.values().sum()
    }

    fn add(&mut self, other: Counted) {
        for (name, kills) in other.kills {
            *self.kills.entry(name).or_default() += kills;
        }
        self.before += other.before;
        self.new += other.new;
        self.returned += other.returned;
        self.pauses.extend(other.pauses);
    }
}

/// A gateway whose processes are killed.
struct Killed {
    trusted: Trusted,
    /// The policies of odd versions and of even ones.
    policies: [SignedPolicy; 2],
    /// Where the datagrams to [`ODD`] and to [`EVEN`] come.
    sockets: [UdpSocket; 2],
    newest: u64,
    choice: Choice,
    counted: Counted,
}

impl Killed {
    fn new(test: &str, keys: &Keys, seed: u64) -> Option<Killed> {
        let trusted = gateway_with(test, &(trust() + &keys.section()), |folder| {
            let (_, peer) = (new_key(folder, "tunnel.key"), new_key(folder, "peer.key"));
            let file = folder.join("gateway.toml");
            let text = fs::read_to_string(&file).expect("it is there");
            let containers = folder.join("containers");
            let text = format!("containers = {containers:?}\n{text}{}", MORE_PORTS.replace("PEER", &peer));
            fs::write(file, text).expect("written");
        })?;
        trusted.gateway.links().expect("links").up("lo").expect("it is on");
        let folder = trusted.folder.path();
        let policy = |port: u16| {
            let program = PROGRAM.replace("7 => across", &format!("{ALWAYS} | {port} => across"));
            policy_of(folder, 2, &program)
        };
        let policies = [ODD, EVEN].map(policy);
        let sockets = [ODD, EVEN].map(|port| host_socket(&trusted.b, (B, port)));
        let (well, said) = trusted.install(&signed(&policies[1], &[1, 2]), &[]);
        assert!(well, "{said}");
        Some(Killed {
            trusted,
            policies,
            sockets,
            newest: 2,
            choice: Choice(seed),
            counted: Counted::default(),
        })
    }

    /// The version in force, once there is one.
    fn version(&self) -> u64 {
        let end = Instant::now() + LIMIT;
        loop {
            let shown = self.trusted.shown();
            if let Some(version) = shown["policy"]["version"].as_u64() {
                return version;
            }
            assert!(Instant::now() < end, "no policy comes into force: {shown}");
        }
    }

    fn launch(&self) -> Pid {
        Pid::from_raw(self.trusted.launch.id() as i32).expect("not 0")
    }

    /// The processes of this name, once there is one, and a moment later.
    fn wait_for(&mut self, name: &str) -> Vec<Pid> {
        let end = Instant::now() + Duration::from_secs(1);
        while self.trusted.processes(name).is_empty() && Instant::now() < end {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(self.choice.below(5000)));
        self.trusted.processes(name)
    }

    /// Kills a process, if there is one: `compile` is there only when it is wanted, and `vhost` while a
    /// monitor is connected.
    fn kill(&mut self, name: &'static str) {
        let found = match name {
            LAUNCH => vec![self.launch()],
            COMPILE => {
                kill_process(self.launch(), Signal::HUP).expect("it runs");
                self.wait_for(name)
            }
            VHOST => {
                let containers = self.trusted.folder.path().join("containers");
                let _monitor =
                    UnixStream::connect(monitor_socket(&containers, "services")).expect("a socket");
                self.wait_for(name)
            }
            _ => self.trusted.processes(name),
        };
        let killed = found.into_iter().filter(|process| kill_process(*process, Signal::KILL).is_ok());
        *self.counted.kills.entry(name).or_default() += killed.count() as u64;
    }

    /// Starts the gateway again, as whatever looks after it does: until it runs, since processes of the one
    /// before may still be ending, and have its sockets.
    fn start_again(&mut self) {
        let (end, mut said) = (Instant::now() + LIMIT, String::new());
        loop {
            // It has been killed, or says nothing.
            let _ = self.trusted.launch.kill();
            self.trusted.launch.wait().expect("it ends");
            assert!(Instant::now() < end, "it does not start again: {said}");
            self.trusted.start_again();
            let left = || end.saturating_duration_since(Instant::now());
            while let Ok(line) = self.trusted.told.recv_timeout(left()) {
                if line.starts_with("core: ") {
                    return;
                }
                said = said + &line + "\n";
            }
        }
    }

    /// Hands a policy in, kills processes meanwhile, and judges what came of it.
    fn step(&mut self, seen: &Seen) {
        let before = self.version();
        self.newest += 1;
        let version = self.newest;
        let [odd, even] = &self.policies;
        let policy = SignedPolicy { version, ..if version % 2 == 1 { odd } else { even }.clone() };
        let file = self.trusted.folder.path().join("new.bundle");
        fs::write(&file, signed(&policy, &[1, 2])).expect("written");
        // In half of the steps nothing dies by which packets pass.
        let targets = if self.choice.below(2) == 0 { &BESIDE_PACKETS[..] } else { &ALL[..] };
        let chosen: Vec<_> = (0..1 + self.choice.below(2))
            .map(|_| targets[self.choice.below(targets.len() as u64) as usize])
            .collect();
        seen.wait();
        seen.look();
        let mut install = self.trusted.bundle_command(&["install", file.to_str().expect("text")]);
        let is_to_confirm = self.choice.below(UNCONFIRMED) == 0;
        if is_to_confirm {
            install.args(["--confirm-within", "1s"]);
        }
        let install = install.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut install = install.expect("it starts");
        for name in &chosen {
            thread::sleep(Duration::from_millis(self.choice.below(SPAN)));
            self.kill(name);
            if *name == LAUNCH {
                self.start_again();
            }
        }
        install.wait().expect("it ends");
        let now = self.follows(seen);
        assert!([before, version].contains(&now), "{chosen:?}: neither {before} nor {version}, but {now}");
        (self.counted.before, self.counted.new) = match now == before {
            true => (self.counted.before + 1, self.counted.new),
            false => (self.counted.before, self.counted.new + 1),
        };
        assert_eq!(seen.wrong.load(Ordering::Relaxed), 0, "{chosen:?}: what no policy lets pass has passed");
        let Arrived { lost, pause, .. } = seen.look();
        if is_to_confirm {
            self.returns_to(before, seen);
            self.counted.returned += u64::from(now == version);
        }
        if chosen.iter().all(|name| BESIDE_PACKETS.contains(name)) {
            assert_eq!(lost, 0, "{chosen:?}: packets were lost");
        } else if chosen == [CORE] {
            self.counted.pauses.push(pause);
        }
    }

    /// The policy before comes back by itself, whether the one that was not confirmed had come into force or
    /// not.
    fn returns_to(&self, before: u64, seen: &Seen) {
        let end = Instant::now() + LIMIT;
        while self.follows(seen) != before {
            assert!(Instant::now() < end, "version {before} does not come back");
        }
    }

    /// The version in force, which datagrams are seen to follow, and no other.
    fn follows(&self, seen: &Seen) -> u64 {
        let mut bytes = [0; 8];
        loop {
            let version = self.version();
            // What came before leaves no room for what comes now.
            for socket in &self.sockets {
                while socket.recv(&mut bytes).is_ok() {}
            }
            let first = seen.wait();
            let came = self.sockets.each_ref().map(|socket| {
                let numbers =
                    std::iter::from_fn(|| socket.recv(&mut bytes).ok().map(|_| u64::from_be_bytes(bytes)));
                numbers.filter(|number| *number >= first).count()
            });
            // What was handed in may have come into force meanwhile.
            if self.version() == version {
                let (passes, drops) = if version % 2 == 1 { (came[0], came[1]) } else { (came[1], came[0]) };
                assert!(passes > 0 && drops == 0, "version {version}: {passes} and {drops} have passed");
                return version;
            }
        }
    }
}

/// Kills processes of one gateway until so many of all were killed.
fn kill_until(test: &str, number: u64, most: u64, kills: &AtomicU64) -> Option<Counted> {
    let keys = Keys::new();
    let mut killed = Killed::new(test, &keys, 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1))?;
    let (seen, ends) = (Seen::default(), AtomicBool::new(false));
    let Trusted { a, b, .. } = &killed.trusted;
    let sockets = [host_socket(a, (A, 0)), host_socket(b, (B, ALWAYS)), host_socket(b, (B, NEVER))];
    thread::scope(|scope| {
        let watches = scope.spawn(|| watch(sockets, &seen, &ends));
        let judged = panic::catch_unwind(AssertUnwindSafe(|| {
            while kills.load(Ordering::Relaxed) < most {
                let before = killed.counted.kills();
                killed.step(&seen);
                kills.fetch_add(killed.counted.kills() - before, Ordering::Relaxed);
            }
        }));
        if judged.is_err() {
            // The other gateways need not go on.
            kills.store(most, Ordering::Relaxed);
        }
        ends.store(true, Ordering::Relaxed);
        watches.join().expect("it ends");
        judged.unwrap_or_else(|why| panic::resume_unwind(why));
    });
    Some(killed.counted)
}

#[test]
fn whatever_is_killed_packets_follow_the_policy_before_or_the_new_one() {
    let test = "whatever_is_killed_packets_follow_the_policy_before_or_the_new_one";
    let wanted = std::env::var(KILLS_VARIABLE).ok().map(|text| text.parse().expect("a number of kills"));
    let (most, gateways) = wanted.map_or((KILLS, 1), |most| (most, GATEWAYS));
    let kills = AtomicU64::new(0);
    let counted = thread::scope(|scope| {
        let all: Vec<_> = (0..gateways)
            .map(|number| {
                let kills = &kills;
                scope.spawn(move || kill_until(test, number, most, kills))
            })
            .collect();
        all.into_iter()
            .map(|one| one.join().unwrap_or_else(|why| panic::resume_unwind(why)))
            .collect::<Vec<_>>()
    });
    let mut all = Counted::default();
    for one in counted {
        let Some(one) = one else { return };
        all.add(one);
    }
    assert!(all.kills() >= most && all.new > 0, "{all:?}");
    all.pauses.sort();
    let pause = |place: usize| all.pauses.get(place).copied().unwrap_or_default();
    println!("{} kills: {:?}", all.kills(), all.kills);
    println!("in force afterwards: the policy before {} times, the new one {} times", all.before, all.new);
    println!(
        "{} times the new one had come into force unconfirmed, and the one before came back",
        all.returned
    );
    println!(
        "{} cores died alone; nothing passed for {:?} in the median, {:?} at most",
        all.pauses.len(),
        pause(all.pauses.len() / 2),
        all.pauses.last().copied().unwrap_or_default()
    );
}
