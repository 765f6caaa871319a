//! Checksums that a sender left open: which packets the program gets with one, and which leave with one.
//!
//! ```text
//! port ─► open ─► does the program admit the class? ─ no ─► finished
//!                        │ yes: run                             │
//!                        ▼                                      ▼
//!            does each port that it goes to take it? ─ no ─► finished ─► everything else
//!                        │ yes
//!                        ▼
//!                   leaves open
//! ```
//!
//! A finished packet that is left open costs nothing here, and the account does not see the difference.

use crate::{Ledger, pieces};
use exec::{OpenProof, Outputs};
use packet::{Batch, VerdictKind, VirtioHeader};

/// Finishes the checksums that the program must not get open.
#[inline]
pub(super) fn admit(proof: OpenProof, memory: &mut [u8], batch: &mut Batch) {
    if !batch.unfinished {
        return;
    }
    if proof.classes.is_empty() {
        return batch.finish_checksums(memory);
    }
    for index in 0..batch.len {
        let virtio = batch.virtio(index);
        if !virtio.is_open() {
            continue;
        }
        let whole = batch.captured[index] == batch.wire[index];
        let class = batch.bytes(memory, index).and_then(|frame| virtio.open_class(frame));
        if !whole || !class.is_some_and(|class| proof.classes.contains(class)) {
            batch.finish_checksum(memory, index);
        }
    }
}

/// Tells the back end which checksums are open, if the program may send bytes of such packets while it runs.
#[inline]
pub(super) fn tell(proof: OpenProof, batch: &Batch, outputs: &mut Outputs) {
    if batch.unfinished && proof.quotes {
        outputs.open.extend((0..batch.len).map(|index| batch.virtio(index)));
    }
}

/// Finishes the checksums of packets of which anybody but a port that takes them open gets bytes; returns how
/// many leave open. `take_open` says of each port whether it takes packets with an open checksum. Segments
/// leave open by every port, since whoever cuts them sums each piece.
#[inline]
pub(super) fn settle(
    ledger: &Ledger,
    take_open: &[bool],
    memory: &mut [u8],
    batch: &mut Batch,
    outputs: &mut Outputs,
) -> u64 {
    if !batch.unfinished {
        return 0;
    }
    for (index, virtio) in outputs.open.drain(..).enumerate() {
        if batch.virtio(index).is_open() && !virtio.is_open() {
            batch.virtio[index] = (virtio, batch.frame[index]);
        }
    }
    let takes = |port: u16| take_open.get(usize::from(port).wrapping_sub(1)).is_some_and(|takes| *takes);
    let (mut resized, mut open) = (outputs.resized.iter().peekable(), 0);
    for index in 0..batch.len {
        let change = resized.next_if(|change| change.packet as usize == index);
        let virtio = batch.virtio(index);
        if !virtio.is_open() {
            continue;
        }
        let (verdict, arrival) = (batch.verdict[index], batch.port[index]);
        let leaves =
            matches!(verdict.kind(), VerdictKind::Send | VerdictKind::Flood | VerdictKind::Multicast);
        let in_pieces = change.is_some_and(|change| pieces::of(memory, batch, change).is_some());
        let taken = leaves && !in_pieces && ledger.reaches(verdict, arrival).all(takes);
        if taken || leaves && !in_pieces && virtio.segments() {
            open += match batch.packets_of(memory, index) {
                Some(segments) if taken => segments.count() as u64,
                Some(_) => 0,
                None => 1,
            };
        } else {
            batch.finish_checksum(memory, index);
        }
    }
    open
}

