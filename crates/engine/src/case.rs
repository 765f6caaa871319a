//! Runs the tests in a program's text and reports the first expectation that does not hold.

use crate::bench::{PacketBench, PacketOutcome, WaitedPacket};
use exec::{BackendKind, LoadError};
use ir::Program;
use ir::source::Span;
use lang::testcase::{CaseStep, Expected, TestCase};
use packet::{PortNumber, Verdict, VerdictKind};

/// An expectation that did not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Its place in the program's text.
    pub span: Span,
    /// What was expected.
    pub expected: Expected,
    /// What happened instead.
    pub found: CaseFinding,
    /// The last packet before it: its port and bytes as they came in.
    pub packet: Option<(PortNumber, Vec<u8>)>,
}

/// What happened instead of the expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseFinding {
    /// There was no packet before the expectation.
    Nothing,
    /// The verdict, and for a multicast its ports.
    Verdict(Verdict, Vec<PortNumber>),
    /// Everything that left and was not expected before, with its port.
    Left(Vec<(PortNumber, Vec<u8>)>),
    /// The number of entries, or of packets in a counter's cell.
    Number(u64),
    /// Every event that was raised and not expected before.
    Raised(Vec<(u32, Vec<u128>)>),
}

/// Runs a test to its first expectation that does not hold.
///
/// # Errors
/// If the back end cannot load the program.
pub fn run(program: &Program, case: &TestCase, back_end: BackendKind) -> Result<Option<Mismatch>, LoadError> {
    Ok(run_on(PacketBench::new(program, back_end, case.ports, 0)?, program, case))
}

/// As [`run`], on a bench that was just made for the program and as many ports as the test has.
///
/// What is expected of a fragment that waits for the first of its packet is compared when it runs, at the end
/// of the test at the latest.
pub fn run_on(mut bench: PacketBench<'_>, program: &Program, case: &TestCase) -> Option<Mismatch> {
    let mut since = PacketOutcome::default();
    let mut packet: Option<(PortNumber, Vec<u8>)> = None;
    let mut waiting = Vec::new();
    for step in &case.steps {
        match step {
            CaseStep::Packet { port, from_host, bytes, time } => {
                since = bench.packet_of(*port, *from_host, bytes, *time);
                packet = Some((*port, bytes.clone()));
                if since.verdict.is_none() {
                    waiting.push(WaitingPacket { port: *port, bytes, expected: Vec::new() });
                }
                let waited = std::mem::take(&mut since.waited);
                if let Some(mismatch) = check_waited(program, &bench, waited, &mut waiting) {
                    return Some(mismatch);
                }
            }
            CaseStep::Advance(time) => {
                let outcome = bench.advance(*time);
                since.left.extend(outcome.left);
                since.raised.extend(outcome.raised);
                if let Some(mismatch) = check_waited(program, &bench, outcome.waited, &mut waiting) {
                    return Some(mismatch);
                }
            }
            CaseStep::Expect(expected, span) => {
                if packet.is_some() && since.verdict.is_none() && expected.is_verdict() {
                    waiting.last_mut()?.expected.push((expected, *span));
                    continue;
                }
                let arrival = packet.as_ref().map_or(0, |(port, _)| *port);
                if let Some(found) = check(program, &bench, &mut since, arrival, expected) {
                    return Some(Mismatch { span: *span, expected: expected.clone(), found, packet });
                }
            }
        }
    }
    let outcome = bench.finish();
    check_waited(program, &bench, outcome.waited, &mut waiting)
}

/// A packet of a test that waits, and what is expected of it.
struct WaitingPacket<'a> {
    port: PortNumber,
    bytes: &'a [u8],
    expected: Vec<(&'a Expected, Span)>,
}

/// Compares packets that have waited with what is expected of them. Equal ones run in order.
fn check_waited(
    program: &Program,
    bench: &PacketBench<'_>,
    waited: Vec<WaitedPacket>,
    waiting: &mut Vec<WaitingPacket<'_>>,
) -> Option<Mismatch> {
    waited.into_iter().find_map(|WaitedPacket { port, bytes, verdict }| {
        let place = waiting.iter().position(|packet| packet.port == port && packet.bytes == bytes)?;
        let reached = bench.reaches(verdict, port);
        let fits = |expected: &Expected| verdict_fits(program, verdict, &reached, expected);
        let expected = waiting.remove(place).expected;
        let (expected, span) = expected.into_iter().find(|(expected, _)| !fits(expected))?;
        let found = CaseFinding::Verdict(verdict, reached);
        Some(Mismatch { span, expected: expected.clone(), found, packet: Some((port, bytes)) })
    })
}

/// What happened instead, if the expectation does not hold.
fn check(
    program: &Program,
    bench: &PacketBench<'_>,
    since: &mut PacketOutcome,
    arrival: PortNumber,
    expected: &Expected,
) -> Option<CaseFinding> {
    match expected {
        Expected::Out(port, bytes) => {
            let is_taken = take(&mut since.left, |(left, sent)| left == port && sent == bytes);
            (!is_taken).then(|| CaseFinding::Left(since.left.clone()))
        }
        Expected::Event(event, arguments) => {
            let is_taken = take(&mut since.raised, |(raised, values)| raised == event && values == arguments);
            (!is_taken).then(|| CaseFinding::Raised(since.raised.clone()))
        }
        Expected::Entries(table, entries) => {
            let found = bench.backend().tables().get(*table as usize).map_or(0, |table| table.entries);
            (found != *entries).then_some(CaseFinding::Number(found))
        }
        Expected::Count(counter, cell, packets) => {
            let cells = bench.backend().counter(*counter);
            let found = cells.get(*cell as usize).map_or(0, |(packets, _)| *packets);
            (found != *packets).then_some(CaseFinding::Number(found))
        }
        _ => {
            let Some(verdict) = since.verdict else { return Some(CaseFinding::Nothing) };
            let reached = bench.reaches(verdict, arrival);
            (!verdict_fits(program, verdict, &reached, expected))
                .then_some(CaseFinding::Verdict(verdict, reached))
        }
    }
}

/// Takes the first of these out. Returns whether there was one.
fn take<T>(all: &mut Vec<T>, is_it: impl FnMut(&T) -> bool) -> bool {
    all.iter().position(is_it).map(|index| all.remove(index)).is_some()
}

fn verdict_fits(program: &Program, verdict: Verdict, reached: &[PortNumber], expected: &Expected) -> bool {
    let reason = program.reasons.get(verdict.argument() as usize).map(|reason| reason.name.as_str());
    match (expected, verdict.kind()) {
        (Expected::Send(port), VerdictKind::Send) => *port == verdict.argument(),
        (Expected::Flood, VerdictKind::Flood) => true,
        (Expected::Multicast(ports), VerdictKind::Multicast) => ports == reached,
        (Expected::Drop(name), VerdictKind::Drop) | (Expected::Punt(name), VerdictKind::Punt) => {
            reason == Some(name.as_str())
        }
        _ => false,
    }
}
