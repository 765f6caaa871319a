//! `ravelin doctor trust`: which layers of confinement this machine has, which tier of trust it reaches with
//! them, and what it lacks for the next.

use crate::failure::Failure;
use crate::render;
use confinement::Layer;
use serde::Serialize;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A layer, and why it cannot be had.
#[derive(Debug, Serialize)]
struct TriedLayer {
    layer: &'static str,
    /// What Linux says; nothing if it can be had.
    missing: Option<String>,
}

/// A tier, and what is missing for it.
#[derive(Debug, Serialize)]
struct Tier {
    tier: &'static str,
    name: &'static str,
    /// Whether this machine has what it and all tiers before it need.
    reached: bool,
    /// What it needs itself and this machine does not have, and what to do.
    missing: Vec<String>,
    /// What else is to be known.
    remarks: Vec<&'static str>,
}

/// All of it.
#[derive(Debug, Serialize)]
struct TrustReport {
    /// The highest tier that is reached.
    reaches: Option<&'static str>,
    layers: Vec<TriedLayer>,
    tiers: Vec<Tier>,
}

/// What tiers need beside layers, each with what is wrong with it.
struct Offered {
    tun: Result<(), String>,
    qemu: Result<(), String>,
    kvm: Result<(), String>,
    tpm: Result<(), String>,
}

/// What keeps this machine from tier T0; nothing if it reaches that. Layers are tried in copies of this
/// process, which should have a single thread.
pub(super) fn lacks_for_t0() -> Option<String> {
    lacking(&confinement::probe()).into_iter().next()
}

/// Runs the command.
pub(crate) fn run(json: bool) -> Result<(), Failure> {
    let report = report(&confinement::probe(), &look());
    if json {
        render::json(&report)?;
    } else {
        render::text(&lines(&report))?;
    }
    match (report.reaches, json) {
        (Some(_), _) => Ok(()),
        (None, true) => Err(Failure::Told),
        (None, false) => Err(Failure::Finding("this machine does not reach T0".to_owned())),
    }
}

fn look() -> Offered {
    let device = |path: &str, what: &str| match File::options().read(true).write(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{path}: {error}: {what}")),
    };
    Offered {
        tun: device("/dev/net/tun", "load the module `tun`, and run as root"),
        qemu: on_path("qemu-system-x86_64").map(drop).ok_or_else(|| {
            "`qemu-system-x86_64` is not on the PATH: on Debian, install `qemu-system-x86`".to_owned()
        }),
        kvm: device("/dev/kvm", "virtual machines are emulated"),
        tpm: device("/dev/tpmrm0", "it needs a TPM 2.0, switched on by the firmware, and root"),
    }
}

/// Where a program lies on the search path.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|place| is_executable(place))
}

