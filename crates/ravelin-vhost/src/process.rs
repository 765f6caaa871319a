//! How the process begins: it gives up its rights, takes what `launch` hands over, locks itself in, and only
//! then hears the monitor.

use confinement::{Layer, Missing, Role};
use lexopt::{Arg, Parser, ValueExt};
use messages::Channel;
use messages::limits::LET_GO_WITHIN;
use ravelin_vhost::{ExchangeError, Side, exchange, supplied};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Why it ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    /// an argument
    #[error("{0}; `ravelin serve` starts it as it has to be")]
    Argument(#[from] lexopt::Error),
    /// a layer
    #[error(transparent)]
    Missing(#[from] Missing),
    /// the exchange
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// the system
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Runs until the monitor or the gateway is gone.
pub(crate) fn run(mut arguments: Parser) -> Result<(), ProcessError> {
    let mut without: Vec<Layer> = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("without") => without.push(arguments.value()?.parse()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let entered = confinement::enter(Role::Vhost, &without)?;
    let mut launch = Channel::of(io::stdin().as_fd().try_clone_to_owned()?);
    let (bell, takes_unfinished) = supplied(&mut launch)?;
    let monitor = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    entered.lock()?;
    Ok(exchange(Side { launch, monitor, bell, takes_unfinished, let_go_within: LET_GO_WITHIN, say })?)
}

/// Says a line. Where nobody can read it, the machine matters more.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
