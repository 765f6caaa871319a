//! The `match` statements of a rule as conditions on columns.

use super::ChainOptions;
use super::document::{Source, flatten};
use super::operands::{self, Refusal, Sets, ends, is_fragment_offset, is_not, is_order, names};
use super::value;
use crate::ImportError;
use crate::address::AddressFamily;
use crate::conditions::{Conditions, Fault, Interfaces};
use crate::region::{Region, Set};
use crate::ruleset::Part;
use crate::text::shown;
use policy::State;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a match looks at.
enum Left {
    /// A column, of which all bits count or those of a mask.
    Column { part: Part, needs: Option<u8>, mask: Option<u128> },
    /// How far behind the packet's start a piece of it begins; of IPv6, where the packet is one.
    FragmentOffset { may_be_whole: bool },
    /// A header that no packet of the family has.
    Absent,
    /// The family of the packet's addresses, or the number of its protocol behind Ethernet.
    Family { of_ethernet: bool },
    /// The state of the connection.
    State,
}

/// Reads matches.
pub(super) struct Matcher<'a> {
    source: Source<'a>,
    options: &'a ChainOptions,
    sets: &'a Sets,
    interfaces: Interfaces,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(source: Source<'a>, options: &'a ChainOptions, sets: &'a Sets) -> Self {
        Self { source, options, sets, interfaces: Interfaces::new(&options.interfaces) }
    }

    pub(super) fn into_interfaces(self) -> Interfaces {
        self.interfaces
    }

    pub(super) fn conditions(&self) -> Conditions {
        Conditions::new(self.options.family)
    }

    /// The boxes in which all conditions of a rule hold.
    pub(super) fn regions(
        &self,
        rule: &RawValue,
        conditions: &Conditions,
    ) -> Result<Vec<Region>, ImportError> {
        if conditions.asks_later_fragments() {
            let what = "the rule looks for ports, types or flags in later fragments, which have none: the kernel compares other bytes";
            return Err(self.source.error(rule, what, "leave out one of both"));
        }
        conditions.regions(self.options.limit).map_err(|fault| match fault {
            Fault::Mixed(part) => {
                let what = format!("two matches on {} meet in no range, prefix or mask", part.name());
                self.source.error(rule, what, "write them as one")
            }
            Fault::TooMany => {
                let what = format!("the rule makes more than {} rules", self.options.limit);
                self.source.error(rule, what, "split the rule")
            }
            Fault::NoPorts => {
                let what = "the rule asks for ports where the protocol need not have any";
                self.source.error(
                    rule,
                    what,
                    "ask for `tcp dport` and the like, or for `meta l4proto { tcp, udp }` besides",
                )
            }
        })
    }

    /// Adds the condition of a `match` statement.
    pub(super) fn add(
        &mut self,
        statement: &RawValue,
        body: &Value,
        conditions: &mut Conditions,
    ) -> Result<(), ImportError> {
        self.condition(body, conditions).map_err(|Refusal { what, advice }| {
            let others = "a stateless rule sees addresses, protocol, ports, flags and interfaces only";
            self.source.error(statement, what, advice.unwrap_or(others))
        })
    }

    /// Adds what a `reject` asks besides: a message of ICMP is one of IPv4, one of ICMPv6 of IPv6, and a
    /// reset of TCP.
    pub(super) fn reject(
        &self,
        statement: &RawValue,
        body: &Value,
        conditions: &mut Conditions,
    ) -> Result<(), ImportError> {
        let is_v4 = self.options.family == AddressFamily::V4;
        match body.get("type").map(|kind| kind.as_str().unwrap_or("?")) {
            None | Some("icmpx") => {}
            Some("icmp") if is_v4 => {}
            Some("icmpv6") if !is_v4 => {}
            Some("icmp" | "icmpv6") => conditions.never(),
            Some("tcp reset") => conditions.is(Set::exact(6), Part::Protocol, false),
            Some(other) => {
                let what = format!("`reject with {}` is not known here", shown(other));
                return Err(self.source.error(
                    statement,
                    what,
                    "reject with icmp, icmpv6, icmpx or tcp reset",
                ));
            }
        }
        Ok(())
    }

    fn condition(&mut self, body: &Value, conditions: &mut Conditions) -> Result<(), Refusal> {
        let (operator, left, right) = operands::sides(body)?;
        if let Some(parts) = left.get("concat").and_then(Value::as_array) {
            return self.concatenation(operator, parts, right, conditions);
        }
        match self.left(left)? {
            Left::Family { of_ethernet } => {
                let names: &[&str] =
                    if of_ethernet { &["ip", "ip6", "arp", "vlan"] } else { &["ipv4", "ipv6"] };
                let own = usize::from(self.options.family == AddressFamily::V6);
                let mut fits = false;
                for value in operands::elements(right, self.sets)? {
                    let Some(name) =
                        value.as_str().and_then(|name| names.iter().position(|own| *own == name))
                    else {
                        return Refusal::new(format!(
                            "`{}` is no family that is known here",
                            shown(&value.to_string())
                        ));
                    };
                    fits |= name == own;
                }
                self.known(operator, fits, conditions)
            }
            Left::FragmentOffset { may_be_whole } => {
                // Behind the first piece, or not.
                let later = match (operator, right.as_u64()) {
                    ("!=" | ">", Some(0)) => true,
                    ("==", Some(0)) if may_be_whole => false,
                    _ => return Refusal::new("of a fragment's offset it is known only whether it is 0"),
                };
                conditions.is(Set::exact(later.into()), Part::Fragment, false);
                Ok(())
            }
            Left::State => {
                let values = operands::elements(right, self.sets)?;
                let known = |value: &Value| State::ALL.iter().any(|state| value == state.name());
                if !values.iter().flat_map(flatten).all(known) {
                    return Refusal::new("the match asks for a state that is not known here");
                }
                let fits = values.iter().flat_map(flatten).any(|value| value.as_str() == Some("new"));
                let operator = if operator == "!" { "!=" } else { operator };
                self.known(operator, fits, conditions)
            }
            Left::Absent => {
                conditions.never();
                Ok(())
            }
            Left::Column { part, needs, mask } => {
                need(needs, part, conditions);
                match mask {
                    Some(mask) => self.masked(operator, part, mask, right, conditions),
                    None => self.column(operator, part, right, conditions),
                }
            }
        }
    }

    fn masked(
        &self,
        operator: &str,
        part: Part,
        mask: u128,
        right: &Value,
        conditions: &mut Conditions,
    ) -> Result<(), Refusal> {
        let (family, not) = (self.options.family, is_not(operator)?);
        let mut sets = Vec::new();
        for value in operands::elements(right, self.sets)? {
            let Some(bits) = value::number(&value, part, family) else {
                return Refusal::new(format!("the value behind the mask on {} is no number", part.name()));
            };
            // Bits that are not looked at are zero for the kernel, so a value that has them never fits.
            if bits & !mask == 0 {
                sets.push(Set::masked(part.width(family), bits, mask));
            }
        }
        conditions.one_of(&sets, &[part], not);
        Ok(())
    }

    fn column(
        &mut self,
        operator: &str,
        part: Part,
        right: &Value,
        conditions: &mut Conditions,
    ) -> Result<(), Refusal> {
        if matches!(operator, "in" | "!") && part == Part::TcpFlags {
            let Some(flags) = value::number(right, part, self.options.family) else {
                return Refusal::new("these are no TCP flags");
            };
            // Any of the flags is set, or none.
            if operator == "!" {
                conditions.is(Set::masked(8, 0, flags), part, false);
                return Ok(());
            }
            let bits = (0..8).map(|bit| 1u128 << bit).filter(|bit| flags & bit != 0);
            let sets: Vec<Set> = bits.map(|bit| Set::masked(8, bit, bit)).collect();
            conditions.one_of(&sets, &[part], false);
            return Ok(());
        }
        if is_order(operator) {
            let value = value::number(right, part, self.options.family).filter(|_| !is_interface(part));
            let Some(value) = value else {
                return Refusal::new(format!("`{operator}` compares {} with no number", part.name()));
            };
            let most = crate::address::host_mask(part.width(self.options.family), 0);
            let Some((low, high)) = ends(operator, value, most) else {
                return Refusal::new(format!("no value of {} is `{operator}` {value}", part.name()));
            };
            conditions.is(Set::Range { low, high }, part, false);
            return Ok(());
        }
        let not = is_not(operator)?;
        let mut sets = Vec::new();
        for value in operands::elements(right, self.sets)? {
            sets.extend(self.sets_of(&value, part)?);
        }
        conditions.one_of(&sets, &[part], not);
        Ok(())
    }

    fn concatenation(
        &mut self,
        operator: &str,
        parts: &[Value],
        right: &Value,
        conditions: &mut Conditions,
    ) -> Result<(), Refusal> {
        let mut columns = Vec::new();
        for left in parts {
            match self.left(left)? {
                Left::Column { part, needs, mask: None } => {
                    need(needs, part, conditions);
                    columns.push(part);
                }
                Left::Absent => {
                    conditions.never();
                    return Ok(());
                }
                _ => return Refusal::new("a part of the concatenation is no column"),
            }
        }
        let mut alternatives = Vec::new();
        for value in operands::elements(right, self.sets)? {
            let values =
                value.get("concat").and_then(Value::as_array).filter(|values| values.len() == columns.len());
            let Some(values) = values else {
                return Refusal::new("an element of the concatenation has not its number of parts");
            };
            let mut partial: Vec<Vec<(Part, Set)>> = vec![Vec::new()];
            for (part, value) in columns.iter().zip(values) {
                let sets = self.sets_of(value, *part)?;
                partial = partial
                    .iter()
                    .flat_map(|before| {
                        sets.iter().map(|set| before.iter().copied().chain([(*part, *set)]).collect())
                    })
                    .collect();
            }
            alternatives.extend(partial);
        }
        conditions.any_of(alternatives, is_not(operator)?);
        Ok(())
    }

    /// A condition of which it is known whether it holds.
    fn known(&self, operator: &str, fits: bool, conditions: &mut Conditions) -> Result<(), Refusal> {
        if fits == is_not(operator)? {
            conditions.never();
        }
        Ok(())
    }

    fn left(&self, left: &Value) -> Result<Left, Refusal> {
        if let Some(sides) = left.get("&").and_then(Value::as_array) {
            let [inner, mask] = &sides[..] else { return Refusal::new("`&` has not two sides") };
            if is_fragment_offset(inner) && self.options.family == AddressFamily::V4 {
                // The three bits before it are flags.
                return match mask.as_u64() {
                    Some(0x1fff) => Ok(Left::FragmentOffset { may_be_whole: true }),
                    _ => Refusal::new(
                        "of `ip frag-off` the offset alone is known, as in `ip frag-off & 0x1fff`",
                    ),
                };
            }
            let (part, needs) = match self.left(inner)? {
                Left::Column { part, needs, mask: None } if !is_interface(part) => (part, needs),
                Left::Absent => return Ok(Left::Absent),
                _ => return Refusal::new("`&` stands behind something that is no column"),
            };
            return match value::number(mask, part, self.options.family) {
                Some(mask) => Ok(Left::Column { part, needs, mask: Some(mask) }),
                None => Refusal::new(format!("the mask on {} is no number", part.name())),
            };
        }
        if let Some(payload) = left.get("payload") {
            let (protocol, field) = names(payload, ["protocol", "field"]);
            return self.payload(protocol, field);
        }
        if let Some(key) = left.get("meta").and_then(|meta| meta.get("key")?.as_str()) {
            let column = |part| Ok(Left::Column { part, needs: None, mask: None });
            return match key {
                "l4proto" => column(Part::Protocol),
                "iifname" | "iif" => column(Part::InPort),
                "oifname" | "oif" => column(Part::OutPort),
                "nfproto" => Ok(Left::Family { of_ethernet: false }),
                "protocol" => Ok(Left::Family { of_ethernet: true }),
                _ => Refusal::new(format!("`meta {}` is something for which there is no column", shown(key))),
            };
        }
        if let Some(header) = left.get("exthdr") {
            return match names(header, ["name", "field"]) {
                _ if self.options.family == AddressFamily::V4 => Ok(Left::Absent),
                ("frag", "frag-off") => Ok(Left::FragmentOffset { may_be_whole: false }),
                (name, _) => Refusal::new(format!(
                    "`exthdr {}` is something for which there is no column",
                    shown(name)
                )),
            };
        }
        if left.get("ct").is_some() {
            let is_state = left.get("ct").and_then(|ct| ct.get("key")?.as_str()) == Some("state");
            return if is_state && self.options.first_packets {
                Ok(Left::State)
            } else {
                Refusal::new("the match asks what is known of the packet's connection")
            };
        }
        operands::unknown(left)
    }

    fn payload(&self, protocol: &str, field: &str) -> Result<Left, Refusal> {
        let (needs, family) = operands::header(protocol);
        if family.is_some_and(|family| family != self.options.family) {
            return Ok(Left::Absent);
        }
        let Some(part) = operands::column(protocol, field) else {
            let (protocol, field) = (shown(protocol), shown(field));
            return Refusal::new(format!("`{protocol} {field}` is something for which there is no column"));
        };
        Ok(Left::Column { part, needs, mask: None })
    }

    fn sets_of(&mut self, value: &Value, part: Part) -> Result<Vec<Set>, Refusal> {
        if is_interface(part) {
            let Some(name) = value.as_str() else {
                let what =
                    "an interface is known by its name alone; print the ruleset on the machine that has it";
                return Refusal::new(what);
            };
            let sets = match name.strip_suffix('*') {
                Some(start) => self.interfaces.starting(start),
                None => self.interfaces.one(name).map(|set| vec![set]),
            };
            return sets.map_err(|fault| {
                let (what, advice) = fault.words(name);
                Refusal { what, advice: Some(advice) }
            });
        }
        match value::set(value, part, self.options.family) {
            Some(set) => Ok(vec![set]),
            None => Refusal::new(format!("`{}` is no value of {}", shown(&value.to_string()), part.name())),
        }
    }
}

/// What looking at a column asks besides: its protocol, or one with ports, and that the packet is no later
/// fragment, which has no such header. (Linux without connection tracking compares whatever bytes a later
/// fragment has there.)
fn need(protocol: Option<u8>, part: Part, conditions: &mut Conditions) {
    if !Part::OF_TRANSPORT.contains(&part) {
        return;
    }
    conditions.header();
    match protocol {
        Some(protocol) => conditions.is(Set::exact(protocol.into()), Part::Protocol, false),
        None => conditions.any_ports(),
    }
}

fn is_interface(part: Part) -> bool {
    matches!(part, Part::InPort | Part::OutPort)
}
