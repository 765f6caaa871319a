//! How long a persistent kernel runs on a CUDA device before it is launched again, and whether a device can
//! run one at all.

use super::found::CudaFound;
use crate::device::{DeviceError, Geometry, SlotMemory};
use crate::ring::RingShape;
use crate::study::{PAGEABLE, PINNED, REGISTERED};
use std::time::Duration;

/// Threads of a warp, which run a packet each.
pub(super) const WARP: usize = 32;
/// The first devices whose threads go on each by itself, and whose loads and stores have an order.
const ORDERED: u32 = 70;
/// Launches that end sooner would do little else than begin.
const SHORTEST: Duration = Duration::from_micros(100);
/// The kernel counts nanoseconds in 32 bits, and nobody else has the device for so long.
const LONGEST: Duration = Duration::from_secs(4);

/// How long a kernel runs before it ends by itself; each 100 µs to 4 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// Whatever it does.
    pub quantum: Duration,
    /// Without anything to do.
    pub idle: Duration,
}

impl Default for Spans {
    /// A launch takes microseconds, so it is paid for in both; and whoever else wants the device gets it
    /// soon.
    fn default() -> Spans {
        Spans { quantum: Duration::from_millis(50), idle: Duration::from_millis(5) }
    }
}

/// Whether a device can keep a kernel running over such slots.
pub(super) fn can(
    device: &CudaFound,
    memory: SlotMemory,
    geometry: &Geometry,
    spans: Spans,
) -> Result<RingShape, DeviceError> {
    let name = device.full_name();
    let reaches = match memory {
        PAGEABLE | PINNED => {
            let what = format!("a kernel that keeps running does not copy from {memory} memory");
            return Err(DeviceError::missing(&what, "use mapped memory"));
        }
        SlotMemory::Mapped => device.maps,
        REGISTERED => device.maps && device.registers,
    };
    if !reaches {
        let what =
            format!("{name} does not reach {memory} memory, which a kernel that keeps running works on");
        return Err(DeviceError::missing(&what, "submit to streams, from pinned memory"));
    }
    if device.capability < ORDERED {
        let what =
            format!("{name} has no order of loads and stores that a kernel that keeps running could rely on");
        return Err(DeviceError::missing(&what, "submit to streams"));
    }
    if !(1..=WARP).contains(&geometry.packets) {
        let what = format!(
            "a kernel that keeps running takes 1 to {WARP} packets at a time, and not {}",
            geometry.packets
        );
        return Err(DeviceError::missing(&what, "make batches of so many, or submit to streams"));
    }
    for span in [spans.quantum, spans.idle] {
        if !(SHORTEST..=LONGEST).contains(&span) {
            let what = format!(
                "a kernel that keeps running ends by itself after {SHORTEST:?} to {LONGEST:?}, and not after {span:?}"
            );
            return Err(DeviceError::missing(&what, "let it run as long, or submit to streams"));
        }
    }
    let Some(shape) = RingShape::new(geometry.slots) else {
        let what = format!("a kernel that keeps running takes 1 to 65,536 slots, and not {}", geometry.slots);
        return Err(DeviceError::missing(&what, "ask for as many"));
    };
    let all = geometry.slots.saturating_mul(geometry.slot_bytes());
    match all > device.memory {
        true => Err(DeviceError::Memory { device: name, what: "batches", bytes: all }),
        false => Ok(shape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        packets: 32,
        stride: 64,
        columns: 1,
        verdict_bits: 32,
        record_words: 1,
        returns_bytes: false,
        slots: 8,
        tables: 0,
    };

    fn refused(device: &CudaFound, memory: SlotMemory, geometry: &Geometry, spans: Spans) -> Option<String> {
        can(device, memory, geometry, spans).err().map(|error| error.to_string())
    }

    #[test]
    fn a_kernel_ends_by_itself_neither_at_once_nor_after_too_long() {
        let device = CudaFound::imagined(13_000, true);
        let said = |quantum, idle| refused(&device, SlotMemory::Mapped, &GEOMETRY, Spans { quantum, idle });
        assert_eq!(said(SHORTEST, LONGEST), None);
        assert_eq!(said(LONGEST, SHORTEST), None);
        for wrong in [Duration::ZERO, SHORTEST - Duration::from_nanos(1), LONGEST + Duration::from_nanos(1)] {
            for sentence in [said(wrong, LONGEST), said(SHORTEST, wrong)] {
                let sentence = sentence.expect("it is refused");
                assert!(sentence.contains("after 100µs to 4s, and not after "), "{sentence}");
            }
        }
    }

    #[test]
    fn what_a_ring_does_not_take_is_said() {
        let device = CudaFound::imagined(13_000, true);
        let said = |packets, slots| {
            let geometry = Geometry { packets, slots, ..GEOMETRY };
            refused(&device, SlotMemory::Mapped, &geometry, Spans::default())
        };
        assert_eq!(said(1, 1), None);
        assert_eq!(said(32, 65_536), None);
        for packets in [0, 33] {
            let sentence = said(packets, 8).expect("it is refused");
            assert!(
                sentence.contains(&format!("takes 1 to 32 packets at a time, and not {packets}")),
                "{sentence}"
            );
        }
        for slots in [0, 65_537] {
            let sentence = said(32, slots).expect("it is refused");
            assert!(sentence.contains(&format!("takes 1 to 65,536 slots, and not {slots}")), "{sentence}");
        }
        let old = CudaFound { capability: 61, ..device.clone() };
        let sentence = refused(&old, SlotMemory::Mapped, &GEOMETRY, Spans::default()).expect("it is refused");
        assert!(sentence.contains("no order of loads and stores"), "{sentence}");
    }
}
