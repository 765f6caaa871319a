//! Which server a client means: the server name in its first message of TLS (RFC 6066, 3), put together from
//! segments of TCP that nobody has acknowledged.
//!
//! ```text
//!  segment ─► pieces of its connection, by sequence number ─► what follows on the lowest one ─► TLS
//!                │                                                                              ├─► a name
//!                ├─► waits for more, at most HELLO_WAITS                                        ├─► waits
//!                ├─► no room                                                                    └─► refused
//!                └─► another connection by the same ports: the earlier message is forgotten
//! ```
//!
//! Nobody tells where a connection begins, so the lowest piece counts as its beginning if it looks like that
//! of a handshake. A message whose inner name is encrypted has an outer one, which is taken as it is. Nothing
//! is decrypted, and no segment is answered.

use crate::dns::DnsName;
use crate::limits::{
    HELLO_SEGMENTS, HELLO_SEGMENTS_OF_NETWORK, HELLO_WAITS, LONGEST_HELLO, MOST_HELLO_PIECES, MOST_HELLOS,
    MOST_HELLOS_OF_NETWORK, SECOND,
};
use crate::network::network;
use rustls::Error;
use rustls::server::Acceptor;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// The type of a record of the handshake, and the first byte of the version behind it (RFC 8446, 5.1).
const HANDSHAKE: [u8; 2] = [22, 3];

/// A connection of TCP that an initiator has begun. A client takes a port again for a later connection, which
/// acknowledges another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientConnection {
    /// The client.
    pub initiator: Ipv4Addr,
    /// Its port.
    pub initiator_port: u16,
    /// The address of the waypoint.
    pub address: Ipv4Addr,
    /// The port there.
    pub port: u16,
    /// The number of the waypoint that the client acknowledges: all segments of its first message have the
    /// same one.
    pub acknowledges: u32,
}

impl ClientConnection {
    /// Whether both are of the same client, by the same ports and address: then one is over when the other
    /// begins.
    fn has_ports_of(&self, other: &ClientConnection) -> bool {
        ClientConnection { acknowledges: other.acknowledges, ..*self } == *other
    }
}

/// Bytes that a client has sent.
#[derive(Clone, Copy, Debug)]
pub struct ClientSegment<'a> {
    /// Over which connection.
    pub connection: ClientConnection,
    /// The number of the first one.
    pub sequence: u32,
    /// The bytes themselves.
    pub bytes: &'a [u8],
}

/// What is known of a client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientHello {
    /// The name of the server that it means.
    Named(DnsName),
    /// More of it has to come.
    Unfinished,
}

/// Why a segment leads to no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloRefusal {
    /// What has come is no first message of a client.
    NotTls,
    /// It has no server name, or an address in its place.
    NoName,
    /// It is too long.
    TooLong,
    /// It comes in too many pieces.
    TooManyPieces,
    /// Too many messages wait for more.
    Full,
    /// The same, of the client's network.
    NetworkFull,
    /// Too many segments came in this second.
    TooManySegments,
}

impl HelloRefusal {
    /// The reason as a word, for counts.
    pub fn name(self) -> &'static str {
        match self {
            HelloRefusal::NotTls => "not_tls",
            HelloRefusal::NoName => "no_server_name",
            HelloRefusal::TooLong => "too_long",
            HelloRefusal::TooManyPieces => "too_many_pieces",
            HelloRefusal::Full => "full",
            HelloRefusal::NetworkFull => "network_full",
            HelloRefusal::TooManySegments => "too_many_segments",
        }
    }
}

/// A message that waits for more.
struct Begun {
    connection: ClientConnection,
    since: u64,
    /// By sequence number, and never empty.
    pieces: Vec<(u32, Vec<u8>)>,
}

/// How far a sequence number is behind another one.
fn behind(sequence: u32, first: u32) -> i32 {
    sequence.wrapping_sub(first).cast_signed()
}

impl Begun {
    /// Puts a piece to the others. Says whether it has anything new.
    fn take(&mut self, sequence: u32, bytes: &[u8]) -> Result<bool, HelloRefusal> {
        let lowest = self.pieces[0].0;
        let at = self.pieces.partition_point(|(other, _)| behind(*other, lowest) < behind(sequence, lowest));
        let same = self.pieces.get(at).filter(|(other, _)| *other == sequence).map(|(_, same)| same.len());
        if same.is_some_and(|length| length >= bytes.len()) {
            return Ok(false);
        }
        let held: usize = self.pieces.iter().map(|(_, piece)| piece.len()).sum();
        let end = |sequence, length: usize| i64::from(behind(sequence, lowest)) + length as i64;
        let ends = self.pieces.iter().map(|(other, piece)| end(*other, piece.len()));
        let last = ends.max().unwrap_or(0).max(end(sequence, bytes.len()));
        let spans = last - i64::from(behind(sequence, lowest).min(0));
        if spans > LONGEST_HELLO as i64 || held + bytes.len() > LONGEST_HELLO {
            return Err(HelloRefusal::TooLong);
        }
        match same {
            Some(_) => self.pieces[at].1 = bytes.to_vec(),
            None if self.pieces.len() >= MOST_HELLO_PIECES => return Err(HelloRefusal::TooManyPieces),
            None => self.pieces.insert(at, (sequence, bytes.to_vec())),
        }
        Ok(true)
    }

