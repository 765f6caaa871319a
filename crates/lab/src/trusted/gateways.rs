//! What stands between the hosts of `lab trusted`: nothing, Linux, and a gateway of ours as one process or
//! split into confined ones.

use super::policies::{INTERFACES, Policy};
use crate::control_socket::ControlSocket;
use crate::forwarding::gateways::routing;
use crate::forwarding::net::{CableOffloads, Net, Way};
use crate::hosted::{Daemon, START, until};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const FIREWALL: &str = include_str!("../../../../programs/rules/firewall.rav");
/// Where the program names its rules.
const RULES: &str = "from \"rules.v4\" as iptables interfaces { int0 = INSIDE ext0 = OUTSIDE }";
/// The files beside the gateway's.
const PROGRAM_FILE: &str = "program.rav";
const RULES_FILE: &str = "rules.npf";

/// What stands between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Between {
    /// A cable.
    Nothing,
    /// The kernel's IP forwarding, without rules.
    Linux,
    /// One process with native code.
    OneProcess,
    /// One process with bytecode.
    Bytecode,
    /// Confined processes, of which the core has bytecode.
    Split,
    /// The same, of which the core has native code.
    SplitNative,
}

impl Between {
    pub(super) const ALL: [Between; 6] = [
        Between::Nothing,
        Between::Linux,
        Between::OneProcess,
        Between::SplitNative,
        Between::Bytecode,
        Between::Split,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Between::Nothing => "a cable",
            Between::Linux => "Linux routing without rules",
            Between::OneProcess => "one process with native code",
            Between::Bytecode => "one process with bytecode",
            Between::Split => "T0 with bytecode",
            Between::SplitNative => "T0 with native code",
        }
    }

    /// Whether it decides by a policy.
    pub(super) fn has_policy(self) -> bool {
        !matches!(self, Between::Nothing | Between::Linux)
    }

    /// What `ravelin serve` is told.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Between::Nothing | Between::Linux | Between::OneProcess => &[],
            Between::Bytecode => &["--back-end", "bytecode"],
            Between::Split => &["--trusted"],
            Between::SplitNative => &["--trusted", "--native"],
        }
    }
}

/// The hosts and what stands between them.
pub(super) struct Joined {
    pub(super) net: Net,
    _gateway: Option<Daemon>,
}

impl Joined {
    /// Makes the hosts and what stands between them, whose files are in `folder` and which is held on a
    /// processor.
    ///
    /// # Errors
    /// What cannot be made, or does not begin.
    pub(super) fn new(
        between: Between,
        policy: &Policy,
        folder: &Path,
        processor: usize,
    ) -> Result<Joined, String> {
        let system = |error: io::Error| error.to_string();
        let net = match between {
            Between::Nothing => Net::direct(CableOffloads::Off),
            Between::Linux => Net::new(Way::Routed, CableOffloads::Off),
            Between::OneProcess | Between::Bytecode | Between::Split | Between::SplitNative => {
                Net::new(Way::Switched, CableOffloads::Off)
            }
        };
        let net = net.map_err(system)?;
        let gateway = match between {
            Between::Nothing => None,
            Between::Linux => routing(&net).map(|()| None).map_err(system)?,
            Between::OneProcess | Between::Bytecode | Between::Split | Between::SplitNative => {
                Some(ours(between, &net, policy, folder, processor)?)
            }
        };
        Ok(Joined { net, _gateway: gateway })
    }
}

/// The program with the rules of a file of NPF in place of its own.
///
/// # Errors
/// It has no such place.
pub(super) fn program() -> Result<String, String> {
    let [inside, outside] = INTERFACES;
    let rules =
        format!("from \"{RULES_FILE}\" as npf interfaces {{ {inside} = INSIDE {outside} = OUTSIDE }}");
    if !FIREWALL.contains(RULES) {
        return Err("rules/firewall names its rules in other words".to_owned());
    }
    Ok(FIREWALL.replace(RULES, &rules))
}

/// Our own binary, asked until its policy has taken over.
fn ours(
    between: Between,
    net: &Net,
    policy: &Policy,
    folder: &Path,
    processor: usize,
) -> Result<Daemon, String> {
    let system = |error: io::Error| error.to_string();
    fs::create_dir_all(folder).map_err(system)?;
    // Where it is split, the process that reads the files is `nobody`.
    for folder in [folder.parent().unwrap_or(folder), folder] {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(system)?;
    }
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).map_err(system);
    write(PROGRAM_FILE, &program()?)?;
    write(RULES_FILE, &policy.text)?;
    let control = folder.join("control.sock");
    let mut text = format!("program = \"{PROGRAM_FILE}\"\ncontrol = {:?}\n", control.display().to_string());
    for interface in ["to-a", "to-b"] {
        text.push_str(&format!("[[port]]\ninterface = \"{interface}\"\nkeep_from_kernel = true\n"));
    }
    write("gateway.toml", &text)?;
    let binary = std::env::current_exe().map_err(system)?;
    let mut command = net.gateway.command(binary, Some(processor));
    let errors = folder.join("errors");
    command.arg("serve").args(between.arguments()).arg(folder.join("gateway.toml"));
    let process = Daemon::start_with_errors(&mut command, &errors).map_err(system)?;
    until(START, "the policy takes over", || {
        let active = ControlSocket::connect(&control).and_then(|mut control| control.told("active")).ok()?;
        (active["program"] != "boot").then_some(())
    })
    .map_err(|why| {
        let said = fs::read_to_string(&errors).unwrap_or_default();
        said.lines().last().map_or(why.clone(), |line| format!("{why}: {line}"))
    })?;
    Ok(process)
}
