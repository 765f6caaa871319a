//! Conversations over a pair of sockets: frames in parts, subscriptions, clients beside each other, and equal
//! keys of a replacement.

use super::*;
use crate::remarks::Remarks;
use crate::routing::{Hosts, Routing, RoutingSettings};
use crate::tables::output::Output;
use crate::tables::{Session, TableAccess};
use client::answer::TableAnswer;
use client::message::TableRequest;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

pub(super) fn access(remote: &Remote, program: &Program) -> TableAccess {
    let remarks = Remarks::to(|_| ()).expect("a thread");
    let routing = Routing::new(program, &RoutingSettings::default(), Hosts::default(), remarks);
    TableAccess::new(remote.clone(), Arc::new(routing.expect("the kernel answers")))
}

/// Passes the session of a client, and the client's end, to `test`.
fn with(workers: usize, test: impl FnOnce(&mut Session<'_>, UnixStream)) {
    beside(workers, BackendKind::Native, |remote, known| {
        let access = access(remote, &known.program);
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (output, program) = (Output::new(&ours).expect("a copy"), || "p.rav".to_owned());
        ours.set_read_timeout(Some(Duration::from_millis(10))).expect("can be set");
        test(&mut Session::new(&access, &ours, known.clone(), &program, Arc::new(output)), theirs);
    });
}

#[test]
fn a_client_that_was_idle_has_as_long_for_a_frame_as_any_other() {
    with(1, |session, mut client| {
        // Longer than a frame may take, and less than a client may be idle.
        let before = Instant::now().checked_sub(Duration::from_secs(60)).expect("the machine runs longer");
        let (mut held, mut since) = (Vec::new(), before);
        for part in [&[0, 0, 0, 5, 0][..], &[0, 0, 1, 1]] {
            client.write_all(part).expect("is read");
            assert!(session.receive(&mut held, &mut since, &|_| ()).expect("goes on"), "after {held:?}");
        }
        assert_eq!(held, [0, 0, 0, 5, 0, 0, 0, 1, 1]);
        // A frame that never becomes whole ends the connection.
        held.truncate(5);
        assert!(!session.receive(&mut held, &mut before.clone(), &|_| ()).expect("goes on"));
    });
}

#[test]
fn a_number_belongs_to_one_subscription_at_a_time() {
    with(1, |session, _client| {
        let mut asks = |request| session.answer(7, request);
        let subscribe =
            || TableRequest::Subscribe { snap: 0, events: vec!["gone".into()], reasons: Vec::new() };
        let done = |count| Ok(TableAnswer::Done { count });
        assert_eq!(asks(subscribe()), done(1));
        assert_eq!(asks(subscribe()).expect_err("is in use").code, RefusalCode::Malformed);
        assert_eq!(asks(TableRequest::Unsubscribe { number: 7 }), done(1));
        assert_eq!(asks(TableRequest::Unsubscribe { number: 7 }), done(0));
        assert_eq!(asks(subscribe()), done(1));
    });
}

#[test]
fn a_prefix_that_is_written_in_two_ways_is_one_key() {
    let entry = |key| TableEntry { key: vec![key], priority: 0, value: vec![1] };
    let prefix = |value, length| KeyMatch::Prefix { value, length };
    beside(2, BackendKind::Native, |remote, known| {
        let taken = Arc::new(AtomicBool::new(false));
        for (first, second) in [
            (KeyMatch::Any, prefix(0, 0)),
            (KeyMatch::Exact(7), prefix(7, 32)),
            (prefix(0x0a00_0000, 8), prefix(0x0a00_0000, 8)),
        ] {
            let mut bytes = Vec::new();
            for key in [&first, &KeyMatch::Exact(9), &second] {
                entry::push(&mut bytes, &known.schema.tables[1], &entry(key.clone()), 0).expect("fits");
            }
            let mut replacement = Replacement::begin(&taken, known, 1).expect("nobody else does");
            assert_eq!(replacement.more(known, 3, &bytes), Ok(3));
            let refused = replacement.commit(remote, &Mutex::new(()), known).expect_err("is there twice");
            assert_eq!(
                (refused.code, refused.place),
                (RefusalCode::Misfit, RefusalPlace::entry(2)),
                "{second:?}"
            );
        }
    });
}

/// One client's change is refused by the second worker, and the other's is taken by both: what was
/// acknowledged is there.
#[test]
fn what_is_undone_for_one_client_is_not_what_another_inserted() {
    let change =
        |action, key, value: &[u128]| Change { table: 0, action, entry: Entry::exact(&[key], value) };
    beside(2, BackendKind::Native, |remote, _| {
        // The second worker is full.
        let full = remote.ask_at(1, |generation| {
            (100..100 + ROOM as u128)
                .all(|key| generation.backend.insert(0, &Entry::exact(&[key], &[1])).is_ok())
        });
        assert_eq!(full, Some(true));
        let turn = Mutex::new(());
        let (mut taken, mut refused) = (0, 0);
        for round in 0..200 {
            let insert = |value| {
                super::super::changes::make(remote, &turn, 1, vec![change(Action::Insert, 7, &[value])])
            };
            thread::scope(|scope| {
                let one = scope.spawn(|| insert(1));
                // Room is made while the other client asks.
                let removed =
                    super::super::changes::make(remote, &turn, 1, vec![change(Action::Remove, 100, &[])]);
                assert_eq!(removed, [Ok(1)]);
                let other = insert(2);
                let one = one.join().expect("no panic");
                taken += usize::from(one[0].is_ok());
                refused += usize::from(one[0].is_err());
                assert!(other[0].is_ok(), "round {round}: {other:?}");
            });
            let held = remote.ask(|generation, _| {
                generation.backend.entry(0, &[Match::Exact(7)], 0).map(|held| held.value)
            });
            let held = held.expect("goes on");
            assert!(
                held[0] == held[1] && held[0].is_some(),
                "round {round}: {held:?}; before, {taken} were taken and {refused} refused"
            );
            let reset = vec![change(Action::Remove, 7, &[])];
            assert_eq!(make(remote, 1, reset), [Ok(1)]);
            let back =
                remote.ask_at(1, |generation| generation.backend.insert(0, &Entry::exact(&[100], &[1])));
            assert_eq!(back, Some(Ok(())));
        }
    });
}
