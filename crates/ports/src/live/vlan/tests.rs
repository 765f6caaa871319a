//! An interface that is divided by VLANs, beside a twin that sorts frames one by one.

use super::*;
use crate::live::impair::Impair;
use crate::live::middleware::tests::Collected;
use crate::live::{Middleware, Offloads, PortKind, Presence, XdpWishes};
use packet::region::{HEADROOM, SLACK};
use packet::{BATCH, Region};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Frames, and what is left to do with each.
type Frames = Vec<(Vec<u8>, VirtioHeader)>;

/// Hands over frames in batches of at most so many.
struct Coming(Frames, usize, Region);

impl Receiver for Coming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        batch.clear();
        let count = self.1.min(self.0.len());
        for (index, (frame, virtio)) in self.0.drain(..count).enumerate() {
            let start = HEADROOM + index * 4096;
            self.2.reserve(start + frame.len() + SLACK);
            self.2.bytes_mut()[start..start + frame.len()].copy_from_slice(&frame);
            batch.push(start as u64, frame.len() as u32, frame.len() as u32, 1, now.program);
            batch.leave_unfinished(virtio);
        }
        self.2.bytes_mut()
    }

    fn descriptor(&self) -> RawFd {
        NO_DESCRIPTOR
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses { too_long: 7, waiting: self.0.len() as u64, ..ReceiveLosses::default() }
    }
}

/// What left, for the test to read.
#[derive(Clone, Default)]
struct Gone(Arc<Mutex<Collected>>);

impl Sender for Gone {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        self.0.lock().expect("no thread panicked").send(frame, virtio);
    }

    fn flush(&mut self) {}

    fn losses(&self) -> SendLosses {
        SendLosses { busy: 9, ..SendLosses::default() }
    }
}

fn wanted(vlan: VlanPlace, queued: bool) -> WantedPort {
    // Impairment without any effect: packets are copied to it.
    let nothing = Impair { loss: 0.0, ..Impair::default() };
    WantedPort {
        interface: "x".into(),
        vlan,
        kind: PortKind::AfPacket,
        offloads: Offloads::Whole,
        keep_from_kernel: false,
        promiscuous: true,
        xdp: XdpWishes::default(),
        middleware: Middleware { impair_in: queued.then_some(nothing), ..Middleware::default() },
        tunnel: None,
        vnic: None,
    }
}

fn at(vlan: u16) -> VlanPlace {
    if vlan == 0 { VlanPlace::Untagged } else { VlanPlace::Tag(vlan) }
}

/// Ports 1, 2 and so on of these VLANs (0: without), with or without middleware, over what comes and leaves.
fn ports(vlans: &[(u16, bool)], coming: Frames, together: usize, gone: &Gone) -> Vec<Lane> {
    let wanted: Vec<_> = vlans.iter().map(|&(vlan, queued)| wanted(at(vlan), queued)).collect();
    let numbered: Vec<_> = (1..).zip(&wanted).collect();
    let receive = Box::new(Coming(coming, together, Region::default()));
    let lanes = vec![Lane { receive, send: Box::new(gone.clone()) }];
    let whole = Attached {
        name: "x".into(),
        mode: "m".into(),
        lanes,
        presence: Arc::new(Presence::default()),
        divided: None,
        tunnel: None,
    };
    let divided = divide(&numbered, whole).expect("no trace");
    let mut lanes: Vec<_> = divided.into_iter().flat_map(|port| port.lanes).collect();
    lanes.iter_mut().for_each(|lane| lane.receive.joins());
    lanes
}

/// Everything that comes, by port.
fn received(lanes: &mut [Lane]) -> BTreeMap<PortNumber, Frames> {
    let (mut all, mut batch, mut idle) = (BTreeMap::<PortNumber, Frames>::new(), Batch::new(), 0);
    // A batch of which nothing is for a port is empty, as is the last one.
    while idle < 103 {
        idle += 1;
        for lane in lanes.iter_mut() {
            let memory = lane.receive.receive(&mut batch, Now { program: 5, wall: 5 });
            for index in 0..batch.len {
                let frame = batch.bytes(memory, index).expect("is there").to_vec();
                all.entry(batch.port[index]).or_default().push((frame, batch.virtio(index)));
                idle = 0;
            }
        }
    }
    all
}

