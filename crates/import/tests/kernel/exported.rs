//! Linux decides about packets as the policy does from which a ruleset was written: random policies with
//! jumps, groups whose last match decides, absent fields, fragments, answers to the sender, and states.

use super::files::FILES;
use super::made_policies::{Shape, interfaces, policy};
use super::packets::{Piece, TARGETS};
use super::random::Random;
use super::router::Router;
use super::{differences, made, seed};
use import::address::AddressFamily;
use import::policies::{PolicyOptions, read, write_nft, write_nft_json};
use policy::{
    Hook, HookPoint, MatchOrder, PacketField, Policy, PolicyRule, RuleAction, RuleCondition, RuleGroup,
    RulePlace, Values,
};

/// The points that a forwarded packet comes to.
const ON_THE_WAY: &[HookPoint] = &[HookPoint::In, HookPoint::Forward, HookPoint::Out];

#[test]
fn written_policies_decide_in_linux_as_they_say() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let shape = Shape { points: ON_THE_WAY, states: false, last: true };
    let shapes = [Shape { points: &ON_THE_WAY[1..2], ..shape }, shape];
    let (mut written, mut passing, mut count) = (0, 0, 0);
    for number in 0..80 {
        let own = policy(&mut random, shapes[number % shapes.len()]);
        let Ok(text) = write_nft(&own) else { continue };
        router.try_load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let json = write_nft_json(&own).expect("it is written as text");
        let checked = router.run("nft", &["-c", "-j", "-f", "-"], &json).expect("nft runs");
        assert!(checked.status.success(), "{}\n{json}", String::from_utf8_lossy(&checked.stderr));
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let packets = made(&mut random, 200, family);
            let wanted: Vec<bool> = packets.iter().map(|packet| packet.passes(&own)).collect();
            passing += wanted.iter().filter(|passes| **passes).count();
            count += packets.len();
            assert_eq!(differences(&mut router, &packets, &wanted, &format!("{text}\n{own:?}")), 0);
        }
        written += 1;
    }
    println!("{written} policies, {count} packets, of which {passing} pass");
    assert!(written > 40 && passing > count / 10 && passing < count * 9 / 10);
}

#[test]
fn written_policies_that_ask_for_states_are_what_linux_loads() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let everywhere =
        &[HookPoint::In, HookPoint::Forward, HookPoint::ToGateway, HookPoint::FromGateway, HookPoint::Out];
    let mut written = 0;
    for _ in 0..60 {
        let own = policy(&mut random, Shape { points: everywhere, states: true, last: false });
        let Ok(text) = write_nft(&own) else { continue };
        router.try_load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        written += 1;
    }
    assert!(written > 20, "{written}");
}

#[test]
fn what_is_written_of_files_of_all_formats_is_what_linux_loads() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    for (format, text) in FILES {
        let options = PolicyOptions { interfaces: interfaces(), ..PolicyOptions::default() };
        let own = read(text.as_bytes(), format, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let text = write_nft(&own.policy).unwrap_or_else(|error| panic!("{error}\n{text}"));
        router.try_load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn what_is_loaded_twice_is_there_once_and_what_others_have_loaded_stays() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let options = PolicyOptions { interfaces: interfaces(), ..PolicyOptions::default() };
    let (format, text) = FILES[0];
    let own = read(text.as_bytes(), format, &options).expect("it is a policy").policy;
    let foreign = "table inet filter {
        chain forward { type filter hook forward priority 0; policy accept; tcp dport 7 drop; }
    }";
    let list = |router: &Router, arguments: &[&str]| {
        let listed = router.run("nft", arguments, "").expect("nft runs");
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        String::from_utf8(listed.stdout).expect("nft prints text")
    };
    for (arguments, written) in
        [(&["-f", "-"][..], write_nft(&own)), (&["-j", "-f", "-"], write_nft_json(&own))]
    {
        let written = written.expect("nftables can say it");
        router.try_load(foreign).expect("it is a ruleset");
        let filter = list(&router, &["list", "table", "inet", "filter"]);
        let mut listed = Vec::new();
        for _ in 0..2 {
            let loaded = router.run("nft", arguments, &written).expect("nft runs");
            assert!(loaded.status.success(), "{}\n{written}", String::from_utf8_lossy(&loaded.stderr));
            listed.push(list(&router, &["list", "table", "inet", "ravelin"]));
        }
        let (rules, comments) = (listed[0].matches("comment").count(), written.matches("comment").count());
        assert!(comments > 0 && rules == comments, "{written}\n{}", listed[0]);
        assert_eq!(listed[0], listed[1]);
        assert_eq!(list(&router, &["list", "table", "inet", "filter"]), filter);
        assert_eq!(list(&router, &["list", "tables"]), "table inet filter\ntable inet ravelin\n");
    }
}

#[test]
fn what_is_asked_on_the_way_in_sees_addresses_before_they_are_translated() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let to = 0xffff_0000_0000 | u128::from(TARGETS[0]);
    let rule = PolicyRule {
        place: RulePlace::default(),
        text: "".into(),
        condition: RuleCondition::Holds(PacketField::Destination, vec![Values::exact(to)]),
        action: RuleAction::Pass,
        decides_at_once: true,
        log: false,
        count: false,
    };
    let group = RuleGroup { name: "in".to_owned(), order: MatchOrder::First, rules: vec![rule] };
    let hook =
        Hook { point: HookPoint::In, group: 0, default: RuleAction::Block, place: RulePlace::default() };
    let own = Policy { hooks: vec![hook], groups: vec![group], ..Policy::default() };
    let written = write_nft(&own).expect("nftables can say it");
    let translated = "table ip nat {
        chain prerouting { type nat hook prerouting priority -100; ip daddr 192.0.2.1 dnat to 8.8.8.8; }
        chain forward { type filter hook forward priority 0; ip daddr 8.8.8.8 counter; }
    }";
    router.try_load(&format!("{translated}\n{written}")).expect("it is a ruleset");
    // OSPF has neither ports nor a checksum that Linux looks at: every packet is translated.
    let mut packets = made(&mut Random(seed()), 100, AddressFamily::V4);
    for packet in &mut packets {
        (packet.proto, packet.piece) = (89, Piece::Whole);
    }
    packets.retain(|packet| packet.dst != 0x0808_0808);
    let wanted: Vec<bool> = packets.iter().map(|packet| packet.passes(&own)).collect();
    assert_eq!(differences(&mut router, &packets, &wanted, &written), 0);
    let listed = router.run("nft", &["list", "chain", "ip", "nat", "forward"], "").expect("nft runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("counter packets ") && !listed.contains("counter packets 0 "), "{listed}");
}
