//! Generates routes as in a full Internet table: with similar prefix lengths, nesting, neighbourhood and next
//! hops.
//!
//! The idea: each length gets its share of the count, shortest first. A prefix is the neighbour of the one
//! before it, or lies inside a random shorter one, or in one of the blocks that are in use at all. Neighbours
//! share their next hop.

use std::collections::HashSet;
use std::fmt;

use super::{Random, Version, Weighted, write_address};

/// The most routes that are made.
pub const MAX_ROUTES: usize = 1 << 22;

/// Shares of lengths in thousandths of a percent, of the tables that route collectors published in 2022
/// (RouteViews, RIPE RIS; about 900,000 and 160,000 prefixes).
const LENGTHS_V4: [(u8, u64); 22] = [
    (8, 2),
    (9, 1),
    (10, 4),
    (11, 11),
    (12, 33),
    (13, 64),
    (14, 133),
    (15, 233),
    (16, 1_496),
    (17, 913),
    (18, 1_530),
    (19, 2_758),
    (20, 4_725),
    (21, 5_627),
    (22, 12_044),
    (23, 10_701),
    (24, 59_618),
    (25, 2),
    (27, 1),
    (28, 2),
    (29, 4),
    (32, 98),
];
const LENGTHS_V6: [(u8, u64); 35] = [
    (16, 1),
    (19, 1),
    (20, 10),
    (22, 6),
    (24, 24),
    (26, 14),
    (27, 12),
    (28, 121),
    (29, 2_729),
    (30, 406),
    (31, 177),
    (32, 14_080),
    (33, 1_827),
    (34, 1_625),
    (35, 651),
    (36, 3_744),
    (37, 549),
    (38, 1_010),
    (39, 860),
    (40, 8_379),
    (41, 564),
    (42, 1_437),
    (43, 625),
    (44, 8_970),
    (45, 970),
    (46, 1_898),
    (47, 1_969),
    (48, 47_137),
    (49, 10),
    (56, 16),
    (58, 12),
    (64, 115),
    (126, 18),
    (127, 26),
    (128, 4),
];

/// What routes are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutesSpec {
    /// Whose addresses.
    pub version: Version,
    /// How many; at most [`MAX_ROUTES`].
    pub count: usize,
    /// Different next hops, at least 1; the most frequent one has the number 0.
    pub next_hops: u32,
    /// Chooses the table.
    pub seed: u64,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The address as an integer of the version's width, zero behind `length`.
    pub bits: u128,
    /// Bits of the prefix.
    pub length: u8,
    /// Number of the next hop.
    pub next_hop: u32,
}

/// A table of different prefixes, by ascending address and then length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedRoutes {
    /// Whose addresses.
    pub version: Version,
    /// The table.
    pub routes: Vec<Route>,
}

impl GeneratedRoutes {
    /// The table of a spec. It has fewer routes than asked for only past [`MAX_ROUTES`].
    pub fn new(spec: &RoutesSpec) -> GeneratedRoutes {
        let mut maker = Maker::new(spec);
        let count = spec.count.min(MAX_ROUTES);
        for (length, share) in shares(spec.version, count) {
            maker.make(length, share);
        }
        let mut routes = maker.routes;
        routes.sort_unstable();
        GeneratedRoutes { version: spec.version, routes }
    }

    /// A line a route: `prefix nexthop`.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for route in &self.routes {
            write_address(out, self.version, route.bits)?;
            write!(out, "/{} ", route.length)?;
            write_address(out, self.version, next_hop_address(self.version, route.next_hop))?;
            out.write_char('\n')?;
        }
        Ok(())
    }
}

/// The address of a next hop by its number: 10.128.0.1 and on, or fd00:ff::1 and on.
pub fn next_hop_address(version: Version, number: u32) -> u128 {
    let base = match version {
        Version::V4 => 0x0a80_0001,
        Version::V6 => 0xfd00_00ff_u128 << 96 | 1,
    };
    base + u128::from(number)
}

/// How many prefixes of each length, shortest first; what rounding leaves over goes to the most frequent
/// length, and none gets more than about half of what fits into the used address space.
fn shares(version: Version, count: usize) -> Vec<(u8, usize)> {
    let lengths: &[(u8, u64)] = match version {
        Version::V4 => &LENGTHS_V4,
        Version::V6 => &LENGTHS_V6,
    };
    let total: u64 = lengths.iter().map(|(_, share)| share).sum();
    let used = if version == Version::V4 { 1 } else { 4 };
    let room = |length: u8| 1usize << (length - used).min(60);
    let mut shares: Vec<(u8, usize)> = lengths
        .iter()
        .map(|(length, share)| (*length, (count as u64 * share / total) as usize))
        .map(|(length, share)| (length, share.min(room(length))))
        .collect();
    let left = count - shares.iter().map(|(_, share)| share).sum::<usize>();
    if let Some((_, share)) = shares.iter_mut().max_by_key(|(_, share)| *share) {
        *share += left;
    }
    shares
}

