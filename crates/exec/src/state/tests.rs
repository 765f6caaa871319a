//! What is due together is done a few steps at a time, whatever there is of it.

use super::handover::SharedState;
use super::limits::LOOKS_FOR_STEP;
use super::reference::Reference;
use super::table_set::Fast;
use super::*;
use lang::pipeline::{CompileOptions, compile};
use proptest::prelude::*;

/// Runs nothing.
struct Idle;

impl<F: TableFamily> RunHandler<F> for Idle {
    fn run_handler(&mut self, _: &mut ProgramState<F>, _: u32, _: &[u128], _: &mut Outputs) {}
}

fn state(text: &str) -> ProgramState<Fast> {
    state_of(text)
}

fn state_of<F: TableFamily>(text: &str) -> ProgramState<F> {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    ProgramState::new(&program, 4, 1).expect("loads")
}

const MANY: u32 = 50_000;

#[test]
fn a_batch_takes_out_a_few_of_many_entries_that_end_together_and_finds_none_of_them() {
    let mut state = state(
        "pool numbers: u32 { 0..99999 }
        table first: exact(u32) -> u32 { capacity 50000 idle 10s evict refuse releases numbers }
        table second: exact(u32) -> u32 { capacity 50000 idle 10s evict lru }
        start stage all() { learn second[1] = 2  learn first[1] = 2 else {}  flood }",
    );
    for number in 0..MANY.into() {
        for table in 0..2 {
            state.insert_entry(table, &Entry::exact(&[number], &[number]), Some(0)).expect("room");
        }
    }
    let left =
        |state: &ProgramState<Fast>| -> usize { state.tables.exact.iter().map(Exact::left_to_expire).sum() };
    let mut outputs = Outputs::default();
    for packet in 1..=256u64 {
        state.handle_due(10_000_000_000 + packet, &mut Idle, &mut outputs);
        assert!(state.next_wake <= state.now, "the next packet goes on");
        if packet % 64 == 0 {
            assert!(left(&state) >= 2 * MANY as usize - (packet as usize) * STEPS_BEFORE_PACKET as usize);
            assert!(state.tables.exact.iter().all(|table| table.peek(&[packet]).is_none()));
            assert!(
                state.tables.reports().iter().all(|table| (table.entries, table.expired) == (0, MANY.into()))
            );
            let running = state.tables.running_reports();
            let held: u64 = running.iter().map(|table| table.entries).sum();
            assert_eq!(held, left(&state) as u64, "what is still to be taken out counts as held");
            assert!(running.iter().all(|table| table.entries + table.expired == u64::from(MANY)));
            assert!(state.has_room(&[(0, false), (0, false), (1, false)]), "and yet takes no room");
        }
    }
    let before = left(&state);
    state.advance(11_000_000_000, &mut Idle, &mut outputs);
    assert!(before - left(&state) <= STEPS_WITHOUT_PACKET as usize);
    // What is full of such entries takes new ones.
    state.now = 11_000_000_000;
    assert_eq!(state.learn_releasing(0, &[77], &[77]), Learned::New);
    assert_eq!(state.tables.exact[1].learn(&[77], &[1], state.now), Learned::New);
    assert_eq!(state.tables.reports()[1].evictions, 0, "what has ended makes room before anything else");
    let mut calls = 0;
    while state.tables.next_deadline() <= state.now {
        state.handle_due(11_000_000_000, &mut Idle, &mut outputs);
        calls += 1;
    }
    assert!(calls >= 90_000 / STEPS_BEFORE_PACKET, "{calls} packets");
}

#[test]
fn an_item_of_an_entry_that_has_ended_is_free() {
    let mut state = state(
        "pool numbers: u32 { 0..999 }
        table out: exact(u32) -> u32 { capacity 1000 idle 10s evict refuse releases numbers }
        start stage all() { match take(numbers) { some n => { learn out[1] = n else {} } none => {} }  flood }",
    );
    for number in 0..1000 {
        state.insert_entry(0, &Entry::exact(&[number], &[number]), Some(0)).expect("room");
    }
    assert_eq!(state.take(0, 5).map(Iterator::count), None, "all are taken");
    let mut outputs = Outputs::default();
    state.handle_due(10_000_000_000, &mut Idle, &mut outputs);
    assert!(state.tables.exact[0].left_to_expire() >= 1000 - STEPS_BEFORE_PACKET as usize);
    let item: Option<Vec<u128>> = state.take(0, 777).map(Iterator::collect);
    assert_eq!(item, Some(vec![777]));
    assert_eq!(state.memory.free_items(0), 8, "one a step before the packet, and this one");
    assert_eq!(state.tables.exact[0].left_to_expire(), 1000 - 9);
}

