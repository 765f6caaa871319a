//! The known differences between Linux' conntrack and `std.connections`, each with its reason. Every packet
//! of which both say different things is of one of these classes, or the test fails.

use crate::packets::{ICMP, ICMP6, Packet, TCP};

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// What both have said of a packet.
pub(crate) struct Said<'a> {
    pub(crate) packet: &'a Packet,
    /// What the module takes it for, or the reason of its drop with a minus before it.
    pub(crate) module: &'a str,
    /// The kernel lets it pass.
    pub(crate) passes: bool,
}

/// A class of differences.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// Which of both means what, and why.
    pub(crate) reason: &'static str,
    /// The packet is of this class, after what came before it in its sequence.
    fits: fn(&Said, &[Said]) -> bool,
}

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "quoted number",
        reason: "The module wants an error to quote a sequence number that can be under way (RFC 5927, 4.1); \
                 conntrack looks at the ports alone.",
        fits: |now, _| {
            matches!(now.packet.proto, ICMP | ICMP6) && matches!(now.module, "-unrelated_error" | "invalid")
        },
    },
    Class {
        name: "fragments of an invalid packet",
        reason: "Conntrack puts the packet together before it judges; the module remembers a first fragment \
                 only where a connection lets it pass.",
        fits: |now, _| now.packet.cut.is_some() && now.passes && now.module == "-fragment_without_first",
    },
    Class {
        name: "data in fragments",
        reason: "What follows in later fragments is taken to be as much as the window allows, so the module \
                 lets pass acknowledgements of more than was sent.",
        fits: |now, earlier| {
            !now.passes && earlier.iter().any(|one| one.packet.cut.is_some() && one.packet.proto == TCP)
        },
    },
    Class {
        name: "delayed",
        reason: "Conntrack lets segments pass that lie before the window, and changes nothing by them; the \
                 module drops them as tcp_window.",
        fits: |now, earlier| refused(now) && is_delayed(now.packet, earlier),
    },
    Class {
        name: "SYN,ACK in a known connection",
        reason: "In a known connection conntrack lets every SYN,ACK of the server pass; the module wants a number \
                 that the server can have sent.",
        fits: |now, _| refused(now) && is_answer(now.packet),
    },
    Class {
        name: "data before the handshake",
        reason: "Between a SYN and its answer the server sends nothing but challenges, which hold no data; \
                 conntrack ignores, and passes, every ACK of it.",
        fits: |now, earlier| {
            matches!(now.module, "-tcp_state" | "invalid")
                && is(now.packet, false, ACK)
                && now.packet.payload() > 0
                && opening(earlier)
        },
    },
    Class {
        name: "reset as the first answer",
        reason: "Conntrack forgets a connection whose first answer is a reset, whatever its numbers; the module \
                 wants the exact acknowledgement (RFC 9293, 3.10.7.3), and remembers it as closed for a while.",
        fits: |now, earlier| {
            let place = |place: usize| is(earlier[place].packet, false, RST) && opening(&earlier[..place]);
            (0..earlier.len()).any(place) || is(now.packet, false, RST) && opening(earlier)
        },
    },
    Class {
        name: "another attempt",
        reason: "After a second SYN of other numbers the module follows the newer attempt; \
                 conntrack keeps the larger numbers.",
        fits: |_, earlier| {
            (1..earlier.len()).any(|place| {
                let syn = |one: &Said| is(one.packet, true, SYN);
                let first = (0..place).rev().find(|&before| syn(&earlier[before]));
                let other = |first: usize| earlier[first].packet.seq() != earlier[place].packet.seq();
                syn(&earlier[place]) && opening(&earlier[..place]) && first.is_some_and(other)
            })
        },
    },
    Class {
        name: "SYN of the server",
        reason: "Where both ends send a SYN, conntrack goes on with the larger numbers of the server; the module \
                 takes those of the SYN,ACK that acknowledges exactly.",
        fits: |_, earlier| earlier.iter().any(|one| is(one.packet, false, SYN)),
    },
    Class {
        name: "reset of a connection that ends",
        reason: "Conntrack does not look at the number of a reset once a FIN or a reset has passed.",
        fits: |now, earlier| refused(now) && has(now.packet, RST) && ends(earlier),
    },
    Class {
        name: "SYN after a reset",
        reason: "Conntrack takes a SYN after a reset of the other end for one of the old connection; the module \
                 lets the program decide about a new one.",
        fits: |now, earlier| {
            let reset = earlier.iter().position(|one| has(one.packet, RST));
            let syn = |one: &Said| is(one.packet, true, SYN) || is(one.packet, false, SYN);
            reset.is_some_and(|reset| earlier[reset..].iter().any(syn) || syn(now))
        },
    },
    Class {
        name: "reset of the client before the answer",
        reason: "The module lets it pass and changes nothing, since it may answer a challenge to the SYN; \
                 conntrack drops it, or forgets the connection, by its number.",
        fits: |now, earlier| {
            let place = |place: usize| is(earlier[place].packet, true, RST) && opening(&earlier[..place]);
            (0..earlier.len()).any(place) || is(now.packet, true, RST) && opening(earlier)
        },
    },
    Class {
        name: "SYN in a known connection",
        reason: "Where a SYN,ACK acknowledges a SYN of the client in a known connection, conntrack takes the \
                 numbers of both, also where both are copies of the first ones.",
        fits: |_, earlier| {
            (0..earlier.len()).any(|place| {
                let syn = earlier[place].packet;
                let answers = |one: &Said| is_answer(one.packet) && one.packet.ack() == syn.end();
                is(syn, true, SYN) && !opening(&earlier[..place]) && earlier[place..].iter().any(answers)
            })
        },
    },
    Class {
        name: "challenge before the answer",
        reason: "After any ACK of the server conntrack takes SYNs of the client for established; they are new \
                 for the module until a SYN,ACK comes.",
        fits: |now, earlier| {
            let challenge = |one: &Said| is(one.packet, false, ACK);
            is(now.packet, true, SYN) && opening(earlier) && earlier.iter().any(challenge)
        },
    },
    Class {
        name: "reset inside the window",
        reason: "A reset whose number is not exact ends nothing in both, but conntrack counts its number as sent.",
        fits: |now, earlier| refused(now) && earlier.iter().any(|one| has(one.packet, RST)),
    },
];

