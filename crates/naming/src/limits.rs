//! How much a waypoint remembers, and how long: every limit of this crate.

/// One second, in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// The shortest and the longest time for which an expectation has its slot to itself.
pub const EXCLUSIVE: std::ops::RangeInclusive<u64> = 300_000_000..=5 * SECOND;

/// This time before the delay of first packets was measured. The paper waits as long.
pub const EXCLUSIVE_AT_FIRST: u64 = 2 * SECOND;

/// How long an expectation stays where nobody else needs its slot: browsers keep an address for 60 s,
/// whatever its time to live says.
pub const TAIL: u64 = 65 * SECOND;

/// How long an initiator may take to prove that it is there: a SYN is repeated after 1 s and after 3 s (RFC
/// 6298, 2).
pub const EMBRYONIC: u64 = 5 * SECOND;

/// After a binding ends, its initiator reaches no other responder by the same address and service for so
/// long.
pub const QUARANTINE: u64 = 120 * SECOND;

/// Nothing new reaches the responder of a binding for so long behind a packet that could have been for
/// another one, whatever is promised then: an answer is used for as long, and a SYN is sent again for 63 s.
pub const CONTESTED: u64 = TAIL;

/// Addresses of one pool.
pub const MOST_ADDRESSES: usize = 1_024;

/// Expectations of initiators that are known, waiting for their first packet.
pub const MOST_KNOWN: usize = 1 << 19;

/// The same, of one initiator: a set-up looks at all of them.
pub const MOST_KNOWN_OF_INITIATOR: usize = 1_024;

/// Expectations of initiators that are not known, at one address.
pub const MOST_AT_ADDRESS: usize = 64;

/// One of so many addresses, and one at least, is kept for responders and resolvers that have less than their
/// share.
pub const RESERVED_OF: usize = 16;

/// Resolvers of one network (/24, /56) are promised so many of a hundred addresses at the same time, so that
/// asking for many names does not take all.
pub const PERCENT_OF_NETWORK: usize = 75;

/// The same, where they have not shown that they get what is sent to them.
pub const PERCENT_OF_UNVERIFIED_NETWORK: usize = 25;

/// Once so many of a hundred addresses are promised, a resolver has to show that it gets what is sent to it.
pub const PERCENT_FOR_UNVERIFIED: usize = 50;

/// Promises of one host to networks of initiators: the next one is to all initiators, if there is an address
/// for this.
pub const MOST_NETWORKS_OF_HOST: usize = 8;

/// Bindings whose initiator has not proved itself.
pub const MOST_EMBRYONIC: usize = 1 << 16;

/// The same, of initiators of one /24.
pub const MOST_EMBRYONIC_OF_PREFIX: u32 = 64;

/// Bindings, quarantined ones included.
pub const MOST_BINDINGS: usize = 1 << 21;

/// Ended bindings that are remembered for longer than their quarantine. Twice as many are remembered at all;
/// then the one that ended first is forgotten early.
pub const MOST_ENDED: usize = 1 << 20;

/// Ended bindings and embryonic ones that one call forgets.
pub const FORGOTTEN_AT_ONCE: usize = 64;

/// Bindings of one initiator, quarantined ones included.
pub const MOST_OF_INITIATOR: usize = 4_096;

/// How long an ended binding of an initiator that was not known is remembered if there is room, so that an
/// address that it kept for long leads nowhere and not to another responder.
pub const REMEMBERED: u64 = 600 * SECOND;

/// Names of a zone, those between the zone and a name below it included.
pub const MOST_NAMES: usize = 1 << 16;

/// Records at one name.
pub const MOST_RECORDS_AT_NAME: usize = 32;

/// Bytes of one text record, and of the protocols of one service binding.
pub const LONGEST_TEXT: usize = 1_024;

/// Servers of a zone; each has at most as many addresses.
pub const MOST_NAME_SERVERS: usize = 8;

/// How long a reply may be kept by a resolver whose clients the waypoint does not know: the promise behind it
/// is for one look-up.
pub const LONGEST_BINDING_TTL: u32 = 5;

/// Queries that wait for a waypoint.
pub const MOST_HELD: usize = 1 << 16;

/// The same, of one network.
pub const MOST_HELD_OF_NETWORK: u32 = 1 << 12;

/// From so many queries that wait on, sources that have not proved themselves must do so first.
pub const HELD_UNDER_LOAD: usize = 1 << 12;

/// How long a query waits for a waypoint before it is answered with an error.
pub const HELD: u64 = 3 * SECOND;

/// Bytes of a reply by UDP: what passes everywhere in one piece (RFC 9715).
pub const LONGEST_UDP_REPLY: usize = 1_232;

/// By UDP, an address that has not proved itself gets at most so many times the bytes that came from it.
pub const MOST_AMPLIFICATION: usize = 3;

/// Counters of replies, each for the networks that meet there.
pub const RATE_BUCKETS: usize = 1 << 16;

/// Replies in a second to one network, of one kind and about one name, if nothing else is set.
pub const REPLIES_PER_SECOND: u32 = 20;

/// Bytes of the longest control message: a registration with the longest name and the most services.
pub const LONGEST_CONTROL: usize = 44 + 4 * crate::service::MOST_SERVICES + 255;

/// Bytes of a gateway's name.
pub const LONGEST_GATEWAY_NAME: usize = 64;

/// When an ask without an answer is sent again; each further time the pause is twice as long.
pub const ASK_REPEATED_AFTER: u64 = 200_000_000;

/// When an ask without an answer is given up.
pub const ASK_WAITS: u64 = 3 * SECOND;

/// After this time without an answer a name server asks the next waypoint as well.
pub const WAYPOINT_PATIENCE: u64 = SECOND;

/// For so long a waypoint that did not answer is asked behind all others.
pub const WAYPOINT_SILENT: u64 = 10 * SECOND;

/// Waypoints of one name server, and name servers of one waypoint.
pub const MOST_WAYPOINTS: usize = 16;

/// Asks of one process to one owner that have no answer.
pub const MOST_OPEN_ASKS: usize = 1 << 17;

/// How long an owner keeps an answer for repeated asks: as long as they are repeated.
pub const ANSWER_HELD: u64 = ASK_WAITS;

/// Answers that an owner keeps.
pub const MOST_ANSWERS_HELD: usize = 1 << 19;

/// The same, of one peer.
pub const MOST_ANSWERS_HELD_OF_PEER: usize = 1 << 17;

/// Peers of an owner.
pub const MOST_PEERS: usize = 1 << 12;

/// How long a gateway has a lease that it does not renew.
pub const LEASE: u64 = 30 * SECOND;

/// Names of one gateway.
pub const MOST_NAMES_OF_GATEWAY: usize = 256;

/// Bytes of the first message of a client of TLS, with the headers of its records: one record holds 16 KiB.
pub const LONGEST_HELLO: usize = 17 << 10;

/// Pieces in which it comes.
pub const MOST_HELLO_PIECES: usize = 64;

/// How long the rest of such a message is waited for: a client sends what is not acknowledged again within
/// some seconds.
pub const HELLO_WAITS: u64 = 10 * SECOND;

/// Such messages of which parts have come.
pub const MOST_HELLOS: usize = 512;

/// The same, of clients of one /24.
pub const MOST_HELLOS_OF_NETWORK: usize = 32;

/// Segments in a second that are looked at for such messages.
pub const HELLO_SEGMENTS: u32 = 2_000;

/// The same, of clients of one /24.
pub const HELLO_SEGMENTS_OF_NETWORK: u32 = 200;