    /// What follows on the lowest piece without a gap.
    fn run(&self) -> Vec<u8> {
        let lowest = self.pieces[0].0;
        let mut run = Vec::new();
        for (sequence, piece) in &self.pieces {
            let Some(known) = run.len().checked_sub(behind(*sequence, lowest).unsigned_abs() as usize) else {
                break;
            };
            run.extend_from_slice(piece.get(known..).unwrap_or_default());
        }
        run
    }
}

/// The name in what may be the beginning of a connection.
fn name_in(run: &[u8]) -> Result<ClientHello, HelloRefusal> {
    let begins = run.iter().zip(HANDSHAKE).all(|(byte, wanted)| *byte == wanted);
    if !begins {
        // A later piece may have come first.
        return Ok(ClientHello::Unfinished);
    }
    let mut acceptor = Acceptor::default();
    let mut rest = run;
    while !rest.is_empty() {
        // It has room for more than a message may be long here.
        if !acceptor.read_tls(&mut rest).is_ok_and(|read| read > 0) {
            return Err(HelloRefusal::TooLong);
        }
    }
    match acceptor.accept() {
        Ok(None) => Ok(ClientHello::Unfinished),
        Ok(Some(accepted)) => {
            let hello = accepted.client_hello();
            let name = hello.server_name().ok_or(HelloRefusal::NoName)?;
            DnsName::parse(name).map(ClientHello::Named).map_err(|_| HelloRefusal::NoName)
        }
        Err((Error::PeerMisbehaved(_), _)) => Err(HelloRefusal::NoName),
        Err(_) => Err(HelloRefusal::NotTls),
    }
}

/// First messages of clients, of which parts have come.
#[derive(Default)]
pub struct ClientHellos {
    /// The oldest first.
    begun: VecDeque<Begun>,
    /// When the second began in which segments are counted, how many came in it, and of each network.
    second: (u64, u32, HashMap<u128, u32>),
    given_up: u64,
}

impl ClientHellos {
    /// Takes a segment that came at this time, in nanoseconds, which never goes back. What waits of an
    /// earlier connection by the same ports is forgotten.
    ///
    /// # Errors
    ///
    /// Why it leads to no name. What came before of a message that is none, or has no name, is forgotten.
    pub fn take(&mut self, segment: &ClientSegment<'_>, now: u64) -> Result<ClientHello, HelloRefusal> {
        self.forget(now);
        self.count(segment.connection.initiator, now)?;
        let ClientSegment { connection, sequence, bytes } = *segment;
        if bytes.is_empty() {
            return Ok(ClientHello::Unfinished);
        }
        let is_own = |one: &Begun| one.connection.has_ports_of(&connection);
        let Some(place) = self.begun.iter().position(is_own) else {
            return self.begin(segment, now);
        };
        let begun = &mut self.begun[place];
        if begun.connection != connection {
            self.begun.remove(place);
            self.given_up += 1;
            return self.begin(segment, now);
        }
        if !begun.take(sequence, bytes)? {
            return Ok(ClientHello::Unfinished);
        }
        let said = name_in(&begun.run());
        if said != Ok(ClientHello::Unfinished) {
            self.begun.remove(place);
        }
        said
    }

    fn begin(&mut self, segment: &ClientSegment<'_>, now: u64) -> Result<ClientHello, HelloRefusal> {
        let ClientSegment { connection, sequence, bytes } = *segment;
        if bytes.len() > LONGEST_HELLO {
            return Err(HelloRefusal::TooLong);
        }
        let said = name_in(bytes)?;
        if said == ClientHello::Unfinished {
            let own = network(connection.initiator.into());
            let is_own = |one: &&Begun| network(one.connection.initiator.into()) == own;
            if self.begun.iter().filter(is_own).count() >= MOST_HELLOS_OF_NETWORK {
                return Err(HelloRefusal::NetworkFull);
            }
            if self.begun.len() >= MOST_HELLOS {
                return Err(HelloRefusal::Full);
            }
            let pieces = vec![(sequence, bytes.to_vec())];
            self.begun.push_back(Begun { connection, since: now, pieces });
        }
        Ok(said)
    }

    /// Counts a segment, each second anew.
    fn count(&mut self, initiator: Ipv4Addr, now: u64) -> Result<(), HelloRefusal> {
        let (second, all, networks) = &mut self.second;
        if now.saturating_sub(*second) >= SECOND {
            (*second, *all) = (now, 0);
            networks.clear();
        }
        if *all >= HELLO_SEGMENTS {
            return Err(HelloRefusal::TooManySegments);
        }
        let of_network = networks.entry(network(initiator.into())).or_default();
        if *of_network >= HELLO_SEGMENTS_OF_NETWORK {
            return Err(HelloRefusal::TooManySegments);
        }
        *all += 1;
        *of_network += 1;
        Ok(())
    }

    /// Forgets what has waited for too long.
    fn forget(&mut self, now: u64) {
        while self.begun.front().is_some_and(|one| now.saturating_sub(one.since) >= HELLO_WAITS) {
            self.begun.pop_front();
            self.given_up += 1;
        }
    }

    /// How many messages wait for more at this time.
    pub fn waiting(&mut self, now: u64) -> usize {
        self.forget(now);
        self.begun.len()
    }

    /// How many messages have been forgotten since more did not come.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The bytes that are held of all messages.
    pub fn held(&self) -> usize {
        self.begun.iter().flat_map(|one| &one.pieces).map(|(_, piece)| piece.len()).sum()
    }
}
