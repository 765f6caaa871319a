//! Every order of a few steps: of what can happen to one address of a waypoint, and of messages that reach
//! an owner of names. The code itself runs, and each step of each order is judged.
//!
//! An order is a number with as many digits as it has steps. Where a step changes nothing, all orders that
//! begin with it in this place are left out: they are orders of fewer steps.

mod chronicle;

use chronicle::Chronicle;
use naming::control::{
    AnswerBody, AskBody, ControlAsk, ControlDrop, ControlOwner, HostOffer, LeaseChange, Leases, Peer,
    Registration,
};
use naming::dns::DnsName;
use naming::limits::{ANSWER_HELD, EMBRYONIC, LEASE, QUARANTINE, SECOND, TAIL};
use naming::{
    AddressPool, Admission, Ask, BindingKey, Denial, FirstPacket, Initiators, Responder, Service, Services,
    Waypoint,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Runs every order of so many steps. `run` says at which step an order changes nothing, if there is one.
/// Returns how many orders ran to their end.
fn every_order(steps: usize, kinds: usize, mut run: impl FnMut(&[usize]) -> Option<usize>) -> usize {
    let (mut order, mut whole) = (vec![0; steps], 0);
    loop {
        let idle = run(&order);
        whole += usize::from(idle.is_none());
        let mut place = idle.unwrap_or(steps - 1);
        order[place + 1..].fill(0);
        while order[place] + 1 == kinds {
            order[place] = 0;
            if place == 0 {
                return whole;
            }
            place -= 1;
        }
        order[place] += 1;
    }
}

#[test]
fn every_order_is_run_once() {
    let mut seen = BTreeSet::new();
    assert_eq!(
        every_order(3, 4, |order| {
            assert!(seen.insert(order.to_vec()));
            None
        }),
        64
    );
    // Nothing that begins with 0 is run to its end.
    assert_eq!(every_order(3, 4, |order| (order[0] == 0).then_some(0)), 48);
}

const ADDRESS: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

/// One client at the only address of a waypoint.
struct Client {
    waypoint: Waypoint,
    chronicle: Chronicle,
    key: BindingKey,
    now: u64,
    /// When its binding began, while it has not proved itself.
    began: Option<u64>,
    is_live: bool,
}

impl Client {
    fn new(service: Service) -> Client {
        let pool = AddressPool { known: vec![], unknown: vec![ADDRESS] };
        let key = BindingKey { initiator: Ipv4Addr::new(198, 18, 0, 1), address: ADDRESS, service };
        let waypoint = Waypoint::new(pool).expect("good");
        Client { waypoint, chronicle: Chronicle::default(), key, now: 0, began: None, is_live: false }
    }

    /// One thing happens; false if it changes nothing.
    fn step(&mut self, kind: usize) -> bool {
        match kind {
            0 => self.promise(1, Initiators::Any),
            1 => self.promise(2, Initiators::Any),
            2 => self.promise(2, Initiators::Prefix(Ipv4Addr::new(198, 18, 0, 0), 24)),
            3 => self.sends(true),
            4 => self.sends(false),
            5 => {
                let proves = self.began.take().is_some();
                if proves {
                    self.waypoint.prove(&self.key);
                    self.is_live = true;
                }
                proves
            }
            6 => {
                let ends = std::mem::take(&mut self.is_live);
                if ends {
                    self.waypoint.end(&self.key, self.now);
                    self.chronicle.ended(&self.key, self.now);
                }
                ends
            }
            7 => self.pass(TAIL),
            _ => self.pass(QUARANTINE),
        }
    }

    fn promise(&mut self, responder: u32, initiators: Initiators) -> bool {
        let services = Services::new([self.key.service]).expect("few");
        let ask = Ask {
            responder: Responder(responder),
            services,
            initiators,
            resolver: RESOLVER.into(),
            is_verified: true,
        };
        let promised = self.waypoint.set_up(&ask, self.now);
        if let Ok(promise) = &promised {
            self.chronicle.promised(&ask, promise, self.now);
        }
        promised.is_ok()
    }

    fn sends(&mut self, begins: bool) -> bool {
        let packet = FirstPacket { key: self.key, begins };
        let admission = self.waypoint.admit(&packet, self.now);
        self.chronicle.admitted(&packet, admission, self.now);
        match admission {
            Admission::Admitted(_) => (self.began, self.is_live) = (Some(self.now), false),
            Admission::Refused(Denial::Ambiguous) if self.waypoint.bound(&self.key).is_none() => {
                (self.began, self.is_live) = (None, false);
                self.chronicle.ended(&self.key, self.now);
            }
            _ => {}
        }
        true
    }

    /// Time passes, and a binding that has not proved itself ends.
    fn pass(&mut self, time: u64) -> bool {
        self.now += time;
        self.waypoint.advance(self.now);
        if let Some(began) = self.began.take_if(|began| *began + EMBRYONIC <= self.now) {
            assert_eq!(self.waypoint.bound(&self.key), None, "its time is over");
            self.chronicle.ended(&self.key, began + EMBRYONIC);
        }
        true
    }
}

/// Every order of what can happen to a client at one address: it reaches the host that was promised, or
/// nobody, and another host only after quarantine.
fn every_order_at_one_address(
    service: Service,
    steps: usize,
    kinds: &[usize],
) -> BTreeMap<&'static str, usize> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    every_order(steps, kinds.len(), |order| {
        let mut client = Client::new(service);
        // Without a promise nothing happens, and the two hosts are alike.
        assert!(client.step(0));
        let idle = order.iter().position(|&place| {
            client.now += SECOND / 1_000;
            !client.step(kinds[place])
        });
        for (key, responder) in client.chronicle.bound() {
            assert!(client.waypoint.bound(key).is_none_or(|one| one == responder), "{order:?}: {key:?}");
        }
        for (what, count) in client.chronicle.seen {
            *seen.entry(what).or_default() += count;
        }
        idle
    });
    seen
}

