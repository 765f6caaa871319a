//! Schedules on threads, on a driver for processors and on devices that lie: the shape of what is told, and
//! that nothing wrong is.

use gpu::{Device, DeviceError, Geometry, Host, Input, Setup, SlotMemory, SlotOutput, Submission, study};
use lab::device_run::{DeviceSource, KernelCode, find};
use lab::schedule::{ScheduleBench, Used, measure};
use lab::{DeviceChoice, Experiment, LabPlan, Length, Machine, Row, TablesPlan};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const SCHEDULES: [&str; 5] = ["batch:256", "timeout", "deadline", "cost", "hermes"];

/// Threads that do something wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// One verdict of every batch from this one on, on devices for so many packets.
    Verdict(u64, usize),
    /// One verdict in all: of the first batch on a device for 256 packets since one for warps was made. That
    /// is the first that the first schedule carries.
    First,
    /// The same, and no further device can be had.
    Last,
    /// They fail with this batch.
    Failure(u64),
}

/// Makes such devices, which take any submission but recorded ones.
struct MadeUp {
    wrong: Wrong,
    /// Whether the next batch that can be wrong is.
    ready: Arc<AtomicBool>,
    /// Whether the one verdict was wrong.
    told: Arc<AtomicBool>,
}

impl MadeUp {
    fn new(wrong: Wrong) -> MadeUp {
        MadeUp { wrong, ready: Arc::default(), told: Arc::default() }
    }
}

struct Liar {
    inner: Host,
    wrong: Wrong,
    ready: Arc<AtomicBool>,
    told: Arc<AtomicBool>,
    batches: Arc<AtomicU64>,
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
        &[SlotMemory::Mapped]
    }

    fn submissions(&self) -> &'static [Submission] {
        &[Submission::Queued, study::GRAPH]
    }

    fn open(
        &self,
        code: &dyn KernelCode,
        geometry: Geometry,
        setup: Setup,
    ) -> Result<Box<dyn Device>, DeviceError> {
        if setup.submission == study::GRAPH {
            return Err(DeviceError::Missing { what: "no graphs".into(), how: "launch".into() });
        }
        if self.wrong == Wrong::Last && self.told.load(Relaxed) {
            return Err(DeviceError::Missing { what: "it is gone".into(), how: "bring it back".into() });
        }
        if geometry.packets == 32 {
            self.ready.store(true, Relaxed);
        }
        let inner = code.host(geometry)?;
        let (ready, told) = (Arc::clone(&self.ready), Arc::clone(&self.told));
        Ok(Box::new(Liar {
            inner,
            wrong: self.wrong,
            ready,
            told,
            batches: Arc::default(),
            changed: Vec::new(),
        }))
    }
}

impl Device for Liar {
    fn name(&self) -> String {
        "made up".to_owned()
    }

    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn workers(&self) -> usize {
        self.inner.workers()
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
        let batches = 1 + self.batches.fetch_add(1, Relaxed);
        if self.wrong == Wrong::Failure(batches) {
            let (device, cause) = (self.name(), "on purpose".to_owned());
            return Err(DeviceError::Failed { device, doing: "start a batch", cause });
        }
        self.inner.submit(slot, packets)
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        self.inner.poll(slot, wait)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        let packets = self.geometry().packets;
        let output = self.inner.output(slot)?;
        let lies = match self.wrong {
            Wrong::Verdict(from, room) => room == packets && self.batches.load(Relaxed) >= from,
            Wrong::First | Wrong::Last if packets == 256 && self.ready.load(Relaxed) => {
                !self.told.swap(true, Relaxed)
            }
            _ => false,
        };
        match lies {
            true => {
                self.changed = output.verdicts.to_vec();
                self.changed[0] ^= 1;
                Ok(SlotOutput { verdicts: &self.changed, ..output })
            }
            false => Ok(output),
        }
    }
}

