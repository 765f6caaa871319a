//! Requests and answers come back as they were, garbage is an error, and a client over a pair of sockets
//! keeps answers and what subscriptions tell apart.

use client::answer::{EventTold, ListedValue, PuntTold, TableAnswer};
use client::frame::{LONGEST_ANSWER, LONGEST_REQUEST, TableFrame};
use client::message::TableRequest;
use client::{
    ColumnSchema, ColumnType, CountedEntry, EntryCountTold, EventSchema, GroupSchema, KeyMatch, ListedEntry,
    ProgramSchema, RefusalCode, RefusalPlace, RefusedChanges, RequestRefusal, TableClient, TableEntry,
    TableSchema, text,
};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn column(name: &str, kind: ColumnType, bits: u8) -> ColumnSchema {
    ColumnSchema { name: name.into(), kind, bits, names: Vec::new() }
}

fn table(name: &str, kind: &str, keys: Vec<ColumnSchema>, values: Vec<ColumnSchema>) -> TableSchema {
    TableSchema {
        name: name.into(),
        kind: kind.into(),
        ranked: kind == "rules",
        keys,
        values,
        capacity: 100,
        idle: None,
        age: Some(5),
        counts: None,
        refuses: RefusedChanges::default(),
    }
}

fn schema() -> ProgramSchema {
    let names = vec![("0".to_owned(), "permit".to_owned()), ("1".to_owned(), "mark".to_owned())];
    let variant = ColumnSchema { names, ..column("variant", ColumnType::Names, 1) };
    ProgramSchema {
        version: 1,
        generation: 3,
        program: "p.rav".into(),
        workers: 2,
        tables: vec![
            table(
                "hosts",
                "exact",
                vec![column("", ColumnType::Mac, 48)],
                vec![column("", ColumnType::Port, 16)],
            ),
            table(
                "acl",
                "rules",
                vec![column("from", ColumnType::Ip4, 32), column("", ColumnType::Uint, 7)],
                vec![variant, column("mark.level", ColumnType::Uint, 8)],
            ),
            table("words", "patterns", Vec::new(), vec![column("", ColumnType::Uint, 128)]),
        ],
        groups: vec![GroupSchema {
            name: "servers".into(),
            columns: vec![column("", ColumnType::Mac, 48), column("", ColumnType::Uint, 3)],
            size: 4,
            capacity: 16,
            refuses: None,
        }],
        events: vec![EventSchema {
            name: "moved".into(),
            arguments: vec![column("host", ColumnType::Ip6, 128), column("", ColumnType::Bool, 1)],
        }],
        reasons: Vec::new(),
        untold: None,
    }
}

fn part(bits: u8) -> impl Strategy<Value = KeyMatch> {
    let most = if bits >= 128 { u128::MAX } else { (1 << bits) - 1 };
    let number = move || any::<u128>().prop_map(move |number| number & most);
    prop_oneof![
        Just(KeyMatch::Any),
        number().prop_map(KeyMatch::Exact),
        (number(), 0..=bits).prop_map(|(value, length)| KeyMatch::Prefix { value, length }),
        (number(), number()).prop_map(|(value, mask)| KeyMatch::Masked { value, mask }),
        (number(), number()).prop_map(|(low, high)| KeyMatch::Range { low, high }),
    ]
}

fn searched() -> impl Strategy<Value = KeyMatch> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    (bytes, any::<bool>(), any::<u32>(), any::<Option<u32>>())
        .prop_map(|(bytes, nocase, offset, depth)| KeyMatch::Bytes { bytes, nocase, offset, depth })
}

/// The number of a table, and an entry that has the form of its entries.
fn entry() -> impl Strategy<Value = (u16, TableEntry)> {
    let of = |table: u16, key: BoxedStrategy<Vec<KeyMatch>>, value: BoxedStrategy<Vec<u128>>| {
        (key, any::<u32>(), value)
            .prop_map(move |(key, priority, value)| (table, TableEntry { key, priority, value }))
    };
    prop_oneof![
        of(
            0,
            part(48).prop_map(|part| vec![part]).boxed(),
            (0_u128..65536).prop_map(|port| vec![port]).boxed()
        ),
        of(
            1,
            (part(32), part(7)).prop_map(|(a, b)| vec![a, b]).boxed(),
            (0_u128..2, 0_u128..256).prop_map(|(a, b)| vec![a, b]).boxed()
        ),
        of(
            2,
            searched().prop_map(|part| vec![part]).boxed(),
            any::<u128>().prop_map(|number| vec![number]).boxed()
        ),
    ]
}

