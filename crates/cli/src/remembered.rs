//! The memory of a program's state in bytes: the most that it may need, and for tables whose size depends on
//! their entries also the size with the present entries.

use crate::render::quantity::{bytes, count, of};
use engine::live::parcel_memory;
use exec::state::table_set::filled;
use ir::Program;
use ir::footprint::{MemoryUse, footprint, listed, total_of};
use serde_json::{Value, json};
use std::fmt::Write;

/// What a program remembers.
pub(crate) struct Remembered {
    parts: Vec<MemoryUse>,
    /// Of each table, in order of declaration: its entries, and what it takes with them at all workers, if it
    /// depends on them.
    now: Vec<(usize, Option<u64>)>,
    workers: u16,
    /// How many parcels packets cross in from worker to worker, and their bytes.
    parcels: (u64, u64),
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
        let parcels = Remembered::parcels(program, workers);
        let most = total_of(&parts, workers).saturating_add(parcels.1);
        let filled = filled(program).map_err(|error| format!("{}: {error}", program.name))?;
        let now = filled.into_iter().zip(&program.tables).map(|(own, table)| {
            let all = |own: u64| own.saturating_mul(workers.into()).saturating_add(listed(table));
            (table.entries.len(), own.map(all))
        });
        Ok(Remembered { now: now.collect(), parts, workers, parcels, most })
    }

    /// The parcels in which packets of a program cross from worker to worker: how many there are, and their
    /// bytes.
    pub(crate) fn parcels(program: &Program, workers: u16) -> (u64, u64) {
        program.steering.as_ref().map_or((0, 0), |_| parcel_memory(workers))
    }

    /// In lines.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        if self.parts.is_empty() && self.parcels.0 == 0 {
            return text;
        }
        let mut kinds: Vec<(&str, u64)> = Vec::new();
        for part in &self.parts {
            match kinds.last_mut() {
                Some((what, count)) if *what == part.what => *count += 1,
                _ => kinds.push((part.what, 1)),
            }
        }
        let mut kinds: Vec<String> = kinds.into_iter().map(|(what, count)| of(count, what)).collect();
        if self.parcels.0 > 0 {
            kinds.push(of(self.parcels.0, "parcel"));
        }
        let workers = match self.workers {
            1 => String::new(),
            workers => format!(", at all {workers} workers, each of which has its own"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} of at most {} together{workers}", kinds.join(", "), bytes(self.most));
        if self.parcels.0 > 0 {
            let _ = writeln!(
                text,
                "  the parcels, in which packets cross to the worker that they belong to, take {}",
                bytes(self.parcels.1)
            );
        }
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
        let mut told: Vec<Value> = self.parts.iter().zip(now).map(told).collect();
        if self.parcels.0 > 0 {
            let (count, bytes) = self.parcels;
            told.push(json!({ "what": "parcels", "name": "steering", "count": count, "bytes": bytes }));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lang::pipeline::{CompileOptions, compile};

    #[test]
    fn the_parcels_of_several_workers_are_told_and_counted() {
        let text = "start stage all() { flood }\nsteer stage by() { steer 1 }";
        let program =
            compile("p.rav", text, &|_| None, &CompileOptions::default()).program.expect("compiles");
        let of = |workers| Remembered::of(&program, workers).expect("it has no tables");
        assert_eq!((of(1).told(), of(1).most, of(1).document()), (String::new(), 0, Vec::new()));
        let many = of(64);
        assert!(many.told().contains("16,128 parcels of at most 1."), "{}", many.told());
        assert!(many.told().contains("belong to, take 1."), "{}", many.told());
        assert_eq!(many.document()[0]["bytes"], many.most);
        assert!(many.most > 16_128 * (80 << 10));
    }
}
