//! Tests that failed, in words: the place, what was expected, what came, and the packet.

use super::diagnostic::hex;
use super::packet;
use ::packet::describe::describe;
use ::packet::{Verdict, VerdictKind};
use engine::case::{CaseFinding, Mismatch};
use engine::stf::{StfMismatch, StfPattern};
use ir::Program;
use ir::source::Sources;
use lang::testcase::Expected;

/// A failed test of a program's text.
pub(crate) fn of_case(program: &Program, sources: &Sources, mismatch: &Mismatch) -> String {
    let mut text = format!(
        "{}: expected {}\n  but {}\n",
        sources.place(mismatch.span),
        expected(program, &mismatch.expected),
        found(program, &mismatch.found)
    );
    if let (Expected::Out(port, wanted), CaseFinding::Left(left)) = (&mismatch.expected, &mismatch.found) {
        text.push_str(&compared(wanted, left.iter().filter(|(by, _)| by == port).map(|(_, bytes)| bytes)));
    }
    text.push_str(&the_packet(mismatch.packet.as_ref()));
    text
}

/// A failed STF file.
pub(crate) fn of_stf(program: &Program, file: &str, mismatch: &StfMismatch) -> String {
    let port = mismatch.port;
    let left = mismatch.found.as_deref().map(hex);
    let mut text = format!("{file}:{}: ", mismatch.line);
    if let Some(wanted) = &mismatch.expected {
        let left = left.map_or("nothing left there".to_owned(), |left| format!("this left: {left}"));
        text.push_str(&format!("expected on port {port}: {}\n  but {left}\n", pattern(wanted)));
    } else if let Some(left) = left {
        text.push_str(&format!(
            "the packet of this line left by port {port}, which nothing expects: {left}\n"
        ));
    }
    if let Some(counter) = &mismatch.counter {
        text.push_str(&format!("{counter}\n"));
    }
    if let Some(found) = mismatch.verdict {
        text.push_str(&format!("  the verdict on the packet before was {}\n", verdict(program, found)));
    }
    text.push_str(&the_packet(mismatch.packet.as_ref()));
    text
}

/// A verdict in words, with the help of its reason.
pub(crate) fn verdict(program: &Program, verdict: Verdict) -> String {
    let argument = verdict.argument();
    let reason = || match program.reasons.get(argument as usize) {
        Some(reason) if reason.help.is_empty() => reason.name.clone(),
        Some(reason) => format!("{} ({})", reason.name, reason.help),
        None => argument.to_string(),
    };
    match verdict.kind() {
        VerdictKind::Pending => "no verdict".into(),
        VerdictKind::Send => format!("send {argument}"),
        VerdictKind::Flood => "flood".into(),
        VerdictKind::Multicast => match program.port_sets.get(argument as usize) {
            Some(set) => format!("multicast {}", ports(set)),
            None => format!("multicast to set {argument}"),
        },
        VerdictKind::Punt => format!("punt {}", reason()),
        VerdictKind::Drop => format!("drop {}", reason()),
    }
}

fn expected(program: &Program, expected: &Expected) -> String {
    match expected {
        Expected::Send(port) => format!("send {port}"),
        Expected::Flood => "flood".into(),
        Expected::Multicast(set) => format!("multicast {}", ports(set)),
        Expected::Drop(reason) => format!("drop {reason}"),
        Expected::Punt(reason) => format!("punt {reason}"),
        Expected::Out(port, bytes) => format!("a packet to leave by port {port}: {}", hex(bytes)),
        Expected::Entries(table, entries) => {
            let name = program.tables.get(*table as usize).map_or("?", |table| table.name.as_str());
            format!("{entries} entries in table {name}")
        }
        Expected::Count(counter, cell, packets) => match program.counters.get(*counter as usize) {
            Some(counter) if counter.indexed => format!("{packets} packets in {}[{cell}]", counter.name),
            counter => {
                format!("{packets} packets in {}", counter.map_or("?", |counter| counter.name.as_str()))
            }
        },
        Expected::Event(index, arguments) => event(program, *index, arguments),
    }
}

fn found(program: &Program, found: &CaseFinding) -> String {
    match found {
        CaseFinding::Nothing => "there was no packet before it".into(),
        CaseFinding::Verdict(reached, set) if reached.kind() == VerdictKind::Multicast => {
            format!("the verdict was multicast {}", ports(set))
        }
        CaseFinding::Verdict(reached, _) => format!("the verdict was {}", verdict(program, *reached)),
        CaseFinding::Left(left) if left.is_empty() => "nothing (more) left by any port".into(),
        CaseFinding::Left(left) => {
            let packets: Vec<String> =
                left.iter().map(|(port, bytes)| format!("by port {port}: {}", hex(bytes))).collect();
            format!("this left: {}", packets.join("; "))
        }
        CaseFinding::Number(number) => format!("there were {number}"),
        CaseFinding::Raised(raised) if raised.is_empty() => "no (further) event was raised".into(),
        CaseFinding::Raised(raised) => {
            let events: Vec<String> =
                raised.iter().map(|(index, arguments)| event(program, *index, arguments)).collect();
            format!("these events were raised: {}", events.join("; "))
        }
    }
}

fn event(program: &Program, index: u32, arguments: &[u128]) -> String {
    match program.events.get(index as usize) {
        Some(event) => format!("event {}({})", event.name, engine::value::columns(&event.params, arguments)),
        None => format!("event number {index}"),
    }
}

fn ports(set: &[u16]) -> String {
    let numbers: Vec<String> = set.iter().map(u16::to_string).collect();
    format!("{{{}}}", numbers.join(", "))
}

/// In which bytes the packets that left by the right port are not the wanted one.
fn compared<'a>(wanted: &[u8], sent: impl Iterator<Item = &'a Vec<u8>>) -> String {
    sent.filter_map(|bytes| packet::difference(wanted, bytes))
        .map(|difference| format!("  compared with what was expected, {difference}\n"))
        .collect()
}

fn pattern(pattern: &StfPattern) -> String {
    if pattern.digits.is_empty() && !pattern.exact {
        return "any packet".into();
    }
    let mut text: String = pattern
        .digits
        .iter()
        .map(|digit| digit.and_then(|digit| char::from_digit(digit.into(), 16)).unwrap_or('*'))
        .collect();
    if pattern.exact {
        text.push('$');
    }
    text
}

fn the_packet(packet: Option<&(u16, Vec<u8>)>) -> String {
    let Some((port, bytes)) = packet else { return String::new() };
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    format!(
        "  the packet before it came in by port {port}: {}\n{}",
        describe(bytes, length),
        packet::dump(bytes, "    ")
    )
}
