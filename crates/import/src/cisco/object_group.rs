//! Object groups: names for addresses, and for protocols with ports.
//!
//! ```text
//! object-group network hosts            object-group service web
//!  host 192.0.2.1                        tcp eq 80
//!  10.0.0.0 255.0.0.0                    tcp source gt 1023 eq 443
//!  range 10.1.0.1 10.1.0.9               icmp echo
//!  group-object others                   group-object others
//! ```
//!
//! Groups are read before the lists that use them. A group with a line that is not understood is refused
//! where a list uses it, at that line.

use super::entry::{Words, icmp, ip4, ports};
use crate::ImportError;
use crate::address::host_mask;
use crate::limits::{DEEPEST_GROUPS, MOST_GROUP_MEMBERS};
use crate::region::Set;
use crate::ruleset::Part;
use crate::services;
use crate::text::{Line, Word, shown};
use std::cell::Cell;
use std::collections::HashMap;

/// What a group of services has for one line: columns that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) parts: Vec<(Part, Set)>,
}

impl Service {
    /// Whether it asks for what later fragments have not.
    pub(super) fn looks_into_header(&self) -> bool {
        self.parts.iter().any(|(part, _)| Part::OF_TRANSPORT.contains(part))
    }

    /// What it asks of whole packets and first fragments, and of later ones if these have all of it.
    pub(super) fn of_whole_packets(&self) -> Vec<(Part, Set)> {
        let header = self.looks_into_header().then_some((Part::Fragment, Set::exact(0)));
        self.parts.iter().copied().chain(header).collect()
    }

    /// What it asks of later fragments, where it asks for something that these have not.
    pub(super) fn of_later_fragments(&self) -> Option<Vec<(Part, Set)>> {
        let others = self.parts.iter().filter(|(part, _)| !Part::OF_TRANSPORT.contains(part)).copied();
        self.looks_into_header().then(|| others.chain([(Part::Fragment, Set::exact(1))]).collect())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Network,
    Service,
}

#[derive(Debug)]
enum Member {
    Addresses(Set),
    Service(Service),
    /// Another group, and where it is named.
    Group(String, ImportError),
}

#[derive(Debug)]
struct Group {
    kind: Kind,
    members: Vec<Member>,
    /// The first line that is not understood.
    fault: Option<ImportError>,
}

/// The object groups of a configuration.
#[derive(Debug, Default)]
pub(super) struct ObjectGroups {
    groups: HashMap<String, Group>,
    /// The group whose lines are being read.
    open: Option<String>,
    /// How many members lists have been given so far.
    given: Cell<usize>,
}

impl ObjectGroups {
    /// Reads a line, if it begins a group or belongs to one.
    pub(super) fn line(&mut self, line: Line<'_>, words: &[Word<'_>]) {
        let [first, rest @ ..] = words else { return };
        if first.text.starts_with('!') {
            return;
        }
        if first.text.eq_ignore_ascii_case("object-group") {
            self.open = self.begin(*first, rest);
            return;
        }
        if let (Some(second), true) = (rest.first(), matches!(first.text, "no" | "default"))
            && second.text.eq_ignore_ascii_case("object-group")
        {
            self.open = None;
            self.take_away(*first, &rest[1..]);
            return;
        }
        let Some(group) = self.open.as_ref().and_then(|name| self.groups.get_mut(name)) else { return };
        match member(line, words, group.kind) {
            Ok(member) => group.members.extend(member),
            // A line that is neither indented nor a member ends the group.
            Err(_) if !line.text.starts_with([' ', '\t']) && !is_member(first.text) => self.open = None,
            Err(error) => drop(group.fault.get_or_insert(error)),
        }
    }

