//! The values of options that stand for values of other crates.

use captures::generate::Profile;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use exec::BackendKind;
use exec::kernel::{Back, CopiedPart};
use import::address::AddressFamily;
use lab::{ComparedTable, DeviceChoice};
use lang::pipeline::Decode;
use ports::{CaptureLinks, Order};
use tables::generate::rules::Flavour;

/// A value of an option: its word, what it stands for, and its help.
pub(crate) type Choice<T> = (&'static str, T, &'static str);

/// A parser for an option with these values.
pub(crate) fn one_of<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let words = choices.iter().map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).try_map(|word| {
        let found = choices.iter().find(|(own, ..)| *own == word);
        found.map(|(_, value, _)| value.clone()).ok_or("no such value")
    })
}

/// The word for a value of an option.
pub(crate) fn word_of<T: PartialEq>(choices: &[Choice<T>], value: T) -> &'static str {
    choices.iter().find(|(_, own, _)| *own == value).map_or("", |(word, ..)| word)
}

/// How much of each header is decoded.
pub(crate) static DECODE: [Choice<Decode>; 3] = [
    ("lazy", Decode::Lazy, "Only fields that are used"),
    ("declared", Decode::Declared, "Fields that the program extracts by name, and those that are used"),
    ("full", Decode::Full, "Every field of every header"),
];

/// What of a packet goes over to a device.
pub(crate) static OVER: [Choice<CopiedPart>; 5] = [
    (
        "header",
        CopiedPart::Header,
        "The bytes that the program can read, from the first on, rounded up to 16",
    ),
    ("frame", CopiedPart::Frame, "The whole frame, in 2,048 bytes"),
    ("page", CopiedPart::Page, "The whole frame, in 4,096 bytes"),
    ("packed", CopiedPart::Packed, "Only the bytes that the program reads, one behind the other"),
    ("in-place", CopiedPart::InPlace, "The whole frame where it lies, and a word that says where that is"),
];

/// What of a packet comes back from a device.
pub(crate) static BACK: [Choice<Back>; 3] = [
    ("word", Back::Word, "32 bits"),
    ("half", Back::Half, "16 bits"),
    ("bit", Back::Bit, "One bit, where a program has two outcomes"),
];

/// Which link types are let through.
pub(crate) static LINKS: [Choice<CaptureLinks>; 2] = [
    ("ethernet", CaptureLinks::Ethernet, "Ethernet only; another link type is an error"),
    ("any", CaptureLinks::Any, "All, handed to the program as they are"),
];

/// The order of repeated packets.
pub(crate) static ORDERS: [Choice<Order>; 2] = [
    ("replay", Order::Replay, "The whole capture, again and again"),
    ("each", Order::Each, "Each packet as often as wanted, then the next"),
];

/// What executes tests.
pub(crate) static TEST_BACK_ENDS: [Choice<&[BackendKind]>; 4] = [
    ("interpreter", &[BackendKind::Interpreter], "Step by step"),
    ("bytecode", &[BackendKind::Bytecode], "As bytecode"),
    ("native", &[BackendKind::Native], "As machine code"),
    ("all", &BackendKind::ALL, "One after the other"),
];

/// Shapes of traffic.
pub(crate) static PRESETS: [Choice<fn() -> Profile>; 4] = [
    ("sample1", Profile::sample1, "14,261 packets of 646 bytes on average, mostly web"),
    ("sample2", Profile::sample2, "791,615 packets of 449 bytes on average, mostly web"),
    ("sample3", Profile::sample3, "2,274,747 packets of 76 bytes on average, hardly any web"),
    ("demo", Profile::demo, "A small mixture of everything"),
];

/// Kinds of devices.
pub(crate) static DEVICES: [Choice<DeviceChoice>; 3] = [
    ("opencl", DeviceChoice::OpenCl, "The best one by OpenCL"),
    ("cuda", DeviceChoice::Cuda, "An NVIDIA device by CUDA"),
    ("host", DeviceChoice::Host, "Threads of this machine"),
];

/// Kinds of tables.
pub(crate) static TABLES: [Choice<ComparedTable>; 4] = [
    ("lpm", ComparedTable::Lpm, "Longest prefixes"),
    ("rules", ComparedTable::Rules, "Rules in order"),
    ("exact", ComparedTable::Exact, "Exact keys"),
    ("patterns", ComparedTable::Patterns, "Patterns in payload"),
];

/// What rules are modelled on.
pub(crate) static FLAVOURS: [Choice<Flavour>; 3] = [
    ("acl", Flavour::AccessList, "Access lists"),
    ("firewall", Flavour::Firewall, "Firewalls"),
    ("chains", Flavour::Chains, "Chains of a Linux gateway"),
];

/// Families of addresses.
pub(crate) static FAMILIES: [Choice<AddressFamily>; 2] =
    [("v4", AddressFamily::V4, "IPv4"), ("v6", AddressFamily::V6, "IPv6")];

/// What happens to packets: whether they may pass.
pub(crate) static DECISIONS: [Choice<bool>; 2] =
    [("accept", true, "They may pass"), ("drop", false, "They may not")];
