//! The `match` statements of a rule, and the keys of its maps, as conditions of a policy.
//!
//! A field that a packet has not fits no value, and none other than a value. Only of an interface that there
//! is not Linux says that it is another.

use super::conditions::{all, always, any, family, never, present, values};
use super::fields::{
    Context, Fields, Left, Reads, code_point, congestion, plain_number, state_bit, state_bits, values_of,
};
use super::headers::extension_bit;
use super::limits::MET_BY_FRAGMENTS;
use super::ruleset::Families;
use crate::address::host_mask;
use crate::conditions::Interfaces;
use crate::nft::operands::{self, Refusal, Sets, ends, is_fragment_offset, is_not, is_order, names};
use crate::nft::value;
use crate::rates::ONE_PACKET;
use crate::region::Set;
use crate::ruleset::Part;
use crate::text::shown;
use policy::{HookPoint, Memory, PacketField, RuleCondition, RulePlace, RuleRate, State, Values};
use serde_json::Value;
use std::sync::Arc;

/// What a match asks.
pub(super) struct Asked {
    pub(super) condition: RuleCondition,
    /// What of it is known of later fragments, where the rest is about a header that they have not.
    pub(super) of_fragments: Option<RuleCondition>,
    /// Whether ports are asked for of whatever protocol there is.
    pub(super) any_ports: bool,
    /// Whether it counts the packets that are compared with it.
    pub(super) remembers: bool,
}

impl Asked {
    pub(super) fn plain(condition: RuleCondition) -> Self {
        Self { condition, of_fragments: None, any_ports: false, remembers: false }
    }
}

/// Reads conditions, and collects what they need of the whole policy.
pub(super) struct Matcher {
    pub(super) fields: Fields,
    /// For IPv4 and IPv6, whether connections are followed.
    pub(super) followed: [bool; 2],
    /// Whether a rule asks for a header where later fragments may come, which have none.
    pub(super) unsure_of_fragments: bool,
    memories: Vec<Memory>,
    /// Those to which later fragments may come.
    met_by_fragments: Vec<usize>,
}

impl Matcher {
    pub(super) fn new(interfaces: Interfaces, followed: [bool; 2]) -> Self {
        Self {
            fields: Fields::new(interfaces),
            followed,
            unsure_of_fragments: false,
            memories: Vec::new(),
            met_by_fragments: Vec::new(),
        }
    }

    /// What depends on earlier packets.
    pub(super) fn into_memories(mut self) -> Vec<Memory> {
        if self.unsure_of_fragments {
            for memory in self.met_by_fragments {
                if let rate @ Ok(_) = &mut self.memories[memory].rate {
                    *rate = Err(MET_BY_FRAGMENTS.into());
                }
            }
        }
        self.memories
    }

    /// A condition that depends on earlier packets otherwise than by a rate.
    pub(super) fn remembered(&mut self, text: &str, place: RulePlace) -> RuleCondition {
        self.limited(text, place, Err(ONE_PACKET.into()), false)
    }

    /// A condition that depends on earlier packets, and whether later fragments may come to it.
    pub(super) fn limited(
        &mut self,
        text: &str,
        place: RulePlace,
        rate: Result<RuleRate, Arc<str>>,
        met_by_fragments: bool,
    ) -> RuleCondition {
        self.met_by_fragments.extend(met_by_fragments.then_some(self.memories.len()));
        self.memories.push(Memory { place, text: Arc::from(text), rate });
        RuleCondition::Remembered(self.memories.len() - 1)
    }

    /// What a `match` statement asks; `text` is the statement.
    pub(super) fn asked(&mut self, body: &Value, text: &str, context: Context<'_>) -> Result<Asked, Refusal> {
        let (operator, left, right) = operands::sides(body)?;
        if let Some(asked) = self.connection(body, text, context)? {
            return Ok(asked);
        }
        if let Some(known) = self.known(operator, left, right, context)? {
            return Ok(Asked::plain(known));
        }
        let key = self.fields.key(left, context)?;
        if self.depends_on_earlier(right, context)? {
            is_not(operator)?;
            let remembered = self.remembered(text, context.place);
            return Ok(Asked { remembers: true, ..put_together(&key, Some(remembered)) });
        }
        if let [only] = &key[..]
            && left.get("concat").is_none()
        {
            let condition = self.compared(operator, only, right, context)?;
            return Ok(put_together(&key, Some(condition)));
        }
        let not = is_not(operator)?;
        let mut each = Vec::new();
        for value in &self.elements(right, context)? {
            each.push(if value == "*" { always() } else { self.equals(&key, value)? });
        }
        let condition = if not { negated(&key, any(each)) } else { any(each) };
        Ok(put_together(&key, Some(condition)))
    }

