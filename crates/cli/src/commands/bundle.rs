//! `ravelin bundle`: policies that administrators sign, made, shown, judged and handed to a gateway.

mod description;
mod key_file;

use crate::arguments::bundle::{
    BundleCommand, BundleKeyCommand, ConfirmArguments, InstallArguments, ShowBundleArguments, SignArguments,
    VerifyArguments,
};
use crate::commands::front;
use crate::failure::Failure;
use crate::render;
use crate::render::answer::text;
use crate::render::diagnostic::hex;
use crate::render::quantity::of;
use ::bundle::sign::{UnverifiedBundle, add_signature, read_unverified, sign};
use ::bundle::{EngineVersion, SignedPolicy, Trust, limits};
use gateway::config::TrustConfig;
use gateway::control::{self, Asked};
use messages::control::ControlQuestion;
use ports::files;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a bundle begins with, and no text does.
const FIRST_BYTE: u8 = 0xd8;

/// The first second of the year 10000, in Unix time: later ones have no date.
const DATES_END: u64 = 253_402_300_800;

/// Runs the command.
pub(super) fn run(what: &BundleCommand, json: bool) -> Result<(), Failure> {
    match what {
        BundleCommand::Key(key) => print_key(key, json),
        BundleCommand::Sign(wanted) => write_signed(wanted, json),
        BundleCommand::Show(wanted) => show(wanted, json),
        BundleCommand::Verify(wanted) => verify(wanted, json),
        BundleCommand::Install(wanted) => install(wanted, json),
        BundleCommand::Confirm(wanted) => confirm(wanted, json),
    }
}

fn print_key(key: &BundleKeyCommand, json: bool) -> Result<(), Failure> {
    let signer = match key {
        BundleKeyCommand::New(new) => key_file::make(&new.file)?,
        BundleKeyCommand::Show(show) => key_file::read(&show.file)?,
    };
    let public = hex(&signer.public_key());
    if json {
        return Ok(render::json(&json!({ "public": public }))?);
    }
    Ok(render::text(&format!("{public}\n"))?)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    files::read(path, limits::BUNDLE_BYTES as u64)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}

fn write_signed(wanted: &SignArguments, json: bool) -> Result<(), Failure> {
    let signer = key_file::read(&wanted.key)?;
    let given = read(&wanted.file)?;
    let told =
        |error: ::bundle::BundleRefusal| Failure::Finding(format!("{}: {error}", wanted.file.display()));
    let bundle = if given.first() == Some(&FIRST_BYTE) {
        add_signature(&given, &signer).map_err(told)?
    } else {
        let policy = description::policy(&wanted.file, &given, json)?;
        sign(&policy, &signer).map_err(told)?
    };
    let out = wanted.out.display();
    let failed = |error| Failure::Finding(format!("cannot write {out}: {error}; name a new file"));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&wanted.out).map_err(failed)?;
    file.write_all(&bundle).and_then(|()| file.sync_all()).map_err(failed)?;
    let seen = read_unverified(&bundle).map_err(told)?;
    if json {
        return Ok(render::json(&document(&seen))?);
    }
    Ok(render::text(&format!(
        "{out}: version {}, {}\n",
        seen.policy.version,
        of(seen.keys.len() as u64, "signature")
    ))?)
}

fn show(wanted: &ShowBundleArguments, json: bool) -> Result<(), Failure> {
    let seen = read_unverified(&read(&wanted.file)?)
        .map_err(|error| Failure::Finding(format!("{}: {error}", wanted.file.display())))?;
    if json {
        let mut document = document(&seen);
        if wanted.program {
            document["program"] = Value::String(seen.policy.program);
        }
        return Ok(render::json(&document)?);
    }
    if wanted.program {
        // A terminal obeys some characters, and nobody may have signed these.
        let harmless = |letter: char| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter };
        return Ok(render::text(&seen.policy.program.chars().map(harmless).collect::<String>())?);
    }
    let mut text = described(&seen.policy);
    let _ = writeln!(text, "{}, not verified, by the keys", of(seen.keys.len() as u64, "signature"));
    for key in &seen.keys {
        let _ = writeln!(text, "  {}", hex(key));
    }
    Ok(render::text(&text)?)
}

fn verify(wanted: &VerifyArguments, json: bool) -> Result<(), Failure> {
    let text = read(&wanted.trust)?;
    let trust = description::trust(&wanted.trust, &text)?;
    let now = match &wanted.at {
        Some(text) => description::seconds(text).map_err(|error| Failure::Usage(format!("--at: {error}")))?,
        None => now(),
    };
    judge(&trust, &wanted.file, now, wanted.newest, json)
}

