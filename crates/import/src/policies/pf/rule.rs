//! One rule of pf: which packets it matches, and what happens to them.
//!
//! ```text
//! pass | match | block [drop|return|return-rst|return-icmp|return-icmp6]
//!     [in|out] [log] [quick] [on [!] IF] [inet|inet6] [proto P]
//!     [all | [from HOSTS [port PORTS]] [to HOSTS [port PORTS]]]
//!     [flags F/M | flags any] [icmp-type T [code C]] [keep state | modulate state | no state] [label "…"]
//! ```

use super::Reader;
use super::hosts::{FAMILIES, Families, addresses, ports};
use super::icmp;
use super::lists::each;
use crate::ImportError;
use crate::address::AddressFamily;
use crate::policies::endpoints::{
    Answers, LOOPBACK_OF_BSD, TCP, UDP, flags_are, flags_word, interface, is, of_family, protocol, with,
};
use crate::policies::words::{FilterWord, Kind, Statement};
use crate::text::shown;
use policy::{LOOPBACK_NAME, PacketField, Reject, RuleAction, RuleCondition, Unreachable, Values};

/// The interfaces of a rule: one of them, or any but it.
pub(super) type Interfaces = Vec<(bool, u16)>;

/// A rule, or the first line of an anchor.
#[derive(Debug)]
pub(super) struct FilterRule {
    pub(super) comes_in: bool,
    pub(super) goes_out: bool,
    pub(super) log: bool,
    pub(super) quick: bool,
    /// None for any interface.
    pub(super) interfaces: Interfaces,
    /// Conditions that share no packet, and what happens to the packets of each.
    pub(super) parts: Vec<(RuleCondition, RuleAction)>,
}

/// What a rule may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Pass,
    Match,
    Block(Answers),
    /// It blocks and tells the sender by these codes of ICMP and ICMPv6.
    Unreachable(u8, u8),
    Anchor,
}

/// Words that a rule may have and no policy can say, and what they do.
const UNSAID: [(&str, &str); 32] = [
    ("nat-to", "translates addresses; not yet: the edge router does NAT"),
    ("rdr-to", "translates addresses; not yet: the edge router does NAT"),
    ("binat-to", "translates addresses; not yet: the edge router does NAT"),
    ("af-to", "translates between the families"),
    ("route-to", "chooses a route"),
    ("reply-to", "chooses a route"),
    ("dup-to", "copies packets"),
    ("divert-to", "hands packets to a process"),
    ("divert-reply", "hands packets to a process"),
    ("divert-packet", "hands packets to a process"),
    ("scrub", "changes packets"),
    ("set", "changes packets, or how they are sent"),
    ("queue", "chooses a queue"),
    ("dnqueue", "chooses a queue"),
    ("dnpipe", "chooses a queue"),
    ("prio", "looks at a priority"),
    ("tag", "marks packets for other rules"),
    ("tagged", "looks at the mark of another rule"),
    ("rtable", "chooses a table of routes"),
    ("rdomain", "looks at the domain of routes"),
    ("received-on", "looks at the way in of what goes out"),
    ("user", "looks at the owner of a socket"),
    ("group", "looks at the owner of a socket"),
    ("os", "guesses the sender's system"),
    ("tos", "looks at the type of service"),
    ("probability", "is left to chance"),
    ("allow-opts", "lets packets with options of IP pass"),
    ("fragment", "is about fragments, which pf puts together before"),
    ("once", "is removed when it has matched"),
    ("max-pkt-rate", "counts packets in time"),
    ("synproxy", "answers in the place of the server"),
    ("ridentifier", "is a number for other programs"),
];

/// The words of a rule in their order.
const ORDER: &str = "a rule is: pass or block, in or out, log, quick, on, inet or inet6, proto, all or from … to …, \
                     flags, icmp-type, and keep state or no state";

pub(super) fn read<'a>(
    statement: &mut Statement<'_, 'a>,
    reader: &mut Reader<'a>,
) -> Result<FilterRule, ImportError> {
    let first = statement.next();
    let does = match first.text {
        "pass" => Does::Pass,
        "match" => Does::Match,
        "block" => answers(statement, reader)?,
        _ => {
            // An anchor may have a name, which says nothing here.
            if statement.peek().kind == Kind::Quoted {
                statement.next();
            }
            Does::Anchor
        }
    };
    let is_in = statement.takes("in");
    let is_out = !is_in && statement.takes("out");
    let mut rule = FilterRule {
        comes_in: !is_out,
        goes_out: !is_in,
        log: false,
        quick: false,
        interfaces: Interfaces::new(),
        parts: Vec::new(),
    };
    loop {
        let word = statement.peek();
        if statement.takes("log") {
            rule.log = true;
            if statement.peek().is_mark("(") {
                return Err(word.error("`log` has options, which are not done here", "write `log` alone"));
            }
        } else if !matches!(does, Does::Match | Does::Anchor) && statement.takes("quick") {
            rule.quick = true;
        } else {
            break;
        }
    }
    if statement.takes("on") {
        rule.interfaces = on_interfaces(statement, reader)?;
    }
    let mut asked = Asked::default();
    asked.fields(statement, reader)?;
    let state = asked.options(statement, does == Does::Pass)?;
    asked.check(&first)?;
    let keeps = does == Does::Pass && state;
    let condition = asked.condition(keeps);
    rule.parts = match does {
        Does::Pass if keeps => vec![(condition, RuleAction::Keep)],
        Does::Pass => vec![(condition, RuleAction::Pass)],
        Does::Match | Does::Anchor => vec![(condition, RuleAction::Continue)],
        Does::Block(answers) => answers.of(&condition),
        Does::Unreachable(v4, v6) => vec![
            (with([of_family(AddressFamily::V4)], &condition), RuleAction::Reject(Reject::Icmp(v4))),
            (with([of_family(AddressFamily::V6)], &condition), RuleAction::Reject(Reject::Icmpv6(v6))),
        ],
    };
    reader.keeps |= keeps;
    Ok(rule)
}

