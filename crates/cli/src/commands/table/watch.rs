//! `ravelin table watch`: the events that a running gateway's program raises, and packets that it punts.

use super::live::{connect, failed};
use crate::arguments::table_live::WatchArguments;
use crate::failure::Failure;
use crate::interruption;
use crate::render;
use crate::render::quantity::{count, moment};
use client::answer::{EventTold, PuntTold, TableAnswer};
use client::{ProgramSchema, text};
use packet::describe::describe;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often the command looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);

/// Runs the command.
pub(super) fn run(arguments: &WatchArguments, json: bool) -> Result<(), Failure> {
    let end = arguments.seconds.map(end).transpose()?;
    let mut client = connect(&arguments.socket.control)?;
    let mut events = arguments.events.clone();
    if events.is_empty() && arguments.punts.is_empty() {
        events = client.schema().events.iter().map(|event| event.name.clone()).collect();
        if events.is_empty() {
            let ProgramSchema { program, untold, .. } = client.schema();
            return Err(Failure::Finding(untold.clone().unwrap_or_else(|| {
                format!("{program} raises no events; --punts names reasons for which it punts packets")
            })));
        }
    }
    interruption::heed()?;
    client.subscribe(events, arguments.punts.clone(), u32::MAX).map_err(failed)?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let is_over = || end.is_some_and(|end| Instant::now() >= end);
    while left > 0 && !is_over() && !interruption::is_asked() {
        let Some((_, told)) = client.next(LOOK).map_err(failed)? else { continue };
        left -= u64::from(!matches!(told, TableAnswer::Lost { .. }));
        let schema = client.told_schema();
        match (told, json) {
            (TableAnswer::Lost { count: lost }, false) => {
                anstream::eprintln!("{} more found no room on their way", count(lost));
            }
            (TableAnswer::Lost { count: lost }, true) => render::line(&json!({ "lost": lost }))?,
            (TableAnswer::Event(told), false) => render::text(&line(schema, &told))?,
            (TableAnswer::Event(told), true) => render::line(&document(schema, &told))?,
            (TableAnswer::Punt(told), false) => {
                let what = describe(&told.bytes, told.length);
                let reason = reason(schema, &told);
                render::text(&format!("{} port {} {reason}: {what}\n", clock(told.time), told.port))?;
            }
            (TableAnswer::Punt(told), true) => {
                let bytes: String = told.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                render::line(&json!({
                    "punt": reason(schema, &told), "time": told.time, "worker": told.worker, "port": told.port,
                    "length": told.length, "bytes": bytes,
                }))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The time in so many seconds.
fn end(seconds: f64) -> Result<Instant, Failure> {
    let duration = Duration::try_from_secs_f64(seconds).ok();
    duration.and_then(|duration| Instant::now().checked_add(duration)).ok_or_else(|| {
        Failure::Usage(format!("--seconds: {seconds} is no time to wait; without it, there is no end"))
    })
}

fn reason(schema: &ProgramSchema, told: &PuntTold) -> String {
    schema.reasons.get(usize::from(told.reason)).map_or_else(String::new, |reason| reason.name.clone())
}

/// A time of the day, in UTC.
fn clock(time: u64) -> String {
    let text = moment(time);
    text.get(11..23).unwrap_or(&text).to_owned()
}

fn line(schema: &ProgramSchema, told: &EventTold) -> String {
    let Some(event) = schema.events.get(usize::from(told.event)) else { return String::new() };
    let arguments = event.arguments.iter().zip(&told.arguments).map(|(column, number)| {
        let value = text::value(column, *number);
        if column.name.is_empty() { value } else { format!("{}: {value}", column.name) }
    });
    let arguments: Vec<String> = arguments.collect();
    let delay = if told.delay > 0 {
        format!(" in {}", humantime::format_duration(Duration::from_nanos(told.delay)))
    } else {
        String::new()
    };
    format!("{} {}({}){delay}\n", clock(told.time), event.name, arguments.join(", "))
}

fn document(schema: &ProgramSchema, told: &EventTold) -> Value {
    let Some(event) = schema.events.get(usize::from(told.event)) else { return Value::Null };
    let arguments = event.arguments.iter().zip(&told.arguments);
    let arguments: Vec<String> = arguments.map(|(column, number)| text::value(column, *number)).collect();
    json!({
        "event": event.name, "time": told.time, "worker": told.worker, "delay": told.delay, "arguments": arguments,
    })
}

#[cfg(test)]
mod tests {
    use super::end;

    #[test]
    fn a_time_that_cannot_be_is_refused() {
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e19, 1e30] {
            assert!(end(seconds).is_err(), "{seconds}");
        }
        for seconds in [0.0, 0.5, 1e9] {
            assert!(end(seconds).is_ok(), "{seconds}");
        }
    }
}
