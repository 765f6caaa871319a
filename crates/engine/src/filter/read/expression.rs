//! A filter as an expression: conditions on headers and on what became of a packet, joined by and, or and
//! not.
//!
//! Both spellings are read by one parser, so they can be mixed. What begins like a primitive of pcap-filter
//! is one; everything else up to the next `and`, `or` or bracket is an expression of the language, which is
//! kept as it is written.

use super::error::{FilterError, UNDERSTOOD};
use super::pcap::{self, Qualifiers};
use super::words::{Word, words};
use std::collections::BTreeSet;
use std::ops::Range;

/// What a condition reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Header {
    /// What the program decided: verdict, reason, way out.
    Outcome,
    /// Ethernet.
    Ethernet,
    /// The first tag.
    Vlan,
    /// The type behind all tags.
    Kind,
    /// ARP.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// The fragment header of IPv6.
    Fragment,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP.
    Icmp,
    /// ICMPv6.
    Icmpv6,
}

/// Headers by the names that filters give them; the first name of each is the one in the program.
pub(super) const NAMES: [(Header, &[&str]); 10] = [
    (Header::Ethernet, &["ethernet", "eth", "ether"]),
    (Header::Vlan, &["vlan"]),
    (Header::Arp, &["arp"]),
    (Header::Ipv4, &["ipv4", "ip", "ip4"]),
    (Header::Ipv6, &["ipv6", "ip6"]),
    (Header::Tcp, &["tcp"]),
    (Header::Udp, &["udp"]),
    (Header::Sctp, &["sctp"]),
    (Header::Icmp, &["icmp"]),
    (Header::Icmpv6, &["icmpv6", "icmp6"]),
];

/// Enums of the standard library, whose members are written with a dot as well.
const ENUMS: [&str; 5] = ["ethertype", "arp_operation", "ip_protocol", "icmp_type", "icmpv6_type"];

/// A part of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text of the language, and where it comes from.
    Text(String, Range<usize>),
    /// The length on the wire.
    Length,
    /// The type behind all tags.
    Kind,
    /// The number of a reason.
    Reason(String),
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// What it reads: where one of these is not there, the condition does not hold.
    pub(super) needs: BTreeSet<Header>,
    /// The condition in the language.
    pub(super) pieces: Vec<Piece>,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// Always or never.
    Constant(bool),
    /// One condition.
    Leaf(Leaf),
    /// The opposite.
    Not(Box<Expression>),
    /// All of them.
    All(Vec<Expression>),
    /// One of them.
    Any(Vec<Expression>),
}

impl Expression {
    /// A condition on one header that is written here.
    pub(super) fn made(header: Header, text: impl Into<String>) -> Expression {
        Expression::of([header], vec![Piece::Text(text.into(), 0..0)])
    }

    /// A condition.
    pub(super) fn of(needs: impl IntoIterator<Item = Header>, pieces: Vec<Piece>) -> Expression {
        Expression::Leaf(Leaf { needs: needs.into_iter().collect(), pieces })
    }

    /// The only part, or all of them joined.
    pub(super) fn joined(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
        if parts.len() == 1 { parts.remove(0) } else { join(parts) }
    }

    /// Shows every condition.
    pub(super) fn each(&self, see: &mut dyn FnMut(&Leaf)) {
        match self {
            Expression::Constant(_) => {}
            Expression::Leaf(leaf) => see(leaf),
            Expression::Not(inner) => inner.each(see),
            Expression::All(parts) | Expression::Any(parts) => parts.iter().for_each(|part| part.each(see)),
        }
    }
}

/// How deep brackets and negations may nest.
const DEEPEST: usize = 100;

