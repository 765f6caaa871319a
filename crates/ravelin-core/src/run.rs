//! Runs the core from its first message to its end.
//!
//! Workers run packets. Beside them there is one thread for each process that may say something: `launch`,
//! `compile` and `control`. All are made at the start, and wait for each other only where one hands a channel
//! over.

use crate::activation::{self, Activation};
use crate::supply::{self, Supply};
use crate::{answers, boot};
use engine::live;
use messages::compile::CompileMessage;
use messages::launch::{CoreReport, LaunchMessage};
use messages::limits::{LONGEST_MESSAGE, LONGEST_PROGRAM, LONGEST_TEXT};
use messages::{Channel, ChannelError};
use ports::live::Lane;
use ports::live::clock::{Clock, MachineClock};
use ports::live::handed_over::PortRenewal;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread;

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
}

/// Runs until `launch` is gone.
///
/// # Errors
/// What it is given cannot be used, or a worker fails.
pub fn run(mut launch: Channel) -> Result<(), CoreError> {
    let Supply { begin, ports, renewals } = supply::receive(&mut launch)?;
    let count = ports.len() as u16;
    let mut lanes: Vec<Vec<Lane>> = (0..begin.workers).map(|_| Vec::new()).collect();
    for port in ports {
        lanes.iter_mut().zip(port.lanes).for_each(|(worker, lane)| worker.push(lane));
    }
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (workers, remote) = live::workers(lanes, &clock)?;
    let generations = activation::generations(boot::program(), begin.workers, count, begin.seed, 1)?;
    let activation = Arc::new(Activation::new(remote.clone(), count, begin.seed));
    let layers: Arc<[String]> = Arc::from([]);
    let mut reports = launch.again()?;
    reports.send(&CoreReport::Locked { layers: layers.to_vec() }, &[])?;
    let (compiled, programs) = mpsc::channel();
    let (controlled, controls) = mpsc::channel();
    let activates = activation.clone();
    thread::Builder::new().name("compile".to_owned()).spawn(move || {
        programs.iter().for_each(|channel| take_program(Channel::of(channel), &activates, &mut reports));
    })?;
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        controls.iter().for_each(|channel| answers::serve(Channel::of(channel), &activation, &layers));
    })?;
    let stops = remote.clone();
    thread::Builder::new().name("launch".to_owned()).spawn(move || {
        if let Err(error) = hear(&mut launch, &renewals, &compiled, &controlled) {
            eprintln!("ravelin-core: launch: {error}");
        }
        // Without `launch` nobody restarts what dies.
        stops.stop();
    })?;
    live::run(workers, generations, &remote, &[]).failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Hears what `launch` says until it is gone.
fn hear(
    launch: &mut Channel,
    renewals: &[PortRenewal],
    compiled: &mpsc::Sender<OwnedFd>,
    controlled: &mpsc::Sender<OwnedFd>,
) -> Result<(), CoreError> {
    while let Some((message, mut descriptors)) = launch.receive(LONGEST_MESSAGE)? {
        match message {
            LaunchMessage::Compile => drop(descriptors.pop().map(|channel| compiled.send(channel))),
            LaunchMessage::Control => drop(descriptors.pop().map(|channel| controlled.send(channel))),
            LaunchMessage::Renewed { number, port } => {
                let Some(renewal) = usize::from(number).checked_sub(1).and_then(|at| renewals.get(at)) else {
                    return Err(CoreError::Order("a port that does not exist is there again"));
                };
                let interface = port.interface.clone();
                let renewed = renewal.renew(&supply::handed_over(port), descriptors);
                renewed.map_err(|source| CoreError::Port { interface, source })?;
            }
            LaunchMessage::Begin(_) | LaunchMessage::Port(_) | LaunchMessage::Start => {
                return Err(CoreError::Order("it begins a second time"));
            }
        }
    }
    Ok(())
}

/// Takes one program of `compile`, has it take over, and reports what became of it.
fn take_program(mut compile: Channel, activation: &Activation, reports: &mut Channel) {
    let refused = |why: String| CoreReport::Refused { why: shortened(why) };
    let report = match compile.receive::<CompileMessage>(LONGEST_PROGRAM) {
        Ok(Some((CompileMessage::Program(text), _))) => match activation.activate(&text) {
            Ok(active) => CoreReport::Activated { hash: active.hash, number: active.number },
            Err(error) => refused(error.to_string()),
        },
        Ok(Some((CompileMessage::Refused(why), _))) => refused(why),
        Ok(None) => refused("compile ended without a program".to_owned()),
        Err(error) => refused(format!("compile: {error}")),
    };
    // If `launch` is gone, the core ends.
    let _ = reports.send(&report, &[]);
}

/// A text for people, cut where a message would get too long.
fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let end = (0..=LONGEST_TEXT).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
    }
    text
}
