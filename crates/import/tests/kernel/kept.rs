//! Linux keeps connections by the marks that are written of files of pf and NPF as the rules of these files
//! keep them: each direction by itself, at one port alone, or everywhere, in conversations with answers,
//! resets, errors and echoes.

use super::conversations::{Carried, Connection, Conversation, End, Message};
use super::random::Random;
use super::router::Router;
use super::{rounds, seed};
use import::address::AddressFamily;
use import::policies::{PolicyOptions, read, write_nft, write_nft_json};
use policy::{HookPoint, PacketField, Path, Policy, Remembers, RuleAction, State, evaluate};
use std::cell::Cell;
use std::collections::HashSet;

const LINES_OF_PF: [&str; 24] = [
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

/// Lines of NPF; `stateful` stands for a word of [`WORDS`].
const LINES_OF_NPF: [&str; 13] = [
    "pass stateful all",
    "pass stateful final proto tcp from any to any port 22",
    "pass stateful proto tcp flags S/SA all",
    "pass stateful final proto udp from any to any port 53",
    "pass stateful proto udp from any to any port 1000-60000",
    "pass stateful family inet4 proto icmp all",
    "pass stateful proto 89 all",
    "block all",
    "block final proto tcp from any to any port 80",
    "block proto udp all",
    "pass proto tcp from any port 22 to any",
    "pass final proto udp from any port 53 to any",
    "pass all",
];

const WORDS: [&str; 3] = ["stateful", "stateful", "stateful-all"];

fn file_of_pf(random: &mut Random) -> String {
    let mut text = String::from(random.one(&["block all\n", "block all\n", ""]));
    for _ in 0..7 {
        text += random.one(&LINES_OF_PF);
        text.push('\n');
    }
    text
}

fn file_of_npf(random: &mut Random) -> String {
    let word = random.one(&WORDS);
    let mut text = String::from(random.one(&["alg \"icmp\"\n", ""]));
    let groups = ["in on \"from-in\"", "out on \"to-out\"", "in on \"to-out\"", "out on \"from-in\""];
    for (number, place) in groups.iter().enumerate() {
        if random.once_in(4) {
            continue;
        }
        text += &format!("group \"{number}\" {place} {{\n");
        for _ in 0..3 {
            text += &format!(" {}\n", random.one(&LINES_OF_NPF).replace("stateful", word));
        }
        text += "}\n";
    }
    text + &format!("group default {{\n {}\n}}\n", random.one(&LINES_OF_NPF).replace("stateful", word))
}

/// Where and for which end's packets a rule has let a connection pass: forth are those of the end that began
/// it, and a number names the port, or is 0 for all.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Everywhere,
    In { forth: bool, port: u128 },
    Out { forth: bool, port: u128 },
}

/// What rules have kept of a conversation, beside what Linux knows of it.
#[derive(Default)]
struct Kept {
    connection: Connection,
    rules: HashSet<By>,
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
        let by_port = policy.remembers == Remembers::KeptAtPort;
        let [comes_by, goes_by] =
            if *end == End::Client { [1, 2] } else { [2, 1] }.map(|port| if by_port { port } else { 0 });
        let whole = self.rules.contains(&By::Everywhere);
        // A packet passes where its own direction is kept, or where it answers one that is.
        let coming = whole
            || self.rules.contains(&By::In { forth, port: comes_by })
            || self.rules.contains(&By::Out { forth: !forth, port: comes_by });
        let going = whole
            || self.rules.contains(&By::Out { forth, port: goes_by })
            || self.rules.contains(&By::In { forth: !forth, port: goes_by });
        let kept =
            if matches!(message, Message::Unreachable(_)) { State::Related } else { State::Established };
        let of = |is_kept: bool| match (known && is_kept, kept) {
            (true, kept) => kept,
            (false, State::Related) => State::Invalid,
            (false, _) => State::New,
        };
        let states = [of(coming), of(going)];
        let packet =
            conversation.fields(step, states[0]).with(PacketField::OutState, Some(states[1] as u128));
        let asked =
            |policy: &Policy| evaluate(policy, Path::Forwarded, &packet, &|_| false).expect("it ends").action;
        let at = |point: HookPoint| {
            let hooks = policy.hooks.iter().filter(|hook| hook.point == point).cloned().collect();
            asked(&Policy { hooks, ..policy.clone() })
        };
        let passes = |action: RuleAction| matches!(action, RuleAction::Pass | RuleAction::Keep);
        let (action, [coming_in, going_out]) = (asked(policy), [HookPoint::In, HookPoint::Out].map(at));
        let passed = passes(action);
        // Linux forgets a connection whose first packet does not leave; a mark that is there stays.
        if (passed || known) && matches!(state, State::New | State::Established) {
            if policy.remembers == Remembers::Kept {
                self.rules.extend((action == RuleAction::Keep).then_some(By::Everywhere));
            } else {
                assert_eq!(passed, passes(coming_in) && passes(going_out), "{conversation:?}");
                let by_in = (coming_in == RuleAction::Keep).then_some(By::In { forth, port: comes_by });
                let by_out = (passes(coming_in) && going_out == RuleAction::Keep)
                    .then_some(By::Out { forth, port: goes_by });
                self.rules.extend(by_in.into_iter().chain(by_out));
            }
        }
        if passed && states.contains(&kept) {
            by_connection.set(by_connection.get() + 1);
        }
        if passed {
            self.connection.passed(*end, state);
        }
        (passed, state)
    }
}

/// Carries on conversations through the rulesets that are written of files of a format.
fn kept_alike(format: &str, file: &dyn Fn(&mut Random) -> String) {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    router.knows_clients();
    let mut random = Random(seed());
    let mut carried = Carried::default();
    let by_connection = Cell::new(0);
    for _ in 0..2 * rounds() {
        let text = file(&mut random);
        let interfaces = vec![("from-in".to_owned(), 1), ("to-out".to_owned(), 2)];
        let options = PolicyOptions { interfaces, ..PolicyOptions::default() };
        let own = read(text.as_bytes(), format, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
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

#[test]
fn connections_that_files_of_pf_keep_are_kept_by_linux() {
    kept_alike("pf", &file_of_pf);
}

#[test]
fn connections_that_files_of_npf_keep_are_kept_by_linux() {
    kept_alike("npf", &file_of_npf);
}
