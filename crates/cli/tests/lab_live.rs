//! The experiments over network interfaces run, and answer for everybody who was to take part.

mod net;

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One experiment at a time: they take all processors there are.
static TURN: Mutex<()> = Mutex::new(());

fn lab(arguments: &[&str]) -> Option<Value> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"))
        .args(["lab"])
        .args(arguments)
        .args(["--json"])
        .output()
        .expect("ravelin runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no networks can be made here") {
        eprintln!("not run, since networks cannot be made here: {errors}");
        return None;
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("JSON: {errors}"));
    let rows = report["rows"].as_array().expect("rows");
    // On a busy machine the sender may not get rid of three times what the gateway carries; then that is
    // said.
    let no_overload = "sent, of what the gateway carries: no figure";
    let excused = |row: &&Value| row["what"].as_str().is_some_and(|what| what.starts_with(no_overload));
    let missing = rows.iter().filter(|row| row["ours"].is_null() && row["other"].is_null());
    let excuses = missing.clone().filter(excused).count();
    assert_eq!(missing.count(), excuses, "{report}");
    assert_eq!(output.status.success(), excuses == 0, "{errors}");
    Some(report)
}

#[test]
fn every_gateway_is_measured_or_named_as_absent() {
    let gateways = ["wire over af_packet", "router over af_packet", "wire over tap", "Linux routing"];
    let named = gateways.iter().flat_map(|name| ["--gateway", name]);
    let arguments: Vec<&str> =
        ["forwarding", "--rounds", "1", "--seconds", "0.2"].into_iter().chain(named).collect();
    let Some(report) = lab(&arguments) else { return };
    let rows = report["rows"].as_array().expect("rows");
    let mode = report["machine"]["mode"].as_str().expect("text");
    assert!(mode.ends_with("absent: nobody"), "{mode}");
    for gateway in ["wire over af_packet", "router over af_packet", "wire over tap"] {
        let case = format!("Full ring of UDP of 64 bytes, Ravelin {gateway}");
        let found = |what: &str| {
            let row = rows.iter().find(|row| row["case"] == case.as_str() && row["what"] == what);
            let row = row.unwrap_or_else(|| panic!("no row for {case}, {what}: {report}"));
            row["ours"]["median"].as_f64().expect("a number")
        };
        assert!(found("packets that arrive, nobody sending") > 0.0);
        assert_eq!(found("packets that do not arrive"), 0.0, "a ring that is not full loses none");
    }
    for case in ["TCP with offloads on", "TCP with offloads off", "UDP of 64 bytes", "ping"] {
        for program in ["wire", "router"] {
            let found = rows.iter().find(|row| {
                let name = row["case"].as_str().unwrap_or_default();
                name.starts_with(case) && name.contains(program) && row["other"]["name"] == "Linux routing"
            });
            let row = found.unwrap_or_else(|| panic!("no row for {case}, {program}: {report}"));
            // On a busy machine a gateway may not get to run while packets are counted.
            let least = if case.starts_with("UDP") { -1.0 } else { 0.0 };
            let found = |who: &str| row[who]["median"].as_f64() > Some(least);
            assert!(found("ours") && found("other"), "{row}");
        }
    }
}

