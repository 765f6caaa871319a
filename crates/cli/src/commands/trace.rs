//! `ravelin trace`: packets through a program, step by step.

mod sequence;

use crate::arguments::TraceArguments;
use crate::arguments::seeing::LiveTraceArguments;
use crate::commands::run::{filter, open};
use crate::failure::Failure;
use crate::program::{self, Ready};
use crate::render;
use engine::Ledger;
use engine::filter::Decided;
use engine::steps::{Recorder, TraceStep, told};
use exec::{Backend, Interpreter, Outputs};
use gateway::control::listen_to;
use gateway::{Asked, WatchWish};
use lang::pipeline::Decode;
use packet::{Batch, Verdict};
use ports::{Ingress, IngressPolicy};
use sequence::{Sequence, Subject};
use serde_json::json;

/// A program, with what it has learned from the packets so far.
struct Followed {
    ready: Ready,
    interpreter: Interpreter<Recorder>,
    ports: u16,
    json: bool,
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
    let (ready, refused) = program::traceable(program, &arguments.set.options(Decode::Lazy)?, json)?;
    let interpreter = Interpreter::with_observer(&ready.program, arguments.ports, 0, Recorder::default())
        .map_err(|error| Failure::Finding(format!("{}: {error}", ready.name)))?;
    let mut followed = Followed { ready, interpreter, ports: arguments.ports, json };
    match (&arguments.packet, &arguments.input, &arguments.filter, arguments.number) {
        (Some(text), ..) => followed.tell_one(given(arguments, text)?)?,
        (None, Some(input), Some(filter), _) => followed.tell_chosen(arguments, input, filter)?,
        (None, Some(input), None, Some(number)) => {
            let subject = followed.captured(arguments, input, number)?;
            followed.tell_one(subject)?;
        }
        _ => {
            let message = "name a packet with --packet, or packets with --in and --number or --filter";
            return Err(Failure::Usage(message.into()));
        }
    }
    if refused { Err(Failure::Told) } else { Ok(()) }
}

