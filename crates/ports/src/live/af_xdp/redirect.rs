//! The XDP program at an interface: it redirects each packet to the socket of its queue. Packets of queues
//! without a socket go on to Linux or are dropped.

use super::calls::opening as calls;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Where in the kernel packets are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the interface's driver, before the kernel makes anything of them.
    Driver,
    /// Behind it, where every interface can.
    Generic,
}

impl Place {
    fn flags(self) -> u32 {
        // XDP_FLAGS_SKB_MODE and XDP_FLAGS_DRV_MODE (include/uapi/linux/if_link.h).
        match self {
            Place::Generic => 1 << 1,
            Place::Driver => 1 << 2,
        }
    }
}

/// What becomes of packets of queues without a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// They go on to the kernel.
    Pass,
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
        place: Place,
        otherwise: Otherwise,
    ) -> io::Result<Redirect> {
        let map = calls::socket_map(queues)?;
        let program = calls::load_program(&assemble(map.as_raw_fd(), otherwise))?;
        let link = calls::link(&program, interface, place.flags())?;
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
    calls::link(&calls::load_program(&program)?, from, Place::Driver.flags())
}

/// Lets everything through that an interface's driver receives; a virtual cable takes redirected packets only
/// where its other end has a program.
///
/// # Errors
/// As [`cross`].
pub fn pass(interface: u32) -> io::Result<OwnedFd> {
    let program = [instruction(0xb7, 0, 0, 0, XDP_PASS), instruction(0x95, 0, 0, 0, 0)];
    calls::link(&calls::load_program(&program)?, interface, Place::Driver.flags())
}

const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;

/// `return bpf_redirect_map(map, packet->rx_queue_index, otherwise)`, as instructions (RFC 9669).
fn assemble(map: RawFd, otherwise: Otherwise) -> [u64; 6] {
    const RX_QUEUE: i16 = 16;
    const REDIRECT_MAP: i32 = 51;
    const MAP_BY_DESCRIPTOR: u8 = 1;
    let otherwise = match otherwise {
        Otherwise::Pass => XDP_PASS,
        Otherwise::Drop => XDP_DROP,
    };
    [
        instruction(0x61, 2, 1, RX_QUEUE, 0),
        instruction(0x18, 1, MAP_BY_DESCRIPTOR, 0, map),
        0,
        instruction(0xb7, 3, 0, 0, otherwise),
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0, 0),
    ]
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
        for (otherwise, number) in [(Otherwise::Pass, "02"), (Otherwise::Drop, "01")] {
            let code = assemble(9, otherwise);
            let bytes: Vec<u8> = code.iter().flat_map(|instruction| instruction.to_le_bytes()).collect();
            // r2 = *(u32 *)(r1 + 16); r1 = map 9; r3 = number; call 51; exit
            let wanted = format!(
                "6112100000000000 1811000009000000 0000000000000000 b7030000{number}000000 8500000033000000 9500000000000000"
            );
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, wanted.replace(' ', ""));
        }
    }
}
