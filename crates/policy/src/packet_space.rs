//! All packets that there can be, as bits: which levels a field has, where a field is present, and sets of
//! packets for conditions.
//!
//! A packet has its way through the gateway, the fields of [`PacketField`], and one bit for each condition
//! that depends on earlier packets. What follows from other fields has no bits of its own:
//!
//! - ports are present in TCP, UDP, DCCP, SCTP and UDP-Lite, the type and code in ICMP with IPv4 and in
//!   ICMPv6 with IPv6, the flags in TCP, and none of them in later fragments: headers are whole;
//! - an IPv4 address is one below ::ffff:0:0/96, so only its last 32 bits are looked at;
//! - fields of other headers are present as [`crate::header_fields`] says;
//! - the port by which a packet comes in is absent from those of the gateway itself, and the port by which it
//!   leaves from those for it.

use crate::diagram::{ALL, Diagram, Diagrams, NONE, TooManyNodes};
use crate::field::{MAPPED, Packet, PacketField, Values};
use crate::header_fields::{self, Carried, FIRST, HEADER_FIELDS};
use crate::model::{HookPoint, Path, RuleCondition};
use std::collections::HashMap;

/// The fields in the order of their levels, before those of [`HEADER_FIELDS`]. The way of the packet has the
/// two levels before them.
const ORDER: [PacketField; FIRST] = [
    PacketField::Family,
    PacketField::State,
    PacketField::OutState,
    PacketField::InPort,
    PacketField::OutPort,
    PacketField::Protocol,
    PacketField::LaterFragment,
    PacketField::Destination,
    PacketField::Source,
    PacketField::DestinationPort,
    PacketField::SourcePort,
    PacketField::IcmpType,
    PacketField::IcmpCode,
    PacketField::TcpFlags,
    PacketField::Dscp,
    PacketField::Ecn,
    PacketField::TimeToLive,
    PacketField::Length,
    PacketField::SourceMac,
];

const PATHS: [Path; 3] = [Path::Forwarded, Path::ToGateway, Path::FromGateway];
const PATH_LEVELS: [u32; 2] = [0, 1];
const LOW_32: u128 = 0xffff_ffff;

/// One packet with all that its fate depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessPacket {
    /// Its way.
    pub path: Path,
    /// Its fields.
    pub packet: Packet,
    /// The conditions on earlier packets that must hold: numbers in the order of their texts.
    pub remembered: Vec<usize>,
}

/// What a level belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpaceField {
    /// The way through the gateway.
    Path,
    /// A field of the packet.
    Of(PacketField),
}

/// The diagrams of an analysis over packets.
pub(crate) struct PacketSpace {
    pub(crate) diagrams: Diagrams,
    /// The levels of each field, the highest bit first.
    levels: HashMap<PacketField, Vec<u32>>,
    first_memory: u32,
    present: HashMap<PacketField, Diagram>,
    /// The texts of conditions on earlier packets.
    memories: Vec<String>,
    /// Their numbers, by the text and how many with this text a policy has before. With both the same, it is
    /// the same condition in two policies.
    memory_numbers: HashMap<(String, usize), usize>,
}

impl PacketSpace {
    #[cfg(test)]
    pub(crate) fn new() -> Result<PacketSpace, TooManyNodes> {
        PacketSpace::with_limit(crate::limits::MOST_NODES)
    }

    /// With at most so many nodes.
    pub(crate) fn with_limit(most: usize) -> Result<PacketSpace, TooManyNodes> {
        let diagrams = Diagrams::with_limit(most);
        let mut next = PATH_LEVELS.len() as u32;
        let mut levels = HashMap::new();
        for field in ORDER.into_iter().chain(HEADER_FIELDS.map(|(field, ..)| field)) {
            let bits = if field == PacketField::Family { 1 } else { u32::from(field.width()) };
            levels.insert(field, (next..next + bits).collect());
            next += bits;
        }
        let mut space = PacketSpace {
            diagrams,
            levels,
            first_memory: next,
            present: HashMap::new(),
            memories: Vec::new(),
            memory_numbers: HashMap::new(),
        };
        for field in PacketField::ALL {
            let present = space.presence(field)?;
            space.present.insert(field, present);
        }
        Ok(space)
    }

    /// What the bit of a level belongs to, and all levels of that; `None` for a condition on earlier packets.
    pub(crate) fn field_at(&self, level: u32) -> Option<(SpaceField, &[u32])> {
        if PATH_LEVELS.contains(&level) {
            return Some((SpaceField::Path, &PATH_LEVELS));
        }
        let (field, levels) = self.levels.iter().find(|(_, levels)| levels.contains(&level))?;
        Some((SpaceField::Of(*field), levels))
    }

