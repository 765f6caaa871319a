//! The commands, one file each.

mod as_started;
mod bundle;
mod capture;
mod check;
mod compile;
mod contain;
mod demo;
mod doctor;
mod doctor_trust;
mod explain;
mod export;
mod fix;
mod fmt;
mod front;
mod generate;
mod generate_table;
mod lab;
mod lab_gpu;
mod names;
mod naming;
mod policy;
mod processes;
mod reload;
mod run;
mod serve;
mod show;
mod show_routing;
mod table;
mod test;
mod top;
mod trace;
mod trusted;
mod why;

use crate::arguments::{Command, CommandLine};
use crate::failure::Failure;

/// Runs the command of a command line.
pub(crate) fn run(line: &CommandLine) -> Result<(), Failure> {
    match &line.command {
        Command::Check(arguments) => check::run(arguments, line.json),
        Command::Fmt(arguments) => fmt::run(arguments, line.json),
        Command::Fix(arguments) => fix::run(arguments, line.json),
        Command::Compile(arguments) => compile::run(arguments, line.json),
        Command::Run(arguments) => run::run(arguments, line.json),
        Command::Serve(arguments) => serve::run(arguments, line.json),
        Command::CompileForCore(arguments) => trusted::compile_for_core(arguments),
        Command::ControlForCore(arguments) => trusted::control_for_core(arguments),
        Command::Front(what) => front::run(what, line.json),
        Command::Contain(arguments) => contain::run(arguments),
        Command::EnterContainer(arguments) => contain::enter(arguments),
        Command::Show(arguments) => show::run(arguments, line.json),
        Command::Top(arguments) => top::run(arguments, line.json),
        Command::Why(arguments) => why::run(arguments, line.json),
        Command::Capture(arguments) => capture::run(arguments, line.json),
        Command::Reload(arguments) => reload::run(arguments, line.json),
        Command::Stop(arguments) => show::ask(arguments, gateway::control::Asked::Stop, line.json),
        Command::Test(arguments) => test::run(arguments, line.json),
        Command::Trace(arguments) => trace::run(arguments, line.json),
        Command::Explain(arguments) => explain::run(arguments, line.json),
        Command::Generate(arguments) => generate::run(arguments, line.json),
        Command::Names(what) => names::run(what, line.json),
        Command::Naming(what) => naming::run(what, line.json),
        Command::Table(arguments) => table::run(arguments, line.json),
        Command::Policy(what) => policy::run(what, line.json),
        Command::Bundle(what) => bundle::run(what, line.json),
        Command::Export(arguments) => export::run(arguments, line.json),
        Command::Lab(arguments) => lab::run(arguments, line.json),
        Command::Doctor(arguments) => doctor::run(arguments, line.json),
        Command::Demo => demo::run(line.json),
    }
}
