//! The checks of the demonstration by IPv6: the same programs, by the address that a host has for everybody.

use super::DemoCheck;
use super::checks::{datagrams_to, line, said, shell_by, told_mtu, traced};
use super::parties::{DOWNLOAD, IPV4_ALONE, Parties, REGISTERED, name, page, registered_name, wait};
use rig::SmallInternet;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::Ipv6Addr;

/// The address of IPv6 of a host's name, by the resolver.
fn address_of(parties: &Parties, host: usize) -> io::Result<String> {
    Ok(line(&parties.dig(0, &["+short", "AAAA", &name(host)])?))
}

/// The same of the name that the gateway registers, by the name server of the zone.
fn registered_address(parties: &Parties) -> io::Result<String> {
    Ok(line(&parties.dig_directly(0, &["+short", "AAAA", &registered_name()])?))
}

pub(super) fn stable_address(parties: &mut Parties) -> io::Result<DemoCheck> {
    let first = address_of(parties, 0)?;
    let others = [address_of(parties, 1)?, line(&parties.dig_directly(3, &["+short", "AAAA", &name(0)])?)];
    let in_network = |text: &str| {
        let network = SmallInternet::STABLE_NETWORK.to_bits() >> 64;
        text.parse::<Ipv6Addr>().is_ok_and(|address| address.to_bits() >> 64 == network)
    };
    let ok = in_network(&first) && in_network(&others[0]) && others[0] != first && others[1] == first;
    let what = "each host has an address of IPv6, the same whoever asks";
    said("F9 address", what, ok, format!("{first} and {}", others[0]))
}

pub(super) fn web_page(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (mut seen, mut ok) = (Vec::new(), true);
    for host in 0..3 {
        let url = format!("http://{}/", name(host));
        let output =
            parties.client(host, "curl").args(["-sS", "--ipv6", "--max-time", "8", &url]).output()?;
        ok &= output.stdout == page(host).as_bytes();
        seen.push(line(&output));
    }
    let url = format!("http://{}/download", name(0));
    let output = parties.client(0, "curl").args(["-sS", "--ipv6", "--max-time", "8", &url]).output()?;
    ok &= output.stdout == fs::read(parties.path("host0").join("download"))?;
    seen.push(format!("{} of {DOWNLOAD} bytes", output.stdout.len()));
    said("F9 F1", "curl gets three web pages and 4 MiB by IPv6", ok, seen.join(", "))
}

pub(super) fn true_source(parties: &mut Parties) -> io::Result<DemoCheck> {
    let log = parties.access_log(0)?;
    let ends = log.lines().filter_map(|line| line.split_whitespace().next());
    let seen: BTreeSet<&str> = ends.filter(|end| end.contains(':')).collect();
    let own = SmallInternet::initiator_address6(0).to_string();
    let ok = seen == BTreeSet::from([own.as_str()]);
    let seen = seen.into_iter().collect::<Vec<_>>().join(" ");
    said("F9 I5", "the log of the host's web server has the client's true address of IPv6", ok, seen)
}

pub(super) fn shell(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (ok, text) = shell_by(parties, "-6", &SmallInternet::initiator_address6(0).to_string())?;
    said("F9 F2", "ssh logs in by IPv6, and the shell knows the client's true address", ok, text)
}

pub(super) fn dns_of_a_host(parties: &mut Parties) -> io::Result<DemoCheck> {
    let host = format!("@{}", address_of(parties, 0)?);
    let mut answers = Vec::new();
    for by in ["+notcp", "+tcp"] {
        answers.push(line(&parties.dig(0, &[&host, by, "+short", "inside.example"])?));
    }
    let ok = answers.iter().all(|answer| answer == "10.0.0.99");
    said("F9 F3", "dig asks a DNS server on a host by IPv6, by UDP and by TCP", ok, answers.join(" and "))
}

pub(super) fn ping(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (mut seen, mut ok) = (Vec::new(), true);
    // The path takes less than the link. Each end hears of it by the first packet that is too large, and cuts
    // the following ones itself.
    for (size, count, least) in [("56", "3", 3), ("1300", "3", 3), ("4000", "5", 3)] {
        let arguments = ["-6", "-c", count, "-i", "0.2", "-W", "2", "-M", "dont", "-s", size, &name(0)];
        let output = parties.client(0, "ping").args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answered = text.matches("bytes from").count();
        ok &= answered >= least;
        seen.push(format!("{answered} of {count} with {size} bytes"));
    }
    said("F9 F4 ping", "ping is answered by IPv6, in one packet and in fragments", ok, seen.join(", "))
}

