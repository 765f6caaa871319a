//! Commit: counts verdicts and outputs of each batch in the ledger, in order of arrival.
//!
//! The idea: a verdict is a kind and an argument, so there are only as many different verdicts as there are
//! ports, sets and reasons. Each verdict has one cell of packets and bytes (a flood has one for each arrival
//! port). A packet adds to the cell of its verdict and to the cell of its arrival port. How much each port
//! sent is not counted packet by packet, but derived from the cells when a report is made.

pub(crate) mod moment;

use crate::pieces;
use exec::{Outputs, Resized};
use ir::{NO_SUCH_PORT, Program};
use packet::{Batch, NO_PORT, Verdict, VerdictKind};
use serde::Serialize;
use std::ops::AddAssign;
use std::sync::Arc;

/// A number of packets and the sum of their lengths on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// How many packets.
    pub packets: u64,
    /// Their lengths on the wire, in bytes.
    pub bytes: u64,
}

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Volume) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Volume {
    /// The sum of several volumes.
    pub fn sum<'a>(volumes: impl IntoIterator<Item = &'a Volume>) -> Volume {
        let mut total = Volume::default();
        volumes.into_iter().for_each(|&volume| total += volume);
        total
    }
}

/// The account of every packet of a run.
#[derive(Clone, Debug)]
pub struct Ledger {
    ports: u16,
    /// Sets of ports by index: existing ports only, each once.
    sets: Arc<[Vec<u16>]>,
    /// Where the cells of a kind of verdict begin, by the kind's number; the last cell of a kind takes
    /// arguments that do not exist.
    first: [u32; 8],
    /// The number of cells of a kind, minus one.
    last: [u32; 8],
    cells: Vec<Volume>,
    /// By arrival port; the last takes ports that do not exist.
    received: Vec<Volume>,
    /// Copies and made packets by port; index 0 is not used.
    extra: Vec<Volume>,
    /// By port, the difference between what left and what came in: fragments after the first one, and bytes
    /// by which packets grew or shrank.
    grown: Vec<(u64, i64)>,
    copies: u64,
    made: u64,
    injected: u64,
    lost: u64,
    /// Segments that were counted as their packets.
    segments: u64,
}

impl Ledger {
    /// An empty ledger for a program on a gateway with `ports` ports.
    pub fn new(program: &Program, ports: u16) -> Ledger {
        let exists = |port: &u16| (1..=ports).contains(port);
        let sets: Arc<[Vec<u16>]> = program
            .port_sets
            .iter()
            .map(|set| {
                let mut set: Vec<u16> = set.iter().copied().filter(exists).collect();
                set.sort_unstable();
                set.dedup();
                set
            })
            .collect();
        let by_port = u32::from(ports) + 1;
        let by_reason = program.reasons.len() as u32;
        let mut first = [0; 8];
        let mut last = [0; 8];
        let mut end = 1;
        for (kind, size) in [
            (VerdictKind::Send, by_port),
            (VerdictKind::Flood, by_port),
            (VerdictKind::Multicast, sets.len() as u32),
            (VerdictKind::Punt, by_reason),
            (VerdictKind::Drop, by_reason),
        ] {
            first[kind as usize] = end;
            last[kind as usize] = size;
            end += size + 1;
        }
        Ledger {
            ports,
            sets,
            first,
            last,
            cells: vec![Volume::default(); end as usize],
            received: vec![Volume::default(); ports as usize + 2],
            extra: vec![Volume::default(); ports as usize + 1],
            grown: vec![(0, 0); ports as usize + 1],
            copies: 0,
            made: 0,
            injected: 0,
            lost: 0,
            segments: 0,
        }
    }

