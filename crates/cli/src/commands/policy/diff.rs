//! `ravelin policy diff`: the packets that two policies treat otherwise.

use super::check::more;
use super::source::Source;
use crate::arguments::policy::PolicyDiffArguments;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{DifferenceClass, box_text, difference, packet_text};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the command.
pub(super) fn run(arguments: &PolicyDiffArguments, json: bool) -> Result<(), Failure> {
    if arguments.old == "-" && arguments.new == "-" {
        return Err(Failure::Usage("only one file can be standard input; name the other one".into()));
    }
    let old = Source::load(&arguments.old, &arguments.source, 0)?;
    let new = Source::load(&arguments.new, &arguments.source, 1)?;
    let found = difference(&old.policy, &new.policy, arguments.most).map_err(|fault| new.fault(fault))?;
    let all = found.opened + found.closed + found.other;
    if json {
        let classes: Vec<Value> = found.classes.iter().map(|class| document(&old, &new, class)).collect();
        render::json(&json!({
            "old": old.file, "new": new.file,
            "opened": found.opened, "closed": found.closed, "other": found.other,
            "classes": classes,
        }))?;
    } else {
        let mut text = String::new();
        for class in &found.classes {
            tell(&mut text, &old, &new, class);
        }
        let cases = quantity::of(all as u64, "case");
        let _ = match all {
            0 => writeln!(text, "every packet is treated alike"),
            _ => writeln!(
                text,
                "packets are treated otherwise in {}: {} opened, {} closed, {} dropped in another way{}",
                cases,
                quantity::count(found.opened as u64),
                quantity::count(found.closed as u64),
                quantity::count(found.other as u64),
                more(found.classes.len(), all),
            ),
        };
        render::text(&text)?;
    }
    if all == 0 { Ok(()) } else { Err(Failure::Told) }
}

fn tell(text: &mut String, old: &Source, new: &Source, class: &DifferenceClass) {
    let heading = match (class.old.action.passes(), class.new.action.passes()) {
        (false, true) => "opened",
        (true, false) => "closed",
        (true, true) => "kept in another way",
        (false, false) => "dropped in another way",
    };
    let names = &new.policy.interfaces;
    let _ = writeln!(text, "{heading}: {}", packet_text(&class.witness, names));
    let _ = writeln!(text, "  old: {}", old.decision_text(class.old));
    let _ = writeln!(text, "  new: {}", new.decision_text(class.new));
    for may in &class.may {
        let _ = writeln!(text, "  only while this holds: {may}");
    }
    for packets in &class.boxes {
        let _ = writeln!(text, "  packets: {}", box_text(packets, names));
    }
    if !class.whole {
        let _ = writeln!(text, "  packets: and others");
    }
}

fn document(old: &Source, new: &Source, class: &DifferenceClass) -> Value {
    let names = &new.policy.interfaces;
    json!({
        "old": old.decision_document(class.old),
        "new": new.decision_document(class.new),
        "witness": packet_text(&class.witness, names),
        "may": class.may,
        "packets": class.boxes.iter().map(|packets| box_text(packets, names)).collect::<Vec<String>>(),
        "all_packets": class.whole,
    })
}
