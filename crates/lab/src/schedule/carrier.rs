//! The schedules of a device take turns, each in front now and then; one that fails leaves the others whole.

use super::due::{Due, Pattern};
use super::live::{Refusal, Station};
use super::policies::Named;
use super::rows::Cell;
use super::simulate::Simulated;
use super::used::Used;
use crate::device_workload::DeviceWorkload;
use crate::load_result::LoadResult;
use exec::QueueDepth;
use offload::device_queue::DeviceQueue;
use std::time::Duration;

/// The least and the most packets of a load.
const PACKETS: (usize, usize) = (512, 4_000_000);

/// A schedule on a device, and in simulated time.
pub(super) struct Lane {
    pub(super) named: Named,
    /// Which of the stations it runs on.
    pub(super) station: usize,
    /// What that has room for.
    pub(super) depth: QueueDepth,
    pub(super) device_queue: DeviceQueue,
    pub(super) simulated: Simulated,
    /// Why it has no figures.
    pub(super) failed: Option<String>,
}

/// A load, with what came of it by schedule.
pub(super) struct Load {
    /// What rows say between the device and the schedule.
    pub(super) case: String,
    /// Its part of what the fixed batch carries; none at saturation.
    pub(super) part: Option<f64>,
    pub(super) cells: Vec<Cell>,
}

/// The schedules of a device, which take turns.
pub(super) struct Carrier<'a> {
    used: &'a Used<'a>,
    workload: &'a mut DeviceWorkload,
    /// None where it failed and could not be opened again.
    stations: Vec<Option<Station>>,
    lanes: Vec<Lane>,
    runs: usize,
    time: Duration,
}

impl<'a> Carrier<'a> {
    /// Measures every load `runs` times, for `time` each.
    pub(super) fn new(
        used: &'a Used<'a>,
        workload: &'a mut DeviceWorkload,
        stations: Vec<Station>,
        lanes: Vec<Lane>,
        runs: usize,
        time: Duration,
    ) -> Carrier<'a> {
        let stations = stations.into_iter().map(Some).collect();
        Carrier { used, workload, stations, lanes, runs, time }
    }

    /// As much as is carried. The first round warms up.
    pub(super) fn saturation(&mut self) -> Load {
        let due = Due::Always(self.time.as_nanos() as u64);
        let mut cells: Vec<Cell> = self.lanes.iter().map(|_| Cell::default()).collect();
        for round in 0..=self.runs {
            self.round(due, &mut cells, round);
            if round == 0 {
                cells.fill_with(Cell::default);
            }
        }
        Load { case: "saturation".to_owned(), part: None, cells }
    }

    /// So many packets a second, a part of a rate.
    pub(super) fn load(&mut self, case: String, part: f64, pattern: Pattern, capacity: f64) -> Load {
        let rate = part * capacity;
        let mut cells: Vec<Cell> = self.lanes.iter().map(|_| Cell::default()).collect();
        for round in 0..self.runs {
            let times = times(pattern, rate, self.time, round);
            self.round(Due::At(&times), &mut cells, round);
        }
        Load { case, part: Some(part), cells }
    }

    /// The last schedule and the first by turns, at a rate or at saturation, so many rounds of such a time.
    /// None where one of them fails.
    pub(super) fn beside(
        &mut self,
        rate: Option<f64>,
        rounds: usize,
        time: Duration,
    ) -> Option<Vec<[LoadResult; 2]>> {
        let ends = [self.lanes.len().checked_sub(1)?, 0];
        let round = |round: usize| {
            let times = rate.map(|rate| times(Pattern::Poisson, rate, time, round));
            let due = times.as_deref().map_or(Due::Always(time.as_nanos() as u64), Due::At);
            let mut carried = [None, None];
            for place in in_turn(ends.len(), round) {
                carried[place] = self.carry(ends[place], due);
            }
            let [last, first] = carried;
            Some([last?, first?])
        };
        (0..rounds).map(round).collect()
    }

    /// The schedules, with why they have no figures if they have none.
    pub(super) fn end(self) -> Vec<(Named, Option<String>)> {
        self.lanes.into_iter().map(|lane| (lane.named, lane.failed)).collect()
    }

    /// Every schedule once, and its simulation.
    fn round(&mut self, due: Due<'_>, cells: &mut [Cell], round: usize) {
        for place in in_turn(self.lanes.len(), round) {
            let Some(measured) = self.carry(place, due) else { continue };
            let lane = &mut self.lanes[place];
            match lane.simulated.run(due).carried() {
                Ok(simulated) => {
                    cells[place].measured.push(measured);
                    cells[place].simulated.push(simulated);
                }
                Err(why) => lane.failed = Some(why),
            }
        }
    }

    /// Lets a schedule carry. Where it fails, its device may still have packets of it, and is opened again
    /// for the others.
    fn carry(&mut self, place: usize, due: Due<'_>) -> Option<LoadResult> {
        let lane = &mut self.lanes[place];
        if lane.failed.is_some() {
            return None;
        }
        let (index, depth) = (lane.station, lane.depth);
        let why = match self.stations[index].as_mut()?.carry(self.workload, &mut lane.device_queue, due) {
            Ok(carried) => return Some(carried),
            Err(why) => why,
        };
        // The old one goes first: a device may not have room for both.
        self.stations[index] = None;
        match Station::open(self.used, self.workload, depth) {
            Ok(station) => self.stations[index] = Some(station),
            Err(Refusal::Absent(again) | Refusal::Failed(again)) => {
                let name = &lane.named.name;
                let since =
                    format!("{name} failed ({why}), and then the device could not be opened: {again}");
                let others = self.lanes.iter_mut().filter(|other| other.station == index);
                others.for_each(|other| {
                    other.failed.get_or_insert_with(|| since.clone());
                });
            }
        }
        self.lanes[place].failed = Some(why);
        None
    }
}

/// Every place once, each in front in one round after the other.
fn in_turn(places: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..places).map(move |place| (place + round) % places)
}

/// When packets fall due at a rate for a time. Every round has other arrivals, the same for all schedules.
fn times(pattern: Pattern, rate: f64, time: Duration, round: usize) -> Vec<u64> {
    let rate = rate.max(1.0);
    let count = (rate * time.as_secs_f64()) as usize;
    pattern.times(rate, count.clamp(PACKETS.0, PACKETS.1), 1 + round as u64)
}
