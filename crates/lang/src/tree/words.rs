//! Parts of the tree as one line of text: expressions, patterns, types, packets, fields, steps of tests.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ast::*;
use crate::parser::OPERATORS;

pub(super) fn names(names: &[Name]) -> String {
    names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(", ")
}

/// ` requires a, b`, or nothing.
pub(super) fn requires(headers: &[Name]) -> String {
    if headers.is_empty() { String::new() } else { format!(" requires {}", names(headers)) }
}

pub(super) fn ty(ty: &Type) -> String {
    match &ty.kind {
        TypeKind::Uint(width) => format!("u{width}"),
        TypeKind::Named(name) => name.clone(),
    }
}

pub(super) fn params(params: &[Param]) -> String {
    let shown = params.iter().map(|param| format!("{}: {}", param.name.text, ty(&param.ty)));
    format!("({})", shown.collect::<Vec<_>>().join(", "))
}

pub(super) fn field(field: &Field) -> String {
    let mut out = format!("{}: ", field.name.text);
    match &field.ty {
        FieldType::Scalar(scalar) => out += &ty(scalar),
        FieldType::Flags(scalar, flags) => out += &format!("{} {{ {} }}", ty(scalar), names(flags)),
        FieldType::Bytes(length) => out += &format!("bytes[{}]", expr(length)),
        FieldType::Checksum(covers) => {
            let pseudo = if covers.pseudo { "pseudo + " } else { "" };
            let payload = if covers.payload { " + payload" } else { "" };
            out += &format!("inet16 over ({pseudo}header{payload})");
            out += if covers.unless_zero { " unless 0" } else { "" };
        }
    }
    match &field.constraint {
        Some(Constraint::Equal(value)) => out += &format!(" = {}", expr(value)),
        Some(Constraint::Range(low, high)) => {
            out += &format!(" in {}..{}", expr(low), high.as_ref().map(expr).unwrap_or_default());
        }
        None => {}
    }
    match field.length_of {
        Some(LengthOf::Both) => out += " length of (header + payload)",
        Some(LengthOf::Header) => out += " length of (header)",
        Some(LengthOf::Payload) => out += " length of (payload)",
        None => {}
    }
    if let Some(when) = &field.when {
        out += &format!(" when {}", expr(when));
    }
    out
}

pub(super) fn pseudo(clause: &Pseudo) -> String {
    let mut parts: Vec<&str> = clause.fields.iter().map(|field| field.text.as_str()).collect();
    parts.extend(clause.kind.then_some("kind of payload"));
    parts.extend(clause.length.then_some("length of payload"));
    format!("pseudo ({})", parts.join(" + "))
}

pub(super) fn exprs(values: &[Expr]) -> String {
    values.iter().map(expr).collect::<Vec<_>>().join(", ")
}