/// Judges the bundle that a gateway's file names, as its first one.
pub(super) fn check(trust: &TrustConfig, file: &Path, json: bool) -> Result<(), Failure> {
    judge(&trust.trust().map_err(|error| Failure::Finding(error.to_string()))?, file, now(), 0, json)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn judge(trust: &Trust, file: &Path, now: u64, newest: u64, json: bool) -> Result<(), Failure> {
    let bundle = read(file)?;
    let accepted = trust
        .accept(&bundle, now, newest, EngineVersion::OWN)
        .map_err(|error| Failure::Finding(format!("{}: refused: {error}", file.display())))?;
    if json {
        let (hash, signers) = (hex(&accepted.hash), &accepted.signed_by);
        let version = accepted.policy.version;
        return Ok(render::json(
            &json!({ "accepted": true, "version": version, "hash": hash, "signed_by": signers }),
        )?);
    }
    let mut text = described(&accepted.policy);
    let _ = writeln!(text, "hash {}", hex(&accepted.hash));
    let _ = writeln!(text, "accepted, signed by {}", accepted.signed_by.join(", "));
    Ok(render::text(&text)?)
}

/// Has a running gateway take a policy.
fn install(wanted: &InstallArguments, json: bool) -> Result<(), Failure> {
    let bundle = read(&wanted.file)?;
    let confirm_within = wanted.confirm_within.map(to_confirm).transpose()?;
    let answer = match front::connected(&wanted.reached.network)? {
        Some(mut session) => front::ask(&mut session, &ControlQuestion::Install { bundle, confirm_within })?,
        None => control::install(&wanted.reached.socket.control, &bundle, confirm_within)?,
    };
    tell_done(&answer, json)
}

/// Has a policy stay that a running gateway took.
fn confirm(wanted: &ConfirmArguments, json: bool) -> Result<(), Failure> {
    let answer = match front::connected(&wanted.reached.network)? {
        Some(mut session) => {
            let hash = ::bundle::bytes_of_digits(&wanted.hash).ok_or_else(|| {
                Failure::Usage("a hash has 64 hexadecimal digits: `ravelin show policy` tells it".to_owned())
            })?;
            front::ask(&mut session, &ControlQuestion::Confirm { hash })?
        }
        None => control::ask(&wanted.reached.socket.control, Asked::Confirm { hash: wanted.hash.clone() })?,
    };
    tell_done(&answer, json)
}

fn tell_done(answer: &Value, json: bool) -> Result<(), Failure> {
    if json {
        return Ok(render::json(answer)?);
    }
    Ok(render::text(&format!("{}\n", text(answer, "done")))?)
}

/// A time to confirm in seconds, of which the core knows no parts.
fn to_confirm(time: humantime::Duration) -> Result<u32, Failure> {
    let seconds = u32::try_from(time.as_secs()).ok().filter(|_| time.subsec_nanos() == 0);
    seconds.ok_or_else(|| {
        Failure::Usage(format!("--confirm-within: {time} is no number of seconds, such as 90s"))
    })
}

/// What is told of a policy.
fn described(policy: &SignedPolicy) -> String {
    let mut text = format!(
        "gateway {}\nversion {}\nfrom {}\nuntil {}\nengine {} or newer\nprogram of {} bytes\n",
        policy.gateway,
        policy.version,
        date(policy.not_before),
        date(policy.expiry),
        policy.engine,
        policy.program.len()
    );
    for right in &policy.rights {
        let _ = writeln!(
            text,
            "control may change {}: at most {} entries, {} changes a second, under {} prefixes",
            right.table,
            right.most_entries,
            right.changes_per_second,
            right.prefixes.len()
        );
        for prefix in &right.prefixes {
            let _ = writeln!(text, "  {}", description::prefix_text(*prefix));
        }
    }
    text
}

fn document(seen: &UnverifiedBundle) -> Value {
    let SignedPolicy { gateway, version, not_before, expiry, engine, program, rights } = &seen.policy;
    let rights: Vec<Value> = rights
        .iter()
        .map(|right| {
            let prefixes: Vec<String> =
                right.prefixes.iter().map(|prefix| description::prefix_text(*prefix)).collect();
            json!({
                "table": right.table,
                "prefixes": prefixes,
                "most_entries": right.most_entries,
                "changes_per_second": right.changes_per_second,
            })
        })
        .collect();
    json!({
        "gateway": gateway,
        "version": version,
        "not_before": not_before,
        "expiry": expiry,
        "engine": engine.to_string(),
        "program_bytes": program.len(),
        "rights": rights,
        "keys": seen.keys.iter().map(|key| hex(key)).collect::<Vec<String>>(),
    })
}

/// A second of Unix time as a date.
fn date(seconds: u64) -> String {
    if seconds < DATES_END {
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
    } else {
        format!("second {seconds} after 1970")
    }
}
