//! Reads meters, registers, pools, groups and matches from the text of a program.

use super::tokens::{Token, Tokens};
use super::{IrReadError, column};
use crate::*;

/// Reads a declaration behind its word: `meter`, `register`, `pool` or `group`.
pub(super) fn declaration(
    tokens: &mut Tokens<'_>,
    word: &str,
    program: &mut Program,
) -> Result<(), IrReadError> {
    match word {
        "meter" => {
            tokens.index_is('m', program.meters.len())?;
            program.meters.push(meter(tokens)?);
        }
        "register" => {
            tokens.index_is('x', program.registers.len())?;
            let (name, size) = tokens.sized()?;
            program.registers.push(Register { name, size, column: column(tokens)? });
        }
        "pool" => {
            tokens.index_is('q', program.pools.len())?;
            let name = tokens.text()?;
            let columns = tokens.list("(", ")", column)?;
            let ranges = tokens.list("(", ")", |tokens| Ok((tokens.number()?, tokens.number()?)))?;
            program.pools.push(Pool { name, columns, ranges });
        }
        _ => {
            tokens.index_is('u', program.groups.len())?;
            program.groups.push(group(tokens)?);
        }
    }
    Ok(())
}

fn meter(tokens: &mut Tokens<'_>) -> Result<Meter, IrReadError> {
    let (name, size) = tokens.sized()?;
    let packets = tokens.accept_word("packets");
    if !packets {
        tokens.word("bytes")?;
    }
    let period = if tokens.accept_word("every") { tokens.number()? } else { 1 };
    let rates = if tokens.accept_word("single") {
        Rates::Single { committed: tokens.number()?, burst: tokens.number()?, excess: tokens.number()? }
    } else {
        tokens.word("two")?;
        Rates::Two {
            committed: tokens.number()?,
            burst: tokens.number()?,
            peak: tokens.number()?,
            peak_burst: tokens.number()?,
        }
    };
    Ok(Meter { name, size, packets, period, rates })
}

fn group(tokens: &mut Tokens<'_>) -> Result<Group, IrReadError> {
    let (name, size) = tokens.sized()?;
    tokens.word("buckets")?;
    let buckets = tokens.number()?;
    tokens.word("capacity")?;
    let capacity = tokens.number()?;
    let multicast = tokens.accept_word("multicast");
    let columns = tokens.list("(", ")", column)?;
    let members = tokens.list("(", ")", |tokens| {
        let index = tokens.number()?;
        Ok((index, tokens.list("(", ")", Tokens::number)?, tokens.number()?))
    })?;
    let file = if tokens.accept_word("file") { Some(tokens.text()?) } else { None };
    Ok(Group { name, size, buckets, capacity, multicast, columns, members, file })
}

pub(super) fn answer(tokens: &mut Tokens<'_>) -> Result<Answer, IrReadError> {
    if tokens.accept_word("first") {
        return Ok(Answer::First);
    }
    if tokens.accept_word("all") {
        return Ok(Answer::All);
    }
    tokens.word("set")?;
    Ok(Answer::Set)
}

/// A match as an entry has it.
pub(super) fn key_match(tokens: &mut Tokens<'_>) -> Result<Match, IrReadError> {
    let Token::Word(word) = *tokens.peek() else { return Ok(Match::Exact(tokens.number()?)) };
    tokens.advance();
    Ok(match word {
        "any" => Match::Any,
        "prefix" => Match::Prefix { value: tokens.number()?, length: tokens.number()? },
        "masked" => Match::Masked { value: tokens.number()?, mask: tokens.number()? },
        "range" => Match::Range { low: tokens.number()?, high: tokens.number()? },
        "bytes" => {
            let bytes = tokens.hexadecimal()?;
            let nocase = tokens.accept_word("nocase");
            tokens.word("offset")?;
            let offset = tokens.number()?;
            let depth = tokens.number_after("depth")?;
            Match::Bytes(Box::new(BytePattern { bytes, nocase, offset, depth }))
        }
        _ => return Err(tokens.expected("a match such as `any` or `prefix`")),
    })
}
