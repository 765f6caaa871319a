//! The conditions of one rule as boxes, and the interfaces that its names mean.

use crate::address::AddressFamily;
use crate::region::{Region, Set};
use crate::ruleset::{ImportedRules, Part};
use crate::text::shown;
use policy::{MAPPED, PacketField, RuleCondition, State, Values, with_loopback};

/// Conditions that must all hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Conditions {
    family: AddressFamily,
    /// Of each condition one alternative holds; an alternative holds if all its columns do.
    all: Vec<Vec<Vec<(Part, Set)>>>,
    /// Whether no packet can fit.
    never: bool,
    /// Whether a header is looked into that later fragments have not.
    header: bool,
    /// Whether ports are asked for of whatever protocol there is.
    any_ports: bool,
}

/// Why conditions are no list of boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Two conditions on a column meet in no range, prefix or mask.
    Mixed(Part),
    /// There are more boxes than the limit.
    TooMany,
    /// Ports are asked for where the protocol need not have any.
    NoPorts,
}

/// The protocols whose headers begin with two ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
pub(crate) const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

impl Conditions {
    /// No condition: all packets fit.
    pub(crate) fn new(family: AddressFamily) -> Self {
        Self { family, all: Vec::new(), never: false, header: false, any_ports: false }
    }

    /// No packet can fit.
    pub(crate) fn never(&mut self) {
        self.never = true;
    }

    /// The rule looks into the header of TCP, UDP, ICMP or the like: no later fragment fits, whatever is
    /// asked and however it is turned round.
    pub(crate) fn header(&mut self) {
        self.header = true;
    }

    /// Whether nothing but later fragments is asked for a header that they have not.
    pub(crate) fn asks_later_fragments(&self) -> bool {
        let later = |alternative: &Vec<(Part, Set)>| alternative.contains(&(Part::Fragment, Set::exact(1)));
        self.header && self.all.iter().any(|each| !each.is_empty() && each.iter().all(later))
    }

    /// The rule looks for ports in whatever header there is; it must say besides that the protocol is one
    /// with ports.
    pub(crate) fn any_ports(&mut self) {
        (self.header, self.any_ports) = (true, true);
    }

    /// The column holds one of the set, or one outside of it.
    pub(crate) fn is(&mut self, set: Set, part: Part, not: bool) {
        self.one_of(&[set], &[part], not);
    }

    /// One of the columns holds one of the sets, or no column one of any.
    pub(crate) fn one_of(&mut self, sets: &[Set], parts: &[Part], not: bool) {
        if !not {
            let each = parts.iter().flat_map(|part| sets.iter().map(|set| vec![(*part, *set)]));
            self.all.push(each.collect());
            return;
        }
        for part in parts {
            for set in sets {
                let outside = set.complement(part.width(self.family));
                self.all.push(outside.into_iter().map(|set| vec![(*part, set)]).collect());
            }
        }
    }

    /// One of the alternatives holds, or none of them.
    pub(crate) fn any_of(&mut self, alternatives: Vec<Vec<(Part, Set)>>, not: bool) {
        if !not {
            self.all.push(alternatives);
            return;
        }
        for alternative in alternatives {
            let outside = |(part, set): (Part, Set)| {
                let outside = set.complement(part.width(self.family));
                outside.into_iter().map(move |set| vec![(part, set)])
            };
            self.all.push(alternative.into_iter().flat_map(outside).collect());
        }
    }

    /// The same as a condition of a policy.
    pub(crate) fn condition(&self) -> RuleCondition {
        if self.never {
            return RuleCondition::Any(Vec::new());
        }
        let header = self.header.then(|| holds(self.family, Part::Fragment, Set::exact(0)));
        let all = self.all.iter().map(|alternatives| any_of(self.family, alternatives));
        RuleCondition::All(header.into_iter().chain(all).collect())
    }

    /// The boxes in which all conditions hold, at most `limit`.
    pub(crate) fn regions(&self, limit: usize) -> Result<Vec<Region>, Fault> {
        let mut regions = vec![Region::any(self.family)];
        if self.header {
            regions = vec![Region::any(self.family).with(Part::Fragment, Set::exact(0))];
        }
        if self.never {
            regions.clear();
        }
        // Conditions without a choice first, so that what they rule out is not tried again and again.
        let mut order: Vec<&Vec<Vec<(Part, Set)>>> = self.all.iter().collect();
        order.sort_by_key(|alternatives| alternatives.len());
        for alternatives in order {
            let mut narrowed = Vec::new();
            for region in &regions {
                for alternative in alternatives {
                    if let Some(region) = both(region, alternative)? {
                        narrowed.push(region);
                    }
                    if narrowed.len() > limit {
                        return Err(Fault::TooMany);
                    }
                }
            }
            regions = narrowed;
        }
        let has_ports = |region: &Region| {
            let protocol = region.set(Part::Protocol);
            protocol.is_some_and(|set| WITH_PORTS.iter().any(|own| set == Set::exact((*own).into())))
        };
        if self.any_ports && !regions.iter().all(has_ports) {
            return Err(Fault::NoPorts);
        }
        Ok(regions)
    }
}

