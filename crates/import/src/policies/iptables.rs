//! A whole dump of `iptables-save` or `ip6tables-save` as a policy: each chain is a group, and the chains
//! that Linux calls are asked at its hooks, in its order.
//!
//! ```text
//! PREROUTING   raw, mangle              In
//! INPUT        mangle, filter, security ToGateway
//! FORWARD      mangle, filter, security Forward
//! OUTPUT       raw, mangle, filter, security FromGateway
//! POSTROUTING  mangle                   Out
//! ```
//!
//! Packets of the other family pass, as Linux asks no chain of the dump about them: the first rule of each
//! chain that Linux calls says so.

use super::imported::{self, ImportedPolicy, PolicyOptions};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::conditions::Naming;
use crate::iptables::dump::{RuleLine, Table, refuse_other_family, rule_line, tables};
use crate::iptables::matches::put_together;
use crate::iptables::rule::{ChainPlace, Context, Purpose};
use crate::iptables::sets::AddressSets;
use crate::iptables::words::Argument;
use crate::text::{Line, shown};
use policy::{
    AskedFamilies, DEEPEST_JUMPS, Hook, HookPoint, MOST_RULES, MatchOrder, PacketField, PolicyRule,
    Remembers, RuleAction, RuleCondition, RuleGroup, RulePlace, Values,
};
use std::collections::BTreeSet;

/// The tables that decide about packets, in the order in which Linux asks them at one hook.
const TABLES: [&str; 4] = ["raw", "mangle", "filter", "security"];

/// The chains that Linux itself calls.
const BASE_CHAINS: [(&str, HookPoint); 5] = [
    ("PREROUTING", HookPoint::In),
    ("INPUT", HookPoint::ToGateway),
    ("FORWARD", HookPoint::Forward),
    ("OUTPUT", HookPoint::FromGateway),
    ("POSTROUTING", HookPoint::Out),
];

/// The point at which Linux calls a chain of a table.
fn point(table: &str, chain: &str) -> Option<HookPoint> {
    let (_, point) = BASE_CHAINS.into_iter().find(|(name, _)| *name == chain)?;
    let called = match table {
        "raw" => matches!(point, HookPoint::In | HookPoint::FromGateway),
        "mangle" => true,
        "nat" => point != HookPoint::Forward,
        _ => !matches!(point, HookPoint::In | HookPoint::Out),
    };
    called.then_some(point)
}

pub(super) fn read(text: &[u8], options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    refuse_other_family(text, options.family)?;
    let mut sets = AddressSets::default();
    let tables = tables(text, Some(&mut sets))?;
    sets.give(&options.tables, options.family);
    if tables.is_empty() {
        let advice = "write what `iptables-save` prints; a machine without rules has none that could be kept";
        return Err(ImportError::new(1, 1, "the dump has no table", advice));
    }
    let naming = Naming::Ports(options.interfaces.clone());
    let mut reader = Reader {
        family: options.family,
        context: Context::new(Purpose::Policy, options.family, &naming)
            .with_sets(sets)
            .skips_marks(options.skip_marks),
        imported: ImportedPolicy::default(),
    };
    let mut lines = Vec::with_capacity(tables.len());
    for table in &tables {
        let rules: Vec<RuleLine<'_>> =
            table.rules.iter().map(|line| rule_line(*line, table)).collect::<Result<_, _>>()?;
        lines.push(rules);
    }
    let count = lines.iter().map(Vec::len).sum::<usize>();
    if count > MOST_RULES {
        let what = format!("the dump has {count} rules");
        return Err(ImportError::new(1, 1, what, format!("a policy has at most {MOST_RULES}")));
    }
    let mut kept: Vec<(&Table<'_>, Vec<RuleLine<'_>>)> = Vec::new();
    for (table, rules) in tables.iter().zip(lines) {
        match table.name {
            "nat" => reader.translation(table, &rules, options.skip_nat),
            name if TABLES.contains(&name) => kept.push((table, rules)),
            name => {
                let what = format!("the table `{}` is not known", shown(name));
                let advice = format!("known are {} and nat", TABLES.join(", "));
                reader.imported.refused.push(ImportError::new(table.line, 1, what, advice));
            }
        }
    }
    kept.sort_by_key(|(table, _)| TABLES.iter().position(|name| *name == table.name));
    for (table, rules) in kept {
        reader.table(table, rules);
    }
    Ok(reader.finish(options))
}

struct Reader {
    family: AddressFamily,
    context: Context,
    imported: ImportedPolicy,
}

