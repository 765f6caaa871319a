//! `ravelin explain`: what an error code means.

use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::render;
use lang::explain::{Explanation, explain};
use serde_json::json;

/// Runs the command.
pub(crate) fn run(arguments: &ExplainArguments, json: bool) -> Result<(), Failure> {
    let code = arguments.code.trim().to_uppercase();
    let Some(explanation) = explain(&code) else {
        return Err(Failure::Usage(format!(
            "there is no explanation of `{}`; codes stand in square brackets at the start of a diagnostic, such as E0001",
            arguments.code
        )));
    };
    let Explanation { code, headline, cause, example, fix, fixed } = explanation;
    if json {
        render::json(&json!({
            "code": code, "headline": headline, "cause": cause, "example": example, "fix": fix, "fixed": fixed,
        }))?;
        return Ok(());
    }
    let style = anstyle::Style::new().bold();
    let mut text = format!("{style}{code}: {headline}{style:#}\n\n{cause}\n");
    for (title, part) in [("For example", &example), ("Mend it", &fix)] {
        if !part.is_empty() {
            text.push_str(&format!("\n{style}{title}{style:#}\n{}\n", indented(part)));
        }
    }
    if let Some(fixed) = fixed {
        text.push_str(&format!("\n{style}Then it reads{style:#}\n{}\n", indented(&fixed)));
    }
    render::text(&text)?;
    Ok(())
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.trim_matches('\n').lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
