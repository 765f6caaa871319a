//! The policies of a running gateway: what their rules have counted, and what rows from outside change.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, text};
use serde_json::Value;

const PINGS: &str = include_str!("net/pings.rav");

/// The program, whose rules keep when they were found.
fn program() -> String {
    PINGS.replace("capacity 8", "capacity 8 counted times")
}

/// The gateway, as a command about policies names it.
fn named(net: &Net) -> String {
    format!("unix:{}", net.path("control.sock").display())
}

/// Asks about policies: what was said, with the exit code that is wanted.
fn policy(net: &Net, arguments: &[&str], wanted: i32) -> String {
    let output = net.ravelin(&[&["policy"], arguments].concat());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(wanted), "{arguments:?}: {said}");
    said
}

/// What the rule at a place of the list has counted.
fn hits(counts: &Value, rule: usize) -> (u64, u64, Option<u64>, Option<u64>) {
    let hits = &counts["rules"][rule]["hits"];
    let number = |name: &str| hits[name].as_u64();
    (
        number("packets").expect("a number"),
        number("bytes").expect("a number"),
        number("first"),
        number("last"),
    )
}

#[test]
fn rules_of_a_running_gateway_tell_what_they_have_counted_and_when() {
    let test = "rules_of_a_running_gateway_tell_what_they_have_counted_and_when";
    let Some(mut net) = Net::served(test, &program(), "") else { return };
    assert_eq!(net.pings("10.0.0.2"), 20);
    let before = net.ask(&["policy", "counts"]);
    assert_eq!((&before["name"], &before["times"]), (&"edge".into(), &true.into()), "{before}");
    assert_eq!(net.pings("10.0.0.2"), 20);
    let after = net.ask(&["policy", "counts"]);
    let (first, then) = (hits(&before, 0), hits(&after, 0));
    // Requests and answers of 98 bytes each.
    assert_eq!((then.0 - first.0, then.1 - first.1), (40, 40 * 98), "{before}\n{after}");
    // Times are told by the clock of the machine, which both answers have read.
    let [began, ended, begins, ends] =
        [first.2, first.3, then.2, then.3].map(|time| time.expect("there was a hit"));
    let later = ends.checked_sub(ended).expect("the last hit is later");
    assert!(began.abs_diff(begins) < later, "the first hit stays\n{before}\n{after}");
    assert!(began < ended && begins < ends, "{before}\n{after}");
    assert_eq!(hits(&after, 1), (0, 0, None, None), "{after}");
    assert_eq!((&after["rules"][0]["line"], &after["rules"][1]["line"]), (&11.into(), &12.into()), "{after}");

    let control = net.path("control.sock").display().to_string();
    let told = policy(&net, &["counts", "--control", &control], 0);
    assert!(told.contains("program.rav:11") && told.contains("pass proto 47"), "{told}");
    let refused = policy(&net, &["counts", "--control", &control, "--policy", "wall"], 1);
    assert!(refused.contains("has no policy `wall`; it has edge"), "{refused}");

    let shown = |json: &[&str]| {
        let all = [&["table", "show", "edge.forward", "--counts", "--control", &control], json].concat();
        text(&net.ravelin(&all))
    };
    let rows = shown(&["--json"]);
    let row: Value = serde_json::from_str(rows.lines().next().expect("a row")).expect("JSON");
    assert_eq!(row["packets"].as_u64(), Some(then.0), "{rows}");
    assert!(row["first"].as_u64().is_some_and(|first| first.abs_diff(begins) < later), "{rows}");
    assert!(shown(&[]).contains("1 priority 200 => (pass, tcp_reset, 1)  // "), "{}", shown(&[]));
    net.stop();
}

#[test]
fn a_running_gateway_is_asked_as_a_file_is_and_rows_from_outside_take_part() {
    let test = "a_running_gateway_is_asked_as_a_file_is_and_rows_from_outside_take_part";
    let Some(mut net) = Net::served(test, &program(), "") else { return };
    let (gateway, file) = (named(&net), net.path("program.rav").display().to_string());
    let checked = policy(&net, &["check", &gateway], 0);
    assert!(checked.contains("policy edge: 2 rules; 0 never decide, 0 redundant"), "{checked}");
    let same = policy(&net, &["diff", &gateway, &file], 0);
    assert!(same.contains("every packet is treated alike"), "{same}");

    net.ask(&[
        "table",
        "add",
        "edge.forward",
        "17 priority 150 => (rule_action.pass, reject_kind.tcp_reset, 9)",
    ]);
    net.ask(&[
        "table",
        "add",
        "edge.forward",
        "1 priority 120 => (rule_action.block, reject_kind.tcp_reset, 9)",
    ]);
    let differ = policy(&net, &["diff", &file, &gateway], 1);
    assert!(differ.contains("opened: udp ") && differ.contains("1 case: 1 opened, 0 closed"), "{differ}");
    assert!(differ.contains("policy edge: 2 rows from outside, 0 rows of the program are gone"), "{differ}");
    let row = "row from outside: 17 priority 150 => (pass, tcp_reset, 9)";
    assert!(differ.contains(row), "{differ}");
    let why = policy(&net, &["why", &gateway, "udp 10.0.0.1:5 > 10.0.0.2:7"], 0);
    assert!(why.contains(&format!("pass: {}: {row}\n", "program.rav")) || why.contains(row), "{why}");
    let hidden = policy(&net, &["check", &gateway], 1);
    assert!(
        hidden.contains("row from outside: 1 priority 120 => (block, tcp_reset, 9)\n  never decides"),
        "{hidden}"
    );
    assert!(policy(&net, &["test", &gateway], 0).contains("1 test, 0 failed"));
    let counts = net.ask(&["policy", "counts"]);
    assert_eq!(counts["rows_from_outside"].as_array().map(Vec::len), Some(2), "{counts}");

    // Without the rule for pings, the row below it decides about them.
    net.ask(&["table", "remove", "edge.forward", "1 priority 200"]);
    let failed = policy(&net, &["test", &gateway], 1);
    assert!(failed.contains("1 test, 1 failed") && failed.contains("block by "), "{failed}");
    let closed = policy(&net, &["diff", &file, &gateway, "--json"], 1);
    assert!(closed.contains("\"closed\": 1"), "{closed}");
    assert_eq!(net.pings("10.0.0.2"), 0);

    let said = policy(&net, &["check", &gateway, "--policy", "wall"], 1);
    assert!(said.contains("the program has no policy `wall`; it has edge"), "{said}");
    let nobody = policy(&net, &["check", "unix:/nowhere.sock"], 1);
    assert!(nobody.contains("no gateway answers at /nowhere.sock"), "{nobody}");
    net.stop();
}