fn request() -> impl Strategy<Value = TableRequest> {
    let names = || prop::collection::vec("[a-z_]{0,20}", 0..4);
    let cursor = prop::collection::vec(any::<u8>(), 0..=64);
    prop_oneof![
        Just(TableRequest::Schema),
        (0_u16..3, any::<u16>(), any::<u32>(), cursor)
            .prop_map(|(table, worker, most, cursor)| TableRequest::List { table, worker, most, cursor }),
        entry().prop_map(|(table, entry)| TableRequest::Find {
            table,
            key: entry.key,
            priority: entry.priority
        }),
        (0_u16..3, any::<bool>(), ".{0,40}").prop_map(|(table, keys_alone, text)| TableRequest::Read {
            table,
            keys_alone,
            text
        }),
        entry().prop_map(|(table, entry)| TableRequest::Insert { table, entry }),
        (entry(), any::<Option<u64>>()).prop_map(|((table, entry), lifetime)| TableRequest::Learn {
            table,
            entry,
            lifetime
        }),
        entry().prop_map(|(table, entry)| TableRequest::Remove {
            table,
            key: entry.key,
            priority: entry.priority
        }),
        (0_u16..3).prop_map(|table| TableRequest::Replace { table }),
        (any::<u32>(), prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(count, entries)| TableRequest::More { count, entries }),
        Just(TableRequest::Commit),
        Just(TableRequest::Abandon),
        (0_u16..3).prop_map(|table| TableRequest::Default { table }),
        any::<Option<u16>>().prop_map(|port| TableRequest::SetDefault {
            table: 0,
            value: port.map(|port| vec![port.into()])
        }),
        any::<u32>().prop_map(|index| TableRequest::Members { group: 0, index }),
        (any::<bool>(), any::<u32>(), 0_u128..1 << 48, 0_u128..8).prop_map(|(joins, index, a, b)| {
            let (group, member) = (0, vec![a, b]);
            match joins {
                true => TableRequest::Join { group, index, member },
                false => TableRequest::Leave { group, index, member },
            }
        }),
        (any::<u32>(), names(), names()).prop_map(|(snap, events, reasons)| TableRequest::Subscribe {
            snap,
            events,
            reasons
        }),
        any::<u32>().prop_map(|number| TableRequest::Unsubscribe { number }),
        (0_u16..3, any::<u16>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..=64))
            .prop_map(|(table, worker, most, cursor)| TableRequest::Counts { table, worker, most, cursor }),
    ]
}

fn whole(bytes: &[u8], most: usize) -> TableFrame<'_> {
    let (frame, taken) = TableFrame::first(bytes, most).expect("a length that can be").expect("whole");
    assert_eq!(taken, bytes.len());
    frame
}