pub(super) fn path_mtu(parties: &mut Parties) -> io::Result<DemoCheck> {
    let arguments = ["-6", "-c", "2", "-i", "0.2", "-W", "2", "-M", "do", "-s", "1400", &name(0)];
    let output = parties.client(6, "ping").args(arguments).output()?;
    let (ok, seen) = told_mtu(&output);
    said("F9 F4 path MTU", "a ping is told by ICMPv6 which length the path takes", ok, seen)
}

pub(super) fn traceroute(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (ok, seen) = traced(parties, "-6", &address_of(parties, 0)?, &["fd"])?;
    let what =
        "traceroute by IPv6 ends at the address in one of three tries, and names no private one in any";
    said("F9 F4 traceroute", what, ok, seen)
}

pub(super) fn datagrams(parties: &mut Parties) -> io::Result<DemoCheck> {
    let address = address_of(parties, 0)?;
    let (ok, seen) = datagrams_to(parties, &address)?;
    let what =
        "iperf3 sends 10 Mbit/s of UDP by IPv6, at most one of a thousand is lost in one of three tries";
    said("F9 F5", what, ok, seen)
}

pub(super) fn not_offered(parties: &mut Parties) -> io::Result<DemoCheck> {
    // The second host listens at its port 80 alone, and offers no ping.
    let url = format!("http://{}:2222/", name(1));
    let mut command = parties.client(1, "curl");
    let curl = command.args(["-sS", "--ipv6", "--max-time", "2", &url]).output()?;
    let ping = parties.client(1, "ping").args(["-6", "-c", "1", "-W", "2", &name(1)]).output()?;
    let ok = !curl.status.success() && !ping.status.success();
    said("F9 X7", "by IPv6 nobody reaches what a host does not offer", ok, line(&curl))
}

pub(super) fn translated(parties: &mut Parties) -> io::Result<DemoCheck> {
    let url = format!("http://{}/", name(IPV4_ALONE));
    let mut seen = Vec::new();
    let before = parties.access_log(IPV4_ALONE)?.len();
    let curl = parties.client(7, "curl").args(["-sS", "--ipv6", "--max-time", "8", &url]).output()?;
    seen.push(line(&curl));
    let ping = ["-6", "-c", "3", "-i", "0.2", "-W", "2", &name(IPV4_ALONE)];
    let answered = line(&parties.client(7, "ping").args(ping).output()?).matches("bytes from").count();
    seen.push(format!("{answered} of 3 pings"));
    let log = parties.access_log(IPV4_ALONE)?;
    let who = log[before..].split_whitespace().next().unwrap_or("nobody");
    seen.push(format!("its log shows {who}"));
    let ok = curl.stdout == page(IPV4_ALONE).as_bytes() && answered == 3;
    let told = fs::read_to_string(parties.path("translated.log"))?;
    let client = SmallInternet::initiator_address6(7).to_string();
    let is_told = told.contains(&client);
    seen.push(format!("the gateway tells {}", if is_told { &client } else { "nobody" }));
    let ok = ok && is_told && who == SmallInternet::LAN_GATEWAY.to_string();
    let what = "a host that has IPv4 alone is reached by IPv6; it sees the gateway, which tells who it was";
    said("F9 translated", what, ok, seen.join(", "))
}

pub(super) fn registered(parties: &mut Parties) -> io::Result<DemoCheck> {
    wait("the gateway has registered a name", || Ok(!registered_address(parties)?.is_empty()))?;
    let (own, first) = (registered_address(parties)?, address_of(parties, REGISTERED)?);
    let url = format!("http://{}/", registered_name());
    let curl = parties.client(8, "curl").args(["-sS", "--ipv6", "--max-time", "8", &url]).output()?;
    let ok = own == first && curl.stdout == page(REGISTERED).as_bytes();
    let what = "a name that its gateway registers has the address that the host has already";
    said("F9 registered", what, ok, format!("{own}, {}", line(&curl)))
}
