//! Packets fall due by the clock, so many a second, and a policy says when how many of them are run and
//! where.
//!
//! They lie in memory, so that a packet is due without anybody bringing it. What is not carried waits, and
//! nothing is lost.

use super::place::{Done, Places};
use crate::load_result::LoadResult;
use offload::policy::{Decision, ExecutionPlace, OffloadPolicy, Waiting};
use packet::BATCH;
use std::ops::Range;
use std::time::Duration;

/// At most so many packets that are done together share the delay of the one in their middle.
const TOGETHER: u64 = 16;

/// What a policy decides. Without one, the host runs at once what waits.
fn decide(policy: Option<&OffloadPolicy>, waiting: Waiting) -> Decision {
    match policy {
        Some(policy) => policy.decide(waiting),
        None if waiting.packets == 0 => Decision::Wait(None),
        None => Decision::Run(ExecutionPlace::Host, waiting.packets.min(BATCH)),
    }
}

/// Lets so many packets a second fall due for a time.
pub(crate) fn carry(
    places: &mut Places<'_>,
    policy: &mut Option<OffloadPolicy>,
    rate: f64,
    time: Duration,
) -> Result<LoadResult, String> {
    let clock = places.clock();
    let first = places.next();
    let start = clock.now();
    let mut carried = LoadResult::new()?;
    let mut done = 0;
    let mut told = |numbers: Range<u64>, at: Duration| {
        let mut number = numbers.start;
        while number < numbers.end {
            let together = (numbers.end - number).min(TOGETHER);
            let due = (number + together / 2 - first) as f64 / rate * 1e9;
            let delay = (at - start).as_nanos() as f64 - due;
            carried.delay_each(together, delay.max(0.0) as u64);
            number += together;
        }
        done += numbers.end - numbers.start;
    };
    let mut on_device = 0;
    let mut back = |policy: &mut Option<OffloadPolicy>, finished: Option<Done>| {
        if let Some(Done { packets, took }) = finished {
            on_device += packets as u64;
            if let Some(policy) = policy {
                policy.learn(ExecutionPlace::Device, packets, took);
            }
        }
    };
    loop {
        let now = clock.now() - start;
        if now >= time {
            break;
        }
        back(policy, places.finish(false, &mut told)?);
        let now = now.as_secs_f64();
        let taken = places.next() - first;
        let waiting = ((now * rate) as u64 + 1).saturating_sub(taken) as usize;
        let oldest = Duration::from_secs_f64((now - taken as f64 / rate).max(0.0));
        match decide(policy.as_ref(), Waiting { packets: waiting, oldest }) {
            Decision::Run(ExecutionPlace::Device, packets) if places.is_ready() => places.submit(packets)?,
            Decision::Run(ExecutionPlace::Host, packets) if places.under_way() == 0 => {
                let took = places.here(packets, &mut told)?;
                if let Some(policy) = policy {
                    policy.learn(ExecutionPlace::Host, packets, took);
                }
            }
            // What is under way comes first.
            _ if places.under_way() > 0 => back(policy, places.finish(true, &mut told)?),
            Decision::Run(..) => return Err("the device takes no batch although it has none".to_owned()),
            Decision::Wait(most) => {
                let next = (taken + waiting as u64) as f64 / rate - now;
                // A nanosecond more, so that the packet is due for sure.
                let next = Duration::from_secs_f64(next.max(0.0)) + Duration::from_nanos(1);
                clock.wait(most.map_or(next, |most| most.min(next)));
            }
        }
    }
    while places.under_way() > 0 {
        back(policy, places.finish(true, &mut told)?);
    }
    carried.end(done, on_device, (clock.now() - start).as_nanos() as u64);
    Ok(carried)
}