proptest! {
    #[test]
    fn requests_come_back_as_they_were(request in request(), number: u32) {
        let mut bytes = Vec::new();
        prop_assert_eq!(request.push(&mut bytes, number, &schema()), Ok(()));
        let frame = whole(&bytes, LONGEST_REQUEST);
        prop_assert_eq!(frame.number, number);
        prop_assert_eq!(TableRequest::read(frame, &schema()), Ok(request));
    }

    #[test]
    fn entries_come_back_as_they_were((table, entry) in entry(), worker: u16, cursor in prop::collection::vec(any::<u8>(), 0..=64)) {
        let answer = TableAnswer::Entries { cursor, entries: vec![ListedEntry { worker, entry }; 2] };
        let mut bytes = Vec::new();
        answer.push(&mut bytes, 9, &schema(), Some(table));
        prop_assert_eq!(TableAnswer::read(whole(&bytes, LONGEST_ANSWER), &schema(), Some(table)), Ok(answer));
    }

    #[test]
    fn counts_come_back_as_they_were((table, entry) in entry(), worker: u16, packets: u64, bytes: u64, times: Option<(u64, u64)>) {
        let (first, last) = times.unzip();
        let counted = CountedEntry { worker, entry, count: EntryCountTold { packets, bytes, first, last } };
        let answer = TableAnswer::Counts { cursor: vec![1, 2], entries: vec![counted; 2] };
        let mut bytes = Vec::new();
        answer.push(&mut bytes, 9, &schema(), Some(table));
        prop_assert_eq!(TableAnswer::read(whole(&bytes, LONGEST_ANSWER), &schema(), Some(table)), Ok(answer));
    }

    #[test]
    fn garbage_is_an_error_and_never_more(kind: u8, body in prop::collection::vec(any::<u8>(), 0..80), table in prop::option::of(0_u16..4)) {
        let frame = TableFrame { number: 1, kind, body: &body };
        // What is understood is written in the same way, but for bits that mean nothing.
        if let Ok(request) = TableRequest::read(frame, &schema()) {
            let mut bytes = Vec::new();
            prop_assert_eq!(request.push(&mut bytes, 1, &schema()), Ok(()));
            prop_assert_eq!(TableRequest::read(whole(&bytes, LONGEST_REQUEST), &schema()), Ok(request));
        }
        let _ = TableAnswer::read(frame, &schema(), table);
    }

    #[test]
    fn a_request_that_ends_too_early_is_refused(request in request(), cut: prop::sample::Index) {
        let mut bytes = Vec::new();
        prop_assert_eq!(request.push(&mut bytes, 1, &schema()), Ok(()));
        let frame = whole(&bytes, LONGEST_REQUEST);
        let ends = matches!(request, TableRequest::Read { .. } | TableRequest::More { .. });
        prop_assume!(!frame.body.is_empty() && !ends);
        let body = &frame.body[..cut.index(frame.body.len())];
        let longer = [frame.body, &[0]].concat();
        for body in [body, &longer] {
            let read = TableRequest::read(TableFrame { body, ..frame }, &schema());
            prop_assert!(read.is_err(), "{:?}", read);
        }
    }
}

#[test]
fn other_answers_come_back_as_they_were() {
    let fault = RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::value(3, 4), "does not fit");
    let event = EventTold { event: 0, worker: 2, time: 7, delay: 8, arguments: vec![u128::MAX, 1] };
    let punt = PuntTold { reason: 4, worker: 1, port: 3, time: 9, length: 1500, bytes: vec![1, 2, 3] };
    for answer in [
        TableAnswer::Done { count: 7 },
        TableAnswer::Schema(schema()),
        TableAnswer::Event(event),
        TableAnswer::Punt(punt),
        TableAnswer::Lost { count: u64::MAX },
        TableAnswer::Values(vec![
            ListedValue { worker: 2, columns: vec![7, u128::MAX] },
            ListedValue { worker: 1, columns: Vec::new() },
        ]),
        TableAnswer::Error(fault),
    ] {
        let mut bytes = Vec::new();
        answer.push(&mut bytes, 9, &schema(), None);
        assert_eq!(TableAnswer::read(whole(&bytes, LONGEST_ANSWER), &schema(), None), Ok(answer));
    }
}

#[test]
fn a_value_with_too_many_bits_is_told_with_its_column() {
    let entry = |key, value| TableEntry { key, priority: 0, value };
    let mut bytes = Vec::new();
    let fits = entry(vec![KeyMatch::Any, KeyMatch::Exact(127)], vec![0, 0]);
    assert_eq!(TableRequest::Insert { table: 1, entry: fits }.push(&mut bytes, 1, &schema()), Ok(()));
    // length, number, kind, table, kind of the first part, kind of the second part
    bytes[4 + 4 + 1 + 2 + 1 + 1] = 128;
    let fault = TableRequest::read(whole(&bytes, LONGEST_REQUEST), &schema()).expect_err("128 has 8 bits");
    assert_eq!((fault.code, fault.place), (RefusalCode::Misfit, RefusalPlace::key(0, 1)));

    // The client sends nothing of what does not fit.
    let any = || vec![KeyMatch::Any, KeyMatch::Any];
    let range = KeyMatch::Range { low: 0, high: 128 };
    for (table, entry, place) in [
        (0, entry(vec![KeyMatch::Exact(7)], vec![65_541]), RefusalPlace::value(0, 0)),
        (0, entry(vec![KeyMatch::Exact(1 << 48)], vec![5]), RefusalPlace::key(0, 0)),
        (1, entry(vec![KeyMatch::Any, range], vec![0, 0]), RefusalPlace::key(0, 1)),
        (1, entry(any(), vec![0, 256]), RefusalPlace::value(0, 1)),
        (1, entry(any(), vec![0]), RefusalPlace::entry(0)),
        (1, entry(vec![KeyMatch::Any], vec![0, 0]), RefusalPlace::entry(0)),
        (0, entry(any(), vec![0]), RefusalPlace::entry(0)),
    ] {
        let mut bytes = vec![7];
        let shown = format!("{entry:?}");
        let fault = TableRequest::Insert { table, entry }.push(&mut bytes, 1, &schema());
        let fault = fault.expect_err(&shown);
        assert_eq!((fault.code, fault.place, &bytes[..]), (RefusalCode::Misfit, place, &[7][..]), "{shown}");
    }
}

