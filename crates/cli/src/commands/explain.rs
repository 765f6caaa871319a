//! `ravelin explain`: what an error code means.

use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::render;
use lang::parser::codes::CODES;
use serde_json::json;

/// Runs the command.
pub(crate) fn run(arguments: &ExplainArguments, json: bool) -> Result<(), Failure> {
    let code = arguments.code.trim().to_uppercase();
    let Some((_, headline, text)) = CODES.iter().find(|(known, ..)| *known == code) else {
        return Err(Failure::Usage(format!(
            "there is no explanation of `{}`; codes stand in square brackets at the start of a diagnostic, such as E0001",
            arguments.code
        )));
    };
    if json {
        render::json(&json!({ "code": code, "headline": headline, "text": text }))?;
        return Ok(());
    }
    let style = anstyle::Style::new().bold();
    render::text(&format!("{style}{code}: {headline}{style:#}\n\n{text}\n"))?;
    Ok(())
}
