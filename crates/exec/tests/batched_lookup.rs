//! Questions that are asked ahead mean what they mean one by one: whatever stands before and behind them.

mod program;

use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use packet::Frames;
use program::*;

const LAYOUT: &str = "
    reason odd \"the first byte is odd\"
    layout head { kind: u8 flags: u8 wide: u128 port: u16 more: bytes[kind / 64] }
    layout step { next: u8 }
    counter seen[256]
";

const RULES: &str = "
    table acl: rules(kind: u8, wide: u128, port: u16, deep: u8) -> (u16, u128) {
        capacity 64
        counted
        entries {
            (0..31, _, _, _) => (1, 7)
            (_, 1 mask 1, 1024.., _) => (2, 0xffffffffffffffffffff)
            (_, _, _, 3) => (3, 1)
            (128.., _, _, _) => (4, 0)
        }
    }
";

fn program(text: &str) -> Program {
    let compiled = compile("case.rav", text, &|_| None, &CompileOptions::default());
    let said: Vec<String> = compiled.diagnostics.iter().map(|said| format!("{said:?}")).collect();
    compiled.program.unwrap_or_else(|| panic!("{said:#?}"))
}

/// Packets of all kinds, some cut and some on the same time as the one before.
fn frames(count: usize) -> Frames {
    let mut random = Random(11);
    let mut frames = Frames::with_headroom();
    for i in 0..count {
        let mut bytes: Vec<u8> = (0..3).flat_map(|_| random.wide().to_be_bytes()).collect();
        bytes[0] = random.next() as u8;
        let length = if random.below(6) == 0 { random.below(48) as usize } else { 48 };
        frames.push(&bytes[..length], 48, 1000 + i as u64 * random.below(3));
    }
    frames
}

/// Both back ends agree, and some packets are sent by each of the ways that the program has.
fn check(rest: &str, ports: &[u16]) {
    let seen = agree(&program(&format!("{LAYOUT}{RULES}{rest}")), &frames(700));
    for port in ports {
        let sent = seen.verdicts.iter().filter(|verdict| **verdict == packet::Verdict::send(*port)).count();
        assert!(sent > 0, "port {port}");
    }
    assert!(seen.entries[0].iter().any(|(_, count)| count.packets > 0), "no rule was found");
}

#[test]
fn what_is_decoded_before_is_used_behind() {
    check(
        "start decoder first(h: head) {
            if h.kind & 1 == 1 && h.flags & 1 == 1 { drop odd }
            let quick = h.flags < 128
            goto second(quick, h.wide ^ 5)
        }
        decoder second(s: step, quick: bool, value: u128) requires h {
            match acl[h.kind, h.wide, h.port, s.next] {
                some (number, mask) => {
                    count seen[number as u32 & 255]
                    set h.wide = value & mask
                    set h.flags = 9
                    if quick { send 1 }
                    send 2
                }
                none => { if quick { send 3 } flood }
            }
        }",
        &[1, 2, 3],
    );
}

#[test]
fn packets_with_an_effect_before_the_question_wait_for_their_turn() {
    check(
        "table last: exact(u8) -> u16 { capacity 16 age 1s evict lru }
        start decoder first(h: head) {
            if h.kind & 3 == 1 {
                match last[h.flags] { some port => send port as port, none => {} }
            }
            match acl[h.kind, h.wide, h.port, h.flags] {
                some (number, _) => { learn last[h.flags] = number send 4 }
                none => drop odd
            }
        }",
        &[1, 2, 4],
    );
}

#[test]
fn fuel_is_counted_through_and_packets_may_grow() {
    check(
        "layout tag { mark: u16 }
        start decoder first(h: head) { goto walk(0) }
        stage walk(rounds: u8) cap 6 requires h {
            if rounds < h.flags & 3 { goto walk(rounds + 1) }
            match acl[h.kind, h.wide, h.port, rounds] {
                some (number, _) => { push tag(mark number) before h goto tail(h.kind & 3) }
                none => tail(h.kind & 7)
            }
        }
        stage tail(rounds: u8) cap 5 {
            if rounds > 0 { goto tail(rounds - 1) }
            send 1
        }",
        &[1],
    );
}

#[test]
fn rules_that_packets_put_in_are_found_by_the_next_packet() {
    let text = format!(
        "{LAYOUT}
        table acl: rules(kind: u8) -> u16 {{ capacity 8 age 1us }}
        start decoder first(h: head) {{
            match acl[h.kind & 3] {{
                some port => send port as port
                none => {{ insert acl[h.kind & 3] = 2 else {{ drop odd }} flood }}
            }}
        }}"
    );
    let seen = agree(&program(&text), &frames(300));
    assert!(
        seen.verdicts.contains(&packet::Verdict::send(2)) && seen.verdicts.contains(&packet::Verdict::FLOOD)
    );
}

/// Packets look for a wide key in one table and in another one, and change both: what a packet finds depends
/// on the packets just before it, whose slots were fetched at the same time.
#[test]
fn wide_keys_are_found_as_the_packets_before_have_left_them() {
    let text = format!(
        "{LAYOUT}
        table first: exact(wide: u128, port: u16) -> (u16, u128) {{ capacity 64 age 40ns evict refuse }}
        table second: exact(wide: u128, port: u16) -> u16 {{ capacity 16 age 90ns evict lru }}
        start decoder start_here(h: head) {{
            let low = if h.kind < 128 {{ h.wide & 1 }} else {{ h.wide & 2 }}
            let port = if h.flags & 1 == 1 {{ h.port & 3 }} else {{ 5 }}
            match first[low, port] {{
                some (number, value) => {{
                    if h.flags & 6 == 0 {{ remove first[low, port] send 1 }}
                    learn first[low, port] = (h.port, value +% 1) else {{ drop odd }}
                    if number < 0x8000 {{ send 2 }}
                    send 3
                }}
                none => {{}}
            }}
            match second[low, port] {{
                some number => {{
                    learn first[low, port] = (number, 1) else {{ drop odd }}
                    remove second[low, port]
                    send 4
                }}
                none => {{ learn second[low, port] = h.port flood }}
            }}
        }}"
    );
    let seen = agree(&program(&text), &frames(3000));
    for port in 1..=4 {
        assert!(seen.verdicts.contains(&packet::Verdict::send(port)), "port {port}");
    }
    assert!(seen.verdicts.contains(&packet::Verdict::FLOOD));
}
