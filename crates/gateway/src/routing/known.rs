//! The neighbours whose next hop is in the program's table, in the order of their addresses: those within a
//! prefix are found without a look at the others.

use super::neighbours::Neighbour;
use super::prefix::IpPrefix;
use packet::PortNumber;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Neighbours by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownNeighbours(BTreeSet<(IpAddr, PortNumber)>);

impl KnownNeighbours {
    /// Puts one in. Says whether it was not there.
    pub(crate) fn insert(&mut self, neighbour: Neighbour) -> bool {
        self.0.insert(place(&neighbour))
    }

    /// Takes one out. Says whether it was there.
    pub(crate) fn remove(&mut self, neighbour: &Neighbour) -> bool {
        self.0.remove(&place(neighbour))
    }

    /// Whether one is there.
    pub(crate) fn contains(&self, neighbour: &Neighbour) -> bool {
        self.0.contains(&place(neighbour))
    }

    /// Every one.
    pub(crate) fn all(&self) -> impl Iterator<Item = Neighbour> + '_ {
        self.0.iter().map(neighbour)
    }

    /// Those whose addresses lie in a prefix.
    pub(crate) fn within(&self, prefix: IpPrefix) -> impl Iterator<Item = Neighbour> + '_ {
        let (first, last) = (prefix.address(), prefix.last());
        self.0.range((first, PortNumber::MIN)..=(last, PortNumber::MAX)).map(neighbour)
    }
}

fn place(neighbour: &Neighbour) -> (IpAddr, PortNumber) {
    (neighbour.address, neighbour.port)
}

fn neighbour(&(address, port): &(IpAddr, PortNumber)) -> Neighbour {
    Neighbour { port, address }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside a search through all.
        #[test]
        fn finds_those_within_a_prefix(
            there in proptest::collection::vec((any::<u32>(), any::<bool>(), 0u16..3), 0..40),
            asked in proptest::collection::vec((any::<u32>(), any::<bool>(), 0u8..=128), 1..20),
        ) {
            // Few addresses, at both ends of the space of each family.
            let address = |bits: u32, four: bool| {
                let bits = bits & 0xc000_0003;
                if four { IpAddr::V4(bits.into()) } else { IpAddr::V6((u128::from(bits) << 96 | u128::from(bits)).into()) }
            };
            let there: Vec<Neighbour> =
                there.into_iter().map(|(bits, four, port)| Neighbour { port, address: address(bits, four) }).collect();
            let mut known = KnownNeighbours::default();
            there.iter().for_each(|one| { known.insert(*one); });
            for (bits, four, length) in asked {
                let prefix = IpPrefix::of(address(bits, four), length);
                let wanted: BTreeSet<Neighbour> =
                    there.iter().copied().filter(|one| prefix.contains(one.address)).collect();
                prop_assert_eq!(known.within(prefix).collect::<BTreeSet<_>>(), wanted, "{}", prefix);
            }
        }
    }
}
