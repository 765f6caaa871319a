//! `ravelin policy`: questions about the rules of firewalls, answered for all packets at once.

mod check;
mod counts;
mod diff;
mod program;
pub(crate) mod review;
pub(crate) mod source;
mod test;
mod why;

use crate::arguments::policy::PolicyCommand;
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(command: &PolicyCommand, json: bool) -> Result<(), Failure> {
    match command {
        PolicyCommand::Check(arguments) => check::run(arguments, json),
        PolicyCommand::Counts(arguments) => counts::run(arguments, json),
        PolicyCommand::Diff(arguments) => diff::run(arguments, json),
        PolicyCommand::Why(arguments) => why::run(arguments, json),
        PolicyCommand::Test(arguments) => test::run(arguments, json),
    }
}