/// One of the alternatives; those that ask one column alone are one condition for each column.
fn any_of(family: AddressFamily, alternatives: &[Vec<(Part, Set)>]) -> RuleCondition {
    let mut any: Vec<RuleCondition> = Vec::new();
    for alternative in alternatives {
        let mut all: Vec<RuleCondition> =
            alternative.iter().map(|(part, set)| holds(family, *part, *set)).collect();
        match (all.pop(), any.last_mut()) {
            (Some(RuleCondition::Holds(field, values)), Some(RuleCondition::Holds(own, more)))
                if all.is_empty() && field == *own =>
            {
                more.extend(values);
            }
            (Some(one), _) if all.is_empty() => any.push(one),
            (last, _) => any.push(RuleCondition::All(all.into_iter().chain(last).collect())),
        }
    }
    match any.pop() {
        Some(one) if any.is_empty() => one,
        last => RuleCondition::Any(any.into_iter().chain(last).collect()),
    }
}

/// The packet has one of these in a column.
fn holds(family: AddressFamily, part: Part, set: Set) -> RuleCondition {
    let values = vec![values(family, part, set)];
    part.field().map_or(RuleCondition::Any(Vec::new()), |field| RuleCondition::Holds(field, values))
}

/// The packet is in one of these states.
pub(crate) fn in_states(states: &[State]) -> RuleCondition {
    let values = states.iter().map(|state| Values::exact(*state as u128)).collect();
    RuleCondition::Holds(PacketField::State, values)
}

/// The values of a field that a set of a column means: addresses of IPv4 are among those of IPv6.
pub(crate) fn values(family: AddressFamily, part: Part, set: Set) -> Values {
    let mapped = family == AddressFamily::V4 && matches!(part, Part::Source | Part::Destination);
    match (set.into(), mapped) {
        (Values::Range { low, high }, true) => Values::Range { low: MAPPED | low, high: MAPPED | high },
        (Values::Masked { value, mask }, true) => {
            Values::Masked { value: MAPPED | value, mask: u128::MAX << 32 | mask }
        }
        (values, false) => values,
    }
}

fn both(region: &Region, alternative: &[(Part, Set)]) -> Result<Option<Region>, Fault> {
    let mut region = region.clone();
    for (part, set) in alternative {
        match region.narrowed(*part, *set).map_err(|_| Fault::Mixed(*part))? {
            Some(narrowed) => region = narrowed,
            None => return Ok(None),
        }
    }
    Ok(Some(region))
}

/// What the names of interfaces in a file mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Ports. A name that is not among these is refused where it stands, and `eth+` or `eth*` means those
    /// among them that start so.
    Ports(Vec<(String, u16)>),
    /// Themselves: each has a number that stands for it and means nothing else. `eth+` or `eth*` means those
    /// among these that start so, and is refused if there are none.
    Themselves(Vec<String>),
}

/// The names of interfaces and the numbers that stand for them.
#[derive(Debug)]
pub(crate) struct Interfaces {
    names: Vec<(String, u16)>,
    /// How many the caller named; if any, they are all that there are.
    named: usize,
    bound: bool,
}

/// Why a name has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// The caller bound other names to ports, and not this one.
    Unbound,
    /// It means all names that start so, and it is not known which there are.
    Unknown,
    /// There are more names than numbers.
    TooMany,
}

impl Unnamed {
    /// What is wrong with a name, and what to do.
    pub(crate) fn words(self, name: &str) -> (String, &'static str) {
        let name = shown(name);
        match self {
            Self::Unbound => (
                format!("the interface `{name}` is bound to no port"),
                "say which port it is where the file is named: `interfaces { \"eth0\" = 1 }` in a program, \
                 `interfaces = { eth0 = 1 }` in a gateway's file, `--interface eth0=1` on a command line",
            ),
            Self::Unknown => (
                format!("`{name}` means all interfaces whose names start so"),
                "say which interfaces there are: `--interface NAME`, once for each",
            ),
            Self::TooMany => {
                ("the file names more than 65,535 interfaces".to_owned(), "leave out those that are not used")
            }
        }
    }
}

