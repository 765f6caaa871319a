//! A slow model of how `std.connections` follows TCP: what a gateway between two ends knows of them.
//!
//! ```text
//! SynSent ─SYN,ACK─► SynReceived ─ACK─► Established ─FIN─► FinWait ─ACK─► CloseWait ─FIN─► LastAck ─ACK─► TimeWait
//!    │ SYN of the other end                                                             exact RST ─► Closed
//!    ▼
//! SynSentBoth ─SYN,ACK─► SynReceived
//! ```
//!
//! It is written from the descriptions (RFC 9293, RFC 5961, van Rooij's paper, the states of Linux'
//! conntrack), not from the module: states are names, transitions stand state by state, ends are structures.

use crate::segment::Segment;

/// How far back an acknowledgement may lie, at least.
const OLDEST_ACKNOWLEDGEMENT: u32 = 66_000;

const SECOND: u64 = 1_000_000_000;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    SynSent,
    SynSentBoth,
    SynReceived,
    Established,
    FinWait,
    CloseWait,
    LastAck,
    TimeWait,
    Closed,
}

/// What a segment is, by its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    Syn,
    SynAck,
    Fin,
    Ack,
    Rst,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Passes,
    /// It begins a connection.
    Begins,
    /// Dropped for this reason.
    Drop(&'static str),
}

/// What one end has said.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// The number behind the last that it has sent.
    sent: u32,
    /// The largest number that it may send.
    limit: u32,
    /// The largest window that it has announced.
    window: u32,
    /// The largest number that it has acknowledged; before that its own first number.
    acknowledged: u32,
    shift: Option<u8>,
    /// It has sent something.
    heard: bool,
}

/// A connection, from its first SYN on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) state: State,
    /// The client and the server.
    sides: [Side; 2],
    /// From when on it is no longer there.
    pub(crate) ends: u64,
}

impl Side {
    /// A segment that begins with this number can be one that this end has sent, and sends again.
    fn may_repeat(&self, seq: u32, other: &Side) -> bool {
        let oldest = self.sent.wrapping_sub(other.window.max(OLDEST_ACKNOWLEDGEMENT));
        !later(oldest, seq) && !later(seq, self.sent)
    }
}

fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

fn furthest(a: u32, b: u32) -> u32 {
    if later(b, a) { b } else { a }
}

impl Segment {
    /// Its kind; none where no segment has these flags together.
    pub(crate) fn kind(&self) -> Option<SegmentKind> {
        let [fin, syn, rst, ack, urg] = [1, 2, 4, 16, 32].map(|bit| self.flags & bit != 0);
        match (syn, fin, rst, ack) {
            (true, false, false, false) => Some(SegmentKind::Syn),
            (true, false, false, true) if !urg => Some(SegmentKind::SynAck),
            (false, true, false, true) => Some(SegmentKind::Fin),
            (false, false, true, _) if !urg => Some(SegmentKind::Rst),
            (false, false, false, true) => Some(SegmentKind::Ack),
            _ => None,
        }
    }

    fn syn(&self) -> bool {
        self.flags & 2 != 0
    }

    /// The number behind it.
    fn end(&self) -> u32 {
        let flags = u32::from(self.flags & 1 != 0) + u32::from(self.syn());
        self.seq.wrapping_add(self.payload).wrapping_add(flags)
    }
}

/// What a state makes of a segment.
enum Next {
    To(State),
    /// The segment passes and nothing changes.
    Stay,
    /// The connection is over: a new one may begin.
    Again,
    Refused,
}

