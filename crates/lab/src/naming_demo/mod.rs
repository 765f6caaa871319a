//! `ravelin naming demo`: a small internet in namespaces, in which programs that know nothing of it reach
//! hosts behind a carrier's NAT by their names.
//!
//! What happens is judged from outside: by what the programs say and how they end, and by the logs of the
//! hosts' servers. Each check has the name that the plan of tests has for it: F1 to F15 are functions, X1 to
//! X16 faults.

mod checks;
mod checks_of_ipv6;
pub(crate) mod parties;

use serde::Serialize;
use std::path::{Path, PathBuf};

/// What was looked at, and what was seen.
#[derive(Clone, Debug, Serialize)]
pub struct DemoCheck {
    /// The name in the plan of tests, such as `F1`, with what of it this is.
    pub id: String,
    /// What has to hold.
    pub what: String,
    /// Whether it held.
    pub ok: bool,
    /// What was seen.
    pub seen: String,
}

/// What the demonstration needs to be told.
#[derive(Clone, Debug)]
pub struct DemoPlan {
    /// The command whose gateways run: this one.
    pub binary: PathBuf,
    /// Where captures of all links are kept. Without it there are none, and interfaces have their offloads.
    pub captures: Option<PathBuf>,
}

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
#[error("the small internet cannot be built here: {0}; it takes root, or a user that may have namespaces")]
pub struct DemoError(#[from] std::io::Error);

/// Builds the networks, starts everything, and makes each check. `progress` hears of each as it is made.
///
/// # Errors
/// Networks cannot be made here, or a program without which nothing can be shown is missing or does not
/// start.
pub fn naming_demo(
    plan: &DemoPlan,
    progress: &mut dyn FnMut(&DemoCheck),
) -> Result<Vec<DemoCheck>, DemoError> {
    rig::become_root()?;
    let directory = tempfile::Builder::new().prefix("ravelin-names-").tempdir()?;
    let mut parties = parties::Parties::start(plan, directory.path())?;
    let mut made = Vec::new();
    for check in checks::ALL {
        let check = check(&mut parties).unwrap_or_else(|error| DemoCheck {
            id: "?".to_owned(),
            what: "the check itself can be made".to_owned(),
            ok: false,
            seen: error.to_string(),
        });
        progress(&check);
        made.push(check);
    }
    Ok(made)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
