//! The crossover on a made-up device, whose costs are known and whose time is counted: what is found is where
//! arithmetic says.

use gpu::{Device, DeviceError, Geometry, Host, Input, Setup, SlotMemory, SlotOutput, Submission, study};
use lab::crossover::{CrossoverBench, measure};
use lab::device_run::{DeviceSource, KernelCode, LabClock, Wall, find};
use lab::{DeviceChoice, Experiment, LabPlan, Length, Machine, Row, TablesPlan};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Nanoseconds of a packet on the processor.
const CORE: u64 = 1000;

/// Time that passes only when somebody says so.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicU64>);

impl Counted {
    fn nanos(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl LabClock for Counted {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    fn wait(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    fn ran(&self, packets: usize) {
        self.wait(Duration::from_nanos(CORE * packets as u64));
    }
}

/// What a batch costs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Costs {
    fixed: u64,
    slope: u64,
    overlaps: bool,
}

const USUAL: Costs = Costs { fixed: 300_000, slope: 100, overlaps: false };

/// What comes of it, measured once.
fn usual() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| run(USUAL, |_| ()))
}

/// Makes devices that take a known time.
struct MadeUp {
    clock: Counted,
    costs: Costs,
    /// From this batch of a device on one verdict is another one.
    wrong_from: Option<u64>,
    /// From this batch on it fails.
    fails_from: Option<u64>,
}

/// Threads do the work, and the counted time says how long it took.
struct Slow {
    inner: Host,
    clock: Counted,
    costs: Costs,
    /// When what each slot holds is done.
    done: Vec<u64>,
    /// When the last batch is done: one runs at a time.
    free: u64,
    batches: u64,
    wrong_from: Option<u64>,
    fails_from: Option<u64>,
    changed: Vec<u32>,
}

impl DeviceSource for MadeUp {
    fn name(&self) -> String {
        "made up (driver 1)".to_owned()
    }

    fn model(&self) -> String {
        "made up".to_owned()
    }

    fn memories(&self) -> &'static [SlotMemory] {
        &[study::PAGEABLE]
    }

    fn submissions(&self) -> &'static [Submission] {
        &[Submission::Queued]
    }

    fn open(
        &self,
        code: &dyn KernelCode,
        geometry: Geometry,
        _: Setup,
    ) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(Slow {
            inner: code.host(geometry)?,
            clock: self.clock.clone(),
            costs: self.costs,
            done: vec![0; geometry.slots],
            free: 0,
            batches: 0,
            wrong_from: self.wrong_from,
            fails_from: self.fails_from,
            changed: Vec::new(),
        }))
    }
}

impl Device for Slow {
    fn name(&self) -> String {
        "made up".to_owned()
    }

    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.inner.upload(table, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.inner.patch(table, first, words)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.inner.input(slot)
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let Costs { fixed, slope, overlaps } = self.costs;
        let sloping = slope * packets as u64;
        let takes = if overlaps { fixed.max(sloping) } else { fixed + sloping };
        self.free = self.free.max(self.clock.nanos()) + takes;
        self.done[slot] = self.free;
        self.batches += 1;
        if self.fails_from.is_some_and(|from| self.batches >= from) {
            let (device, cause) = (self.name(), "on purpose".to_owned());
            return Err(DeviceError::Failed { device, doing: "start a batch", cause });
        }
        self.inner.submit(slot, packets)
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        let (now, done) = (self.clock.nanos(), self.done[slot]);
        if !wait && now < done {
            return Ok(false);
        }
        self.clock.wait(Duration::from_nanos(done.saturating_sub(now)));
        self.inner.poll(slot, true)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        let output = self.inner.output(slot)?;
        if self.wrong_from.is_none_or(|from| self.batches < from) {
            return Ok(output);
        }
        self.changed = output.verdicts.to_vec();
        if let Some(word) = self.changed.get_mut(5) {
            *word ^= 1;
        }
        Ok(SlotOutput { verdicts: &self.changed, ..output })
    }
}

