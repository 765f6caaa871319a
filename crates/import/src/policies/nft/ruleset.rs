//! The objects of a whole ruleset: which chains packets reach, by which hooks, and where connections are
//! followed.

use crate::ImportError;
use crate::nft::document::{ChainObject, Document, RuleObject, SetObject, Source, TableObject, flatten};
use crate::nft::hooks::{self, TRANSLATIONS};
use crate::nft::operands::{NamedSet, Sets};
use crate::text::shown;
use policy::{DEEPEST_JUMPS, HookPoint};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Before chains of this priority at prerouting and output it is not known to which connection a packet
/// belongs (`NF_IP_PRI_CONNTRACK`).
const CONNECTIONS: i64 = -200;

/// And before chains of this one its fragments are not put together (`NF_IP_PRI_CONNTRACK_DEFRAG`).
const REASSEMBLY: i64 = -400;

const PRINT_AGAIN: &str = "print the whole ruleset with `nft -j list ruleset`";

/// Whose packets a table sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Families {
    V4,
    V6,
    Both,
}

/// A chain.
pub(super) struct Chain<'a> {
    pub(super) object: ChainObject,
    pub(super) raw: &'a RawValue,
    /// Those of its table.
    pub(super) families: Families,
    /// Where packets come to it, if it is a base chain that filters them.
    pub(super) point: Option<HookPoint>,
    pub(super) priority: i64,
}

/// A rule, its statements read as far as JSON goes.
pub(super) struct Rule<'a> {
    pub(super) raw: &'a RawValue,
    /// Index of its chain.
    pub(super) chain: usize,
    /// The text of each statement, its kind and what it says.
    pub(super) statements: Vec<(&'a RawValue, String, Value)>,
}

/// How packets come to a chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached {
    /// By which hooks.
    pub(super) points: BTreeSet<HookPoint>,
    /// Whether that may be before connections are looked up.
    pub(super) before_connections: bool,
    /// Whether that may be before fragments are put together.
    pub(super) before_reassembly: bool,
    /// How many chains lie between, at most.
    depth: usize,
    /// The number of its group.
    pub(super) group: usize,
}

/// The chains that packets reach.
pub(super) struct Ways {
    /// How packets come to each.
    pub(super) chains: BTreeMap<usize, Reached>,
    /// For each group, whether its chain, or one that it leads to, may drop a packet.
    pub(super) may_block: Vec<bool>,
}

/// A ruleset without its dormant tables.
pub(super) struct Ruleset<'a> {
    pub(super) chains: Vec<Chain<'a>>,
    /// The rules of each chain, in order.
    pub(super) rules: Vec<Vec<Rule<'a>>>,
    numbers: HashMap<[String; 3], usize>,
    sets: HashMap<[String; 2], Sets>,
    /// Chains and rules of families of which a policy says nothing.
    others: Vec<(ChainObject, &'a RawValue)>,
    /// All rules, as [`hooks::changes_nothing`] looks at them.
    objects: Vec<RuleObject<'a>>,
    /// For each chain those that its rules lead to, each with the first rule that does.
    pub(super) leads: Vec<BTreeMap<usize, &'a RawValue>>,
}

impl<'a> Ruleset<'a> {
    pub(super) fn read(source: Source<'_>, document: &Document<'a>) -> Result<Self, ImportError> {
        let mut ruleset = Self {
            chains: Vec::new(),
            rules: Vec::new(),
            numbers: HashMap::new(),
            sets: HashMap::new(),
            others: Vec::new(),
            objects: Vec::new(),
            leads: Vec::new(),
        };
        let (mut dormant, mut bodies) = (BTreeSet::new(), Vec::new());
        for raw in &document.nftables {
            let object: BTreeMap<String, &'a RawValue> = source.object(raw, "object of a ruleset")?;
            let (mut kind, mut body) = source.only(raw, object, "object of a ruleset")?;
            if matches!(&*kind, "add" | "delete") {
                let is_first = bodies.is_empty() && dormant.is_empty();
                (kind, body) = ("table".to_owned(), made_anew(source, body, is_first)?);
            }
            match &*kind {
                "table" => {
                    let table: TableObject = source.object(body, "table")?;
                    if table.flags.iter().flat_map(flatten).any(|flag| flag == "dormant") {
                        dormant.insert([table.family, table.name]);
                    }
                }
                "chain" | "set" | "map" | "rule" => bodies.push((kind, body)),
                // What a rule may refer to by name.
                "metainfo" | "flowtable" | "counter" | "quota" | "limit" | "ct helper" | "ct timeout"
                | "ct expectation" | "secmark" | "synproxy" => {}
                _ => {
                    let what = format!("`{}` is no object of a ruleset that is known here", shown(&kind));
                    return Err(source.error(raw, what, PRINT_AGAIN));
                }
            }
        }
        let sleeps = |family: &str, table: &str| dormant.contains(&[family.to_owned(), table.to_owned()]);
        let mut rules = Vec::new();
        for (kind, body) in bodies {
            match &*kind {
                "chain" => {
                    let chain: ChainObject = source.object(body, "chain")?;
                    if !sleeps(&chain.family, &chain.table) {
                        ruleset.add_chain(source, chain, body)?;
                    }
                }
                "rule" => {
                    let rule: RuleObject<'a> = source.object(body, "rule")?;
                    if !sleeps(&rule.family, &rule.table) {
                        rules.push((body, rule));
                    }
                }
                _ => {
                    let set: SetObject = source.object(body, "set")?;
                    let (table, name) = ([set.family.clone(), set.table.clone()], set.name.clone());
                    let set = NamedSet::new(kind == "map", set);
                    if ruleset.sets.entry(table).or_default().insert(name.clone(), set).is_some() {
                        let what = format!("the set `{}` is there twice", shown(&name));
                        return Err(source.error(body, what, "remove one"));
                    }
                }
            }
        }
        ruleset.rules.resize_with(ruleset.chains.len(), Vec::new);
        for (raw, rule) in rules {
            ruleset.add_rule(source, raw, &rule)?;
            ruleset.objects.push(rule);
        }
        ruleset.note_updates();
        ruleset.leads = ruleset.rules.iter().map(|rules| ruleset.leads(rules)).collect();
        Ok(ruleset)
    }