#[test]
fn an_item_is_taken_without_taking_out_what_has_ended_elsewhere() {
    const MANY: u128 = 65_536;
    let mut state = state(
        "pool numbers: u32 { 0..65535 }
        table out: exact(u32) -> u32 { capacity 65536 idle 10s evict refuse releases numbers }
        start stage all() { match take(numbers) { some n => { learn out[1] = n else {} } none => {} }  flood }",
    );
    for number in 0..MANY {
        state.insert_entry(0, &Entry::exact(&[number], &[number]), Some(0)).expect("room");
    }
    state.handle_due(10_000_000_000, &mut Idle, &mut Outputs::default());
    let left = |state: &ProgramState<Fast>| state.tables.exact[0].left_to_expire();
    for round in 0..100u32 {
        let before = left(&state);
        let item: Option<Vec<u128>> = state.take(0, 30_000).map(Iterator::collect);
        assert_eq!(item, Some(vec![u128::from(30_000 + round)]));
        assert!(before - left(&state) <= 1, "what is asked for, and nothing else");
    }
}

#[test]
fn prefixes_and_rules_that_have_ended_are_passed_over_where_they_are_in_the_way() {
    let mut state = state(
        "table nets: lpm(u128) -> port { capacity 200 age 10s }
        table acl: rules(u128, u16) -> port { capacity 2000 age 10s }
        start stage all() { insert nets[1] = 1 else { drop gone }  insert acl[1, 2] = 1 else { drop gone }  flood }",
    );
    let prefix = |length: u8| match length {
        0 => Match::Any,
        128 => Match::Exact(0),
        length => Match::Prefix { value: 0, length },
    };
    let entry = |key: Vec<Match>, value: u128| Entry { key, value: vec![value], priority: 0 };
    for length in 0..=128u8 {
        state.insert_entry(0, &entry(vec![prefix(length)], 2), (length != 3).then_some(0)).expect("room");
        for port in 0..10 {
            let key = vec![prefix(length), Match::Range { low: 0, high: 100 + port }];
            state.insert_entry(1, &entry(key, 2), Some(0)).expect("room");
        }
    }
    state.insert_entry(1, &entry(vec![Match::Any, Match::Any], 7), None).expect("room");
    state.handle_due(10_000_000_000, &mut Idle, &mut Outputs::default());
    let left = |state: &ProgramState<Fast>| {
        (state.tables.prefixes[0].expiry().left(), state.tables.rules[0].expiry().left())
    };
    let before = left(&state);
    assert!(before.0 >= 120 && before.1 >= 1280);
    let row = state.tables.prefixes[0].find(0).expect("the one that stays");
    assert_eq!(state.tables.prefixes[0].rows().words(row), [2]);
    assert_eq!(state.tables.prefixes[0].find(1 << 127), None);
    for key in [[0, 0, 0], [0, 0, 101], [0, 1, 50], [1 << 63, 0, 100]] {
        let row = state.tables.rules[0].find(&key).expect("the last one stays");
        assert_eq!(state.tables.rules[0].rows().words(row), [7]);
        assert_eq!(state.tables.rules[0].find_value(&key), row);
    }
    assert_eq!(left(&state), before, "a lookup takes nothing out");
    // One that is renewed ends no more, and what takes its place in memory does not end for it.
    let again = entry(vec![prefix(128), Match::Range { low: 0, high: 100 }], 5);
    state.insert_entry(1, &again, Some(10_000_000_000)).expect("room");
    assert!(state.remove_entry(1, &[Match::Any, Match::Any], 0));
    let row = state.tables.rules[0].find(&[0, 0, 50]).expect("it is there again");
    assert_eq!(state.tables.rules[0].rows().words(row), [5]);
}

/// Counts the handlers that run, and the time at which the last one did.
#[derive(Default)]
struct Counted {
    runs: u64,
    at: u64,
}

impl RunHandler<Fast> for Counted {
    fn run_handler(&mut self, state: &mut ProgramState<Fast>, _: u32, _: &[u128], _: &mut Outputs) {
        assert!(self.at <= state.now, "time goes on");
        (self.runs, self.at) = (self.runs + 1, state.now);
    }
}

