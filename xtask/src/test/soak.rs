//! `cargo xtask soak`: the tests that have a long form, in this form, and then the random mix of `live_soak`
//! for an hour, or for as long as is said.

use super::{Context, cargo, deadline, packages};
use anyhow::{Context as _, bail};
use std::time::Duration;

/// How long the mix lasts if nothing else is said.
const SECONDS: u64 = 60 * 60;
/// For all else. The long form of `live_named_programs` pauses for 16 minutes, and lets each of its four
/// transfers of 1 GiB take 15. The other 14 minutes are for building, for the other tests, among them the
/// long forms of `live_resolvers`, `live_two_waypoints` and `live_faults`, and for what happens between the
/// rounds of the mix: the captures of a minute are judged in less.
const BESIDE: Duration = Duration::from_secs(90 * 60);

/// Runs it. False, if something did not hold.
pub(super) fn run(context: &Context, options: &[&str]) -> anyhow::Result<bool> {
    let seconds = match options {
        [] => SECONDS,
        [seconds] => seconds.parse().with_context(|| format!("`{seconds}` is no number of seconds"))?,
        _ => bail!("`cargo xtask soak [SECONDS]` takes nothing else"),
    };
    let tests = ["live_named_programs", "live_resolvers", "live_two_waypoints", "live_faults", "live_soak"];
    let tests: Vec<&str> = tests.iter().flat_map(|test| ["--test", test]).collect();
    let wanted = ["--", "--nocapture", "--test-threads", "1"];
    let mut test = cargo(context, &[&["test", "--locked", "-p", "cli"], &tests[..], &wanted].concat());
    // What is missing here is an error, so that the soak is run or fails.
    test.env("RAVELIN_SOAK_SECONDS", seconds.to_string()).env("CI", "true");
    test.env("PATH", packages::search_path(context));
    let limit = Duration::from_secs(seconds.saturating_mul(2)).saturating_add(BESIDE);
    Ok(deadline::run(&mut test, limit)?.success())
}
