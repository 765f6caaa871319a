//! The fast table against the reference algorithm, over columns and rules of all shapes, under changes, and
//! its portable lookups against the wide ones.

use super::fields::{ones, prefix_mask};
use super::*;
use proptest::prelude::*;

mod changes;
mod flags;

/// Widths that lie below, at and above the borders of elements and words.
fn widths() -> impl Strategy<Value = Vec<u8>> {
    let width = prop_oneof![1u8..=128, Just(8), Just(16), Just(32), Just(128)];
    prop_oneof![
        4 => Just(vec![32, 32, 16, 16, 8]),
        2 => Just(vec![128, 128, 16, 16, 8]),
        1 => Just(vec![48, 48, 16]),
        2 => Just(FLAGGED.to_vec()),
        1 => Just(vec![8, 128, 128, 16, 1, 16, 1, 16, 8, 1, 8]),
        2 => prop::collection::vec(prop_oneof![Just(1u8), Just(1u8), 1u8..=40], 2..36),
        6 => prop::collection::vec(width, 1..7),
        1 => prop::collection::vec(100u8..=128, 5..9),
    ]
}

/// Five columns of which ports may be absent.
const FLAGGED: [u8; 7] = [32, 32, 16, 1, 16, 1, 8];

/// A small generator: the cases' numbers come from one seed, so that fields may depend on each other.
#[derive(Clone)]
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number of `width` bits; few different ones, so that rules overlap and keys hit.
    fn value(&mut self, width: u8) -> u128 {
        let spread = [2, 8, 1 << 40][self.below(3) as usize];
        let number = u128::from(self.below(spread)) << [0, 8, 60, 100][self.below(4) as usize];
        let number = if self.below(4) == 0 { !number } else { number };
        let top = u128::from(self.below(4)) << width.saturating_sub(2).min(126);
        (number ^ top) & ones(width)
    }

    fn field(&mut self, width: u8) -> RuleField {
        match self.below(8) {
            0 | 1 => RuleField::Any,
            2 => RuleField::Exact(self.value(width)),
            3 | 4 => {
                RuleField::Prefix { value: self.value(width), length: self.below(u64::from(width) + 1) as u8 }
            }
            5 => RuleField::Ternary { value: self.value(width), mask: self.value(width) | self.value(width) },
            _ => {
                let (one, two) = (self.value(width), self.value(width));
                RuleField::Range { low: one.min(two), high: one.max(two) }
            }
        }
    }

    fn rule(&mut self, widths: &[u8]) -> Rule {
        Rule { fields: widths.iter().map(|&width| self.field(width)).collect() }
    }

    /// A key in or at the border of `rule`, or anywhere.
    fn key(&mut self, spec: &RulesSpec, rule: Option<&Rule>) -> Vec<u64> {
        let columns: Vec<u128> = spec
            .widths
            .iter()
            .enumerate()
            .map(|(column, &width)| {
                let near = rule.filter(|_| self.below(8) > 0).map(|rule| &rule.fields[column]);
                let bits = self.value(width);
                match near {
                    Some(&RuleField::Exact(value)) => value,
                    Some(&RuleField::Prefix { value, length }) => {
                        let mask = prefix_mask(width, length);
                        value & mask | bits & !mask
                    }
                    Some(&RuleField::Ternary { value, mask }) => value & mask | bits & !mask & ones(width),
                    Some(&RuleField::Range { low, high }) => match self.below(4) {
                        0 => low,
                        1 => high,
                        2 => low.saturating_sub(1),
                        _ => low + (high - low) / 2,
                    },
                    _ => bits,
                }
            })
            .collect();
        let mut key = spec.key(&columns);
        if self.below(8) == 0 && spec.widths[0] < 64 {
            key[0] |= 1 << 63; // above the column, so it must not matter
        }
        key
    }
}

/// Both answers of the table, one at a time and in bulk, wide and portable, against the reference.
fn compare(table: &RulesTable, linear: &Linear, keys: &[Vec<u64>]) {
    let row: Vec<u64> = keys.concat();
    let mut values = vec![7; keys.len()];
    table.find_bulk(&row, &mut values);
    let mut portable = vec![7; keys.len()];
    let image = table.image().portable();
    image.find_bulk(&row, &mut portable);
    for (at, key) in keys.iter().enumerate() {
        let wanted = linear.find(key);
        assert_eq!(table.find(key), wanted, "key {key:x?}");
        assert_eq!(image.find(key), wanted, "portable, key {key:x?}");
        let over = |value: u32| value % 4 < at as u32 % 4;
        assert_eq!(table.find_past(key, &over), linear.find_past(key, &over), "passing over, key {key:x?}");
        let value = wanted.map_or(NONE, |hit| hit.value);
        assert_eq!((table.find_value(key), values[at], portable[at]), (value, value, value), "key {key:x?}");
    }
}

