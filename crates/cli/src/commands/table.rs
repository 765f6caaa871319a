//! `ravelin table`: tables of a running gateway; and lookups in a table that is filled from a file, where
//! each line of a file of queries gets a line as its answer.

mod counts;
mod defaults;
mod figures;
pub(super) mod files;
mod live;
mod lpm;
mod patterns;
mod payload;
mod rules;
pub(super) mod source;
mod watch;
mod written_value;

use crate::arguments::table::TableCommand;
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(command: &TableCommand, json: bool) -> Result<(), Failure> {
    let lines = || match json {
        false => Ok(()),
        true => Err(Failure::Usage(
            "the answers are lines with tabs between their columns; leave out --json".into(),
        )),
    };
    match command {
        TableCommand::Show(arguments) => live::show(arguments, json),
        TableCommand::Add(arguments) => live::add(arguments, json),
        TableCommand::Remove(arguments) => live::remove(arguments, json),
        TableCommand::Replace(arguments) => live::replace(arguments, json),
        TableCommand::Default(arguments) => defaults::default(arguments, json),
        TableCommand::Join(arguments) => defaults::join(arguments, json),
        TableCommand::Leave(arguments) => defaults::leave(arguments, json),
        TableCommand::Watch(arguments) => watch::run(arguments, json),
        TableCommand::Lpm(arguments) => lines().and_then(|()| lpm::run(arguments)),
        TableCommand::Rules(arguments) => lines().and_then(|()| rules::run(arguments)),
        TableCommand::Patterns(arguments) => lines().and_then(|()| patterns::run(arguments)),
    }
}
