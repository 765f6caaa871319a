//! Whether a program on a device does what the interpreter does: every packet's verdict, bytes and outputs,
//! and the state at the end.

use crate::device_run::{DeviceSource, ProgramCode};
use crate::device_workload::PORTS;
use crate::experiment::{Figure, Row};
use crate::measure::SEED;
use crate::programs::compile;
use crate::traffic::LabError;
use captures::generate::{Generator, Profile};
use exec::kernel::KernelOptions;
use exec::{Backend, BackendKind, Outputs, QueueDepth};
use ir::Program;
use lang::pipeline::Decode;
use offload::Offloaded;
use offload::{Offload, OffloadError};
use packet::{BATCH, Batch, Frames};
use tables::generate::Random;

/// After the last packet so much time passes, so that timers go off.
const BEHIND: u64 = 15_000_000;
const PACKETS: &str = "packets, each done as the interpreter does it";

/// Packets with the ports by which they come in.
pub(super) struct Traffic {
    frames: Frames,
    ports: Vec<u16>,
}

impl Traffic {
    /// So many packets, a fifth of them damaged and some cut short.
    pub(super) fn new(packets: u64) -> Result<Traffic, LabError> {
        let mut profile = Profile::sample1();
        profile.flows = (profile.flows * packets / profile.packets).clamp(20, packets.max(20));
        profile.packets = packets;
        let wrong = |error: captures::generate::ProfileError| LabError::Program(error.to_string());
        let mut generator = Generator::new(&profile, SEED).map_err(wrong)?;
        let mut random = Random::new(SEED);
        let (mut frames, mut ports, mut bytes) = (Frames::with_headroom(), Vec::new(), Vec::new());
        while let Some(stamp) = generator.next(&mut bytes) {
            if random.below(5) == 0 {
                for _ in 0..1 + random.below(3) {
                    let at = random.below(bytes.len().clamp(1, 60) as u64) as usize;
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = random.word() as u8;
                    }
                }
            }
            if random.below(12) == 0 {
                bytes.truncate(random.below(70) as usize);
            }
            frames.push(&bytes, stamp.wire, stamp.time);
            ports.push(1 + random.below(PORTS.into()) as u16);
        }
        Ok(Traffic { frames, ports })
    }
}

/// The rows of a program, and how many packets were compared.
pub(super) fn rows(
    device_source: &dyn DeviceSource,
    name: &str,
    text: &str,
    traffic: &Traffic,
) -> (Vec<Row>, u64) {
    let refused = |why: &str| (vec![Row::refused(name, PACKETS, "packets", why)], 0);
    let program = match compile(name, text, Decode::Lazy) {
        Ok(program) => program,
        Err(why) => return refused(&why),
    };
    let offload = match Offload::new(&program, PORTS, SEED, &KernelOptions::default()) {
        Ok(offload) => offload,
        Err(why @ OffloadError::NoKernel(_)) => {
            return (vec![Row::absent(name, PACKETS, &why.to_string())], 0);
        }
        Err(why) => return refused(&why.to_string()),
    };
    let opened = Offloaded::new(offload, QueueDepth::BATCH, |kernel, geometry| {
        device_source.open(&ProgramCode { kernel, program: &program }, geometry, gpu::Setup::default())
    });
    let mut device = match opened {
        Ok(device) => device,
        Err(why) => return refused(&why.to_string()),
    };
    if let Err(why) = compared(&program, &mut device, traffic) {
        return refused(&why);
    }
    let Some(on) = device.on_device() else { return refused("it is on no device") };
    if let Some(why) = on.failure {
        return refused(&why);
    }
    let row = |what: &str, unit: &str, value: f64| {
        let figure = Figure::exactly(value);
        Row::alone(name, what, unit, Some(figure), None)
    };
    let packets = traffic.frames.len() as f64;
    let rows = vec![
        row(PACKETS, "packets", packets),
        row("finished by the device", "%", 100.0 * on.tally.device as f64 / packets.max(1.0)),
    ];
    (rows, traffic.frames.len() as u64)
}

/// Runs both; the error is the first difference.
fn compared(program: &Program, device: &mut dyn Backend, traffic: &Traffic) -> Result<(), String> {
    let mut judge =
        exec::load(program, BackendKind::Interpreter, PORTS, SEED).map_err(|error| error.to_string())?;
    let mut frames = [traffic.frames.clone(), traffic.frames.clone()];
    let mut batches = [Batch::new(), Batch::new()];
    let mut outputs = [Outputs::default(), Outputs::default()];
    for first in (0..traffic.frames.len()).step_by(BATCH) {
        let both: [&mut dyn Backend; 2] = [&mut *device, judge.as_mut()];
        for (place, backend) in both.into_iter().enumerate() {
            let (frames, batch, outputs) = (&mut frames[place], &mut batches[place], &mut outputs[place]);
            let count = frames.fill(batch, first..first + BATCH);
            batch.port[..count].copy_from_slice(&traffic.ports[first..first + count]);
            outputs.clear();
            backend.run(frames.memory_mut(), batch, outputs);
        }
        let [one, other] = &batches;
        for i in 0..one.len {
            let number = first + i;
            if one.verdict[i] != other.verdict[i] {
                let (found, right) = (one.verdict[i], other.verdict[i]);
                return Err(format!("the verdict on packet {number} is {found:?} and not {right:?}"));
            }
            let bytes = |place: usize| batches[place].bytes(frames[place].memory(), i);
            if one.wire[i] != other.wire[i] || bytes(0) != bytes(1) {
                return Err(format!("the bytes of packet {number} are others"));
            }
        }
        same_outputs(&outputs, first)?;
    }
    let last = traffic.frames.iter().map(|frame| frame.time).max().unwrap_or(0) + BEHIND;
    let [one, other] = &mut outputs;
    one.clear();
    other.clear();
    device.advance(last, one);
    judge.advance(last, other);
    same_outputs(&outputs, traffic.frames.len())?;
    same_state(program, device, judge.as_ref())
}

fn same_outputs([one, other]: &[Outputs; 2], first: usize) -> Result<(), String> {
    let same = one.packets == other.packets
        && one.bytes == other.bytes
        && one.raised == other.raised
        && one.arguments == other.arguments
        && one.resized == other.resized;
    same.then_some(()).ok_or_else(|| format!("what comes of packets from {first} on is something else"))
}

fn same_state(program: &Program, one: &dyn Backend, other: &dyn Backend) -> Result<(), String> {
    for (number, table) in (0..).zip(&program.tables) {
        let entries = |backend: &dyn Backend| {
            let mut entries: Vec<String> =
                backend.entries(number).iter().map(|entry| format!("{entry:?}")).collect();
            entries.sort();
            entries
        };
        if entries(one) != entries(other) {
            return Err(format!("table {} holds other entries", table.name));
        }
    }
    for (number, counter) in (0..).zip(&program.counters) {
        if one.counter(number) != other.counter(number) {
            return Err(format!("counter {} counts something else", counter.name));
        }
    }
    for (number, register) in (0..).zip(&program.registers) {
        if one.register(number) != other.register(number) {
            return Err(format!("register {} holds something else", register.name));
        }
    }
    if one.tables() != other.tables() {
        return Err("the tables' statistics are others".to_owned());
    }
    let events = (one.events(), one.lost_events()) == (other.events(), other.lost_events());
    events.then_some(()).ok_or_else(|| "other events were raised".to_owned())
}
