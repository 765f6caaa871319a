//! Tables of the program of a waypoint that the gateway fills by itself: who may change and see them.

use super::conversation::access;
use super::*;
use crate::names::FILLED;
use crate::tables::output::Output;
use crate::tables::{Asked, Session};
use client::answer::TableAnswer;
use client::message::TableRequest;
use std::os::unix::net::UnixStream;

/// Passes the session of a client to `test`, at a process with or without a waypoint.
fn at_waypoint(waypoint: bool, test: impl FnOnce(&mut Session<'_>)) {
    let program = compiled(include_str!("../../../../../programs/waypoint.rav"));
    running(program.clone(), 1, BackendKind::Interpreter, |remote| {
        let mut access = access(remote, &program.0);
        access.fillers.waypoint = waypoint;
        let known = Known::now(remote, &access.fillers, "waypoint.rav").expect("it runs");
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let (output, file) = (Output::new(&ours).expect("a copy"), || "waypoint.rav".to_owned());
        test(&mut Session::new(&access, &ours, known, &file, Arc::new(output)));
    });
}

/// A table that is `secret` in the program.
const SECRET: &str = "cookie_keys";

/// Requests to see entries of a table.
fn looks(table: u16, columns: usize) -> [TableRequest; 2] {
    let key = vec![KeyMatch::Exact(0); columns];
    [
        TableRequest::List { table, worker: 0, most: 9, cursor: Vec::new() },
        TableRequest::Find { table, key, priority: 0 },
    ]
}

/// Nothing of a secret table is told.
fn keeps_secret(session: &mut Session<'_>) {
    let (table, schema) = session.known.schema.table(SECRET).expect("the program has it");
    let [list, find] = looks(table, schema.keys.len());
    for look in [list, find, TableRequest::Default { table }] {
        let refusal = session.answer(1, look).expect_err("it is a secret");
        let wanted = "`cookie_keys` is `secret` in the program: its entries are told to nobody";
        assert_eq!((refusal.code, refusal.message.as_str()), (RefusalCode::Closed, wanted));
    }
}

#[test]
fn nobody_else_changes_what_the_gateway_of_a_waypoint_fills_or_sees_its_secret() {
    at_waypoint(true, |session| {
        for (name, _) in FILLED {
            let (table, schema) = session.known.schema.table(name).expect("the program has it");
            let columns = schema.keys.len();
            let entry = || TableEntry { key: Vec::new(), priority: 0, value: Vec::new() };
            let changes = [
                TableRequest::Insert { table, entry: entry() },
                TableRequest::Learn { table, entry: entry(), lifetime: None },
                TableRequest::Remove { table, key: Vec::new(), priority: 0 },
            ];
            let changes = changes.map(|change| session.change(change).err().expect("is refused"));
            let others = [TableRequest::Replace { table }, TableRequest::SetDefault { table, value: None }];
            let others = others.map(|request| session.answer(1, request).expect_err("is refused"));
            for refusal in changes.into_iter().chain(others) {
                assert_eq!(refusal.code, RefusalCode::Closed, "{name}");
                let wanted = format!("the gateway itself fills `{name}` ");
                assert!(refusal.message.starts_with(&wanted), "{}", refusal.message);
            }
            for look in looks(table, columns).into_iter().filter(|_| name != SECRET) {
                let seen = session.answer(1, look);
                assert!(matches!(seen, Ok(TableAnswer::Entries { .. })), "{name}: {seen:?}");
            }
        }
        keeps_secret(session);
    });
}

#[test]
fn without_a_waypoint_the_same_tables_are_for_clients_to_fill_and_to_see_but_for_the_secret() {
    at_waypoint(false, |session| {
        let entry = |value: &[u128]| TableEntry {
            key: vec![KeyMatch::Exact(0); 2],
            priority: 0,
            value: value.to_vec(),
        };
        let insert = |session: &mut Session<'_>, table, entry| {
            let change = session.change(TableRequest::Insert { table, entry }).ok();
            let Some(Asked::Change(change)) = change else { panic!("it is open") };
            assert_eq!(make(&session.access.remote, 1, vec![change]), [Ok(1)]);
        };
        let (table, _) = session.known.schema.table("server_names").expect("the program has it");
        insert(session, table, entry(&[]));
        for look in looks(table, 2) {
            let Ok(TableAnswer::Entries { entries, .. }) = session.answer(1, look) else {
                panic!("it is told")
            };
            assert_eq!(entries.iter().map(|listed| &listed.entry).collect::<Vec<_>>(), [&entry(&[])]);
        }
        let (table, _) = session.known.schema.table(SECRET).expect("the program has it");
        insert(session, table, TableEntry { key: vec![KeyMatch::Exact(0)], ..entry(&[7, 8]) });
        keeps_secret(session);
    });
}
