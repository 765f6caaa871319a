//! `ravelin reload`: the program of a running gateway is read again, and what its policies treat otherwise is
//! told before it takes over. Of a gateway of several processes it is seen whether another program takes
//! over.

use crate::arguments::live::{MOST_CLASSES, OnlyIfChoice, ReloadArguments};
use crate::failure::Failure;
use crate::render;
use crate::render::answer::text;
use gateway::control::{Asked, ask, listen_to};
use gateway::{ControlError, OnlyIf, ReloadWish};
use serde_json::{Value, json};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited until another program has taken over in a gateway of several processes.
const TAKES_OVER: Duration = Duration::from_secs(10);
/// The name of the program that drops every packet until another one takes over.
const BOOT: &str = "boot";
/// How often is looked.
const LOOK: Duration = Duration::from_millis(200);

/// Runs the command.
pub(crate) fn run(arguments: &ReloadArguments, json: bool) -> Result<(), Failure> {
    let only_if = arguments.only_if.map(|choice| match choice {
        OnlyIfChoice::Narrower => OnlyIf::Narrower,
        OnlyIfChoice::Same => OnlyIf::Same,
    });
    let wish = ReloadWish { check: arguments.check, diff: true, only_if, most: arguments.most };
    let mut document = Value::Null;
    let control = &arguments.socket.control;
    let before = running(control);
    let heard = reload(control, wish, &mut |review| {
        document = review["document"].clone();
        if !json {
            anstream::eprint!("{}", text(review, "text"));
        }
    });
    let heard = heard.and_then(|done| match done["signal"] == true {
        true => taken_over(control, before.as_ref()),
        false => Ok(text(&done, "done").to_owned()),
    });
    if json {
        let mut told = json!({ "review": document });
        match &heard {
            Err(error) => told["error"] = json!({ "message": error.to_string() }),
            Ok(done) => told["done"] = json!(done),
        }
        render::json(&told)?;
        return heard.map(drop).map_err(|error| Failure::Documented(error.to_string()));
    }
    Ok(render::text(&format!("{}\n", heard?))?)
}

/// Does the same without options where SIGHUP asks for it, and remarks what comes of it.
pub(super) fn at_signal(control: &Path, remark: fn(&str)) {
    let wish = ReloadWish { diff: true, most: MOST_CLASSES, ..ReloadWish::default() };
    match reload(control, wish, &mut |review| remark(text(review, "text").trim_end())) {
        Ok(done) => remark(text(&done, "done")),
        Err(error) => remark(&format!("SIGHUP: {error}")),
    }
}

/// Has a gateway reload, and returns what it says in the end; `see` gets what changes between policies.
fn reload(control: &Path, wish: ReloadWish, see: &mut dyn FnMut(&Value)) -> Result<Value, ControlError> {
    let mut done = Value::Null;
    listen_to(control, &Asked::Reload(wish), &mut |said| match said.get("review") {
        Some(review) => {
            see(review);
            Ok::<bool, ControlError>(true)
        }
        None => {
            done = said;
            Ok(false)
        }
    })?;
    Ok(done)
}

/// Which program runs.
struct Running {
    number: u64,
    hash: String,
}

/// The program that runs, if the gateway tells it; the one that drops every packet is none.
fn running(control: &Path) -> Option<Running> {
    let active = ask(control, Asked::Active).ok()?["active"].take();
    if active["program"] == BOOT {
        return None;
    }
    Some(Running { number: active["generation"].as_u64()?, hash: active["hash"].as_str()?.to_owned() })
}

/// Waits until another program has taken over than the one before: what comes of a file is told only where
/// the gateway was started. Numbers begin anew with each core, so that a smaller one says nothing.
fn taken_over(control: &Path, before: Option<&Running>) -> Result<String, ControlError> {
    let end = Instant::now() + TAKES_OVER;
    let is_another =
        |now: &Running| before.is_none_or(|before| now.number > before.number || now.hash != before.hash);
    while Instant::now() < end {
        // The process that answers may be starting again, too.
        if let Some(Running { number, .. }) = running(control).filter(is_another) {
            return Ok(format!("program {number} runs"));
        }
        thread::sleep(LOOK);
    }
    Err(ControlError::Refused(format!(
        "the file is read again, and no other program has taken over within {} s: the gateway says on its standard error what has come of it, and `ravelin show policy` which program runs",
        TAKES_OVER.as_secs()
    )))
}