    fn begin(&mut self, first: Word<'_>, rest: &[Word<'_>]) -> Option<String> {
        let [kind, name, behind @ ..] = rest else { return None };
        let kind = match kind.text {
            "network" => Kind::Network,
            "service" => Kind::Service,
            _ => return None,
        };
        let group = self.groups.entry(name.text.to_owned()).or_insert(Group {
            kind,
            members: Vec::new(),
            fault: None,
        });
        let more = behind.first().map(|word| word.too_many("a group starts with `object-group KIND NAME`"));
        let other = (group.kind != kind).then(|| {
            first.error(format!("the group `{}` is of another kind above", shown(name.text)), "use two names")
        });
        group.fault = group.fault.take().or(more).or(other);
        Some(name.text.to_owned())
    }

    /// `no object-group KIND NAME`: the group goes, and one of this name begins anew.
    fn take_away(&mut self, first: Word<'_>, rest: &[Word<'_>]) {
        let named = rest.iter().map(|word| word.text).find(|name| self.groups.contains_key(*name));
        let Some((name, group)) = named.and_then(|name| Some((name, self.groups.get_mut(name)?))) else {
            return;
        };
        let kind = if group.kind == Kind::Network { "network" } else { "service" };
        if first.text == "no" && rest.iter().map(|word| word.text).eq([kind, name]) {
            self.groups.remove(name);
            return;
        }
        let what = format!("the group `{}` is of another kind, or not taken away as a whole", shown(name));
        group.fault.get_or_insert(first.error(what, format!("write `no object-group {kind} NAME`")));
    }

    /// The addresses of a group.
    pub(super) fn addresses(&self, name: Word<'_>) -> Result<Vec<Set>, ImportError> {
        let members = self.members(name, Kind::Network)?;
        Ok(members
            .into_iter()
            .filter_map(|member| if let Member::Addresses(set) = member { Some(*set) } else { None })
            .collect())
    }

    /// The services of a group.
    pub(super) fn services(&self, name: Word<'_>) -> Result<Vec<Service>, ImportError> {
        let members = self.members(name, Kind::Service)?;
        let service = |member: &Member| {
            if let Member::Service(service) = member { Some(service.clone()) } else { None }
        };
        Ok(members.into_iter().filter_map(service).collect())
    }

    /// The members of a group, and of those that it names.
    fn members(&self, name: Word<'_>, kind: Kind) -> Result<Vec<&Member>, ImportError> {
        let missing = |name: &str| format!("there is no object group `{}`", shown(name));
        let unknown =
            name.error(missing(name.text), "define it in the same file, or name the addresses here");
        let (mut members, mut open) = (Vec::new(), vec![(name.text, unknown, Vec::new())]);
        while let Some((next, unknown, way)) = open.pop() {
            let Some(group) = self.groups.get(next) else { return Err(unknown) };
            if let Some(fault) = &group.fault {
                return Err(fault.clone());
            }
            if group.kind != kind {
                let what = format!("the object group `{}` is of the other kind", shown(next));
                return Err(ImportError { what, ..unknown });
            }
            if way.len() == DEEPEST_GROUPS {
                let what = format!("object groups name each other more than {DEEPEST_GROUPS} deep");
                return Err(ImportError { what, ..unknown });
            }
            if way.contains(&next) {
                let what = format!("the object group `{}` holds itself", shown(next));
                return Err(ImportError { what, ..unknown });
            }
            if group.members.is_empty() {
                let what = format!("the object group `{}` is empty", shown(next));
                return Err(ImportError { what, ..unknown });
            }
            for member in &group.members {
                match member {
                    Member::Group(inner, place) => {
                        let unknown = ImportError { what: missing(inner), ..place.clone() };
                        open.push((inner, unknown, way.iter().copied().chain([next]).collect()));
                    }
                    plain => members.push(plain),
                }
            }
            if members.len() + open.len() + self.given.get() > MOST_GROUP_MEMBERS {
                // Later lines are refused at once.
                self.given.set(MOST_GROUP_MEMBERS);
                let what = format!("lists use more than {MOST_GROUP_MEMBERS} members of object groups");
                return Err(name.error(what, "use smaller groups"));
            }
        }
        self.given.set(self.given.get() + members.len());
        Ok(members)
    }
}

/// Whether a word begins a member of a group even if the line is not indented.
fn is_member(word: &str) -> bool {
    matches!(
        word,
        "host" | "range" | "group-object" | "description" | "any" | "tcp" | "udp" | "tcp-udp" | "icmp" | "no"
    ) || word.starts_with(|first: char| first.is_ascii_digit())
}

/// A mask of ones before zeros. In groups a one is a bit that is compared, other than in lists.
fn network_mask(word: Word<'_>) -> Result<u128, ImportError> {
    let mask = ip4(word, "write a mask such as 255.255.255.0")?;
    let zeros = host_mask(32, 0) & !mask;
    if zeros & (zeros + 1) != 0 {
        let what = format!("`{}` is no mask of a network", shown(word.text));
        return Err(word.error(what, "write one such as 255.255.255.0; a one is a bit that is compared"));
    }
    Ok(mask)
}

