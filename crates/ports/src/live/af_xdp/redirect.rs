//! The program at an interface that hands each packet to the socket of its queue; packets of queues without a socket go on to the kernel.

use super::calls;
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

/// The program at one interface. It goes when this goes, also by the end of the process.
pub(crate) struct Redirect {
    map: OwnedFd,
    _link: OwnedFd,
}

impl Redirect {
    /// Attaches it to an interface with so many queues.
    pub(crate) fn attach(interface: u32, queues: u32, place: Place) -> io::Result<Redirect> {
        let map = calls::socket_map(queues)?;
        let program = calls::load_program(&assemble(map.as_raw_fd()))?;
        let link = calls::link(&program, interface, place.flags())?;
        Ok(Redirect { map, _link: link })
    }

    /// Hands the packets of a queue to a socket that is bound to it.
    pub(crate) fn put(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        calls::put_socket(&self.map, queue, socket)
    }
}

/// `return bpf_redirect_map(map, packet->rx_queue_index, XDP_PASS)`, as instructions (RFC 9669).
fn assemble(map: RawFd) -> [u64; 6] {
    const RX_QUEUE: i16 = 16;
    const XDP_PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    const MAP_BY_DESCRIPTOR: u8 = 1;
    [
        instruction(0x61, 2, 1, RX_QUEUE, 0),
        instruction(0x18, 1, MAP_BY_DESCRIPTOR, 0, map),
        0,
        instruction(0xb7, 3, 0, 0, XDP_PASS),
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
    #[cfg(target_endian = "little")]
    fn the_program_is_what_an_assembler_makes_of_it() {
        let bytes: Vec<u8> = assemble(9).iter().flat_map(|instruction| instruction.to_le_bytes()).collect();
        // r2 = *(u32 *)(r1 + 16); r1 = map 9; r3 = 2; call 51; exit
        let wanted = "6112100000000000 1811000009000000 0000000000000000 b703000002000000 8500000033000000 9500000000000000";
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, wanted.replace(' ', ""));
    }
}
