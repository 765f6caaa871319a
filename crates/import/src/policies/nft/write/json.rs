//! Rulesets as the JSON that `nft -j -f` takes.

use super::chains::WrittenChain;
use serde_json::json;

/// The document of a table with these chains, in place of what was in it: one object a line.
pub(super) fn ruleset(table: &str, chains: &[WrittenChain]) -> String {
    let own = json!({"table": {"family": "inet", "name": table}});
    // Only what is there can be deleted.
    let begin = ["add", "delete", "add"].map(|command| json!({command: own}).to_string());
    let mut text = begin.join(",\n");
    for chain in chains {
        let mut object = json!({"family": "inet", "table": table, "name": chain.name});
        if let Some(base) = &chain.base {
            object["type"] = json!("filter");
            object["hook"] = json!(base.hook);
            object["prio"] = json!(base.priority);
            object["policy"] = json!(if base.accepts { "accept" } else { "drop" });
        }
        text += &format!(",\n{}", json!({"chain": object}));
    }
    for chain in chains {
        for rule in &chain.rules {
            let (name, statements) = (&chain.name, &rule.statements);
            let comment =
                if rule.line > 0 { format!(r#""comment": "line {}", "#, rule.line) } else { String::new() };
            let place = format!(r#""family": "inet", "table": "{table}", "chain": "{name}""#);
            text += &format!(",\n{{\"rule\": {{{place}, {comment}\"expr\": {statements}}}}}");
        }
    }
    format!("{{\"nftables\": [\n{text}\n]}}\n")
}