fn keys(numbers: &mut Numbers, spec: &RulesSpec, rules: &[(u64, Rule, u32)], count: usize) -> Vec<Vec<u64>> {
    (0..count)
        .map(|_| {
            let rule = (!rules.is_empty()).then(|| &rules[numbers.below(rules.len() as u64) as usize].1);
            numbers.key(spec, rule)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_built_table_answers_as_the_reference(widths in widths(), seed: u64, count in 0usize..160) {
        let mut numbers = Numbers(seed);
        let spec = RulesSpec { widths, capacity: count };
        let rules: Vec<(u64, Rule, u32)> =
            (0..count).map(|at| (numbers.next() << 16 | at as u64, numbers.rule(&spec.widths), at as u32)).collect();
        let linear = Linear::build(&spec, &rules).expect("the rules suit the columns");
        let table = RulesTable::build(&spec, rules.clone()).expect("so few rules have room");
        prop_assert_eq!(table.entries(), linear.entries());
        compare(&table, &linear, &keys(&mut numbers, &spec, &rules, 300));
    }

    #[test]
    fn a_changed_table_answers_as_the_reference(widths in widths(), seed: u64, start in 0usize..120, changes in 1usize..150) {
        changes_keep_the_answers(widths, seed, start, changes);
    }
}

/// Rules that come and go: after all changes, and after some of them, the answers are those of the reference.
fn changes_keep_the_answers(widths: Vec<u8>, seed: u64, start: usize, changes: usize) {
    let mut numbers = Numbers(seed);
    let spec = RulesSpec { widths, capacity: start + 40 };
    let rules: Vec<(u64, Rule, u32)> =
        (0..start).map(|at| (at as u64 * 10, numbers.rule(&spec.widths), at as u32)).collect();
    let mut linear = Linear::build(&spec, &rules).expect("the rules suit the columns");
    let mut table = RulesTable::build(&spec, rules).expect("so few rules have room");
    for change in 0..changes {
        let order = numbers.below(start as u64 * 10 + 500);
        if numbers.below(5) < 2 {
            let order =
                linear.entries().get(numbers.below(start as u64 + 1) as usize).map_or(order, |entry| entry.0);
            assert_eq!(table.remove(order), linear.remove(order));
        } else {
            let rule = numbers.rule(&spec.widths);
            assert_eq!(table.insert(order, &rule, change as u32), linear.insert(order, &rule, change as u32));
        }
        if change % 50 == 0 {
            compare(&table, &linear, &keys(&mut numbers, &spec, &linear.entries(), 40));
        }
    }
    assert_eq!(table.entries(), linear.entries());
    let keys = keys(&mut numbers, &spec, &linear.entries(), 300);
    compare(&table, &linear, &keys);
    table.rebuild().expect("it had room before");
    compare(&table, &linear, &keys);
}

/// A removed rule whose mask has holes was left in a leaf that no key of it reaches, and keys that passed the
/// comparison there hit the rule that had got its number.
#[test]
fn a_removed_rule_is_in_no_leaf_where_a_key_could_pass_for_it() {
    changes_keep_the_answers(vec![128, 128, 16, 16, 8], 10_797_488_859_671_625_476, 95, 122);
}

/// Rules of five columns as routers have them, in which many leave a column open.
fn five_columns(numbers: &mut Numbers, count: usize) -> Vec<(u64, Rule, u32)> {
    let address = |numbers: &mut Numbers| match numbers.below(4) {
        0 => RuleField::Any,
        1 => RuleField::Prefix {
            value: u128::from(numbers.below(1 << 32)),
            length: 24 + numbers.below(9) as u8,
        },
        _ => RuleField::Prefix {
            value: u128::from(numbers.below(256) << 8 | 10 << 24),
            length: 16 + numbers.below(17) as u8,
        },
    };
    let port = |numbers: &mut Numbers| match numbers.below(4) {
        0 | 1 => RuleField::Any,
        2 => RuleField::Exact(u128::from(numbers.below(1024))),
        _ => RuleField::Range { low: 1024, high: 65535 },
    };
    (0..count)
        .map(|at| {
            let protocol = if numbers.below(5) == 0 {
                RuleField::Any
            } else {
                RuleField::Exact(6 + 11 * u128::from(numbers.below(2)))
            };
            let fields = vec![address(numbers), address(numbers), port(numbers), port(numbers), protocol];
            (at as u64 * 4, Rule { fields }, at as u32)
        })
        .collect()
}

const FIVE: [u8; 5] = [32, 32, 16, 16, 8];

#[test]
fn thousands_of_rules_answer_as_the_reference_while_they_change() {
    let mut numbers = Numbers(11);
    let spec = RulesSpec { widths: FIVE.to_vec(), capacity: 3000 };
    let rules = five_columns(&mut numbers, 2000);
    let mut linear = Linear::build(&spec, &rules).expect("the rules suit the columns");
    let mut table = RulesTable::build(&spec, rules.clone()).expect("they have room");
    compare(&table, &linear, &keys(&mut numbers, &spec, &rules, 500));
    let more = five_columns(&mut numbers, 900);
    for (at, (_, rule, _)) in more.iter().enumerate() {
        let order = numbers.below(2000) * 4 + 1 + at as u64 % 3;
        let value = 10_000 + at as u32;
        assert_eq!(table.insert(order, rule, value), linear.insert(order, rule, value));
        let gone = numbers.below(2000) * 4;
        assert_eq!(table.remove(gone), linear.remove(gone));
    }
    let now = linear.entries();
    assert_ne!(now.len(), 2000, "some changes must have counted");
    compare(&table, &linear, &keys(&mut numbers, &spec, &now, 500));
    let all: Vec<u64> = now.iter().map(|entry| entry.0).collect();
    for order in all {
        assert_eq!(table.remove(order), linear.remove(order));
    }
    assert!(table.is_empty());
    compare(&table, &linear, &keys(&mut numbers, &spec, &now, 100));
}

#[test]
fn a_set_that_has_no_room_is_refused_with_its_size() {
    let rules = five_columns(&mut Numbers(3), 500);
    let spec = RulesSpec { widths: FIVE.to_vec(), capacity: 500 };
    let refused = RulesTable::build_within(&spec, rules.clone(), 10_000)
        .expect_err("500 rules have more than 10,000 bytes");
    assert!(
        matches!(refused, RulesBuildError::Memory { rules: 500, limit: 10_000, bytes } if bytes > 10_000),
        "{refused}"
    );
    let tight = RulesTable::build_within(&spec, rules, 200_000).expect("leaves may be longer");
    assert!(tight.statistics().bytes <= 200_000);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let spec = RulesSpec { widths: vec![8, 32], capacity: 2 };
    let any = Rule { fields: vec![RuleField::Any, RuleField::Any] };
    let mut table = RulesTable::new(spec.clone()).expect("columns can be like that");
    let mut linear = Linear::new(spec.clone()).expect("columns can be like that");
    let bad = [
        Rule { fields: vec![RuleField::Any] },
        Rule { fields: vec![RuleField::Exact(256), RuleField::Any] },
        Rule { fields: vec![RuleField::Prefix { value: 0, length: 9 }, RuleField::Any] },
        Rule { fields: vec![RuleField::Range { low: 5, high: 4 }, RuleField::Any] },
        Rule { fields: vec![RuleField::Range { low: 5, high: 400 }, RuleField::Any] },
        Rule { fields: vec![RuleField::Ternary { value: 0, mask: 0x100 }, RuleField::Any] },
    ];
    for rule in bad {
        let refused = table.insert(1, &rule, 1).expect_err("the rule does not suit the columns");
        assert_eq!(linear.insert(1, &rule, 1), Err(refused.clone()));
        let built = RulesTable::build(&spec, vec![(0, any.clone(), 0), (1, rule, 1)])
            .expect_err("nor in a whole set");
        assert_eq!(built, RulesBuildError::Rule { rule: 1, error: refused });
    }
    for table in [&mut table as &mut dyn Rules, &mut linear] {
        assert_eq!(table.insert(1, &any, 1), Ok(()));
        assert_eq!(table.insert(1, &any, 2), Err(RulesInsertError::Taken { order: 1 }));
        assert_eq!(table.insert(2, &any, 2), Ok(()));
        assert_eq!(table.insert(3, &any, 3), Err(RulesInsertError::Full { capacity: 2 }));
        assert_eq!(table.find(&[1, 2]), Some(Hit { order: 1, value: 1 }));
        assert_eq!(table.len(), 2);
    }
    let twice =
        RulesTable::build(&spec, vec![(1, any.clone(), 0), (1, any, 1)]).expect_err("an order is unique");
    assert_eq!(twice, RulesBuildError::Rule { rule: 1, error: RulesInsertError::Taken { order: 1 } });
    assert!(RulesTable::new(RulesSpec { widths: vec![], capacity: 1 }).is_err());
    assert!(RulesTable::new(RulesSpec { widths: vec![129], capacity: 1 }).is_err());
    assert!(RulesTable::new(RulesSpec { widths: vec![8], capacity: usize::MAX }).is_err());
}

#[test]
fn images_survive_as_bytes_and_damage_is_found() {
    let mut numbers = Numbers(5);
    for widths in [FIVE.to_vec(), FLAGGED.to_vec(), vec![128, 20], vec![3], vec![128; 5]] {
        let spec = RulesSpec { widths, capacity: 120 };
        let rules: Vec<(u64, Rule, u32)> =
            (0..120).map(|at| (at as u64, numbers.rule(&spec.widths), at as u32)).collect();
        let keys = keys(&mut numbers, &spec, &rules, 100).concat();
        let table = RulesTable::build(&spec, rules).expect("they have room");
        let bytes = table.image().to_bytes();
        let opened = RulesImage::open(&bytes).expect("these are the bytes of an image");
        assert_eq!(&opened, table.image());
        let (mut before, mut after) = (vec![0; 100], vec![0; 100]);
        table.find_bulk(&keys, &mut before);
        opened.find_bulk(&keys, &mut after);
        assert_eq!(before, after);
        assert!(before.iter().any(|&value| value != NONE));

        assert_eq!(RulesImage::open(&bytes[1..]), Err(RulesImageError::Start));
        assert!(matches!(RulesImage::open(&bytes[..bytes.len() - 64]), Err(RulesImageError::Short { .. })));
        // Whatever is damaged, lookups end and name only what is there, or the bytes are refused.
        let mut refused = 0;
        for _ in 0..400 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + numbers.below(3) {
                let at = numbers.below(damaged.len() as u64) as usize;
                damaged[at] ^= 1 << numbers.below(8);
            }
            match RulesImage::open(&damaged) {
                Ok(image) if image.key_words() == spec.key_words() => {
                    image.find_bulk(&keys, &mut after);
                    image.portable().find_bulk(&keys, &mut after);
                }
                Ok(_) => {}
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0, "some damage must have been found");
    }
}

#[test]
fn readers_see_whole_generations_only() {
    const GENERATIONS: u32 = 60;
    let spec = RulesSpec { widths: FIVE.to_vec(), capacity: 300 };
    // In generation g every rule has the value g, and there is a rule for every key.
    let set = |generation: u32| -> Vec<(u64, Rule, u32)> {
        let mut rules = five_columns(&mut Numbers(u64::from(generation)), 200);
        rules.push((u64::MAX, Rule { fields: vec![RuleField::Any; 5] }, 0));
        rules.iter_mut().for_each(|rule| rule.2 = generation);
        rules
    };
    let mut shared = SharedRules::new(RulesTable::build(&spec, set(0)).expect("they have room"));
    let keys = keys(&mut Numbers(9), &spec, &set(3), 256).concat();
    let begun = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (mut reader, keys, begun) = (shared.reader(), &keys, &begun);
            scope.spawn(move || {
                let mut values = vec![0; 256];
                let mut last = 0;
                begun.wait();
                while last < u64::from(GENERATIONS) {
                    let (number, image) = reader.generation();
                    assert!(number >= last, "generations do not go back");
                    image.find_bulk(keys, &mut values);
                    assert!(
                        values.iter().all(|&value| u64::from(value) == number),
                        "one generation answers all"
                    );
                    last = number;
                }
            });
        }
        begun.wait();
        for generation in 1..=GENERATIONS {
            let number = shared.replace(&spec, set(generation)).expect("they have room");
            assert_eq!(number, u64::from(generation));
        }
    });
}

