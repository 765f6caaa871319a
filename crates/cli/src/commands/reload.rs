//! `ravelin reload`: the program of a running gateway is read again, and what its policies treat otherwise is
//! told before it takes over.

use crate::arguments::live::{OnlyIfChoice, ReloadArguments};
use crate::failure::Failure;
use crate::render;
use crate::render::answer::text;
use gateway::control::{Asked, listen_to};
use gateway::{ControlError, OnlyIf, ReloadWish};
use serde_json::{Value, json};

/// Runs the command.
pub(crate) fn run(arguments: &ReloadArguments, json: bool) -> Result<(), Failure> {
    let only_if = arguments.only_if.map(|choice| match choice {
        OnlyIfChoice::Narrower => OnlyIf::Narrower,
        OnlyIfChoice::Same => OnlyIf::Same,
    });
    let wish = ReloadWish { check: arguments.check, diff: true, only_if, most: arguments.most };
    let (mut document, mut done) = (Value::Null, Value::Null);
    let heard = listen_to(&arguments.socket.control, &Asked::Reload(wish), &mut |said| {
        if let Some(review) = said.get("review") {
            document = review["document"].clone();
            if !json {
                anstream::eprint!("{}", text(review, "text"));
            }
            return Ok::<bool, ControlError>(true);
        }
        done = said;
        Ok(false)
    });
    if json {
        let error = heard.as_ref().err().map(ToString::to_string);
        let mut told = json!({ "review": document });
        match &error {
            Some(error) => told["error"] = json!({ "message": error }),
            None => told["done"] = done["done"].clone(),
        }
        render::json(&told)?;
        return error.map_or(Ok(()), |error| Err(Failure::Documented(error)));
    }
    heard?;
    Ok(render::text(&format!("{}\n", text(&done, "done")))?)
}
