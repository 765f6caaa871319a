//! What becomes of the three headlines where one thing is otherwise that had to be chosen.

use super::panels::{Bench, Done, Of, TIMES};
use super::setting::{Altered, Setting, System, figure};
use super::work::Application;
use crate::experiment::{Figure, Row};
use offload::hermes::Rate;

impl Bench<'_> {
    /// Beyond the publication: what becomes of the three numbers where one thing is otherwise that had to be
    /// chosen.
    pub(super) fn sensitivity(&mut self) -> Done {
        (self.progress)("hermes: sensitivity");
        let base = Setting { packets: (self.setting.packets / 4).max(1), ..self.setting };
        for (what, setting) in variants(base) {
            let (mut times, mut mean, mut spread) = (Vec::new(), Vec::new(), Vec::new());
            for traffic in &self.traffic[..Application::DRAWN] {
                let warps = setting.most_warps(traffic.application)?;
                let setting = setting.with(warps, setting.hardware.cores);
                let line = setting.overload * setting.capacity(System::Hermes, traffic)?;
                let of = |system| setting.measures(system, traffic, &setting.burst(line));
                let (ours, other) = (of(System::Hermes)?, of(System::Serial)?);
                let ratio = |of: Of| Some(figure(&ours, of)?.median / figure(&other, of)?.median);
                times.extend(ratio(|measures| measures.throughput));
                mean.extend(ratio(|measures| measures.mean).map(|ratio| 100.0 * (1.0 - ratio)));
                spread.extend(ratio(|measures| measures.spread).map(|ratio| 100.0 * (1.0 - ratio)));
            }
            let case = format!("sensitivity, {what}");
            for (what, unit, values, paper) in [
                ("throughput by the serial baseline's", TIMES, times, 5.0),
                ("less mean delay", "%", mean, 81.2),
                ("less spread of delays", "%", spread, 72.9),
            ] {
                self.rows.push(Row::alone(&case, what, unit, Figure::mean_of(values), Some(paper)));
            }
        }
        Ok(())
    }
}

/// Everything that had to be chosen, otherwise.
fn variants(base: Setting) -> Vec<(String, Setting)> {
    let mut variants = vec![("as chosen".to_owned(), base)];
    let mut vary = |what: &str, change: &dyn Fn(&mut Setting)| {
        let mut setting = base;
        change(&mut setting);
        variants.push((what.to_owned(), setting));
    };
    for bandwidth in [12, 50, 102] {
        vary(&format!("memory {bandwidth} bytes a ns"), &|setting| setting.hardware.bandwidth = bandwidth);
    }
    for latency in [200, 800] {
        vary(&format!("memory latency {latency} ns"), &|setting| setting.hardware.latency = latency);
    }
    for (quarters, what) in [(2, "half a cycle"), (8, "2 cycles"), (16, "4 cycles")] {
        vary(&format!("{what} an instruction"), &|setting| setting.hardware.quarters = quarters);
    }
    for batch in [512, 1024, 8192] {
        vary(&format!("batches of {batch}"), &|setting| setting.baseline.batch = batch);
    }
    for micros in [10, 100] {
        vary(&format!("batches wait {micros} µs at most"), &|setting| {
            setting.baseline.timeout = micros * 1000
        });
    }
    for micros in [0, 50] {
        vary(&format!("{micros} µs a launch"), &|setting| setting.baseline.launch = micros * 1000);
    }
    vary("4 bytes a packet come back", &|setting| setting.baseline.frames_back = false);
    for overload in [1.2, 4.0] {
        vary(&format!("bursts of {overload} times what Hermes takes"), &|setting| {
            setting.overload = overload
        });
    }
    vary("bursts that come evenly", &|setting| setting.even = true);
    for (share, what) in [(4, "a quarter"), (2, "half")] {
        vary(&format!("bursts of {what} as many packets"), &|setting| {
            setting.packets = (setting.packets / share).max(1)
        });
    }
    vary("the last packets wait as those before", &|setting| setting.waits_at_end = true);
    for (quarters, what) in [(4, "1 warp arrival time"), (32, "8 warp arrival times")] {
        vary(&format!("flush after {what}"), &|setting| setting.scheduler.flush.quarters = quarters);
    }
    for shift in [3, 8] {
        vary(&format!("the mean gap of {} packets", 1 << shift), &|setting| {
            setting.scheduler.flush.rate = Rate::Average { shift }
        });
    }
    vary("the gap of the last 64 packets", &|setting| {
        setting.scheduler.flush.rate = Rate::Window { packets: 64 };
    });
    vary("the gap is known", &|setting| setting.rate_known = true);
    for (least, most) in [(0, 100_000), (100, 1_000), (10_000, 100_000)] {
        vary(&format!("a warp waits from {least} to {most} ns"), &|setting| {
            (setting.scheduler.flush.least, setting.scheduler.flush.most) = (least, most)
        });
    }
    for entries in [16, 128] {
        vary(&format!("commit queue of {entries}"), &|setting| setting.scheduler.commits = entries);
        vary(&format!("FIFO of {entries}"), &|setting| setting.scheduler.tasks = entries);
    }
    for channels in [4, 16] {
        vary(&format!("{channels} channels of memory"), &|setting| setting.hardware.channels = channels);
    }
    vary("frames take nothing of the memory", &|setting| setting.transfer = false);
    vary("16,384 registers a core", &|setting| setting.hardware.registers = 16_384);
    vary_packets(&mut vary);
    variants
}

/// Keeps the chosen setting with one change, under a name.
type Vary<'a> = dyn FnMut(&str, &dyn Fn(&mut Setting)) + 'a;

/// The packets and the programs that run over them, otherwise.
fn vary_packets(vary: &mut Vary<'_>) {
    let mut alter =
        |what: &str, change: &dyn Fn(&mut Altered)| vary(what, &|setting| change(&mut setting.altered));
    for lighter in [8, 32] {
        alter(&format!("DPI with {lighter} times fewer instructions"), &|altered| altered.lighter = lighter);
    }
    for bytes in [64, 576, 1518] {
        alter(&format!("packets of {bytes} bytes"), &|altered| altered.bytes = Some(bytes));
    }
    for (rules, what) in [(1, "a quarter of"), (16, "4 times")] {
        alter(&format!("classifier with {what} the rules to try"), &|altered| altered.rules = rules);
    }
    for nodes in [3, 24] {
        alter(&format!("route lookup with {nodes} more nodes"), &|altered| altered.nodes = nodes);
    }
}
