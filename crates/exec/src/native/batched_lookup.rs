//! Batched lookup: tables of rules are searched for many packets at once, before the first of these packets
//! goes on, and the slots of exact tables are fetched for all of them.
//!
//! All packets of a group run up to their early lookups (see [`mod@super::early_lookups`]). Then the keys of
//! these lookups are looked up together. This costs a fraction of as many single lookups, because the waits
//! for memory and the branch mispredictions overlap. Then every packet goes on in its turn. A lookup in an
//! exact table depends on the packets before, so it waits for that turn; what is done together is to compute
//! the hashes and to fetch the slots.

use super::asked::Asked;
use super::call::{ASKED, Code, Context, NOT_ASKED};
use super::early_lookups::{EarlyLookup, KEPT_WORDS, Searched};
use super::{CompiledNative, MANY_ENTRIES, PREFETCH_DISTANCE, prefetch};
use crate::outputs::Outputs;
use crate::state::ProgramState;
use crate::state::rows::RowHit;
use crate::state::table_set::Fast;
use packet::batch::Batch;
use packet::verdict::Verdict;

/// The number of packets whose lookups are made together.
const GROUP: usize = 64;

/// From this number of entries on, the slots of an exact table are worth fetching for a group. Builds for
/// tests always do, so that tests with small tables take this way, too.
const LARGE: u64 = if cfg!(debug_assertions) { 0 } else { MANY_ENTRIES };

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
    which: Vec<u32>,
}

impl BatchedLookup {
    /// For these early lookups.
    pub(super) fn new(lookups: &[EarlyLookup], state: &ProgramState<Fast>) -> BatchedLookup {
        let asked = lookups.iter().map(|lookup| {
            let key_words = match &lookup.searched {
                Searched::Rules(place) => state.tables.rules[*place].key_words(),
                Searched::Exact(places) => state.tables.exact[places[0]].spec().key_words,
            };
            Asked::new(lookup.searched.clone(), key_words, GROUP)
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
            which: Vec::with_capacity(group),
        }
    }

    /// Whether the early lookups of the program save time: those in rules do, and those in exact tables if
    /// one of these is so large that its slots are not near.
    pub(super) fn pays(&self, state: &ProgramState<Fast>) -> bool {
        self.asked.iter().any(|asked| match &asked.searched {
            Searched::Rules(_) => true,
            Searched::Exact(places) => {
                places.iter().any(|place| state.tables.exact[*place].held() as u64 >= LARGE)
            }
        })
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
            let lookup = (outcome & ASKED != 0).then(|| {
                let (number, kept) = (outcome as u32 as usize, &mut batched.kept[place]);
                let asked = &mut batched.asked[number];
                if matches!(asked.searched, Searched::Exact(_)) {
                    kept[0] = asked.find(&mut context.state().tables, time);
                }
                (number, kept)
            });
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
        let BatchedLookup { outcomes, kept, sites, asked, found, which, .. } = batched;
        asked.iter_mut().for_each(Asked::clear);
        let before = context.now;
        let mut room = true;
        for (number, asked) in asked.iter_mut().enumerate() {
            room &= Code::make_room(context, number, asked);
        }
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
            *outcome = match room {
                true => self.code.run_before(context, frame.unwrap_or_default(), batch.port[i], kept),
                false => NOT_ASKED,
            };
            if MEASURED {
                *site = context.state().clock.tried(*outcome != NOT_ASKED);
            }
            if *outcome & ASKED != 0 {
                let number = *outcome as u32 as usize;
                asked[number].packets.push((i - packets.start) as u32);
                room &= Code::make_room(context, number, &mut asked[number]);
            }
        }
        context.now = before;
        for asked in asked {
            if MEASURED && let Some(&first) = asked.packets.first() {
                context.state().clock.go_to(sites[first as usize]);
            }
            let Searched::Rules(place) = asked.searched else {
                asked.fetch(&context.state().tables, which);
                continue;
            };
            let rules = &mut context.state().tables.rules[place];
            let found = &mut found[..asked.packets.len()];
            rules.search().find_bulk(&asked.keys[..found.len() * asked.key_words], found);
            let rows = rules.rows_mut();
            let keeps_times = rows.keep_times();
            // The time of a packet is the latest one of those up to it.
            let (mut time, mut times) = (before, batch.time[packets.clone()].iter());
            let mut seen = 0;
            for (&packet, &row) in asked.packets.iter().zip(&*found) {
                let packet = packet as usize;
                kept[packet][0] = 0;
                if keeps_times {
                    time = times.by_ref().take(packet + 1 - seen).fold(time, |time, own| time.max(*own));
                    seen = packet + 1;
                }
                if row != ::tables::rules::NONE {
                    rows.count(row, RowHit { bytes: batch.wire[packets.start + packet].into(), time });
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