#[test]
fn events_that_are_due_together_do_not_stop_a_batch() {
    let mut state = state("event e(n: u32) { }  start stage all() { after 10us raise e(1)  flood }");
    let (mut outputs, mut counted) = (Outputs::default(), Counted::default());
    for number in 0..MAX_TIMERS as u128 {
        state.raise(0, std::iter::once(number), Some(10_000), &mut outputs);
    }
    // A batch of packets that came within 25 microseconds.
    for packet in 1..=256u64 {
        state.handle_due(10_000_000 + 100 * packet, &mut counted, &mut outputs);
        assert_eq!(state.next_wake, 10_000, "the rest stays due");
    }
    // While so many are pending, they come faster.
    let in_time = 255 * 100 * 32 / TIME_OF_RUN;
    assert!((in_time - 1..=in_time).contains(&(counted.runs - u64::from(MAX_DUE_RUNS))), "{}", counted.runs);
    // Where time passes they all get their turn.
    let left = MAX_TIMERS as u64 - counted.runs;
    let mut batches = 0;
    while counted.runs < MAX_TIMERS as u64 {
        batches += 1;
        let before = counted.runs;
        state.advance(10_025_600 + 1_000_000 * batches, &mut counted, &mut outputs);
        assert!(counted.runs - before <= MAX_DUE_RUNS.into());
    }
    assert_eq!(batches, left.div_ceil(MAX_DUE_RUNS.into()));
    assert_eq!(state.lost_events(), 0);
}

/// What a packet may do to tables whose entries hold items of a pool.
#[derive(Clone, Debug)]
enum Deed {
    /// Takes an item from a hint on, and learns it for a key.
    Take(u32, u32, u64),
    /// Gives back an item, whoever holds it.
    Give(u128),
    /// Learns an item for a key, whoever holds it.
    Learn(u32, u64, u64),
    Remove(u32, u64),
    Hit(u32, u64),
    /// Time passes, and so many steps take out what has ended.
    Wait(u64, u32),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let (table, key, item) = (0..2u32, 0..12u64, 0..12u64);
    let deed = prop_oneof![
        8 => (table.clone(), 0..40u32, key.clone()).prop_map(|(table, hint, key)| Deed::Take(table, hint, key)),
        1 => item.clone().prop_map(|item| Deed::Give(item.into())),
        1 => (table.clone(), key.clone(), item).prop_map(|(table, key, item)| Deed::Learn(table, key, item)),
        2 => (table.clone(), key.clone()).prop_map(|(table, key)| Deed::Remove(table, key)),
        4 => (table, key).prop_map(|(table, key)| Deed::Hit(table, key)),
        4 => (0..8u64, 0..3u32).prop_map(|(more, steps)| Deed::Wait(more, steps)),
    ];
    prop::collection::vec(deed, 1..120)
}

/// What somebody sees who does all that.
fn seen<F: TableFamily>(deeds: &[Deed]) -> Vec<(Option<Vec<u128>>, u64)> {
    let mut state: ProgramState<F> = state_of(
        "pool numbers: (u8, u8) { 1..2, 3..7 }
        table out: exact(u32) -> (u8, u8) { capacity 5 idle 10ns evict refuse releases numbers }
        table other: exact(u32) -> (u8, u8) { capacity 9 idle 20ns age 25ns evict refuse releases numbers }
        start stage all() {
            match take(numbers) { some (a, n) => { learn out[1] = (a, n) else {}  learn other[1] = (a, n) else {} } none => {} }
            flood
        }",
    );
    let packing = state.tables.shapes[0].value.clone();
    let (mut time, mut outputs) = (0, Outputs::default());
    let one = |deed: &Deed| {
        state.now = time;
        let columns = |item: u128| [item / 5 + 1, item % 5 + 3];
        let words = |item: u128| {
            let mut words = [0; MAX_WORDS];
            packing.pack(columns(item), &mut words[..packing.words]);
            words
        };
        let mut told = 0;
        let item = match *deed {
            Deed::Take(table, hint, key) => {
                let item: Option<Vec<u128>> = state.take(0, hint).map(Iterator::collect);
                if let Some(item) = &item {
                    let number = (item[0] - 1) * 5 + item[1] - 3;
                    told = state.learn_releasing(table, &[key], &words(number)[..packing.words]) as u64;
                }
                item
            }
            Deed::Give(item) => {
                state.give(0, &columns(item));
                None
            }
            Deed::Learn(table, key, item) => {
                told = state.learn_releasing(table, &[key], &words(item.into())[..packing.words]) as u64;
                None
            }
            Deed::Remove(table, key) => {
                state.remove_releasing(table, &[key]);
                None
            }
            Deed::Hit(table, key) => {
                let found = state.tables.exact[table as usize].find(&[key], time);
                told = found.map_or(99, |value| value[0]);
                None
            }
            Deed::Wait(more, steps) => {
                time += more;
                state.handle_due_in(steps, time, &mut Idle, &mut outputs);
                None
            }
        };
        (item, told)
    };
    deeds.iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn items_of_entries_that_have_ended_are_as_free_as_if_they_had_been_taken_out(deeds in deeds()) {
        prop_assert_eq!(seen::<Fast>(&deeds), seen::<Reference>(&deeds));
    }
}

