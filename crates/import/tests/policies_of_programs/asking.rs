//! A program that asks the hooks of a policy whose rules come from a file, what it is asked, and the buckets
//! of the rates that the rules ask for.

use exec::{Backend, Outputs};
use packet::Batch;
use policy::{HookPoint, Memory, PacketField, Policy};
use tables::meter::{Colour, MeterModel, MeterRates, MeterSpec, Unit};

/// The columns of the program: fields, types, and which bit of `there` says that a packet has them.
pub(crate) const COLUMNS: [(PacketField, &str, Option<u16>); 18] = [
    (PacketField::Family, "u8", None),
    (PacketField::Source, "ip6", None),
    (PacketField::Destination, "ip6", None),
    (PacketField::Protocol, "u8", None),
    (PacketField::SourcePort, "u16", Some(1)),
    (PacketField::DestinationPort, "u16", Some(1)),
    (PacketField::IcmpType, "u8", Some(2)),
    (PacketField::IcmpCode, "u8", Some(2)),
    (PacketField::TcpFlags, "u8", Some(4)),
    (PacketField::LaterFragment, "u8", None),
    (PacketField::Dscp, "u8", None),
    (PacketField::Ecn, "u8", None),
    (PacketField::TimeToLive, "u8", None),
    (PacketField::Length, "u16", None),
    (PacketField::State, "u8", None),
    (PacketField::OutState, "u8", None),
    (PacketField::InPort, "u16", None),
    (PacketField::OutPort, "u16", None),
];

pub(crate) const POINTS: [(HookPoint, &str); 5] = [
    (HookPoint::In, "in"),
    (HookPoint::Forward, "forward"),
    (HookPoint::ToGateway, "to_gateway"),
    (HookPoint::FromGateway, "from_gateway"),
    (HookPoint::Out, "out"),
];

/// A program that asks one hook about each packet, by rules of this format with these interfaces, and counts
/// what is decided, by which line.
pub(crate) fn counting(format: &str, interfaces: &str) -> String {
    let fields: Vec<String> =
        COLUMNS.iter().map(|(field, ty, _)| format!("{}: {ty}", field.name())).collect();
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(field, ty, there)| {
            let ty = if matches!(field, PacketField::InPort | PacketField::OutPort) { "port" } else { ty };
            format!("{}: {ty}{}", field.name(), if there.is_some() { " absent" } else { "" })
        })
        .collect();
    let args: Vec<String> = COLUMNS
        .iter()
        .map(|(field, _, there)| match there {
            Some(bit) => format!("p.{name}, p.there & {bit} != 0", name = field.name()),
            None if matches!(field, PacketField::InPort | PacketField::OutPort) => {
                format!("p.{} as port", field.name())
            }
            None => format!("p.{}", field.name()),
        })
        .collect();
    let (columns, args) = (columns.join(", "), args.join(", "));
    let asks: Vec<String> =
        (0..).zip(POINTS).map(|(at, (_, word))| format!("{at} => goto edge.{word}({args})")).collect();
    let hooks: Vec<String> = POINTS.iter().map(|(_, word)| format!("hook {word}")).collect();
    format!(
        "layout probe {{ point: u8 there: u16 {} }}
        counter acts[4]
        counter rules[256]
        counter kinds[1024]
        counter logged[256]
        counter reaches[4]
        policy edge({columns}) {{
            from \"rules\" as {format} interfaces {{ {interfaces} }}
            {}
            pass => {{ count acts[0] count rules[rule & 255] flood }}
            keep => {{ count acts[1] count rules[rule & 255] count reaches[(reach as u8) & 3] flood }}
            block => {{ count acts[2] count rules[rule & 255] flood }}
            reject => {{ count acts[3] count rules[rule & 255] count kinds[(kind as u16) & 1023] flood }}
            log => count logged[rule & 255]
        }}
        start decoder frame(p: probe) {{ match p.point {{ {} else => flood }} }}\n",
        fields.join(" "),
        hooks.join("\n"),
        asks.join("\n"),
    )
}

/// The bytes of a packet that asks at a point, with a value for each of the columns; `there` are the bits of
/// those that it has.
pub(crate) fn probe(point: HookPoint, there: u16, values: [u128; COLUMNS.len()]) -> Vec<u8> {
    let number = POINTS.iter().position(|(own, _)| *own == point).expect("it is asked");
    let mut bytes = vec![number as u8];
    bytes.extend(there.to_be_bytes());
    for ((_, ty, _), value) in COLUMNS.into_iter().zip(values) {
        let width = match ty {
            "ip6" => 16,
            "u16" => 2,
            _ => 1,
        };
        bytes.extend(&value.to_be_bytes()[16 - width..]);
    }
    bytes
}

/// Has the program decide about one packet, in nanoseconds of its clock.
pub(crate) fn run_one(backend: &mut dyn Backend, packet: &[u8], now: u64) {
    let length = packet.len() as u32;
    let mut memory = packet.to_vec();
    memory.resize(192, 0);
    let mut batch = Batch::new();
    batch.push(0, length, length, 1, now);
    backend.run(&mut memory, &mut batch, &mut Outputs::default());
}

/// What its counters say: verdicts, rules, kinds of rejections, what was logged, and what `keep` reaches.
pub(crate) fn counts(backend: &dyn Backend) -> Vec<Vec<u64>> {
    (0..5).map(|counter| backend.counter(counter).iter().map(|(packets, _)| *packets).collect()).collect()
}

/// The buckets of the rates that a policy asks for.
pub(crate) struct Buckets(Vec<Option<(MeterModel, bool)>>);

impl Buckets {
    pub(crate) fn of(policy: &Policy) -> Buckets {
        let bucket = |memory: &Memory| {
            let rate = memory.rate.as_ref().ok()?;
            let (committed, committed_burst) = (rate.tokens.into(), rate.burst);
            let rates = MeterRates::Single { committed, committed_burst, excess_burst: 0 };
            let spec = MeterSpec { cells: 1, rates, period: rate.seconds, unit: Unit::Packets, aware: false };
            Some((MeterModel::new(spec).expect("a rate of a file has a meter"), rate.over))
        };
        Buckets(policy.memories.iter().map(bucket).collect())
    }

    /// Whether a packet at this time meets the condition.
    pub(crate) fn asked(&mut self, memory: usize, now: u64) -> bool {
        let (bucket, over) = self.0[memory].as_mut().expect("nothing else is remembered here");
        let within = bucket.mark(0, 1, Colour::Green, now) == Colour::Green;
        within != *over
    }
}