    /// Counts every packet of the batch, which lies in `memory`, and everything in `outputs`. A `send` to a
    /// port that does not exist becomes a drop in the batch, too. A packet counts with the length with which
    /// it came in, except at the ports by which it leaves; a segment that stands for its packets counts
    /// as these.
    pub fn commit(&mut self, memory: &[u8], batch: &mut Batch, outputs: &Outputs) {
        let ports = u32::from(self.ports);
        let stray = self.received.len() - 1;
        for index in 0..batch.len {
            let mut verdict = batch.verdict[index];
            if verdict.kind() == VerdictKind::Send && u32::from(verdict.argument()).wrapping_sub(1) >= ports {
                verdict = Verdict::drop(NO_SUCH_PORT);
                batch.verdict[index] = verdict;
            }
            let port = u32::from(batch.port[index]);
            // This is computed without a branch: in a learning switch send and flood alternate at random.
            let argument =
                if verdict.kind() == VerdictKind::Flood { port } else { u32::from(verdict.argument()) };
            // This uses the number itself and not `kind()`, whose five cases become a jump that mixed traffic
            // mispredicts. No kind of verdict has the numbers 0, 6 and 7; their cell is that of packets
            // without a verdict.
            let kind = (verdict.bits() >> 24).min(7) as usize;
            let cell = self.first[kind] + argument.min(self.last[kind]);
            let volume = Volume { packets: 1, bytes: u64::from(batch.wire[index]) };
            self.cells[cell as usize] += volume;
            self.received[(port as usize).min(stray)] += volume;
        }
        if batch.unfinished {
            (0..batch.len).for_each(|index| self.commit_segment(memory, batch, index));
        }
        for change in &outputs.resized {
            self.commit_resized(memory, batch, change);
        }
        if !outputs.packets.is_empty() {
            self.commit_outputs(outputs);
        }
    }

    /// The cells in which a packet that has its verdict was counted.
    fn counted(&mut self, batch: &Batch, index: usize) -> [&mut Volume; 2] {
        let (verdict, arrival) = (batch.verdict[index], batch.port[index]);
        let argument = if verdict.kind() == VerdictKind::Flood { arrival } else { verdict.argument() };
        let kind = (verdict.bits() >> 24).min(7) as usize;
        let cell = (self.first[kind] + u32::from(argument).min(self.last[kind])) as usize;
        let stray = self.received.len() - 1;
        [&mut self.cells[cell], &mut self.received[usize::from(arrival).min(stray)]]
    }

    /// Counts the packets that a segment stands for in its place.
    fn commit_segment(&mut self, memory: &[u8], batch: &Batch, index: usize) {
        let Some(segments) = batch.packets_of(memory, index) else { return };
        let (packets, bytes) = (segments.count() as u64 - 1, segments.wire_bytes());
        for volume in self.counted(batch, index) {
            volume.packets += packets;
            volume.bytes = volume.bytes + bytes - u64::from(batch.wire[index]);
        }
        self.segments += 1;
    }

    /// Corrects the count of a packet whose length has changed.
    fn commit_resized(&mut self, memory: &[u8], batch: &Batch, change: &Resized) {
        let index = change.packet as usize;
        let (verdict, arrival) = (batch.verdict[index], batch.port[index]);
        let (before, now) = (u64::from(change.wire), u64::from(batch.wire[index]));
        for volume in self.counted(batch, index) {
            volume.bytes = volume.bytes + before - now;
        }
        let pieces = pieces::of(memory, batch, change);
        let (count, left) = pieces.map_or((1, now), |pieces| (pieces.count() as u64, pieces.wire()));
        let Ledger { ports, sets, grown, .. } = self;
        let mut leaves = |port: u16| {
            if let Some((packets, bytes)) = grown.get_mut(usize::from(port)) {
                *packets += count - 1;
                *bytes += left as i64 - before as i64;
            }
        };
        match verdict.kind() {
            VerdictKind::Send => leaves(verdict.argument()),
            VerdictKind::Flood => (1..=*ports).filter(|&port| port != arrival).for_each(leaves),
            VerdictKind::Multicast => {
                sets.get(usize::from(verdict.argument()))
                    .into_iter()
                    .flatten()
                    .for_each(|&port| leaves(port));
            }
            VerdictKind::Pending | VerdictKind::Punt | VerdictKind::Drop => {}
        }
    }

    /// Counts copies and made packets that left without a received packet, such as those of a timer.
    pub fn commit_outputs(&mut self, outputs: &Outputs) {
        for output in &outputs.packets {
            if output.copy {
                self.copies += 1;
            } else {
                self.made += 1;
            }
            self.commit_extra(output.port, output.wire);
        }
    }

    /// Counts a frame that the control plane sends by a port, past the program.
    pub fn commit_injected(&mut self, port: u16, wire: u32) {
        self.injected += 1;
        self.commit_extra(port, wire);
    }

    fn commit_extra(&mut self, port: u16, wire: u32) {
        match self.extra.get_mut(usize::from(port)) {
            Some(extra) if port != 0 => *extra += Volume { packets: 1, bytes: u64::from(wire) },
            _ => self.lost += 1,
        }
    }