fn next(state: State, kind: SegmentKind, from_client: bool) -> Next {
    use SegmentKind::*;
    use State::*;
    if kind == Rst {
        return Next::To(Closed);
    }
    match (state, kind, from_client) {
        (SynSent, Syn, true) => Next::To(SynSent),
        (SynSent | SynSentBoth, Syn, _) => Next::To(SynSentBoth),
        (SynSent, SynAck, false) | (SynSentBoth, SynAck, _) => Next::To(SynReceived),
        (SynSent | SynSentBoth, Ack, false) => Next::Stay,
        (SynSent | SynSentBoth, ..) => Next::Refused,

        (TimeWait, Syn, _) | (Closed, Syn, true) => Next::Again,
        (_, Syn, true) => Next::Stay,
        (_, Syn, false) => Next::Refused,

        (SynReceived, SynAck, true) => Next::To(SynReceived),
        (_, SynAck, true) => Next::Refused,
        (_, SynAck, false) => Next::Stay,

        (SynReceived, Ack, true) => Next::To(Established),
        (SynReceived, Ack, false) => Next::To(SynReceived),
        (SynReceived | Established, Fin, _) => Next::To(FinWait),
        (Established, Ack, _) => Next::To(Established),
        (FinWait | CloseWait, Ack, _) => Next::To(CloseWait),
        (FinWait | CloseWait, Fin, _) => Next::To(LastAck),
        (LastAck, Ack, _) => Next::To(TimeWait),
        (LastAck, Fin, _) => Next::To(LastAck),
        (TimeWait, ..) => Next::To(TimeWait),
        (Closed, ..) => Next::To(Closed),
        (_, Rst, _) => Next::To(Closed),
    }
}

/// How long a state lasts, in nanoseconds.
fn lasts(state: State) -> u64 {
    let seconds = match state {
        State::SynSent | State::SynSentBoth | State::TimeWait => 120,
        State::FinWait | State::CloseWait => 240,
        State::SynReceived => 60,
        State::LastAck => 30,
        State::Closed => 10,
        State::Established => 120 * 3600,
    };
    seconds * SECOND
}

impl Connection {
    /// A connection that this SYN begins.
    pub(crate) fn begun(segment: &Segment, now: u64) -> Connection {
        let client = Side {
            sent: segment.end(),
            limit: segment.end(),
            window: u32::from(segment.window).max(1),
            acknowledged: segment.seq,
            shift: segment.shift,
            heard: true,
        };
        let server = Side { sent: 0, limit: 0, window: 0, acknowledged: 0, shift: None, heard: false };
        Connection { state: State::SynSent, sides: [client, server], ends: now + lasts(State::SynSent) }
    }

    /// Numbers that are of interest for the next segment of an end: its own and those to acknowledge.
    pub(crate) fn numbers(&self, from_client: bool) -> ([u32; 3], [u32; 3]) {
        let (own, other) = (&self.sides[usize::from(!from_client)], &self.sides[usize::from(from_client)]);
        let oldest = own.sent.wrapping_sub(other.window);
        ([own.sent, own.limit, oldest], [other.sent, own.acknowledged, other.acknowledged])
    }

