//! The `ravelin` binary: it reads the command line, runs one command, and returns the result as an exit code.

#![forbid(unsafe_code)]

mod allowance;
mod arguments;
mod commands;
mod executing;
mod failure;
mod imported;
mod interruption;
mod memory_limit;
mod program;
mod remembered;
mod render;

use arguments::CommandLine;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = CommandLine::parse();
    match commands::run(&line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(line.json);
            ExitCode::from(failure.exit_code())
        }
    }
}
