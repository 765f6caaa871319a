//! Rulesets as the text that `nft -f` takes.

use super::chains::WrittenChain;
use serde_json::Value;

/// The text of a table with these chains, in place of what was in it.
pub(super) fn ruleset(table: &str, chains: &[WrittenChain]) -> String {
    // Only what is there can be deleted.
    let mut text = format!("table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n");
    for chain in chains {
        text += &format!("\tchain {} {{\n", chain.name);
        if let Some(base) = &chain.base {
            let policy = if base.accepts { "accept" } else { "drop" };
            let (hook, priority) = (base.hook, base.priority);
            text += &format!("\t\ttype filter hook {hook} priority {priority}; policy {policy};\n");
        }
        for rule in &chain.rules {
            text += "\t\t";
            text += &rule.statements;
            if rule.line > 0 {
                text += &format!(" comment \"line {}\"", rule.line);
            }
            text.push('\n');
        }
        text += "\t}\n";
    }
    text + "}\n"
}

/// The statements of a rule.
pub(super) fn statements(statements: &[Value]) -> String {
    statements.iter().map(statement).collect::<Vec<String>>().join(" ")
}

/// One statement: an object with one member.
fn statement(statement: &Value) -> String {
    let Some((kind, body)) = statement.as_object().and_then(|members| members.iter().next()) else {
        return String::new();
    };
    let word = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    match kind.as_str() {
        "match" => {
            let (left, right) = (&body["left"], &body["right"]);
            let is_name = left
                .get("meta")
                .is_some_and(|meta| matches!(meta["key"].as_str(), Some("iifname" | "oifname")));
            let is_set = right.get("set").is_some();
            // nft takes a comparison of flags without an operator for one under a mask.
            let has_bits =
                left.get("&").is_some() || left.get("payload").is_some_and(|own| own["field"] == "flags");
            let operator = match word("op") {
                "==" if has_bits && !is_set => "== ".to_owned(),
                "==" | "in" => String::new(),
                other => format!("{other} "),
            };
            format!("{} {operator}{}", look(left), value(right, is_name))
        }
        "jump" | "goto" => format!("{kind} {}", word("target")),
        // The one change of these rulesets is a bit of a mark.
        "mangle" => match body["value"]["|"].as_array().map(Vec::as_slice) {
            Some([inner, bits]) => {
                format!("{} set {} | {}", look(&body["key"]), look(inner), value(bits, false))
            }
            _ => String::new(),
        },
        "reject" => match (word("type"), word("expr")) {
            (kind, "") => format!("reject with {kind}"),
            (kind, code) => format!("reject with {kind} type {code}"),
        },
        plain => plain.to_owned(),
    }
}

/// What a match looks at.
fn look(left: &Value) -> String {
    if let Some([inner, mask]) = left.get("&").and_then(Value::as_array).map(Vec::as_slice) {
        return format!("{} & {}", look(inner), value(mask, false));
    }
    let kind = left.as_object().and_then(|members| members.iter().next());
    match kind {
        Some((kind, body)) => {
            let words = ["protocol", "name", "field", "key"].map(|key| body.get(key).and_then(Value::as_str));
            let words: Vec<&str> = words.into_iter().flatten().collect();
            match kind.as_str() {
                "meta" | "ct" => format!("{kind} {}", words.join(" ")),
                _ => words.join(" "),
            }
        }
        None => String::new(),
    }
}

/// What it is compared with; the name of an interface is quoted.
fn value(right: &Value, is_name: bool) -> String {
    let list = |values: &[Value]| values.iter().map(|one| value(one, is_name)).collect::<Vec<String>>();
    if let Some(elements) = right.get("set").and_then(Value::as_array) {
        return format!("{{ {} }}", list(elements).join(", "));
    }
    if let Some(ends) = right.get("range").and_then(Value::as_array) {
        return list(ends).join("-");
    }
    if let Some(prefix) = right.get("prefix") {
        return format!("{}/{}", value(&prefix["addr"], false), prefix["len"]);
    }
    match right {
        Value::String(text) if is_name => format!("\"{text}\""),
        Value::String(text) => text.clone(),
        Value::Array(values) => list(values).join(","),
        other => other.to_string(),
    }
}
