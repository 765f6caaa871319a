//! A client beside a gateway that says what a test wants: what it takes for an answer, what for a notice of a
//! subscription, what it sends, and when it gives up.

use client::answer::{EventTold, TableAnswer};
use client::frame::{LONGEST_REQUEST, TableFrame};
use client::message::TableRequest;
use client::{
    ClientError, ColumnSchema, ColumnType, EventSchema, KeyMatch, ProgramSchema, RefusalCode, RefusalPlace,
    RefusedChanges, RequestRefusal, TableClient, TableEntry, TableSchema,
};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a test waits for what has to come.
const LONG: Duration = Duration::from_secs(60);

/// A schema whose only event has so many arguments.
fn schema(generation: u64, arguments: usize) -> ProgramSchema {
    let column = || ColumnSchema { name: String::new(), kind: ColumnType::Uint, bits: 16, names: Vec::new() };
    let table = |kind: &str, keys| TableSchema {
        name: kind.to_owned(),
        kind: kind.to_owned(),
        ranked: false,
        keys,
        values: vec![column()],
        capacity: 1000,
        idle: None,
        age: None,
        counts: None,
        refuses: RefusedChanges::default(),
    };
    ProgramSchema {
        version: 1,
        generation,
        program: format!("{generation}.rav"),
        workers: 1,
        tables: vec![table("exact", vec![column()]), table("patterns", Vec::new())],
        groups: Vec::new(),
        events: vec![EventSchema {
            name: format!("event{generation}"),
            arguments: (0..arguments).map(|_| column()).collect(),
        }],
        reasons: Vec::new(),
        untold: None,
    }
}

/// The gateway's end of a connection.
struct Gateway {
    stream: UnixStream,
    held: Vec<u8>,
}

impl Gateway {
    /// The next request, with its number; `None` if the client has gone.
    fn request(&mut self) -> Option<(u32, TableRequest)> {
        loop {
            if let Some((frame, taken)) = TableFrame::first(&self.held, LONGEST_REQUEST).expect("a length") {
                let request =
                    (frame.number, TableRequest::read(frame, &schema(1, 1)).expect("is understood"));
                self.held.drain(..taken);
                return Some(request);
            }
            let mut part = [0; 4096];
            let read = self.stream.read(&mut part).ok().filter(|read| *read > 0)?;
            self.held.extend(&part[..read]);
        }
    }

    fn say(&mut self, answers: &[(u32, TableAnswer, &ProgramSchema)]) {
        let mut bytes = Vec::new();
        answers.iter().for_each(|(number, answer, schema)| answer.push(&mut bytes, *number, schema, None));
        // The client may have gone.
        let _ = self.stream.write_all(&bytes);
    }
}

/// A client, and what its gateway does behind the first line.
fn beside<T: Send + 'static>(
    acts: impl FnOnce(Gateway) -> T + Send + 'static,
) -> (TableClient, JoinHandle<T>) {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let gateway = thread::spawn(move || {
        let mut byte = [0];
        while byte != *b"\n" {
            theirs.read_exact(&mut byte).expect("the client asks");
        }
        let line = serde_json::json!({ "tables": schema(1, 1) }).to_string() + "\n";
        theirs.write_all(line.as_bytes()).expect("is read");
        acts(Gateway { stream: theirs, held: Vec::new() })
    });
    (TableClient::over(ours).expect("is answered"), gateway)
}

fn event(arguments: &[u128]) -> TableAnswer {
    TableAnswer::Event(EventTold { event: 0, worker: 1, time: 0, delay: 0, arguments: arguments.to_vec() })
}

fn refusal() -> TableAnswer {
    TableAnswer::Error(RequestRefusal::new(RefusalCode::Full, RefusalPlace::entry(1), "no room"))
}

const DONE: TableAnswer = TableAnswer::Done { count: 1 };

fn subscribe(client: &mut TableClient) -> u32 {
    client.subscribe(vec!["event".to_owned()], Vec::new(), 0).expect("begins")
}

#[test]
fn events_that_come_before_the_answer_to_their_subscription_wait() {
    let (mut client, gateway) = beside(|mut gateway| {
        let (number, _) = gateway.request().expect("subscribes");
        gateway.say(&[(number, event(&[7]), &schema(1, 1)), (number, DONE, &schema(1, 1))]);
    });
    let number = subscribe(&mut client);
    assert_eq!(client.next(LONG).expect("goes on"), Some((number, event(&[7]))));
    gateway.join().expect("no panic");
}

