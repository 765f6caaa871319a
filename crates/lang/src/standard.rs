//! The standard library: modules written in the language, built into the compiler.

/// The files of a module, each with its name.
type Files = &'static [(&'static str, &'static str)];

/// The built-in modules by their paths.
const MODULES: [(&str, Files); 16] = [
    ("std/net", NET),
    ("std/connections", CONNECTIONS),
    ("std/fragments", FRAGMENTS),
    ("std/translate", TRANSLATE),
    ("std/clamp", CLAMP),
    ("std/names", NAMES),
    ("std/bindings", BINDINGS),
    ("std/nat64", NAT64),
    ("std/networks", NETWORKS),
    ("std/parts", PARTS),
    ("std/unasked", UNASKED),
    ("std/active_ftp", ACTIVE_FTP),
    ("std/limits", LIMITS),
    ("std/siphash", SIPHASH),
    ("std/syn_cookies", SYN_COOKIES),
    ("std/server_names", SERVER_NAMES),
];

/// The files of a built-in module (`std/net`), each with its name; none if there is no such module.
pub fn module(path: &str) -> Files {
    MODULES.iter().find(|(module, _)| *module == path).map_or(&[], |(_, files)| files)
}

/// All built-in modules as programs import them: `std.net`.
pub fn modules() -> impl Iterator<Item = String> {
    MODULES.iter().map(|(path, _)| path.replace('/', "."))
}

const NET: &[(&str, &str)] = &[
    ("std/net/ethernet.rav", include_str!("../../../std/net/ethernet.rav")),
    ("std/net/vlan.rav", include_str!("../../../std/net/vlan.rav")),
    ("std/net/arp.rav", include_str!("../../../std/net/arp.rav")),
    ("std/net/ipv4.rav", include_str!("../../../std/net/ipv4.rav")),
    ("std/net/ipv6.rav", include_str!("../../../std/net/ipv6.rav")),
    ("std/net/icmp.rav", include_str!("../../../std/net/icmp.rav")),
    ("std/net/icmpv6.rav", include_str!("../../../std/net/icmpv6.rav")),
    ("std/net/tcp.rav", include_str!("../../../std/net/tcp.rav")),
    ("std/net/vxlan.rav", include_str!("../../../std/net/vxlan.rav")),
    ("std/net/gre.rav", include_str!("../../../std/net/gre.rav")),
    ("std/net/mpls.rav", include_str!("../../../std/net/mpls.rav")),
    ("std/net/udp.rav", include_str!("../../../std/net/udp.rav")),
];

const CONNECTIONS: &[(&str, &str)] = &[
    ("std/connections/connections.rav", include_str!("../../../std/connections/connections.rav")),
    ("std/connections/headers.rav", include_str!("../../../std/connections/headers.rav")),
    ("std/connections/tcp.rav", include_str!("../../../std/connections/tcp.rav")),
    ("std/connections/flows.rav", include_str!("../../../std/connections/flows.rav")),
    ("std/connections/messages.rav", include_str!("../../../std/connections/messages.rav")),
    ("std/connections/steering.rav", include_str!("../../../std/connections/steering.rav")),
];

const FRAGMENTS: &[(&str, &str)] = &[("std/fragments.rav", include_str!("../../../std/fragments.rav"))];

const TRANSLATE: &[(&str, &str)] = &[
    ("std/translate/translate.rav", include_str!("../../../std/translate/translate.rav")),
    ("std/translate/tcp.rav", include_str!("../../../std/translate/tcp.rav")),
    ("std/translate/udp.rav", include_str!("../../../std/translate/udp.rav")),
    ("std/translate/icmp.rav", include_str!("../../../std/translate/icmp.rav")),
    ("std/translate/address.rav", include_str!("../../../std/translate/address.rav")),
    ("std/translate/steering.rav", include_str!("../../../std/translate/steering.rav")),
];

const CLAMP: &[(&str, &str)] = &[("std/clamp.rav", include_str!("../../../std/clamp.rav"))];

const NAT64: &[(&str, &str)] = &[
    ("std/nat64/nat64.rav", include_str!("../../../std/nat64/nat64.rav")),
    ("std/nat64/tcp.rav", include_str!("../../../std/nat64/tcp.rav")),
    ("std/nat64/flows.rav", include_str!("../../../std/nat64/flows.rav")),
    ("std/nat64/errors.rav", include_str!("../../../std/nat64/errors.rav")),
];

const NETWORKS: &[(&str, &str)] = &[("std/networks.rav", include_str!("../../../std/networks.rav"))];

const PARTS: &[(&str, &str)] = &[("std/parts.rav", include_str!("../../../std/parts.rav"))];

const UNASKED: &[(&str, &str)] = &[("std/unasked.rav", include_str!("../../../std/unasked.rav"))];

const ACTIVE_FTP: &[(&str, &str)] = &[("std/active_ftp.rav", include_str!("../../../std/active_ftp.rav"))];

const LIMITS: &[(&str, &str)] = &[("std/limits.rav", include_str!("../../../std/limits.rav"))];

const BINDINGS: &[(&str, &str)] = &[
    ("std/bindings/bindings.rav", include_str!("../../../std/bindings/bindings.rav")),
    ("std/bindings/back.rav", include_str!("../../../std/bindings/back.rav")),
    ("std/bindings/by_cookie.rav", include_str!("../../../std/bindings/by_cookie.rav")),
];

const SIPHASH: &[(&str, &str)] = &[("std/siphash.rav", include_str!("../../../std/siphash.rav"))];

const SYN_COOKIES: &[(&str, &str)] = &[("std/syn_cookies.rav", include_str!("../../../std/syn_cookies.rav"))];

const SERVER_NAMES: &[(&str, &str)] =
    &[("std/server_names.rav", include_str!("../../../std/server_names.rav"))];

const NAMES: &[(&str, &str)] = &[
    ("std/names/names.rav", include_str!("../../../std/names/names.rav")),
    ("std/names/messages.rav", include_str!("../../../std/names/messages.rav")),
    ("std/names/six.rav", include_str!("../../../std/names/six.rav")),
    ("std/names/neighbours.rav", include_str!("../../../std/names/neighbours.rav")),
];
