//! Reads the routes of a gateway's file: where each leads, by one router or by several.
//!
//! ```toml
//! [[route]]
//! to = "0.0.0.0/0"
//! via = ["10.0.2.7", { address = "10.0.3.7", weight = 3 }]
//! ```

use crate::routing::{InterfaceAddress, IpPrefix, MEMBERS, Neighbour, PortSettings, StaticRoute};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;

/// The weights that a next hop may have, as those of `ip route`.
const WEIGHTS: RangeInclusive<u16> = 1..=256;

/// A place in the text and what is wrong there.
type Fault = (Range<usize>, String);

/// A route of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRoute {
    to: Spanned<String>,
    via: Spanned<FileVia>,
    /// The interface, if the address `via` is only meaningful on its link.
    port: Option<Spanned<String>>,
}

/// What `via` says: one router, or several.
enum FileVia {
    One(String),
    Several(Vec<Spanned<FileHop>>),
}

/// A router in a list.
enum FileHop {
    Address(String),
    Weighted(WeightedHop),
}

/// A router in a list with what is said of it besides its address.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightedHop {
    address: Spanned<String>,
    port: Option<Spanned<String>>,
    weight: Option<Spanned<u16>>,
}

impl<'de> Deserialize<'de> for FileVia {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FileVia, D::Error> {
        from.deserialize_any(ViaVisitor)
    }
}

struct ViaVisitor;