    fn add_chain(
        &mut self,
        source: Source<'_>,
        object: ChainObject,
        raw: &'a RawValue,
    ) -> Result<(), ImportError> {
        if !matches!(object.policy.as_deref(), None | Some("accept" | "drop")) {
            let what = format!("`{}` is no policy", shown(object.policy.as_deref().unwrap_or_default()));
            return Err(source.error(raw, what, "a policy is accept or drop"));
        }
        let families = match &*object.family {
            "ip" => Families::V4,
            "ip6" => Families::V6,
            "inet" => Families::Both,
            _ => {
                self.others.push((object, raw));
                return Ok(());
            }
        };
        let hook = object.hook.as_deref();
        let filters = matches!(object.kind.as_deref(), Some("filter" | "route"));
        let point = hook.filter(|_| filters).and_then(point_of);
        let priority = object.prio.as_ref().and_then(Value::as_i64);
        if point.is_some() && priority.is_none() {
            return Err(source.error(raw, "the priority of the chain is no number", PRINT_AGAIN));
        }
        let key = [&object.family, &object.table, &object.name].map(String::clone);
        if self.numbers.insert(key, self.chains.len()).is_some() {
            let what = format!("the chain `{}` is there twice", shown(&object.name));
            return Err(source.error(raw, what, "remove one"));
        }
        let priority = priority.unwrap_or_default();
        self.chains.push(Chain { object, raw, families, point, priority });
        Ok(())
    }

