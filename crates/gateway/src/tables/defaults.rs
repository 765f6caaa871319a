//! Default entries of tables and members of groups, from outside.
//!
//! Every worker has its own, and packets change groups, too. So a group may be full at one worker: a member
//! joins where all have room, and leaves again if one has not any more when it does.

use super::changes::changed;
use super::limits::ENTRIES;
use super::schema::{Known, ended, refusal_of};
use client::answer::ListedValue;
use client::message::group;
use client::{RefusalCode, RefusalPlace, RequestRefusal};
use engine::live::Remote;
use exec::EntryError;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// A member of a group.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) group: u16,
    pub(super) index: u32,
    pub(super) columns: Vec<u128>,
}

fn closed(why: &Option<String>) -> Result<(), RequestRefusal> {
    match why {
        Some(why) => Err(RequestRefusal::new(RefusalCode::Closed, RefusalPlace::NONE, why)),
        None => Ok(()),
    }
}

/// Sets the default entry of a table at all workers, or removes it.
pub(super) fn set_default(
    remote: &Remote,
    turn: &Mutex<()>,
    known: &Known,
    table: u16,
    value: Option<Vec<u128>>,
) -> Result<u32, RequestRefusal> {
    closed(&known.table(table)?.0.refuses.default)?;
    value.as_ref().map_or(Ok(()), |value| known.suits(table, value))?;
    let number = known.schema.generation;
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let set = remote.ask(move |generation, _| {
        (generation.number == number).then(|| generation.backend.set_default(table.into(), value.as_deref()))
    });
    for set in set.ok_or_else(ended)? {
        // All workers run the same program: all of them take it, or none.
        set.ok_or_else(changed)?.map_err(|error| refusal_of(&error, RefusalPlace::NONE))?;
    }
    Ok(1)
}

/// The default entry of a table: each different one with the first worker that has it.
pub(super) fn default_of(
    remote: &Remote,
    known: &Known,
    table: u16,
) -> Result<Vec<ListedValue>, RequestRefusal> {
    known.may_be_told(table)?;
    let number = known.schema.generation;
    let found = remote.ask(move |generation, _| {
        (generation.number == number).then(|| generation.backend.default_entry(table.into()))
    });
    let mut listed = Vec::new();
    for (worker, found) in (1..).zip(found.ok_or_else(ended)?) {
        let value = found.ok_or_else(changed)?;
        listed.extend(value.map(|columns| ListedValue { worker, columns }));
    }
    Ok(each_once(listed))
}

/// The members of a group: each with the first worker that has it. A member that joins or leaves meanwhile
/// may be listed or not.
pub(super) fn members(
    remote: &Remote,
    known: &Known,
    of: u16,
    index: u32,
) -> Result<Vec<ListedValue>, RequestRefusal> {
    exists(known, of, index)?;
    let (number, mut listed) = (known.schema.generation, Vec::new());
    for worker in 0..remote.workers() {
        let mut from = 0;
        loop {
            let part = remote.ask_at(worker, move |generation| {
                let backend = &generation.backend;
                (generation.number == number).then(|| backend.members_part(of.into(), index, from, ENTRIES))
            });
            let part = part.ok_or_else(ended)?.ok_or_else(changed)?;
            from += part.len();
            let last = part.len() < ENTRIES;
            part.into_iter()
                .for_each(|columns| listed.push(ListedValue { worker: worker as u16 + 1, columns }));
            if last {
                break;
            }
        }
    }
    Ok(each_once(listed))
}

/// Adds a member to a group at all workers.
pub(super) fn join(
    remote: &Remote,
    turn: &Mutex<()>,
    known: &Known,
    member: Member,
) -> Result<u32, RequestRefusal> {
    may_change(known, &member)?;
    let number = known.schema.generation;
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    // A member that joined and left again would have moved flows of others.
    let wanted = member.clone();
    let rooms = remote.ask(move |generation, _| {
        let Member { group, index, columns } = &wanted;
        let backend = &generation.backend;
        (generation.number == number).then(|| backend.may_join((*group).into(), *index, columns))
    });
    for (worker, room) in (1..).zip(rooms.ok_or_else(ended)?) {
        room.ok_or_else(changed)?.map_err(|error| refused(worker, &error, remote.workers() > 1))?;
    }
    let joining = member.clone();
    let joined = remote.ask(move |generation, _| {
        let Member { group, index, columns } = &joining;
        let backend = &mut generation.backend;
        (generation.number == number).then(|| {
            let was_there = backend.has_member((*group).into(), *index, columns);
            (was_there, backend.join((*group).into(), *index, columns))
        })
    });
    let joined = joined.ok_or_else(ended)?;
    let failed = (1..).zip(&joined).find_map(|(worker, joined)| match joined {
        Some((_, Ok(()))) => None,
        Some((_, Err(error))) => Some(refused(worker, error, remote.workers() > 1)),
        None => Some(changed()),
    });
    let Some(failed) = failed else { return Ok(1) };
    let made = joined.into_iter().map(|joined| matches!(joined, Some((false, Ok(()))))).collect();
    let undone = remote.ask_each(made, move |generation, made: bool| {
        if made && generation.number == number {
            generation.backend.leave(member.group.into(), member.index, &member.columns);
        }
    });
    undone.ok_or_else(ended)?;
    Err(failed)
}

fn refused(worker: usize, error: &EntryError, several: bool) -> RequestRefusal {
    let refusal = refusal_of(error, RefusalPlace::NONE);
    if several { RequestRefusal { message: format!("worker {worker}: {error}"), ..refusal } } else { refusal }
}

/// Removes a member from a group at all workers; returns 1 if any of them had it.
pub(super) fn leave(
    remote: &Remote,
    turn: &Mutex<()>,
    known: &Known,
    member: Member,
) -> Result<u32, RequestRefusal> {
    may_change(known, &member)?;
    let number = known.schema.generation;
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let left = remote.ask(move |generation, _| {
        let Member { group, index, columns } = &member;
        (generation.number == number).then(|| generation.backend.leave((*group).into(), *index, columns))
    });
    let mut count = 0;
    for left in left.ok_or_else(ended)? {
        count |= u32::from(left.ok_or_else(changed)?);
    }
    Ok(count)
}

/// Whether the group can be changed and there is one with this index.
fn may_change(known: &Known, member: &Member) -> Result<(), RequestRefusal> {
    closed(&group(&known.schema, member.group)?.refuses)?;
    exists(known, member.group, member.index)
}

fn exists(known: &Known, of: u16, index: u32) -> Result<(), RequestRefusal> {
    let group = group(&known.schema, of)?;
    if index < group.size {
        return Ok(());
    }
    let message = format!("there is no `{}[{index}]`: there are {}, numbered from 0", group.name, group.size);
    Err(RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, message))
}

/// Each different value, with the first worker that has it.
fn each_once(mut listed: Vec<ListedValue>) -> Vec<ListedValue> {
    let mut seen = HashSet::new();
    listed.retain(|one| seen.insert(one.columns.clone()));
    listed
}
