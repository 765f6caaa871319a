//! That `docs/trust.md` has the tables of rights as the code has them.

#![cfg(target_os = "linux")]

use confinement::{AllowedCall, Layer, Role};
use std::fmt::Write;

const PAGE: &str = include_str!("../../../docs/trust.md");

/// Which process has which layers.
fn layers() -> String {
    let names = Role::ALL.map(|role| format!("`{}`", role.name()));
    let mut table = format!("| layer | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()));
    for layer in Layer::ALL {
        let has = Role::ALL.map(|role| if role.layers().any(|has| has == layer) { "yes" } else { "no" });
        let _ = writeln!(table, "| `{layer}` | {} |", has.join(" | "));
    }
    table
}

/// A table of system calls, of those in builds that are released.
fn calls(calls: &[AllowedCall], heading: impl Fn(usize) -> String) -> String {
    let calls = calls.iter().filter(|call| !call.why.starts_with("only in builds with debug"));
    let mut table = String::new();
    for call in calls.clone() {
        let only = if call.only.is_empty() { "any" } else { call.only };
        let _ = writeln!(table, "| `{}` | {only} | {} |", call.name, call.why);
    }
    format!("### {}\n\n| call | arguments | needed for |\n|---|---|---|\n{table}", heading(calls.count()))
}

#[test]
fn the_page_on_trust_has_the_tables_of_the_code() {
    let of_all = calls(Role::calls_of_all(), |count| format!("The {count} system calls of every process"));
    let of_roles = Role::ALL
        .map(|role| calls(role.own_calls(), |count| format!("The {count} more of `{}`", role.name())));
    for table in [layers(), of_all].into_iter().chain(of_roles) {
        // The table ends there: a row more would be a right that no process has.
        assert!(PAGE.contains(&format!("{table}\n")), "docs/trust.md lacks this table:\n\n{table}");
    }
}
