//! Queries that wait for a waypoint, in the order in which they came.

use crate::dns::arrival::{Arrival, DnsTransport};
use crate::dns::name_server::{HeldQuery, Resumed};
use crate::dns::query::{Edns, Head, Query, Question};
use crate::dns::reply::Reply;
use crate::limits::{HELD, MOST_HELD, MOST_HELD_OF_NETWORK};
use domain::base::iana::{Class, Rtype};
use domain::base::opt::Cookie;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// A query that waits, with all that its reply needs.
#[derive(Debug)]
pub(crate) struct Held {
    head: Head,
    name: Box<[u8]>,
    kind: Rtype,
    class: Class,
    edns: Option<Edns>,
    scope: u8,
    cookie: Option<Cookie>,
    limit: usize,
    from: SocketAddr,
    transport: DnsTransport,
}

impl Held {
    pub(crate) fn new(
        query: &Query<'_>,
        scope: u8,
        cookie: Option<Cookie>,
        limit: usize,
        arrival: &Arrival<'_>,
    ) -> Held {
        let question = query.question.unwrap_or(Question { name: &[0], kind: Rtype::A, class: Class::IN });
        Held {
            head: query.head,
            name: question.name.into(),
            kind: question.kind,
            class: question.class,
            edns: query.edns.clone(),
            scope,
            cookie,
            limit,
            from: arrival.from,
            transport: arrival.transport,
        }
    }

    pub(crate) fn write(self, number: HeldQuery, reply: &Reply<'_>, out: &mut Vec<u8>) -> Resumed {
        let question = Question { name: &self.name, kind: self.kind, class: self.class };
        let query = Query { head: self.head, question: Some(question), edns: self.edns, refusal: None };
        let reply = Reply { scope: self.scope, ..*reply };
        reply.write(&query, self.cookie.as_ref(), self.limit, out);
        Resumed { number, to: self.from, transport: self.transport }
    }

    /// Whether who asked has a cookie.
    pub(crate) fn has_cookie(&self) -> bool {
        self.cookie.is_some()
    }

    fn client(&self) -> Client {
        (self.from, self.transport, self.head.id, self.name.clone())
    }
}

/// What makes a query the same as one before.
type Client = (SocketAddr, DnsTransport, u16, Box<[u8]>);

#[derive(Debug)]
struct Waiting {
    held: Held,
    network: u128,
    until: u64,
}

/// All queries that wait. All wait equally long, so their numbers are also the order in which they expire.
#[derive(Debug, Default)]
pub(crate) struct HeldQueries {
    waiting: BTreeMap<u64, Waiting>,
    clients: HashMap<Client, u64>,
    networks: HashMap<u128, u32>,
    next: u64,
}

impl HeldQueries {
    pub(crate) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Lets a query wait and numbers it; none if the same one waits already, and an error without room.
    pub(crate) fn hold(&mut self, held: Held, network: u128, now: u64) -> Result<Option<u64>, ()> {
        let client = held.client();
        if self.clients.contains_key(&client) {
            return Ok(None);
        }
        let of_network = self.networks.get(&network).copied().unwrap_or(0);
        if self.waiting.len() >= MOST_HELD || of_network >= MOST_HELD_OF_NETWORK {
            return Err(());
        }
        self.networks.insert(network, of_network + 1);
        let number = self.next;
        self.next += 1;
        self.clients.insert(client, number);
        self.waiting.insert(number, Waiting { held, network, until: now.saturating_add(HELD) });
        Ok(Some(number))
    }

    pub(crate) fn release(&mut self, number: u64) -> Option<Held> {
        let Waiting { held, network, .. } = self.waiting.remove(&number)?;
        self.clients.remove(&held.client());
        if let Some(count) = self.networks.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.networks.remove(&network);
            }
        }
        Some(held)
    }

    /// One of those that have waited for too long, and its number.
    pub(crate) fn overdue(&mut self, now: u64) -> Option<(u64, Held)> {
        let (&number, _) = self.waiting.first_key_value().filter(|(_, first)| first.until <= now)?;
        Some((number, self.release(number)?))
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|(_, first)| first.until)
    }
}
