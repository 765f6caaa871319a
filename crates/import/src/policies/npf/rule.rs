//! One rule of NPF: which packets it matches at the way in and out, and what happens to them.
//!
//! ```text
//! pass|block [return|return-rst|return-icmp] [stateful|stateful-all] [in|out] [final] [on IF]
//!     [family inet4|inet6] [proto P [flags F/M | icmp-type T [code C]]]
//!     all | [from [!] ADDRESSES [port PORTS]] [to [!] ADDRESSES [port PORTS]] [apply "PROCEDURE"]
//! ```

use super::Reader;
use super::variables::Element;
use crate::ImportError;
use crate::address::AddressFamily;
use crate::policies::endpoints::{
    Addresses, Answers, TCP, UDP, flags_are, flags_word, interface, is, of_family, port, port_range, prefix,
    protocol,
};
use crate::policies::words::{FilterWord, Kind, Statement};
use crate::services;
use crate::text::{parse_number, shown};
use policy::{PacketField, Reject, Remembers, RuleAction, RuleCondition, Values};

/// Which way packets go that a rule or a group is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) comes_in: bool,
    pub(super) goes_out: bool,
}

impl Direction {
    pub(super) fn read(statement: &mut Statement<'_, '_>) -> Self {
        if statement.takes("in") {
            return Self { comes_in: true, goes_out: false };
        }
        Self { comes_in: !statement.takes("out"), goes_out: true }
    }
}

/// A rule.
#[derive(Debug)]
pub(super) struct FilterRule {
    pub(super) direction: Direction,
    pub(super) interface: Option<u16>,
    pub(super) is_final: bool,
    pub(super) log: bool,
    /// Conditions that share no packet, and what happens to the packets of each.
    pub(super) parts: Vec<(RuleCondition, RuleAction)>,
}

/// The words that stand in a rule, in their order, for errors.
const ORDER: &str = "a rule is: pass or block, stateful, in or out, final, on, family, proto, then all or from … to …, \
                     and apply at the end";

/// Names of ICMP's types as NetBSD has them.
const ICMP_TYPES: [(&str, u8); 16] = [
    ("echoreply", 0),
    ("unreach", 3),
    ("sourcequench", 4),
    ("redirect", 5),
    ("echo", 8),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("timxceed", 11),
    ("paramprob", 12),
    ("timestamp", 13),
    ("timestampreply", 14),
    ("inforeq", 15),
    ("inforeqreply", 16),
    ("maskreq", 17),
    ("maskreply", 18),
    ("photuris", 40),
];

/// What a rule has asked so far.
#[derive(Debug, Default)]
struct Asked {
    family: Option<AddressFamily>,
    protocol: Option<u8>,
    /// Whether TCP's flags are asked for.
    flags: bool,
    ports: bool,
    conditions: Vec<RuleCondition>,
}

pub(super) fn read<'a>(
    statement: &mut Statement<'_, 'a>,
    reader: &mut Reader<'a>,
) -> Result<FilterRule, ImportError> {
    let passes = statement.next().is("pass");
    let answers = if passes { Answers::default() } else { answers(statement) };
    let word = statement.peek();
    let stateful = if statement.takes("stateful") {
        Some(Remembers::KeptAtPort)
    } else {
        statement.takes("stateful-all").then_some(Remembers::Kept)
    };
    if let (true, Some(remembers)) = (passes, stateful) {
        reader.remember(remembers, &word)?;
    }
    let direction = Direction::read(statement);
    let is_final = statement.takes("final") || statement.takes("quick");
    let interface = if statement.takes("on") { Some(on_interface(statement, reader)?) } else { None };
    if statement.peek().is("pcap-filter") {
        return Err(statement.next().error(
            "`pcap-filter` is a language of its own, which is not read here",
            "say it with proto, from, to and port",
        ));
    }
    let mut asked = Asked::default();
    if statement.takes("family") {
        asked.family = Some(family(statement)?);
    }
    if statement.takes("proto") {
        asked.protocol(statement, reader)?;
    }
    asked.endpoints(statement, reader)?;
    let log = statement.takes("apply") && reader.procedure(statement)?;
    statement.finish(ORDER)?;
    let condition = asked.condition(stateful.is_some());
    let parts = match (passes, stateful) {
        (true, Some(_)) => vec![(condition, RuleAction::Keep)],
        (true, None) => vec![(condition, RuleAction::Pass)],
        (false, _) => answers.of(&condition),
    };
    Ok(FilterRule { direction, interface, is_final, log, parts })
}