struct Maker {
    version: Version,
    random: Random,
    hops: Weighted,
    /// Starts of the blocks in which prefixes that no other covers lie: of 16 bits, or of 32.
    blocks: Vec<u128>,
    routes: Vec<Route>,
    taken: HashSet<(u128, u8)>,
    /// The shortest length there is.
    shortest: u8,
}

impl Maker {
    fn new(spec: &RoutesSpec) -> Maker {
        let mut random = Random::new(spec.seed);
        let count = spec.count.min(MAX_ROUTES);
        // A full IPv4 table uses 35,000 of 56,000 blocks of 16 bits, one for 26 routes; of IPv6 prefixes one
        // in five begins a block of 32 bits.
        let blocks = match spec.version {
            Version::V4 => {
                let mut blocks: Vec<u128> = (0x0100..0xe000u128)
                    .map(|block| block << 16)
                    .filter(|block| !is_reserved(*block))
                    .collect();
                let used = (count as u64 / 26).clamp(64, 35_000);
                blocks.retain(|_| random.below(56_000) < used);
                blocks
            }
            Version::V6 => {
                // The registries' parts of 2000::/3; a block lies in one of 32 parts of 12 bits.
                let parts: Vec<u128> = (0..32).map(|_| u128::from(random.below(0x200))).collect();
                (0..count.div_ceil(5).max(16))
                    .map(|_| {
                        let part = random.pick(&parts).copied().unwrap_or(0);
                        // Half of the blocks lie side by side in the low end of their part.
                        let spread = if random.chance(50) { 12 } else { 20 };
                        (0x200 | part) << 116 | u128::from(random.below(1 << spread)) << 96
                    })
                    .collect()
            }
        };
        Maker {
            version: spec.version,
            hops: Weighted::zipf(spec.next_hops.max(1)),
            random,
            blocks,
            routes: Vec::with_capacity(count),
            taken: HashSet::with_capacity(count),
            shortest: if spec.version == Version::V4 { 8 } else { 16 },
        }
    }

    /// Adds so many prefixes of a length.
    fn make(&mut self, length: u8, count: usize) {
        let step = 1u128 << (self.version.width() - length);
        let covering = self.routes.len();
        // In percent; runs of neighbours are what makes prefixes lie beside their buddies.
        let neighbours = if self.version == Version::V4 { 66 } else { 56 };
        let mut last: Option<Route> = None;
        for _ in 0..count {
            let mut route = match last {
                Some(before) if self.random.chance(neighbours) => {
                    Route { bits: before.bits.wrapping_add(step), ..before }
                }
                _ => self.placed(length, covering),
            };
            loop {
                route.bits = self.within(route.bits, step);
                if is_unfit(self.version, route.bits) {
                    route = self.placed(length, covering);
                } else if self.taken.insert((route.bits, length)) {
                    break;
                } else {
                    route.bits = route.bits.wrapping_add(step);
                }
            }
            self.routes.push(route);
            last = Some(route);
        }
    }

    /// A prefix that begins a new run: inside one of the first `covering` routes, or in a block of its own.
    fn placed(&mut self, length: u8, covering: usize) -> Route {
        let free_below = |used: u8| if used < 128 { u128::MAX >> used } else { 0 };
        let width = self.version.width();
        // In percent; with what lands in covered space by chance it makes 51 % of IPv4 and 57 % of IPv6
        // routes.
        let nested = if self.version == Version::V4 { 45 } else { 60 };
        let parent = self.routes[..covering].get(self.random.below(covering as u64) as usize).copied();
        let random = self.random.wide();
        match parent.filter(|_| self.random.chance(nested)) {
            Some(parent) => {
                let inside = random & free_below(128 - width) & free_below(parent.length + 128 - width);
                let same_hop = self.random.chance(50);
                let next_hop =
                    if same_hop { parent.next_hop } else { self.hops.draw(&mut self.random) as u32 };
                Route { bits: parent.bits | inside, length, next_hop }
            }
            None => {
                let next_hop = self.hops.draw(&mut self.random) as u32;
                let mut route = Route { bits: 0, length, next_hop };
                // Where most of the space is taken, a place of its own may not be found; then a covered one
                // will do.
                for _ in 0..8 {
                    let block = self.random.pick(&self.blocks).copied().unwrap_or(1 << (width - 3));
                    let free = if width == 32 { 16 } else { 96 };
                    route.bits = block | self.random.wide() & ((1 << free) - 1);
                    if !self.is_covered(&route) {
                        break;
                    }
                }
                route
            }
        }
    }

