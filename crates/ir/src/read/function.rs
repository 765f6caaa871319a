//! Reads a function: its names, blocks, instructions and terminators.

use std::collections::BTreeMap;

use super::tokens::{Token, Tokens};
use super::{IrReadError, kind, span};
use crate::*;

/// Widths by value, as they turn up where values are made.
type Widths = BTreeMap<u32, u8>;

/// Reads a function from its name to its closing brace.
pub(super) fn function(tokens: &mut Tokens<'_>) -> Result<Function, IrReadError> {
    let mut function = Function { name: tokens.text()?, ..Function::default() };
    let mut widths = Widths::new();
    tokens.symbol("{")?;
    while tokens.accept_word("name") {
        function.names.push((value(tokens)?, tokens.text()?, kind(tokens)?));
    }
    while !matches!(tokens.peek(), Token::Word("undefined") | Token::Symbol("}")) {
        tokens.index_is('b', function.blocks.len())?;
        function.blocks.push(block(tokens, &mut widths)?);
    }
    while tokens.accept_word("undefined") {
        definition(tokens, &mut widths)?;
    }
    if let Some(missing) = (0..).zip(widths.keys()).find(|(due, value)| due != *value) {
        return Err(tokens.error(format!("%{} has no width, but a later value has one", missing.0)));
    }
    function.widths = widths.into_values().collect();
    tokens.symbol("}")?;
    Ok(function)
}

fn block(tokens: &mut Tokens<'_>, widths: &mut Widths) -> Result<Block, IrReadError> {
    let mut params = Vec::new();
    if *tokens.peek() == Token::Symbol("(") {
        params = tokens.list("(", ")", |tokens| definition(tokens, widths))?;
    }
    tokens.symbol(":")?;
    let mut instructions = Vec::new();
    loop {
        if let Some(terminator) = terminator(tokens)? {
            return Ok(Block { params, instructions, terminator, span: span(tokens)? });
        }
        let mut results = Vec::new();
        if *tokens.peek() == Token::Symbol("%") {
            results.push(definition(tokens, widths)?);
            while tokens.accept(",") {
                results.push(definition(tokens, widths)?);
            }
            tokens.symbol("=")?;
        }
        instructions.push(Instruction { results, op: op(tokens)?, span: span(tokens)? });
    }
}

fn definition(tokens: &mut Tokens<'_>, widths: &mut Widths) -> Result<Value, IrReadError> {
    let value = value(tokens)?;
    if tokens.accept(":") {
        let width = tokens.number()?;
        if *widths.entry(value.0).or_insert(width) != width {
            return Err(tokens.error(format!("{value} had another width before")));
        }
    }
    Ok(value)
}

fn value(tokens: &mut Tokens<'_>) -> Result<Value, IrReadError> {
    tokens.symbol("%")?;
    Ok(Value(tokens.number()?))
}

fn values(tokens: &mut Tokens<'_>, open: &str, close: &str) -> Result<Vec<Value>, IrReadError> {
    tokens.list(open, close, value)
}

/// `fixed any`, `%3` or `prefix %3 24`
fn key_part(tokens: &mut Tokens<'_>) -> Result<KeyPart, IrReadError> {
    if tokens.accept_word("fixed") {
        return Ok(KeyPart::Fixed(super::memory::key_match(tokens)?));
    }
    if tokens.accept_word("prefix") {
        return Ok(KeyPart::Prefix(value(tokens)?, tokens.number()?));
    }
    Ok(KeyPart::Exact(value(tokens)?))
}

fn optional(tokens: &mut Tokens<'_>, word: &str) -> Result<Option<Value>, IrReadError> {
    if tokens.accept_word(word) { value(tokens).map(Some) } else { Ok(None) }
}

fn two(tokens: &mut Tokens<'_>) -> Result<(Value, Value), IrReadError> {
    let left = value(tokens)?;
    tokens.symbol(",")?;
    Ok((left, value(tokens)?))
}

/// `%4 + 12, 2 proven 14`
fn access(tokens: &mut Tokens<'_>) -> Result<(Value, u32, u8, u32), IrReadError> {
    let base = value(tokens)?;
    tokens.symbol("+")?;
    let offset = tokens.number()?;
    tokens.symbol(",")?;
    let bytes = tokens.number()?;
    tokens.word("proven")?;
    Ok((base, offset, bytes, tokens.number()?))
}

/// Reads an instruction behind its results.
fn op(tokens: &mut Tokens<'_>) -> Result<Op, IrReadError> {
    if let Token::Word(word) = *tokens.peek() {
        tokens.advance();
        for part in [calculation, packet_op, table_op, memory_op] {
            if let Some(op) = part(tokens, word)? {
                return Ok(op);
            }
        }
        tokens.step_back();
    }
    Err(tokens.expected("an instruction or the end of the block"))
}

