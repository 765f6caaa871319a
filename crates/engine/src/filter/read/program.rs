//! The program of a filter: a filter becomes a program of the language that sends to port 1 what it holds
//! for, and drops the rest.
//!
//! The idea: wherever the program stands, some headers are known to be there, some not to be there, and the
//! others are open. A condition that reads a header that is not there does not hold; one that reads an open
//! header may. So each place knows a condition under which the filter certainly holds and one under which it
//! still may: a packet leaves as soon as the first holds, and is decoded further only while they differ.
//!
//! ```text
//! begin ─► frame ─► tag ─► tag ─► network ─┬─► arp
//!                                          ├─► ipv4 ─┬─────────────────────► tcp, udp, sctp, icmp
//!                                          └─► ipv6 ─┴► extension, fragment ► tcp, udp, sctp, icmpv6
//! ```

use super::expression::{Expression, Header, Leaf, Piece};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

/// The program of a filter.
pub(super) struct Text {
    /// Its text.
    pub(super) text: String,
    /// Which bytes of it come from which of the filter.
    pub(super) places: Vec<(Range<usize>, Range<usize>)>,
}

/// The number of packets for which the filter holds no more.
pub(super) const NOT_CHOSEN: &str = "not_chosen";

const DECLARED: &str =
    "import std.net.{ethernet, vlan, arp, ipv4, ipv6, ipv6_extension, tcp, udp, icmp, icmpv6}
reason not_chosen \"the filter does not hold\"
layout seen_before { verdict: u8 open: u8 reason: u16 out: u16 open2: u16 length: u32 open3: u32 }
layout fragment_header { next: u8 reserved: u8 offset: u13 res: u2 more: u1 id: u32 }
layout sctp_header { src: u16 dst: u16 tag: u32 check: u32 }
";

/// What is known at a place.
#[derive(Clone, Default)]
struct Known {
    there: BTreeSet<Header>,
    absent: BTreeSet<Header>,
    /// How the type behind all tags is called here.
    kind: &'static str,
}

impl Known {
    fn with(&self, header: Header) -> Known {
        let mut known = self.clone();
        known.there.insert(header);
        known
    }

    fn without(&self, headers: &[Header]) -> Known {
        let mut known = self.clone();
        let absent = headers.iter().filter(|header| !self.there.contains(header));
        known.absent.extend(absent);
        known
    }
}

/// A condition with what is known put in.
enum Condition {
    Known(bool),
    Open(Vec<Part>),
}

/// Text, and where it comes from.
type Part = (String, Range<usize>);

const TRANSPORTS: [Header; 6] =
    [Header::Fragment, Header::Tcp, Header::Udp, Header::Sctp, Header::Icmp, Header::Icmpv6];
const NETWORKS: [Header; 3] = [Header::Arp, Header::Ipv4, Header::Ipv6];
const TAGS: &str = "0x8100 | 0x88a8 | 0x9100";

/// Writes the program of a filter: over packets that are preceded by what became of them (`decided`), or over
/// packets before they have been run. `reasons` get the numbers by which the filter knows them.
pub(super) fn program(expression: &Expression, decided: bool, reasons: &[String]) -> Text {
    let mut reads = BTreeSet::new();
    expression.each(&mut |leaf| reads.extend(&leaf.needs));
    let out = Text { text: DECLARED.to_owned(), places: Vec::new() };
    let mut writer = Writer { expression, reads, decided, reasons, out };
    writer.all();
    writer.out
}

struct Writer<'a> {
    expression: &'a Expression,
    reads: BTreeSet<Header>,
    decided: bool,
    reasons: &'a [String],
    out: Text,
}