fn frame(tags: &[(u16, u16)], number: u8) -> Vec<u8> {
    let mut frame = vec![number; 12];
    for (kind, control) in tags {
        frame.extend_from_slice(&kind.to_be_bytes());
        frame.extend_from_slice(&control.to_be_bytes());
    }
    frame.extend_from_slice(&[0x88, 0xb5]);
    frame.extend((0..50).map(|at| at ^ number));
    frame
}

/// A segment of TCP whose headers begin so many bytes later than without a tag.
fn segment(later: usize) -> VirtioHeader {
    let mut header = [1, 1, 0, 0, 0, 0, 0, 0, 16, 0];
    header[2..4].copy_from_slice(&(54 + later as u16).to_ne_bytes());
    header[4..6].copy_from_slice(&1000u16.to_ne_bytes());
    header[6..8].copy_from_slice(&(34 + later as u16).to_ne_bytes());
    VirtioHeader::read(&header).without_checksum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_frame_comes_to_the_port_of_its_tag_or_is_counted(
        vlans in prop::collection::btree_map(prop::sample::select(vec![0u16, 1, 20, 300, 4094]), any::<bool>(), 1..5),
        frames in prop::collection::vec((prop::sample::select(vec![0u16, 1, 20, 21, 300, 4094, 4095]), 0u16..16, any::<bool>(), any::<bool>(), any::<bool>()), 0..100),
        together in 1..=BATCH,
    ) {
        let vlans: Vec<(u16, bool)> = vlans.into_iter().collect();
        let (mut coming, mut wanted) = (Vec::new(), BTreeMap::<PortNumber, Frames>::new());
        let mut lost = ReceiveLosses { too_long: 7, ..ReceiveLosses::default() };
        for (number, (vlan, priority, inner, outer, long)) in frames.into_iter().enumerate() {
            let inner: &[(u16, u16)] = if inner { &[(0x8100, 20)] } else { &[] };
            let own = (if outer { OUTER } else { TYPE }, vlan | priority << 12);
            let tagged = vlan != 0;
            let inside = if tagged { inner } else { &[] };
            let plain = frame(inside, number as u8);
            let whole = if tagged { frame(&[&[own], inner].concat(), number as u8) } else { plain.clone() };
            let header = |later| if long { segment(later) } else { VirtioHeader::NONE };
            coming.push((whole, header(4 * usize::from(tagged))));
            match vlans.iter().position(|(known, _)| *known == vlan) {
                Some(place) if !tagged || !outer => {
                    wanted.entry(place as u16 + 1).or_default().push((plain, header(0)));
                }
                _ if tagged => lost.other_vlan += 1,
                _ => lost.untagged += 1,
            }
        }
        let mut lanes = ports(&vlans, coming, together, &Gone::default());
        prop_assert_eq!(received(&mut lanes), wanted);
        prop_assert_eq!(lanes[0].receive.losses(), lost);
        for other in &mut lanes[1..] {
            prop_assert_eq!(other.receive.losses(), ReceiveLosses::default());
        }
    }

    #[test]
    fn what_leaves_has_the_tag_of_its_port(
        sent in prop::collection::vec((0usize..3, 14usize..3000, any::<bool>(), any::<bool>()), 0..200),
    ) {
        let (vlans, gone) = ([(20, false), (0, false), (4094, false)], Gone::default());
        let mut lanes = ports(&vlans, Vec::new(), 1, &gone);
        let mut wanted: [Frames; 3] = Default::default();
        for (number, (port, length, long, flush)) in sent.into_iter().enumerate() {
            let mut plain = frame(&[], number as u8);
            plain.resize(length.max(60), number as u8);
            let vlan = vlans[port].0;
            let tags = [(TYPE, vlan)];
            let mut tagged = frame(if vlan == 0 { &[] } else { &tags }, number as u8);
            tagged.resize(plain.len() + if vlan == 0 { 0 } else { TAG }, number as u8);
            let later = if vlan == 0 { 0 } else { TAG };
            lanes[port].send.send(&plain, if long { segment(0) } else { VirtioHeader::NONE });
            wanted[port].push((tagged, if long { segment(later) } else { VirtioHeader::NONE }));
            if flush {
                lanes.iter_mut().for_each(|lane| lane.send.flush());
            }
        }
        lanes.iter_mut().for_each(|lane| lane.send.flush());
        // Frames of one port keep their order.
        let left = std::mem::take(&mut gone.0.lock().expect("no thread panicked").frames);
        let mut by_port: [Frames; 3] = Default::default();
        for (frame, virtio) in left {
            let port = match Tagged::of(&frame) {
                Tagged::Vlan(20) => 0,
                Tagged::No => 1,
                _ => 2,
            };
            by_port[port].push((frame, virtio));
        }
        prop_assert_eq!(by_port, wanted);
    }
}

