//! Every experiment from end to end with few packets: the shape of its result, not its speed.

use lab::{Experiment, ExperimentKind, LabPlan, Length, Machine, TablesPlan, TrafficCapture};
use serde_json::Value;

fn plan(kind: ExperimentKind) -> LabPlan {
    LabPlan {
        simulated: Vec::new(),
        kinds: vec![kind],
        captures: TrafficCapture::defaults(),
        runs: 2,
        length: Length::Repeat(2),
        quick: true,
        tables: TablesPlan::default(),
        gateways: Vec::new(),
        prefixes: Vec::new(),
        guest: None,
        device: lab::DeviceChoice::default(),
        until: None,
    }
}

fn run(kind: ExperimentKind) -> Experiment {
    let machine = Machine { command: "a test".into(), ..Machine::describe("", "") };
    let mut experiments = lab::run(&plan(kind), &machine, &mut |_| ()).expect("the experiment runs");
    assert_eq!(experiments.len(), 1);
    let experiment = experiments.remove(0);
    for row in &experiment.rows {
        let ours = row.ours.as_ref().unwrap_or_else(|| panic!("{}: {}", row.case, row.what));
        assert!(ours.low <= ours.median && ours.median <= ours.high, "{row:?}");
    }
    experiment
}

/// The keys of an object.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn other_libraries_answer_alike_or_are_named_as_absent() {
    let machine = Machine { command: "a test".into(), ..Machine::describe("", "") };
    let tables = TablesPlan { peers: true, ..TablesPlan::default() };
    let experiments = lab::run(&LabPlan { tables, ..plan(ExperimentKind::Tables) }, &machine, &mut |_| ());
    let experiment = experiments.expect("the experiment runs").remove(0);
    for row in &experiment.rows {
        assert!(row.ours.is_some(), "{}: {}", row.case, row.what);
    }
    let mode = &experiment.machine.mode;
    let (present, absent) = mode.split_once("; absent: ").expect("who is there, and who is not");
    let held = |name: &str| {
        experiment.rows.iter().filter_map(|row| row.other.as_ref()).any(|other| other.name.starts_with(name))
    };
    for library in ["rte_fib", "rte_lpm", "rte_fib6", "rte_hash", "rte_acl", "Hyperscan"] {
        let there = present.contains(&format!("{library} of "));
        assert_ne!(there, absent.contains(&format!("{library} (")), "{library}: {mode}");
        assert_eq!(there, held(library), "{library}");
    }
    assert!(held("aho-corasick DFA") && held("daachorse"), "crates are always there");
}

#[test]
fn tables_of_every_kind() {
    let experiment = run(ExperimentKind::Tables);
    for (table, whats) in [
        ("IPv4 of 9000 prefixes (generated), uniform", &["bulk", "single"][..]),
        ("IPv6 of 1600 prefixes (generated), Zipf", &["bulk", "single"]),
        ("IPv4 of 9000 prefixes (generated), changes", &["withdraw, announce"]),
        ("200 rules (fw generated), trace order", &["bulk", "single"]),
        ("200 rules (acl generated), change of one rule", &["time"]),
        ("exact table of 4096 keys of 16 bytes, Zipf", &["bulk", "single"]),
        ("300 patterns (generated), payload generated", &["all matches", "time", "size"]),
    ] {
        for what in whats {
            let found = experiment.rows.iter().any(|row| row.case.starts_with(table) && row.what == *what);
            assert!(found, "{table}: {what}");
        }
    }
    assert!(experiment.machine.mode.ends_with("no peers"), "{}", experiment.machine.mode);
    assert!(experiment.rows.iter().all(|row| row.other.is_none()));
}