#[test]
fn prefixes_and_rules_that_end_together_go_one_at_a_time_and_none_is_found() {
    let text = "
        table nets: lpm(u32) -> port { capacity 1000 age 10s entries { 0x0a000000 / 8 => 9 } }
        table acl: rules(u32) -> port { capacity 1000 age 10s }
        start stage all() {
            insert nets[length / 24] = 1 else { drop gone }
            insert acl[length / 24] = 1 else { drop gone }
            flood
        }";
    let mut state = state(text);
    let net = |number: u32| Match::Prefix { value: u128::from(0x0a00_0000 + (number << 8)), length: 24 };
    for number in 0..999 {
        let entry = Entry { key: vec![net(number)], value: vec![1], priority: 0 };
        state.insert_entry(0, &entry, Some(0)).expect("room");
        state.insert_entry(1, &entry, Some(0)).expect("room");
    }
    let left = |state: &ProgramState<Fast>| {
        state.tables.prefixes[0].expiry().left() + state.tables.rules[0].expiry().left()
    };
    let mut outputs = Outputs::default();
    for packet in 0..100u32 {
        let before = left(&state);
        state.handle_due(10_000_000_000, &mut Idle, &mut outputs);
        assert!(packet == 0 || before - left(&state) <= 1, "one a packet");
        // The longest prefix that has not ended, which is that of the text.
        let row = state.tables.prefixes[0].find32(0x0a00_0000 + (packet << 8)).to_owned();
        assert_eq!(state.tables.prefixes[0].rows().words(row), [9]);
        assert_eq!(state.tables.rules[0].find(&[u64::from(0x0a00_0000 + (packet << 8))]), None);
        let reports = state.tables.reports();
        assert_eq!((reports[0].entries, reports[0].expired), (1, 999));
        assert_eq!((reports[1].entries, reports[1].expired), (0, 999));
        let running = state.tables.running_reports();
        assert_eq!(running[0].entries + running[1].entries, 1 + left(&state) as u64);
        assert_eq!(
            (running[0].entries + running[0].expired, state.tables.held(0)),
            (1000, running[0].entries)
        );
    }
    assert!(left(&state) >= 2 * 999 - 3 * 100, "{} are left", left(&state));
    // New ones find room, and stand behind what has not ended.
    for number in 0..999 {
        let entry = Entry { key: vec![net(number)], value: vec![2], priority: 0 };
        state.insert_entry(0, &entry, Some(10_000_000_000)).expect("room");
        state.insert_entry(1, &entry, Some(10_000_000_000)).expect("room");
    }
    assert_eq!((state.tables.learned(0).len(), state.tables.learned(1).len()), (999, 999));
    assert_eq!((state.tables.entries(0).len(), left(&state)), (1000, 0));
}

/// Notes what runs: when, and with which arguments.
#[derive(Default)]
struct Noting(Vec<(u64, Vec<u128>)>);

impl<F: TableFamily> RunHandler<F> for Noting {
    fn run_handler(&mut self, state: &mut ProgramState<F>, _: u32, args: &[u128], _: &mut Outputs) {
        self.0.push((state.now, args.to_vec()));
    }
}

const EXPIRING: &str = "table hosts: exact(u32) -> u8 { capacity 20000 idle 10s evict lru expires gone }
    event gone(who: u32, what: u8) {}
    event later() {}
    start stage all() { learn hosts[1] = 2  after 1s raise later()  flood }";

