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

/// The programs around the waypoint and the gateway, each with its Debian package.
const PROGRAMS: [(&str, &str); 10] = [
    ("ip", "iproute2"),
    ("curl", "curl"),
    ("dig", "bind9-dnsutils"),
    ("dnsmasq", "dnsmasq-base"),
    ("iperf3", "iperf3"),
    ("nginx", "nginx"),
    ("ping", "iputils-ping"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("traceroute", "traceroute"),
];

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// programs are missing
    #[error(
        "the demonstration shows programs that are not installed here: {programs}; on Debian, `apt-get install {packages}` brings them, and none of their services has to run"
    )]
    Missing {
        /// Their names.
        programs: String,
        /// Their packages, for a command line.
        packages: String,
    },
    /// networks cannot be made
    #[error(
        "the small internet cannot be built here: {0}; it takes root, or a user that may have namespaces"
    )]
    Networks(#[from] std::io::Error),
}

/// Finds out which programs are missing.
fn all_installed(captures: bool) -> Result<(), DemoError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let needed = PROGRAMS.into_iter().chain(captures.then_some(("tcpdump", "tcpdump")));
    let (programs, packages): (Vec<&str>, Vec<&str>) =
        needed.filter(|(program, _)| !places.iter().any(|place| place.join(program).is_file())).unzip();
    if programs.is_empty() {
        return Ok(());
    }
    Err(DemoError::Missing { programs: programs.join(", "), packages: packages.join(" ") })
}

/// Builds the networks, starts everything, and makes each check. `progress` hears of each as it is made.
///
/// # Errors
/// Networks cannot be made here, or a program without which nothing can be shown is missing or does not
/// start.
pub fn naming_demo(
    plan: &DemoPlan,
    progress: &mut dyn FnMut(&DemoCheck),
) -> Result<Vec<DemoCheck>, DemoError> {
    all_installed(plan.captures.is_some())?;
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
