//! How the process begins: it gives up its rights, takes what `launch` hands over, locks itself in, and only
//! then hears a network.

use confinement::{Layer, Missing, Role};
use front::{Front, FrontError};
use lexopt::{Arg, Parser, ValueExt};
use messages::front::FrontBegin;
use messages::limits::LONGEST_MESSAGE;
use messages::{Channel, ChannelError};
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;

/// Why it ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    /// an argument
    #[error("{0}; `ravelin serve` starts it as it has to be")]
    Argument(#[from] lexopt::Error),
    /// a layer
    #[error(transparent)]
    Missing(#[from] Missing),
    /// what launch hands over
    #[error("what `launch` hands over: {0}")]
    Channel(#[from] ChannelError),
    /// something is left out
    #[error("what `launch` hands over is not a socket and a channel")]
    HandedOver,
    /// the front
    #[error(transparent)]
    Front(#[from] FrontError),
    /// the system
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Runs until `control` is gone.
pub(crate) fn run(mut arguments: Parser) -> Result<(), ProcessError> {
    let mut without: Vec<Layer> = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("without") => without.push(arguments.value()?.parse()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let entered = confinement::enter(Role::Front, &without)?;
    let mut launch = Channel::of(io::stdin().as_fd().try_clone_to_owned()?);
    let (begin, descriptors) =
        launch.receive::<FrontBegin>(LONGEST_MESSAGE)?.ok_or(ProcessError::HandedOver)?;
    let [listener, control] = <[_; 2]>::try_from(descriptors).map_err(|_| ProcessError::HandedOver)?;
    let front = Front::new(&begin, TcpListener::from(listener), Channel::of(control), say)?;
    drop((begin, launch));
    entered.lock()?;
    Ok(front.run()?)
}

/// Says a line. Where nobody can read it, clients matter more.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
