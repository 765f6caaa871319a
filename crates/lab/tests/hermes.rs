//! The experiment on the simulated device, with few packets: what is reported hangs together, and what cannot
//! be is refused with its limit.

use lab::{
    DeviceChoice, Experiment, ExperimentKind, LabError, LabPlan, Length, Machine, Row, TablesPlan,
    TrafficCapture,
};

fn run(simulated: &[(&str, u32)]) -> Result<Experiment, LabError> {
    let plan = LabPlan {
        kinds: vec![ExperimentKind::Hermes],
        captures: vec![TrafficCapture::Generated(1)],
        runs: 1,
        length: Length::Repeat(1),
        quick: true,
        tables: TablesPlan::default(),
        gateways: Vec::new(),
        prefixes: Vec::new(),
        guest: None,
        device: DeviceChoice::Best,
        until: None,
        simulated: simulated.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect(),
    };
    Ok(lab::run(&plan, &Machine::describe("", ""), &mut |_| ())?.remove(0))
}

/// The middle figure of the one row of a case whose words begin so.
fn figure(rows: &[Row], case: &str, what: &str) -> f64 {
    let found = rows.iter().find(|row| row.case == case && row.what.starts_with(what));
    let row = found.unwrap_or_else(|| panic!("there is no {what} of {case}"));
    row.ours.as_ref().expect("a figure").median
}

#[test]
fn the_figures_of_the_publication_are_there_and_hang_together() {
    let rows = run(&[]).expect("it runs").rows;
    for row in &rows {
        let ours = row.ours.as_ref().expect("every row has a figure");
        assert!(ours.low <= ours.median && ours.median <= ours.high, "{row:?}");
    }
    assert_eq!(figure(&rows, "storage, 8 cores", "FIFO"), 5.5);
    let case = "limits, classifier, 32 warps a core are not possible";
    assert_eq!(figure(&rows, case, "most that registers allow"), 13.0);
    // The best case of the publication is five times the throughput; ours is as much where frames take
    // nothing of the memory.
    let case = |name| format!("headlines, {name}, against the serial baseline");
    let best =
        ["DPI", "classifier", "route lookup", "TTL"].map(|name| figure(&rows, &case(name), "throughput"));
    assert!(best.iter().copied().fold(0.0, f64::max) >= 4.0, "{best:?}");
    let free = rows.iter().find(|row| {
        row.case == "sensitivity, frames take nothing of the memory" && row.what.starts_with("throughput")
    });
    assert!(free.and_then(|row| row.ours.as_ref()).is_some_and(|ours| ours.high >= 5.0), "{free:?}");
    for panel in ["a: ", "b: ", "c: ", "d: ", "e: ", "f: "] {
        assert!(rows.iter().filter(|row| row.what.starts_with(panel)).count() >= 4, "{panel}");
    }
    let order = rows.iter().filter(|row| row.what.starts_with("d: ")).filter_map(|row| row.ours.as_ref());
    assert!(order.map(|ours| ours.low).all(|low| low >= 1.0), "order costs time and gives none");
    for source in ["evenly", "at random", "in bursts of 512", "seldom"] {
        let rows = rows.iter().filter(|row| row.case.contains(&format!("by source at half load, {source}")));
        assert_eq!(rows.count(), 7 * 2 * 3, "{source}");
    }
    for load in [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95] {
        let runs = if load < 0.8 { 3 } else { 8 };
        let case = format!("equal load, {load} of what");
        let rows: Vec<&Row> = rows.iter().filter(|row| row.case.contains(&case)).collect();
        assert_eq!(rows.len(), 7 * 3 * 3, "{load}");
        for row in rows {
            let (ours, other) = (row.ours.as_ref(), row.other.as_ref());
            let counts = (ours.map(|ours| ours.values.len()), other.map(|other| other.values.len()));
            assert_eq!(counts, (Some(runs), Some(runs)), "every system at this load: {row:?}");
        }
    }
    for name in ["DPI", "classifier", "route lookup", "TTL", "expiring TTL", "header check", "fragmentation"]
    {
        let case = format!("answers, {name} over the simulated device");
        assert_eq!(figure(&rows, &case, "packets whose"), 512.0);
        let finished = figure(&rows, &case, "of them finished by the device");
        // What has to be cut goes back to the host.
        assert!(finished > 450.0 || name == "fragmentation" && finished > 256.0, "{name}: {finished}");
    }
    let both = figure(&rows, "divergence, expiring TTL", "capacity where a warp takes its longest lane");
    assert!((1.0..2.0).contains(&both), "both ways are more work than one, and less than twice: {both}");
    let divergence = |name: &str| figure(&rows, &format!("divergence, {name}"), "capacity with");
    assert!(
        divergence("DPI") > 1.5 && (divergence("TTL") - 1.0).abs() < 0.001,
        "lengths cost, and equal ones nothing"
    );
    // How fast it is is not for a test to say; that a figure is there is.
    let speed = rows
        .iter()
        .filter(|row| row.what == "simulated packets a second")
        .filter_map(|row| row.ours.as_ref());
    let speed: Vec<f64> = speed.map(|ours| ours.median).collect();
    println!("millions of simulated packets a second: {speed:?}");
    assert!(speed.len() == 3 && speed.iter().all(|speed| *speed > 0.0));
    // Nothing that has to be chosen decides whether Hermes is ahead of the serial baseline somewhere.
    for row in rows.iter().filter(|row| row.what.starts_with("throughput by")) {
        assert!(row.ours.as_ref().is_some_and(|ours| ours.high > 1.5), "{row:?}");
    }
}