    /// Judges a segment of this connection, and changes the connection as the segment does.
    /// `by_other_end`: it came in where the other end is.
    pub(crate) fn judge(
        &mut self,
        segment: &Segment,
        kind: SegmentKind,
        from_client: bool,
        by_other_end: bool,
        now: u64,
    ) -> Judgement {
        let [own, other] = if from_client { self.sides } else { [self.sides[1], self.sides[0]] };
        let after = match next(self.state, kind, from_client) {
            Next::Refused => return Judgement::Drop("tcp_state"),
            Next::Again => return Judgement::Begins,
            _ if by_other_end => return Judgement::Drop("wrong_port"),
            Next::Stay if segment.payload > 0 && kind != SegmentKind::Syn => {
                return Judgement::Drop("tcp_state");
            }
            Next::Stay if kind == SegmentKind::SynAck && !own.may_repeat(segment.seq, &other) => {
                return Judgement::Drop("tcp_window");
            }
            Next::Stay => return Judgement::Passes,
            // A FIN is an end's own if it takes a new number; otherwise it is sent again.
            Next::To(State::LastAck) if self.state != State::LastAck && !later(segment.end(), own.sent) => {
                self.state
            }
            Next::To(after) => after,
        };
        let (mut own, mut other) = (own, other);
        let resets = kind == SegmentKind::Rst && from_client && self.state == State::SynSent;
        if resets && segment.seq != own.sent {
            return Judgement::Passes;
        }
        let end = segment.end();
        let opening = matches!(self.state, State::SynSent | State::SynSentBoth);
        let repeats = kind == SegmentKind::Syn && opening && own.heard && segment.seq == own.acknowledged;
        if repeats {
            if later(end, own.sent) {
                (own.sent, own.limit) = (end, end);
            }
        } else if segment.syn() {
            let again = opening && (kind == SegmentKind::SynAck || from_client);
            if !own.heard || later(end, own.sent) || again {
                let acknowledged = if kind == SegmentKind::Syn { segment.seq } else { own.acknowledged };
                let window = u32::from(segment.window).max(1);
                own = Side { sent: end, limit: end, window, acknowledged, shift: segment.shift, heard: true };
            } else if own.sent != end {
                return Judgement::Drop("tcp_window");
            }
        } else if !own.heard {
            let window = u32::from(segment.window).max(1);
            own = Side { sent: end, limit: end.wrapping_add(window), window, heard: true, ..own };
        }

        // The handshake is complete when the server's SYN, too, is acknowledged.
        let answered = kind == SegmentKind::SynAck && !from_client && opening;
        let completes = from_client && self.state == State::SynReceived && kind != SegmentKind::Rst;
        if completes && later(own.acknowledged, segment.ack) {
            return Judgement::Drop("tcp_window");
        }

        // What answers a SYN acknowledges it.
        let refusal = kind == SegmentKind::Rst && !from_client && opening;
        if refusal || opening && kind == SegmentKind::SynAck {
            let answers = later(segment.ack, other.acknowledged) && !later(segment.ack, other.sent);
            if segment.flags & 16 == 0 || !answers {
                return Judgement::Drop("tcp_window");
            }
        }
        let acknowledges = segment.flags & 16 != 0 && !(kind == SegmentKind::Rst && segment.ack == 0);
        let ack = if acknowledges { segment.ack } else { other.sent };
        let first = if refusal { own.sent } else { segment.seq };
        let last = if refusal || repeats { own.sent } else { end };

        let beyond = later(first, own.limit);
        let too_old = later(own.sent.wrapping_sub(other.window), last);
        let never_sent = later(ack, other.sent);
        let oldest = other.sent.wrapping_sub(own.window.max(OLDEST_ACKNOWLEDGEMENT));
        if beyond || too_old || never_sent || later(oldest, ack) {
            return Judgement::Drop("tcp_window");
        }
        if kind == SegmentKind::Rst && !refusal && ![other.acknowledged, own.sent].contains(&segment.seq) {
            return Judgement::Passes;
        }

        let shift = match (own.shift, other.shift) {
            (Some(shift), Some(_)) if !segment.syn() => shift.min(14),
            _ => 0,
        };
        let announced = u32::from(segment.window) << shift;
        own.window = own.window.max(announced);
        own.sent = furthest(own.sent, last);
        if later(last, own.limit) {
            let more = if other.heard { last.wrapping_sub(own.limit) } else { 0 };
            other.window = other.window.saturating_add(more);
            own.limit = last;
        }
        if acknowledges {
            let begins = opening || self.state == State::SynReceived;
            own.acknowledged = if begins { ack } else { furthest(own.acknowledged, ack) };
        }
        other.limit = furthest(other.limit, ack.wrapping_add(announced));
        if announced == 0 && other.limit == ack {
            other.limit = ack.wrapping_add(1);
        }

        if answered {
            other.acknowledged = segment.seq.wrapping_add(1);
        }
        self.sides = if from_client { [own, other] } else { [other, own] };
        self.state = after;
        self.ends = now + lasts(after);
        Judgement::Passes
    }
}
