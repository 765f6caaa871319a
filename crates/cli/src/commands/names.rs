//! `ravelin names`: the names of a running process.

use super::show;
use crate::arguments::names::{NamesCommand, WhyNameArguments};
use crate::failure::Failure;
use crate::render;
use crate::render::answer::{list, number, text, whole};
use crate::render::quantity::{count, of};
use crate::render::table::{Side, table};
use gateway::config::HostPlace;
use gateway::control::{self, Asked, ControlError};
use gateway::names::{NameWish, WhyNameWish};
use serde_json::Value;

/// Runs the command.
pub(super) fn run(what: &NamesCommand, json: bool) -> Result<(), Failure> {
    let (socket, told): (_, fn(&Value) -> String) = match what {
        NamesCommand::List(socket) => (socket, names),
        NamesCommand::Bindings(socket) => (socket, promises),
        NamesCommand::Gateways(socket) => {
            let answer = control::ask(&socket.control, Asked::Names)?;
            let seen = match control::ask(&socket.control, Asked::Picture) {
                // A name server without ports has no tunnel to tell of.
                Err(ControlError::Refused(_)) => Value::Null,
                seen => seen?,
            };
            let rows = gateways(&answer["names"], &seen["picture"]);
            let said = if json { render::json(&rows) } else { render::text(&gateway_table(&rows)) };
            return Ok(said?);
        }
        NamesCommand::Why(why) => {
            let WhyNameArguments { initiator, address, ref service, .. } = *why;
            let wish = WhyNameWish { initiator, address, service: service.clone() };
            let answer = control::ask(&why.socket.control, Asked::WhyName(wish))?;
            let view = &answer["whyname"];
            if json {
                return Ok(render::json(view)?);
            }
            return Ok(render::text(&reason(view))?);
        }
        NamesCommand::Add(add) => {
            let wish = NameWish {
                name: add.name.clone(),
                place: HostPlace { gateway: add.gateway.clone(), address: add.address },
                services: add.services.clone(),
                ipv4: add.ipv4,
                ipv6: add.ipv6.map(|six| six.behind_gateway(add.address)),
            };
            return show::ask(&add.socket, Asked::AddName(wish), json);
        }
        NamesCommand::Remove(remove) => {
            return show::ask(&remove.socket, Asked::RemoveName { name: remove.name.clone() }, json);
        }
    };
    let answer = control::ask(&socket.control, Asked::Names)?;
    let view = &answer["names"];
    if json {
        return Ok(render::json(view)?);
    }
    Ok(render::text(&told(view))?)
}

/// What becomes of a first packet, in sentences.
fn reason(view: &Value) -> String {
    let host = |what: &str| {
        let to = &view[what];
        format!("{} behind `{}`", text(to, "host"), text(to, "gateway"))
    };
    let seconds = |what: &str| format!("{:.0} s", number(view, what));
    let mut told = match text(view, "outcome") {
        "reaches" if view["proved"] == true => format!("it reaches {}\n", host("bound")),
        "reaches" => format!("it reaches {}, and has not proved itself yet\n", host("bound")),
        "ambiguous" => {
            let (has, which) =
                if view["bound"].is_null() { ("has reached", "quarantined") } else { ("reaches", "bound") };
            format!(
                "ambiguous: it {has} {}, and another host has been promised since: nothing new goes to either\n",
                host(which)
            )
        }
        "quarantined" => format!(
            "quarantined: it has reached {} a short time ago, and reaches no other host here for {}\n",
            host("quarantined"),
            seconds("quarantine_seconds")
        ),
        "answered_by_cookie" => format!(
            "no place: {} bindings have not proved themselves, as many as there may be; its first segment is answered by a SYN cookie, and who acknowledges that would reach {}\n",
            count(whole(view, "young")),
            host("expected")
        ),
        "embryonic_full" => format!(
            "embryonic full: {} bindings have not proved themselves, as many as there may be\n",
            count(whole(view, "young"))
        ),
        "server_name" => {
            "no expectation: a client of TLS reaches the host whose name it says there (`server_names`)\n"
                .to_owned()
        }
        "would_reach" => format!("its first packet would reach {}\n", host("expected")),
        _ => "no expectation: no name that leads there was asked for by this client or its resolver\n"
            .to_owned(),
    };
    if !view["expected"].is_null() {
        let until = if view["expected_seconds"].is_null() {
            "whoever asks".to_owned()
        } else {
            format!("for {} more", seconds("expected_seconds"))
        };
        told += &format!("promised: {} to {}, {until}\n", host("expected"), text(view, "initiators"));
    }
    for other in list(view, "others") {
        told += &format!(
            "promised to others: {} behind `{}` to {}, for {:.0} s more\n",
            text(other, "host"),
            text(other, "gateway"),
            text(other, "initiators"),
            number(other, "seconds")
        );
    }
    let said = &view["server_name"];
    if !said.is_null() {
        let name = if said["name"].is_null() { "no server name" } else { text(said, "name") };
        told += &format!("last said by TLS: {name} ({})\n", text(said, "outcome"));
    }
    let refused = &view["refused"];
    if !refused.is_null() {
        told += &format!("last dropped: {} ({})\n", text(refused, "reason"), text(refused, "help"));
    }
    told
}

