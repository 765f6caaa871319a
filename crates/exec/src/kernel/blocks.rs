//! Writes the packet function as the text of one thread: blocks become labels, jumps become assignments and
//! `goto`.

use super::form::{CopiedPart, KernelOptions, NoKernel};
use super::instructions::Writer;
use super::names::{Type, constant, name};
use super::plan::KernelPlan;
use super::shape::Shape;
use ir::{Function, NO_SUCH_PORT, Program, Target, Terminator};
use packet::verdict::{Verdict, VerdictKind};
use std::fmt::Write;

/// The text of the packet function, and its plan.
pub(super) fn body(
    program: &Program,
    ports: u16,
    options: &KernelOptions,
) -> Result<(String, KernelPlan), NoKernel> {
    let function = &program.functions[0];
    let (shape, plan) = Shape::planned(program, ports, options)?;
    let known = shape.known(function);
    let mut writer = Writer::new(program, &shape.sites, &plan, &known);
    for &block in &shape.order {
        writer.line(&format!("b{}: ;", block.0));
        for (index, instruction) in shape.instructions(function, block).iter().enumerate() {
            writer.instruction(instruction, (block, index));
        }
        match shape.cut[block.0 as usize] {
            Some(_) => writer.line("goto again;"),
            None => terminator(&mut writer, &function.block(block).terminator, ports),
        }
    }
    let steps = writer.finish();
    Ok((whole(function, &shape, &plan, &steps), plan))
}

/// The whole function, around these steps.
fn whole(function: &Function, shape: &Shape, plan: &KernelPlan, steps: &str) -> String {
    let mut text = String::from("INLINE u32 run_packet(PARAMETERS, const u32 packet)\n{\n");
    for (place, column) in plan.columns.iter().enumerate() {
        let _ = writeln!(text, "    const u32 {} = columns[{place}u * packets + packet];", column.name());
    }
    let _ = match plan.over {
        CopiedPart::InPlace => writeln!(text, "    GLOBAL u8 *frame = bytes + (u64)place * 16;"),
        _ => writeln!(text, "    GLOBAL u8 *frame = bytes + (u64)packet * PITCH;"),
    };
    for word in 0..plan.mask_words() {
        let _ = writeln!(text, "    u32 done{word} = 0;");
    }
    text.push_str("    u32 verdict = 0, marks = 0;\n");
    for slot in &shape.slots {
        let _ = writeln!(text, "    u32 fuel{slot} = 0;");
    }
    for value in shape.values(function) {
        let kind = Type::of(function.width(value));
        let _ = writeln!(text, "    {} {} = {};", kind.name(), name(value), kind.zero());
    }
    if *plan.lengths.end() != u32::MAX {
        let _ = writeln!(text, "    if (captured > {}u) goto again;", plan.lengths.end());
    }
    text.push_str(steps);
    text.push_str("finish: ;\n");
    for word in 0..plan.mask_words() {
        let _ = writeln!(text, "    records[{word}u * packets + packet] = done{word};");
    }
    text.push_str(&plan.results.text());
    let _ = writeln!(text, "again: ;\n    return {:#x}u;\n}}", plan.results.again());
    text
}

fn terminator(writer: &mut Writer<'_>, terminator: &Terminator, ports: u16) {
    match terminator {
        Terminator::Jump(target) => jump(writer, target),
        Terminator::Branch(condition, yes, no) => {
            branch(writer, &name(*condition), yes);
            jump(writer, no);
        }
        Terminator::Switch(value, cases, default) => {
            let width = writer.function.width(*value);
            for (case, target) in cases {
                let case = constant(width, *case);
                let condition = match Type::of(width) {
                    Type::Wide => format!("wide_eq({}, {case})", name(*value)),
                    _ => format!("{} == {case}", name(*value)),
                };
                branch(writer, &condition, target);
            }
            jump(writer, default);
        }
        Terminator::Need { ok, .. } if writer.plan.has_least() => jump(writer, ok),
        Terminator::Need { base, bytes, more, limit, ok, short } => {
            let more = more.map(|more| format!(" + {}", name(more))).unwrap_or_default();
            let end = format!("(u64){} + {bytes}u{more}", name(*base));
            let limit = limit.map(|limit| format!(" && {end} <= {}", name(limit))).unwrap_or_default();
            branch(writer, &format!("{end} <= captured{limit}"), ok);
            jump(writer, short);
        }
        Terminator::Fuel { slot, cap, ok, out } => {
            writer.line(&format!("fuel{slot}++;"));
            branch(writer, &format!("fuel{slot} > {cap}u"), out);
            jump(writer, ok);
        }
        Terminator::Send(port) => {
            let (send, none) =
                (Verdict::new(VerdictKind::Send, 0).bits(), Verdict::drop(NO_SUCH_PORT).bits());
            let port = name(*port);
            writer.line(&format!(
                "verdict = {port} >= 1u && {port} <= {ports}u ? {send:#x}u | {port} : {none:#x}u; goto finish;"
            ));
        }
        Terminator::Flood => verdict(writer, Verdict::FLOOD),
        Terminator::Multicast(set) => verdict(writer, Verdict::multicast(*set as u16)),
        Terminator::Drop(reason) => verdict(writer, Verdict::drop(*reason)),
        Terminator::Punt(reason) => verdict(writer, Verdict::punt(*reason)),
        Terminator::Done => verdict(writer, Verdict::PENDING),
    }
}

fn verdict(writer: &mut Writer<'_>, verdict: Verdict) {
    writer.line(&format!("verdict = {:#x}u; goto finish;", verdict.bits()));
}

fn branch(writer: &mut Writer<'_>, condition: &str, target: &Target) {
    let go = going(writer, target);
    writer.line(&format!("if ({condition}) {{ {go} }}"));
}

fn jump(writer: &mut Writer<'_>, target: &Target) {
    let go = going(writer, target);
    writer.line(&go);
}

/// Assigns the arguments to the block's parameters, all at the same time, and jumps to the block.
fn going(writer: &Writer<'_>, target: &Target) -> String {
    let params = &writer.function.block(target.block).params;
    let moved = params.iter().zip(&target.args).filter(|(param, arg)| param != arg);
    let mut text = String::new();
    if let [(param, arg)] = moved.clone().collect::<Vec<_>>()[..] {
        let _ = write!(text, "{} = {}; ", name(*param), name(*arg));
    } else {
        for (place, (_, arg)) in moved.clone().enumerate() {
            let kind = Type::of(writer.function.width(*arg));
            let _ = write!(text, "{} m{place} = {}; ", kind.name(), name(*arg));
        }
        for (place, (param, _)) in moved.enumerate() {
            let _ = write!(text, "{} = m{place}; ", name(*param));
        }
    }
    let _ = write!(text, "goto b{};", target.block.0);
    if text.matches(';').count() > 2 { format!("{{ {text} }}") } else { text }
}