#[test]
fn each_subscription_is_read_by_the_schema_that_it_was_told_last() {
    let (mut client, gateway) = beside(|mut gateway| {
        let (first, _) = gateway.request().expect("subscribes");
        let (one, two, three) = (schema(1, 1), schema(2, 2), schema(3, 3));
        // Another program takes over: nothing was asked for in between.
        let newer = (first, TableAnswer::Schema(two.clone()), &two);
        gateway.say(&[(first, DONE, &one), (first, event(&[1]), &one), newer, (first, event(&[1, 2]), &two)]);
        // The next one has taken over, which the first subscription has not been told yet.
        let (renew, _) = gateway.request().expect("asks for the schema");
        gateway.say(&[(renew, TableAnswer::Schema(three.clone()), &three)]);
        let (second, _) = gateway.request().expect("subscribes");
        gateway.say(&[(second, DONE, &three)]);
        gateway.say(&[(second, event(&[1, 2, 3]), &three), (first, event(&[4, 5]), &two)]);
        let (end, request) = gateway.request().expect("ends one");
        assert_eq!(request, TableRequest::Unsubscribe { number: first });
        // What was on its way may still come.
        gateway.say(&[(first, event(&[6, 7]), &two), (end, DONE, &one), (first, event(&[8, 9]), &two)]);
        gateway.say(&[(second, event(&[9, 9, 9]), &three)]);
        gateway.request()
    });
    let first = subscribe(&mut client);
    let next = |client: &mut TableClient| {
        let (number, told) = client.next(LONG).expect("goes on").expect("is told");
        let TableAnswer::Event(told) = told else { panic!("{told:?}") };
        (number, told.arguments, client.told_schema().generation)
    };
    assert_eq!(next(&mut client), (first, vec![1], 1));
    assert_eq!(next(&mut client), (first, vec![1, 2], 2));
    assert_eq!(client.renew().expect("is told").generation, 3);
    let second = subscribe(&mut client);
    assert_eq!(next(&mut client), (second, vec![1, 2, 3], 3));
    assert_eq!(next(&mut client), (first, vec![4, 5], 2));
    assert!(client.unsubscribe(first).expect("goes on"));
    assert_eq!(next(&mut client), (first, vec![6, 7], 2));
    assert_eq!(next(&mut client), (second, vec![9, 9, 9], 3));
    drop(client);
    assert_eq!(gateway.join().expect("no panic"), None);
}

#[test]
fn what_finds_no_room_while_answers_are_waited_for_is_counted() {
    const TOLD: usize = 70_000;
    let (mut client, gateway) = beside(|mut gateway| {
        let (number, _) = gateway.request().expect("subscribes");
        gateway.say(&[(number, DONE, &schema(1, 1))]);
        let (asked, _) = gateway.request().expect("asks");
        let schema = schema(1, 1);
        for part in 0..TOLD / 1000 {
            let told = (0..1000).map(|of| event(&[(part * 1000 + of) as u128 % 65_536]));
            gateway.say(&told.map(|told| (number, told, &schema)).collect::<Vec<_>>());
        }
        gateway.say(&[(asked, DONE, &schema)]);
        gateway.request()
    });
    let number = subscribe(&mut client);
    client.change_one(&TableRequest::Abandon).expect("is answered");
    let lost = TableAnswer::Lost { count: (TOLD - 65_536) as u64 };
    assert_eq!(client.next(LONG).expect("goes on"), Some((number, lost)));
    for place in TOLD - 65_536..TOLD {
        let wanted = event(&[place as u128 % 65_536]);
        assert_eq!(client.next(LONG).expect("goes on"), Some((number, wanted)), "place {place}");
    }
    drop(client);
    gateway.join().expect("no panic");
}

/// Entries of the table of patterns, of so many bytes each.
fn patterns(lengths: &[usize]) -> Vec<TableEntry> {
    let entry = |length: &usize| TableEntry {
        key: vec![KeyMatch::Bytes { bytes: vec![7; *length], nocase: false, offset: 0, depth: None }],
        priority: 0,
        value: vec![1],
    };
    lengths.iter().map(entry).collect()
}

/// Answers the requests of a replacement, refusing the request of this place, and returns them.
fn replaced(mut gateway: Gateway, refused: usize) -> Vec<TableRequest> {
    let mut requests = Vec::new();
    while let Some((number, request)) = gateway.request() {
        let answer = if requests.len() == refused { refusal() } else { DONE };
        requests.push(request);
        gateway.say(&[(number, answer, &schema(1, 1))]);
    }
    requests
}