/// Reads a filter.
pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    let words = words(text)?;
    if words.is_empty() {
        return Ok(Expression::Constant(true));
    }
    let mut parser = Parser { text, words, next: 0, depth: 0, last: None };
    let expression = parser.chain()?;
    match parser.peek() {
        None => Ok(expression),
        Some(word) => {
            let message = format!("`{}` is not expected here", word.text);
            Err(FilterError::new(text, word.span.clone(), message, "join conditions by `and` or `or`"))
        }
    }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    words: Vec<Word>,
    next: usize,
    depth: usize,
    /// What the last primitive of pcap-filter was about: a value alone repeats it (`port 80 or 443`).
    pub(super) last: Option<Qualifiers>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    And,
    Or,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<&Word> {
        self.words.get(self.next)
    }

    pub(super) fn peek_behind(&self) -> Option<&Word> {
        self.words.get(self.next + 1)
    }

    pub(super) fn take(&mut self) -> Option<Word> {
        let word = self.words.get(self.next).cloned();
        self.next += 1;
        word
    }

    /// Takes the next word if it is this one.
    pub(super) fn taken(&mut self, wanted: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.text == wanted && !word.quoted);
        self.next += usize::from(is);
        is
    }

    /// A fault at the next word, or at the end.
    pub(super) fn fault(&self, message: impl Into<String>, help: impl Into<String>) -> FilterError {
        let end = self.text.len();
        let span = self.peek().map_or(end..end, |word| word.span.clone());
        FilterError::new(self.text, span, message, help)
    }

    fn joint(&self) -> Option<Joint> {
        match self.peek()?.text.as_str() {
            "and" | "&&" => Some(Joint::And),
            "or" | "||" => Some(Joint::Or),
            _ => None,
        }
    }

    /// Conditions joined by `and` and `or`.
    fn chain(&mut self) -> Result<Expression, FilterError> {
        let (first, mut pcap) = self.not()?;
        let mut any = vec![vec![first]];
        while let Some(joint) = self.joint() {
            let at = self.peek().map(|word| word.span.clone()).unwrap_or_default();
            self.next += 1;
            let (part, primitive) = self.not()?;
            pcap |= primitive;
            if joint == Joint::And && any.len() > 1 && pcap {
                return Err(FilterError::new(
                    self.text,
                    at,
                    "`and` behind `or` means different things to different programs",
                    "say what belongs together with brackets: `(a or b) and c`, which is how tcpdump reads it, or `a or (b and c)`",
                ));
            }
            match (joint, any.last_mut()) {
                (Joint::And, Some(all)) => all.push(part),
                _ => any.push(vec![part]),
            }
        }
        let parts = any.into_iter().map(|all| Expression::joined(all, Expression::All));
        Ok(Expression::joined(parts.collect(), Expression::Any))
    }

    /// One condition, and whether it is spelled as in pcap-filter.
    fn not(&mut self) -> Result<(Expression, bool), FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(
                self.fault("this nests too deep", format!("at most {DEEPEST} brackets and negations"))
            );
        }
        let result = if self.taken("!") || self.taken("not") {
            let (inner, pcap) = self.not()?;
            (Expression::Not(Box::new(inner)), pcap)
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(result)
    }

    fn primary(&mut self) -> Result<(Expression, bool), FilterError> {
        if self.peek().is_none() {
            return Err(self.fault("a condition is missing at the end", UNDERSTOOD));
        }
        if self.is_group()? {
            self.next += 1;
            let inner = self.chain()?;
            if !self.taken(")") {
                return Err(self.fault("a `)` is missing here", UNDERSTOOD));
            }
            return Ok((inner, false));
        }
        if let Some(expression) = self.outcome()? {
            return Ok((expression, false));
        }
        if let Some(expression) = pcap::primitive(self)? {
            return Ok((expression, true));
        }
        Ok((self.leaf()?, false))
    }

    /// Whether a bracket that opens here holds whole conditions, rather than a part of one.
    fn is_group(&self) -> Result<bool, FilterError> {
        if self.peek().is_none_or(|word| word.text != "(" || word.quoted) {
            return Ok(false);
        }
        let mut depth = 0;
        for (index, word) in self.words.iter().enumerate().skip(self.next) {
            match word.text.as_str() {
                "(" if !word.quoted => depth += 1,
                ")" if !word.quoted => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let behind = self.words.get(index + 1).map(|word| word.text.as_str());
                return Ok(matches!(behind, None | Some("and" | "or" | "&&" | "||" | ")")));
            }
        }
        Err(self.fault("this bracket is not closed", "add `)`"))
    }

    /// `verdict == drop`, `reason == no_route`, `out_port == 2`.
    fn outcome(&mut self) -> Result<Option<Expression>, FilterError> {
        let Some(word) = self.peek().cloned() else { return Ok(None) };
        if !matches!(word.text.as_str(), "verdict" | "reason") || word.quoted {
            return Ok(None);
        }
        self.next += 1;
        let equal = match self.take().map(|word| word.text).as_deref() {
            Some("==" | "=") => true,
            Some("!=") => false,
            _ => {
                self.next -= 1;
                let help = if word.text == "verdict" { VERDICTS } else { REASONS };
                return Err(self.fault(format!("`{}` is compared by == or !=", word.text), help));
            }
        };
        let condition = if word.text == "verdict" { self.verdict()? } else { self.reason()? };
        Ok(Some(if equal { condition } else { Expression::Not(Box::new(condition)) }))
    }

    fn verdict(&mut self) -> Result<Expression, FilterError> {
        let number = match self.peek().map(|word| word.text.as_str()) {
            Some("send") => "1",
            Some("flood") => "2",
            Some("multicast") => "3",
            Some("punt") => "4",
            Some("drop") => "5",
            Some("forward") => {
                self.next += 1;
                return Ok(Expression::made(Header::Outcome, "seen.verdict in 1..3"));
            }
            _ => return Err(self.fault("there is no such verdict", VERDICTS)),
        };
        self.next += 1;
        Ok(Expression::made(Header::Outcome, format!("seen.verdict == {number}")))
    }

    fn reason(&mut self) -> Result<Expression, FilterError> {
        let Some(word) = self.take() else {
            return Err(self.fault("a reason is missing", REASONS));
        };
        let mut name = word.text.clone();
        // Reasons that the compiler adds have brackets: short(ipv4).
        if !word.quoted
            && self.peek().is_some_and(|next| next.text == "(" && next.span.start == word.span.end)
        {
            let inner = self.peek_behind().map(|word| word.text.clone()).unwrap_or_default();
            self.next += 2;
            if !self.taken(")") {
                return Err(self.fault("a `)` is missing here", REASONS));
            }
            name = format!("{name}({inner})");
        }
        let pieces = vec![Piece::Text("seen.reason == ".into(), word.span), Piece::Reason(name)];
        Ok(Expression::of([Header::Outcome], pieces))
    }

    /// An expression of the language, up to where the next condition begins.
    fn leaf(&mut self) -> Result<Expression, FilterError> {
        let (mut needs, mut pieces, mut depth) = (BTreeSet::new(), Vec::new(), 0);
        let mut last = None;
        while let Some(word) = self.peek().cloned() {
            match word.text.as_str() {
                "(" => depth += 1,
                ")" if depth == 0 => break,
                ")" => depth -= 1,
                "and" | "or" | "&&" | "||" if depth == 0 => break,
                _ => {}
            }
            self.next += 1;
            if word.quoted {
                return Err(FilterError::new(self.text, word.span, "only reasons are texts", REASONS));
            }
            if last.is_some_and(|end| end < word.span.start) {
                pieces.push(Piece::Text(" ".into(), word.span.clone()));
            }
            last = Some(word.span.end);
            pieces.push(self.piece(word, &mut needs)?);
        }
        let leaves = pieces.contains(&Piece::Text("seen.out".into(), 0..0));
        let leaf = Expression::of(needs, pieces);
        if leaves {
            let sent = Expression::made(Header::Outcome, "seen.verdict == 1");
            return Ok(Expression::All(vec![sent, leaf]));
        }
        Ok(leaf)
    }

    fn piece(&self, word: Word, needs: &mut BTreeSet<Header>) -> Result<Piece, FilterError> {
        let text = match word.text.as_str() {
            "length" | "len" => return Ok(Piece::Length),
            "port" | "in_port" => "in_port".to_owned(),
            "out_port" => {
                needs.insert(Header::Outcome);
                return Ok(Piece::Text("seen.out".to_owned(), 0..0));
            }
            "=" => "==".to_owned(),
            text => match text.split_once('.') {
                Some((name, rest))
                    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') =>
                {
                    let header = NAMES.iter().find(|(_, names)| names.contains(&name));
                    match header {
                        Some((header, names)) => {
                            needs.insert(*header);
                            format!("{}.{rest}", names[0])
                        }
                        None if ENUMS.contains(&name) => text.to_owned(),
                        None => {
                            let known: Vec<&str> = NAMES.iter().map(|(_, names)| names[0]).collect();
                            let help = format!("headers are {}", known.join(", "));
                            let message = format!("there is no header `{name}`");
                            return Err(FilterError::new(self.text, word.span, message, help));
                        }
                    }
                }
                _ => text.to_owned(),
            },
        };
        Ok(Piece::Text(text, word.span))
    }
}

const VERDICTS: &str =
    "verdicts are send, flood, multicast, punt, drop, and forward for any of the first three";
const REASONS: &str =
    "write `reason == no_route`, or in quotes `reason == \"short(ipv4)\"`; `ravelin show drops` lists them";
