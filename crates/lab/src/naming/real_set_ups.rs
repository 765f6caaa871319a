//! How many set-ups succeed by load in real time: our name server as a process, asked by many resolvers at
//! random moments.
//!
//! Each load has a process of its own, and all are asked during the same seconds.

use super::name_servers::{Asker, NameServerProcess};
use super::queries::{A, AAAA, Told, half_cookie, outcome, query, whole_cookie};
use super::set_ups::{ADDRESSES, LOADS, RandomChoice, Tries, bound, compared, pause};
use crate::experiment::Row;
use crate::plan::LabPlan;
use naming::limits::SECOND;
use std::io;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};
use tables::generate::Random;

/// Hosts, which are asked for one after the other.
const HOSTS: u64 = 2_000;
/// Networks of resolvers.
const RESOLVERS: u8 = 200;
/// Seconds until as many addresses are taken as will be.
const BEFORE: f64 = 4.0;

/// The rows.
pub(super) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Vec<Row> {
    let seconds = BEFORE + if plan.quick { 2.0 } else { 30.0 };
    let mut tries: Vec<Vec<Tries>> = LOADS.iter().map(|_| Vec::new()).collect();
    for run in 0..plan.runs {
        progress(&format!("naming: set-ups in real time, run {} of {}", run + 1, plan.runs));
        match measure(run as u64, seconds) {
            Ok(all) => tries.iter_mut().zip(all).for_each(|(tries, one)| tries.push(one)),
            Err(why) => {
                let case = format!("{ADDRESSES} addresses, in real time");
                return vec![Row::refused(&case, "set-ups that fail", "%", &why)];
            }
        }
    }
    let compare = |(load, tries): (&u64, &Vec<Tries>)| {
        compared(&format!("{ADDRESSES} addresses in real time, load {load} %"), *load, tries)
    };
    LOADS.iter().zip(&tries).flat_map(compare).collect()
}

/// A name server, when it is asked next, and what has become of its set-ups.
struct Load {
    server: NameServerProcess,
    cookies: Vec<Vec<u8>>,
    rate: f64,
    next: u64,
    asked: u64,
    random_choice: RandomChoice,
    tries: Tries,
}

fn measure(seed: u64, seconds: f64) -> Result<Vec<Tries>, String> {
    let told = |error: io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(told)?;
    let addresses = (0..RESOLVERS).map(|network| Ipv4Addr::new(127, 1, network, 53));
    let resolvers: Vec<Asker> = addresses.map(Asker::new).collect::<Result<_, _>>().map_err(told)?;
    let mut loads = Vec::new();
    for load in LOADS {
        let server = NameServerProcess::ours(folder.path(), &format!("load{load}"), &file())?;
        let cookies: Option<Vec<_>> =
            (0_u32..).zip(&resolvers).map(|(number, resolver)| cookie(number, resolver, &server)).collect();
        let cookies = cookies.ok_or("a resolver gets no cookie")?;
        let rate = load as f64 / 100.0 * bound();
        let random_choice = RandomChoice::new();
        loads.push(Load { server, cookies, rate, next: 0, asked: 0, random_choice, tries: Tries::default() });
    }
    let mut random = Random::new(seed);
    let end = (seconds * SECOND as f64) as u64;
    let counted_from = (BEFORE * SECOND as f64) as u64;
    loads.iter_mut().for_each(|load| load.next = pause(&mut random, load.rate));
    let begin = Instant::now();
    while let Some(load) = loads.iter_mut().min_by_key(|load| load.next).filter(|load| load.next < end) {
        thread::sleep(Duration::from_nanos(load.next).saturating_sub(begin.elapsed()));
        let resolver = random.below(RESOLVERS.into()) as usize;
        let told = Told { cookie: load.cookies[resolver].clone(), network: None };
        // Of one process, hosts are as far apart as can be.
        let name = format!("h{}", load.asked % HOSTS);
        let query = query(load.asked as u16, &name, A, &told);
        let reply = resolvers[resolver].ask(&query, load.server.at);
        let reply = reply.map_err(|error| format!("a query is not answered: {error}"))?;
        let has_failed = match outcome(&reply) {
            Some((0, 1)) => false,
            // SERVFAIL.
            Some((2, 0)) => true,
            other => return Err(format!("a reply is neither an address nor a failure: {other:?}")),
        };
        let failed_at_random = load.random_choice.fails(&mut random, load.next);
        load.asked += 1;
        if load.next >= counted_from {
            load.tries.note(has_failed, failed_at_random);
        }
        load.next += pause(&mut random, load.rate);
    }
    Ok(loads.into_iter().map(|load| load.tries.of(seconds - BEFORE)).collect())
}

fn cookie(number: u32, resolver: &Asker, server: &NameServerProcess) -> Option<Vec<u8>> {
    let half = half_cookie(number);
    let told = Told { cookie: half.clone(), network: None };
    whole_cookie(&half, &resolver.ask(&query(0, "h0", AAAA, &told), server.at).ok()?)
}

/// A zone of hosts by addresses for initiators that are not known.
fn file() -> String {
    let addresses: Vec<String> = (1..=ADDRESSES).map(|last| format!("\"198.51.100.{last}\"")).collect();
    let mut file = "[[names.server]]\nname = \"ns1\"\naddresses = [\"192.0.2.53\"]\n\
        [[names.gateway]]\nname = \"home\"\nnetworks = [\"10.0.0.0/16\"]\n"
        .to_owned();
    for host in 0..HOSTS {
        let address = Ipv4Addr::from_bits(0x0a00_0001 + host as u32);
        file += &format!(
            "[[names.host]]\nname = \"h{host}\"\ngateway = \"home\"\naddress = \"{address}\"\nservices = [\"tcp/443\"]\nipv4 = \"per-initiator\"\n"
        );
    }
    file + &format!("[names.waypoint]\nunknown = [{}]\nhold = \"measured\"\n", addresses.join(", "))
}
