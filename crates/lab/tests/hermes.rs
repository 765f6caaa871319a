//! The experiment on the simulated device, with few packets: what is reported hangs together, and what cannot be is refused with its limit.

use lab::{DeviceChoice, Experiment, Kind, LabError, Length, Machine, Plan, Row, TablesPlan};

fn run(simulated: &[(&str, u32)]) -> Result<Experiment, LabError> {
    let plan = Plan {
        kinds: vec![Kind::Hermes],
        captures: Vec::new(),
        runs: 1,
        length: Length::Repeat(1),
        quick: true,
        tables: TablesPlan::default(),
        gateways: Vec::new(),
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
    row.ours.expect("a figure").median
}

#[test]
fn the_figures_of_the_publication_are_there_and_hang_together() {
    let rows = run(&[]).expect("it runs").rows;
    for row in &rows {
        let ours = row.ours.expect("every row has a figure");
        assert!(ours.low <= ours.median && ours.median <= ours.high, "{row:?}");
    }
    assert_eq!(figure(&rows, "storage, 8 cores", "FIFO"), 5.5);
    let case = "limits, classifier, 32 warps a core are not possible";
    assert_eq!(figure(&rows, case, "most that registers allow"), 30.0);
    // The best case of the publication is five times the throughput.
    let case = |name| format!("headlines, {name}, against the serial baseline");
    let best =
        ["DPI", "classifier", "route lookup", "TTL"].map(|name| figure(&rows, &case(name), "throughput"));
    assert!(best.iter().copied().fold(0.0, f64::max) >= 5.0, "{best:?}");
    for panel in ["a: ", "b: ", "c: ", "d: ", "e: ", "f: "] {
        assert!(rows.iter().filter(|row| row.what.starts_with(panel)).count() >= 4, "{panel}");
    }
    let order = rows.iter().filter(|row| row.what.starts_with("d: ")).filter_map(|row| row.ours);
    assert!(order.map(|ours| ours.low).all(|low| low >= 1.0), "order costs time and gives none");
    // Nothing that has to be chosen decides whether Hermes is ahead of the serial baseline somewhere.
    for row in rows.iter().filter(|row| row.what.starts_with("throughput by")) {
        assert!(row.ours.is_some_and(|ours| ours.high > 1.5), "{row:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_limit() {
    for (simulated, sentence) in [
        (("fifo", 0), "entries of the task FIFO: 0 is not possible; from 1 to 32768"),
        (
            ("queue", 1000),
            "entries of the commit queue: 1000 is not a power of two; 512 is the nearest one below",
        ),
        (("registers", 2000), "concurrent warps whose registers a core has: 8 is not possible; from 1 to 3"),
        (("cores", 2000), "cores: 2000 is not possible; from 1 to 1024"),
        (("cores", 70_000), "cores: 70000 is not possible; at most 65535"),
        (("bandwidth", 0), "bytes of memory a cycle: 0 is not possible; from 1 to 4096"),
        (("fish", 1), "`fish` is nothing of the simulated device; there are cores, registers, shared"),
    ] {
        let error = run(&[simulated]).expect_err(sentence).to_string();
        assert!(error.starts_with(sentence), "{error}");
    }
}
