//! The texts, those that read the columns and those made for them, against the reference algorithm.

use super::super::plain::{Program, bytes};
use super::super::{linear, rules};
use crate::generate::Random;
use crate::rules::{Linear, NONE, Rule, RuleField, Rules, RulesSpec, RulesTable};

fn ones(width: u8) -> u128 {
    u128::MAX >> (128 - u32::from(width))
}

/// A number of `width` bits; few different ones, so that rules overlap and keys hit.
fn value(random: &mut Random, width: u8) -> u128 {
    let spread = [2, 8, 1 << 40][random.below(3) as usize];
    let number = u128::from(random.below(spread)) << [0, 8, 60, 100][random.below(4) as usize];
    let number = if random.below(4) == 0 { !number } else { number };
    let top = u128::from(random.below(4)) << width.saturating_sub(2).min(126);
    (number ^ top) & ones(width)
}

fn field(random: &mut Random, width: u8) -> RuleField {
    match random.below(8) {
        0 | 1 => RuleField::Any,
        2 => RuleField::Exact(value(random, width)),
        3 | 4 => RuleField::Prefix {
            value: value(random, width),
            length: random.below(u64::from(width) + 1) as u8,
        },
        5 => RuleField::Ternary {
            value: value(random, width),
            mask: value(random, width) | value(random, width),
        },
        _ => {
            let (one, two) = (value(random, width), value(random, width));
            RuleField::Range { low: one.min(two), high: one.max(two) }
        }
    }
}

/// A number that fits the field or lies at its border.
fn near(random: &mut Random, width: u8, field: RuleField) -> u128 {
    let bits = value(random, width);
    let prefix = |length: u8| ones(width) & !ones(width).checked_shr(u32::from(length)).unwrap_or(0);
    match field {
        RuleField::Exact(value) => value,
        RuleField::Prefix { value, length } => value & prefix(length) | bits & !prefix(length),
        RuleField::Ternary { value, mask } => value & mask | bits & !mask,
        RuleField::Range { low, high } => {
            [low, high, low.saturating_sub(1), low + (high - low) / 2][random.below(4) as usize]
        }
        RuleField::Any => bits,
    }
}

/// Asks all texts for keys at and around the rules.
fn agrees(program: &Program, random: &mut Random, widths: &[u8], rules: usize, keys: usize) {
    let spec = RulesSpec { widths: widths.to_vec(), capacity: rules };
    let entries: Vec<(u64, Rule, u32)> = (0..rules as u32)
        .map(|at| {
            let fields = widths.iter().map(|&width| field(random, width)).collect();
            (random.word(), Rule { fields }, at * 7)
        })
        .collect();
    let reference = Linear::build(&spec, &entries).unwrap();
    let mut table = RulesTable::build(&spec, entries.clone()).unwrap();
    if rules > 8 {
        // What changes leave behind is in the image as well.
        for (order, rule, value) in &entries[..rules / 8] {
            table.remove(*order);
            table.insert(*order, rule, *value).unwrap();
        }
    }
    let mut asked = Vec::new();
    for _ in 0..keys {
        let rule = (rules > 0).then(|| &entries[random.below(rules as u64) as usize].1);
        let columns: Vec<u128> = widths
            .iter()
            .enumerate()
            .map(|(column, &width)| match rule.filter(|_| random.below(8) > 0) {
                Some(rule) => near(random, width, rule.fields[column]) & ones(width),
                None => value(random, width),
            })
            .collect();
        let mut key = spec.key(&columns);
        // Bits above a column do not matter.
        key[0] |= if widths[0] < 64 { random.word() << widths[0] } else { 0 };
        asked.push(key);
    }
    let want: Vec<u32> = asked.iter().map(|key| reference.find(key).map_or(NONE, |hit| hit.value)).collect();
    let images = [rules::image(table.image()), linear::image(&spec, &entries)];
    for (key, want) in asked.iter().zip(&want).take(300) {
        let told = [rules::find(&images[0], key), rules::find_linear(&images[1], key)];
        assert_eq!(told, [*want; 2], "in Rust, widths {widths:?}, key {key:x?}");
    }
    let found = images.map(|image| program.run(&image, &bytes(&asked.concat())));
    for (found, kind) in found.iter().zip(["trees", "linear"]) {
        assert_eq!(found.len(), 2 * want.len());
        for ((key, found), want) in asked.iter().zip(found.as_chunks().0).zip(&want) {
            assert_eq!(found, &[*want; 2], "{kind}, widths {widths:?}, key {key:x?}");
        }
    }
    let hits = want.iter().filter(|want| **want != NONE).count();
    assert!(rules < 100 || hits > keys / 8, "{hits} hits");
}

/// The texts for these columns: each key is answered by the one made for them and by the one that reads them,
/// unless it is too wide for that.
fn program(widths: &[u8]) -> Program {
    let spec = RulesSpec { widths: widths.to_vec(), capacity: 0 };
    let elements = widths.iter().map(|width| usize::from(*width).div_ceil(16)).sum::<usize>();
    let calls = if elements <= 64 { ["rules_find", "rules_find_linear"] } else { ["these", "these_linear"] };
    let answer = format!(
        "
static void answer(const u32 *image, const u8 *asked, u64 bytes)
{{
    const u64 *keys = (const u64 *)asked;
    for (u64 at = 0; at < bytes / 8; at += {}) {{
        u32 linear = image[0] == 0x524c5652;
        tell(linear ? these_linear(image, keys + at) : these(image, keys + at));
        tell(linear ? {}(image, keys + at) : {}(image, keys + at));
    }}
}}
",
        spec.key_words(),
        calls[1],
        calls[0]
    );
    Program::build(&[rules::TEXT, &rules::text("these", &spec)], &answer)
}

#[test]
fn the_texts_find_what_the_reference_finds() {
    let mut random = Random::new(11);
    let five = [32, 32, 16, 16, 8];
    let program_of_five = program(&five);
    for rules in [0, 1, 31, 32, 33, 100, 300] {
        agrees(&program_of_five, &mut random, &five, rules, 12_000);
    }
    let shapes: [&[u8]; 11] = [
        &[128, 128, 16, 16, 8],
        &[48, 48, 16],
        &[1],
        &[17, 3, 65, 16, 100],
        &[64, 9, 16, 12],
        &[100, 101, 128, 127, 110, 16],
        &[128; 9],
        &[32, 32, 16, 1, 16, 1, 8],
        &[1, 1],
        &[1, 20, 1, 16, 1, 1, 1, 1, 1, 1, 1, 1],
        &[128, 1, 128, 16, 1, 16, 8, 40, 1, 100],
    ];
    for widths in shapes {
        agrees(&program(widths), &mut random, widths, 120, 6_000);
    }
}

#[test]
fn a_device_has_room_for_the_widest_key() {
    let defined = format!("#define RULES_WORDS {}\n", crate::rules::MOST_PACKED_WORDS);
    assert!(super::TEXT.contains(&defined));
}