    /// Adds another ledger of the same program with the same number of ports.
    pub fn add(&mut self, other: &Ledger) {
        let both = |ours: &mut Vec<Volume>, theirs: &[Volume]| {
            ours.iter_mut().zip(theirs).for_each(|(ours, &theirs)| *ours += theirs);
        };
        both(&mut self.cells, &other.cells);
        both(&mut self.received, &other.received);
        both(&mut self.extra, &other.extra);
        for (ours, theirs) in self.grown.iter_mut().zip(&other.grown) {
            *ours = (ours.0 + theirs.0, ours.1 + theirs.1);
        }
        self.copies += other.copies;
        self.made += other.made;
        self.injected += other.injected;
        self.lost += other.lost;
        self.segments += other.segments;
    }

    /// How many ports there are; they are numbered from 1.
    pub fn ports(&self) -> u16 {
        self.ports
    }

    /// All packets that arrived.
    pub fn received(&self) -> Volume {
        Volume::sum(&self.received)
    }

    /// Packets that arrived by a port.
    pub fn received_by(&self, port: u16) -> Volume {
        if port == 0 || port > self.ports { Volume::default() } else { self.received[port as usize] }
    }

    /// Packets with a verdict of this kind.
    pub fn verdicts(&self, kind: VerdictKind) -> Volume {
        Volume::sum(self.kind(kind))
    }

    /// Packets dropped for a reason, by its index in the program.
    pub fn dropped(&self, reason: u16) -> Volume {
        self.kind(VerdictKind::Drop).get(reason as usize).copied().unwrap_or_default()
    }

    /// Packets punted for a reason, by its index in the program.
    pub fn punted(&self, reason: u16) -> Volume {
        self.kind(VerdictKind::Punt).get(reason as usize).copied().unwrap_or_default()
    }

    /// Every packet with a `send`, `flood` or `multicast` verdict, once.
    pub fn forwarded(&self) -> Volume {
        let mut total = self.verdicts(VerdictKind::Send);
        total += self.verdicts(VerdictKind::Flood);
        total += self.verdicts(VerdictKind::Multicast);
        total
    }

    /// Every copy that left by a port: by verdict, `copy to` or `emit`, or sent by the control plane.
    pub fn transmitted_by(&self, port: u16) -> Volume {
        if port == 0 || port > self.ports {
            return Volume::default();
        }
        let mut total = self.kind(VerdictKind::Send)[port as usize];
        for (arrival, &flooded) in self.kind(VerdictKind::Flood).iter().enumerate() {
            if arrival != port as usize {
                total += flooded;
            }
        }
        for (set, &sent) in self.sets.iter().zip(self.kind(VerdictKind::Multicast)) {
            if set.contains(&port) {
                total += sent;
            }
        }
        total += self.extra[port as usize];
        let (packets, bytes) = self.grown[port as usize];
        Volume { packets: total.packets + packets, bytes: total.bytes.wrapping_add_signed(bytes) }
    }

    /// Every copy that left.
    pub fn transmitted(&self) -> Volume {
        let mut total = Volume::default();
        (1..=self.ports).for_each(|port| total += self.transmitted_by(port));
        total
    }

