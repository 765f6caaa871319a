//! `ravelin policy diff`: the packets that two policies treat otherwise.

use super::check::more;
use super::program::sources;
use super::source::{Source, one_or_all};
use crate::arguments::policy::PolicyDiffArguments;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{DifferenceClass, PolicyDifference, box_text, difference, packet_text};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the command.
pub(super) fn run(arguments: &PolicyDiffArguments, json: bool) -> Result<(), Failure> {
    if arguments.old == "-" && arguments.new == "-" {
        return Err(Failure::Usage("only one file can be standard input; name the other one".into()));
    }
    let old = sources(&arguments.old, &arguments.source, 0)?;
    let new = sources(&arguments.new, &arguments.source, 1)?;
    let (mut text, mut documents, mut differ) = (String::new(), Vec::new(), false);
    for (old, new) in pairs(&old, &new)? {
        let found = difference(&old.policy, &new.policy, arguments.most).map_err(|fault| new.fault(fault))?;
        differ |= found.opened + found.closed + found.other > 0 || found.left_over;
        text += &told(old, new, &found);
        documents.push(document(old, new, &found));
    }
    if json {
        render::json(&one_or_all(documents))?
    } else {
        render::text(&text)?
    }
    if differ { Err(Failure::Told) } else { Ok(()) }
}

/// The policies that are compared with each other: those of programs by their names, and if one side has no
/// names, the only ones.
fn pairs<'a>(old: &'a [Source], new: &'a [Source]) -> Result<Vec<(&'a Source, &'a Source)>, Failure> {
    if let ([one], [other]) = (old, new) {
        return Ok(vec![(one, other)]);
    }
    let lacks = |source: &Source, others: &[Source]| {
        let others: Vec<String> = others.iter().map(Source::called).collect();
        Failure::Finding(format!(
            "{} is to be compared with one of: {}; `--policy` names one",
            source.called(),
            others.join(", ")
        ))
    };
    let same = |source: &Source, others: &'a [Source]| {
        others.iter().find(|other| source.name.is_some() && other.name == source.name)
    };
    if let Some(alone) = old.iter().find(|source| same(source, new).is_none()) {
        return Err(lacks(alone, new));
    }
    new.iter().map(|source| Ok((same(source, old).ok_or_else(|| lacks(source, old))?, source))).collect()
}

/// What a comparison found, in words.
pub(super) fn told(old: &Source, new: &Source, found: &PolicyDifference) -> String {
    let mut text = String::new();
    for class in &found.classes {
        tell(&mut text, old, new, class);
    }
    let all = found.opened + found.closed + found.other;
    let cases = quantity::of(all as u64, "case");
    let _ = match all {
        0 if found.left_over => Ok(()),
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
    if found.left_over {
        let _ = writeln!(text, "{LEFT_OVER}");
    }
    text
}

/// What is said where [`PolicyDifference::left_over`] is true.
pub(super) const LEFT_OVER: &str = "rules with rates, or other conditions on earlier packets, may hold for other packets: rules have changed";

/// The same for programs.
pub(super) fn document(old: &Source, new: &Source, found: &PolicyDifference) -> Value {
    let classes: Vec<Value> = found.classes.iter().map(|one| class_document(old, new, one)).collect();
    json!({
        "old": old.file, "new": new.file, "policy": new.name,
        "left_out": { "old": old.left_out_document(), "new": new.left_out_document() },
        "left_over": found.left_over.then_some(LEFT_OVER),
        "opened": found.opened, "closed": found.closed, "other": found.other,
        "classes": classes,
    })
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

fn class_document(old: &Source, new: &Source, class: &DifferenceClass) -> Value {
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
