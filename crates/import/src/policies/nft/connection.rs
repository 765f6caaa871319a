//! What a match asks of the connection of a packet besides its state.
//!
//! A new packet goes in the direction of its connection, and what Linux remembers of the connection stands in
//! it. What a packet of a known connection is asked, earlier packets have said. A packet without a connection
//! fits nothing, also not with `!=`. To ask changes nothing, so a condition may be copied.

use super::conditions::{any, never};
use super::fields::Context;
use super::matches::{Asked, Matcher};
use crate::conditions::in_states;
use crate::nft::operands::{Refusal, is_not};
use policy::{RuleCondition, State};
use serde_json::{Value, json};

/// What Linux says of the fate of a connection, but for translated addresses.
const STATUS: [&str; 5] = ["expected", "seen-reply", "assured", "confirmed", "dying"];

const DIRECTIONS: [&str; 2] = ["original", "reply"];

/// The states in which a packet belongs to a connection that was known before it.
const KNOWN: [State; 2] = [State::Established, State::Related];

impl Matcher {
    /// What a match asks, if it is about a connection and not about its state. `body` is the match, `text`
    /// its statement.
    pub(super) fn connection(
        &mut self,
        body: &Value,
        text: &str,
        context: Context<'_>,
    ) -> Result<Option<Asked>, Refusal> {
        let (left, right) = (&body["left"]["ct"], &body["right"]);
        let operator = body["op"].as_str().unwrap_or_default();
        let reply = left["dir"].as_str().map(|direction| direction == "reply");
        let field = match (left["key"].as_str(), reply) {
            (Some("direction"), None) => {
                let set = right.get("set").unwrap_or(right);
                let Some(wanted) = names(set).filter(|all| all.iter().all(|name| DIRECTIONS.contains(name)))
                else {
                    return Refusal::new("a direction is original or reply");
                };
                let not = is_not(operator)?;
                let [original, reply] = DIRECTIONS.map(|name| wanted.contains(&name) != not);
                if original == reply {
                    self.fields.asks_connections(context)?;
                    let states = [&[State::New][..], &KNOWN].concat();
                    return Ok(Some(Asked::plain(if original { in_states(&states) } else { never() })));
                }
                let new = original.then(|| in_states(&[State::New]));
                let known = self.remembered_in(&KNOWN, text, context)?;
                return Ok(Some(Asked::plain(any(new.into_iter().chain([known]).collect()))));
            }
            (Some("bytes" | "packets" | "avgpkt" | "expiration"), _) if is_numbers(right) => None,
            (Some("status"), None) => match names(right.get("set").unwrap_or(right)) {
                Some(names) if names.iter().all(|name| STATUS.contains(name)) => None,
                Some(names) if names.iter().any(|name| matches!(*name, "snat" | "dnat")) => {
                    let what = "the match asks whether addresses are translated, and NAT is not read yet";
                    return Err(Refusal {
                        what: what.to_owned(),
                        advice: Some("leave the NAT out of the ruleset"),
                    });
                }
                _ => return Refusal::new(format!("a status is one of {}", STATUS.join(", "))),
            },
            (Some(key @ ("ip saddr" | "ip6 saddr" | "proto-src")), Some(reply)) => Some((key, reply)),
            (Some(key @ ("ip daddr" | "ip6 daddr" | "proto-dst")), Some(reply)) => Some((key, !reply)),
            _ => return Ok(None),
        };
        let Some((key, destination)) = field else {
            let states = [&[State::New][..], &KNOWN].concat();
            return Ok(Some(Asked::plain(self.remembered_in(&states, text, context)?)));
        };
        let (protocol, source, target) = match key.split_once(' ') {
            Some((family, _)) => (family, "saddr", "daddr"),
            None => ("th", "sport", "dport"),
        };
        let own = json!({ "payload": { "protocol": protocol, "field": if destination { target } else { source } } });
        let own = self.asked(&json!({ "op": operator, "left": own, "right": right }), text, context)?;
        let new = RuleCondition::All(vec![in_states(&[State::New]), own.condition.clone()]);
        let known = self.remembered_in(&KNOWN, text, context)?;
        Ok(Some(Asked { condition: any(vec![new, known]), ..own }))
    }

    /// That a packet is in one of these states, and that earlier packets have said what is asked.
    fn remembered_in(
        &mut self,
        states: &[State],
        text: &str,
        context: Context<'_>,
    ) -> Result<RuleCondition, Refusal> {
        self.fields.asks_connections(context)?;
        let remembered = self.remembered(text, context.place);
        Ok(RuleCondition::All(vec![in_states(states), remembered]))
    }
}

/// Whether it is a number, a range of numbers, or a set of both.
fn is_numbers(value: &Value) -> bool {
    let members = value.as_object().filter(|members| members.len() == 1);
    match members.and_then(|members| members.iter().next()) {
        Some((kind, Value::Array(values))) if kind == "range" => {
            values.len() == 2 && values.iter().all(Value::is_u64)
        }
        Some((kind, Value::Array(values))) if kind == "set" => values.iter().all(is_numbers),
        _ => value.is_u64(),
    }
}

/// The names that a value is, one or several.
fn names(value: &Value) -> Option<Vec<&str>> {
    let one = std::slice::from_ref(value);
    value.as_array().map_or(one, Vec::as_slice).iter().map(Value::as_str).collect()
}