/// Packets of a running gateway, each with its steps.
fn live(filter: &str, arguments: &LiveTraceArguments, json: bool) -> Result<(), Failure> {
    let wanted = WatchWish {
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
    /// Its bytes afterwards.
    after: Vec<u8>,
}

/// A packet given in hexadecimal.
fn given(arguments: &TraceArguments, text: &str) -> Result<Subject, Failure> {
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
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    let wire = bytes.len() as u32;
    Ok(Subject { number: None, bytes, wire, port: arguments.port.unwrap_or(1), time: 0, waited: None })
}

impl Followed {
    /// The packets of the capture that is named, which enter as is said.
    fn sequence(&self, arguments: &TraceArguments, input: &str) -> Result<Sequence, Failure> {
        let policy = arguments.port.map_or(IngressPolicy::RoundRobin, IngressPolicy::Port);
        let source = open(input, arguments.link, Ingress::new(policy, arguments.ports))?;
        Ok(Sequence::new(source, &self.ready.program))
    }

    /// A packet of a capture, after those that run before it.
    fn captured(&mut self, arguments: &TraceArguments, input: &str, wanted: u64) -> Result<Subject, Failure> {
        let mut sequence = self.sequence(arguments, input)?;
        while let Some(subject) = sequence.next()? {
            if subject.number == Some(wanted) {
                return Ok(subject);
            }
            self.pass(&subject);
        }
        Err(Failure::Usage(format!(
            "--number: {input} has {}, and number {wanted} is not among them",
            render::quantity::of(sequence.seen(), "packet")
        )))
    }

    /// The first packets of a capture that a filter holds for, while all run.
    fn tell_chosen(&mut self, arguments: &TraceArguments, input: &str, text: &str) -> Result<(), Failure> {
        let mut filter = filter(text)?;
        let mut sequence = self.sequence(arguments, input)?;
        let (mut chosen, mut told) = (Vec::new(), 0);
        while told < arguments.live.count {
            let Some(subject) = sequence.next()? else { break };
            let (mut memory, mut batch) = subject.alone();
            filter.choose(&mut memory, &mut batch, &mut chosen);
            if chosen.is_empty() {
                self.pass(&subject);
                continue;
            }
            let (steps, end) = self.follow(&subject);
            if !filter.holds(&self.decided(&subject, &end)) {
                continue;
            }
            if told > 0 && !self.json {
                render::text("\n")?;
            }
            told += 1;
            self.tell(&subject, &steps, &end)?;
        }
        if told > 0 {
            return Ok(());
        }
        let packets = render::quantity::of(sequence.seen(), "packet");
        Err(Failure::Finding(format!(
            "{input} has {packets}, and the filter `{text}` holds for none of them"
        )))
    }

    /// What a filter is told of a packet.
    fn decided<'a>(&'a self, subject: &'a Subject, end: &End) -> Decided<'a> {
        let number = end.verdict.reason().map(usize::from);
        let reason = number.and_then(|number| self.ready.program.reasons.get(number));
        Decided {
            bytes: &subject.bytes,
            wire: subject.wire,
            port: subject.port,
            verdict: end.verdict,
            reason: reason.map(|reason| reason.name.as_str()),
        }
    }

    /// Runs a packet.
    fn pass(&mut self, subject: &Subject) -> (Vec<u8>, Batch, Outputs) {
        let (mut memory, mut batch) = subject.alone();
        let mut outputs = Outputs::default();
        self.interpreter.run(&mut memory, &mut batch, &mut outputs);
        (memory, batch, outputs)
    }

    /// Runs a packet and records its steps.
    fn follow(&mut self, subject: &Subject) -> (Vec<TraceStep>, End) {
        self.interpreter.observer().want(0, subject.bytes.clone());
        let (memory, mut batch, outputs) = self.pass(subject);
        let mut ledger = Ledger::new(&self.ready.program, self.ports);
        ledger.commit(&memory, &mut batch, &outputs);
        let moments = self.interpreter.observer().take().pop().map_or_else(Vec::new, |(_, moments)| moments);
        let after = batch.bytes(&memory, 0).unwrap_or_default().to_vec();
        let end = End {
            verdict: batch.verdict[0],
            reached: ledger.reaches(batch.verdict[0], subject.port).collect(),
            leaving: match outputs.resized.is_empty() {
                true => Vec::new(),
                false => engine::pieces::leaving(&memory, &batch, &outputs, 0),
            },
            outputs,
            after,
        };
        (told(&self.ready.program, &self.ready.sources, &moments), end)
    }

    /// Tells the one packet that was asked for.
    fn tell_one(&mut self, subject: Subject) -> Result<(), Failure> {
        let (steps, end) = self.follow(&subject);
        if self.json {
            return Ok(render::json(&document(&self.ready, &subject, &steps, &end))?);
        }
        self.tell(&subject, &steps, &end)
    }

    /// Tells one of several packets: a line of JSON each.
    fn tell(&self, subject: &Subject, steps: &[TraceStep], end: &End) -> Result<(), Failure> {
        if self.json {
            return Ok(render::line(&document(&self.ready, subject, steps, end))?);
        }
        Ok(render::text(&text(&self.ready, subject, steps, end))?)
    }
}

fn text(ready: &Ready, subject: &Subject, steps: &[TraceStep], end: &End) -> String {
    let bold = anstyle::Style::new().bold();
    let before = &subject.bytes;
    let name = match subject.number {
        Some(number) => format!("Packet {}", render::quantity::count(number)),
        None => "The packet".into(),
    };
    let mut text = format!(
        "{bold}{name}{bold:#} enters by port {}: {}\n{}\n",
        subject.port,
        packet::describe::describe(before, subject.wire),
        render::packet::dump(before, "  ")
    );
    if let Some(waited) = subject.waited {
        let waited = render::quantity::seconds(waited as f64 / 1e9);
        text.push_str(&format!("  it has waited {waited} for the first fragment of its packet\n"));
    }
    text.push_str(&render::steps::steps(steps.iter().map(|step| (step.place.as_str(), step.step.as_str()))));
    text.push_str(&format!(
        "\n{bold}Verdict{bold:#}: {}\n",
        render::mismatch::verdict(&ready.program, end.verdict)
    ));
    if !end.reached.is_empty() {
        let ports: Vec<String> = end.reached.iter().map(u16::to_string).collect();
        text.push_str(&format!("  it leaves by {}\n", ports.join(", ")));
    }
    if let Some(changed) = render::packet::difference(before, &end.after) {
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

fn document(ready: &Ready, subject: &Subject, steps: &[TraceStep], end: &End) -> serde_json::Value {
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
        "number": subject.number,
        "port": subject.port,
        "packet": render::diagnostic::hex(&subject.bytes),
        "wire_bytes": subject.wire,
        "waited_seconds": subject.waited.map(|waited| waited as f64 / 1e9),
        "decoded": packet::describe::describe(&subject.bytes, subject.wire),
        "steps": steps,
        "verdict": render::mismatch::verdict(&ready.program, end.verdict),
        "leaves_by": end.reached,
        "leaves_as": end.leaving.iter().map(|(bytes, _)| render::diagnostic::hex(bytes)).collect::<Vec<_>>(),
        "packet_after": render::diagnostic::hex(&end.after),
        "outputs": outputs,
    })
}