impl Reader {
    /// Refuses what the table `nat` does, since nothing translates addresses here. If somebody else does
    /// (`skip`), rules that translate are left aside, and only such rules.
    fn translation(&mut self, table: &Table<'_>, rules: &[RuleLine<'_>], skip: bool) {
        const ADVICE: &str = "address translation is not read yet; take the table out of the dump, or leave it aside by \
                              `skip_nat` if the program translates addresses itself";
        for ((chain, policy), line) in table.chains.iter().zip(&table.policies) {
            if let (Some(false), Some(line)) = (policy, line) {
                let what = format!("the chain {} of the table `nat` drops packets", shown(chain));
                self.imported.refused.push(ImportError::new(*line, 1, what, ADVICE));
            }
        }
        if skip && !rules.is_empty() {
            self.context.addresses_are_translated();
        }
        for rule in rules.iter().filter(|rule| !skip || !only_translates(table, rule)) {
            let what = if skip {
                "a rule of the table `nat` does more than NAT"
            } else {
                "a rule of the table `nat` (NAT)"
            };
            self.imported.refused.push(rule.append.error(what, ADVICE));
        }
    }

    fn table(&mut self, table: &Table<'_>, rules: Vec<RuleLine<'_>>) {
        let base = self.imported.policy.groups.len();
        let too_deep = self.too_deep(table, &rules);
        let places = places(table, &rules);
        for ((name, policy), line) in table.chains.iter().zip(&table.policies) {
            let group = self.imported.policy.groups.len();
            let line = line.unwrap_or(table.line);
            self.hook(table, name, *policy, line, group);
            let is_base = point(table.name, name).is_some();
            let rules = if is_base { vec![self.gate(line)] } else { Vec::new() };
            let name = format!("{}/{name}", table.name);
            self.imported.policy.groups.push(RuleGroup { name, order: MatchOrder::First, rules });
        }
        let kept = table.rules.iter().zip(rules).enumerate().filter(|(index, _)| !too_deep.contains(index));
        for (_, (line, rule)) in kept {
            let group = base + rule.chain;
            match self.rule(*line, rule, table, &places, base) {
                Ok(rule) => {
                    self.imported.policy.groups[group].rules.extend(rule);
                    self.imported.kept += 1;
                }
                Err(error) => self.imported.refused.push(error),
            }
        }
    }

    /// The rule by which packets of the other family pass.
    fn gate(&self, line: u32) -> PolicyRule {
        let text = format!("the dump is of {}", self.family.name());
        imported::gate(self.version(), RulePlace { line, column: 1 }, text)
    }

    fn version(&self) -> u128 {
        if self.family == AddressFamily::V4 { 4 } else { 6 }
    }

    /// Calls a chain where Linux does, and refuses a policy that it would not take.
    fn hook(&mut self, table: &Table<'_>, name: &str, policy: Option<bool>, line: u32, group: usize) {
        let refused = &mut self.imported.refused;
        let place = RulePlace { line, column: 1 };
        match (point(table.name, name), policy) {
            (Some(point), Some(passes)) => {
                let default = if passes { RuleAction::Pass } else { RuleAction::Block };
                self.imported.policy.hooks.push(Hook { point, group, default, place });
            }
            (Some(_), None) => {
                let what = format!("the chain {} has no policy", shown(name));
                refused.push(ImportError::new(line, 1, what, "write ACCEPT or DROP behind its name"));
            }
            (None, Some(_)) => {
                let what = format!(
                    "Linux calls no chain `{}` of the table `{}`, so it has no policy",
                    shown(name),
                    table.name
                );
                refused.push(ImportError::new(line, 1, what, "write `-` behind its name"));
            }
            (None, None) => {}
        }
    }

    /// Refuses jumps that lead in a circle or too deep, and says which they are.
    fn too_deep(&mut self, table: &Table<'_>, rules: &[RuleLine<'_>]) -> BTreeSet<usize> {
        let faults: BTreeSet<usize> = too_deep(&jumps(table, rules)).into_iter().collect();
        for index in &faults {
            let what = "this jump leads in a circle, or deeper than jumps may";
            let advice = format!("remove a jump; they lead through at most {DEEPEST_JUMPS} chains");
            self.imported.refused.push(rules[*index].append.error(what, advice));
        }
        faults
    }

    /// The rule of a line; none where all that it does is to mark, and marks are left aside.
    fn rule(
        &mut self,
        line: Line<'_>,
        rule: RuleLine<'_>,
        table: &Table<'_>,
        places: &[ChainPlace<'_>],
        base: usize,
    ) -> Result<Option<PolicyRule>, ImportError> {
        let place = RulePlace { line: line.number, column: rule.append.column };
        // No rule jumps to a chain that Linux itself calls.
        let chain = |name: &str| {
            table.number(name).filter(|number| !places[*number].is_base).map(|number| base + number)
        };
        let read = self.context.rule(line, rule.words, &places[rule.chain], &chain)?;
        if read.only_marks {
            return Ok(None);
        }
        let mut all = vec![RuleCondition::Holds(PacketField::Family, vec![Values::exact(self.version())])];
        match read.matches.condition() {
            RuleCondition::All(more) => all.extend(more),
            one => all.push(one),
        }
        Ok(Some(PolicyRule {
            place,
            text: line.text.trim().into(),
            condition: RuleCondition::All(all),
            action: read.action,
            decides_at_once: false,
            log: read.log,
            count: read.only_counts,
        }))
    }

    fn finish(self, options: &PolicyOptions) -> ImportedPolicy {
        let mut imported = self.imported;
        let (memories, asks_connections) = self.context.into_memories();
        imported.policy.memories = memories;
        if asks_connections {
            imported.policy.remembers = Remembers::Passed;
            imported.policy.follows_icmp = true;
            let rules = imported.policy.groups.iter_mut().flat_map(|group| &mut group.rules);
            rules.for_each(|rule| put_together(&mut rule.condition));
        }
        imported.policy.interfaces = options.interfaces.clone();
        if self.family == AddressFamily::V4 {
            imported.policy.families = AskedFamilies::Version4;
        }
        imported.refused.sort();
        imported
    }
}

