//! A slow judge of a waypoint: it writes down every answer and every admission, and looks through them.

use naming::limits::{CONTESTED, QUARANTINE, TAIL};
use naming::{Admission, Ask, BindingKey, Denial, FirstPacket, Initiators, Promise as Answer, Responder};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Everything that a waypoint has promised and done.
#[derive(Default)]
pub(crate) struct Chronicle {
    promises: BTreeMap<Ipv4Addr, Vec<Promise>>,
    /// The responder that a key led to last, and when that ended; none while it has not.
    led: BTreeMap<BindingKey, (Responder, Option<u64>)>,
    /// Keys of which a packet could have been for another responder than that to which they lead, and when
    /// there was one last.
    contested: BTreeMap<BindingKey, u64>,
    /// How often each kind of event was seen.
    pub(crate) seen: BTreeMap<&'static str, usize>,
}

struct Promise {
    ask: Ask,
    at: u64,
    exclusive_until: u64,
}

/// Whether an initiator is among these, by comparing bit for bit.
fn is_among(initiators: Initiators, initiator: Ipv4Addr) -> bool {
    match initiators {
        Initiators::Exact(one) => one == initiator,
        Initiators::Prefix(network, length) => (0..u32::from(length)).all(|bit| {
            let mask = 1 << (31 - bit);
            network.to_bits() & mask == initiator.to_bits() & mask
        }),
        Initiators::Any => true,
    }
}

/// Whether some initiator can be among both: the address of the narrower one is among the other.
fn may_meet(one: Initiators, other: Initiators) -> bool {
    let width = |initiators| match initiators {
        Initiators::Exact(_) => 32,
        Initiators::Prefix(_, length) => length,
        Initiators::Any => 0,
    };
    let (wide, narrow) = if width(one) <= width(other) { (one, other) } else { (other, one) };
    match narrow {
        Initiators::Exact(address) | Initiators::Prefix(address, _) => is_among(wide, address),
        Initiators::Any => true,
    }
}

impl Chronicle {
    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// No promise claims what another one has to itself.
    pub(crate) fn promised(&mut self, ask: &Ask, answer: &Answer, now: u64) {
        let promises = self.promises.entry(answer.address).or_default();
        promises.retain(|one| one.at + TAIL > now);
        for one in promises.iter() {
            let common = one.ask.services.iter().any(|service| ask.services.iter().any(|own| own == service));
            let other = one.ask.responder != ask.responder;
            assert!(
                !(other
                    && common
                    && one.exclusive_until > now
                    && may_meet(one.ask.initiators, ask.initiators)),
                "at {now} {} was promised to {:?}, and {:?} had it",
                answer.address,
                ask,
                one.ask
            );
        }
        assert!(answer.exclusive_until > now);
        let is_known = |one: &Promise| {
            let same = (one.ask.responder, one.ask.initiators) == (ask.responder, ask.initiators);
            same && one.ask.services == ask.services && one.exclusive_until == answer.exclusive_until
        };
        // An answer again may keep nothing for longer.
        if promises.iter().any(is_known) {
            return;
        }
        promises.push(Promise { ask: ask.clone(), at: now, exclusive_until: answer.exclusive_until });
        self.count("promised");
    }

    /// The last promise that this packet can be for, and until when nobody else had the slot.
    fn meant(&self, key: &BindingKey, now: u64) -> Option<(Responder, u64)> {
        let promises = self.promises.get(&key.address)?.iter().rev();
        let mut fits = promises.filter(|one| {
            one.at + TAIL > now
                && is_among(one.ask.initiators, key.initiator)
                && one.ask.services.iter().any(|service| service == key.service)
        });
        fits.next().map(|one| (one.ask.responder, one.exclusive_until))
    }