fn answers(statement: &mut Statement<'_, '_>) -> Answers {
    let (tcp, udp) = (Some(Reject::TcpReset), Answers::PROHIBITED);
    if statement.takes("return") {
        Answers { tcp, udp, others: None }
    } else if statement.takes("return-rst") {
        Answers { tcp, ..Answers::default() }
    } else if statement.takes("return-icmp") {
        Answers { udp, ..Answers::default() }
    } else {
        Answers::default()
    }
}

/// The port of the interface behind `on`.
pub(super) fn on_interface<'a>(
    statement: &mut Statement<'_, 'a>,
    reader: &mut Reader<'a>,
) -> Result<u16, ImportError> {
    let first = statement.peek();
    match reader.variables.elements(statement)?[..] {
        [Element::Word(word)] if word.kind != Kind::Table => interface(&word, reader.bound),
        [Element::OfInterface(word)] => interface(&word, reader.bound),
        _ => Err(first.error(format!("{} is not one interface", first.shown()), "name one behind `on`")),
    }
}

fn family(statement: &mut Statement<'_, '_>) -> Result<AddressFamily, ImportError> {
    let word = statement.next();
    match word.text {
        "inet4" => Ok(AddressFamily::V4),
        "inet6" => Ok(AddressFamily::V6),
        _ => Err(word.error(format!("{} is no family", word.shown()), "write inet4 or inet6")),
    }
}