#[test]
fn programs_over_captures() {
    let experiment = run(ExperimentKind::SwitchApps);
    let rate = |case: &str| {
        experiment.rows.iter().filter(|row| row.case.ends_with(case) && row.what == "packet rate").count()
    };
    // Three captures in two orders; the two programs with twins have a row for each way to call the twin.
    assert_eq!(
        (rate(", wire"), rate(", IPv4 learning"), rate("harness alone (an empty program)")),
        (6, 6, 6)
    );
    assert_eq!((rate(", MAC learning"), rate(", firewall")), (12, 12));
    let papers = |case: &str| -> Vec<f64> {
        let rows =
            experiment.rows.iter().filter(|row| row.case.contains("replay") && row.case.ends_with(case));
        rows.filter_map(|row| row.paper).collect()
    };
    // Packet rate, data rate, throughput and the share that is forwarded, of the programs that ship and of
    // those of the thesis alike.
    for firewall in [", firewall", ", firewall as in the thesis"] {
        let papers = papers(firewall);
        assert_eq!(papers.len(), 12);
        assert_eq!(
            [&papers[..3], &papers[4..7], &papers[8..11]],
            [[1.64, 8.47, 0.94], [1.75, 6.29, 1.35], [2.06, 1.25, 0.04]]
        );
    }
    for mac in [", MAC learning", ", MAC learning as in the thesis"] {
        let papers = papers(mac);
        assert_eq!([papers[0], papers[4], papers[8]], [1.96, 1.97, 2.14]);
    }
    let forwarded = |case: &str| -> Vec<f64> {
        let wanted = |row: &&lab::Row| {
            row.case.contains("replay") && row.case.ends_with(case) && row.what == "bytes forwarded"
        };
        experiment.rows.iter().filter(wanted).filter_map(|row| Some(row.ours.as_ref()?.median)).collect()
    };
    let near = |ours: &[f64], wanted: [f64; 3]| {
        assert!(ours.iter().zip(wanted).all(|(ours, wanted)| (ours - wanted).abs() < 0.5), "{ours:?}");
    };
    near(&forwarded(", firewall as in the thesis"), [11.1, 21.5, 3.2]);
    near(&forwarded(", MAC learning as in the thesis"), [100.0; 3]);
    near(&forwarded(", wire as in the thesis"), [100.0; 3]);

    let value = serde_json::to_value(&experiment).expect("it is data");
    assert_eq!(keys(&value), ["experiment", "machine", "rows"]);
    let mut held = 0;
    for row in value["rows"].as_array().expect("a list") {
        assert_eq!(keys(row), ["case", "other", "ours", "paper", "ratio", "unit", "what"]);
        if row["case"].as_str().expect("a case").ends_with("the capture") {
            continue;
        }
        assert_eq!(keys(&row["ours"]), ["high", "low", "median", "values"]);
        let values = row["ours"]["values"].as_array().expect("a list").len();
        assert_eq!(values, experiment.machine.runs, "a value for every run");
        if !row["other"].is_null() {
            assert_eq!(keys(&row["other"]), ["high", "low", "median", "name", "values"]);
            let (ours, other) = (row["ours"]["median"].as_f64(), row["other"]["median"].as_f64());
            let expected = ours.expect("a number") / other.expect("a number");
            assert!((row["ratio"].as_f64().expect("a number") - expected).abs() < 1e-9);
            held += 1;
        }
    }
    assert_eq!(held, 24, "two programs, three captures, two orders, two twins");
    assert!(lab::page(&[experiment]).contains("firewall"));
}

#[test]
fn decoding() {
    let experiment = run(ExperimentKind::Decode);
    let papers = |what: &str| -> Vec<f64> {
        experiment.rows.iter().filter(|row| row.what == what).filter_map(|row| row.paper).collect()
    };
    let differences = papers("difference in per cent of the middle rate");
    assert_eq!(differences.len(), 12, "four pairs over three captures");
    assert_eq!([differences[0], differences[4], differences[8]], [5.00, 7.10, 7.56]);
    assert_eq!(papers("packet rate, full decode")[..1], [1.56]);
    assert!(papers("full decode is slower by").is_empty(), "the thesis has another measure");
}

#[test]
fn operations() {
    let experiment = run(ExperimentKind::Operations);
    let papers: Vec<f64> = experiment.rows.iter().filter_map(|row| row.paper).collect();
    assert_eq!(papers, [110.49, 418.66, 273.53, 23.22, 35.02, 29.34, 140.76, 108.92]);
    let sum = experiment.rows.last().expect("rows");
    assert!(sum.what.contains("sum of its operations") && sum.other.is_some(), "{sum:?}");
}

