//! `ravelin trace`: one packet through a program, step by step.

use crate::arguments::TraceArguments;
use crate::arguments::seeing::LiveTraceArguments;
use crate::commands::run::{links, open};
use crate::failure::Failure;
use crate::program::{self, Ready};
use crate::render;
use engine::Ledger;
use engine::steps::{Recorder, Step, told};
use exec::{Interpreter, Outputs, Processor};
use gateway::control::listen_to;
use gateway::{Asked, Wanted};
use packet::region::{HEADROOM, SLACK};
use packet::{Batch, Verdict};
use ports::{Ingress, Policy, Receive};
use serde_json::json;

/// The packet to be followed, and the program in the state in which it meets it.
struct Subject {
    interpreter: Interpreter<Recorder>,
    memory: Vec<u8>,
    wire: u32,
    port: u16,
    time: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &TraceArguments, json: bool) -> Result<(), Failure> {
    let program = match (&arguments.live.live, &arguments.program) {
        (Some(filter), _) => return live(filter, &arguments.live, json),
        (None, Some(program)) => program,
        (None, None) => {
            return Err(Failure::Usage("name a program, or packets of a running gateway by --live".into()));
        }
    };
    if let Some(port) = arguments.port.filter(|&port| port > arguments.ports) {
        return Err(Failure::Usage(format!(
            "--port: there is no port {port}; the ports are 1 to {}, and --ports makes more",
            arguments.ports
        )));
    }
    let (ready, refused) = program::traceable(program, json)?;
    let interpreter = Interpreter::with_observer(&ready.program, arguments.ports, 0, Recorder::default())
        .map_err(|error| Failure::Finding(format!("{}: {error}", ready.name)))?;
    let mut subject = match (&arguments.packet, &arguments.input) {
        (Some(text), _) => given(interpreter, arguments, text)?,
        (None, Some(input)) => captured(interpreter, arguments, input)?,
        (None, None) => {
            return Err(Failure::Usage("name a packet with --packet or --in and --number".into()));
        }
    };
    let before = subject.memory.clone();
    subject.interpreter.observer().want(0, subject.memory.clone());
    let mut memory = vec![0; HEADROOM];
    memory.extend_from_slice(&subject.memory);
    memory.resize(memory.len() + SLACK, 0);
    let mut batch = Batch::new();
    batch.headroom = HEADROOM as u32;
    batch.push(HEADROOM as u64, before.len() as u32, subject.wire, subject.port, subject.time);
    let mut outputs = Outputs::default();
    subject.interpreter.run(&mut memory, &mut batch, &mut outputs);
    let mut ledger = Ledger::new(&ready.program, arguments.ports);
    ledger.commit(&memory, &mut batch, &outputs);
    let moments = subject.interpreter.observer().take().pop().map_or_else(Vec::new, |(_, moments)| moments);
    let steps = told(&ready.program, &ready.sources, &moments);
    subject.memory = batch.bytes(&memory, 0).unwrap_or_default().to_vec();
    let end = End {
        verdict: batch.verdict[0],
        reached: ledger.reaches(batch.verdict[0], subject.port).collect(),
        leaving: match outputs.resized.is_empty() {
            true => Vec::new(),
            false => engine::pieces::leaving(&memory, &batch, &outputs, 0),
        },
        outputs,
        changed: render::packet::difference(&before, &subject.memory),
    };
    if json {
        render::json(&document(&ready, &subject, &before, &steps, &end))?;
    } else {
        render::text(&text(&ready, &subject, &before, &steps, &end))?;
    }
    if refused { Err(Failure::Told) } else { Ok(()) }
}

/// Packets of a running gateway, each with its steps.
fn live(filter: &str, arguments: &LiveTraceArguments, json: bool) -> Result<(), Failure> {
    let wanted = Wanted {
        filter: filter.to_owned(),
        count: Some(arguments.count),
        seconds: Some(arguments.seconds),
        snap: None,
        steps: true,
    };
    let mut seen = 0;
    listen_to(&arguments.socket.control, &Asked::Watch(wanted), &mut |mut said| -> Result<bool, Failure> {
        if let Some(packet) = said.get_mut("packet") {
            seen += 1;
            if json {
                render::line(packet)?;
            } else {
                render::text(&render::seen::in_full(packet))?;
            }
        }
        Ok(said.get("watched").is_none())
    })?;
    if seen == 0 {
        let seconds = arguments.seconds;
        return Err(Failure::Finding(format!("no packet that the filter holds for came within {seconds} s")));
    }
    Ok(())
}

/// What came of the packet.
struct End {
    verdict: Verdict,
    reached: Vec<u16>,
    /// The packet, or its fragments, with the lengths on the wire: where its size changed.
    leaving: Vec<(Vec<u8>, u32)>,
    outputs: Outputs,
    changed: Option<String>,
}

