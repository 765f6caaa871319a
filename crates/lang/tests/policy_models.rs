//! Policies of programs as models: texts and places, columns that are no fields, packets of IPv4 alone.

use lang::pipeline::{CompileOptions, compile};
use lang::policy_model::PolicyModel;
use policy::{
    AnalysisFault, Packet, PacketField, Path, Policy, Remembers, RuleAction, State, Step, difference,
    evaluate,
};

fn models(text: &str) -> Vec<PolicyModel> {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    assert!(compiled.program.is_some(), "{:#?}", compiled.diagnostics);
    compiled.policies
}

/// A program with a policy of these columns and this body, which is asked with these values.
fn with(columns: &str, hooks: &str, rules: &str, asked: &str) -> PolicyModel {
    let text = format!(
        "policy edge({columns}) {{\n{hooks}\npass => flood\nkeep => flood\nblock => drop no\ngroup g {{\n{rules}\n}}\n}}\n\
         reason no \"no\"\nstart stage all() {{ goto {asked} }}\n"
    );
    models(&text).remove(0)
}

const FORWARD: &str = "hook forward { group g default block }";

fn decides(policy: &Policy, packet: &Packet) -> (RuleAction, Option<Step>) {
    let verdict = evaluate(policy, Path::Forwarded, packet, &|_| false).expect("it ends");
    (verdict.action, verdict.steps.last().copied())
}

#[test]
fn rules_have_their_texts_their_places_and_the_tests_beside_them() {
    let text = "reason no \"no\"
const LAN: port = 2
// expect block udp any > any:7
policy one(dport: u16 absent, in_port: port) {
    hook forward { group g default block }
    pass => flood
    block => drop no
    group g {
        // expect pass tcp any > any:80 in LAN
        pass   dport 80
            | 443, in_port LAN
    }
}
policy two(proto: u8) {
    hook in { group g default pass }
    pass => flood
    group g { } // expect pass udp
    // expect pass gre
}
start stage all() { if in_port == 1 { goto one.forward(1, true, in_port) } else { goto two.in(6) } }
test \"steps on one line\" { ports 2; packet 1 { hex \"45 00\" }; expect flood }
";
    let [one, two] = &models(text)[..] else { panic!("two policies") };
    let told = |model: &PolicyModel| model.expectations.iter().map(|(line, _)| *line).collect::<Vec<u32>>();
    assert_eq!((told(one), told(two)), (vec![3, 9], vec![3, 17, 18]));
    assert_eq!(one.expectations[1].1, "pass tcp any > any:80 in LAN");
    assert_eq!(
        (one.name.as_str(), one.file.as_str(), &one.tables[..]),
        ("one", "p.rav", &["one.forward".to_owned()][..])
    );
    let policy = one.policy.as_ref().expect("columns are fields");
    let rule = &policy.groups[0].rules[0];
    assert_eq!(
        (&*rule.text, rule.place.line, rule.place.column),
        ("pass dport 80 | 443, in_port LAN", 10, 9)
    );
    assert_eq!((policy.hooks[0].place.line, &policy.interfaces[..]), (5, &[("LAN".to_owned(), 2)][..]));
}

#[test]
fn columns_that_hold_no_field_make_a_policy_that_cannot_be_analysed() {
    for (columns, hooks, asked, sentence) in [
        ("zone: u8", FORWARD, "edge.forward(1)", "the column `zone` has no name of a field of packets"),
        ("dport: u16", FORWARD, "edge.forward(1)", "declare it as `dport: u16 absent`"),
        ("proto: u4", FORWARD, "edge.forward(1)", "the column `proto` is of type u4"),
        ("src: u128", FORWARD, "edge.forward(1)", "the column `src` is of type u128"),
        ("proto: ip4", FORWARD, "edge.forward(1.2.3.4)", "the column `proto` is of type ip4"),
        ("out_port: port", "hook in { group g default block }", "edge.in(1)", "`out_port: port absent`"),
        ("in_port: port", "hook out { group g default block }", "edge.out(1)", "`in_port: port absent`"),
    ] {
        let model = with(columns, hooks, "", asked);
        let told = model.policy.expect_err(columns);
        assert!(told.contains(sentence), "{columns}: {told}");
    }
    let states = "enum state: u2 { new = 0  established = 2 }\n";
    let policy = "policy p(state: state) { hook in { group g default pass } pass => flood group g { } }\n";
    let start = "start stage all() { goto p.in(state.new) }";
    let told = models(&format!("{states}{policy}{start}")).remove(0).policy.expect_err("other numbers");
    assert!(told.contains("the column `state` is of type state"), "{told}");
    let right = states.replace('2', "1").replace("u1", "u2");
    assert!(models(&format!("{right}{policy}{start}")).remove(0).policy.is_ok());
}

