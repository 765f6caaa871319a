//! Packets of a running gateway with what became of them: on one line, in a few, and in full.

use super::answer::{list, text};
use super::quantity::seconds;
use serde_json::Value;

fn listed(packet: &Value, name: &str) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    list(packet, name).iter().map(word).collect::<Vec<_>>().join(", ")
}

/// What became of it: `drop no_route (no prefix holds the destination) at router.rav:201`, `send to 2`.
pub(crate) fn outcome(packet: &Value) -> String {
    let verdict = text(packet, "verdict");
    let Some(reason) = packet["reason"].as_str() else {
        let out = listed(packet, "out");
        return if out.is_empty() { format!("{verdict}, by no port") } else { format!("{verdict} to {out}") };
    };
    let help = text(packet, "help");
    let help = if help.is_empty() { String::new() } else { format!(" ({help})") };
    let places = listed(packet, "places");
    let places = if places.is_empty() { String::new() } else { format!(" at {places}") };
    format!("{verdict} {reason}{help}{places}")
}

/// Everything on one line.
pub(crate) fn line(packet: &Value) -> String {
    format!("port {}  {}  → {}\n", packet["port"], text(packet, "packet"), outcome(packet))
}

fn steps(packet: &Value) -> impl Iterator<Item = (&str, &str)> + Clone {
    list(packet, "steps").iter().map(|step| (text(step, "place"), text(step, "step")))
}

/// When, what and why, and the way through the program; every step of it if `all` of them are wanted. `now`
/// is in nanoseconds since 1970.
pub(crate) fn story(packet: &Value, now: u64, all: bool) -> String {
    let ago = now.saturating_sub(packet["time"].as_u64().unwrap_or(now)) as f64 / 1e9;
    let bold = anstyle::Style::new().bold();
    let mut story = format!(
        "{bold}{} ago{bold:#}, port {}: {}\n  {}\n",
        seconds(ago),
        packet["port"],
        text(packet, "packet"),
        outcome(packet)
    );
    if all {
        story.push_str(&super::steps::steps(steps(packet)));
    }
    let stages: Vec<&str> = steps(packet).filter_map(|(_, step)| step.strip_prefix("→ ")).collect();
    if !stages.is_empty() && !all {
        story.push_str(&format!("  by way of {}\n", stages.join(" → ")));
    }
    story
}

/// The packet, every step, and its end.
pub(crate) fn in_full(packet: &Value) -> String {
    let bold = anstyle::Style::new().bold();
    let bytes = bytes(packet);
    let mut all =
        format!("{bold}The packet{bold:#} enters by port {}: {}\n", packet["port"], text(packet, "packet"));
    all.push_str(&super::packet::dump(&bytes[..bytes.len().min(256)], "  "));
    if bytes.len() > 256 {
        all.push_str(&format!("  … {} more bytes\n", bytes.len() - 256));
    }
    all.push('\n');
    all.push_str(&super::steps::steps(steps(packet)));
    all.push_str(&format!("\n{bold}Verdict{bold:#}: {}\n\n", outcome(packet)));
    all
}

/// What people call a part of the program that was measured.
pub(crate) fn stage_name(stage: &Value) -> String {
    match text(stage, "kind") {
        "between" => "(between)".to_owned(),
        "handler" => format!("on {}", text(stage, "name")),
        _ => text(stage, "name").to_owned(),
    }
}

/// The bytes that came with a packet.
pub(crate) fn bytes(packet: &Value) -> Vec<u8> {
    let digits = text(packet, "bytes").as_bytes();
    let digit = |letter: u8| char::from(letter).to_digit(16).unwrap_or(0) as u8;
    digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_drop_has_its_reason_place_and_way() {
        let packet = json!({
            "time": 1_000_000_000u64, "port": 2, "wire": 60, "bytes": "0a0B", "packet": "arp", "verdict": "drop",
            "reason": "odd", "help": "not even", "places": ["a.rav:3"], "out": [],
            "steps": [{ "place": "a.rav:1", "step": "→ frame" }, { "place": "a.rav:3", "step": "  drop odd" }],
        });
        assert_eq!(line(&packet), "port 2  arp  → drop odd (not even) at a.rav:3\n");
        let told = story(&packet, 3_500_000_000, false);
        assert!(told.contains("2.5 s ago") && told.ends_with("by way of frame\n"), "{told}");
        assert!(story(&packet, 0, true).contains("a.rav:3    drop odd"), "{}", story(&packet, 0, true));
        assert_eq!(bytes(&packet), [10, 11]);
        assert!(in_full(&packet).contains("Verdict"));
        let sent = json!({ "verdict": "flood", "out": [1, 3] });
        assert_eq!(outcome(&sent), "flood to 1, 3");
    }
}
