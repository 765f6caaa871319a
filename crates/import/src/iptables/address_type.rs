//! The match `addrtype`: what kind of address a packet comes from or goes to.
//!
//! Linux knows the kind of a multicast address by the address, and no IPv4 address is unspecified to it. The
//! kinds of all others, such as LOCAL, are those of the routes of the machine: they are known where the
//! addresses of the kind are given beside the dump, as those of the set `addrtype:LOCAL`.

use super::matches::Matches;
use super::sets::{self, AddressSets, GIVE_SET};
use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::region::Set;
use crate::ruleset::Part;
use crate::text::shown;

/// The kinds of addresses of iptables that depend on routes.
const BY_ROUTE: [&str; 9] =
    ["UNICAST", "LOCAL", "BROADCAST", "ANYCAST", "BLACKHOLE", "UNREACHABLE", "PROHIBIT", "THROW", "NAT"];

/// Reads the options behind `-m addrtype`.
pub(super) fn read(
    module: &Argument<'_>,
    family: AddressFamily,
    (known, given): (&AddressSets, &mut usize),
    arguments: &mut Arguments<'_>,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    let mut seen = Vec::new();
    loop {
        let not = arguments.ahead().first().is_some_and(|word| word.text == "!");
        let part = match arguments.ahead().get(usize::from(not)).map(|option| &*option.text) {
            Some("--src-type") => Part::Source,
            Some("--dst-type") => Part::Destination,
            Some("--limit-iface-in" | "--limit-iface-out") => return Err(by_route(module)),
            _ => break,
        };
        if not {
            arguments.next();
        }
        let Some(option) = arguments.next() else { break };
        if seen.contains(&part) {
            return Err(option.error(format!("`{}` is there twice", option.text), "write it once"));
        }
        seen.push(part);
        let value = arguments.value(&option)?;
        let asked = match (&*value.text, family) {
            ("MULTICAST", AddressFamily::V4) => vec![Set::masked(32, 0xe000_0000, 0xf000_0000)],
            ("MULTICAST", AddressFamily::V6) => vec![Set::masked(128, 0xff << 120, 0xff << 120)],
            ("UNSPEC", AddressFamily::V4) => Vec::new(),
            ("UNSPEC", AddressFamily::V6) => vec![Set::exact(0)],
            (kind, _) if BY_ROUTE.contains(&kind) => match known.given(&format!("addrtype:{kind}")) {
                Some(addresses) => addresses.map_err(|what| value.error(what, GIVE_SET))?.to_vec(),
                None => return Err(by_route(module)),
            },
            (other, _) => {
                let what = format!("`{}` is no kind of address that is known by itself", shown(other));
                return Err(value.error(what, "ask for MULTICAST or UNSPEC, or for the addresses themselves"));
            }
        };
        matches.also(sets::among(&asked, family, part, given, &value)?.turned(not));
    }
    if seen.is_empty() {
        return Err(module.error("the match `addrtype` asks nothing", "ask by `--src-type` or `--dst-type`"));
    }
    Ok(())
}

fn by_route(module: &Argument<'_>) -> ImportError {
    let what = "the match `addrtype` asks for this machine's own addresses and routes";
    module.error(
        what,
        "write the addresses by `-s` and `-d`, or give all of the kind beside the file: \
         `tables { \"addrtype:LOCAL\" = \"local.txt\" }` in a program, `--table addrtype:LOCAL=local.txt` on a command line",
    )
}
