//! A set of packets as boxes: in each box a field holds some ranges, whatever the others hold.
//!
//! The bits of a field are neighbours in a diagram. Below them it has few diagrams, and to each of these lead
//! some values of the field: that is one side of a box.

use crate::diagram::{Diagram, NONE};
use crate::field::PacketField;
use crate::limits::MOST_RANGES;
use crate::model::Path;
use crate::packet_space::{PacketSpace, SpaceField};

/// Packets of which each field holds one of some values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketBox {
    /// Their way, if it is one.
    pub path: Option<Path>,
    /// The ranges of each field that may not hold everything. Addresses of IPv4 have 32 bits here.
    pub fields: Vec<(PacketField, Vec<(u128, u128)>)>,
    /// Whether it depends on earlier packets, too, which of these are meant.
    pub may: bool,
}

impl PacketBox {
    /// The ranges of a field, if it may not hold everything.
    pub fn holds(&self, field: PacketField) -> Option<&[(u128, u128)]> {
        self.fields.iter().find(|(own, _)| *own == field).map(|(_, values)| values.as_slice())
    }
}

/// The boxes of a set, at most `most` of them, and whether these are all. They end where a part of the set is
/// too ragged to be told in ranges.
pub(crate) fn boxes(space: &PacketSpace, set: Diagram, most: usize) -> (Vec<PacketBox>, bool) {
    let mut description = Description { space, most, boxes: Vec::new(), whole: true };
    description.go(set, &PacketBox::default());
    (description.boxes, description.whole)
}

struct Description<'a> {
    space: &'a PacketSpace,
    most: usize,
    boxes: Vec<PacketBox>,
    whole: bool,
}

/// The diagrams below a field, and the ranges that lead to each.
type Sides = Vec<(Diagram, Vec<(u128, u128)>)>;

impl Description<'_> {
    fn go(&mut self, set: Diagram, so_far: &PacketBox) {
        if set == NONE || !self.whole {
            return;
        }
        let Some((level, _)) = self.space.diagrams.branches(set) else {
            self.put(so_far.clone());
            return;
        };
        let Some((field, levels)) = self.space.field_at(level) else {
            // Conditions on earlier packets have the last levels, and a set that is told is not empty.
            self.put(PacketBox { may: true, ..so_far.clone() });
            return;
        };
        let version_4 = so_far.holds(PacketField::Family) == Some(&[(4, 4)]);
        let address = matches!(field, SpaceField::Of(PacketField::Source | PacketField::Destination));
        let levels = if address && version_4 { &levels[96..] } else { levels };
        let mut sides = Sides::new();
        if !self.sides(set, levels, 0, &mut sides) {
            self.whole = false;
            return;
        }
        for (next, ranges) in sides {
            let mut packets = so_far.clone();
            match field {
                SpaceField::Path => {
                    for (low, high) in &ranges {
                        for number in *low..=*high {
                            let Some(path) = PacketSpace::path(number) else { continue };
                            self.go(next, &PacketBox { path: Some(path), ..so_far.clone() });
                        }
                    }
                    continue;
                }
                SpaceField::Of(PacketField::Family) => {
                    let versions = ranges.iter().flat_map(|(low, high)| *low..=*high);
                    packets
                        .fields
                        .extend(versions.map(|bit| (PacketField::Family, vec![(4 + 2 * bit, 4 + 2 * bit)])));
                }
                SpaceField::Of(field) => {
                    if !PacketSpace::is_all(field, &ranges) {
                        packets.fields.push((field, ranges));
                    }
                }
            }
            self.go(next, &packets);
        }
    }

    fn put(&mut self, packets: PacketBox) {
        if self.boxes.len() == self.most {
            self.whole = false;
        } else {
            self.boxes.push(packets);
        }
    }

    /// Splits a diagram by the values of one field; false if they are too many ranges.
    fn sides(&self, at: Diagram, levels: &[u32], value: u128, sides: &mut Sides) -> bool {
        if at == NONE {
            return true;
        }
        let inside = self.space.diagrams.branches(at).filter(|(level, _)| levels.contains(level));
        let Some((level, [zero, one])) = inside else {
            let rest = levels.len() as u32;
            let low = value.checked_shl(rest).unwrap_or(0);
            let high = low | u128::MAX.checked_shr(128 - rest).unwrap_or(0);
            return add(sides, at, low, high);
        };
        let (zero, one) = if level == levels[0] { (zero, one) } else { (at, at) };
        self.sides(zero, &levels[1..], value << 1, sides)
            && self.sides(one, &levels[1..], value << 1 | 1, sides)
    }
}

/// Adds a range, to the range before it where they touch.
fn add(sides: &mut Sides, next: Diagram, low: u128, high: u128) -> bool {
    let side = match sides.iter().position(|(own, _)| *own == next) {
        Some(side) => side,
        None => {
            sides.push((next, Vec::new()));
            sides.len() - 1
        }
    };
    let ranges = &mut sides[side].1;
    match ranges.last_mut() {
        Some(last) if last.1.checked_add(1) == Some(low) => last.1 = high,
        _ => ranges.push((low, high)),
    }
    sides.iter().map(|(_, ranges)| ranges.len()).sum::<usize>() <= MOST_RANGES
}