#[test]
fn a_frame_without_room_for_a_tag_is_refused_and_the_interfaces_losses_are_told_once() {
    let mut lanes = ports(&[(20, false), (30, false)], Vec::new(), 1, &Gone::default());
    lanes[1].send.send(&[0; 11], VirtioHeader::NONE);
    lanes[1].send.send(&[0; 60], VirtioHeader::read(&[1, 1, 255, 255, 100, 0, 255, 255, 16, 0]));
    let told: Vec<_> =
        lanes.iter().map(|lane| (lane.send.losses().refused, lane.send.losses().busy)).collect();
    assert_eq!(told, [(0, 9), (2, 0)]);
}

#[test]
fn what_waits_for_a_port_ends_a_sleep_and_what_finds_no_room_is_counted() {
    let many: Frames = (0..3).map(|number| (frame(&[(TYPE, 20)], number), VirtioHeader::NONE)).collect();
    let mut lanes = ports(&[(30, false), (20, true)], many.clone(), 3, &Gone::default());
    let mut batch = Batch::new();
    lanes[0].receive.receive(&mut batch, Now::default());
    assert!(batch.is_empty());
    assert_eq!((lanes[0].receive.due(), lanes[1].receive.due()), (None, Some(0)));
    let waiting = |lanes: &mut [Lane]| lanes[1].receive.losses().waiting;
    assert_eq!(waiting(&mut lanes), 3, "they would be lost with the port");
    assert_eq!(received(&mut lanes)[&2].len(), 3);
    assert_eq!((lanes[1].receive.due(), waiting(&mut lanes)), (None, 0));

    let queue = Queue::new(100);
    let receive = Box::new(Coming(many, 3, Region::default()));
    let lanes = vec![Lane { receive, send: Box::new(Gone::default()) }];
    let attached = Attached {
        name: "x".into(),
        mode: "m".into(),
        lanes,
        presence: Arc::default(),
        divided: None,
        tunnel: None,
    };
    let trunk = DividedInterface::new(&wanted(at(20), true), attached).trunks.remove(0);
    let way = Way { port: 2, queue: Some(queue.clone()) };
    let (own, losses) = (Box::new(Nothing), ReceiveLosses::default());
    let mut full = Divided { at: 20, way, trunk, inner: None, was_full: false, open: false, own, losses };
    full.joins();
    full.receive(&mut batch, Now::default());
    assert_eq!((full.losses().ring_full, queue.held().len()), (2, 1));
}

#[test]
fn a_full_batch_with_frames_for_nobody_tells_that_more_waits() {
    let of = |number: usize| frame(&[(TYPE, if number == 0 { 21 } else { 20 })], number as u8);
    let many: Frames = (0..BATCH + 9).map(|number| (of(number), VirtioHeader::NONE)).collect();
    let mut lanes = ports(&[(20, false)], many, BATCH, &Gone::default());
    let (lane, mut batch) = (&mut lanes[0].receive, Batch::new());
    for (came, more) in [(BATCH - 1, true), (9, false), (0, false)] {
        lane.receive(&mut batch, Now::default());
        assert_eq!((batch.len, lane.has_more()), (came, more));
    }
}

