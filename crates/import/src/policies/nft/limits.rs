//! Limits of rules of nftables as rates.

use crate::nft::operands::Refusal;
use crate::rates;
use crate::text::shown;
use policy::RuleRate;
use serde_json::Value;
use std::sync::Arc;

/// Why no program has a limit to which later fragments come, where rules ask for headers: whether they take
/// a token depends on what stands in them in place of a header.
pub(super) const MET_BY_FRAGMENTS: &str = "Linux that follows no connections compares later fragments as if they had headers, and these take tokens of it";

/// The members of a `limit` statement.
const MEMBERS: [&str; 6] = ["rate", "per", "burst", "rate_unit", "burst_unit", "inv"];

/// The rate of a `limit` statement; or why a program has none like it.
///
/// # Errors
/// A member that is not known.
pub(super) fn rate(body: &Value) -> Result<Result<RuleRate, Arc<str>>, Refusal> {
    let Some(limit) = body.as_object() else {
        return Ok(Err("a named limit has one bucket for all rules that use it".into()));
    };
    if let Some(unknown) = limit.keys().find(|member| !MEMBERS.contains(&member.as_str())) {
        return Refusal::new(format!("the limit has a member `{}` that is not known here", shown(unknown)));
    }
    let word = |name: &str, default: &'static str| limit.get(name).map_or(Some(default), Value::as_str);
    let number = |name: &str| limit.get(name).and_then(Value::as_u64);
    if [word("rate_unit", "packets"), word("burst_unit", "packets")] != [Some("packets"); 2] {
        return Ok(Err("Linux counts bytes from the header of IP on, and a meter those of the frame".into()));
    }
    let seconds = match word("per", "second") {
        Some("second") => 1,
        Some("minute") => 60,
        Some("hour") => 3_600,
        Some("day") => 86_400,
        Some("week") => 604_800,
        _ => return Ok(Err("its time is not known here".into())),
    };
    // Linux takes 5 for none.
    let burst =
        limit.get("burst").map_or(Some(5), Value::as_u64).map(|burst| if burst == 0 { 5 } else { burst });
    let over = limit.get("inv").map_or(Some(false), Value::as_bool);
    Ok(match (number("rate"), burst.and_then(|burst| u32::try_from(burst).ok()), over) {
        (Some(rate), Some(burst), Some(over)) => rates::of_nft(rate, seconds, burst, over),
        _ => Err("its numbers are not known here".into()),
    })
}
