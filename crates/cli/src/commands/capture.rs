//! `ravelin capture`: writes packets of a running gateway to a capture, each with its verdict as comment.

use crate::arguments::seeing::CaptureArguments;
use crate::failure::Failure;
use crate::interruption;
use crate::render;
use crate::render::answer::{list, text, whole};
use captures::write::{Interface, PcapngWriter};
use gateway::control::{ask, listen_to};
use gateway::{Asked, WatchWish};
use packet::LinkType;
use serde_json::Value;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Where packets go.
enum Sink {
    Capture(PcapngWriter<File>),
    Lines,
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &CaptureArguments, json: bool) -> Result<(), Failure> {
    let control = &arguments.socket.control;
    let open = || -> Result<Sink, Failure> {
        match &arguments.output {
            None if json => Ok(Sink::Json),
            None if io::stdout().is_terminal() => Ok(Sink::Lines),
            output => {
                let view = ask(control, Asked::Picture)?;
                // Written through without a buffer: who reads it along sees each packet at once, and an end
                // by Ctrl-C leaves it whole.
                let file = match output {
                    Some(path) => File::create(path).map_err(|error| {
                        Failure::Usage(format!("cannot write {}: {error}", path.display()))
                    })?,
                    None => File::from(io::stdout().as_fd().try_clone_to_owned()?),
                };
                Ok(Sink::Capture(begun(file, list(&view["picture"], "ports"))?))
            }
        }
    };
    let wanted = WatchWish {
        filter: arguments.filter.join(" "),
        count: arguments.count,
        seconds: arguments.seconds,
        snap: arguments.snap,
        steps: false,
    };
    interruption::heed()?;
    let (mut end, mut sink, mut written) = (Value::Null, None, 0_u64);
    listen_to(control, &Asked::Watch(wanted), &mut |mut said| -> Result<bool, Failure> {
        // Nothing is written where the filter is not understood.
        let sink = match &mut sink {
            Some(sink) => sink,
            none => none.insert(open()?),
        };
        if let Some(packet) = said.get("packet") {
            put(sink, packet)?;
            written += 1;
        }
        let over = said.get_mut("watched").map(Value::take);
        // The gateway says something each second, also where no packet comes.
        let goes_on = over.is_none() && !interruption::is_asked();
        end = over.unwrap_or_default();
        Ok(goes_on)
    })?;
    let lost = whole(&end, "lost");
    let lost = if lost > 0 {
        format!("; {} more found no room on their way", render::quantity::count(lost))
    } else {
        String::new()
    };
    anstream::eprintln!("{}{lost}", render::quantity::of(written, "packet"));
    Ok(())
}

/// A capture with one interface a port.
fn begun(file: File, ports: &[Value]) -> io::Result<PcapngWriter<File>> {
    let interface = |port| Interface { name: text(port, "interface"), link: LinkType::ETHERNET };
    let interfaces: Vec<Interface<'_>> = ports.iter().map(interface).collect();
    PcapngWriter::new(file, &interfaces)
}

fn put(sink: &mut Sink, packet: &Value) -> Result<(), Failure> {
    match sink {
        Sink::Lines => render::text(&render::seen::line(packet))?,
        Sink::Json => render::line(packet)?,
        Sink::Capture(writer) => {
            let comment = render::seen::outcome(packet);
            let interface = (whole(packet, "port") as u32).saturating_sub(1);
            let bytes = render::seen::bytes(packet);
            let (time, wire) = (whole(packet, "time"), whole(packet, "wire") as u32);
            writer.write(interface, time, wire, &bytes, Some(&comment))?;
        }
    }
    Ok(())
}
