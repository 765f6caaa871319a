//! Groups of a policy as chains of nftables.
//!
//! A chain has the rules of a group that come to it in order. A group whose last match decides is turned
//! round: the rules that decide at once come first, then the others from the last to the first. Chains are
//! written once for each part of a group and each kind of packets that jumps lead to it.

use super::keeping::Keeping;
use super::matches::{self, Coming, Fragments, statements};
use super::reach::{Arrivals, FamilyWays, Reach};
use super::text;
use super::ways::{ALL_STATES, Protocols, Unsayable, Way};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::policies::limits::{DEEPEST_CHAINS, MOST_WRITTEN_RULES, MOST_WRITTEN_VALUES};
use crate::policies::nft::statements::{ICMP, ICMPV6};
use policy::{
    Hook, HookPoint, MatchOrder, Policy, PolicyRule, Reject, Remembers, RuleAction, RuleCondition, RulePlace,
    Unreachable,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Range;

/// The longest part of a chain's name that comes from the name of a group.
const LONGEST_NAME: usize = 64;

/// How rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// For `nft -f`.
    Text,
    /// For `nft -j -f`.
    Json,
}

/// A chain of nftables.
pub(super) struct WrittenChain {
    pub(super) name: String,
    pub(super) base: Option<Base>,
    pub(super) rules: Vec<WrittenRule>,
}

/// Where a base chain is asked.
pub(super) struct Base {
    pub(super) hook: &'static str,
    pub(super) priority: i64,
    pub(super) accepts: bool,
}

/// A rule: its statements as they are written, and the line that it comes from; 0 if none.
pub(super) struct WrittenRule {
    pub(super) statements: String,
    pub(super) line: u32,
}

/// The error that nftables cannot say something.
pub(super) fn refuse(place: RulePlace, what: &str) -> ImportError {
    let what = format!("nftables cannot say {what}");
    ImportError::new(place.line.max(1), place.column.max(1), what, "write it otherwise, or leave it out")
}

/// Which rules of a group a chain has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Extent {
    /// All of them.
    All,
    /// Of a group whose last match decides, those that decide at once, and those that go on.
    AtOnce,
    /// The others of such a group, from the last to the first.
    FromLast,
}

/// A chain of a group: the group, which of its rules, for which packets.
type ChainKey = (usize, Extent, Fragments);

/// What is written so far.
pub(super) struct Writer<'a> {
    policy: &'a Policy,
    /// The names of interfaces and their ports, that of the loopback interface among them.
    interfaces: &'a [(String, u16)],
    reach: &'a Reach,
    pub(super) chains: Vec<WrittenChain>,
    /// The name of each chain of a group and how many chains its jumps pass at most, itself among them;
    /// `None` if it has no rules.
    written: HashMap<ChainKey, Option<(String, usize)>>,
    /// How many chains were to have a name.
    names: HashMap<String, usize>,
    form: Form,
    rules: usize,
    values: usize,
    /// Whether a rule asks for the state of a connection.
    pub(super) asks_states: bool,
    /// How marks say what rules keep, where any rule does.
    keeping: Option<Keeping>,
}

/// The rules of a chain so far.
#[derive(Default)]
struct Body {
    rules: Vec<WrittenRule>,
    /// How many chains jumps pass behind this one, at most.
    height: usize,
}

/// A rule and what is known of the packets that come to it.
#[derive(Clone, Copy)]
struct Asked<'a> {
    rule: &'a PolicyRule,
    ways: &'a FamilyWays,
    arrivals: Arrivals,
    coming: Coming<'a>,
    extent: Extent,
    /// How many chains lead to it.
    depth: usize,
}

const KEPT: &str = "connections that single rules keep at more than 8 ports, `lo` among them, or by too many rules to tell at which, or for whatever a program makes of them; use `ct state`";

