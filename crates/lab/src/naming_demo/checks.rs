//! The checks of the demonstration, in the order in which they are made.

use super::DemoCheck;
use super::checks_of_ipv6 as six;
use super::parties::{DOWNLOAD, HOSTS, INITIATORS, KNOWN_ADDRESSES, Parties, name, page};
use rig::SmallInternet;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// A check.
type Check = fn(&mut Parties) -> io::Result<DemoCheck>;

/// All of them.
pub(super) const ALL: &[Check] = &[
    web_page,
    true_source,
    download,
    shell,
    dns_of_a_host,
    ping,
    path_mtu,
    traceroute,
    datagrams,
    same_port_three_initiators,
    same_port_one_initiator,
    one_name_too_many,
    ten_behind_one_resolver,
    not_asked_for,
    six::stable_address,
    six::web_page,
    six::true_source,
    six::shell,
    six::dns_of_a_host,
    six::ping,
    six::path_mtu,
    six::traceroute,
    six::datagrams,
    six::not_offered,
    six::translated,
    six::registered,
];

pub(super) fn said(id: &str, what: &str, ok: bool, seen: impl Into<String>) -> io::Result<DemoCheck> {
    Ok(DemoCheck { id: id.to_owned(), what: what.to_owned(), ok, seen: seen.into() })
}

/// What a program said, on one line.
pub(super) fn line(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn curl(parties: &Parties, initiator: usize, url: &str) -> io::Result<Output> {
    parties.client(initiator, "curl").args(["-sS", "--ipv4", "--max-time", "8", url]).output()
}

fn web_page(parties: &mut Parties) -> io::Result<DemoCheck> {
    let output = curl(parties, 0, &format!("http://{}/", name(0)))?;
    let ok = output.stdout == page(0).as_bytes();
    said("F1", "curl gets the web page of a host by its name", ok, line(&output))
}

fn true_source(parties: &mut Parties) -> io::Result<DemoCheck> {
    let log = parties.access_log(0)?;
    let seen: BTreeSet<&str> = log.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let own = SmallInternet::initiator_address(0).to_string();
    let ok = seen == BTreeSet::from([own.as_str()]);
    let seen = seen.into_iter().collect::<Vec<_>>().join(" ");
    said("I5", "the log of the host's web server has the client's true address", ok, seen)
}

fn download(parties: &mut Parties) -> io::Result<DemoCheck> {
    let begun = Instant::now();
    let output = curl(parties, 0, &format!("http://{}/download", name(0)))?;
    let seconds = begun.elapsed().as_secs_f64();
    let same = output.stdout == fs::read(parties.path("host0").join("download"))?;
    let bits = output.stdout.len() as f64 * 8.0 / seconds / 1e6;
    let seen = format!("{} of {DOWNLOAD} bytes, {bits:.0} Mbit/s", output.stdout.len());
    said("F1 download", "4 MiB arrive as they are", same, seen)
}

fn shell(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (ok, seen) = shell_by(parties, "-4", &SmallInternet::initiator_address(0).to_string())?;
    said("F2", "ssh logs in, and the shell knows the client's true address", ok, seen)
}

/// Logs in, and looks who the shell says has done so.
pub(super) fn shell_by(parties: &Parties, family: &str, wanted: &str) -> io::Result<(bool, String)> {
    let key = parties.path("user").display().to_string();
    let options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes"];
    let mut command = parties.client(0, "ssh");
    command.args(["-q", family, "-F", "none", "-p", "2222", "-i", &key, "-o", "ConnectTimeout=8"]);
    command.args(options.iter().flat_map(|option| ["-o", option]));
    let output = command.args([&format!("root@{}", name(0)), "echo $SSH_CONNECTION"]).output()?;
    let text = line(&output);
    Ok((output.status.success() && text.split(' ').next() == Some(wanted), text))
}

fn dns_of_a_host(parties: &mut Parties) -> io::Result<DemoCheck> {
    let host = format!("@{}", address_of(parties, 0)?);
    let mut answers = Vec::new();
    for by in ["+notcp", "+tcp"] {
        answers.push(line(&parties.dig(0, &[&host, by, "+short", "inside.example"])?));
    }
    let ok = answers.iter().all(|answer| answer == "10.0.0.99");
    said("F3", "dig asks a DNS server on a host, by UDP and by TCP", ok, answers.join(" and "))
}

fn ping(parties: &mut Parties) -> io::Result<DemoCheck> {
    let mut seen = Vec::new();
    let mut ok = true;
    for size in ["56", "1472", "4000"] {
        let arguments = ["-4", "-c", "3", "-i", "0.2", "-W", "2", "-M", "dont", "-s", size, &name(0)];
        let output = parties.client(0, "ping").args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answered = text.matches("bytes from").count();
        ok &= answered == 3;
        seen.push(format!("{answered} of 3 with {size} bytes"));
    }
    said("F4 ping", "ping is answered, in one packet and in fragments", ok, seen.join(", "))
}

fn path_mtu(parties: &mut Parties) -> io::Result<DemoCheck> {
    let arguments = ["-4", "-c", "2", "-i", "0.2", "-W", "2", "-M", "do", "-s", "1472", &name(0)];
    let output = parties.client(0, "ping").args(arguments).output()?;
    let (ok, seen) = told_mtu(&output);
    said("F4 path MTU", "a ping that may not be cut is told which length the path takes", ok, seen)
}

/// Whether ping was told what the tunnel takes, and what it said.
pub(super) fn told_mtu(output: &Output) -> (bool, String) {
    let text = line(output);
    // "(mtu = 1420)" of the router, or "mtu=1420" of the own kernel that has heard of it.
    let rest = text.split("mtu").nth(1).unwrap_or("").trim_start_matches([' ', '=', ':']);
    let mtu: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let ok = mtu == "1420";
    (ok, if ok { format!("{mtu} bytes") } else { text })
}

/// How often at most a path is traced or datagrams are sent: a stall of the whole machine loses some in one
/// go.
const TRIES: usize = 3;

/// Traces the path to the first host until a trace ends at its address `wanted`, and shows each: a stall of
/// the whole machine leaves answers out. No trace may name an address that begins with one of `private`.
pub(super) fn traced(
    parties: &Parties,
    family: &str,
    wanted: &str,
    private: &[&str],
) -> io::Result<(bool, String)> {
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let hops = traced_once(parties, family)?;
        seen.push(hops.join(" "));
        let names_private = hops.iter().any(|hop| private.iter().any(|private| hop.starts_with(private)));
        let ended = hops.len() >= 2 && hops.last().is_some_and(|last| last == wanted);
        if ended || names_private {
            return Ok((!names_private, seen.join(", then ")));
        }
    }
    Ok((false, seen.join(", then ")))
}

