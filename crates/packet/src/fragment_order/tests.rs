//! The order against a slow twin, which searches lists from the front; and floods beyond every limit.

use super::places::WAYS;
use super::*;
use crate::region::SLACK;
use proptest::prelude::*;
use std::convert::Infallible;

const SMALL: FragmentLimits =
    FragmentLimits { packets: 16, bytes: 40 * 256, bytes_of_source: 12 * 256, wait: 100, remember: 1_000 };

/// A frame as it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gone {
    bytes: Vec<u8>,
    wire: u32,
    port: u16,
    time: u64,
}

/// A fragment of IPv4: the packet's number says who sends it; the serial number makes it unlike others.
fn fragment_of(source: u8, id: u16, place: u16, length: usize, serial: u32) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 0]);
    frame.extend(id.to_be_bytes());
    frame.extend(place.to_be_bytes());
    frame.extend([64, 17, 0, 0, 10, 0, 0, source, 192, 0, 2, 9]);
    frame.extend(serial.to_be_bytes());
    frame.resize(frame.len().max(length), source);
    frame
}

/// What happens.
#[derive(Clone, Debug)]
enum Event {
    Batch(Vec<Gone>),
    Advance(u64),
    Finish,
}

/// Runs events through the order.
fn ordered(order: &mut FragmentOrder, events: &[Event]) -> Vec<Gone> {
    let mut gone = Vec::new();
    for event in events {
        let mut run = |memory: &mut [u8], batch: &mut Batch| {
            assert!(!batch.is_empty());
            for index in 0..batch.len {
                let bytes = batch.bytes(memory, index).expect("its bytes are there").to_vec();
                let (wire, port, time) = (batch.wire[index], batch.port[index], batch.time[index]);
                gone.push(Gone { bytes, wire, port, time });
            }
            Ok::<(), Infallible>(())
        };
        let Ok(()) = match event {
            Event::Batch(packets) => {
                let (mut batch, mut memory) = (Batch::new(), Vec::new());
                for Gone { bytes, wire, port, time } in packets {
                    batch.push(memory.len() as u64, bytes.len() as u32, *wire, *port, *time);
                    memory.extend_from_slice(bytes);
                }
                memory.extend([0; SLACK]);
                order.run(&mut memory, &mut batch, run)
            }
            Event::Advance(now) => order.advance(*now, &mut run),
            Event::Finish => order.finish(run),
        };
    }
    gone
}

/// The same with lists, packet by packet. Which packets share a set and which sources a bound is taken from
/// the order.
#[derive(Default)]
struct Twin {
    now: u64,
    firsts: Vec<(Datagram, u64)>,
    waiting: Vec<(Datagram, u64, Gone)>,
    gone: Vec<Gone>,
}

impl Twin {
    fn run(&mut self, limits: FragmentLimits, chosen: &FragmentOrder, events: &[Event]) {
        for event in events {
            match event {
                Event::Batch(packets) => {
                    packets.iter().for_each(|packet| self.packet(limits, chosen, packet))
                }
                Event::Advance(now) => {
                    self.now = self.now.max(*now);
                    self.due();
                }
                Event::Finish => {
                    let now = self.now;
                    self.gone.extend(self.waiting.drain(..).map(|(_, _, gone)| Gone { time: now, ..gone }));
                }
            }
        }
    }

    fn due(&mut self) {
        while self.waiting.first().is_some_and(|(_, until, _)| *until <= self.now) {
            let (_, until, gone) = self.waiting.remove(0);
            self.gone.push(Gone { time: until, ..gone });
        }
    }

