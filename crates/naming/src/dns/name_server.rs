//! The name server of one zone: says what to answer, and holds queries that need a promise of a waypoint.

use crate::dns::arrival::{Arrival, DnsTransport, source};
use crate::dns::cookies::CookieSecrets;
use crate::dns::held::{Held, HeldQueries};
use crate::dns::query::{Query, QueryDrop, Question};
use crate::dns::rates::{Allowance, Rates, ReplyKind};
use crate::dns::reply::{Answers, Reply, udp_limit};
use crate::dns::zone::{Found, NamedHost, Zone};
use crate::expectation::{Ask, Initiators};
use crate::limits::{HELD_UNDER_LOAD, MOST_AMPLIFICATION, REPLIES_PER_SECOND};
use crate::network::{is_in, network};
use crate::waypoint::SetUpError;
use domain::base::iana::{Class, OptRcode, Rtype};
use domain::base::opt::Cookie;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// When a source by UDP without a valid cookie must prove itself before a waypoint is asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unverified {
    /// Always.
    ProveFirst,
    /// When work is waiting, here or elsewhere, or addresses are short.
    #[default]
    ProveUnderLoad,
}

/// How a name server treats those who ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsPolicy {
    /// Sources that could be forged.
    pub unverified: Unverified,
    /// Networks whose hosts ask for themselves and not for others, such as the intranet: first bits and how
    /// many.
    pub clients: Vec<(Ipv4Addr, u8)>,
    /// Resolvers that are believed when they tell the whole address of a client (RFC 7871): first bits and
    /// how many.
    pub resolvers: Vec<(IpAddr, u8)>,
    /// Replies by UDP to one network, of one kind and about one name, in a second, to sources that could be
    /// forged; 0 for no limit.
    pub replies_per_second: u32,
}

impl Default for DnsPolicy {
    fn default() -> DnsPolicy {
        let unverified = Unverified::default();
        DnsPolicy {
            unverified,
            clients: Vec::new(),
            resolvers: Vec::new(),
            replies_per_second: REPLIES_PER_SECOND,
        }
    }
}

/// What becomes of a query.
#[derive(Debug)]
pub enum DnsAnswer {
    /// The reply has been written.
    Reply,
    /// Nothing is sent.
    Drop(QueryDrop),
    /// The waypoint has to be asked; then [`NameServer::resume`].
    Hold(HeldQuery, Ask),
}

/// The number of a query that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeldQuery(pub u64);

/// Where a reply goes that has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The query.
    pub number: HeldQuery,
    /// Whom it goes to.
    pub to: SocketAddr,
    /// By what.
    pub transport: DnsTransport,
}

/// Who asks, as far as it is known.
#[derive(Clone, Debug)]
struct Querier {
    source: IpAddr,
    /// The source has shown that it gets what is sent to it.
    is_verified: bool,
    /// Bytes that a reply may have.
    limit: usize,
    cookie: Option<Cookie>,
}