#[test]
fn single_changes_show_when_they_are_published() {
    let spec = RulesSpec { widths: vec![16], capacity: 4 };
    let any = Rule { fields: vec![RuleField::Any] };
    let mut shared = SharedRules::new(RulesTable::new(spec).expect("columns can be like that"));
    let mut reader = shared.reader();
    shared.insert(5, &any, 50).expect("there is room");
    assert_eq!(reader.image().find_value(&[1]), NONE);
    assert_eq!(shared.publish(), 1);
    assert_eq!(reader.image().find_value(&[1]), 50);
    assert_eq!(shared.remove(5), Some(50));
    assert_eq!(reader.image().find_value(&[1]), 50);
    shared.publish();
    assert_eq!(reader.generation().0, 2);
    assert_eq!(reader.image().find_value(&[1]), NONE);
}

/// Columns so narrow that every key can be tried.
const NARROW: [u8; 3] = [4, 3, 3];

#[test]
fn hygiene_is_what_trying_every_key_says() {
    let spec = RulesSpec { widths: NARROW.to_vec(), capacity: 40 };
    let mut numbers = Numbers(77);
    let mut kinds = [0; 4];
    for _ in 0..60 {
        let count = 1 + numbers.below(30) as usize;
        let mut rules: Vec<Rule> = (0..count).map(|_| numbers.rule(&NARROW)).collect();
        if count > 5 {
            rules[count - 1] = rules[numbers.below(count as u64 - 1) as usize].clone();
        }
        let findings = hygiene(&spec, &rules).expect("the rules suit the columns");
        assert_eq!(findings.len(), count);
        let all: Vec<[u64; 3]> = (0..1u64 << 10).map(|bits| [bits & 15, bits >> 4 & 7, bits >> 7]).collect();
        let fits = |rule: usize, key: &[u64]| rules[rule].fits(&NARROW, &spec.columns(key));
        let first = |key: &[u64]| (0..count).find(|&rule| fits(rule, key));
        for (rule, finding) in findings.iter().enumerate() {
            assert_eq!(finding.rule, rule);
            assert!(fits(rule, &finding.witness), "a witness fits its rule");
            let reachable = all.iter().any(|key| first(key) == Some(rule));
            let inside = |by: &[usize]| {
                all.iter().filter(|key| fits(rule, *key)).all(|key| by.iter().any(|&other| fits(other, key)))
            };
            match &finding.kind {
                HygieneKind::Reachable => {
                    kinds[0] += 1;
                    assert_eq!(first(&finding.witness), Some(rule));
                }
                HygieneKind::Duplicate { of } => {
                    kinds[1] += 1;
                    assert!(*of < rule && all.iter().all(|key| fits(*of, key) == fits(rule, key)));
                }
                HygieneKind::Shadowed { by } => {
                    kinds[2 + usize::from(by.len() > 1)] += 1;
                    assert!(by.iter().all(|&other| other < rule) && inside(by));
                }
                HygieneKind::Undecided => panic!("so few rules can be decided"),
            }
            assert_eq!(reachable, finding.kind == HygieneKind::Reachable, "rule {rule}");
        }
    }
    assert!(kinds.iter().all(|&count| count > 5), "every kind must have been seen: {kinds:?}");
}

