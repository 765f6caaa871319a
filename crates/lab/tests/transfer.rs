//! The experiment on a device, with few packets at once: every way gives the interpreter's verdicts, and the
//! figures hang together.

use lab::{DeviceChoice, Experiment, ExperimentKind, LabError, LabPlan, Length, Machine, Row, TablesPlan};
use std::sync::LazyLock;

/// Run once for all tests.
static EXPERIMENT: LazyLock<Experiment> = LazyLock::new(|| {
    let mut experiments = run(DeviceChoice::OpenCl).expect("there is an OpenCL driver");
    experiments.remove(0)
});

fn run(device: DeviceChoice) -> Result<Vec<Experiment>, LabError> {
    let plan = LabPlan {
        kinds: vec![ExperimentKind::Transfer],
        captures: Vec::new(),
        runs: 1,
        length: Length::Repeat(3),
        quick: true,
        tables: TablesPlan::default(),
        gateways: Vec::new(),
        prefixes: Vec::new(),
        guest: None,
        device,
        until: None,
        simulated: Vec::new(),
    };
    lab::run(&plan, &Machine::describe("", ""), &mut |_| ())
}

/// What belongs to a case.
fn of<'a>(rows: &'a [Row], case: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.case == case).collect()
}

#[test]
fn iterations_are_right_and_their_parts_add_up() {
    let rows = &EXPERIMENT.rows;
    let mut ways = 0;
    for row in rows {
        let Some(ours) = &row.ours else {
            // What is not to be had here is a sentence, and only the ladder has such steps.
            assert!(row.unit.is_empty() && row.what.contains(": not here, since "), "{row:?}");
            assert!(row.case.contains(", ladder: "), "{row:?}");
            continue;
        };
        assert!(ours.low <= ours.median && ours.median <= ours.high, "{row:?}");
        if row.what == "sum of the parts" {
            let clock = row.other.as_ref().expect("the clock");
            assert!((ours.median - clock.median).abs() < 1e-3 * clock.median, "{row:?}");
            ways += usize::from(!row.case.contains(", ladder: "));
        }
    }
    // Eight algorithms of three functions, four iterations of each; one core and all cores beside six of
    // them; and one core and three iterations with sockets beside one; over three batches.
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(2));
    assert_eq!(ways, (8 * 4 + 6 * cores + 4) * 3);

    let four = of(rows, "firewall, the original's algorithms, 4 no gather and send, batch 512");
    let measure = |what: &str| four.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("{what}"));
    let value = |what: &str| measure(what).ours.as_ref().expect(what).median;
    let near = |left: f64, right: f64| (left - right).abs() < 1e-3 * right;
    let legacy = measure("the original's \"Gbps\", which are");
    assert_eq!((&legacy.unit[..], legacy.paper), ("MB/s", Some(300.0)));
    assert!(near(value(&legacy.what), 64.0 * value("packet rate")));
    // Bits of frames, and on the wire, where 20 bytes more go by.
    let bits = measure("bits of frames");
    assert!(near(value("bits of frames") * 1000.0, 512.0 * value("packet rate")));
    let wire = bits.other.as_ref().expect("the wire");
    assert!(near(wire.median * 64.0, value("bits of frames") * 84.0));
    let delays = ["delay, least", "delay, median", "delay, 99 % below", "delay, most"].map(value);
    assert!(delays.is_sorted() && delays[0] > 0.0, "{delays:?}");
    assert!(value("processing time of a batch") > 0.0);
    for row in rows.iter().filter(|row| row.paper.is_some()) {
        assert!(row.case.starts_with("firewall, the original's algorithms"), "{}", row.case);
    }

    let sockets = of(rows, "firewall, the original's algorithms, sockets: one core, batch 512");
    let paper = |what: &str| sockets.iter().find(|row| row.what == what).and_then(|row| row.paper);
    assert_eq!(paper("the original's \"Gbps\", which are"), Some(7.04));
    assert_eq!(paper("delay of the first packet of a batch"), Some(4553.0));
    assert_eq!(paper("delay of the last packet of a batch"), Some(2972.0));

    for case in ["LPM, our tables", "firewall, our linear rules"] {
        for thing in
            ["what goes over", "what comes back", "memory", "submission", "the original's iterations"]
        {
            let begin = format!("{case}, ladder: {thing} = ");
            let steps: Vec<&Row> = rows.iter().filter(|row| row.case.starts_with(&begin)).collect();
            let rates = steps.iter().filter(|row| row.what == "packet rate").count();
            assert!(rates >= 2, "{begin}: {rates}");
            let bases =
                steps.iter().filter(|row| row.case.contains(" *, batch") && row.what == "packet rate");
            assert_eq!(bases.count(), usize::from(thing != "the original's iterations"), "{begin}");
        }
        let wanted = of(rows, &format!("wanted: {case} at 4096 packets"));
        assert_eq!(wanted.len(), 2, "{case}");
        assert!(wanted.iter().all(|row| row.ratio.is_some()), "{wanted:?}");
    }
    let graph = rows.iter().find(|row| row.case.contains("submission = graph")).expect("a row for graphs");
    assert!(graph.ours.is_none() && graph.what.contains("OpenCL"), "{graph:?}");
}

#[test]
fn the_page_shows_every_function_and_needs_nothing_else() {
    let html = lab::page(std::slice::from_ref(&*EXPERIMENT));
    for heading in
        ["<h3>LPM</h3>", "<h3>firewall</h3>", "<h3>both</h3>", "The ladder", "In the original's unit"]
    {
        assert!(html.contains(heading), "{heading}");
    }
    assert!(html.matches("<svg").count() >= 3 * 3 + 2);
    assert!(!html.contains("https://") && !html.contains("src="));
    assert!(!html.contains("NaN") && !html.contains("inf\""));
}

#[test]
fn a_device_that_is_not_there_is_a_sentence() {
    if gpu::cuda_devices().is_ok() && gpu::compiler_version().is_ok() {
        return;
    }
    let error = run(DeviceChoice::Cuda).expect_err("there is no such device").to_string();
    assert!(error.contains("CUDA") || error.contains("NVRTC"), "{error}");
}