    /// A packet went to the responder that was meant, or nowhere.
    pub(crate) fn admitted(&mut self, packet: &FirstPacket, admission: Admission, now: u64) {
        let key = packet.key;
        let meant = self.meant(&key, now);
        let led = self.led.get(&key).copied();
        match admission {
            Admission::Admitted(responder) => {
                assert_eq!(meant.map(|(one, _)| one), Some(responder), "at {now}: {packet:?}");
                if let Some((earlier, ended)) = led {
                    let ended = ended.unwrap_or_else(|| panic!("at {now}: {key:?} was bound already"));
                    assert!(
                        earlier == responder || ended + QUARANTINE <= now,
                        "at {now}: {key:?} led to {earlier:?} until {ended}, and leads to {responder:?}"
                    );
                }
                self.no_longer_contested(&key, now);
                self.led.insert(key, (responder, None));
                self.count("admitted");
            }
            Admission::Bound(responder) => {
                assert_eq!(led, Some((responder, None)), "at {now}: {packet:?}");
                if let Some((other, exclusive_until)) = meant
                    && packet.begins
                    && exclusive_until > now
                {
                    assert_eq!(other, responder, "at {now}: {packet:?} belongs to the newer answer");
                }
                if packet.begins && self.no_longer_contested(&key, now) {
                    let meant = meant.map(|(one, _)| one);
                    assert_eq!(meant, Some(responder), "at {now}: {packet:?} may be for another one");
                }
                self.count("bound");
            }
            Admission::Refused(refusal) => {
                let alone = meant.filter(|(_, exclusive_until)| *exclusive_until > now);
                if packet.begins {
                    let is_told = matches!(refusal, Denial::Quarantined | Denial::Ambiguous);
                    self.goes_on(&key, meant.map(|(one, _)| one), is_told, now);
                }
                match refusal {
                    Denial::NoExpectation | Denial::NotOffered => {
                        assert!(alone.is_none(), "at {now}: {packet:?} was meant for {alone:?}");
                        self.count("not expected");
                    }
                    Denial::Quarantined => {
                        let (earlier, ended) = led.expect("it led somewhere");
                        assert!(ended.is_some() && meant.is_some_and(|(one, _)| one != earlier));
                        self.count("quarantined");
                    }
                    Denial::Ambiguous => {
                        let (earlier, ended) = led.expect("it led somewhere");
                        assert!(ended.is_some() || packet.begins);
                        let since = self.contested.get(&key).copied();
                        let other = meant.is_some_and(|(one, _)| one != earlier);
                        let waits = meant.is_none() || since.is_some_and(|since| now < since + CONTESTED);
                        assert!(
                            other || since.is_some() && waits,
                            "at {now}: {packet:?} can be for {earlier:?} alone"
                        );
                        self.count(if other { "ambiguous" } else { "ambiguous since" });
                    }
                    Denial::NetworkFull | Denial::EmbryonicFull | Denial::BindingsFull => {
                        self.count("full");
                    }
                    Denial::ForeignAddress => panic!("{key:?}"),
                }
            }
        }
    }

    /// Somebody sends, and reaches nobody: it may mean what it has reached, or what it was promised.
    /// Quarantine may last longer than it must; `is_told` says that it does.
    fn goes_on(&mut self, key: &BindingKey, meant: Option<Responder>, is_told: bool, now: u64) {
        let Some((led, ended)) = self.led.get_mut(key) else { return };
        let is_early = ended.is_none_or(|ended| now < ended + QUARANTINE);
        if meant.is_some_and(|meant| meant != *led) && (is_early || is_told) {
            self.contested.insert(*key, now);
        }
        if let Some(ended) = ended.as_mut().filter(|_| is_early) {
            *ended = now;
        }
    }

    /// Whether a packet could have been for another responder; it was so long ago that it is not on its way
    /// any more.
    fn no_longer_contested(&mut self, key: &BindingKey, now: u64) -> bool {
        let since = self.contested.remove(key);
        assert!(
            since.is_none_or(|since| now >= since + CONTESTED),
            "at {now}: {key:?} may be for another one"
        );
        since.is_some()
    }

    /// The binding is over.
    pub(crate) fn ended(&mut self, key: &BindingKey, now: u64) {
        if let Some((_, ended)) = self.led.get_mut(key) {
            ended.get_or_insert(now);
        }
    }

    /// Every key that leads somewhere, and where.
    pub(crate) fn bound(&self) -> impl Iterator<Item = (&BindingKey, Responder)> {
        self.led.iter().filter(|(_, (_, ended))| ended.is_none()).map(|(key, (one, _))| (key, *one))
    }
}
