//! Tests of the proof: each rule by a program that keeps it and one that does not.

use super::*;
use ir::read::read;

const TCP4: OpenClass = OpenClass { six: false, udp: false, tagged: false };
const TCP6: OpenClass = OpenClass { six: true, udp: false, tagged: false };

/// What stands in the way for a packet function with this body, of which block 2 has 54 bytes at %0 (74 of
/// IPv6).
fn refusal_of(class: OpenClass, body: &str) -> Option<&'static str> {
    let there = class.lengths().0;
    let text = format!(
        "program \"case\"\nslots 1\nreason r0 \"no_such_port\" \"none\"\ntemplate p0 \"00000000\" ()\ntable t0 \"words\" {{\n  patterns first\n  key ()\n  value (\"\" uint:32)\n  capacity 8\n  evict refuse\n}}\ntable t1 \"hosts\" {{\n  key (\"\" uint:16)\n  value (\"\" uint:16)\n  capacity 8\n  evict lru\n}}\ntable t2 \"few\" {{\n  key (\"\" uint:16)\n  value (\"\" uint:16)\n  capacity 8\n  evict refuse\n}}\ncounter c0 \"seen\" size 1\nmanifest {{\n  writes_tables (t1, t2)\n  writes_packet\n  resizes_packet\n  makes_packets\n  reads_payload\n  any_port\n}}\nfunction f0 \"packet\" {{ b0: %0:32 = const 0 need %0 + {there} ok b2 short b1 b1: flood b2: {body} }}"
    );
    let program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    SegmentProof::refusal(&program, class).map(|refusal| refusal.what)
}

fn is_shown(class: OpenClass, body: &str) -> bool {
    refusal_of(class, body).is_none()
}

#[test]
fn reads_lie_beside_what_differs() {
    let found = |class: OpenClass| -> Vec<usize> {
        let there = class.lengths().0;
        let read = |at: &usize| !is_shown(class, &format!("%1:8 = load %0 + {at}, 1 proven {there} flood"));
        (0..there).filter(read).collect()
    };
    // Length, identification and checksum of IPv4; sequence number, flags and checksum of TCP.
    assert_eq!(found(TCP4), [16, 17, 18, 19, 24, 25, 38, 39, 40, 41, 47, 50, 51]);
    assert_eq!(found(TCP6), [18, 19, 58, 59, 60, 61, 67, 70, 71]);
    for length in ["wire_length", "captured"] {
        assert_eq!(refusal_of(TCP4, &format!("%1:32 = {length} flood")), Some("asks for the length"));
    }
    let sum = "%1:32 = const 26 %2:16 = checksum %1, ";
    assert!(is_shown(TCP4, &format!("{sum}8 flood")) && !is_shown(TCP4, &format!("{sum}20 flood")));
    assert!(!is_shown(TCP4, "%1:32 = const 54 %2:32 = const 90 %3:1, %4:32 = scan t0, %1, %2 flood"));
}

#[test]
fn writes_lie_beside_what_differs_and_what_checksums_cover() {
    let free = |class: OpenClass| -> Vec<usize> {
        let there = class.lengths().0;
        let write = |at: &usize| {
            is_shown(class, &format!("%1:8 = const 7 store %0 + {at}, 1 proven {there} = %1 flood"))
        };
        (0..there).filter(write).collect()
    };
    assert_eq!(free(TCP4), (0..12).collect::<Vec<_>>(), "Ethernet addresses");
    // And traffic class, flow and hop limit of IPv6.
    assert_eq!(free(TCP6), (0..12).chain([15, 16, 17, 21]).collect::<Vec<_>>());
}

#[test]
fn bytes_are_there_in_every_packet_or_in_none() {
    let asks = |bytes: u32| format!("need %0 + {bytes} ok b3 short b1 b3: flood");
    assert!(is_shown(TCP4, &asks(54)) && !is_shown(TCP4, &asks(55)));
    // All of TCP's header, whose length is read, and one byte more.
    let header = |more: u32| {
        format!(
            "%1:8 = load %0 + 46, 1 proven 54 %2:8 = const 4 %3:8 = shift_right %1, %2 %4:32 = resize %3 %5:32 = const 4 %6:32 = mul %4, %5 %7:32 = const {} need %7 + 0 more %6 ok b3 short b1 b3: flood",
            34 + more
        )
    };
    assert!(is_shown(TCP4, &header(0)) && !is_shown(TCP4, &header(1)));
}

#[test]
fn what_is_learned_again_changes_nothing() {
    let port = "%1:16 = in_port";
    let learn = |table: u32, result: u32| format!("%{result}:1 = learn t{table}[%1] = (%1)");
    let ask = |result: u32| format!("%{result}:1, %{}:16 = lookup t1[%1]", result + 1);
    assert!(is_shown(TCP4, &format!("{port} {} {} {} flood", learn(1, 2), ask(3), ask(5))));
    assert!(is_shown(TCP4, &format!("{port} {} flood", ask(2))));
    let told = Some("learns in a table that it has asked before");
    assert_eq!(refusal_of(TCP4, &format!("{port} {} {} flood", ask(2), learn(1, 4))), told);
    assert_eq!(refusal_of(TCP4, &format!("{port} {} jump b3 b3: {} flood", ask(2), learn(1, 4))), told);
    assert_eq!(refusal_of(TCP4, &format!("{port} {} jump b3 b3: {} flood", learn(1, 2), learn(1, 3))), told);
    let told = Some("learns in a table that may refuse, raise an event or give something back");
    assert_eq!(refusal_of(TCP4, &format!("{port} {} flood", learn(2, 2))), told);
}

#[test]
fn nothing_is_counted_sent_or_made_longer() {
    let port = "%1:16 = in_port";
    for (what, body) in [
        ("counts", "count c0 flood"),
        ("sends something else", "copy %1 flood"),
        ("sends something else", "emit p0() port %1 flood"),
        ("makes it longer or shorter", "truncate %0 flood"),
        ("makes it longer or shorter", "pop %0 at %0 flood"),
        ("hands it to the control plane", "punt r0"),
    ] {
        assert_eq!(refusal_of(TCP4, &format!("{port} {body}")), Some(what), "{body}");
    }
    for body in ["send %1", "flood", "drop r0"] {
        assert!(is_shown(TCP4, &format!("{port} {body}")), "{body}");
    }
    let datagrams = OpenClass { udp: true, ..TCP4 };
    assert_eq!(refusal_of(datagrams, "flood"), Some("is asked about datagrams"));
}