/// What a line of a group adds; nothing for a description.
fn member(line: Line<'_>, words: &[Word<'_>], kind: Kind) -> Result<Vec<Member>, ImportError> {
    const ADVICE: &str = "write `host ADDRESS`, `ADDRESS MASK`, `range FIRST LAST` or `group-object NAME`";
    let mut words = Words::new(line, words);
    let first = words.next("a member")?;
    let members = match (first.text, kind) {
        ("description", _) => return Ok(Vec::new()),
        ("group-object", _) => {
            let name = words.next("the name of the group")?;
            vec![Member::Group(name.text.to_owned(), name.error("", "define it in the same file"))]
        }
        ("any", Kind::Network) => vec![Member::Addresses(Set::prefix(32, 0, 0))],
        ("host", Kind::Network) => {
            vec![Member::Addresses(Set::exact(ip4(words.next("the address of the host")?, ADVICE)?))]
        }
        ("range", Kind::Network) => {
            let low = ip4(words.next("the first address")?, ADVICE)?;
            let last = words.next("the last address")?;
            let high = ip4(last, ADVICE)?;
            if low > high {
                return Err(last.error("the range is empty", "write the smaller address first"));
            }
            vec![Member::Addresses(Set::Range { low, high })]
        }
        (_, Kind::Network) => {
            let (address, length) =
                first.split('/').map_or((first, None), |(address, length)| (address, Some(length)));
            let address = ip4(address, ADVICE)?;
            let mask = match length {
                Some(length) => {
                    !host_mask(32, length.number(32, "length of a prefix")? as u8) & host_mask(32, 0)
                }
                None => network_mask(words.next("the mask")?)?,
            };
            vec![Member::Addresses(Set::masked(32, address & mask, mask))]
        }
        (_, Kind::Service) => services_of(first, &mut words)?,
    };
    match words.ahead() {
        Some(word) => Err(word.too_many(ADVICE)),
        None => Ok(members),
    }
}

/// The services of a line: protocol, source ports, destination ports or a message of ICMP.
fn services_of(name: Word<'_>, words: &mut Words<'_, '_>) -> Result<Vec<Member>, ImportError> {
    let protocols: Vec<Option<u8>> = match name.text {
        "ip" => vec![None],
        "tcp-udp" => vec![Some(6), Some(17)],
        text => {
            let number = services::protocol(text)
                .map_or_else(|| name.number(255, "protocol").map(|number| number as u8), Ok)?;
            vec![Some(number)]
        }
    };
    let message = icmp(words, protocols == [Some(1)])?;
    let any = || vec![None];
    let some = |sets: Vec<Set>| sets.into_iter().map(Some).collect::<Vec<Option<Set>>>();
    let mut sources = any();
    if words.ahead().is_some_and(|word| word.text == "source") {
        let word = words.next("`source`")?;
        let sets = plain_ports(words, protocols[0])?;
        sources = some(
            sets.ok_or_else(|| word.error("`source` stands before no ports", "write `source eq PORT`"))?,
        );
    }
    let targets = plain_ports(words, protocols[0])?.map_or_else(any, some);
    let mut members = Vec::new();
    for protocol in &protocols {
        for source in &sources {
            for target in &targets {
                let mut parts: Vec<(Part, Set)> = Vec::new();
                parts.extend(protocol.map(|protocol| (Part::Protocol, Set::exact(protocol.into()))));
                parts.extend(source.map(|set| (Part::SourcePort, set)));
                parts.extend(target.map(|set| (Part::DestinationPort, set)));
                parts.extend(message.iter().flatten().copied());
                members.push(Member::Service(Service { parts }));
            }
        }
    }
    Ok(members)
}

/// The ports of a service; `eq` may be left out.
fn plain_ports(words: &mut Words<'_, '_>, protocol: Option<u8>) -> Result<Option<Vec<Set>>, ImportError> {
    if let Some(sets) = ports(words, protocol)? {
        return Ok(Some(sets));
    }
    let Some(word) = words.ahead().filter(|_| matches!(protocol, Some(6 | 17))) else { return Ok(None) };
    let named = services::port(word.text, protocol).map(u128::from);
    let port = named.or_else(|| word.number(0xffff, "port").ok().map(u128::from));
    if port.is_some() {
        words.next("the port")?;
    }
    Ok(port.map(|port| vec![Set::exact(port)]))
}
