//! A scheduler takes its memory when it is made.

use offload::hermes::{HermesSettings, Scheduler};

#[test]
fn nothing_allocates_after_a_scheduler_is_made() {
    let mut scheduler = Scheduler::new(&HermesSettings::default()).expect("settings that can be");
    let counted = allocation_counter::measure(|| {
        for now in 0..2000 {
            scheduler.arrive(now * 100, 37);
            scheduler.advance(now * 100);
            while let Some(warp) = scheduler.issue() {
                // From some time on warps of one core never end, so that the queue fills, and then the FIFO.
                if warp.core != 3 || warp.first < 3200 {
                    scheduler.finish(warp.core, warp.slot).expect("it runs");
                }
            }
            while scheduler.commit().is_some() {}
        }
        scheduler.fail(3);
        while scheduler.issue().is_some() {}
    });
    assert!(scheduler.statistics().committed > 0 && scheduler.statistics().reissued > 0);
    assert_eq!(counted.count_total, 0);
}