/// Reads an instruction that computes with values or reads what is known of the packet.
fn calculation(tokens: &mut Tokens<'_>, word: &str) -> Result<Option<Op>, IrReadError> {
    if let Some((op, _)) = BinaryOp::NAMES.iter().find(|(_, name)| *name == word) {
        let (left, right) = two(tokens)?;
        return Ok(Some(Op::Binary(*op, left, right)));
    }
    if let Some((op, _)) = CompareOp::NAMES.iter().find(|(_, name)| *name == word) {
        let (left, right) = two(tokens)?;
        return Ok(Some(Op::Compare(*op, left, right)));
    }
    Ok(Some(match word {
        "const" => Op::Const(tokens.number()?),
        "select" => {
            let (condition, yes) = two(tokens)?;
            tokens.symbol(",")?;
            Op::Select(condition, yes, value(tokens)?)
        }
        "resize" => Op::Resize(value(tokens)?),
        "in_port" => Op::InPort,
        "wire_length" => Op::WireLength,
        "captured" => Op::Captured,
        "now" => Op::Now,
        "keep" => Op::Keep(value(tokens)?),
        _ => return Ok(None),
    }))
}

/// Reads an instruction on bytes of a packet, or on a packet as a whole.
fn packet_op(tokens: &mut Tokens<'_>, word: &str) -> Result<Option<Op>, IrReadError> {
    Ok(Some(match word {
        "load" => {
            let (base, offset, bytes, proven) = access(tokens)?;
            Op::Load { base, offset, bytes, proven }
        }
        "store" => {
            let (base, offset, bytes, proven) = access(tokens)?;
            tokens.symbol("=")?;
            Op::Store { base, offset, bytes, value: value(tokens)?, proven }
        }
        "checksum" => {
            let base = value(tokens)?;
            tokens.symbol(",")?;
            Op::Checksum { base, bytes: tokens.number()?, more: optional(tokens, "more")? }
        }
        "copy" => Op::Copy(value(tokens)?),
        "emit" => {
            let template = tokens.index('p')?;
            let holes = values(tokens, "(", ")")?;
            let tail = optional(tokens, "tail")?;
            let limit = optional(tokens, "limit")?;
            tokens.word("port")?;
            Op::Emit { template, values: holes, tail, limit, port: value(tokens)? }
        }
        "push" => {
            let template = tokens.index('p')?;
            let holes = values(tokens, "(", ")")?;
            tokens.word("at")?;
            Op::PushBytes { at: value(tokens)?, template, values: holes }
        }
        "pop" => {
            let bytes = value(tokens)?;
            tokens.word("at")?;
            Op::PopBytes { at: value(tokens)?, bytes }
        }
        "truncate" => Op::Truncate(value(tokens)?),
        "fragment" => {
            let mtu = value(tokens)?;
            tokens.word("at")?;
            Op::Fragment { at: value(tokens)?, mtu }
        }
        "stage" => Op::EnterStage(tokens.index('s')?),
        "header" => {
            let layout = tokens.index('l')?;
            tokens.word("at")?;
            Op::Header { layout, base: value(tokens)?, name: tokens.text()? }
        }
        _ => return Ok(None),
    }))
}

/// Reads an instruction on a table.
fn table_op(tokens: &mut Tokens<'_>, word: &str) -> Result<Option<Op>, IrReadError> {
    Ok(Some(match word {
        "lookup" => Op::Lookup { table: tokens.index('t')?, key: values(tokens, "[", "]")? },
        "scan" => {
            let table = tokens.index('t')?;
            tokens.symbol(",")?;
            let (start, end) = two(tokens)?;
            Op::Scan { table, start, end }
        }
        "insert" => {
            let table = tokens.index('t')?;
            let key = tokens.list("[", "]", key_part)?;
            tokens.word("priority")?;
            let priority = tokens.number()?;
            tokens.symbol("=")?;
            Op::Insert { table, key, priority, value: values(tokens, "(", ")")? }
        }
        "withdraw" => {
            let table = tokens.index('t')?;
            let key = tokens.list("[", "]", key_part)?;
            tokens.word("priority")?;
            Op::Withdraw { table, key, priority: tokens.number()? }
        }
        "learn" => {
            let (table, key) = (tokens.index('t')?, values(tokens, "[", "]")?);
            tokens.symbol("=")?;
            Op::Learn { table, key, value: values(tokens, "(", ")")? }
        }
        "has_room" => {
            Op::HasRoom(tokens.list("(", ")", |tokens| Ok((tokens.index('t')?, values(tokens, "[", "]")?)))?)
        }
        "remove" => Op::Remove { table: tokens.index('t')?, key: values(tokens, "[", "]")? },
        "end" => {
            let (table, key) = (tokens.index('t')?, values(tokens, "[", "]")?);
            tokens.word("after")?;
            Op::EndAfter { table, key, after: value(tokens)? }
        }
        "set_default" => {
            let table = tokens.index('t')?;
            tokens.symbol("=")?;
            Op::SetDefault { table, value: values(tokens, "(", ")")? }
        }
        "clear_default" => Op::ClearDefault(tokens.index('t')?),
        _ => return Ok(None),
    }))
}

