//! The program `load_balancer` over real flows: a flow keeps its server, answers come from the virtual
//! address, packets are those that came in but for one address, and a server that leaves moves no other's
//! flows.
//!
//! `RAVELIN_DATA=DIRECTORY` names a folder with `captures/`; without it, flows are made.

mod ends;

use captures::Capture;
use ends::{End, Ends, TCP, ends, number, place, put, rewritten, valid, without_wrong};
use engine::PacketBench;
use etherparse::PacketBuilder;
use exec::BackendKind;
use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use suite::corpus::root;
use suite::random::SuiteRandom;

const CLIENTS: u16 = 1;
const SERVERS: u16 = 2;

const SECOND: u64 = 1_000_000_000;

const VIRTUAL: End = ([198, 51, 100, 1], 80);

/// The program, in which a frame of this type takes a server out.
fn program() -> Program {
    let path = root().join("programs/load_balancer.rav");
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let place = "    match eth.type {\n        0x0800 => packet\n";
    let leaving = "    if eth.type == 0x88b5 { remove servers[0, 10.0.0.2, 02:00:00:00:00:02] }\n";
    assert!(text.contains(place));
    let text = text.replace(place, &format!("{leaving}{place}"));
    let compiled = compile("load_balancer.rav", &text, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

struct Judge<'a> {
    bench: PacketBench<'a>,
    /// The server of each client's flow.
    servers: BTreeMap<End, [u8; 4]>,
    now: u64,
    requests: u64,
    answers: u64,
}

impl<'a> Judge<'a> {
    fn new(program: &'a Program, back_end: BackendKind) -> Judge<'a> {
        let bench = PacketBench::new(program, back_end, 2, 0).expect("it loads");
        Judge { bench, servers: BTreeMap::new(), now: 0, requests: 0, answers: 0 }
    }

    /// What a packet becomes, which leaves by this port, with the Ethernet header that it came in with.
    fn through(&mut self, port: u16, frame: &[u8], out: u16) -> (Vec<u8>, Vec<u8>) {
        let outcome = self.bench.packet(port, frame, self.now);
        let [(reached, left)] = &outcome.left[..] else { panic!("one packet leaves: {outcome:?}") };
        assert_eq!(*reached, out);
        let mut packet = left.clone();
        packet[..12].copy_from_slice(&frame[..12]);
        (packet, left[..12].to_vec())
    }

    /// A packet of a client, sent to the virtual address. Gives the server.
    fn request(&mut self, frame: &[u8], found: Ends) -> [u8; 4] {
        let asked = rewritten(frame, None, Some(VIRTUAL));
        let (left, addresses) = self.through(CLIENTS, &asked, SERVERS);
        let after = ends(&left).expect("it is what it was");
        assert_eq!((after.src, after.dst.1), (found.src, VIRTUAL.1));
        let server = after.dst.0;
        assert!(matches!(server, [10, 0, 0, 1..=3]), "{server:?}");
        assert_eq!(addresses, [2, 0, 0, 0, 0, server[3], 2, 0, 0x5e, 0, 0, 1], "to the server's card");
        let good = valid(&asked);
        assert_eq!(valid(&left), good);
        let back = rewritten(&left, None, Some(VIRTUAL));
        assert_eq!(without_wrong(&back, good), without_wrong(&asked, good), "nothing else changes");
        self.requests += 1;
        server
    }

    /// The answer to a client from its server.
    fn answer(&mut self, frame: &[u8], server: [u8; 4]) {
        let sent = rewritten(frame, Some((server, VIRTUAL.1)), None);
        let (left, addresses) = self.through(SERVERS, &sent, CLIENTS);
        assert_eq!(addresses, [2, 0, 0x5e, 0, 0, 0xfe, 2, 0, 0x5e, 0, 0, 1], "to the router");
        let good = valid(&sent);
        assert_eq!(valid(&left), good);
        assert_eq!(ends(&left).expect("it is what it was").src, VIRTUAL);
        let back = rewritten(&left, Some((server, VIRTUAL.1)), None);
        assert_eq!(without_wrong(&back, good), without_wrong(&sent, good), "nothing else changes");
        self.answers += 1;
    }

    /// A packet of a flow, which keeps its server.
    fn flow(&mut self, frame: &[u8], found: Ends) {
        let server = self.request(frame, found);
        let known = *self.servers.entry(found.src).or_insert(server);
        assert_eq!(server, known, "{:?} keeps its server", found.src);
    }

    fn share(&self, last: u8) -> usize {
        self.servers.values().filter(|server| server[3] == last).count()
    }
}

/// A packet of TCP from a client.
fn made(random: &mut SuiteRandom, client: End, to: End) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 9, 9], [2, 0, 0, 0, 0, 9]).ipv4(client.0, to.0, 64);
    let payload: Vec<u8> = (0..random.below(40)).map(|_| random.number() as u8).collect();
    let mut frame = Vec::new();
    builder.tcp(client.1, to.1, 7, 1_000).write(&mut frame, &payload).expect("memory");
    if random.one_in(10) {
        let place = place(&frame);
        let wrong = number(&frame, place) ^ 0x0101;
        put(&mut frame, place, wrong);
    }
    frame
}