fn words(value: &Value, name: &str) -> String {
    text(value, name).to_owned()
}

fn names(view: &Value) -> String {
    let hosts = list(view, "hosts");
    let row = |host: &Value| {
        let services: Vec<&str> = list(host, "services").iter().filter_map(Value::as_str).collect();
        let services = services.join(" ");
        let own = ["name", "gateway", "address"].map(|key| words(host, key));
        let six = ["ipv6", "ipv6_host"].map(|key| words(host, key));
        [&own[..], &[services, words(host, "ipv4")], &six].concat()
    };
    let columns =
        ["name", "gateway", "host", "services", "IPv4", "IPv6", "which is"].map(|name| (name, Side::Left));
    let all = whole(view, "host_count");
    let mut head =
        format!("{}, serial {}: {} for hosts\n", text(view, "zone"), whole(view, "serial"), of(all, "name"));
    for waypoint in list(view, "waypoints") {
        let says = if waypoint["silent"] == true { "does not answer" } else { "is asked" };
        head += &format!("the waypoint `{}` {says}\n", text(waypoint, "name"));
    }
    let queries = &view["queries"];
    if whole(queries, "udp") + whole(queries, "tcp") == 0 {
        let zone = text(view, "zone");
        head += &format!(
            "no query has come yet: where the zone above {zone} is, {zone} has to be delegated to this name server\n"
        );
    }
    head += &store(&view["store"]);
    if hosts.is_empty() {
        return head;
    }
    let more = match all.saturating_sub(hosts.len() as u64) {
        0 => String::new(),
        more => format!("and {} more\n", count(more)),
    };
    format!("{head}\n{}{more}", table(&columns, hosts.iter().map(row).collect()))
}

/// How far the store is with what packets do.
fn store(view: &Value) -> String {
    let unwritten = of(whole(view, "unwritten"), "binding");
    if !view["error"].is_null() {
        return format!(
            "the store cannot be written, and {unwritten} would be unknown after a restart: {}; it is tried again\n",
            text(view, "error")
        );
    }
    match view["written_seconds"].as_f64() {
        None => String::new(),
        Some(seconds) => {
            format!("the store has what packets did until {seconds:.1} s ago; {unwritten} not written yet\n")
        }
    }
}

fn promises(view: &Value) -> String {
    let promises = list(view, "promises");
    let row = |promise: &Value| {
        let own = ["address", "gateway", "host", "initiators", "resolver"].map(|key| words(promise, key));
        let seconds = ["exclusive_seconds", "seconds"].map(|key| format!("{:.1} s", number(promise, key)));
        [&own[..], &seconds].concat()
    };
    let columns = [
        Side::Left.columns(&["address", "gateway", "host", "initiators", "asked by"]),
        Side::Right.columns(&["nobody else for", "holds for"]),
    ]
    .concat();
    let head = format!("{}\n", of(promises.len() as u64, "promise"));
    if promises.is_empty() {
        return head;
    }
    format!("{head}\n{}", table(&columns, promises.iter().map(row).collect()))
}

/// The gateways of the file, each with its peer of a tunnel and its lease of names.
fn gateways(names: &Value, picture: &Value) -> Vec<Value> {
    let tunnels = list(picture, "ports").iter().map(|port| &port["tunnel"]);
    let peers: Vec<&Value> = tunnels.flat_map(|tunnel| list(tunnel, "peers")).collect();
    let leases = list(&picture["leases"], "gateways");
    let gateway = |one: &Value| {
        let number = one["number"].as_u64();
        let peer = peers.iter().find(|peer| number.is_some() && peer["number"].as_u64() == number);
        let lease = leases.iter().find(|lease| lease["name"] == one["name"]);
        let mut row = one.clone();
        row["peer"] = peer.map_or(Value::Null, |peer| (*peer).clone());
        row["lease_seconds"] = lease.map_or(Value::Null, |lease| lease["seconds"].clone());
        row
    };
    list(names, "gateways").iter().map(gateway).collect()
}

fn gateway_table(gateways: &[Value]) -> String {
    let row = |one: &Value| {
        let networks: Vec<&str> = list(one, "networks").iter().filter_map(Value::as_str).collect();
        let peer = &one["peer"];
        let seconds = |value: &Value, ago: &str| value.as_f64().map(|seconds| format!("{seconds:.0} s{ago}"));
        vec![
            words(one, "name"),
            networks.join(" "),
            count(whole(one, "names")),
            words(peer, "endpoint"),
            seconds(&peer["handshake_seconds"], " ago").unwrap_or_else(|| "no session".to_owned()),
            count(whole(peer, "received")),
            count(whole(peer, "sent")),
            seconds(&one["lease_seconds"], "").unwrap_or_default(),
        ]
    };
    let columns = [
        Side::Left.columns(&["gateway", "networks"]),
        Side::Right.columns(&["names"]),
        Side::Left.columns(&["is at", "handshake"]),
        Side::Right.columns(&["packets from it", "to it", "lease lasts"]),
    ]
    .concat();
    let head = format!("{}\n", of(gateways.len() as u64, "gateway"));
    if gateways.is_empty() {
        return head;
    }
    format!("{head}\n{}", table(&columns, gateways.iter().map(row).collect()))
}
