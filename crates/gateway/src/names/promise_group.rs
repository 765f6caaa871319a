//! Promises that packets are told of together: a waypoint makes them one after the other, and one request to
//! the packet loop carries them all.
//!
//! ```text
//!  ask ─► promise, rows ─┐
//!  ask ─► promise, rows ─┼─► between two batches: each is set as a whole, or not ─► answers as they are
//!  ask ─► promise, rows ─┘                                                    └──► that one is made anew
//! ```
//!
//! Those that are made together are for different initiators that are known, since no two of them have a row
//! or an address in common. Any other promise is told of by itself.

use super::packets::{PathRefusal, Row};
use super::path::PacketPath;
use super::waypoint::{Expected, Promises};
use crate::config::names::{HostPlace, Hosts};
use crate::limits::ROWS_AT_ONCE;
use naming::control::{AnswerBody, ControlDrop, ControlOwner, OwnerAnswer, Peer, Rejection, SetUp};
use naming::{Ask, Displaced, Initiators, Promise, SetUpError, Waypoint};
use std::collections::HashSet;
use std::net::Ipv4Addr;

/// How often another address is tried because packets have bound an initiator meanwhile.
const ATTEMPTS: usize = 4;

/// A promise of which packets are to be told.
struct Made {
    /// Which answer it is.
    index: usize,
    serial: u64,
    ask: Ask,
    place: HostPlace,
    promise: Promise,
    rows: Vec<Row>,
    /// All rows have room.
    fits: bool,
}

/// The asks of one peer that are answered together.
pub(super) struct PromiseGroup {
    peer: Peer,
    /// One for each ask so far; those of promises that are not settled may be corrected.
    pub(super) answers: Vec<Result<OwnerAnswer, ControlDrop>>,
    made: Vec<Made>,
    initiators: HashSet<Ipv4Addr>,
    rows: usize,
}

impl PromiseGroup {
    pub(super) fn new(peer: Peer, asks: usize) -> PromiseGroup {
        let (answers, made) = (Vec::with_capacity(asks), Vec::with_capacity(asks));
        PromiseGroup { peer, answers, made, initiators: HashSet::new(), rows: 0 }
    }

    /// Whether this promise may be told of together with those that are not settled.
    pub(super) fn takes(&self, wanted: &SetUp) -> bool {
        self.made.is_empty()
            || match wanted.initiators {
                Initiators::Exact(initiator) => {
                    self.rows < ROWS_AT_ONCE
                        && !self.initiators.is_empty()
                        && !self.initiators.contains(&initiator)
                }
                Initiators::Prefix(..) | Initiators::Any => false,
            }
    }

    /// Promises an address. The answer holds if packets take the rows.
    pub(super) fn promise(
        &mut self,
        serial: u64,
        (ask, place): (Ask, HostPlace),
        waypoint: &mut Waypoint,
        path: Option<&mut PacketPath>,
        hosts: &Hosts,
        now: u64,
    ) -> AnswerBody {
        let promise = match waypoint.set_up(&ask, now) {
            Ok(promise) => promise,
            Err(why) => return AnswerBody::Reject(Rejection::SetUp(why)),
        };
        let (rows, fits) = match path {
            Some(path) => {
                path.rows_of_promise(waypoint, (promise.address, &told(&ask, &promise)), hosts, now)
            }
            None => (Vec::new(), true),
        };
        if let Initiators::Exact(initiator) = ask.initiators {
            self.initiators.insert(initiator);
        }
        self.rows += rows.len();
        self.made.push(Made { index: self.answers.len(), serial, ask, place, promise, rows, fits });
        accept(&promise, now)
    }