    fn add_rule(
        &mut self,
        source: Source<'_>,
        raw: &'a RawValue,
        rule: &RuleObject<'a>,
    ) -> Result<(), ImportError> {
        if !matches!(&*rule.family, "ip" | "ip6" | "inet") {
            return Ok(());
        }
        let Some(chain) = self.number(&rule.family, &rule.table, &rule.chain) else {
            let what = format!("the rule is of a chain `{}` that is not there", shown(&rule.chain));
            return Err(source.error(raw, what, PRINT_AGAIN));
        };
        let read = |part: &&'a RawValue| {
            let (kind, body) = hooks::statement(source, part)?;
            Ok((*part, kind, body))
        };
        let statements = rule.expr.iter().map(read).collect::<Result<Vec<_>, ImportError>>()?;
        self.rules[chain].push(Rule { raw, chain, statements });
        Ok(())
    }

    /// Marks the sets that rules change, which printed rulesets may not say.
    fn note_updates(&mut self) {
        for rule in self.rules.iter().flatten() {
            let object = &self.chains[rule.chain].object;
            let changes = rule.statements.iter().filter(|(_, kind, _)| matches!(&**kind, "set" | "map"));
            for (_, kind, body) in changes {
                let name = body.get(kind).and_then(Value::as_str).and_then(|name| name.strip_prefix('@'));
                let table = [&object.family, &object.table].map(String::clone);
                let set = self.sets.get_mut(&table).zip(name).and_then(|(sets, name)| sets.get_mut(name));
                if let Some(set) = set {
                    set.is_dynamic = true;
                }
            }
        }
    }

    pub(super) fn number(&self, family: &str, table: &str, chain: &str) -> Option<usize> {
        self.numbers.get(&[family, table, chain].map(str::to_owned)).copied()
    }

    /// The chain of this name in the table of another one.
    pub(super) fn beside(&self, chain: usize, name: &str) -> Option<usize> {
        let object = &self.chains[chain].object;
        self.number(&object.family, &object.table, name)
            .filter(|&next| self.chains[next].object.hook.is_none())
    }

    /// The sets of the table of a chain.
    pub(super) fn sets(&self, chain: usize) -> Option<&Sets> {
        let object = &self.chains[chain].object;
        self.sets.get(&[&object.family, &object.table].map(String::clone))
    }

    /// The chains that the rules of one chain lead to, each with the first rule that does. A map that several
    /// of them ask is looked through once.
    fn leads(&self, rules: &[Rule<'a>]) -> BTreeMap<usize, &'a RawValue> {
        let (mut leads, mut asked) = (BTreeMap::new(), BTreeSet::new());
        for rule in rules {
            let mut names = BTreeSet::new();
            for (_, kind, body) in &rule.statements {
                if matches!(&**kind, "jump" | "goto") {
                    names.extend(body.get("target").and_then(Value::as_str));
                }
                let Some(data) = body.get("data").filter(|_| kind == "vmap") else { continue };
                let named = data.as_str().and_then(|name| name.strip_prefix('@'));
                match named.and_then(|name| self.sets(rule.chain)?.get_key_value(name)) {
                    Some((name, map)) if asked.insert(name) => {
                        map.elements().iter().for_each(|element| verdicts(element, &mut names));
                    }
                    Some(_) => {}
                    None => verdicts(data, &mut names),
                }
            }
            for next in names.into_iter().filter_map(|name| self.beside(rule.chain, name)) {
                leads.entry(next).or_insert(rule.raw);
            }
        }
        leads
    }

    /// The chains that packets reach.
    ///
    /// # Errors
    /// Jumps in a circle, or deeper than [`DEEPEST_JUMPS`].
    pub(super) fn reached(&self, source: Source<'_>) -> Result<Ways, ImportError> {
        let mut ways: BTreeMap<usize, Reached> = BTreeMap::new();
        let mut open = Vec::new();
        for (number, chain) in self.chains.iter().enumerate() {
            let Some(point) = chain.point else { continue };
            let early = matches!(point, HookPoint::In | HookPoint::FromGateway);
            let way = Reached {
                points: BTreeSet::from([point]),
                before_connections: early && chain.priority <= CONNECTIONS,
                before_reassembly: early && chain.priority <= REASSEMBLY,
                depth: 1,
                group: 0,
            };
            ways.insert(number, way);
            open.push(number);
        }
        // A chain is looked at again where a way to it says more than those before it; in a circle the depth
        // would grow for ever.
        while let Some(number) = open.pop() {
            let way = ways[&number].clone();
            for (next, raw) in &self.leads[number] {
                if way.depth == DEEPEST_JUMPS {
                    let what = format!("jumps lead in a circle, or deeper than {DEEPEST_JUMPS} chains");
                    return Err(source.error(raw, what, "remove a jump"));
                }
                let known = ways.entry(*next).or_default();
                let before = (known.points.len(), known.before_connections, known.before_reassembly);
                known.points.extend(&way.points);
                known.before_connections |= way.before_connections;
                known.before_reassembly |= way.before_reassembly;
                let after = (known.points.len(), known.before_connections, known.before_reassembly);
                if before != after || known.depth < way.depth + 1 {
                    known.depth = known.depth.max(way.depth + 1);
                    open.push(*next);
                }
            }
        }
        ways.values_mut().enumerate().for_each(|(group, way)| way.group = group);
        let may_block = self.may_block();
        let may_block = ways.keys().map(|chain| may_block[*chain]).collect();
        Ok(Ways { chains: ways, may_block })
    }

    /// For IPv4 and IPv6, whether connections are followed, so that fragments are put together first.
    pub(super) fn followed(&self) -> [bool; 2] {
        let mut followed = [false; 2];
        for rule in self.rules.iter().flatten() {
            let asks =
                |(_, kind, body): &(&RawValue, String, Value)| kind == "ct count" || asks_connection(body);
            if rule.statements.iter().any(asks) {
                let families = self.chains[rule.chain].families;
                followed[0] |= families != Families::V6;
                followed[1] |= families != Families::V4;
            }
        }
        followed
    }

    /// For each chain, whether it, or one that it leads to, may drop a packet.
    fn may_block(&self) -> Vec<bool> {
        let harmless = |(_, kind, _): &(&RawValue, String, Value)| {
            !matches!(&**kind, "drop" | "reject" | "goto" | "vmap" | "queue")
        };
        let blocks = |rules: &Vec<Rule<'_>>| !rules.iter().flat_map(|rule| &rule.statements).all(harmless);
        let mut may_block: Vec<bool> = self.rules.iter().map(blocks).collect();
        let mut led_from = vec![Vec::new(); may_block.len()];
        for (chain, leads) in self.leads.iter().enumerate() {
            leads.keys().for_each(|next| led_from[*next].push(chain));
        }
        let mut open: Vec<usize> = (0..may_block.len()).filter(|chain| may_block[*chain]).collect();
        while let Some(chain) = open.pop() {
            for before in &led_from[chain] {
                if !std::mem::replace(&mut may_block[*before], true) {
                    open.push(*before);
                }
            }
        }
        may_block
    }

    /// What chains that a policy has no place for may do to packets: each is to let everything pass.
    pub(super) fn others(&self, source: Source<'_>) -> Vec<ImportError> {
        const ADVICE: &str =
            "write it as a chain of ip, ip6 or inet that filters, or take it out of the ruleset";
        let own = self.chains.iter().filter(|chain| chain.object.hook.is_some() && chain.point.is_none());
        let own = own.map(|chain| (&chain.object, chain.raw));
        let mut refused = Vec::new();
        for (chain, raw) in own.chain(self.others.iter().map(|(chain, raw)| (chain, *raw))) {
            if chain.hook.is_none() {
                continue;
            }
            if chain.policy.as_deref() == Some("drop") {
                let what =
                    format!("the chain `{}` decides about packets where no policy can", shown(&chain.name));
                refused.push(source.error(raw, what, ADVICE));
                continue;
            }
            let before = refused.len();
            if chain.kind.as_deref() == Some("nat") {
                refused.extend(self.translations(source, chain));
            }
            if refused.len() == before {
                refused.extend(hooks::changes_nothing(source, self.objects.iter(), chain, &[]).err());
            }
        }
        refused
    }

    /// The statements of a chain, and of those that it leads to, that translate addresses.
    fn translations(&self, source: Source<'_>, chain: &ChainObject) -> Vec<ImportError> {
        let Some(first) = self.number(&chain.family, &chain.table, &chain.name) else { return Vec::new() };
        let (mut seen, mut open, mut refused) = (BTreeSet::from([first]), vec![first], Vec::new());
        while let Some(chain) = open.pop() {
            for rule in &self.rules[chain] {
                let translates = rule.statements.iter().find(|(_, kind, _)| TRANSLATIONS.contains(&&**kind));
                refused.extend(translates.map(|(raw, kind, _)| not_translated(source, raw, kind)));
            }
            open.extend(self.leads[chain].keys().copied().filter(|next| seen.insert(*next)));
        }
        refused
    }
}

/// The table that a command makes or deletes before there is anything else, so that it changes nothing.
fn made_anew<'a>(source: Source<'_>, raw: &'a RawValue, is_first: bool) -> Result<&'a RawValue, ImportError> {
    let object: BTreeMap<String, &'a RawValue> = source.object(raw, "object of a ruleset")?;
    let (kind, body) = source.only(raw, object, "object of a ruleset")?;
    if kind == "table" && is_first && source.object::<TableObject>(body, "table")?.flags.is_none() {
        return Ok(body);
    }
    let what = "only tables without flags are added and deleted here, before all other objects";
    Err(source.error(raw, what, PRINT_AGAIN))
}

/// Why a statement that translates addresses is refused.
pub(super) fn not_translated(source: Source<'_>, raw: &RawValue, kind: &str) -> ImportError {
    let what = format!("the statement `{}` changes addresses, and NAT is not read yet", shown(kind));
    source.error(
        raw,
        what,
        "leave the NAT out of the ruleset, and write it as a program with `std.translate`",
    )
}

/// The names of chains that the verdicts of a map lead to.
fn verdicts<'v>(value: &'v Value, names: &mut BTreeSet<&'v str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| verdicts(value, names)),
        Value::Object(members) => {
            for (key, value) in members {
                match key.as_str() {
                    "jump" | "goto" => names.extend(value.get("target").and_then(Value::as_str)),
                    _ => verdicts(value, names),
                }
            }
        }
        _ => {}
    }
}

fn asks_connection(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().any(asks_connection),
        Value::Object(members) => members.iter().any(|(key, value)| key == "ct" || asks_connection(value)),
        _ => false,
    }
}

/// The point at which packets come to a hook; `None` for hooks that a policy has no point for.
fn point_of(hook: &str) -> Option<HookPoint> {
    Some(match hook {
        "prerouting" => HookPoint::In,
        "forward" => HookPoint::Forward,
        "input" => HookPoint::ToGateway,
        "output" => HookPoint::FromGateway,
        "postrouting" => HookPoint::Out,
        _ => return None,
    })
}