/// Long segments are cut on their way out, and whoever cuts them sums each piece: they get the sum to begin
/// with. One that leaves in fragments of IP keeps its finished sum. So does one in which the headers are not
/// where they were any more, as in a tunnel that the program put it into: nobody can cut it, and the
/// interface refuses it where it is too long. What is open has this sum already.
pub(super) fn restart(memory: &mut [u8], batch: &mut Batch, outputs: &Outputs) {
    if !batch.unfinished {
        return;
    }
    let mut resized = outputs.resized.iter().peekable();
    for index in 0..batch.len {
        let virtio = batch.virtio(index);
        let change = resized.next_if(|change| change.packet as usize == index);
        if virtio == VirtioHeader::NONE
            || virtio.is_open()
            || change.is_some_and(|change| pieces::of(memory, batch, change).is_some())
        {
            continue;
        }
        let start = batch.frame[index] as usize;
        let frame = memory.get_mut(start..start + batch.captured[index] as usize);
        if !frame.is_some_and(|frame| virtio.restart(frame)) {
            batch.leave_as_it_is(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::Program;
    use packet::fragment::Fragmenting;
    use packet::region::SLACK;
    use packet::{OpenClass, OpenClasses, Verdict};

    /// Bytes that a frame has for itself.
    const ROOM: usize = 256;
    const TAKE: [bool; 3] = [true, false, true];

    fn proof() -> OpenProof {
        OpenProof { classes: OpenClass::ALL.into_iter().collect(), quotes: true }
    }

    /// An open datagram of 142 bytes and what is left to do with it, and the finished one.
    fn datagram() -> (Vec<u8>, VirtioHeader, Vec<u8>) {
        let mut frame = vec![9; 142];
        frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 128, 0, 1, 0, 0, 9, 17]);
        let mut header = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        header[8..10].copy_from_slice(&6u16.to_ne_bytes());
        let virtio = VirtioHeader::read(&header);
        assert!(virtio.restart(&mut frame));
        let mut finished = frame.clone();
        assert!(virtio.complete(&mut finished) && finished != frame);
        (frame, virtio, finished)
    }

    /// So many of them from port 1, admitted by this proof.
    fn admitted(count: usize, proof: OpenProof) -> (Vec<u8>, Batch) {
        let (frame, virtio, _) = datagram();
        let (mut memory, mut batch) = (vec![0; count * ROOM + SLACK], Batch::new());
        for index in 0..count {
            memory[index * ROOM..][..frame.len()].copy_from_slice(&frame);
            batch.push((index * ROOM) as u64, frame.len() as u32, frame.len() as u32, 1, 0);
            batch.leave_unfinished(virtio);
        }
        admit(proof, &mut memory, &mut batch);
        (memory, batch)
    }

    /// Which packets are open; the others are finished.
    fn open(memory: &[u8], batch: &Batch) -> Vec<bool> {
        let (frame, _, finished) = datagram();
        let is_open = |index| {
            let (bytes, open) = (batch.bytes(memory, index).unwrap(), batch.virtio(index).is_open());
            assert_eq!(bytes, if open { &frame } else { &finished }, "packet {index}");
            open
        };
        (0..batch.len).map(is_open).collect()
    }

    #[test]
    fn only_admitted_classes_and_whole_packets_stay_open() {
        let (memory, batch) = admitted(2, proof());
        assert_eq!(open(&memory, &batch), [true; 2]);
        let others = OpenClass::ALL.into_iter().filter(|class| class.six || !class.udp || class.tagged);
        for classes in [OpenClasses::NONE, others.collect()] {
            let (memory, batch) = admitted(2, OpenProof { classes, quotes: true });
            assert_eq!(open(&memory, &batch), [false; 2]);
        }
        let (frame, virtio, _) = datagram();
        let (mut memory, mut batch) = (frame.clone(), Batch::new());
        batch.push(0, frame.len() as u32, frame.len() as u32 + 1, 1, 0);
        batch.leave_unfinished(virtio);
        admit(proof(), &mut memory, &mut batch);
        assert_eq!(open(&memory, &batch), [false], "more was sent than is there");
    }

    #[test]
    fn what_anybody_but_a_port_that_takes_it_gets_is_finished() {
        let (send, flood) = (Verdict::send, Verdict::FLOOD);
        let verdicts =
            [send(1), send(2), send(3), send(4), flood, Verdict::multicast(0), Verdict::multicast(1)];
        let others = [Verdict::drop(0), Verdict::punt(0), send(3), send(3)];
        let all = [&verdicts[..], &others].concat();
        let program = Program { port_sets: vec![vec![1, 3], vec![2, 3]], ..Program::default() };
        let ledger = Ledger::new(&program, 3);
        let (mut memory, mut batch) = admitted(all.len(), proof());
        batch.verdicts_mut().copy_from_slice(&all);
        let mut outputs = Outputs::default();
        tell(proof(), &batch, &mut outputs);
        // The program has sent bytes of the one before the last, which is finished then; the last is to be
        // cut.
        let last = all.len() - 1;
        let frame = (last - 1) * ROOM..(last - 1) * ROOM + 142;
        outputs.open[last - 1].complete(&mut memory[frame]);
        outputs.open[last - 1] = VirtioHeader::NONE;
        let fragmenting = Some(Fragmenting { at: 14, mtu: 100 });
        outputs.resized.push(exec::Resized { packet: last as u32, wire: 142, fragmenting });
        let left = settle(&ledger, &TAKE, &mut memory, &mut batch, &mut outputs);
        let expected = [true, false, true, true, false, true, false, false, false, false, false];
        assert_eq!(open(&memory, &batch), expected);
        assert_eq!(left, 4);
        restart(&mut memory, &mut batch, &outputs);
        assert_eq!(open(&memory, &batch), expected, "nothing begins anew");
    }
}