/// Reads an instruction on meters, registers, pools, groups, counters or events.
fn memory_op(tokens: &mut Tokens<'_>, word: &str) -> Result<Option<Op>, IrReadError> {
    Ok(Some(match word {
        "mark" => Op::Mark {
            meter: tokens.index('m')?,
            index: optional(tokens, "at")?,
            before: optional(tokens, "before")?,
        },
        "read_register" => Op::ReadRegister { register: tokens.index('x')?, index: optional(tokens, "at")? },
        "write_register" => {
            let (register, index) = (tokens.index('x')?, optional(tokens, "at")?);
            tokens.symbol("=")?;
            Op::WriteRegister { register, index, value: value(tokens)? }
        }
        "take" => {
            let pool = tokens.index('q')?;
            tokens.symbol(",")?;
            Op::Take { pool, hint: value(tokens)? }
        }
        "give" => Op::Give { pool: tokens.index('q')?, item: values(tokens, "(", ")")? },
        "choose" => {
            let group = tokens.index('u')?;
            tokens.symbol(",")?;
            let hash = value(tokens)?;
            Op::Choose { group, index: optional(tokens, "at")?, hash }
        }
        "member" => {
            let group = tokens.index('u')?;
            tokens.symbol(",")?;
            let place = tokens.number()?;
            Op::Member { group, index: optional(tokens, "at")?, place }
        }
        "join" => {
            let (group, member) = (tokens.index('u')?, values(tokens, "(", ")")?);
            Op::Join { group, index: optional(tokens, "at")?, member }
        }
        "leave" => {
            let (group, member) = (tokens.index('u')?, values(tokens, "(", ")")?);
            Op::Leave { group, index: optional(tokens, "at")?, member }
        }
        "count" => {
            let counter = tokens.index('c')?;
            let mut index = None;
            if tokens.accept("[") {
                index = Some(value(tokens)?);
                tokens.symbol("]")?;
            }
            Op::Count { counter, index }
        }
        "raise" => Op::Raise {
            event: tokens.index('e')?,
            args: values(tokens, "(", ")")?,
            delay: optional(tokens, "after")?,
        },
        _ => return Ok(None),
    }))
}

fn target(tokens: &mut Tokens<'_>) -> Result<Target, IrReadError> {
    let block = BlockId(tokens.index('b')?);
    let mut args = Vec::new();
    if *tokens.peek() == Token::Symbol("(") {
        args = values(tokens, "(", ")")?;
    }
    Ok(Target { block, args })
}

/// The terminator if the next word begins one.
fn terminator(tokens: &mut Tokens<'_>) -> Result<Option<Terminator>, IrReadError> {
    let Token::Word(word) = *tokens.peek() else { return Ok(None) };
    tokens.advance();
    Ok(Some(match word {
        "jump" => Terminator::Jump(target(tokens)?),
        "branch" => {
            let condition = value(tokens)?;
            tokens.symbol(",")?;
            let yes = target(tokens)?;
            tokens.symbol(",")?;
            Terminator::Branch(condition, yes, target(tokens)?)
        }
        "switch" => {
            let switched = value(tokens)?;
            let cases = tokens.list("{", "}", |tokens| {
                let case = tokens.number()?;
                tokens.symbol("=>")?;
                Ok((case, target(tokens)?))
            })?;
            tokens.word("else")?;
            Terminator::Switch(switched, cases, target(tokens)?)
        }
        "need" => {
            let base = value(tokens)?;
            tokens.symbol("+")?;
            let bytes = tokens.number()?;
            let more = optional(tokens, "more")?;
            let limit = optional(tokens, "limit")?;
            tokens.word("ok")?;
            let ok = target(tokens)?;
            tokens.word("short")?;
            Terminator::Need { base, bytes, more, limit, ok, short: target(tokens)? }
        }
        "fuel" => {
            let slot = tokens.number()?;
            tokens.word("cap")?;
            let cap = tokens.number()?;
            tokens.word("ok")?;
            let ok = target(tokens)?;
            tokens.word("out")?;
            Terminator::Fuel { slot, cap, ok, out: target(tokens)? }
        }
        "send" => Terminator::Send(value(tokens)?),
        "flood" => Terminator::Flood,
        "multicast" => Terminator::Multicast(tokens.index('g')?),
        "drop" => Terminator::Drop(tokens.index('r')?),
        "punt" => Terminator::Punt(tokens.index('r')?),
        "done" => Terminator::Done,
        _ => {
            tokens.step_back();
            return Ok(None);
        }
    }))
}
