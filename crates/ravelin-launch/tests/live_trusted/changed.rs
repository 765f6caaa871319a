//! A gateway whose policy lets `control` change some entries of some tables, and nothing else.

use super::signed::{ended, gateway_with, policy, signed, trust};
use super::{PROGRAM, Trusted, built};
use bundle::{KeyPrefix, SignedPolicy, TableRight};
use std::path::Path;
use std::process::Command;

/// A policy that sends datagrams to port 7 across, and those to a port in `doors` where that says; it lets
/// `control` change the doors 8 to 15, two at most.
fn with_doors(folder: &Path, version: u64, changes_per_second: u32) -> Vec<u8> {
    let tables =
        "table doors: exact(u16) -> port { capacity 64 }\ntable shut: exact(u16) -> port { capacity 64 }\n";
    let program = PROGRAM.replace("reason closed", &(tables.to_owned() + "reason closed")).replace(
        "        else => drop closed\n    }\n}\nstage",
        "        else => match doors[header.dst] { some door => send door, none => drop closed }\n    }\n}\nstage",
    );
    assert!(program.contains("doors[header.dst]"), "{program}");
    let right = TableRight {
        table: "doors".to_owned(),
        prefixes: vec![KeyPrefix::new(16, 13, 8).expect("a prefix")],
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
}

#[test]
fn entries_change_as_the_policy_in_force_allows_and_not_otherwise() {
    let test = "entries_change_as_the_policy_in_force_allows_and_not_otherwise";
    let Some(trusted) = gateway_with(test, &trust(), || {}) else { return };
    let (well, said) = trusted.install(&with_doors(trusted.folder.path(), 2, 1000), &[]);
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

    // Another policy begins with what was signed.
    let (well, said) = trusted.install(&with_doors(trusted.folder.path(), 3, 1), &[]);
    assert!(well, "{said}");
    assert_eq!(trusted.passes(), 0);
}