#[test]
fn a_server_that_leaves_moves_only_its_own_flows() {
    let program = program();
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(61);
        let mut judge = Judge::new(&program, back_end);
        let clients: Vec<End> = (0..1_200).map(|n: u16| ([192, 0, 2, (n / 40) as u8], 1_024 + n)).collect();
        let round = |judge: &mut Judge<'_>, random: &mut SuiteRandom| -> Vec<[u8; 4]> {
            let send = |client: &End| {
                let frame = made(random, *client, VIRTUAL);
                judge.request(&frame, ends(&frame).expect("it is sound"))
            };
            clients.iter().map(send).collect()
        };
        let first = round(&mut judge, &mut random);
        let share = |servers: &[[u8; 4]], last: u8| servers.iter().filter(|server| server[3] == last).count();
        // A quarter, a quarter and a half, as their weights say.
        let shares = [share(&first, 1), share(&first, 2), share(&first, 3)];
        assert!(shares[0].abs_diff(300) < 60 && shares[1].abs_diff(300) < 60, "{shares:?}");
        judge.now += SECOND;
        judge.bench.packet(CLIENTS, &[&[0; 12][..], &[0x88, 0xb5], &[0; 46]].concat(), judge.now);
        assert_eq!(round(&mut judge, &mut random), first, "known flows stay, also with the server that left");
        for (client, server) in clients.iter().zip(&first).step_by(7) {
            let frame = rewritten(&made(&mut random, VIRTUAL, *client), Some((*server, 80)), None);
            judge.answer(&frame, *server);
        }
        // Forgotten, they are dealt out again.
        judge.now += 301 * SECOND;
        let second = round(&mut judge, &mut random);
        assert_eq!(share(&second, 2), 0);
        for (before, after) in first.iter().zip(&second).filter(|(before, _)| before[3] != 2) {
            assert_eq!(before, after, "a flow of another server has moved");
        }
    }
}

#[test]
fn real_flows_keep_their_servers() {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of captures: nothing was run");
        return;
    };
    let program = program();
    let path = data.join("captures/s1like.pcap.zst").display().to_string();
    let stream = ports::capture_in::open(&path).expect("it can be opened");
    let mut capture = Capture::open(stream).expect("it is a capture");
    let mut judge = Judge::new(&program, BackendKind::Native);
    // Who sent the first packet between two ends is a client.
    let mut clients: HashMap<(End, End), bool> = HashMap::new();
    while let Some(record) = capture.next().expect("it is whole") {
        judge.now = judge.now.max(record.time_ns);
        let Some(found) = ends(record.data).filter(|found| found.proto == TCP) else { continue };
        let client = *clients.entry((found.src, found.dst)).or_insert(true);
        clients.entry((found.dst, found.src)).or_insert(false);
        if client {
            judge.flow(record.data, found);
        } else if let Some(server) = judge.servers.get(&found.dst).copied() {
            judge.answer(record.data, server);
        }
    }
    let shares = [1, 2, 3].map(|last| judge.share(last));
    println!("{} requests, {} answers, flows by server: {shares:?}", judge.requests, judge.answers);
    assert!(judge.requests > 3_000 && judge.answers > 3_000);
    assert!(shares.iter().all(|share| *share > judge.servers.len() / 8), "{shares:?}");
}
