//! `ravelin generate`: writes captures of generated traffic, the same for the same options.

use crate::arguments::GenerateArguments;
use crate::failure::Failure;
use crate::render;
use crate::render::quantity::{bytes, of};
use captures::generate::{Generator, Profile};
use captures::write::{Interface, PcapWriter, PcapngWriter};
use packet::LinkType;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};

/// The seed where none is given.
const SEED: u64 = 1;

/// Runs the command.
pub(crate) fn run(arguments: &GenerateArguments, json: bool) -> Result<(), Failure> {
    if let Some(kind) = &arguments.kind {
        return super::generate_table::run(kind, json);
    }
    let to_standard_output = arguments.output == "-";
    if to_standard_output && json {
        return Err(Failure::Usage("--json and the capture both want standard output; add `-o FILE`".into()));
    }
    if to_standard_output && io::stdout().is_terminal() {
        return Err(Failure::Usage("a capture is no text for a terminal; add `-o FILE` or a pipe".into()));
    }
    let profile = profile(arguments)?;
    let seed = arguments.seed.unwrap_or(SEED);
    let mut generator =
        Generator::new(&profile, seed).map_err(|error| Failure::Usage(in_options(&error.to_string())))?;
    let output: Box<dyn Write> = if to_standard_output {
        Box::new(io::stdout().lock())
    } else {
        let cannot = |error| Failure::Usage(format!("cannot write {}: {error}", arguments.output));
        Box::new(File::create(&arguments.output).map_err(cannot)?)
    };
    let mut sink = Sink::new(BufWriter::with_capacity(1 << 20, output), arguments.output.ends_with(".pcap"))?;
    let bar = io::stderr().is_terminal().then(|| render::progress::bar(Some(profile.packets)));
    let mut frame = Vec::new();
    let (mut packets, mut wire) = (0, 0);
    while let Some(stamp) = generator.next(&mut frame) {
        sink.write(stamp.time, stamp.wire, &frame)?;
        packets += 1;
        wire += u64::from(stamp.wire);
        if let Some(bar) = &bar
            && packets % 1024 == 0
        {
            bar.set_position(packets);
        }
    }
    sink.finish()?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if json {
        render::json(
            &json!({ "output": arguments.output, "packets": packets, "bytes": wire, "seed": seed }),
        )?;
    } else if !to_standard_output {
        let what = of(packets, "packet");
        render::text(&format!("{}: {what}, {} on the wire, seed {seed}\n", arguments.output, bytes(wire)))?;
    }
    Ok(())
}

/// The profile of the options.
fn profile(arguments: &GenerateArguments) -> Result<Profile, Failure> {
    let mut profile = (arguments.preset)();
    if let Some(packets) = arguments.packets {
        // Fewer packets have fewer flows, unless the user says how many.
        let ratio = packets as f64 / profile.packets as f64;
        if ratio < 1.0 {
            profile.flows = (profile.flows as f64 * ratio) as u64;
        }
        profile.packets = packets;
    }
    profile.flows = arguments.flows.unwrap_or(profile.flows);
    profile.mean_bytes = arguments.mean_bytes.unwrap_or(profile.mean_bytes);
    profile.zipf_exponent = arguments.zipf.unwrap_or(profile.zipf_exponent);
    for share in arguments.protocols.iter().flat_map(|shares| shares.split(',')) {
        set_share(&mut profile, share)?;
    }
    Ok(profile)
}

/// Sets a share written `tcp=0.5`.
fn set_share(profile: &mut Profile, text: &str) -> Result<(), Failure> {
    let wrong = |cause: String| Failure::Usage(format!("--protocols: {cause}"));
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| wrong(format!("`{text}` is no share; write, for example, tcp=0.6,udp=0.4")))?;
    let value: f64 =
        value.trim().parse().map_err(|_| wrong(format!("`{value}` is no number from 0 to 1")))?;
    let share = match name.trim() {
        "tcp" => &mut profile.tcp_share,
        "udp" => &mut profile.udp_share,
        "icmp" => &mut profile.icmp_share,
        "arp" => &mut profile.arp_share,
        "other" => &mut profile.other_share,
        "web" => &mut profile.web_share,
        "fragments" => &mut profile.fragment_share,
        "vlan" => &mut profile.vlan_share,
        "ipv6" => &mut profile.ipv6_share,
        other => {
            return Err(wrong(format!(
                "`{other}` is not known; there are tcp, udp, icmp, arp, other, web, fragments, vlan and ipv6"
            )));
        }
    };
    *share = value;
    Ok(())
}

/// A message of the generator with the names of options instead of those of its profile.
fn in_options(message: &str) -> String {
    let mut message = message.to_owned();
    let options = [
        ("mean_bytes", "--mean-bytes"),
        ("zipf_exponent", "--zipf"),
        ("packets is", "--packets is"),
        ("flows is", "--flows is"),
    ];
    for (name, option) in options {
        message = message.replace(name, option);
    }
    if let Some((share, rest)) = message.split_once("_share is ") {
        let share = if share == "fragment" { "fragments" } else { share };
        message = format!("--protocols: {share} is {rest}");
    }
    message
}

/// Either format.
enum Sink<W> {
    Pcap(PcapWriter<W>),
    Pcapng(PcapngWriter<W>),
}

impl<W: Write> Sink<W> {
    fn new(output: W, classic: bool) -> io::Result<Sink<W>> {
        Ok(if classic {
            Sink::Pcap(PcapWriter::new(output, LinkType::ETHERNET)?)
        } else {
            let interface = Interface { name: "generated", link: LinkType::ETHERNET };
            Sink::Pcapng(PcapngWriter::new(output, &[interface])?)
        })
    }

    fn write(&mut self, time: u64, wire: u32, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::Pcap(writer) => writer.write(time, wire, bytes),
            Sink::Pcapng(writer) => writer.write(0, time, wire, bytes, None),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Sink::Pcap(writer) => writer.finish().map(drop),
            Sink::Pcapng(writer) => writer.finish().map(drop),
        }
    }
}
