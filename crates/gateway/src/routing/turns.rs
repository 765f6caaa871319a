//! What waits for the packet loop, and the turns in which it is done: some changes of the program's tables at
//! a time, in their order, and the frames that there are by then.
//!
//! ```text
//!  packets ─┐            ┌──────────┐  some changes, and all frames   ┌─────────────┐
//!           ├─ effects ─►│ the queue│ ──────────────────────────────► │ packet loop │
//!  kernel ──┘            └──────────┘ ◄──── which found no room ───── └─────────────┘
//! ```
//!
//! The lock of control is free while the loop makes the changes of a turn, so that packets are answered and
//! control can be asked in the middle of a change of a whole table. Frames do not wait for changes that are
//! more than a turn holds: a packet that finds no entry yet is handed to control.

use super::effects::{Change, Effects, Filled};
use super::hosts::Hosts;
use super::port::Link;
use super::router::Packet;
use crate::tables::limits::{CHANGES, CHANGING};
use engine::live::{Generation, Injected, Remote};
use packet::PortNumber;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// The most changes of entries that workers are given at once: requests behind them wait until they are made.
pub(super) const CHANGES_AT_ONCE: usize = 512;
/// The same where changes may have to wait for a rate, and the frames of the next turn behind them.
pub(super) const CHANGES_BY_RATE: usize = 64;
/// From so many changes on that follow from packets and wait, no more packets are taken. Changes that follow
/// from the kernel are made before more is read from it.
pub(super) const WAITING_OF_PACKETS: usize = 4096;
/// From so many frames and packets for the machine on that wait, or so many bytes of them, no more packets
/// are taken and no time passes, so that only the queue of punted packets grows, which counts what it loses.
pub(super) const WAITING_FRAMES: usize = 4096;
pub(super) const WAITING_FRAME_BYTES: usize = 8 << 20;

/// Changes, each with the number of its table.
pub(crate) type NumberedChanges = Arc<[(u32, Change)]>;

/// The packet loop, as far as control needs it.
pub(crate) trait PacketLoop {
    /// Makes changes in this order and returns when they are made. Says which of them found no room, by their
    /// places in ascending order.
    fn change(&self, changes: &NumberedChanges) -> Vec<usize>;

    /// Sends frames.
    fn send(&self, frames: Vec<Injected>);

    /// Whether changes may have to wait for a rate: then it is given few at once, and frames before them.
    fn has_rate(&self) -> bool {
        false
    }
}

/// Who caused a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A packet, or time that passed.
    Packets,
    /// What the kernel told.
    Kernel,
}

/// What waits for the packet loop.
#[derive(Default)]
pub(super) struct EffectQueue {
    changes: VecDeque<(u32, Change, Cause)>,
    of_packets: usize,
    /// Changes of the turn that is being made.
    in_turn: usize,
    frames: Vec<Injected>,
    for_host: Vec<Packet>,
    /// Of the frames and of the packets for the machine.
    frame_bytes: usize,
    links: Vec<(PortNumber, Option<Link>)>,
}

/// What is done in one turn: first the changes.
pub(super) struct Turn {
    pub(super) changes: NumberedChanges,
    frames: Vec<Injected>,
    for_host: Vec<Packet>,
    links: Vec<(PortNumber, Option<Link>)>,
}

impl EffectQueue {
    /// More is to be done, with the numbers that tables have in the program. Changes of tables that it does
    /// not have are left out.
    pub(super) fn push(&mut self, effects: Effects, tables: &HashMap<Filled, u32>, cause: Cause) {
        let Effects { changes, frames, for_host, links } = effects;
        let before = self.changes.len();
        let numbered = |change: Change| Some((*tables.get(&change.table)?, change, cause));
        self.changes.extend(changes.into_iter().filter_map(numbered));
        self.of_packets += if cause == Cause::Packets { self.changes.len() - before } else { 0 };
        self.frame_bytes += frames.iter().map(|frame| frame.bytes.len()).sum::<usize>();
        self.frame_bytes += for_host.iter().map(|packet| packet.bytes.len()).sum::<usize>();
        self.frames.extend(frames);
        self.for_host.extend(for_host);
        self.links.extend(links);
    }

