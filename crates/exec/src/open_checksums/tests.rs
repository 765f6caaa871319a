//! Tests of the proof: each rule by a program that keeps it and one that does not.

use super::*;
use ir::read::read;

const TCP4: OpenClass = OpenClass { six: false, udp: false, tagged: false };
const UDP6: OpenClass = OpenClass { six: true, udp: true, tagged: true };

/// What is shown for a packet function with this body, of which block 2 has 90 bytes at %0.
fn shown_of(class: OpenClass, body: &str) -> Option<bool> {
    let text = format!(
        "program \"case\"\nslots 1\nreason r0 \"no_such_port\" \"none\"\ntemplate p0 \"00000000\" ()\ntable t0 \"words\" {{\n  patterns first\n  key ()\n  value (\"\" uint:32)\n  capacity 8\n  evict refuse\n}}\nmanifest {{\n  writes_packet\n  resizes_packet\n  makes_packets\n  reads_payload\n  any_port\n}}\nfunction f0 \"packet\" {{ b0: %0:32 = const 0 need %0 + 90 ok b2 short b1 b1: flood b2: {body} }}"
    );
    let program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    shown(&program.functions[0], class)
}

fn is_shown(class: OpenClass, body: &str) -> bool {
    shown_of(class, body).is_some()
}

#[test]
fn reads_lie_beside_the_field() {
    for (class, field) in [(TCP4, 50), (UDP6, 64)] {
        assert_eq!(class.field(), field..field + 2);
        let read = |at: usize| is_shown(class, &format!("%1:16 = load %0 + {at}, 2 proven 90 flood"));
        let found: Vec<usize> = (field - 4..field + 4).filter(|at| !read(*at)).collect();
        assert_eq!(found, [field - 1, field, field + 1], "{class:?}");
        let summed = |from: usize, bytes: usize| {
            is_shown(class, &format!("%1:32 = const {from} %2:16 = checksum %1, {bytes} flood"))
        };
        assert!(summed(0, field) && !summed(0, field + 1) && !summed(field + 1, 2) && summed(field + 2, 2));
    }
}

#[test]
fn writes_lie_beside_all_that_the_checksum_covers_and_that_makes_the_class() {
    let free = |class: OpenClass| -> Vec<usize> {
        let write =
            |at: &usize| is_shown(class, &format!("%1:8 = const 7 store %0 + {at}, 1 proven 90 = %1 flood"));
        (0..class.lengths().0).filter(write).collect()
    };
    // Ethernet addresses; kind of service, identification, TTL and checksum of IPv4.
    assert_eq!(free(TCP4), (0..12).chain([15, 18, 19, 22, 24, 25]).collect::<Vec<_>>());
    // Ethernet addresses; control of the tag; flow and hop limit of IPv6.
    assert_eq!(free(UDP6), (0..12).chain([14, 15, 19, 20, 21, 25]).collect::<Vec<_>>());
}

#[test]
fn places_are_followed_through_arithmetic_and_branches() {
    // Behind the header of TCP, whose length is read.
    let data = "%1:8 = load %0 + 46, 1 proven 90 %2:8 = const 4 %3:8 = shift_right %1, %2 %4:32 = resize %3 %5:32 = const 4 %6:32 = mul %4, %5 %7:32 = const 34 %8:32 = add %6, %7";
    let search = |start: &str| format!("{data} %9:32 = captured %10:1, %11:32 = scan t0, {start}, %9 flood");
    assert!(
        is_shown(TCP4, &search("%8")) && !is_shown(TCP4, &search("%6")) && !is_shown(TCP4, &search("%0"))
    );
    // The length that IP says is the packet's.
    let longer = |besides: u32| {
        format!(
            "%1:16 = load %0 + 16, 2 proven 90 %2:32 = resize %1 %3:32 = const {besides} %4:32 = add %2, %3 %5:32 = wire_length %6:1 = lt %4, %5 branch %6, b3, b4 b3: truncate %4 flood b4: flood"
        )
    };
    assert!(is_shown(TCP4, &longer(14)) && !is_shown(TCP4, &longer(13)));
    // Only the way of the class counts.
    let by_protocol = |read: u8| {
        format!(
            "%1:8 = load %0 + 23, 1 proven 90 switch %1 {{{read} => b3}} else b4 b3: %2:16 = load %0 + 50, 2 proven 90 flood b4: flood"
        )
    };
    assert!(is_shown(TCP4, &by_protocol(17)) && !is_shown(TCP4, &by_protocol(6)));
    // A place that a loop moves may be any.
    let walk = "jump b3(%0) b3(%1:32): fuel 0 cap 9 ok b4 out b1 b4: need %1 + 2 ok b5 short b1 b5: %2:16 = load %1 + 0, 2 proven 2 %3:32 = const 4 %4:32 = add %1, %3 jump b3(%4)";
    assert!(!is_shown(TCP4, walk));
}

#[test]
fn packets_stay_as_long_as_they_are_and_are_finished_before_they_are_sent() {
    for change in ["truncate %0 flood", "pop %0 at %0 flood", "%1:1 = push p0() at %0 flood"] {
        assert!(!is_shown(TCP4, change), "{change}");
    }
    let port = "%1:16 = in_port";
    assert_eq!(shown_of(TCP4, &format!("{port} copy %1 flood")), Some(true));
    assert_eq!(shown_of(TCP4, &format!("{port} emit p0() tail %0 port %1 flood")), Some(true));
    assert_eq!(shown_of(TCP4, &format!("{port} emit p0() port %1 flood")), Some(false));
    assert_eq!(shown_of(TCP4, "flood"), Some(false));
}
