//! Addresses, neighbours and routes of a gateway whose core is confined.
//!
//! ```text
//!  core ──punted packets──► ┌─────────┐ ──ARP, Neighbour Discovery──► core: source guard ──► ports
//!                           │ Routing │ ──changes of entries────────► core: rights of the policy ──► tables
//!  kernel ──────rtnetlink─► └─────────┘
//! ```
//!
//! A program that takes over has the entries that were signed with it. Then what its tables hold is read, and
//! brought to what is known. A policy that gives no rights for that is told of, and runs as it is. Where this
//! process follows one that died, or the core one from which it took over, tables hold what was known before:
//! neighbours keep their numbers, so that packets go on, and are asked whether they are there still.

use super::ask;
use super::confined_loop::ConfinedLoop;
use crate::remarks::Remarks;
use crate::routing::{Hosts, NewHosts, Routing, RoutingSettings};
use crate::tables::{Known, confined};
use messages::Channel;
use messages::control::ControlQuestion;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// How long after a program that cannot be routed by is looked for another one.
const AGAIN: Duration = Duration::from_secs(1);

/// The routing of the gateway, once the first program suits it.
pub(super) type ShownRouting = Arc<OnceLock<Arc<Routing>>>;

/// Serves the core from threads of their own, for as long as it is there.
///
/// # Errors
/// No thread can be had.
pub(super) fn start(
    core: &Arc<Mutex<Channel>>,
    settings: RoutingSettings,
    told: fn(&str),
) -> io::Result<ShownRouting> {
    let (core, remarks, shown) = (core.clone(), Remarks::to(told)?, ShownRouting::default());
    let shows = shown.clone();
    thread::Builder::new()
        .name("routes".to_owned())
        .spawn(move || serve(&core, &settings, &remarks, &shows))?;
    Ok(shown)
}

fn serve(core: &Arc<Mutex<Channel>>, settings: &RoutingSettings, remarks: &Remarks, shows: &ShownRouting) {
    let mut said = String::new();
    let mut say = |why: String| {
        if why != said {
            remarks.say(format!("routes and neighbours: {why}"));
            said = why;
        }
        thread::sleep(AGAIN);
    };
    let (routing, packet_loop) = loop {
        let begun = known(core).and_then(|program| {
            let (tables, remarks) = (program.program.clone(), remarks.clone());
            let packet_loop = ConfinedLoop::new(core.clone(), remarks.clone(), program);
            let held = packet_loop.held_next_hops(settings)?;
            let routing = Routing::going_on(&tables, settings, Hosts::default(), remarks, &held);
            Ok((routing.map_err(|error| error.to_string())?, packet_loop))
        });
        match begun {
            Ok((routing, packet_loop)) => break (Arc::new(routing), Arc::new(packet_loop)),
            Err(why) => say(why),
        }
    };
    if let Err(why) = routing.fill_running(|wanted| packet_loop.difference(wanted)) {
        say(why);
    }
    // Nobody sets it before.
    let _ = shows.set(routing.clone());
    routing.follow_kernel(&packet_loop);
    loop {
        if !packet_loop.is_stale() {
            routing.serve_some(|patience| Some(packet_loop.packets(patience).into_iter()), &*packet_loop);
        } else if let Err(why) = renew(core, settings, &routing, &packet_loop) {
            say(why);
        }
    }
}

/// Another program has taken over.
fn renew(
    core: &Arc<Mutex<Channel>>,
    settings: &RoutingSettings,
    routing: &Routing,
    packet_loop: &ConfinedLoop,
) -> Result<(), String> {
    let program = known(core)?;
    let staged = routing.stage(&program.program, settings).map_err(|error| error.to_string())?;
    packet_loop.runs(program);
    staged.commit(settings, NewHosts::none(settings.ports.len()));
    routing.fill_running(|wanted| packet_loop.difference(wanted))
}

/// The tables of the program that runs.
fn known(core: &Mutex<Channel>) -> Result<Known, String> {
    confined::known(&|question: &ControlQuestion| ask(core, question)).map_err(|refusal| refusal.message)
}