fn traced_once(parties: &Parties, family: &str) -> io::Result<Vec<String>> {
    let mut command = parties.client(0, "traceroute");
    let output = command.args([family, "-n", "-I", "-q", "1", "-w", "5", "-m", "8", &name(0)]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let hops = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    Ok(hops.map(str::to_owned).collect())
}

fn traceroute(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (ok, seen) = traced(parties, "-4", &address_of(parties, 0)?, &["10.", "100."])?;
    said(
        "F4 traceroute",
        "traceroute ends at the address in one of three tries, and names no private one in any",
        ok,
        seen,
    )
}

fn datagrams(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (ok, seen) = datagrams_to(parties, &address_of(parties, 0)?)?;
    said(
        "F5",
        "iperf3 sends 10 Mbit/s of UDP, at most one of a thousand is lost in one of three tries",
        ok,
        seen,
    )
}

/// Sends datagrams for two seconds, and counts those that were lost; again if that was more than one of a
/// thousand.
pub(super) fn datagrams_to(parties: &Parties, address: &str) -> io::Result<(bool, String)> {
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let (ok, lost) = datagrams_once(parties, address)?;
        seen.push(lost);
        if ok {
            return Ok((true, seen.join(", then ")));
        }
    }
    Ok((false, seen.join(", then ")))
}

