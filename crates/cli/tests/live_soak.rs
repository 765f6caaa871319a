//! A random mix of what happens around names, for as long as is wanted: pages, downloads, pings, look-ups,
//! datagrams and long connections of several clients to several hosts, while roles are killed and read their
//! files again and the gateway's address changes.
//!
//! It goes in rounds of a minute at most. At the end of each, scapy judges what was captured on all links,
//! and both roles may not have grown. A round whose packets were not all captured is repeated.
//! `cargo xtask soak` lets it run for an hour.

mod net;

use net::small_internet::{ECHO, Home, Plan, Talk, WHOLE_RUN, page, registers, succeeds};
use net::text;
use rig::SmallInternet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const INITIATORS: usize = 3;
const HOSTS: usize = 3;
const PLAN: Plan<'_> = Plan {
    initiators: INITIATORS,
    hosts: HOSTS as u8,
    addresses: &["--known", "198.51.100.8/30", "--clients", "203.0.113.0/24"],
    offloads: false,
    programs: &["ping"],
};

/// How long the mix lasts if nothing else is said.
const SECONDS: u64 = 12;
/// The longest round.
const ROUND: Duration = Duration::from_secs(60);
/// How much happens in the first round, and in each later one.
const FIRST_EVENTS: u32 = 4;
const EVENTS: u32 = 2;
/// How often a round is begun until all its packets are captured.
const ATTEMPTS: usize = 3;
/// How long it may take until everybody is reached again after something has happened.
const PATIENCE: Duration = Duration::from_secs(90);
/// A role may have twice the memory that it had at its start, and so many KiB: a reload has the tables twice,
/// and what is freed may stay with the process. So many descriptors may come besides those of its start.
const MOST_GROWN: u64 = 64 << 10;
const MOST_OPENED: usize = 16;
/// A port that no host offers.
const CLOSED: &str = "8081";

/// Has datagrams of several sizes sent back, and sends each again until it is.
const DATAGRAM_CLIENT: &str = "
import socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.connect((sys.argv[1], 7))
client.settimeout(1)
for size in (1, 100, 1300):
    for _ in range(15):
        client.send(b'x' * size)
        try:
            while len(client.recv(2048)) != size:
                pass
            break
        except OSError:
            pass
    else:
        sys.exit('no answer to %d bytes' % size)
";

/// What clients do, and how often among a hundred.
const MIX: [(Doing, u64); 7] = [
    (Doing::Page, 34),
    (Doing::LookUp, 20),
    (Doing::Talk, 20),
    (Doing::Ping, 8),
    (Doing::Datagrams, 8),
    (Doing::Download, 5),
    (Doing::ClosedPort, 5),
];

#[derive(Clone, Copy, Debug)]
enum Doing {
    Page,
    Download,
    Ping,
    LookUp,
    Datagrams,
    Talk,
    ClosedPort,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    FilesRead,
    Killed(&'static str),
    Readdressed,
}

impl Event {
    /// What happens: everything once in the first round, and later roles are killed more rarely, so that it
    /// is seen if one grows.
    fn numbered(number: usize) -> Event {
        match number {
            1 => Event::Killed("gateway"),
            2 => Event::Readdressed,
            3 => Event::Killed("waypoint"),
            _ if number > 3 && number.is_multiple_of(20) => Event::Killed(ROLES[number / 20 % 2]),
            _ if number.is_multiple_of(2) => Event::FilesRead,
            _ => Event::Readdressed,
        }
    }
}

/// Numbers that look random (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn doing(&mut self) -> Doing {
        let mut left = self.below(MIX.iter().map(|(_, often)| often).sum());
        let found = MIX.iter().find(|(_, often)| {
            let is_it = left < *often;
            left = left.saturating_sub(*often);
            is_it
        });
        found.unwrap_or(&MIX[0]).0
    }
}

/// All of it, and what it has come to.
struct Soak {
    home: Home,
    dice: Dice,
    talks: Vec<Talk>,
    events: usize,
    address: &'static str,
    /// Memory in KiB and descriptors of both roles when they were started last.
    started: [(u64, usize); 2],
    done: u64,
}

const ROLES: [&str; 2] = ["waypoint", "gateway"];
const ADDRESSES: [&str; 2] = ["192.0.2.50", "192.0.2.51"];