#[test]
fn what_is_not_installed_is_said_before_or_beside_the_figures() {
    let run = |programs: &[&str]| {
        let directory = tempfile::tempdir().expect("a directory");
        for program in programs {
            let found = ["/usr/bin", "/bin", "/usr/sbin"].map(|directory| Path::new(directory).join(program));
            let found = found.iter().find(|path| path.exists()).expect("an installed program");
            std::os::unix::fs::symlink(found, directory.path().join(program)).expect("a link");
        }
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Command::new(assert_cmd::cargo::cargo_bin!("ravelin"))
            .args(["lab", "forwarding", "--rounds", "1", "--seconds", "0.1", "--json"])
            .args(["--gateway", "Ravelin wire over af_packet"])
            .env("PATH", directory.path())
            .output()
            .expect("ravelin runs")
    };
    if !net::installed("lab_live", &["ping"]) {
        return;
    }
    let nothing = run(&[]);
    let said = String::from_utf8_lossy(&nothing.stderr);
    assert_eq!(nothing.status.code(), Some(2), "{said}");
    assert!(said.contains("ping is not installed (in Debian: apt install iputils-ping)"), "{said}");
    let without = run(&["ping"]);
    let said = String::from_utf8_lossy(&without.stderr);
    if said.contains("no networks can be made here") {
        return;
    }
    assert!(without.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&without.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let with = |start: &str| -> Vec<&Value> {
        let starts = |row: &&Value| row["case"].as_str().is_some_and(|case| case.starts_with(start));
        rows.iter().filter(starts).collect()
    };
    let streams = with("TCP");
    assert_eq!(streams.len(), 1, "{report}");
    let why = "TCP payload: not here, since iperf3 is not installed (in Debian: apt install iperf3)";
    assert_eq!(streams[0]["what"], why);
    let floods = with("UDP");
    assert!(!floods.is_empty() && floods.iter().all(|row| row["ours"].is_object()), "{report}");
}

#[test]
fn delays_grow_with_the_percentile() {
    let Some(report) = lab(&["latency", "--rounds", "1", "--seconds", "0.1"]) else { return };
    let rows = report["rows"].as_array().expect("rows");
    let median = |case: &str, who: &str, what: &str| {
        let row = rows.iter().find(|row| row["case"] == case && row["what"] == what)?;
        row[who]["median"].as_f64()
    };
    // The kernel's delays stand beside ours; what it lost stands alone.
    let (at_once, kernel) = ("Ravelin, what has come at once", "Linux routing");
    for (beside, who, alone) in [
        (at_once, "ours", at_once),
        ("Ravelin, gathered for 200 µs", "ours", "Ravelin, gathered for 200 µs"),
        (at_once, "other", kernel),
    ] {
        let mut told = 0;
        for load in [10, 25, 50, 75, 90, 95] {
            let case = |gateway: &str| format!("{load} % of what it carries, {gateway}");
            let delays =
                ["delay of 50 %", "delay of 90 %", "delay of 99 %", "delay of 99.9 %", "longest delay"];
            let delays: Vec<f64> =
                delays.iter().filter_map(|what| median(&case(beside), who, what)).collect();
            told += delays.len();
            assert!(delays.is_sorted() && delays.iter().all(|&delay| delay > 0.0), "{alone}: {delays:?}");
            let lost = median(&case(alone), who, "packets lost").expect("is told whatever arrives");
            assert!((0.0..=100.0).contains(&lost), "{alone}: {lost}");
        }
        // On a busy machine nothing may arrive at one load, but not at all of them.
        assert!(told > 0, "{alone}: {report}");
    }
}

#[test]
fn every_packet_of_a_soak_is_in_the_account() {
    let Some(report) = lab(&["soak", "--seconds", "1"]) else { return };
    let rows = report["rows"].as_array().expect("rows");
    let figure = |case: &str, what: &str| {
        let row = rows.iter().find(|row| row["case"] == case && row["what"] == what);
        row.and_then(|row| row["ours"]["median"].as_f64())
            .unwrap_or_else(|| panic!("{case}, {what}: {report}"))
    };
    let carried = figure("as much as can be sent, nobody watching", "what the gateway carries");
    assert!(carried > 0.0, "{report}");
    let parts = ["half load", "programs take over at 80 % load", "three times what it can carry"];
    for part in parts {
        assert!(figure(part, "sent") > 0.0, "{part}: {report}");
        assert_eq!(figure(part, "in no account"), 0.0, "{part}");
    }
    assert!(figure(parts[1], "programs that took over") > 0.0, "{report}");
    assert!(figure(parts[2], "slowest answer of control") > 0.0, "{report}");
    assert_eq!(figure(parts[1], "late within their flow"), 0.0);
}

#[test]
fn routes_by_bgp_are_measured_beside_the_kernel_s() {
    if !net::installed("routes_by_bgp_are_measured", &["zebra", "bgpd"]) {
        return;
    }
    let Some(report) = lab(&["routes", "--rounds", "1", "--prefixes", "500"]) else { return };
    let rows = report["rows"].as_array().expect("rows");
    for row in rows.iter().filter(|row| row["unit"] == "s") {
        let [ours, kernel] = ["ours", "other"].map(|who| row[who]["median"].as_f64().expect("a number"));
        assert!(ours >= kernel && kernel > 0.0, "the kernel is looked at first: {row}");
    }
    // Of both families.
    let lost = rows.iter().filter(|row| row["unit"] == "packets").map(|row| row["ours"]["median"].as_f64());
    assert_eq!((rows.len(), lost.collect::<Vec<_>>()), (8, vec![Some(0.0); 2]), "{report}");
}

#[test]
fn host_traffic_is_measured_beside_linux_and_so_is_what_forwarded_packets_lose_by_it() {
    if !net::installed("host_traffic_is_measured", &["iperf3"]) {
        return;
    }
    let Some(report) = lab(&["host-traffic", "--quick", "--rounds", "1"]) else { return };
    let median = |case: &str, what: &str, who: &str| {
        let mut rows = report["rows"].as_array().into_iter().flatten();
        let row =
            rows.find(|row| row["case"].as_str().is_some_and(|of| of.ends_with(case)) && row["what"] == what);
        row.and_then(|row| row[who]["median"].as_f64()).unwrap_or_else(|| panic!("{case}, {what}: {report}"))
    };
    let stream = "one TCP stream to the machine";
    let forwarded = "UDP of 512 bytes, 50 % of what the gateway carries";
    for case in [format!("nothing forwarded, {stream}"), format!("{forwarded}, {stream}")] {
        assert!(["ours", "other"].iter().all(|who| median(&case, "TCP payload", who) > 0.0), "{report}");
    }
    for (case, who) in [("no stream", "ours"), (stream, "ours"), (stream, "other")] {
        let of = |what| median(&format!("{forwarded}, {case}"), what, who);
        assert!((0.0..=100.0).contains(&of("packets lost")), "{report}");
        assert!(of("delay of 50 %") <= of("delay of 99 %"), "{report}");
    }
}

#[test]
fn names_are_measured_beside_other_ways_to_a_host_behind_its_carrier() {
    if !net::installed("names_are_measured", &["iperf3", "nft", "dig"]) {
        return;
    }
    let ways = ["Linux routing, the same hops", "nft map over VXLAN, unencrypted"];
    let named = ways.iter().flat_map(|name| ["--gateway", name]);
    let arguments: Vec<&str> =
        ["naming-path", "--rounds", "1", "--seconds", "0.2"].into_iter().chain(named).collect();
    let Some(report) = lab(&arguments) else { return };
    let rows = report["rows"].as_array().expect("rows");
    for case in ["TCP, one stream", "TCP, one stream in writes of 48 bytes", "UDP of 18 bytes", "UDP of 1392"]
    {
        for way in ways {
            let found = rows.iter().find(|row| {
                row["case"].as_str().is_some_and(|of| of.starts_with(case)) && row["other"]["name"] == way
            });
            let row = found.unwrap_or_else(|| panic!("no row for {case}, {way}: {report}"));
            assert!(["ours", "other"].iter().all(|who| row[who]["median"].as_f64() > Some(0.0)), "{row}");
        }
    }
    let busy = rows.iter().filter(|row| row["unit"] == "ns").map(|row| row["ours"]["median"].as_f64());
    assert!(busy.clone().count() == 3 && busy.into_iter().all(|ns| ns > Some(0.0)), "{report}");
}

#[test]
fn set_ups_of_names_are_measured_in_real_time_and_plain_answers_beside_nsd() {
    if !net::installed("set_ups_of_names_are_measured", &["nsd"]) {
        return;
    }
    let Some(report) = lab(&["naming", "--quick", "--rounds", "1"]) else { return };
    let rows = report["rows"].as_array().expect("rows");
    let median = |case: &str, what: &str, who: &str| {
        let row = rows.iter().find(|row| row["case"] == case && row["what"] == what);
        row.and_then(|row| row[who]["median"].as_f64()).unwrap_or_else(|| panic!("{case}, {what}: {report}"))
    };
    let case = "plain answers, 64 queries together";
    let what = "a second of the server's processor time";
    assert!(["ours", "other"].iter().all(|who| median(case, what, who) > 0.0), "{report}");
    // Of three times as many set-ups as there can be some fail, and of a quarter as many some succeed.
    let real = |load: u32| format!("50 addresses in real time, load {load} %");
    assert!(median(&real(300), "set-ups that fail", "ours") > 0.0, "{report}");
    assert!(median(&real(25), "set-ups that succeed", "ours") > 0.0, "{report}");
    for what in ["query to SETUP", "SETUP to ACCEPT", "ACCEPT to reply", "whole look-up"] {
        let row =
            rows.iter().find(|row| row["case"] == "set-up of a name, known initiator" && row["what"] == what);
        let row = row.unwrap_or_else(|| panic!("{what}: {report}"));
        assert!(row["ours"]["median"].as_f64() > Some(0.0) && row["paper"].as_f64() > Some(0.0), "{row}");
    }
}