impl<'a> Writer<'a> {
    pub(super) fn of(
        policy: &'a Policy,
        interfaces: &'a [(String, u16)],
        reach: &'a Reach,
        form: Form,
    ) -> Writer<'a> {
        Writer {
            keeping: None,
            policy,
            interfaces,
            reach,
            chains: Vec::new(),
            written: HashMap::new(),
            names: HashMap::new(),
            form,
            rules: 0,
            values: 0,
            asks_states: false,
        }
    }

    /// Writes the base chains of these hooks, and the chains that their rules lead to.
    pub(super) fn hooks(&mut self, hooks: &[Hook], fragments: Fragments) -> Result<(), ImportError> {
        self.keeping = self.reach.keeps.then(|| Keeping::of(self.policy, self.interfaces, hooks)).flatten();
        let mut numbers: HashMap<HookPoint, i64> = HashMap::new();
        for hook in hooks {
            let number = numbers.entry(hook.point).or_default();
            self.hook(hook, *number, fragments)?;
            *number += 1;
        }
        Ok(())
    }

    fn hook(&mut self, hook: &Hook, number: i64, fragments: Fragments) -> Result<(), ImportError> {
        let kind = hook_name(hook.point);
        let name = self.name(kind);
        let mut body = Body::default();
        let own = self.body(hook, fragments)?;
        let passing = self.keeping.as_ref().map(|keeping| keeping.passing(hook.point)).unwrap_or_default();
        body.rules.extend(passing.iter().map(|statements| self.written_rule(statements, 0)));
        if fragments == Fragments::None {
            let later = self.body(hook, Fragments::Later)?;
            if !own.rules.is_empty() || !later.rules.is_empty() {
                let chain = self.name(&format!("{name}_later"));
                for mut statements in is_later() {
                    statements.push(json!({"goto": {"target": chain}}));
                    body.rules.push(self.written_rule(&statements, 0));
                }
                body.height = later.height + 1;
                self.chains.push(WrittenChain { name: chain, base: None, rules: later.rules });
            }
        }
        body.height = body.height.max(own.height);
        body.rules.extend(own.rules);
        if body.height >= DEEPEST_CHAINS {
            return Err(refuse(hook.place, TOO_DEEP));
        }
        let accepts = matches!(hook.default, RuleAction::Pass | RuleAction::Keep);
        let priorities = priorities(hook.point, fragments == Fragments::Together);
        let priority = priorities.start + number;
        if !priorities.contains(&priority) {
            return Err(refuse(
                hook.place,
                "so many hooks before the place where Linux translates addresses",
            ));
        }
        let base = Some(Base { hook: kind, priority, accepts });
        self.chains.push(WrittenChain { name, base, rules: body.rules });
        Ok(())
    }

    /// The rules of a base chain.
    fn body(&mut self, hook: &Hook, fragments: Fragments) -> Result<Body, ImportError> {
        let key = (hook.group, Extent::All, fragments);
        if !matches!(hook.default, RuleAction::Reject(_) | RuleAction::Keep) {
            return self.rules_of(key, 1, hook.place);
        }
        // What goes back from the group meets the rule of the default.
        let mut body = Body::default();
        if let Some((target, height)) = self.chain(key, 2, hook.place)? {
            let jump = self.written_rule(&[json!({"jump": {"target": target}})], 0);
            body = Body { rules: vec![jump], height };
        }
        let rule = PolicyRule {
            place: hook.place,
            text: "".into(),
            condition: RuleCondition::All(Vec::new()),
            action: hook.default,
            decides_at_once: true,
            log: false,
            count: false,
        };
        let coming = Coming { points: &[hook.point], fragments, interfaces: self.interfaces };
        let ways = [vec![Way::EVERY], vec![Way::EVERY]];
        let arrivals = Arrivals::at(hook.point);
        let asked = Asked { rule: &rule, ways: &ways, arrivals, coming, extent: Extent::All, depth: 1 };
        self.rule(asked, &mut body)?;
        Ok(body)
    }

    /// The chain of a group; `None` if it has no rules.
    fn chain(
        &mut self,
        key: ChainKey,
        depth: usize,
        place: RulePlace,
    ) -> Result<Option<(String, usize)>, ImportError> {
        if let Some(known) = self.written.get(&key) {
            return Ok(known.clone());
        }
        let body = self.rules_of(key, depth, place)?;
        let mut named = None;
        if !body.rules.is_empty() {
            let (group, extent, fragments) = key;
            let letters = self.policy.groups[group].name.chars().take(LONGEST_NAME);
            let letters: String =
                letters.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
            let extent = match extent {
                Extent::All => "",
                Extent::AtOnce => "_at_once",
                Extent::FromLast => "_from_last",
            };
            let later = if fragments == Fragments::Later { "_later" } else { "" };
            let name = self.name(&format!("group_{letters}{extent}{later}"));
            named = Some((name.clone(), body.height + 1));
            self.chains.push(WrittenChain { name, base: None, rules: body.rules });
        }
        self.written.insert(key, named.clone());
        Ok(named)
    }

    /// A name that no other chain has.
    fn name(&mut self, wanted: &str) -> String {
        loop {
            let number = self.names.entry(wanted.to_owned()).or_default();
            *number += 1;
            let name = if *number == 1 { wanted.to_owned() } else { format!("{wanted}_{number}") };
            if *number == 1 || !self.names.contains_key(&name) {
                self.names.entry(name.clone()).or_insert(1);
                return name;
            }
        }
    }

    fn written_rule(&mut self, statements: &[Value], line: u32) -> WrittenRule {
        self.asks_states |= statements.iter().any(matches::asks_state);
        let statements = match self.form {
            Form::Text => text::statements(statements),
            Form::Json => json!(statements).to_string(),
        };
        WrittenRule { statements, line }
    }

    fn rules_of(&mut self, key: ChainKey, depth: usize, place: RulePlace) -> Result<Body, ImportError> {
        if depth > DEEPEST_CHAINS {
            return Err(refuse(place, TOO_DEEP));
        }
        let (number, extent, fragments) = key;
        let (policy, reach) = (self.policy, self.reach);
        let group = &policy.groups[number];
        let mut arrivals = reach.arrivals.get(&number).copied().unwrap_or_default();
        let points = arrivals.points();
        let coming = Coming { points: &points, fragments, interfaces: self.interfaces };
        let forward = (0..group.rules.len()).map(|index| (index, Extent::AtOnce));
        let back = (0..group.rules.len()).rev().map(|index| (index, Extent::FromLast));
        let order: Vec<(usize, Extent)> = match (group.order, extent) {
            (MatchOrder::First, _) => forward.map(|(index, _)| (index, Extent::All)).collect(),
            (MatchOrder::Last, Extent::All) => forward.chain(back).collect(),
            (MatchOrder::Last, Extent::AtOnce) => forward.collect(),
            (MatchOrder::Last, Extent::FromLast) => back.collect(),
        };
        let mut body = Body::default();
        for (index, extent) in order {
            let rule = &group.rules[index];
            let Some(ways) = reach.ways.get(&(number, index)) else { continue };
            if stands_in(rule, extent).map_err(|what| refuse(rule.place, what))? {
                self.rule(Asked { rule, ways, arrivals, coming, extent, depth }, &mut body)?;
            }
            arrivals = arrivals.behind(rule.action, group.order, ways);
        }
        Ok(body)
    }

    /// The chain that a rule leads to, and how many chains jumps pass from there.
    fn target(&mut self, group: usize, asked: Asked<'_>) -> Result<Option<(String, usize)>, ImportError> {
        let order = self.policy.groups[group].order;
        let extent = match (order, asked.extent) {
            // What a group says whose first match decides holds at once.
            (MatchOrder::First, Extent::FromLast) => return Ok(None),
            (MatchOrder::First, _) => Extent::All,
            (MatchOrder::Last, extent) => extent,
        };
        self.chain((group, extent, asked.coming.fragments), asked.depth + 1, asked.rule.place)
    }

    /// Writes a rule into a chain.
    fn rule(&mut self, asked: Asked<'_>, body: &mut Body) -> Result<(), ImportError> {
        let rule = asked.rule;
        let back = || json!({"return": null});
        let mut height = 0;
        let mut target = None;
        let verdict = match rule.action {
            RuleAction::Keep if self.policy.remembers.keeps() => {
                height = 1;
                Some(json!({"goto": {"target": self.keeping_chain(asked)?}}))
            }
            RuleAction::Pass | RuleAction::Keep => Some(json!({"accept": null})),
            RuleAction::Block => Some(json!({"drop": null})),
            RuleAction::Return => Some(back()),
            RuleAction::Continue => None,
            RuleAction::Reject(kind) => return self.reject(kind, asked, body),
            RuleAction::Jump(next) | RuleAction::Goto(next) => {
                let goes = matches!(rule.action, RuleAction::Goto(_));
                match self.target(next, asked)? {
                    Some((name, own)) => {
                        height = own;
                        target = Some(name.clone());
                        let word = if goes { "goto" } else { "jump" };
                        Some(json!({word: {"target": name}}))
                    }
                    None => goes.then(back),
                }
            }
        };
        // A group is jumped to twice where its rules are turned round; it logs and counts once.
        let effects = asked.extent != Extent::FromLast || !matches!(rule.action, RuleAction::Jump(_));
        let mut effect = Vec::new();
        if rule.count && effects {
            effect.push(json!({"counter": null}));
        }
        if rule.log && effects {
            effect.push(json!({"log": null}));
        }
        if effect.is_empty() && verdict.is_none() {
            return Ok(());
        }
        let rows = self.rows(asked, asked.ways)?;
        if rows.is_empty() {
            return Ok(());
        }
        let goes_on = matches!(rule.action, RuleAction::Jump(_) | RuleAction::Continue);
        let several = asked.ways.iter().any(|ways| ways.len() > 1);
        body.height = body.height.max(height + usize::from(goes_on && several));
        if !(goes_on && several) {
            let end: Vec<Value> = effect.into_iter().chain(verdict).collect();
            return self.put(rows, &end, rule, body);
        }
        // A packet may match in several ways, and is to go this way once.
        let mut own = Body::default();
        let last = target.map_or_else(back, |target| json!({"goto": {"target": target}}));
        effect.push(last);
        self.put(rows, &effect, rule, &mut own)?;
        let name = self.name(&format!("line_{}", rule.place.line));
        body.height = body.height.max(1);
        let jump = json!({"jump": {"target": name}});
        self.chains.push(WrittenChain { name, base: None, rules: own.rules });
        self.put(vec![Vec::new()], &[jump], rule, body)
    }

    /// The chain that keeps the connection of a packet.
    fn keeping_chain(&mut self, asked: Asked<'_>) -> Result<&'static str, ImportError> {
        let (Some(keeping), [point, more @ ..]) = (&self.keeping, asked.coming.points) else {
            return Err(refuse(asked.rule.place, KEPT));
        };
        if !more.is_empty() && matches!(keeping, Keeping::Directions(..)) {
            return Err(refuse(asked.rule.place, "connections that one rule keeps on the way in and out"));
        }
        let (name, rules) = keeping.keeping(*point);
        if !self.names.contains_key(name) {
            self.names.insert(name.to_owned(), 1);
            let rules = rules.iter().map(|statements| self.written_rule(statements, 0)).collect();
            self.chains.push(WrittenChain { name: name.to_owned(), base: None, rules });
        }
        Ok(name)
    }

    /// Adds rules that end alike.
    fn put(
        &mut self,
        rows: Vec<Vec<Value>>,
        end: &[Value],
        rule: &PolicyRule,
        body: &mut Body,
    ) -> Result<(), ImportError> {
        for mut statements in rows {
            self.rules += 1;
            if self.rules > MOST_WRITTEN_RULES {
                let what =
                    format!("up to here the policy becomes more than {MOST_WRITTEN_RULES} rules of nftables");
                let (line, column) = (rule.place.line.max(1), rule.place.column.max(1));
                let advice = "ask for fewer alternatives in one rule, or leave rules out";
                return Err(ImportError::new(line, column, what, advice));
            }
            statements.extend_from_slice(end);
            body.rules.push(self.written_rule(&statements, rule.place.line));
        }
        Ok(())
    }

    /// The matches of a rule, once for each way that packets can take.
    fn rows(&mut self, asked: Asked<'_>, ways: &FamilyWays) -> Result<Vec<Vec<Value>>, ImportError> {
        let refused = |Unsayable(what): Unsayable| refuse(asked.rule.place, what);
        if self.policy.remembers != Remembers::Passed
            && ways.iter().flatten().any(|way| way.states != ALL_STATES)
        {
            return Err(refuse(asked.rule.place, "states of connections where none is remembered"));
        }
        let [has_four, has_six] = [0, 1].map(|family| asked.arrivals.has(family));
        let alike = ways[0] == ways[1] && !ways[0].iter().any(Way::is_of_family);
        let mut wanted: Vec<(Option<AddressFamily>, &Way)> = Vec::new();
        if alike && has_four && has_six {
            wanted.extend(ways[0].iter().map(|way| (None, way)));
        } else {
            if has_four {
                wanted.extend(ways[0].iter().map(|way| (Some(AddressFamily::V4), way)));
            }
            if has_six {
                wanted.extend(ways[1].iter().map(|way| (Some(AddressFamily::V6), way)));
            }
        }
        let mut rows = Vec::with_capacity(wanted.len());
        wanted.retain(|(_, way)| asked.coming.fragments.meet(way));
        for (family, way) in wanted {
            self.values += way.values();
            if self.values > MOST_WRITTEN_VALUES {
                let what = format!("up to here the rules hold more than {MOST_WRITTEN_VALUES} values");
                let (line, column) = (asked.rule.place.line.max(1), asked.rule.place.column.max(1));
                return Err(ImportError::new(line, column, what, "ask for a large set in fewer rules"));
            }
            let known = has_four != has_six;
            rows.extend(statements(way, family, known, asked.coming).map_err(refused)?);
        }
        Ok(rows)
    }

    fn reject(&mut self, kind: Reject, asked: Asked<'_>, body: &mut Body) -> Result<(), ImportError> {
        let rule = asked.rule;
        let refused = |what: &str| Err(refuse(rule.place, what));
        if asked.coming.points.contains(&HookPoint::Out) {
            return refused("an answer to the sender of packets that are on their way out");
        }
        let tcp = Protocols::of(&[6]);
        let only = |protocols: Protocols| {
            asked.ways.clone().map(|ways| ways.iter().filter_map(|way| way.of_protocols(protocols)).collect())
        };
        let code = |names: &[(&'static str, u8)], code: u8| {
            names.iter().find(|(_, own)| *own == code).map(|(name, _)| *name)
        };
        let foreign = |family: usize| asked.arrivals.has(family) && !asked.ways[family].is_empty();
        let end = match kind {
            Reject::ByProtocol => {
                for (protocols, kind) in
                    [(tcp, Reject::TcpReset), (tcp.other(), Reject::Unreachable(Unreachable::Port))]
                {
                    let ways: FamilyWays = only(protocols);
                    self.reject(kind, Asked { ways: &ways, ..asked }, body)?;
                }
                return Ok(());
            }
            Reject::TcpReset => {
                if asked.ways.iter().flatten().any(|way| !way.protocols.and(tcp.other()).is_empty()) {
                    return refused("a reset for packets that are not of TCP");
                }
                json!({"type": "tcp reset"})
            }
            Reject::Icmp(_) if foreign(1) => return refused("an answer of ICMP to packets of IPv6"),
            Reject::Icmpv6(_) if foreign(0) => return refused("an answer of ICMPv6 to packets of IPv4"),
            Reject::Icmp(number) => match code(&ICMP, number) {
                Some(name) => json!({"type": "icmp", "expr": name}),
                None => return refused("an answer of ICMP with this code"),
            },
            Reject::Icmpv6(number) => match code(&ICMPV6, number) {
                Some(name) => json!({"type": "icmpv6", "expr": name}),
                None => return refused("an answer of ICMPv6 with this code"),
            },
            Reject::Unreachable(unreachable) => {
                let name = match unreachable {
                    Unreachable::NoRoute => "no-route",
                    Unreachable::Host => "host-unreachable",
                    Unreachable::Port => "port-unreachable",
                    Unreachable::Prohibited => "admin-prohibited",
                };
                json!({"type": "icmpx", "expr": name})
            }
        };
        let mut statements = Vec::new();
        if rule.count {
            statements.push(json!({"counter": null}));
        }
        if rule.log {
            statements.push(json!({"log": null}));
        }
        statements.push(json!({"reject": end}));
        let rows = self.rows(asked, asked.ways)?;
        self.put(rows, &statements, rule, body)
    }
}

const TOO_DEEP: &str = "jumps through more than 16 chains, or in a circle";

/// Whether a rule stands in this part of a group.
fn stands_in(rule: &PolicyRule, extent: Extent) -> Result<bool, &'static str> {
    let at_once = match (extent, rule.action) {
        (Extent::All, _) | (_, RuleAction::Jump(_)) => return Ok(true),
        (_, RuleAction::Return | RuleAction::Goto(_)) => {
            return Err("a way out of a group whose last match decides");
        }
        (_, RuleAction::Continue) => true,
        _ => rule.decides_at_once,
    };
    Ok(at_once == (extent == Extent::AtOnce))
}