fn plan() -> LabPlan {
    LabPlan {
        kinds: Vec::new(),
        captures: Vec::new(),
        runs: 2,
        length: Length::Repeat(1),
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

fn used<'a>(name: &str, device_source: &'a dyn DeviceSource, submission: Submission) -> Used<'a> {
    let setup = Setup { memory: SlotMemory::Mapped, submission, timed: false };
    let most = if submission == Submission::Persistent { 32 } else { 256 };
    Used { name: name.to_owned(), device_source, setup, most, wanted: false }
}

fn run(used: &[Used<'_>]) -> Vec<Row> {
    let bench = ScheduleBench { used, only: &["lpm"], until: None };
    let (rows, mode, left_out) = measure(&bench, &plan(), &mut |_| ()).expect("tables can be made");
    assert!(mode.contains("lpm, and rules one by one, over") && mode.contains("timeout is"), "{mode}");
    assert!(left_out.is_empty(), "{left_out:?}");
    rows
}

fn page(rows: Vec<Row>) -> String {
    let machine = Machine::describe("", "");
    lab::page(&[Experiment { experiment: "schedule".to_owned(), machine, rows }])
}

#[test]
fn every_schedule_has_its_figures_measured_and_simulated_at_every_load() {
    let device_source = find(DeviceChoice::Host).expect("there are threads");
    let rows = run(&[used("host", device_source.as_ref(), Submission::Queued)]);
    for row in &rows {
        let figure = row.ours.as_ref().unwrap_or_else(|| panic!("{row:?}"));
        assert!(figure.low <= figure.median && figure.median <= figure.high, "{row:?}");
    }
    let whats = [
        "packets done",
        "given to the device",
        "median delay",
        "90 % of delays below",
        "99 % of delays below",
        "99.9 % of delays below",
        "interquartile range of delays",
    ];
    for schedule in SCHEDULES {
        let of = |load: &str| -> Vec<&Row> {
            let own = rows.iter().filter(|row| row.case.ends_with(&format!(", {schedule}")));
            own.filter(|row| row.case.starts_with(&format!("host lpm, {load}"))).collect()
        };
        for load in ["Poisson, load 0.25 of ", "Poisson, load 0.50 of "] {
            let own = of(load);
            assert_eq!(own.iter().map(|row| &row.what[..]).collect::<Vec<_>>(), whats, "{schedule}");
            assert!(own.iter().all(|row| row.other.as_ref().is_some_and(|other| other.name == "simulated")));
            let [half, most, all] = [2, 4, 5].map(|place| own[place].ours.as_ref().expect("a figure").median);
            assert!(half <= most && most <= all, "{own:?}");
        }
        assert_eq!(of("saturation").len(), 2, "{rows:#?}");
    }
    // A fixed batch goes to the device as a whole; Hermes gives it everything, too.
    for schedule in ["batch:256", "hermes"] {
        let share = rows
            .iter()
            .filter(|row| row.case.ends_with(&format!(", {schedule}")) && row.what == "given to the device");
        assert!(
            share.clone().count() == 3
                && share.clone().all(|row| row.ours.as_ref().expect("one").low == 100.0)
        );
    }
    let beside: Vec<&Row> =
        rows.iter().filter(|row| row.case == "host lpm, hermes beside batch:256").collect();
    assert_eq!(beside.len(), 4, "{rows:#?}");
    for pair in beside.chunks(2) {
        let (row, by_round) = (pair[0], pair[1]);
        assert!(row.ratio.is_some() && row.what.contains("wanted"), "{row:?}");
        assert_eq!(row.other.as_ref().map(|other| &other.name[..]), Some("batch:256"));
        assert_eq!(by_round.what, format!("{}: the ratio round by round", row.what));
        // The ratio of the middle figures lies within what the rounds' figures allow.
        let (ours, other) = (row.ours.as_ref().expect("a figure"), row.other.as_ref().expect("another"));
        let (least, most) = match row.unit == "Mpps" {
            true => (ours.low / other.high, ours.high / other.low),
            false => (other.low / ours.high, other.high / ours.low),
        };
        let ratio = by_round.ours.as_ref().expect("a figure");
        assert!(least <= ratio.low && ratio.low < ratio.high && ratio.high <= most, "{pair:?}");
    }
    let own = rows.iter().filter(|row| row.what.starts_with("the laboratory's own work in the loop: "));
    assert_eq!(
        own.filter(|row| row.ours.as_ref().is_some_and(|ours| ours.median > 0.0)).count(),
        3,
        "{rows:#?}"
    );
    let html = page(rows);
    // Three curves and the bars at saturation.
    assert_eq!(html.matches("<svg").count(), 4, "{html}");
    assert!(html.contains("Measured, and in brackets simulated"), "{html}");
}

#[test]
fn a_wrong_verdict_takes_the_figures_of_its_schedule_away() {
    // Hermes alone has slots of 32 packets.
    let device_source = MadeUp::new(Wrong::Verdict(40, 32));
    let rows = run(&[used("made up", &device_source, Submission::Queued)]);
    let mut refused = 0;
    for row in &rows {
        let is_hermes = row.case.ends_with(", hermes");
        let is_beside = row.case == "made up lpm, hermes beside batch:256";
        assert_eq!(row.ours.is_none(), is_hermes || is_beside, "{row:?}");
        if is_beside {
            assert!(row.what.contains("no figure, since hermes failed: the verdict on packet"), "{row:?}");
        }
        if is_hermes {
            assert!(row.what.contains("no figure, since the verdict on packet"), "{row:?}");
            refused += 1;
        }
    }
    assert_eq!(refused, 3, "{rows:#?}");
    // From the first batch on: nothing can be told of the device at all.
    for wrong in [Wrong::Verdict(1, 256), Wrong::Failure(3)] {
        let device_source = MadeUp::new(wrong);
        let used = [used("made up", &device_source, Submission::Queued)];
        let bench = ScheduleBench { used: &used, only: &["lpm"], until: None };
        let (rows, ..) = measure(&bench, &plan(), &mut |_| ()).expect("tables can be made");
        assert!(rows.len() == 1 && rows[0].ours.is_none(), "{rows:#?}");
        let why = if wrong == Wrong::Failure(3) { "on purpose" } else { "the verdict on packet" };
        assert!(rows[0].what.contains(why), "{rows:#?}");
        assert!(!page(rows).contains("<svg"));
    }
}

#[test]
fn a_wrong_verdict_of_the_first_schedule_leaves_the_others_whole() {
    let device_source = MadeUp::new(Wrong::First);
    let rows = run(&[used("made up", &device_source, Submission::Queued)]);
    for schedule in SCHEDULES {
        let own: Vec<&Row> = rows.iter().filter(|row| row.case.ends_with(&format!(", {schedule}"))).collect();
        if schedule == "batch:256" {
            let failed = |row: &Row| row.ours.is_none() && row.what.contains("since the verdict on packet");
            assert!(own.len() == 3 && own.iter().all(|row| failed(row)), "{own:#?}");
        } else {
            // Both loads, whose rate was measured before, and saturation.
            assert_eq!(own.len(), 2 * 7 + 2, "{own:#?}");
            assert!(
                own.iter()
                    .all(|row| row.ours.as_ref().is_some_and(|ours| ours.high > 0.0) || row.unit == "%")
            );
        }
    }
    // What is wanted of two schedules says why it is not there.
    let beside: Vec<&Row> = rows.iter().filter(|row| row.case.contains("hermes beside batch:256")).collect();
    assert_eq!(beside.len(), 2, "{rows:#?}");
    for row in beside {
        assert!(row.ours.is_none(), "{row:?}");
        assert!(
            row.what.contains("wanted: no figure, since batch:256 failed: the verdict on packet"),
            "{row:?}"
        );
    }
    // Without a further device those that had the same one have none; Hermes has its own.
    let device_source = MadeUp::new(Wrong::Last);
    let rows = run(&[used("made up", &device_source, Submission::Queued)]);
    for schedule in SCHEDULES {
        let mut own = rows.iter().filter(|row| row.case.ends_with(&format!(", {schedule}")));
        let why = match schedule {
            "batch:256" => "no figure, since the verdict on packet",
            "hermes" => "",
            _ => "no figure, since batch:256 failed (the verdict on packet",
        };
        assert!(own.all(|row| row.what.contains(why) && row.ours.is_none() != why.is_empty()), "{rows:#?}");
    }
    assert!(rows.iter().any(|row| row.what.contains("then the device could not be opened: it is gone")));
}

#[test]
fn bursts_stand_beside_each_way_to_launch_them_and_a_lie_is_found() {
    let bursts = |wrong: Wrong| -> Vec<Row> {
        let device_source = MadeUp::new(wrong);
        let rows = run(&[used("made-up persistent", &device_source, Submission::Persistent)]);
        rows.into_iter().filter(|row| row.case.starts_with("made-up, bursts")).collect()
    };
    let rows = bursts(Wrong::Nothing);
    // Four sizes, three figures, and of the two ways to launch the one that there is.
    assert_eq!(rows.len(), 12, "{rows:#?}");
    for (row, size) in rows.iter().zip([16, 32, 64, 128].into_iter().flat_map(|size| [size; 3])) {
        assert_eq!(row.case, format!("made-up, bursts, {size} packets, persistent"));
        assert!(row.ours.is_some() && row.ratio.is_some(), "{row:?}");
        assert_eq!(row.other.as_ref().map(|other| &other.name[..]), Some("queued"));
    }
    let html = page(rows);
    // Bars for each of the three figures.
    assert_eq!(html.matches("<svg").count(), 3, "{html}");
    for said in ["64 packets", "queued", "; made-up, bursts, persistent"] {
        assert!(html.contains(said), "{said} is missing: {html}");
    }
    // Devices for launches have slots of 128 packets.
    let rows = bursts(Wrong::Verdict(30, 128));
    assert!(rows.len() == 4 && rows.iter().all(|row| row.ours.is_none()), "{rows:#?}");
    assert!(rows[0].what.contains("queued: the verdict on packet"), "{rows:#?}");
}

#[test]
fn a_driver_for_processors_is_measured_both_ways() {
    let device_source = find(DeviceChoice::OpenCl).expect("there is an OpenCL driver");
    let all = [Submission::Queued, Submission::Persistent];
    let all = all.map(|submission| {
        let kept = if submission == Submission::Persistent { " persistent" } else { "" };
        used(&format!("opencl{kept}"), device_source.as_ref(), submission)
    });
    let rows = run(&all);
    for name in ["opencl lpm, ", "opencl persistent lpm, ", "opencl, bursts, "] {
        assert!(rows.iter().any(|row| row.case.starts_with(name)), "{name}: {rows:#?}");
    }
    for row in &rows {
        assert!(row.ours.is_some(), "{row:?}");
    }
    // A kernel that keeps running gets warps, and how long it is busy with one was found from warps at
    // saturation: that proves nothing.
    for schedule in ["batch:32", "timeout"] {
        let case = format!("opencl persistent lpm, saturation, {schedule}");
        let row = rows.iter().find(|row| row.case == case && row.unit == "Mpps").expect("a row");
        let other = row.other.as_ref().expect("it is simulated");
        let is_fitted = schedule == "batch:32";
        assert_eq!((other.name != "simulated", row.ratio.is_none()), (is_fitted, is_fitted), "{row:?}");
    }
    // What is left when the time is over is said.
    let bench = ScheduleBench { used: &all, only: &[], until: Some(Instant::now()) };
    let (rows, _, left_out) = measure(&bench, &plan(), &mut |_| ()).expect("tables can be made");
    assert!(left_out.iter().any(|what| what == "opencl persistent rules"), "{left_out:?}");
    assert!(rows.iter().all(|row| row.ours.is_none()), "{rows:#?}");
}

#[test]
fn a_program_that_does_much_with_a_packet_is_measured_too() {
    let device_source = find(DeviceChoice::Host).expect("there are threads");
    let used = [used("host", device_source.as_ref(), Submission::Queued)];
    let bench = ScheduleBench { used: &used, only: &["rules"], until: None };
    let (rows, ..) = measure(&bench, &plan(), &mut |_| ()).expect("tables can be made");
    assert!(rows.iter().all(|row| row.ours.is_some() && row.case.starts_with("host rules, ")), "{rows:#?}");
}