fn plan() -> LabPlan {
    LabPlan {
        kinds: Vec::new(),
        captures: Vec::new(),
        runs: 1,
        length: Length::Seconds(0.02),
        quick: true,
        tables: TablesPlan::default(),
        gateways: Vec::new(),
        prefixes: Vec::new(),
        guest: None,
        simulated: Vec::new(),
        device: DeviceChoice::Best,
        until: None,
    }
}

fn run(costs: Costs, change: impl FnOnce(&mut MadeUp)) -> Vec<Row> {
    let clock = Counted::default();
    let mut device_source = MadeUp { clock: clock.clone(), costs, wrong_from: None, fails_from: None };
    change(&mut device_source);
    let plan = plan();
    let only = ["lpm".to_owned()];
    let bench = CrossoverBench { device_source: &device_source, clock: &clock, only: &only, until: None };
    let (rows, mode, left_out) = measure(&bench, &plan, &mut |_| ()).expect("tables can be made");
    assert!(mode.contains("made up") && left_out.is_empty(), "{mode}");
    rows
}

fn figure(rows: &[Row], what: &str) -> f64 {
    let row = rows.iter().find(|row| row.what.starts_with(what));
    let row = row.unwrap_or_else(|| panic!("no row of {what}: {rows:#?}"));
    row.ours.as_ref().unwrap_or_else(|| panic!("{row:?} has no figure")).median
}

#[test]
fn the_crossover_is_where_arithmetic_says_and_the_form_that_fits_is_named() {
    for overlaps in [false, true] {
        let rows = if overlaps { run(Costs { overlaps, ..USUAL }, |_| ()) } else { usual().to_vec() };
        for row in &rows {
            assert!(row.ours.is_some(), "{row:?}");
        }
        // 300,000 / (1000 - 100), or 300,000 / 1000.
        let arithmetic = if overlaps { 300.0 } else { 30_000.0 / 90.0 };
        let form = if overlaps { "T = max(T0, B · slope)" } else { "T = T0 + B · slope" };
        assert!(figure(&rows, &format!("{form} fits better")) < 2.0);
        assert!((figure(&rows, &format!("{form}: T0")) / 300.0 - 1.0).abs() < 0.05);
        assert!((figure(&rows, &format!("{form}: slope")) / 100.0 - 1.0).abs() < 0.05);
        let by_formulas = figure(&rows, "by the formulas, both take the same time at");
        assert!((by_formulas / arithmetic - 1.0).abs() < 0.05, "{by_formulas} and not {arithmetic}");
        let measured = figure(&rows, "both take the same time at");
        assert!((measured / arithmetic - 1.0).abs() < 0.15, "{measured} and not {arithmetic}");
        assert!(rows.iter().any(|row| row.what.starts_with("the device is faster from batch 512 on")));
        for (batch, core, device) in [(8, 8.0, 300.8), (2048, 2048.0, 504.8)] {
            let row =
                rows.iter().find(|row| row.case == format!("lpm, batch {batch}")).expect("it was measured");
            let held = row.other.as_ref().expect("a core stands beside").median;
            assert!((held / core - 1.0).abs() < 1e-6, "{row:?}");
            let found = row.ours.as_ref().expect("a figure").median;
            let device = if overlaps { 300.0 } else { device };
            assert!(found / device < 1.01, "{row:?}");
        }
        assert_eq!(figure(&rows, "finished of what the device got"), 100.0);
    }
}

