//! Counts what became of every packet that the program handed to the control plane: each packet has exactly
//! one fate, or it still waits.

use serde::Serialize;
use std::collections::BTreeMap;

macro_rules! fates {
    ($($name:ident $text:literal $help:literal,)*) => {
        /// What becomes of a packet that was punted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Fate { $(#[doc = $help] $name,)* }

        impl Fate {
            /// All of them.
            pub(crate) const ALL: &'static [Fate] = &[$(Fate::$name,)*];

            /// Its name.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Fate::$name => $text,)* }
            }

            /// What it means.
            pub(crate) fn help(self) -> &'static str {
                match self { $(Fate::$name => $help,)* }
            }
        }
    };
}

fates! {
    Answered "answered" "asked for an own address, by ARP, neighbour discovery or echo",
    Heard "heard" "said where a neighbour is",
    Host "for the host" "handed to the machine by the host interface of the port",
    Sent "sent" "its neighbour was found, and it was sent there",
    QueueFull "neighbour queue full" "too many packets waited for their neighbour",
    Unreachable "neighbour unreachable" "nobody answered for the address of its neighbour",
    TableFull "neighbour table full" "too many neighbours are known or being looked for, or its own gave way to another",
    NoRoute "no route" "no prefix holds its destination",
    Blackhole "blackhole" "the route leads nowhere",
    Prohibited "prohibited" "the route says that nothing may go there",
    Unmeant "route not followed" "the kernel's route says what the gateway cannot do: `show routes` tells which",
    Machine "for this machine" "for an address of the machine's kernel, which has it from its own sockets",
    Joined "joined" "a piece of a packet for an own address, which was put together with the others, or came twice",
    Overlapping "overlapping pieces" "a piece that overlaps others of its packet, or contradicts them about its end, and what came with it",
    PiecesMissing "pieces missing" "a piece whose others did not come within 60 s",
    PiecesFull "too many pieces" "a piece that gave way to others, since too many waited",
    Expired "expired" "its TTL or hop limit was used up",
    TooBig "too big" "larger than the MTU, and not to be cut",
    Conflict "address conflict" "somebody else claims an own address",
    WrongLink "wrong link" "its sender's address is not one of that link",
    Malformed "malformed" "its headers contradict each other, or its checksum is wrong",
    NoService "no service" "for an own address, which answers nothing but echo",
    Broadcast "broadcast" "for all hosts of a network",
    Ignored "ignored" "for all on the link, or a message that control does not answer",
    Foreign "not for control" "punted for a reason that control does not know",
}

/// How many packets met each fate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Packets that the program handed over.
    pub(crate) handed: u64,
    /// Errors of ICMP that were sent about them, and errors withheld because of their rate.
    pub(crate) errors_sent: u64,
    pub(crate) errors_withheld: u64,
    /// How often an entry came that found no room in the program's tables; trying it again does not count.
    pub(crate) entries_refused: u64,
    fates: BTreeMap<Fate, u64>,
}

impl Account {
    pub(crate) fn count(&mut self, fate: Fate) {
        *self.fates.entry(fate).or_default() += 1;
    }

    pub(crate) fn of(&self, fate: Fate) -> u64 {
        self.fates.get(&fate).copied().unwrap_or(0)
    }

    /// For people; `waiting` packets still wait, and so many neighbours gave way.
    pub(crate) fn view(&self, waiting: usize, neighbours_displaced: u64) -> AccountView {
        let told = |fate: &Fate| FateView { name: fate.name(), packets: self.of(*fate), help: fate.help() };
        AccountView {
            handed: self.handed,
            waiting,
            fates: Fate::ALL.iter().map(told).filter(|fate| fate.packets > 0).collect(),
            errors_sent: self.errors_sent,
            errors_withheld: self.errors_withheld,
            entries_refused: self.entries_refused,
            neighbours_displaced,
        }
    }
}

/// The account of control: `handed` is `waiting` and all fates together.
#[derive(Clone, Debug, Serialize)]
pub struct AccountView {
    /// Packets that the program handed over.
    pub handed: u64,
    /// Packets that wait for a neighbour's answer, and pieces that wait for the others.
    pub waiting: usize,
    /// What became of the others; fates that met none are left out.
    pub fates: Vec<FateView>,
    /// Errors of ICMP and ICMPv6 that were sent about them.
    pub errors_sent: u64,
    /// Errors that were not sent, since there were too many.
    pub errors_withheld: u64,
    /// How often an entry came that found no room in the program's tables; trying it again does not count.
    pub entries_refused: u64,
    /// Neighbours that gave way to others, since too many were known or looked for.
    pub neighbours_displaced: u64,
}

/// How many packets met one fate.
#[derive(Clone, Debug, Serialize)]
pub struct FateView {
    /// Its name.
    pub name: &'static str,
    /// How many.
    pub packets: u64,
    /// What it means.
    pub help: &'static str,
}
