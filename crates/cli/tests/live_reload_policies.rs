//! What a reload says of policies before the program takes over, and when it does not take over.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, text};
use serde_json::Value;
use std::fs;

const PROGRAM: &str = include_str!("net/pings.rav");

/// A gateway that runs the program.
fn served(test: &str) -> Option<Net> {
    Net::served(test, PROGRAM, "")
}

/// Reloads another program: whether it took over, and what was said.
fn reload(net: &Net, program: &str, options: &[&str]) -> (bool, String) {
    fs::write(net.path("program.rav"), program).expect("can be written");
    let control = net.path("control.sock").display().to_string();
    let output = net.ravelin(&[&["reload", "--control", &control], options].concat());
    (output.status.success(), text(&output))
}

fn generation(net: &Net) -> Value {
    net.ask(&["show", "run", "--total"])["now"]["generation"].clone()
}

#[test]
fn a_reload_tells_what_it_opens_and_refuses_it_if_it_is_to_be_narrower() {
    let Some(mut net) = served("a_reload_tells_what_it_opens_and_refuses_it_if_it_is_to_be_narrower") else {
        return;
    };
    let wider = PROGRAM.replace("pass proto 47", "pass proto 47 | 17");
    let (done, said) = reload(&net, &wider, &["--check"]);
    assert!(done && said.contains("opened: udp ") && said.contains("; nothing has changed"), "{said}");
    assert!(
        said.contains(":6: the default of lines: block\n") && said.contains(":12: pass proto 47 | 17\n"),
        "{said}"
    );
    let (done, said) = reload(&net, &wider, &["--only-if", "narrower"]);
    assert!(!done && said.contains("opened: udp ") && said.contains("\nnothing has changed"), "{said}");
    assert!(said.contains("not known to be narrower: the policy `edge` lets packets pass"), "{said}");
    let narrower = PROGRAM.replace("pass proto 47", "block proto 47");
    let (done, said) = reload(&net, &narrower, &["--only-if", "same"]);
    assert!(!done && said.contains("not known to be the same"), "{said}");
    assert_eq!(generation(&net), 1);
    assert_eq!(net.pings("10.0.0.2"), 20);
    let (done, said) = reload(&net, &narrower, &["--only-if", "narrower"]);
    assert!(done && said.contains("1 case: 0 opened, 1 closed") && said.contains("took over"), "{said}");
    let (done, said) = reload(&net, &narrower, &["--only-if", "same"]);
    assert!(done && said.contains("every packet is treated alike"), "{said}");
    assert_eq!(generation(&net), 3);
    let (done, said) = reload(&net, &wider, &["--json"]);
    let told: Value = serde_json::from_str(&said).expect("one JSON document");
    assert!(done && told["done"].as_str().is_some_and(|done| done.contains("took over")), "{said}");
    let policy = &told["review"]["policies"][0];
    assert_eq!((&policy["policy"], &policy["opened"]), (&"edge".into(), &2.into()), "{said}");
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

#[test]
fn a_program_whose_tests_fail_does_not_take_over() {
    let Some(mut net) = served("a_program_whose_tests_fail_does_not_take_over") else { return };
    let closed = PROGRAM.replace("pass proto 1\n", "block proto 1\n");
    for options in [&[][..], &["--only-if", "narrower"]] {
        let (done, said) = reload(&net, &closed, options);
        assert!(!done && said.contains("1 failed") && said.contains("nothing has changed"), "{said}");
        assert!(said.contains(":9: pass icmp any > any\n"), "{said}");
    }
    let misread = PROGRAM.replace("expect pass icmp", "expect pass imcp");
    let (done, said) = reload(&net, &misread, &[]);
    assert!(!done && said.contains(":9: `imcp` is no protocol"), "{said}");
    assert_eq!(generation(&net), 1);
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

#[test]
fn what_is_not_compared_is_told_and_refuses_a_reload_that_is_to_be_narrower() {
    let Some(mut net) = served("what_is_not_compared_is_told_and_refuses_a_reload_that_is_to_be_narrower")
    else {
        return;
    };
    let elsewhere = PROGRAM.replace("block => drop blocked", "block => flood");
    let (done, said) = reload(&net, &elsewhere, &["--only-if", "narrower"]);
    assert!(!done && said.contains("program.rav changes elsewhere than in rules of policies"), "{said}");
    let other = PROGRAM.replace("edge", "wall");
    let (done, said) = reload(&net, &other, &["--only-if", "narrower"]);
    assert!(!done && said.contains("the policy `wall` is not compared"), "{said}");
    let zones = PROGRAM
        .replace("(proto: u8)", "(zone: u8)")
        .replace("ss proto", "ss zone")
        .replace("// expect", "//");
    let (done, said) = reload(&net, &zones, &["--check"]);
    assert!(done && said.contains("cannot be analysed: the column `zone`"), "{said}");
    fs::write(net.path("program.rav"), PROGRAM).expect("can be written");
    let file = fs::read_to_string(net.path("gateway.toml")).expect("is there");
    fs::write(net.path("gateway.toml"), format!("{file}[[port]]\nempty = true\n")).expect("can be written");
    let (done, said) = reload(&net, PROGRAM, &["--only-if", "same"]);
    assert!(!done && said.contains("ports come or go, which is not compared"), "{said}");
    fs::write(net.path("gateway.toml"), file).expect("can be written");
    // A row from outside is none of the text.
    let row = "17 priority 50 => (rule_action.pass, reject_kind.tcp_reset, 9)";
    net.ask(&["table", "add", "edge.forward", row]);
    let (done, said) = reload(&net, PROGRAM, &["--only-if", "same"]);
    assert!(!done && said.contains("`edge.forward` holds 4 rows and was declared with 3"), "{said}");
    assert_eq!(generation(&net), 1);
    net.stop();
}
