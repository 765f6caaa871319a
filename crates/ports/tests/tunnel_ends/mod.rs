//! Two ends of a tunnel on the loopback interface, as ports.

#![allow(dead_code, reason = "tests and the example use different parts")]

use packet::{Batch, VirtioHeader};
use ports::live::clock::{Clock, MachineClock};
use ports::live::tunnel::{WantedPeer, key_file};
use ports::live::{
    Attached, Lane, Middleware, Offloads, PortKind, TunnelWishes, VlanPlace, WantedPort, XdpWishes, attach,
};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};
use tunnel::{OWN_NUMBER, peer_mac};

fn free() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("bound")
}

/// Two ends that know each other.
pub(crate) fn ends(directory: &Path, lanes: u16) -> [Attached; 2] {
    ends_with(directory, lanes, [true; 2])
}

/// The same; not each of them may exchange packets with the other one.
pub(crate) fn ends_with(directory: &Path, lanes: u16, packets: [bool; 2]) -> [Attached; 2] {
    let files = ["a", "b"].map(|name| directory.join(name));
    let keys = files.each_ref().map(|file| key_file::make(file).expect("a key"));
    let addresses = [free(), free()];
    [0, 1].map(|own| {
        let other = 1 - own;
        let peer = WantedPeer {
            name: "other".to_owned(),
            number: 1,
            keys: vec![keys[other]],
            endpoint: Some(addresses[other]),
            keepalive: None,
            packets: packets[own],
        };
        let tunnel = TunnelWishes {
            listen: addresses[own],
            keys: vec![files[own].clone()],
            mtu: 1_500,
            peers: vec![peer],
        };
        let wanted = WantedPort {
            interface: format!("udp:{}", addresses[own]),
            vlan: VlanPlace::Alone,
            kind: PortKind::Tunnel,
            offloads: Offloads::Cut,
            keep_from_kernel: false,
            promiscuous: false,
            xdp: XdpWishes::default(),
            middleware: Middleware::default(),
            tunnel: Some(tunnel),
            vnic: None,
        };
        attach(&wanted, 1, lanes).expect("attached")
    })
}

/// A packet of IPv4 of so many bytes in a frame for peer 1.
pub(crate) fn frame(length: u16) -> Vec<u8> {
    let mut packet = vec![0; usize::from(length)];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    [&peer_mac(1)[..], &peer_mac(OWN_NUMBER), &0x0800_u16.to_be_bytes(), &packet].concat()
}

/// Lets the first end send a packet, and waits until it has come.
pub(crate) fn meet(one: &mut Lane, other: &mut Lane) {
    let (mut batch, end) = (Batch::new(), Instant::now() + Duration::from_secs(10));
    one.send.send(&frame(64), VirtioHeader::NONE);
    one.send.flush();
    while receive(other, &mut batch) == 0 {
        receive(one, &mut batch);
        assert!(Instant::now() < end, "no session");
    }
}

/// Receives a batch; says how many packets came.
pub(crate) fn receive(lane: &mut Lane, batch: &mut Batch) -> usize {
    lane.receive.receive(batch, MachineClock.now());
    batch.len
}
