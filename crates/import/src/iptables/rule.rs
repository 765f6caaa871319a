//! One `-A` line: its matches and its target, read for rows of a table or for a policy.

use super::address_type;
use super::connections;
use super::limits;
use super::mark;
use super::matches::{self, Matches};
use super::options;
use super::security;
use super::sets::{self, AddressSets};
use super::target::{self, Surroundings};
use super::traffic_class;
use super::values::{
    self, address_range, address_set, icmp, looks_into, mac, ports, ports_of_header, protocol,
};
use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::conditions::{Interfaces, Naming, in_states};
use crate::rates::ONE_PACKET;
use crate::region::Set;
use crate::ruleset::Part;
use crate::text::{Line, shown};
use policy::{HookPoint, Memory, PacketField, RuleAction, RuleCondition, RulePlace, Values};

/// What the rules of a dump are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Rows of a table, which see the packet alone. `first_packets` says that each packet is the first of its
    /// connection.
    Rows { first_packets: bool },
    /// Rules of a policy, which know connections and remember earlier packets.
    Policy,
}

/// Where packets come to a chain from.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainPlace<'a> {
    /// The table of the chain; empty where rows are wanted.
    pub(crate) table: &'a str,
    /// Whether Linux itself calls it.
    pub(crate) is_base: bool,
    /// The points whose packets come to it.
    pub(crate) points: Vec<HookPoint>,
}

/// A rule as it is read.
pub(crate) struct ReadRule {
    pub(crate) matches: Matches,
    pub(crate) action: RuleAction,
    pub(crate) log: bool,
    /// Whether the rule has no target: all that it does is to count.
    pub(crate) only_counts: bool,
    /// Whether all that it does is to mark, and such rules are left aside.
    pub(crate) only_marks: bool,
}

/// What all rules of a dump share.
pub(crate) struct Context {
    purpose: Purpose,
    family: AddressFamily,
    interfaces: Interfaces,
    /// What rules ask that depends on earlier packets.
    memories: Vec<Memory>,
    /// Whether a rule asks what is known of connections.
    asks_connections: bool,
    /// Whether addresses are translated behind the tables `raw` and `mangle`, at PREROUTING and OUTPUT.
    translated: bool,
    /// Whether rules that mark are left aside.
    skips_marks: bool,
    /// The sets that rules may ask for, and how many values they have been given so far.
    sets: AddressSets,
    given: usize,
}

/// A rule that is being read.
pub(super) struct Reading<'a, 'b> {
    place: &'b ChainPlace<'b>,
    pub(super) arguments: Arguments<'a>,
    matches: Matches,
    /// Matches that were named and have had no option yet.
    unasked: Vec<Argument<'a>>,
    /// Matches that were named, some of which take options further on.
    pub(super) named: Vec<Argument<'a>>,
    /// Options that were there, by the match that they belong to.
    pub(super) seen: Vec<(&'static str, &'static str)>,
}

