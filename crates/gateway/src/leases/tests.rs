//! A gateway at whose waypoint a key is stolen and taken away.

use super::*;
use naming::control::AnswerBody;
use ports::live::TunnelWishes;
use ports::live::tunnel::LoneTunnel;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use tunnel::SecretKey;

/// A tunnel with one peer of this name, which has the public halves of these keys.
pub(crate) fn one_peer(folder: &Path, listen: SocketAddr, name: &str, keys: &[u8]) -> TunnelWishes {
    let key = folder.join("own.key");
    if !key.exists() {
        ports::live::tunnel::key_file::make(&key).expect("a key");
    }
    let keys = keys.iter().map(|byte| SecretKey::new([*byte; 32]).public()).collect();
    let (name, endpoint, keepalive) = (name.to_owned(), None, None);
    let peer = WantedPeer { name, number: 9, keys, endpoint, keepalive, packets: true };
    TunnelWishes { listen, keys: vec![key], mtu: 1_420, peers: vec![peer] }
}

/// A port of this machine that nobody has.
pub(crate) fn free() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port")
}

#[test]
fn a_lease_by_a_key_of_the_waypoint_that_is_taken_away_is_worth_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let listen = free();
    let wishes = |keys: &[u8]| one_peer(folder.path(), listen, "waypoint", keys);
    let (_lone, control) = LoneTunnel::open(&wishes(&[7])).expect("it opens");
    let (leasing, ended) = (Leasing::new(None, |_| ()), Arc::<AtomicBool>::default());
    let register = RegisterConfig { waypoints: vec!["waypoint".to_owned()], offers: Vec::new() };
    let follow = |keys: &[u8]| {
        control.change_to(&wishes(keys)).expect("it can").make().expect("it does");
        leasing.follow(Some(&register), std::slice::from_ref(&control), &ended).expect("a thread");
    };
    let leased = || leasing.view().waypoints.iter().map(|one| one.leased).collect::<Vec<_>>();
    follow(&[7, 8]);
    let conversations = leasing.tunnels()[0].clone();
    // Whichever ask is under way is answered.
    let is_answered = |owner_epoch, milliseconds| {
        let epoch = leasing.latest.load(Ordering::SeqCst);
        let mut conversations = locked(&conversations);
        conversations.turn();
        (1..=50).any(|serial| {
            let body = AnswerBody::Lease(milliseconds);
            conversations.answered(9, &OwnerAnswer { epoch, serial, owner_epoch, body }).is_ok()
        })
    };
    assert!(is_answered(u64::MAX, u32::MAX));
    assert_eq!(leased(), [true]);
    follow(&[8]);
    // Nobody has to wait for 49 days: the waypoint is told anew, by a later life of this gateway.
    assert_eq!(leased(), [false]);
    assert!(is_answered(3, u32::MAX));
    assert_eq!(leased(), [true]);
    ended.store(true, Ordering::SeqCst);
}
