//! Batched lookup: tables of rules are searched for many packets at once, before the first of these packets
//! goes on.
//!
//! All packets of a group run up to their early lookups (see [`mod@super::early_lookups`]). Then the keys of
//! these lookups are looked up together. This costs a fraction of as many single lookups, because the waits
//! for memory and the branch mispredictions overlap. Then every packet goes on in its turn.

use super::asked::Asked;
use super::call::{ASKED, Context, NOT_ASKED};
use super::early_lookups::{EarlyLookup, KEPT_WORDS};
use super::{CompiledNative, PREFETCH_DISTANCE, prefetch};
use crate::outputs::Outputs;
use crate::pack::MAX_WORDS;
use crate::state::ProgramState;
use crate::state::table_set::Fast;
use packet::batch::Batch;
use packet::verdict::Verdict;

/// The number of packets whose lookups are made together.
const GROUP: usize = 64;

/// The packets of a group, and how far they have come.
#[derive(Default)]
pub(super) struct BatchedLookup {
    /// The index in the batch of the first packet of the group.
    first: usize,
    until: usize,
    /// The result of the part before the early lookups, for each packet.
    outcomes: Vec<u64>,
    kept: Vec<[u64; KEPT_WORDS]>,
    /// The part of the program in which each packet was then, if stages are measured.
    sites: Vec<usize>,
    asked: Vec<Asked>,
    found: Vec<u32>,
}

impl BatchedLookup {
    /// For these early lookups.
    pub(super) fn new(lookups: &[EarlyLookup], state: &ProgramState<Fast>) -> BatchedLookup {
        let asked = lookups.iter().map(|lookup| {
            let key_words = state.tables.rules[lookup.place].key_words();
            let keys = vec![0; GROUP * key_words + MAX_WORDS];
            Asked { place: lookup.place, key_words, keys, packets: Vec::with_capacity(GROUP) }
        });
        let asked: Vec<Asked> = asked.collect();
        let group = if asked.is_empty() { 0 } else { GROUP };
        BatchedLookup {
            first: 0,
            until: 0,
            outcomes: vec![0; group],
            kept: vec![[0; KEPT_WORDS]; group],
            sites: vec![0; group],
            asked,
            found: vec![0; group],
        }
    }

    /// Whether the program has no early lookups.
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Forgets the packets of the batch before.
    pub(super) fn clear(&mut self) {
        (self.first, self.until) = (0, 0);
    }
}

impl CompiledNative {
    /// As [`CompiledNative::stretch`], with batched lookups.
    pub(super) fn stretch_looking_up<const MEASURED: bool>(
        &self,
        batched: &mut BatchedLookup,
        state: &mut ProgramState<Fast>,
        memory: &mut [u8],
        batch: &mut Batch,
        first: usize,
        outputs: &mut Outputs,
    ) -> usize {
        let mut context = Context::new(state, outputs, &self.templates, &self.plan.placements);
        let end = batch.len.min(packet::BATCH);
        let mut i = first;
        while i < end {
            if i >= batched.until {
                self.ask::<MEASURED>(batched, &mut context, memory, batch, i..end.min(i + GROUP));
            }
            let time = batch.time[i].max(context.now);
            if i > first && time >= context.state().next_wake {
                break;
            }
            (context.now, context.wire) = (time, batch.wire[i].into());
            let state = context.state();
            (state.now, state.cause) = (time, i as u32);
            let place = i - batched.first;
            let outcome = batched.outcomes[place];
            if MEASURED && outcome & ASKED != 0 {
                context.state().clock.go_to(batched.sites[place]);
            }
            let lookup = (outcome & ASKED != 0).then(|| (outcome as u32 as usize, &mut batched.kept[place]));
            if lookup.is_none() && outcome != NOT_ASKED {
                batch.verdict[i] = Verdict::from_bits(outcome as u32);
                i += 1;
                continue;
            }
            if self.resizes {
                self.run_resizing(&mut context, memory, batch, i, lookup);
            } else {
                let start = batch.frame[i] as usize;
                let frame = memory.get_mut(start..start.saturating_add(batch.captured[i] as usize));
                let (frame, in_port) = (frame.unwrap_or_default(), batch.port[i]);
                let verdict = match lookup {
                    Some((number, kept)) => self.code.run_after(&mut context, number, kept, frame, in_port),
                    None => self.code.run_packet(&mut context, frame, in_port),
                };
                batch.verdict[i] = Verdict::from_bits(verdict as u32);
            }
            i += 1;
            if context.state().has_queued() {
                break;
            }
        }
        let now = context.now;
        context.state().now = now;
        i
    }

    /// Runs these packets up to their early lookups, and makes these lookups.
    fn ask<const MEASURED: bool>(
        &self,
        batched: &mut BatchedLookup,
        context: &mut Context<'_>,
        memory: &mut [u8],
        batch: &Batch,
        packets: std::ops::Range<usize>,
    ) {
        let BatchedLookup { outcomes, kept, sites, asked, found, .. } = batched;
        asked.iter_mut().for_each(|asked| asked.packets.clear());
        let before = context.now;
        let places = outcomes.iter_mut().zip(&mut *kept).zip(&mut *sites);
        for (i, ((outcome, kept), site)) in packets.clone().zip(places) {
            prefetch(memory, batch, i + PREFETCH_DISTANCE);
            self.fetch_slots(context, memory, batch, i);
            context.now = batch.time[i].max(context.now);
            context.wire = batch.wire[i].into();
            let start = batch.frame[i] as usize;
            let frame = memory.get_mut(start..start.saturating_add(batch.captured[i] as usize));
            if MEASURED {
                context.state().clock.try_packet();
            }
            *outcome = self.code.run_before(context, frame.unwrap_or_default(), batch.port[i], asked, kept);
            if MEASURED {
                *site = context.state().clock.tried(*outcome != NOT_ASKED);
            }
            if *outcome & ASKED != 0 {
                asked[*outcome as u32 as usize].packets.push(i - packets.start);
            }
        }
        context.now = before;
        for asked in asked {
            if MEASURED && let Some(&first) = asked.packets.first() {
                context.state().clock.go_to(sites[first]);
            }
            let rules = &mut context.state().tables.rules[asked.place];
            let found = &mut found[..asked.packets.len()];
            rules.search().find_bulk(&asked.keys[..found.len() * asked.key_words], found);
            let rows = rules.rows_mut();
            for (&packet, &row) in asked.packets.iter().zip(&*found) {
                kept[packet][0] = 0;
                if row != ::tables::rules::NONE {
                    rows.count(row, batch.wire[packets.start + packet].into());
                    kept[packet][0] = rows.words(row).as_ptr() as u64;
                }
            }
        }
        if MEASURED {
            context.state().clock.leave();
        }
        (batched.first, batched.until) = (packets.start, packets.end);
    }
}