#[test]
fn a_policy_over_addresses_of_ipv4_says_nothing_about_ipv6() {
    let rules = "block src not 10.0.0.0/8\npass src 10.0.0.1";
    let policy = with("src: ip4", FORWARD, rules, "edge.forward(1.2.3.4)").policy.expect("a field");
    let from = |family: u128, source: u128| {
        Packet::default().with(PacketField::Family, Some(family)).with(PacketField::Source, Some(source))
    };
    let mapped = |address: u128| (0xffff << 32) | address;
    assert_eq!(decides(&policy, &from(6, 1)), (RuleAction::Pass, Some(Step::Rule(0, 0))));
    assert_eq!(decides(&policy, &from(4, mapped(0x0b00_0001))), (RuleAction::Block, Some(Step::Rule(0, 1))));
    assert_eq!(decides(&policy, &from(4, mapped(0x0a00_0001))), (RuleAction::Pass, Some(Step::Rule(0, 2))));
    assert_eq!(decides(&policy, &from(4, mapped(0x0a00_0002))), (RuleAction::Block, Some(Step::Default(0))));
}

#[test]
fn a_policy_about_ipv4_alone_is_compared_with_no_policy_about_all_packets() {
    let of = |columns: &str, rules: &str, asked: &str| {
        with(columns, FORWARD, rules, asked).policy.expect("columns are fields")
    };
    let narrow = of("src: ip4", "pass src 10.0.0.1", "edge.forward(1.2.3.4)");
    let wide = of("src: ip6", "pass", "edge.forward(::1)");
    for (old, new) in [(&narrow, &wide), (&wide, &narrow)] {
        assert_eq!(difference(old, new, 9), Err(AnalysisFault::Families));
    }
    let more = of("src: ip4", "pass src 10.0.0.0/31", "edge.forward(1.2.3.4)");
    assert_eq!(difference(&narrow, &more, 9).expect("both are about IPv4").opened, 1);
    assert_eq!(difference(&wide, &wide, 9).expect("both are about all packets").opened, 0);
}

#[test]
fn a_wider_column_holds_no_more_than_the_field_does() {
    let rules = "pass family 4 | 1000..2000\nblock family 0 mask 0x3fff8\npass family not 6";
    let policy = with("family: u18", FORWARD, rules, "edge.forward(4)").policy.expect("a field");
    let of = |family: u128| Packet::default().with(PacketField::Family, Some(family));
    assert_eq!(decides(&policy, &of(4)).1, Some(Step::Rule(0, 0)));
    assert_eq!(decides(&policy, &of(6)).1, Some(Step::Rule(0, 1)));
}

#[test]
fn packets_of_connections_that_are_kept_are_compared_with_rules() {
    let of = |columns: &str, asked: &str| with(columns, FORWARD, "block proto 17  keep", asked);
    for (columns, asked) in [("proto: u8", "edge.forward(6)"), ("proto: u8, state: u3", "edge.forward(6, 1)")]
    {
        let policy = of(columns, asked).policy.expect("fields");
        assert_eq!(policy.remembers, Remembers::KeptAndAsked);
        let established = Packet::default()
            .with(PacketField::Protocol, Some(17))
            .with(PacketField::State, Some(State::Established as u128));
        let verdict = evaluate(&policy, Path::Forwarded, &established, &|_| false).expect("it ends");
        assert_eq!((verdict.action, verdict.steps), (RuleAction::Block, vec![Step::Rule(0, 0)]));
    }
}

#[test]
fn columns_that_some_packets_lack_say_so() {
    let sentence = |columns: &str, point: &str, asked: &str| {
        let hook = format!("hook {point} {{ group g default block }}");
        with(columns, &hook, "pass", asked).policy.expect_err("not every packet has it")
    };
    let own = "not every packet has a value for the column";
    let card = "edge.from_gateway(02:00:00:00:00:07)";
    assert!(sentence("src_mac: mac", "from_gateway", card).starts_with(own));
    assert!(sentence("out_state: u3", "to_gateway", "edge.to_gateway(1)").starts_with(own));
    assert!(with("out_state: u3", FORWARD, "pass", "edge.forward(1)").policy.is_ok());
}

#[test]
fn a_limit_by_a_constant_of_another_value_is_another_limit() {
    let model = |often: u32| {
        let text = format!(
            "const OFTEN: u32 = {often}\nreason no \"no\"\npolicy edge(proto: u8) {{\n{FORWARD}\npass => flood\n\
             block => drop no\ngroup g {{\nlimit OFTEN/s burst 9 pass proto 6\n}}\n}}\n\
             start stage all() {{ goto edge.forward(6) }}\n"
        );
        models(&text).remove(0).policy.expect("its column holds a field")
    };
    let left_over = |new: &Policy| difference(&model(5), new, 8).expect("small").left_over;
    assert!(left_over(&model(6)) && !left_over(&model(5)));
}