    /// What it asks that a packet has the key of a map, and that this key is each of these elements; `*` is
    /// what none of the others is.
    pub(super) fn each_of(
        &mut self,
        key: &Value,
        elements: &[Value],
        context: Context<'_>,
    ) -> Result<(Asked, Vec<RuleCondition>), Refusal> {
        let key = self.fields.key(key, context)?;
        let mut each = Vec::with_capacity(elements.len());
        for value in elements {
            each.push(if value == "*" { never() } else { self.equals(&key, value)? });
        }
        if let Some(rest) = elements.iter().position(|value| value == "*") {
            self.fields.count(each.iter().map(values).sum())?;
            each[rest] = negated(&key, any(each.clone()));
        }
        Ok((put_together(&key, None), each))
    }

    /// The elements on the right; those of a set that changes by itself are refused.
    pub(super) fn elements(&self, right: &Value, context: Context<'_>) -> Result<Vec<Value>, Refusal> {
        let none = Sets::new();
        operands::elements(right, context.sets.unwrap_or(&none))
    }

    /// Whether the right side is a set that packets change.
    fn depends_on_earlier(&self, right: &Value, context: Context<'_>) -> Result<bool, Refusal> {
        let Some(name) = right.as_str().and_then(|name| name.strip_prefix('@')) else { return Ok(false) };
        let Some(set) = context.sets.and_then(|sets| sets.get(name)) else { return Ok(false) };
        if set.is_map {
            return Refusal::new(format!("`{}` is a map, and the match wants a set", shown(name)));
        }
        if set.ages && !set.is_dynamic {
            let what = format!("the elements of the set `{}` go after a time", shown(name));
            let advice = "a policy keeps a set as it stands; take the flag `timeout` from it, or the set out of the ruleset";
            return Err(Refusal { what, advice: Some(advice) });
        }
        Ok(set.is_dynamic)
    }

    /// That each part of a key holds the value of an element.
    fn equals(&mut self, key: &[Left], value: &Value) -> Result<RuleCondition, Refusal> {
        let one = std::slice::from_ref(value);
        let values = value.get("concat").and_then(Value::as_array).map_or(one, Vec::as_slice);
        if values.len() != key.len() {
            return Refusal::new("an element of the concatenation has not its number of parts");
        }
        let mut each = Vec::with_capacity(key.len());
        for (left, value) in key.iter().zip(values) {
            each.push(RuleCondition::Holds(left.field, self.fields.values(left, value)?));
        }
        Ok(all(each))
    }

    /// What one field holds, compared by an operator.
    fn compared(
        &mut self,
        operator: &str,
        left: &Left,
        right: &Value,
        context: Context<'_>,
    ) -> Result<RuleCondition, Refusal> {
        if matches!(left.reads, Reads::State) {
            return self.states(operator, left, right, context);
        }
        if let (Reads::Column(Part::TcpFlags, family), None, "in" | "!") = (left.reads, left.mask, operator) {
            let Some(flags) = value::number(right, Part::TcpFlags, family) else {
                return Refusal::new("these are no TCP flags");
            };
            let none = RuleCondition::Holds(left.field, vec![Values::Masked { value: 0, mask: flags }]);
            if operator == "!" {
                return Ok(none);
            }
            let bits = (0..8).map(|bit| 1u128 << bit).filter(|bit| flags & bit != 0);
            let some = bits.map(|bit| Values::Masked { value: bit, mask: bit });
            return Ok(RuleCondition::Holds(left.field, some.collect()));
        }
        if is_order(operator) {
            return self.ordered(operator, left, right);
        }
        let not = is_not(operator)?;
        let elements = self.elements(right, context)?;
        let mut values = Vec::new();
        for value in &elements {
            if value == "*" {
                values.push(Values::Range { low: 0, high: left.field.most() });
            } else {
                values.extend(self.fields.values(left, value)?);
            }
        }
        let holds = RuleCondition::Holds(left.field, values);
        Ok(if not { negated(std::slice::from_ref(left), holds) } else { holds })
    }

    fn ordered(&mut self, operator: &str, left: &Left, right: &Value) -> Result<RuleCondition, Refusal> {
        let is_name = matches!(left.field, PacketField::InPort | PacketField::OutPort);
        let (number, width) = match left.reads {
            Reads::Column(part, family) if !is_name => {
                (value::number(right, part, family), part.width(family))
            }
            Reads::Dscp => (code_point(right), left.field.width()),
            Reads::Ecn => (congestion(right), left.field.width()),
            Reads::Number { width, .. } | Reads::Bits { width, .. } => (plain_number(right, width), width),
            _ => (None, 0),
        };
        let Some(number) = number.filter(|_| left.mask.is_none()) else {
            return Refusal::new(format!("`{operator}` compares {} with no number", left.field.name()));
        };
        let Some((low, high)) = ends(operator, number, host_mask(width, 0)) else {
            return Refusal::new(format!("no value of {} is `{operator}` {number}", left.field.name()));
        };
        Ok(RuleCondition::Holds(left.field, values_of(left, Set::Range { low, high })))
    }