/// A packet given in hexadecimal.
fn given(
    interpreter: Interpreter<Recorder>,
    arguments: &TraceArguments,
    text: &str,
) -> Result<Subject, Failure> {
    let digits: Vec<char> =
        text.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, ':' | '-')).collect();
    if let Some(wrong) = digits.iter().find(|letter| !letter.is_ascii_hexdigit()) {
        return Err(Failure::Usage(format!("--packet: `{wrong}` is not a hexadecimal digit")));
    }
    if !digits.len().is_multiple_of(2) {
        return Err(Failure::Usage(format!(
            "--packet: {} digits are no whole number of bytes",
            digits.len()
        )));
    }
    let digit = |letter: char| letter.to_digit(16).unwrap_or(0) as u8;
    let memory: Vec<u8> = digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    let wire = memory.len() as u32;
    Ok(Subject { interpreter, memory, wire, port: arguments.port.unwrap_or(1), time: 0 })
}

/// A packet of a capture, after those before it have run.
fn captured(
    mut interpreter: Interpreter<Recorder>,
    arguments: &TraceArguments,
    input: &str,
) -> Result<Subject, Failure> {
    let policy = arguments.port.map_or(Policy::RoundRobin, Policy::Port);
    let mut source = open(input, links(arguments.link), Ingress::new(policy, arguments.ports))?;
    let wanted = arguments.number.unwrap_or(1);
    let (mut batch, mut outputs, mut seen) = (Batch::new(), Outputs::default(), 0);
    loop {
        let memory = source.receive(&mut batch).map_err(|error| Failure::Finding(error.to_string()))?;
        if batch.is_empty() {
            return Err(Failure::Usage(format!(
                "--number: {input} has {}, and number {wanted} is not among them",
                render::quantity::of(seen, "packet")
            )));
        }
        let left = wanted - seen;
        seen += batch.len as u64;
        outputs.clear();
        if left > batch.len as u64 {
            interpreter.run(memory, &mut batch, &mut outputs);
            continue;
        }
        let index = left as usize - 1;
        let subject_bytes = batch.bytes(memory, index).unwrap_or_default().to_vec();
        let (wire, port, time) = (batch.wire[index], batch.port[index], batch.time[index]);
        batch.len = index;
        interpreter.run(memory, &mut batch, &mut outputs);
        return Ok(Subject { interpreter, memory: subject_bytes, wire, port, time });
    }
}

fn text(ready: &Ready, subject: &Subject, before: &[u8], steps: &[Step], end: &End) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!(
        "{bold}The packet{bold:#} enters by port {}: {}\n{}\n",
        subject.port,
        packet::describe::describe(before, subject.wire),
        render::packet::dump(before, "  ")
    );
    text.push_str(&render::steps::steps(steps.iter().map(|step| (step.place.as_str(), step.step.as_str()))));
    text.push_str(&format!(
        "\n{bold}Verdict{bold:#}: {}\n",
        render::mismatch::verdict(&ready.program, end.verdict)
    ));
    if !end.reached.is_empty() {
        let ports: Vec<String> = end.reached.iter().map(u16::to_string).collect();
        text.push_str(&format!("  it leaves by {}\n", ports.join(", ")));
    }
    if let Some(changed) = &end.changed {
        text.push_str(&format!("  the program changed it: {changed}\n"));
    }
    if !end.reached.is_empty() {
        for (number, (bytes, wire)) in end.leaving.iter().enumerate() {
            let number =
                if end.leaving.len() > 1 { format!(", fragment {}", number + 1) } else { String::new() };
            text.push_str(&format!(
                "  it leaves as{number}: {}\n{}\n",
                packet::describe::describe(bytes, *wire),
                render::packet::dump(bytes, "    ")
            ));
        }
    }
    for output in &end.outputs.packets {
        let what = if output.copy { "a copy" } else { "a packet the program made" };
        let bytes = end.outputs.bytes_of(output);
        let described = packet::describe::describe(bytes, output.wire);
        text.push_str(&format!("  {what} leaves by port {}: {described}\n", output.port));
    }
    text
}

fn document(ready: &Ready, subject: &Subject, before: &[u8], steps: &[Step], end: &End) -> serde_json::Value {
    let outputs: Vec<_> = end
        .outputs
        .packets
        .iter()
        .map(|output| {
            let bytes = render::diagnostic::hex(end.outputs.bytes_of(output));
            json!({ "port": output.port, "copy": output.copy, "packet": bytes })
        })
        .collect();
    json!({
        "program": ready.name,
        "port": subject.port,
        "packet": render::diagnostic::hex(before),
        "wire_bytes": subject.wire,
        "decoded": packet::describe::describe(before, subject.wire),
        "steps": steps,
        "verdict": render::mismatch::verdict(&ready.program, end.verdict),
        "leaves_by": end.reached,
        "leaves_as": end.leaving.iter().map(|(bytes, _)| render::diagnostic::hex(bytes)).collect::<Vec<_>>(),
        "packet_after": render::diagnostic::hex(&subject.memory),
        "outputs": outputs,
    })
}
