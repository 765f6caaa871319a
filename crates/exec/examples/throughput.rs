//! Packets a second of the firewall that ships and of two hand-written programs over made packets, by each
//! back end, on one core, without accounting.
//!
//! `cargo run --release -p exec --example throughput [SECONDS]`; the first argument may also be `listing` for
//! the code. With `--no-default-features --features reference` there is no native code, and tables have the
//! forms that they have in a confined core.

use exec::{BackendKind, Outputs, load};
use lang::pipeline::{CompileOptions, compile};
use packet::{BATCH, Batch, Frames, VerdictKind};
use std::time::{Duration, Instant};

/// Frames in memory, as many as a small capture has.
const PACKETS: u64 = 14_261;
const HOSTS: u64 = 1200;
const PORTS: u16 = 5;

fn main() {
    let argument = std::env::args().nth(1);
    let seconds = argument.as_deref().and_then(|seconds| seconds.parse().ok()).unwrap_or(1.0);
    let hand_written = |text| ir::read::read(text).expect("the example is a program");
    for (what, program) in [
        ("programs/firewall.rav", shipped()),
        ("firewall by hand", hand_written(include_str!("firewall.ir"))),
        ("mac_switch by hand", hand_written(include_str!("mac_switch.ir"))),
    ] {
        #[cfg(feature = "native")]
        if argument.as_deref() == Some("listing") {
            println!("{}", exec::native::listing(&program).expect("the example compiles"));
            continue;
        }
        for kind in BackendKind::ALL.into_iter().rev() {
            measure(what, &program, kind, seconds);
        }
    }
}

/// The firewall that ships.
fn shipped() -> ir::Program {
    let text = include_str!("../../../programs/firewall.rav");
    compile("firewall.rav", text, &|_| None, &CompileOptions::default()).program.expect("it compiles")
}

fn measure(what: &str, program: &ir::Program, back_end: BackendKind, seconds: f64) {
    let start = Instant::now();
    let mut backend = load(program, back_end, PORTS, 1).expect("the example compiles");
    let compiled = start.elapsed();
    let mut frames = frames();
    let mut batches: Vec<Batch> = Vec::new();
    for first in (0..frames.len()).step_by(BATCH) {
        let mut batch = Batch::new();
        frames.fill(&mut batch, first..first + BATCH);
        for i in 0..batch.len {
            batch.port[i] = ((first + i) % usize::from(PORTS)) as u16 + 1;
        }
        batches.push(batch);
    }
    let mut outputs = Outputs::default();
    let memory = frames.memory_mut();
    for _ in 0..20 {
        batches.iter_mut().for_each(|batch| backend.run(memory, batch, &mut outputs));
    }
    let mut rates: Vec<f64> = (0..5)
        .map(|_| {
            let (start, before, mut packets) = (Instant::now(), on_processor(), 0);
            while start.elapsed() < Duration::from_secs_f64(seconds / 5.0) {
                for batch in &mut batches {
                    outputs.clear();
                    backend.run(memory, batch, &mut outputs);
                    packets += batch.len;
                }
            }
            let busy = match (before, on_processor()) {
                (Some(before), Some(after)) => after - before,
                _ => start.elapsed(),
            };
            packets as f64 / busy.as_secs_f64() / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let sent = batches.iter().flat_map(Batch::verdicts).filter(|verdict| verdict.kind() == VerdictKind::Send);
    println!(
        "{} ({}): compiled in {:.2} ms; {:.1} Mpps (median of 5, {:.1} to {:.1}), {:.2} ns a packet; {} of {PACKETS} sent",
        what,
        back_end.name(),
        compiled.as_secs_f64() * 1e3,
        rates[2],
        rates[0],
        rates[4],
        1e3 / rates[2],
        sent.count(),
    );
}

/// Time this thread has been on a processor, where the system says: on a busy machine other programs do not
/// count.
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Web traffic between hosts, 83 of 100 packets to port 80 or 443.
fn frames() -> Frames {
    let mut frames = Frames::new();
    let mut random = 1u64;
    let mut below = move |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for i in 0..PACKETS {
        let mut bytes = vec![0u8; 60 + below(1200) as usize];
        let (source, destination) = (below(HOSTS), below(HOSTS));
        bytes[..6].copy_from_slice(&(0x0200_0000_0000 + destination).to_be_bytes()[2..]);
        bytes[6..12].copy_from_slice(&(0x0200_0000_0000 + source).to_be_bytes()[2..]);
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14] = 0x45;
        bytes[23] = if below(10) == 0 { 17 } else { 6 };
        bytes[26..30].copy_from_slice(&(0x0a00_0000 + source as u32).to_be_bytes());
        bytes[30..34].copy_from_slice(&(0x0a00_0000 + destination as u32).to_be_bytes());
        let port: u16 = if below(100) < 83 { 443 } else { 22 };
        bytes[36..38].copy_from_slice(&port.to_be_bytes());
        bytes[46] = 0x50;
        let wire = bytes.len() as u32;
        frames.push(&bytes, wire, 1_000_000_000 + i * 1000);
    }
    frames
}