/// The hook of Linux at a point.
fn hook_name(point: HookPoint) -> &'static str {
    match point {
        HookPoint::In => "prerouting",
        HookPoint::Forward => "forward",
        HookPoint::ToGateway => "input",
        HookPoint::FromGateway => "output",
        HookPoint::Out => "postrouting",
    }
}

/// The priorities of chains at a point: from that of the first one to where Linux translates addresses. On
/// the way in what asks for states comes behind the look-up of connections, and what asks for none before it.
fn priorities(point: HookPoint, asks_states: bool) -> Range<i64> {
    match point {
        HookPoint::In | HookPoint::FromGateway if asks_states => MANGLE..DESTINATIONS,
        HookPoint::In | HookPoint::FromGateway => RAW..DESTINATIONS,
        HookPoint::ToGateway | HookPoint::Out => FILTER..SOURCES,
        HookPoint::Forward => FILTER..i64::from(i32::MAX),
    }
}

/// Before connections are looked up, at -200 (`NF_IP_PRI_RAW`).
const RAW: i64 = -300;

/// Behind that (`NF_IP_PRI_MANGLE`).
const MANGLE: i64 = -150;

/// Where destinations are translated (`NF_IP_PRI_NAT_DST`).
const DESTINATIONS: i64 = -100;

/// Where most filters stand (`NF_IP_PRI_FILTER`).
const FILTER: i64 = 0;

/// Where sources are translated (`NF_IP_PRI_NAT_SRC`).
const SOURCES: i64 = 100;

/// What later fragments match, of IPv4 and of IPv6.
fn is_later() -> [Vec<Value>; 2] {
    let match_of =
        |op: &str, left: Value, right: Value| json!({"match": {"op": op, "left": left, "right": right}});
    let offset = json!({"payload": {"protocol": "ip", "field": "frag-off"}});
    let of_six = json!({"exthdr": {"name": "frag", "field": "frag-off"}});
    [
        vec![match_of("!=", json!({"&": [offset, 0x1fff]}), json!(0))],
        vec![
            match_of("==", json!({"meta": {"key": "nfproto"}}), json!("ipv6")),
            match_of("!=", of_six, json!(0)),
        ],
    ]
}
