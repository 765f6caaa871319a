//! `ravelin naming`: keys of tunnels.

use crate::arguments::naming::{KeyCommand, NamingCommand};
use crate::failure::Failure;
use crate::render;
use ports::live::tunnel::{KeyFileError, key_file};
use serde_json::json;

/// Runs the command.
pub(super) fn run(what: &NamingCommand, json: bool) -> Result<(), Failure> {
    let NamingCommand::Key(key) = what;
    let public = match key {
        KeyCommand::New(new) => key_file::make(&new.file),
        KeyCommand::Show(show) => key_file::read(&show.file).map(|secret| secret.public()),
    };
    let public = public.map_err(|error: KeyFileError| Failure::Finding(error.to_string()))?;
    if json {
        return Ok(render::json(&json!({ "public": public.to_string() }))?);
    }
    Ok(render::text(&format!("{public}\n"))?)
}
