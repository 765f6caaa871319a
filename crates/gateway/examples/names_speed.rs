//! What a query costs that makes a binding: bytes of a query in, bytes of its reply out, with the entries of
//! the promise in the table of a program that runs, by a worker without packets. No sockets are in it.
//!
//! `taskset -c 1 cargo run --release -p gateway --example names_speed -- CLIENTS` takes so many clients with
//! addresses and cookies of their own, each of which asks once for a name of its address; they come alone and
//! in groups. The time is that of all threads on their processors, so other load does not count.

use engine::live::{self, Loaded};
use exec::provision::provide;
use exec::{BackendKind, load};
use gateway::config::ProcessConfig;
use gateway::names::WithoutSockets;
use lang::pipeline::{CompileOptions, compile};
use ports::live::clock::{Clock, MachineClock};
use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Hosts, each with a name and the same service.
const HOSTS: u32 = 200;
const PROGRAM: &str = include_str!("../../../programs/waypoint.rav");

fn main() -> Result<(), Box<dyn Error>> {
    let clients: u32 = std::env::args().nth(1).ok_or("names_speed CLIENTS")?.parse()?;
    println!("| queries together | queries | answered | µs each | a second of a processor |");
    for together in [1, 8, 64] {
        measure(clients, together)?;
    }
    Ok(())
}

fn measure(clients: u32, together: usize) -> Result<(), Box<dyn Error>> {
    let ProcessConfig::Names(config) = ProcessConfig::read(&file(), Path::new(""))? else {
        return Err("it has no ports".into());
    };
    let text = PROGRAM.replace("u64 in 1..1M = 16k", "u64 in 1..1M = 1M");
    let options = CompileOptions::default();
    let compiled = compile("waypoint.rav", &text, &|_| None, &options);
    let program = compiled.program.ok_or("it does not compile")?;
    let mut backend = load(&program, BackendKind::Native, 2, 1)?;
    provide(&program, u64::MAX, backend.as_mut(), |_| true);
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (crew, remote) = live::workers(vec![Vec::new()], &clock)?;
    let names = WithoutSockets::open(&config.names, &program, backend.as_mut(), &remote)?;
    let loaded = Loaded {
        program: Arc::new(program),
        sources: Arc::new(compiled.sources),
        backends: vec![backend],
        schedule: None,
        steering: Vec::new(),
    };
    let generations = loaded.generations(0, 1);
    thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let stop = remote.clone();
        let running = remote.clone();
        scope.spawn(move || live::run(crew, generations, &running, &[]));
        let asked = ask(&names, clients, together);
        stop.stop();
        let (queries, answered, took) = asked?;
        let each = took.as_secs_f64() / f64::from(queries);
        println!("| {together} | {queries} | {answered} | {:.2} | {:.0} |", each * 1e6, 1.0 / each);
        Ok(())
    })
}

/// Lets all clients ask once, and gives how many asked, how many got an address, and the time of it.
fn ask(
    names: &WithoutSockets,
    clients: u32,
    together: usize,
) -> Result<(u32, u32, Duration), Box<dyn Error>> {
    let mut queries = Vec::with_capacity(clients as usize);
    for client in 0..clients {
        let from = SocketAddr::new(Ipv4Addr::from_bits(0x0a00_0000 | client).into(), 40_000);
        let cookie = cookie(names, client, from)?;
        queries.push((query(client, &format!("h{}", client % HOSTS), &cookie), from));
    }
    let mut answered = 0;
    let begin = processor_time()?;
    for group in queries.chunks(together) {
        let group: Vec<(&[u8], SocketAddr)> =
            group.iter().map(|(bytes, from)| (bytes.as_slice(), *from)).collect();
        let replies = names.answer(&group);
        answered += replies.iter().flatten().filter(|reply| reply.get(7) == Some(&1)).count() as u32;
    }
    let took = processor_time()?.saturating_sub(begin);
    if answered != clients || names.expectations() != u64::from(clients) {
        return Err(
            format!("{answered} of {clients} got an address, packets know {}", names.expectations()).into()
        );
    }
    Ok((clients, answered, took))
}

/// The time that all threads of this process have run (proc(5), schedstat).
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let mut all = Duration::ZERO;
    for thread in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        all += Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?);
    }
    Ok(all)
}

/// The cookie that a client gets with another answer, the client's half in front.
fn cookie(names: &WithoutSockets, client: u32, from: SocketAddr) -> Result<Vec<u8>, Box<dyn Error>> {
    let own = u64::from(client) | 1 << 40;
    let first = query(client, "www", &own.to_be_bytes());
    let reply = names.answer(&[(&first, from)]).pop().flatten().ok_or("no reply")?;
    let place = reply.windows(8).position(|part| part == own.to_be_bytes()).ok_or("no cookie")?;
    Ok(reply.get(place..place + 24).ok_or("no whole cookie")?.to_vec())
}

/// A query for the address of a name, with a cookie (RFC 7873).
fn query(number: u32, name: &str, cookie: &[u8]) -> Vec<u8> {
    let mut bytes = (number as u16).to_be_bytes().to_vec();
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    for label in [name, "home", "example"] {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, 1, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, cookie.len() as u8 + 4]);
    bytes.extend([0, 10, 0, cookie.len() as u8]);
    bytes.extend(cookie);
    bytes
}

/// A zone with hosts, for clients that ask for themselves.
fn file() -> String {
    let mut file =
        "[names]\nlisten = [\"192.0.2.53:53\"]\nzone = \"home.example\"\nclients = [\"10.0.0.0/8\"]\n\
        replies_per_second = 0\n[[names.server]]\nname = \"ns.other.example.\"\n\
        [[names.record]]\nkind = \"A\"\nname = \"www\"\naddress = \"192.0.2.80\"\n\
        [[names.gateway]]\nname = \"home\"\nnetworks = [\"192.168.0.0/16\"]\npeer = 1\n\
        [names.waypoint]\nknown = [\"198.51.100.0/29\"]\n"
            .to_owned();
    for host in 0..HOSTS {
        file += &format!(
            "[[names.host]]\nname = \"h{host}\"\ngateway = \"home\"\naddress = \"192.168.1.{host}\"\nservices = [\"tcp/22\"]\nipv4 = \"per-initiator\"\n"
        );
    }
    file
}
