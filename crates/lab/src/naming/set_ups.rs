//! How many set-ups of names succeed by load, simulated, with the waypoint of the product beside the random
//! choice of the paper (AVES, USENIX 2001) and Erlang's formula; and what a set-up takes.

use crate::experiment::{Better, Figure, Other, Row};
use crate::plan::LabPlan;
use naming::limits::{EXCLUSIVE_AT_FIRST, SECOND};
use naming::{
    AddressPool, Admission, Ask, BindingKey, FirstPacket, Hold, Initiators, Responder, Service, Services,
    SetUpError, Waypoint,
};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Instant;
use tables::generate::Random;

/// The addresses of the paper's prototype, and its time for each: 25 set-ups a second at most.
pub(super) const ADDRESSES: u32 = 50;
pub(super) const PAPER_BOUND: f64 = 25.0;

/// Loads, in per cent of the bound.
pub(super) const LOADS: [u64; 6] = [25, 50, 80, 100, 150, 300];

const SERVICE: Service = Service { protocol: 6, port: 443 };

/// Responders and networks of resolvers that take part.
const RESPONDERS: u64 = 10_000;
const RESOLVERS: u64 = 200;

/// Set-ups of a run.
fn count(plan: &LabPlan) -> u64 {
    if plan.quick { 5_000 } else { 200_000 }
}

/// How many set-ups a second succeed where far more are wanted.
pub(super) fn most(plan: &LabPlan) -> Option<Figure> {
    let (load, set_ups) = (300, count(plan));
    let rate = |tries: Tries| tries.carried(tries.failed);
    Figure::of((0..plan.runs as u64).map(|seed| rate(simulate(seed, load, set_ups))))
}

/// The rows, and how they came about.
pub(super) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> (Vec<Row>, String) {
    let set_ups = count(plan);
    let mut rows = Vec::new();
    for load in LOADS {
        progress(&format!("naming: {load} % of the bound"));
        let tries: Vec<Tries> = (0..plan.runs as u64).map(|seed| simulate(seed, load, set_ups)).collect();
        rows.extend(compared(&format!("{ADDRESSES} addresses, load {load} %"), load, &tries));
    }
    progress("naming: what a set-up takes");
    rows.extend(speed(plan));
    let mode = format!(
        "set-ups: simulated, initiators that are not known, {ADDRESSES} addresses, {} s for each, {set_ups} a run, arrivals at random (Poisson), one try each",
        EXCLUSIVE_AT_FIRST / SECOND
    );
    (rows, mode)
}

fn services() -> Services {
    Services::new([SERVICE]).unwrap_or_else(|_| unreachable!("one service is few"))
}

fn pool(known: u32, unknown: u32) -> AddressPool {
    let part = |first: u32, count: u32| (first..first + count).map(Ipv4Addr::from_bits).collect();
    AddressPool { known: part(0xcb00_7100, known), unknown: part(0xc633_6400, unknown) }
}

/// The time to the next arrival, in nanoseconds, of so many a second on average.
pub(super) fn pause(random: &mut Random, rate: f64) -> u64 {
    let even = (random.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
    (-even.ln() / rate * SECOND as f64) as u64
}

/// What became of the set-ups of a run: those that failed, of the product and of the random choice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tries {
    count: u64,
    failed: u64,
    failed_at_random: u64,
    seconds: f64,
}

impl Tries {
    pub(super) fn note(&mut self, has_failed: bool, has_failed_at_random: bool) {
        self.count += 1;
        self.failed += u64::from(has_failed);
        self.failed_at_random += u64::from(has_failed_at_random);
    }

    /// The same, noted in so many seconds.
    pub(super) fn of(self, seconds: f64) -> Tries {
        Tries { seconds, ..self }
    }

    fn per_cent(&self, failed: u64) -> f64 {
        failed as f64 / self.count as f64 * 100.0
    }

    fn carried(&self, failed: u64) -> f64 {
        (self.count - failed) as f64 / self.seconds
    }
}

/// The paper's rule: a waypoint is picked at random, and the set-up fails where it is taken.
#[derive(Debug)]
pub(super) struct RandomChoice {
    busy_until: Vec<u64>,
}

impl RandomChoice {
    pub(super) fn new() -> RandomChoice {
        RandomChoice { busy_until: vec![0; ADDRESSES as usize] }
    }

    /// Whether a set-up at this time fails.
    pub(super) fn fails(&mut self, random: &mut Random, now: u64) -> bool {
        let busy = &mut self.busy_until[random.below(u64::from(ADDRESSES)) as usize];
        if *busy > now {
            return true;
        }
        *busy = now + EXCLUSIVE_AT_FIRST;
        false
    }
}

/// Set-ups a second that the addresses allow at most.
pub(super) fn bound() -> f64 {
    f64::from(ADDRESSES) / (EXCLUSIVE_AT_FIRST as f64 / SECOND as f64)
}