#[test]
fn sources_and_captures_come_at_the_rate_that_is_set() {
    let rows = run(&[("line", 10), ("packets", 256), ("cores", 3)]).expect("it runs").rows;
    for name in ["DPI", "classifier", "route lookup", "TTL"] {
        for case in [
            format!("sample1 (generated) at 10 Gb/s, {name}"),
            format!("{name} by source at 10 Gb/s, evenly"),
        ] {
            let delays =
                ["mean delay", "median delay", "99th percentile"].map(|what| figure(&rows, &case, what));
            assert!(delays[0] > 0.0 && delays[1] > 0.0 && delays[1] <= delays[2], "{case}: {delays:?}");
        }
    }
    assert_eq!(
        figure(&rows, "storage, 17 cores", "FIFO"),
        6.3125,
        "that of the publication's meshes, whatever runs"
    );
}

#[test]
fn packets_at_random_near_what_hermes_takes_have_more_runs() {
    let rows = run(&[("load", 90), ("packets", 256)]).expect("it runs").rows;
    for (source, runs) in [("evenly", 3), ("at random", 8), ("in bursts of 512", 3), ("seldom", 3)] {
        let case = format!("TTL by source at 90 % load, {source}");
        let row = rows.iter().find(|row| row.case.starts_with(&case)).expect("the row is there");
        assert_eq!(row.ours.as_ref().map(|ours| ours.values.len()), Some(runs), "{source}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_limit() {
    for (simulated, sentence) in [
        (("fifo", 0), "fifo=0 is not possible; from 1 to 32768 entries of the task FIFO"),
        (
            ("queue", 1000),
            "entries of the commit queue: 1000 is not a power of two; 512 is the nearest one below",
        ),
        (("registers", 2000), "concurrent warps whose registers a core has: 8 is not possible; from 1 to 1"),
        (("registers", 100), "registers of a core: 100 are not enough; a warp of the kernel needs 1536"),
        (
            ("shared", 16_383),
            "bytes of shared memory of a core: 16383 are not enough; the kernel needs 16384",
        ),
        (("cores", 0), "cores=0 is not possible; from 1 to 1024 cores"),
        (("cores", 70_000), "cores=70000 is not possible; from 1 to 1024 cores"),
        (("bandwidth", 0), "bandwidth=0 is not possible; from 1 to 4096 bytes of memory a ns"),
        (("channels", 256), "channels=256 is not possible; from 1 to 64 channels of memory"),
        (("batch", 0), "batch=0 is not possible; from 1 to 1048576 packets of a batch"),
        (("bus", 0), "bus=0 is not possible; from 1 to 4096 bytes of the bus a ns"),
        (("packets", 10_000_001), "packets=10000001 is not possible; from 1 to 10000000 packets of a run"),
        (("fish", 1), "`fish` is nothing of the simulation; there are cores, registers, shared"),
    ] {
        let error = run(&[simulated]).expect_err(sentence).to_string();
        assert!(error.starts_with(sentence), "{error}");
    }
}