/// Options by the match they belong to, and a word for all of which a rule may have one at a time.
pub(super) const OPTIONS: [(&str, &str, &str); 55] = [
    ("-p", "", "-p"),
    ("--protocol", "", "-p"),
    ("-s", "", "-s"),
    ("--source", "", "-s"),
    ("-d", "", "-d"),
    ("--destination", "", "-d"),
    ("-i", "", "-i"),
    ("--in-interface", "", "-i"),
    ("-o", "", "-o"),
    ("--out-interface", "", "-o"),
    ("-f", "", "-f"),
    ("--fragment", "", "-f"),
    ("--comment", "comment", "--comment"),
    ("--src-range", "iprange", "--src-range"),
    ("--dst-range", "iprange", "--dst-range"),
    ("--sport", "tcp", "--sport"),
    ("--source-port", "tcp", "--sport"),
    ("--dport", "tcp", "--dport"),
    ("--destination-port", "tcp", "--dport"),
    ("--tcp-flags", "tcp", "--tcp-flags"),
    ("--syn", "tcp", "--tcp-flags"),
    ("--sports", "multiport", "--ports"),
    ("--source-ports", "multiport", "--ports"),
    ("--dports", "multiport", "--ports"),
    ("--destination-ports", "multiport", "--ports"),
    ("--ports", "multiport", "--ports"),
    ("--mac-source", "mac", "--mac-source"),
    ("--icmp-type", "icmp", "--icmp-type"),
    ("--icmpv6-type", "icmp6", "--icmpv6-type"),
    ("--state", "state", "--state"),
    ("--ctstate", "conntrack", "--ctstate"),
    ("--ctproto", "conntrack", "--ctproto"),
    ("--ctorigsrc", "conntrack", "--ctorigsrc"),
    ("--ctorigsrcport", "conntrack", "--ctorigsrcport"),
    ("--match-set", "set", "--match-set"),
    ("--length", "length", "--length"),
    ("--dscp", "dscp", "--dscp"),
    ("--dscp-class", "dscp", "--dscp"),
    ("--tos", "tos", "--tos"),
    ("--ecn-ip-ect", "ecn", "--ecn-ip-ect"),
    ("--ecn-tcp-ece", "ecn", "--ecn-tcp-ece"),
    ("--ecn-tcp-cwr", "ecn", "--ecn-tcp-cwr"),
    ("--ttl", "ttl", "--ttl"),
    ("--ttl-eq", "ttl", "--ttl"),
    ("--ttl-lt", "ttl", "--ttl"),
    ("--ttl-gt", "ttl", "--ttl"),
    ("--hl-eq", "hl", "--hl"),
    ("--hl-lt", "hl", "--hl"),
    ("--hl-gt", "hl", "--hl"),
    ("-j", "", "-j"),
    ("--jump", "", "-j"),
    ("-g", "", "-j"),
    ("--goto", "", "-j"),
    ("-m", "", "-m"),
    ("--match", "", "-m"),
];

/// Why a program cannot ask `rpfilter`.
const ROUTES: &str = "the routes of the machine that the file is from are not known";

/// Matches that mean something only with an option of theirs.
const ASKING: [&str; 13] = [
    "set",
    "comment",
    "iprange",
    "multiport",
    "mac",
    "state",
    "conntrack",
    "length",
    "dscp",
    "tos",
    "ecn",
    "ttl",
    "hl",
];

impl Context {
    pub(crate) fn new(purpose: Purpose, family: AddressFamily, interfaces: &Naming) -> Self {
        let named = Interfaces::new(interfaces);
        Self {
            purpose,
            family,
            interfaces: if purpose == Purpose::Policy { named.with_loopback() } else { named },
            memories: Vec::new(),
            asks_connections: false,
            translated: false,
            skips_marks: false,
            sets: AddressSets::default(),
            given: 0,
        }
    }

    /// The same with sets.
    pub(crate) fn with_sets(self, sets: AddressSets) -> Self {
        Self { sets, ..self }
    }

    /// The same, with rules that mark left aside or not.
    pub(crate) fn skips_marks(self, skips_marks: bool) -> Self {
        Self { skips_marks, ..self }
    }

    /// Notes that somebody translates addresses, and that packets have those that come of it.
    pub(crate) fn addresses_are_translated(&mut self) {
        self.translated = true;
    }

    pub(crate) fn into_interfaces(self) -> Interfaces {
        self.interfaces
    }

    /// What depends on earlier packets, and whether connections must be remembered.
    pub(crate) fn into_memories(self) -> (Vec<Memory>, bool) {
        (self.memories, self.asks_connections)
    }

    /// What the words behind the chain's name mean.
    pub(crate) fn rule<'a>(
        &mut self,
        line: Line<'a>,
        words: Vec<Argument<'a>>,
        place: &ChainPlace<'_>,
        chain: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<ReadRule, ImportError> {
        let memories = self.memories.len();
        let read = self.read(line, words, place, chain);
        if read.as_ref().map_or(true, |read| read.only_marks) {
            self.memories.truncate(memories);
        }
        read
    }

