//! Measures exact tables: nanoseconds for what a learning switch does with a packet (one learn, one find),
//! several sizes.
//!
//! The last columns hold the same work on a table that keeps its orders in linked lists, for comparison.

mod listed;

use std::hint::black_box;
use std::time::Instant;

use listed::Listed;
use tables::exact::{Evict, Exact, ExactSpec, ExactTable, Table1};

const RUNS: usize = 9;
const AHEAD: usize = 16;
const AGE: u64 = 300_000_000_000;

fn main() {
    println!("one learn + one find, ns: median (lowest) of {RUNS} runs\n");
    println!(
        "{:22}{:>16}{:>16}{:>16}{:>16}{:>16}",
        "", "in line", "prefetched", "called", "list", "list prefetched"
    );
    let cases = [
        ("50 hosts", 50, 14_261, 65_536),
        ("1,209 hosts", 1_209, 14_261, 65_536),
        ("65,536 hosts", 65_536, 1 << 20, 65_536),
        ("full, 3 of 4 evict", 65_536, 1 << 18, 16_384),
    ];
    for (what, hosts, packets, capacity) in cases {
        let traffic = traffic(hosts, packets);
        let plain = measure(&traffic, &mut table(capacity), |table, _, packet, now| pair(table, packet, now));
        let ahead = measure(&traffic, &mut table(capacity), |table, later, packet, now| {
            table.prefetch(&[later.0]);
            table.prefetch(&[later.1]);
            pair(table, packet, now)
        });
        let called = measure(&traffic, &mut table(capacity), |table, _, packet, now| {
            expire_if_due(table, now);
            black_box(learn_called(table, packet.0, &1, now));
            find_called(table, packet.1, now)
        });
        let list = measure(&traffic, &mut Listed::new(capacity), |table, _, packet, now| {
            table.expire_if_due(now, AGE);
            table.learn(packet.0, 1, now);
            table.find(packet.1)
        });
        let list_ahead = measure(&traffic, &mut Listed::new(capacity), |table, later, packet, now| {
            table.prefetch(later.0);
            table.prefetch(later.1);
            table.expire_if_due(now, AGE);
            table.learn(packet.0, 1, now);
            table.find(packet.1)
        });
        println!("{what:22}{plain:>16}{ahead:>16}{called:>16}{list:>16}{list_ahead:>16}");
    }
}

/// (source, destination) of random packets among so many random hosts.
fn traffic(hosts: usize, packets: usize) -> Vec<(u64, u64)> {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let hosts: Vec<u64> = (0..hosts).map(|_| random() >> 16).collect();
    let mut any = || hosts[random() as usize % hosts.len()];
    (0..packets).map(|_| (any(), any())).collect()
}

/// Nanoseconds a packet, median and lowest; the first pass, which learns the hosts, is not counted.
fn measure<T>(
    traffic: &[(u64, u64)],
    table: &mut T,
    mut packet: impl FnMut(&mut T, (u64, u64), (u64, u64), u64) -> u64,
) -> String {
    let mut now = 0;
    let loops = (1usize << 21).div_ceil(traffic.len());
    let mut pass = |loops: usize| {
        let start = Instant::now();
        let mut sum = 0u64;
        for _ in 0..loops {
            for (i, one) in traffic.iter().enumerate() {
                now += 10;
                let later = traffic[(i + AHEAD).min(traffic.len() - 1)];
                sum = sum.wrapping_add(packet(table, later, *one, now));
            }
        }
        black_box(sum);
        start.elapsed().as_nanos() as f64 / (loops * traffic.len()) as f64
    };
    pass(1);
    let mut runs: Vec<f64> = (0..RUNS).map(|_| pass(loops)).collect();
    runs.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1})", runs[RUNS / 2], runs[0])
}

fn table(capacity: usize) -> Table1 {
    let spec = ExactSpec {
        key_words: 1,
        value_words: 1,
        capacity,
        idle: None,
        age: Some(AGE),
        lifetimes: false,
        evict: Evict::Lru,
        seed: 1,
    };
    match ExactTable::new(spec) {
        Ok(ExactTable::One(table)) => table,
        _ => unreachable!("the spec is valid and its keys have one word"),
    }
}

#[inline(always)]
fn expire_if_due(table: &mut Table1, now: u64) {
    if now >= table.next_deadline() {
        table.expire(now);
    }
}

#[inline(always)]
fn pair(table: &mut Table1, (source, destination): (u64, u64), now: u64) -> u64 {
    expire_if_due(table, now);
    black_box(table.learn1(source, &[1], now));
    table.find1(destination, now).map_or(0, |value| value[0])
}

/// What generated code would call.
#[inline(never)]
extern "C" fn learn_called(table: &mut Table1, key: u64, value: &u64, now: u64) -> u64 {
    table.learn1(key, std::slice::from_ref(value), now) as u64
}

/// What generated code would call.
#[inline(never)]
extern "C" fn find_called(table: &mut Table1, key: u64, now: u64) -> u64 {
    table.find1(key, now).map_or(0, |value| value[0])
}