    fn packet(&mut self, limits: FragmentLimits, chosen: &FragmentOrder, packet: &Gone) {
        self.now = self.now.max(packet.time);
        self.due();
        let now = self.now;
        self.firsts.retain(|(_, since)| now - since < limits.remember);
        let Some((datagram, first)) = fragment(&packet.bytes) else {
            self.gone.push(packet.clone());
            return;
        };
        let knows = self.firsts.iter().any(|(known, _)| *known == datagram);
        let waits = self.waiting.iter().any(|(known, ..)| *known == datagram);
        let set_of = |datagram: &Datagram| chosen.places.set_of(datagram);
        let set = set_of(&datagram);
        let mut has_place = || {
            let mut in_set: Vec<Datagram> = self.waiting.iter().map(|(known, ..)| *known).collect();
            in_set.retain(|known| set_of(known) == set);
            let mut distinct: Vec<Datagram> = Vec::new();
            for known in in_set {
                if !distinct.contains(&known) {
                    distinct.push(known);
                }
            }
            let firsts = self.firsts.iter().filter(|(known, _)| set_of(known) == set);
            if distinct.len() + firsts.clone().count() < WAYS {
                return true;
            }
            let Some(oldest) = firsts.min_by_key(|(_, since)| *since).map(|(known, _)| *known) else {
                return false;
            };
            self.firsts.retain(|(known, _)| *known != oldest);
            true
        };
        if first {
            if knows || waits || has_place() {
                self.firsts.retain(|(known, _)| *known != datagram);
                self.firsts.push((datagram, now));
            }
            self.gone.push(packet.clone());
            let follow = self.waiting.iter().filter(|(known, ..)| *known == datagram);
            self.gone.extend(follow.map(|(_, _, gone)| Gone { time: now, ..gone.clone() }));
            self.waiting.retain(|(known, ..)| *known != datagram);
            return;
        }
        let cells = |gone: &Gone| gone.bytes.len().div_ceil(256);
        let group = |datagram: &Datagram| chosen.waiting.group(datagram.source());
        let all: usize = self.waiting.iter().map(|(_, _, gone)| cells(gone)).sum();
        let same = self.waiting.iter().filter(|(known, ..)| group(known) == group(&datagram));
        let of_source: usize = same.map(|(_, _, gone)| cells(gone)).sum();
        let has_room = all + cells(packet) <= limits.bytes as usize / 256
            && of_source + cells(packet) <= limits.bytes_of_source as usize / 256;
        if !knows && has_room && (waits || has_place()) {
            self.waiting.push((datagram, now + limits.wait, packet.clone()));
        } else {
            self.gone.push(packet.clone());
        }
    }
}

/// Of a packet: who sends it, its identification, which fragment it is, its length, and a pause.
type Drawn = (u8, u16, u16, usize, u64);