#[cfg(unix)]
pub(super) fn is_executable(place: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    place.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_executable(place: &Path) -> bool {
    place.is_file()
}

/// What is missing for T0: layers.
fn lacking(layers: &[(Layer, Result<(), String>)]) -> Vec<String> {
    let missing = |(layer, result): &(Layer, Result<(), String>)| {
        Some(format!("the layer `{layer}` cannot be had: {}", result.as_ref().err()?))
    };
    layers.iter().filter_map(missing).collect()
}

fn report(layers: &[(Layer, Result<(), String>)], offered: &Offered) -> TrustReport {
    let of =
        |result: &Result<(), String>| -> Vec<String> { result.as_ref().err().cloned().into_iter().collect() };
    let designed = |mut missing: Vec<String>| {
        missing.push("it is a design without code (decision 112)".to_owned());
        missing
    };
    let emulated = offered.kvm.is_err().then_some(
        "without /dev/kvm the machine is emulated: it works, and is far slower than the processor itself",
    );
    let needs: [(_, _, Vec<String>, Vec<&str>); 5] = [
        ("T0", "split into confined processes", lacking(layers), Vec::new()),
        ("T1", "services in a container", of(&offered.tun), Vec::new()),
        ("T2", "a router OS in a virtual machine", of(&offered.qemu), emulated.into_iter().collect()),
        ("T3", "policies bound to a TPM", designed(of(&offered.tpm)), Vec::new()),
        ("T4", "a core outside of this Linux", designed(Vec::new()), Vec::new()),
    ];
    let mut reached = true;
    let tiers: Vec<Tier> = needs
        .into_iter()
        .map(|(tier, name, missing, remarks)| {
            reached &= missing.is_empty();
            Tier { tier, name, reached, missing, remarks }
        })
        .collect();
    TrustReport {
        reaches: tiers.iter().rfind(|tier| tier.reached).map(|tier| tier.tier),
        layers: layers
            .iter()
            .map(|(layer, result)| TriedLayer {
                layer: layer.name(),
                missing: result.as_ref().err().cloned(),
            })
            .collect(),
        tiers,
    }
}

fn lines(report: &TrustReport) -> String {
    let mut text = String::new();
    for layer in &report.layers {
        let _ = match &layer.missing {
            None => writeln!(text, "{:<18} can be had", layer.layer),
            Some(why) => writeln!(text, "{:<18} cannot be had: {why}", layer.layer),
        };
    }
    text.push('\n');
    for tier in &report.tiers {
        let state = match (tier.reached, tier.missing.is_empty()) {
            (true, _) => "reached",
            (false, true) => "needs the tiers before it",
            (false, false) => "not reached",
        };
        let _ = writeln!(text, "{} {:<33} {state}", tier.tier, tier.name);
        for told in tier.missing.iter().map(String::as_str).chain(tier.remarks.iter().copied()) {
            let _ = writeln!(text, "   {told}");
        }
    }
    let next = report.tiers.iter().find(|tier| !tier.reached);
    let _ = write!(text, "\nThis machine reaches {}.", report.reaches.unwrap_or("no tier"));
    if let Some(next) = next {
        let _ = write!(text, " What is missing for {} stands below its name.", next.tier);
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_layers() -> Vec<(Layer, Result<(), String>)> {
        Layer::ALL.into_iter().map(|layer| (layer, Ok(()))).collect()
    }

    fn offered() -> Offered {
        Offered { tun: Ok(()), qemu: Ok(()), kvm: Ok(()), tpm: Ok(()) }
    }

    #[test]
    fn a_tier_is_reached_with_all_before_it_and_each_lack_is_told_at_its_tier() {
        let reaches = |layers: &[_], offered: &Offered| report(layers, offered).reaches;
        let lack = || Err("it is not there".to_owned());
        assert_eq!(reaches(&all_layers(), &offered()), Some("T2"));
        assert_eq!(reaches(&all_layers(), &Offered { tpm: lack(), ..offered() }), Some("T2"));
        assert_eq!(reaches(&all_layers(), &Offered { qemu: lack(), ..offered() }), Some("T1"));
        assert_eq!(reaches(&all_layers(), &Offered { tun: lack(), ..offered() }), Some("T0"));
        assert_eq!(reaches(&all_layers(), &Offered { kvm: lack(), ..offered() }), Some("T2"));
        for without in 0..Layer::ALL.len() {
            let mut layers = all_layers();
            layers[without].1 = lack();
            let report = report(&layers, &offered());
            assert_eq!(report.reaches, None);
            let name = Layer::ALL[without].name();
            assert_eq!(
                report.tiers[0].missing,
                [format!("the layer `{name}` cannot be had: it is not there")]
            );
            assert!(report.tiers[1].missing.is_empty() && !report.tiers[1].reached);
        }
    }

    #[test]
    fn the_text_says_what_is_missing_below_its_tier_and_ends_with_the_answer() {
        let mut layers = vec![(Layer::Landlock, Ok(())), (Layer::Seccomp, Ok(()))];
        let offered = Offered {
            qemu: Err("`qemu-system-x86_64` is not on the PATH".to_owned()),
            kvm: Err("/dev/kvm: it is not there".to_owned()),
            ..offered()
        };
        let text = "\
landlock           can be had
seccomp            can be had

T0 split into confined processes     reached
T1 services in a container           reached
T2 a router OS in a virtual machine  not reached
   `qemu-system-x86_64` is not on the PATH
   without /dev/kvm the machine is emulated: it works, and is far slower than the processor itself
T3 policies bound to a TPM           not reached
   it is a design without code (decision 112)
T4 a core outside of this Linux      not reached
   it is a design without code (decision 112)

This machine reaches T1. What is missing for T2 stands below its name.
";
        assert_eq!(lines(&report(&layers, &offered)), text);
        layers[0].1 = Err("Linux is too old".to_owned());
        let text = lines(&report(&layers, &offered));
        assert!(text.starts_with("landlock           cannot be had: Linux is too old\n"), "{text}");
        assert!(text.contains("T1 services in a container           needs the tiers before it\n"), "{text}");
        assert!(text.ends_with("reaches no tier. What is missing for T0 stands below its name.\n"), "{text}");
    }
}