pub(super) fn expr(value: &Expr) -> String {
    match &value.kind {
        ExprKind::Int(number) => number.to_string(),
        ExprKind::Bool(truth) => truth.to_string(),
        ExprKind::Ip4(address) => Ipv4Addr::from(*address).to_string(),
        ExprKind::Ip6(address) => Ipv6Addr::from(*address).to_string(),
        ExprKind::Mac(address) => {
            let bytes = address.to_be_bytes();
            bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        ExprKind::Prefix4(address, length) => format!("{}/{length}", Ipv4Addr::from(*address)),
        ExprKind::Prefix6(address, length) => format!("{}/{length}", Ipv6Addr::from(*address)),
        ExprKind::Duration(time) => format!("{time}ns"),
        ExprKind::Word(word) => word.clone(),
        ExprKind::Field(whole, part) => format!("{}.{}", expr(whole), part.text),
        ExprKind::Lookup(table, keys) => format!("{}[{}]", table.text, exprs(keys)),
        ExprKind::Call(name, arguments) => format!("{}({})", name.text, exprs(arguments)),
        ExprKind::Unary(UnaryOp::Not, value) => format!("!{}", expr(value)),
        ExprKind::Unary(UnaryOp::Complement, value) => format!("~{}", expr(value)),
        ExprKind::Binary(operator, left, right) => {
            format!("({} {} {})", expr(left), sign(*operator), expr(right))
        }
        ExprKind::Cast(value, mode, target) => {
            let mode = match mode {
                CastMode::Exact => "as",
                CastMode::Wrap => "as%",
                CastMode::Saturate => "as|",
            };
            format!("({} {mode} {})", expr(value), ty(target))
        }
        ExprKind::InRange(value, low, high) => {
            let high = high.as_ref().map(|high| expr(high)).unwrap_or_default();
            format!("({} in {}..{high})", expr(value), expr(low))
        }
        ExprKind::InPrefix(value, prefix) => format!("({} in {})", expr(value), expr(prefix)),
        ExprKind::Tuple(values) => format!("({})", exprs(values)),
        ExprKind::If(condition, then, otherwise) => {
            format!("if {} {{ {} }} else {{ {} }}", expr(condition), expr(then), expr(otherwise))
        }
        ExprKind::Match(subject, arms) => {
            let shown = arms.iter().map(|arm| {
                let guard =
                    arm.guard.as_ref().map(|guard| format!(" if {}", expr(guard))).unwrap_or_default();
                format!("{}{guard} => {}", pattern(&arm.pattern), expr(&arm.body))
            });
            format!("match {} {{ {} }}", expr(subject), shown.collect::<Vec<_>>().join(", "))
        }
    }
}

fn sign(operator: BinaryOp) -> &'static str {
    OPERATORS.iter().find(|(_, _, known)| *known == operator).map_or("", |(sign, ..)| sign.text())
}

pub(super) fn pattern(shape: &Pattern) -> String {
    let all = |parts: &[Pattern], between: &str| parts.iter().map(pattern).collect::<Vec<_>>().join(between);
    match &shape.kind {
        PatternKind::Any => "else".to_string(),
        PatternKind::Value(value) => expr(value),
        PatternKind::Range(low, high) => {
            format!("{}..{}", expr(low), high.as_ref().map(expr).unwrap_or_default())
        }
        PatternKind::Either(choices) => all(choices, " | "),
        PatternKind::Tuple(parts) => format!("({})", all(parts, ", ")),
        PatternKind::Some(inner) => format!("some {}", pattern(inner)),
        PatternKind::None => "none".to_string(),
        PatternKind::Variant(name, parts) => format!("{}({})", name.text, all(parts, ", ")),
        PatternKind::Word(name) => name.text.clone(),
    }
}

pub(super) fn entry_key(key: &EntryKey) -> String {
    match key {
        EntryKey::Any(_) => "_".to_string(),
        EntryKey::Value(value) => expr(value),
        EntryKey::Range(low, high) => {
            format!("{}..{}", expr(low), high.as_ref().map(expr).unwrap_or_default())
        }
        EntryKey::Masked(value, mask) => format!("{} mask {}", expr(value), expr(mask)),
        EntryKey::Bytes { bytes, nocase, offset, depth, .. } => {
            let mut out = format!("{:?}", String::from_utf8_lossy(bytes));
            out += if *nocase { " nocase" } else { "" };
            out += &offset.as_ref().map(|offset| format!(" offset {}", expr(offset))).unwrap_or_default();
            out + &depth.as_ref().map(|depth| format!(" depth {}", expr(depth))).unwrap_or_default()
        }
    }
}

pub(super) fn entry_keys(keys: &[EntryKey]) -> String {
    keys.iter().map(entry_key).collect::<Vec<_>>().join(", ")
}

pub(super) fn member(member: &Member) -> String {
    let index = member.index.as_ref().map(|index| format!("{}: ", expr(index))).unwrap_or_default();
    let weight = member.weight.as_ref().map(|weight| format!(" weight {}", expr(weight))).unwrap_or_default();
    format!("{index}({}){weight}", exprs(&member.parts))
}

