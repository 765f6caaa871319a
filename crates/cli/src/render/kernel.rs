//! What a program is to a device: what goes over, what comes back, and which steps stay on the processor.

use super::quantity::of;
use exec::kernel::{Bytes, Effect, Kernel, Plan, Search};
use lang::ir::Program;
use lang::source::Sources;
use std::fmt::Write;

/// The plan of a kernel in lines.
pub(crate) fn plan(kernel: &Kernel, program: &Program, sources: &Sources) -> String {
    let plan = &kernel.plan;
    let mut text = String::new();
    let columns: Vec<&str> = plan.columns.iter().map(|column| column.name()).collect();
    let _ = writeln!(text, "over  {}", bytes(plan.bytes));
    let _ =
        writeln!(text, "      {} beside them: {}", of(4 * columns.len() as u64, "byte"), columns.join(", "));
    let back = if plan.writes { "back  the same bytes, and " } else { "back  " };
    let _ = writeln!(text, "{back}{}", of(plan.result_bytes().into(), "byte"));
    for (table, search) in plan.tables.iter().zip(&plan.searches) {
        let how = match search {
            Search::Exact => "by hash",
            Search::Prefixes => "by longest prefix",
            Search::Rules => "in trees of rules",
            Search::RulesLinear => "rule by rule",
            Search::Automaton => "by an automaton",
            Search::Bloom => "by Bloom filters",
        };
        let _ = writeln!(text, "there table {}, searched {how}", program.tables[*table as usize].name);
    }
    for effect in &plan.effects {
        let _ = writeln!(text, "at commit: {}", sentence(effect, program));
    }
    text + &refusals(plan, program, sources)
}

fn bytes(bytes: Bytes) -> String {
    match bytes {
        Bytes::All(bytes) => {
            format!("the first {}; the program reads none behind them", of(bytes.into(), "byte"))
        }
        Bytes::Part(bytes) => {
            let bytes = of(bytes.into(), "byte");
            format!("the first {bytes}; a packet that is read further is run by the processor")
        }
        Bytes::Frame => {
            format!("the whole frame, of up to {}", of(exec::kernel::FRAME_BYTES.into(), "byte"))
        }
    }
}

fn sentence(effect: &Effect, program: &Program) -> String {
    let table = |table: u32| &program.tables[table as usize].name;
    match effect {
        Effect::Count { counter, .. } => format!("counts in {}", program.counters[*counter as usize].name),
        Effect::Hit { table: index, .. } => format!("renews the entry that was hit in {}", table(*index)),
        Effect::Confirm { table: index, .. } => {
            format!("renews the entry that was learned in {}", table(*index))
        }
        Effect::Row { table: index, .. } => format!("counts for the entry that was hit in {}", table(*index)),
    }
}

/// The steps that no device takes, one a line.
fn refusals(plan: &Plan, program: &Program, sources: &Sources) -> String {
    let mut text = String::new();
    for refusal in &plan.refusals {
        let place = sources.place(refusal.span);
        let _ = writeln!(text, "note: {} ({place})", refusal.sentence(program));
    }
    text
}
