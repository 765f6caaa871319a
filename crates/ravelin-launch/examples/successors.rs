//! What another core costs the packets: where it takes over from one that runs, and where it follows one that
//! was killed. Numbered datagrams pass a gateway that is split into processes, 20,000 in a second.
//!
//! ```text
//! cargo build --release -p cli -p ravelin-launch && cargo build --release -p ravelin-core-native
//! cargo build --release -p ravelin-core && cargo build --release -p ravelin-launch --example successors
//! sudo target/release/examples/successors upgrade|kill COUNT RULES [--native]
//! ```
//!
//! The gateway has the program `rules/firewall` with so many rules, and one connection. Told are, of each of
//! COUNT times, the longest time from one datagram to the next at the host behind it, and beside it the same
//! of as many times in which nothing happens; and how many datagrams were lost.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("it needs the network namespaces of Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use rig::Namespace;
    use rustix::process::{Pid, Signal, kill_process};
    use std::error::Error;
    use std::fmt::Write;
    use std::fs::{self, Permissions};
    use std::io::{BufRead, BufReader};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::{Duration, Instant};

    const PROGRAM: &str = include_str!("../../../programs/rules/firewall.rav");
    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    /// From one datagram to the next.
    const STEP: Duration = Duration::from_micros(50);
    /// How long each time is.
    const SPAN: Duration = Duration::from_millis(1500);

    type Failure = Box<dyn Error>;

    pub(super) fn main() -> Result<(), Failure> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (what, count, rules, more) = match arguments.as_slice() {
            [what @ ("upgrade" | "kill"), count, rules, more @ ..] => {
                (*what, count.parse()?, rules.parse()?, more)
            }
            _ => return Err("usage: successors upgrade|kill COUNT RULES [--native]".into()),
        };
        let kills = what == "kill";
        let (a, gateway, b) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        plug(&gateway, &a, ("to-a", A, 1))?;
        plug(&gateway, &b, ("to-b", B, 2))?;
        let folder = tempfile::tempdir()?;
        let launch = start(&gateway, folder.path(), rules, more)?;
        let socket = |host: &Namespace, address| host.inside(|| UdpSocket::bind(address));
        let (from, to) = (socket(&a, (A, 0))?, socket(&b, (B, 7))?);
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&to, 64 << 20)?;
        launch.hears("core: program 2 runs")?;
        meet(&from, &to)?;
        let ends = AtomicBool::new(false);
        let (sent, came, times, told) = thread::scope(|scope| {
            let receives = scope.spawn(|| received(&to));
            let sends = scope.spawn(|| send(&from, &ends));
            let work = happen(&launch, count, kills);
            ends.store(true, Ordering::Relaxed);
            let (times, told) = work?;
            let sent = sends.join().map_err(|_| "the sender ended")??;
            let came = receives.join().map_err(|_| "the receiver ended")?;
            Ok::<_, Failure>((sent, came, times, told))
        })?;
        let pause = |&(begin, end): &(Instant, Instant)| {
            let within = came.windows(2).filter(|two| two[1].1 >= begin && two[0].1 <= end);
            within.map(|two| two[1].1 - two[0].1).max().unwrap_or(end - begin)
        };
        let of = |busy: bool| times.iter().filter(|time| time.0 == busy).map(|time| pause(&time.1)).collect();
        println!(
            "{what}, {count} times, {rules} rules, {}",
            if more.is_empty() { "bytecode" } else { "native code" }
        );
        println!("lost                                {} of {sent}", sent - came.len() as u64);
        println!("longest pause, another core follows {}", median(of(true)));
        println!("longest pause, nothing happens      {}", median(of(false)));
        if !kills {
            println!("no core took packets, as it says    {}", median(told));
        }
        Ok(())
    }

    /// The median, the least and the greatest, in milliseconds.
    fn median(mut all: Vec<Duration>) -> String {
        all.sort();
        let ms = |time: Option<&Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
        format!("{:.2} ms ({:.2} to {:.2})", ms(all.get(all.len() / 2)), ms(all.first()), ms(all.last()))
    }

    /// A cable between the gateway and a host.
    fn plug(
        gateway: &Namespace,
        host: &Namespace,
        (end, address, last): (&str, Ipv4Addr, u8),
    ) -> Result<(), Failure> {
        host.set("ipv6/conf/default/disable_ipv6", "1")?;
        let links = gateway.links()?;
        links.cable((end, [2, 0, 0, 0, 9, last]), ("eth", [2, 0, 0, 0, 0, last]), host)?;
        links.up(end)?;
        let links = host.links()?;
        links.up("eth")?;
        Ok(links.address("eth", address, 24)?)
    }

    /// A gateway, and what it tells.
    struct Launch {
        process: Child,
        told: Receiver<String>,
    }

    impl Drop for Launch {
        fn drop(&mut self) {
            // It may have ended.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    impl Launch {
        fn hears(&self, words: &str) -> Result<String, Failure> {
            let mut all = String::new();
            loop {
                let line = self.told.recv_timeout(Duration::from_secs(60));
                let line = line.map_err(|_| format!("`{words}` was not told: {all}"))?;
                if line.contains(words) {
                    return Ok(line);
                }
                all = all + &line + "\n";
            }
        }

        fn core(&self) -> Result<Pid, Failure> {
            let id = self.process.id();
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
            let is_core = |pid: &&str| {
                fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name.trim() == "ravelin-core")
            };
            let found = children.split_whitespace().find(is_core).ok_or("there is no core")?;
            Ok(Pid::from_raw(found.parse()?).ok_or("it has no number")?)
        }
    }

    /// Starts a gateway with so many rules.
    fn start(gateway: &Namespace, folder: &Path, rules: usize, more: &[&str]) -> Result<Launch, Failure> {
        // The process that compiles is nobody.
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        fs::write(folder.join("program.rav"), PROGRAM)?;
        let mut text = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n".to_owned();
        text += "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n";
        for rule in 0..rules {
            let (source, port) = (format!("172.16.{}.{}", rule / 250, 1 + rule % 250), 1024 + rule % 4096);
            writeln!(text, "-A FORWARD -i ext0 -s {source}/32 -p tcp -m tcp --dport {port} -j ACCEPT")?;
        }
        text += "-A FORWARD -i int0 -o ext0 -j ACCEPT\nCOMMIT\n";
        fs::write(folder.join("rules.v4"), text)?;
        let control = folder.join("control.sock");
        let text = format!(
            "program = \"program.rav\"\ncontrol = {:?}\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n",
            control.display().to_string()
        );
        fs::write(folder.join("gateway.toml"), text)?;
        let own = std::env::current_exe()?;
        let beside: PathBuf = own.ancestors().nth(2).ok_or("no folder")?.join("ravelin");
        let mut command: Command = gateway.command(beside, None);
        command.args(["serve", "--trusted"]).args(more).arg(folder.join("gateway.toml"));
        let mut process = command.stderr(Stdio::piped()).spawn()?;
        let errors = BufReader::new(process.stderr.take().ok_or("no errors")?);
        let (tells, told) = channel();
        thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| tells.send(line)));
        Ok(Launch { process, told })
    }

    /// Waits until datagrams pass.
    fn meet(from: &UdpSocket, to: &UdpSocket) -> Result<(), Failure> {
        to.set_read_timeout(Some(Duration::from_millis(300)))?;
        for _ in 0..100 {
            // The neighbour may not be known yet.
            let _ = from.send_to(b"first", (B, 7));
            if to.recv(&mut [0; 16]).is_ok() {
                while to.recv(&mut [0; 16]).is_ok() {}
                return Ok(());
            }
        }
        Err("nothing passes".into())
    }

    fn send(from: &UdpSocket, ends: &AtomicBool) -> std::io::Result<u64> {
        let (mut number, begun) = (0u64, Instant::now());
        while !ends.load(Ordering::Relaxed) {
            while STEP * number as u32 <= begun.elapsed() {
                from.send_to(&number.to_be_bytes(), (B, 7))?;
                number += 1;
            }
            thread::sleep(STEP);
        }
        Ok(number)
    }

    /// What came, and when; until nothing comes for longer than a core takes to start.
    fn received(to: &UdpSocket) -> Vec<(u64, Instant)> {
        let _ = to.set_read_timeout(Some(Duration::from_secs(3)));
        let (mut came, mut bytes) = (Vec::new(), [0; 8]);
        while let Ok(8) = to.recv(&mut bytes) {
            came.push((u64::from_be_bytes(bytes), Instant::now()));
        }
        came
    }

    /// The times: whether a core followed another one, from when to when.
    type Times = Vec<(bool, (Instant, Instant))>;

    /// Has cores follow each other, so many times; returns when, and how long no core took packets, as they
    /// say.
    fn happen(launch: &Launch, count: usize, kills: bool) -> Result<(Times, Vec<Duration>), Failure> {
        let (mut times, mut told) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let begin = Instant::now();
            thread::sleep(SPAN);
            times.push((false, (begin, Instant::now())));
            let begin = Instant::now();
            if kills {
                kill_process(launch.core()?, Signal::KILL)?;
            } else {
                let id = Pid::from_raw(launch.process.id() as i32).ok_or("it has no number")?;
                kill_process(id, Signal::USR2)?;
                let line = launch.hears("which took over after ")?;
                let words = line.split("after ").nth(1).and_then(|rest| rest.split(' ').next());
                told.push(Duration::from_secs_f64(words.ok_or("no time")?.parse::<f64>()? / 1e3));
            }
            launch.hears("core: program 2 runs")?;
            thread::sleep(SPAN);
            times.push((true, (begin, Instant::now())));
        }
        Ok((times, told))
    }
}