#[test]
fn the_last_port_that_leaves_an_interface_tells_what_waits_there() {
    let many: Frames = (0..3).map(|number| (frame(&[(TYPE, 20)], number), VirtioHeader::NONE)).collect();
    let mut lanes = ports(&[(20, false), (30, false)], many, 1, &Gone::default());
    let told = |lanes: &mut [Lane]| -> Vec<u64> {
        lanes.iter_mut().map(|lane| lane.receive.losses().waiting).collect()
    };
    assert_eq!(told(&mut lanes), [3, 0]);
    lanes[0].receive.leaves();
    lanes[1].receive.joins();
    assert_eq!(told(&mut lanes), [0, 3], "handed on");
    lanes[1].receive.leaves();
    assert_eq!(told(&mut lanes), [0, 3], "lost with the interface");
}

#[test]
fn ports_of_an_interface_come_and_go_one_by_one_whichever_has_its_packets() {
    // Rounds of one frame of each VLAN and one without a tag; the ports that there are in a round get theirs.
    const VLANS: [u16; 4] = [0, 20, 30, 40];
    let round = |number: u8| {
        VLANS.map(|vlan| if vlan == 0 { frame(&[], number) } else { frame(&[(TYPE, vlan)], number) })
    };
    let presences = [
        vec![0, 20],
        vec![0, 20, 30],
        vec![20, 30],
        vec![30],
        vec![30, 40, 0],
        vec![40],
        vec![0, 20, 30, 40],
    ];
    let gone = Gone::default();
    let coming: Frames = (0..presences.len() as u8)
        .flat_map(|number| round(number).map(|frame| (frame, VirtioHeader::NONE)))
        .collect();
    let receive = Box::new(Coming(coming, VLANS.len(), Region::default()));
    let lanes = vec![Lane { receive, send: Box::new(gone.clone()) }];
    let attached = Attached {
        name: "x".into(),
        mode: "m".into(),
        lanes,
        presence: Arc::default(),
        divided: None,
        tunnel: None,
    };
    let interface = DividedInterface::new(&wanted(at(0), false), attached);
    let open = |vlan: u16| {
        let mut port = interface.port(vlan + 1, &wanted(at(vlan), false)).expect("no trace");
        (vlan, port.lanes.remove(0))
    };
    let mut there: Vec<(u16, Lane)> = Vec::new();
    let (mut got, mut expected, mut lost) = (Vec::new(), Vec::new(), 0);
    for (number, presence) in (0..).zip(&presences) {
        // First those that go, then all that are there, as a worker does it.
        for (_, lane) in there.iter_mut().filter(|(vlan, _)| !presence.contains(vlan)) {
            lost += lane.receive.losses().other_vlan + lane.receive.losses().untagged;
            lane.receive.leaves();
        }
        there.retain(|(vlan, _)| presence.contains(vlan));
        for &vlan in presence {
            if there.iter().all(|(known, _)| *known != vlan) {
                there.push(open(vlan));
            }
            expected.push((vlan + 1, [number; 6]));
        }
        there.iter_mut().for_each(|(_, lane)| lane.receive.joins());
        let mut batch = Batch::new();
        let mut speakers = 0;
        for (vlan, lane) in &mut there {
            let memory = lane.receive.receive(&mut batch, Now::default());
            for index in 0..batch.len {
                let bytes = batch.bytes(memory, index).expect("is there");
                got.push((batch.port[index], bytes[..6].try_into().expect("long enough")));
            }
            speakers += u32::from(lane.send.losses().waiting == 0 && lane.receive.losses().too_long == 7);
            lane.send.send(&frame(&[], *vlan as u8), VirtioHeader::NONE);
            lane.send.flush();
        }
        // What the interface had lost before counts once, where it was first told.
        assert_eq!(speakers, u32::from([0, 1].contains(&number)), "round {number}");
    }
    lost += there
        .iter_mut()
        .map(|(_, lane)| lane.receive.losses())
        .map(|l| l.other_vlan + l.untagged)
        .sum::<u64>();
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected);
    assert_eq!(lost, (presences.len() * VLANS.len() - expected.len()) as u64, "the others are counted once");
}