impl Asked {
    fn protocol<'a>(
        &mut self,
        statement: &mut Statement<'_, 'a>,
        reader: &mut Reader<'a>,
    ) -> Result<(), ImportError> {
        let word = statement.name("protocol")?;
        let number = protocol(&word)?;
        self.protocol = Some(number);
        self.conditions.push(is(PacketField::Protocol, number.into()));
        if number == TCP && statement.takes("flags") {
            let (set, mask) = flags_word(&statement.name("set of flags")?, true)?;
            self.conditions.push(flags_are(set, mask));
            self.flags = true;
        }
        if matches!(number, 1 | 58) && statement.takes("icmp-type") {
            let word = one(statement, reader)?;
            let names = |name: &str| {
                let own =
                    ICMP_TYPES.iter().find(|(own, _)| *own == name && number == 1).map(|(_, kind)| *kind);
                own.or_else(|| match services::icmp(name, number == 58)? {
                    (kind, None) => Some(kind),
                    _ => None,
                })
            };
            self.conditions.push(is(PacketField::IcmpType, octet(&word, "type of ICMP", names)?));
            if statement.takes("code") {
                let word = one(statement, reader)?;
                self.conditions.push(is(PacketField::IcmpCode, octet(&word, "code of ICMP", |_| None)?));
            }
        }
        Ok(())
    }

    fn endpoints<'a>(
        &mut self,
        statement: &mut Statement<'_, 'a>,
        reader: &mut Reader<'a>,
    ) -> Result<(), ImportError> {
        if statement.takes("all") {
            return Ok(());
        }
        let fields = [
            ("from", PacketField::Source, PacketField::SourcePort),
            ("to", PacketField::Destination, PacketField::DestinationPort),
        ];
        let mut any = false;
        for (keyword, address_field, port_field) in fields {
            if statement.takes(keyword) {
                any = true;
                self.addresses(statement, reader, address_field)?;
                if statement.peek().is("port") {
                    self.ports(statement, reader, port_field)?;
                }
            }
        }
        if any {
            return Ok(());
        }
        let next = statement.peek();
        Err(next.error(format!("{} stands where all, from or to is due", next.shown()), ORDER))
    }

    fn addresses<'a>(
        &mut self,
        statement: &mut Statement<'_, 'a>,
        reader: &mut Reader<'a>,
        field: PacketField,
    ) -> Result<(), ImportError> {
        let not = statement.takes_mark("!");
        let first = statement.peek();
        if statement.takes("any") {
            if not {
                return Err(first.error("`! any` matches no packet", "leave the rule out"));
            }
            return Ok(());
        }
        let elements = reader.variables.elements(statement)?;
        let tables = elements.iter().filter(|element| element.word().kind == Kind::Table).count();
        if tables > 0 && tables < elements.len() {
            let what = "NPF takes addresses or tables in one place of a rule, not both";
            return Err(first.error(what, "write two rules, or a table of all"));
        }
        let mut addresses = Addresses::default();
        for element in &elements {
            let word = element.word();
            match element {
                Element::OfInterface(_) => {
                    let what = format!("the addresses of the interface {} are not known here", word.shown());
                    return Err(word.error(what, "write the addresses"));
                }
                Element::Word(_) if word.kind == Kind::Table => addresses.append(reader.table(&word)?),
                Element::Word(_) => {
                    let read = prefix(&word)?;
                    // Without a bit to compare NPF does not look at the address.
                    if read.2 == 0 {
                        self.everything(&word, not || elements.len() > 1, read.0)?;
                        return Ok(());
                    }
                    self.is_of(read.0, &word)?;
                    reader.ranges.take(1, &word)?;
                    addresses.add(read);
                }
            }
        }
        let holds = addresses.holds(field);
        self.conditions.push(holds.turned(not));
        Ok(())
    }

    fn everything(
        &mut self,
        word: &FilterWord<'_>,
        is_part: bool,
        family: AddressFamily,
    ) -> Result<(), ImportError> {
        if is_part {
            let what =
                format!("NPF does not compare {}, so that the list means something else", word.shown());
            return Err(word.error(what, "write `any` alone, or leave it out"));
        }
        if self.family.is_some_and(|own| own != family) {
            return Err(wrong_family(word, family));
        }
        Ok(())
    }

    /// The rule is about packets of the family of an address.
    fn is_of(&mut self, family: AddressFamily, word: &FilterWord<'_>) -> Result<(), ImportError> {
        match self.family {
            Some(own) if own != family => Err(wrong_family(word, family)),
            _ => {
                self.family = Some(family);
                Ok(())
            }
        }
    }

    fn ports<'a>(
        &mut self,
        statement: &mut Statement<'_, 'a>,
        reader: &mut Reader<'a>,
        field: PacketField,
    ) -> Result<(), ImportError> {
        let keyword = statement.next();
        if !matches!(self.protocol, None | Some(TCP | UDP)) {
            let what = "NPF knows ports of TCP and UDP only";
            return Err(keyword.error(what, "write `proto tcp`, `proto udp`, or no protocol"));
        }
        let mut values = Vec::new();
        for element in reader.variables.elements(statement)? {
            let word = element.word();
            values.push(match (element, word.text.split_once('-')) {
                (Element::Word(_), Some((low, high))) if word.kind == Kind::Plain => {
                    port_range(port(low, &word)?, port(high, &word)?, &word)?
                }
                (Element::Word(_), _) if word.kind != Kind::Table => {
                    Values::exact(port(word.text, &word)?.into())
                }
                _ => return Err(word.error(format!("{} is no port", word.shown()), "write a port")),
            });
        }
        reader.ranges.take(values.len(), &keyword)?;
        self.ports = true;
        self.conditions.push(RuleCondition::Holds(field, values));
        Ok(())
    }

    /// Which packets the rule matches.
    fn condition(self, stateful: bool) -> RuleCondition {
        let mut all: Vec<RuleCondition> = self.family.map(of_family).into_iter().collect();
        if self.ports && self.protocol.is_none() {
            let with_ports = [TCP, UDP].map(|number| Values::exact(number.into())).to_vec();
            all.push(RuleCondition::Holds(PacketField::Protocol, with_ports));
        }
        all.extend(self.conditions);
        // A connection of TCP begins with a SYN, and so does what a stateful rule matches: flags S/SAFR.
        if stateful && !self.flags && matches!(self.protocol, None | Some(TCP)) {
            let begins = flags_are(0b0_0010, 0b1_0111);
            all.push(match self.protocol {
                Some(_) => begins,
                None => RuleCondition::Any(vec![
                    RuleCondition::Not(Box::new(is(PacketField::Protocol, TCP.into()))),
                    begins,
                ]),
            });
        }
        RuleCondition::All(all)
    }
}

fn wrong_family(word: &FilterWord<'_>, family: AddressFamily) -> ImportError {
    let what =
        format!("{} is an address of {} in a rule about the other family", word.shown(), family.name());
    word.error(what, "write a rule for each family")
}

/// One element, which may be a variable.
fn one<'a>(
    statement: &mut Statement<'_, 'a>,
    reader: &mut Reader<'a>,
) -> Result<FilterWord<'a>, ImportError> {
    let first = statement.peek();
    match reader.variables.elements(statement)?[..] {
        [Element::Word(word)] => Ok(word),
        _ => Err(first.error(format!("{} is not one value", first.shown()), "write one")),
    }
}

fn octet(word: &FilterWord<'_>, what: &str, names: impl Fn(&str) -> Option<u8>) -> Result<u128, ImportError> {
    let number = parse_number(word.text).and_then(|number| u8::try_from(number).ok());
    number.or_else(|| names(word.text)).map(u128::from).ok_or_else(|| {
        word.error(format!("`{}` is no {what} that is known here", shown(word.text)), "write its number")
    })
}
