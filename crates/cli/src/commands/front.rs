//! `ravelin front`: keys of fronts and their clients; and questions to a gateway over a network.

use crate::arguments::front::{FrontCommand, FrontKeyCommand, Network};
use crate::failure::Failure;
use crate::render;
use crate::render::diagnostic::hex;
use front::{ClientRole, IdentityKey, Session};
use gateway::control::ControlAnswer;
use messages::control::ControlQuestion;
use ports::live::secret_file;
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::Path;

fn finding(error: impl Display) -> Failure {
    Failure::Finding(error.to_string())
}

fn of_file(path: &Path, what: impl Display) -> Failure {
    finding(format_args!("the key file {}: {what}", path.display()))
}

/// Runs the command.
pub(super) fn run(what: &FrontCommand, json: bool) -> Result<(), Failure> {
    let FrontCommand::Key(key) = what;
    let key = match key {
        FrontKeyCommand::New(new) => make(&new.file)?,
        FrontKeyCommand::Show(show) => read(&show.file)?,
    };
    let public = hex(&key.public_key());
    if json {
        return Ok(render::json(&json!({ "public": public }))?);
    }
    Ok(render::text(&format!("{public}\n"))?)
}

/// Makes a key and puts it into a new file.
fn make(path: &Path) -> Result<IdentityKey, Failure> {
    let mut seed = [0; 32];
    secret_file::random(&mut seed).map_err(|error| of_file(path, error))?;
    let key = IdentityKey::new(seed).map_err(|error| of_file(path, error))?;
    secret_file::make(path, &key.to_text()).map_err(finding)?;
    Ok(key)
}

/// Reads a key.
pub(super) fn read(path: &Path) -> Result<IdentityKey, Failure> {
    let text = secret_file::read(path)
        .map_err(|error| finding(format_args!("{error}; `ravelin front key new` makes a key")))?;
    IdentityKey::from_text(&text).map_err(|error| of_file(path, error))
}

/// A connection to the front that these options name; `None` if they name none.
pub(super) fn connected(network: &Network) -> Result<Option<Session>, Failure> {
    let (Some(at), Some(identity), Some(front)) = (&network.front, &network.identity, &network.server_key)
    else {
        return Ok(None);
    };
    Session::connect(at, &read(identity)?, front).map(Some).map_err(finding)
}

/// Asks over a connection. The answer has the form of one at a control socket.
pub(super) fn ask(session: &mut Session, question: &ControlQuestion) -> Result<Value, Failure> {
    let (needed, welcome) = (ClientRole::needed(question), session.welcome());
    if let Some(needed) = needed.filter(|needed| welcome.role < *needed) {
        return Err(finding(format_args!(
            "the gateway knows this key as that of {}, {}: this needs the role {needed}{}",
            harmless(&welcome.name),
            welcome.role,
            match question {
                ControlQuestion::Install { .. } if welcome.role == ClientRole::Administrator =>
                    ", or a time to confirm (`--confirm-within`)",
                _ => "",
            }
        )));
    }
    match session.ask(question).map_err(finding)?.into() {
        ControlAnswer::Error(why) => Err(Failure::Finding(harmless(&why))),
        answer => serde_json::to_value(answer).map(all_harmless).map_err(finding),
    }
}

/// A text without what a terminal obeys: a front that is taken over may say anything.
fn harmless(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// An answer all of whose texts are so.
fn all_harmless(answer: Value) -> Value {
    match answer {
        Value::String(text) => Value::String(harmless(&text)),
        Value::Array(all) => all.into_iter().map(all_harmless).collect(),
        Value::Object(all) => {
            Value::Object(all.into_iter().map(|(name, one)| (harmless(&name), all_harmless(one))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_of_an_answer() {
        let answer = json!({ "a\x1b": ["b\x07", { "c": "d\x1b[2J" }, 5, null] });
        let told = json!({ "a\u{fffd}": ["b\u{fffd}", { "c": "d\u{fffd}[2J" }, 5, null] });
        assert_eq!(all_harmless(answer), told);
    }
}