    fn read<'a>(
        &mut self,
        line: Line<'a>,
        words: Vec<Argument<'a>>,
        place: &ChainPlace<'_>,
        chain: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<ReadRule, ImportError> {
        let mut matches = Matches::new(self.family);
        let asked = values::protocol_asked(&words, self.family);
        matches.protocol = asked;
        let arguments = Arguments::new(line, words);
        let mut rule =
            Reading { place, arguments, matches, unasked: Vec::new(), named: Vec::new(), seen: Vec::new() };
        let (mut target, mut only_marks) = (None, false);
        let mut not = None;
        while let Some(option) = rule.arguments.next() {
            if option.text == "!" {
                not = Some(option);
                continue;
            }
            rule.once(&option)?;
            match &*option.text {
                "-j" | "--jump" if self.skips_marks && mark::is_target(&rule.arguments, chain) => {
                    self.asks_connections |= mark::read(&option, &mut rule.arguments)?;
                    only_marks = true;
                }
                "-j" | "--jump" | "-g" | "--goto" => {
                    let around = Surroundings {
                        purpose: self.purpose,
                        family: self.family,
                        table: place.table,
                        chain,
                    };
                    target = Some(target::target(&option, &mut rule.arguments, &rule.matches, &around)?);
                }
                _ => self.option(&option, not.take().is_some(), &mut rule)?,
            }
            if let Some(not) = not.take() {
                return Err(not.error("`!` stands before nothing that can be turned round", "remove it"));
            }
        }
        if let Some(module) = rule.unasked.first() {
            let what = format!("the match `{}` asks nothing", shown(&module.text));
            return Err(module.error(what, "remove it, or add what it is to ask"));
        }
        let has_protocol = rule.seen.contains(&("", "-p"));
        if asked.is_some() && !(has_protocol && rule.matches.protocol == asked) {
            let what = "`-p` stands in the rule where it is no option";
            return Err(line.error_at_end(what, "write the protocol in front of the matches"));
        }
        let early = place.points.contains(&HookPoint::In)
            || matches!(place.table, "raw" | "mangle") && place.points.contains(&HookPoint::FromGateway);
        if self.translated && early && rule.matches.asks_destination() {
            let what = "the rule asks where a packet goes before the table `nat` changes that";
            return Err(line.error_at_end(what, "ask in a chain behind the translation, such as FORWARD"));
        }
        let only_counts = target.is_none() && !only_marks;
        let (action, log) =
            target.map_or((RuleAction::Continue, false), |target| (target.action, target.log));
        Ok(ReadRule { matches: rule.matches, action, log, only_counts, only_marks })
    }

