//! The memory of a program's state in bytes: the most that it may need, and for tables whose size depends on
//! their entries also the size with the present entries.

use crate::render::quantity::{bytes, count, of};
use exec::state::table_set::filled;
use lang::ir::Program;
use lang::ir::footprint::{MemoryUse, footprint, listed, total_of};
use serde_json::{Value, json};
use std::fmt::Write;

/// What a program remembers.
pub(crate) struct Remembered {
    parts: Vec<MemoryUse>,
    /// Of each table, in order of declaration: its entries, and what it takes with them at all workers, if it
    /// depends on them.
    now: Vec<(usize, Option<u64>)>,
    workers: u16,
    /// All of it at most, at all workers together.
    pub(crate) most: u64,
}

impl Remembered {
    /// What a program remembers with so many workers. Tables that depend on their entries are made, one after
    /// the other, and counted.
    ///
    /// # Errors
    /// One cannot be made; in words.
    pub(crate) fn of(program: &Program, workers: u16) -> Result<Remembered, String> {
        let parts = footprint(program);
        let most = total_of(&parts, workers);
        let filled = filled(program).map_err(|error| format!("{}: {error}", program.name))?;
        let now = filled.into_iter().zip(&program.tables).map(|(own, table)| {
            let all = |own: u64| own.saturating_mul(workers.into()).saturating_add(listed(table));
            (table.entries.len(), own.map(all))
        });
        Ok(Remembered { now: now.collect(), parts, workers, most })
    }

    /// In lines.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        if self.parts.is_empty() {
            return text;
        }
        let mut kinds: Vec<(&str, u64)> = Vec::new();
        for part in &self.parts {
            match kinds.last_mut() {
                Some((what, count)) if *what == part.what => *count += 1,
                _ => kinds.push((part.what, 1)),
            }
        }
        let kinds: Vec<String> = kinds.into_iter().map(|(what, count)| of(count, what)).collect();
        let workers = match self.workers {
            1 => String::new(),
            workers => format!(", at all {workers} workers, each of which has its own"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} of at most {} together{workers}", kinds.join(", "), bytes(self.most));
        for (part, (entries, now)) in self.parts.iter().zip(&self.now) {
            let Some(now) = now.filter(|_| part.by_entries) else { continue };
            let most = bytes(total_of(std::slice::from_ref(part), self.workers));
            let (name, with, full) = (&part.name, of(*entries as u64, "entry"), count(part.count));
            let _ = writeln!(
                text,
                "  table {name} takes {} with {with}, and with {full} at most {most}",
                bytes(now)
            );
        }
        text
    }

    /// As JSON: `bytes` at most, and `bytes_now` of tables that depend on their entries.
    pub(crate) fn document(&self) -> Vec<Value> {
        let now = self.now.iter().map(|(_, now)| *now).chain(std::iter::repeat(None));
        let told = |(part, now): (&MemoryUse, Option<u64>)| {
            let mut told = json!({
                "what": part.what,
                "name": part.name,
                "count": part.count,
                "bytes": total_of(std::slice::from_ref(part), self.workers),
            });
            if let Some(now) = now {
                told["bytes_now"] = now.into();
            }
            told
        };
        self.parts.iter().zip(now).map(told).collect()
    }
}
