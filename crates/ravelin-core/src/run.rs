//! Runs the core from its first message to its end.
//!
//! Workers run packets. Beside them there is one thread for each process that may say something: `launch`,
//! `compile`, `control` and another core that takes over. All are made before the core locks itself in, and
//! none ends before the core does: a locked core can neither make a thread nor end one.

use crate::activation::{self, Activation, Loading};
use crate::answers::Answering;
use crate::boot;
use crate::error::{CoreError, say};
use crate::exchange::{Exchange, Speakers};
use crate::figures::SeenPort;
use crate::handing_over::hand_over;
use crate::in_force::InForce;
use crate::policies::{self, Policies};
use crate::supply::{self, Supply};
use crate::taking_over::{Before, Chosen, Origin, Taken, choose};
use bundle::EngineVersion;
use confinement::{Layer, Role};
use engine::live::{self, Resting};
use exec::BackendKind;
use messages::Channel;
use messages::launch::{Begin, CoreReport, LaunchMessage};
use messages::limits::LONGEST_MESSAGE;
use ports::live::Lane;
use ports::live::clock::{Clock, MachineClock};
use ports::live::handed_over::PortRenewal;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::{Arc, Barrier, mpsc};
use std::{process, thread};

/// What the program of a core does: it runs by this back end, with one end of a channel to `launch` as its
/// standard input.
#[must_use]
pub fn main(back_end: BackendKind) -> ExitCode {
    let channel = io::stdin().as_fd().try_clone_to_owned().map(Channel::of);
    match channel.map_err(CoreError::from).and_then(|launch| run(launch, back_end)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error);
            ExitCode::FAILURE
        }
    }
}

/// Runs until `launch` is gone, by this back end. One that makes machine code has to make it before this core
/// locks itself in.
///
/// # Errors
/// What it is given cannot be used, or a worker fails.
fn run(mut launch: Channel, back_end: BackendKind) -> Result<(), CoreError> {
    let begin = supply::begin(&mut launch)?;
    let without = begin.without.iter().map(|name| name.parse()).collect::<Result<Vec<Layer>, _>>()?;
    let entered = confinement::enter(Role::Core, &without)?;
    let mut in_force =
        begin.trust.clone().map(|terms| InForce::new(terms, EngineVersion::OWN)).transpose()?;
    let kept = in_force.as_ref().map(|_| supply::kept(&mut launch)).transpose()?;
    let beside = begin.beside.then(|| supply::beside(&mut launch)).transpose()?;
    let Begin { workers, ports: count, seed, .. } = begin;
    let loading = Loading { back_end, workers, ports: count, seed };
    let mut origin = Some(Origin { kept, beside });
    let mut chosen = None;
    if back_end != BackendKind::Bytecode {
        entered.keep_to_own_work()?;
        chosen = origin.take().map(|origin| choose(loading, in_force.as_mut(), origin));
        if let Some(Err(error)) = &chosen
            && begin.beside
        {
            launch.send(&policies::refused(&error.to_string()), &[])?;
            return Ok(());
        }
    }
    let Supply { ports, renewals, refused, speakers } = supply::ports(&mut launch, &begin)?;
    let mut lanes: Vec<Vec<Lane>> = (0..workers).map(|_| Vec::new()).collect();
    let mut seen = Vec::new();
    for port in ports {
        lanes.iter_mut().zip(port.lanes).for_each(|(worker, lane)| worker.push(lane));
        seen.push(SeenPort { interface: port.name, mode: port.mode, presence: port.presence });
    }
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (loops, remote) = live::workers(lanes, &clock)?;
    // No packet is taken before it is known what runs.
    let mut resting = remote.rest();
    if begin.beside {
        // The ports are those of the other core until it has handed them over.
        resting.stay();
    }
    let bytecode = Loading { back_end: BackendKind::Bytecode, ..loading };
    let generations = activation::generations(boot::program(), bytecode, 1)?;
    let activation = Arc::new(Activation::new(remote.clone(), loading));
    let policies = Arc::new(Policies::new(activation, in_force, launch.again()?));
    let layers = confinement::Role::layers(Role::Core).filter(|layer| !without.contains(layer));
    let layers: Arc<[String]> = layers.map(|layer| layer.name().to_owned()).collect();
    let told = layers.to_vec();
    let (compiled, programs) = mpsc::channel();
    let (controlled, controls) = mpsc::channel();
    let (succeeded, successors) = mpsc::channel();
    let (has_kept, heard_kept) = mpsc::channel();
    let exchange = Exchange::new(remote.clone(), speakers.clone());
    let [takes, answers, hands_over, tells] = std::array::from_fn(|_| policies.clone());
    let began = Arc::new(Barrier::new(5));
    let [compile_began, control_began, launch_began, other_began] = std::array::from_fn(|_| began.clone());
    thread::Builder::new().name("compile".to_owned()).spawn(move || {
        compile_began.wait();
        programs.iter().for_each(|channel| policies::take_of(Channel::of(channel), &takes));
    })?;
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        control_began.wait();
        let mut answering = Answering::new(&answers, &layers, &refused, &seen, exchange, &heard_kept);
        controls.iter().for_each(|channel| answering.serve(Channel::of(channel)));
    })?;
    thread::Builder::new().name("successor".to_owned()).spawn(move || {
        other_began.wait();
        successors.iter().for_each(|channel| hand_over(Channel::of(channel), &hands_over));
    })?;
    thread::Builder::new().name("launch".to_owned()).spawn(move || {
        launch_began.wait();
        let to = To { compiled, controlled, succeeded, has_kept, speakers, policies: tells };
        if let Err(error) = hear(&mut launch, &renewals, &to) {
            say(&error);
        }
        // Without `launch` nobody restarts what dies.
        process::exit(1);
    })?;
    let runs = remote.clone();
    thread::Builder::new().name("workers".to_owned()).spawn(move || {
        // Workers end only where one fails; then Linux ends the process, whose threads may not end.
        live::run(loops, generations, &runs, &[]);
    })?;
    // Whoever has come so far has set up everything that a thread sets up.
    began.wait();
    resting
        .each(vec![(); usize::from(workers)], |_, _, ()| ())
        .ok_or(CoreError::Order("a worker does not begin"))?;
    // Nobody hands in a policy before the first program.
    let mut held = policies.hold();
    entered.lock()?;
    policies.report(&CoreReport::Locked { layers: told });
    if let Some(origin) = origin {
        chosen = Some(choose(loading, held.as_deref_mut(), origin));
    }
    let began = chosen.unwrap_or(Ok((None, None))).and_then(|chosen| begin_with(chosen, &policies, resting));
    drop(held);
    if let Err(error) = began {
        policies.refuse(&error.to_string());
        if begin.beside {
            return Ok(());
        }
    }
    Err(CoreError::Return(policies.watch()))
}

