//! Counters of a live port, in addition to received and sent packets: losses, and what happened to packets on
//! their way.

use serde::Serialize;

/// What a count of a port says about its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// The port lost them; the program had no say.
    Lost,
    /// The port holds them back now; it may still lose them.
    Waiting,
    /// They are no losses: copies, changed packets, packets that a trace lacks, frames for other stations.
    Aside,
}

/// Packets that came to a port but not to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiveLosses {
    /// Came while the ring was full, or are of a kind that no virtio-net header can tell of.
    pub ring_full: u64,
    /// Were longer than a frame of the ring, so that only a part of them is there.
    pub too_long: u64,
    /// Were there, but could not be handed over: the kernel had none after all, or a segment is of an unknown
    /// kind or would become more packets than any kernel makes of one.
    pub unreadable: u64,
    /// Were meant for other stations of the link, at a port that does not take those.
    pub foreign: u64,
    /// Came without a VLAN tag to an interface of which all ports are ports of VLANs.
    pub untagged: u64,
    /// Came with the tag of a VLAN for which their interface has no port, while it has ports of others.
    pub other_vlan: u64,
    /// Came as datagrams to a tunnel that were not what a peer sends.
    pub not_authentic: u64,
    /// Were lost by [`impair`](super::middleware::Middleware::impair_in).
    #[serde(rename = "impaired_in")]
    pub impaired: u64,
    /// Came once more than they came: copies that `impair` made, no loss.
    #[serde(rename = "doubled_in")]
    pub doubled: u64,
    /// Came with a bit changed by `impair`, no loss.
    #[serde(rename = "damaged_in")]
    pub damaged: u64,
    /// Wait before the program now, no loss: held back by `impair`, on their way to the middleware of a port
    /// of a VLAN, or cut from a segment.
    #[serde(rename = "waiting_in")]
    pub waiting: u64,
    /// Are missing in the trace, no loss.
    #[serde(rename = "untraced_in")]
    pub untraced: u64,
}

impl ReceiveLosses {
    /// Each count of this with the same count of another, put together by `of`.
    pub fn each(mut self, mut other: ReceiveLosses, of: impl Fn(u64, u64) -> u64) -> ReceiveLosses {
        for ((.., count), (.., second)) in self.places().into_iter().zip(other.places()) {
            *count = of(*count, *second);
        }
        self
    }

    /// Each count with its name in reports and with what it means.
    pub fn counts(mut self) -> [(&'static str, LossKind, u64); 12] {
        self.places().map(|(name, kind, count)| (name, kind, *count))
    }

    /// The losses with these counts, in the order of [`counts`](ReceiveLosses::counts).
    pub fn of_counts(counts: [u64; 12]) -> ReceiveLosses {
        let mut losses = ReceiveLosses::default();
        losses.places().into_iter().zip(counts).for_each(|((.., place), count)| *place = count);
        losses
    }

    fn places(&mut self) -> [(&'static str, LossKind, &mut u64); 12] {
        use LossKind::{Aside, Lost, Waiting};
        [
            ("ring_full", Lost, &mut self.ring_full),
            ("too_long", Lost, &mut self.too_long),
            ("unreadable", Lost, &mut self.unreadable),
            ("foreign", Aside, &mut self.foreign),
            ("untagged", Lost, &mut self.untagged),
            ("other_vlan", Lost, &mut self.other_vlan),
            ("not_authentic", Lost, &mut self.not_authentic),
            ("impaired_in", Lost, &mut self.impaired),
            ("doubled_in", Aside, &mut self.doubled),
            ("damaged_in", Aside, &mut self.damaged),
            ("waiting_in", Waiting, &mut self.waiting),
            ("untraced_in", Aside, &mut self.untraced),
        ]
    }
}

/// Packets that the program sent but that did not leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SendLosses {
    /// The interface had no room for them.
    pub busy: u64,
    /// The interface did not take them: they are longer than its MTU, or are left unfinished in a way that
    /// nobody can finish.
    pub refused: u64,
    /// The interface was off, without a carrier, or gone.
    pub down: u64,
    /// The queue of [`shape`](super::middleware::Middleware::shape) was full.
    pub shaped: u64,
    /// Were lost by [`impair`](super::middleware::Middleware::impair_out).
    pub impaired: u64,
    /// Left once more than they were sent: copies that `impair` made, no loss.
    pub doubled: u64,
    /// Left with a bit changed by `impair`, no loss.
    pub damaged: u64,
    /// Are held back by `shape` or `impair` now, no loss yet.
    pub waiting: u64,
    /// Are missing in the trace, no loss.
    pub untraced: u64,
}

impl SendLosses {
    /// Each count of this with the same count of another, put together by `of`.
    pub fn each(mut self, mut other: SendLosses, of: impl Fn(u64, u64) -> u64) -> SendLosses {
        for ((.., count), (.., second)) in self.places().into_iter().zip(other.places()) {
            *count = of(*count, *second);
        }
        self
    }

    /// Each count with its name in reports and with what it means.
    pub fn counts(mut self) -> [(&'static str, LossKind, u64); 9] {
        self.places().map(|(name, kind, count)| (name, kind, *count))
    }

    /// The losses with these counts, in the order of [`counts`](SendLosses::counts).
    pub fn of_counts(counts: [u64; 9]) -> SendLosses {
        let mut losses = SendLosses::default();
        losses.places().into_iter().zip(counts).for_each(|((.., place), count)| *place = count);
        losses
    }

    fn places(&mut self) -> [(&'static str, LossKind, &mut u64); 9] {
        use LossKind::{Aside, Lost, Waiting};
        [
            ("busy", Lost, &mut self.busy),
            ("refused", Lost, &mut self.refused),
            ("down", Lost, &mut self.down),
            ("shaped", Lost, &mut self.shaped),
            ("impaired", Lost, &mut self.impaired),
            ("doubled", Aside, &mut self.doubled),
            ("damaged", Aside, &mut self.damaged),
            ("waiting", Waiting, &mut self.waiting),
            ("untraced", Aside, &mut self.untraced),
        ]
    }
}