    fn option<'a>(
        &mut self,
        option: &Argument<'a>,
        not: bool,
        rule: &mut Reading<'a, '_>,
    ) -> Result<(), ImportError> {
        let family = self.family;
        let Reading { arguments, matches, place, .. } = rule;
        let mut value = || arguments.value(option);
        match (&*option.text, self.purpose) {
            ("-m" | "--match", _) => {
                let module = value()?;
                return self.module(module, not, rule);
            }
            ("--comment", _) if not => return Err(values::cannot_be_turned(option)),
            ("--comment", _) => return value().map(drop),
            ("-p" | "--protocol", _) => return protocol(&value()?, not, matches),
            ("-s" | "--source", _) => {
                matches.conditions.is(address_set(&value()?, family)?, Part::Source, not);
            }
            ("-d" | "--destination", _) => {
                matches.conditions.is(address_set(&value()?, family)?, Part::Destination, not);
            }
            ("--src-range", _) => {
                matches.conditions.is(address_range(&value()?, family)?, Part::Source, not);
            }
            ("--dst-range", _) => {
                matches.conditions.is(address_range(&value()?, family)?, Part::Destination, not);
            }
            // A piece behind the first; `! -f` is a whole packet or a first piece.
            ("-f" | "--fragment", Purpose::Rows { .. }) if family == AddressFamily::V4 => {
                matches.conditions.is(Set::exact(1), Part::Fragment, not);
            }
            ("-f" | "--fragment", Purpose::Policy) if family == AddressFamily::V4 => {
                let condition = matches::later_fragment();
                matches.also(condition.turned(not));
            }
            ("-i" | "--in-interface", _) => {
                let name = value()?;
                return self.interface(option, &name, Part::InPort, not, rule);
            }
            ("-o" | "--out-interface", _) => {
                let name = value()?;
                return self.interface(option, &name, Part::OutPort, not, rule);
            }
            ("--sport" | "--source-port", _) => {
                return ports_of_header(&value()?, Part::SourcePort, not, matches);
            }
            ("--dport" | "--destination-port", _) => {
                return ports_of_header(&value()?, Part::DestinationPort, not, matches);
            }
            ("--sports" | "--source-ports", _) => {
                return ports(&value()?, &[Part::SourcePort], not, matches);
            }
            ("--dports" | "--destination-ports", _) => {
                return ports(&value()?, &[Part::DestinationPort], not, matches);
            }
            ("--ports", _) => {
                return ports(&value()?, &[Part::SourcePort, Part::DestinationPort], not, matches);
            }
            ("--mac-source", _) => matches.conditions.is(mac(&value()?)?, Part::SourceMac, not),
            ("--tcp-flags", _) => return values::tcp_flags(option, not, arguments, matches),
            ("--syn", _) => {
                looks_into(6, option, matches)?;
                matches.conditions.is(Set::masked(8, 0x02, 0x17), Part::TcpFlags, not);
            }
            ("--icmp-type", _) if family == AddressFamily::V4 => return icmp(&value()?, false, not, matches),
            ("--icmpv6-type", _) if family == AddressFamily::V6 => {
                return icmp(&value()?, true, not, matches);
            }
            ("--ctproto", Purpose::Rows { first_packets: true }) => return protocol(&value()?, not, matches),
            ("--ctorigsrc", Purpose::Rows { first_packets: true }) => {
                matches.conditions.is(address_set(&value()?, family)?, Part::Source, not);
            }
            ("--ctorigsrcport", Purpose::Rows { first_packets: true }) => {
                return ports(&value()?, &[Part::SourcePort], not, matches);
            }
            ("--state" | "--ctstate", Purpose::Rows { first_packets: true }) => {
                // No connection is known before its first packet; a packet that starts none is not read for.
                let fits = value()?.text.split(',').any(|state| state == "NEW");
                if fits == not {
                    matches.conditions.never();
                }
            }
            ("--state", Purpose::Policy) => {
                if place.table == "raw" {
                    return Err(connections::not_known_yet(option));
                }
                connections::states(&value()?, not, matches)?;
                self.asks_connections = true;
            }
            ("--match-set", Purpose::Policy) => {
                let (name, end) = (value()?, value()?);
                return self.set(&name, &end, not, matches);
            }
            ("--length", Purpose::Policy) => return values::length(&value()?, not, matches),
            ("--dscp", Purpose::Policy) => return traffic_class::dscp(&value()?, not, matches),
            ("--dscp-class", Purpose::Policy) => return traffic_class::dscp_class(&value()?, not, matches),
            ("--tos", Purpose::Policy) => return traffic_class::type_of_service(&value()?, not, matches),
            ("--ecn-ip-ect", Purpose::Policy) => return traffic_class::congestion(&value()?, not, matches),
            ("--ecn-tcp-ece" | "--ecn-tcp-cwr", Purpose::Policy) => {
                return traffic_class::congestion_flag(option, not, matches);
            }
            ("--ttl" | "--ttl-eq" | "--ttl-lt" | "--ttl-gt", Purpose::Policy)
            | ("--hl-eq" | "--hl-lt" | "--hl-gt", Purpose::Policy) => {
                return values::time_to_live(option, not, arguments, &place.points, matches);
            }
            _ => return Err(self.unknown(option)),
        }
        Ok(())
    }

    fn module<'a>(
        &mut self,
        module: Argument<'a>,
        not: bool,
        rule: &mut Reading<'a, '_>,
    ) -> Result<(), ImportError> {
        if not {
            let what =
                format!("`!` stands before the match `{}` and not before its option", shown(&module.text));
            return Err(module.error(what, "put it before the option"));
        }
        let policy = self.purpose == Purpose::Policy;
        if let (true, Some(set)) = (policy, options::remembering(&module.text)) {
            let before_routes = rule.place.points == [HookPoint::In] && rule.place.table != "nat";
            if module.text == "rpfilter" && !before_routes {
                let what = "Linux has the match `rpfilter` in PREROUTING of `raw` and `mangle` alone";
                return Err(module.error(what, "ask there"));
            }
            if !set.states.is_empty() && rule.place.table == "raw" {
                return Err(connections::not_known_yet(&module));
            }
            let options = set.read(&module, &mut rule.arguments)?;
            self.asks_connections |= set.asks_connections;
            let place = RulePlace { line: module.line, column: module.column };
            let text = rule.arguments.text_from(&module).into();
            let remembered = RuleCondition::Remembered(self.memories.len());
            let rate = match &*module.text {
                "limit" => limits::rate(&options, rule),
                "rpfilter" => Err(ROUTES.into()),
                _ => Err(ONE_PACKET.into()),
            };
            rule.matches.also(match (set.states, options.turned) {
                ([], _) => remembered,
                (states, false) => RuleCondition::All(vec![in_states(states), remembered]),
                (states, true) => RuleCondition::Any(vec![in_states(states).turned(true), remembered]),
            });
            self.memories.push(Memory { place, text, rate });
            return Ok(());
        }
        if policy && module.text == "conntrack" {
            let no_states = rule.place.table == "raw";
            self.asks_connections = true;
            let Reading { arguments, matches, .. } = rule;
            let memories = &mut self.memories;
            let original = |word: &Argument<'_>| matches!(&*word.text, "--ctorigdst" | "--ctorigdstport");
            if let Some(option) = arguments.ahead().iter().find(|word| self.translated && original(word)) {
                let what =
                    format!("`{}` asks where a packet went before the table `nat` changed that", option.text);
                return Err(option.error(what, "ask for the address that the translation gives it"));
            }
            return connections::read(&module, no_states, self.family, arguments, matches, memories);
        }
        if policy {
            let header = match (&*module.text, self.family) {
                ("esp", _) => Some((50, "--espspi")),
                // To IPv6 it is an extension header, which may stand before others.
                ("ah", AddressFamily::V4) => Some((51, "--ahspi")),
                _ => None,
            };
            if let Some(header) = header {
                return security::read(&module, header, &mut rule.arguments, &mut rule.matches);
            }
            if module.text == "addrtype" {
                let Reading { arguments, matches, .. } = rule;
                return address_type::read(
                    &module,
                    self.family,
                    (&self.sets, &mut self.given),
                    arguments,
                    matches,
                );
            }
        }
        let known = match &*module.text {
            // These fit no later fragment, even where they ask for nothing.
            "tcp" => looks_into(6, &module, &mut rule.matches),
            "udp" => looks_into(17, &module, &mut rule.matches),
            "dccp" => looks_into(33, &module, &mut rule.matches),
            "sctp" => looks_into(132, &module, &mut rule.matches),
            "udplite" => looks_into(136, &module, &mut rule.matches),
            "icmp" => looks_into(1, &module, &mut rule.matches),
            "icmp6" | "icmpv6" => looks_into(58, &module, &mut rule.matches),
            "multiport" => {
                rule.matches.header();
                Ok(())
            }
            "iprange" | "mac" | "comment" => Ok(()),
            "state" | "conntrack" if policy || self.purpose == (Purpose::Rows { first_packets: true }) => {
                Ok(())
            }
            "length" | "dscp" | "tos" | "ecn" | "set" if policy => Ok(()),
            "ttl" if policy && self.family == AddressFamily::V4 => Ok(()),
            "hl" if policy && self.family == AddressFamily::V6 => Ok(()),
            _ => Err(self.unknown_module(&module)),
        };
        rule.name(module);
        known
    }

    /// The addresses of a set at one end.
    fn set(
        &mut self,
        name: &Argument<'_>,
        end: &Argument<'_>,
        not: bool,
        matches: &mut Matches,
    ) -> Result<(), ImportError> {
        let part = match &*end.text {
            "src" => Part::Source,
            "dst" => Part::Destination,
            other => {
                let what = format!("`{}` is no end of a packet", shown(other));
                return Err(end.error(what, "write src or dst"));
            }
        };
        let elements = self.sets.elements(name, self.family)?;
        matches.also(sets::among(elements, self.family, part, &mut self.given, name)?.turned(not));
        Ok(())
    }

    fn unknown_module(&self, module: &Argument<'_>) -> ImportError {
        let cause = match &*module.text {
            "state" | "conntrack" | "connbytes" | "connlabel" | "connlimit" | "connmark" | "helper"
            | "cluster" => "asks what is known of the packet's connection",
            "limit" | "hashlimit" | "recent" | "rateest" | "quota" | "nfacct" => "remembers earlier packets",
            "statistic" => "leaves the answer to chance or to a count",
            "owner" | "cgroup" | "socket" => "asks for a process of this machine",
            "addrtype" | "rpfilter" => "asks for this machine's own addresses and routes",
            "set" => "asks for a set that is not in the dump",
            "string" | "bpf" | "u32" => "looks into the packet's bytes",
            "mark" | "devgroup" | "physdev" | "policy" | "realm" => "asks what was done to the packet before",
            "time" => "asks for the time of day",
            _ => "looks at something for which there is no column",
        };
        module.error(format!("the match `{}` {cause}", shown(&module.text)), self.seen_by_rules())
    }

    fn unknown(&self, option: &Argument<'_>) -> ImportError {
        let cause = match &*option.text {
            "--ctorigdst" | "--ctorigdstport" => "asks where the packet was sent to before it was redirected",
            "--tcp-option" => "looks into the options of the TCP header, for which there is no column",
            _ => "is not known here",
        };
        option.error(format!("`{}` {cause}", shown(&option.text)), self.seen_by_rules())
    }

    fn seen_by_rules(&self) -> &'static str {
        match self.purpose {
            Purpose::Rows { .. } => {
                "a stateless rule sees addresses, protocol, ports, flags and interfaces only"
            }
            Purpose::Policy => {
                "a policy sees addresses, protocol, ports, types, flags, interfaces, DSCP, ECN, TTL, length and \
                 the state of the connection"
            }
        }
    }

    fn interface(
        &mut self,
        option: &Argument<'_>,
        name: &Argument<'_>,
        part: Part,
        not: bool,
        rule: &mut Reading<'_, '_>,
    ) -> Result<(), ImportError> {
        // Linux keeps 15 bytes of a name.
        if name.text.is_empty() || name.text.len() > 15 {
            let what = format!("`{}` is no name of an interface", shown(&name.text));
            return Err(name.error(what, "names have 1 to 15 characters"));
        }
        if name.text == "+" {
            if not {
                rule.matches.conditions.never();
            }
            return Ok(());
        }
        let policy = self.purpose == Purpose::Policy;
        let sets = match name.text.strip_suffix('+') {
            Some(start) => self.interfaces.starting(start),
            None => self.interfaces.one(&name.text).map(|set| vec![set]),
        };
        let sets = sets.map_err(|fault| {
            let (what, advice) = fault.words(&name.text);
            name.error(what, advice)
        })?;
        if !policy {
            rule.matches.conditions.one_of(&sets, &[part], not);
            return Ok(());
        }
        let (field, unknown_at) = match part {
            Part::OutPort => (PacketField::OutPort, HookPoint::In),
            _ => (PacketField::InPort, HookPoint::Out),
        };
        let never_there = match part {
            Part::OutPort => HookPoint::ToGateway,
            _ => HookPoint::FromGateway,
        };
        let points = &rule.place.points;
        if points.contains(&unknown_at) || (rule.place.is_base && points.contains(&never_there)) {
            let what =
                format!("`{}` asks for an interface that packets have not at this hook", shown(&option.text));
            return Err(option.error(what, "ask in a chain where packets have both, such as FORWARD"));
        }
        // A packet without the interface is one that has another one.
        let condition = RuleCondition::Holds(field, sets.into_iter().map(Values::from).collect());
        rule.matches.also(condition.turned(not));
        Ok(())
    }
}

impl<'a> Reading<'a, '_> {
    /// Notes a match, which begins anew where it is named again.
    fn name(&mut self, module: Argument<'a>) {
        self.seen.retain(|(of, _)| *of != module.text);
        self.named.push(module.clone());
        let is_new = self.unasked.iter().all(|unasked| unasked.text != module.text);
        if is_new && ASKING.contains(&&*module.text) {
            self.unasked.push(module);
        }
    }

    /// Refuses an option that is there twice.
    fn once(&mut self, option: &Argument<'_>) -> Result<(), ImportError> {
        let Some((_, of, name)) = OPTIONS.iter().find(|(own, _, _)| *own == option.text) else {
            return Ok(());
        };
        if *name == "-m" {
            return Ok(());
        }
        self.unasked.retain(|module| module.text != *of);
        if self.seen.contains(&(*of, *name)) {
            let what = format!("`{}` is there twice, or beside what excludes it", shown(&option.text));
            return Err(option.error(what, "keep one; iptables takes no more"));
        }
        self.seen.push((of, name));
        Ok(())
    }
}
