//! Runs the core from its first message to its end.
//!
//! Workers run packets. Beside them there is one thread for each process that may say something: `launch`,
//! `compile` and `control`. All are made before the core locks itself in, and none ends before the core does:
//! a locked core can neither make a thread nor end one.

use crate::activation::{self, Activation};
use crate::answers::Answering;
use crate::boot;
use crate::in_force::{InForce, InstallError};
use crate::policies::{self, Policies};
use crate::supply::{self, Supply};
use bundle::EngineVersion;
use confinement::{Layer, Role};
use engine::live;
use messages::launch::{CoreReport, LaunchMessage};
use messages::limits::LONGEST_MESSAGE;
use messages::{Channel, ChannelError};
use ports::live::Lane;
use ports::live::clock::{Clock, MachineClock};
use ports::live::handed_over::PortRenewal;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Barrier, mpsc};
use std::{process, thread};

/// Why the core ends.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// the channel to `launch`
    #[error("launch: {0}")]
    Channel(#[from] ChannelError),
    /// the system refuses
    #[error("{0}")]
    System(#[from] io::Error),
    /// a message that does not belong there
    #[error("launch: {0}")]
    Order(&'static str),
    /// a layer of confinement is missing
    #[error("{0}; `--without` with its name lets the core run without it")]
    Missing(#[from] confinement::Missing),
    /// the name of a layer
    #[error("{0}")]
    UnknownLayer(#[from] confinement::UnknownLayer),
    /// a port
    #[error("interface {interface}: {source}")]
    Port {
        /// Its name.
        interface: String,
        /// Why it cannot be adopted.
        source: io::Error,
    },
    /// the program that drops every packet
    #[error("{0}")]
    Boot(#[from] activation::ActivationError),
    /// whose policies are taken
    #[error("whose policies are taken: {0}")]
    Trust(#[from] bundle::TrustError),
    /// the policy before an unconfirmed one
    #[error("the policy before the unconfirmed one does not take over: {0}; another core begins with it")]
    Return(#[from] InstallError),
}

/// Runs until `launch` is gone.
///
/// # Errors
/// What it is given cannot be used, or a worker fails.
pub fn run(mut launch: Channel) -> Result<(), CoreError> {
    let begin = supply::begin(&mut launch)?;
    let without = begin.without.iter().map(|name| name.parse()).collect::<Result<Vec<Layer>, _>>()?;
    let entered = confinement::enter(Role::Core, &without)?;
    let in_force = begin.trust.map(|terms| InForce::new(terms, EngineVersion::OWN)).transpose()?;
    let kept = in_force.as_ref().map(|_| supply::kept(&mut launch)).transpose()?;
    let Supply { ports, renewals, refused } = supply::ports(&mut launch, begin.workers)?;
    let count = ports.len() as u16;
    let mut lanes: Vec<Vec<Lane>> = (0..begin.workers).map(|_| Vec::new()).collect();
    for port in ports {
        lanes.iter_mut().zip(port.lanes).for_each(|(worker, lane)| worker.push(lane));
    }
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (workers, remote) = live::workers(lanes, &clock)?;
    let generations = activation::generations(boot::program(), begin.workers, count, begin.seed, 1)?;
    let activation = Arc::new(Activation::new(remote.clone(), count, begin.seed));
    let policies = Arc::new(Policies::new(activation, in_force, launch.again()?));
    let layers = confinement::Role::layers(Role::Core).filter(|layer| !without.contains(layer));
    let layers: Arc<[String]> = layers.map(|layer| layer.name().to_owned()).collect();
    let told = layers.to_vec();
    let (compiled, programs) = mpsc::channel();
    let (controlled, controls) = mpsc::channel();
    let (has_kept, heard_kept) = mpsc::channel();
    let (takes, answers) = (policies.clone(), policies.clone());
    let began = Arc::new(Barrier::new(4));
    let (compile_began, control_began, launch_began) = (began.clone(), began.clone(), began.clone());
    thread::Builder::new().name("compile".to_owned()).spawn(move || {
        compile_began.wait();
        programs.iter().for_each(|channel| policies::take_of(Channel::of(channel), &takes));
    })?;
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        control_began.wait();
        let mut answering = Answering::new(&answers, &layers, &refused, &heard_kept);
        controls.iter().for_each(|channel| answering.serve(Channel::of(channel)));
    })?;
    thread::Builder::new().name("launch".to_owned()).spawn(move || {
        launch_began.wait();
        if let Err(error) = hear(&mut launch, &renewals, &To { compiled, controlled, has_kept }) {
            say(&error);
        }
        // Without `launch` nobody restarts what dies.
        process::exit(1);
    })?;
    let runs = remote.clone();
    thread::Builder::new().name("workers".to_owned()).spawn(move || {
        // Workers end only where one fails; then Linux ends the process, whose threads may not end.
        live::run(workers, generations, &runs, &[]);
    })?;
    // Whoever has come so far has set up everything that a thread sets up.
    began.wait();
    remote.ask(|_, _| ()).ok_or(CoreError::Order("a worker does not begin"))?;
    // Nobody hands in a policy before the one that was kept.
    let held = policies.hold();
    entered.lock()?;
    policies.report(&CoreReport::Locked { layers: told });
    policies.restore(held, kept.unwrap_or_default());
    Err(policies.watch().into())
}

/// Where what `launch` hands over goes.
struct To {
    compiled: mpsc::Sender<OwnedFd>,
    controlled: mpsc::Sender<OwnedFd>,
    /// The newest version of what was to be kept, and why it was not.
    has_kept: mpsc::Sender<(u64, Option<String>)>,
}

/// Hears what `launch` says until it is gone.
fn hear(launch: &mut Channel, renewals: &[PortRenewal], to: &To) -> Result<(), CoreError> {
    while let Some((message, mut descriptors)) = launch.receive(LONGEST_MESSAGE)? {
        match message {
            LaunchMessage::Compile => drop(descriptors.pop().map(|channel| to.compiled.send(channel))),
            LaunchMessage::Control => drop(descriptors.pop().map(|channel| to.controlled.send(channel))),
            LaunchMessage::Renewed { number, port } => {
                let Some(renewal) = usize::from(number).checked_sub(1).and_then(|at| renewals.get(at)) else {
                    return Err(CoreError::Order("a port that does not exist is there again"));
                };
                let interface = port.interface.clone();
                let renewed = renewal.renew(&supply::handed_over(port), descriptors);
                // The other ports go on.
                if let Err(source) = renewed {
                    say(&CoreError::Port { interface, source });
                }
            }
            // Whoever asked may not wait any more.
            LaunchMessage::HasKept { newest, failed } => drop(to.has_kept.send((newest, failed))),
            LaunchMessage::Begin(_)
            | LaunchMessage::Kept(_)
            | LaunchMessage::Port(_)
            | LaunchMessage::Start => {
                return Err(CoreError::Order("it begins a second time"));
            }
        }
    }
    Ok(())
}

/// Says what is wrong. Where nobody can read it, packets matter more.
pub(crate) fn say(error: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "ravelin-core: {error}");
}