/// What stands behind `block`.
fn answers(statement: &mut Statement<'_, '_>, reader: &Reader<'_>) -> Result<Does, ImportError> {
    let word = statement.peek();
    let answers = match word.text {
        "drop" => Answers::default(),
        "return" => Answers::same(Reject::ByProtocol),
        "return-rst" => Answers { tcp: Some(Reject::TcpReset), ..Answers::default() },
        "return-icmp" | "return-icmp6" => Answers::same(Reject::Unreachable(Unreachable::Port)),
        _ => return Ok(Does::Block(reader.block_policy)),
    };
    statement.next();
    if !statement.peek().is_mark("(") {
        return Ok(Does::Block(answers));
    }
    let (v4, v6) = match word.text {
        "return-icmp" => icmp::codes(statement, true)?,
        "return-icmp6" => icmp::codes(statement, false)?,
        _ => {
            let what = format!("{} has options, which are not done here", word.shown());
            return Err(word.error(what, "write it alone"));
        }
    };
    Ok(Does::Unreachable(v4, v6))
}

/// The port of an interface. `lo` is the group of all loopback interfaces, and refused where it is more than
/// one port.
pub(super) fn port_of(word: &FilterWord<'_>, bound: &[(String, u16)]) -> Result<u16, ImportError> {
    if word.text != LOOPBACK_NAME {
        return interface(word, bound);
    }
    let own =
        if bound.iter().any(|(name, _)| name == LOOPBACK_NAME) { LOOPBACK_NAME } else { LOOPBACK_OF_BSD };
    let is_other = |name: &str| {
        let number = name.strip_prefix(LOOPBACK_NAME).unwrap_or_default();
        name != own && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some((other, _)) = bound.iter().find(|(name, _)| is_other(name)) {
        let what = format!("`lo` is a group of interfaces, and `{}` of them is bound as well", shown(other));
        return Err(word.error(what, "name each loopback interface instead of the group"));
    }
    interface(&FilterWord { text: own, ..*word }, bound)
}

/// The interfaces behind `on`.
pub(super) fn on_interfaces<'a>(
    statement: &mut Statement<'_, 'a>,
    reader: &Reader<'a>,
) -> Result<Interfaces, ImportError> {
    let first = statement.peek();
    let mut interfaces = Interfaces::new();
    each(statement, |statement| {
        let not = statement.takes_mark("!");
        let word = statement.name("interface")?;
        interfaces.push((not, port_of(&word, reader.bound)?));
        Ok(())
    })?;
    if interfaces.is_empty() {
        return Err(first.error("the list is empty: it matches no packet", "leave the rule out"));
    }
    Ok(interfaces)
}

/// What a rule has asked so far.
#[derive(Debug, Default)]
struct Asked {
    family: Option<AddressFamily>,
    /// None for any protocol.
    protocols: Vec<u8>,
    families: Option<Families>,
    flags: Option<Option<(u8, u8)>>,
    /// The place of a word that needs a protocol, and which protocols that may be.
    needs: Vec<(Place, &'static [u8], &'static str)>,
    conditions: Vec<RuleCondition>,
}

/// The line and the column of a word.
type Place = (u32, u32);