    /// What the next turn does, with so many changes at most, if there is anything to do.
    pub(super) fn take(&mut self, at_once: usize) -> Option<Turn> {
        if self.is_empty() {
            return None;
        }
        let changes = self.changes.drain(..self.changes.len().min(at_once));
        let of_packets = &mut self.of_packets;
        let changes = changes.map(|(table, change, cause)| {
            *of_packets -= usize::from(cause == Cause::Packets);
            (table, change)
        });
        let changes: NumberedChanges = changes.collect();
        self.in_turn = changes.len();
        self.frame_bytes = 0;
        Some(Turn {
            changes,
            frames: std::mem::take(&mut self.frames),
            for_host: std::mem::take(&mut self.for_host),
            links: std::mem::take(&mut self.links),
        })
    }

    /// The changes are those of a program that runs no more.
    pub(super) fn forget_changes(&mut self) {
        self.changes.clear();
        self.of_packets = 0;
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.frames.is_empty() && self.for_host.is_empty() && self.links.is_empty()
    }

    /// Whether changes wait that the kernel caused.
    pub(super) fn has_of_kernel(&self) -> bool {
        self.changes.len() > self.of_packets
    }

    /// Whether more packets may be taken.
    pub(super) fn has_room(&self) -> bool {
        self.of_packets < WAITING_OF_PACKETS
            && self.frames() < WAITING_FRAMES
            && self.frame_bytes < WAITING_FRAME_BYTES
    }

    /// How many frames and packets for the machine wait.
    pub(super) fn frames(&self) -> usize {
        self.frames.len() + self.for_host.len()
    }

    /// How many changes the program's tables lack still.
    pub(super) fn outstanding(&self) -> usize {
        self.changes.len() + self.in_turn
    }

    /// The turn that was taken last is made.
    pub(super) fn turn_made(&mut self) {
        self.in_turn = 0;
    }
}

impl Turn {
    /// Does it. Says which of the changes found no room.
    pub(super) fn make(&mut self, packet_loop: &impl PacketLoop, hosts: &Hosts) -> Vec<usize> {
        let mut send = || {
            if !self.frames.is_empty() {
                packet_loop.send(std::mem::take(&mut self.frames));
            }
        };
        if packet_loop.has_rate() {
            send();
        }
        let refused = if self.changes.is_empty() { Vec::new() } else { packet_loop.change(&self.changes) };
        send();
        hosts.hand_over(&std::mem::take(&mut self.for_host));
        for (port, link) in self.links.drain(..) {
            hosts.follow(port, link);
        }
        refused
    }
}

impl PacketLoop for Remote {
    fn change(&self, changes: &NumberedChanges) -> Vec<usize> {
        let begin = || ChangesBegun { changes: Some(changes.clone()), made: 0, refused: Vec::new() };
        let finished = self.ask_in_steps(begin, |generation, begun| begun.step(generation));
        let mut refused: Vec<usize> =
            finished.into_iter().flatten().flat_map(|(refused, _)| refused).collect();
        refused.sort_unstable();
        refused.dedup();
        refused
    }

    fn send(&self, frames: Vec<Injected>) {
        // After the end of the loop nobody waits for them.
        let _ = Remote::send(self, frames);
    }
}

/// How far a worker has come with changes of its tables.
struct ChangesBegun {
    /// Handed back at the end, so that the worker need not free them.
    changes: Option<NumberedChanges>,
    made: usize,
    /// Those that found no room.
    refused: Vec<usize>,
}

impl ChangesBegun {
    /// Makes as many of the next changes as there is time for between two batches. At the end it says which
    /// found no room.
    fn step(&mut self, generation: &mut Generation) -> Option<(Vec<usize>, Option<NumberedChanges>)> {
        let begun = Instant::now();
        let next = self.changes.as_deref().unwrap_or_default().get(self.made..).unwrap_or_default();
        for (table, change) in next.iter().take(CHANGES) {
            let entry = &change.entry;
            if change.insert {
                if generation.backend.insert(*table, entry).is_err() {
                    self.refused.push(self.made);
                }
            } else {
                generation.backend.remove(*table, &entry.key, entry.priority);
            }
            self.made += 1;
            if begun.elapsed() >= CHANGING {
                break;
            }
        }
        let whole = self.changes.as_deref().is_none_or(|changes| self.made >= changes.len());
        whole.then(|| (std::mem::take(&mut self.refused), self.changes.take()))
    }
}