/// Set-ups of different responders, one after the other.
fn simulate(seed: u64, load: u64, set_ups: u64) -> Tries {
    let rate = load as f64 / 100.0 * bound();
    let mut random = Random::new(seed);
    let Ok(waypoint) = Waypoint::new(pool(0, ADDRESSES)) else { unreachable!("the pool is good") };
    let mut waypoint = waypoint.holding(Hold::Measured);
    let (mut random_choice, mut tries, mut now) = (RandomChoice::new(), Tries::default(), 0);
    for _ in 0..set_ups {
        now += pause(&mut random, rate);
        let ask = Ask {
            responder: Responder(random.below(RESPONDERS) as u32),
            services: services(),
            initiators: Initiators::Any,
            resolver: Ipv4Addr::from_bits(0x0a00_0035 | (random.below(RESOLVERS) as u32) << 8).into(),
            is_verified: true,
        };
        let has_failed = waypoint.set_up(&ask, now).is_err();
        tries.note(has_failed, random_choice.fails(&mut random, now));
    }
    tries.of(now as f64 / SECOND as f64)
}

/// The share of calls that are lost where each of `lines` lines is taken for some time and `offered` calls
/// come in that time (Erlang B, by its recursion).
fn erlang_b(lines: u32, offered: f64) -> f64 {
    (1..=lines).fold(1.0, |lost, line| offered * lost / (f64::from(line) + offered * lost))
}

/// The set-ups of several runs at a load beside those of the random choice, and Erlang's formula.
pub(super) fn compared(case: &str, load: u64, tries: &[Tries]) -> Vec<Row> {
    let of = |value: &dyn Fn(&Tries) -> f64| Figure::of(tries.iter().map(value));
    let other = |name: &str, value: Option<Figure>| value.map(|value| Other::of(name, value));
    let random = of(&|one| one.per_cent(one.failed_at_random));
    let exact = erlang_b(ADDRESSES, load as f64 / 100.0 * f64::from(ADDRESSES)) * 100.0;
    let exact = Figure::exactly(exact);
    let fail = |held| {
        let row = Row::alone(case, "set-ups that fail", "%", of(&|one| one.per_cent(one.failed)), None);
        row.against(held, Better::Less)
    };
    let rate = of(&|one| one.carried(one.failed));
    let random_rate = of(&|one| one.carried(one.failed_at_random));
    vec![
        fail(other("random choice", random)),
        fail(other("Erlang B, computed", Some(exact))),
        Row::alone(case, "set-ups that succeed", "1/s", rate, (load >= 100).then_some(PAPER_BOUND))
            .against(other("random choice", random_rate), Better::More),
    ]
}

/// Set-up and first packet of known initiators, a second of this machine.
fn speed(plan: &LabPlan) -> Vec<Row> {
    let mut rows = Vec::new();
    for bound in if plan.quick { [0, 10_000] } else { [0, 1_000_000] } {
        let mut figures = Vec::new();
        for _ in 0..plan.runs {
            figures.extend(known(bound, if plan.quick { 10_000 } else { 200_000 }));
        }
        let case = format!("known initiators, {bound} bindings before");
        let what = "set-up and first packet";
        rows.push(Row::alone(&case, what, "k/s", Figure::of(figures), None));
    }
    rows
}

/// Thousands a second, with so many bindings there before; none if not every initiator reached its responder.
fn known(bound: u32, count: u32) -> Option<f64> {
    let mut waypoint = Waypoint::new(pool(ADDRESSES, 0)).ok()?;
    let mut visit = |number: u32, now: u64| -> Result<bool, SetUpError> {
        let initiator = Ipv4Addr::from_bits(number.wrapping_mul(0x9e37_79b1));
        let responder = Responder(number % 1_000);
        let initiators = Initiators::Exact(initiator);
        let resolver = initiator.into();
        let ask = Ask { responder, services: services(), initiators, resolver, is_verified: true };
        let address = waypoint.set_up(&ask, now)?.address;
        let key = BindingKey { initiator, address, service: SERVICE };
        let admission = waypoint.admit(&FirstPacket { key, begins: true }, now + 1);
        waypoint.prove(&key);
        Ok(admission == Admission::Admitted(responder))
    };
    // 100,000 a second of the time that the waypoint is told.
    let at = |number: u32| u64::from(number) * 10_000;
    let mut all_reach = |mut numbers: Range<u32>| numbers.all(|number| visit(number, at(number)) == Ok(true));
    if !all_reach(0..bound) {
        return None;
    }
    let start = Instant::now();
    if !all_reach(bound..bound + count) {
        return None;
    }
    Some(f64::from(count) / start.elapsed().as_secs_f64() / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waypoint_loses_what_erlang_says_and_a_random_choice_far_more() {
        // The values of a table of Erlang B (50 lines, 25 and 40 erlang).
        assert!((erlang_b(50, 40.0) - 0.0187).abs() < 0.0001);
        assert!(erlang_b(50, 25.0) < 0.000_005);
        for load in [80, 100, 150] {
            let tries = simulate(1, load, 20_000);
            let lost = tries.per_cent(tries.failed) / 100.0;
            let exact = erlang_b(ADDRESSES, load as f64 / 100.0 * f64::from(ADDRESSES));
            assert!((lost - exact).abs() < 0.02, "load {load}: {lost} for {exact}");
            let a = load as f64 / 100.0;
            let at_random = tries.per_cent(tries.failed_at_random) / 100.0;
            assert!((at_random - a / (1.0 + a)).abs() < 0.03, "load {load}: {at_random}");
            if load == 150 {
                assert!(tries.carried(tries.failed) > 0.9 * PAPER_BOUND);
            }
        }
    }

    #[test]
    fn every_known_initiator_reaches_its_responder() {
        // More than a waypoint remembers expectations.
        assert!(known(600_000, 1_000).is_some());
    }
}