/// The class of a difference.
pub(crate) fn class_of(now: &Said, earlier: &[Said]) -> Option<&'static Class> {
    CLASSES.iter().find(|class| (class.fits)(now, earlier))
}

fn has(packet: &Packet, flag: u8) -> bool {
    packet.flags() & flag != 0
}

/// A segment of this kind, from the client or from the server.
fn is(packet: &Packet, from_client: bool, kind: u8) -> bool {
    let flags = packet.flags();
    let one = match kind {
        SYN => flags & (SYN | ACK | RST) == SYN,
        ACK => flags & (SYN | FIN | RST | ACK) == ACK,
        _ => flags & kind != 0,
    };
    one && packet.from_client == from_client
}

/// The module refuses it, as invalid or by a reason of its own, and the kernel does not.
fn refused(said: &Said) -> bool {
    matches!(said.module, "-tcp_window" | "-tcp_state" | "invalid")
}

/// The client's last SYN has no answer yet.
fn opening(earlier: &[Said]) -> bool {
    let syn = earlier.iter().rposition(|one| is(one.packet, true, SYN));
    let seen = |one: &Said| !refused(one) && !matches!(one.module, "-early" | "untracked");
    syn.is_some_and(|syn| !earlier[syn..].iter().any(|one| is_answer(one.packet) && seen(one)))
}

/// A SYN,ACK of the server.
fn is_answer(packet: &Packet) -> bool {
    packet.flags() & (SYN | ACK) == SYN | ACK && !packet.from_client
}

/// A FIN or a reset has passed.
fn ends(earlier: &[Said]) -> bool {
    earlier.iter().any(|one| has(one.packet, FIN | RST) && !refused(one))
}

/// It ends before what its sender has sent, or acknowledges less than the other end has sent, by more than a
/// window of those that are made here.
fn is_delayed(packet: &Packet, earlier: &[Said]) -> bool {
    let last = |from_client| {
        let of =
            |one: &&Said| one.packet.from_client == from_client && one.packet.proto == TCP && !refused(one);
        earlier.iter().rfind(of).map(|one| one.packet.end())
    };
    let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
    packet.proto == TCP
        && (last(packet.from_client).is_some_and(|sent| before(packet.end(), sent))
            || last(!packet.from_client).is_some_and(|sent| has(packet, ACK) && before(packet.ack(), sent)))
}