pub(super) fn types(types: &[Type]) -> String {
    types.iter().map(ty).collect::<Vec<_>>().join(", ")
}

/// The type of a value, or of several as a tuple.
pub(super) fn values(listed: &[Type]) -> String {
    if let [one] = listed { ty(one) } else { format!("({})", types(listed)) }
}

pub(super) fn write(write: &TableWrite) -> String {
    let value = write.value.as_ref().map(|value| format!(" = {}", expr(value))).unwrap_or_default();
    let lifetime = write.lifetime.as_ref().map(|time| format!(" for {}", expr(time))).unwrap_or_default();
    let priority = priority(write.priority.as_ref());
    format!("{}[{}]{value}{priority}{lifetime}", write.table.text, exprs(&write.keys))
}

pub(super) fn priority(priority: Option<&Expr>) -> String {
    priority.map(|priority| format!(" priority {}", expr(priority))).unwrap_or_default()
}

pub(super) fn packet(packet: &PacketExpr) -> String {
    let parts = packet.parts.iter().map(|part| match part {
        PacketPart::Header(name, fields) if fields.is_empty() => name.text.clone(),
        PacketPart::Header(name, fields) => {
            let fields = fields.iter().map(|(field, value)| format!("{} {}", field.text, expr(value)));
            format!("{}({})", name.text, fields.collect::<Vec<_>>().join(", "))
        }
        PacketPart::Text(text, _) => format!("{text:?}"),
        PacketPart::Hex(bytes, _) => {
            format!(
                "hex \"{}\"",
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
            )
        }
        PacketPart::Zero(count, _) => format!("zero[{}]", expr(count)),
        PacketPart::Rest { from, take, .. } => {
            let take = take.as_ref().map(|take| format!(" take {}", expr(take))).unwrap_or_default();
            match from {
                RestFrom::Payload => format!("payload{take}"),
                RestFrom::Packet => format!("packet{take}"),
                RestFrom::Header(header) => format!("from {}{take}", header.text),
            }
        }
    });
    parts.collect::<Vec<_>>().join(" / ")
}

/// A statement without blocks inside.
pub(super) fn simple_statement(kind: &StmtKind) -> String {
    let typed = |ty_: &Option<Type>| ty_.as_ref().map(|it| format!(": {}", ty(it))).unwrap_or_default();
    let indexed =
        |index: &Option<Expr>| index.as_ref().map(|it| format!("[{}]", expr(it))).unwrap_or_default();
    match kind {
        StmtKind::Let(name, ty, value) => format!("let {}{} = {}", name.text, typed(ty), expr(value)),
        StmtKind::Var(name, ty, value) => format!("var {}{} = {}", name.text, typed(ty), expr(value)),
        StmtKind::Assign(name, value) => format!("{} = {}", name.text, expr(value)),
        StmtKind::Set(header, field, value) => {
            format!("set {}.{} = {}", header.text, field.text, expr(value))
        }
        StmtKind::SetRegister(register, cell, value) => {
            format!("set {}{} = {}", register.text, indexed(cell), expr(value))
        }
        StmtKind::Give(pool, item) => format!("give {}[{}]", pool.text, exprs(item)),
        StmtKind::Break => "break".to_string(),
        StmtKind::Extract(fields) if fields.is_empty() => "extract all".to_string(),
        StmtKind::Extract(fields) => format!("extract {}", names(fields)),
        StmtKind::SetDefault(table, value) => format!("insert {}[default] = {}", table.text, expr(value)),
        StmtKind::Remove(table, keys, rank) => {
            format!("remove {}[{}]{}", table.text, exprs(keys), priority(rank.as_ref()))
        }
        StmtKind::ClearDefault(table) => format!("remove {}[default]", table.text),
        StmtKind::Count(counter, cell) => format!("count {}{}", counter.text, indexed(cell)),
        StmtKind::Raise(delay, event, values) => {
            let delay = delay.as_ref().map(|delay| format!("after {} ", expr(delay))).unwrap_or_default();
            format!("{delay}raise {}({})", event.text, exprs(values))
        }
        StmtKind::Emit(bytes, port) => format!("emit {} to {}", packet(bytes), expr(port)),
        StmtKind::Copy(port) => format!("copy to {}", expr(port)),
        StmtKind::Edit(change) => edit(change),
        StmtKind::Goto(stage, values) if values.is_empty() => format!("goto {}", stage.text),
        StmtKind::Goto(stage, values) => format!("goto {}({})", stage.text, exprs(values)),
        StmtKind::Send(port) => format!("send {}", expr(port)),
        StmtKind::Flood => "flood".to_string(),
        StmtKind::MulticastGroup(group, index) => format!("multicast {}{}", group.text, indexed(index)),
        StmtKind::Multicast(ports) => format!("multicast {{{}}}", exprs(ports)),
        StmtKind::Drop(reason) => format!("drop {}", reason.text),
        StmtKind::Punt(reason) => format!("punt {}", reason.text),
        StmtKind::Recirculate(times) => format!("recirculate {}", expr(times)),
        StmtKind::Steer(key) => format!("steer {}", expr(key)),
        StmtKind::If(..)
        | StmtKind::Match(..)
        | StmtKind::For(..)
        | StmtKind::Walk { .. }
        | StmtKind::Learn(..)
        | StmtKind::Insert(..)
        | StmtKind::LearnTogether(..) => String::new(),
    }
}

