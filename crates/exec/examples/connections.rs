//! Packets a second of `programs/stateful.rav` over made connections of TCP, on one core, in memory, without
//! accounting: `cargo run --release -p exec --example connections -- CONNECTIONS [ROUNDS]`.
//!
//! A round has three parts, each of them for connections in an order of their own:
//!
//! - *new*: the SYN of every connection;
//! - *opened*: SYN, SYN,ACK and ACK of every connection, one connection after the other;
//! - *data*: segments of the connections that are open, from either side, chosen at random.

use exec::{Backend, BackendKind, Outputs, load};
use lang::ir::Program;
use lang::pipeline::{CompileOptions, compile};
use packet::{BATCH, Batch, Frames, VerdictKind};
use std::time::{Duration, Instant};

const INSIDE: u16 = 1;
const OUTSIDE: u16 = 2;
/// Segments of data.
const SEGMENTS: u32 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |at| std::env::args().nth(at);
    let count: u32 = argument(1).as_deref().unwrap_or("100000").parse()?;
    let rounds: usize = argument(2).as_deref().unwrap_or("5").parse()?;
    let text = include_str!("../../../programs/stateful.rav");
    // A table that is nearly full keeps its entries in order, which takes time.
    let room = (count + count / 4).max(1 << 18);
    let text = format!("{text}\nconst MOST_ASSURED: u64 = {room}\nconst MOST_UNASSURED: u64 = {room}\n");
    let compiled = compile("stateful.rav", &text, &|_| None, &CompileOptions::default());
    let program = compiled.program.ok_or("the program compiles")?;
    let (mut new, mut opened, mut data) = (Traffic::default(), Traffic::default(), Traffic::default());
    let mut random = 1u64;
    let mut below = move |bound: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % u64::from(bound)) as u32
    };
    for number in 0..count {
        new.push(segment(number, false, 1000, 0, 0x02), INSIDE);
        opened.push(segment(number, false, 1000, 0, 0x02), INSIDE);
        opened.push(segment(number, true, 5000, 1001, 0x12), OUTSIDE);
        opened.push(segment(number, false, 1001, 5001, 0x10), INSIDE);
    }
    for at in 0..SEGMENTS {
        let number = below(count);
        match at % 2 {
            0 => data.push(segment(number, true, 5001, 1001, 0x10), OUTSIDE),
            _ => data.push(segment(number, false, 1001, 5001, 0x10), INSIDE),
        }
    }
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        rates[0].push(new.run(fresh(&program)?.as_mut(), count));
        let mut backend = fresh(&program)?;
        rates[1].push(opened.run(backend.as_mut(), count));
        data.run(backend.as_mut(), SEGMENTS);
        for _ in 0..3 {
            rates[2].push(data.run(backend.as_mut(), SEGMENTS));
        }
    }
    for (rates, what) in rates.iter_mut().zip(["new connections", "opened connections", "segments of data"]) {
        rates.sort_by(f64::total_cmp);
        let (least, middle, most) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
        println!("{count} connections: {middle:.2} M {what} a second ({least:.2} to {most:.2})");
    }
    Ok(())
}

/// A back end whose tables have the memory that they need.
fn fresh(program: &Program) -> Result<Box<dyn Backend>, exec::LoadError> {
    load(program, BackendKind::Native, 2, 1)
}

/// Frames, and the port by which each comes in.
#[derive(Default)]
struct Traffic {
    frames: Frames,
    ports: Vec<u16>,
}

impl Traffic {
    fn push(&mut self, bytes: [u8; 60], port: u16) {
        let time = 1_000_000_000 + self.ports.len() as u64 * 100;
        self.frames.push(&bytes, bytes.len() as u32, time);
        self.ports.push(port);
    }

    /// Runs all; how many millions of `things` a second.
    fn run(&mut self, backend: &mut dyn Backend, things: u32) -> f64 {
        let (mut batch, mut outputs, mut sent) = (Batch::new(), Outputs::default(), 0);
        let (start, before) = (Instant::now(), on_processor());
        for first in (0..self.ports.len()).step_by(BATCH) {
            batch.clear();
            let filled = self.frames.fill(&mut batch, first..first + BATCH);
            batch.port[..filled].copy_from_slice(&self.ports[first..first + filled]);
            backend.run(self.frames.memory_mut(), &mut batch, &mut outputs);
            sent += batch.verdicts().iter().filter(|one| one.kind() == VerdictKind::Send).count();
        }
        let busy = match (before, on_processor()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed(),
        };
        assert_eq!(sent, self.ports.len(), "every packet passes");
        f64::from(things) / busy.as_secs_f64() / 1e6
    }
}

/// Time this thread has been on a processor, where the system says: on a busy machine other programs do not
/// count.
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// An Ethernet frame with a segment of TCP of connection `number` without data.
fn segment(number: u32, reply: bool, seq: u32, ack: u32, flags: u8) -> [u8; 60] {
    let client = (0x0a00_0001 + number, 1024 + (number.wrapping_mul(7919) % 60_000) as u16);
    let server = (0xc000_0200 + number % 200, 443);
    let (from, to) = if reply { (server, client) } else { (client, server) };
    let mut bytes = [0; 60];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    bytes[14..26].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes[26..30].copy_from_slice(&from.0.to_be_bytes());
    bytes[30..34].copy_from_slice(&to.0.to_be_bytes());
    let sum: u32 = bytes[14..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes[34..36].copy_from_slice(&from.1.to_be_bytes());
    bytes[36..38].copy_from_slice(&to.1.to_be_bytes());
    bytes[38..42].copy_from_slice(&seq.to_be_bytes());
    bytes[42..46].copy_from_slice(&ack.to_be_bytes());
    bytes[46..50].copy_from_slice(&[0x50, flags, 0xff, 0xff]);
    bytes
}
