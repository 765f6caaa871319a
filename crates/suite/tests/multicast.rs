//! Multicast groups against a plain set of ports, on every back end and from outside.

use exec::{BackendKind, Outputs, load};
use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use packet::{Batch, Verdict, VerdictKind};
use std::collections::BTreeSet;
use suite::agree::compare;
use suite::packet_generator::Arrivals;
use suite::random::SuiteRandom;

const CAPACITY: usize = 3;
const GROUPS: usize = 4;
const PORTS: u16 = suite::agree::PORTS;

const TEXT: &str = "
layout probe { kind: u8 group: u8 member: u8 }
reason noted \"a member came or went\"
reason full \"a member had no room\"
group members[4]: port { buckets 4 capacity 3 members { 0: 2, 3: 1, 3: 3 } }
start decoder frame(p: probe) {
    match p.kind {
        0 => {
            insert members[p.group, p.member as port] else { drop full }
            drop noted
        }
        1 => {
            remove members[p.group, p.member as port]
            drop noted
        }
        else => multicast members[p.group]
    }
}
";

fn program() -> Program {
    let compiled = compile("multicast.rav", TEXT, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

fn reason(program: &Program, name: &str) -> Verdict {
    Verdict::drop(program.reasons.iter().position(|reason| reason.name == name).expect("a reason") as u16)
}

#[test]
fn every_member_gets_a_packet_and_nobody_else() {
    let (mut whole, mut refused, mut empty) = (0, 0, 0);
    for seed in 0..12 {
        let mut random = SuiteRandom::new(seed);
        let mut arrivals = Arrivals::default();
        let mut asked = Vec::new();
        for time in 0..400 {
            // Groups and ports that do not exist are among them.
            let probe =
                [random.below(4), random.below(GROUPS as u64 + 1), random.below(u64::from(PORTS) + 2)];
            let probe = probe.map(|part| part as u8);
            asked.push(probe);
            arrivals.push(&probe, 3, time, random.between(1, 3) as u16);
        }
        let (program, seen) = compare(TEXT, &arrivals).expect("both agree").expect("a program");
        let mut model: Vec<BTreeSet<u16>> = vec![[2].into(), [].into(), [].into(), [1, 3].into()];
        for (number, [kind, group, member]) in asked.into_iter().enumerate() {
            let (verdict, member) = (seen.verdicts[number], u16::from(member));
            let copies: Vec<u16> =
                seen.sent.iter().filter(|sent| sent.1 == number as u32).map(|sent| sent.0).collect();
            let set = model.get_mut(usize::from(group));
            let mut due = Vec::new();
            match (kind, set) {
                (0, set) => {
                    let room = set.is_some_and(|set| {
                        let fits = (1..=PORTS).contains(&member) && set.len() < CAPACITY;
                        set.contains(&member) || (fits && set.insert(member))
                    });
                    refused += u32::from(!room);
                    assert_eq!(
                        verdict,
                        reason(&program, if room { "noted" } else { "full" }),
                        "{seed} {number}"
                    );
                }
                (1, set) => {
                    set.map(|set| set.remove(&member));
                    assert_eq!(verdict, reason(&program, "noted"));
                }
                (_, Some(set)) if !set.is_empty() => {
                    due = set.iter().copied().collect();
                    assert_eq!(Some(verdict.argument()), due.pop());
                    assert_eq!(verdict.kind(), VerdictKind::Send);
                    whole += u32::from(set.len() == CAPACITY);
                }
                _ => {
                    assert_eq!(verdict, reason(&program, "no_member(members)"));
                    empty += 1;
                }
            }
            assert_eq!(copies, due, "{seed} {number}");
        }
    }
    assert!(whole > 20 && refused > 20 && empty > 20, "{whole} {refused} {empty}");
}

#[test]
fn a_member_that_is_no_port_is_refused_when_loading_and_later() {
    let program = program();
    for back_end in BackendKind::ALL {
        let refused = load(&program, back_end, 2, 1).err().expect("port 3 is a member").to_string();
        assert!(refused.contains("members") && refused.contains("3 is no port"), "{refused}");
        let mut backend = load(&program, back_end, 5, 1).expect("loads");
        backend.join(0, 1, &[5]).expect("a port");
        backend.join(0, 1, &[5]).expect("it is there already");
        backend.join(0, 1, &[1]).expect("a port");
        for (index, member) in [(1, 6), (1, 0), (1, 1 << 16), (4, 1)] {
            assert!(backend.join(0, index, &[member]).is_err(), "{index} {member}");
        }
        assert!(backend.join(1, 0, &[1]).is_err() && backend.join(0, 1, &[1, 2]).is_err());
        backend.join(0, 1, &[2]).expect("a port");
        assert!(backend.join(0, 1, &[3]).expect_err("full").to_string().contains("3"));
        assert!(backend.leave(0, 1, &[1]) && !backend.leave(0, 1, &[1]) && !backend.leave(7, 0, &[1]));

        let mut arrivals = Arrivals::default();
        arrivals.push(&[2, 1, 0], 3, 0, 1);
        let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
        arrivals.frames.fill(&mut batch, 0..1);
        backend.run(arrivals.frames.memory_mut(), &mut batch, &mut outputs);
        assert_eq!(batch.verdicts(), [Verdict::send(5)]);
        assert_eq!(outputs.packets.iter().map(|copy| copy.port).collect::<Vec<_>>(), [2]);
    }
}
