//! One chain of a ruleset as rules: its table, the chains and sets there, and the statements of rules.

use super::ChainOptions;
use super::document::{ChainObject, Document, RuleObject, SetObject, Source, TableObject, document, flatten};
use super::hooks;
use super::matches::Matcher;
use super::operands::{self, NamedSet, Sets};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::chains::{Chain, Step, Target, unroll};
use crate::region::Region;
use crate::ruleset::{ChainPolicy, ImportedRules};
use crate::text::{Lines, one_of, shown, utf8};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

/// Reads one chain of what `nft -j list ruleset` prints: `forward`, if none is asked for.
///
/// # Errors
/// The first place that is no JSON or no ruleset; the first rule of the wanted chain, or of one that it leads
/// to, that means more than a rule can say; jumps in a circle or to nowhere; more rules than the limit.
pub fn read(text: &[u8], options: &ChainOptions) -> Result<ImportedRules, ImportError> {
    let text = utf8(text)?;
    let lines = Lines::of(text.as_bytes());
    let source = Source::new(text, &lines);
    let document = document(text)?;
    let objects = Objects::read(source, &document, options)?;
    let start = objects.start(source, options)?;
    let other = hooks::others_decide_nothing(source, &objects, start).err();
    if let (false, Some(other)) = (options.lenient, &other) {
        return Err(other.clone());
    }
    let mut matcher = Matcher::new(source, options, &objects.sets);
    let mut chains: Vec<Chain> = Vec::with_capacity(objects.chains.len());
    for (object, _) in &objects.chains {
        let policy = object.hook.as_ref().map(|_| object.policy.as_deref() != Some("drop"));
        chains.push(Chain { name: object.name.clone(), policy, steps: Vec::new() });
    }
    for (raw, rule) in &objects.rules {
        let Some(chain) = objects.number(&rule.chain) else {
            let what = format!("the rule is of a chain `{}` that is not there", shown(&rule.chain));
            return Err(source.error(raw, what, "print the whole ruleset"));
        };
        let mut log = false;
        let decided = statements(source, &rule.expr, raw, &mut matcher, &objects, &mut log);
        let ImportError { line, column, .. } = source.error(raw, "", "");
        chains[chain].steps.push(Step { line, column, text: raw.get().into(), log, rule: decided });
    }
    let (decisions, refused) = unroll(&chains, start, options)?;
    let mut rules = ImportedRules::of(options.family, decisions, chains[start].policy);
    matcher.into_interfaces().tell(&mut rules);
    rules.refused = other.into_iter().chain(refused).collect();
    let (chain, body) = &objects.chains[start];
    rules.policy = rules.default.map(|pass| ChainPolicy {
        line: source.error(body, "", "").line,
        words: format!(
            "the chain {} has the policy {}",
            shown(&chain.name),
            if pass { "accept" } else { "drop" }
        ),
    });
    Ok(rules)
}

