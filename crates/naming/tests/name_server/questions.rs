//! Questions at random beside the twin, and each rule of the RFCs by itself.

use crate::twin::{self, Expected};
use crate::wire::{self, Asked, AskedEdns, Record, asked, edns};
use crate::{SECRETS, by_tcp, by_udp, policy, reply, server, whole};
use naming::dns::{DnsAnswer, NameServer, QueryDrop, RecordDescription, Zone, ZoneDescription};
use naming::limits::{LONGEST_UDP_REPLY, MOST_AMPLIFICATION};
use tables::generate::Random;

fn any_case(random: &mut Random, text: &str) -> String {
    text.chars().map(|one| if random.chance(50) { one.to_ascii_uppercase() } else { one }).collect()
}

/// The same with small letters in its data, which may point to the question.
fn small_data(record: Record) -> Record {
    let has_name = matches!(record.kind, 2 | 6);
    let data = if has_name { record.data.to_ascii_lowercase() } else { record.data };
    Record { data, ..record }
}

fn question(random: &mut Random) -> Asked {
    let names = [
        "home.example.",
        "nas.home.example.",
        "tv.home.example.",
        "old.home.example.",
        "cam.garden.home.example.",
        "garden.home.example.",
        "six.home.example.",
        "www.home.example.",
        "ns1.home.example.",
        "_dns.resolver.home.example.",
        "resolver.home.example.",
        "nope.home.example.",
        "x.nas.home.example.",
        "nas.home.example.org.",
        "example.",
        "ome.example.",
        "",
        "not.here.",
    ];
    let kinds = [1, 2, 6, 12, 16, 28, 64, 65, 255, 46, 251, 252, 41, 0, 250, 128, 300];
    let name = names[random.below(names.len() as u64) as usize];
    let name = any_case(random, name);
    let kind = kinds[random.below(kinds.len() as u64) as usize];
    let mut one = Asked { id: random.word() as u16, ..asked(&name, kind) };
    one.flags = (random.word() as u16) & 0x01b0;
    if random.chance(3) {
        one.flags |= (random.word() as u16) & 0x7800;
    }
    if random.chance(3) {
        one.class = [3, 255, 254, 0][random.below(4) as usize];
    }
    if random.chance(60) {
        let version = if random.chance(5) { 1 + random.below(255) as u8 } else { 0 };
        let sizes = [0, 100, 512, 1_232, 4_096, 65_535];
        let size = sizes[random.below(6) as usize];
        let mut options = Vec::new();
        if random.chance(40) {
            options.push((10, vec![random.word() as u8; 8]));
        }
        if random.chance(40) {
            options.push((8, vec![0, 1, 24, 0, 198, 51, random.word() as u8]));
        }
        if random.chance(20) {
            options.push((random.below(60_000) as u16 + 20, vec![1; random.below(40) as usize]));
        }
        one.edns = Some(AskedEdns { size, version, dnssec_ok: random.chance(50), options });
    }
    one
}

#[test]
fn answers_are_those_of_the_slow_twin() {
    let mut random = Random::new(41);
    let mut server = server(policy());
    let (mut asks, mut whole) = (0, 0);
    for round in 0..20_000 {
        let asked = question(&mut random);
        let bytes = asked.bytes();
        let is_tcp = random.chance(50);
        let arrival = if is_tcp { by_tcp(&bytes) } else { by_udp(&bytes) };
        let mut out = Vec::new();
        let answer = server.answer(&arrival, &mut out);
        let expected = twin::expect(&asked);
        if let DnsAnswer::Hold(number, ask) = answer {
            assert_eq!(expected, Expected::Ask(ask.responder.0), "{round}: {asked:?}");
            assert!(server.resume(number, Ok([203, 0, 113, 77].into()), &mut out).is_some());
            let said = wire::read(&out).expect("whole");
            assert_eq!(said.sections[0][0].data, [203, 0, 113, 77]);
            assert_eq!((said.sections[0][0].ttl, &said.sections[0][0].name), (0, &asked.name));
            asks += 1;
            continue;
        }
        let Expected::Reply(rcode, authoritative, answers, negative) = expected else {
            panic!("{round}: {asked:?} is to be asked for, and got {answer:?}");
        };
        let said = wire::read(&out).expect("whole");
        let limit = if is_tcp { 65_535 } else { LONGEST_UDP_REPLY.min(MOST_AMPLIFICATION * bytes.len()) };
        assert!(out.len() <= limit, "{round}: {} of {limit}: {asked:?} {said:?}", out.len());
        // What does not fit into the header is without EDNS not said.
        let rcode = if asked.edns.is_none() { rcode & 15 } else { rcode };
        assert_eq!(said.rcode, rcode, "{round}: {asked:?} {said:?}");
        assert_eq!(said.is_authoritative(), authoritative, "{round}: {asked:?} {said:?}");
        assert_eq!(said.id, asked.id);
        // A reply, with RD, CD and the kind of query as asked, without RA.
        assert_eq!(said.flags & 0xf9f0, 0x8000 | asked.flags & 0x7910, "{round}: {asked:?} {said:?}");
        assert_eq!(said.edns.is_some(), asked.edns.is_some() && asked.flags & 0x7800 == 0);
        if asked.flags & 0x7800 == 0 {
            assert_eq!(said.questions, [(asked.name.clone(), asked.kind, asked.class)], "letters are kept");
        }
        if let (Some(said), Some(asked)) = (&said.edns, &asked.edns) {
            assert_eq!((said.version, said.dnssec_ok), (0, asked.dnssec_ok));
        }
        if said.is_truncated() {
            assert!(!is_tcp && said.sections.iter().all(|section| section.is_empty()));
            continue;
        }
        let [found, authority, _] = said.sections.map(|section| section.into_iter().map(small_data));
        assert_eq!(
            found.collect::<Vec<_>>(),
            answers.into_iter().map(small_data).collect::<Vec<_>>(),
            "{round}: {asked:?}"
        );
        // An owner may point to where the question has the same name in other letters.
        let authority = authority.map(|one| Record { name: one.name.to_ascii_lowercase(), ..one });
        assert_eq!(
            authority.collect::<Vec<_>>(),
            if negative { vec![small_data(twin::soa(7, 30))] } else { vec![] }
        );
        whole += 1;
    }
    assert!(asks > 50 && whole > 10_000, "{asks} {whole}");
}

