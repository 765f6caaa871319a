//! A gateway whose policy lets `control` change some entries of some tables, and nothing else.

use super::signed::{ended, gateway_with, policy, signed, trust};
use super::{Choice, PROGRAM, Trusted, built};
use bundle::{KeyPrefix, SignedPolicy, TableRight};
use messages::Channel;
use messages::control::{ControlQuestion, CoreAnswer, EntryChange, EntryOperation};
use redteam::asked;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The doors 8 to 15, and those from 12 on.
const ALL: (u8, u128) = (13, 8);
const HIGH: (u8, u128) = (14, 12);

/// A policy that sends datagrams to port 7 across, and those to a port in `doors` where that says; it lets
/// `control` change these doors, two at most.
fn with_doors(folder: &Path, version: u64, (length, bits): (u8, u128), changes_per_second: u32) -> Vec<u8> {
    let tables = "table doors: exact(u16) -> port { capacity 64 }\ntable shut: exact(u16) -> port { capacity 64 }\ntable hidden: exact(u16) -> port { capacity 64 secret }\n";
    let program = PROGRAM.replace("reason closed", &(tables.to_owned() + "reason closed")).replace(
        "        else => drop closed\n    }\n}\nstage",
        "        else => match doors[header.dst] { some door => send door, none => drop closed }\n    }\n}\nstage",
    );
    assert!(program.contains("doors[header.dst]"), "{program}");
    let right = TableRight {
        table: "doors".to_owned(),
        prefixes: vec![KeyPrefix::new(16, length, bits).expect("a prefix")],
        most_entries: 2,
        changes_per_second,
    };
    let program = super::signed::ir(folder, &program);
    signed(&SignedPolicy { program, rights: vec![right], ..policy(folder, version, false) }, &[0, 1])
}

impl Trusted {
    /// `ravelin table` with these arguments: whether it ends well, and what it says.
    fn table(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(built("ravelin"));
        command.arg("table").args(arguments).arg("--control").arg(self.folder.path().join("control.sock"));
        ended(command.output())
    }

    /// `ravelin show` of this, since the policy took over.
    fn picture(&self, what: &str) -> serde_json::Value {
        let mut command = Command::new(built("ravelin"));
        command.args(["show", what, "--total", "--json"]);
        let output = command.arg("--control").arg(self.folder.path().join("control.sock")).output();
        let (well, said) = ended(output);
        assert!(well, "{said}");
        serde_json::from_str(&said).expect("JSON")
    }
}

#[test]
fn entries_change_as_the_policy_in_force_allows_and_not_otherwise() {
    let test = "entries_change_as_the_policy_in_force_allows_and_not_otherwise";
    let Some(trusted) = gateway_with(test, &trust(), |_| {}) else { return };
    let (well, said) = trusted.install(&with_doors(trusted.folder.path(), 2, ALL, 1000), &[]);
    assert!(well, "{said}");
    assert_eq!(trusted.passes(), 0);
    let refused = |arguments: &[&str], why: &str| {
        let (well, said) = trusted.table(arguments);
        assert!(!well && said.contains(why), "{arguments:?}: {said}");
    };
    let done = |arguments: &[&str]| {
        let (well, said) = trusted.table(arguments);
        assert!(well, "{arguments:?}: {said}");
    };
    done(&["add", "doors", "9 => 2"]);
    assert!(trusted.passes() > 0, "the door is open");
    refused(&["add", "doors", "16 => 2"], "not for this key");
    refused(&["remove", "doors", "7"], "not for this key");
    refused(&["add", "shut", "9 => 2"], "gives no right for it");
    done(&["add", "doors", "10 => 2"]);
    refused(&["add", "doors", "11 => 2"], "for 2 entries of the table `doors`");
    done(&["add", "doors", "10 => 1"]);
    done(&["remove", "doors", "9"]);
    assert_eq!(trusted.passes(), 0);
    done(&["add", "doors", "9 => 2"]);
    assert!(trusted.passes() > 0);

    let told = |arguments: &[&str], has: &[&str]| {
        let (well, said) = trusted.table(arguments);
        assert!(well && has.iter().all(|has| said.contains(has)), "{arguments:?}: {said}");
        said
    };
    told(&["show"], &["doors", "gives no right for it"]);
    told(&["show", "doors"], &["9 => 2", "10 => 1", "2 entries"]);
    assert!(!told(&["show", "doors", "10"], &["10 => 1"]).contains("9 =>"));
    told(&["show", "shut"], &["0 entries"]);
    refused(&["show", "hidden"], "`secret`");
    refused(&["replace", "doors", "-"], "nothing else is done with tables");

    let picture = trusted.picture("tables");
    assert_eq!(picture["now"]["report"]["tables"]["doors"]["entries"], 2, "{picture}");
    let ports = &picture["now"]["ports"];
    assert_eq!((&ports[0]["interface"], &ports[1]["interface"]), (&"to-a".into(), &"to-b".into()));
    assert!(picture["now"]["report"]["drops"]["closed"].as_u64() > Some(0), "{picture}");
    assert_eq!(picture["now"]["report"]["ports"][1]["port"], 2);

    // Another core goes on with what was inserted, and with how much that is.
    let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
    kill_process(launch, Signal::USR2).expect("it runs");
    trusted.hears("core: another core runs, which took over after ");
    assert!(trusted.passes() > 0, "the door is still open");
    trusted.shown();
    refused(&["add", "doors", "11 => 2"], "for 2 entries of the table `doors`");
    done(&["remove", "doors", "10"]);
    done(&["add", "doors", "11 => 2"]);

    // Another policy begins with what was signed.
    let (well, said) = trusted.install(&with_doors(trusted.folder.path(), 3, ALL, 1), &[]);
    assert!(well, "{said}");
    assert_eq!(trusted.passes(), 0);
}

