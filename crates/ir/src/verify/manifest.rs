//! Derives the manifest of a program, which says what the program can do, from its instructions.

use std::collections::BTreeSet;

use crate::*;

/// The smallest manifest that covers a program. Reads of payload other than an appended tail cannot be told
/// from header reads here; the compiler adds them. Indexes that do not exist are passed over.
pub fn derive_manifest(program: &Program) -> Manifest {
    let mut manifest = Manifest::default();
    let mut tables = BTreeSet::new();
    let mut ports = Vec::new();
    let mut named_sets = Vec::new();
    for function in &program.functions {
        let mut constants = vec![None; function.widths.len()];
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            if let (Op::Const(number), [result]) = (&instruction.op, &instruction.results[..])
                && let Some(constant) = constants.get_mut(result.0 as usize)
            {
                *constant = u16::try_from(*number).ok();
            }
        }
        let mut sends = |port: Value| match constants.get(port.0 as usize).copied().flatten() {
            Some(port) => ports.push(port),
            None => manifest.any_port = true,
        };
        for block in &function.blocks {
            for instruction in &block.instructions {
                match &instruction.op {
                    Op::Learn { table, .. }
                    | Op::Insert { table, .. }
                    | Op::Withdraw { table, .. }
                    | Op::Remove { table, .. }
                    | Op::EndAfter { table, .. }
                    | Op::SetDefault { table, .. }
                    | Op::ClearDefault(table) => drop(tables.insert(*table)),
                    Op::Scan { .. } => manifest.reads_payload = true,
                    Op::Mark { .. }
                    | Op::WriteRegister { .. }
                    | Op::Take { .. }
                    | Op::Give { .. }
                    | Op::Join { .. }
                    | Op::Leave { .. } => manifest.writes_memory = true,
                    Op::Store { .. } => manifest.writes_packet = true,
                    Op::PushBytes { .. } | Op::PopBytes { .. } | Op::Truncate(_) | Op::Fragment { .. } => {
                        manifest.writes_packet = true;
                        manifest.resizes_packet = true;
                    }
                    Op::Copy(port) => {
                        manifest.makes_packets = true;
                        sends(*port);
                    }
                    Op::Emit { tail, port, .. } => {
                        manifest.makes_packets = true;
                        manifest.reads_payload |= tail.is_some();
                        sends(*port);
                    }
                    _ => {}
                }
            }
            match &block.terminator {
                Terminator::Send(port) => sends(*port),
                Terminator::Multicast(set) => named_sets.push(*set),
                _ => {}
            }
        }
    }
    manifest.writes_tables = tables.into_iter().collect();
    let sets = named_sets.into_iter().filter_map(|set| program.port_sets.get(set as usize));
    ports.extend(sets.flatten());
    ports.sort_unstable();
    ports.dedup();
    manifest.ports = ports;
    manifest
}