#[test]
fn hygiene_says_when_it_gives_up() {
    let spec = RulesSpec { widths: vec![64; 4], capacity: 0 };
    // Each rule leaves eight boxes of what is left, and only the last two together close the gap.
    let mut numbers = Numbers(21);
    let mut rules: Vec<Rule> = (0..400)
        .map(|_| {
            let mut fields = vec![RuleField::Any; 4];
            for field in &mut fields {
                let low = numbers.below(1 << 40) as u128;
                *field = RuleField::Range { low, high: low + (1 << 47) };
            }
            Rule { fields }
        })
        .collect();
    let half =
        |low, high| Rule { fields: [vec![RuleField::Range { low, high }], vec![RuleField::Any; 3]].concat() };
    rules.push(half(0, u64::MAX as u128 / 2));
    rules.push(half(u64::MAX as u128 / 2 + 1, u64::MAX as u128));
    rules.push(Rule { fields: vec![RuleField::Any; 4] });
    let findings = hygiene(&spec, &rules).expect("the rules suit the columns");
    assert_eq!(findings[402].kind, HygieneKind::Undecided);
    assert_eq!(findings[401].kind, HygieneKind::Reachable);
    let short = hygiene(&spec, &rules[400..]).expect("the rules suit the columns");
    assert_eq!(short[2].kind, HygieneKind::Shadowed { by: vec![0, 1] });
}

#[test]
fn smallest_numbers_under_a_mask_are_those_that_counting_finds() {
    for (low, mask, bits) in
        (0..64u16).flat_map(|low| (0..64u16).flat_map(move |mask| (0..64).map(move |bits| (low, mask, bits))))
    {
        if bits & !mask != 0 {
            continue;
        }
        let counted = (low..=255).find(|number| number & mask == bits);
        let wide = super::encode::first_from(u128::from(low), u128::from(mask), u128::from(bits));
        assert_eq!(wide, counted.map(u128::from), "{low} {mask} {bits}");
    }
}