/// The channel of `control` to the core, while `control` itself stands still.
pub(crate) fn channel_of_control(trusted: &Trusted) -> (Pid, Channel) {
    trusted.shown();
    let control = trusted.process("ravelin-control");
    (control, redteam::channel_of_control(control).expect("root may have it"))
}

#[test]
fn a_control_that_is_taken_over_changes_what_it_has_a_right_to_and_no_faster() {
    let test = "a_control_that_is_taken_over_changes_what_it_has_a_right_to_and_no_faster";
    const RATE: u32 = 20;
    let Some(trusted) = gateway_with(test, &trust(), |_| {}) else { return };
    let (well, said) = trusted.install(&with_doors(trusted.folder.path(), 2, HIGH, RATE), &[]);
    assert!(well, "{said}");
    let (control, mut core) = channel_of_control(&trusted);
    let Some(CoreAnswer::Table { number, table: Some(table), .. }) =
        asked(&mut core, &ControlQuestion::Table(0))
    else {
        panic!("it is told")
    };
    assert_eq!(table.name, "doors");
    // Anything, again and again: the door 9 stays shut.
    let (begun, mut random, mut made, mut refused) = (Instant::now(), Choice(88_172_645_463_325_252), 0, 0);
    let mut next = |below| random.below(below);
    for turn in 0..6_000 {
        let changes = (0..next(3) + u64::from(turn % 50 == 0) * 60).map(|_| EntryChange {
            table: next(3) as u32,
            length: if next(4) == 0 { next(256) as u8 } else { 16 },
            bits: u128::from(if next(4) == 0 { next(u64::MAX) } else { next(17) }),
            operation: if next(4) == 0 {
                EntryOperation::Remove
            } else {
                EntryOperation::Insert(vec![u128::from(next(4)); 1 + usize::from(next(9) == 0)])
            },
        });
        let changes: Vec<_> = changes.take(64).collect();
        let count = changes.len() as u64;
        let number = if next(9) == 0 { next(9) } else { number };
        match asked(&mut core, &ControlQuestion::Change { number, changes }) {
            Some(CoreAnswer::Changed { .. }) => made += count,
            Some(CoreAnswer::Refused(_) | CoreAnswer::TooFast { .. }) => refused += 1,
            other => panic!("{other:?}"),
        }
        if turn % 2_000 == 0 {
            assert_eq!(trusted.passes(), 0);
        }
    }
    let most = u64::from(RATE) * (begun.elapsed().as_secs() + 3);
    assert!(made > 0 && made <= most && refused > 0, "{made} of {most}, {refused} refused");
    assert_eq!(trusted.passes(), 0);
    let Some(CoreAnswer::Table { table: Some(table), .. }) = asked(&mut core, &ControlQuestion::Table(0))
    else {
        panic!("it is told")
    };
    assert!(table.right.expect("it has one").entries <= 2);
    // What is longer than any question is not read.
    let change = EntryChange { table: 0, length: 16, bits: 12, operation: EntryOperation::Insert(vec![2]) };
    let longer = ControlQuestion::Change { number, changes: vec![change; 1 << 20] };
    assert!(asked(&mut core, &longer).is_none());
    trusted.hears("control: a message that is not understood");
    assert_eq!(trusted.passes(), 0);
    kill_process(control, Signal::KILL).expect("it is there");
    trusted.shown();
    assert_eq!(trusted.passes(), 0);
}
