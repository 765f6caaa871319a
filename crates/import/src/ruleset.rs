//! What every importer of rules answers: columns, rules in order, and what happens to a packet that none
//! fits.

use crate::ImportError;
use crate::address::AddressFamily;
use crate::region::Region;
use policy::PacketField;
use std::sync::Arc;
use tables::rules::{Rule, RuleField};

/// Rules in order; the first that fits a packet decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedRules {
    /// The columns of the key. The first five are always there: `src`, `dst`, `sport`, `dport`, `proto`.
    pub columns: Vec<RuleColumn>,
    /// The rules, first to last.
    pub rules: Vec<ImportedRule>,
    /// Whether a packet that no rule fits may pass; `None` if the file does not say.
    pub default: Option<bool>,
    /// The line that says so, and in what words; `None` if the format has none.
    pub policy: Option<ChainPolicy>,
    /// The names of interfaces, and the numbers in `in_port` and `out_port` that stand for them. 0 is an
    /// interface without a name here.
    pub interfaces: Vec<(String, u16)>,
    /// Whether these numbers are ports that the caller bound the names to; otherwise they mean nothing
    /// outside.
    pub bound: bool,
    /// Lines that were left out because the caller asked for that, in the order of the file. What is kept may
    /// then decide otherwise than the file does.
    pub refused: Vec<ImportError>,
}

/// Where a file says what happens to a packet that no rule fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPolicy {
    /// The line, from 1.
    pub line: u32,
    /// Its words, such as "the chain `FORWARD` has the policy DROP".
    pub words: String,
}

/// A column of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleColumn {
    /// What it holds.
    pub name: &'static str,
    /// Its width, in bits.
    pub width: u8,
}

impl RuleColumn {
    /// The column of this name for packets of a family; `None` if there is no such column.
    pub fn named(name: &str, family: AddressFamily) -> Option<Self> {
        let part = Part::named(name)?;
        Some(Self { name: part.name(), width: part.width(family) })
    }

    /// The names of all columns, in their order in a set of rules.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Part::ALL.into_iter().map(Part::name)
    }
}

/// A rule and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedRule {
    /// One field a column.
    pub rule: Rule,
    /// Whether the packet may pass; `None` if the file does not say.
    pub allow: Option<bool>,
    /// Whether the file wants the packet written to a log as well.
    pub log: bool,
    /// The line, from 1. Rules that were made of one line share it.
    pub line: u32,
    /// The line as it was written.
    pub text: Arc<str>,
}

/// What a column of the key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
    IcmpType,
    IcmpCode,
    TcpFlags,
    InPort,
    OutPort,
    SourceMac,
    Flags,
    /// 1 for a later fragment, which has no header of TCP, UDP or ICMP; otherwise 0.
    Fragment,
}

impl Part {
    pub(crate) const COUNT: usize = 13;
    /// Those that every set of rules has.
    const ALWAYS: usize = 5;
    pub(crate) const ALL: [Part; Self::COUNT] = [
        Part::Source,
        Part::Destination,
        Part::SourcePort,
        Part::DestinationPort,
        Part::Protocol,
        Part::IcmpType,
        Part::IcmpCode,
        Part::TcpFlags,
        Part::InPort,
        Part::OutPort,
        Part::SourceMac,
        Part::Flags,
        Part::Fragment,
    ];
    /// Those of a header that later fragments have not.
    pub(crate) const OF_TRANSPORT: [Part; 5] =
        [Part::SourcePort, Part::DestinationPort, Part::IcmpType, Part::IcmpCode, Part::TcpFlags];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Source => "src",
            Part::Destination => "dst",
            Part::SourcePort => "sport",
            Part::DestinationPort => "dport",
            Part::Protocol => "proto",
            Part::IcmpType => "icmp_type",
            Part::IcmpCode => "icmp_code",
            Part::TcpFlags => "tcp_flags",
            Part::InPort => "in_port",
            Part::OutPort => "out_port",
            Part::SourceMac => "src_mac",
            Part::Flags => "flags",
            Part::Fragment => "fragment",
        }
    }

    /// The field of packets that policies compare; `None` for the flags of ClassBench, which are of more than
    /// one.
    pub(crate) fn field(self) -> Option<PacketField> {
        Some(match self {
            Part::Source => PacketField::Source,
            Part::Destination => PacketField::Destination,
            Part::SourcePort => PacketField::SourcePort,
            Part::DestinationPort => PacketField::DestinationPort,
            Part::Protocol => PacketField::Protocol,
            Part::IcmpType => PacketField::IcmpType,
            Part::IcmpCode => PacketField::IcmpCode,
            Part::TcpFlags => PacketField::TcpFlags,
            Part::InPort => PacketField::InPort,
            Part::OutPort => PacketField::OutPort,
            Part::SourceMac => PacketField::SourceMac,
            Part::Fragment => PacketField::LaterFragment,
            Part::Flags => return None,
        })
    }

    pub(crate) fn named(name: &str) -> Option<Part> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    pub(crate) fn width(self, family: AddressFamily) -> u8 {
        match self {
            Part::Source | Part::Destination => family.width(),
            Part::SourcePort | Part::DestinationPort | Part::InPort | Part::OutPort | Part::Flags => 16,
            Part::Protocol | Part::IcmpType | Part::IcmpCode | Part::TcpFlags => 8,
            Part::SourceMac => 48,
            Part::Fragment => 1,
        }
    }
}

/// A rule as importers make it.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) region: Region,
    pub(crate) allow: Option<bool>,
    pub(crate) log: bool,
    pub(crate) line: u32,
    pub(crate) text: Arc<str>,
}

impl ImportedRules {
    /// The set of these decisions, with the columns that one of them uses.
    pub(crate) fn of(family: AddressFamily, decisions: Vec<Decision>, default: Option<bool>) -> Self {
        let used = |part: &Part| {
            (*part as usize) < Part::ALWAYS
                || decisions.iter().any(|decision| decision.region.field(*part) != RuleField::Any)
        };
        let parts: Vec<Part> = Part::ALL.into_iter().filter(used).collect();
        let rule = |decision: Decision| ImportedRule {
            rule: Rule { fields: parts.iter().map(|part| decision.region.field(*part)).collect() },
            allow: decision.allow,
            log: decision.log,
            line: decision.line,
            text: decision.text,
        };
        Self {
            columns: parts
                .iter()
                .map(|part| RuleColumn { name: part.name(), width: part.width(family) })
                .collect(),
            rules: decisions.into_iter().map(rule).collect(),
            default,
            ..Self::default()
        }
    }

    /// The widths of the columns, in bits.
    pub fn widths(&self) -> Vec<u8> {
        self.columns.iter().map(|column| column.width).collect()
    }

    /// The number of the column called `name`.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The family of the addresses.
    pub fn family(&self) -> AddressFamily {
        self.columns.first().and_then(|column| AddressFamily::of_width(column.width)).unwrap_or_default()
    }

    /// The first rule that fits a packet, by trying one after the other. `key` has a value a column.
    pub fn first(&self, key: &[u128]) -> Option<usize> {
        self.rules.iter().position(|rule| {
            let columns = rule.rule.fields.iter().zip(&self.columns);
            columns.zip(key).all(|((field, column), value)| field.fits(column.width, *value))
        })
    }

    /// Whether a packet may pass.
    pub fn allows(&self, key: &[u128]) -> Option<bool> {
        self.first(key).map_or(self.default, |index| self.rules[index].allow)
    }
}
