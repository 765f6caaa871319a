//! Measures exact tables: nanoseconds for what a learning switch does with a packet (one learn, one find), several sizes.
//!
//! The last column holds the same work on a table that keeps order of use in a linked list, for comparison.

use std::hint::black_box;
use std::time::Instant;

use tables::exact::{Evict, Exact, ExactSpec, Table, Table1};

const RUNS: usize = 9;
const AHEAD: usize = 16;
const AGE: u64 = 300_000_000_000;

fn main() {
    println!(
        "{:34} {:>10} {:>10} {:>10} {:>10}",
        "one learn + one find, ns", "plain", "prefetch", "call", "list"
    );
    for (what, hosts, packets) in
        [("50 hosts", 50, 14_261), ("1,209 hosts", 1_209, 14_261), ("65,536 hosts", 65_536, 1 << 20)]
    {
        let traffic = traffic(hosts, packets);
        let spec = ExactSpec {
            key_words: 1,
            value_words: 1,
            capacity: 65_536,
            idle: None,
            age: Some(AGE),
            evict: Evict::Lru,
            seed: 1,
        };
        let plain = measure(&traffic, &mut table(spec), |table, _, packet, now| pair(table, packet, now));
        let ahead = measure(&traffic, &mut table(spec), |table, later, packet, now| {
            table.prefetch1(later.0);
            table.prefetch1(later.1);
            pair(table, packet, now)
        });
        let call = measure(&traffic, &mut table(spec), |table, _, packet, now| {
            expire_if_due(table, now);
            black_box(learn_called(table, packet.0, &1, now));
            black_box(find_called(table, packet.1, now))
        });
        let list = measure(&traffic, &mut Listed::new(65_536), |table, _, packet, now| {
            table.learn(packet.0, now);
            table.find(packet.1)
        });
        println!("{what:34} {plain:>10.2} {ahead:>10.2} {call:>10.2} {list:>10.2}");
    }
    let spec = ExactSpec {
        key_words: 1,
        value_words: 1,
        capacity: 16_384,
        idle: Some(AGE),
        age: None,
        evict: Evict::Lru,
        seed: 1,
    };
    let traffic = traffic(65_536, 1 << 18);
    let evicting = measure(&traffic, &mut table(spec), |table, _, packet, now| pair(table, packet, now));
    println!("{:34} {evicting:>10.2}", "65,536 hosts in 16,384 places");
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

/// Median nanoseconds a packet; the first pass, which learns the hosts, is not counted.
fn measure<T>(
    traffic: &[(u64, u64)],
    table: &mut T,
    mut packet: impl FnMut(&mut T, (u64, u64), (u64, u64), u64) -> u64,
) -> f64 {
    let mut now = 0;
    let loops = (1usize << 22).div_ceil(traffic.len());
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
    runs[RUNS / 2]
}

fn table(spec: ExactSpec) -> Table1 {
    match Table::new(spec) {
        Ok(Table::One(table)) => table,
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

/// A table of the same layout with a doubly linked list through its slots, moved to the back on every hit. Without removal.
struct Listed {
    slots: Vec<[u64; 4]>,
    links: Vec<(u32, u32)>,
}

impl Listed {
    fn new(capacity: usize) -> Listed {
        let slots = capacity * 2;
        let mut links = vec![(0, 0); slots + 1];
        links[slots] = (slots as u32, slots as u32);
        Listed { slots: vec![[0; 4]; slots], links }
    }

    #[inline(always)]
    fn probe(&self, key: u64) -> usize {
        let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xbf58_476d_1ce4_e5b9;
        let mask = self.slots.len() - 1;
        let mut slot = (product as u64 ^ (product >> 64) as u64) as usize & mask;
        while self.slots[slot][0] != 0 && self.slots[slot][1] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[inline(always)]
    fn unlink(&mut self, slot: usize) {
        let (before, after) = self.links[slot];
        self.links[before as usize].1 = after;
        self.links[after as usize].0 = before;
    }

    #[inline(always)]
    fn append(&mut self, slot: usize) {
        let end = self.slots.len();
        let last = self.links[end].0;
        self.links[slot] = (last, end as u32);
        self.links[last as usize].1 = slot as u32;
        self.links[end].0 = slot as u32;
    }

    #[inline(always)]
    fn learn(&mut self, key: u64, now: u64) {
        let slot = self.probe(key);
        if self.slots[slot][0] != 0 {
            self.unlink(slot);
        }
        self.append(slot);
        self.slots[slot] = [1, key, 1, now];
    }

    #[inline(always)]
    fn find(&mut self, key: u64) -> u64 {
        let slot = self.probe(key);
        if self.slots[slot][0] == 0 {
            return 0;
        }
        self.unlink(slot);
        self.append(slot);
        self.slots[slot][2]
    }
}