    /// Tells packets of all promises, and corrects the answers of those that they do not take.
    pub(super) fn settle(
        &mut self,
        owner: &mut ControlOwner,
        waypoint: &mut Waypoint,
        mut path: Option<&mut PacketPath>,
        hosts: &Hosts,
        promises: &mut Promises,
        now: u64,
    ) {
        let mut made = std::mem::take(&mut self.made);
        self.initiators.clear();
        self.rows = 0;
        let groups: Vec<Vec<Row>> = made.iter_mut().map(|one| std::mem::take(&mut one.rows)).collect();
        let said = match &mut path {
            Some(path) => path.tell_all(groups),
            None => groups.iter().map(|_| Ok(())).collect(),
        };
        for (one, said) in made.into_iter().zip(said) {
            let Made { index, serial, ask, place, promise, fits, .. } = one;
            let settled = match (said, &mut path) {
                (Ok(()), _) if fits => Ok(promise),
                (said, Some(path)) => {
                    take_back(waypoint, path, (&ask, &promise), hosts, now);
                    match said {
                        // Packets were faster than the event that tells of them.
                        Err(PathRefusal::Reached(reached)) => {
                            path.note(waypoint, &reached, hosts, now);
                            again(waypoint, path, &ask, hosts, now)
                        }
                        Ok(()) | Err(PathRefusal::Failed(_)) => Err(SetUpError::Full),
                    }
                }
                (_, None) => Err(SetUpError::Full),
            };
            if settled != Ok(promise) {
                let answer = settled.map_or_else(
                    |why| AnswerBody::Reject(Rejection::SetUp(why)),
                    |promise| accept(&promise, now),
                );
                owner.correct(self.peer, serial, answer);
                if let Some(Ok(answered)) = self.answers.get_mut(index) {
                    answered.body = answer;
                }
            }
            if let Ok(promise) = settled {
                promises.note(Expected { promise, ask: told(&ask, &promise), place, at: now });
            }
        }
    }
}

fn accept(promise: &Promise, now: u64) -> AnswerBody {
    let micros = promise.exclusive_until.saturating_sub(now) / 1_000;
    AnswerBody::Accept(promise.address, u32::try_from(micros).unwrap_or(u32::MAX))
}

/// What is promised by it: to whom was asked for, or to more.
fn told(ask: &Ask, promise: &Promise) -> Ask {
    Ask { initiators: promise.initiators, ..ask.clone() }
}

/// Takes a promise back that packets do not follow, and from packets what they know of it.
fn take_back(
    waypoint: &mut Waypoint,
    path: &mut PacketPath,
    (ask, promise): (&Ask, &Promise),
    hosts: &Hosts,
    now: u64,
) {
    waypoint.retract(ask, promise);
    path.withdraw(waypoint, &[Displaced { address: promise.address, ask: told(ask, promise) }], hosts, now);
}

/// Promises another address, and tells packets.
fn again(
    waypoint: &mut Waypoint,
    path: &mut PacketPath,
    ask: &Ask,
    hosts: &Hosts,
    now: u64,
) -> Result<Promise, SetUpError> {
    for _ in 1..ATTEMPTS {
        let promise = waypoint.set_up(ask, now)?;
        let (rows, fits) =
            path.rows_of_promise(waypoint, (promise.address, &told(ask, &promise)), hosts, now);
        let said = path.tell_all(vec![rows]).pop();
        if matches!(said, Some(Ok(()))) && fits {
            return Ok(promise);
        }
        take_back(waypoint, path, (ask, &promise), hosts, now);
        match said {
            Some(Err(PathRefusal::Reached(reached))) => path.note(waypoint, &reached, hosts, now),
            Some(Ok(()) | Err(PathRefusal::Failed(_))) | None => return Err(SetUpError::Full),
        }
    }
    Err(SetUpError::InitiatorFull)
}

#[cfg(test)]
mod tests {
    use super::super::packet_tables::PacketTables;
    use super::super::packets::{Reached, Target};
    use super::super::packets_of_test::PacketsOfTest;
    use super::super::waypoint::LocalWaypoint;
    use super::*;
    use crate::config::names::GatewayDescription;
    use naming::control::{AskBody, ControlAsk};
    use naming::{AddressPool, BindingKey, Service, Services};
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    const SSH: Service = Service { protocol: 6, port: 22 };

    /// The rows of one request, promise by promise.
    type Request = Vec<Vec<Row>>;

    /// The requests, and the binding that packets make before they are told of it.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<(Vec<Request>, Option<Reached>)>>);

    impl PacketsOfTest for Told {
        fn change(&mut self, rows: Vec<Row>) -> Result<(), PathRefusal> {
            self.change_all(vec![rows]).pop().expect("one")
        }

        fn change_all(&mut self, promises: Vec<Vec<Row>>) -> Vec<Result<(), PathRefusal>> {
            let mut told = self.0.lock().expect("no panic");
            let faster = told.1;
            let is_other = |row: &Row| {
                faster.is_some_and(|one| {
                    let same = Initiators::Exact(one.key.initiator) == row.0.initiators;
                    same && one.key.address == row.0.address && row.1 != Some(one.target)
                })
            };
            let say = |rows: &Vec<Row>| match rows.iter().any(is_other) {
                true => Err(PathRefusal::Reached(faster.into_iter().collect())),
                false => Ok(()),
            };
            let said = promises.iter().map(say).collect();
            told.0.push(promises);
            said
        }
    }

