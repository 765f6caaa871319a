//! `ravelin why`: the last packets that a running gateway dropped or punted, and where in the program.

use crate::arguments::seeing::WhyArguments;
use crate::failure::Failure;
use crate::render;
use crate::render::answer::list;
use gateway::Asked;
use gateway::control::ask;
use std::time::SystemTime;

/// Runs the command.
pub(crate) fn run(arguments: &WhyArguments, json: bool) -> Result<(), Failure> {
    let asked = Asked::Why { filter: arguments.filter.join(" "), last: arguments.last };
    let answer = ask(&arguments.socket.control, asked)?;
    if json {
        return Ok(render::json(&answer["why"])?);
    }
    let packets = list(&answer, "why");
    if packets.is_empty() {
        return Ok(render::text("no packet that the filter holds for was dropped or punted\n")?);
    }
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let stories: Vec<String> =
        packets.iter().map(|packet| render::seen::story(packet, now, arguments.steps)).collect();
    Ok(render::text(&stories.join("\n"))?)
}