/// What runs when `MANY` entries end in a few nanoseconds, between which a timer is due.
fn ends_together<F: TableFamily>() -> Vec<Vec<(u64, Vec<u128>)>> {
    const MANY: u64 = 250;
    let (mut state, mut outputs) = (state_of::<F>(EXPIRING), Outputs::default());
    for number in 0..MANY {
        state.now = number / 50;
        state.learn_releasing(0, &[number ^ 0x155], &[number % 200]);
    }
    state.raise(1, std::iter::empty(), Some(9_999_999_998), &mut outputs);
    let mut steps = Vec::new();
    for time in
        [9_999_999_999, 10_000_000_000, 10_000_000_009, 10_000_500_000, 11_000_000_000, 12_000_000_000]
    {
        let mut noting = Noting::default();
        state.handle_due(time, &mut noting, &mut outputs);
        steps.push(noting.0);
    }
    assert_eq!(state.tables.reports()[0].expired, MANY);
    assert_eq!((state.events(), state.lost_events()), (vec![MANY, 1], 0));
    assert_eq!(outputs.raised.len() as u64, MANY + 1);
    steps
}

#[test]
fn entries_that_raise_an_event_end_in_the_order_of_their_times_within_the_budget_of_handlers() {
    let steps = ends_together::<Fast>();
    assert_eq!(steps, ends_together::<Reference>());
    let counts: Vec<usize> = steps.iter().map(Vec::len).collect();
    assert_eq!(counts, [0, 50, 14, 62, 64, 61], "64 at one moment, one more for each 8 µs");
    let all: Vec<(u64, Vec<u128>)> = steps.concat();
    let keys = |all: &[(u64, Vec<u128>)]| -> Vec<u128> { all.iter().map(|(_, args)| args[0]).collect() };
    for (fifty, part) in all[..64].chunks(50).enumerate() {
        let mut sorted = keys(part);
        sorted.sort_unstable();
        assert_eq!(keys(part), sorted, "at one time in the order of keys");
        assert!(part.iter().all(|(now, _)| *now == 10_000_000_000 + fifty as u64));
        assert!(part.iter().all(|(_, args)| args[1] == ((args[0] ^ 0x155) % 200)), "with their values");
    }
    assert_eq!(all.iter().position(|(_, args)| args.is_empty()), Some(150), "the timer comes at its time");
}

#[test]
fn a_program_that_takes_over_goes_on_with_what_is_left_of_the_budget() {
    const MANY: u64 = 10_000;
    let [mut old, mut new] = [state(EXPIRING), state(EXPIRING)];
    let mut outputs = Outputs::default();
    for state in [&mut old, &mut new] {
        for number in 0..MANY {
            state.now = number * TIME_OF_RUN;
            state.learn_releasing(0, &[number], &[1]);
        }
    }
    let mut ended = |state: &mut ProgramState<Fast>, time: u64| {
        let mut noting = Noting::default();
        state.advance(time, &mut noting, &mut outputs);
        noting.0.len() as u64
    };
    let after = 10_000_000_000 + MANY * TIME_OF_RUN;
    assert_eq!(ended(&mut old, 9_999_999_999), 0);
    assert_eq!(ended(&mut old, after), MAX_RUNS.into(), "of what has become due one by one");
    new.handover().take_over(&mut old.handover(), &SharedState::default());
    assert_eq!(ended(&mut new, after + 1), MAX_DUE_RUNS.into(), "the rest was due before and is late");
}