/// What a question comes to.
enum Finding<'z> {
    Reply(ReplyKind, Reply<'z>),
    Binding(&'z NamedHost),
}

/// An authoritative name server of one zone, without sockets.
#[derive(Debug)]
pub struct NameServer {
    zone: Zone,
    policy: DnsPolicy,
    secrets: CookieSecrets,
    rates: Rates,
    held: HeldQueries,
}

impl NameServer {
    /// A name server. The secrets are random, and known to nobody else than servers of the same address.
    pub fn new(zone: Zone, policy: DnsPolicy, secrets: CookieSecrets) -> NameServer {
        let rates = Rates::new(secrets.current, policy.replies_per_second);
        NameServer { zone, policy, secrets, rates, held: HeldQueries::default() }
    }

    /// The zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The zone, for changes.
    pub fn zone_mut(&mut self) -> &mut Zone {
        &mut self.zone
    }

    /// Treats those who ask otherwise from now on.
    pub fn set_policy(&mut self, policy: DnsPolicy) {
        if policy.replies_per_second != self.policy.replies_per_second {
            self.rates = Rates::new(self.secrets.current, policy.replies_per_second);
        }
        self.policy = policy;
    }

    /// Replaces the secrets of cookies.
    pub fn set_secrets(&mut self, secrets: CookieSecrets) {
        self.secrets = secrets;
    }

    /// How many queries wait for a waypoint.
    pub fn held(&self) -> usize {
        self.held.count()
    }

    /// Answers a query; a reply is written over what `out` holds.
    pub fn answer(&mut self, arrival: &Arrival<'_>, out: &mut Vec<u8>) -> DnsAnswer {
        match self.take(arrival, out) {
            Ok(answer) => answer,
            Err(reason) => DnsAnswer::Drop(reason),
        }
    }

    fn take(&mut self, arrival: &Arrival<'_>, out: &mut Vec<u8>) -> Result<DnsAnswer, QueryDrop> {
        let query = Query::read(arrival.bytes)?;
        let asker = self.asker(arrival, &query);
        let finding = find(&self.zone, &query);
        let (kind, reply) = match finding {
            Finding::Reply(kind, reply) => (kind, reply),
            Finding::Binding(_) => (ReplyKind::Found, Reply::truncated()),
        };
        if !asker.is_verified {
            let name = query.question.map_or(&[][..], |question| question.name);
            match self.rates.allow(network(asker.source), kind, name, arrival.at.now) {
                Allowance::Whole => {}
                Allowance::Truncated => {
                    let short = Reply { authoritative: reply.authoritative, ..Reply::truncated() };
                    return Ok(asker.write(&query, &short, out));
                }
                Allowance::Nothing => return Err(QueryDrop::RateLimited),
            }
        }
        let Finding::Binding(host) = finding else { return Ok(asker.write(&query, &reply, out)) };
        let (initiators, scope) = self.initiators(&query, &asker);
        let is_loaded = arrival.under_load || self.held.count() >= HELD_UNDER_LOAD;
        // Whoever is believed to be the client must not be somebody else.
        let is_believed = matches!(initiators, Initiators::Exact(_));
        let must_prove = is_loaded || is_believed || self.policy.unverified == Unverified::ProveFirst;
        if must_prove && !asker.is_verified {
            return Ok(asker.write(&query, &challenge(asker.cookie.is_some()), out));
        }
        let ask = Ask {
            responder: host.responder,
            services: host.services.clone(),
            initiators,
            resolver: asker.source,
            is_verified: asker.is_verified,
        };
        let held = Held::new(&query, scope, asker.cookie.clone(), asker.limit, arrival);
        match self.held.hold(held, network(asker.source), arrival.at.now) {
            Ok(Some(number)) => Ok(DnsAnswer::Hold(HeldQuery(number), ask)),
            Ok(None) => Err(QueryDrop::Repeated),
            Err(()) => Ok(asker.write(&query, &failure("too many queries wait for an address"), out)),
        }
    }

    /// What is known of who asks.
    fn asker(&self, arrival: &Arrival<'_>, query: &Query<'_>) -> Querier {
        let source = source(arrival.from);
        let offered = query.edns.as_ref().and_then(|edns| edns.cookie.as_ref());
        let (is_known, cookie) = match offered {
            Some(offered) => {
                let (is_known, cookie) = self.secrets.check(offered, source, arrival.at.unix);
                (is_known, Some(cookie))
            }
            None => (false, None),
        };
        let is_verified = is_known || arrival.transport == DnsTransport::Tcp;
        let limit = match arrival.transport {
            DnsTransport::Tcp => usize::from(u16::MAX),
            DnsTransport::Udp if is_verified => udp_limit(query.edns.as_ref()),
            DnsTransport::Udp => udp_limit(query.edns.as_ref()).min(MOST_AMPLIFICATION * arrival.bytes.len()),
        };
        Querier { source, is_verified, limit, cookie }
    }

    /// From where the first packet will come, and for how many bits of the told network that holds.
    fn initiators(&self, query: &Query<'_>, asker: &Querier) -> (Initiators, u8) {
        if let Some((address, length)) = query.edns.as_ref().and_then(|edns| edns.ipv4_subnet()) {
            // Anybody can tell anything of another host, also by TCP and with a cookie.
            let is_believed = asker.source == IpAddr::V4(address)
                || self.policy.resolvers.iter().any(|&network| is_in(asker.source, network));
            let initiators = match length {
                32 if asker.is_verified && is_believed => Initiators::Exact(address),
                _ => Initiators::Prefix(address, length),
            };
            return (initiators, length);
        }
        let IpAddr::V4(source) = asker.source else { return (Initiators::Any, 0) };
        let mut clients = self.policy.clients.iter();
        let is_client = clients.any(|&(network, length)| Initiators::Prefix(network, length).contain(source));
        (if is_client { Initiators::Exact(source) } else { Initiators::Any }, 0)
    }

    /// Answers a query that has waited, with what the waypoint said; nothing if it waits no longer.
    pub fn resume(
        &mut self,
        number: HeldQuery,
        said: Result<Ipv4Addr, SetUpError>,
        out: &mut Vec<u8>,
    ) -> Option<Resumed> {
        let held = self.held.release(number.0)?;
        let reply = match said {
            Ok(address) => Reply {
                authoritative: true,
                answers: Answers::Address(address, self.zone.binding_ttl()),
                ..Reply::bare(OptRcode::NOERROR)
            },
            Err(SetUpError::Full) => failure("no address is free"),
            Err(SetUpError::Unproved) => challenge(held.has_cookie()),
            Err(SetUpError::Share) => failure("addresses are short, and the share is used up"),
            Err(SetUpError::InitiatorFull) => failure("every address leads this client elsewhere"),
        };
        Some(held.write(number, &reply, out))
    }

    /// Answers with an error a query that has waited, and to whose host no waypoint leads; nothing if it
    /// waits no longer.
    pub fn give_up(&mut self, number: HeldQuery, out: &mut Vec<u8>) -> Option<Resumed> {
        let held = self.held.release(number.0)?;
        Some(held.write(number, &failure("no waypoint leads to this host"), out))
    }

    /// Answers with an error one of the queries that have waited for too long; nothing if there are none.
    pub fn expire(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Resumed> {
        let (number, held) = self.held.overdue(now)?;
        Some(held.write(HeldQuery(number), &failure("the waypoint did not answer in time"), out))
    }

    /// When the next query has waited for too long.
    pub fn next_expiry(&self) -> Option<u64> {
        self.held.next_expiry()
    }
}

impl Querier {
    fn write(&self, query: &Query<'_>, reply: &Reply<'_>, out: &mut Vec<u8>) -> DnsAnswer {
        reply.write(query, self.cookie.as_ref(), self.limit, out);
        DnsAnswer::Reply
    }
}

/// Lets who asks prove itself: who has a cookie of its own gets one of ours and asks again (RFC 7873, 5.2.3),
/// anybody else comes by TCP.
fn challenge(has_cookie: bool) -> Reply<'static> {
    if has_cookie { Reply::bare(OptRcode::BADCOOKIE) } else { Reply::truncated() }
}

fn failure(why: &'static str) -> Reply<'static> {
    Reply { explanation: Some(why), ..Reply::bare(OptRcode::SERVFAIL) }
}

/// What a zone says to a query.
fn find<'z>(zone: &'z Zone, query: &Query<'_>) -> Finding<'z> {
    let error = |rcode| Finding::Reply(ReplyKind::Error, Reply::bare(rcode));
    if let Some(rcode) = query.refusal {
        return error(rcode);
    }
    // Only a cookie was asked for.
    let Some(question) = query.question else { return error(OptRcode::NOERROR) };
    match question.kind.to_int() {
        0 | 41 => return error(OptRcode::FORMERR),
        // Transfers are for secondaries, of which there are none.
        251 | 252 => return error(OptRcode::REFUSED),
        128..=254 => return error(OptRcode::NOTIMP),
        _ => {}
    }
    if question.class != Class::IN {
        return error(OptRcode::REFUSED);
    }
    find_name(zone, &question)
}

fn find_name<'z>(zone: &'z Zone, question: &Question<'_>) -> Finding<'z> {
    let ours = Reply { authoritative: true, ..Reply::bare(OptRcode::NOERROR) };
    let missing = |rcode| {
        let reply = Reply { rcode, negative: Some(zone.negative()), ..ours };
        Finding::Reply(ReplyKind::Missing, reply)
    };
    let node = match zone.find(question.name) {
        Found::Elsewhere => return Finding::Reply(ReplyKind::Error, Reply::bare(OptRcode::REFUSED)),
        Found::Nothing => return missing(OptRcode::NXDOMAIN),
        Found::Here(node) => node,
    };
    if question.kind == Rtype::ANY {
        let reply = Reply { answers: Answers::Any, ..ours };
        return Finding::Reply(ReplyKind::Found, reply);
    }
    if question.kind == Rtype::A
        && let Some(host) = node.needs_binding()
    {
        return Finding::Binding(host);
    }
    if !node.records.iter().any(|record| record.kind == question.kind) {
        return missing(OptRcode::NOERROR);
    }
    let glue = if question.kind == Rtype::NS { zone.glue() } else { &[] };
    let answers = Answers::Records(&node.records, question.kind);
    Finding::Reply(ReplyKind::Found, Reply { answers, glue, ..ours })
}