impl Asked {
    fn fields<'a>(
        &mut self,
        statement: &mut Statement<'_, 'a>,
        reader: &mut Reader<'a>,
    ) -> Result<(), ImportError> {
        if statement.takes("inet") {
            self.family = Some(AddressFamily::V4);
        } else if statement.takes("inet6") {
            self.family = Some(AddressFamily::V6);
        }
        if statement.takes("proto") {
            let protocols = &mut self.protocols;
            each(statement, |statement| {
                let word = statement.name("protocol")?;
                let named = if word.text == "icmp6" { Ok(58) } else { protocol(&word) };
                protocols.push(named?);
                Ok(())
            })?;
            if self.protocols.is_empty() {
                return Err(statement
                    .peek()
                    .error("the list is empty: it matches no packet", "leave the rule out"));
            }
        }
        if statement.takes("all") {
            return Ok(());
        }
        let fields = [
            ("from", PacketField::Source, PacketField::SourcePort),
            ("to", PacketField::Destination, PacketField::DestinationPort),
        ];
        for (keyword, address_field, port_field) in fields {
            if !statement.takes(keyword) {
                continue;
            }
            let word = statement.peek();
            if !word.is("port") {
                let (condition, families) = addresses(statement, reader, address_field)?;
                self.conditions.extend(condition);
                let met = self.families.take().unwrap_or(FAMILIES.to_vec());
                let met: Families = met.into_iter().filter(|family| families.contains(family)).collect();
                if self.family.map_or(met.is_empty(), |family| !met.contains(&family)) {
                    let what = "no packet is of the families of all these addresses";
                    return Err(
                        word.error(what, "write addresses of one family, and inet or inet6 as they are")
                    );
                }
                self.families = Some(met);
            }
            let word = statement.peek();
            if statement.takes("port") {
                let values = ports(statement, reader)?;
                self.needs.push(((word.line, word.column), &[TCP, UDP, 132], "ports"));
                self.conditions.push(RuleCondition::Holds(port_field, values));
            }
        }
        Ok(())
    }

    /// What stands behind the addresses, in any order. Says whether connections are kept.
    fn options(&mut self, statement: &mut Statement<'_, '_>, passes: bool) -> Result<bool, ImportError> {
        let mut state = true;
        while !statement.is_done() {
            let word = statement.next();
            match word.text {
                "flags" if word.kind == Kind::Plain => {
                    let flags = statement.name("set of flags")?;
                    self.flags =
                        Some(if flags.text == "any" { None } else { Some(flags_word(&flags, false)?) });
                    if flags.text != "any" && !self.protocols.is_empty() {
                        self.needs.push(((word.line, word.column), &[TCP], "flags"));
                    }
                }
                "icmp-type" => {
                    self.conditions.push(icmp::types(statement, &icmp::TYPES)?);
                    self.needs.push(((word.line, word.column), &[1], "types of ICMP"));
                }
                "icmp6-type" | "ipv6-icmp-type" => {
                    self.conditions.push(icmp::types(statement, &icmp::V6_TYPES)?);
                    self.needs.push(((word.line, word.column), &[58], "types of ICMPv6"));
                }
                "keep" | "modulate" | "no" if statement.peek().is("state") => {
                    statement.next();
                    state = word.text != "no";
                    let next = statement.peek();
                    if next.is_mark("(") {
                        let what = "`state` has options, which are not done here";
                        return Err(next.error(what, "remove them; limits of connections are in the program"));
                    }
                    if !passes {
                        let what = "only what passes makes a connection";
                        return Err(word.error(what, "remove it"));
                    }
                }
                "label" => {
                    statement.name("label")?;
                }
                _ => return Err(unknown(&word)),
            }
        }
        Ok(state)
    }

    /// Whether the protocols have what is asked for.
    fn check(&self, first: &FilterWord<'_>) -> Result<(), ImportError> {
        for ((line, column), protocols, what) in &self.needs {
            let fits = |own: &u8| protocols.contains(own);
            if self.protocols.is_empty() || !self.protocols.iter().all(fits) {
                let what = format!("{what} are asked for of protocols that have none");
                let advice = "name the protocols behind `proto`, and write one rule for those that have them";
                return Err(ImportError { line: *line, column: *column, ..first.error(what, advice) });
            }
        }
        Ok(())
    }

    fn condition(self, keeps: bool) -> RuleCondition {
        let mut all: Vec<RuleCondition> = self.family.map(of_family).into_iter().collect();
        if !self.protocols.is_empty() {
            let values = self.protocols.iter().map(|number| Values::exact((*number).into()));
            all.push(RuleCondition::Holds(PacketField::Protocol, values.collect()));
        }
        all.extend(self.conditions);
        // A rule that keeps a connection takes its first segment, unless it says which flags it wants.
        let implied = keeps.then_some((0b0_0010, 0b1_0010));
        if let Some((set, mask)) = self.flags.unwrap_or(implied) {
            let is_tcp = self.protocols.iter().all(|number| *number == TCP) && !self.protocols.is_empty();
            let flags = flags_are(set, mask);
            if is_tcp {
                all.push(flags);
            } else if self.protocols.is_empty() || self.protocols.contains(&TCP) {
                let other = RuleCondition::Not(Box::new(is(PacketField::Protocol, TCP.into())));
                all.push(RuleCondition::Any(vec![other, flags]));
            }
        }
        RuleCondition::All(all)
    }
}

/// A word that no rule here has.
pub(super) fn unknown(word: &FilterWord<'_>) -> ImportError {
    match UNSAID.iter().find(|(own, _)| *own == word.text && word.kind == Kind::Plain) {
        Some((own, does)) => word.error(format!("`{own}` {does}"), "remove it, or do it in the program"),
        None => word.error(format!("{} is not understood here", word.shown()), ORDER),
    }
}
