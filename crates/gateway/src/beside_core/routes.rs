//! Addresses, neighbours and routes of a gateway whose core is confined.
//!
//! ```text
//!  core ──punted packets──► ┌─────────┐ ──ARP, Neighbour Discovery──► core: source guard ──► ports
//!                           │ Routing │ ──changes of entries────────► core: rights of the policy ──► tables
//!  kernel ──────rtnetlink─► └─────────┘
//! ```
//!
//! Routes are those of the machine, or those of the network of a container: `launch` opens a socket there.
//!
//! A program that takes over has the entries that were signed with it. Then what its tables hold is read, and
//! brought to what is known. A policy that gives no rights for that is told of, and runs as it is. Where this
//! process follows one that died, or the core one from which it took over, tables hold what was known before:
//! neighbours keep their numbers, so that packets go on, and are asked whether they are there still.

use super::OneProcess;
use super::confined_loop::ConfinedLoop;
use super::core_channel::CoreChannel;
use crate::remarks::Remarks;
use crate::routing::{Filled, Hosts, NewHosts, Resumed, Routing, RoutingSettings};
use crate::tables::confined::ConfinedTables;
use crate::tables::{Known, confined};
use messages::control::ControlQuestion;
use ports::live::Netlink;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// How long to wait before asking again whether a program runs by which packets can be routed.
const AGAIN: Duration = Duration::from_secs(1);
/// How long Linux may take to tell all its routes: a million of them take some seconds.
const KERNEL_TELLS: Duration = Duration::from_secs(20);

/// The routing of the gateway, once the first program suits it.
pub(super) type ShownRouting = Arc<OnceLock<Arc<Routing>>>;

/// Serves the core from threads of their own, for as long as it is there.
///
/// # Errors
/// No thread can be had.
pub(super) fn start(
    core: &Arc<CoreChannel>,
    settings: RoutingSettings,
    container: Option<OwnedFd>,
    told: fn(&str),
) -> io::Result<ShownRouting> {
    let (core, remarks, shown) = (core.clone(), Remarks::to(told)?, ShownRouting::default());
    let shows = shown.clone();
    thread::Builder::new()
        .name("routes".to_owned())
        .spawn(move || serve(&core, &settings, container, &remarks, &shows))?;
    Ok(shown)
}

fn serve(
    core: &Arc<CoreChannel>,
    settings: &RoutingSettings,
    container: Option<OwnedFd>,
    remarks: &Remarks,
    shows: &ShownRouting,
) {
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
            let container = container.as_ref().map(OwnedFd::try_clone).transpose();
            let container = container.map_err(|error| error.to_string())?.map(Netlink::of);
            let resumed = Resumed { held: &held, container };
            let routing = Routing::resuming(&tables, settings, Hosts::default(), remarks, resumed);
            Ok((routing.map_err(|error| error.to_string())?, packet_loop))
        });
        match begun {
            Ok((routing, packet_loop)) => break (Arc::new(routing), Arc::new(packet_loop)),
            Err(why) => say(why),
        }
    };
    // Without the routes of the machine, those that tables hold would go and come again.
    if let Err(error) = routing.wait_for_kernel(KERNEL_TELLS) {
        say(format!("the machine's routes are not known: {error}"));
    }
    // It is set only here.
    let _ = shows.set(routing.clone());
    routing.follow_kernel(&packet_loop);
    let mut is_ready = false;
    loop {
        if packet_loop.is_stale() {
            is_ready = false;
        }
        if !is_ready && let Err(why) = make_ready(core, settings, &routing, &packet_loop) {
            say(why);
            continue;
        }
        is_ready = true;
        routing.serve_some(|patience| Some(packet_loop.packets(patience).into_iter()), &*packet_loop);
    }
}

/// Has the tables of the program that runs hold what is known.
fn make_ready(
    core: &CoreChannel,
    settings: &RoutingSettings,
    routing: &Routing,
    packet_loop: &ConfinedLoop,
) -> Result<(), String> {
    if packet_loop.is_stale() {
        let program = known(core)?;
        let staged = routing.stage(&program.program, settings).map_err(|error| error.to_string())?;
        packet_loop.runs(program);
        staged.commit(settings, NewHosts::none(settings.ports.len()));
    }
    let held = |tables: &[(Filled, u32)]| packet_loop.held_now(tables);
    routing.fill_running(held, |held, wanted| packet_loop.difference(held, wanted))
}

/// The tables of the program that runs.
fn known(core: &CoreChannel) -> Result<Known, String> {
    let ask = |question: &ControlQuestion| core.ask(question);
    // No user is told what is said of them.
    let tables = ConfinedTables { ask: &ask, one_process: OneProcess::Never };
    confined::known(&tables).map_err(|refusal| refusal.message)
}