impl<'de> Visitor<'de> for ViaVisitor {
    type Value = FileVia;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the address of a router, or a list of routers")
    }

    fn visit_str<E>(self, text: &str) -> Result<FileVia, E> {
        Ok(FileVia::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FileVia, A::Error> {
        let mut hops = Vec::new();
        while let Some(hop) = list.next_element()? {
            hops.push(hop);
        }
        Ok(FileVia::Several(hops))
    }
}

impl<'de> Deserialize<'de> for FileHop {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FileHop, D::Error> {
        from.deserialize_any(HopVisitor)
    }
}

struct HopVisitor;

impl<'de> Visitor<'de> for HopVisitor {
    type Value = FileHop;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the address of a router, or a table such as { address = \"10.0.1.7\", weight = 3 }")
    }

    fn visit_str<E>(self, text: &str) -> Result<FileHop, E> {
        Ok(FileHop::Address(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FileHop, A::Error> {
        WeightedHop::deserialize(MapAccessDeserializer::new(map)).map(FileHop::Weighted)
    }
}

impl FileRoute {
    /// Where it says by which routers it leads.
    pub(super) fn via_place(&self) -> Range<usize> {
        self.via.span()
    }
}

/// Reads the routes of a file whose ports have these addresses.
pub(super) fn read(file: &[FileRoute], ports: &[PortSettings]) -> Result<Vec<StaticRoute>, Fault> {
    let mut routes: Vec<StaticRoute> = Vec::new();
    for route in file {
        let read = one(route, ports)?;
        if routes.iter().any(|known| known.to == read.to) {
            let message = format!(
                "there is a route to {} above already: write all its next hops in one list, `via = [\"…\", \"…\"]`",
                read.to
            );
            return Err((route.to.span(), message));
        }
        routes.push(read);
    }
    Ok(routes)
}

fn one(route: &FileRoute, ports: &[PortSettings]) -> Result<StaticRoute, Fault> {
    let wrong = |span: Range<usize>, message: String| Err((span, message));
    let to: IpPrefix = match route.to.get_ref().parse() {
        Ok(to) => to,
        Err(error) => return wrong(route.to.span(), format!("{error}")),
    };
    let connected = |port: &PortSettings| holds(port, |own| own.prefix() == to);
    if ports.iter().any(connected) {
        let message = format!("{to} is connected: its hosts are reached without a router");
        return wrong(route.to.span(), message);
    }
    let router = |text, span, port: Option<&Spanned<String>>| {
        Router { text, span, port: port.or(route.port.as_ref()) }.read(to, ports)
    };
    let list = match route.via.get_ref() {
        FileVia::One(text) => {
            return Ok(StaticRoute { to, via: vec![(router(text, route.via.span(), None)?, 1)] });
        }
        FileVia::Several(list) => list,
    };
    if list.is_empty() {
        return wrong(route.via.span(), "`via` names no router".to_owned());
    }
    let mut via: Vec<(Neighbour, u32)> = Vec::new();
    for hop in list {
        let (neighbour, weight) = match hop.get_ref() {
            FileHop::Address(text) => (router(text, hop.span(), None)?, 1),
            FileHop::Weighted(WeightedHop { address, port, weight }) => {
                let given = weight.as_ref().map_or(1, |weight| *weight.get_ref());
                if let Some(weight) = weight.as_ref().filter(|_| !WEIGHTS.contains(&given)) {
                    let (least, most) = (WEIGHTS.start(), WEIGHTS.end());
                    return wrong(weight.span(), format!("`weight`: between {least} and {most}"));
                }
                (router(address.get_ref(), address.span(), port.as_ref())?, u32::from(given))
            }
        };
        if via.iter().any(|(known, _)| *known == neighbour) {
            let message = format!("{} is in this list already: give it a `weight`", neighbour.address);
            return wrong(hop.span(), message);
        }
        if via.len() == MEMBERS {
            return wrong(hop.span(), format!("a route has at most {MEMBERS} next hops"));
        }
        via.push((neighbour, weight));
    }
    Ok(StaticRoute { to, via })
}

/// A router as the file names it.
struct Router<'a> {
    text: &'a str,
    span: Range<usize>,
    /// The interface of the link that its address is on.
    port: Option<&'a Spanned<String>>,
}

impl Router<'_> {
    fn read(self, to: IpPrefix, ports: &[PortSettings]) -> Result<Neighbour, Fault> {
        let Router { text, span, port } = self;
        let wrong = |message: String| Err((span.clone(), message));
        let Ok(address) = text.parse::<IpAddr>() else {
            return wrong(format!("`{text}` is no address: write that of a router, such as 10.0.1.7"));
        };
        if to.is_ipv4() != address.is_ipv4() {
            return wrong(format!("{address} is of another family than {to}"));
        }
        let of_name = |name: &str| {
            let named = |(_, port): &(u16, &PortSettings)| !name.is_empty() && port.interface == name;
            (1..).zip(ports).find(named).map(|(number, _)| number)
        };
        let named = match port {
            Some(name) => match of_name(name.get_ref()) {
                Some(number) => Some(number),
                None => {
                    let message = format!("there is no port with interface `{}`", name.get_ref());
                    return Err((name.span(), message));
                }
            },
            None => None,
        };
        if ports.iter().any(|port| holds(port, |own| own.address == address)) {
            return wrong(format!("{address} is the gateway's own address"));
        }
        let mut numbered = (1..).zip(ports);
        let connected = numbered.find(|(_, port)| holds(port, |own| own.prefix().contains(address)));
        let link_local = matches!(address, IpAddr::V6(six) if six.segments()[0] & 0xffc0 == 0xfe80);
        match (named, connected) {
            (Some(port), _) if link_local => Ok(Neighbour { port, address }),
            (None, _) if link_local => {
                wrong(format!("{address} is an address of one link: say which by `port = \"…\"`"))
            }
            (_, None) => wrong(format!(
                "{address} is on no connected network; the ports' addresses say which those are"
            )),
            (Some(named), Some((port, settings))) if named != port => {
                wrong(format!("{address} is at `{}`", settings.interface))
            }
            (_, Some((port, _))) => Ok(Neighbour { port, address }),
        }
    }
}

fn holds(port: &PortSettings, what: impl Fn(&InterfaceAddress) -> bool) -> bool {
    port.addresses.iter().any(what)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use std::path::Path;

    /// A file with two ports and this text of a route behind.
    fn read(route: &str) -> Result<Config, String> {
        let text = format!(
            "program = \"a\"\n[[port]]\ninterface = \"x\"\naddresses = [\"10.0.1.1/24\", \"fd00:1::1/64\"]\n\
             [[port]]\ninterface = \"y\"\naddresses = [\"10.0.2.1/24\"]\n[[route]]\n{route}\n"
        );
        Config::read(&text, Path::new("/etc")).map_err(|error| error.to_string())
    }

    /// The next hops of the route: port, address and weight.
    fn hops(route: &str) -> Vec<(u16, String, u32)> {
        let config = read(route).expect("is right");
        let [route] = &config.routing.routes[..] else { panic!("one route") };
        route.via.iter().map(|(hop, weight)| (hop.port, hop.address.to_string(), *weight)).collect()
    }

    #[test]
    fn a_route_leads_by_one_router_or_by_several_with_weights() {
        let hop = |port, address: &str, weight| (port, address.to_owned(), weight);
        let one = vec![hop(1, "10.0.1.7", 1)];
        assert_eq!(hops("to = \"10.9.0.0/16\"\nvia = \"10.0.1.7\""), one);
        assert_eq!(hops("to = \"10.9.0.0/16\"\nvia = [\"10.0.1.7\"]"), one);
        assert_eq!(
            hops(
                "to = \"10.9.0.0/16\"\nvia = [\"10.0.2.7\", { address = \"10.0.1.8\", weight = 256 }, { address = \"10.0.1.7\" }]"
            ),
            [hop(2, "10.0.2.7", 1), hop(1, "10.0.1.8", 256), hop(1, "10.0.1.7", 1)]
        );
        assert_eq!(
            hops(
                "to = \"fd00:9::/32\"\nport = \"y\"\nvia = [\"fe80::7\", { address = \"fe80::7\", port = \"x\", weight = 2 }, { address = \"fd00:1::7\", port = \"x\" }]"
            ),
            [hop(2, "fe80::7", 1), hop(1, "fe80::7", 2), hop(1, "fd00:1::7", 1)],
            "the port of the route is that of next hops that say none"
        );
    }

    #[test]
    fn what_is_wrong_in_a_list_is_shown_where_it_is() {
        let many: Vec<String> = (10..27).map(|last| format!("\"10.0.1.{last}\"")).collect();
        let many = many.join(", ");
        for (via, wanted) in [
            (
                "7",
                "line 10, column 7: invalid type: integer `7`, expected the address of a router, or a list",
            ),
            ("[]", "line 10, column 7: `via` names no router"),
            ("[\"10.0.1.7\", 7]", "line 10, column 20: invalid type: integer `7`, expected the address"),
            ("[\"10.0.1.7\", \"ten\"]", "line 10, column 20: `ten` is no address"),
            ("[\"10.0.1.7\", \"10.0.3.7\"]", "line 10, column 20: 10.0.3.7 is on no connected network"),
            ("[\"10.0.1.7\", \"fd00:1::7\"]", "line 10, column 20: fd00:1::7 is of another family"),
            ("[\"10.0.1.7\", \"10.0.2.1\"]", "line 10, column 20: 10.0.2.1 is the gateway's own address"),
            ("[\"10.0.1.7\", \"10.0.1.7\"]", "line 10, column 20: 10.0.1.7 is in this list already"),
            ("[{ weight = 2 }]", "line 10, column 8: missing field `address`"),
            ("[{ address = \"10.0.1.7\", wait = 2 }]", "line 10, column 32: unknown field `wait`"),
            ("[{ address = \"10.0.1.7\", weight = 0 }]", "line 10, column 41: `weight`: between 1 and 256"),
            ("[{ address = \"10.0.1.7\", weight = 257 }]", "line 10, column 41: `weight`: between 1 and 256"),
            ("[{ address = \"10.0.1.7\", weight = -1 }]", "line 10, column 41: invalid value"),
            (
                "[{ address = \"10.0.1.7\", port = \"z\" }]",
                "line 10, column 39: there is no port with interface `z`",
            ),
            ("[{ address = \"10.0.1.7\", port = \"y\" }]", "line 10, column 20: 10.0.1.7 is at `x`"),
            (&format!("[{many}]"), "line 10, column 216: a route has at most 16 next hops"),
        ] {
            let error = read(&format!("to = \"10.9.0.0/16\"\nvia = {via}")).expect_err(via);
            assert!(error.starts_with(wanted), "{via:?} gives {error}");
        }
        let sixteen = many.rsplit_once(", ").expect("many").0;
        assert_eq!(hops(&format!("to = \"10.9.0.0/16\"\nvia = [{sixteen}]")).len(), 16);
    }

    #[test]
    fn a_program_has_room_for_the_sets_of_a_file_or_the_route_is_named() {
        let program = |groups: &str, hops: u32| {
            let text = format!(
                "table routes: lpm(ip4) -> u16 {{ capacity 8 }}\ntable routes6: lpm(ip6) -> u16 {{ capacity 8 }}\n\
                 table next_hops: exact(u16) -> (port, mac, mac, u16) {{ capacity {hops} }}\n{groups}\n\
                 start stage all() {{ flood }}\n"
            );
            let options = lang::pipeline::CompileOptions::default();
            lang::pipeline::compile("p.rav", &text, &|_| None, &options).program.expect("compiles")
        };
        let with = |capacity: u32| {
            program(&format!("table next_hop_groups: exact(u16, u8) -> u16 {{ capacity {capacity} }}"), 1000)
        };
        let route = |number: usize, first: usize, second: usize| {
            let to = format!("10.9.{}.{}/32", number / 256, number % 256);
            format!("to = \"{to}\"\nvia = [\"10.0.1.{first}\", \"10.0.2.{second}\"]\n")
        };
        let fits = |routes: &[String], program| {
            let config = read(&routes.join("[[route]]\n"))?;
            config.routes_by(&program).map_err(|error| error.to_string())
        };
        // The third leads by the set of the first.
        let three = [route(0, 7, 7), route(1, 7, 8), route(2, 7, 7)];
        assert_eq!(fits(&three, with(128)), Ok(()));
        let error = fits(&three, with(127)).expect_err("there is room for one");
        assert!(
            error.starts_with("line 13, column 7: the routes above have 1 different sets of several"),
            "{error}"
        );
        let error = fits(&three, program("", 1000)).expect_err("there is none");
        assert!(error.starts_with("line 10, column 7: several next hops need a table `next_hop_"), "{error}");
        let four = [&three[..], &[route(3, 9, 10)]].concat();
        let groups = "table next_hop_groups: exact(u16, u8) -> u16 { capacity 1k }";
        assert_eq!(fits(&four, program(groups, 5)), Ok(()));
        let error = fits(&four, program(groups, 4)).expect_err("there are five");
        assert!(error.starts_with("line 19, column 7: the program has room for 4 next hops"), "{error}");
        // However large the table is, there are 400.
        let many: Vec<String> =
            (0..401).map(|number| route(number, 2 + number % 200, 2 + number / 200)).collect();
        assert_eq!(fits(&many[..400], with(1 << 20)), Ok(()));
        let error = fits(&many, with(1 << 20)).expect_err("more than there are numbers");
        assert!(error.starts_with("line 1210, column 7: the routes above have 400 different"), "{error}");
    }
}
