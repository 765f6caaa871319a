//! What a program declares as settable, with the values that it has.

use ir::source::Sources;
use lang::settings::Settable;
use serde_json::{Value, json};

/// As text, one line each.
pub(crate) fn told(sources: &Sources, settables: &[Settable]) -> String {
    let line = |settable: &Settable| {
        let (name, default) = (&settable.name, one_line(sources.text(settable.default)));
        match value(sources, settable) {
            Some(value) => format!("  set: {name} = {value}, in place of {default}\n"),
            None => format!("  not set: {name} = {default}\n"),
        }
    };
    settables.iter().map(line).collect()
}

/// As JSON: a list of objects.
pub(crate) fn document(sources: &Sources, settables: &[Settable]) -> Vec<Value> {
    let object = |settable: &Settable| {
        json!({
            "name": settable.name,
            "default": one_line(sources.text(settable.default)),
            "set": value(sources, settable),
            "declared": sources.place(settable.declared),
        })
    };
    settables.iter().map(object).collect()
}

/// The value from outside, if there is one.
fn value(sources: &Sources, settable: &Settable) -> Option<String> {
    let parts: Vec<String> = settable.set.iter().map(|part| one_line(sources.text(*part))).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