#[test]
fn the_cost_model_is_within_a_tenth_of_the_better_policy_at_every_load() {
    for (fixed, slope) in [(300_000, 100), (300_000, 1500), (20_000, 400)] {
        let costs = Costs { fixed, slope, overlaps: false };
        let rows = if costs == USUAL { usual().to_vec() } else { run(costs, |_| ()) };
        let off = figure(&rows, "packets done, off the better of the two at most");
        assert!(off <= 10.0, "{off} % at {fixed} + {slope}: {rows:#?}");
        let delay = figure(&rows, "median delay, off the better of the two at most");
        assert!(delay <= 10.0, "{delay} % at {fixed} + {slope}: {rows:#?}");
        let share = |load: &str, policy: &str| {
            let row = rows.iter().find(|row| {
                row.case.contains(load) && row.case.ends_with(policy) && row.what == "given to the device"
            });
            row.and_then(|row| row.ours.as_ref())
                .unwrap_or_else(|| panic!("{load}, {policy}: {rows:#?}"))
                .median
        };
        let loads: Vec<&str> = rows
            .iter()
            .filter(|row| row.what == "given to the device" && row.case.ends_with("cost model"))
            .filter_map(|row| row.case.split(", ").nth(1))
            .collect();
        let heaviest = loads.last().expect("there are loads");
        assert_eq!((share(heaviest, "processor only"), share(heaviest, "device only")), (0.0, 100.0));
        // Above what the processor carries nearly all goes to the device where that is faster, and nearly
        // nothing where it is not.
        let given = share(heaviest, "cost model");
        assert!(if slope < CORE { given > 90.0 } else { given < 10.0 }, "{given} % at {fixed} + {slope}");
    }
}

#[test]
fn a_driver_for_processors_gives_figures_of_programs_that_learn_and_that_search() {
    let plan = LabPlan { length: Length::Repeat(2), device: DeviceChoice::OpenCl, ..plan() };
    let device_source = find(plan.device).expect("there is an OpenCL driver");
    let only = ["mac_switch", "Bloom filter"].map(str::to_owned);
    let bench = CrossoverBench {
        device_source: device_source.as_ref(),
        clock: &Wall::default(),
        only: &only,
        until: None,
    };
    let (rows, _, _) = measure(&bench, &plan, &mut |_| ()).expect("tables can be made");
    for row in &rows {
        let figure = row.ours.as_ref().unwrap_or_else(|| panic!("{row:?}"));
        assert!(figure.low <= figure.median && figure.median <= figure.high, "{row:?}");
    }
    let finished: Vec<f64> = rows
        .iter()
        .filter(|row| row.what == "finished of what the device got")
        .filter_map(|row| Some(row.ours.as_ref()?.median))
        .collect();
    assert_eq!(finished, [100.0, 100.0]);
    // What is left when the time is over is said.
    let bench = CrossoverBench { until: Some(Duration::ZERO), ..bench };
    let (rows, _, left_out) = measure(&bench, &plan, &mut |_| ()).expect("tables can be made");
    assert!(rows.is_empty() && left_out.len() == 2, "{left_out:?}");
}

#[test]
fn a_device_that_is_never_faster_is_said_to_be() {
    let rows = run(Costs { fixed: 300_000, slope: 1500, overlaps: false }, |_| ());
    assert!(figure(&rows, "the device is faster at no batch") < 1.0);
    assert!(!rows.iter().any(|row| row.what.starts_with("both take the same time")), "{rows:#?}");
}

#[test]
fn one_wrong_verdict_or_a_failure_takes_the_figures_away() {
    let rows = run(USUAL, |device_source| device_source.wrong_from = Some(7));
    assert!(!rows.is_empty() && rows.iter().all(|row| row.ours.is_none()), "{rows:#?}");
    assert!(rows[0].what.contains("the verdict on packet"), "{rows:#?}");
    let rows = run(USUAL, |device_source| device_source.fails_from = Some(7));
    assert!(!rows.is_empty() && rows.iter().all(|row| row.ours.is_none()), "{rows:#?}");
    assert!(rows[0].what.contains("made up failed while it was to start a batch: on purpose"), "{rows:#?}");
    let machine = Machine::describe("", "");
    let html = lab::page(&[Experiment { experiment: "crossover".to_owned(), machine, rows }]);
    assert!(html.contains("no figure") && !html.contains("<svg"), "{html}");
}

#[test]
fn the_page_has_curves_by_batch_and_by_load() {
    let rows = usual().to_vec();
    let machine = Machine::describe("", "");
    let html = lab::page(&[Experiment { experiment: "crossover".to_owned(), machine, rows }]);
    assert_eq!(html.matches("<svg").count(), 3, "{html}");
    assert!(
        html.contains("lpm by batch: the device is faster from batch 512 on") && html.contains("cost model")
    );
}
