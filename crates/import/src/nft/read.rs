//! The objects of a ruleset: tables, chains, sets, and the statements of rules.

use super::ChainOptions;
use super::hooks;
use super::matches::{Matcher, Sets, flatten};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::chains::{Chain, Step, Target, unroll};
use crate::region::Region;
use crate::ruleset::{ChainPolicy, ImportedRules};
use crate::text::{Lines, one_of, shown, utf8};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    nftables: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct TableObject {
    family: String,
    name: String,
    flags: Option<Value>,
}

/// What stands in an object besides, and changes nothing about what becomes of a packet.
type Besides = Option<IgnoredAny>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainObject {
    pub(super) family: String,
    pub(super) table: String,
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) hook: Option<String>,
    pub(super) policy: Option<String>,
    #[serde(rename = "handle")]
    _handle: Besides,
    #[serde(rename = "prio")]
    _prio: Besides,
    #[serde(rename = "dev")]
    _dev: Besides,
    #[serde(rename = "comment")]
    _comment: Besides,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetObject {
    family: String,
    table: String,
    name: String,
    flags: Option<Value>,
    elem: Option<Value>,
    /// How long an element stays that does not say it itself.
    timeout: Option<Value>,
    #[serde(rename = "handle")]
    _handle: Besides,
    #[serde(rename = "type")]
    _kind: Besides,
    #[serde(rename = "map")]
    _map: Besides,
    #[serde(rename = "policy")]
    _policy: Besides,
    #[serde(rename = "size")]
    _size: Besides,
    #[serde(rename = "gc-interval")]
    _interval: Besides,
    #[serde(rename = "auto-merge")]
    _merge: Besides,
    #[serde(rename = "stmt")]
    _statements: Besides,
    #[serde(rename = "comment")]
    _comment: Besides,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleObject<'a> {
    pub(super) family: String,
    pub(super) table: String,
    pub(super) chain: String,
    #[serde(borrow)]
    pub(super) expr: Vec<&'a RawValue>,
    #[serde(rename = "handle")]
    _handle: Besides,
    #[serde(rename = "comment")]
    _comment: Besides,
}

/// The text, to find the place of a part of it.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    text: &'a str,
    lines: &'a Lines,
}

impl Source<'_> {
    /// An error at a part of the text.
    pub(super) fn error(
        self,
        part: &RawValue,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> ImportError {
        let offset = (part.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let (line, column) = self.lines.place(offset.min(self.text.len()));
        ImportError::new(line, column, what, advice)
    }

    pub(super) fn object<'a, T: Deserialize<'a>>(
        self,
        part: &'a RawValue,
        what: &str,
    ) -> Result<T, ImportError> {
        serde_json::from_str(part.get()).map_err(|error| {
            let what = format!("this is no {what}: {}", reason(&error));
            self.error(part, what, "print the ruleset again with `nft -j list ruleset`")
        })
    }
}

impl Source<'_> {
    /// The one member that an object must have.
    pub(super) fn only<T>(
        self,
        part: &RawValue,
        object: BTreeMap<String, T>,
        what: &str,
    ) -> Result<(String, T), ImportError> {
        let mut members = object.into_iter();
        match (members.next(), members.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let what = format!("this is no {what}: it has not one member");
                Err(self.error(part, what, "print the ruleset again with `nft -j list ruleset`"))
            }
        }
    }
}

/// What the reader of JSON says, without the place, which is one within the part.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Reads one chain of what `nft -j list ruleset` prints: `forward`, if none is asked for.
///
/// # Errors
/// The first place that is no JSON or no ruleset; the first rule of the wanted chain, or of one that it leads
/// to, that means more than a rule can say; jumps in a circle or to nowhere; more rules than the limit.
pub fn read(text: &[u8], options: &ChainOptions) -> Result<ImportedRules, ImportError> {
    let text = utf8(text)?;
    let lines = Lines::of(text.as_bytes());
    let source = Source { text, lines: &lines };
    let document: Document<'_> = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line() as u32, error.column() as u32);
        let advice = "a ruleset is what `nft -j list ruleset` prints, whole";
        ImportError::new(
            line.max(1),
            column.max(1),
            format!("this is no ruleset: {}", reason(&error)),
            advice,
        )
    })?;
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
                        let is_map = kind == "map" || set.timeout.is_some();
                        objects.sets.insert(set.name, (is_map, set.flags, set.elem));
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
        Ok(objects)
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
        let object: BTreeMap<String, Value> = source.object(raw, "statement")?;
        let (kind, body) = source.only(raw, object, "statement")?;
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
                let cause = match &*kind {
                    "limit" | "quota" | "meter" | "set" | "map" | "ct count" | "connlimit" => {
                        "remembers earlier packets"
                    }
                    "snat" | "dnat" | "masquerade" | "redirect" | "tproxy" => "changes addresses",
                    "mangle" => "changes the packet or its marks",
                    "vmap" => "decides by a map",
                    "queue" => "leaves the decision to a process",
                    "dup" | "fwd" => "sends the packet elsewhere",
                    "ct helper" | "ct timeout" | "ct expectation" | "notrack" | "flow" | "synproxy" => {
                        "tells how connections are followed"
                    }
                    _ => "is not known here",
                };
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
