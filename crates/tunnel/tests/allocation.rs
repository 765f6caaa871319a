//! Sealing and opening data asks for no memory, whatever the size, and neither does noticing a deadline.

mod internet;

use internet::{address, packet, pair, send, transmit_all};
use tunnel::limits::SECOND;
use tunnel::{PeerId, SendOutcome, TunnelPayload};

#[test]
fn data_is_sealed_and_opened_without_asking_for_memory() {
    let [mut one, mut other] = pair([true, true]);
    send(&mut one, 0, 1, &packet(0, 1, 0, 60)).unwrap();
    let mut initiation = transmit_all(&mut one, 0).remove(0).1;
    other.receive(0, address(0), &mut initiation).unwrap();
    let mut response = transmit_all(&mut other, 0).remove(0).1;
    one.receive(0, address(1), &mut response).unwrap();
    let mut first = transmit_all(&mut one, 0).remove(0).1;
    other.receive(0, address(0), &mut first).unwrap();

    let packets = [64, 576, 1_464].map(|length| packet(0, 1, 1, length));
    let mut out = [0; 2_000];
    let counted = allocation_counter::measure(|| {
        for step in 0..3_000 {
            let now = step * SECOND / 100;
            for packet in &packets {
                let outcome = one.send(now, PeerId(1), TunnelPayload::Packet(packet), &mut out);
                let Ok(SendOutcome::Sealed(transmit)) = outcome else { panic!("there is a session") };
                assert!(other.receive(now, address(0), &mut out[..transmit.length]).is_ok());
            }
            let back = other.send(now, PeerId(0), TunnelPayload::Control(b"seen"), &mut out);
            let Ok(SendOutcome::Sealed(transmit)) = back else { panic!("there is a session") };
            assert!(one.receive(now, address(1), &mut out[..transmit.length]).is_ok());
            assert_eq!(one.transmit(now, &mut out), None);
            assert_eq!(other.transmit(now, &mut out), None);
        }
    });
    assert_eq!(counted.count_total, 0);
}