    /// The way that a number stands for.
    pub(crate) fn path(number: u128) -> Option<Path> {
        PATHS.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether these ranges are all values that a field can have.
    pub(crate) fn is_all(field: PacketField, ranges: &[(u128, u128)]) -> bool {
        let least: &[u128] = match field {
            PacketField::InPort | PacketField::OutPort => &[1],
            PacketField::Length => &[20, 40],
            _ => &[0],
        };
        let most = if matches!(field, PacketField::State | PacketField::OutState) { 4 } else { field.most() };
        matches!(ranges, [(low, high)] if least.contains(low) && *high == most)
    }

    /// The number of a condition on earlier packets, before which a policy has the same text so many times:
    /// each of them remembers by itself.
    pub(crate) fn memory(&mut self, text: &str, before: usize) -> usize {
        *self.memory_numbers.entry((text.to_owned(), before)).or_insert_with(|| {
            self.memories.push(text.to_owned());
            self.memories.len() - 1
        })
    }

    /// The text of a condition on earlier packets.
    pub(crate) fn memory_text(&self, number: usize) -> &str {
        &self.memories[number]
    }

    fn presence(&mut self, field: PacketField) -> Result<Diagram, TooManyNodes> {
        use PacketField as Field;
        let whole = |space: &mut PacketSpace, protocols: Diagram| {
            let first = space.numbers(Field::LaterFragment, &[Values::exact(0)])?;
            space.diagrams.both(first, protocols)
        };
        match field {
            Field::SourcePort | Field::DestinationPort => {
                let protocols = self.numbers(Field::Protocol, &[6, 17, 33, 132, 136].map(Values::exact))?;
                whole(self, protocols)
            }
            Field::TcpFlags => {
                let protocols = self.numbers(Field::Protocol, &[Values::exact(6)])?;
                whole(self, protocols)
            }
            Field::IcmpType | Field::IcmpCode => {
                let messages = self.messages()?;
                whole(self, messages)
            }
            Field::InPort | Field::SourceMac => self.on_paths(&[Path::Forwarded, Path::ToGateway]),
            Field::OutPort | Field::OutState => self.on_paths(&[Path::Forwarded, Path::FromGateway]),
            _ => {
                let Some(carried) = header_fields::carried(field) else { return Ok(ALL) };
                let protocols = |space: &mut PacketSpace, numbers: &[u128]| {
                    let numbers: Vec<Values> = numbers.iter().map(|number| Values::exact(*number)).collect();
                    space.numbers(Field::Protocol, &numbers)
                };
                match carried {
                    Carried::Version(version) => self.numbers(Field::Family, &[Values::exact(version)]),
                    Carried::Protocols(numbers) => {
                        let protocols = protocols(self, numbers)?;
                        whole(self, protocols)
                    }
                    Carried::Messages(numbers) => {
                        let sets = [protocols(self, numbers)?, self.messages()?];
                        let protocols = self.diagrams.any(&sets)?;
                        whole(self, protocols)
                    }
                    Carried::Mobility => {
                        let sets = [protocols(self, &[135])?, self.version_6()?];
                        let protocols = self.diagrams.both(sets[0], sets[1])?;
                        whole(self, protocols)
                    }
                    Carried::Extension(bit) => {
                        let with = [Values::Masked { value: bit, mask: bit }];
                        let sets = [self.numbers(Field::ExtensionHeaders, &with)?, self.version_6()?];
                        self.diagrams.both(sets[0], sets[1])
                    }
                }
            }
        }
    }

    /// ICMP with IPv4, and ICMPv6 with IPv6.
    fn messages(&mut self) -> Result<Diagram, TooManyNodes> {
        let [four, six] = [1, 58].map(|number| self.numbers(PacketField::Protocol, &[Values::exact(number)]));
        let version_6 = self.version_6()?;
        self.diagrams.choose(version_6, six?, four?)
    }

    fn version_6(&mut self) -> Result<Diagram, TooManyNodes> {
        let level = self.levels[&PacketField::Family][0];
        self.diagrams.branch(level, NONE, ALL)
    }

    fn on_paths(&mut self, paths: &[Path]) -> Result<Diagram, TooManyNodes> {
        let mut sets = Vec::new();
        for path in paths {
            sets.push(self.diagrams.range(&PATH_LEVELS, *path as u128, *path as u128)?);
        }
        self.diagrams.any(&sets)
    }

    /// The packets that come to a point.
    pub(crate) fn at(&mut self, point: HookPoint) -> Result<Diagram, TooManyNodes> {
        let paths: Vec<Path> = PATHS.into_iter().filter(|path| path.points().contains(&point)).collect();
        self.on_paths(&paths)
    }

    /// The packets on one way.
    pub(crate) fn on(&mut self, path: Path) -> Result<Diagram, TooManyNodes> {
        self.on_paths(&[path])
    }

    /// All packets that there can be.
    pub(crate) fn possible(&mut self) -> Result<Diagram, TooManyNodes> {
        let mut possible = ALL;
        for bound in self.bounds()? {
            possible = self.diagrams.both(possible, bound)?;
        }
        Ok(possible)
    }

    /// Sets that together hold the packets that there can be.
    pub(crate) fn bounds(&mut self) -> Result<Vec<Diagram>, TooManyNodes> {
        let mut bounds = vec![self.on_paths(&PATHS)?];
        for field in [PacketField::State, PacketField::OutState] {
            bounds.push(self.numbers(field, &[Values::Range { low: 0, high: 4 }])?);
        }
        for field in [PacketField::InPort, PacketField::OutPort] {
            // Ports are numbered from 1.
            let numbers = self.numbers(field, &[Values::Range { low: 1, high: field.most() }])?;
            bounds.push(self.diagrams.choose(self.present[&field], numbers, ALL)?);
        }
        let [four, six] = [20, 40].map(|low| {
            self.numbers(PacketField::Length, &[Values::Range { low, high: u128::from(u16::MAX) }])
        });
        let version_6 = self.version_6()?;
        bounds.push(self.diagrams.choose(version_6, six?, four?)?);
        Ok(bounds)
    }

    /// Sets that together hold the packets for which a condition holds, most of them of one field each.
    pub(crate) fn parts(
        &mut self,
        condition: &RuleCondition,
        memories: &[usize],
    ) -> Result<Vec<Diagram>, TooManyNodes> {
        match condition {
            RuleCondition::Holds(field, values) => {
                Ok(vec![self.present[field], self.numbers(*field, values)?])
            }
            RuleCondition::All(parts) => {
                let mut sets = Vec::new();
                for part in parts {
                    sets.extend(self.parts(part, memories)?);
                }
                sets.sort_unstable();
                sets.dedup();
                sets.retain(|set| *set != ALL);
                Ok(sets)
            }
            _ => Ok(vec![self.set(condition, memories)?]),
        }
    }

    /// Where the bits of a field are among the values, whether the packet has the field or not.
    fn numbers(&mut self, field: PacketField, values: &[Values]) -> Result<Diagram, TooManyNodes> {
        let levels = self.levels[&field].clone();
        match field {
            PacketField::Family => {
                let [four, six] = [4, 6].map(|version| values.iter().any(|values| values.hold(version)));
                let [four, six] = [four, six].map(|held| if held { ALL } else { NONE });
                self.diagrams.branch(levels[0], four, six)
            }
            PacketField::Source | PacketField::Destination => {
                let six = self.among(&levels, field.most(), values)?;
                let four: Vec<Values> = values.iter().filter_map(version_4).collect();
                let four = self.among(&levels[96..], LOW_32, &four)?;
                let version_6 = self.version_6()?;
                self.diagrams.choose(version_6, six, four)
            }
            _ => self.among(&levels, field.most(), values),
        }
    }

    fn among(&mut self, levels: &[u32], most: u128, values: &[Values]) -> Result<Diagram, TooManyNodes> {
        let mut sets = Vec::with_capacity(values.len());
        for values in values {
            sets.push(match *values {
                Values::Range { low, .. } if low > most => NONE,
                Values::Range { low, high } => self.diagrams.range(levels, low, high.min(most))?,
                Values::Masked { value, .. } if value > most => NONE,
                Values::Masked { value, mask } => self.diagrams.masked(levels, value, mask)?,
            });
        }
        self.diagrams.any(&sets)
    }

    /// The packets for which a condition holds. `memories` has the numbers of the policy's conditions on
    /// earlier packets.
    pub(crate) fn set(
        &mut self,
        condition: &RuleCondition,
        memories: &[usize],
    ) -> Result<Diagram, TooManyNodes> {
        match condition {
            RuleCondition::Holds(field, values) => {
                let numbers = self.numbers(*field, values)?;
                self.diagrams.both(self.present[field], numbers)
            }
            RuleCondition::Absent(field) => self.diagrams.without(ALL, self.present[field]),
            RuleCondition::All(parts) => {
                let mut set = ALL;
                for part in parts {
                    let part = self.set(part, memories)?;
                    set = self.diagrams.both(set, part)?;
                }
                Ok(set)
            }
            RuleCondition::Any(parts) => {
                let parts: Result<Vec<Diagram>, TooManyNodes> =
                    parts.iter().map(|part| self.set(part, memories)).collect();
                self.diagrams.any(&parts?)
            }
            RuleCondition::Not(inner) => {
                let inner = self.set(inner, memories)?;
                self.diagrams.without(ALL, inner)
            }
            RuleCondition::Remembered(index) => {
                self.diagrams.branch(self.first_memory + memories[*index] as u32, NONE, ALL)
            }
        }
    }

    /// The sets of packets that a reader expects in an example, the most telling ones first.
    pub(crate) fn usual(&mut self) -> Result<Vec<Diagram>, TooManyNodes> {
        USUAL.iter().map(|(field, values)| self.numbers(*field, values)).collect()
    }

    /// One packet of the set; `None` if it is empty. What the set leaves open is a plain value.
    pub(crate) fn witness(&mut self, set: Diagram) -> Result<Option<WitnessPacket>, TooManyNodes> {
        let mut set = set;
        // What a reader expects is taken where the set has it, one after the other.
        for usual in self.usual()? {
            let narrowed = self.diagrams.both(set, usual)?;
            if narrowed != NONE {
                set = narrowed;
            }
        }
        Ok(self.diagrams.member(set).map(|way| self.packet_on(&way)))
    }

    /// The packet with these bits, and 0 for those that are not told.
    pub(crate) fn packet_on(&self, way: &[(u32, bool)]) -> WitnessPacket {
        self.packet(&|level| way.contains(&(level, true)))
    }

    /// The packet that bits say.
    pub(crate) fn packet(&self, bit: &dyn Fn(u32) -> bool) -> WitnessPacket {
        let number =
            |levels: &[u32]| levels.iter().fold(0u128, |sum, level| sum << 1 | u128::from(bit(*level)));
        let path = PATHS[(number(&PATH_LEVELS) as usize).min(PATHS.len() - 1)];
        let version_6 = bit(self.levels[&PacketField::Family][0]);
        let mut packet = Packet::default();
        for field in PacketField::ALL {
            if self.diagrams.value(self.present[&field], bit) == 0 {
                continue;
            }
            let number = number(&self.levels[&field]);
            let address = matches!(field, PacketField::Source | PacketField::Destination);
            let value = match field {
                PacketField::Family => {
                    if version_6 {
                        6
                    } else {
                        4
                    }
                }
                _ if address && !version_6 => MAPPED | number & LOW_32,
                _ => number,
            };
            packet = packet.with(field, Some(value));
        }
        let remembered = (0..self.memories.len()).filter(|memory| bit(self.first_memory + *memory as u32));
        WitnessPacket { path, packet, remembered: remembered.collect() }
    }

    /// The bits of a packet.
    #[cfg(test)]
    pub(crate) fn bits(&self, packet: &WitnessPacket) -> impl Fn(u32) -> bool {
        let mut bits = vec![false; self.first_memory as usize + self.memories.len()];
        let mut tell = |levels: &[u32], number: u128| {
            for (place, level) in levels.iter().rev().enumerate() {
                bits[*level as usize] = number >> place & 1 == 1;
            }
        };
        tell(&PATH_LEVELS, packet.path as u128);
        for field in PacketField::ALL {
            let value = packet.packet.get(field).unwrap_or_default();
            tell(
                &self.levels[&field],
                if field == PacketField::Family { u128::from(value == 6) } else { value },
            );
        }
        for memory in &packet.remembered {
            tell(&[self.first_memory + *memory as u32], 1);
        }
        move |level| bits[level as usize]
    }
}

/// What the values are in the last 32 bits of an address of IPv4.
fn version_4(values: &Values) -> Option<Values> {
    match *values {
        Values::Range { low, high } => {
            let (low, high) = (low.max(MAPPED), high.min(MAPPED | LOW_32));
            (low <= high).then_some(Values::Range { low: low & LOW_32, high: high & LOW_32 })
        }
        Values::Masked { value, mask } => {
            let fits = MAPPED & mask & !LOW_32 == value & !LOW_32;
            fits.then_some(Values::Masked { value: value & LOW_32, mask: mask & LOW_32 })
        }
    }
}

/// Values that a reader expects in an example, the most telling ones first.
const USUAL: &[(PacketField, &[Values])] = &[
    (PacketField::LaterFragment, &[Values::Range { low: 0, high: 0 }]),
    (PacketField::Family, &[Values::Range { low: 4, high: 4 }]),
    (PacketField::State, &[Values::Range { low: 0, high: 0 }]),
    (PacketField::OutState, &[Values::Range { low: 0, high: 0 }]),
    (PacketField::Protocol, &[Values::Range { low: 6, high: 6 }]),
    (PacketField::Protocol, &[Values::Range { low: 17, high: 17 }]),
    (PacketField::TcpFlags, &[Values::Range { low: 2, high: 2 }]),
    (PacketField::Source, &[Values::Range { low: 0xffff_c000_0200, high: 0xffff_c000_02ff }]),
    (PacketField::Destination, &[Values::Range { low: 0xffff_c633_6400, high: 0xffff_c633_64ff }]),
    (PacketField::SourcePort, &[Values::Range { low: 49_152, high: 0xffff }]),
    (PacketField::TimeToLive, &[Values::Range { low: 64, high: 64 }]),
    (PacketField::Length, &[Values::Range { low: 60, high: 60 }]),
];
