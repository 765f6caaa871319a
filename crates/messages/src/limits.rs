//! Every limit of the messages in one place.

use std::time::Duration;

/// The longest bundle with a signed policy, in bytes (64 MiB).
pub const LONGEST_BUNDLE: usize = 64 << 20;

/// The longest message that carries a bundle, or a program, in bytes.
pub const LONGEST_BUNDLE_MESSAGE: usize = LONGEST_BUNDLE + 64;

/// The longest message of another kind, in bytes (1 MiB).
pub const LONGEST_MESSAGE: usize = 1 << 20;

/// The longest message of `launch` to `control`, in bytes.
pub const LONGEST_SUPPLY: usize = 16;

/// The longest message of the process that speaks with a machine's monitor, in bytes: eight regions, with
/// room to spare.
pub const LONGEST_VHOST_REPORT: usize = 1024;

/// How many peers the tunnels of a gateway of several processes have together: they are arguments of
/// `launch`, whose bytes Linux limits.
pub const MOST_TUNNEL_PEERS: usize = 1024;

/// The longest message of `launch` to the process of a tunnel, in bytes: so many peers, with names of 64
/// bytes and four keys each.
pub const LONGEST_TUNNEL_BEGIN: usize = MOST_TUNNEL_PEERS * 320 + 256;

/// How long this process waits for the core to let go of what was shared before: another core may be about to
/// take over, which nothing disturbs.
pub const LET_GO_WITHIN: Duration =
    Duration::from_secs(READY_WITHIN.as_secs() + TAKEN_OVER_WITHIN.as_secs() + 5);

/// The most workers of a gateway.
pub const MOST_WORKERS: u16 = 64;

/// The most ports of a core.
pub const MOST_PORTS: usize = 1024;

/// The most addresses of each family that a router in a container has, and a gateway at a port.
pub const MOST_ADDRESSES: usize = 64;

/// How many descriptors come with a message at most: three for each worker. An AF_XDP port with many queues
/// needs more, and cannot be had then.
pub const MOST_DESCRIPTORS: usize = 3 * MOST_WORKERS as usize;

/// The longest text for people in a message, in bytes: what is longer is cut.
pub const LONGEST_TEXT: usize = 4096;

/// How many clients may wait at the control socket to be answered.
pub const WAITING_CLIENTS: i32 = 128;

/// How long after a policy that `control` has handed in or confirmed the core takes no other one from it: one
/// that was taken over has no more signatures computed.
pub const AFTER_POLICY: Duration = Duration::from_secs(1);

/// How long `control` waits after a question of the front that changes nothing, before it hears it again:
/// users of the control socket have their turn.
pub const AFTER_QUESTION: Duration = Duration::from_millis(10);

/// How long packets wait at most for changes of entries before a batch of them runs; a single change may take
/// longer.
pub const CHANGING: Duration = Duration::from_micros(40);

/// How long the core waits after each question of `control`, most of which its workers have to answer.
pub const AFTER_ANSWER: Duration = Duration::from_micros(500);

/// How long the core, once it has an answer, waits for `control` to read it, and `launch` for a core that
/// runs. After that they wait no more.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// The longest time within which a policy may have to be confirmed, in seconds: a week.
pub const LONGEST_TO_CONFIRM: u32 = 7 * 24 * 3600;

/// How long whoever hands in a policy waits to learn whether it was kept on the disk.
pub const KEPT_WITHIN: Duration = Duration::from_secs(30);

/// How long a core that has locked itself in has to take over from another one, before it is given up.
pub const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(5);

/// How long a core that is to take over has until it has locked itself in: a program is read, and native code
/// compiled.
pub const READY_WITHIN: Duration = Duration::from_secs(60);

/// For how many bytes of tables Linux provides memory before a core takes over from another one, so that
/// nothing waits for it then (1 GiB).
pub const PROVIDED: u64 = 1 << 30;

/// How many entries, members or cells of state come with a message between cores.
pub const STATE_AT_ONCE: usize = 4096;

/// The longest message with state between cores, in bytes: so many entries, each with a key and a value of
/// 512 columns of one bit, of which each takes a byte. The checkpoints of a worker's ports are shorter.
pub const LONGEST_STATE_MESSAGE: usize = STATE_AT_ONCE * 1088 + 64;

/// How many entries `control` changes with one question at most.
pub const MOST_CHANGES: usize = 64;

/// How many frames `control` sends with one question at most.
pub const MOST_FRAMES: usize = 64;

/// The longest frame of `control`, in bytes: a packet of 1500 bytes behind its Ethernet header.
pub const LONGEST_LINK_FRAME: usize = 1514;

/// How many frames `control` sends in a second, over any time and with one second's more.
pub const LINK_FRAMES_PER_SECOND: u32 = 1000;

/// How many milliseconds the core waits at most for a packet that it could tell `control` of: others ask
/// behind that.
pub const LONGEST_EXCHANGE: u16 = 20;

/// The longest punted packet that `control` is told of, in bytes.
pub const LONGEST_PUNTED: usize = 2048;

/// The most columns of a key or a value of a table.
pub const MOST_ENTRY_COLUMNS: usize = 512;

/// How many entries the core tells with one answer at most: workers copy them between two batches.
pub const ENTRIES_AT_ONCE: usize = 64;

/// How many cells of counters the core tells at most: those behind them are left out.
pub const MOST_CELLS: usize = 16 << 10;
