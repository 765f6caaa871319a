//! Names the state that a program keeps from packet to packet: with several workers, each worker would have
//! its own.

use ir::{Op, Program};
use std::collections::BTreeSet;

/// The declarations that a program writes and later packets may read, and its periodic handlers: with several
/// workers, each worker has its own. Counters do not belong to them, since only reports read counters, and
/// reports have the sums. The list is empty for a program that gives the same results with any number of
/// workers.
pub fn remembered(program: &Program) -> Vec<String> {
    let mut found = BTreeSet::new();
    let named = |what: &str, name: &str| format!("{what} `{name}`");
    let table = |index: u32| named("table", &program.tables[index as usize].name);
    found.extend(program.manifest.writes_tables.iter().map(|&index| table(index)));
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    for instruction in blocks.flat_map(|block| &block.instructions) {
        let written = match &instruction.op {
            Op::Mark { meter, .. } => named("meter", &program.meters[*meter as usize].name),
            Op::WriteRegister { register, .. } => {
                named("register", &program.registers[*register as usize].name)
            }
            Op::Take { pool, .. } | Op::Give { pool, .. } => {
                named("pool", &program.pools[*pool as usize].name)
            }
            Op::Join { group, .. } | Op::Leave { group, .. } => {
                named("group", &program.groups[*group as usize].name)
            }
            _ => continue,
        };
        found.insert(written);
    }
    if !program.every.is_empty() {
        found.insert("what it does by the clock (`every`)".to_owned());
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lang::pipeline::{CompileOptions, compile};

    fn of(text: &str) -> Vec<String> {
        let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
        remembered(&compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
    }

    #[test]
    fn what_later_packets_find_is_remembered() {
        assert_eq!(of("counter all\nstart stage s() { count all  flood }"), [""; 0]);
        assert_eq!(
            of(
                "import std.net.ethernet\ntable hosts: exact(mac) -> port { capacity 1k  idle 30s  evict lru }\nregister r: u8\nstart decoder d(eth: ethernet) { learn hosts[eth.src] = in_port  flood }\nevery 1s { set r = 1 }"
            ),
            ["register `r`", "table `hosts`", "what it does by the clock (`every`)"]
        );
        let read_only = "import std.net.ethernet\ntable hosts: exact(mac) -> port { capacity 1k }\nstart decoder d(eth: ethernet) { match hosts[eth.dst] { some p => send p, none => flood } }";
        assert_eq!(of(read_only), [""; 0]);
    }
}