impl Soak {
    fn new(test: &str, seed: u64) -> Option<Soak> {
        let change = |role: &str, file: String| match role {
            "waypoint" => file.replace("\nzone = ", "\nstore = \"names.store\"\nzone = "),
            // It hears from the waypoint again and again by that, so it knows when that has started anew.
            _ => file + &registers(8080),
        };
        let mut home = Home::new(test, &PLAN, change)?;
        // Clients ask for themselves.
        let options = "options timeout:5 attempts:2";
        let resolver = format!("nameserver {}\n{options}\n", SmallInternet::WAYPOINT_MACHINE);
        fs::write(home.path("resolv.conf"), resolver).expect("can be written");
        ROLES.iter().for_each(|role| home.serve(role));
        for host in 0..HOSTS {
            home.web_server(host, 80);
            home.echo_server(host);
            home.datagram_server(host);
            let services = ["tcp/80", &format!("tcp/{ECHO}"), &format!("udp/{ECHO}"), "icmp"];
            home.add_name(&format!("host{host}"), host, &services);
        }
        let (dice, talks, address) = (Dice(seed), Vec::new(), ADDRESSES[0]);
        let started = ROLES.map(|role| measured(home.process(role)));
        let mut soak = Soak { home, dice, talks, events: 0, address, started, done: 0 };
        soak.all_are_reached();
        Some(soak)
    }

    /// Waits until each initiator gets the page of each host, and the gateway has registered its name.
    fn all_are_reached(&mut self) {
        let end = Instant::now() + PATIENCE;
        while !text(&self.home.ravelin("waypoint", &["names", "list"])).contains("own.home.example") {
            assert!(Instant::now() < end, "the gateway has not registered its name");
            thread::sleep(Duration::from_millis(100));
        }
        for (initiator, host) in (0..INITIATORS).flat_map(|one| (0..HOSTS).map(move |host| (one, host))) {
            while let Err(said) = self.gets_page(initiator, host) {
                assert!(Instant::now() < end, "{initiator} does not reach host {host}: {said}");
            }
        }
    }

    fn gets_page(&self, initiator: usize, host: usize) -> Result<(), String> {
        let output = self.home.curl(initiator, &[&format!("http://host{host}.home.example/")]).output();
        let output = output.expect("curl runs");
        if output.stdout == page(host).as_bytes() { Ok(()) } else { Err(text(&output)) }
    }

    /// One thing that a client does, which has to come about.
    fn does(&mut self, doing: Doing) {
        let [initiator, host] = [INITIATORS, HOSTS].map(|end| self.dice.below(end as u64) as usize);
        let name = format!("host{host}.home.example");
        let run = |program: &str, arguments: &[&str]| {
            self.home.client(initiator, program).args(arguments).output().expect("it runs")
        };
        match doing {
            Doing::Page => {
                let said = self.gets_page(initiator, host);
                assert!(said.is_ok(), "a page of {host} for {initiator}: {said:?}");
            }
            Doing::Download => self.home.download(initiator, &format!("host{host}"), host),
            Doing::Ping => {
                let size = ["56", "1000", "3000"][self.dice.below(3) as usize];
                let ping = run("ping", &["-4", "-c", "2", "-i", "0.2", "-w", "20", "-s", size, &name]);
                succeeds("ping", &ping);
            }
            Doing::LookUp => {
                for wanted in [name.as_str(), "nobody.home.example", "own.home.example"] {
                    let said = text(&run("dig", &[wanted, "A", "+tries=3", "+timeout=10"]));
                    let code = if wanted.starts_with("nobody") { "NXDOMAIN" } else { "NOERROR" };
                    assert!(said.contains(code), "{said}");
                }
            }
            Doing::Datagrams => succeeds("datagrams", &run("python3", &["-c", DATAGRAM_CLIENT, &name])),
            Doing::Talk => {
                if self.talks.len() < 8 {
                    self.talks.push(Talk::begin(&self.home, initiator, &format!("host{host}")));
                }
                let one = self.dice.below(self.talks.len() as u64) as usize;
                self.talks[one].goes_on();
            }
            Doing::ClosedPort => {
                let url = format!("http://{name}:{CLOSED}/");
                let output = self.home.curl(initiator, &["--max-time", "1", &url]).output();
                assert!(!output.expect("curl runs").status.success(), "nobody offers this port");
            }
        }
        self.done += 1;
    }

