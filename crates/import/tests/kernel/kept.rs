//! Linux keeps connections by the marks that are written of files of pf as the rules of these files keep them:
//! each direction by itself, in conversations with answers, resets, errors and echoes.

use super::conversations::{Carried, Connection, Conversation, End, Message};
use super::random::Random;
use super::router::Router;
use super::{rounds, seed};
use import::address::AddressFamily;
use import::policies::{PolicyOptions, read, write_nft, write_nft_json};
use policy::{HookPoint, PacketField, Path, Policy, RuleAction, State, evaluate};
use std::cell::Cell;

const LINES: [&str; 24] = [
    "block in all",
    "block out all",
    "block in quick proto tcp from any to any port 80",
    "block out quick proto udp from any to any port 53",
    "block in on to-out all",
    "pass in all",
    "pass out all",
    "pass in on from-in all",
    "pass out on to-out all",
    "pass out on from-in all no state",
    "pass in on to-out all no state",
    "pass in proto tcp from any to any port { 22, 80 }",
    "pass out proto tcp from any to any port 22:1024",
    "pass in quick proto tcp from any to any port 60000 no state",
    "pass in proto tcp all flags any",
    "pass in proto udp from any to any port 53",
    "pass out proto udp all no state",
    "pass out quick proto udp from any port 53",
    "pass in inet proto icmp icmp-type echoreq",
    "pass in inet6 proto icmp6 icmp6-type echoreq",
    "pass out proto { icmp, icmp6 } all",
    "pass in proto 89 all",
    "pass out inet proto icmp all no state",
    "anchor in on from-in {\n pass proto tcp from any to any port 22\n block quick proto udp from any to any port 80\n}",
];

fn file(random: &mut Random) -> String {
    let mut text = String::from(random.one(&["block all\n", "block all\n", ""]));
    for _ in 0..7 {
        text += random.one(&LINES);
        text.push('\n');
    }
    text
}

const IN_FORTH: u8 = 1;
const OUT_FORTH: u8 = 2;
const IN_BACK: u8 = 4;
const OUT_BACK: u8 = 8;

/// What rules have kept of a conversation, beside what Linux knows of it.
#[derive(Default)]
struct Kept {
    connection: Connection,
    /// For which packets a rule has let it pass: where they come in or go out, those of the end that began
    /// it (forth) or of the other one.
    rules: u8,
}

impl Kept {
    /// Whether a step passes, and the state in which Linux has it. `by_connection` counts the steps that pass
    /// as their connection is kept.
    fn decided(
        &mut self,
        policy: &Policy,
        conversation: &Conversation,
        step: usize,
        by_connection: &Cell<usize>,
    ) -> (bool, State) {
        let (end, message): &(End, Message) = &conversation.steps[step];
        let state = self.connection.state(*end, message);
        let known = self.connection.begun().is_some() && state != State::Invalid;
        let forth = self.connection.begun().is_none_or(|begun| begun == *end);
        let (coming, going) = if forth {
            (IN_FORTH | OUT_BACK, OUT_FORTH | IN_BACK)
        } else {
            (IN_BACK | OUT_FORTH, OUT_BACK | IN_FORTH)
        };
        let kept =
            if matches!(message, Message::Unreachable(_)) { State::Related } else { State::Established };
        let own_rules = self.rules;
        let of = |rules: u8| match (known && own_rules & rules != 0, kept) {
            (true, kept) => kept,
            (false, State::Related) => State::Invalid,
            (false, _) => State::New,
        };
        let packet =
            conversation.fields(step, of(coming)).with(PacketField::OutState, Some(of(going) as u128));
        let at = |point: HookPoint| {
            let hooks = policy.hooks.iter().filter(|hook| hook.point == point).cloned().collect();
            let policy = Policy { hooks, ..policy.clone() };
            evaluate(&policy, Path::Forwarded, &packet, &|_| false).expect("it ends").action
        };
        let whole = evaluate(policy, Path::Forwarded, &packet, &|_| false).expect("it ends").action;
        let [coming_in, going_out] = [HookPoint::In, HookPoint::Out].map(at);
        let passes = |action: RuleAction| matches!(action, RuleAction::Pass | RuleAction::Keep);
        let passed = passes(coming_in) && passes(going_out);
        assert_eq!(passes(whole), passed, "{conversation:?}");
        // Linux forgets a connection whose first packet does not leave; a mark that is there stays.
        if (passed || known) && matches!(state, State::New | State::Established) {
            let (by_in, by_out) = if forth { (IN_FORTH, OUT_FORTH) } else { (IN_BACK, OUT_BACK) };
            self.rules |= if coming_in == RuleAction::Keep { by_in } else { 0 };
            self.rules |= if passes(coming_in) && going_out == RuleAction::Keep { by_out } else { 0 };
        }
        if passed && [of(coming), of(going)].contains(&kept) {
            by_connection.set(by_connection.get() + 1);
        }
        if passed {
            self.connection.passed(*end, state);
        }
        (passed, state)
    }
}

#[test]
fn connections_that_files_of_pf_keep_are_kept_by_linux() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    router.knows_clients();
    let mut random = Random(seed());
    let mut carried = Carried::default();
    let by_connection = Cell::new(0);
    for _ in 0..2 * rounds() {
        let text = file(&mut random);
        let interfaces = vec![("from-in".to_owned(), 1), ("to-out".to_owned(), 2)];
        let options = PolicyOptions { interfaces, ..PolicyOptions::default() };
        let own = read(text.as_bytes(), "pf", &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(own.refused, [], "{text}");
        let written = write_nft(&own.policy).unwrap_or_else(|error| panic!("{error}\n{text}"));
        router.try_load(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        let json = write_nft_json(&own.policy).expect("it is written as text");
        let checked = router.run("nft", &["-c", "-j", "-f", "-"], &json).expect("nft runs");
        assert!(checked.status.success(), "{}\n{json}", String::from_utf8_lossy(&checked.stderr));
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let decider = || {
                let mut all: Vec<Kept> = Vec::new();
                let (policy, by_connection) = (&own.policy, &by_connection);
                move |index: usize, conversation: &Conversation, step: usize| {
                    all.resize_with(all.len().max(index + 1), Kept::default);
                    all[index].decided(policy, conversation, step, by_connection)
                }
            };
            carried
                .agree_with(&mut router, &decider, family, &mut random)
                .unwrap_or_else(|differs| panic!("{text}\n{written}\n{differs}"));
        }
    }
    let by_connection = by_connection.get();
    println!("{carried:?}, {by_connection} as their connection is kept");
    assert!(by_connection > carried.passed / 5, "{by_connection} of {carried:?}");
    assert!(carried.passed > carried.dropped / 5 && carried.dropped > carried.passed / 5, "{carried:?}");
}