/// What runs, call by call, when many prefixes and an entry between them end together.
fn prefixes_end_together<F: TableFamily>(many: u128) -> Vec<Vec<(u64, Vec<u128>)>> {
    let mut state = state_of::<F>(
        "table nets: lpm(u8, u32) -> u16 { capacity 1000 age 10s expires left }
        table hosts: exact(u32) -> u8 { capacity 8 age 10s evict lru expires gone }
        event left(site: u8, net: u32, length: u8, what: u16) {}
        event gone(who: u32, what: u8) {}
        event later() {}
        start stage all() { learn hosts[1] = 2  insert nets[1, 2] = 3 else {}  after 1s raise later()  flood }",
    );
    let mut outputs = Outputs::default();
    for number in (0..many).rev() {
        let (value, length) = (number << 16, 16 + (number % 16) as u8);
        let key = vec![Match::Exact(number % 3), Match::Prefix { value, length }];
        let time = if number < many / 2 { 0 } else { 5 };
        state.insert_entry(0, &Entry { key, value: vec![number], priority: 0 }, Some(time)).expect("room");
        if number == many / 2 {
            state.now = 5;
            state.insert_entry(1, &Entry::exact(&[7], &[8]), Some(5)).expect("room");
            state.now = 0;
        }
    }
    state.raise(2, std::iter::empty(), Some(10_000_000_005), &mut outputs);
    let mut calls = Vec::new();
    while calls.iter().map(Vec::len).sum::<usize>() < many as usize + 2 {
        let mut noting = Noting::default();
        match calls.len() {
            0 => state.handle_due(9_999_999_999, &mut noting, &mut outputs),
            1 => state.advance(10_000_000_000, &mut noting, &mut outputs),
            so_far => {
                let time = 10_000_000_005 + TIME_OF_RUN * so_far as u64;
                state.handle_due(time, &mut noting, &mut outputs);
            }
        }
        calls.push(noting.0);
    }
    let report = &state.tables.reports()[0];
    assert_eq!((report.entries, report.expired), (0, many as u64));
    assert_eq!((state.events(), state.tables.next_deadline()), (vec![many as u64, 1, 1], u64::MAX));
    calls
}

#[test]
fn prefixes_that_raise_an_event_end_in_order_and_one_before_each_packet() {
    let calls = prefixes_end_together::<Fast>(400);
    assert_eq!(calls, prefixes_end_together::<Reference>(400));
    assert_eq!((calls[0].len(), calls[1].len()), (0, 64));
    assert!(calls[2..].iter().filter(|call| call.len() > 1).count() <= 2, "an entry and a timer go with one");
    let all = calls.concat();
    for half in [&all[..200], &all[200..400]] {
        let keys: Vec<&[u128]> = half.iter().map(|(_, args)| &args[..3]).collect();
        assert!(keys.is_sorted(), "at one time in the order of keys");
        assert!(half.iter().all(|(_, args)| args[1] == args[3] << 16 && args[0] == args[3] % 3));
        assert!(half.iter().all(|(_, args)| args[2] == 16 + args[3] % 16), "with the length of the prefix");
    }
    let last: Vec<&[u128]> = all[400..].iter().map(|(_, args)| args.as_slice()).collect();
    assert_eq!(last, [&[7, 8][..], &[]], "the entry, then the timer");
}

#[test]
fn entries_that_were_hit_are_looked_at_a_few_at_a_time_before_one_of_them_ends() {
    let (mut state, mut outputs) = (state(EXPIRING), Outputs::default());
    for number in 0..1000 {
        state.learn_releasing(0, &[number], &[1]);
    }
    for number in 1..1000 {
        state.tables.exact[0].find(&[number], 3_000_000_000);
    }
    let mut noting = Noting::default();
    let mut calls = 0;
    while state.next_wake <= 10_000_000_000 {
        state.handle_due(10_000_000_000, &mut noting, &mut outputs);
        calls += 1;
    }
    assert_eq!(noting.0, [(10_000_000_000, vec![0, 1])]);
    assert_eq!(calls, 999 / (LOOKS_FOR_STEP * STEPS_BEFORE_PACKET) + 1);
    for moment in 0..1000 / u64::from(MAX_DUE_RUNS) + 1 {
        state.handle_due(13_000_000_000 + moment * 1_000_000, &mut noting, &mut outputs);
    }
    assert_eq!(noting.0.len(), 1000);
    assert!(noting.0[1..].iter().all(|(now, _)| *now >= 13_000_000_000));
}

#[test]
fn what_a_full_table_evicts_does_not_gather_in_the_list() {
    let capacity = 100;
    let mut state = state(&EXPIRING.replace("20000", "100"));
    for number in 0..20_000_u64 {
        // Keys come in no order.
        state.learn_releasing(0, &[number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32], &[1]);
        let listed = state.tables.deadlines[0].as_ref().map_or(0, |list| list.len());
        assert_eq!((listed, state.tables.held(0)), ((number as usize + 1).min(capacity), listed as u64));
    }
}

