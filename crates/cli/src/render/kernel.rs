//! Renders the kernel of a program: what is copied to a device, what comes back, and which steps stay on the
//! host.

use super::quantity::of;
use exec::kernel::{
    Back, Bytes, CopiedPart, Effect, Kernel, KernelOptions, KernelPlan, KernelSearch, NoKernel,
};
use ir::Program;
use ir::source::Sources;
use std::fmt::Write;
use std::ops::Range;

/// The plan of a kernel in lines.
pub(crate) fn plan(kernel: &Kernel, program: &Program, sources: &Sources) -> String {
    let plan = &kernel.plan;
    let mut text = String::new();
    let columns: Vec<&str> = plan.columns.iter().map(|column| column.name()).collect();
    let _ = writeln!(text, "over  {}", bytes(plan));
    if !columns.is_empty() {
        let beside = of(4 * columns.len() as u64, "byte");
        let _ = writeln!(text, "      {beside} beside them: {}", columns.join(", "));
    }
    if plan.has_least() {
        let least = of((*plan.lengths.start()).into(), "byte");
        let _ = writeln!(text, "      a packet shorter than {least} is run by the processor");
    }
    let back = if plan.writes { "back  the same bytes, and " } else { "back  " };
    let _ = writeln!(text, "{back}{}", results(plan));
    for (table, search) in plan.tables.iter().zip(&plan.searches) {
        let how = match search {
            KernelSearch::Exact => "by hash",
            KernelSearch::Prefixes => "by longest prefix",
            KernelSearch::Rules => "in trees of rules",
            KernelSearch::RulesLinear => "rule by rule",
            KernelSearch::Automaton => "by an automaton",
            KernelSearch::Bloom => "by Bloom filters",
        };
        let _ = writeln!(text, "there table {}, searched {how}", program.tables[*table as usize].name);
    }
    for effect in &plan.effects {
        let _ = writeln!(text, "at commit: {}", sentence(effect, program));
    }
    text + &refusals(plan, program, sources)
}

/// What a packet costs in every form, one a line.
pub(crate) fn forms(program: &Program, ports: u16) -> String {
    let mut text = String::new();
    let kernel =
        |over, back| Kernel::new(program, ports, &KernelOptions { over, back, ..KernelOptions::default() });
    for over in CopiedPart::ALL {
        let _ = match kernel(over, Back::Word) {
            Ok(kernel) => {
                let frame = if over == CopiedPart::InPlace { ", and the frame" } else { "" };
                let moved = of(kernel.plan.bytes_over(1), "byte");
                writeln!(text, "form  over {:<8}  {moved}{frame}", over.name())
            }
            Err(NoKernel::Form(why)) => writeln!(text, "form  {why}"),
            Err(error) => writeln!(text, "form  {error}"),
        };
    }
    for back in Back::ALL {
        let _ = match kernel(CopiedPart::Header, back) {
            Ok(kernel) => writeln!(text, "form  back {:<8}  {}", back.name(), results(&kernel.plan)),
            Err(NoKernel::Form(why)) => writeln!(text, "form  {why}"),
            Err(error) => writeln!(text, "form  {error}"),
        };
    }
    text
}

fn results(plan: &KernelPlan) -> String {
    match plan.results.back {
        Back::Bit => of(1, "bit"),
        Back::Word | Back::Half => {
            of(u64::from(plan.results.back.bits() / 8 + 4 * plan.record_words), "byte")
        }
    }
}

fn bytes(plan: &KernelPlan) -> String {
    match (plan.over, plan.bytes) {
        (CopiedPart::Header, Bytes::All(bytes)) => {
            format!("the first {}; the program reads none behind them", of(bytes.into(), "byte"))
        }
        (CopiedPart::Header, Bytes::Part(bytes)) => {
            let bytes = of(bytes.into(), "byte");
            format!("the first {bytes}; a packet that is read further is run by the processor")
        }
        (CopiedPart::Header | CopiedPart::Frame, _) => {
            format!("the whole frame, of up to {}", of(plan.stride.into(), "byte"))
        }
        (CopiedPart::Page, _) => format!("the whole frame, in {}", of(plan.stride.into(), "byte")),
        (CopiedPart::Packed, _) => {
            let range = |range: &Range<u32>| match range.len() {
                1 => range.start.to_string(),
                _ => format!("{} to {}", range.start, range.end - 1),
            };
            let ranges: Vec<String> = plan.ranges.iter().map(range).collect();
            let bytes = of(plan.stride.into(), "byte");
            if ranges.is_empty() { bytes } else { format!("{bytes}: {}", ranges.join(", ")) }
        }
        (CopiedPart::InPlace, _) => "the whole frame, as long as it is".to_owned(),
    }
}

fn sentence(effect: &Effect, program: &Program) -> String {
    let table = |table: u32| &program.tables[table as usize].name;
    match effect {
        Effect::Count { counter, .. } => format!("counts in {}", program.counters[*counter as usize].name),
        Effect::Ask { table: index, .. } => format!("renews the entry that was hit in {}", table(*index)),
        Effect::Confirm { table: index, .. } => {
            format!("renews the entry that was learned in {}", table(*index))
        }
        Effect::Row { table: index, .. } => format!("counts for the entry that was hit in {}", table(*index)),
    }
}

/// The steps that no device takes, one a line.
pub(crate) fn refusals(plan: &KernelPlan, program: &Program, sources: &Sources) -> String {
    let mut text = String::new();
    for refusal in &plan.refusals {
        let place = sources.place(refusal.span);
        let _ = writeln!(text, "note: {} ({place})", refusal.sentence(program));
    }
    text
}
