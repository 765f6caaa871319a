//! `ravelin naming`: keys and files for names of hosts behind gateways, and a demonstration.

mod demo;
mod init;

use crate::arguments::naming::{KeyCommand, NamingCommand};
use crate::failure::Failure;
use crate::render;
use ports::live::tunnel::{KeyFileError, key_file};
use serde_json::json;

/// Runs the command.
pub(super) fn run(what: &NamingCommand, json: bool) -> Result<(), Failure> {
    match what {
        NamingCommand::Init(wanted) => init::run(wanted, json),
        NamingCommand::Demo(wanted) => demo::run(wanted, json),
        NamingCommand::Key(key) => print_key(key, json),
    }
}

fn print_key(key: &KeyCommand, json: bool) -> Result<(), Failure> {
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