/// Packets and pauses, with times that go back now and then.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let packet = (0u8..6, 0u16..7, 0u16..8, 34usize..1_400, 0u64..60);
    let event = prop_oneof![
        8 => proptest::collection::vec(packet, 1..12).prop_map(Ok),
        1 => (0u64..300).prop_map(|pause| Err(Some(pause))),
        1 => Just(Err(None)),
    ];
    proptest::collection::vec(event, 1..60).prop_map(|events| {
        let (mut now, mut serial) = (10_000, 0);
        let each = |event: Result<Vec<Drawn>, Option<u64>>| match event {
            Ok(packets) => Event::Batch(
                packets
                    .into_iter()
                    .map(|(source, id, kind, length, pause)| {
                        serial += 1;
                        // More fragments follow a first one.
                        let place = [0x4000, 0x2000, 0x2000, 1, 2, 3, 0x2004, 5][usize::from(kind)];
                        let mut time = now;
                        if kind == 0 && pause % 2 == 0 {
                            time -= 1_000;
                        } else {
                            // No two fragments come at the same time, so one of them is the older one.
                            now += 1 + pause / 4;
                            time = now.max(time);
                        }
                        let bytes = fragment_of(source, id, place, length, serial);
                        Gone { wire: bytes.len() as u32 + 4, bytes, port: u16::from(source), time }
                    })
                    .collect(),
            ),
            Err(Some(pause)) => {
                now += pause;
                Event::Advance(now)
            }
            Err(None) => Event::Finish,
        };
        events.into_iter().map(each).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_order_is_that_of_lists_searched_from_the_front(events in events(), seed in 0u64..4) {
        let mut order = FragmentOrder::new(SMALL, seed);
        let mut twin = Twin::default();
        let gone = ordered(&mut order, &events);
        twin.run(SMALL, &order, &events);
        prop_assert_eq!(&gone, &twin.gone);
        prop_assert_eq!(order.due(), twin.waiting.first().map(|(_, until, _)| *until));
        // Each packet goes on exactly once.
        let mut all: Vec<Vec<u8>> = gone.into_iter().chain(twin.waiting.into_iter().map(|(_, _, gone)| gone))
            .map(|gone| gone.bytes).collect();
        let mut came: Vec<Vec<u8>> = events.into_iter().filter_map(|event| match event {
            Event::Batch(packets) => Some(packets),
            _ => None,
        }).flatten().map(|packet| packet.bytes).collect();
        all.sort();
        came.sort();
        prop_assert_eq!(all, came);
    }
}

fn packet(source: u8, id: u16, place: u16, time: u64) -> Gone {
    let bytes = fragment_of(source, id, place, 200, 0);
    Gone { wire: bytes.len() as u32, bytes, port: 1, time }
}

#[test]
fn later_fragments_follow_their_first_whatever_stands_between() {
    let mut order = FragmentOrder::new(SMALL, 1);
    let (third, second, whole) = (packet(1, 7, 50, 10), packet(1, 7, 0x2019, 20), packet(1, 9, 0, 30));
    let (first, fourth) = (packet(1, 7, 0x2000, 40), packet(1, 7, 75, 50));
    let at = |gone: &Gone, time| Gone { time, ..gone.clone() };
    let batch =
        Event::Batch(vec![third.clone(), second.clone(), whole.clone(), first.clone(), fourth.clone()]);
    let expected = [whole, first, at(&third, 40), at(&second, 40), fourth];
    assert_eq!(ordered(&mut order, &[batch]), expected);
}

#[test]
fn what_waits_in_vain_goes_on_at_its_time() {
    let mut order = FragmentOrder::new(SMALL, 1);
    let (one, two) = (packet(1, 7, 1, 10), packet(1, 7, 2, 60));
    assert_eq!(ordered(&mut order, &[Event::Batch(vec![one.clone(), two.clone()])]), []);
    assert_eq!(order.due(), Some(110));
    assert_eq!(ordered(&mut order, &[Event::Advance(109)]), []);
    assert_eq!(ordered(&mut order, &[Event::Advance(130)]), [Gone { time: 110, ..one }]);
    // Its first comes behind the other one's time.
    let first = packet(1, 7, 0x2000, 160);
    let expected = [Gone { time: 160, ..two }, first.clone()];
    assert_eq!(ordered(&mut order, &[Event::Batch(vec![first])]), expected);
    // It is remembered, and forgotten again.
    let (soon, late) = (packet(1, 7, 3, 1_159), packet(1, 7, 4, 1_160));
    assert_eq!(ordered(&mut order, &[Event::Batch(vec![soon.clone(), late.clone()])]), [soon]);
    assert_eq!(ordered(&mut order, &[Event::Finish]), [late]);
}

#[test]
fn fragments_that_have_waited_go_on_together() {
    let limits = FragmentLimits { bytes: 1 << 20, bytes_of_source: 1 << 20, ..SMALL };
    let mut order = FragmentOrder::new(limits, 1);
    let bytes = |place: u16| fragment_of(1, 7, place, 1_500, 0);
    let mut sizes = Vec::new();
    // A datagram of 64 KiB from its end on, one frame a batch.
    for place in (1..44).rev().map(|piece| 0x2000 | (piece * 185)).chain([0x2000]) {
        let (mut batch, bytes) = (Batch::new(), bytes(place));
        let mut memory = batch.hold_one(&bytes, 1_500, 1, 5);
        let Ok(()) = order.run(&mut memory, &mut batch, |_, batch| {
            sizes.push(batch.len);
            Ok::<(), Infallible>(())
        });
    }
    assert_eq!(sizes, [1, 43]);
}

#[test]
fn a_virtio_header_waits_with_its_frame() {
    let mut order = FragmentOrder::new(SMALL, 1);
    let mut seen = Vec::new();
    let open = crate::VirtioHeader::of_open(34, 6);
    for place in [1, 0x2000] {
        let bytes = fragment_of(1, 7, place, 100, 0);
        let mut batch = Batch::new();
        let mut memory = batch.hold_one(&bytes, 100, 1, 5);
        batch.leave_unfinished(if place == 1 { open } else { crate::VirtioHeader::NONE });
        let Ok(()) = order.run(&mut memory, &mut batch, |_, batch| {
            seen.extend((0..batch.len).map(|index| batch.virtio(index)));
            Ok::<(), Infallible>(())
        });
    }
    assert_eq!(seen, [crate::VirtioHeader::NONE, open]);
}

/// Every limit at a size that is reached soon.
const FLOODED: FragmentLimits =
    FragmentLimits { packets: 256, bytes: 64 << 10, bytes_of_source: 4 << 10, wait: 1_000_000, remember: 10 };

#[test]
fn a_flood_takes_no_more_than_the_limits_and_one_source_no_more_than_its_part() {
    let mut order = FragmentOrder::new(FLOODED, 77);
    let all = order.waiting.left();
    let of_one = Event::Batch((0..200).map(|id| packet(1, id, 1, u64::from(id))).collect());
    assert_eq!(ordered(&mut order, &[of_one]).len(), 200 - 16);
    assert_eq!(all - order.waiting.left(), 16);
    // Somebody else's fragments are still put into order.
    let (later, first) = (packet(2, 7, 1, 300), packet(2, 7, 0x2000, 300));
    let both = [first.clone(), Gone { time: 300, ..later.clone() }];
    assert_eq!(ordered(&mut order, &[Event::Batch(vec![later, first])]), both);
    // Everybody together fills it, and what comes then goes on as it is.
    let mut gone = 0;
    for id in 0..200u16 {
        let batch = (0..=255).map(|source| packet(source, id, 1, 400)).collect();
        gone += ordered(&mut order, &[Event::Batch(batch)]).len();
        assert!(order.places.looked() <= WAYS, "a search looks at one set");
    }
    let waiting = all - order.waiting.left();
    assert!(waiting <= all && waiting > all / 2, "{waiting} of {all} cells");
    assert_eq!(gone + waiting, 200 * 256 + 16);
    assert_eq!(ordered(&mut order, &[Event::Finish]).len(), waiting);
    assert_eq!((order.waiting.left(), order.due()), (all, None));
}

#[test]
fn a_frame_of_the_longest_length_waits_and_comes_back_as_it_was() {
    let limits = FragmentLimits { bytes: 1 << 20, bytes_of_source: 1 << 20, ..SMALL };
    let mut order = FragmentOrder::new(limits, 0);
    let length = crate::MAXIMUM_CAPTURED as usize;
    let mut bytes = fragment_of(1, 7, 1, length, 0);
    bytes.iter_mut().skip(38).enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
    let long = Gone { wire: length as u32, bytes, port: 3, time: 5 };
    let first = packet(1, 7, 0x2000, 6);
    let batches = [Event::Batch(vec![long.clone(), long.clone(), first.clone()])];
    let again = Gone { time: 6, ..long.clone() };
    assert_eq!(ordered(&mut order, &batches), [first, again.clone(), again]);
    // One byte more, of another packet.
    let mut beyond = long;
    beyond.bytes.push(0);
    beyond.bytes[19] = 8;
    assert_eq!(ordered(&mut order, &[Event::Batch(vec![beyond.clone()])]), [beyond]);
}
