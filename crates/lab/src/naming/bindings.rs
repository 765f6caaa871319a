//! What many live bindings add to a packet, and to the packets that come while all of them end.

use super::ends::{End, Side, Traffic};
use crate::experiment::{Better, Figure, Other, Row};
use crate::plan::LabPlan;
use crate::traffic::LabError;

/// Bindings whose packets are measured.
const FEW: u32 = 1_000;
/// A small packet.
const SIZE: usize = 64;
/// Initiators whose packets are made at a time.
const AT_ONCE: u32 = 1 << 16;
/// Initiators that send a packet in each batch while bindings end.
const WHO_SENDS: u32 = 256;
/// A little shorter than a binding of UDP lasts.
const IDLE: u64 = 299 * 1_000_000_000;
/// Batches that are sent while bindings end, at most.
const WHILE_ENDING: usize = 100_000;

/// What one run showed.
struct Shown {
    few: f64,
    many: f64,
    everywhere: f64,
    longest_before: f64,
    longest_while: f64,
}

/// Runs it.
pub(super) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    let count: u32 = if plan.quick { 10_000 } else { 1_000_000 };
    let mut shown = Vec::new();
    for run in 0..plan.runs {
        progress(&format!("naming: {count} bindings, run {} of {}", run + 1, plan.runs));
        shown.extend(measure(count)?);
    }
    let case = format!("{count} bindings");
    if shown.len() < plan.runs {
        return Ok(vec![Row::refused(&case, "a packet", "ns", "a packet that should pass did not")]);
    }
    let of = |value: fn(&Shown) -> f64| Figure::of(shown.iter().map(value));
    let other = |name: &str, value| of(value).map(|figure| Other::of(name, figure));
    let few = || other("where there are no others", |shown| shown.few);
    let what = format!("a packet of one of {FEW} of them");
    let longest = format!("longest batch while {count} end");
    Ok(vec![
        Row::alone(&case, &what, "ns", of(|shown| shown.many), None).against(few(), Better::Less),
        Row::alone(&case, "a packet of any of them, each once", "ns", of(|shown| shown.everywhere), None)
            .against(few(), Better::Less),
        Row::alone(&case, &longest, "ms", of(|shown| shown.longest_while), None)
            .against(other("before", |shown| shown.longest_before), Better::Less),
    ])
}

/// One run; none where a packet did not get through.
fn measure(count: u32) -> Result<Option<Shown>, LabError> {
    // Of all places, hosts that have equally many get nine sixteenths.
    let mut end = End::waypoint(u64::from(count) * 2)?;
    let mut whole = true;
    let mut bind = |end: &mut End, first: u32, last: u32| {
        for begin in (first..last).step_by(AT_ONCE as usize) {
            let mut traffic = Traffic::binding(begin..last.min(begin + AT_ONCE), SIZE);
            whole &= end.run(&mut traffic).sent == traffic.len();
        }
    };
    bind(&mut end, 0, FEW);
    let (mut packets, mut sent, mut longest_before) = (0, 0, 0.0_f64);
    let mut each = |end: &mut End, stride: u32, among: u32| {
        let mut time = 0.0;
        for turn in 0..9_u32 {
            let first = turn * AT_ONCE;
            let numbers = (first..first + AT_ONCE).map(|number| number.wrapping_mul(stride) % among);
            let mut traffic = Traffic::of(Side::WaypointIn, numbers, SIZE);
            let ran = end.run(&mut traffic);
            sent += ran.sent;
            packets += traffic.len();
            // The first turn warms up.
            if turn > 0 {
                time += ran.time.as_nanos() as f64;
                longest_before = longest_before.max(ran.longest.as_secs_f64() * 1e3);
            }
        }
        time / (8.0 * f64::from(AT_ONCE))
    };
    let few = each(&mut end, 1, FEW);
    bind(&mut end, FEW, count);
    let many = each(&mut end, 1, FEW);
    let everywhere = each(&mut end, 0x9e37_79b1, count);
    let (mut longest_while, mut batches) = (0.0_f64, 0);
    // The bindings of those who send stay, since they send once more before: a packet that begins one would
    // take longer. The rest of the time passes in batches, as in a running gateway: a packet after a gap
    // handles what has become due in it.
    end.wait(IDLE / 2);
    let mut traffic = Traffic::of(Side::WaypointIn, 0..WHO_SENDS, SIZE);
    whole &= end.run(&mut traffic).sent == traffic.len();
    end.wait(IDLE / 2);
    while end.bindings() > WHO_SENDS.into() && batches < WHILE_ENDING {
        let mut traffic = Traffic::of(Side::WaypointIn, 0..WHO_SENDS, SIZE);
        let ran = end.run(&mut traffic);
        // The time that a batch takes passes for the program, too.
        end.wait(ran.time.as_nanos() as u64);
        longest_while = longest_while.max(ran.longest.as_secs_f64() * 1e3);
        batches += 1;
    }
    whole &= sent == packets && batches < WHILE_ENDING;
    Ok(whole.then_some(Shown { few, many, everywhere, longest_before, longest_while }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bindings_than_an_ordinary_waypoint_takes_carry_packets() {
        assert!(measure(100_000).expect("it compiles").is_some());
    }
}