/// The objects of the wanted table, and the chains and rules of others that see the same packets.
pub(super) struct Objects<'a> {
    family: String,
    pub(super) chains: Vec<(ChainObject, &'a RawValue)>,
    numbers: HashMap<String, usize>,
    sets: Sets,
    pub(super) rules: Vec<(&'a RawValue, RuleObject<'a>)>,
    pub(super) other_chains: Vec<(ChainObject, &'a RawValue)>,
    pub(super) other_rules: Vec<(&'a RawValue, RuleObject<'a>)>,
}

impl<'a> Objects<'a> {
    fn read(
        source: Source<'_>,
        document: &Document<'a>,
        options: &ChainOptions,
    ) -> Result<Self, ImportError> {
        let mut objects = Self {
            family: String::new(),
            chains: Vec::new(),
            numbers: HashMap::new(),
            sets: Sets::new(),
            rules: Vec::new(),
            other_chains: Vec::new(),
            other_rules: Vec::new(),
        };
        for raw in &document.nftables {
            let object: BTreeMap<String, &'a RawValue> = source.object(raw, "object of a ruleset")?;
            let (kind, body) = source.only(raw, object, "object of a ruleset")?;
            match &*kind {
                "chain" => {
                    let chain: ChainObject = source.object(body, "chain")?;
                    if !matches!(chain.policy.as_deref(), None | Some("accept" | "drop")) {
                        let what =
                            format!("`{}` is no policy", shown(chain.policy.as_deref().unwrap_or_default()));
                        return Err(source.error(body, what, "a policy is accept or drop"));
                    }
                    if objects.is_wanted(source, body, &chain.family, &chain.table, options)? {
                        let number = objects.chains.len();
                        if objects.numbers.insert(chain.name.clone(), number).is_some() {
                            let what = format!("the chain `{}` is there twice", shown(&chain.name));
                            return Err(source.error(body, what, "remove one"));
                        }
                        objects.chains.push((chain, body));
                    } else if passes_through(&chain.family, options) {
                        objects.other_chains.push((chain, body));
                    }
                }
                "set" | "map" => {
                    let set: SetObject = source.object(body, "set")?;
                    if objects.is_wanted(source, body, &set.family, &set.table, options)? {
                        let (name, set) = (set.name.clone(), NamedSet::new(kind == "map", set));
                        if objects.sets.insert(name.clone(), set).is_some() {
                            let what = format!("the set `{}` is there twice", shown(&name));
                            return Err(source.error(body, what, "remove one"));
                        }
                    }
                }
                "rule" => {
                    let rule: RuleObject<'a> = source.object(body, "rule")?;
                    if objects.is_wanted(source, body, &rule.family, &rule.table, options)? {
                        objects.rules.push((body, rule));
                    } else if passes_through(&rule.family, options) {
                        objects.other_rules.push((body, rule));
                    }
                }
                "table" => {
                    let table: TableObject = source.object(body, "table")?;
                    let wanted = table.name == options.table && sees(&table.family, options);
                    if wanted && table.flags.iter().flat_map(flatten).any(|flag| flag == "dormant") {
                        let what =
                            format!("the table `{}` is dormant: its rules do nothing", shown(&table.name));
                        return Err(source.error(body, what, "remove the flag, or the table"));
                    }
                }
                // What a rule may refer to by name, which is refused there where it matters.
                "metainfo" | "flowtable" | "counter" | "quota" | "limit" | "ct helper" | "ct timeout"
                | "ct expectation" | "secmark" | "synproxy" => {}
                _ => {
                    let what = format!("`{}` is no object of a ruleset that is known here", shown(&kind));
                    return Err(source.error(raw, what, "print the ruleset with `nft -j list ruleset`"));
                }
            }
        }
        objects.note_updates(source);
        Ok(objects)
    }

    /// Marks the sets that rules of any chain of the table change, which printed rulesets may not say.
    fn note_updates(&mut self, source: Source<'_>) {
        for part in self.rules.iter().flat_map(|(_, rule)| &rule.expr) {
            // What is no statement is refused where its chain is read.
            let Ok((kind, body)) = hooks::statement(source, part) else { continue };
            let changes = matches!(&*kind, "set" | "map");
            let name = body.get(&kind).and_then(Value::as_str).and_then(|name| name.strip_prefix('@'));
            if let Some(set) = name.filter(|_| changes).and_then(|name| self.sets.get_mut(name)) {
                set.is_dynamic = true;
            }
        }
    }

    fn is_wanted(
        &mut self,
        source: Source<'_>,
        body: &RawValue,
        family: &str,
        table: &str,
        options: &ChainOptions,
    ) -> Result<bool, ImportError> {
        if table != options.table || !sees(family, options) {
            return Ok(false);
        }
        if self.family.is_empty() {
            self.family = family.to_owned();
        }
        if self.family != family {
            let what = format!("there are tables `{}` of {} and of {family}", shown(table), self.family);
            return Err(source.error(body, what, "remove one of them, as both decide"));
        }
        Ok(true)
    }

    fn number(&self, chain: &str) -> Option<usize> {
        self.numbers.get(chain).copied()
    }

    fn start(&self, source: Source<'_>, options: &ChainOptions) -> Result<usize, ImportError> {
        let wanted = options.chain.as_deref().unwrap_or("forward");
        let start = self.number(wanted).ok_or_else(|| {
            let (table, chain) = (shown(&options.table), shown(wanted));
            let what =
                format!("there is no chain `{chain}` in a table `{table}` of {}", options.family.name());
            ImportError::new(1, 1, what, one_of(self.chains.iter().map(|(chain, _)| chain.name.as_str())))
        })?;
        let (chain, body) = &self.chains[start];
        let place = (chain.kind.as_deref(), chain.hook.as_deref());
        if options.chain.is_none() && place != (Some("filter"), Some("forward")) {
            let what = "the chain `forward` is no filter at the hook `forward`, so that it does not see what is forwarded";
            return Err(source.error(body, what, "put it there, or ask for another chain"));
        }
        Ok(start)
    }
}

/// Whether tables of a family see the wanted packets.
fn sees(family: &str, options: &ChainOptions) -> bool {
    let of_family = match options.family {
        AddressFamily::V4 => "ip",
        AddressFamily::V6 => "ip6",
    };
    family == of_family || family == "inet"
}

/// Whether the wanted packets may pass chains of a family: those of a device or a bridge are passed whatever
/// the addresses.
fn passes_through(family: &str, options: &ChainOptions) -> bool {
    sees(family, options) || matches!(family, "netdev" | "bridge")
}

/// What the statements of a rule do together.
fn statements(
    source: Source<'_>,
    statements: &[&RawValue],
    rule: &RawValue,
    matcher: &mut Matcher<'_>,
    objects: &Objects<'_>,
    log: &mut bool,
) -> Result<(Vec<Region>, Target), ImportError> {
    const ADVICE: &str = "a stateless rule matches fields of the packet and accepts, drops, rejects or jumps";
    let mut conditions = matcher.conditions();
    let mut target = None;
    for raw in statements {
        let (kind, body) = hooks::statement(source, raw)?;
        if target.is_some() {
            return Err(source.error(raw, "there is a statement behind the decision", ADVICE));
        }
        let chain = || {
            let name = body.get("target").and_then(Value::as_str).unwrap_or_default();
            objects.number(name).ok_or_else(|| {
                let what = format!("there is no chain `{}`", shown(name));
                source.error(raw, what, "print the whole ruleset")
            })
        };
        match &*kind {
            "match" => matcher.add(raw, &body, &mut conditions)?,
            "accept" => target = Some(Target::Decide(true)),
            "drop" => target = Some(Target::Decide(false)),
            "reject" => {
                matcher.reject(raw, &body, &mut conditions)?;
                target = Some(Target::Decide(false));
            }
            "return" => target = Some(Target::Return),
            "jump" => target = Some(Target::Jump(chain()?)),
            "goto" => target = Some(Target::Goto(chain()?)),
            // A count is no part of the decision, and the text of the rule keeps it.
            "counter" | "continue" | "comment" => {}
            "log" => *log = true,
            _ => {
                let cause = operands::cause(&kind);
                return Err(source.error(raw, format!("the statement `{}` {cause}", shown(&kind)), ADVICE));
            }
        }
    }
    let Some(target) = target else {
        let what =
            if *log { "the rule writes a log and decides nothing" } else { "the rule only counts packets" };
        return Err(source.error(rule, what, ADVICE));
    };
    Ok((matcher.regions(rule, &conditions)?, target))
}