#[test]
fn in_every_order_of_steps_a_client_reaches_the_host_that_was_promised_or_nobody() {
    for service in [Service { protocol: 6, port: 443 }, Service { protocol: 17, port: 53 }] {
        // With fewer kinds more steps: a promise that came and went is remembered.
        every_order_at_one_address(service, 7, &[0, 1, 3, 5, 6, 7, 8]);
        let seen = every_order_at_one_address(service, 6, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        for what in ["admitted", "ambiguous", "bound", "not expected", "promised", "quarantined"] {
            assert!(seen.get(what).is_some_and(|&count| count > 100), "{what} of {service:?}: {seen:?}");
        }
    }
}

/// What two lives of a gateway ask for: the first leads its name to one host and then to another, the second
/// to a third.
fn asks() -> [ControlAsk; 3] {
    [(1, 1, 1), (1, 2, 2), (2, 1, 3)].map(|(epoch, serial, last)| {
        let name = DnsName::parse("nas.home.example").expect("a name");
        let services = Services::new([Service { protocol: 6, port: 22 }]).expect("few");
        let offer = HostOffer { name, host: Ipv4Addr::new(10, 0, 0, last), ipv6: None, services };
        ControlAsk { epoch, serial, body: AskBody::Register(Registration::Offer(offer)) }
    })
}

/// The registrar, to which somebody brings messages in any order and as often as he likes.
struct Registrar {
    owner: ControlOwner,
    leases: Leases,
    now: u64,
    /// What was carried out, and how it was answered.
    done: Vec<(u64, u64, AnswerBody)>,
    /// Where the name leads, and until when.
    leads: Option<(Ipv4Addr, u64)>,
}

impl Registrar {
    fn brings(&mut self, ask: &ControlAsk) {
        let AskBody::Register(registration @ Registration::Offer(offer)) = &ask.body else { return };
        let (leases, now, mut changes) = (&mut self.leases, self.now, Vec::<LeaseChange>::new());
        let mut is_new = false;
        let answer = self.owner.heard(Peer(7), ask, now, |_| {
            is_new = true;
            leases.register(Peer(7), ask.epoch, registration, now, &mut changes)
        });
        let newest = self.done.iter().map(|&(epoch, serial, _)| (epoch, serial)).max();
        let before = self.done.iter().find(|one| (one.0, one.1) == (ask.epoch, ask.serial));
        match answer {
            Ok(answer) if is_new => {
                assert!(
                    newest.is_none_or(|newest| newest < (ask.epoch, ask.serial)),
                    "{ask:?} undoes {newest:?}"
                );
                assert!(matches!(answer.body, AnswerBody::Lease(_)), "{answer:?}");
                self.done.push((ask.epoch, ask.serial, answer.body));
                self.leads = Some((offer.host, now + LEASE));
            }
            Ok(answer) => assert_eq!(before.map(|one| one.2), Some(answer.body), "it says the same again"),
            Err(reason) => {
                assert!(newest.is_some_and(|newest| newest >= (ask.epoch, ask.serial)), "{ask:?} is new");
                assert!(matches!(reason, ControlDrop::OldEpoch | ControlDrop::OldSerial), "{reason:?}");
            }
        }
    }

    fn is_right(&mut self) {
        self.leases.expire(self.now, &mut Vec::new());
        self.leads = self.leads.filter(|&(_, until)| until > self.now);
        let names: Vec<Ipv4Addr> = self.leases.names().map(|(_, offer)| offer.host).collect();
        assert_eq!(names, Vec::from_iter(self.leads.map(|(host, _)| host)));
    }
}

#[test]
fn in_every_order_of_messages_each_is_carried_out_once_and_none_undoes_a_later_one() {
    let asks = asks();
    let (mut carried, mut refused) = (0, 0);
    let orders = every_order(7, 5, |order| {
        let (owner, leases, done) = (ControlOwner::new(1), Leases::default(), Vec::new());
        let mut registrar = Registrar { owner, leases, now: 0, done, leads: None };
        for &kind in order {
            match kind {
                0..3 => registrar.brings(&asks[kind]),
                3 => registrar.now += ANSWER_HELD,
                _ => registrar.now += LEASE,
            }
            registrar.is_right();
        }
        carried += registrar.done.len();
        refused += usize::from(registrar.done.len() < order.iter().filter(|&&kind| kind < 3).count());
        None
    });
    assert_eq!(orders, 5_usize.pow(7));
    assert!(carried > orders && refused > orders / 2, "{carried} and {refused} of {orders}");
}