#[test]
fn a_request_that_is_longer_than_requests_may_be_is_not_sent() {
    let long = |length: usize| "x".repeat(length);
    let subscribe = |events| TableRequest::Subscribe { snap: 0, events, reasons: Vec::new() };
    let read = |text| TableRequest::Read { table: 0, keys_alone: false, text };
    // number, kind, table and flags are counted
    let most = LONGEST_REQUEST - 5 - 3;
    let list = |length| TableRequest::List { table: 0, worker: 0, most: 1, cursor: vec![1; length] };
    for (request, fits) in [
        (subscribe(vec![long(255)]), true),
        (subscribe(vec![long(256)]), false),
        (subscribe(vec![String::new(); 65_536]), false),
        (read(long(most)), true),
        (read(long(most + 1)), false),
        (list(64), true),
        (list(65), false),
    ] {
        let mut bytes = Vec::new();
        let pushed = request.push(&mut bytes, 1, &schema());
        assert_eq!((pushed.is_ok(), !bytes.is_empty()), (fits, fits), "{:?}", pushed.err());
    }
}

#[test]
fn an_answer_that_is_longer_than_answers_may_be_becomes_an_error() {
    // cursor, count, worker, kind of the part, flags, offset, depth, length, priority, value
    let around = 5 + 1 + 4 + 2 + 1 + 1 + 4 + 4 + 4 + 4 + 16;
    for (more, fits) in [(0, true), (1, false)] {
        let bytes = vec![7; LONGEST_ANSWER - around + more];
        let key = vec![KeyMatch::Bytes { bytes, nocase: false, offset: 0, depth: None }];
        let entry = TableEntry { key, priority: 0, value: vec![1] };
        let answer =
            TableAnswer::Entries { cursor: Vec::new(), entries: vec![ListedEntry { worker: 1, entry }] };
        let mut bytes = Vec::new();
        answer.push(&mut bytes, 9, &schema(), Some(2));
        match TableAnswer::read(whole(&bytes, LONGEST_ANSWER), &schema(), Some(2)).expect("is understood") {
            TableAnswer::Entries { .. } => assert!(fits),
            TableAnswer::Error(fault) => assert!(!fits && fault.code == RefusalCode::Limit, "{fault}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn entries_are_written_as_in_the_language() {
    let schema = schema();
    let of = |table: usize, key, priority, value| {
        text::entry(&schema.tables[table], &TableEntry { key, priority, value })
    };
    assert_eq!(of(0, vec![KeyMatch::Exact(0x0200_0000_0007)], 0, vec![3]), "02:00:00:00:00:07 => 3");
    let prefix = KeyMatch::Prefix { value: 0x0a00_0000, length: 8 };
    assert_eq!(
        of(1, vec![prefix, KeyMatch::Range { low: 1, high: 9 }], 5, vec![1, 7]),
        "(10.0.0.0/8, 1..9) priority 5 => mark(7)"
    );
    let masked = KeyMatch::Masked { value: 2, mask: 18 };
    assert_eq!(of(1, vec![KeyMatch::Any, masked], 0, vec![0, 0]), "(_, 2 mask 18) priority 0 => permit");
    let bytes = |bytes: &[u8], nocase, offset, depth| KeyMatch::Bytes {
        bytes: bytes.to_vec(),
        nocase,
        offset,
        depth,
    };
    assert_eq!(
        of(2, vec![bytes(b"GET /", true, 3, Some(20))], 0, vec![1]),
        "\"GET /\" nocase offset 3 depth 20 => 1"
    );
    assert_eq!(of(2, vec![bytes(b"\"\x00", false, 0, None)], 0, vec![1]), "hex \"22 00\" => 1");
    let time = |number| text::value(&column("", ColumnType::Time, 64), number);
    assert_eq!(
        [time(0), time(1), time(2_000), time(3_000_000), time(60_000_000_000)],
        ["0s", "1ns", "2us", "3ms", "60s"]
    );
}

/// A gateway that answers each change in its turn, tells an event before every hundredth answer, and refuses
/// every seventh.
fn imitation(mut stream: UnixStream) {
    let schema = schema();
    let mut held = Vec::new();
    let mut part = [0; 4096];
    let mut begin = None;
    loop {
        let Ok(read @ 1..) = stream.read(&mut part) else { return };
        held.extend(&part[..read]);
        let mut answers = Vec::new();
        if begin.is_none() {
            let Some(end) = held.iter().position(|byte| *byte == b'\n') else { continue };
            assert_eq!(&held[..end], br#"{"ask":"tables","version":1}"#);
            held.drain(..=end);
            begin = Some(0);
            let line = serde_json::json!({ "tables": schema }).to_string() + "\n";
            answers.extend(line.as_bytes());
        }
        while let Some((frame, taken)) = TableFrame::first(&held, LONGEST_REQUEST).expect("lengths are right")
        {
            let number = frame.number;
            if number.is_multiple_of(100) {
                let event = EventTold {
                    event: 0,
                    worker: 1,
                    time: u64::from(number),
                    delay: 0,
                    arguments: vec![1, 1],
                };
                TableAnswer::Event(event).push(&mut answers, 1, &schema, None);
            }
            let fault = RequestRefusal::new(RefusalCode::Full, RefusalPlace::entry(0), "full");
            let answer = if number.is_multiple_of(7) {
                TableAnswer::Error(fault)
            } else {
                TableAnswer::Done { count: 1 }
            };
            answer.push(&mut answers, number, &schema, None);
            held.drain(..taken);
        }
        stream.write_all(&answers).expect("is read");
    }
}

#[test]
fn many_changes_are_in_flight_and_events_come_between_their_answers() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let gateway = std::thread::spawn(move || imitation(theirs));
    let mut client = TableClient::over(ours).expect("is answered");
    assert_eq!(client.schema(), &schema());
    let entry = TableEntry { key: vec![KeyMatch::Exact(1)], priority: 0, value: vec![1] };
    assert_eq!(client.subscribe(vec!["moved".into()], Vec::new(), 0).expect("begins"), 1);
    let changes = (0..20_000).map(|_| TableRequest::Insert { table: 0, entry: entry.clone() });
    let mut told = Vec::new();
    client.change(changes, |place, result| told.push((place, result.is_ok()))).expect("goes on");
    let wanted: Vec<(usize, bool)> = (0..20_000).map(|place| (place, (place + 2) % 7 != 0)).collect();
    assert_eq!(told, wanted);
    for number in 1..=200 {
        let (of, event) = client.next(Duration::from_secs(5)).expect("goes on").expect("has come");
        assert!(of == 1 && matches!(event, TableAnswer::Event(told) if told.time == number * 100));
    }
    assert!(client.next(Duration::from_millis(1)).expect("goes on").is_none());
    drop(client);
    gateway.join().expect("no panic");
}

#[test]
fn counts_of_workers_add_up_and_their_times_span_both() {
    let count = |packets, bytes, first, last| EntryCountTold { packets, bytes, first, last };
    let mut sum = EntryCountTold::default();
    sum.add(EntryCountTold::default());
    assert_eq!(sum, EntryCountTold::default(), "who has counted nothing has no times");
    sum.add(count(2, 100, Some(7), Some(9)));
    sum.add(count(0, 0, None, None));
    assert_eq!(sum, count(2, 100, Some(7), Some(9)));
    sum.add(count(1, 50, Some(5), Some(8)));
    assert_eq!(sum, count(3, 150, Some(5), Some(9)));
}