impl Interfaces {
    pub(crate) fn new(naming: &Naming) -> Self {
        match naming {
            Naming::Ports(names) => Self { names: names.clone(), named: names.len(), bound: true },
            Naming::Themselves(names) => Self {
                names: (1..).zip(names).map(|(number, name)| (name.clone(), number)).collect(),
                named: names.len(),
                bound: false,
            },
        }
    }

    /// The same, with the loopback interface of Linux, unless its name is bound to a port.
    pub(crate) fn with_loopback(self) -> Self {
        let names = with_loopback(&self.names).map(|(name, port)| (name.to_owned(), port));
        let names: Vec<(String, u16)> = names.collect();
        Self { named: names.len(), names, ..self }
    }

    /// Hands the names to the rules.
    pub(crate) fn tell(self, rules: &mut ImportedRules) {
        (rules.interfaces, rules.bound) = (self.names, self.bound);
    }

    /// The set of one name.
    pub(crate) fn one(&mut self, name: &str) -> Result<Set, Unnamed> {
        if let Some((_, number)) = self.names.iter().find(|(own, _)| own == name) {
            return Ok(Set::exact((*number).into()));
        }
        if self.bound {
            return Err(Unnamed::Unbound);
        }
        let number = u16::try_from(self.names.len() + 1).map_err(|_| Unnamed::TooMany)?;
        self.names.push((name.to_owned(), number));
        Ok(Set::exact(number.into()))
    }

    /// The sets of all names that start so.
    pub(crate) fn starting(&self, start: &str) -> Result<Vec<Set>, Unnamed> {
        // `+` alone is every interface, named or not.
        if start.is_empty() {
            return Ok(vec![Set::Range { low: 0, high: u16::MAX.into() }]);
        }
        if self.named == 0 {
            return Err(if self.bound { Unnamed::Unbound } else { Unnamed::Unknown });
        }
        let names = self.names[..self.named].iter().filter(|(name, _)| name.starts_with(start));
        let mut numbers: Vec<u16> = names.map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() && self.bound {
            return Err(Unnamed::Unbound);
        }
        Ok(numbers.into_iter().map(|number| Set::exact(number.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_multiply_and_their_opposites_do_not_overlap() {
        let mut conditions = Conditions::new(AddressFamily::V4);
        let (one, two) = (Set::exact(1), Set::exact(2));
        conditions.any_of(vec![vec![(Part::SourcePort, one), (Part::DestinationPort, two)]], true);
        conditions.one_of(&[one, two], &[Part::SourcePort], false);
        let regions = conditions.regions(100).unwrap();
        // Source port 1 with any destination port but 2, or source port 2.
        let fits = |source: u128, destination: u128| {
            let meets = |region: &&Region| {
                let met = region.narrowed(Part::SourcePort, Set::exact(source)).unwrap();
                met.is_some_and(|met| {
                    met.narrowed(Part::DestinationPort, Set::exact(destination)).unwrap().is_some()
                })
            };
            regions.iter().any(|region| meets(&region))
        };
        assert!(!fits(1, 2) && fits(1, 3) && fits(2, 2) && !fits(3, 3));
        assert_eq!(conditions.regions(3), Err(Fault::TooMany));
    }

    #[test]
    fn names_are_those_that_somebody_bound_or_stand_for_themselves() {
        let port = |number: u128| Ok(Set::exact(number));
        let mut open = Interfaces::new(&Naming::Themselves(Vec::new()));
        assert_eq!(open.one("a"), open.one("a"));
        assert_ne!(open.one("a"), open.one("b"));
        assert_eq!(open.starting("a"), Err(Unnamed::Unknown));
        let mut named = Interfaces::new(&Naming::Themselves(vec!["b1".to_owned(), "b2".to_owned()]));
        assert!(named.one("b3").is_ok());
        assert_eq!(named.starting("b").unwrap().len(), 2);
        let ports = [("eth1", 2), ("eth0", 7), ("br0", 7)].map(|(name, port)| (name.to_owned(), port));
        let mut bound = Interfaces::new(&Naming::Ports(ports.to_vec()));
        assert_eq!((bound.one("eth0"), bound.one("eth1"), bound.one("br0")), (port(7), port(2), port(7)));
        assert_eq!(bound.one("eth2"), Err(Unnamed::Unbound));
        assert_eq!(bound.starting("eth").unwrap(), [Set::exact(2), Set::exact(7)]);
        assert_eq!(Interfaces::new(&Naming::Ports(Vec::new())).starting("eth"), Err(Unnamed::Unbound));
        assert_eq!(bound.starting("wlan"), Err(Unnamed::Unbound));
        assert_eq!(bound.starting("").unwrap(), [Set::Range { low: 0, high: 0xffff }]);
    }
}
