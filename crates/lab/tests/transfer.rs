//! The experiments on devices, with few packets at once: every way gives the interpreter's verdicts, and the figures hang together.

use lab::{Experiment, Kind, Length, Machine, Plan, TablesPlan};

fn run(kind: Kind) -> Experiment {
    let plan = Plan {
        kinds: vec![kind],
        captures: Vec::new(),
        runs: 1,
        length: Length::Repeat(3),
        quick: true,
        tables: TablesPlan::default(),
        gateways: Vec::new(),
        device: lab::DeviceChoice::default(),
    };
    lab::run(&plan, &Machine::describe("", ""), &mut |_| ()).expect("there is an OpenCL driver").remove(0)
}

#[test]
fn iterations_are_right_and_their_parts_add_up() {
    let experiment = run(Kind::Transfer);
    let mut ways = 0;
    println!("{}", experiment.machine.mode);
    for row in &experiment.rows {
        let ours = row.ours.unwrap_or_else(|| panic!("{}: {}", row.case, row.what));
        assert!(ours.low <= ours.median && ours.median <= ours.high, "{row:?}");
        if row.unit == "Mpps" {
            println!("{}: {:.3} Mpps", row.case, ours.median);
        }
        if row.what == "sum of the parts" {
            let clock = row.other.as_ref().expect("the clock");
            assert!((ours.median - clock.median).abs() < 1e-3 * clock.median, "{row:?}");
            ways += 1;
        }
    }
    // Eight algorithms of three functions, four iterations of each; one core and all cores beside six of them; over three batches.
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(2));
    assert_eq!(ways, (8 * 4 + 6 * cores) * 3);
    let rows = &experiment.rows;
    let original = |row: &&lab::Row| row.unit == "MB/s" && row.paper.is_some();
    assert!(rows.iter().filter(original).any(|row| row.case.ends_with("4 no gather and send, batch 512")));
    for row in rows.iter().filter(|row| row.paper.is_some()) {
        assert!(row.case.starts_with("firewall, the original's algorithms"), "{}", row.case);
    }
}
