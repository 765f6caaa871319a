//! Random IR: the text of a real or generated program with numbers, values and lines changed, as far as the
//! verifier admits what comes out.
//!
//! The text of the IR has every instruction and every declaration, so changing words of it reaches all of
//! them alike. A change keeps the shape that a word has: a value becomes another one, mostly of its width, a
//! number another number. What does not read back, is not admitted, or would take much memory or time, is
//! taken back.

use crate::random::SuiteRandom;
use ir::read::read;
use ir::verify::{derive_manifest, verify};
use ir::{Block, Program, Terminator};
use std::collections::HashMap;

/// Entries, cells, items and buckets that a changed program may declare for each of its tables and the like.
const MOST: u64 = 4096;

/// Rounds of a loop.
const MOST_ROUNDS: u32 = 64;

/// A program made of another one by up to so many admitted changes.
pub fn mutate(program: &Program, random: &mut SuiteRandom, changes: usize) -> Program {
    let mut lines: Vec<String> = program.to_string().lines().map(str::to_string).collect();
    let mut made = program.clone();
    let mut done = 0;
    for _ in 0..changes * 12 {
        let changed = change(&lines, random);
        let Some(program) = admitted(&changed) else { continue };
        (lines, made) = (changed, program);
        done += 1;
        if done == changes {
            break;
        }
    }
    made
}

/// A program with one thing changed, whatever it is; none if it does not read back, is not admitted, or would
/// take much memory or time.
pub fn spoil(program: &Program, random: &mut SuiteRandom) -> Option<Program> {
    let lines: Vec<String> = program.to_string().lines().map(str::to_string).collect();
    admitted(&change(&lines, random))
}

/// The program of these lines, with the manifest that follows from the code.
fn admitted(lines: &[String]) -> Option<Program> {
    let mut program = read(&(lines.join("\n") + "\n")).ok()?;
    program.manifest = derive_manifest(&program);
    (is_small(&program) && verify(&program).is_ok()).then_some(program)
}

/// Whether it takes little memory and time.
pub fn is_small(program: &Program) -> bool {
    let few = |number: u64| number <= MOST;
    let rounds =
        |block: &Block| !matches!(block.terminator, Terminator::Fuel { cap, .. } if cap > MOST_ROUNDS);
    program.tables.iter().all(|table| few(table.capacity.into()))
        && program.counters.iter().all(|counter| few(counter.size.into()))
        && program.meters.iter().all(|meter| few(meter.size.into()))
        && program.registers.iter().all(|register| few(register.size.into()))
        && program.pools.iter().all(|pool| few(pool.items()))
        && program.groups.iter().all(|group| few(u64::from(group.size) * u64::from(group.buckets)))
        && program.every.iter().all(|every| every.period >= 100_000)
        && program.templates.iter().all(|template| few(template.bytes.len() as u64))
        && few(program.slots.into())
        && program.functions.iter().flat_map(|function| &function.blocks).all(rounds)
}

/// The lines with one thing changed.
fn change(lines: &[String], random: &mut SuiteRandom) -> Vec<String> {
    let mut lines = lines.to_vec();
    let at = random.below(lines.len() as u64) as usize;
    match random.below(12) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[random.below(lines.len() as u64) as usize].clone()),
        2 => {
            let last = lines.len() - 1;
            lines.swap(at, (at + 1).min(last));
        }
        _ => {
            let widths = widths(&lines);
            lines[at] = changed_word(&lines[at], &widths, random);
        }
    }
    lines
}

/// The width of every value that is made, by its name; functions have values of the same names.
fn widths(lines: &[String]) -> HashMap<String, Vec<String>> {
    let mut by_width: HashMap<String, Vec<String>> = HashMap::new();
    for line in lines {
        for (first, last) in words(line) {
            if let Some((value, width)) = line[first..last].split_once(':')
                && value.starts_with('%')
            {
                by_width.entry(width.to_string()).or_default().push(value.to_string());
            }
        }
    }
    by_width
}

/// The line with one of its words changed.
fn changed_word(line: &str, widths: &HashMap<String, Vec<String>>, random: &mut SuiteRandom) -> String {
    let words = words(line);
    if words.is_empty() {
        return line.to_string();
    }
    let (first, last) = *random.pick(&words);
    let word = &line[first..last];
    let other =
        if word.starts_with('%') { other_value(word, widths, random) } else { other_number(word, random) };
    format!("{}{other}{}", &line[..first], &line[last..])
}

fn other_value(word: &str, widths: &HashMap<String, Vec<String>>, random: &mut SuiteRandom) -> String {
    if let Some((value, width)) = word.split_once(':') {
        return format!("{value}:{}", other_number(width, random));
    }
    let alike = widths.values().find(|values| values.iter().any(|value| value == word));
    match alike.filter(|_| !random.one_in(8)) {
        Some(values) => random.pick(values).clone(),
        None => format!("%{}", random.below(40)),
    }
}

/// A number near to this one, at an edge, or any; letters before it stay.
fn other_number(word: &str, random: &mut SuiteRandom) -> String {
    let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
    let (letters, number) = word.split_at(digits);
    let Ok(number) = number.parse::<u128>() else { return word.to_string() };
    let edges = [
        0,
        1,
        2,
        8,
        16,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        128,
        255,
        4095,
        65_535,
        u32::MAX.into(),
        u64::MAX.into(),
    ];
    let other = match random.below(6) {
        0 | 1 => number.saturating_add(1),
        2 => number.saturating_sub(1),
        3 => *random.pick(&edges),
        4 => number.saturating_mul(2),
        _ => {
            let width = random.between(1, 32) as u8;
            random.value(width)
        }
    };
    format!("{letters}{other}")
}

/// Where the values and numbers of a line begin and end; what stands in quotation marks is left alone.
fn words(line: &str) -> Vec<(usize, usize)> {
    let (mut found, mut start, mut quoted) = (Vec::new(), None, false);
    for (at, letter) in line.char_indices().chain([(line.len(), ' ')]) {
        let inside = !quoted && (letter.is_ascii_alphanumeric() || matches!(letter, '%' | '_' | ':'));
        match (start, inside) {
            (None, true) => start = Some(at),
            (Some(first), false) => {
                let word = line[first..at].trim_end_matches(':');
                let names = word.starts_with('%') || word.ends_with(|c: char| c.is_ascii_digit());
                if names {
                    found.push((first, first + word.len()));
                }
                start = None;
            }
            _ => {}
        }
        quoted ^= letter == '"';
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::shipped;

    #[test]
    fn words_are_values_and_numbers_outside_of_quotation_marks() {
        let line = r#"%1:48 = load %0 + 12, 6 proven 14 "not 5" t0[%3]"#;
        let found: Vec<&str> = words(line).into_iter().map(|(first, last)| &line[first..last]).collect();
        assert_eq!(found, ["%1:48", "%0", "12", "6", "14", "t0", "%3"]);
    }

    #[test]
    fn changes_are_made_and_admitted() {
        let mut program = shipped("mac_switch.rav");
        program.tables.iter_mut().for_each(|table| table.capacity = 256);
        let mut random = SuiteRandom::new(1);
        let made: Vec<Program> = (0..20).map(|_| mutate(&program, &mut random, 3)).collect();
        assert!(made.iter().all(|made| verify(made).is_ok() && is_small(made)));
        assert!(made.iter().filter(|made| made.functions != program.functions).count() > 10);
    }
}
