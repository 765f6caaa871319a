//! How much a tunnel remembers, how long, and how often it answers: every limit of this crate.

/// One second, in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// Peers of one tunnel.
pub const MOST_PEERS: usize = 8_192;

/// Public keys of one peer: an old and a new one while they are rotated, and some to spare.
pub const MOST_KEYS_OF_PEER: usize = 4;

/// Secrets of this end: every initiation is compared with each of them.
pub const MOST_SECRETS: usize = 4;

/// Handshakes that this end has begun and that are not answered yet. Further ones wait.
pub const MOST_HANDSHAKES: usize = 1_024;

/// Answers that wait to be sent. Messages that would be answered by further ones are dropped.
pub const MOST_ANSWERS: usize = 256;

/// Packets that wait for a session, of one peer.
pub const MOST_QUEUED_OF_PEER: usize = 64;

/// Bytes of packets that wait for a session, of all peers.
pub const MOST_QUEUED_BYTES: usize = 8 << 20;

/// The longest payload: a UDP datagram over IPv4 has at most 65,507 bytes, 32 of which are header and tag.
pub const LONGEST_PAYLOAD: usize = 65_507 - 32;

/// Handshake messages a second that are worked on for addresses that have proved nothing. Above that, a
/// sender gets a cookie, and has to show it.
pub const UNPROVED_A_SECOND: u64 = 256;

/// The same for all addresses together that have shown a cookie.
pub const PROVED_A_SECOND: u64 = 1_024;

/// The same for one address (an IPv4 address, or an IPv6 /64) that has shown a cookie.
pub const PROVED_OF_ADDRESS_A_SECOND: u64 = 20;

/// Counters for addresses. Two addresses may share one.
pub const ADDRESS_COUNTERS: usize = 4_096;

/// Initiations of one peer come at least so far apart.
pub const INITIATION_INTERVAL: u64 = SECOND / 20;

/// The secret behind cookies is replaced after this time; a cookie is taken under the secret before as well.
pub const COOKIE_SECRET_LIFE: u64 = 120 * SECOND;

/// The end that began a session begins the next one when it sends and the session is so old.
pub const REKEY_AFTER: u64 = 120 * SECOND;

/// A session so old neither seals nor opens anything.
pub const REJECT_AFTER: u64 = 180 * SECOND;

/// The same by messages that one direction has carried. With packets of 1,500 bytes this is 2^35 blocks of
/// AES under one key, by which an attacker tells it from a random function with a chance of 2^-59; with the
/// longest payloads 2^40 blocks and 2^-49. WireGuard's 2^60 is for ChaCha20-Poly1305 only.
pub const REJECT_AFTER_MESSAGES: u64 = 1 << 28;

/// Either end begins the next session when it has sealed so many messages.
pub const REKEY_AFTER_MESSAGES: u64 = 1 << 27;

/// The first and the longest pause before an initiation is repeated. Between them it doubles.
pub const RETRY: std::ops::RangeInclusive<u64> = SECOND..=5 * SECOND;

/// A random part of a pause, at most one of so many, is added to it.
pub const JITTER_OF: u64 = 8;

/// After this time without an answer, a handshake is given up and packets that wait for it are discarded.
pub const GIVE_UP_AFTER: u64 = 90 * SECOND;

/// An end that has received and sent nothing for so long sends a keepalive.
pub const KEEPALIVE_AFTER: u64 = 10 * SECOND;

/// An end that has sent and received nothing for so long begins a handshake: the peer may have lost its keys.
pub const SILENCE: u64 = KEEPALIVE_AFTER + 5 * SECOND;

/// The same where it has asked and received nothing: a peer answers at once.
pub const QUESTION_SILENCE: u64 = 3 * SECOND;

/// The end that began a session also begins the next one when it receives and the session is so old, so that
/// there is a new one before the old one ends.
pub const REKEY_ON_RECEIVE_AFTER: u64 = REJECT_AFTER - SILENCE;

/// The shortest interval of keepalives that a peer may be given.
pub const SHORTEST_KEEPALIVE: u64 = SECOND;
