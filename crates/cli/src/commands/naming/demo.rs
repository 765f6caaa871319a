//! `ravelin naming demo`: a small internet, the unmodified programs in it, and what happened.

use crate::arguments::naming::DemoArguments;
use crate::failure::Failure;
use crate::render;
use lab::naming_demo::{DemoCheck, DemoPlan, naming_demo};
use serde_json::json;

/// Runs the command.
///
/// # Errors
/// A check failed, or nothing could be shown.
pub(super) fn run(wanted: &DemoArguments, json: bool) -> Result<(), Failure> {
    let finding = |error: String| Failure::Finding(error);
    let binary = std::env::current_exe().map_err(|error| finding(error.to_string()))?;
    let plan = DemoPlan { binary, captures: wanted.captures.clone() };
    if !json {
        let head = "Three kinds of machines that know nothing of each other: clients around a router, a waypoint with public
addresses, and hosts with private addresses behind a gateway behind a carrier's NAT.\n\n";
        render::text(head)?;
    }
    let mut shown = Ok(());
    let mut progress = |check: &DemoCheck| {
        if !json && shown.is_ok() {
            shown = render::text(&told(check));
        }
    };
    let checks = naming_demo(&plan, &mut progress).map_err(|error| finding(error.to_string()))?;
    shown?;
    let failed = checks.iter().filter(|check| !check.ok).count();
    if json {
        render::json(&json!({ "checks": checks }))?;
    } else {
        let held = checks.len() - failed;
        render::text(&format!("\n{held} of {} hold\n", checks.len()))?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(finding(format!("{failed} of {} checks failed", checks.len()))),
    }
}

fn told(check: &DemoCheck) -> String {
    let mark = if check.ok { "holds" } else { "FAILS" };
    format!("{mark}  {:<18} {}\n       {:<18} {}\n", check.id, check.what, "", check.seen)
}