#[test]
fn a_replacement_that_is_refused_is_abandoned_and_names_the_entry() {
    for (refused, wanted) in [(1, 1), (2, 3), (4, 1)] {
        let (mut client, gateway) = beside(move |gateway| replaced(gateway, refused));
        let entries = patterns(&[60_000, 60_000, 60_000, 60_000, 60_000]);
        let Err(ClientError::Refused(fault)) = client.replace(1, entries) else { panic!("was refused") };
        assert_eq!(fault.place, RefusalPlace::entry(wanted));
        drop(client);
        let requests = gateway.join().expect("no panic");
        assert_eq!((requests.len(), requests.last()), (refused + 2, Some(&TableRequest::Abandon)));
    }
    // What does not fit is not sent.
    let (mut client, gateway) = beside(|gateway| replaced(gateway, usize::MAX));
    let mut entries = patterns(&[1, 1]);
    entries[1].value = vec![65_536];
    let Err(ClientError::Refused(fault)) = client.replace(1, entries) else { panic!("was refused") };
    assert_eq!((fault.code, fault.place), (RefusalCode::Misfit, RefusalPlace::value(1, 0)));
    drop(client);
    assert_eq!(
        gateway.join().expect("no panic"),
        [TableRequest::Replace { table: 1 }, TableRequest::Abandon]
    );
}

#[test]
fn entries_of_any_length_are_divided_into_requests_of_a_possible_length() {
    // Behind the bytes of a pattern stand 20 more.
    let most = LONGEST_REQUEST - 9 - 20;
    let (mut client, gateway) = beside(|gateway| replaced(gateway, usize::MAX));
    client.replace(1, patterns(&[130_000, 140_000, 5, most, 1])).expect("is taken");
    let Err(ClientError::Refused(fault)) = client.replace(1, patterns(&[1, most + 1])) else {
        panic!("was refused")
    };
    assert_eq!((fault.code, fault.place), (RefusalCode::Limit, RefusalPlace::entry(1)));
    drop(client);
    let requests = gateway.join().expect("no panic");
    let sent: u32 = requests
        .iter()
        .map(|request| if let TableRequest::More { count, .. } = request { *count } else { 0 })
        .sum();
    assert_eq!(sent, 5, "{} requests", requests.len());
}

#[test]
fn an_error_that_belongs_to_no_request_is_told() {
    let (mut client, gateway) = beside(|mut gateway| {
        gateway.request();
        gateway.say(&[(0, refusal(), &schema(1, 1))]);
    });
    let error = client.change_one(&TableRequest::Abandon).expect_err("is refused");
    assert_eq!(error.to_string(), "no room");
    gateway.join().expect("no panic");
}

#[test]
fn a_client_whose_connection_broke_asks_nothing_more() {
    let (mut client, gateway) = beside(|mut gateway| {
        let (number, _) = gateway.request().expect("asks");
        // An answer to something else cannot be told apart from the next one.
        gateway.say(&[(number + 1, DONE, &schema(1, 1)), (number, DONE, &schema(1, 1))]);
        gateway.request()
    });
    let error = client.change_one(&TableRequest::Abandon).expect_err("another answer");
    assert!(matches!(error, ClientError::Answer(_)), "{error}");
    for error in [
        client.change_one(&TableRequest::Abandon).err(),
        client.change([TableRequest::Abandon], |_, _| {}).err(),
        client.next(Duration::ZERO).err(),
    ] {
        assert!(matches!(error, Some(ClientError::Failed)), "{error:?}");
    }
    drop(client);
    assert_eq!(gateway.join().expect("no panic"), None);
}

/// What a client says to the first line of a gateway.
fn first_line(line: &'static str) -> ClientError {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let gateway = thread::spawn(move || {
        theirs.write_all(line.as_bytes()).expect("is read");
        let _ = theirs.read_to_end(&mut Vec::new());
    });
    let error = TableClient::over(ours).err().expect("no tables");
    gateway.join().expect("no panic");
    error
}

#[test]
fn whatever_the_first_line_is_the_client_says_why_it_ends() {
    for line in ["[]\n", "7\n", "\"tables\"\n", "null\n", "{}\n", "{\"tables\":7}\n", "\n"] {
        let error = first_line(line);
        assert!(matches!(error, ClientError::Answer(_)), "{line}: {error}");
    }
    let error = first_line("{\"error\":\"16 clients are being answered already\"}\n").to_string();
    assert_eq!(error, "16 clients are being answered already");
}

#[test]
fn connecting_to_a_gateway_that_hangs_ends() {
    let directory = std::env::temp_dir().join(format!("ravelin-client-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("control.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let begun = Instant::now();
    // Nobody accepts: at last the backlog is full.
    let mut waiting = Vec::new();
    let error = loop {
        match client::connect(&path, Duration::from_millis(50)) {
            Ok(stream) => waiting.push(stream),
            Err(error) => break error,
        }
        assert!(waiting.len() < 100_000, "{} connections wait", waiting.len());
    };
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error} after {:?}", begun.elapsed());
    drop(listener);
    std::fs::remove_dir_all(&directory).expect("can be removed");
}