impl Writer<'_> {
    fn reads_any(&self, headers: &[Header]) -> bool {
        headers.iter().any(|header| self.reads.contains(header))
    }

    fn line(&mut self, text: &str) {
        self.out.text.push_str(text);
        self.out.text.push('\n');
    }

    fn all(&mut self) {
        let mut known = Known::default();
        if self.decided {
            known.there.insert(Header::Outcome);
            self.line("start decoder begin(seen: seen_before) {");
        } else {
            self.line("start stage begin() {");
        }
        let decodes = self.reads.iter().any(|header| *header != Header::Outcome);
        self.body(&known, decodes, "goto frame");
        if !decodes {
            return;
        }
        let known = known.with(Header::Ethernet);
        self.line("decoder frame(ethernet: ethernet) {");
        let tags = self.reads_any(&[Header::Vlan, Header::Kind])
            || self.reads_any(&NETWORKS)
            || self.reads_any(&TRANSPORTS);
        self.body(&known, tags, &format!("match ethernet.type {{ {TAGS} => tag, else => network0 }}"));
        if !tags {
            return;
        }
        let untagged = Known { kind: "ethernet.type", ..known.without(&[Header::Vlan]) };
        let tagged = Known { kind: "vlan.type", ..known.with(Header::Vlan) };
        let twice = Known { kind: "inner.type", ..tagged.clone() };
        self.line("decoder tag(vlan: vlan) {");
        self.body(&tagged, true, &format!("match vlan.type {{ {TAGS} => tag2, else => network1 }}"));
        self.line("decoder tag2(inner: vlan) { goto network2 }");
        for (number, known) in [untagged, tagged, twice].into_iter().enumerate() {
            self.network(number, &known.with(Header::Kind));
        }
    }

    /// Everything behind the tags of one path.
    fn network(&mut self, path: usize, known: &Known) {
        let (v4, v6) = (self.reads.contains(&Header::Ipv4), self.reads.contains(&Header::Ipv6));
        let transport = self.reads_any(&TRANSPORTS);
        let wanted = [
            (self.reads.contains(&Header::Arp), "0x0806", "arp"),
            (v4 || transport, "0x0800", "ipv4"),
            (v6 || transport, "0x86dd", "ipv6"),
        ];
        let mut arms = String::new();
        for (_, number, name) in wanted.iter().filter(|(wanted, ..)| *wanted) {
            // Writing to a text does not fail.
            let _ = write!(arms, "{number} => {name}{path}, ");
        }
        self.line(&format!("stage network{path}() {{"));
        let next = format!("match {} {{ {arms}else => other{path} }}", known.kind);
        self.body(known, !arms.is_empty(), &next);
        if arms.is_empty() {
            return;
        }
        let none = known.without(&NETWORKS).without(&TRANSPORTS);
        self.line(&format!("stage other{path}() {{"));
        self.body(&none, false, "");
        if wanted[0].0 {
            self.line(&format!("decoder arp{path}(arp: arp) {{"));
            self.body(&known.with(Header::Arp).without(&NETWORKS).without(&TRANSPORTS), false, "");
        }
        if wanted[1].0 {
            self.ipv4(path, &known.with(Header::Ipv4).without(&NETWORKS));
        }
        if wanted[2].0 {
            self.ipv6(path, &known.with(Header::Ipv6).without(&NETWORKS));
        }
    }

    /// Which headers behind IP are read, with their numbers there.
    fn behind_ip(&self, icmp: (Header, u8)) -> Vec<(Header, u8)> {
        let all = [(Header::Tcp, 6), (Header::Udp, 17), (Header::Sctp, 132), icmp];
        all.into_iter().filter(|(header, _)| self.reads.contains(header)).collect()
    }

    fn ipv4(&mut self, path: usize, known: &Known) {
        let known = known.without(&[Header::Fragment, Header::Icmpv6]);
        let behind = self.behind_ip((Header::Icmp, 1));
        self.line(&format!("decoder ipv4{path}(ipv4: ipv4) {{"));
        let arms = arms(&behind, &format!("4p{path}"));
        let next = format!(
            "if ipv4.frag != 0 {{ goto end4p{path} }} match ipv4.proto {{ {arms}else => end4p{path} }}"
        );
        self.body(&known, !behind.is_empty(), &next);
        if !behind.is_empty() {
            self.ends(&behind, &format!("4p{path}"), &known);
        }
    }

    fn ipv6(&mut self, path: usize, known: &Known) {
        let known = known.without(&[Header::Icmp]);
        let behind = self.behind_ip((Header::Icmpv6, 58));
        let further = !behind.is_empty() || self.reads.contains(&Header::Fragment);
        let whole = format!("6p{path}");
        let arms = |path: &str, fragment: &str| {
            let headers = arms(&behind, path);
            format!("0 | 43 | 60 => extension{path}, {fragment}{headers}else => end{path}")
        };
        let to_fragment = format!("44 => fragment{path}, ");
        let first = arms(&whole, &to_fragment);
        self.line(&format!("decoder ipv6{path}(ipv6: ipv6) {{"));
        self.body(&known, further, &format!("match ipv6.next {{ {first} }}"));
        if !further {
            return;
        }
        self.line(&format!(
            "decoder extension{whole}(extension: ipv6_extension) {{ match extension.next {{ {first} }} }}"
        ));
        let in_fragment = known.with(Header::Fragment);
        let cut = format!("6f{path}");
        let later = arms(&cut, "");
        self.line(&format!("decoder fragment{path}(fragment: fragment_header) {{"));
        let next = format!("if fragment.offset != 0 {{ goto end{cut} }} match fragment.next {{ {later} }}");
        self.body(&in_fragment, !behind.is_empty(), &next);
        if !behind.is_empty() {
            self.line(&format!(
                "decoder extension{cut}(extension: ipv6_extension) {{ match extension.next {{ {later} }} }}"
            ));
            self.ends(&behind, &cut, &in_fragment);
        }
        self.ends(&behind, &whole, &known.without(&[Header::Fragment]));
    }

    /// The last headers of a path, and its end where there is none of them.
    fn ends(&mut self, behind: &[(Header, u8)], path: &str, known: &Known) {
        for (header, _) in behind {
            let (name, layout) = transport(*header);
            self.line(&format!("decoder {name}{path}({name}: {layout}) {{"));
            self.body(&known.with(*header).without(&TRANSPORTS), false, "");
        }
        self.line(&format!("stage end{path}() {{"));
        self.body(&known.without(&TRANSPORTS), false, "");
    }

    /// What is known here decides, or the packet is decoded further.
    fn body(&mut self, known: &Known, further: bool, next: &str) {
        let certain = self.condition(self.expression, known, false);
        let possible = self.condition(self.expression, known, true);
        let further = further
            && !matches!((&certain, &possible), (Condition::Known(true), _) | (_, Condition::Known(false)));
        // Where nothing further is read, what may hold does: what is open then is decided later, by what
        // became of the packet.
        match if further { certain } else { possible } {
            Condition::Known(true) => self.line("    send 1 }"),
            Condition::Known(false) if further => self.line(&format!("    {next} }}")),
            Condition::Known(false) => self.line("    drop not_chosen }"),
            Condition::Open(parts) => {
                self.out.text.push_str("    if ");
                for (text, from) in parts {
                    let start = self.out.text.len();
                    self.out.text.push_str(&text);
                    if !from.is_empty() {
                        self.out.places.push((start..self.out.text.len(), from));
                    }
                }
                let otherwise = if further { next } else { "drop not_chosen" };
                self.line(&format!(" {{ send 1 }}\n    {otherwise} }}"));
            }
        }
    }

    /// When an expression holds: certainly, or possibly where `open` is true.
    fn condition(&self, expression: &Expression, known: &Known, open: bool) -> Condition {
        match expression {
            Expression::Constant(value) => Condition::Known(*value),
            Expression::Leaf(leaf) => self.leaf(leaf, known, open),
            Expression::Not(inner) => match self.condition(inner, known, !open) {
                Condition::Known(value) => Condition::Known(!value),
                Condition::Open(mut parts) => {
                    parts.insert(0, ("!(".into(), 0..0));
                    parts.push((")".into(), 0..0));
                    Condition::Open(parts)
                }
            },
            Expression::All(parts) => self.join(parts, known, open, " && ", false),
            Expression::Any(parts) => self.join(parts, known, open, " || ", true),
        }
    }

    fn join(&self, parts: &[Expression], known: &Known, open: bool, by: &str, decides: bool) -> Condition {
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            match self.condition(part, known, open) {
                Condition::Known(value) if value == decides => return Condition::Known(value),
                Condition::Known(_) => {}
                Condition::Open(parts) => {
                    joined.push((if joined.is_empty() { "(".into() } else { by.to_owned() }, 0..0));
                    joined.extend(parts);
                }
            }
        }
        if joined.is_empty() {
            return Condition::Known(!decides);
        }
        joined.push((")".into(), 0..0));
        Condition::Open(joined)
    }

    fn leaf(&self, leaf: &Leaf, known: &Known, open: bool) -> Condition {
        if leaf.needs.iter().any(|header| known.absent.contains(header)) {
            return Condition::Known(false);
        }
        if !leaf.needs.iter().all(|header| known.there.contains(header)) {
            return Condition::Known(open);
        }
        if let [Piece::Text(text, _)] = leaf.pieces.as_slice()
            && text == "true"
        {
            return Condition::Known(true);
        }
        let mut parts = vec![("(".to_owned(), 0..0)];
        parts.extend(leaf.pieces.iter().map(|piece| match piece {
            Piece::Text(text, from) => (text.clone(), from.clone()),
            Piece::Length => ((if self.decided { "seen.length" } else { "length" }).to_owned(), 0..0),
            Piece::Kind => (known.kind.to_owned(), 0..0),
            Piece::Reason(name) => {
                let number =
                    self.reasons.iter().position(|reason| reason == name).map_or(0, |index| index + 1);
                (number.to_string(), 0..0)
            }
        }));
        parts.push((")".into(), 0..0));
        Condition::Open(parts)
    }
}

/// The arms of a `match` on what follows IP.
fn arms(behind: &[(Header, u8)], path: &str) -> String {
    behind.iter().map(|(header, number)| format!("{number} => {}{path}, ", transport(*header).0)).collect()
}

/// How a header behind IP is called, and its layout.
fn transport(header: Header) -> (&'static str, &'static str) {
    match header {
        Header::Tcp => ("tcp", "tcp"),
        Header::Udp => ("udp", "udp"),
        Header::Sctp => ("sctp", "sctp_header"),
        Header::Icmp => ("icmp", "icmp"),
        _ => ("icmpv6", "icmpv6"),
    }
}