    /// Whether one of the shorter routes covers this one.
    fn is_covered(&self, route: &Route) -> bool {
        let width = self.version.width();
        let cut = |length: u8| route.bits & u128::MAX << (width - length);
        (self.shortest..route.length).any(|length| self.taken.contains(&(cut(length), length)))
    }

    /// The address without what lies behind the prefix (`step` is the prefix's size) and above the width.
    fn within(&self, bits: u128, step: u128) -> u128 {
        bits & !(step - 1) & (u128::MAX >> (128 - self.version.width()))
    }
}

/// Whether a prefix there is none that is routed on the Internet.
fn is_unfit(version: Version, bits: u128) -> bool {
    match version {
        Version::V4 => is_reserved(bits) || !(1 << 24..0xe000_0000).contains(&bits),
        Version::V6 => bits >> 125 != 1,
    }
}

/// 10.0.0.0/8 and 127.0.0.0/8.
fn is_reserved(bits: u128) -> bool {
    matches!(bits >> 24, 10 | 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of routes in a shorter one and of routes beside their buddy, in percent.
    fn shape(table: &GeneratedRoutes) -> (usize, usize) {
        let width = table.version.width();
        let all: HashSet<(u128, u8)> = table.routes.iter().map(|one| (one.bits, one.length)).collect();
        let mut open: Vec<Route> = Vec::new();
        let (mut covered, mut buddies) = (0, 0);
        for route in &table.routes {
            while open.last().is_some_and(|outer| (outer.bits ^ route.bits) >> (width - outer.length) != 0) {
                open.pop();
            }
            covered += usize::from(!open.is_empty());
            buddies += usize::from(all.contains(&(route.bits ^ 1 << (width - route.length), route.length)));
            open.push(*route);
        }
        (covered * 100 / table.routes.len(), buddies * 100 / table.routes.len())
    }

    fn table(version: Version, count: usize, seed: u64) -> GeneratedRoutes {
        GeneratedRoutes::new(&RoutesSpec { version, count, next_hops: 64, seed })
    }

    #[test]
    fn a_table_looks_like_the_real_one() {
        // Percent of the real routes that another covers, and that lie beside their buddy.
        let real =
            [(Version::V4, 900_000, 51, 70, &LENGTHS_V4[..]), (Version::V6, 160_000, 57, 58, &LENGTHS_V6)];
        for (version, count, covered, buddies, lengths) in real {
            let table = table(version, count, 1);
            assert_eq!(table.routes.len(), count);
            let found = shape(&table);
            assert!(found.0.abs_diff(covered) <= 5, "{version:?}: {} % covered", found.0);
            assert!(found.1.abs_diff(buddies) <= 5, "{version:?}: {} % beside their buddy", found.1);
            for (length, share) in lengths {
                let made = table.routes.iter().filter(|route| route.length == *length).count() as u64;
                let wanted = count as u64 * share / 100_000;
                assert!(made.abs_diff(wanted) <= count as u64 / 1000, "{made} of length {length}");
            }
            let first = table.routes.iter().filter(|route| route.next_hop == 0).count() * 100 / count;
            assert!((15..30).contains(&first), "{first} % to the first next hop");
        }
    }

    #[test]
    fn prefixes_are_different_and_clean() {
        for version in [Version::V4, Version::V6] {
            let table = table(version, 30_000, 2);
            let width = version.width();
            for pair in table.routes.windows(2) {
                assert!((pair[0].bits, pair[0].length) < (pair[1].bits, pair[1].length));
            }
            for route in &table.routes {
                let behind = (1u128 << (width - route.length)) - 1;
                assert_eq!(route.bits & behind, 0);
                assert!(route.next_hop < 64 && !is_unfit(version, route.bits));
            }
        }
    }

    #[test]
    fn the_seed_and_nothing_else_decides() {
        assert_eq!(table(Version::V4, 1000, 7), table(Version::V4, 1000, 7));
        assert_ne!(table(Version::V4, 1000, 7), table(Version::V4, 1000, 8));
        assert_eq!(table(Version::V6, 0, 7).routes, []);
        assert_eq!(table(Version::V6, 1, 7).routes.len(), 1);
    }

    #[test]
    fn a_line_is_prefix_and_next_hop() {
        let route = Route { bits: 0xc000_0200, length: 24, next_hop: 4 };
        let mut text = String::new();
        GeneratedRoutes { version: Version::V4, routes: vec![route] }
            .write(&mut text)
            .expect("strings take all");
        assert_eq!(text, "192.0.2.0/24 10.128.0.5\n");
    }
}