/// Has the first program run; without one, every packet is dropped.
fn begin_with(
    (chosen, before): (Option<Chosen>, Option<Before>),
    policies: &Policies,
    resting: Resting,
) -> Result<(), CoreError> {
    let Some(mut chosen) = chosen else { return Ok(()) };
    let taken = before.map(|before| before.hand_over(&mut chosen, &resting)).transpose()?;
    policies.activation().begin(chosen.prepared, resting)?;
    if let Some(Taken { state, asked }) = taken {
        policies.report(&CoreReport::TookOver { gap: asked.elapsed().as_micros() as u64, state });
    }
    policies.tell(chosen.taken);
    Ok(())
}

/// Where what `launch` hands over goes.
struct To {
    compiled: mpsc::Sender<OwnedFd>,
    controlled: mpsc::Sender<OwnedFd>,
    succeeded: mpsc::Sender<OwnedFd>,
    /// The newest version of what was to be kept, and why it was not.
    has_kept: mpsc::Sender<(u64, Option<String>)>,
    speakers: Arc<Speakers>,
    /// Where `launch` is told what became of it.
    policies: Arc<Policies>,
}

/// Hears what `launch` says until it is gone.
fn hear(launch: &mut Channel, renewals: &[PortRenewal], to: &To) -> Result<(), CoreError> {
    while let Some((message, mut descriptors)) = launch.receive(LONGEST_MESSAGE)? {
        match message {
            LaunchMessage::Compile => drop(descriptors.pop().map(|channel| to.compiled.send(channel))),
            LaunchMessage::Control => drop(descriptors.pop().map(|channel| to.controlled.send(channel))),
            LaunchMessage::HandOver => drop(descriptors.pop().map(|channel| to.succeeded.send(channel))),
            LaunchMessage::Renewed { number, port, serial } => {
                let Some(renewal) = usize::from(number).checked_sub(1).and_then(|at| renewals.get(at)) else {
                    return Err(CoreError::Order("a port that does not exist is there again"));
                };
                let interface = port.interface.clone();
                to.speakers.set(number, supply::checked(port.control.clone())?);
                let renewed = renewal.renew(&supply::handed_over(port), descriptors);
                // The other ports go on.
                if let Err(source) = renewed {
                    say(&CoreError::Port { interface, source });
                }
                to.policies.report(&CoreReport::Renewed { serial });
            }
            // Whoever asked may not wait any more.
            LaunchMessage::HasKept { newest, failed } => drop(to.has_kept.send((newest, failed))),
            LaunchMessage::Begin(_)
            | LaunchMessage::Kept(_)
            | LaunchMessage::Beside
            | LaunchMessage::Port(_)
            | LaunchMessage::Start => {
                return Err(CoreError::Order("it begins a second time"));
            }
        }
    }
    Ok(())
}
