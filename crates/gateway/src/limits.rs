//! Limits of the control server, of the metrics and of host interfaces: the number of clients, the length of
//! questions, the time for each, and the share of the machine in what leaves.

use std::time::Duration;

/// The largest number of clients at the control socket. A further client takes the place of the one that has
/// been silent longest, or is turned away.
pub(crate) const CLIENTS: usize = 16;
/// How long a client may be silent before it has to make room for another.
pub(crate) const SILENT: Duration = Duration::from_secs(1);
/// How long a client may say nothing between two questions while there is room for others.
pub(crate) const SILENCE: Duration = Duration::from_secs(600);
/// The longest question, in bytes.
pub(crate) const QUESTION: u64 = 64 << 10;
/// How long a client may take to send a whole question, and to read a whole answer; and how long a command
/// waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a reload may take to read and compile the new program, including the wait for another reload.
/// After that it is given up, and nothing has changed.
pub(crate) const RELOAD: Duration = Duration::from_secs(240);
/// How long a client waits for the answer to `reload`: compiling, and reading a million routes, may take a
/// while on a busy machine.
pub(crate) const RELOADED: Duration = Duration::from_secs(300);
/// How long a client may take to hand in a signed policy, and how long it waits until the policy runs and is
/// kept.
pub(crate) const INSTALLED: Duration = Duration::from_secs(120);
/// How many given-up reloads may still be running, as when a file never ends; while there are more, further
/// reloads are refused.
pub(crate) const OVERDUE: usize = 2;

/// The largest number of clients at the address of the metrics; further connections are closed.
pub(crate) const HTTP_CLIENTS: usize = 16;
/// The longest HTTP request, in bytes.
pub(crate) const HTTP_QUESTION: usize = 8 << 10;
/// How long an HTTP client may take for its request and for reading the response.
pub(crate) const HTTP_PATIENCE: Duration = Duration::from_secs(5);

/// The most frames of the machine, as a host at ports, that leave between two batches of packets. Where a
/// program decides about them, their packets run in batches of up to 256, and ports have a turn in between.
pub(crate) const HOST_TURN_FRAMES: usize = 64;
/// The bytes after which no further frame of the machine leaves between two batches.
pub(crate) const HOST_TURN_BYTES: usize = 128 << 10;

/// The most addresses of a port's host interface that become the gateway's.
pub(crate) const HOST_ADDRESSES: usize = 256;

/// The most next hops of a container's routes that are followed, with its numbered next hops and the members
/// of their groups: as many as the tables of `programs/router.rav` have entries.
pub(crate) const CONTAINER_NEXT_HOPS: usize = 5 << 18;
/// The most next hops of a prefix, of all its routes together, and members of a group, that are known.
pub(crate) const CONTAINER_HOPS_OF_PREFIX: usize = 16;
/// The most routers that these routes lead to, or a quarter of those that the program has room for if that is
/// less: each has an entry of its table, and is asked for.
pub(crate) const CONTAINER_ROUTERS: usize = 64;
/// The least time from one listing of a container's routes to the next: root there can have them told again
/// and again.
pub(crate) const BETWEEN_LISTINGS: Duration = Duration::from_secs(1);
/// How many things told in a container's network control takes in at once, while everybody else waits.
pub(crate) const CONTAINER_TOLD: usize = 256;
/// How many times as long control takes nothing from there as it needed for what was told, and how long at
/// most.
pub(crate) const CONTAINER_REST: u32 = 4;
pub(crate) const CONTAINER_LONGEST_REST: Duration = Duration::from_secs(1);
/// How many messages that wait are left aside after a loss, before all is asked for again: more than find
/// room where they wait.
pub(crate) const CONTAINER_LEFT_ASIDE: usize = 1 << 18;
/// How long the start waits until a container's routes are known. Those that are not are taken out of the
/// program's tables, and come again.
pub(crate) const CONTAINER_TELLS: Duration = Duration::from_secs(5);

/// The longest snapshot that is written or read, in bytes.
pub(crate) const SNAPSHOT_BYTES: u64 = 1 << 30;

/// The most addresses at which a name server is asked.
pub(crate) const NAME_SERVER_ADDRESSES: usize = 16;
/// The longest query that is read, in bytes: a name, a cookie, a subnet and padding fit in several times.
pub(crate) const DNS_QUERY: usize = 4 << 10;
/// The most queries by UDP that are answered before their replies are sent.
pub(crate) const DNS_BATCH: usize = 64;
/// From so many entries on that packets are told of, further promises wait for the next pause between two
/// batches of packets.
pub(crate) const ROWS_AT_ONCE: usize = 64;
/// The largest number of connections to the name server. A further one takes the place of the one that has
/// been silent longest.
pub(crate) const DNS_CONNECTIONS: usize = 256;
/// The same, of one network (/24, /56); further connections are closed.
pub(crate) const DNS_CONNECTIONS_OF_NETWORK: usize = 32;
/// How long a connection may be silent between two queries (RFC 7766, 6.2.3).
pub(crate) const DNS_IDLE: Duration = Duration::from_secs(10);
/// How long a query that has begun, and the reading of a reply, may take.
pub(crate) const DNS_PATIENCE: Duration = Duration::from_secs(4);
/// The most bytes of queries of one connection. Whoever has more to ask connects again.
pub(crate) const DNS_CONNECTION_BYTES: usize = 1 << 20;
/// How often is looked what is due of leases and registrations.
pub(crate) const LEASE_CLOCK: Duration = Duration::from_millis(100);
/// The most gateways with hosts that names lead to.
pub(crate) const NAMED_GATEWAYS: usize = 1 << 12;
/// The most networks of resolvers that are believed about their clients.
pub(crate) const NAMED_RESOLVERS: usize = 1 << 8;
/// The most hosts that names have led to in one life of the process.
pub(crate) const NAMED_HOSTS: usize = 1 << 17;
/// The most hosts for which name servers elsewhere have asked and which have a promise or a binding; each
/// name server has an equal part.
pub(crate) const ASKED_HOSTS: usize = 1 << 16;
/// How often is looked which of them have none, at most, in nanoseconds.
pub(crate) const ASKED_HOSTS_LOOKED_AT: u64 = 60 * naming::limits::SECOND;
/// The greatest number of such a host: those above are for names, and none is given twice.
pub(crate) const GREATEST_ASKED_FOR: u32 = 1 << 31;
/// The most ports at which clients are led by the server name of TLS.
pub(crate) const SERVER_NAME_PORTS: usize = 16;
/// The most server names that are kept to be shown; older ones give way.
pub(crate) const SERVER_NAMES_SHOWN: usize = 64;
/// The most promises that are kept to be shown; older ones give way.
pub(crate) const PROMISES_SHOWN: usize = 1 << 10;
/// The most names that are shown at once.
pub(crate) const NAMES_SHOWN: usize = 1 << 12;