#[test]
fn entries_that_the_control_plane_removes_or_replaces_raise_no_event() {
    let (mut state, mut outputs) = (state(EXPIRING), Outputs::default());
    for number in 0..3 {
        state.insert_entry(0, &Entry::exact(&[number], &[1]), Some(0)).expect("room");
    }
    assert!(state.remove_entry(0, &[Match::Exact(1)], 0));
    state.insert_entry(0, &Entry::exact(&[2], &[1]), None).expect("room");
    let mut noting = Noting::default();
    state.handle_due(10_000_000_000, &mut noting, &mut outputs);
    assert_eq!(noting.0, [(10_000_000_000, vec![0, 1])], "one is removed, one has become permanent");
    state.insert_entry(0, &Entry::exact(&[7], &[1]), Some(10_000_000_000)).expect("room");
    state.replace_entries(0, vec![Entry::exact(&[8], &[1])]).expect("room");
    state.handle_due(30_000_000_000, &mut noting, &mut outputs);
    assert_eq!((noting.0.len(), state.tables.held(0)), (1, 1));
    state.insert_entry(0, &Entry::exact(&[7], &[9]), Some(30_000_000_000)).expect("room");
    state.handle_due(40_000_000_000, &mut noting, &mut outputs);
    assert_eq!(noting.0[1..], [(40_000_000_000, vec![7, 9])]);
}

#[test]
fn groups_with_one_history_send_flows_to_the_same_members_whatever_other_groups_did() {
    let mut state = state("group hops[3]: u16 { buckets 64 capacity 8 }\nstart stage all() { flood }\n");
    let memory = &mut state.memory;
    // What the first group does before and between the others' joins.
    for member in 1..=6 {
        assert!(memory.join(0, 0, [member]));
    }
    for member in [5, 2, 3] {
        assert!(memory.leave(0, 0, [member]));
    }
    for member in 10..=14 {
        assert!(memory.join(0, 1, [member]));
        assert!(memory.join(0, 0, [90 + member]));
    }
    for group in [1, 2] {
        if group == 2 {
            (10..=14).for_each(|member| assert!(memory.join(0, 2, [member])));
        }
        assert!(memory.leave(0, group, [11]) && memory.leave(0, group, [13]));
        assert!(memory.join(0, group, [20]) && memory.join(0, group, [21]));
    }
    let chosen = |group| -> Vec<_> {
        (0..4096_u32).map(|flow| memory.choose(0, group, flow << 20).map(<[u64]>::to_vec)).collect()
    };
    assert_eq!(chosen(1), chosen(2));
    assert!(!memory.join(0, 0, [1000]), "a group has room for its members alone");
}

/// Notes when the handlers without arguments ran, which are the periodic ones, and how many others did.
#[derive(Default)]
struct Periods {
    times: Vec<u64>,
    others: usize,
}

impl<F: TableFamily> RunHandler<F> for Periods {
    fn run_handler(&mut self, state: &mut ProgramState<F>, _: u32, args: &[u128], _: &mut Outputs) {
        if args.is_empty() { self.times.push(state.now) } else { self.others += 1 }
    }
}

#[test]
fn periodic_handlers_keep_their_times_while_thousands_of_entries_wait_to_end() {
    const ENTRIES: usize = 5000;
    const BEGIN: u64 = 10_000_000_000;
    let every = "every 1ms { set ticks = ticks +| 1 }\nregister ticks: u64\n";
    // That entries were hit is found out before a packet, for a few of them each time.
    for hit_at in [0, 5_000_000_000] {
        let (mut state, mut outputs) = (state(&(EXPIRING.to_owned() + every)), Outputs::default());
        let mut seen = Periods::default();
        state.handle_due(0, &mut seen, &mut outputs);
        for number in 0..ENTRIES as u64 {
            state.learn_releasing(0, &[number], &[1]);
        }
        for number in 0..ENTRIES as u64 {
            state.tables.exact[0].find(&[number], hit_at);
        }
        state.handle_due(BEGIN - 500_000, &mut seen, &mut outputs);
        seen = Periods::default();
        let (mut time, mut wait) = (BEGIN, 0);
        loop {
            state.handle_due(time, &mut seen, &mut outputs);
            if state.tables.next_deadline() > time {
                break;
            }
            (time, wait) = (time + 50_000, wait + 1);
        }
        assert_eq!(seen.others, if hit_at == 0 { ENTRIES } else { 0 });
        assert!(wait > 50, "{wait}: nothing waited");
        let periods: Vec<u64> = (BEGIN..=time).step_by(1_000_000).collect();
        assert_eq!(seen.times, periods);
    }
}
