//! Random tables of every kind: the models of the interpreter and the fast tables of native code answer
//! alike, also while packets change them.

use suite::agree::compare;
use suite::packet_generator::Arrivals;
use suite::random::SuiteRandom;

/// A part of a key of rules.
fn part(random: &mut SuiteRandom, width: u8) -> String {
    let largest = (1_u64 << width) - 1;
    let value = |random: &mut SuiteRandom| random.below(largest + 1);
    match random.below(5) {
        0 => "_".to_string(),
        1 => value(random).to_string(),
        2 => {
            let length = random.between(0, width.into());
            let mask = largest & !(largest.checked_shr(length as u32).unwrap_or(0));
            format!("{} / {length}", value(random) & mask)
        }
        3 => {
            let (a, b) = (value(random), value(random));
            format!("{}..{}", a.min(b), a.max(b))
        }
        _ => {
            let mask = value(random);
            format!("{} mask {mask}", value(random) & mask)
        }
    }
}

fn entries(
    random: &mut SuiteRandom,
    most: u64,
    mut one: impl FnMut(&mut SuiteRandom, u64) -> Option<String>,
) -> String {
    let mut lines = Vec::new();
    for number in 0..random.between(1, most) {
        lines.extend(one(random, number));
    }
    lines.join("\n        ")
}

fn prefixes(random: &mut SuiteRandom, width: u8) -> String {
    let mut seen = std::collections::BTreeSet::new();
    entries(random, 12, |random, number| {
        let length = random.between(0, width.into()) as u32;
        let largest = (1_u64 << width) - 1;
        let value = random.below(largest + 1) & largest & !largest.checked_shr(length).unwrap_or(0);
        seen.insert((value, length)).then(|| format!("{value} / {length} => {}", number % 5 + 1))
    })
}

fn patterns(random: &mut SuiteRandom, value: impl Fn(u64) -> String) -> String {
    let mut seen = std::collections::BTreeSet::new();
    entries(random, 8, |random, number| {
        let letters: String = (0..random.between(1, 4)).map(|_| *random.pick(&['a', 'b', 'A'])).collect();
        let nocase = if random.one_in(3) { " nocase" } else { "" };
        let place = match random.below(4) {
            0 => format!(" offset {}", random.between(1, 4)),
            1 => format!(" offset {} depth {}", random.below(3), random.between(4, 9)),
            _ => String::new(),
        };
        let key = format!("\"{letters}\"{nocase}{place}");
        seen.insert(key.clone()).then(|| format!("{key}{}", value(number)))
    })
}

