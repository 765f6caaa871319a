//! Policies as rulesets of nftables, for those policies that nftables can say.
//!
//! Everything goes into one table of `inet`, in place of what was in it. Each hook becomes a base chain,
//! before Linux translates addresses; groups that rules jump to become chains. Where rules tell later
//! fragments from other packets, base chains send them to chains of their own, as nftables would look for
//! ports in their payload. A group whose last match decides is turned round: first the rules that decide at
//! once, then the others from the last to the first.

mod chains;
mod json;
mod keeping;
mod matches;
mod reach;
mod text;
mod ways;

use crate::ImportError;
use chains::{Form, Writer, WrittenChain, refuse};
use matches::Fragments;
use policy::{Hook, HookPoint, MatchOrder, PacketField, Policy, RuleAction, RuleCondition, with_loopback};
use reach::Reach;
use ways::Unsayable;

/// The table that everything goes into. Its name is no usual one, since what was in such a table is deleted.
const TABLE: &str = "ravelin";

/// Writes a policy as a ruleset that `nft -f` takes and that decides the same about every packet.
///
/// # Errors
/// The first rule or hook that nftables cannot say, or that makes too many rules, with its place in the file
/// that the policy comes from.
pub fn write_nft(policy: &Policy) -> Result<String, ImportError> {
    Ok(text::ruleset(TABLE, &chains(policy, Form::Text)?))
}

/// Writes a policy as a ruleset that `nft -j -f` takes; the same as [`write_nft`] writes.
///
/// # Errors
/// As [`write_nft`].
pub fn write_nft_json(policy: &Policy) -> Result<String, ImportError> {
    Ok(json::ruleset(TABLE, &chains(policy, Form::Json)?))
}

fn chains(policy: &Policy, form: Form) -> Result<Vec<WrittenChain>, ImportError> {
    let interfaces = with_loopback(&policy.interfaces).map(|(name, port)| (name.to_owned(), port));
    let interfaces: Vec<(String, u16)> = interfaces.collect();
    let hooks = hooks(policy);
    let reach = Reach::of(policy, &hooks).map_err(|(place, Unsayable(what))| refuse(place, what))?;
    if reach.asks_states || reach.keeps && policy.remembers.keeps() {
        let mut writer = Writer::of(policy, &interfaces, &reach, form);
        writer.hooks(&hooks, Fragments::Together)?;
        // Where no rule is left that asks for states, Linux follows no connections.
        if writer.asks_states {
            return Ok(writer.chains);
        }
    }
    let fragments = if reach.tells_fragments { Fragments::None } else { Fragments::Alike };
    let mut writer = Writer::of(policy, &interfaces, &reach, form);
    writer.hooks(&hooks, fragments)?;
    Ok(writer.chains)
}

/// The hooks. What is asked on the way out about forwarded packets alone is asked at `forward`, after all
/// others there: at `postrouting`, nftables cannot say that a packet has come in by an interface.
fn hooks(policy: &Policy) -> Vec<Hook> {
    let is_forward = |hook: &Hook| {
        let group = &policy.groups[hook.group];
        let first = policy.hooks.iter().find(|first| first.point == HookPoint::Out) == Some(hook);
        first
            && group.order == MatchOrder::First
            && hook.default == RuleAction::Pass
            && group.rules.iter().all(|rule| needs_in_port(&rule.condition))
    };
    let (moved, mut hooks): (Vec<Hook>, Vec<Hook>) = policy.hooks.iter().cloned().partition(is_forward);
    hooks.extend(moved.into_iter().map(|hook| Hook { point: HookPoint::Forward, ..hook }));
    hooks
}

/// Whether only packets that have come in by a port meet a condition.
fn needs_in_port(condition: &RuleCondition) -> bool {
    match condition {
        RuleCondition::Holds(field, _) => *field == PacketField::InPort,
        RuleCondition::Not(inner) => **inner == RuleCondition::Absent(PacketField::InPort),
        RuleCondition::All(all) => all.iter().any(needs_in_port),
        RuleCondition::Any(any) => any.iter().all(needs_in_port),
        RuleCondition::Absent(_) | RuleCondition::Remembered(_) => false,
    }
}

#[cfg(test)]
mod tests;