#[test]
fn learning_and_compiling() {
    let learning = run(ExperimentKind::Learn);
    assert_eq!(learning.rows.iter().filter(|row| row.what == "packet rate").count(), 2);
    let compiling = run(ExperimentKind::Compile);
    assert_eq!(compiling.rows.len(), 2 * lab::PROGRAMS.len());
}

#[test]
fn connections_of_tcp() {
    let experiment = run(ExperimentKind::Connections);
    let whats: Vec<&str> = experiment.rows.iter().map(|row| row.what.as_str()).collect();
    assert_eq!(whats, ["new connections", "opened connections", "segments of open connections"]);
    assert!(experiment.rows.iter().filter_map(|row| row.ours.as_ref()).all(|rate| rate.low > 0.0));
}

#[test]
fn policies_beside_tables() {
    let experiment = run(ExperimentKind::Policy);
    let row = |case: &str, what: &str| {
        let found = experiment.rows.iter().find(|row| row.case.contains(case) && row.what.starts_with(what));
        found.unwrap_or_else(|| panic!("{case}: {what}"))
    };
    for set in ["acl generated", "fw generated"] {
        let rate = row(set, "packet rate");
        assert!(rate.other.as_ref().is_some_and(|other| other.name == "firewall_rules" && other.low > 0.0));
        let forwarded = row(set, "throughput").ours.as_ref().expect("it was run").low;
        let received = row(set, "data rate").ours.as_ref().expect("it was run").low;
        assert!(0.0 < forwarded && forwarded < received, "some rules pass, others block");
        let without_absent = row(&format!("{set}), policy without absent"), "packet rate as a part");
        assert!(without_absent.ours.as_ref().is_some_and(|ratio| ratio.low > 0.0));
    }
    for what in ["new connections", "opened connections", "segments of open connections"] {
        assert!(row("2000 connections of TCP, policy of 200 rules", what).ours.is_some());
    }
    for case in ["rules in the program, policy", "rules of a file of iptables, rules/firewall"] {
        let ready = row(case, "text to machine code and tables");
        assert!(ready.other.as_ref().is_some_and(|other| other.name.ends_with("alone")));
        let front = row(case, "of that, text to IR").ours.as_ref().expect("it was measured");
        assert!(ready.ours.as_ref().is_some_and(|whole| front.low < whole.high));
    }
}

#[test]
fn a_router_by_its_stages() {
    let experiment = run(ExperimentKind::Router);
    let rows = |case: &str| -> Vec<&lab::Row> {
        experiment.rows.iter().filter(|row| row.case.ends_with(case)).collect()
    };
    for program in
        ["lpm", "firewall_rules", "both", "router", "dpi", "ids", "nat44", "load_balancer", "vxlan_gateway"]
    {
        let rows = rows(&format!(", {program}"));
        assert!(rows.iter().any(|row| row.what.starts_with("packet rate")), "{program}");
        let left = rows.iter().filter(|row| row.what == "throughput").filter_map(|row| row.ours.as_ref());
        assert!(left.map(|left| left.low).all(|low| low > 0.0), "{program} forwards nothing");
    }
    let sum = rows("sum of the stages");
    assert_eq!(sum.len(), 1, "for the one set of rules");
    for sum in sum {
        let ours = sum.ours.as_ref().expect("a sum").median;
        let case = sum.case.trim_end_matches("sum of the stages");
        let parts = experiment.rows.iter().filter(|row| row.case.starts_with(case) && row.case != sum.case);
        let parts: Vec<f64> = parts.filter_map(|row| row.ours.as_ref()).map(|ours| ours.median).collect();
        assert_eq!(parts.len(), 8, "{case}");
        assert!((parts.iter().sum::<f64>() - ours).abs() < 1e-6, "{parts:?} {ours}");
        assert!(
            sum.other.as_ref().is_some_and(|whole| whole.name == "router as a whole" && whole.median > 0.0)
        );
    }
}

#[test]
fn a_capture_that_cannot_be_read_is_an_error() {
    let captures = vec![TrafficCapture::parse("/nonexistent.pcap")];
    let error =
        lab::run(&LabPlan { captures, ..plan(ExperimentKind::Decode) }, &Machine::default(), &mut |_| ())
            .expect_err("no file");
    assert!(error.to_string().contains("/nonexistent.pcap"), "{error}");
}
