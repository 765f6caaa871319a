//! `ravelin demo`: the firewall over the capture that ships with Ravelin, both built in.

use crate::commands::run::{from_memory, tell};
use crate::failure::Failure;
use crate::program::{self, Ready};
use crate::render;
use captures::Capture;
use engine::{Setting, Times};
use lang::pipeline::CompileOptions;
use packet::Frames;
use std::time::Instant;

const PROGRAM: &str = include_str!("../../../../programs/firewall.rav");
const CAPTURE: &[u8] = include_bytes!("../../../../captures/demo.pcapng");
const PORTS: u16 = 5;
/// How often the capture is run: 40 million packets, about half a second, long enough for a steady figure and
/// the same counts everywhere.
const REPEAT: u64 = 20_000;

/// Runs the command.
pub(crate) fn run(json: bool) -> Result<(), Failure> {
    let begin = Instant::now();
    let name = "programs/firewall.rav";
    let compiled = program::compile_text(name, PROGRAM, None, &CompileOptions::default());
    let ready = program::accepted(name.into(), compiled, begin.elapsed(), json)?;
    let begin = Instant::now();
    let frames = frames()?;
    let mut times = Times { compile: ready.compile, ..Times::default() };
    times.load = begin.elapsed();
    let report = pass(&ready, frames, times)?;
    tell(&report, &ready, None, json)?;
    if !json {
        render::text(&next())?;
    }
    Ok(())
}

fn pass(ready: &Ready, frames: Frames, times: Times) -> Result<engine::Report, Failure> {
    let setting = Setting {
        program: ready.name.clone(),
        capture: "captures/demo.pcapng".into(),
        decode: "lazy".into(),
        ingress: "round-robin".into(),
        order: "replay".into(),
        repeat: REPEAT,
        seed: 0,
    };
    from_memory(ready, setting, frames, PORTS, times)
}

fn frames() -> Result<Frames, Failure> {
    let wrong = |error: captures::CaptureError| Failure::Finding(format!("captures/demo.pcapng: {error}"));
    let mut capture = Capture::open(CAPTURE).map_err(wrong)?;
    let mut frames = Frames::new();
    while let Some(record) = capture.next().map_err(wrong)? {
        frames.push(record.data, record.wire, record.time_ns);
    }
    Ok(frames)
}

fn next() -> String {
    let style = anstyle::Style::new().bold();
    format!(
        "
{style}What to try next{style:#}
  ravelin trace programs/firewall.rav --in captures/demo.pcapng --number 1   one packet, step by step
  ravelin run programs/mac_switch.rav --in captures/demo.pcapng              another program
  ravelin run programs/firewall.rav --in YOUR.pcap --out sent/               your own traffic, and what left by each port
  ravelin test programs/                                                     the tests in the programs
  ravelin check programs/firewall.rav                                        change a line of the firewall, then ask what the compiler thinks
`ravelin` is target/release/ravelin; `cargo run --release --` in its place does the same.
"
    )
}