    fn happens(&mut self) {
        let event = Event::numbered(self.events);
        self.events += 1;
        match event {
            // Connections go on.
            Event::FilesRead => {
                for role in ROLES {
                    succeeds("reload", &self.home.ravelin(role, &["reload"]));
                }
            }
            Event::Readdressed => {
                let to = ADDRESSES.into_iter().find(|one| *one != self.address).expect("there are two");
                for line in [
                    format!("address del {}/28 dev public", self.address),
                    format!("address add {to}/28 dev public"),
                    "route replace default via 192.0.2.49".to_owned(),
                ] {
                    let words: Vec<&str> = line.split(' ').collect();
                    succeeds(&line, &self.home.internet.carrier.run("ip", &words, "").expect("ip runs"));
                }
                self.address = to;
            }
            Event::Killed(role) => {
                self.talks.clear();
                if role == "waypoint" {
                    self.home.until_written();
                }
                self.home.kill(role);
                self.home.serve(role);
                let place = ROLES.iter().position(|one| *one == role).expect("it is one of both");
                self.started[place] = measured(self.home.process(role));
                self.all_are_reached();
            }
        }
        self.talks.iter_mut().for_each(Talk::goes_on);
    }

    /// A round of the mix, judged at its end. Returns whether it was: not so where packets are in no capture.
    fn round(&mut self, length: Duration) -> bool {
        let first_event = self.events;
        let events = if first_event == 0 { FIRST_EVENTS } else { EVENTS };
        self.home.capture_every_link();
        let begin = Instant::now();
        // Each round has something of everything.
        MIX.iter().for_each(|(doing, _)| self.does(*doing));
        let mut happened = 0;
        while begin.elapsed() < length || happened < events {
            if happened < events && begin.elapsed() >= length / (events + 1) * (happened + 1) {
                self.happens();
                happened += 1;
            }
            let doing = self.dice.doing();
            self.does(doing);
        }
        self.talks.clear();
        let now = ROLES.map(|role| measured(self.home.process(role)));
        for ((role, (memory, open)), first) in ROLES.iter().zip(now).zip(self.started) {
            assert!(memory <= 2 * first.0 + MOST_GROWN, "{role}: {memory} KiB, and {} at its start", first.0);
            assert!(open <= first.1 + MOST_OPENED, "{role}: {open} descriptors, and {} at first", first.1);
        }
        self.home.end_captures();
        let missed = self.home.missed();
        if missed > 0 {
            println!("a round is not judged, since {missed} packets are in no capture; it comes again");
            self.events = first_event;
            return false;
        }
        let report = self.home.judged("names_judge.py", &[&INITIATORS.to_string()]);
        assert_eq!(report["wrong"].as_object().map(serde_json::Map::len), Some(0), "{report}");
        for looked in ["I1", "I2", "I4", "I5", "I5 back", "I6", "I8"] {
            assert!(report["looked"][looked].as_u64() > Some(0), "{looked}: {report}");
        }
        println!(
            "{} done, {} events, memory and descriptors {now:?}: {}",
            self.done, self.events, report["looked"]
        );
        true
    }
}

/// The memory of a process in KiB, and its open descriptors.
fn measured(process: u32) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    let open = fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").count();
    (memory.and_then(|number| number.parse().ok()).expect("is told"), open)
}

#[test]
fn a_random_mix_keeps_every_invariant_and_grows_nothing() {
    let test = "a_random_mix_keeps_every_invariant_and_grows_nothing";
    let seconds = std::env::var(WHOLE_RUN).ok().map(|text| text.parse().expect("seconds"));
    let seconds = seconds.unwrap_or(SECONDS);
    let seed = 0x9e37_79b9_7f4a_7c15 ^ seconds;
    let Some(mut soak) = Soak::new(test, seed) else { return };
    println!("seed {seed:#x}, {seconds} s");
    let mut left = Duration::from_secs(seconds);
    while !left.is_zero() {
        let round = left.min(ROUND);
        let is_judged = (0..ATTEMPTS).any(|_| soak.round(round));
        assert!(is_judged, "{ATTEMPTS} times packets are in no capture: the machine is too busy");
        left -= round;
    }
    assert!(soak.done > 0 && soak.events >= FIRST_EVENTS as usize);
}