/// Whether all that a rule of the table `nat` does is to translate addresses, to say which packets have
/// theirs translated, or to log.
fn only_translates(table: &Table<'_>, rule: &RuleLine<'_>) -> bool {
    const TARGETS: [&str; 11] = [
        "DNAT",
        "SNAT",
        "MASQUERADE",
        "NETMAP",
        "REDIRECT",
        "ACCEPT",
        "RETURN",
        "LOG",
        "NFLOG",
        "ULOG",
        "TRACE",
    ];
    targets(&rule.words).all(|target| TARGETS.contains(&target) || table.number(target).is_some())
}

/// What stands behind each word that looks like a jump: a comment that reads `-j` hides none.
fn targets<'w>(words: &'w [Argument<'_>]) -> impl Iterator<Item = &'w str> {
    let is_jump = |word: &str| matches!(word, "-j" | "--jump" | "-g" | "--goto");
    let behind = words.iter().zip(words.iter().skip(1));
    behind.filter(move |(word, _)| is_jump(&word.text)).map(|(_, target)| &*target.text)
}

/// For each chain where its rules jump to, and their numbers.
fn jumps(table: &Table<'_>, rules: &[RuleLine<'_>]) -> Vec<Vec<(usize, usize)>> {
    let mut jumps = vec![Vec::new(); table.chains.len()];
    for (index, rule) in rules.iter().enumerate() {
        let chains = targets(&rule.words).filter_map(|target| table.number(target));
        jumps[rule.chain].extend(chains.map(|chain| (chain, index)));
    }
    jumps
}

/// Where packets come to each chain of a table from.
fn places<'t>(table: &Table<'t>, rules: &[RuleLine<'_>]) -> Vec<ChainPlace<'t>> {
    let jumps = jumps(table, rules);
    let place = |(name, _): &(&str, Option<bool>)| {
        let points: Vec<HookPoint> = point(table.name, name).into_iter().collect();
        ChainPlace { table: table.name, is_base: !points.is_empty(), points }
    };
    let mut places: Vec<ChainPlace<'t>> = table.chains.iter().map(place).collect();
    for (name, point) in BASE_CHAINS {
        let Some(start) = table.number(name).filter(|start| places[*start].is_base) else { continue };
        let (mut open, mut seen) = (vec![start], vec![false; places.len()]);
        seen[start] = true;
        while let Some(chain) = open.pop() {
            for (next, _) in &jumps[chain] {
                if !std::mem::replace(&mut seen[*next], true) {
                    places[*next].points.push(point);
                    open.push(*next);
                }
            }
        }
    }
    places
}

/// The rules whose jumps close a circle, or after which jumps lead deeper than [`DEEPEST_JUMPS`]. `jumps` has
/// for each chain where its rules jump to, and their numbers.
fn too_deep(jumps: &[Vec<(usize, usize)>]) -> Vec<usize> {
    let mut faults = Vec::new();
    // How deep jumps lead from each chain that is finished.
    let mut depths: Vec<Option<usize>> = vec![None; jumps.len()];
    let mut on_the_way = vec![false; jumps.len()];
    for start in 0..jumps.len() {
        // Chains on the way here, and which of their jumps is next.
        let mut way = vec![(start, 0)];
        while let Some((chain, next)) = way.pop() {
            if depths[chain].is_some() {
                continue;
            }
            on_the_way[chain] = true;
            match jumps[chain].get(next) {
                Some((target, rule)) if on_the_way[*target] => {
                    faults.push(*rule);
                    way.push((chain, next + 1));
                }
                Some((target, _)) if depths[*target].is_none() => {
                    way.extend([(chain, next), (*target, 0)]);
                }
                Some(_) => way.push((chain, next + 1)),
                None => {
                    on_the_way[chain] = false;
                    let deepest =
                        jumps[chain].iter().filter_map(|(target, rule)| Some((depths[*target]?, *rule)));
                    let (depth, rule) = deepest.max().map_or((0, None), |(depth, rule)| (depth, Some(rule)));
                    depths[chain] = Some(depth + 1);
                    if let Some(rule) = rule.filter(|_| depth == DEEPEST_JUMPS) {
                        faults.push(rule);
                    }
                }
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests;
