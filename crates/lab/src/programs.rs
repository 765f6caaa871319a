//! The programs that experiments run: those that ship, but for those of names, and compiling them.

use ir::Program;
use lang::pipeline::{CompileOptions, Decode};

/// The programs that ship, but for those of names, with their texts.
pub const PROGRAMS: [(&str, &str); 20] = [
    ("wire", include_str!("../../../programs/wire.rav")),
    ("hub", include_str!("../../../programs/hub.rav")),
    ("mac_switch", include_str!("../../../programs/mac_switch.rav")),
    ("ipv4_switch", include_str!("../../../programs/ipv4_switch.rav")),
    ("firewall", include_str!("../../../programs/firewall.rav")),
    ("firewall_full", include_str!("../../../programs/firewall_full.rav")),
    ("static_ipv4", include_str!("../../../programs/static_ipv4.rav")),
    ("vlan_switch", include_str!("../../../programs/vlan_switch.rav")),
    ("learning_log", include_str!("../../../programs/learning_log.rav")),
    ("arp_responder", include_str!("../../../programs/arp_responder.rav")),
    ("lpm", include_str!("../../../programs/lpm.rav")),
    ("firewall_rules", include_str!("../../../programs/firewall_rules.rav")),
    ("both", include_str!("../../../programs/both.rav")),
    ("dpi", include_str!("../../../programs/dpi.rav")),
    ("router", include_str!("../../../programs/router.rav")),
    ("nat44", include_str!("../../../programs/nat44.rav")),
    ("stateful", include_str!("../../../programs/stateful.rav")),
    ("load_balancer", include_str!("../../../programs/load_balancer.rav")),
    ("vxlan_gateway", include_str!("../../../programs/vxlan_gateway.rav")),
    ("ids", include_str!("../../../programs/ids.rav")),
];

/// A program that does nothing with its packets: what is left is the cost of the harness.
pub(crate) const EMPTY: &str = "
reason nothing \"this program drops every packet, so that what is left is the cost of the harness\"
start stage all() { drop nothing }
";

/// Compiles a text; the error names what is wrong with it.
pub(crate) fn compile(name: &str, text: &str, decode: Decode) -> Result<Program, String> {
    compile_with(name, text, &|_| None, &CompileOptions { decode, ..CompileOptions::default() })
}

/// The same with files that the text names.
pub(crate) fn compile_with(
    name: &str,
    text: &str,
    load: &dyn Fn(&str) -> Option<String>,
    options: &CompileOptions,
) -> Result<Program, String> {
    let compiled = lang::pipeline::compile(&format!("{name}.rav"), text, load, options);
    compiled.program.ok_or_else(|| match compiled.diagnostics.first() {
        Some(first) => format!("{name} does not compile: {} {}", first.code, first.headline),
        None => format!("{name} does not compile"),
    })
}

/// The same where files may be rules of other firewalls.
pub(crate) fn compile_with_rules(
    text: &str,
    load: &dyn Fn(&str) -> Option<String>,
) -> Result<Program, String> {
    let options =
        CompileOptions { rules_reader: Some(import::policies::RULES_READER), ..CompileOptions::default() };
    compile_with("policy", text, load, &options)
}

/// Compiles a program that ships.
///
/// # Errors
/// If there is no such program, or it is wrong.
pub fn compiled(name: &str, decode: Decode) -> Result<Program, String> {
    let found = PROGRAMS.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| format!("there is no program {name}"))?;
    compile(name, text, decode)
}