    /// The ports that a verdict on a packet from `arrival` reaches, in ascending order.
    pub fn reaches(&self, verdict: Verdict, arrival: u16) -> impl Iterator<Item = u16> + '_ {
        let all = 1..=self.ports;
        let (range, except, set) = match verdict.kind() {
            VerdictKind::Send if all.contains(&verdict.argument()) => {
                (Some(verdict.argument()..=verdict.argument()), NO_PORT, None)
            }
            VerdictKind::Flood => (Some(all), arrival, None),
            VerdictKind::Multicast => (None, NO_PORT, self.sets.get(verdict.argument() as usize)),
            _ => (None, NO_PORT, None),
        };
        let range = range.into_iter().flatten().filter(move |&port| port != except);
        range.chain(set.into_iter().flatten().copied())
    }

    /// Copies of received packets that the program sent in addition to verdicts, lost ones included.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Packets that the program made, lost ones included.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Frames that the control plane sent past the program, lost ones included.
    pub fn injected(&self) -> u64 {
        self.injected
    }

    /// Copies, made packets and frames of the control plane for ports that do not exist.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Segments that the program got whole, each counted as the packets that it stands for.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Packets without a verdict that the program has: 0, unless a back end is faulty.
    pub fn unaccounted(&self) -> u64 {
        let strays = [VerdictKind::Multicast, VerdictKind::Punt, VerdictKind::Drop]
            .map(|kind| self.kind(kind)[self.last[kind as usize] as usize].packets);
        self.cells[0].packets + strays.iter().sum::<u64>()
    }

    fn kind(&self, kind: VerdictKind) -> &[Volume] {
        let first = self.first[kind as usize] as usize;
        &self.cells[first..=first + self.last[kind as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exec::Output;
    use ir::Reason;
    use packet::VirtioHeader;
    use packet::fragment::Fragmenting;

    fn program() -> Program {
        let reason = |name: &str| Reason { name: name.into(), help: String::new() };
        Program {
            reasons: vec![reason("no_such_port"), reason("not_web")],
            port_sets: vec![vec![2, 9, 1, 2], vec![9]],
            ..Program::default()
        }
    }

    fn batch(packets: &[(u16, u32, Verdict)]) -> Batch {
        let mut batch = Batch::new();
        for &(port, wire, verdict) in packets {
            assert!(batch.push(0, wire, wire, port, 0));
            batch.verdict[batch.len - 1] = verdict;
        }
        batch
    }

    #[test]
    fn every_kind_is_counted_once_and_each_copy_on_its_port() {
        let mut ledger = Ledger::new(&program(), 3);
        let mut batch = batch(&[
            (1, 100, Verdict::send(2)),
            (1, 10, Verdict::FLOOD),
            (3, 20, Verdict::FLOOD),
            (2, 1000, Verdict::multicast(0)),
            (2, 1, Verdict::multicast(1)),
            (1, 7, Verdict::drop(1)),
            (1, 8, Verdict::punt(1)),
        ]);
        ledger.commit(&[], &mut batch, &Outputs::default());
        assert_eq!(ledger.received(), Volume { packets: 7, bytes: 1146 });
        assert_eq!(ledger.received_by(1), Volume { packets: 4, bytes: 125 });
        assert_eq!(ledger.forwarded(), Volume { packets: 5, bytes: 1131 });
        assert_eq!(ledger.transmitted_by(1), Volume { packets: 2, bytes: 1020 });
        assert_eq!(ledger.transmitted_by(2), Volume { packets: 4, bytes: 1130 });
        assert_eq!(ledger.transmitted_by(3), Volume { packets: 1, bytes: 10 });
        assert_eq!(ledger.transmitted(), Volume { packets: 7, bytes: 2160 });
        assert_eq!(ledger.dropped(1), Volume { packets: 1, bytes: 7 });
        assert_eq!(ledger.punted(1), Volume { packets: 1, bytes: 8 });
        assert_eq!(ledger.unaccounted(), 0);
    }

    #[test]
    fn a_send_to_a_port_that_does_not_exist_becomes_a_drop() {
        let mut ledger = Ledger::new(&program(), 3);
        let mut batch =
            batch(&[(1, 60, Verdict::send(0)), (1, 60, Verdict::send(4)), (1, 60, Verdict::send(u16::MAX))]);
        ledger.commit(&[], &mut batch, &Outputs::default());
        assert_eq!(batch.verdicts(), [Verdict::drop(NO_SUCH_PORT); 3]);
        assert_eq!(ledger.dropped(NO_SUCH_PORT).packets, 3);
        assert_eq!(ledger.verdicts(VerdictKind::Send).packets, 0);
        assert_eq!(ledger.transmitted().packets, 0);
    }

    #[test]
    fn a_packet_without_a_verdict_is_noticed() {
        let mut ledger = Ledger::new(&program(), 3);
        let mut batch =
            batch(&[(1, 60, Verdict::PENDING), (1, 60, Verdict::drop(9)), (1, 60, Verdict::multicast(7))]);
        ledger.commit(&[], &mut batch, &Outputs::default());
        assert_eq!(ledger.unaccounted(), 3);
    }

    #[test]
    fn a_packet_counts_as_it_came_and_leaves_as_it_is() {
        let mut ledger = Ledger::new(&program(), 3);
        let mut memory = vec![0; 1_000];
        memory[..4].copy_from_slice(&[0x45, 0, (1_000_u16 >> 8) as u8, (1_000 & 0xff) as u8]);
        let mut batch = batch(&[
            (1, 1_000, Verdict::FLOOD),
            (1, 90, Verdict::send(2)),
            (2, 90, Verdict::drop(1)),
            (1, 70, Verdict::multicast(0)),
        ]);
        let fragmenting = Some(Fragmenting { at: 0, mtu: 520 });
        let change = |packet, wire, fragmenting| Resized { packet, wire, fragmenting };
        let outputs = Outputs {
            resized: vec![
                change(0, 1_000, fragmenting),
                change(1, 60, None),
                change(2, 60, fragmenting),
                change(3, 100, None),
            ],
            ..Outputs::default()
        };
        ledger.commit(&memory, &mut batch, &outputs);
        assert_eq!(ledger.received(), Volume { packets: 4, bytes: 1_220 });
        assert_eq!(ledger.forwarded(), Volume { packets: 3, bytes: 1_160 });
        assert_eq!(ledger.dropped(1), Volume { packets: 1, bytes: 60 });
        let fragments = Volume { packets: 2, bytes: 1_020 };
        assert_eq!(ledger.transmitted_by(3), fragments);
        assert_eq!(ledger.transmitted_by(2), Volume { packets: 4, bytes: 1_020 + 90 + 70 });
        assert_eq!(ledger.transmitted_by(1), Volume { packets: 1, bytes: 70 });
        assert_eq!(ledger.transmitted(), Volume { packets: 7, bytes: 2 * 1_020 + 90 + 2 * 70 });
    }

    /// A segment of 2,000 bytes of TCP, and what says that it is to be cut into packets with 600.
    fn segment() -> (Vec<u8>, VirtioHeader) {
        let mut frame = vec![0; 54 + 2_000];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40_u16 + 2_000).to_be_bytes());
        frame[23] = 6;
        frame[46] = 0x50;
        let mut header = [1, 1, 54, 0, 0, 0, 34, 0, 16, 0];
        for (place, number) in [(2, 54_u16), (4, 600), (6, 34), (8, 16)] {
            header[place..place + 2].copy_from_slice(&number.to_ne_bytes());
        }
        (frame, VirtioHeader::read(&header))
    }

    #[test]
    fn a_segment_that_stands_for_its_packets_counts_as_these() {
        let (frame, virtio) = segment();
        let verdicts = [Verdict::send(2), Verdict::FLOOD, Verdict::drop(1), Verdict::send(9)];
        let run = |as_packets: bool| {
            let mut ledger = Ledger::new(&program(), 3);
            let mut batch = Batch::new();
            for (index, verdict) in verdicts.into_iter().enumerate() {
                let wire = frame.len() as u32;
                batch.push(0, wire, wire, 1, 0);
                batch.leave_unfinished(virtio);
                batch.verdict[index] = verdict;
                if as_packets {
                    batch.count_as_packets(index);
                }
            }
            ledger.commit(&frame, &mut batch, &Outputs::default());
            ledger
        };
        let (packets, whole) = (run(true), run(false));
        assert_eq!((packets.segments(), whole.segments()), (4, 0));
        let each = Volume { packets: 4, bytes: 2_000 + 4 * 54 };
        let sum = |count: u64| Volume { packets: count * each.packets, bytes: count * each.bytes };
        assert_eq!([packets.received(), packets.received_by(1)], [sum(4); 2]);
        assert_eq!([packets.dropped(1), packets.dropped(NO_SUCH_PORT), packets.transmitted_by(3)], [each; 3]);
        assert_eq!([packets.transmitted_by(2), packets.forwarded()], [sum(2); 2]);
        assert_eq!(whole.received(), Volume { packets: 4, bytes: 4 * 2_054 });
        let mut both = packets.clone();
        both.add(&packets);
        assert_eq!((both.segments(), both.received(), both.unaccounted()), (8, sum(8), 0));
    }

    #[test]
    fn copies_and_made_packets_are_transmitted_but_not_forwarded() {
        let mut ledger = Ledger::new(&program(), 2);
        let output = |port, copy| Output { port, cause: 0, start: 0, captured: 0, wire: 50, time: 0, copy };
        let outputs = Outputs {
            packets: vec![output(2, true), output(1, false), output(0, false), output(3, true)],
            ..Outputs::default()
        };
        ledger.commit(&[], &mut batch(&[(1, 60, Verdict::drop(1))]), &outputs);
        assert_eq!(ledger.forwarded(), Volume::default());
        assert_eq!(ledger.transmitted(), Volume { packets: 2, bytes: 100 });
        assert_eq!((ledger.copies(), ledger.made(), ledger.lost()), (2, 2, 2));
    }
}
