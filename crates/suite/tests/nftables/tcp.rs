//! Sequences of TCP as two ends make them that do not know of the router: handshakes, data both ways, ends,
//! resets; and between them segments that no end would send, or not now.

use crate::segment::Segment;
use suite::random::SuiteRandom;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// A segment of a sequence, and who sends it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) from_client: bool,
    pub(crate) label: &'static str,
    pub(crate) segment: Segment,
    /// Not the segment itself, but an error of ICMP about it, which goes back to its sender.
    pub(crate) as_error: bool,
}

/// What an end knows.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// The next number that it sends.
    next: u32,
    /// What it has received.
    seen: u32,
    window: u16,
    shift: Option<u8>,
}

/// Two ends, and what they have sent.
pub(crate) struct Talk<'a> {
    random: &'a mut SuiteRandom,
    ends: [End; 2],
    pub(crate) steps: Vec<Step>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(random: &'a mut SuiteRandom) -> Talk<'a> {
        let mut talk = Talk { random, ends: [End::default(); 2], steps: Vec::new() };
        talk.begin();
        talk
    }

    fn begin(&mut self) {
        for end in &mut self.ends {
            let any = self.random.number() as u32;
            let first = *self.random.pick(&[any, any, any, 0xffff_ff00, 0x7fff_ff00, 0]);
            let window = *self.random.pick(&[1000, 8192, 29_200, 65_535]);
            let shift = self.random.one_in(2).then(|| self.random.below(9) as u8);
            *end = End { next: first, seen: 0, window, shift };
        }
    }

    /// A segment that its end would send now.
    fn send(&mut self, from_client: bool, flags: u8, payload: u32, label: &'static str) {
        let (own, other) = (usize::from(!from_client), usize::from(from_client));
        if flags & ACK != 0 {
            self.ends[own].seen = self.ends[other].next;
        }
        let End { next, seen, window, shift, .. } = self.ends[own];
        let shift = shift.filter(|_| flags & SYN != 0);
        let ack = if flags & ACK != 0 { seen } else { 0 };
        let segment = Segment { flags, seq: next, ack, window, shift, payload };
        self.steps.push(Step { from_client, label, segment, as_error: false });
        let more = payload + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        self.ends[own].next = next.wrapping_add(more);
    }

    /// A segment that changes nothing of what its end knows.
    fn stray(&mut self, from_client: bool, label: &'static str, change: impl FnOnce(&mut Segment)) {
        let (own, other) = (self.ends[usize::from(!from_client)], self.ends[usize::from(from_client)]);
        let mut segment = Segment {
            flags: ACK,
            seq: own.next,
            ack: other.next,
            window: own.window,
            shift: None,
            payload: 0,
        };
        change(&mut segment);
        self.steps.push(Step { from_client, label, segment, as_error: false });
    }

    fn again(&mut self) {
        let from = self.steps.len().saturating_sub(6);
        let index = self.random.between(from as u64, self.steps.len() as u64 - 1) as usize;
        let mut step = self.steps[index].clone();
        step.label = "again";
        self.steps.push(step);
    }

    pub(crate) fn handshake(&mut self) {
        if self.random.one_in(12) {
            // Data in the SYN (RFC 7413).
            self.send(true, SYN, 5, "SYN with data");
        } else {
            self.send(true, SYN, 0, "SYN");
        }
        if self.random.one_in(6) {
            self.again();
        }
        if self.random.one_in(10) {
            self.refused();
        } else if self.random.one_in(12) {
            self.oddity();
        }
        self.send(false, SYN | ACK, 0, "SYN,ACK");
        if self.random.one_in(6) {
            self.again();
        }
        self.send(true, ACK, 0, "ACK of the handshake");
    }

    /// The server refuses, and the client tries again with other numbers.
    fn refused(&mut self) {
        let ack = self.ends[0].next;
        self.stray(false, "refusal", |segment| {
            *segment = Segment { flags: RST | ACK, seq: 0, ack, window: 0, ..Segment::default() };
        });
        self.begin();
        self.send(true, SYN, 0, "SYN after a refusal");
    }

    pub(crate) fn data(&mut self) {
        for _ in 0..self.random.below(8) {
            let from_client = self.random.one_in(2);
            let (own, other) = (self.ends[usize::from(!from_client)], self.ends[usize::from(from_client)]);
            match self.random.below(9) {
                0..=4 => {
                    let waiting = own.next.wrapping_sub(other.seen);
                    let room = u32::from(other.window).saturating_sub(waiting);
                    let size = (*self.random.pick(&[1, 5, 100, 700])).min(room);
                    if size > 0 {
                        self.send(from_client, ACK | PSH, size, "data");
                    }
                }
                5 | 6 => self.send(from_client, ACK, 0, "ACK"),
                7 => self.again(),
                _ => self.oddity(),
            }
        }
    }

    /// Something that does not belong here.
    fn oddity(&mut self) {
        let from_client = self.random.one_in(2);
        let (own, other) = (self.ends[usize::from(!from_client)], self.ends[usize::from(from_client)]);
        let near = self.random.between(1, 900) as u32;
        match self.random.below(20) {
            0 => self.stray(from_client, "keepalive", |segment| segment.seq = own.next.wrapping_sub(1)),
            1 => self.stray(from_client, "beyond the window", |segment| {
                segment.seq = own.next.wrapping_add(20_000_000);
                segment.payload = 10;
            }),
            2 => self.stray(from_client, "ACK of what was never sent", |segment| {
                segment.ack = other.next.wrapping_add(near);
            }),
            3 => self.stray(from_client, "ACK of long ago", |segment| {
                segment.ack = other.next.wrapping_sub(20_000_000);
            }),
            4 => self.stray(from_client, "data of long ago", |segment| {
                segment.seq = own.next.wrapping_sub(20_000_000);
                segment.payload = 10;
            }),
            5 => self.stray(from_client, "reset in the window", |segment| {
                (segment.flags, segment.seq) = (RST, own.next.wrapping_add(near));
            }),
            6 => self.stray(from_client, "reset far outside", |segment| {
                (segment.flags, segment.seq) = (RST, own.next.wrapping_add(1 << 30));
            }),
            7 => self.stray(from_client, "reset of long ago", |segment| {
                (segment.flags, segment.seq) = (RST, own.next.wrapping_sub(1 << 30));
            }),
            8 => self.stray(from_client, "SYN in between", |segment| {
                (segment.flags, segment.ack) = (SYN, 0);
            }),
            9 => self.stray(from_client, "SYN of other numbers", |segment| {
                (segment.flags, segment.seq, segment.ack) = (SYN, own.next.wrapping_add(1 << 30), 0);
            }),
            10 => self.stray(from_client, "SYN,ACK in between", |segment| segment.flags = SYN | ACK),
            11 | 12 => {
                let flags = *self.random.pick(&[0, 0x01, 0x03, 0x06, 0x29, 0x3f, 0x08, 0x07]);
                self.stray(from_client, "flags", |segment| segment.flags = flags);
            }
            13 => self.stray(from_client, "no window", |segment| segment.window = 0),
            14 => self.stray(from_client, "behind a hole", |segment| {
                (segment.seq, segment.payload) = (own.next.wrapping_add(100), 50);
            }),
            15 => self.stray(from_client, "urgent", |segment| segment.flags = ACK | 0x20),
            16 | 17 => {
                let mut step = self.steps[self.steps.len() - 1].clone();
                (step.as_error, step.label) = (true, "error");
                self.steps.push(step);
            }
            18 => {
                let mut step = self.steps[self.steps.len() - 1].clone();
                (step.as_error, step.label) = (true, "error of other numbers");
                step.segment.seq = step.segment.seq.wrapping_add(1 << 30);
                self.steps.push(step);
            }
            _ => self.stray(from_client, "reset with an empty ACK", |segment| {
                (segment.flags, segment.seq, segment.ack) = (RST | ACK, own.next, 0);
            }),
        }
    }

    pub(crate) fn end(&mut self) {
        let client = self.random.one_in(2);
        match self.random.below(6) {
            0 | 1 => {
                self.send(client, FIN | ACK, 0, "FIN");
                self.send(!client, ACK, 0, "ACK of a FIN");
                if self.random.one_in(3) {
                    self.send(!client, ACK | PSH, 20, "data after a FIN");
                    self.send(client, ACK, 0, "ACK after a FIN");
                }
                self.send(!client, FIN | ACK, 0, "other FIN");
                self.send(client, ACK, 0, "last ACK");
            }
            2 => {
                self.send(client, FIN | ACK, 0, "FIN");
                self.send(!client, FIN | ACK, 0, "other FIN");
                self.send(client, ACK, 0, "last ACK");
            }
            3 => {
                // Both at once: neither acknowledges the other's.
                self.send(client, FIN | ACK, 0, "FIN");
                let seen = self.ends[usize::from(client)].seen;
                let next = self.ends[usize::from(client)].next;
                self.stray(!client, "FIN at once", |segment| {
                    (segment.flags, segment.ack) = (FIN | ACK, seen);
                });
                self.ends[usize::from(client)].next = next.wrapping_add(1);
                self.send(client, ACK, 0, "last ACK");
                self.send(!client, ACK, 0, "last ACK");
            }
            4 => {
                let next = self.ends[usize::from(!client)].next;
                self.stray(client, "reset", |segment| (segment.flags, segment.seq) = (RST, next));
            }
            _ => self.stray(client, "reset with an ACK", |segment| segment.flags = RST | ACK),
        }
        if self.random.one_in(3) {
            self.again();
        }
        if self.random.one_in(4) {
            self.oddity();
        }
        if self.random.one_in(4) {
            self.begin();
            self.send(true, SYN, 0, "SYN after the end");
            self.send(false, SYN | ACK, 0, "SYN,ACK after the end");
            self.send(true, ACK, 0, "ACK after the end");
            self.data();
        }
    }

    /// What happens on the way to the router: loss, a copy, one segment before another.
    pub(crate) fn disturbed(mut self) -> Vec<Step> {
        if self.random.one_in(2) {
            for index in (1..self.steps.len()).rev() {
                match self.random.below(30) {
                    0 => {
                        self.steps.remove(index);
                    }
                    1 => {
                        let copy = self.steps[index].clone();
                        self.steps.insert(index, copy);
                    }
                    2 => self.steps.swap(index - 1, index),
                    _ => {}
                }
            }
        }
        self.steps
    }
}