fn datagrams_once(parties: &Parties, address: &str) -> io::Result<(bool, String)> {
    let mut command = parties.client(0, "iperf3");
    let output = command.args(["-c", address, "-u", "-b", "10M", "-l", "1200", "-t", "2", "-J"]).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let sum = &report["end"]["sum"];
    let (sent, lost) = (sum["packets"].as_u64().unwrap_or(0), sum["lost_packets"].as_u64());
    let ok = sent > 1_000 && lost.is_some_and(|lost| lost * 1_000 <= sent);
    let seen = match lost {
        Some(lost) => format!("{lost} of {sent} lost"),
        None => report["error"].as_str().map_or_else(|| line(&output), str::to_owned),
    };
    Ok((ok, seen))
}

fn same_port_three_initiators(parties: &mut Parties) -> io::Result<DemoCheck> {
    let mut seen = Vec::new();
    let mut ok = true;
    for host in 0..3 {
        let output = curl(parties, 1 + host, &format!("http://{}/", name(host)))?;
        ok &= output.stdout == page(host).as_bytes();
        seen.push(line(&output));
    }
    let what = "three names with the same port lead three clients to three hosts";
    said("F7 three clients", what, ok, seen.join(", "))
}

fn same_port_one_initiator(parties: &mut Parties) -> io::Result<DemoCheck> {
    let (mut seen, mut addresses) = (Vec::new(), BTreeSet::new());
    let mut ok = true;
    for host in 1..4 {
        let mut command = parties.client(4, "curl");
        let url = format!("http://{}/", name(host));
        let output =
            command.args(["-sS", "--ipv4", "--max-time", "8", "-w", "%{remote_ip}", &url]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let address = text.strip_prefix(&page(host)).unwrap_or("").to_owned();
        ok &= !address.is_empty() && addresses.insert(address);
        seen.push(line(&output));
    }
    let what = "one client reaches three of them, by three addresses";
    said("F7 one client", what, ok, seen.join(", "))
}

fn one_name_too_many(parties: &mut Parties) -> io::Result<DemoCheck> {
    let mut ok = true;
    for host in 0..KNOWN_ADDRESSES {
        let output = parties.dig_directly(5, &["+short", &name(host)])?;
        let address = line(&output);
        let page_of = curl(parties, 5, &format!("http://{address}/"))?;
        ok &= page_of.stdout == page(host).as_bytes();
    }
    let begun = Instant::now();
    let refused = parties.dig_directly(5, &[&name(KNOWN_ADDRESSES)])?;
    let took = begun.elapsed();
    let text = line(&refused);
    let answer = text.split("status: ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or("none");
    ok &= answer == "SERVFAIL" && took < Duration::from_secs(3);
    let seen = format!("{answer} after {:.1} s", took.as_secs_f64());
    let what = "a client that uses every address already gets SERVFAIL for one name more, within 3 s";
    said("F8", what, ok, seen)
}

fn ten_behind_one_resolver(parties: &mut Parties) -> io::Result<DemoCheck> {
    let url = format!("http://{}/", name(4));
    let mut clients = Vec::new();
    for initiator in 0..INITIATORS {
        let mut command = parties.client(initiator, "curl");
        command.args(["-sS", "--ipv4", "--max-time", "8", &url]);
        clients.push(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    }
    let mut reached = 0;
    for client in clients {
        reached += usize::from(client.wait_with_output()?.stdout == page(4).as_bytes());
    }
    let ok = reached == INITIATORS;
    let what = "ten clients behind one resolver ask for one name at once, and all connect";
    said("F10", what, ok, format!("{reached} of {INITIATORS}"))
}

fn not_asked_for(parties: &mut Parties) -> io::Result<DemoCheck> {
    let logs = |parties: &Parties| -> io::Result<Vec<String>> {
        (0..usize::from(HOSTS)).map(|host| parties.access_log(host)).collect()
    };
    let before = logs(parties)?;
    // Of the pool, an address that nobody was promised.
    let mut command = parties.client(9, "curl");
    let output = command.args(["-sS", "--max-time", "2", "http://198.51.100.15/"]).output()?;
    let ok = !output.status.success() && logs(parties)? == before;
    said("X7", "who has not asked for a name reaches nobody", ok, line(&output))
}

/// The address that a host's name has for the first initiator, by the resolver.
fn address_of(parties: &Parties, host: usize) -> io::Result<String> {
    Ok(line(&parties.dig(0, &["+short", &name(host)])?))
}
