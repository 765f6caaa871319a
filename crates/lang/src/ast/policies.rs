//! The syntax tree of a policy: hooks, groups of rules, and what happens to packets.

use super::{Binding, Block, EntryKey, Expr, ExprKind, FileOption, Name, Param};
use ir::source::{FileId, Span};
use policy::{MatchOrder, Reject, Unreachable};

/// `policy NAME(columns) { capacity 10k  hook …  pass => …  group … }`
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyDeclaration {
    /// Its name.
    pub name: Name,
    /// What packets are asked about with.
    pub columns: Vec<PolicyColumn>,
    /// Where its rules and defaults come from, if they do not stand in the program.
    pub file: Option<RulesFile>,
    /// How many rows the table of each hook holds.
    pub capacity: Option<Expr>,
    /// `counted times`: its rows keep when they were found first and last.
    pub counted_times: Option<Span>,
    /// Where it is asked.
    pub hooks: Vec<PolicyHook>,
    /// What happens to packets.
    pub outcomes: Vec<PolicyOutcome>,
    /// Its rules.
    pub groups: Vec<PolicyGroup>,
    /// The whole declaration.
    pub span: Span,
}

/// `from "rules.v4" as iptables family ip4 interfaces { eth0 = 1 }`
#[derive(Clone, Debug, PartialEq)]
pub struct RulesFile {
    /// Its path.
    pub path: String,
    /// Its format.
    pub format: Name,
    /// How to read it.
    pub options: Vec<FileOption>,
    /// The file among those of the program, and its text, if it could be read.
    pub text: Option<(FileId, String)>,
    /// The limits of its rules, in the order in which they are read.
    pub limits: Vec<RuleLimit>,
    /// The whole property.
    pub span: Span,
}

impl RulesFile {
    /// The ports of the interfaces that it names.
    pub fn bindings(&self) -> &[Binding] {
        let bindings = self.options.iter().find_map(|option| match option {
            FileOption::Interfaces(bindings, _) => Some(&bindings[..]),
            _ => None,
        });
        bindings.unwrap_or_default()
    }
}

/// `sport: u16 absent`
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyColumn {
    /// Its name and type.
    pub param: Param,
    /// What rules can say of it.
    pub presence: ColumnPresence,
}

/// What rules can say of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnPresence {
    /// Its value: every packet has one.
    Always,
    /// `absent`: its value, or that the packet has none.
    Optional,
    /// `carried`: nothing. The value goes on to the stages that act on a packet.
    Carried,
}

/// `hook forward { group NAME default block }`
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyHook {
    /// `in`, `forward`, `to_gateway`, `from_gateway` or `out`.
    pub point: Name,
    /// The group that is asked first.
    pub group: Option<Name>,
    /// What happens to packets that no rule decides about.
    pub default: Option<RuleDecision>,
    /// The whole of it.
    pub span: Span,
}

/// `pass => BODY`: what is done with packets for which a rule says `pass`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyOutcome {
    /// `pass`, `keep`, `block`, `reject` or `log`.
    pub word: Name,
    /// What is done.
    pub body: Block,
    /// The whole of it.
    pub span: Span,
}

/// `group NAME last { rules }`
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyGroup {
    /// Its name.
    pub name: Name,
    /// Which rule decides.
    pub order: MatchOrder,
    /// The rules.
    pub rules: Vec<DeclaredRule>,
    /// The whole of it.
    pub span: Span,
}

/// `limit 10/s burst 20 log block final proto 17, dport 80 | 443`
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredRule {
    /// It matches only packets within this rate.
    pub limit: Option<RuleLimit>,
    /// Packets that it matches are logged.
    pub log: bool,
    /// What it does with them.
    pub action: DeclaredAction,
    /// No later rule is looked at.
    pub decides_at_once: bool,
    /// What all must hold.
    pub conditions: Vec<DeclaredCondition>,
    /// The whole of it.
    pub span: Span,
}

/// `limit 10/s burst 20`, `limit 3/min burst 5`, or `limit 125k bytes/s burst 64k`
#[derive(Clone, Debug, PartialEq)]
pub struct RuleLimit {
    /// How many tokens arrive in the time.
    pub rate: LimitNumber,
    /// The seconds of the time.
    pub seconds: u32,
    /// Tokens are bytes of packets, not packets.
    pub bytes: bool,
    /// How many tokens the full bucket holds.
    pub burst: LimitNumber,
    /// The whole of it.
    pub span: Span,
}

/// A number of a limit as it is written: nothing else can be one.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitNumber {
    /// A number, and where it stands.
    Int(u128, Span),
    /// The name of a constant.
    Constant(Name),
}

impl LimitNumber {
    /// The same as an expression.
    pub fn expression(&self) -> Expr {
        match self {
            LimitNumber::Int(number, span) => Expr { kind: ExprKind::Int(*number), span: *span },
            LimitNumber::Constant(name) => Expr { kind: ExprKind::Word(name.text.clone()), span: name.span },
        }
    }
}

/// The times of rates and their seconds.
pub const RATE_TIMES: [(&str, u32); 4] = [("s", 1), ("min", 60), ("h", 3_600), ("day", 86_400)];

/// The word of a time of so many seconds; one of a file may have none.
pub fn rate_time(seconds: u32) -> Option<&'static str> {
    RATE_TIMES.iter().find(|(_, own)| *own == seconds).map(|(word, _)| *word)
}

/// What a rule does with packets that it matches.
#[derive(Clone, Debug, PartialEq)]
pub enum DeclaredAction {
    /// `pass`, `keep`, `block` or `reject`
    Decide(RuleDecision),
    /// `jump NAME`
    Jump(Name),
    /// `return`
    Return,
    /// `count`, or `log` alone: they go on to the next rule.
    Continue,
}

/// A verdict of a rule or default, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleDecision {
    /// `pass`, `keep`, `block` or `reject`.
    pub word: Name,
    /// What the sender is told, behind `reject`.
    pub reject: Option<Reject>,
}

/// What a sender can be told besides a code, by its word; its number in the enum `reject_kind` is its place.
pub const REJECTS: [(&str, Reject); 6] = [
    ("tcp_reset", Reject::TcpReset),
    ("by_protocol", Reject::ByProtocol),
    ("no_route", Reject::Unreachable(Unreachable::NoRoute)),
    ("host", Reject::Unreachable(Unreachable::Host)),
    ("port", Reject::Unreachable(Unreachable::Port)),
    ("prohibited", Reject::Unreachable(Unreachable::Prohibited)),
];

/// `dport not 80 | 8000..8080` or `dport absent`
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredCondition {
    /// The column.
    pub column: Name,
    /// The values that it has, or has not; `None` if the packet has no value there.
    pub values: Option<Vec<EntryKey>>,
    /// `not`: none of them.
    pub negated: bool,
    /// The whole of it.
    pub span: Span,
}