    /// Which states a comparison of their bits leaves.
    fn states(
        &mut self,
        operator: &str,
        left: &Left,
        right: &Value,
        context: Context<'_>,
    ) -> Result<RuleCondition, Refusal> {
        let mut wanted = Vec::new();
        for value in self.elements(right, context)? {
            let Some(bits) = state_bits(&value) else {
                return Refusal::new("the match asks for a state that is not known here");
            };
            wanted.push(bits);
        }
        let fits = |bits: u128| {
            let bits = bits & left.mask.unwrap_or(u128::MAX);
            Ok(match operator {
                "in" => wanted.iter().any(|wanted| bits & wanted != 0),
                "!" => wanted.iter().all(|wanted| bits & wanted == 0),
                _ => wanted.contains(&bits) != is_not(operator)?,
            })
        };
        let mut values = Vec::new();
        for state in State::ALL {
            if fits(state_bit(state))? {
                values.push(Values::exact(state as u128));
            }
        }
        Ok(RuleCondition::Holds(left.field, values))
    }

    /// A condition of which it is known for all packets of a chain whether it holds, or one on later
    /// fragments.
    fn known(
        &self,
        operator: &str,
        left: &Value,
        right: &Value,
        context: Context<'_>,
    ) -> Result<Option<RuleCondition>, Refusal> {
        let key = left.get("meta").and_then(|meta| meta.get("key")?.as_str());
        if key == Some("pkttype") {
            // Linux forwards what is addressed to it alone.
            if context.reached.points.iter().any(|point| *point != HookPoint::Forward) {
                return Refusal::new(
                    "`meta pkttype` asks for the kind of an Ethernet address, for which there is no field",
                );
            }
            let fits = self.elements(right, context)?.iter().any(|kind| kind == "host" || kind == "unicast");
            return Ok(Some(if fits == is_not(operator)? { never() } else { always() }));
        }
        if let Some(known) = extension_exists(operator, left, right, context)? {
            return Ok(Some(known));
        }
        let masked = left.get("&").and_then(Value::as_array).map(Vec::as_slice);
        let (version, may_be_whole) = match masked {
            Some([inner, mask]) if is_fragment_offset(inner) => {
                // The three bits before it are flags.
                if mask.as_u64() != Some(0x1fff) {
                    return Refusal::new(
                        "of `ip frag-off` the offset alone is known, as in `ip frag-off & 0x1fff`",
                    );
                }
                (4, true)
            }
            _ => match left.get("exthdr").map(|header| names(header, ["name", "field"])) {
                Some(("frag", "frag-off")) => (6, false),
                _ => return Ok(None),
            },
        };
        let later = match (operator, right.as_u64()) {
            ("!=" | ">", Some(0)) => true,
            ("==", Some(0)) if may_be_whole => false,
            _ => return Refusal::new("of a fragment's offset it is known only whether it is 0"),
        };
        // Where connections are followed, rules see no fragments.
        if self.followed[usize::from(version == 6)] && !context.reached.before_reassembly {
            return Ok(Some(if later { never() } else { family(version) }));
        }
        let holds = RuleCondition::Holds(PacketField::LaterFragment, vec![Values::exact(later.into())]);
        Ok(Some(RuleCondition::All(vec![family(version), holds])))
    }
}

/// Whether there is an extension header of IPv6, if the match asks that.
fn extension_exists(
    operator: &str,
    left: &Value,
    right: &Value,
    context: Context<'_>,
) -> Result<Option<RuleCondition>, Refusal> {
    let asked = left.get("exthdr").and_then(Value::as_object).filter(|header| header.len() == 1);
    let Some(name) = asked.and_then(|header| header.get("name")?.as_str()) else { return Ok(None) };
    let (Some(bit), Some(wanted)) = (extension_bit(name), right.as_bool()) else { return Ok(None) };
    let value = if wanted != is_not(operator)? { bit } else { 0 };
    let holds =
        RuleCondition::Holds(PacketField::ExtensionHeaders, vec![Values::Masked { value, mask: bit }]);
    Ok(Some(match context.families {
        Families::V4 => never(),
        Families::Both => RuleCondition::All(vec![family(6), holds]),
        Families::V6 => holds,
    }))
}

/// A condition with what its key needs besides.
fn put_together(key: &[Left], condition: Option<RuleCondition>) -> Asked {
    let mut needs: Vec<RuleCondition> = Vec::new();
    for need in key.iter().flat_map(|left| &left.needs) {
        if !needs.contains(need) {
            needs.push(need.clone());
        }
    }
    let header = key.iter().any(|left| left.field.is_behind_ip());
    let is_known =
        |need: &&RuleCondition| !matches!(need, RuleCondition::Holds(field, _) if field.is_behind_ip());
    let of_fragments = header.then(|| all(needs.iter().filter(is_known).cloned().collect()));
    needs.extend(condition);
    let any_ports = key.iter().any(|left| left.any_ports);
    Asked { condition: all(needs), of_fragments, any_ports, remembers: false }
}

/// That it does not hold, and yet the packet has the fields of the key. An interface that it has not is
/// another.
fn negated(key: &[Left], condition: RuleCondition) -> RuleCondition {
    let mut each: Vec<RuleCondition> = key
        .iter()
        .filter(|left| !matches!(left.field, PacketField::InPort | PacketField::OutPort))
        .map(|left| present(left.field))
        .collect();
    each.push(RuleCondition::Not(Box::new(condition)));
    all(each)
}