    fn ask(serial: u64, host: u8, initiators: Initiators, services: u16) -> ControlAsk {
        let services = (0..services).map(|more| Service { port: SSH.port + more, ..SSH });
        let services = Services::new(services).expect("few");
        let resolver = [192, 0, 2, 53].into();
        let (gateway, host) = ("home".into(), [192, 168, 1, host].into());
        let body = AskBody::SetUp(SetUp { gateway, host, services, initiators, resolver, is_verified: true });
        ControlAsk { epoch: 1, serial, body }
    }

    fn waypoint(told: &Told, known: u8) -> LocalWaypoint {
        let known = (1..=known).map(|last| [203, 0, 113, last].into()).collect();
        let pool = AddressPool { known, unknown: vec![[203, 0, 113, 99].into()] };
        let hosts = Arc::new(Mutex::new(Hosts::default()));
        let mut waypoint = LocalWaypoint::new(1, pool, hosts).expect("a pool");
        let (bound, machine) = ([1, 2, 4, 5], 6);
        let (cookie_keys, stable, server_names) = (None, None, None);
        let tables = PacketTables {
            expectations: 0,
            room: 400,
            bound,
            young: 4,
            quarantine: 3,
            machine,
            cookie_keys,
            stable,
            server_names,
        };
        let gateway = GatewayDescription {
            name: "home".into(),
            networks: Vec::new(),
            names: Vec::new(),
            peer: Some(7),
        };
        waypoint.carry(&tables, &[gateway], &BTreeSet::new(), [1, 2]);
        waypoint.begin(Box::new(told.clone()));
        waypoint
    }

    fn client(last: u8) -> Initiators {
        Initiators::Exact([198, 51, 100, last].into())
    }

    #[test]
    fn one_request_tells_packets_of_many_and_whom_they_reached_meanwhile_is_made_anew() {
        let told = Told::default();
        let mut waypoint = waypoint(&told, 2);
        let target = Target { peer: 7, host: [192, 168, 1, 80].into() };
        let key = BindingKey {
            initiator: [198, 51, 100, 2].into(),
            address: [203, 0, 113, 2].into(),
            service: SSH,
        };
        told.0.lock().expect("no panic").1 = Some(Reached { key, target, quarantined: false });
        let asks: Vec<ControlAsk> = (1..=4).map(|one| ask(one.into(), 10, client(one), 1)).collect();
        let asked: Vec<&ControlAsk> = asks.iter().collect();
        let answers = waypoint.heard_all(Peer(3), &asked, true, 5);
        let address =
            |answer: &Result<OwnerAnswer, ControlDrop>| match answer.as_ref().expect("answered").body {
                AnswerBody::Accept(address, _) => address.octets()[3],
                body => panic!("{body:?}"),
            };
        // The second client has reached another host by 203.0.113.2, and gets the other address.
        assert_eq!(answers.iter().map(address).collect::<Vec<_>>(), [1, 1, 1, 2]);
        let requests: Vec<usize> = told.0.lock().expect("no panic").0.iter().map(Vec::len).collect();
        assert_eq!(requests, [4, 1]);
        // The corrected answer is the one that is repeated.
        assert_eq!(waypoint.heard_all(Peer(3), &asked, true, 6), answers);
        assert_eq!(told.0.lock().expect("no panic").0.len(), 2, "and nothing more is told");
    }

    #[test]
    fn who_may_have_a_row_in_common_is_told_of_apart_and_so_are_very_many_rows() {
        let told = Told::default();
        let mut waypoint = waypoint(&told, 8);
        let asks = [
            ask(1, 10, client(1), 1),
            ask(2, 11, client(2), 1),
            ask(3, 12, client(1), 1),
            ask(4, 10, Initiators::Any, 1),
            ask(5, 10, client(5), 60),
            ask(6, 10, client(6), 60),
            ask(7, 10, client(7), 1),
        ];
        let asked: Vec<&ControlAsk> = asks.iter().collect();
        assert!(waypoint.heard_all(Peer(3), &asked, true, 5).iter().all(Result::is_ok));
        let requests: Vec<usize> = told.0.lock().expect("no panic").0.iter().map(Vec::len).collect();
        assert_eq!(requests, [2, 1, 1, 2, 1]);
    }
}
