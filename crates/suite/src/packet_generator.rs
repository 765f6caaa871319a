//! Random packets for a random program: headers that its decoders accept, few different values, then cuts and
//! flips.

use crate::program_generator::Generated;
use crate::program_generator::model::{FieldKind, GeneratedField, GeneratedLayout};
use crate::random::SuiteRandom;
use ir::FROM_HOST;
use packet::{Frames, PortNumber};

/// Packets with the ports they come in by.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// The packets.
    pub frames: Frames,
    /// One port a packet.
    pub ports: Vec<PortNumber>,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals { frames: Frames::with_headroom(), ports: Vec::new() }
    }
}

impl Arrivals {
    /// Only the packets for which `keep` holds.
    pub fn filter(&self, keep: impl Fn(usize) -> bool) -> Arrivals {
        let mut kept = Arrivals::default();
        for (index, frame) in self.frames.iter().enumerate() {
            if keep(index) {
                kept.push(frame.bytes, frame.wire, frame.time, self.ports[index]);
            }
        }
        kept
    }

    /// Appends all packets of another run, as if it began when this one ends.
    pub fn append(&mut self, other: &Arrivals) {
        let first = other.frames.iter().map(|frame| frame.time).min().unwrap_or(0);
        let end = self.frames.iter().map(|frame| frame.time + 1).max().unwrap_or(first);
        for (frame, port) in other.frames.iter().zip(&other.ports) {
            self.push(frame.bytes, frame.wire, end + (frame.time - first), *port);
        }
    }

    /// Appends a packet.
    pub fn push(&mut self, bytes: &[u8], wire: u32, time: u64, port: PortNumber) {
        self.frames.push(bytes, wire, time);
        self.ports.push(port);
    }
}

/// Makes `count` packets for the program; `ports` is how many ports there are.
pub fn generate(program: &Generated, seed: u64, count: usize, ports: PortNumber) -> Arrivals {
    let mut random = SuiteRandom::new(seed ^ 0x7061_636b_6574);
    let mut arrivals = Arrivals::default();
    let mut earlier: Vec<Vec<u8>> = Vec::new();
    let mut time = 1_000_000_000;
    let asks = program.text.contains("from_host");
    for _ in 0..count {
        let bytes = if !earlier.is_empty() && random.one_in(3) {
            random.pick(&earlier).clone()
        } else {
            let bytes = packet(program, &mut random);
            earlier.push(bytes.clone());
            bytes
        };
        let bytes = damage(bytes, &mut random);
        let wire = bytes.len() as u64 + if random.one_in(6) { random.below(2000) } else { 0 };
        time = step(time, &mut random);
        let of_machine = asks && random.one_in(3);
        let port = random.between(1, u64::from(ports)) as PortNumber | if of_machine { FROM_HOST } else { 0 };
        arrivals.push(&bytes, wire as u32, time, port);
    }
    arrivals
}

/// Time stands still, goes on a little or a lot, or back.
fn step(time: u64, random: &mut SuiteRandom) -> u64 {
    match random.below(12) {
        0..=3 => time,
        4..=8 => time + random.below(3_000_000),
        9 => time + random.below(60_000_000),
        10 => time.saturating_sub(random.below(30_000_000)),
        _ => time + random.below(2_000),
    }
}

fn damage(mut bytes: Vec<u8>, random: &mut SuiteRandom) -> Vec<u8> {
    match random.below(12) {
        0 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
        1 if !bytes.is_empty() => {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        2 if !bytes.is_empty() => {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.number() as u8;
        }
        _ => {}
    }
    bytes
}

/// Headers along a way through the decoders, then some bytes that look like headers too.
fn packet(program: &Generated, random: &mut SuiteRandom) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = 0;
    for _ in 0..random.between(1, 8) {
        let Some(node) = program.nodes.get(at) else { break };
        let way = random.below(node.targets.len() as u64 + 1) as usize;
        if let Some((_, layout)) = &node.header {
            let selector = if random.one_in(6) { random.value(8) } else { way as u128 + 1 };
            header(program, &program.layouts[*layout], selector, random, &mut bytes);
        }
        match node.targets.get(way) {
            Some(&target) => at = target,
            None => break,
        }
    }
    for _ in 0..random.below(3) {
        let layout = random.pick(&program.layouts);
        let selector = random.value(8);
        header(program, layout, selector, random, &mut bytes);
    }
    bytes.extend((0..random.below(9)).map(|index| index as u8));
    bytes
}

fn header(
    program: &Generated,
    layout: &GeneratedLayout,
    selector: u128,
    random: &mut SuiteRandom,
    bytes: &mut Vec<u8>,
) {
    let mut bits = Bits { bytes, used: 8 };
    let mut values: Vec<u128> = Vec::new();
    for (index, field) in layout.fields.iter().enumerate() {
        let there = field.when.is_none_or(|(on, over)| values[on] > over);
        let value = if index == 0 { selector } else { value(program, field, random) };
        values.push(value);
        match field.kind {
            _ if !there => {}
            FieldKind::Bytes(size, factor, less) => {
                let length = (values[size] * factor).saturating_sub(less).min(200);
                for at in 0..length {
                    let byte = if random.one_in(3) { random.number() as u8 } else { at as u8 % 4 };
                    bits.push(8, byte.into());
                }
            }
            _ => bits.push(field.width().unwrap_or(8), value),
        }
    }
}

/// A value that mostly fits the field's constraint and often comes again.
fn value(program: &Generated, field: &GeneratedField, random: &mut SuiteRandom) -> u128 {
    let width = field.width().unwrap_or(8);
    if let Some((low, high)) = field.constraint
        && !random.one_in(12)
    {
        let spread = (high - low).min(u128::from(u32::MAX)) as u64;
        return low + u128::from(random.below(spread.saturating_add(1).min(6)));
    }
    let known: Vec<u128> =
        program.values.iter().filter(|(other, _)| *other == width).map(|(_, value)| *value).collect();
    match random.below(4) {
        0 if !known.is_empty() => *random.pick(&known),
        1 | 2 => u128::from(random.below(4)) & (u128::MAX >> (128 - u32::from(width))),
        _ => random.value(width),
    }
}

/// Appends bits, the most significant first.
struct Bits<'a> {
    bytes: &'a mut Vec<u8>,
    /// Bits of the last byte that are taken.
    used: u8,
}

impl Bits<'_> {
    fn push(&mut self, width: u8, value: u128) {
        for bit in (0..width).rev() {
            if self.used == 8 {
                self.bytes.push(0);
                self.used = 0;
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> bit & 1) as u8) << (7 - self.used);
            }
            self.used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_lie_one_after_the_other() {
        let mut bytes = vec![0xee];
        let mut bits = Bits { bytes: &mut bytes, used: 8 };
        bits.push(3, 0b101);
        bits.push(13, 1);
        bits.push(4, 0xf);
        assert_eq!(bytes, [0xee, 0b1010_0000, 1, 0xf0]);
    }

    #[test]
    fn a_seed_repeats_and_times_go_both_ways() {
        let program = crate::program_generator::generate(4);
        let (a, b) = (generate(&program, 9, 300, 4), generate(&program, 9, 300, 4));
        assert!(a.frames.iter().eq(b.frames.iter()) && a.ports == b.ports);
        let times: Vec<u64> = a.frames.iter().map(|frame| frame.time).collect();
        assert!(
            times.windows(2).any(|pair| pair[0] > pair[1]) && times.windows(2).any(|pair| pair[0] < pair[1])
        );
    }
}