/// A program with a table of every kind, all asked by every packet; what is found decides the port and the
/// reason.
fn program(random: &mut SuiteRandom) -> String {
    let default = if random.one_in(2) { "default => 9" } else { "" };
    let counted = if random.one_in(2) { "counted" } else { "" };
    let ranked = random.one_in(2);
    let rules = entries(random, 20, |random, number| {
        let key = format!("({}, {}, {})", part(random, 8), part(random, 8), part(random, 16));
        let priority = if ranked { format!(" priority {}", random.below(4)) } else { String::new() };
        Some(format!("{key}{priority} => {}", number % 7 + 1))
    });
    let (nets, wide) = (prefixes(random, 8), prefixes(random, 16));
    let (first, all, set) = (
        patterns(random, |number| format!(" => {}", number + 1)),
        patterns(random, |_| String::new()),
        patterns(random, |number| format!(" => {}", number * 17 % 128)),
    );
    let burst = random.between(1, 5);
    format!(
        "
layout probe {{ kind: u8 a: u8 b: u8 c: u16 size: u8 }}
reason one \"one\"
reason two \"two\"
reason three \"three\"
reason full \"full\"
table nets: lpm(u8) -> u8 {{
    capacity 20 {counted} {default}
    age 5us
    entries {{
        {nets}
    }}
}}
table wide: lpm(u8, u16) -> u8 {{
    capacity 20
    entries {{
        (1, 256 / 8) => 1
        (1, _) => 2
        (2, 5) => 3
    }}
}}
table plain: lpm(u16) -> u8 {{
    capacity 20
    entries {{
        {wide}
    }}
}}
table acl: rules(u8, u8, u16) -> u8 {{
    capacity 30 {counted} {ranked}
    age 7us
    entries {{
        {rules}
    }}
}}
table which: patterns(bytes) -> u8 {{
    capacity 9 {counted}
    entries {{
        {first}
    }}
}}
table many: patterns(bytes) {{
    capacity 9
    answer all
    entries {{
        {all}
    }}
}}
table classes: patterns(bytes) -> u7 {{
    capacity 9
    answer set
    entries {{
        {set}
    }}
}}
meter rates[4]: packets {{ committed 100k burst {burst} excess 1 }}
register seen[256]: u16
pool numbers: (u8, u16) {{ 3..4, 10..12 }}
table held: exact(u8) -> (u8, u16) {{ capacity 4 idle 9us evict refuse releases numbers }}
group members: u8 {{ buckets 16 capacity 3 members {{ 1, 2 weight 2 }} }}
counter hits[256]

start decoder frame(p: probe) {{
    var sum: u32 = 0
    match nets[p.a] {{ some n => sum = sum +% (n as u32), none => sum = sum +% 100 }}
    match wide[p.kind, p.c] {{ some n => sum = sum +% (n as u32), none => sum = sum +% 100 }}
    match plain[p.c] {{ some n => sum = sum +% (n as u32), none => sum = sum +% 100 }}
    match acl[p.a, p.b, p.c] {{ some n => sum = sum +% (n as u32), none => sum = sum +% 100 }}
    match which[payload] {{ some n => sum = sum +% (n as u32), none => sum = sum +% 100 }}
    sum = sum +% many[clip(payload, p.size as u32)]
    sum = sum +% (classes[payload] as% u32)
    match rates[(p.a & 3) as u32] {{ green => sum = sum +% 1, yellow => sum = sum +% 2, red => sum = sum +% 3 }}
    set seen[p.b] = seen[p.b] +% (sum as% u16)
    match members[hash(p.a, p.c, p.kind)] {{ some m => sum = sum +% (m as u32), none => sum = sum +% 50 }}
    count hits[sum as% u8]
    match p.kind {{
        1 => insert_net(sum)
        2 => remove_net(sum)
        3 => insert_rule(sum)
        4 => remove_rule(sum)
        5 => taken(sum)
        6 => given(sum)
        7 => joined(sum)
        8 => left(sum)
        else => out(sum)
    }}
}}
stage insert_net(sum: u32) {{
    insert nets[p.b / 5] = p.a else {{ drop full }}
    goto out(sum)
}}
stage remove_net(sum: u32) {{
    remove nets[p.b / 5]
    goto out(sum)
}}
stage insert_rule(sum: u32) {{
    insert acl[p.a / 2, p.b / 3, p.c / 0] = p.size {low} else {{ drop full }}
    insert acl[p.a, p.b / 3, 7] = p.size {high} else {{ drop full }}
    goto out(sum)
}}
stage remove_rule(sum: u32) {{
    if p.size < 6 {{ remove acl[p.a, p.b / 3, 7] {high} }} else {{ remove acl[p.a, p.b / 3, 7] {low} }}
    goto out(sum)
}}
stage taken(sum: u32) {{
    match take(numbers, p.b) {{
        some (x, y) => {{
            insert held[p.a & 7] = (x, y) else {{ give numbers[x, y] }}
            goto out(sum +% (y as u32))
        }}
        none => drop three
    }}
}}
stage given(sum: u32) {{
    remove held[p.a & 7]
    goto out(sum)
}}
stage joined(sum: u32) {{
    insert members[p.a & 3] else {{ drop full }}
    goto out(sum)
}}
stage left(sum: u32) {{
    remove members[p.a & 3]
    goto out(sum)
}}
stage out(sum: u32) {{
    match sum % 5 {{
        0 => drop one
        1 => drop two
        else => send 2
    }}
}}
",
        ranked = if ranked { "choose priority" } else { "" },
        high = if ranked { "priority 3" } else { "" },
        low = if ranked { "priority 1" } else { "" }
    )
}

fn arrivals(random: &mut SuiteRandom) -> Arrivals {
    let mut arrivals = Arrivals::default();
    let mut time = 1_000;
    for _ in 0..random.between(40, 120) {
        let letters = random.below(24);
        let mut bytes = vec![
            random.between(0, 9) as u8,
            random.number() as u8,
            random.number() as u8,
            random.below(4) as u8,
            random.number() as u8,
            random.below(12) as u8,
        ];
        bytes.extend((0..letters).map(|_| *random.pick(b"abAx")));
        time += random.below(2_000);
        arrivals.push(&bytes, bytes.len() as u32, time, random.between(1, 3) as u16);
    }
    arrivals
}

#[test]
fn tables_of_every_kind_answer_alike_on_both_back_ends() {
    let (mut accepted, mut inserted, mut expired) = (0, 0, 0);
    for seed in 0..24 {
        let mut random = SuiteRandom::new(seed);
        let (text, arrivals) = (program(&mut random), arrivals(&mut random));
        match compare(&text, &arrivals) {
            Ok(Some((_, outcome))) => {
                accepted += 1;
                inserted += outcome.tables.iter().map(|table| table.inserts).sum::<u64>();
                expired += outcome.tables.iter().map(|table| table.expired).sum::<u64>();
            }
            Ok(None) => panic!(
                "seed {seed} is refused: {:#?}\n{text}",
                suite::agree::compile_as(&text, lang::pipeline::Decode::Lazy).diagnostics
            ),
            Err(what) => panic!("seed {seed}: {what}\n{text}"),
        }
    }
    assert!(accepted == 24 && inserted > 200 && expired > 50, "{accepted} {inserted} {expired}");
}
