//! `ravelin table rules`: rules, and the first of them that fits each packet.

use super::figures::Figures;
use super::files::{import_failure, output, read_both};
use super::source;
use crate::arguments::table::RulesArguments;
use crate::failure::Failure;
use import::ImportedRules;
use std::hint::black_box;
use std::io::Write;
use tables::rules::{Linear, NONE, Rules, RulesSpec, RulesTable};

/// Runs the command.
pub(super) fn run(arguments: &RulesArguments) -> Result<(), Failure> {
    let (file, lookup) = read_both(&arguments.lookup)?;
    let mut figures = Figures::new(&arguments.lookup);
    let path = &arguments.lookup.file;
    let rules = figures.time("read", || source::load(&file, path, &arguments.source))?;
    figures.note("rules", rules.rules.len());
    let keys = rules.keys(&lookup).map_err(|error| import_failure(&arguments.lookup.lookup, &error))?;
    let spec = RulesSpec { widths: rules.widths(), capacity: rules.rules.len() };
    let words: Vec<u64> = keys.iter().flat_map(|key| spec.key(key)).collect();
    let entries: Vec<_> =
        (0u32..).zip(&rules.rules).map(|(number, rule)| (number.into(), rule.rule.clone(), number)).collect();
    let full = |error: &dyn std::fmt::Display| Failure::Finding(format!("{path}: {error}"));
    let mut found = vec![NONE; keys.len()];
    let each = || words.chunks(spec.key_words());
    if arguments.linear {
        let linear =
            figures.time("build", || Linear::build(&spec, &entries)).map_err(|error| full(&error))?;
        figures.rate("one rule after the other", keys.len(), || {
            each().for_each(|key| {
                black_box(linear.find(key));
            });
        });
        for (key, found) in each().zip(&mut found) {
            *found = linear.find(key).map_or(NONE, |hit| hit.value);
        }
    } else {
        let table =
            figures.time("build", || RulesTable::build(&spec, entries)).map_err(|error| full(&error))?;
        figures.note_bytes(table.statistics().bytes);
        if arguments.bulk {
            figures.rate("in bulk", keys.len(), || table.find_bulk(&words, black_box(&mut found)));
            table.find_bulk(&words, &mut found);
        } else {
            figures.rate("one at a time", keys.len(), || {
                each().for_each(|key| {
                    black_box(table.find_value(key));
                });
            });
            for (key, found) in each().zip(&mut found) {
                *found = table.find_value(key);
            }
        }
    }
    answer(&rules, &found)?;
    figures.tell();
    Ok(())
}

fn answer(rules: &ImportedRules, found: &[u32]) -> Result<(), Failure> {
    // Filters decide nothing, so their number is all that there is to say.
    let decided = rules.default.is_some() || rules.rules.iter().any(|rule| rule.allow.is_some());
    let decision = |allow: Option<bool>| match allow {
        Some(true) => "pass",
        Some(false) => "drop",
        None => "-",
    };
    let mut output = output();
    for number in found {
        match rules.rules.get(*number as usize) {
            Some(rule) if decided => {
                writeln!(output, "{number}\t{}\t{}", rule.line, decision(rule.allow))?;
            }
            Some(_) => writeln!(output, "{number}")?,
            None if decided => writeln!(output, "-1\t-\t{}", decision(rules.default))?,
            None => writeln!(output, "-1")?,
        }
    }
    output.flush()?;
    Ok(())
}
