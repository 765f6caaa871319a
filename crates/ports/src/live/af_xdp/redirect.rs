//! The XDP program at an interface: it redirects each packet to the socket of its queue. Packets of queues
//! without a socket go on to Linux or are dropped.

use super::calls::opening as calls;
use super::wanted::Mode;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

impl Mode {
    fn flags(self) -> u32 {
        // XDP_FLAGS_SKB_MODE and XDP_FLAGS_DRV_MODE (include/uapi/linux/if_link.h).
        match self {
            Mode::Generic => 1 << 1,
            Mode::Driver => 1 << 2,
        }
    }
}

/// What becomes of packets of queues without a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Those of the queues whose bits are set end: each has had a socket, and will have another. Those of
    /// others, and of queues from 64 on, go on to the kernel.
    Pass { served: u64 },
    /// They end.
    Drop,
}

/// The program at one interface. It goes when this goes, also by the end of the process.
pub(crate) struct Redirect {
    map: OwnedFd,
    _link: OwnedFd,
}

impl Redirect {
    /// Attaches it to an interface with so many queues.
    pub(crate) fn attach(
        interface: u32,
        queues: u32,
        mode: Mode,
        otherwise: Otherwise,
    ) -> io::Result<Redirect> {
        let map = calls::socket_map(queues)?;
        let program = calls::load_program(&assemble(map.as_raw_fd(), otherwise))?;
        let link = calls::link(&program, interface, mode.flags())?;
        Ok(Redirect { map, _link: link })
    }

    /// Hands the packets of a queue to a socket that is bound to it.
    pub(crate) fn put(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        calls::put_socket(&self.map, queue, socket)
    }
}

/// The process that holds the program at an interface by a link, as far as /proc tells
/// (bpf_xdp_link_show_fdinfo in Linux).
pub(crate) fn holder(interface: u32) -> Option<String> {
    let namespace = fs::read_link("/proc/self/ns/net").ok()?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter(|process| process.file_name().as_encoded_bytes()[0].is_ascii_digit()).find_map(
        |process| {
            // Interfaces have numbers of their own in each network namespace.
            fs::read_link(process.path().join("ns/net")).ok().filter(|other| *other == namespace)?;
            let descriptors = fs::read_dir(process.path().join("fdinfo")).ok()?;
            let mut texts = descriptors.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
            texts.find(|text| is_link(text, interface))?;
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            Some(format!("process {} ({})", process.file_name().display(), name.trim_end()))
        },
    )
}

/// Whether what /proc says of a descriptor is a link of XDP to an interface.
fn is_link(text: &str, interface: u32) -> bool {
    let says = |key: &str, value: &str| {
        text.lines().any(|line| line.split_once(':').is_some_and(|(k, v)| k == key && v.trim() == value))
    };
    says("link_type", "xdp") && says("ifindex", &interface.to_string())
}

/// Hands everything that an interface's driver receives to another interface, as long as the descriptor is
/// open. Interfaces are named by their numbers.
///
/// # Errors
/// The right is missing (CAP_BPF and CAP_NET_ADMIN), or the kernel or the driver cannot do it.
pub fn cross(from: u32, to: u32) -> io::Result<OwnedFd> {
    const REDIRECT: i32 = 23;
    let program = [
        instruction(0xb7, 1, 0, 0, to as i32),
        instruction(0xb7, 2, 0, 0, 0),
        instruction(0x85, 0, 0, 0, REDIRECT),
        instruction(0x95, 0, 0, 0, 0),
    ];
    calls::link(&calls::load_program(&program)?, from, Mode::Driver.flags())
}

/// Lets everything through that an interface's driver receives; a virtual cable takes redirected packets only
/// where its other end has a program.
///
/// # Errors
/// As [`cross`].
pub fn pass(interface: u32) -> io::Result<OwnedFd> {
    let program = [instruction(0xb7, 0, 0, 0, XDP_PASS), instruction(0x95, 0, 0, 0, 0)];
    calls::link(&calls::load_program(&program)?, interface, Mode::Driver.flags())
}

const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;

/// `return bpf_redirect_map(map, packet->rx_queue_index, otherwise)`, as instructions (RFC 9669), where
/// `otherwise` is XDP_PASS less the bit of the queue among the served ones, or XDP_DROP.
fn assemble(map: RawFd, otherwise: Otherwise) -> Vec<u64> {
    const RX_QUEUE: i16 = 16;
    const REDIRECT_MAP: i32 = 51;
    const MAP_BY_DESCRIPTOR: u8 = 1;
    let mut program =
        vec![instruction(0x61, 2, 1, RX_QUEUE, 0), instruction(0x18, 1, MAP_BY_DESCRIPTOR, 0, map), 0];
    match otherwise {
        Otherwise::Drop => program.push(instruction(0xb7, 3, 0, 0, XDP_DROP)),
        Otherwise::Pass { served } => {
            let [low, high] = [served as i32, (served >> 32) as i32];
            program.extend([
                instruction(0xb7, 3, 0, 0, XDP_PASS),
                // Over the next five from queue 64 on.
                instruction(0x25, 2, 0, 5, 63),
                instruction(0x18, 4, 0, 0, low),
                instruction(0, 0, 0, 0, high),
                instruction(0x7f, 4, 2, 0, 0),
                instruction(0x57, 4, 0, 0, 1),
                instruction(0x1f, 3, 4, 0, 0),
            ]);
        }
    }
    program.extend([instruction(0x85, 0, 0, 0, REDIRECT_MAP), instruction(0x95, 0, 0, 0, 0)]);
    program
}

fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> u64 {
    let registers =
        if cfg!(target_endian = "little") { source << 4 | destination } else { destination << 4 | source };
    let mut bytes = [0; 8];
    (bytes[0], bytes[1]) = (code, registers);
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    bytes[4..].copy_from_slice(&immediate.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_known_by_what_proc_says() {
        let text = "pos:\t0\nlink_type:\txdp\nlink_id:\t3\nprog_tag:\t0123\nprog_id:\t7\nifindex:\t12\n";
        assert!(is_link(text, 12));
        assert!(!is_link(text, 1) && !is_link(text, 7) && !is_link("ifindex:\t12\n", 12));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_program_is_what_an_assembler_makes_of_it() {
        let served = 0x8000_0001_0000_0002;
        for (otherwise, middle) in [
            (Otherwise::Drop, "b703000001000000"),
            // r3 = 2; if r2 > 63 goto +5; r4 = served ll; r4 >>= r2; r4 &= 1; r3 -= r4
            (
                Otherwise::Pass { served },
                "b703000002000000 250205003f000000 1804000002000000 0000000001000080 7f24000000000000 5704000001000000 1f43000000000000",
            ),
        ] {
            let code = assemble(9, otherwise);
            let bytes: Vec<u8> = code.iter().flat_map(|instruction| instruction.to_le_bytes()).collect();
            // r2 = *(u32 *)(r1 + 16); r1 = map 9; …; call 51; exit
            let wanted = format!(
                "6112100000000000 1811000009000000 0000000000000000 {middle} 8500000033000000 9500000000000000"
            );
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, wanted.replace(' ', ""));
        }
    }
}