#[test]
fn names_of_servers_come_with_their_addresses() {
    let said = whole(&mut server(policy()), &asked("home.example.", 2));
    let glue: Vec<_> = said.sections[2].iter().map(|record| (&record.name[..], record.kind)).collect();
    assert_eq!(glue, [("ns1.home.example.", 1), ("ns1.home.example.", 28)]);
}

#[test]
fn what_is_malformed_is_answered_with_formerr_or_not_at_all() {
    let mut server = server(policy());
    let good = asked("nas.home.example.", 1).bytes();
    let mut out = Vec::new();
    for length in 0..12 {
        let answer = server.answer(&by_udp(&good[..length]), &mut out);
        assert!(matches!(answer, DnsAnswer::Drop(QueryDrop::Short)), "{length}: {answer:?}");
    }
    for length in 12..good.len() {
        assert_eq!(reply(&mut server, &by_udp(&good[..length])).rcode, 1, "{length}");
    }
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let answer = server.answer(&by_udp(&changed(2, 0x81)), &mut out);
    assert!(matches!(answer, DnsAnswer::Drop(QueryDrop::Reply)), "{answer:?}");
    // Two questions, none, answers and authorities in a query, a record that is not there.
    for (at, byte) in [(5, 2), (5, 0), (7, 1), (9, 1), (11, 1)] {
        assert_eq!(reply(&mut server, &by_udp(&changed(at, byte))).rcode, 1, "{at}");
    }
    // A name that is a pointer, and one with a kind of label that there is not.
    assert_eq!(reply(&mut server, &by_udp(&changed(12, 0xc0))).rcode, 1);
    assert_eq!(reply(&mut server, &by_udp(&changed(12, 0x40))).rcode, 1);
    assert_eq!(reply(&mut server, &by_udp(&[&good[..], &[0]].concat())).rcode, 1, "a byte too many");
    let one = Asked { edns: edns(&[]), ..asked("nas.home.example.", 1) }.bytes();
    let mut two = [&one[..], &one[one.len() - 11..]].concat();
    two[11] = 2;
    assert_eq!(reply(&mut server, &by_udp(&two)).rcode, 1, "EDNS twice");
    let bad: [(u16, &[u8]); 10] = [
        (10, &[1; 7]),
        (10, &[1; 9]),
        (10, &[1; 15]),
        (10, &[1; 41]),
        (8, &[0, 1, 33, 0, 1, 2, 3, 4, 5]),
        (8, &[0, 1, 24, 0, 1, 2]),
        (8, &[0, 1, 24, 0, 1, 2, 3, 4]),
        (8, &[0, 1, 20, 0, 1, 2, 3]),
        (8, &[0, 1, 24, 24, 1, 2, 3]),
        (8, &[0, 9, 24, 0, 1, 2, 3]),
    ];
    for option in bad {
        let asked = Asked { edns: edns(&[option]), ..asked("nas.home.example.", 1) };
        assert_eq!(whole(&mut server, &asked).rcode, 1, "{option:?}");
    }
}

#[test]
fn a_reply_that_does_not_fit_is_cut_and_whole_by_tcp() {
    let mut description: ZoneDescription = toml::from_str(twin::ZONE).expect("a description");
    let long = RecordDescription::Txt { name: "long".to_owned(), text: "x".repeat(900) };
    description.records.push(long);
    let mut server = NameServer::new(Zone::new(&description).expect("a zone"), policy(), SECRETS);
    let with = |size, cookie: &[u8]| {
        let edns = AskedEdns { size, version: 0, dnssec_ok: false, options: vec![(10, cookie.to_vec())] };
        Asked { edns: Some(edns), ..asked("long.home.example.", 16) }.bytes()
    };
    let said = reply(&mut server, &by_udp(&with(1_232, &[1; 8])));
    assert!(said.is_truncated(), "more than three times the query, to who may be forged");
    let cookie = said.option(10).expect("a cookie").to_vec();
    for (size, is_cut) in [(0, true), (512, true), (989, true), (990, false), (1_232, false), (65_535, false)]
    {
        let bytes = with(size, &cookie);
        let mut out = Vec::new();
        server.answer(&by_udp(&bytes), &mut out);
        let said = wire::read(&out).expect("whole");
        assert_eq!((said.is_truncated(), said.sections[0].is_empty()), (is_cut, is_cut), "{size}");
        assert!(out.len() <= usize::from(size).clamp(512, LONGEST_UDP_REPLY), "{size}: {}", out.len());
    }
    assert!(!reply(&mut server, &by_tcp(&asked("long.home.example.", 16).bytes())).is_truncated());
}