fn edit(edit: &Edit) -> String {
    match edit {
        Edit::Push { packet: bytes, before, header } => {
            let side = if *before { "before" } else { "after" };
            format!("push {} {side} {}", packet(bytes), header.text)
        }
        Edit::Encapsulate(bytes) => format!("encapsulate {{ {} }}", packet(bytes)),
        Edit::Pop(header) => format!("pop {}", header.text),
        Edit::Decapsulate(header) => format!("decapsulate to {}", header.text),
        Edit::Truncate(length) => format!("truncate to {}", expr(length)),
        Edit::Fragment(header, mtu) => format!("fragment {} to {}", header.text, expr(mtu)),
    }
}

pub(super) fn step(step: &TestStep) -> String {
    match step {
        TestStep::Ports(count) => format!("ports {}", expr(count)),
        TestStep::Packet { port, from_host, packet: bytes, at, .. } => {
            let at = at.as_ref().map(|at| format!(" at {}", expr(at))).unwrap_or_default();
            let from = if *from_host { " from_host" } else { "" };
            format!("packet {}{from} {{ {} }}{at}", expr(port), packet(bytes))
        }
        TestStep::After(time) => format!("after {}", expr(time)),
        TestStep::Expect(outcome, _) => format!("expect {}", expectation(outcome)),
    }
}

fn expectation(outcome: &Expectation) -> String {
    match outcome {
        Expectation::Send(port) => format!("send {}", expr(port)),
        Expectation::Flood => "flood".to_string(),
        Expectation::Multicast(ports) => format!("multicast {{{}}}", exprs(ports)),
        Expectation::Drop(reason) => format!("drop {}", reason.text),
        Expectation::Punt(reason) => format!("punt {}", reason.text),
        Expectation::Out(port, bytes) => format!("out {} {{ {} }}", expr(port), packet(bytes)),
        Expectation::Entries(table, count) => format!("entries {} {}", table.text, expr(count)),
        Expectation::Count(counter, cell, count) => {
            let cell = cell.as_ref().map(|cell| format!("[{}]", expr(cell))).unwrap_or_default();
            format!("count {}{cell} {}", counter.text, expr(count))
        }
        Expectation::Event(event, values) => format!("event {}({})", event.text, exprs(values)),
    }
}
